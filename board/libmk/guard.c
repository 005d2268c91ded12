/* SPDX-License-Identifier: MIT */
/*
 * guard.c - see guard.h.
 */
#define _GNU_SOURCE
#include "board/libmk/guard.h"

#include <stdint.h>

/* rdi, rsi, rdx as C has them; rcx stays where the siginfo goes: here in r8. */
__asm__(".text\n"
	".p2align 4\n"
	".globl mk_guard_bytes\n"
	".hidden mk_guard_bytes\n"
	".hidden mk_guard_at\n"
	".hidden mk_guard_failed\n"
	".type mk_guard_bytes,@function\n"
	"mk_guard_bytes:\n"
	"	.cfi_startproc\n"
	"	mov %rcx,%r8\n"
	"	mov %rdx,%rcx\n"
	".globl mk_guard_at\n"
	"mk_guard_at:\n"
	"	rep movsb\n"
	"	mov $1,%eax\n"
	"	ret\n"
	".globl mk_guard_failed\n"
	"mk_guard_failed:\n"
	"	xor %eax,%eax\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size mk_guard_bytes,.-mk_guard_bytes\n");

int mk_guard_bytes(void *to, const void *from, size_t bytes, siginfo_t *fault);
extern const char mk_guard_at[] __attribute__((visibility("hidden")));
extern const char mk_guard_failed[] __attribute__((visibility("hidden")));

bool guard_copy(void *to, const void *from, size_t bytes, siginfo_t *fault)
{
	return mk_guard_bytes(to, from, bytes, fault);
}

bool guard_caught(const siginfo_t *info, ucontext_t *uc)
{
	greg_t *g = uc->uc_mcontext.gregs;

	if (g[REG_RIP] != (greg_t)(uintptr_t)mk_guard_at)
		return false;
	*(siginfo_t *)(uintptr_t)g[REG_R8] = *info;
	g[REG_RIP] = (greg_t)(uintptr_t)mk_guard_failed;
	return true;
}
