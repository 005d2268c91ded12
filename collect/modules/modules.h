/* SPDX-License-Identifier: MIT */
/*
 * modules.h - the ELF files that traced processes have loaded: one entry a file in the whole
 * recording, its plan, its selected functions and their numbers in the trace.
 *
 * A file is planned once, however many processes load it at the same time: the first plans
 * under the entry's lock, the others wait for it.  Entries and plans live until the end.
 */
#ifndef COLLECT_MODULES_H
#define COLLECT_MODULES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "collect/cache/content.h"
#include "collect/journal.h"
#include "collect/modules/module_probes.h"
#include "collect/cache/plan_cache.h"
#include "collect/kernel/process_maps.h"
#include "collect/modules/selection.h"
#include "inject/plan/plan.h"

struct callsite_links;
struct callsite_plan;

struct module {
	struct file_identity file;
	uint64_t maps_dev; /* device as /proc/PID/maps says it: differs on btrfs and overlays */
	/* Under the modules' lock.  A file that was changed just before it was opened may be changed
	 * once more and keep its identity: while it is young, its bytes are compared. */
	bool is_young, is_gone; /* gone: another module has its identity now */
	bool has_content;       /* it was young once */
	struct content content;
	char *path;
	char *soname; /* NULL: it has none */
	struct elf_segment *segments;
	size_t nsegments;

	pthread_mutex_t lock;  /* for all below; plans do not change once set */
	struct elf_image *img; /* until it is planned */
	struct plan *hooks, *full;
	int hooks_code, full_code; /* 0 = not tried or had, else -errno */
	struct err why;            /* sentence of the last code */
	uint8_t *selected;         /* a byte a function of full */
	uint8_t *levels;           /* likewise: its filter level */
	uint8_t *timed;            /* likewise: it reads the clock each time; NULL: none does */
	uint8_t *kept;             /* likewise: --budget does not take it out; NULL: none is */
	size_t nselected;
	uint32_t event_base, jump_base;
	bool is_late; /* under the modules' lock: processes run without its functions until it is planned */
	bool has_come; /* likewise: that is over */
	bool settled;  /* it is known what of the full plan is wanted, and by which numbers */
	bool recorded; /* its tables are in the trace */
	bool patched;  /* a file from kron patch: both plans are what it brought along */
	bool is_exe;   /* it was seen first as somebody's main executable */
	bool probed;   /* its full plan has places of probes */
	struct module_probes probes;
	uint64_t block_vaddr, block_len; /* its block */
	uint8_t block_id[KRON_BLOCK_ID_LEN];
	bool has_jumps; /* to it, in its text */
	bool has_start; /* and the runtime: it is static */
	bool is_static; /* its threads' data are not the C library's */
	bool is_go;

	uint32_t id;                  /* in the trace, once it is recorded */
	struct callsite_links *links; /* callsite_process.h; NULL: not read yet */
	struct callsite_needs *needs; /* likewise, once it is settled */
	VEC(struct callsite_plan *) stubs;
};

static inline struct module_name module_name_of(const struct module *m)
{
	return (struct module_name){m->path, m->soname};
}

/* A file whose soname was asked for, and that need not be a module here. */
struct known_soname {
	struct file_identity file;
	uint64_t maps_dev;
	char *soname; /* NULL: it has none */
	bool is_sure; /* it was not young when it was read */
};

/* In the trace: what is probed later in the same file is not another module, nor are its functions others. */
struct listed_module {
	struct file_identity file;
	uint32_t id;
	const struct plan
		*plan; /* by which its functions have their numbers; NULL: they have none */
	uint32_t event_base, jump_base;
	uint8_t *rows; /* by function of the plan: the table has it; under the journal's lock */
};

/* Functions that branches trace (claims.h). */
struct claimed {
	struct file_identity file;
	size_t nfunctions;
	uint8_t *taken; /* by function of the plan */
};

struct modules_totals {
	uint64_t modules, probes, refused;
};

/* An event that users named: one number in all modules. */
struct named_event {
	const char *name;
	uint32_t n;
	uint8_t level;
};

