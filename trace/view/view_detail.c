/* SPDX-License-Identifier: MIT */
/*
 * view_detail.c - the calls that are too short for the timeline of the whole view, in blocks that
 * the page unpacks when it shows a piece in which they can be seen.  The only file that knows zlib.
 *
 *   level n    calls of 4^n to 4^(n+1) ticks, a thread's together, as they end
 *   block      4,096 of them: their columns, packed, base64, at a known place in one long text
 *   index      for each block its thread, level, time, count and place
 *
 * A picture is some thousand pixels wide.  Calls shorter than half of one cannot be seen, so it
 * needs the levels above that, and of those the blocks that overlap it: as many at each scale.
 *
 * This is one more pass over the threads.  The first has counted calls by length; where not all
 * fit into the room for them, the shortest are left out, and the page says from where on.
 * Stretches off the CPUs that the page has not from the beginning go the same way, in blocks of
 * their own: depth 0, for a function whether the thread was preempted.
 *
 * Columns of a block, LEB128: end in ns (signed step from the one before, the first from the
 * view's begin), duration in ns, depth, function, flags.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#ifdef HAVE_ZLIB
#include <zlib.h>
#endif

#include "trace/analysis/offcpu.h"
#include "trace/view/view_impl.h"

#define BLOCK_CALLS 4096u
#define TRIAL_CALLS (64 * BLOCK_CALLS)
#define CALL_BYTES_MOST 16.0
#define LEVELS 32u
#ifdef HAVE_ZLIB
#define PACKED "deflate"
#else
#define PACKED ""
#endif

enum { END, DURATION, DEPTH, FUNCTION, FLAGS, NCOLUMNS };

struct level {
	struct view_bytes columns[NCOLUMNS];
	uint32_t n;
	int64_t begin, end; /* ns: of the earliest call, of the last */
};
struct block {
	unsigned level;
	int64_t begin, end;
	uint32_t n;
	uint64_t at, length;
};
struct detail {
	struct view *v;
	FILE *out;
	struct tracks *tracks;
	struct offcpu *off;
	struct level levels[LEVELS];
	VEC(struct block) blocks; /* of this lane */
	struct view_bytes whole, packed;
	FILE *index; /* JSON, to follow the text */
	char *index_text;
	size_t index_size;
	struct json j;
	uint64_t least; /* ticks: shorter calls have no room */
	uint64_t written, room;
	uint64_t trial; /* this many calls are only packed, to see how many bytes they take */
	uint32_t lane, depth;
	uint64_t dropped; /* calls of this lane, though long enough: they took more than usual */
};

/* ---- by length ---- */

/* 16 an octave */
unsigned view_detail_bucket(uint64_t ticks)
{
	unsigned octave;

	if (ticks < 16)
		return (unsigned)ticks;
	octave = 63 - (unsigned)__builtin_clzll(ticks);
	return 16 * (octave - 3) + (unsigned)(ticks >> (octave - 4) & 15);
}

static uint64_t bucket_begin(unsigned bucket)
{
	if (bucket < 16)
		return bucket;
	return (16 + bucket % 16ull) << (bucket / 16 - 1);
}

/* The shortest for which there is room, UINT64_MAX: none. */
static uint64_t least_that_fits(const struct view *v, double call_bytes)
{
	uint64_t room = (uint64_t)((double)v->o->detail / call_bytes), sum = 0;
	unsigned b = VIEW_BUCKETS;

	while (b && sum + v->short_calls[b - 1] <= room)
		sum += v->short_calls[--b];
	return sum ? bucket_begin(b) : UINT64_MAX;
}

static unsigned level_of(uint64_t ticks)
{
	return ticks ? (63 - (unsigned)__builtin_clzll(ticks)) / 2 : 0;
}

/* ---- blocks ---- */

static void pack(struct detail *d)
{
#ifdef HAVE_ZLIB
	uLongf size = compressBound(d->whole.n);

	if (d->packed.cap < size) {
		d->packed.cap = size;
		d->packed.v = xrealloc(d->packed.v, size);
	}
	if (compress2(d->packed.v, &size, d->whole.v, d->whole.n, Z_DEFAULT_COMPRESSION) != Z_OK)
		abort(); /* there is room enough: no memory */
	d->packed.n = size;
#else
	struct view_bytes other = d->packed;

	d->packed = d->whole;
	d->whole = other;
#endif
}

