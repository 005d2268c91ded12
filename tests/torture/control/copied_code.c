/* SPDX-License-Identifier: MIT */
/*
 * copied_code.c - runs copies of a stretch of its own code, as V8 does with its embedded builtins: mapped
 * once more from the file, moved there by mremap, copied by memcpy.  The stretch is position
 * independent and refers to nothing outside.
 *
 * V8 maps the file only if one line of /proc/self/maps holds the whole stretch, so that is a part
 * of what must stay as it is.
 *
 * Build: O2 O2,no-pie
 * Calls: Builtins_Add=49000 Builtins_Twice=7000 Builtins_Sum=7000 Builtins_Tail=7000 Builtins_Self=7000 Builtins_Loop=7000 Builtins_Tiny=7000 Builtins_Early=7000 run=7
 * Exits: Builtins_Add=49000 Builtins_Twice=7000 Builtins_Sum=7000 Builtins_Tail=7000 Builtins_Self=7000 Builtins_Loop=7000 Builtins_Tiny=7000 Builtins_Early=7000 run=7
 */
#include "torture.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define ROUNDS 1000
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

/* Filled up as V8 does it: functions begin at multiples of 64, with int3 between them. */
#define BUILTIN(name, code)                                                   \
	"	.p2align 6, 0xcc\n	.type Builtins_" name ", @function\n" \
	"Builtins_" name ":\n" code "	.size Builtins_" name ", . - Builtins_" name "\n"

__asm__("	.text\n	.p2align 12, 0xcc\n"
	"	.globl v8_Default_embedded_blob_code_\n"
	"v8_Default_embedded_blob_code_:\n" BUILTIN(
		"Add", "	push %rbp\n	mov %rsp, %rbp\n	lea (%rdi,%rsi), %rax\n"
		       "	mov %rbp, %rsp\n	pop %rbp\n	ret\n")
		BUILTIN("Twice", "	push %rbp\n	mov %rsp, %rbp\n	mov %rdi, %rsi\n"
				 "	call Builtins_Add\n	pop %rbp\n	ret\n")
	/* 0 + 1 + 2 + 3 by four calls */
	BUILTIN("Sum",
		"	push %rbx\n	push %rcx\n	nop\n	xor %eax, %eax\n	xor %ebx, %ebx\n"
		"1:	mov %rax, %rdi\n	mov %rbx, %rsi\n	call Builtins_Add\n"
		"	inc %rbx\n	cmp $4, %rbx\n	jb 1b\n"
		"	pop %rcx\n	pop %rbx\n	ret\n")
		BUILTIN("Tail", "	xor $5, %rsi\n	xor $5, %rsi\n	nop\n	jmp Builtins_Add\n")
			BUILTIN("Tiny", "	lea 1(%rdi), %rax\n	ret\n")
	/* where it runs */
	BUILTIN("Self",
		"	push %rbp\n	mov %rsp, %rbp\n	lea Builtins_Add(%rip), %rax\n"
		"	pop %rbp\n	ret\n")
	/* jumps back to its own first instruction, in its frame */
	BUILTIN("Loop",
		"	lea -1(%rdi), %rdi\n	lea 2(%rsi), %rsi\n	test %rdi, %rdi\n"
		"	jnz Builtins_Loop\n	mov %rsi, %rax\n	nop\n	nop\n	ret\n")
		BUILTIN("Early",
			"	test %rdi, %rdi\n	je 1f\n	lea 7(%rdi), %rax\n	mov %rax, %rdx\n"
			"	ret\n"
			"1:	xor %eax, %eax\n	ret\n") BUILTIN("Pad0",
									"	mov %rdi, %rax\n	mov %rdi, %rax\n	ret\n")
			BUILTIN("Pad1", "	mov %rdi, %rax\n	mov %rdi, %rax\n	ret\n") "	.fill 5000, 1, 0xcc\n" BUILTIN(
				"Pad2",
				"	mov %rdi, %rax\n	mov %rdi, %rax\n	ret\n") "	.p2align 12, 0xcc\n"
												"blob_end:\n");

