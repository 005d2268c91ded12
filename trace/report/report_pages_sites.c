/* SPDX-License-Identifier: MIT */
/*
 * report_pages_sites.c - page reference counters by allocation site: who has asked the allocator for what lies on a page.
 *
 *   events of the pack blocks ── of a thread: site, size, block ──► blocks ── the pages that they touch ──► sites of a page
 *
 * A page has no times, so it has the sites of all blocks that ever lay there.  What was counted on a page of one site is that
 * site's; where there are several, nobody can tell.  A forked process has the blocks of its parent.
 */
#include "trace/report/report_pages_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/str.h"
#include "trace/index.h"
#include "trace/text.h"
#include "trace/value.h"

#define SHOWN 3u            /* under a page */
#define OF_A_PAGE 16        /* more are not told apart */
#define OURS "/memfd:kron:" /* blocks of stubs */
#define ADDRESSES (UINT64_C(1) << 47)

/* The names of probes/packs/blocks.probe: one of each. */
enum { MALLOC, CALLOC, REALLOC, REALLOCARRAY, MEMALIGN, VALLOC, MMAP, NEW, NCALLEES };
static const char *const callees[NCALLEES] = {"malloc",   "calloc", "realloc", "reallocarray",
					      "memalign", "valloc", "mmap",    "new"};
static const char *const parts[] = {"_site", "_size", "_count", "_block", "_end"};
enum { SITE, SIZE, COUNT, BLOCK, END, NPARTS };

struct site {
	uint32_t uid; /* of the process that has allocated */
	uint64_t address;
	const char *module; /* NULL: no file is known there */
	const char *function;
	uint64_t offset; /* from the function's first byte, or else from the module's */
	uint64_t blocks, bytes;
	uint64_t pages, reads, writes; /* where there is no other */
};

struct stack { /* what lay at its top when a function was called */
	uint64_t top[3];
};

struct call {
	unsigned callee; /* from NCALLEES on: of --alloc-fn */
	bool has_left;   /* its own code: by a return, or by a jump to who goes on for it */
	struct stack stack;
	uint64_t size, count; /* UINT64_MAX: not said */
};

struct lane { /* what a thread is in, the innermost last */
	struct call v[64];
	unsigned n;
	/* The block that it has got last: a call around may give it out as well, and is the one that was meant. */
	struct block {
		uint64_t start, bytes; /* start 0: none */
		uint64_t tsc;
		uint32_t site;
	} block;
};

struct role { /* of an event */
	unsigned callee, part;
};

struct sites {
	const struct report *rep;
	struct index events;    /* numbers of user events */
	VEC(struct role) roles; /* by index */
	VEC(char *) for_others; /* names of --alloc-fn's functions */
	VEC(bool) moved;        /* by callee: its calls go through code of ours, from some module */
	VEC(const struct trace_proc *) forks; /* by parent */
	VEC(uint32_t) heirs;                  /* of put_block() */
	struct index
		put; /* blocks that were put before: a process, where, and the site, as one number */
	struct lane *lanes;
	struct index addresses, keys; /* of the second: process and index in the first */
	VEC(struct site) v;           /* by index of the second */
	struct of_page {
		VEC(uint32_t) sites;
		bool more;
	} * pages; /* as rep->pages in their order */
	struct site several, none;
};

/* ---- where it was called ---- */

static bool is_ours(const struct trace_mapping *m)
{
	return m && !strncmp(m->name, OURS, strlen(OURS));
}

/* 0: it has executed another program since, or has no parent that is known. */
static uint32_t forked_from(const struct report *rep, uint32_t uid)
{
	const struct trace_proc *p = trace_proc_of(rep->t, uid);

	return p && p->by_fork && p->parent_uid < uid ? p->parent_uid : 0;
}

static struct site site_at(const struct report *rep, uint32_t uid, uint64_t address)
{
	struct site s = {.uid = uid, .address = address};
	struct range r = {.start = address};
	uint64_t base;

