/* SPDX-License-Identifier: MIT */
/*
 * trigger.h - a sequence of up to four steps, within a thread or, if it says so, across them:
 *
 *     SEQUENCE  = STEP { "then" STEP } [ "across" "threads" ]
 *     STEP      = CONDITION [ "within" TIME ]
 *     last STEP = CONDITION [ "within" TIME ] [ "without" CONDITION "within" TIME ]
 *               | NAME ">" TIME [ "and" CONDITION ]
 *
 *     A then B within 1ms then C       fires at the sample that completes it
 *     A without B within 20ms          fires when the 20 ms are over, and no B has come
 *     FUNC>20ms                        a call of FUNC takes longer: fires at 20 ms
 *
 * `within` after a step's condition: no more than this long after the sample of the step before.
 * Samples in between do not matter.  When a step could have been met by several samples, the
 * latest counts, so nothing that fits the words is missed; of several A that wait for a B, the
 * first, whose time is over first.  After firing it starts anew, in that thread.
 *
 * A B that is as late as TIME to the tick is in time.  Where samples were lost nobody knows what
 * did not come: the waiting ends, and does not fire.
 *
 * Time goes on without samples, so what waits is asked for separately:
 *
 *     trigger_due(t)    is the time of something over before t?  The earliest first
 *     trigger_settle()  it is dealt with
 *     trigger_feed(e)   the next sample, when nothing is due before it
 */
#ifndef TRACE_TRIGGER_H
#define TRACE_TRIGGER_H

#include "trace/analysis/condition.h"

#define TRIGGER_STEPS 4u

struct trigger;

/* label as in condition_parse(). */
int trigger_parse(struct trigger **out, const char *label, const char *text, struct err *err);
void trigger_free(struct trigger *g);

/* For a whole trace: names, threads, and the rate of its clock. */
void trigger_bind(struct trigger *g, const struct trace *t);
/* In parts, by who sees it grow.  A lane is told before its first sample. */
void trigger_bind_names(struct trigger *g, const struct trace_names *names);
void trigger_bind_lane(struct trigger *g, uint32_t lane, const struct trace_lane *l,
		       const struct trace_proc *p);
void trigger_set_rate(struct trigger *g, double hz);

/* Does a step ask for threads by name? */
bool trigger_names_threads(const struct trigger *g);
bool trigger_is_across(const struct trigger *g);
/* Does it wait for a time to be over? */
bool trigger_waits(const struct trigger *g);
/* For an event of this function, so that without its probes it waits in vain? */
bool trigger_waits_for(const struct trigger *g, uint32_t function);

/*
 * What of a sample is wanted, by its lane's state: the conditions that it may meet, or, with
 * trigger_test(), meets.  Changes with what is fed, but of another lane only across threads.
 */
struct trigger_wants {
	const uint8_t *by_event; /* bits; and after them, as long, those that need no test */
	uint32_t nevents;
	uint8_t mask;     /* the bits that matter in this lane now */
	uint32_t open_sp; /* of the deepest call that is waited for */
	/* The outermost call that runs matters: this is its place, 0: there is none. */
	uint32_t bottom;
	bool follows;
	/* What samples to come may undo, trigger_look_ahead(): */
	uint8_t passing; /* the bit of the step whose effect it is; 0: nothing can be undone */
	uint8_t undoing; /* the bit of what undoes it */
	bool is_unsure;  /* whether the call at open_sp is waited for: another one may begin */
	uint64_t limit;  /* in so many ticks */
	uint64_t over;   /* when the first time that this lane waits for is over */
};
#define TRIGGER_WANTS_FRAMES 0x80u
#define TRIGGER_WANTS_NEXT 0x40u
#define TRIGGER_STACK (1u << 20) /* farther apart than this are different stacks */
#define TRIGGER_APART 4096u      /* the next frame of a stack is nearer than this (pairs.c) */
struct trigger_wants trigger_wants(const struct trigger *g, uint32_t lane);

/* Does it begin or end the outermost call?  Of a function's entry or exit. */
static inline bool trigger_is_at_bottom(const struct trigger_wants *w, uint32_t event, uint32_t sp)
{
	return w->bottom ? w->bottom - sp - 1 >= TRIGGER_STACK : !(event & 1);
}
static inline bool trigger_is_outside(const struct trigger_wants *w, const struct kron_sample *s)
{
	return w->follows && s->event < w->nevents &&
	       w->by_event[s->event] & TRIGGER_WANTS_FRAMES &&
	       trigger_is_at_bottom(w, s->event, s->payload);
}

