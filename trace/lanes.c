/* SPDX-License-Identifier: MIT */
/*
 * lanes.c - finds the chunks in the `samples` file and groups them into lanes: all chunks of
 * one thread of one process, in order of their sequence numbers.
 *
 * Lanes come in order of (process uid, thread id).  A thread id that a later thread of the same
 * process got again continues the lane: the records do not tell the two apart.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace/reader_impl.h"

#define GIVE_BACK ((size_t)16 << 20) /* looking at headers maps all pages between them */

static int by_lane_and_seq(const void *a, const void *b)
{
	const struct chunk_ref *x = a, *y = b;

	if (x->proc_uid != y->proc_uid)
		return x->proc_uid < y->proc_uid ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return (x->off > y->off) - (x->off < y->off);
}

static bool same_lane(const struct chunk_ref *x, const struct chunk_ref *y)
{
	return x->proc_uid == y->proc_uid && x->tid == y->tid;
}

static void find_chunks(struct trace *t)
{
	struct trace_priv *p = priv_of(t);
	struct trace_chunk head;
	const uint8_t *samples;
	size_t off = 0, given_back = 0;

	while ((samples = chunk_map_next(&p->map, &off, &head, &t->damaged))) {
		struct chunk_ref *c = vec_push(&p->chunks);

		c->seq = head.seq;
		c->off = (uint64_t)(samples - p->map.base);
		c->nbytes = head.nbytes;
		c->proc_uid = head.proc_uid;
		c->tid = head.tid;
		c->source = head.source;
		c->packed = head.magic == TRACE_PACKED_MAGIC;
		t->cut_off += head.holes;
		if (off - given_back >= GIVE_BACK) {
			given_back = off & ~(size_t)(GIVE_BACK - 1);
			madvise((void *)(uintptr_t)p->map.base, given_back, MADV_DONTNEED);
		}
	}
}

/* `kron recover` may have written a chunk that the killed collector had just written. */
static void drop_doubles(struct trace *t)
{
	struct trace_priv *p = priv_of(t);
	size_t out = 0;

	for (size_t i = 0; i < p->chunks.n; i++) {
		const struct chunk_ref *c = &p->chunks.v[i];

		if (out && same_lane(&p->chunks.v[out - 1], c) &&
		    p->chunks.v[out - 1].seq == c->seq)
			continue;
		p->chunks.v[out++] = *c;
	}
	p->chunks.n = out;
}

static void group_chunks(struct trace *t)
{
	struct trace_priv *p = priv_of(t);

	t->nlanes = 0;
	for (size_t i = 0; i < p->chunks.n; i++)
		if (!i || !same_lane(&p->chunks.v[i - 1], &p->chunks.v[i]))
			t->nlanes++;
	t->lanes = xcalloc(t->nlanes, sizeof(*t->lanes));
	p->lane_first = xcalloc(t->nlanes + 1, sizeof(*p->lane_first));
	for (size_t i = 0, lane = 0; i < p->chunks.n; i++) {
		const struct chunk_ref *c = &p->chunks.v[i];

		if (i && same_lane(c - 1, c))
			continue;
		t->lanes[lane].proc_uid = c->proc_uid;
		t->lanes[lane].tid = c->tid;
		t->lanes[lane].source = c->source;
		t->lanes[lane].name = "";
		p->lane_first[lane++] = (uint32_t)i;
	}
	p->lane_first[t->nlanes] = (uint32_t)p->chunks.n;
}

int lanes_read(struct trace *t, int dirfd, struct err *err)
{
	struct trace_priv *p = priv_of(t);
	int fd = openat(dirfd, "samples", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int ret = fd < 0 ? -errno : chunk_map_open(&p->map, fd);

	if (fd >= 0)
		close(fd);
	if (ret && ret != -ENOENT)
		return err_set(err, -ret, "cannot read %s/samples: %s", t->dir,
			       ret == -EINVAL ? "not a regular file" : strerror(-ret));
	find_chunks(t);
	if (p->chunks.n)
		qsort(p->chunks.v, p->chunks.n, sizeof(*p->chunks.v), by_lane_and_seq);
	drop_doubles(t);
	group_chunks(t);
	return 0;
}

static const struct chunk_map *map_of(const struct trace *t, const struct chunk_ref *c)
{
	const struct trace_priv *p = priv_of(t);

	return p->joined ? &priv_of(p->joined[c->node].t)->map : &p->map;
}

static void advise(const struct trace *t, const struct chunk_ref *c, uintptr_t unit, int advice)
{
	const struct chunk_map *m = map_of(t, c);
	uintptr_t from = (uintptr_t)(m->base + c->off) & ~(unit - 1);
	uintptr_t to = (uintptr_t)(m->base + c->off + c->nbytes);

	if (from < (uintptr_t)m->base)
		from = (uintptr_t)m->base;
	madvise((void *)from, to - from, advice);
}

static void give_back(const struct chunk_map *m)
{
	if (m->base)
		madvise((void *)(uintptr_t)m->base, m->size, MADV_DONTNEED);
}

void lanes_will_read(const struct trace *t, const struct chunk_ref *c)
{
#ifdef MADV_POPULATE_READ
	int advice = MADV_POPULATE_READ;
#else
	int advice = MADV_WILLNEED;
#endif

	advise(t, c, (uintptr_t)sysconf(_SC_PAGESIZE), advice);
}

/*
 * A fault maps the pages around it, too, in aligned windows of 64 KiB, and more where the page
 * cache holds the file in large pieces.  So give back the windows of each chunk, and everything
 * now and then; what is still being read comes back by itself.
 */
void lanes_have_read(const struct trace *t, const struct chunk_ref *c)
{
	struct trace_priv *p = priv_of(t);

	advise(t, c, 65536, MADV_DONTNEED);
	p->read += c->nbytes;
	if (p->progress)
		p->progress(p->read, p->pass);
	p->read_since += c->nbytes;
	if (p->read_since >= GIVE_BACK) {
		p->read_since = 0;
		give_back(&p->map);
		for (size_t i = 0; i < p->njoined; i++)
			give_back(&priv_of(p->joined[i].t)->map);
	}
}

void lanes_walk(const struct trace *t, const struct chunk_ref *c, struct sample_walk *w)
{
	lanes_will_read(t, c);
	sample_walk_start(w, map_of(t, c)->base + c->off, c->nbytes, c->packed);
}

void trace_count(struct trace *t)
{
	struct trace_priv *p = priv_of(t);
	uint64_t lost = 0;

	if (p->counted)
		return;
	p->counted = true;
	for (size_t lane = 0; lane < t->nlanes; lane++) {
		for (uint32_t i = p->lane_first[lane]; i < p->lane_first[lane + 1]; i++) {
			const struct chunk_ref *c = &p->chunks.v[i];
			const struct kron_sample *s;
			struct sample_walk w;

			lanes_walk(t, c, &w);
			while ((s = sample_walk_next(&w, &t->damaged))) {
				if (s->event < KRON_EVENT_SPECIAL)
					t->lanes[lane].samples++;
				else if (s->event == KRON_EVENT_LOST)
					lost += s->payload;
			}
			lanes_have_read(t, c);
		}
		t->samples += t->lanes[lane].samples;
	}
	if (!t->complete && t->lost < lost)
		t->lost = lost;
}
