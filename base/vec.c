/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "base/vec.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define HUGE ((size_t)2 << 20) /* a huge page's size */
#define PAGE ((size_t)4096)
#define PAGES_WORTH (128u << 10) /* where malloc() begins to ask the kernel for each */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static int exit_status;

void vec_set_exit_status(int status)
{
	exit_status = status;
}

static bool say_limit(__rlimit_resource_t resource, const char *what)
{
	struct rlimit r;

	if (getrlimit(resource, &r) || r.rlim_cur == RLIM_INFINITY)
		return false;
	fprintf(stderr, "kron: out of memory: the limit of %s is %llu KiB\n", what,
		(unsigned long long)r.rlim_cur / 1024);
	return true;
}

static void die_no_memory(void)
{
	if (!say_limit(RLIMIT_DATA, "data (ulimit -d)") &&
	    !say_limit(RLIMIT_AS, "the address space (ulimit -v)"))
		fputs("kron: out of memory\n", stderr);
	if (exit_status)
		_exit(exit_status);
	abort();
}

void *xmalloc(size_t n)
{
	void *p = malloc(n ? n : 1);

	if (!p)
		die_no_memory();
	return p;
}

void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size ? size : 1);

	if (!p)
		die_no_memory();
	return p;
}

void *xrealloc(void *p, size_t n)
{
	p = realloc(p, n ? n : 1);
	if (!p)
		die_no_memory();
	return p;
}

void *xpages(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		       -1, 0);

	if (p == MAP_FAILED)
		die_no_memory();
	return p;
}

/* From an address on where huge pages can lie. */
static char *aligned_pages(size_t n)
{
	char *all = xpages(n + HUGE);
	char *p = (char *)(((uintptr_t)all + HUGE - 1) & -HUGE);

	if (p > all)
		munmap(all, (size_t)(p - all));
	if (all + HUGE > p)
		munmap(p + n, (size_t)(all + HUGE - p));
	return p;
}

/* Both are wishes.  A fault for each page would cost several times what it takes to get them all. */
void *xpages_full(size_t n)
{
	char *p;

	n = (n + PAGE - 1) & -PAGE;
	p = n < HUGE ? xpages(n) : aligned_pages(n);
	if (n >= HUGE)
		madvise(p, n & -HUGE, MADV_HUGEPAGE);
	madvise(p, n, MADV_POPULATE_WRITE);
	return p;
}

void xfree_pages(void *p, size_t n)
{
	munmap(p, n);
}

/* More than half of a huge page is taken as a whole one: clearing the rest is less than 256 faults. */
static size_t whole_pages(size_t n)
{
	return n % HUGE > HUGE / 2 ? (n + HUGE - 1) & -HUGE : n;
}

void *xmalloc_full(size_t n)
{
	return n < PAGES_WORTH ? xmalloc(n) : xpages_full(whole_pages(n));
}

void xfree_full(void *p, size_t n)
{
	if (n < PAGES_WORTH)
		xfree(p);
	else
		xfree_pages(p, whole_pages(n));
}

char *xstrdup(const char *s)
{
	return xstrndup(s, strlen(s));
}

char *xstrndup(const char *s, size_t n)
{
	size_t len = strnlen(s, n);
	char *p = xmalloc(len + 1);

	memcpy(p, s, len);
	p[len] = 0;
	return p;
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *p;

	va_start(ap, fmt);
	if (vasprintf(&p, fmt, ap) < 0)
		die_no_memory();
	va_end(ap);
	return p;
}

void xfree(void *p)
{
	free(p);
}

void *vec_grow_(void *v, size_t *cap, size_t need, size_t elem)
{
	size_t n = *cap ? *cap : 16;

	while (n < need) {
		if (n > (size_t)-1 / 2 / elem)
			die_no_memory();
		n *= 2;
	}
	*cap = n;
	return xrealloc(v, n * elem);
}

void *vec_zero_(void *p, size_t n)
{
	return memset(p, 0, n);
}

void vec_copy_(void *to, const void *from, size_t n)
{
	if (n)
		memcpy(to, from, n);
}