static void gather(struct detail *d, const struct level *l)
{
	d->whole.n = 0;
	for (int i = 0; i < NCOLUMNS; i++) {
		const struct view_bytes *c = &l->columns[i];

		if (d->whole.n + c->n > d->whole.cap) {
			d->whole.cap = 2 * (d->whole.n + c->n);
			d->whole.v = xrealloc(d->whole.v, d->whole.cap);
		}
		memcpy(d->whole.v + d->whole.n, c->v, c->n);
		d->whole.n += c->n;
	}
}

static void end_block(struct detail *d, unsigned level)
{
	struct level *l = &d->levels[level];
	uint64_t length;

	if (!l->n)
		return;
	gather(d, l);
	pack(d);
	length = (d->packed.n + 2) / 3 * 4;
	if (d->written + length <= d->room) {
		*vec_push(&d->blocks) = (struct block){.level = level,
						       .begin = l->begin,
						       .end = l->end,
						       .n = l->n,
						       .at = d->written,
						       .length = length};
		if (!d->trial)
			view_put_base64(d->out, &d->packed);
		d->written += length;
	} else {
		d->dropped += l->n;
	}
	l->n = 0;
	for (int i = 0; i < NCOLUMNS; i++)
		l->columns[i].n = 0;
}

static void add(struct detail *d, const struct view_span *s, uint32_t row)
{
	unsigned level = level_of(s->end - s->begin);
	struct level *l = &d->levels[level];
	int64_t begin = view_ns(d->v, s->begin), end = view_ns(d->v, s->end);

	if (!l->n)
		l->end = view_ns(d->v, d->v->from);
	if (!l->n || begin < l->begin)
		l->begin = begin;
	view_put_signed(&l->columns[END], end - l->end);
	view_put_number(&l->columns[DURATION], (uint64_t)(end - begin));
	view_put_number(&l->columns[DEPTH], row);
	view_put_number(&l->columns[FUNCTION], s->function);
	view_put_number(&l->columns[FLAGS], s->flags);
	l->end = end;
	if (row >= d->depth)
		d->depth = row + 1;
	if (++l->n == BLOCK_CALLS)
		end_block(d, level);
}

/* ---- calls ---- */

static void on_leave(void *ctx, const struct trace_event *e, const struct pair_call *call,
		     const struct track_call *c)
{
	struct detail *d = ctx;
	const struct view_lane *l = &d->v->lanes[d->lane];
	struct view_span s = view_span_of(call, c);

	(void)e;
	if (!view_span_shows(d->v, &s) || s.end - s.begin < d->least || d->trial == 1)
		return;
	d->trial -= d->trial > 1;
	if (!l->any_kept || view_span_is_less(&s, &l->least_kept))
		add(d, &s, view_row(&l->rows, &s));
}

static void open_tracks(struct detail *d)
{
	struct track_sink sink = {.ctx = d, .plans = d->v->plans, .leave = on_leave};

	d->tracks = tracks_open(d->v->t, &sink);
}

/* What has been fed to add(), and its places. */
static void put_blocks(struct detail *d, const char *key)
{
	struct json *j = &d->j;

	for (unsigned i = 0; i < LEVELS; i++)
		end_block(d, i);
	json_key(j, key);
	json_open(j, '[');
	vec_for(&d->blocks, b) {
		json_open(j, '[');
		json_u64(j, b->level);
		json_i64(j, b->begin);
		json_i64(j, b->end);
		json_u64(j, b->n);
		json_u64(j, b->at);
		json_u64(j, b->length);
		json_close(j, ']');
	}
	json_close(j, ']');
	d->blocks.n = 0;
}

static void feed_stretches(struct detail *d)
{
	const struct view_lane *l = &d->v->lanes[d->lane];
	struct offcpu_walk w;
	struct view_span s;

	offcpu_of(d->off, trace_lane_task(&d->v->t->lanes[d->lane]), &w);
	for (size_t i = 0; i < w.n; i++)
		if (view_cpus_stretch(d->v, d->lane, &w.v[i], &s) && s.end - s.begin >= d->least &&
		    (!l->any_off_kept || view_span_is_less(&s, &l->least_off_kept)))
			add(d, &s, s.depth);
}

