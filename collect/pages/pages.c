/* SPDX-License-Identifier: MIT */
/* pages.c - see pages.h */
#include "collect/pages/pages.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/vec.h"
#include "board/bus/object.h"
#include "collect/kernel/process_maps.h"
#include "collect/pages/impl.h"

/* Where threads are must be looked for more often than people want to see steps. */
#define NODES_EVERY_NS 50000000u

_Static_assert(KRON_WATCH_OFFSET - KRON_NO_PAGE_OFFSET >= sizeof(struct kron_page) &&
		       KRON_WATCH_OFFSET + sizeof(struct kron_watch) <= KRON_MODEL_OFFSET,
	       "beside the record of no page");

int pages_open(struct pages **out, const struct pages_setup *setup, uint8_t *window, int fd,
	       struct err *err)
{
	struct kron_page *none = (void *)(window + KRON_NO_PAGE_OFFSET);
	int code = object_get_pages(fd, KRON_NO_PAGE_OFFSET,
				    KRON_WATCH_OFFSET + sizeof(struct kron_watch) -
					    KRON_NO_PAGE_OFFSET);
	struct pages *p;

	if (code)
		return err_set(err, -code, "no memory for page counters: %s", strerror(-code));
	none->page = KRON_NO_PAGE;
	p = xcalloc(1, sizeof(*p));
	p->watch = (void *)(window + KRON_WATCH_OFFSET);
	*p->watch = (struct kron_watch){.by_address = setup->by_address};
	code = nodes_read(&p->nodes, err);
	if (code) {
		xfree(p);
		return code;
	}
	p->setup = *setup;
	p->out.unit = setup->unit;
	p->out.nodes = p->nodes.n;
	p->out.is_test = p->nodes.is_test;
	p->start_ns = setup->start_ns;
	p->every_ns = setup->every_ns;
	if (!p->every_ns && (pages_have_nodes(p) || setup->migrate.on))
		p->every_ns = NODES_EVERY_NS;
	p->next_ns = clock_ns(CLOCK_MONOTONIC) + p->every_ns;
	pthread_mutex_init(&p->held, NULL);
	pthread_mutex_init(&p->lock, NULL);
	*out = p;
	return 0;
}

bool pages_are_counted(const struct pages *p)
{
	return p->setup.unit == TRACE_PAGE_SIZE;
}

void pages_watch(struct pages *p, uint64_t address)
{
	const uint64_t line = address - address % TRACE_LINE_SIZE;
	struct kron_watch *w = p->watch;
	uint32_t n;

	pthread_mutex_lock(&p->lock);
	for (n = w->n; n && w->line[n - 1] != line; n--)
		;
	if (!n && w->n < KRON_WATCH_LINES) {
		w->line[w->n] = line;
		/* Release: the line; partner: runtime/bus/pages.c. */
		__atomic_store_n(&w->n, w->n + 1, __ATOMIC_RELEASE);
	} else if (!n) {
		p->watch_is_full = true;
	}
	pthread_mutex_unlock(&p->lock);
}

void pages_watch_none(struct pages *p)
{
	pthread_mutex_lock(&p->lock);
	/* Release: as above. */
	__atomic_store_n(&p->watch->n, 0, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&p->lock);
}

bool pages_watch_is_full(const struct pages *p)
{
	return p->watch_is_full;
}

bool pages_are_in(const struct kron_chunk *c)
{
	/* Acquire: what the chunk is; partner: runtime/bus/pages.c. */
	return __atomic_load_n(&c->seq, __ATOMIC_ACQUIRE) &&
	       KRON_CHUNK_KIND(c->kind) == KRON_CHUNK_OF_PAGES;
}

/* ---- counts ---- */

