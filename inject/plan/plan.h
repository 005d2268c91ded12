/* SPDX-License-Identifier: MIT */
/*
 * plan.h - the planner: an image and its functions go in, a plan or refusals come out.
 *
 * The plan is pure data.  It knows vaddrs of the file, not addresses of a process, and event
 * numbers and trampoline addresses are still open: bind.h fixes them for one process.  So one
 * plan is cached by the file's content and serves every process and every selection of functions.
 *
 *   image, functions --plan_make--> plan --bind--> trampoline block + patches (addresses)
 *
 * A site is a window of whole instructions [addr, addr+len), len >= 5, whose first five bytes
 * become a jump to a stub; or len >= 2, whose first two become a short jump to a landing, five
 * bytes of padding, where the jump to the stub stands.  The stub holds the displaced instructions with probes between
 * them; a probe stands in front of the instruction that its place names.  One site may carry
 * several probes (a function that is only `ret` has entry and exit in one window).
 */
#ifndef INJECT_PLAN_H
#define INJECT_PLAN_H

#include <string.h>

#include "inject/code/functions.h"
#include "inject/code/refusal.h"
#include "inject/plan/request.h"
#include "inject/plan/tactics.h"
#include <kron/wire.h>

#define PLAN_VERSION 72u /* bump when the planner's output changes: the cache key has it */

enum probe_kind {
	PROBE_ENTRY = 0,
	PROBE_EXIT = 1,
	PROBE_HOOK = 2,
	PROBE_PLACE = 3, /* a place of the request */
	PROBE_KINDS
};

struct plan_function {
	uint64_t vaddr, size;
	uint32_t name;     /* offset into strings; demangled; "" when unknown */
	uint32_t raw_name; /* the symbol as it stands in the file; == name if it is not mangled */
	uint32_t sources;  /* enum function_source, and what is none of them */
	uint32_t first_probe, nprobes;
	uint32_t aliases; /* likewise: other names by which it is exported, newlines between; "" */
};

struct plan_probe {
	uint64_t vaddr; /* of the instruction it stands in front of (PLACE_AFTER: after) */
	uint32_t function;
	uint32_t site;   /* index, of one of them if there are several; UINT32_MAX: refused */
	uint8_t kind;    /* enum probe_kind */
	uint8_t tactic;  /* enum tactic */
	uint8_t refusal; /* enum refusal */
	uint8_t hook;    /* PROBE_HOOK: enum kron_hook */
	uint8_t where;   /* PROBE_PLACE: enum place_where */
	uint8_t pad[3];
	uint32_t action; /* PROBE_PLACE: index into the plan's actions; PROBE_EXIT: into its jumps,
			  * + 1, 0: it returns */
	uint32_t event;  /* PROBE_PLACE: index in the session's list of user events */
};
#define PLAN_NO_FUNCTION UINT32_MAX /* plan_probe.function: a place in no known function */

/* Where exits of a function that are jumps lead to; one for all those that lead to the same. */
enum plan_jump_to {
	PLAN_JUMP_ANYWHERE, /* nobody knows */
	PLAN_JUMP_FUNCTION, /* target: index into functions */
	PLAN_JUMP_INSIDE,   /* likewise, to the middle of it */
	PLAN_JUMP_NAME,     /* target: offset into strings; the dynamic linker finds it */
	PLAN_JUMP_TOS
};
struct plan_jump {
	uint32_t function; /* that leaves */
	uint32_t to;       /* enum plan_jump_to */
	uint32_t target;
};

/* What must be filled in when a stub gets its address. */
enum fixup_kind {
	FIXUP_PROBE,        /* a probe as in wire.h starts here: value = index into probes */
	FIXUP_HOOK,         /* a hook as in wire.h starts here: value = index into probes */
	FIXUP_MODULE_REL32, /* rel32 to a vaddr of the module: value = target vaddr */
	FIXUP_MODULE_LO32,  /* low half of the address of vaddr in the process */
	FIXUP_MODULE_HI32,  /* high half of it (pushed return addresses) */
	FIXUP_PLACE,        /* a place's sequence starts here: action.h's struct action_room */
	FIXUP_EVENT,        /* the event of a place: value = index into probes */
	FIXUP_BLOCK_REL32,  /* rel32 to the head of the block: value = offset in it */
	FIXUP_SITE_REL32,   /* rel32 into a stub of the same function: site << 16 | offset */
	FIXUP_CHAIN_REL32,  /* control goes to a site of the module: to its stub if that is bound,
			     * else to the module: value = site.  While the plan is made: a vaddr */
	FIXUP_PAGES,        /* disp32 of a thread's table of pages: action_pages.h; by function:
			     * value = 1 + index into functions, else 0 */
	FIXUP_FUNCTION,     /* struct kron_page's number of a function: value likewise */
	FIXUP_COUNT
};
struct plan_fixup {
	uint16_t off;   /* in the stub */
	uint8_t kind;   /* enum fixup_kind */
	uint8_t addend; /* rel32: distance from the field to the end of its instruction; of a
			 * FIXUP_MODULE_REL32 to where it counts from, with a sign */
	uint32_t aux;   /* FIXUP_PLACE; else 0 */
	uint64_t value;
};

