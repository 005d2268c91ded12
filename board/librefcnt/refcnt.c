/* SPDX-License-Identifier: MIT */
/* refcnt.c - see refcnt.h: counters of a process by address, and sections of its address space. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "board/librefcnt/impl.h"

/* ---- errors ---- */

static _Thread_local char sentence[512];

int rc_fail(int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	errno = code;
	return -code;
}

const char *refcnt_error(void)
{
	return sentence;
}

/* ---- counts ---- */

int rc_push(struct rc_counts *c, const struct kron_control_count *one)
{
	if (c->n == c->cap) {
		size_t cap = c->cap ? 2 * c->cap : 64;
		struct kron_control_count *v = realloc(c->v, cap * sizeof(*v));

		if (!v)
			return rc_fail(ENOMEM, "no memory");
		c->v = v;
		c->cap = cap;
	}
	c->v[c->n++] = *one;
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct kron_control_count *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

const struct kron_control_count *rc_find(const struct rc_counts *c, uint64_t address, int node)
{
	const struct kron_control_count key = {.address = address, .node = node};

	return c->n ? bsearch(&key, c->v, c->n, sizeof(c->v[0]), by_place) : NULL;
}

static const struct rc_section *section_of(const struct refcnt *r, uint64_t page)
{
	for (size_t i = 0; i < r->nsections; i++)
		if (page >= r->sections[i].start && page < r->sections[i].end)
			return &r->sections[i];
	return NULL;
}

/* As the section sees it; false: nothing was counted there since. */
static bool is_new(const struct refcnt *r, struct kron_control_count *c)
{
	const struct kron_control_count *then;
	const struct rc_section *s;

	if (!r->has_sections)
		return true;
	s = section_of(r, c->address);
	if (!s)
		return false;
	then = rc_find(&s->then, c->address, c->node);
	/* A program that executes another begins anew. */
	if (then && then->reads <= c->reads && then->writes <= c->writes) {
		c->reads -= then->reads;
		c->writes -= then->writes;
	}
	return c->reads || c->writes;
}

int rc_count(const struct refcnt *r, uint64_t start, uint64_t end, struct rc_counts *out)
{
	int code = rc_ask(r->pid, start, end, out);
	size_t n = 0;

	for (size_t i = 0; !code && i < out->n; i++)
		if (is_new(r, &out->v[i]))
			out->v[n++] = out->v[i];
	out->n = n;
	return code;
}

/* ---- counters of refcnt(5)'s ---- */

refcnt_t rc_hardware(uint64_t references, unsigned width)
{
	return (refcnt_t)(references % ((1u << width) - 1));
}

refcnt_t rc_mirror(uint64_t references, unsigned width)
{
	uint64_t n = references - rc_hardware(references, width);

	return n > UINT32_MAX ? UINT32_MAX : (refcnt_t)n;
}

/* ---- ranges ---- */

struct range {
	uint64_t start, end; /* of pages */
	size_t n;
};

static int take_range(struct range *r, const void *vaddr, long len)
{
	const uint64_t at = (uintptr_t)vaddr, mask = ~(uint64_t)(REFCNT_HW_PAGE - 1);

	if (len <= 0 || at + (uint64_t)len < at || at + (uint64_t)len > mask)
		return rc_fail(EINVAL, "the range has no length, or goes beyond the address space");
	r->start = at & mask;
	r->end = (at + (uint64_t)len + REFCNT_HW_PAGE - 1) & mask;
	r->n = (size_t)((r->end - r->start) / REFCNT_HW_PAGE);
	return r->n > INT32_MAX ? rc_fail(EINVAL, "the range has too many pages") : 0;
}

/* ---- a process ---- */

struct refcnt *refcnt_open(pid_t pid)
{
	struct rc_counts none;
	struct refcnt *r;

	if (rc_ask(pid, 0, 1, &none))
		return NULL;
	free(none.v);
	r = calloc(1, sizeof(*r));
	if (!r) {
		rc_fail(ENOMEM, "no memory");
		return NULL;
	}
	r->pid = pid;
	r->width = 19;
	return r;
}

void refcnt_close(struct refcnt *r)
{
	for (size_t i = 0; r && i < r->nsections; i++)
		free(r->sections[i].then.v);
	if (r)
		free(r->sections);
	free(r);
}

int refcnt_set_width(struct refcnt *r, unsigned bits)
{
	if (bits != 11 && bits != 19)
		return rc_fail(EINVAL, "a counter has 11 or 19 bits");
	r->width = bits;
	return 0;
}

int refcnt_uses(struct refcnt *r, const void *vaddr, long len, struct refcnt_use *out)
{
	struct rc_counts counts;
	struct range range;
	int code = take_range(&range, vaddr, len);

	if (code)
		return code;
	code = rc_count(r, range.start, range.end, &counts);
	if (code)
		return code;
	memset(out, 0, range.n * sizeof(*out));
	for (size_t i = 0; i < counts.n; i++) {
		struct refcnt_use *u = &out[(counts.v[i].address - range.start) / REFCNT_HW_PAGE];

		u->reads += counts.v[i].reads;
		u->writes += counts.v[i].writes;
	}
	free(counts.v);
	return (int)range.n;
}

int refcnt_ioctl(struct refcnt *r, int request, sn0_refcnt_args_t *args)
{
	struct rc_counts counts;
	struct range range;
	int code = 0;

	if (request != PIOCGETSN0REFCNTRS && request != PIOCGETSN0EXTREFCNTRS)
		return rc_fail(EINVAL, "there is no request %d", request);
	code = take_range(&range, args->vaddr, args->len);
	if (!code)
		code = rc_count(r, range.start, range.end, &counts);
	if (code)
		return code;
	memset(args->buf, 0, range.n * sizeof(*args->buf));
	rc_where(r->pid, range.start, range.n, args->buf);
	rc_sizes(r->pid, range.start, range.n, args->buf);
	for (size_t i = 0; i < counts.n; i++) {
		size_t page = (counts.v[i].address - range.start) / REFCNT_HW_PAGE;
		uint64_t n = counts.v[i].reads + counts.v[i].writes;

		if (counts.v[i].node < 0)
			continue;
		args->buf[page].refcnt_set.refcnt[counts.v[i].node] =
			request == PIOCGETSN0REFCNTRS ? rc_hardware(n, r->width)
						      : rc_mirror(n, r->width);
	}
	free(counts.v);
	return (int)range.n;
}

/* ---- sections ---- */

int refcnt_enable(struct refcnt *r, const void *vaddr, long len)
{
	struct rc_section *s;
	struct range range;
	int code = take_range(&range, vaddr, len);

	if (code)
		return code;
	for (size_t i = 0; i < r->nsections; i++)
		if (range.start < r->sections[i].end && r->sections[i].start < range.end)
			return rc_fail(EEXIST, "a page of the range is enabled already");
	s = realloc(r->sections, (r->nsections + 1) * sizeof(*s));
	if (!s)
		return rc_fail(ENOMEM, "no memory");
	r->sections = s;
	s += r->nsections;
	*s = (struct rc_section){.start = range.start, .end = range.end};
	code = rc_ask(r->pid, range.start, range.end, &s->then);
	if (code)
		return code;
	r->nsections++;
	r->has_sections = true;
	return 0;
}

int refcnt_disable(struct refcnt *r, const void *vaddr, long len)
{
	struct range range;
	int code = take_range(&range, vaddr, len);

	if (code)
		return code;
	for (size_t i = 0; i < r->nsections; i++) {
		struct rc_section *s = &r->sections[i];

		if (s->start != range.start || s->end != range.end)
			continue;
		free(s->then.v);
		*s = r->sections[--r->nsections];
		return 0;
	}
	return rc_fail(ENOENT, "no section with this range is enabled");
}
