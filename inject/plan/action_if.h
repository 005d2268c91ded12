/* SPDX-License-Identifier: MIT */
/*
 * action_if.h - conditions in front of a sample: compare and skip.  Where the sample's payload has been
 * pushed (action.h) stands
 *
 *   [lahf; seto %al]             flags that are live
 *   cmp  $number,what; jcc 2f    for each condition, by way of %rcx where it has to be
 *   [add $0x7f,%al; sahf]
 *   [movzbl gate,%ecx; jrcxz 3f] where %rcx was used
 *   ...                          the event, and the call
 *   [jmp 3f]
 *   2: [add $0x7f,%al; sahf]
 *   3: lea 8(%rsp),%rsp
 *
 * The processor's number comes by lsl from the segment where the kernel keeps it: no register of the
 * thread's, nor a system call, nor an instruction that some processors lack.
 */
#ifndef INJECT_ACTION_IF_H
#define INJECT_ACTION_IF_H

#include "inject/plan/request.h"
#include "inject/plan/stub.h"

/* Where jumps stand whose distance is not known yet. */
struct action_if {
	uint32_t fail[PLACE_CONDITIONS];
	uint32_t gone; /* jrcxz; 0: none */
	uint8_t n;
	bool flags_are_dead;
};

/* Up to the event. */
void action_if_begin(struct action_if *f, struct stub *s, const struct place_action *a,
		     bool flags_are_dead);
/* After the call. */
void action_if_end(const struct action_if *f, struct stub *s);

/* The action with the conditions that the stub can test: not those for a value in memory. */
struct place_action action_if_testable(const struct place_action *a);
/* What the runtime is told of a value in memory, those conditions too, with a jump over it (action.h). */
void action_if_memory(struct stub *s, const struct place_action *a);

#endif
