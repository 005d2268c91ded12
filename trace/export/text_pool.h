/* SPDX-License-Identifier: MIT */
/* text_pool.h - texts by number, each of them once: 0, 1, 2 ... in order of appearance. */
#ifndef TRACE_TEXT_POOL_H
#define TRACE_TEXT_POOL_H

#include "base/vec.h"
#include "trace/index.h"

struct text_pool {
	struct index hashes;
	VEC(char *) texts;
};

uint32_t text_pool_add(struct text_pool *p, const char *s);
void text_pool_free(struct text_pool *p); /* it is empty then, and may be filled again */

#endif
