/* SPDX-License-Identifier: MIT */
/*
 * jumps.h - exits by a jump into another function (a trace's table `jumps`).
 *
 * A function that ends with "jmp g" has left, but its caller waits for g.  Such an exit has an event
 * number of its own.  To everybody it is the function's exit: cursors give it the number 2n+1, and
 * beside it trace_event.jump, by which pairs.c knows that the call goes on in g.
 */
#ifndef TRACE_JUMPS_H
#define TRACE_JUMPS_H

#include "trace/reader.h"

enum trace_jump_to {
	JUMP_TO_ANYTHING, /* through a pointer */
	JUMP_TO_FUNCTION, /* the start of one */
	JUMP_TO_INSIDE,   /* the middle of one: it exits without an entry */
	JUMP_TO_NAME      /* whichever module has it */
};
struct trace_jump {
	uint32_t function; /* number of who leaves; UINT32_MAX: no such row */
	uint8_t to;        /* enum trace_jump_to */
	bool by_resolver;  /* JUMP_TO_NAME: one of them chooses when the program starts (IFUNC) */
	uint32_t target;   /* number; of JUMP_TO_NAME the first of the trace's jump_targets */
	uint32_t ntargets;
	char *name;  /* of JUMP_TO_NAME; else NULL */
	char *shown; /* of a function that is not in the trace, if it is known; else NULL */
};

/*
 * The jump of a call that has exited by it, for whoever follows calls: trace_event.jump, and what has
 * happened since.  0: it has not.
 */
#define TRACE_JUMP_STALE 0x80000000u /* something was called, or samples were lost */
#define TRACE_JUMP_LOST 0x40000000u  /* samples were lost: nothing can be its callee any more */
#define TRACE_JUMP_NUMBER 0x3fffffffu

/* What it takes to tell where jumps lead, apart from the trace. */
struct trace_names;
struct trace_jumps {
	struct trace_jump *v;
	uint32_t *targets;
	size_t n;
	/* A bit a number: no jump through a pointer leads to the function.  Those from limit on are not known. */
	uint8_t *untaken;
	uint32_t limit;
};
/* Finds what JUMP_TO_NAME leads to, and what no pointer does; makes the two arrays, for xfree(). */
void trace_jumps_resolve(struct trace_jumps *x, const struct trace_names *names);
/* Without the jumps' names, for trace_jumps_free(). */
void trace_jumps_copy(struct trace_jumps *out, const struct trace_jumps *from);
void trace_jumps_free(struct trace_jumps *x);
static inline struct trace_jumps trace_jumps_of(const struct trace *t)
{
	return (struct trace_jumps){t->jumps, t->jump_targets, t->njumps, t->untaken,
				    t->untaken_limit};
}
/*
 * The call at S has exited by a jump, and this function is entered at S: does that call go on in it?
 * nested: other calls of that stack are open inside it, or have been since.
 */
bool trace_jump_goes_on(const struct trace_jumps *x, uint32_t jump, uint32_t function, bool nested);
/*
 * A linker's stub that binds lazily pushes a few words and jumps to what looks the function up, which pops
 * them and jumps there: so it exits this little, at most, above where it was entered.  Who has jumped to
 * the stub goes on in the function.
 */
#define TRACE_JUMP_POPPED 64u
/* Only the very next sample tells where it leads. */
bool trace_jump_is_uncertain(const struct trace_jumps *x, uint32_t jump);
/* May it lead to a function that is recorded? */
bool trace_jump_is_recorded(const struct trace *t, uint32_t jump);
/* Does it lead into the middle of this function? */
bool trace_jump_is_inside(const struct trace_jumps *x, uint32_t jump, uint32_t function);
/* What it leads to in words, NULL when it may be anything.  jump: trace_event.jump, not 0. */
const char *trace_jump_known_name(const struct trace *t, uint32_t jump);
/* The same, and where the trace has no name a number. */
const char *trace_jump_name(const struct trace *t, uint32_t jump, char *buf, size_t size);

/*
 * Make the exit of its function of a sample that carries a jump's number.  Cursors have done it;
 * those who read samples themselves must.
 */
void trace_resolve_jump(const struct trace *t, struct trace_event *e);
static inline void trace_resolve(const struct trace *t, struct trace_event *e)
{
	e->jump = 0;
	if (__builtin_expect(e->s.event >= KRON_EVENT_JUMPS, 0))
		trace_resolve_jump(t, e);
}
/* The event's number as the trace has it. */
static inline uint32_t trace_stored_event(const struct trace_event *e)
{
	return e->jump ? KRON_EVENT_JUMP(e->jump - 1) : e->s.event;
}
/* The number of the function that an exit or entry event is of, jumps included. */
uint32_t trace_number_of(const struct trace *t, uint32_t event);

#endif
