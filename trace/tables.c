/* SPDX-License-Identifier: MIT */
/*
 * tables.c - reads the text files of a trace directory (formats: trace/format.h).
 *
 * A line that makes no sense is counted in trace->damaged and left out.  Whatever the lines
 * say, what is kept obeys: functions are sorted by n, without doubles; every function and
 * refusal names an existing module; names are never NULL.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/reader_impl.h"
#include "base/search.h"
#include "trace/names.h"
#include "trace/rows.h"
#include "trace/value.h"

/* ---- session ---- */

int tables_read_session(struct trace *t, int dirfd, struct err *err)
{
	struct trace_priv *p = priv_of(t);
	struct table_lines l;
	char *line;
	int ret = table_open(&l, dirfd, "session");

	if (ret == -ENOENT)
		return err_set(err, EINVAL, "%s is not a trace directory: it has no session file",
			       t->dir);
	if (ret == -EINVAL)
		return err_set(err, EINVAL,
			       "%s is not a trace directory: its session is not a file", t->dir);
	if (ret)
		return err_set(err, -ret, "cannot read %s/session: %s", t->dir, strerror(-ret));
	while ((line = table_next(&l))) {
		char *eq = strchr(line, '=');
		struct session_entry *e = NULL;

		if (!eq || eq == line) {
			t->damaged++;
			continue;
		}
		*eq++ = 0;
		table_unescape(line);
		table_unescape(eq);
		vec_for(&p->session, s)
			if (!strcmp(s->key, line))
				e = s;
		if (e) {
			xfree(e->value);
		} else if (p->session.n < 4096) {
			e = vec_push(&p->session);
			e->key = xstrdup(line);
		} else { /* more keys than anyone writes: garbage */
			t->damaged++;
			continue;
		}
		e->value = xstrdup(eq);
	}
	table_close(&l);
	return 0;
}

/* ---- rows: each table is read whole, then put in order ---- */

struct order {
	uint64_t key;
	size_t line; /* index into the rows as read */
};

static int by_key_and_line(const void *a, const void *b)
{
	const struct order *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->line > y->line) - (x->line < y->line);
}

typedef VEC(struct order) order_vec;

static void order_add(order_vec *o, uint64_t key, size_t line)
{
	struct order *e = vec_push(o);

	e->key = key;
	e->line = line;
}

/* Sorted by key; of equal keys the last line is the one that counts. */
static void order_sort(order_vec *o)
{
	if (o->n)
		qsort(o->v, o->n, sizeof(*o->v), by_key_and_line);
}

static bool order_is_last(const order_vec *o, size_t i)
{
	return i + 1 == o->n || o->v[i].key != o->v[i + 1].key;
}

/* ---- modules ---- */

static void module_free(struct trace_module *m)
{
	xfree(m->build_id);
	xfree(m->path);
}

static void read_modules(struct trace *t, int dirfd)
{
	VEC(struct trace_module) rows = {0};
	order_vec order = {0};
	struct trace_module_line x;
	struct table_lines l;

	if (table_open(&l, dirfd, "modules"))
		return;
	while (row_next(&l, row_module, &x, sizeof(x), &t->damaged)) {
		order_add(&order, x.id, rows.n);
		*vec_push(&rows) = (struct trace_module){.id = x.id,
							 .event_base = x.event_base,
							 .nfunctions = x.nfunctions,
							 .patched_entries = x.patched_entries,
							 .patched_exits = x.patched_exits,
							 .refused_entries = x.refused_entries,
							 .refused_exits = x.refused_exits,
							 .build_id = xstrdup(x.build_id),
							 .path = xstrdup(x.path)};
	}
	table_close(&l);
	order_sort(&order);
	t->modules = xcalloc(order.n + 1, sizeof(*t->modules)); /* + 1: see module_unknown() */
	for (size_t i = 0; i < order.n; i++) {
		if (order_is_last(&order, i))
			t->modules[t->nmodules++] = rows.v[order.v[i].line];
		else
			module_free(&rows.v[order.v[i].line]);
	}
	vec_free(&rows);
	vec_free(&order);
}

/* The module that stands for all that the table does not have; made when first needed. */
static uint32_t module_unknown(struct trace *t, bool *made)
{
	struct trace_module *m;

	if (!t->modules)
		t->modules = xcalloc(1, sizeof(*t->modules));
	if (!*made) {
		m = &t->modules[t->nmodules++];
		memset(m, 0, sizeof(*m));
		m->id = UINT32_MAX;
		m->build_id = xstrdup("");
		m->path = xstrdup("?");
		*made = true;
	}
	return (uint32_t)(t->nmodules - 1);
}