extern const char v8_Default_embedded_blob_code_[] __attribute__((visibility("hidden")));
extern const char blob_end[] __attribute__((visibility("hidden")));
#define DECLARE(name) extern const char name[] __attribute__((visibility("hidden")))
DECLARE(Builtins_Add);
DECLARE(Builtins_Twice);
DECLARE(Builtins_Sum);
DECLARE(Builtins_Tail);
DECLARE(Builtins_Tiny);
DECLARE(Builtins_Self);
DECLARE(Builtins_Loop);
DECLARE(Builtins_Early);

typedef long (*builtin)(long, long);

/* Reads no register that the assembler's functions do not keep. */
static long call(const char *base, const char *of, long a, long b)
{
	builtin f = (builtin)(uintptr_t)(base + (of - v8_Default_embedded_blob_code_));

	return f(a, b);
}

OPAQUE static void run(const char *base)
{
	for (long i = 1; i <= ROUNDS; i++) {
		CHECK(call(base, Builtins_Add, i, 3) == i + 3);
		CHECK(call(base, Builtins_Twice, i, 0) == 2 * i);
		CHECK(call(base, Builtins_Sum, 0, 0) == 6);
		CHECK(call(base, Builtins_Tail, i, 4) == i + 4);
		CHECK(call(base, Builtins_Tiny, i, 0) == i + 1);
		CHECK(call(base, Builtins_Loop, 5, i) == i + 10);
		CHECK(call(base, Builtins_Early, i % 2, 0) == (i % 2 ? 8 : 0));
		/* in a copy it may be the original's: its code is reached from there */
		CHECK(call(base, Builtins_Self, 0, 0));
	}
}

/* ---- the ways to a copy ---- */

static size_t size(void)
{
	return (size_t)(blob_end - v8_Default_embedded_blob_code_);
}

static char *reserve(void)
{
	char *p = mmap(NULL, size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static char *mapped_again(void)
{
	const uintptr_t from = (uintptr_t)v8_Default_embedded_blob_code_;
	unsigned long lo, hi, off = 0;
	char line[512], path[256] = "", *copy = reserve();
	FILE *f = fopen("/proc/self/maps", "r");
	int fd;

	CHECK(f);
	while (!path[0] && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx", &lo, &hi) == 2 && lo <= from && from + size() < hi)
			CHECK(sscanf(line, "%*s %*s %lx %*s %*s %255s", &off, path) == 2);
	fclose(f);
	if (!path[0])
		return NULL;
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0);
	CHECK(mmap(copy, size(), PROT_READ | PROT_EXEC, MAP_FIXED | MAP_PRIVATE, fd,
		   (off_t)(off + (from - lo))) == copy);
	close(fd);
	return copy;
}

/* What newer versions try first; older kernels cannot. */
static char *moved(void)
{
	char *copy = reserve();
	void *from = (void *)(uintptr_t)v8_Default_embedded_blob_code_;

	if (mremap(from, size(), size(), MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, copy) ==
	    MAP_FAILED)
		return NULL;
	CHECK(!mprotect(copy, size(), PROT_READ | PROT_EXEC));
	return copy;
}

static char *copied(void)
{
	char *copy = reserve();

	CHECK(!mprotect(copy, size(), PROT_READ | PROT_WRITE));
	memcpy(copy, v8_Default_embedded_blob_code_, size());
	CHECK(!mprotect(copy, size(), PROT_READ | PROT_EXEC));
	return copy;
}

int main(void)
{
	char *copy;

	run(v8_Default_embedded_blob_code_);
	copy = mapped_again();
	puts(copy ? "one mapping holds it" : "no mapping holds it");
	run(copy ? copy : v8_Default_embedded_blob_code_);
	run(copied());
	copy = moved();
	puts("moved");
	run(copy ? copy : v8_Default_embedded_blob_code_);
	run(v8_Default_embedded_blob_code_);
	run(copied());
	copy = mapped_again();
	puts(copy ? "one mapping holds it" : "no mapping holds it");
	run(copy ? copy : v8_Default_embedded_blob_code_);
	return 0;
}