/* false: the sample is of no use. */
static inline bool trigger_may_want(const struct trigger_wants *w, const struct kron_sample *s)
{
	uint8_t bits = s->event < w->nevents ? w->by_event[s->event] : 0xff;

	if (trigger_is_outside(w, s))
		return true;
	bits &= w->mask;
	if (bits != TRIGGER_WANTS_FRAMES)
		return bits || (w->follows && kron_event_is_unwinding(s->event));
	/* inside of the call: that does not end it */
	return w->open_sp - s->payload - 1 >= TRIGGER_STACK || kron_event_is_unwinding(s->event);
}
/* Of an event that has its function's number (trace_resolve()). */
static inline bool trigger_may_want_event(const struct trigger_wants *w,
					  const struct trace_event *e)
{
	return e->jump || trigger_may_want(w, &e->s);
}

/*
 * Mostly what a sample begins is ended by one of the next ones: the call returns, B comes, another
 * A counts instead.  Who sees both need feed neither s nor, if it has no other use, n.
 *
 * trigger_may_undo(): does s do nothing but begin what can be undone?  Then look at what follows it
 * in its lane, until one does not say GO_ON.  UNDONE: s is of no use.  All of them are in the table
 * (nevents), and no sample is missing between them.
 *
 * That is so because the thread's state after n is the same: what s begins is over with n in any
 * case, n comes in time, and those between change neither.  What else n does it does in its turn.
 */
enum trigger_ahead { TRIGGER_GO_ON, TRIGGER_UNDONE, TRIGGER_STAYS };

static inline bool trigger_is_within_call(uint32_t sp, uint32_t inner, uint32_t most)
{
	return sp - inner - 1 < most;
}

static inline bool trigger_may_undo(const struct trigger_wants *w, const struct kron_sample *s,
				    uint64_t tsc)
{
	uint8_t bits = w->by_event[s->event] & w->mask;

	if (bits & ~(w->passing | w->undoing) || tsc > w->over || !(bits & w->passing))
		return false;
	/* without a bottom, what is of no use leaves none, either */
	if (w->bottom && trigger_is_outside(w, s))
		return false;
	return !(bits & TRIGGER_WANTS_FRAMES) ||
	       trigger_is_within_call(w->open_sp, s->payload, TRIGGER_STACK);
}

/* The same asked: it does not even begin anything, for A waits already, or FUNC further out. */
static inline bool trigger_is_nothing(const struct trigger_wants *w, const struct kron_sample *s)
{
	if (!(w->mask & w->undoing) || w->passing == w->undoing)
		return false;
	if (w->undoing != TRIGGER_WANTS_FRAMES)
		return !(w->by_event[s->event] & w->undoing);
	return !w->is_unsure && s->payload &&
	       trigger_is_within_call(w->open_sp, s->payload, TRIGGER_APART - 1);
}

/* Of a call at sp, and an event with these bits at `at`, whatever the time. */
static inline enum trigger_ahead trigger_look_into_call(uint8_t bits, uint32_t sp, uint32_t at)
{
	if (!sp || !at)
		return TRIGGER_STAYS;
	if (bits & TRIGGER_WANTS_FRAMES && at - sp < TRIGGER_APART)
		return TRIGGER_UNDONE;
	return !(bits & ~TRIGGER_WANTS_FRAMES) &&
			       (!bits || trigger_is_within_call(sp, at, TRIGGER_STACK))
		       ? TRIGGER_GO_ON
		       : TRIGGER_STAYS;
}

/* Does a call that s begins, and nothing else, wait for its end alone?  Then nothing before that is of
 * use: look_into_call() tells all. */
static inline bool trigger_waits_for_calls_only(const struct trigger_wants *w)
{
	return w->undoing == TRIGGER_WANTS_FRAMES &&
	       !(w->mask & (TRIGGER_WANTS_FRAMES | TRIGGER_WANTS_NEXT));
}

/* Does what undoes one do so to all that may be undone between the two? */
static inline bool trigger_undoes_all(const struct trigger_wants *w)
{
	return w->undoing != TRIGGER_WANTS_FRAMES && w->undoing != w->passing;
}