/* Index of module id; nknown: those of the table, sorted. */
static uint32_t module_index(struct trace *t, uint32_t id, size_t nknown, bool *made)
{
	size_t lo = partition_point(i, nknown, t->modules[i].id < id);

	if (lo < nknown && t->modules[lo].id == id)
		return (uint32_t)lo;
	t->damaged++;
	return module_unknown(t, made);
}

/* ---- functions ---- */

void tables_index(struct trace *t)
{
	struct trace_priv *p = priv_of(t);

	p->function_limit = trace_function_limit(t);
	if (!p->function_limit)
		return;
	p->function_at = xcalloc(p->function_limit, sizeof(uint32_t));
	for (size_t i = 0; i < t->nfunctions; i++)
		p->function_at[t->functions[i].n] = (uint32_t)i + 1;
}

static void function_free(struct trace_function *f)
{
	xfree(f->name);
	xfree(f->aliases);
}

/* By what the modules' rows say. */
static bool has_functions(const struct trace *t)
{
	for (size_t i = 0; i < t->nmodules; i++)
		if (t->modules[i].patched_entries || t->modules[i].patched_exits)
			return true;
	return false;
}

static void read_functions(struct trace *t, int dirfd, size_t nknown, bool *made)
{
	VEC(struct trace_function) rows = {0};
	order_vec order = {0};
	struct trace_function_line x;
	struct table_lines l;

	if (table_open(&l, dirfd, "functions")) {
		t->lacks_functions = has_functions(t);
		t->damaged += t->lacks_functions;
		return;
	}
	while (row_next(&l, row_function, &x, sizeof(x), &t->damaged)) {
		uint32_t module = module_index(t, x.module_id, nknown, made);

		order_add(&order, x.n, rows.n);
		*vec_push(&rows) = (struct trace_function){
			.n = x.n,
			.module = module,
			.vaddr = x.vaddr,
			.size = x.size,
			.level = x.level,
			.ways = x.ways,
			.name = trace_name_function(t->modules[module].path, x.vaddr, x.name),
			.aliases = x.aliases[0] ? xstrdup(x.aliases) : NULL};
	}
	table_close(&l);
	order_sort(&order);
	t->functions = xcalloc(order.n, sizeof(*t->functions));
	for (size_t i = 0; i < order.n; i++) {
		if (order_is_last(&order, i))
			t->functions[t->nfunctions++] = rows.v[order.v[i].line];
		else
			function_free(&rows.v[order.v[i].line]);
	}
	vec_free(&rows);
	vec_free(&order);
	tables_index(t);
}

/* ---- the user's events ---- */

static void user_event_free(struct trace_user_event *u)
{
	xfree(u->name);
	xfree(u->payload);
	xfree(u->places);
}

static struct trace_event_place place_of(const struct trace_event_line *x, uint32_t module)
{
	struct trace_event_place p = {.module = module, .vaddr = x->vaddr};

	if (x->refused &&
	    sscanf(x->refused, "%" SCNu64 "/%" SCNu64 " %31s", &p.refused, &p.wanted, p.why) != 3)
		p.refused = p.wanted = 0;
	return p;
}

/* Those of a line before this one of the same number come before its own. */
static void join_places(struct trace_user_event *before, struct trace_user_event *u)
{
	for (size_t i = 0; i < u->nplaces; i++)
		event_add_place(before, u->places[i]);
	xfree(u->places);
	u->places = before->places;
	u->nplaces = before->nplaces;
	before->places = NULL;
}

/* Of several lines of one number the last one counts; but it lies in the modules of all. */
static void read_user_events(struct trace *t, int dirfd, size_t nknown, bool *made)
{
	VEC(struct trace_user_event) rows = {0};
	order_vec order = {0};
	struct trace_event_line x;
	struct table_lines l;

	if (table_open(&l, dirfd, "events"))
		return;
	while (row_next(&l, row_event, &x, sizeof(x), &t->damaged)) {
		struct trace_user_event *u = vec_push(&rows);

		order_add(&order, x.n, rows.n - 1);
		*u = (struct trace_user_event){.n = x.n,
					       .level = x.level,
					       .resource = x.resource,
					       .name = xstrdup(x.name),
					       .payload = xstrdup(x.payload)};
		u->type = value_type_take(u->payload);
		event_add_place(u, place_of(&x, module_index(t, x.module_id, nknown, made)));
	}
	table_close(&l);
	order_sort(&order);
	t->user_events = xcalloc(order.n, sizeof(*t->user_events));
	for (size_t i = 0; i < order.n; i++) {
		struct trace_user_event *e = &rows.v[order.v[i].line];
		struct trace_user_event *next;

		/* a number that is a function's, too, is the function's */
		if (order_is_last(&order, i) && !trace_function_of(t, KRON_EVENT_ENTRY(e->n))) {
			t->user_events[t->nuser_events++] = *e;
			continue;
		}
		next = order_is_last(&order, i) ? NULL : &rows.v[order.v[i + 1].line];
		if (next)
			join_places(e, next);
		user_event_free(e);
	}
	vec_free(&rows);
	vec_free(&order);
}