#define PLAN_LANDING 5u
struct plan_site {
	uint64_t vaddr;
	uint32_t function;
	uint32_t code;           /* stub bytes: offset into plan.code */
	uint16_t code_len, kept; /* the stub's length; how many of its bytes the plan has */
	uint32_t first_fixup, nfixups;
	uint32_t first_map, nmaps; /* instruction map: stub offset <-> original vaddr */
	uint16_t window;           /* bytes displaced: their old values follow the stub's in code */
	uint8_t patch_len : 4;     /* bytes written: 5 for a jump, 7 for one by way of a word below
				    * 2 GiB (WINDOW_FAR), 2 for a short one; 1 with a
				    * landing: the byte after is its distance, without: int3;
				    * 0: none, all ways there are displaced and lead to the stub */
	uint8_t has_hook : 1;      /* one of its probes is a PROBE_HOOK */
	uint8_t has_place : 1;     /* likewise a PROBE_PLACE: it is always patched */
	uint8_t prefix;            /* 0, or the byte before the jump; patch_len counts it */
	/* Of a short jump: PLAN_LANDING bytes of padding, where the jump to the stub goes. */
	uint64_t landing;
	uint8_t landing_bytes[PLAN_LANDING]; /* what stands there */
	uint8_t nrelays; /* short jumps between the site's own and the landing */
};
/* The old bytes of its window: plan_old_bytes(plan, site). */
#define plan_old_bytes(p, s) ((const uint8_t *)(p)->code + (s)->code + (s)->kept)

/*
 * Counts and stores are written when the plan is bound (action.h): of a stub of code_len bytes with
 * these fixups the plan keeps what is not theirs (plan_code.c).
 *
 * plan_code_kept: how many bytes, 0 when the fixups make no sense.  plan_code_take: picks them out
 * of a stub.  plan_code_give: puts them in their places in one.
 */
unsigned plan_code_kept(const struct plan_fixup *f, size_t n, unsigned code_len);
void plan_code_take(uint8_t *kept, const uint8_t *stub, const struct plan_fixup *f, size_t n,
		    unsigned code_len);

/*
 * What stands where in a stub, in order: for unwinding, fault reports and disassembly.  From
 * stub_off on, up to the next entry, the stub does what the module does at window_off; shape
 * says what moves the stack there.  window_off == the code's length: it goes back.
 */
struct plan_map {
	uint16_t stub_off;
	uint16_t window_off : 11;
	uint16_t shape : 5; /* enum kron_shape */
};

struct plan {
	uint8_t build_id[32];
	uint32_t build_id_len;
	uint64_t text_lo, text_hi; /* page-rounded vaddr span of all patched text */
	/* the stretch that the program copies (copied.h), in pages; the same: there is none */
	uint64_t copied_lo, copied_hi;
	/* span of everything that stubs reach by rel32, patched text and its data included: what
	 * space_find() must keep within reach (text_lo and text_hi lie inside) */
	uint64_t reach_lo, reach_hi;
	struct plan_function *functions;
	size_t nfunctions; /* entries only: no .cold parts */
	uint32_t nlies;    /* symbols that say that a function starts inside of an instruction */
	struct plan_probe *probes;
	size_t nprobes;
	struct plan_site *sites;
	size_t nsites; /* sorted by vaddr */
	struct plan_fixup *fixups;
	size_t nfixups;
	struct plan_map *maps;
	size_t nmaps;
	struct place_action *actions; /* of the request */
	size_t nactions;
	struct plan_jump *jumps; /* those of a function together */
	size_t njumps;
	uint8_t *code;
	size_t code_len;
	char *strings;
	size_t strings_len;
	void *mapping;
	size_t mapping_len; /* set when loaded from a file: arrays point into it */
};

