/* SPDX-License-Identifier: MIT */
/*
 * mini.h - the few string and memory helpers that the runtime needs, as its own code.
 *
 * Include it after every libc header: from here on the names of libc's functions are poison.
 */
#ifndef RUNTIME_MINI_H
#define RUNTIME_MINI_H

#include <stddef.h>
#include <stdint.h>

#undef errno
#pragma GCC poison malloc calloc realloc free printf fprintf snprintf memcpy memmove memset memcmp
#pragma GCC poison strlen strcmp strncmp strchr strstr strcpy strcat getenv setenv errno abort exit

/* Byte copies by "rep movsb": the compiler makes no call of it, and no vector code. */
static inline void mini_copy(void *dst, const void *src, size_t n)
{
	__asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(n) : : "memory");
}

typedef uint32_t __attribute__((may_alias, aligned(1))) mini_u32;
typedef uint64_t __attribute__((may_alias, aligned(1))) mini_u64;

/* A few bytes, as patches have, by two moves that may overlap: a string instruction takes ten times as long. */
static inline void mini_copy_few(void *dst, const void *src, size_t n)
{
	uint8_t *d = dst;
	const uint8_t *s = src;

	if (n >= 8 && n <= 16) {
		const uint64_t first = *(const mini_u64 *)s;
		const uint64_t last = *(const mini_u64 *)(s + (n - 8));

		*(mini_u64 *)d = first;
		*(mini_u64 *)(d + (n - 8)) = last;
	} else if (n >= 4 && n < 8) {
		const uint32_t first = *(const mini_u32 *)s;
		const uint32_t last = *(const mini_u32 *)(s + (n - 4));

		*(mini_u32 *)d = first;
		*(mini_u32 *)(d + (n - 4)) = last;
	} else {
		mini_copy(dst, src, n);
	}
}

static inline void mini_zero(void *dst, size_t n)
{
	__asm__ volatile("rep stosb" : "+D"(dst), "+c"(n) : "a"(0) : "memory");
}

/* Index of the first byte that differs, or n. */
static inline size_t mini_mismatch(const void *a, const void *b, size_t n)
{
	const volatile uint8_t *x = a;
	const volatile uint8_t *y = b;
	size_t i = 0;

	while (i + 8 <= n &&
	       *(const volatile mini_u64 *)(x + i) == *(const volatile mini_u64 *)(y + i))
		i += 8;
	while (i + 4 <= n &&
	       *(const volatile mini_u32 *)(x + i) == *(const volatile mini_u32 *)(y + i))
		i += 4;
	while (i < n && x[i] == y[i])
		i++;
	return i;
}

static inline size_t mini_len(const char *s)
{
	size_t n = 0;

	while (*(const volatile char *)(s + n))
		n++;
	return n;
}

static inline int mini_equal(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

/* What follows prefix in s, or NULL when s does not start with it. */
static inline const char *mini_after(const char *s, const char *prefix)
{
	while (*prefix) {
		if (*s++ != *prefix++)
			return NULL;
	}
	return s;
}

static inline int mini_contains(const char *s, const char *needle)
{
	for (; *s; s++) {
		if (mini_after(s, needle))
			return 1;
	}
	return 0;
}

#endif
