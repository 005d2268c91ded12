/* SPDX-License-Identifier: MIT */
/*
 * export_uftrace.c - a directory that uftrace (0.13) reads.
 *
 *   info             header of 40 bytes, then text; taskinfo must name every TID.dat
 *   task.txt         SESS: a program starts; TASK: a thread
 *   sid-*.map        where the modules lie, in the form of /proc/PID/maps
 *   MODULE.sym       "address type name" by rising address
 *   events.txt       "EVENT: number kron:name", of the probes that users placed
 *   TID.dat          a record for each begin and end of a call, and each such event; TIDs from
 *                    4194304 on are stacks whose calls interleave with their thread's
 *
 *   +0  u64  nanoseconds
 *   +8  u64  bits 0-1 type (0 entry, 1 exit, 3 event), 2 more, 3-5 magic 5, 6-15 depth, 16-63
 *            address or number of event
 *
 * The trace does not say where a process had its modules, and uftrace wants one place for each
 * anyway.  So each gets a range of its own in an address space that all processes share.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "trace/export/export.h"
#include "trace/export/export_dir.h"
#include "trace/export/export_nest.h"
#include "trace/text.h"

#define SID "6b726f6e6b726f6e" /* the only session: every process has the same map */
#define BASE 0x10000000ull
#define TOP (1ull << 46)
#define SPAN_MAX (1ull << 36)
#define UNKNOWN ((uint64_t)0x7e0 << 36) /* functions that the table does not have, 16 bytes each */
#define DEPTH_MAX 1023u

#define EVENTS 1000000u   /* numbers of users' events begin here */
#define STACKS (1u << 22) /* likewise, of tracks that are not threads: pid_max is no more */

enum { ENTRY, EXIT, EVENT = 3 };
enum { TASK_SESSION = 1 << 1, SYM_REL_ADDR = 1 << 5, MAX_STACK = 1 << 6, HAS_EVENTS = 1 << 7 };
enum {
	EXE_NAME = 1 << 0,
	CMDLINE = 1 << 3,
	OSINFO = 1 << 6,
	TASKINFO = 1 << 7,
	RECORD_DATE = 1 << 11
};

struct module {
	char *name; /* path, without what the formats cannot hold; its last part is unique */
	uint64_t base, span;
	bool by_index; /* addresses in the trace make no sense: 16 bytes a function */
	uint32_t first, n;
};

struct task { /* a file of records */
	uint32_t tid, lane;
};

struct uftrace {
	const struct trace *t;
	struct export_dir dir;
	struct module *modules;
	uint32_t *order; /* functions, by module and address */
	uint64_t *addr;  /* by index of function */
	struct export_set unknown;
	VEC(uint32_t) unknown_list;
	uint64_t base_ns, last_ns;
	uint32_t depth, max_depth;
	VEC(struct task) tasks;
	uint32_t nstacks; /* other than threads' own */
	FILE *of_thread, *of_stack;
	uint64_t of_thread_ns;
	FILE *out; /* one of them */
};

/* ---- addresses ---- */

static int by_address(const void *a, const void *b, void *ctx)
{
	const struct trace_function *x, *y;
	const struct trace *t = ctx;

	x = &t->functions[*(const uint32_t *)a];
	y = &t->functions[*(const uint32_t *)b];
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return x->n < y->n ? -1 : x->n > y->n;
}

static uint64_t place(const struct trace *t, const struct module *m, const uint32_t *order,
		      uint32_t i)
{
	return m->by_index ? 16ull * i : t->functions[order[m->first + i]].vaddr;
}

static void set_addresses(struct uftrace *u)
{
	const struct trace *t = u->t;
	uint64_t next = BASE;

	for (size_t i = 0; i < t->nmodules; i++) {
		struct module *m = &u->modules[i];
		const struct trace_function *last;

		if (!m->n)
			continue;
		last = &t->functions[u->order[m->first + m->n - 1]];
		m->by_index = last->vaddr >= SPAN_MAX || next + last->vaddr >= TOP;
		m->span = (place(t, m, u->order, m->n - 1) + 0x2000) & ~(uint64_t)0xfff;
		m->base = next;
		next += m->span;
		for (uint32_t j = 0; j < m->n; j++)
			u->addr[u->order[m->first + j]] = m->base + place(t, m, u->order, j);
	}
}

