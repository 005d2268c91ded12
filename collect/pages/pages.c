/* SPDX-License-Identifier: MIT */
/* pages.c - see pages.h */
#include "collect/pages/pages.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void merge(struct pages *p)
{
	size_t n = 0;

	if (p->v.n)
		qsort(p->v.v, p->v.n, sizeof(p->v.v[0]), by_page);
	for (size_t i = 0; i < p->v.n; i++) {
		struct trace_page *to = n ? &p->v.v[n - 1] : NULL;

		if (to && !by_page(to, &p->v.v[i])) {
			to->reads += p->v.v[i].reads;
			to->writes += p->v.v[i].writes;
		} else {
			p->v.v[n++] = p->v.v[i];
		}
	}
	p->v.n = p->merged = n;
}

void pages_take(struct pages *p, const struct kron_chunk *c, uint32_t uid, uint32_t tid)
{
	const struct kron_page *r = (const struct kron_page *)c + 1;

	for (uint32_t i = 0; i < KRON_PAGES_IN_CHUNK; i++) {
		struct trace_page page = {
			.uid = uid,
			.tid = tid,
			.address = __atomic_load_n(&r[i].page, __ATOMIC_ACQUIRE),
			.reads = __atomic_load_n(&r[i].reads, __ATOMIC_RELAXED),
			.writes = __atomic_load_n(&r[i].writes, __ATOMIC_RELAXED),
		};

		if (page.address && (page.reads || page.writes))
			*vec_push(&p->v) = page;
	}
	if (p->v.n - p->merged > MERGE_AT)
		merge(p);
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