/* ---- refusals ---- */

static int by_refusal(const void *a, const void *b)
{
	const struct trace_refusal *x = a, *y = b;

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	if (x->exit != y->exit)
		return x->exit ? 1 : -1;
	if (x->place != y->place)
		return x->place ? 1 : -1;
	return strcmp(x->key, y->key);
}

static void free_refusal(struct trace_refusal *r)
{
	xfree(r->key);
	xfree(r->text);
}

/* sum: else the same twice is a line that was read again, and counts once */
static void take_refusals(struct trace *t, struct trace_refusal *v, size_t n, bool sum)
{
	size_t out = 0;

	if (n)
		qsort(v, n, sizeof(*v), by_refusal);
	for (size_t i = 0; i < n; i++) {
		if (out && !by_refusal(&v[out - 1], &v[i])) {
			v[out - 1].count += sum ? v[i].count : 0;
			free_refusal(&v[i]);
		} else {
			v[out++] = v[i];
		}
	}
	t->refusals = v;
	t->nrefusals = out;
}

void tables_take_refusals(struct trace *t, struct trace_refusal *v, size_t n)
{
	take_refusals(t, v, n, true);
}

static void read_refusals(struct trace *t, int dirfd, size_t nknown, bool *made)
{
	VEC(struct trace_refusal) rows = {0};
	struct trace_refusal_line x;
	struct table_lines l;

	if (table_open(&l, dirfd, "refusals"))
		return;
	while (row_next(&l, row_refusal, &x, sizeof(x), &t->damaged))
		*vec_push(&rows) =
			(struct trace_refusal){.module = module_index(t, x.module_id, nknown, made),
					       .exit = x.what == TRACE_REFUSED_EXIT,
					       .place = x.what == TRACE_REFUSED_PLACE,
					       .key = xstrdup(x.key),
					       .text = xstrdup(x.text),
					       .count = x.count};
	table_close(&l);
	take_refusals(t, rows.v, rows.n, false);
}

/* ---- imports ---- */

static int by_import(const void *a, const void *b)
{
	const struct trace_import *x = a, *y = b;
	int order;

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	order = strcmp(x->name, y->name);
	return order ? order : strcmp(x->caller, y->caller);
}

static void free_import(struct trace_import *im)
{
	xfree(im->name);
	xfree(im->why);
	xfree(im->caller);
}

void tables_take_imports(struct trace *t, struct trace_import *v, size_t n)
{
	size_t out = 0;

	if (n)
		qsort(v, n, sizeof(*v), by_import);
	for (size_t i = 0; i < n; i++) {
		if (out && !by_import(&v[out - 1], &v[i]))
			free_import(&v[i]);
		else
			v[out++] = v[i];
	}
	t->imports = v;
	t->nimports = out;
}

/* A caller with several stubs, or several probes at one, has as many lines: one is enough. */
static void read_imports(struct trace *t, int dirfd, size_t nknown, bool *made)
{
	VEC(struct trace_import) rows = {0};
	struct trace_import_line x;
	struct table_lines l;

	if (table_open(&l, dirfd, "imports"))
		return;
	while (row_next(&l, row_import, &x, sizeof(x), &t->damaged))
		*vec_push(&rows) =
			(struct trace_import){.module = module_index(t, x.module_id, nknown, made),
					      .vaddr = x.vaddr,
					      .name = xstrdup(x.name),
					      .why = xstrdup(x.why),
					      .caller = xstrdup(x.caller)};
	table_close(&l);
	tables_take_imports(t, rows.v, rows.n);
}

/* ---- changes ---- */