/* Blanks and brackets would end a path in the map, control characters a line. */
static char *name_of(const char *path)
{
	char *name = NULL;
	size_t size;
	FILE *f = open_memstream(&name, &size);

	if (!f)
		return xstrdup("?");
	text_put(f, path[0] ? path : "?");
	fclose(f);
	for (char *s = name; *s; s++)
		if (*s == ' ' || *s == '[' || *s == '"')
			*s = '_';
	/* so that the last part, a file's name, holds no slash */
	for (size_t i = size; i > 0 && name[i - 1] == '/'; i--)
		name[i - 1] = '_';
	if (size > 200) /* names of files and lines of a map have an end */
		memmove(name, name + size - 200, 201);
	return name;
}

static int by_base_name(const void *a, const void *b)
{
	const struct module *x = *(struct module *const *)a, *y = *(struct module *const *)b;
	int order = strcmp(text_base(x->name), text_base(y->name));

	return order ? order : (x > y) - (x < y);
}

/* uftrace finds MODULE.sym by the last part of the path. */
static void set_names(struct uftrace *u)
{
	size_t n = u->t->nmodules;
	struct module **v = xcalloc(n + 1, sizeof(struct module *));

	for (size_t i = 0; i < n; i++) {
		v[i] = &u->modules[i];
		v[i]->name = name_of(u->t->modules[i].path);
	}
	qsort(v, n, sizeof(*v), by_base_name);
	for (size_t i = n; i-- > 1;) {
		char *old = v[i]->name;

		if (strcmp(text_base(old), text_base(v[i - 1]->name)))
			continue;
		v[i]->name = xasprintf("%s~%zu", old, v[i] - u->modules);
		free(old);
	}
	xfree(v);
}

static void make_modules(struct uftrace *u)
{
	const struct trace *t = u->t;
	uint32_t n = (uint32_t)t->nfunctions;

	u->modules = xcalloc(t->nmodules + 1, sizeof(*u->modules));
	u->order = xcalloc(n + 1ul, sizeof(*u->order));
	u->addr = xcalloc(n + 1ul, sizeof(*u->addr));
	for (uint32_t i = 0; i < n; i++)
		u->order[i] = i;
	qsort_r(u->order, n, sizeof(*u->order), by_address, (void *)(uintptr_t)t);
	for (uint32_t i = n; i-- > 0;) {
		struct module *m = &u->modules[t->functions[u->order[i]].module];

		m->first = i;
		m->n++;
	}
	set_addresses(u);
	set_names(u);
}

static uint64_t address_of(struct uftrace *u, uint32_t n)
{
	const struct trace_function *f = trace_function_of(u->t, KRON_EVENT_ENTRY(n));

	if (f)
		return u->addr[f - u->t->functions];
	if (export_set_add(&u->unknown, n))
		*vec_push(&u->unknown_list) = n;
	return UNKNOWN + 16ull * n;
}

/* ---- records ---- */

/* uftrace has no thread 0; traces of boards may */
static uint32_t tid_of(const struct trace_lane *l)
{
	return l->tid ? l->tid : INT32_MAX;
}

static bool same_thread(const struct trace *t, uint32_t x, uint32_t y)
{
	return t->lanes[x].tid == t->lanes[y].tid;
}

static void put_record(struct uftrace *u, unsigned type, uint64_t address, uint64_t tsc)
{
	uint64_t ns = u->base_ns + trace_time(u->t, tsc);
	uint64_t depth = u->depth < DEPTH_MAX ? u->depth : DEPTH_MAX;
	uint64_t record[2];

	if (ns > u->last_ns)
		u->last_ns = ns;
	record[0] = u->last_ns;
	record[1] = type | 5u << 3 | depth << 6 | address << 16;
	fwrite(record, sizeof(record), 1, u->out);
}

static void on_begin(void *ctx, uint32_t function, uint64_t tsc)
{
	struct uftrace *u = ctx;

	put_record(u, ENTRY, address_of(u, function), tsc);
	if (++u->depth > u->max_depth)
		u->max_depth = u->depth;
}