	for (; uid && !r.mapping; uid = forked_from(rep, uid)) {
		r.uid = uid;
		r.pid = report_pages_pid(rep, uid);
		r.mapping = trace_pages_mapping(rep->p, uid, r.pid, address);
	}
	if (!is_ours(r.mapping))
		s.module = report_pages_module(rep, &r, &base);
	if (!s.module)
		return s;
	s.offset = address - base;
	/* a call that does not return may be the last of its function */
	if (rep->o->symbols.function)
		s.function = rep->o->symbols.function(rep->o->symbols.ctx, s.module, s.offset - 1,
						      &s.offset);
	s.offset += s.function ? 1 : 0;
	return s;
}

static uint32_t site_of(struct sites *x, uint32_t uid, uint64_t address)
{
	const uint32_t at =
		index_of(&x->keys, (uint64_t)uid << 32 | index_of(&x->addresses, address));

	if (at == x->v.n)
		*vec_push(&x->v) = site_at(x->rep, uid, address);
	return at;
}

/* Code of ours that calls in the caller's place has its return address above its own. */
static uint32_t site_of_stack(struct sites *x, uint32_t uid, const struct stack *s, unsigned callee)
{
	const uint32_t at = site_of(x, uid, s->top[0]);
	uint32_t above;

	if (x->v.v[at].module || !x->moved.v[callee])
		return at;
	above = site_of(x, uid, s->top[2]);
	return x->v.v[above].module ? above : at;
}

static bool is_called_new(const char *name)
{
	return !strncmp(name, "operator new", strlen("operator new"));
}

/*
 * Who asks on behalf of another: operator new, and --alloc-fn's.  It is looked farther out only if the place is in it: the ends
 * of some calls are not seen.
 */
static bool is_for(const struct sites *x, const struct site *s, const struct call *outer)
{
	if (!s->function)
		return false;
	if (outer->callee >= NCALLEES)
		return !strcmp(s->function, x->for_others.v[outer->callee - NCALLEES]);
	return outer->callee == NEW && is_called_new(s->function);
}

static uint32_t site_of_call(struct sites *x, uint32_t uid, const struct call *first,
			     const struct call *c)
{
	uint32_t at = site_of_stack(x, uid, &c->stack, c->callee);

	for (; c > first && is_for(x, &x->v.v[at], c - 1); c--)
		at = site_of_stack(x, uid, &c[-1].stack, c[-1].callee);
	return at;
}

/* ---- what lies where ---- */

static void put_on_page(struct of_page *p, uint32_t site)
{
	for (size_t i = 0; i < p->sites.n; i++)
		if (p->sites.v[i] == site)
			return;
	if (p->sites.n < OF_A_PAGE)
		*vec_push(&p->sites) = site;
	else
		p->more = true;
}

static void put_on_pages(struct sites *x, uint32_t uid, uint64_t from, uint64_t to, uint32_t site)
{
	const struct range *v = x->rep->pages.v;
	const size_t n = x->rep->pages.n;
	size_t i = partition_point(i, n, v[i].uid < uid || (v[i].uid == uid && v[i].end <= from));

	for (; i < n && v[i].uid == uid && v[i].start < to; i++)
		put_on_page(&x->pages[i], site);
}

static bool was_put(struct sites *x, uint32_t uid, const struct block *b)
{
	const uint64_t numbers[] = {uid, b->start, b->bytes, b->site};
	const size_t n = x->put.n;

	return index_of(&x->put, str_hash(STR_HASH, numbers, sizeof(numbers))) < n;
}

/*
 * What was forked later has it, too, and so has what that has forked.  If the same was put before, all of these have it.
 */
static void put_block(struct sites *x, uint32_t uid, const struct block *b)
{
	const struct trace_proc **v = x->forks.v;

	if (was_put(x, uid, b))
		return;
	x->heirs.n = 0;
	*vec_push(&x->heirs) = uid;
	for (size_t k = 0; k < x->heirs.n; k++) {
		const uint32_t heir = x->heirs.v[k];
		size_t i = partition_point(i, x->forks.n, v[i]->parent_uid < heir);

		put_on_pages(x, heir, b->start, b->start + (b->bytes ? b->bytes : 1), b->site);
		for (; i < x->forks.n && v[i]->parent_uid == heir; i++)
			if (v[i]->start_tsc >= b->tsc)
				*vec_push(&x->heirs) = v[i]->uid;
	}
}

