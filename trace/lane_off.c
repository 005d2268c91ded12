/* SPDX-License-Identifier: MIT */
/*
 * lane_off.c - when the threads of lanes were off their processors, by the table of context switches: bounds for
 * samples that share a reading of the clock.  What reports say of it is trace/analysis/offcpu.h.
 */
#define _GNU_SOURCE
#include "trace/reader_impl.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/search.h"
#include "trace/sparse.h"

struct thread_off {
	uint32_t tid;
	size_t first, n; /* in v */
};

struct lanes_off {
	VEC(struct thread_off) threads; /* by number */
	VEC(struct sparse_off) v;
};

struct trace_switch *trace_switches(const struct trace *t, size_t *n)
{
	char *path = xasprintf("%s/switches", t->dir);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct trace_switch *v = NULL;
	struct stat st;
	size_t size, got = 0;
	ssize_t some = 1;

	*n = 0;
	xfree(path);
	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0) {
		size = (size_t)st.st_size;
		v = xmalloc(size);
		while (got < size && (some = read(fd, (char *)v + got, size - got)) > 0)
			got += (size_t)some;
	}
	close(fd);
	*n = got / sizeof(*v);
	return v;
}

static int by_thread(const void *a, const void *b)
{
	const struct trace_switch *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->tsc < y->tsc ? -1 : x->tsc > y->tsc;
}

/* A record may have been lost: one that left, and of whom the next is that he left, came back who knows when. */
static void take_switch(struct lanes_off *o, const struct trace_switch *r,
			const struct trace_switch *next)
{
	struct thread_off *t = o->threads.n ? &o->threads.v[o->threads.n - 1] : NULL;
	bool back = next && next->tid == r->tid && next->kind == TRACE_SWITCH_IN;

	if (r->kind != TRACE_SWITCH_OUT && r->kind != TRACE_SWITCH_PREEMPTED)
		return;
	if (!t || t->tid != r->tid) {
		t = vec_push(&o->threads);
		*t = (struct thread_off){.tid = r->tid, .first = o->v.n};
	}
	*vec_push(&o->v) = (struct sparse_off){r->tsc, back ? next->tsc : r->tsc};
	t->n++;
}

static struct lanes_off *lanes_off_read(const struct trace *t)
{
	struct lanes_off *o = xcalloc(1, sizeof(*o));
	struct trace_switch *v;
	size_t n, kept = 0;

	v = trace_switches(t, &n);
	for (size_t i = 0; i < n; i++)
		if (v[i].kind >= TRACE_SWITCH_IN && v[i].kind <= TRACE_SWITCH_PREEMPTED)
			v[kept++] = v[i];
	if (kept)
		qsort(v, kept, sizeof(*v), by_thread);
	for (size_t i = 0; i < kept; i++)
		take_switch(o, &v[i], i + 1 < kept ? &v[i + 1] : NULL);
	xfree(v);
	return o;
}

const struct sparse_off *lane_off(const struct trace *t, uint32_t tid, size_t *n)
{
	struct trace_priv *p = priv_of(t);
	const struct lanes_off *o;
	size_t at;

	if (!p->off)
		p->off = lanes_off_read(t);
	o = p->off;
	at = partition_point(i, o->threads.n, o->threads.v[i].tid < tid);
	*n = 0;
	if (at == o->threads.n || o->threads.v[at].tid != tid)
		return NULL;
	*n = o->threads.v[at].n;
	return o->v.v + o->threads.v[at].first;
}

void lanes_off_free(struct lanes_off *o)
{
	if (!o)
		return;
	vec_free(&o->threads);
	vec_free(&o->v);
	xfree(o);
}