static void read_changes(struct trace *t, int dirfd)
{
	VEC(struct trace_change) rows = {0};
	struct trace_change_line x;
	struct table_lines l;

	if (table_open(&l, dirfd, "changes")) /* older traces have none */
		return;
	while (row_next(&l, row_change, &x, sizeof(x), &t->damaged))
		*vec_push(&rows) = (struct trace_change){.tsc = x.tsc,
							 .comes = x.comes,
							 .places = x.places,
							 .name = xstrdup(x.name),
							 .spec = xstrdup(x.spec)};
	table_close(&l);
	t->changes = rows.v;
	t->nchanges = rows.n;
}

/* ---- tasks ---- */

struct task_rows {
	VEC(struct trace_proc) procs;
	VEC(struct trace_proc_end_line) ends;
	VEC(struct trace_untraced) untraced;
	VEC(char *) names;
	VEC(uint64_t) thread_ends;                   /* as names; 0: unknown */
	order_vec proc_order, end_order, name_order; /* keys: uid, uid, uid << 32 | tid */
};

static bool read_proc(struct task_rows *r, const struct table_lines *l)
{
	struct trace_proc_line x;

	if (!row_read(l, row_proc, &x, sizeof(x)))
		return false;
	order_add(&r->proc_order, x.uid, r->procs.n);
	*vec_push(&r->procs) = (struct trace_proc){.uid = x.uid,
						   .pid = x.pid,
						   .parent_uid = x.parent_uid,
						   .by_fork = x.by_fork,
						   .start_tsc = x.start_tsc,
						   .note = xstrdup(x.note),
						   .exe = xstrdup(x.exe),
						   .cmdline = xstrdup(x.cmdline),
						   .known = true};
	return true;
}

static bool read_proc_end(struct task_rows *r, const struct table_lines *l)
{
	struct trace_proc_end_line x;

	if (!row_read(l, row_proc_end, &x, sizeof(x)))
		return false;
	order_add(&r->end_order, x.uid, r->ends.n);
	*vec_push(&r->ends) = x;
	return true;
}

static bool read_thread(struct task_rows *r, const struct table_lines *l)
{
	struct trace_thread_line x;

	if (!row_read(l, row_thread, &x, sizeof(x)))
		return false;
	order_add(&r->name_order, (uint64_t)x.uid << 32 | x.tid, r->names.n);
	*vec_push(&r->names) = xstrdup(x.name);
	*vec_push(&r->thread_ends) = x.end_tsc;
	return true;
}

static bool read_untraced(struct task_rows *r, const struct table_lines *l)
{
	struct trace_untraced_line x;

	if (!row_read(l, row_untraced, &x, sizeof(x)))
		return false;
	*vec_push(&r->untraced) =
		(struct trace_untraced){.pid = x.pid, .reason = xstrdup(x.reason)};
	return true;
}

static bool read_task(struct task_rows *r, const struct table_lines *l)
{
	return read_proc(r, l) || read_proc_end(r, l) || read_thread(r, l) || read_untraced(r, l);
}

static void proc_free(struct trace_proc *p)
{
	xfree(p->note);
	xfree(p->exe);
	xfree(p->cmdline);
}

/* Processes that have lanes but no P line: the collector died before it wrote one. */
static void add_unknown_procs(const struct trace *t, struct task_rows *r)
{
	for (size_t i = 0; i < t->nlanes; i++) {
		struct trace_proc p = {.uid = t->lanes[i].proc_uid};
		size_t lo;

		if (i && t->lanes[i - 1].proc_uid == p.uid)
			continue;
		/* proc_order is sorted up to here; additions go to the end */
		lo = partition_point(k, r->proc_order.n, r->proc_order.v[k].key < p.uid);
		if (lo < r->proc_order.n && r->proc_order.v[lo].key == p.uid)
			continue;
		p.note = xstrdup("");
		p.exe = xstrdup("");
		p.cmdline = xstrdup("");
		*vec_push(&r->procs) = p;
	}
}

static void take_procs(struct trace *t, struct task_rows *r)
{
	size_t nread = r->procs.n;

	order_sort(&r->proc_order);
	add_unknown_procs(t, r);
	for (size_t i = nread; i < r->procs.n; i++)
		order_add(&r->proc_order, r->procs.v[i].uid, i);
	order_sort(&r->proc_order);
	t->procs = xcalloc(r->proc_order.n, sizeof(*t->procs));
	for (size_t i = 0; i < r->proc_order.n; i++) {
		struct trace_proc *p = &r->procs.v[r->proc_order.v[i].line];

		if (order_is_last(&r->proc_order, i))
			t->procs[t->nprocs++] = *p;
		else
			proc_free(p);
	}
	order_sort(&r->end_order);
	for (size_t i = 0, j = 0; i < r->end_order.n; i++) {
		const struct trace_proc_end_line *e = &r->ends.v[r->end_order.v[i].line];

		if (!order_is_last(&r->end_order, i))
			continue;
		while (j < t->nprocs && t->procs[j].uid < r->end_order.v[i].key)
			j++;
		if (j == t->nprocs || t->procs[j].uid != r->end_order.v[i].key)
			continue;
		t->procs[j].end_tsc = e->end_tsc;
		t->procs[j].lost = e->lost;
		t->procs[j].cut_off = e->cut_off;
	}
}