static int by_parent(const void *a, const void *b)
{
	const struct trace_proc *x = *(const struct trace_proc *const *)a,
				*y = *(const struct trace_proc *const *)b;

	return (x->parent_uid > y->parent_uid) - (x->parent_uid < y->parent_uid);
}

/* Whose numbers grow from parent to child, as a recorder gives them out. */
static void take_forks(struct sites *x)
{
	const struct trace *t = x->rep->t;

	for (size_t i = 0; i < t->nprocs; i++)
		if (t->procs[i].by_fork && t->procs[i].uid > t->procs[i].parent_uid)
			*vec_push(&x->forks) = &t->procs[i];
	if (x->forks.n)
		qsort(x->forks.v, x->forks.n, sizeof(*x->forks.v), by_parent);
}

/* What a thread has got, when no call around can give it out any more. */
static void settle(struct sites *x, uint32_t lane)
{
	struct block *b = &x->lanes[lane].block;

	if (!b->start)
		return;
	x->v.v[b->site].blocks++;
	x->v.v[b->site].bytes += b->bytes;
	put_block(x, x->rep->t->lanes[lane].proc_uid, b);
	b->start = 0;
}

static bool begins_with(const char *s, const char *const *prefixes)
{
	while (*prefixes && strncmp(s, *prefixes, strlen(*prefixes)) != 0)
		prefixes++;
	return *prefixes;
}

/* A place in the code of an allocator, as far as names tell: those in the pack, and glibc's inner functions. */
static bool is_allocators(const struct site *s)
{
	static const char *const libraries[] = {"libjemalloc", "libtcmalloc", "libmimalloc",
						"libhoard",    "librpmalloc", NULL},
				 *const libc[] = {"libc.so", "libc-", NULL},
				 *const inner[] = {"sysmalloc", "new_heap",     "alloc_new_heap",
						   "_int_",     "operator new", NULL};

	if (!s->module)
		return false;
	if (begins_with(str_base_name(s->module), libraries))
		return true;
	return s->function ? begins_with(s->function, inner)
			   : begins_with(str_base_name(s->module), libc);
}

/* Code of ours stands in the caller's place: what it returns is seen, wherever it leaves. */
static bool is_moved(struct sites *x, uint32_t uid, const struct call *c)
{
	const uint32_t at = site_of(x, uid, c->stack.top[0]);

	return x->moved.v[c->callee] && !x->v.v[at].module;
}

/*
 * Whether it is within a call of the allocator.  One that has left its own code is over, or another function goes on for it, and
 * nobody sees that one's end; and operator new may end by an exception.  There the place says it.
 */
static bool is_within(struct sites *x, uint32_t uid, const struct call *first, const struct call *c)
{
	const uint32_t at = site_of_stack(x, uid, &c->stack, c->callee);
	const bool allocators = is_allocators(&x->v.v[at]);

	for (const struct call *o = first; o < c; o++)
		if (o->callee < NCALLEES &&
		    (allocators || (o->callee != NEW && (!o->has_left || is_moved(x, uid, o)))))
			return true;
	return false;
}

/* Of the innermost call. */
static void take_block(struct sites *x, const struct trace_event *e, struct value v)
{
	struct lane *l = &x->lanes[e->lane];
	const uint32_t uid = x->rep->t->lanes[e->lane].proc_uid;
	const struct call *c = &l->v[l->n - 1];
	const uint64_t size = c->size, count = c->count == UINT64_MAX ? 1 : c->count;
	uint32_t site;

	if (!value_is_number(v) || !v.number || v.number >= ADDRESSES || size > ADDRESSES ||
	    (size && count > ADDRESSES / size))
		return; /* it was refused, or was not said */
	if (c->callee == MMAP && is_within(x, uid, l->v, c))
		return; /* the allocator's own */
	site = site_of_call(x, uid, l->v, c);
	if (l->block.start != v.number)
		settle(x, e->lane);
	else if (!x->v.v[site].module)
		site = l->block.site;
	l->block = (struct block){v.number, size * count, e->tsc, site};
}

/* ---- events ---- */

static char *of_hex(const char *s, size_t n)
{
	char *name = xmalloc(n / 2 + 1);

	for (size_t i = 0; i < n / 2; i++) {
		const char two[3] = {s[2 * i], s[2 * i + 1], 0};

		name[i] = (char)strtoul(two, NULL, 16);
	}
	name[n / 2] = 0;
	return name;
}