static void on_end(void *ctx, uint32_t function, uint64_t tsc, const struct track_call *call)
{
	struct uftrace *u = ctx;

	(void)call;
	u->depth--;
	put_record(u, EXIT, address_of(u, function), tsc);
}

/* Payloads have no place: uftrace shows data of kinds of events that it knows. */
static void on_user_event(void *ctx, const struct trace_event *e, const struct trace_user_event *v)
{
	struct uftrace *u = ctx;

	put_record(u, EVENT, EVENTS + (uint64_t)(v - u->t->user_events), e->tsc);
}

static int by_tid(const void *a, const void *b, void *ctx)
{
	const struct trace_lane *lanes = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (lanes[x].tid != lanes[y].tid)
		return lanes[x].tid < lanes[y].tid ? -1 : 1;
	return x < y ? -1 : x > y;
}

static FILE *open_task(struct uftrace *u, uint32_t tid, uint32_t lane)
{
	char name[32];

	*vec_push(&u->tasks) = (struct task){tid, lane};
	snprintf(name, sizeof(name), "%" PRIu32 ".dat", tid);
	return export_dir_open(&u->dir, name);
}

static void close_stack(struct uftrace *u)
{
	if (u->of_stack)
		export_dir_close(&u->dir, u->of_stack);
	u->of_stack = NULL;
}

/*
 * uftrace knows no second stack of a thread, so it is a thread of its own, with a number that no
 * thread has.
 */
static void on_track(void *ctx, uint32_t lane, uint32_t track)
{
	struct uftrace *u = ctx;

	u->depth = 0;
	if (!track) {
		u->out = u->of_thread;
		return;
	}
	if (u->out == u->of_thread)
		u->of_thread_ns = u->last_ns;
	close_stack(u);
	u->out = u->of_stack = open_task(u, STACKS + u->nstacks++, lane);
	u->last_ns = 0;
}

static void put_lane(struct uftrace *u, struct export_nest *nest, uint32_t lane)
{
	export_nest_lane(nest, lane);
	if (!u->of_stack)
		return;
	close_stack(u);
	u->last_ns = u->of_thread_ns;
}

/* An exec begins a new lane of the same thread: one file, in order of time. */
static void put_threads(struct uftrace *u, const uint32_t *lanes)
{
	struct export_nest nest = {.t = u->t,
				   .ctx = u,
				   .track = on_track,
				   .begin = on_begin,
				   .end = on_end,
				   .user_event = on_user_event};

	export_nest_open(&nest);
	for (size_t i = 0; i < u->t->nlanes; i++) {
		if (!i || !same_thread(u->t, lanes[i], lanes[i - 1])) {
			if (u->of_thread)
				export_dir_close(&u->dir, u->of_thread);
			u->of_thread = open_task(u, tid_of(&u->t->lanes[lanes[i]]), lanes[i]);
			u->last_ns = 0;
		}
		put_lane(u, &nest, lanes[i]);
	}
	if (u->of_thread)
		export_dir_close(&u->dir, u->of_thread);
	export_nest_close(&nest);
}

/* ---- tables ---- */

/*
 * uftrace knows these by their names, and takes all that is open for ended where one is called.  Here
 * each call ends with a record of its own, so they get another name: "execve~".
 */
