/* SPDX-License-Identifier: MIT */
/* trigger_impl.h - what trigger_parse.c makes and trigger.c runs. */
#ifndef TRACE_TRIGGER_IMPL_H
#define TRACE_TRIGGER_IMPL_H

#include "base/vec.h"
#include "trace/jumps.h"
#include "trace/analysis/trigger.h"

/* How the last step is met. */
enum trigger_kind {
	TRIGGER_SAMPLE,  /* by a sample */
	TRIGGER_WITHOUT, /* by one after which another does not come in time */
	TRIGGER_CALL     /* by a call that takes too long */
};

struct trigger_step {
	struct condition *condition; /* CALL: its entry */
	struct condition *also;      /* CALL: and of that sample; or NULL */
	uint64_t within_ns;          /* 0: no limit */
	uint64_t within;             /* in ticks of the trace's clock */
};

/* Something that waits.  All are in one list in order of `since`, which is that of their ends. */
struct trigger_wait {
	uint64_t since, note;
	uint32_t lane;         /* of the sample */
	uint32_t state;        /* index into states */
	uint32_t before, next; /* in the list; index + 1, 0: none */
	uint32_t sibling;      /* the next one of the same state, or the next unused one */
	/* CALL: */
	uint32_t sp;    /* 0: its samples have none */
	uint32_t depth; /* without: calls of it inside it */
	bool aside;     /* it was left, or another stack runs */
	/* Who runs at sp: the function that was called, or what it went on in by a jump; */
	uint32_t called, runs;
	uint32_t jump; /* that has exited by this one, as frames do (trace/jumps.h); 0: it runs */
	/* Likewise, at that time, and nobody who waits for it is recorded: unless the next sample shows what
	 * it has led to, the call is over since. */
	bool may_be_gone;
	bool is_late; /* it was, and its time was over before that sample: it fires */
	uint64_t jumped;
};

/*
 * CALL: who has exited by a jump, as far as is known, the deepest last.  At one place of the stack each
 * has jumped to the next one.
 */
struct trigger_jumper {
	uint32_t sp, function;
	uint32_t jump;   /* as trigger_wait.jump */
	uint32_t callee; /* what it has gone on in; UINT32_MAX: not known, or not yet */
	uint32_t
		binder; /* what its jump led to, if that binds lazily (TRACE_JUMP_POPPED); or UINT32_MAX */
};
#define TRIGGER_JUMPERS 32u

/* Of a thread, or of all of them. */
struct trigger_state {
	uint64_t met[TRIGGER_STEPS]; /* when the first k+1 steps were met last, in order and time */
	uint32_t waits;              /* the first of its waits, index + 1 */
	uint32_t open_sp;            /* the lowest of theirs */
	uint32_t bottom;        /* CALL: where the outermost call that runs is; 0: there is none */
	bool has_bottom_jumped; /* it has exited by a jump, and the next sample tells where that led */
	bool is_next;           /* the next sample may tell where a jump has led */
	uint32_t
		unwinds; /* payload of the record UNWINDS that waits for the other one; 0: none does */
	uint8_t njumpers;
	struct trigger_jumper *jumpers; /* TRIGGER_JUMPERS; older ones are forgotten */
	uint8_t is_met;                 /* bits */
	bool has_stacks; /* what was set aside has come back: it has several stacks */
};

/* Something that ends the waiting could not be seen. */
struct trigger_out {
	uint32_t node;
	uint64_t from, to;
};

struct trigger {
	struct trigger_step steps[TRIGGER_STEPS];
	uint32_t nsteps;
	enum trigger_kind kind;
	bool across;
	struct condition *ends; /* WITHOUT: what ends the waiting; CALL: its exit */
	uint64_t limit_ns;
	uint64_t limit; /* in ticks */
	bool at_end;    /* CALL: fires when it has ended, trigger_fire_at_end() */
	/* Of those that the last sample fed has shown to have ended, and that fire, the first; 0: none. */
	uint64_t ended_since, ended_at;
	bool is_whole; /* it is asked about a trace of which no more comes */

	const struct trace *slept; /* some of its functions did; or NULL */
	VEC(struct trigger_out) outs;
	struct trace_jumps jumps;
	bool *cycles;      /* CALL, by jump: it may be on a way by jumps from FUNC to FUNC */
	bool *leads_out;   /* likewise: what it leads to is not recorded */
	bool follows;      /* FUNC may be left by such a jump: who waits for it matters */
	uint8_t *by_event; /* enum below; two tables, as trigger_wants has them */
	uint32_t nevents;
	VEC(struct trigger_state) states; /* by lane; across threads there is one */
	VEC(struct trigger_wait) waits;
	uint32_t oldest, youngest, unused; /* waits, index + 1 */
	uint32_t due;                      /* the one that trigger_due() named */
	uint32_t begun;                    /* by the last sample fed */
	uint64_t unsure;
};

/* Bits of by_event: step k's condition is 1 << k. */
enum {
	TRIGGER_ENDS = 1 << TRIGGER_STEPS,    /* `ends` */
	TRIGGER_JUMP = 0x20,                  /* an exit by a jump; by trigger_test() alone */
	TRIGGER_NEXT = TRIGGER_WANTS_NEXT,    /* the same, wherever on the stack it is */
	TRIGGER_FRAMES = TRIGGER_WANTS_FRAMES /* a function's entry or exit */
};

/* trigger_sleep.c.  The names are bound. */
void trigger_take_sleeps(struct trigger *g, const struct trace *t);
/* Would its end not have been seen? */
bool trigger_has_slept(const struct trigger *g, const struct trigger_wait *w);
static inline struct trigger_wait *trigger_wait_at(const struct trigger *g, uint32_t i)
{
	return i ? &g->waits.v[i - 1] : NULL;
}
void trigger_find_open_sp(const struct trigger *g, struct trigger_state *s);

/* trigger_jumps.c: g->jumps, and what is known of each, if it is about calls. */
void trigger_take_jumps(struct trigger *g, const struct trace_names *names);
bool trigger_is_in_cycle(const struct trigger *g, uint32_t jump);
bool trigger_leads_out(const struct trigger *g, uint32_t jump);
/* Where this function is among those at sp that have jumped to one another; njumpers: it is not. */
uint32_t trigger_find_jumper(const struct trigger_state *s, uint32_t sp, uint32_t function);
struct trigger_jumper *trigger_last_jumper_at(const struct trigger_state *s, uint32_t sp);
/* Who has jumped to what binds lazily goes on in what that jumps to (pairs.c). */
uint32_t trigger_jump_of_binder(const struct trigger *g, uint32_t jump,
				const struct trace_event *e);
/* A sample of a function, after the waits have seen it. */
void trigger_follow_jumps(const struct trigger *g, struct trigger_state *s,
			  const struct trace_event *e);
/* All that lies below `to` has been left, after the waits have seen it. */
void trigger_forget_left(const struct trigger *g, struct trigger_state *s, uint32_t to);
/* Is nobody recorded who waits for a call at sp? */
bool trigger_is_alone(const struct trigger *g, const struct trigger_state *s, uint32_t sp);

#endif