/* The rest of a name of n characters that begins so; NULL: it does not. */
static const char *rest_after(const char *name, size_t n, const char *prefix)
{
	const size_t len = strlen(prefix);

	return n > len && !strncmp(name, prefix, len) ? name + len : NULL;
}

/* Of a name of n characters: the function that allocates for its caller; NULL: it names none. */
static char *for_whom(const char *name, size_t n)
{
	const char *word = rest_after(name, n, REPORT_SITES_FOR),
		   *hex = rest_after(name, n, REPORT_SITES_FOR_HEX);

	return word  ? xstrndup(word, n - (size_t)(word - name))
	       : hex ? of_hex(hex, n - (size_t)(hex - name))
		     : NULL;
}

/* Of an event's name; *other: the function, where the callee is NCALLEES, for the caller to free.  false: it is no such name. */
static bool take_role(const char *name, struct role *out, char **other)
{
	const size_t n = strlen(name);
	size_t stem = 0;

	*other = NULL;
	for (out->part = 0; out->part < NPARTS && !stem; out->part++) {
		const size_t tail = strlen(parts[out->part]);

		if (n > tail && !strcmp(name + n - tail, parts[out->part]))
			stem = n - tail;
	}
	out->part--;
	for (out->callee = 0; stem && out->callee < NCALLEES; out->callee++)
		if (strlen(callees[out->callee]) == stem &&
		    !strncmp(name, callees[out->callee], stem))
			return true;
	*other = stem ? for_whom(name, stem) : NULL;
	return *other;
}

static bool is_callee(const struct sites *x, const char *name, unsigned callee)
{
	if (callee >= NCALLEES)
		return !strcmp(name, x->for_others.v[callee - NCALLEES]);
	if (callee == NEW)
		return is_called_new(name) || !strncmp(name, "_Zn", 3);
	return !strcmp(name, callees[callee]) ||
	       (callee == MEMALIGN && !strcmp(name, "aligned_alloc")) ||
	       (callee == VALLOC && !strcmp(name, "pvalloc")) ||
	       (callee == MMAP && !strcmp(name, "mmap64"));
}

bool report_pages_has_sites(const struct trace *t)
{
	bool has = false;

	for (size_t i = 0; i < t->nuser_events && !has; i++) {
		struct role role;
		char *other;

		has = take_role(t->user_events[i].name, &role, &other);
		xfree(other);
	}
	return has;
}

static unsigned for_others(struct sites *x, char *name)
{
	for (size_t i = 0; i < x->for_others.n; i++)
		if (!strcmp(x->for_others.v[i], name)) {
			xfree(name);
			return NCALLEES + (unsigned)i;
		}
	*vec_push(&x->for_others) = name;
	return NCALLEES + (unsigned)x->for_others.n - 1;
}

static void take_events(struct sites *x)
{
	const struct trace *t = x->rep->t;

	for (size_t i = 0; i < t->nuser_events; i++) {
		struct role role;
		char *other;

		if (!take_role(t->user_events[i].name, &role, &other))
			continue;
		if (other)
			role.callee = for_others(x, other);
		index_of(&x->events, t->user_events[i].n);
		*vec_push(&x->roles) = role;
	}
	for (unsigned k = 0; k < NCALLEES + x->for_others.n; k++) {
		bool *moved = vec_push(&x->moved);

		for (size_t i = 0; i < t->nimports; i++)
			*moved = *moved || is_callee(x, t->imports[i].name, k);
	}
}

static bool take_stack(struct stack *s, struct value v)
{
	if (!v.memory || v.memory->is_unreadable || v.memory->length < sizeof(s->top))
		return false;
	memcpy(s->top, v.memory->text, sizeof(s->top));
	return true;
}

/* One that did not end, or was not seen to, stays until there is no room. */
static void begin(struct lane *l, unsigned callee, struct value v)
{
	struct call c = {.callee = callee, .size = UINT64_MAX, .count = UINT64_MAX};

	if (!take_stack(&c.stack, v)) {
		l->n = 0;
		return;
	}
	if (l->n == sizeof(l->v) / sizeof(*l->v))
		memmove(l->v, l->v + 1, --l->n * sizeof(*l->v));
	l->v[l->n++] = c;
}

