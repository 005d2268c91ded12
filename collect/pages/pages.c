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

/* ---- the end ---- */

int pages_write(struct pages *p, const char *dir)
{
	pages_maps_end(p);
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
	pages_maps_free(&p->maps);
	trace_pages_free(&p->out);
	xfree(p);
}
