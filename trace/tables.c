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
#include <stdlib.h>
#include <string.h>

#include "trace/reader_impl.h"
#include "trace/table_lines.h"

static int32_t pid_number(const char *s)
{
	uint64_t v;

	return table_number(s, 10, INT32_MAX, &v) ? (int32_t)v : 0;
}

/* ---- session ---- */

int tables_read_session(struct trace *t, int dirfd, struct err *err)
{
	struct trace_priv *p = priv_of(t);
	struct table_lines l;
	char *line;
	int ret = table_open(&l, dirfd, "session");

	if (ret == -ENOENT)
		return err_set(err, EINVAL, "%s is no trace directory: it has no session file",
			       t->dir);
	if (ret == -EINVAL)
		return err_set(err, EINVAL, "%s is no trace directory: its session is no file",
			       t->dir);
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
	struct table_lines l;

	if (table_open(&l, dirfd, "modules"))
		return;
	while (table_next_fields(&l)) {
		struct trace_module m = {0};

		if (!table_number32(l.field[0], &m.id) ||
		    !table_number32(l.field[1], &m.event_base) ||
		    !table_number32(l.field[2], &m.nfunctions) ||
		    !table_number64(l.field[3], &m.patched_entries) ||
		    !table_number64(l.field[4], &m.patched_exits) ||
		    !table_number64(l.field[5], &m.refused_entries) ||
		    !table_number64(l.field[6], &m.refused_exits)) {
			t->damaged++;
			continue;
		}
		m.build_id = xstrdup(l.field[7]);
		m.path = xstrdup(l.field[8]);
		order_add(&order, m.id, rows.n);
		*vec_push(&rows) = m;
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
	size_t lo = 0, hi = nknown;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->modules[mid].id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < nknown && t->modules[lo].id == id)
		return (uint32_t)lo;
	t->damaged++;
	return module_unknown(t, made);
}

/* ---- functions ---- */

#define FUNCTION_LIMIT (KRON_EVENT_SPECIAL / 2)

static char *function_name(const struct trace_module *m, uint64_t vaddr, const char *name)
{
	const char *base = strrchr(m->path, '/');

	if (name[0])
		return xstrdup(name);
	return xasprintf("%s+0x%llx", base ? base + 1 : m->path, (unsigned long long)vaddr);
}

static void index_functions(struct trace *t)
{
	struct trace_priv *p = priv_of(t);

	p->function_limit = trace_function_limit(t);
	if (!p->function_limit)
		return;
	p->function_at = xcalloc(p->function_limit, sizeof(uint32_t));
	for (size_t i = 0; i < t->nfunctions; i++)
		p->function_at[t->functions[i].n] = (uint32_t)i + 1;
}

/* Older traces do not say it: 0, which is the default. */
static uint8_t level_of(const char *field)
{
	uint32_t level;

	return table_number32(field, &level) && level <= 15 ? (uint8_t)level : 0;
}

static uint8_t ways_of(const char *field)
{
	uint8_t ways = 0;

	for (; *field; field++)
		ways |= *field == 'r'   ? TRACE_RETURNS
			: *field == 'j' ? TRACE_JUMPS
			: *field == 'c' ? TRACE_CALLS
			: *field == 'i' ? TRACE_RESOLVES
			: *field == 'u' ? TRACE_UNSEEN
					: 0;
	return ways;
}

static void function_free(struct trace_function *f)
{
	xfree(f->name);
	xfree(f->aliases);
}

