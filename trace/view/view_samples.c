/* SPDX-License-Identifier: MIT */
/*
 * view_samples.c - samples for the sample viewer, whole: every field as it was stored.
 *
 * All of them where there is room.  Else runs of samples that came one after another, evenly
 * over the view, the first and the last sample among them; and what follows each loss:
 *
 *   ████......████......██L█......████......████
 *
 * Written for each: how many were left out before it, ticks since the last one's, lane, CPU,
 * header byte (+ 256: the payload has 64 bits), source (as a difference from the lane's), data 63..32,
 * data 31..0 (LEB128), the upper half of a payload of 64 bits.
 */
#include "trace/jumps.h"
#include "trace/value.h"
#include "trace/view/view_impl.h"

enum { RUNS = 64, AFTER_LOSS = 16 };

struct loss {
	uint64_t tsc, lost;
	uint32_t lane;
};
struct mark { /* an event of the user */
	uint64_t tsc;
	uint32_t lane, event;
	uint64_t number;
	char *text; /* of a value that has a type */
};
struct view_samples {
	struct view *v;
	struct view_bytes out;
	uint64_t seen, kept, written; /* of those in the view; written: up to the last kept */
	uint64_t last;                /* TSC of the last one kept */
	uint64_t run, run_length;     /* index of the run that comes next or is going on */
	uint64_t after_loss, kept_for_losses;
	VEC(struct loss) losses;
	uint64_t nlosses, lost;
	VEC(struct mark) marks;
	uint64_t nmarks, every; /* one of `every` is kept */
	VEC(char *) memory;     /* of those kept that have such values */
	bool *jumps;            /* those that are named */
};

struct view_samples *view_samples_open(struct view *v)
{
	struct view_samples *s = xcalloc(1, sizeof(*s));

	s->v = v;
	s->last = v->from;
	s->every = 1;
	s->jumps = xcalloc(v->t->njumps + 1, sizeof(*s->jumps));
	s->run_length = v->budget.samples / RUNS;
	return s;
}

static bool lies_in_a_run(struct view_samples *s)
{
	uint64_t n = s->v->samples, at = s->seen, start;

	if (n <= s->v->budget.samples)
		return true;
	for (;; s->run++) {
		if (s->run == RUNS)
			return false;
		start = (uint64_t)((double)(n - s->run_length) / (RUNS - 1) * (double)s->run);
		if (s->run == RUNS - 1)
			start = n - s->run_length;
		if (at < start + s->run_length)
			return at >= start;
	}
}

static bool is_near_a_loss(struct view_samples *s, const struct trace_event *e)
{
	if (e->s.event == KRON_EVENT_LOST)
		s->after_loss = AFTER_LOSS;
	if (!s->after_loss || s->kept_for_losses >= s->v->budget.samples / 4)
		return false;
	s->after_loss--;
	s->kept_for_losses++;
	return true;
}

static void keep_memory(struct view_samples *s, const struct trace_event *e)
{
	const struct trace_user_event *u = trace_user_event_of(s->v->t, e->s.event);
	char text[VALUE_TEXT];

	*vec_push(&s->memory) = xstrdup(u ? value_text(value_of(u, e), text) : "?");
}

static void keep(struct view_samples *s, const struct trace_event *e)
{
	struct view_bytes *b = &s->out;

	view_put_number(b, s->seen - s->written);
	view_put_signed(b, (int64_t)(e->tsc - s->last));
	view_put_number(b, e->lane);
	view_put_number(b, e->cpu);
	view_put_number(b, e->s.head >> 24 | (e->is_wide ? 0x100 : 0) | (e->memory ? 0x200 : 0));
	view_put_number(b, e->s.source ^ s->v->t->lanes[e->lane].source);
	view_put_number(b, e->s.payload);
	view_put_number(b, trace_stored_event(e));
	if (e->is_wide)
		view_put_number(b, e->high);
	if (e->memory)
		keep_memory(s, e);
	if (e->jump)
		s->jumps[e->jump - 1] = true;
	s->last = e->tsc;
	s->written = s->seen + 1;
	s->kept++;
}

static void note_loss(struct view_samples *s, const struct trace_event *e)
{
	s->nlosses++;
	s->lost += e->s.payload;
	if (s->losses.n < s->v->budget.losses)
		*vec_push(&s->losses) =
			(struct loss){.tsc = e->tsc, .lane = e->lane, .lost = e->s.payload};
}