struct modules {
	pthread_mutex_t lock;
	/* The recording's: numbers, names and totals are counted there.  Itself, but for probes that come
	 * later. */
	struct modules *whole;
	VEC(struct module *) all;
	struct plan_cache cache;
	const struct selection *selection;
	struct journal *journal;
	uint32_t next_function, next_jump, next_id;
	struct modules_totals totals;
	VEC(struct listed_module) listed;
	VEC(struct claimed) claims;
	VEC(struct known_soname) sonames; /* the whole's; under its lock */
	VEC(struct named_event) events;
	struct probe_results results;
	uint8_t *
		asleep; /* by spec of the selection's probes: PLACES_*, atomic; NULL: there are none */
	/* Whose functions were put to sleep, and woken, one after the other (function_sleep.h). */
	VEC(struct sleep_rule {
		char *glob;
		bool wakes;
		uint64_t number; /* from 1 on */
	})
	sleep_rules;
	uint64_t last_sleep_rule; /* its number */
	/* Of a branch: a module's functions are in the tables, and none of them has run with its probes.  It is locked. */
	void (*numbered)(void *ctx, struct module *m);
	void *numbered_ctx;
	/* Of a module that comes later: do some of these have to stay awake?  They begin asleep. */
	bool (*waits_for)(void *ctx, const uint32_t *functions, size_t n);
	void (*begin_asleep)(void *ctx, const char *functions);
	void *sleep_ctx;
};

void modules_init(struct modules *ms, const struct selection *sel, struct journal *j);
/* The same files once more, for other probes of the same recording: what `whole` has stays as it is. */
void modules_branch(struct modules *ms, struct modules *whole, const struct selection *sel);
void modules_free(struct modules *ms);

/*
 * The module of a mapping of process pid; is_exe: it is what /proc/PID/exe names.  Errors, with
 * a sentence: the file cannot be opened, is not the one that is mapped any more (-ESTALE), is
 * no ELF file for us, or must not be patched.
 */
int modules_get(struct modules *ms, struct module **out, pid_t pid,
		const struct process_mapping *map, bool is_exe, struct err *err);

/* What a mapped file may be meant by; its soname stays until the end.  It opens no file twice. */
struct module_name modules_name_mapping(struct modules *ms, pid_t pid,
					const struct process_mapping *map, bool is_exe);

/* Have the user's probes anything to do with the module?  Looks for USDT notes, too. */
bool modules_wants_probes(struct modules *ms, struct module *m);

/*
 * Its plan: full, with the functions selected, numbered and written to the trace's tables; or
 * the hooks alone.  Takes as long as planning takes.
 */
int modules_plan(struct modules *ms, struct module *m, bool full, struct err *err);
/* Can its functions be bound at once?  False: processes are to run without them for now (is_late). */
bool modules_is_at_hand(struct modules *ms, struct module *m);

/*
 * The plans of many modules, as far as they are not there yet, side by side, the largest first.
 * Nothing is numbered or written: modules_plan() does that for each, in the order of its calls, and
 * says what went wrong.
 */
struct module_wish {
	struct module *module;
	bool full;
};
void modules_prepare(struct modules *ms, const struct module_wish *v, size_t n);

/* Load bias of the module where this mapping of its text lies.  False: no segment fits. */
bool module_bias(const struct module *m, const struct process_mapping *map, uint64_t *bias);
/* Address span of all its segments, before bias. */
void module_span(const struct module *m, uint64_t *lo, uint64_t *hi);

/* Calls fn with the image, which is opened again if it was planned already.  What fn says, or
 * why there is no image. */
int modules_with_image(struct module *m,
		       int (*fn)(struct module *m, const struct elf_image *img, void *ctx,
				 struct err *err),
		       void *ctx, struct err *err);

/* Calls are to be counted, but the file brings probes of its own, which do not. */
static inline bool modules_cannot_count(const struct modules *ms, const struct module *m)
{
	return ms->selection->calls && m->patched;
}

/* All there are now, one after the other, each of them locked. */
void modules_each(struct modules *ms, void (*fn)(void *ctx, struct module *m), void *ctx);
void modules_get_totals(struct modules *ms, struct modules_totals *out);

#endif
