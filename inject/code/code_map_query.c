/* SPDX-License-Identifier: MIT */
/*
 * code_map_query.c - what the instructions of a code map are, decoded when somebody asks.
 *
 * Apart from the passes that make the map (code_map.c): those ask, too.
 */
#include "inject/code/code_map.h"

#include <pthread.h>

#include "base/vec.h"

static bool decode(const struct code_map *m, uint64_t vaddr, bool operands, struct insn *out)
{
	uint64_t room = elf_image_room(m->img, vaddr);
	const uint8_t *p;

	if (room > 15)
		room = 15;
	p = room ? elf_image_at(m->img, vaddr, room) : NULL;
	if (!p)
		return false;
	return operands ? insn_decode(out, p, room, vaddr) : insn_scan(out, p, room, vaddr);
}

/* By the low bits of the address.  Four times as many take no less time, and a megabyte more a thread. */
#define CACHE_SIZE 2048u

struct insn_cache {
	struct {
		uint64_t map; /* its id; 0: empty */
		uint64_t vaddr;
		bool has_operands;
		struct insn in;
	} at[CACHE_SIZE];
};

static pthread_key_t cache_key; /* whose destructor ends a thread's cache */
static pthread_once_t cache_once = PTHREAD_ONCE_INIT;
static _Thread_local struct insn_cache *cache;

static void make_key(void)
{
	pthread_key_create(&cache_key, xfree);
}

static struct insn_cache *make_cache(void)
{
	pthread_once(&cache_once, make_key);
	cache = xcalloc(1, sizeof(*cache));
	pthread_setspecific(cache_key, cache);
	return cache;
}

static bool decode_cached(const struct code_map *m, uint64_t vaddr, bool operands, struct insn *out)
{
	struct insn_cache *c = cache ? cache : make_cache();
	unsigned i = vaddr % CACHE_SIZE;

	if (c->at[i].map != m->id || c->at[i].vaddr != vaddr ||
	    (operands && !c->at[i].has_operands)) {
		if (!decode(m, vaddr, operands, out))
			return false;
		c->at[i].map = m->id;
		c->at[i].vaddr = vaddr;
		c->at[i].has_operands = operands;
		c->at[i].in = *out;
		return true;
	}
	*out = c->at[i].in;
	return true;
}

bool code_map_insn(const struct code_map *m, uint64_t vaddr, struct insn *out)
{
	return decode_cached(m, vaddr, true, out);
}

bool code_map_scan(const struct code_map *m, uint64_t vaddr, struct insn *out)
{
	return decode_cached(m, vaddr, false, out);
}

uint64_t code_map_previous(const struct code_map *m, uint64_t vaddr)
{
	const struct function *fn = functions_at(m->functions, vaddr);

	if (!fn)
		return 0;
	for (uint64_t at = vaddr; at > fn->start && vaddr - at < 15;)
		if (code_map_flags(m, --at) & CODE_INSN)
			return at;
	return 0;
}