/* Evenly over the view, though nobody knows how many will come: when full, every other goes. */
static void note_mark(struct view_samples *s, const struct trace_event *e,
		      const struct trace_user_event *u)
{
	char text[VALUE_TEXT];
	struct value v;

	if (s->nmarks++ % s->every)
		return;
	if (s->marks.n == s->v->budget.losses) {
		for (size_t i = 0; i < s->marks.n; i++)
			if (i % 2)
				xfree(s->marks.v[i].text);
			else
				s->marks.v[i / 2] = s->marks.v[i];
		s->marks.n = (s->marks.n + 1) / 2;
		s->every *= 2;
		if ((s->nmarks - 1) % s->every)
			return;
	}
	v = value_of(u, e);
	*vec_push(&s->marks) =
		(struct mark){.tsc = e->tsc,
			      .lane = e->lane,
			      .event = e->s.event,
			      .number = v.number,
			      .text = v.type.form ? xstrdup(value_text(v, text)) : NULL};
}

void view_samples_feed(struct view_samples *s, const struct trace_event *e)
{
	const struct trace_user_event *u = NULL;
	bool in_run, near;

	if (!view_holds(s->v, e->tsc))
		return;
	if (e->s.event == KRON_EVENT_LOST)
		note_loss(s, e);
	if (s->v->t->nuser_events)
		u = trace_user_event_of(s->v->t, e->s.event);
	if (u)
		note_mark(s, e, u);
	in_run = lies_in_a_run(s);
	near = !in_run && is_near_a_loss(s, e);
	if (in_run || near)
		keep(s, e);
	s->seen++;
}

static void put_losses(struct view_samples *s)
{
	struct json *j = &s->v->j;

	json_ku64(j, "loss_places", s->nlosses);
	json_ku64(j, "lost_in_view", s->lost);
	json_key(j, "losses");
	json_open(j, '[');
	vec_for(&s->losses, l) {
		json_open(j, '[');
		json_i64(j, view_ns(s->v, l->tsc));
		json_u64(j, l->lane);
		json_u64(j, l->lost);
		json_close(j, ']');
	}
	json_close(j, ']');
}

static void put_marks(struct view_samples *s)
{
	struct json *j = &s->v->j;

	json_ku64(j, "all_marks", s->nmarks);
	json_key(j, "marks");
	json_open(j, '[');
	vec_for(&s->marks, m) {
		json_open(j, '[');
		json_i64(j, view_ns(s->v, m->tsc));
		json_u64(j, m->lane);
		json_u64(j, m->event);
		if (m->text)
			json_str(j, m->text);
		else
			json_u64(j, m->number);
		json_close(j, ']');
	}
	json_close(j, ']');
}

/* Exits by a jump: number, whose, where to. */
static void put_jumps(struct view_samples *s)
{
	const struct trace *t = s->v->t;
	struct json *j = &s->v->j;
	char buf[32];

	json_key(j, "jumps");
	json_open(j, '[');
	for (uint32_t i = 0; i < t->njumps; i++) {
		const char *to;

		if (!s->jumps[i])
			continue;
		to = trace_jump_name(t, i + 1, buf, sizeof(buf));
		json_open(j, '[');
		json_u64(j, KRON_EVENT_JUMP(i));
		json_u64(j, t->jumps[i].function);
		view_put_name(j, to ? to : "");
		json_close(j, ']');
	}
	json_close(j, ']');
}

void view_samples_put(struct view_samples *s)
{
	struct json *j = &s->v->j;

	json_key(j, "samples");
	json_open(j, '{');
	json_ku64(j, "all", s->seen);
	json_ku64(j, "kept", s->kept);
	json_key(j, "data");
	view_put_bytes(j, &s->out);
	json_key(j, "memory");
	json_open(j, '[');
	vec_for(&s->memory, text)
		json_str(j, *text);
	json_close(j, ']');
	json_close(j, '}');
	put_losses(s);
	put_marks(s);
	put_jumps(s);
}

void view_samples_free(struct view_samples *s)
{
	view_bytes_free(&s->out);
	vec_free(&s->losses);
	vec_for(&s->marks, m)
		xfree(m->text);
	vec_free(&s->marks);
	vec_for(&s->memory, text)
		xfree(*text);
	vec_free(&s->memory);
	xfree(s->jumps);
	xfree(s);
}