static inline enum trigger_ahead trigger_look_ahead(const struct trigger_wants *w,
						    const struct kron_sample *s, uint64_t s_tsc,
						    const struct kron_sample *n, uint64_t n_tsc)
{
	/* Nobody has exited by a jump meanwhile. */
	uint8_t bits = w->by_event[n->event] & (uint8_t)~TRIGGER_WANTS_NEXT;
	uint8_t sure = w->by_event[w->nevents + n->event];
	bool is_in_time = (int64_t)(n_tsc - s_tsc) <= (int64_t)w->limit && n_tsc <= w->over;

	if (w->undoing == TRIGGER_WANTS_FRAMES) {
		enum trigger_ahead a = trigger_look_into_call(bits, s->payload, n->payload);

		return a == TRIGGER_UNDONE && !is_in_time ? TRIGGER_STAYS : a;
	}
	if (w->undoing == w->passing && bits & ~w->passing)
		return TRIGGER_STAYS;
	if (sure & w->undoing)
		return is_in_time ? TRIGGER_UNDONE : TRIGGER_STAYS;
	return TRIGGER_GO_ON;
}
/* The bits of what it meets, 0: nothing.  Records of unwinders (board.h) are tested and fed, too. */
uint8_t trigger_test(const struct trigger *g, const struct trigger_wants *w,
		     const struct trace_event *e);

/*
 * The next sample in order of time, with trigger_test()'s answer; what is 0 need not be fed.
 * FIRES: at it.  WAITS: something waits from this sample on, whose trigger_due.since is its time.
 */
/*
 * May it be fed at once, ahead of other threads' samples before it?  Within threads, what does not
 * fire, and ends nothing whose time was over before, changes its own thread's state only.
 */
bool trigger_is_private(const struct trigger *g, const struct trace_event *e, uint8_t bits);
/*
 * FUNC>T, asked for the calls that take longer, and not for the moment when they do: fires when one has
 * ended, at the sample that tells so.  trigger_fired_since(): when it began, and *at: when it ended, if it is one
 * of these; 0: it is not.
 */
void trigger_fire_at_end(struct trigger *g);
uint64_t trigger_fired_since(const struct trigger *g, uint64_t *at);
/* Its T from now on, in ticks; trigger_set_rate() leaves it. */
void trigger_set_limit(struct trigger *g, uint64_t ticks);
enum trigger_answer { TRIGGER_NOTHING, TRIGGER_FIRES, TRIGGER_WAITS };
enum trigger_answer trigger_feed(struct trigger *g, const struct trace_event *e, uint8_t bits);

struct trigger_due {
	uint32_t lane;      /* of the sample that began it */
	uint64_t since, at; /* at: since + the time */
	uint64_t note;      /* trigger_note()'s */
};
/* The earliest that was over before t.  false: none. */
bool trigger_due(struct trigger *g, uint64_t t, struct trigger_due *out);
/* The one that trigger_due() named.  fires: the trigger has fired, else it was nothing. */
void trigger_settle(struct trigger *g, bool fires);
/* Keep a number with what the last trigger_feed() began to wait for. */
void trigger_note(struct trigger *g, uint64_t note);
/* The earliest moment that something waited for began, and the one when its time is over;
 * UINT64_MAX: nothing is waited for. */
uint64_t trigger_since(const struct trigger *g);
uint64_t trigger_until(const struct trigger *g);
/* Samples of this lane were lost before this moment; or of any, where all share a board's FIFO. */
void trigger_lost(struct trigger *g, uint32_t lane);
void trigger_lost_any(struct trigger *g);
/* As condition_unknown_name(). */
const char *trigger_unknown_name(const struct trigger *g, bool lanes);
/* How much was waited for in vain, because samples were lost. */
uint64_t trigger_unsure(const struct trigger *g);
/* The lane is another thread's from now on.  false: something waits in it, not yet. */
bool trigger_forget_lane(struct trigger *g, uint32_t lane);

/* "500" samples, or a time: "20us", "1.5ms".  0 or -EINVAL with the sentence. */
struct trigger_span {
	uint64_t samples, ns; /* one of them is set, or neither: nothing */
};
int trigger_parse_span(struct trigger_span *out, const char *label, const char *text,
		       struct err *err);

#endif
