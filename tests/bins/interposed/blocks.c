/* SPDX-License-Identifier: MIT */
/*
 * blocks.c - asks the allocator for blocks in every way and prints what it asked and what it got:
 *
 *   malloc size ptr | calloc n size ptr | realloc old size ptr | free ptr | ...
 *
 * With -DOWN it brings an allocator along, as programs linked to one statically do.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef OWN
static char heap[1 << 20] __attribute__((aligned(64)));
static size_t used;

#define NOINLINE __attribute__((noinline, noipa))

static void *take(size_t align, size_t size)
{
	size_t at = (used + 16 + align - 1) & -align;

	if (size > sizeof(heap) - at)
		return NULL;
	used = at + size;
	memcpy(heap + at - sizeof(size), &size, sizeof(size));
	return heap + at;
}

NOINLINE void *malloc(size_t size)
{
	return take(16, size);
}

NOINLINE void *calloc(size_t n, size_t size)
{
	return take(16, n * size);
}

NOINLINE void *realloc(void *old, size_t size)
{
	void *block = take(16, size);
	size_t before;

	if (!old || !block)
		return block;
	memcpy(&before, (char *)old - sizeof(before), sizeof(before));
	return memcpy(block, old, before < size ? before : size);
}

NOINLINE void free(void *block)
{
	__asm__ volatile("" : : "r"(block));
}

NOINLINE int posix_memalign(void **block, size_t align, size_t size)
{
	*block = take(align, size);
	return 0;
}

NOINLINE void *aligned_alloc(size_t align, size_t size)
{
	return take(align, size);
}
#endif

#define SHOW(...) (n += (size_t)sprintf(out + n, __VA_ARGS__))

static char out[1 << 16];
static void *volatile block[20]; /* no compiler knows what becomes of them */

int main(void)
{
	size_t n = 0;
	void *p = NULL;

	for (int i = 0; i < 20; i++) {
		size_t size = 24 + 40 * (size_t)i;

		block[i] = i % 2 ? malloc(size) : calloc(3, size);
		SHOW(i % 2 ? "malloc %zu %#zx\n" : "calloc %zu %#zx\n", size, (size_t)block[i]);
	}
	for (int i = 0; i < 20; i++) {
		void *old = block[i];
		size_t size = 3000 + (size_t)i;

		SHOW("realloc %#zx", (size_t)old);
		block[i] = realloc(old, size);
		SHOW(" %zu %#zx\n", size, (size_t)block[i]);
	}
	SHOW("posix_memalign %d\n", posix_memalign(&p, 64, 777));
	SHOW("free %#zx\n", (size_t)p);
	free(p);
	p = aligned_alloc(64, 640);
	SHOW("aligned_alloc 640 %#zx\nfree %#zx\n", (size_t)p, (size_t)p);
	free(p);
	for (int i = 0; i < 20; i++) {
		SHOW("free %#zx\n", (size_t)block[i]);
		free(block[i]);
	}
	fwrite(out, 1, n, stdout);
	return 0;
}
