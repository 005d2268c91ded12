/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "base/vec.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define HUGE_WORTH (2u << 20) /* a huge page's size */

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

void *xpages_full(size_t n)
{
	void *p = xpages(n);

	if (n >= HUGE_WORTH)
		madvise(p, n, MADV_HUGEPAGE); /* a wish */
	return p;
}

void xfree_pages(void *p, size_t n)
{
	munmap(p, n);
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
