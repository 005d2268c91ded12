/* SPDX-License-Identifier: MIT */
/* export_nest.c - see export_nest.h. */
#include "trace/export/export_nest.h"

#include <inttypes.h>

#define RECORDS_MOST (1u << 20) /* gathered at a time; 32 MiB */

enum { BEGIN, END, USER };
enum { INFERRED = 1, OPEN = 2, SPANS_LOSS = 4, JUMPED = 8 };

struct record {
	uint64_t tsc;
	uint32_t what; /* function, index of the user's event */
	uint32_t cpu;
	uint32_t payload, high;
	uint8_t kind, flags;
	bool is_wide;
	const struct trace_memory *memory; /* of ours once it is gathered */
};

struct buffer { /* of a track */
	VEC(struct record) records;
	uint64_t n; /* how many there are, or will be */
};

struct export_buffers {
	VEC(struct buffer) v;
};

/* ---- out ---- */

static uint64_t forward(struct export_nest *n, uint64_t tsc)
{
	if ((int64_t)(tsc - n->last) > 0)
		n->last = tsc;
	return n->last;
}

static void start_track(struct export_nest *n, uint32_t track)
{
	n->last = n->t->start_tsc;
	n->cpu = UINT32_MAX;
	if (n->track)
		n->track(n->ctx, n->lane, track);
}

/* Only track 0 has the lane's own records of it. */
static void say_cpu(struct export_nest *n, uint64_t tsc, uint32_t cpu)
{
	struct trace_event e = {.tsc = forward(n, tsc),
				.lane = n->lane,
				.cpu = cpu,
				.s = {.event = KRON_EVENT_CPU, .payload = cpu}};

	if (cpu == n->cpu || !n->special)
		return;
	n->cpu = cpu;
	n->special(n->ctx, &e);
}

static void give(struct export_nest *n, const struct record *r)
{
	uint64_t tsc = forward(n, r->tsc);
	struct track_call c = {.function = r->what,
			       .inferred = r->flags & INFERRED,
			       .open = r->flags & OPEN,
			       .spans_loss = r->flags & SPANS_LOSS,
			       .jumped = r->flags & JUMPED};
	struct trace_event e = {.tsc = tsc,
				.lane = n->lane,
				.cpu = r->cpu,
				.s = {.payload = r->payload},
				.is_wide = r->is_wide,
				.memory = r->memory,
				.high = r->high};

	if (n->from && r->cpu != UINT32_MAX)
		say_cpu(n, tsc, r->cpu);
	if (r->kind == BEGIN)
		n->begin(n->ctx, r->what, tsc);
	else if (r->kind == END)
		n->end(n->ctx, r->what, tsc, &c);
	else
		n->user_event(n->ctx, &e, &n->t->user_events[r->what]);
}

/* ---- in ---- */

/* What the event points to is gone with it. */
static void keep(struct buffer *b, const struct record *r)
{
	struct record *kept = vec_push(&b->records);

	*kept = *r;
	if (r->memory) {
		struct trace_memory *m = xmalloc(sizeof(*m));

		*m = *r->memory;
		kept->memory = m;
	}
}

static void take(struct export_nest *n, uint32_t track, const struct record *r)
{
	struct export_buffers *b = n->buffers;

	if (!n->from && track) { /* the first pass counts what the others will have */
		while (b->v.n <= track)
			vec_push(&b->v);
		b->v.v[track].n++;
	}
	if (track < n->from || track >= n->to)
		return;
	if (n->gathers)
		keep(&b->v.v[track], r);
	else
		give(n, r);
}

static void on_begin(void *ctx, const struct trace_event *e, const struct track_call *c)
{
	take(ctx, c->track,
	     &(struct record){.tsc = e->tsc, .what = c->function, .cpu = e->cpu, .kind = BEGIN});
}

