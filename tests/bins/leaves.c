/* SPDX-License-Identifier: MIT */
/* leaves.c - a function that leaves by a conditional jump, 400 times of 1,000, for probes.py. */
#include <stdio.h>

int leave(int x);

__asm__(".text\n"
	".globl leave\n"
	".type leave, @function\n"
	"leave:\n"
	".cfi_startproc\n"
	"cmp $5, %edi\n"
	"jg other\n"
	"lea 1(%rdi), %eax\n"
	"ret\n"
	".cfi_endproc\n"
	".size leave, . - leave\n"
	".type other, @function\n"
	"other:\n"
	".cfi_startproc\n"
	"lea 100(%rdi), %eax\n"
	"imul $3, %eax, %eax\n"
	"ret\n"
	".cfi_endproc\n"
	".size other, . - other\n");

int main(void)
{
	int sum = 0;

	for (int i = 0; i < 1000; i++)
		sum += leave(i % 10);
	printf("%d\n", sum);
	return 0;
}
