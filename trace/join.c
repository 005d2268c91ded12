/* SPDX-License-Identifier: MIT */
/*
 * join.c - several traces as one.
 *
 *   trace_open() ─► trace ──┐  numbers of functions, events, modules, processes: renumbered, each once
 *   trace_open() ─► trace ──┼─► times: on one line (join_clock.c)          ─► one struct trace
 *   trace_open() ─► trace ──┘  session: what is true of all (join_session.c)
 *
 * The traces stay open: the whole has their files' chunks as its own, lane after lane, and its cursors
 * translate each sample as it comes (join_event()).  So memory grows with the tables, not with the samples.
 *
 * A function is the same in two traces if its name, address and module are, a module if its path and build
 * ID are.  Its number is the first trace's, if nobody else has that, else a new one.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "trace/jumps.h"
#include "trace/reader_impl.h"

#define NODES_MAX (1u << (32 - TRACE_TASK_BITS))

typedef VEC(char *) dir_list;

/* ---- which directories ---- */

static bool has_session(const char *dir)
{
	char *path = xasprintf("%s/session", dir);
	struct stat st;
	bool has = !stat(path, &st);

	xfree(path);
	return has;
}

static int by_version(const void *a, const void *b)
{
	return strverscmp(*(char *const *)a, *(char *const *)b);
}

/* The traces in a folder that is none itself; else what was named. */
static void expand(dir_list *out, const char *dir)
{
	size_t first = out->n;
	DIR *d = has_session(dir) ? NULL : opendir(dir);
	struct dirent *de;

	while (d && (de = readdir(d))) {
		size_t length = strlen(de->d_name);
		char *path;

		/* NAME.old is the one before NAME */
		if (de->d_name[0] == '.' ||
		    (length > 4 && !strcmp(de->d_name + length - 4, ".old")))
			continue;
		path = xasprintf("%s/%s", dir, de->d_name);
		if (has_session(path))
			*vec_push(out) = path;
		else
			xfree(path);
	}
	if (d)
		closedir(d);
	if (out->n > first + 1)
		qsort(out->v + first, out->n - first, sizeof(*out->v), by_version);
	if (out->n == first)
		*vec_push(out) = xstrdup(dir);
}

/* ---- what is the same in several ---- */

struct known { /* an entry of the whole's tables: where its words are */
	uint64_t hash;
	uint32_t at; /* index */
};
typedef VEC(struct known) known_vec; /* a hash table, of a power of two; at UINT32_MAX: free */

static uint64_t hash_text(uint64_t h, const char *s)
{
	return str_hash(str_hash(h, s, strlen(s)), "\xff", 1);
}

