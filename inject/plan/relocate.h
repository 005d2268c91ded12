/* SPDX-License-Identifier: MIT */
/*
 * relocate.h - writes a displaced instruction so that it does the same in its new place.
 *
 *   what                          becomes
 *   rip-relative operand          the same instruction, disp32 to be fixed up
 *   jmp rel8, rel32               jmp rel32
 *   jcc rel8, rel32               jcc rel32
 *   loop, jrcxz rel8              loop 1f; jmp 2f; 1: jmp rel32; 2:
 *   call rel32                    put the original return address on the stack; jmp rel32
 *   call *operand                 put the original return address on the stack; jmp *operand
 *   call *n(%rsp)                 put the original return address on the stack; jmp *n+8(%rsp)
 *   syscall                       itself; lea next(%rip),%rcx: what the processor leaves there
 *   padding (nop)                 nothing
 *   anything else                 itself
 *
 * No form changes a register, or a flag that somebody reads, that the original does not.  The return address is
 * that of the byte after the original call, so neither the callee, a backtrace nor an
 * exception ever sees a trampoline; nothing can follow a call in a stub.
 *
 * Refused: what acts on its own address (xbegin, far transfers) and calls to where the stack
 * pointer itself points.
 */
#ifndef INJECT_RELOCATE_H
#define INJECT_RELOCATE_H

#include "inject/code/insn.h"
#include "inject/code/refusal.h"
#include "inject/plan/stub.h"

/* REFUSAL_NONE, or why the instruction (its bytes at code) can run nowhere else. */
enum refusal relocate_refusal(const struct insn *in, const uint8_t *code);

/*
 * Append the instruction to the stub.  It must not be refused.  Branches to loop_head go to
 * loop_to (a FIXUP_SITE_REL32 value) instead of the module, unless loop_to is
 * RELOCATE_NO_LOOP.  no_flags: a call may change them, nobody will read them.
 */
#define RELOCATE_NO_LOOP UINT64_MAX
void relocate_emit(struct stub *s, const struct insn *in, const uint8_t *code, uint64_t loop_head,
		   uint64_t loop_to, bool no_flags);

#endif