/* How many are left out where the fixup stands. */
unsigned plan_code_left_out(const struct plan_fixup *f);
void plan_code_give(uint8_t *stub, const struct plan *p, const struct plan_site *s);

/* Relays: two bytes each, where a short jump goes on to the next one, the last one's to the landing.
 * In code, after the window's bytes, in the order in which control passes. */
#define PLAN_RELAY 2u
struct plan_relay {
	int16_t from_site; /* from its vaddr */
	uint8_t bytes[PLAN_RELAY];
};
static inline struct plan_relay plan_relay(const struct plan *p, const struct plan_site *s,
					   unsigned i)
{
	struct plan_relay r;

	memcpy(&r, plan_old_bytes(p, s) + s->window + i * sizeof(r), sizeof(r));
	return r;
}
static inline uint64_t plan_relay_vaddr(const struct plan *p, const struct plan_site *s, unsigned i)
{
	return s->vaddr + (uint64_t)(int64_t)plan_relay(p, s, i).from_site;
}
/* Where its short jump leads: the first relay, or the landing. */
static inline uint64_t plan_short_target(const struct plan *p, const struct plan_site *s)
{
	return s->nrelays ? plan_relay_vaddr(p, s, 0) : s->landing;
}
/* Bytes of code that are the site's. */
static inline uint64_t plan_site_bytes(const struct plan_site *s)
{
	return (uint64_t)s->kept + s->window + s->nrelays * sizeof(struct plan_relay);
}

struct plan_options {
	bool hooks_only; /* plan the runtime's hooks (kron_hook symbols found here), no probes */
	/* Stubs whose bytes are right wherever the module is loaded: for a file on disk, whose
	 * load bias nobody knows.  They hold no FIXUP_MODULE_LO32 and HI32. */
	bool position_independent;
	bool for_file; /* code that is copied is left alone: copies come from the file, too */
	/* The user's places; NULL: entries and exits of all functions.  The cache key of a plan
	 * with a request must tell it from others: plan_request_hash(). */
	const struct plan_request *request;
	uint32_t tactics;  /* enum tactic_switch; 0: USE_DEFAULT */
	uint64_t handlers; /* KRON_HOOK_HANDLERS: vaddr of a stub of the linker's; 0: none */
};
/* Of what makes the plan different: places, actions, functions. */
uint64_t plan_request_hash(const struct plan_request *r);

/*
 * Probes of a function stand together: its hooks, its entry (not with hooks_only), then its
 * exits by vaddr, those of its .cold parts included, then the places of the request by vaddr.
 * Places in no function come last of all, with function PLAN_NO_FUNCTION and a refusal.
 *
 * Plan every function of the image, entries and exits, and the runtime's hooks whose symbols
 * the image defines.  0 or -errno with a sentence.  An image without any function is no error.
 */
int plan_make(struct plan **out, const struct elf_image *img, const struct plan_options *opt,
	      struct err *err);
struct code_map;
/* The same from a map that somebody else made. */
int plan_make_from(struct plan **out, const struct code_map *map, const struct plan_options *opt,
		   struct err *err);
void plan_free(struct plan *p);

/* Do its tables make sense together?  For plans that come out of files. */
bool plan_is_sound(const struct plan *p);

/* Counts for `kron list --summary` and `kron info`.  TACTIC_CALLSITE (callsite_mark) is patched,
 * though not in the code of this image. */
struct plan_counts {
	uint64_t found, patched;
	uint64_t by_tactic[TACTIC_COUNT];
	uint64_t refused[REFUSAL_COUNT];
};
void plan_count(const struct plan *p, enum probe_kind kind, struct plan_counts *out);

/*
 * ---- the plan as a file (plan_file.c): the cache's format, mapped, not parsed ----
 *
 * What the plan was made from: the bytes of the image and of its debug file, as a sum that the caller
 * has made of them (PLAN_SOURCE_LEN bytes), and the options.  A file is taken for the same key alone.
 */
#define PLAN_SOURCE_LEN 28
struct plan_key {
	uint8_t source[PLAN_SOURCE_LEN];
	uint32_t tactics; /* struct plan_options */
	uint64_t request; /* plan_request_hash(), 0 without one */
	uint32_t hooks_only, pad;
};
/* Bytes that the file will have. */
uint64_t plan_file_size(const struct plan *p);
int plan_save(const struct plan *p, const struct plan_key *key, int fd, struct err *err);
/* Checks magic, version, key, checksum, every offset and index: -EINVAL for a damaged file. */
int plan_load(struct plan **out, const struct plan_key *key, int fd, struct err *err);

#endif
