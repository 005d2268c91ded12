/* SPDX-License-Identifier: MIT */
/*
 * view_spans.c - the longest calls of a thread, each with its begin and end.
 *
 * In the whole view, the calls that can be seen are the long ones; so a heap keeps the longest
 * that there is room for, and says how long the longest is that it left out.  Of the calls of
 * one length, the first ones are kept.  The others are for view_detail.c.
 *
 * Written for each, by begin: ns since the last one's begin, duration in ns, depth, function,
 * flags (LEB128).
 */
#include <stdlib.h>
#include <string.h>

#include "trace/view/view_impl.h"

void view_spans_reset(struct view_spans *s, size_t most)
{
	s->n = 0;
	s->most = most;
	s->left_out = 0;
	s->longest_left_out = 0;
}

static uint64_t length(const struct view_span *s)
{
	return s->end - s->begin;
}

bool view_span_is_less(const struct view_span *a, const struct view_span *b)
{
	if (length(a) != length(b))
		return length(a) < length(b);
	if (a->begin != b->begin)
		return a->begin > b->begin;
	if (a->track != b->track)
		return a->track > b->track;
	return a->depth > b->depth;
}

struct view_span view_span_of(const struct pair_call *call, const struct track_call *c)
{
	return (struct view_span){.begin = call->entry_tsc,
				  .end = call->exit_tsc,
				  .function = call->function,
				  .track = c->track,
				  .depth = c->level,
				  .flags = (call->inferred ? VIEW_INFERRED : 0) |
					   (call->open ? VIEW_OPEN : 0) |
					   (call->spans_loss ? VIEW_LOSS : 0) |
					   (call->inferred && call->jumped ? VIEW_JUMPED : 0)};
}

/* ---- rows ---- */

void view_rows_see(struct view_rows *r, const struct view_span *s)
{
	while (r->depth.n <= s->track)
		vec_push(&r->depth);
	if (s->depth >= r->depth.v[s->track])
		r->depth.v[s->track] = s->depth + 1;
}

void view_rows_lay_out(struct view_rows *r)
{
	uint32_t at = 0;

	r->first.n = 0;
	vec_for(&r->depth, depth) {
		*vec_push(&r->first) = at;
		at += *depth + 1;
	}
	vec_free(&r->depth);
}

void view_rows_free(struct view_rows *r)
{
	vec_free(&r->first);
	vec_free(&r->depth);
}

/* ---- the heap ---- */

bool view_span_shows(const struct view *v, const struct view_span *s)
{
	return s->end >= v->from && s->begin <= v->to && s->end >= s->begin;
}

static void rise(struct view_spans *s, size_t i)
{
	struct view_span x = s->v[i];

	for (; i && view_span_is_less(&x, &s->v[(i - 1) / 2]); i = (i - 1) / 2)
		s->v[i] = s->v[(i - 1) / 2];
	s->v[i] = x;
}

static void sink(struct view_spans *s, struct view_span x)
{
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= s->n)
			break;
		if (child + 1 < s->n && view_span_is_less(&s->v[child + 1], &s->v[child]))
			child++;
		if (!view_span_is_less(&s->v[child], &x))
			break;
		s->v[i] = s->v[child];
		i = child;
	}
	s->v[i] = x;
}

static void leave_out(struct view_spans *s, const struct view_span *x)
{
	s->left_out++;
	s->by_length[view_detail_bucket(length(x))]++;
	if (length(x) > s->longest_left_out)
		s->longest_left_out = length(x);
}

void view_spans_add(struct view_spans *s, const struct view_span *span)
{
	if (s->n < s->most) {
		if (s->n == s->cap) {
			s->cap = s->cap ? 2 * s->cap : 1024;
			s->v = xrealloc(s->v, s->cap * sizeof(*s->v));
		}
		s->v[s->n++] = *span;
		rise(s, s->n - 1);
		return;
	}
	if (!s->n || !view_span_is_less(&s->v[0], span)) {
		leave_out(s, span);
		return;
	}
	leave_out(s, &s->v[0]);
	sink(s, *span);
}

static int by_begin(const void *a, const void *b)
{
	const struct view_span *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	if (x->track != y->track)
		return x->track < y->track ? -1 : 1;
	return (x->depth > y->depth) - (x->depth < y->depth);
}

void view_spans_put(struct view_spans *s, const struct view *v, const struct view_rows *rows,
		    struct json *j)
{
	struct view_bytes out = {0};
	int64_t last = view_ns(v, v->from);

	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), by_begin);
	for (size_t i = 0; i < s->n; i++) {
		const struct view_span *x = &s->v[i];
		int64_t begin = view_ns(v, x->begin);

		view_put_signed(&out, begin - last);
		view_put_number(&out, (uint64_t)(view_ns(v, x->end) - begin));
		view_put_number(&out, view_row(rows, x));
		view_put_number(&out, x->function);
		view_put_number(&out, x->flags);
		last = begin;
	}
	json_ku64(j, "nspans", s->n);
	json_ku64(j, "left_out", s->left_out);
	json_ku64(j, "left_out_ns", trace_ns(v->t, s->longest_left_out));
	json_key(j, "spans");
	view_put_bytes(j, &out);
	view_bytes_free(&out);
}
