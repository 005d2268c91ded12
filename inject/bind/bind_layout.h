/* SPDX-License-Identifier: MIT */
/*
 * bind_layout.h - where in a block everything will be: what a binding comes to before it has addresses.  So the gap
 * that it needs can be looked for, and the block be made afterwards, with its sites walked once.
 */
#ifndef INJECT_BIND_LAYOUT_H
#define INJECT_BIND_LAYOUT_H

#include "inject/bind/bind.h"
#include "inject/bind/unwind.h"

struct bind_layout {
	uint32_t *stub_at;  /* by site, as in struct bound; NULL: a bind_make() has taken it */
	uint32_t stubs_end; /* 0: nothing is bound */
	size_t nspots, ntraps;
	struct unwind_names names;
	size_t size; /* bind_size() */
};

void bind_layout_make(struct bind_layout *out, const struct binding *b);
void bind_layout_free(struct bind_layout *l);

/* Where the first stub begins: after the commons. */
uint32_t bind_stubs_at(const struct plan *plan);
/* Where the tables begin, after this many bytes of head and stubs. */
size_t bind_tables_at(size_t stubs_end);
/* bind_table_size() of these stubs. */
size_t bind_far_words(const struct plan *plan, const uint32_t *stub_at);

#endif
