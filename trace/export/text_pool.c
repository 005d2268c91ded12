/* SPDX-License-Identifier: MIT */
/* text_pool.c - see text_pool.h. */
#include "trace/export/text_pool.h"

#include <string.h>

#include "base/str.h"

uint32_t text_pool_add(struct text_pool *p, const char *s)
{
	uint64_t hash = str_hash(STR_HASH, s, strlen(s));
	uint32_t n;

	/* a text that has the hash of another gets the next free one */
	while ((n = index_find(&p->hashes, hash)) != INDEX_NONE && strcmp(p->texts.v[n], s))
		hash++;
	if (n != INDEX_NONE)
		return n;
	*vec_push(&p->texts) = xstrdup(s);
	return index_of(&p->hashes, hash);
}

void text_pool_free(struct text_pool *p)
{
	vec_for(&p->texts, s)
		xfree(*s);
	vec_free(&p->texts);
	index_free(&p->hashes);
}