static bool is_special_to_uftrace(const char *name)
{
	static const char *const names[] = {"execl",      "execlp",       "execle",  "execv",
					    "execve",     "execvp",       "execvpe", "longjmp",
					    "siglongjmp", "__longjmp_chk"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static void put_symbols(struct uftrace *u, const struct module *m)
{
	char *file = xasprintf("%s.sym", text_base(m->name));
	FILE *f = export_dir_open(&u->dir, file);

	xfree(file);
	fprintf(f, "# symbols: %" PRIu32 "\n# path name: %s\n", m->n, m->name);
	for (uint32_t i = 0; i < m->n; i++) {
		const char *name = u->t->functions[u->order[m->first + i]].name;

		fprintf(f, "%016" PRIx64 " T ", place(u->t, m, u->order, i));
		text_put(f, name);
		fputs(is_special_to_uftrace(name) ? "~\n" : "\n", f);
	}
	fprintf(f, "%016" PRIx64 " ? __sym_end\n", m->span);
	export_dir_close(&u->dir, f);
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Functions that the trace's table does not name, as a module of their own. */
static void put_unknown(struct uftrace *u, FILE *map)
{
	FILE *f;
	uint64_t end = 0;

	if (!u->unknown_list.n)
		return;
	qsort(u->unknown_list.v, u->unknown_list.n, sizeof(uint32_t), by_number);
	f = export_dir_open(&u->dir, "kron:unknown.sym");
	fprintf(f, "# symbols: %zu\n# path name: kron:unknown\n", u->unknown_list.n);
	vec_for(&u->unknown_list, n) {
		fprintf(f, "%016" PRIx64 " T event %" PRIu32 "\n", (uint64_t)16 * *n,
			KRON_EVENT_ENTRY(*n));
		end = (uint64_t)16 * *n + 16;
	}
	fprintf(f, "%016" PRIx64 " ? __sym_end\n", end);
	export_dir_close(&u->dir, f);
	fprintf(map, "%" PRIx64 "-%" PRIx64 " r-xp 00000000 00:00 0   kron:unknown\n", UNKNOWN,
		UNKNOWN + ((end + 0xfff) & ~(uint64_t)0xfff));
}

static void put_map(struct uftrace *u)
{
	FILE *f = export_dir_open(&u->dir, "sid-" SID ".map");

	for (size_t i = 0; i < u->t->nmodules; i++) {
		const struct module *m = &u->modules[i];

		if (!m->n)
			continue;
		fprintf(f, "%" PRIx64 "-%" PRIx64 " r-xp 00000000 00:00 0   %s\n", m->base,
			m->base + m->span, m->name);
		put_symbols(u, m);
	}
	put_unknown(u, f);
	/* tells uftrace where the kernel's half begins */
	fputs("7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0   [stack]\n", f);
	export_dir_close(&u->dir, f);
}

/* Blanks end a name there, a colon stands before it. */
static void put_events(struct uftrace *u)
{
	FILE *f;

	if (!u->t->nuser_events)
		return;
	f = export_dir_open(&u->dir, "events.txt");
	for (size_t i = 0; i < u->t->nuser_events; i++) {
		char *name = name_of(u->t->user_events[i].name);

		for (char *s = name; *s; s++)
			if (*s == ':')
				*s = '_';
		fprintf(f, "EVENT: %zu kron:%s\n", EVENTS + i, name);
		free(name);
	}
	export_dir_close(&u->dir, f);
}

static int32_t pid_of(const struct trace *t, uint32_t uid)
{
	const struct trace_proc *p = trace_proc_of(t, uid);

	return p && p->known ? p->pid : (int32_t)uid;
}

static void put_time(FILE *f, const char *what, uint64_t ns)
{
	fprintf(f, "%s timestamp=%" PRIu64 ".%09" PRIu64, what, ns / 1000000000, ns % 1000000000);
}

static void put_tasks(struct uftrace *u)
{
	const struct trace *t = u->t;
	FILE *f = export_dir_open(&u->dir, "task.txt");
	struct export_set seen = {0};

	for (size_t i = 0; i < t->nprocs; i++) {
		const struct trace_proc *p = &t->procs[i];
		int32_t pid = pid_of(t, p->uid);
		char *exe = name_of(p->exe);
		/* before its first sample, whatever the table says */
		uint64_t at =
			export_set_add(&seen, (uint32_t)pid) ? 0 : trace_time(t, p->start_tsc);

		put_time(f, "SESS", u->base_ns + at);
		fprintf(f, " pid=%" PRId32 " sid=" SID " exename=\"%s\"\n", pid, exe);
		free(exe);
	}
	export_set_free(&seen);
	vec_for(&u->tasks, k) {
		put_time(f, "TASK", u->base_ns);
		fprintf(f, " tid=%" PRIu32 " pid=%" PRId32 "\n", k->tid,
			pid_of(t, t->lanes[k->lane].proc_uid));
	}
	export_dir_close(&u->dir, f);
}

static void put_word(FILE *f, const char *before, const char *s, const char *after)
{
	fputs(before, f);
	text_put(f, s ? s : "?");
	fputs(after, f);
}

/* When it was recorded and for how long; without that uftrace says the date of the file. */
static bool put_date(const struct trace *t, FILE *f)
{
	const char *real = trace_session(t, "start_real_ns");
	time_t s = real ? (time_t)(strtoull(real, NULL, 10) / 1000000000u) : 0;
	struct tm tm;
	char text[64];

	if (!s || !t->end_tsc || !localtime_r(&s, &tm) ||
	    !strftime(text, sizeof(text), "%a %b %e %T %Y", &tm))
		return false;
	if (f)
		fprintf(f, "record_date:%s\nelapsed_time:%.3f sec\n", text,
			(double)trace_time(t, t->end_tsc) / 1e9);
	return true;
}

static void put_info(struct uftrace *u)
{
	const struct trace *t = u->t;
	FILE *f = export_dir_open(&u->dir, "info");
	uint16_t max_stack = (uint16_t)(u->max_depth < 1024    ? 1024
					: u->max_depth < 65000 ? u->max_depth + 1
							       : 65535);
	struct {
		char magic[8];
		uint32_t version;
		uint16_t size;
		uint8_t endian, class;
		uint64_t features, infos;
		uint16_t max_stack, unused1;
		uint32_t unused2;
	} head = {.magic = "Ftrace!",
		  .version = 4,
		  .size = sizeof(head),
		  .endian = 1,
		  .class = 2,
		  .features = TASK_SESSION | SYM_REL_ADDR | MAX_STACK |
			      (t->nuser_events ? HAS_EVENTS : 0),
		  .infos = EXE_NAME | CMDLINE | OSINFO | TASKINFO |
			   (put_date(t, NULL) ? RECORD_DATE : 0),
		  .max_stack = max_stack};

	_Static_assert(sizeof(head) == 40, "uftrace's header");
	fwrite(&head, sizeof(head), 1, f);
	put_word(f, "exename:", t->nprocs ? t->procs[0].exe : NULL, "\n");
	put_word(f, "cmdline:", trace_session(t, "command"), "\n");
	put_word(f, "osinfo:lines=3\nosinfo:kernel=", trace_session(t, "kernel"), "\n");
	put_word(f, "osinfo:hostname=", trace_session(t, "hostname"), "\nosinfo:distro=\"?\"\n");
	fprintf(f, "taskinfo:lines=2\ntaskinfo:nr_tid=%zu\ntaskinfo:tids=", u->tasks.n);
	vec_for(&u->tasks, k)
		fprintf(f, "%s%" PRIu32, k == u->tasks.v ? "" : ",", k->tid);
	fputc('\n', f);
	put_date(t, f);
	export_dir_close(&u->dir, f);
}

int export_uftrace(const struct trace *t, const char *path, struct err *err)
{
	struct uftrace u = {.t = t};
	const char *start = trace_session(t, "start_mono_ns");
	uint32_t *lanes;
	int ret;

	if (trace_nodes(t))
		return err_set(err, EINVAL,
			       "uftrace knows one host's threads: export each node by itself");
	lanes = xcalloc(t->nlanes + 1, sizeof(*lanes));
	ret = export_dir_begin(&u.dir, path, err);

	if (!ret) {
		u.base_ns = start ? strtoull(start, NULL, 10) & INT64_MAX : 0;
		for (uint32_t i = 0; i < t->nlanes; i++)
			lanes[i] = i;
		qsort_r(lanes, t->nlanes, sizeof(*lanes), by_tid, t->lanes);
		make_modules(&u);
		put_threads(&u, lanes);
		put_map(&u);
		put_events(&u);
		put_tasks(&u);
		put_info(&u);
		ret = export_dir_end(&u.dir, err);
	}
	for (size_t i = 0; u.modules && i < t->nmodules; i++)
		free(u.modules[i].name);
	xfree(u.modules);
	xfree(u.order);
	xfree(u.addr);
	vec_free(&u.unknown_list);
	vec_free(&u.tasks);
	export_set_free(&u.unknown);
	xfree(lanes);
	return ret;
}
