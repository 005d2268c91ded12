/* SPDX-License-Identifier: MIT */
/*
 * liveness.h - which general registers and flags hold nothing that anybody will read.
 *
 * A probe may use what is dead without saving it.  "Dead" is proved from the code itself:
 * on every way on from the place the value is overwritten before it is read.  The calling
 * convention is no proof: with -fipa-ra a caller keeps values in registers that the callee
 * is allowed to change and does not, so at calls and returns every register is live.
 *
 * A fault leads elsewhere, too.  What a landing pad may use (callee-saved registers) is live
 * where an instruction may fault; the others are not, so the registers that a handler of the
 * fault is shown may differ in those that the program itself would not have read again.
 *
 * Flags are followed into direct callees.  They are dead
 *   - where a call or jump leads into the PLT: the dynamic linker resolves symbols there, and
 *     does not keep them;
 *   - at the return of a function, unless some call in the module reads flags that it finds on
 *     its return (hand-written assembly does); where a call through a pointer does so, no
 *     function's flags are dead on return.
 */
#ifndef INJECT_LIVENESS_H
#define INJECT_LIVENESS_H

#include "inject/code/code_map.h"

struct liveness;

struct dead {
	uint16_t regs; /* bit n: register n as the hardware numbers it; never rsp */
	bool flags;    /* CF PF AF ZF SF OF, all of them */
};

struct liveness *liveness_new(const struct code_map *map);
void liveness_free(struct liveness *l);

/* Before the instruction at vaddr is executed. */
struct dead liveness_before(const struct liveness *l, uint64_t vaddr);

#endif