static void on_end(void *ctx, const struct trace_event *e, const struct track_call *c)
{
	struct export_nest *n = ctx;

	take(n, c->track,
	     &(struct record){.tsc = c->exit_tsc,
			      .what = c->function,
			      .cpu = e ? e->cpu : UINT32_MAX,
			      .kind = END,
			      .flags = (uint8_t)((c->inferred ? INFERRED : 0) |
						 (c->open ? OPEN : 0) |
						 (c->spans_loss ? SPANS_LOSS : 0) |
						 (c->jumped ? JUMPED : 0))});
}

static void on_user_event(void *ctx, const struct trace_event *e, const struct trace_user_event *u,
			  uint32_t track)
{
	struct export_nest *n = ctx;

	if (n->user_event)
		take(n, track,
		     &(struct record){.tsc = e->tsc,
				      .what = (uint32_t)(u - n->t->user_events),
				      .cpu = e->cpu,
				      .payload = e->s.payload,
				      .high = e->high,
				      .is_wide = e->is_wide,
				      .memory = e->memory,
				      .kind = USER});
}

static void on_special(void *ctx, const struct trace_event *e)
{
	struct export_nest *n = ctx;
	struct trace_event at = *e;

	if (!n->special || n->from)
		return;
	at.tsc = forward(n, e->tsc);
	n->special(n->ctx, &at);
}

/* ---- passes ---- */

static void pass(struct export_nest *n, uint32_t from, uint32_t to, bool gathers)
{
	n->from = from;
	n->to = to;
	n->gathers = gathers;
	if (!gathers)
		start_track(n, from);
	tracks_lane(n->tracks, n->lane);
	for (uint32_t track = from; track < to && gathers; track++) {
		struct buffer *b = &n->buffers->v.v[track];

		start_track(n, track);
		vec_for(&b->records, r) {
			give(n, r);
			xfree((void *)r->memory);
		}
		vec_free(&b->records);
	}
}

void export_nest_open(struct export_nest *n)
{
	struct track_sink sink = {.ctx = n,
				  .begin = on_begin,
				  .end = on_end,
				  .special = on_special,
				  .user_event = on_user_event};

	n->tracks = tracks_open(n->t, &sink);
	n->buffers = xcalloc(1, sizeof(*n->buffers));
}

void export_nest_lane(struct export_nest *n, uint32_t lane)
{
	uint32_t to;

	n->lane = lane;
	n->buffers->v.n = 0;
	pass(n, 0, 1, false);
	for (uint32_t from = 1; from < n->buffers->v.n; from = to) {
		uint64_t sum = n->buffers->v.v[from].n;

		for (to = from + 1; to < n->buffers->v.n; to++) {
			sum += n->buffers->v.v[to].n;
			if (sum > RECORDS_MOST)
				break;
		}
		pass(n, from, to, n->buffers->v.v[from].n <= RECORDS_MOST);
	}
}

void export_nest_close(struct export_nest *n)
{
	tracks_close(n->tracks);
	vec_free(&n->buffers->v);
	xfree(n->buffers);
}

char *export_track_name(const char *name, uint32_t track)
{
	return track ? xasprintf("%s, stack %" PRIu32, name, track + 1) : xstrdup(name);
}

/* ---- a set ---- */

static size_t find_slot(const struct export_set *s, uint32_t number)
{
	size_t at = number * 2654435761u & (s->nslots - 1);

	while (s->slots[at] && s->slots[at] != (uint64_t)number + 1)
		at = (at + 1) & (s->nslots - 1);
	return at;
}

static void grow(struct export_set *s)
{
	struct export_set old = *s;

	s->nslots = old.nslots ? 2 * old.nslots : 256;
	s->slots = xcalloc(s->nslots, sizeof(*s->slots));
	for (size_t i = 0; i < old.nslots; i++)
		if (old.slots[i])
			s->slots[find_slot(s, (uint32_t)(old.slots[i] - 1))] = old.slots[i];
	xfree(old.slots);
}

bool export_set_add(struct export_set *s, uint32_t number)
{
	size_t at;

	if (2 * s->n >= s->nslots)
		grow(s);
	at = find_slot(s, number);
	if (s->slots[at])
		return false;
	s->slots[at] = (uint64_t)number + 1;
	s->n++;
	return true;
}

void export_set_free(struct export_set *s)
{
	xfree(s->slots);
}
