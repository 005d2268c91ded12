/* SPDX-License-Identifier: MIT */
/*
 * thunk_memory.S - probes that take values from memory along (wire.h: KRON_BLOCK_MEMORY).
 *
 * It is always C that reads them, in each kind of process.
 */
#include "runtime/core/thunk.inc"

	.text

	THUNK	kron_rt_memory, 4
	ENTER
	mov	%eax, %edi
	SAVE_FLAGS
	PAYLOAD	1, 32, %rsi
	mov	32(%rsp), %rdx			/* our return address: the plan stands after it */
	/* kron_rt_take_memory(event, address, plan) */
	CALL_C	kron_rt_take_memory, 40, RT_STACK_MEMORY
	LEAVE
	END_THUNK kron_rt_memory

	.section .note.GNU-stack, "", @progbits
