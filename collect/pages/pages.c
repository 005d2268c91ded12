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
#include <time.h>

#include "base/str.h"
#include "base/vec.h"
#include "board/bus/object.h"
#include "collect/kernel/process_maps.h"
#include "trace/pages.h"

/* Sums are made when there are so many new ones. */
#define MERGE_AT (1u << 18)

struct pages {
	VEC(struct trace_page) v;
	size_t merged;        /* of them, at the beginning: sorted, each page of a thread once */
	pthread_mutex_t held; /* of v, and of chunks that are taken: drain and control threads */
	pthread_mutex_t lock; /* of maps: server and drain threads */
	VEC(struct trace_mapping) maps;
};

int pages_open(struct pages **out, uint8_t *window, int fd, struct err *err)
{
	struct kron_page *none = (void *)(window + KRON_NO_PAGE_OFFSET);
	int code = object_get_pages(fd, KRON_NO_PAGE_OFFSET, sizeof(*none));
	struct pages *p;

	if (code)
		return err_set(err, -code, "no memory for page counters: %s", strerror(-code));
	none->page = KRON_NO_PAGE;
	p = xcalloc(1, sizeof(*p));
	pthread_mutex_init(&p->held, NULL);
	pthread_mutex_init(&p->lock, NULL);
	*out = p;
	return 0;
}

bool pages_are_in(const struct kron_chunk *c)
{
	/* Acquire: what the chunk is; partner: runtime/bus/pages.c. */
	return __atomic_load_n(&c->seq, __ATOMIC_ACQUIRE) && c->kind == KRON_CHUNK_OF_PAGES;
}

/* ---- counts ---- */

static int by_page(const void *a, const void *b)
{
	const struct trace_page *x = a, *y = b;

	if (x->uid != y->uid)
		return x->uid < y->uid ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static size_t add_up(struct trace_page *v, size_t all)
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
	p->v.n = p->merged = add_up(p->v.v, p->v.n);
}

/* A record as it is now; false: nothing was counted there. */
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

void pages_take(struct pages *p, const struct kron_chunk *c, uint32_t uid, uint32_t tid)
{
	struct trace_page page;

	for (uint32_t i = 0; i < KRON_PAGES_IN_CHUNK; i++) {
		if (!read_record(c, i, &page))
			continue;
		page.uid = uid;
		page.tid = tid;
		*vec_push(&p->v) = page;
	}
	if (p->v.n - p->merged > MERGE_AT)
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
	for (size_t i = 0; i < p->v.n; i++)
		if (p->v.v[i].uid == r->uid)
			sum_one(r, p->v.v[i]);
}

void pages_sum_chunk(struct pages_range *r, const struct kron_chunk *c)
{
	struct trace_page page;

	for (uint32_t i = 0; i < KRON_PAGES_IN_CHUNK; i++)
		if (read_record(c, i, &page))
			sum_one(r, page);
}

void pages_sum_end(struct pages_range *r)
{
	r->v.n = add_up(r->v.v, r->v.n);
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
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec;
}

void pages_send(const struct pages_range *r, int code, int fd)
{
	struct kron_control_counts *m = xcalloc(1, sizeof(*m));
	const uint64_t begin = seconds();
	bool is_heard = true;

	m->code = code;
	for (size_t i = 0; !code && i < r->v.n && is_heard; i++) {
		const struct trace_page *p = &r->v.v[i];

		if (m->n == KRON_CONTROL_COUNTS) {
			m->more = 1;
			is_heard = send_counts(fd, m) && seconds() - begin <= SEND_S;
			m->n = m->more = 0;
		}
		m->v[m->n++] = (struct kron_control_count){p->address, p->reads, p->writes};
	}
	if (is_heard)
		send_counts(fd, m);
	xfree(m);
}

/* ---- mappings ---- */

static struct trace_mapping *find_mapping(struct pages *p, uint32_t pid, uint64_t start,
					  const char *name)
{
	vec_for(&p->maps, m)
		if (m->pid == pid && m->start == start && !strcmp(m->name, name))
			return m;
	return NULL;
}

/* What is not mapped any more keeps its name, unless something else is there. */
static void note_mapping(struct pages *p, uint32_t pid, const struct process_mapping *m)
{
	struct trace_mapping *old = find_mapping(p, pid, m->start, m->path);

	if (!old) {
		old = vec_push(&p->maps);
		*old = (struct trace_mapping){
			.pid = pid, .start = m->start, .name = xstrdup(m->path)};
	}
	if (m->end > old->end)
		old->end = m->end;
}

void pages_look(struct pages *p, pid_t pid)
{
	struct process_maps maps;
	struct err err;

	if (process_maps_read(&maps, pid, &err))
		return;
	pthread_mutex_lock(&p->lock);
	for (size_t i = 0; i < maps.n; i++)
		note_mapping(p, (uint32_t)pid, &maps.v[i]);
	pthread_mutex_unlock(&p->lock);
	process_maps_free(&maps);
}

/* ---- the end ---- */

int pages_write(struct pages *p, const char *dir)
{
	merge(p);
	return trace_pages_write(dir, p->v.v, p->v.n, p->maps.v, p->maps.n);
}

void pages_free(struct pages *p)
{
	if (!p)
		return;
	vec_for(&p->maps, m)
		xfree(m->name);
	vec_free(&p->maps);
	vec_free(&p->v);
	xfree(p);
}