static uint64_t hash_number(uint64_t h, uint64_t n)
{
	h = (h ^ n) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

static void known_resize(known_vec *k, size_t size)
{
	known_vec old = *k;

	*k = (known_vec){0};
	vec_reserve(k, size);
	k->n = size;
	for (size_t i = 0; i < size; i++)
		k->v[i].at = UINT32_MAX;
	vec_for(&old, e) {
		size_t i = e->hash & (size - 1);

		if (e->at == UINT32_MAX)
			continue;
		while (k->v[i].at != UINT32_MAX)
			i = (i + 1) & (size - 1);
		k->v[i] = *e;
	}
	vec_free(&old);
}

/* The entry that is the same, or the free one where it goes. */
static struct known *known_find(known_vec *k, size_t used, uint64_t hash,
				bool (*same)(const struct trace *t, uint32_t at, const void *x),
				const struct trace *t, const void *x)
{
	size_t i;

	if (k->n < 2 * (used + 1))
		known_resize(k, k->n ? 2 * k->n : 64);
	for (i = hash & (k->n - 1); k->v[i].at != UINT32_MAX; i = (i + 1) & (k->n - 1))
		if (k->v[i].hash == hash && same(t, k->v[i].at, x))
			break;
	k->v[i].hash = hash;
	return &k->v[i];
}

struct join {
	struct trace *t;
	known_vec modules, functions, events;
	VEC(struct trace_module) module_rows;
	VEC(struct trace_function) function_rows;
	VEC(struct trace_user_event) event_rows;
	VEC(struct trace_refusal) refusals;
	VEC(struct trace_import) imports;
	VEC(struct trace_change) changes;
	VEC(struct trace_sleep) sleeps;
	VEC(struct trace_proc) procs;
	VEC(struct trace_lane) lanes;
	VEC(struct trace_untraced) untraced;
	VEC(struct trace_jump) jumps;
	VEC(uint32_t) targets;
	VEC(uint32_t) module_at; /* of the trace that is being added: index in the whole */
	uint8_t *taken;          /* by number: 1 it is somebody's */
	uint32_t limit;          /* of taken; numbers from here on are new ones */
	uint32_t next;           /* new number */
};

/* The tables of the whole while they grow; its pointers may move. */
static void show_rows(struct join *j)
{
	j->t->modules = j->module_rows.v;
	j->t->functions = j->function_rows.v;
	j->t->user_events = j->event_rows.v;
}

/* ---- modules ---- */

static bool same_module(const struct trace *t, uint32_t at, const void *x)
{
	const struct trace_module *a = &t->modules[at], *b = x;

	return !strcmp(a->path, b->path) && !strcmp(a->build_id, b->build_id);
}

static void add_modules(struct join *j, const struct trace *t)
{
	j->module_at.n = 0;
	for (size_t i = 0; i < t->nmodules; i++) {
		const struct trace_module *m = &t->modules[i];
		uint64_t hash = hash_text(hash_text(14695981039346656037u, m->path), m->build_id);
		struct known *k;

		show_rows(j);
		k = known_find(&j->modules, j->module_rows.n, hash, same_module, j->t, m);
		if (k->at == UINT32_MAX) {
			struct trace_module *new = vec_push(&j->module_rows);

			k->at = (uint32_t)j->module_rows.n - 1;
			new->id = k->at;
			new->event_base = m->event_base;
			new->nfunctions = m->nfunctions;
			new->path = xstrdup(m->path);
			new->build_id = xstrdup(m->build_id);
		}
		j->module_rows.v[k->at].patched_entries += m->patched_entries;
		j->module_rows.v[k->at].patched_exits += m->patched_exits;
		j->module_rows.v[k->at].refused_entries += m->refused_entries;
		j->module_rows.v[k->at].refused_exits += m->refused_exits;
		*vec_push(&j->module_at) = k->at;
	}
}

/* ---- functions and events ---- */

/* Its own number, if that is free; else a new one. */
static uint32_t new_number(struct join *j, uint32_t n)
{
	if (n >= j->limit || j->taken[n])
		return j->next++;
	j->taken[n] = 1;
	return n;
}

static bool same_function(const struct trace *t, uint32_t at, const void *x)
{
	const struct trace_function *a = &t->functions[at], *b = x;

	return a->module == b->module && a->vaddr == b->vaddr && !strcmp(a->name, b->name);
}

static void add_functions(struct join *j, struct joined *node)
{
	const struct trace *t = node->t;

	node->functions = xcalloc(t->nfunctions + 1, sizeof(*node->functions));
	for (size_t i = 0; i < t->nfunctions; i++) {
		struct trace_function f = t->functions[i];
		struct known *k;

		f.module = j->module_at.v[f.module];
		show_rows(j);
		k = known_find(&j->functions, j->function_rows.n,
			       hash_number(hash_number(hash_text(1, f.name), f.vaddr), f.module),
			       same_function, j->t, &f);
		if (k->at == UINT32_MAX) {
			k->at = (uint32_t)j->function_rows.n;
			f.n = new_number(j, f.n);
			f.name = xstrdup(f.name);
			f.aliases = f.aliases ? xstrdup(f.aliases) : NULL;
			*vec_push(&j->function_rows) = f;
		}
		j->function_rows.v[k->at].ways |= f.ways;
		node->functions[i] = j->function_rows.v[k->at].n;
	}
}

static bool same_places(const struct trace_user_event *a, const struct trace_user_event *b)
{
	bool same = a->nplaces == b->nplaces;

	for (size_t i = 0; same && i < a->nplaces; i++)
		same = a->places[i].module == b->places[i].module &&
		       a->places[i].vaddr == b->places[i].vaddr;
	return same;
}

/* With places of its own, in the modules of the whole. */
static struct trace_user_event whole_event(const struct join *j, const struct trace_user_event *u)
{
	struct trace_user_event e = *u;

	e.places = NULL;
	e.nplaces = 0;
	for (size_t i = 0; i < u->nplaces; i++) {
		struct trace_event_place p = u->places[i];

		p.module = j->module_at.v[p.module];
		event_add_place(&e, p);
	}
	return e;
}

static bool same_event(const struct trace *t, uint32_t at, const void *x)
{
	const struct trace_user_event *a = &t->user_events[at], *b = x;

	return same_places(a, b) && !strcmp(a->name, b->name) && !strcmp(a->payload, b->payload) &&
	       a->type.form == b->type.form && a->type.bits == b->type.bits &&
	       a->type.count == b->type.count && a->resource == b->resource;
}

static void add_events(struct join *j, struct joined *node)
{
	const struct trace *t = node->t;

	node->events = xcalloc(t->nuser_events + 1, sizeof(*node->events));
	for (size_t i = 0; i < t->nuser_events; i++) {
		struct trace_user_event e = whole_event(j, &t->user_events[i]);
		struct known *k;

		show_rows(j);
		k = known_find(&j->events, j->event_rows.n,
			       hash_number(hash_number(hash_text(2, e.name), e.places->vaddr),
					   e.places->module),
			       same_event, j->t, &e);
		if (k->at == UINT32_MAX) {
			k->at = (uint32_t)j->event_rows.n;
			e.n = new_number(j, e.n);
			e.name = xstrdup(e.name);
			e.payload = xstrdup(e.payload);
			*vec_push(&j->event_rows) = e;
		} else {
			xfree(e.places);
		}
		node->events[i] = j->event_rows.v[k->at].n;
	}
}

static uint32_t new_function(const struct joined *node, uint32_t n)
{
	const struct trace_function *f = trace_function_of(node->t, KRON_EVENT_ENTRY(n));

	return f ? node->functions[f - node->t->functions] : n;
}

static void add_jumps(struct join *j, struct joined *node)
{
	const struct trace *t = node->t;
	uint32_t first = (uint32_t)j->targets.n;
	size_t ntargets = 0;

	node->first_jump = (uint32_t)j->jumps.n;
	for (size_t i = 0; i < t->njumps; i++) {
		struct trace_jump *x = vec_push(&j->jumps);

		*x = t->jumps[i];
		if (x->function != UINT32_MAX)
			x->function = new_function(node, x->function);
		x->name = x->name ? xstrdup(x->name) : NULL;
		x->shown = x->shown ? xstrdup(x->shown) : NULL;
		if (x->to == JUMP_TO_FUNCTION || x->to == JUMP_TO_INSIDE) {
			x->target = new_function(node, x->target);
		} else if (x->to == JUMP_TO_NAME) {
			if (x->ntargets && x->target + (size_t)x->ntargets > ntargets)
				ntargets = x->target + (size_t)x->ntargets;
			x->target += first;
		}
	}
	for (size_t i = 0; i < ntargets; i++)
		*vec_push(&j->targets) = new_function(node, t->jump_targets[i]);
}

/* ---- the other tables ---- */

static void add_refusals(struct join *j, const struct trace *t)
{
	for (size_t i = 0; i < t->nrefusals; i++) {
		struct trace_refusal r = t->refusals[i];

		r.module = j->module_at.v[r.module];
		r.key = xstrdup(r.key);
		r.text = xstrdup(r.text);
		*vec_push(&j->refusals) = r;
	}
	for (size_t i = 0; i < t->nimports; i++) {
		struct trace_import im = t->imports[i];

		im.module = j->module_at.v[im.module];
		im.name = xstrdup(im.name);
		im.why = xstrdup(im.why);
		im.caller = xstrdup(im.caller);
		*vec_push(&j->imports) = im;
	}
	for (size_t i = 0; i < t->nuntraced; i++)
		*vec_push(&j->untraced) = (struct trace_untraced){
			.pid = t->untraced[i].pid, .reason = xstrdup(t->untraced[i].reason)};
}

/* Processes get new numbers, node by node; their lanes follow in the same order. */
static void add_tasks(struct join *j, struct joined *node, uint32_t at)
{
	const struct trace *t = node->t;
	uint32_t first = (uint32_t)j->procs.n + 1;

	node->first_lane = (uint32_t)j->lanes.n;
	for (size_t i = 0; i < t->nprocs; i++) {
		struct trace_proc p = t->procs[i];
		const struct trace_proc *parent = trace_proc_of(t, p.parent_uid);

		p.uid = first + (uint32_t)i;
		p.parent_uid = p.parent_uid && parent ? first + (uint32_t)(parent - t->procs) : 0;
		p.node = at;
		p.note = xstrdup(p.note);
		p.exe = xstrdup(p.exe);
		p.cmdline = xstrdup(p.cmdline);
		*vec_push(&j->procs) = p;
	}
	for (size_t i = 0; i < t->nlanes; i++) {
		struct trace_lane l = t->lanes[i];

		l.proc_uid = first + (uint32_t)(trace_proc_of(t, l.proc_uid) - t->procs);
		l.node = at;
		*vec_push(&j->lanes) = l;
	}
}

static void add_chunks(struct trace *whole, const struct joined *node, uint32_t at)
{
	struct trace_priv *p = priv_of(whole);

	vec_for(&priv_of(node->t)->chunks, c) {
		struct chunk_ref *new = vec_push(&p->chunks);

		*new = *c;
		new->node = (uint16_t)at;
	}
}

/* Lane after lane, as they stand in the traces. */
static void index_lanes(struct trace *t)
{
	struct trace_priv *p = priv_of(t);
	uint32_t chunk = 0;

	p->lane_first = xcalloc(t->nlanes + 1, sizeof(*p->lane_first));
	for (size_t i = 0; i < p->njoined; i++) {
		const struct joined *n = &p->joined[i];
		const struct trace_priv *own = priv_of(n->t);

		for (size_t lane = 0; lane < n->t->nlanes; lane++) {
			p->lane_first[n->first_lane + lane] = chunk;
			chunk += own->lane_first[lane + 1] - own->lane_first[lane];
		}
	}
	p->lane_first[t->nlanes] = chunk;
}

/* ---- numbers ---- */

/* One more than any function's or event's. */
static uint32_t highest(const struct trace *t)
{
	uint32_t n = t->nfunctions ? t->functions[t->nfunctions - 1].n + 1 : 0;
	uint32_t e = t->nuser_events ? t->user_events[t->nuser_events - 1].n + 1 : 0;

	return n > e ? n : e;
}

#define NUMBERS_MAX (KRON_EVENT_JUMPS / 2)

static int count_numbers(struct join *j, struct err *err)
{
	const struct trace_priv *p = priv_of(j->t);
	size_t rows = 0;

	for (size_t i = 0; i < p->njoined; i++) {
		const struct trace *t = p->joined[i].t;
		uint32_t limit = highest(t);

		rows += t->nfunctions + t->nuser_events;
		if (limit > j->limit)
			j->limit = limit;
	}
	if (rows + j->limit >= NUMBERS_MAX / 2 || j->limit >> 24 > rows >> 21)
		return err_set(
			err, EINVAL,
			"the traces' functions have numbers that do not fit together: one of "
			"the tables is damaged");
	j->next = j->limit;
	j->taken = xcalloc(j->limit + 1ul, 1);
	return 0;
}

static int by_function_n(const void *a, const void *b)
{
	const struct trace_function *x = a, *y = b;

	return x->n < y->n ? -1 : x->n > y->n;
}

static int by_event_n(const void *a, const void *b)
{
	const struct trace_user_event *x = a, *y = b;

	return x->n < y->n ? -1 : x->n > y->n;
}

static int by_change(const void *a, const void *b)
{
	const struct trace_change *x = a, *y = b;

	return x->tsc < y->tsc ? -1 : x->tsc > y->tsc;
}

/* A number that the trace's tables do not have stays; but not where it would mean something in the whole. */
static uint32_t unknown_number(const struct joined *node, uint32_t n)
{
	return n < node->nfree ? node->nfree + n : n;
}

void join_event(const struct joined *node, struct trace_event *out)
{
	uint32_t event = out->s.event;
	const struct trace_user_event *u;
	const struct trace_function *f;

	out->s.head = (out->s.head & ~KRON_HEAD_TIME_MASK) |
		      ((uint32_t)(out->tsc >> 32) & KRON_HEAD_TIME_MASK);
	out->s.time_lo = (uint32_t)out->tsc;
	if (event >= KRON_EVENT_SPECIAL)
		return;
	if (event >= KRON_EVENT_JUMPS) {
		if (event & 1 && (event - KRON_EVENT_JUMPS) / 2 < node->t->njumps)
			out->s.event += 2 * node->first_jump;
		return;
	}
	f = trace_function_of(node->t, event);
	u = f ? NULL : trace_user_event_of(node->t, event);
	out->s.event = 2 * (f   ? node->functions[f - node->t->functions]
			    : u ? node->events[u - node->t->user_events]
				: unknown_number(node, event / 2)) |
		       (event & 1);
}

/* ---- the whole ---- */

static void put_changes(struct join *j, const struct joined *node)
{
	for (size_t i = 0; i < node->t->nchanges; i++) {
		struct trace_change c = node->t->changes[i];

		c.tsc = timeline_to(&node->clock, c.tsc);
		c.name = xstrdup(c.name);
		c.spec = xstrdup(c.spec);
		*vec_push(&j->changes) = c;
	}
}

/* The functions that a row of a node means have other numbers in the whole.  Groups are the same. */
static struct trace_sleep renumbered(const struct joined *node, const struct trace_sleep *s)
{
	VEC(struct trace_range) v = {0};
	struct trace_sleep out = *s;

	for (size_t i = 0; s->of_groups && i < s->n; i++)
		*vec_push(&v) = s->numbers[i];
	for (size_t i = 0; !s->of_groups && i < node->t->nfunctions; i++) {
		const uint32_t n = node->functions[i];

		if (trace_sleep_has(node->t, s, node->t->functions[i].n))
			*vec_push(&v) = (struct trace_range){n, n};
	}
	out.numbers = v.v;
	out.n = v.n;
	sleeps_sort(&out);
	return out;
}

static void put_sleeps(struct join *j, const struct joined *node, uint32_t number)
{
	for (size_t i = 0; i < node->t->nsleeps; i++) {
		struct trace_sleep s = renumbered(node, &node->t->sleeps[i]);

		s.since = timeline_to(&node->clock, s.since);
		s.until = timeline_to(&node->clock, s.until);
		s.node = number;
		*vec_push(&j->sleeps) = s;
	}
}

static void move_times(struct trace *t)
{
	const struct trace_priv *p = priv_of(t);

	for (size_t i = 0; i < t->nprocs; i++) {
		const struct timeline *l = &p->joined[t->procs[i].node].clock;

		if (t->procs[i].start_tsc)
			t->procs[i].start_tsc = timeline_to(l, t->procs[i].start_tsc);
		if (t->procs[i].end_tsc)
			t->procs[i].end_tsc = timeline_to(l, t->procs[i].end_tsc);
	}
	for (size_t i = 0; i < t->nlanes; i++)
		if (t->lanes[i].end_tsc)
			t->lanes[i].end_tsc = timeline_to(&p->joined[t->lanes[i].node].clock,
							  t->lanes[i].end_tsc);
}

static void take_rows(struct join *j)
{
	struct trace *t = j->t;

	show_rows(j);
	t->nmodules = j->module_rows.n;
	t->nfunctions = j->function_rows.n;
	t->nuser_events = j->event_rows.n;
	if (t->nfunctions)
		qsort(t->functions, t->nfunctions, sizeof(*t->functions), by_function_n);
	if (t->nuser_events)
		qsort(t->user_events, t->nuser_events, sizeof(*t->user_events), by_event_n);
	tables_index(t);
	tables_take_refusals(t, j->refusals.v, j->refusals.n);
	tables_take_imports(t, j->imports.v, j->imports.n);
	t->procs = j->procs.v;
	t->nprocs = j->procs.n;
	t->lanes = j->lanes.v;
	t->nlanes = j->lanes.n;
	t->untraced = j->untraced.v;
	t->nuntraced = j->untraced.n;
	t->jumps = j->jumps.v;
	t->njumps = j->jumps.n;
	t->jump_targets = j->targets.v;
	jumps_joined(t);
	events_settle(t);
}

static void take_changes(struct join *j)
{
	if (j->changes.n)
		qsort(j->changes.v, j->changes.n, sizeof(*j->changes.v), by_change);
	j->t->changes = j->changes.v;
	j->t->nchanges = j->changes.n;
	sleeps_order(j->sleeps.v, j->sleeps.n);
	j->t->sleeps = j->sleeps.v;
	j->t->nsleeps = j->sleeps.n;
}

static int join_all(struct trace *t, const struct timeline *moves, struct err *err)
{
	struct trace_priv *p = priv_of(t);
	struct join j = {.t = t};
	int ret = count_numbers(&j, err);

	if (ret)
		return ret;
	for (size_t i = 0; i < p->njoined; i++) {
		struct joined *n = &p->joined[i];

		add_modules(&j, n->t);
		add_functions(&j, n);
		add_events(&j, n);
		add_jumps(&j, n);
		add_refusals(&j, n->t);
		add_tasks(&j, n, (uint32_t)i);
		add_chunks(t, n, (uint32_t)i);
		t->lost += n->t->lost;
		t->cut_off += n->t->cut_off;
		t->damaged += n->t->damaged;
		t->pages_damaged |= n->t->pages_damaged;
		t->lacks_functions |= n->t->lacks_functions;
		t->cut_short |= n->t->cut_short;
	}
	for (size_t i = 0; i < p->njoined; i++)
		p->joined[i].nfree = j.next;
	take_rows(&j);
	index_lanes(t);
	join_clocks(t, moves);
	move_times(t);
	for (size_t i = 0; i < p->njoined; i++) {
		put_changes(&j, &p->joined[i]);
		put_sleeps(&j, &p->joined[i], (uint32_t)i);
	}
	take_changes(&j);
	join_session(t);
	xfree(j.taken);
	vec_free(&j.modules);
	vec_free(&j.functions);
	vec_free(&j.events);
	vec_free(&j.module_at);
	return 0;
}

static int refuse_double(const struct trace *t, struct err *err)
{
	const struct trace_priv *p = priv_of(t);
	const struct trace *last = p->joined[p->njoined - 1].t;
	const char *id = trace_session(last, "recording");

	for (size_t i = 0; id && i + 1 < p->njoined; i++)
		if (trace_session_is(p->joined[i].t, "recording", id) &&
		    trace_session_number(p->joined[i].t, "start_tsc", 0) ==
			    trace_session_number(last, "start_tsc", 1))
			return err_set(err, EINVAL,
				       "%s and %s are one recording: name each trace once",
				       p->joined[i].t->dir, last->dir);
	return 0;
}

static int open_all(struct trace *t, const dir_list *dirs, const struct timeline *moves,
		    struct err *err)
{
	struct trace_priv *p = priv_of(t);

	p->joined = xcalloc(dirs->n, sizeof(*p->joined));
	for (size_t i = 0; i < dirs->n; i++) {
		struct trace *part;
		int ret = trace_open(&part, dirs->v[i], err);

		if (ret)
			return ret;
		p->joined[p->njoined].t = part;
		p->joined[p->njoined++].node.t = part;
		ret = refuse_double(t, err);
		if (ret)
			return ret;
	}
	return join_all(t, moves, err);
}

static char *name_of(const char *const *dirs, size_t n)
{
	size_t length = 0;
	char *name;

	for (size_t i = 0; i < n; i++)
		length += strlen(dirs[i]);
	if (n == 1 || length > 400)
		return n == 1 ? xstrdup(dirs[0])
			      : xasprintf("%s and %zu more traces", dirs[0], n - 1);
	name = xstrdup(dirs[0]);
	for (size_t i = 1; i < n; i++) {
		char *longer = xasprintf("%s%s%s", name, i + 1 < n ? ", " : " and ", dirs[i]);

		xfree(name);
		name = longer;
	}
	return name;
}

int trace_open_all(struct trace **out, const char *const *dirs, size_t n, struct err *err)
{
	return trace_open_moved(out, dirs, n, NULL, 0, err);
}

int trace_open_moved(struct trace **out, const char *const *dirs, size_t n,
		     const struct timeline *moves, size_t nmoves, struct err *err)
{
	dir_list all = {0};
	struct trace *t;
	int ret;

	*out = NULL;
	for (size_t i = 0; i < n; i++)
		expand(&all, dirs[i]);
	if (all.n > NODES_MAX) {
		ret = err_set(err, EINVAL,
			      "these are %zu traces; %u are the most that are read as one", all.n,
			      NODES_MAX);
	} else if (moves && all.n != nmoves) {
		ret = err_set(err, EBUSY, "there are other traces in %s now", dirs[0]);
	} else if (all.n == 1) {
		ret = trace_open(out, all.v[0], err);
	} else {
		t = xcalloc(1, sizeof(*t));
		t->priv = xcalloc(1, sizeof(struct trace_priv));
		t->dir = name_of(dirs, n);
		ret = open_all(t, &all, moves, err);
		if (ret)
			trace_close(t);
		else
			*out = t;
	}
	vec_for(&all, dir)
		xfree(*dir);
	vec_free(&all);
	return ret;
}

void join_free(struct trace *t)
{
	struct trace_priv *p = priv_of(t);

	for (size_t i = 0; i < p->njoined; i++) {
		trace_close(p->joined[i].t);
		timeline_free(&p->joined[i].clock);
		xfree(p->joined[i].functions);
		xfree(p->joined[i].events);
		xfree(p->joined[i].name);
	}
	xfree(p->joined);
	p->joined = NULL;
	p->njoined = 0;
}

/* ---- questions ---- */

size_t trace_nodes(const struct trace *t)
{
	return priv_of(t)->njoined;
}

const struct trace_node *trace_node_at(const struct trace *t, uint32_t node)
{
	return &priv_of(t)->joined[node].node;
}

uint64_t trace_node_time(const struct trace *t, uint32_t node, uint64_t tsc)
{
	return timeline_to(&priv_of(t)->joined[node].clock, tsc);
}

const char *trace_pid_text(const struct trace *t, const struct trace_proc *p, char *buf,
			   size_t size)
{
	if (trace_nodes(t))
		snprintf(buf, size, "%.40s.%d", trace_node_at(t, p->node)->name, p->pid);
	else
		snprintf(buf, size, "%d", p->pid);
	return buf;
}