/* It has its end later, if that is seen.  One in the other, of one name: the inner one leaves first. */
static void leave(struct lane *l, unsigned callee)
{
	for (unsigned n = l->n; n; n--)
		if (l->v[n - 1].callee == callee && !l->v[n - 1].has_left) {
			l->v[n - 1].has_left = true;
			return;
		}
}

static void take_part(struct sites *x, struct lane *l, struct role role,
		      const struct trace_event *e, struct value v)
{
	const unsigned part = role.part;
	unsigned n = l->n;

	if (part == END && role.callee < NCALLEES) {
		leave(l, role.callee);
		return;
	}
	while (n && l->v[n - 1].callee != role.callee) /* a call in it whose end was not seen */
		n--;
	if (!n)
		return;
	l->n = n;
	if (part == SIZE && value_is_number(v))
		l->v[l->n - 1].size = v.number;
	else if (part == COUNT && value_is_number(v))
		l->v[l->n - 1].count = v.number;
	else if (part == BLOCK)
		take_block(x, e, v);
	l->n -= part == BLOCK || part == END;
}

static void feed(struct sites *x, const struct trace_event *e)
{
	struct lane *l = &x->lanes[e->lane];
	const struct trace_user_event *u;
	struct role role;
	uint32_t at;

	if (e->s.event == KRON_EVENT_LOST)
		l->n = 0;
	u = e->s.event < KRON_EVENT_SPECIAL ? trace_user_event_of(x->rep->t, e->s.event) : NULL;
	at = u ? index_find(&x->events, u->n) : INDEX_NONE;
	if (at == INDEX_NONE)
		return;
	role = x->roles.v[at];
	if (role.part == SITE) {
		settle(x, e->lane);
		begin(l, role.callee, value_of(u, e));
	} else {
		take_part(x, l, role, e, value_of(u, e));
	}
}

/* ---- sums ---- */

static void add(struct site *s, const struct range *page)
{
	s->pages++;
	s->reads += page->reads;
	s->writes += page->writes;
}

static void add_pages(struct sites *x)
{
	for (size_t i = 0; i < x->rep->pages.n; i++) {
		const struct of_page *p = &x->pages[i];

		add(!p->sites.n       ? &x->none
		    : p->sites.n == 1 ? &x->v.v[p->sites.v[0]]
				      : &x->several,
		    &x->rep->pages.v[i]);
	}
}

struct sites *report_pages_sites_read(const struct report *rep)
{
	struct sites *x = xcalloc(1, sizeof(*x));
	struct trace_cursor *c;
	struct trace_event e;

	x->rep = rep;
	x->lanes = xcalloc(rep->t->nlanes + 1, sizeof(*x->lanes));
	x->pages = xcalloc(rep->pages.n + 1, sizeof(*x->pages));
	take_events(x);
	take_forks(x);
	c = trace_cursor_open(rep->t, -1);
	while (trace_cursor_next(c, &e))
		feed(x, &e);
	trace_cursor_close(c);
	for (uint32_t i = 0; i < rep->t->nlanes; i++)
		settle(x, i);
	add_pages(x);
	return x;
}

void report_pages_sites_free(struct sites *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->rep->pages.n; i++)
		vec_free(&s->pages[i].sites);
	xfree(s->pages);
	xfree(s->lanes);
	index_free(&s->events);
	index_free(&s->addresses);
	index_free(&s->keys);
	vec_for(&s->for_others, name)
		xfree(*name);
	vec_free(&s->for_others);
	vec_free(&s->moved);
	vec_free(&s->forks);
	vec_free(&s->heirs);
	index_free(&s->put);
	vec_free(&s->roles);
	vec_free(&s->v);
	xfree(s);
}

/* ---- text ---- */

static void put_site(const struct report *rep, FILE *f, const struct site *s)
{
	if (rep->many)
		fprintf(f, "process %" PRIu32 ": ", report_pages_pid(rep, s->uid));
	if (s->function) {
		text_put(f, s->function);
		fprintf(f, "+0x%" PRIx64 " of ", s->offset);
		text_put(f, str_base_name(s->module));
	} else if (s->module) {
		text_put(f, str_base_name(s->module));
		fprintf(f, "+0x%" PRIx64, s->offset);
	} else {
		fprintf(f, "0x%" PRIx64 ", where no file is known", s->address);
	}
}

