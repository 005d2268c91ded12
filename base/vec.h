/* SPDX-License-Identifier: MIT */
/*
 * vec.h - a growing array of any type.  Allocation failure ends the tool: kron's tools hold
 * nothing in memory that is not also in the segment or on disk.
 *
 *   VEC(struct site) sites = {0};
 *   *vec_push(&sites) = s;            pointer to a new, zeroed element
 *   vec_for(&sites, p) ...            p walks the elements
 *   vec_add(&sites, from, n)          n more, copied
 *   vec_append(&sites, &others)       all of the others, which are empty then
 *   vec_free(&sites);
 */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include <stddef.h>

#define VEC(type)           \
	struct {            \
		type *v;    \
		size_t n;   \
		size_t cap; \
	}

void *vec_grow_(void *v, size_t *cap, size_t need, size_t elem);
void *vec_zero_(void *p, size_t n);
void vec_copy_(void *to, const void *from, size_t n);

#define vec_reserve(a, need)                                                                \
	((a)->v = (need) > (a)->cap ? vec_grow_((a)->v, &(a)->cap, (need), sizeof(*(a)->v)) \
				    : (a)->v)
#define vec_push(a)                            \
	(vec_reserve(a, (a)->n + 1), (a)->n++, \
	 (__typeof__((a)->v))vec_zero_(&(a)->v[(a)->n - 1], sizeof(*(a)->v)))
#define vec_for(a, p) for (__typeof__((a)->v) p = (a)->v; p && p < (a)->v + (a)->n; p++)
#define vec_add(a, from, k)                                                                   \
	((k) ? (void)(vec_reserve(a, (a)->n + (k)),                                           \
		      vec_copy_((a)->v + (a)->n, from, (k) * sizeof(*(a)->v)), (a)->n += (k)) \
	     : (void)0)
#define vec_append(a, b)                                                                       \
	((a)->n ? (void)(vec_reserve(a, (a)->n + (b)->n),                                      \
			 vec_copy_((a)->v + (a)->n, (b)->v, (b)->n * sizeof(*(a)->v)),         \
			 (a)->n += (b)->n, vec_free(b))                                        \
		: (void)(xfree((a)->v), (a)->v = (b)->v, (a)->n = (b)->n, (a)->cap = (b)->cap, \
			 (b)->v = NULL, (b)->n = (b)->cap = 0))
#define vec_free(a) (xfree((a)->v), (a)->v = NULL, (a)->n = (a)->cap = 0)

/* malloc and friends that end the program with one line when memory is gone: by abort(), or with
 * this exit status, once it is set. */
void vec_set_exit_status(int status);
void *xmalloc(size_t n);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t n);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void xfree(void *p);
/* Bytes of zero that take memory only where they are touched. */
void *xpages(size_t n);
/* The same, all of which will be touched soon: it is there already, in huge pages where there are some. */
void *xpages_full(size_t n);
void xfree_pages(void *p, size_t n);
/* Bytes, likewise all of which will be touched soon, few or many. */
void *xmalloc_full(size_t n);
void xfree_full(void *p, size_t n);

#endif
