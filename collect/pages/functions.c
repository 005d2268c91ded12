/* SPDX-License-Identifier: MIT */
/*
 * functions.c - page counters by function: what of the pages' sums is whose.
 *
 * A record belongs to one page and one function (kron/segment.h), so what is added to the pages' sums is added
 * here, too, and the sums of all functions are the same.
 */
#include "collect/pages/impl.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	const struct trace_page_function *x = a, *y = b;

	if (x->uid != y->uid)
		return x->uid < y->uid ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->function < y->function ? -1 : x->function > y->function;
}

void pages_merge_functions(struct pages *p)
{
	struct trace_page_function *v = p->out.functions.v;
	size_t n = 0;

	if (p->out.functions.n)
		qsort(v, p->out.functions.n, sizeof(*v), compare);
	for (size_t i = 0; i < p->out.functions.n; i++) {
		if (n && !compare(&v[n - 1], &v[i])) {
			v[n - 1].reads += v[i].reads;
			v[n - 1].writes += v[i].writes;
		} else {
			v[n++] = v[i];
		}
	}
	p->out.functions.n = p->functions_merged = n;
}

void pages_add_function(struct pages *p, const struct kron_chunk *c, uint32_t i,
			const struct trace_page *page)
{
	/* Before its page, which the caller has seen; partner: runtime/bus/pages.c. */
	const uint32_t function = ((const struct kron_page *)c + 1 + i)->function;

	if (!function)
		return;
	*vec_push(&p->out.functions) = (struct trace_page_function){
		.uid = page->uid,
		.function = function - 1,
		.address = page->address,
		.reads = page->reads,
		.writes = page->writes,
	};
	if (p->out.functions.n - p->functions_merged > MERGE_AT)
		pages_merge_functions(p);
}