static int hottest_first(const void *a, const void *b)
{
	const struct site *x = a, *y = b;
	const uint64_t n = x->reads + x->writes, m = y->reads + y->writes;

	if (n != m)
		return n > m ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

static void put_row(const struct report *rep, FILE *f, const struct site *s)
{
	report_pages_share(rep, f, s->reads, s->writes);
	fprintf(f, " %7" PRIu64, s->pages);
}

static void put_rest(const struct report *rep, FILE *f, const struct site *s, const char *what)
{
	if (!s->pages)
		return;
	put_row(rep, f, s);
	fprintf(f, " %9s %15s  (%s)\n", "", "", what);
}

void report_pages_sites(const struct report *rep, FILE *f)
{
	const uint64_t limit = rep->o->limit ? rep->o->limit : LIMIT;
	const size_t n = rep->sites->v.n;
	struct site *v = xmalloc((n + 1) * sizeof(*v));
	char blocks[STR_NUMBER], bytes[STR_NUMBER];
	size_t known = 0;

	for (size_t i = 0; i < n; i++)
		if (rep->sites->v.v[i].blocks)
			v[known++] = rep->sites->v.v[i];
	if (known)
		qsort(v, known, sizeof(*v), hottest_first);
	fprintf(f,
		"\nAllocation sites: what was counted on %s where no other has allocated\n"
		"%15s %15s %8s %7s %7s %9s %15s  Site\n",
		report_pages_units(rep), "Reads", "Writes", "R/W", "Share",
		rep->p->unit == TRACE_LINE_SIZE ? "Lines" : "Pages", "Blocks", "Bytes");
	for (size_t i = 0; i < known && i < limit; i++) {
		put_row(rep, f, &v[i]);
		fprintf(f, " %9s %15s  ", str_thousands(blocks, sizeof(blocks), v[i].blocks),
			str_thousands(bytes, sizeof(bytes), v[i].bytes));
		put_site(rep, f, &v[i]);
		fputc('\n', f);
	}
	if (limit < known)
		fprintf(f, "and %zu more (-n)\n", known - (size_t)limit);
	put_rest(rep, f, &rep->sites->several, "several sites");
	put_rest(rep, f, &rep->sites->none, "not allocated, or not seen to be");
	xfree(v);
}

void report_pages_row_sites(const struct report *rep, FILE *f, const struct range *page)
{
	const struct of_page *p = &rep->sites->pages[page->at];
	const size_t shown = p->sites.n <= SHOWN + 1 && !p->more ? p->sites.n : SHOWN;

	for (size_t i = 0; i < shown && i < p->sites.n; i++) {
		fprintf(f, "%32sallocated by ", "");
		put_site(rep, f, &rep->sites->v.v[p->sites.v[i]]);
		fputc('\n', f);
	}
	if (shown < p->sites.n)
		fprintf(f, "%32sand by %zu%s other sites\n", "", p->sites.n - shown,
			p->more ? " or more" : "");
}

/* ---- JSON ---- */

static void put_json(const struct report *rep, struct json *j, const struct site *s)
{
	char address[STR_NUMBER];

	snprintf(address, sizeof(address), "0x%" PRIx64, s->address);
	json_open(j, '{');
	json_kstr(j, "address", address);
	json_ku64(j, "pid", report_pages_pid(rep, s->uid));
	json_kstr(j, "function", s->function);
	json_kstr(j, "module", s->module);
	if (s->module)
		json_ku64(j, "offset", s->offset);
	json_ku64(j, "blocks", s->blocks);
	json_ku64(j, "bytes", s->bytes);
	json_close(j, '}');
}

void report_pages_json_sites(const struct report *rep, struct json *j, const struct range *page)
{
	const struct of_page *p = &rep->sites->pages[page->at];

	json_key(j, "allocated_by");
	json_open(j, '[');
	for (size_t i = 0; i < p->sites.n; i++)
		put_json(rep, j, &rep->sites->v.v[p->sites.v[i]]);
	json_close(j, ']');
	if (p->more) {
		json_key(j, "more_sites");
		json_bool(j, true);
	}
}