static int by_page(const void *a, const void *b)
{
	const struct trace_page *x = a, *y = b;

	if (x->uid != y->uid)
		return x->uid < y->uid ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

size_t pages_add_up(struct trace_page *v, size_t all)
{
	size_t n = 0;

	if (all)
		qsort(v, all, sizeof(*v), by_page);
	for (size_t i = 0; i < all; i++) {
		struct trace_page *to = n ? &v[n - 1] : NULL;

		if (to && !by_page(to, &v[i])) {
			to->reads += v[i].reads;
			to->writes += v[i].writes;
		} else {
			v[n++] = v[i];
		}
	}
	return n;
}

static void merge(struct pages *p)
{
	p->out.v.n = p->merged = pages_add_up(p->out.v.v, p->out.v.n);
}

static bool read_record(const struct kron_chunk *c, uint32_t i, struct trace_page *out)
{
	const struct kron_page *r = (const struct kron_page *)c + 1 + i;

	*out = (struct trace_page){
		.address = __atomic_load_n(&r->page, __ATOMIC_ACQUIRE),
		.reads = __atomic_load_n(&r->reads, __ATOMIC_RELAXED),
		.writes = __atomic_load_n(&r->writes, __ATOMIC_RELAXED),
	};
	return out->address && (out->reads || out->writes);
}

const struct pages_seen *pages_seen_at(const struct pages *p, uint32_t chunk,
				       const struct kron_chunk *c)
{
	const struct pages_seen *s = chunk < p->seen.n ? p->seen.v[chunk] : NULL;

	return s && s->seq == c->seq ? s : NULL;
}

bool pages_read_new(const struct pages_seen *seen, const struct kron_chunk *c, uint32_t i,
		    struct trace_page *out)
{
	if (!read_record(c, i, out))
		return false;
	if (seen) {
		out->reads -= seen->v[i].reads;
		out->writes -= seen->v[i].writes;
	}
	return out->reads || out->writes;
}

void pages_add(struct pages *p, const struct trace_page *page)
{
	*vec_push(&p->out.v) = *page;
	if (p->out.v.n - p->merged > MERGE_AT)
		merge(p);
}

/* ---- while it runs ---- */

void pages_hold(struct pages *p)
{
	pthread_mutex_lock(&p->held);
}

void pages_let_go(struct pages *p)
{
	pthread_mutex_unlock(&p->held);
}

static void sum_one(struct pages_range *r, struct trace_page page)
{
	if (page.address < r->start || page.address >= r->end)
		return;
	page.uid = page.tid = 0;
	*vec_push(&r->v) = page;
}

void pages_sum_taken(const struct pages *p, struct pages_range *r)
{
	for (size_t i = 0; i < p->out.v.n; i++)
		if (p->out.v.v[i].uid == r->uid)
			sum_one(r, p->out.v.v[i]);
}

void pages_sum_chunk(const struct pages *p, struct pages_range *r, uint32_t chunk,
		     const struct kron_chunk *c)
{
	const struct pages_seen *seen = pages_seen_at(p, chunk, c);
	struct trace_page page;

	for (uint32_t i = 0; i < KRON_PAGES_IN_CHUNK; i++) {
		if (!pages_read_new(seen, c, i, &page))
			continue;
		page.node = pages_have_nodes(p) ? TRACE_NODE_UNKNOWN : 0;
		sum_one(r, page);
	}
}

void pages_sum_end(struct pages_range *r)
{
	r->v.n = pages_add_up(r->v.v, r->v.n);
}

static bool send_counts(int fd, struct kron_control_counts *m)
{
	size_t n = offsetof(struct kron_control_counts, v) + m->n * sizeof(m->v[0]);

	return send(fd, m, n, MSG_NOSIGNAL) == (ssize_t)n;
}

/* Who fetches its answer slowly is not to keep the recorder from its end. */
#define SEND_S 5

static uint64_t seconds(void)
{
	return clock_ms(CLOCK_MONOTONIC) / 1000;
}

void pages_send(const struct pages *p, const struct pages_range *r, int code, int fd)
{
	struct kron_control_counts *m = xcalloc(1, sizeof(*m));
	const uint64_t begin = seconds();
	bool is_heard = true;

	m->code = code;
	m->nodes = p ? p->nodes.n : 1;
	m->absolute = p && p->setup.migrate.on ? p->setup.migrate.absolute : 0;
	m->differential = p && p->setup.migrate.on ? p->setup.migrate.differential : 0;
	for (size_t i = 0; !code && i < r->v.n && is_heard; i++) {
		const struct trace_page *one = &r->v.v[i];

		if (m->n == KRON_CONTROL_COUNTS) {
			m->more = 1;
			is_heard = send_counts(fd, m) && seconds() - begin <= SEND_S;
			m->n = m->more = 0;
		}
		m->v[m->n++] = (struct kron_control_count){one->address, one->reads, one->writes,
							   one->node, 0};
	}
	if (is_heard)
		send_counts(fd, m);
	xfree(m);
}

/* ---- mappings ---- */

void pages_name_owner(struct pages *p, uint32_t ticket, uint32_t uid)
{
	if (!ticket)
		return;
	pthread_mutex_lock(&p->lock);
	for (size_t i = 0; i < p->tickets.n; i++) {
		if (p->tickets.v[i] != ticket)
			continue;
		p->out.maps.v[i].uid = uid;
		p->tickets.v[i] = 0;
	}
	pthread_mutex_unlock(&p->lock);
}

static bool is_owners(const struct pages *p, size_t i, uint32_t uid, uint32_t ticket)
{
	const uint32_t of = p->out.maps.v[i].uid;

	return of ? of == uid : p->tickets.v[i] == ticket;
}

static struct trace_mapping *find_mapping(struct pages *p, const struct trace_mapping *like,
					  uint32_t ticket)
{
	for (size_t i = 0; i < p->out.maps.n; i++) {
		struct trace_mapping *m = &p->out.maps.v[i];

		if (m->start == like->start && is_owners(p, i, like->uid, ticket) &&
		    !strcmp(m->name, like->name))
			return m;
	}
	return NULL;
}

/*
 * A process that executes another program has that one's mappings already while it is still taken for the first.  Each
 * program has its [vdso] elsewhere, or none as long as it is made ready, and a forked child has its parent's.  What was
 * noted of this program itself may have no uid yet.
 */
static bool is_next_program(const struct pages *p, const struct process_maps *maps, pid_t pid,
			    uint32_t uid, uint32_t ticket)
{
	bool is_known = ticket, any = false;
	uint64_t vdso = 0;

	for (size_t i = 0; i < maps->n; i++)
		if (!strcmp(maps->v[i].path, "[vdso]"))
			vdso = maps->v[i].start;
	for (size_t i = 0; i < p->out.maps.n; i++) {
		const struct trace_mapping *m = &p->out.maps.v[i];

		if (strcmp(m->name, "[vdso]") != 0)
			continue;
		if (is_owners(p, i, uid, ticket))
			return m->start != vdso;
		is_known |= (m->pid != (uint32_t)pid || !m->uid) && m->start == vdso;
		any = true;
	}
	return any && !is_known;
}

/* What is not mapped any more keeps its name, unless something else is there. */
static void note_mapping(struct pages *p, const struct trace_mapping *m, uint32_t ticket)
{
	struct trace_mapping *old = find_mapping(p, m, ticket);

	if (!old) {
		old = vec_push(&p->out.maps);
		*old = *m;
		old->name = xstrdup(m->name);
		*vec_push(&p->tickets) = m->uid ? 0 : ticket;
	}
	if (m->end > old->end)
		old->end = m->end;
}

void pages_note_maps(struct pages *p, pid_t pid, uint32_t uid, uint32_t ticket)
{
	struct process_maps maps;
	struct err err;

	if (process_maps_read(&maps, pid, &err))
		return;
	pthread_mutex_lock(&p->lock);
	for (size_t i = 0, n = is_next_program(p, &maps, pid, uid, ticket) ? 0 : maps.n; i < n;
	     i++) {
		const struct process_mapping *m = &maps.v[i];

		note_mapping(p,
			     &(struct trace_mapping){.uid = uid,
						     .pid = (uint32_t)pid,
						     .start = m->start,
						     .end = m->end,
						     .offset = m->off,
						     .name = (char *)m->path},
			     ticket);
	}
	pthread_mutex_unlock(&p->lock);
	process_maps_free(&maps);
	if (p->setup.on_maps)
		p->setup.on_maps(p->setup.ctx, pid);
}

/* ---- the end ---- */

/* Of processes that have counted nothing: no page is theirs. */
static void drop_unknown_maps(struct pages *p)
{
	size_t n = 0;

	vec_for(&p->out.maps, m) {
		if (m->uid)
			p->out.maps.v[n++] = *m;
		else
			xfree(m->name);
	}
	p->out.maps.n = n;
	p->tickets.n = 0;
}

int pages_write(struct pages *p, const char *dir)
{
	drop_unknown_maps(p);
	merge(p);
	pages_merge_functions(p);
	pages_look_end(p);
	return trace_pages_write(dir, &p->out);
}

void pages_free(struct pages *p)
{
	if (!p)
		return;
	vec_for(&p->seen, s)
		xfree(*s);
	vec_free(&p->seen);
	vec_free(&p->step);
	vec_free(&p->since);
	vec_free(&p->lives);
	vec_free(&p->tickets);
	trace_pages_free(&p->out);
	xfree(p);
}
