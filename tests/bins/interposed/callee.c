/* SPDX-License-Identifier: MIT */
/*
 * callee.c - a library whose functions kron cannot patch: each has a byte that is no
 * instruction.  Each counts its calls itself; report() prints the counts, which is what the
 * test holds kron's against.
 *
 *   f:  lock incq count(%rip); jmp 1f; .byte 0x06; 1: ...
 */
#include <stdarg.h>
#include <stdio.h>

#define COUNTED(name, symbol, rest)                                                             \
	__asm__(".pushsection .bss; .local " #name "_count; .comm " #name "_count,8,8\n"        \
		".popsection; .text; .globl " #symbol "; .type " #symbol ",@function\n" #symbol \
		": .cfi_startproc; lock incq " #name "_count(%rip); jmp 1f\n"                   \
		".byte 0x06; 1: " rest "; .cfi_endproc; .size " #symbol ",.-" #symbol "\n");    \
	extern long name##_count __attribute__((visibility("hidden")))

COUNTED(add, add, "lea 1(%rdi),%rax; ret");
/* whatever its arguments are, they must arrive: in registers, vector ones too, and on the stack */
COUNTED(sum, sum, "jmp real_sum");
/* exceptions and longjmp go through */
COUNTED(call, call,
	"sub $8,%rsp; .cfi_adjust_cfa_offset 8; call *%rdi; add $8,%rsp; "
	".cfi_adjust_cfa_offset -8; ret");
/* two versions of one name */
COUNTED(old, old_twice, "lea (%rdi,%rdi),%rax; ret");
COUNTED(new, new_twice, "lea 100(%rdi,%rdi),%rax; ret");
__asm__(".symver old_twice,twice@V1; .symver new_twice,twice@@V2");
/* called within the library by its stub */
COUNTED(inner, inner, "lea 7(%rdi),%rax; ret");

__attribute__((visibility("hidden"), used)) double real_sum(int n, ...)
{
	double sum = 0;
	va_list ap;

	va_start(ap, n);
	for (int i = 0; i < n; i++)
		sum += i % 2 ? va_arg(ap, double) : va_arg(ap, long);
	va_end(ap);
	return sum;
}

long inner(long);
long outer(long n);
long outer(long n)
{
	return inner(n) + inner(n + 1);
}

static long chosen_count;
static long really_chosen(long n)
{
	__atomic_fetch_add(&chosen_count, 1, __ATOMIC_RELAXED);
	return n * 3;
}
static void *choose(void)
{
	return (void *)really_chosen;
}
long chosen(long) __attribute__((ifunc("choose")));

void report(void);
void report(void)
{
	printf("add %ld\nsum %ld\ncall %ld\nold %ld\nnew %ld\ninner %ld\nchosen %ld\n", add_count,
	       sum_count, call_count, old_count, new_count, inner_count, chosen_count);
}