static void read_functions(struct trace *t, int dirfd, size_t nknown, bool *made)
{
	VEC(struct trace_function) rows = {0};
	order_vec order = {0};
	struct table_lines l;

	if (table_open(&l, dirfd, "functions"))
		return;
	while (table_next_fields(&l)) {
		struct trace_function f = {0};
		uint32_t module;

		if (!table_number32(l.field[0], &f.n) || f.n >= FUNCTION_LIMIT ||
		    !table_number32(l.field[1], &module) ||
		    !table_number(l.field[2], 16, UINT64_MAX, &f.vaddr) ||
		    !table_number64(l.field[3], &f.size)) {
			t->damaged++;
			continue;
		}
		f.level = level_of(l.field[5]);
		f.ways = ways_of(l.field[6]);
		f.aliases = l.field[7][0] ? xstrdup(l.field[7]) : NULL;
		f.module = module_index(t, module, nknown, made);
		f.name = function_name(&t->modules[f.module], f.vaddr, l.field[4]);
		order_add(&order, f.n, rows.n);
		*vec_push(&rows) = f;
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
	index_functions(t);
}

/* ---- the user's events ---- */

static bool read_user_event(const struct table_lines *l, struct trace_user_event *e,
			    uint32_t *module)
{
	uint32_t level;

	e->resource = !strcmp(l->field[2], "resource");
	if (!table_number32(l->field[0], &e->n) || e->n >= FUNCTION_LIMIT ||
	    !table_number32(l->field[1], &level) || level > 15 ||
	    (!e->resource && strcmp(l->field[2], "trace")) ||
	    !table_number32(l->field[4], module) ||
	    !table_number(l->field[5], 16, UINT64_MAX, &e->vaddr))
		return false;
	e->level = (uint8_t)level;
	return true;
}

static void read_user_events(struct trace *t, int dirfd, size_t nknown, bool *made)
{
	VEC(struct trace_user_event) rows = {0};
	order_vec order = {0};
	struct table_lines l;

	if (table_open(&l, dirfd, "events"))
		return;
	while (table_next_fields(&l)) {
		struct trace_user_event e = {0};
		uint32_t module;

		if (!read_user_event(&l, &e, &module)) {
			t->damaged++;
			continue;
		}
		e.module = module_index(t, module, nknown, made);
		e.payload = xstrdup(l.field[3]);
		e.name = xstrdup(l.field[6]);
		order_add(&order, e.n, rows.n);
		*vec_push(&rows) = e;
	}
	table_close(&l);
	order_sort(&order);
	t->user_events = xcalloc(order.n, sizeof(*t->user_events));
	for (size_t i = 0; i < order.n; i++) {
		struct trace_user_event *e = &rows.v[order.v[i].line];

		/* a number that is a function's, too, is the function's */
		if (order_is_last(&order, i) && !trace_function_of(t, KRON_EVENT_ENTRY(e->n))) {
			t->user_events[t->nuser_events++] = *e;
			continue;
		}
		xfree(e->name);
		xfree(e->payload);
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

static void read_refusals(struct trace *t, int dirfd, size_t nknown, bool *made)
{
	VEC(struct trace_refusal) rows = {0};
	struct table_lines l;
	size_t out = 0;

	if (table_open(&l, dirfd, "refusals"))
		return;
	while (table_next_fields(&l)) {
		struct trace_refusal r = {0};
		uint32_t module;

		r.exit = !strcmp(l.field[1], "exit");
		r.place = !strcmp(l.field[1], "place");
		if (!table_number32(l.field[0], &module) ||
		    (!r.exit && !r.place && strcmp(l.field[1], "entry")) ||
		    !table_number64(l.field[3], &r.count)) {
			t->damaged++;
			continue;
		}
		r.module = module_index(t, module, nknown, made);
		r.key = xstrdup(l.field[2]);
		r.text = xstrdup(l.field[4]);
		*vec_push(&rows) = r;
	}
	table_close(&l);
	if (rows.n)
		qsort(rows.v, rows.n, sizeof(*rows.v), by_refusal);
	for (size_t i = 0; i < rows.n; i++) { /* the same twice: a line read again, count once */
		if (out && !by_refusal(&rows.v[out - 1], &rows.v[i]))
			free_refusal(&rows.v[i]);
		else
			rows.v[out++] = rows.v[i];
	}
	t->refusals = rows.v;
	t->nrefusals = out;
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

/* A caller with several stubs, or several probes at one, has as many lines: one is enough. */
static void read_imports(struct trace *t, int dirfd, size_t nknown, bool *made)
{
	VEC(struct trace_import) rows = {0};
	struct table_lines l;
	size_t out = 0;

	if (table_open(&l, dirfd, "imports"))
		return;
	while (table_next_fields(&l)) {
		struct trace_import im = {0};
		uint32_t module;

		if (!table_number32(l.field[0], &module) ||
		    !table_number(l.field[1], 16, UINT64_MAX, &im.vaddr)) {
			t->damaged++;
			continue;
		}
		im.module = module_index(t, module, nknown, made);
		im.name = xstrdup(l.field[2]);
		im.why = xstrdup(l.field[3]);
		im.caller = xstrdup(l.field[4]);
		*vec_push(&rows) = im;
	}
	table_close(&l);
	if (rows.n)
		qsort(rows.v, rows.n, sizeof(*rows.v), by_import);
	for (size_t i = 0; i < rows.n; i++) {
		if (out && !by_import(&rows.v[out - 1], &rows.v[i]))
			free_import(&rows.v[i]);
		else
			rows.v[out++] = rows.v[i];
	}
	t->imports = rows.v;
	t->nimports = out;
}

/* ---- tasks ---- */

struct proc_end {
	uint64_t end_tsc, lost, cut_off;
};

struct task_rows {
	VEC(struct trace_proc) procs;
	VEC(struct proc_end) ends;
	VEC(struct trace_untraced) untraced;
	VEC(char *) names;
	VEC(uint64_t) thread_ends;                   /* as names; 0: unknown */
	order_vec proc_order, end_order, name_order; /* keys: uid, uid, uid << 32 | tid */
};

static bool read_proc(struct task_rows *r, const struct table_lines *l)
{
	struct trace_proc p = {.known = true};

	if (!table_number32(l->field[1], &p.uid) || !table_number32(l->field[3], &p.parent_uid) ||
	    !table_number64(l->field[5], &p.start_tsc))
		return false;
	p.pid = pid_number(l->field[2]);
	p.by_fork = !strcmp(l->field[4], "fork");
	p.note = xstrdup(l->field[6]);
	p.exe = xstrdup(l->field[7]);
	p.cmdline = xstrdup(l->field[8]);
	order_add(&r->proc_order, p.uid, r->procs.n);
	*vec_push(&r->procs) = p;
	return true;
}

static bool read_task(struct task_rows *r, const struct table_lines *l)
{
	struct trace_untraced *u;
	struct proc_end e = {0};
	uint64_t thread_end = 0;
	uint32_t uid, tid;

	switch (l->field[0][0] && !l->field[0][1] ? l->field[0][0] : 0) {
	case 'P':
		return read_proc(r, l);
	case 'E':
		if (!table_number32(l->field[1], &uid) ||
		    !table_number64(l->field[2], &e.end_tsc) ||
		    !table_number64(l->field[3], &e.lost) ||
		    !table_number64(l->field[4], &e.cut_off))
			return false;
		order_add(&r->end_order, uid, r->ends.n);
		*vec_push(&r->ends) = e;
		return true;
	case 'T':
		if (!table_number32(l->field[1], &uid) || !table_number32(l->field[2], &tid) ||
		    (l->nfields > 4 && !table_number64(l->field[4], &thread_end)))
			return false;
		order_add(&r->name_order, (uint64_t)uid << 32 | tid, r->names.n);
		*vec_push(&r->names) = xstrdup(l->field[3]);
		*vec_push(&r->thread_ends) = thread_end;
		return true;
	case 'U':
		u = vec_push(&r->untraced);
		u->pid = pid_number(l->field[1]);
		u->reason = xstrdup(l->field[2]);
		return true;
	default:
		return false;
	}
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
		size_t lo = 0, hi = r->proc_order.n;

		if (i && t->lanes[i - 1].proc_uid == p.uid)
			continue;
		while (lo < hi) { /* proc_order is sorted up to here; additions go to the end */
			size_t mid = lo + (hi - lo) / 2;

			if (r->proc_order.v[mid].key < p.uid)
				lo = mid + 1;
			else
				hi = mid;
		}
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
		const struct proc_end *e = &r->ends.v[r->end_order.v[i].line];

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
	read_tasks(t, dirfd);
}

void tables_free(struct trace *t)
{
	struct trace_priv *p = priv_of(t);

	for (size_t i = 0; i < t->nmodules; i++)
		module_free(&t->modules[i]);
	for (size_t i = 0; i < t->nfunctions; i++)
		function_free(&t->functions[i]);
	jumps_free(t);
	for (size_t i = 0; i < t->nuser_events; i++) {
		xfree(t->user_events[i].name);
		xfree(t->user_events[i].payload);
	}
	for (size_t i = 0; i < t->nprocs; i++)
		proc_free(&t->procs[i]);
	for (size_t i = 0; i < t->nrefusals; i++)
		free_refusal(&t->refusals[i]);
	for (size_t i = 0; i < t->nimports; i++)
		free_import(&t->imports[i]);
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
	xfree(p->function_at);
}