/* Lanes and names are both in order of uid and tid; the last name counts, and the last end. */
static void take_names(struct trace *t, struct task_rows *r)
{
	struct trace_priv *p = priv_of(t);
	size_t j = 0;

	order_sort(&r->name_order);
	for (size_t i = 0; i < t->nlanes; i++) {
		uint64_t key = (uint64_t)t->lanes[i].proc_uid << 32 | t->lanes[i].tid;

		while (j < r->name_order.n && r->name_order.v[j].key < key)
			j++;
		t->lanes[i].name = "";
		for (; j < r->name_order.n && r->name_order.v[j].key == key; j++) {
			size_t line = r->name_order.v[j].line;

			t->lanes[i].name = r->names.v[line];
			if (r->thread_ends.v[line])
				t->lanes[i].end_tsc = r->thread_ends.v[line];
		}
	}
	p->thread_names = r->names.v;
	p->nthread_names = r->names.n;
}

static void read_tasks(struct trace *t, int dirfd)
{
	struct task_rows r = {0};
	struct table_lines l;

	if (!table_open(&l, dirfd, "tasks")) {
		while (table_next_fields(&l))
			if (!read_task(&r, &l))
				t->damaged++;
		table_close(&l);
	}
	take_procs(t, &r);
	take_names(t, &r);
	t->untraced = r.untraced.v;
	t->nuntraced = r.untraced.n;
	vec_free(&r.procs);
	vec_free(&r.ends);
	vec_free(&r.thread_ends);
	vec_free(&r.proc_order);
	vec_free(&r.end_order);
	vec_free(&r.name_order);
}

/* ---- all ---- */

void tables_read(struct trace *t, int dirfd)
{
	bool made_unknown = false;
	size_t nknown;

	read_modules(t, dirfd);
	nknown = t->nmodules;
	read_functions(t, dirfd, nknown, &made_unknown);
	jumps_read(t, dirfd);
	read_user_events(t, dirfd, nknown, &made_unknown);
	read_refusals(t, dirfd, nknown, &made_unknown);
	read_imports(t, dirfd, nknown, &made_unknown);
	read_changes(t, dirfd);
	sleeps_read(t, dirfd);
	read_tasks(t, dirfd);
	events_settle(t);
}

void tables_free(struct trace *t)
{
	struct trace_priv *p = priv_of(t);

	for (size_t i = 0; i < t->nmodules; i++)
		module_free(&t->modules[i]);
	for (size_t i = 0; i < t->nfunctions; i++)
		function_free(&t->functions[i]);
	jumps_free(t);
	for (size_t i = 0; i < t->nuser_events; i++)
		user_event_free(&t->user_events[i]);
	for (size_t i = 0; i < t->nprocs; i++)
		proc_free(&t->procs[i]);
	for (size_t i = 0; i < t->nrefusals; i++)
		free_refusal(&t->refusals[i]);
	for (size_t i = 0; i < t->nimports; i++)
		free_import(&t->imports[i]);
	for (size_t i = 0; i < t->nchanges; i++) {
		xfree(t->changes[i].name);
		xfree(t->changes[i].spec);
	}
	xfree(t->changes);
	sleeps_free(t);
	for (size_t i = 0; i < t->nuntraced; i++)
		xfree(t->untraced[i].reason);
	for (size_t i = 0; i < p->nthread_names; i++)
		xfree(p->thread_names[i]);
	vec_for(&p->session, e) {
		xfree(e->key);
		xfree(e->value);
	}
	vec_free(&p->session);
	xfree(t->modules);
	xfree(t->functions);
	xfree(t->user_events);
	xfree(t->procs);
	xfree(t->refusals);
	xfree(t->imports);
	xfree(t->untraced);
	xfree(p->thread_names);
	xfree(p->told);
	lanes_off_free(p->off);
	xfree(p->function_at);
}