static void put_lane(struct detail *d, uint32_t lane)
{
	struct json *j = &d->j;

	d->lane = lane;
	d->depth = 0;
	d->dropped = 0;
	json_open(j, '{');
	json_ku64(j, "lane", lane);
	if (d->v->lanes[lane].left_out)
		tracks_lane(d->tracks, lane);
	put_blocks(d, "blocks");
	json_ku64(j, "depth", d->depth);
	json_ku64(j, "dropped", d->dropped);
	if (d->v->lanes[lane].off_left_out)
		feed_stretches(d);
	put_blocks(d, "off");
	json_close(j, '}');
}

/* By the first ones of the thread with most of them, and a quarter more. */
static double try_packing(struct detail *d)
{
	uint32_t lane = d->v->order[d->v->t->nlanes - 1];
	uint64_t calls = 0;
	double bytes;

	if (least_that_fits(d->v, CALL_BYTES_MOST) == 0)
		return CALL_BYTES_MOST; /* all of them, in any case */
	d->lane = lane;
	d->trial = TRIAL_CALLS;
	d->room = UINT64_MAX;
	open_tracks(d);
	tracks_lane(d->tracks, lane);
	tracks_close(d->tracks);
	for (unsigned i = 0; i < LEVELS; i++)
		end_block(d, i);
	vec_for(&d->blocks, b)
		calls += b->n;
	bytes = calls ? 1.25 * (double)d->written / (double)calls : CALL_BYTES_MOST;
	d->blocks.n = 0;
	d->trial = 0;
	d->written = 0;
	d->room = d->v->o->detail;
	return bytes > CALL_BYTES_MOST ? CALL_BYTES_MOST : bytes;
}

static void put_lanes(struct detail *d)
{
	struct json *j = &d->j;

	json_open(j, '{');
	json_kstr(j, "packed", PACKED);
	json_ku64(j, "level_factor", 4);
	json_ku64(j, "least_ns", trace_ns(d->v->t, d->least));
	json_key(j, "lanes");
	json_open(j, '[');
	open_tracks(d);
	d->off = offcpu_open(d->v->t);
	for (uint32_t lane = 0; lane < d->v->t->nlanes; lane++)
		if (d->v->lanes[lane].shown &&
		    (d->v->lanes[lane].left_out || d->v->lanes[lane].off_left_out))
			put_lane(d, lane);
	offcpu_close(d->off);
	tracks_close(d->tracks);
	json_close(j, ']');
	json_close(j, '}');
}

static void detail_free(struct detail *d)
{
	for (unsigned i = 0; i < LEVELS; i++)
		for (int k = 0; k < NCOLUMNS; k++)
			view_bytes_free(&d->levels[i].columns[k]);
	view_bytes_free(&d->whole);
	view_bytes_free(&d->packed);
	vec_free(&d->blocks);
}

/* Base64 and numbers need no escape. */
static void put_detail(struct detail *d)
{
	d->index = open_memstream(&d->index_text, &d->index_size);
	if (!d->index)
		return;
	d->j = (struct json)JSON_INIT(d->index);
	fputs("\n</script>\n<script type=\"text/plain\" id=\"kron-detail\">", d->out);
	put_lanes(d);
	fclose(d->index);
	fputs("</script>\n<script type=\"application/json\" id=\"kron-detail-index\">\n", d->out);
	fwrite(d->index_text, 1, d->index_size, d->out);
	free(d->index_text);
}

void view_detail(struct view *v, FILE *out)
{
	struct detail d = {.v = v, .out = out, .room = v->o->detail};

	if (least_that_fits(v, 1) == UINT64_MAX || !v->t->nlanes)
		return; /* nothing, or nothing that any packing makes room for */
	d.least = least_that_fits(v, try_packing(&d));
	if (d.least != UINT64_MAX)
		put_detail(&d);
	detail_free(&d);
}
