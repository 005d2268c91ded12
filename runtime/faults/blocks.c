/* SPDX-License-Identifier: MIT */
/*
 * blocks.c - the table of trampoline blocks (unwind.h), of a process that may have many.
 *
 * Blocks come and go one at a time: under ld.so's lock, with all threads stopped, or before there are
 * threads.  Readers come at any time, from signal handlers too, and take no lock: a place whose `start`
 * is not zero is complete.
 */
#include "runtime/core/rt.h"
#include "runtime/faults/unwind.h"

struct block {
	uint64_t start; /* atomic; 0 = free; written last */
	uint64_t end;
	const struct kron_tables *tables;
	uint32_t claimed; /* atomic; rt_unwind_claim() */
	bool released;    /* its text is not patched any more */
};
static struct block blocks[RT_BLOCKS_MAX];
static uint32_t nblocks; /* atomic; places that were ever used */

static uint64_t block_start(const struct block *b)
{
	return __atomic_load_n(&b->start, __ATOMIC_ACQUIRE);
}

const struct kron_tables *rt_block_at(uint64_t pc)
{
	uint32_t n = __atomic_load_n(&nblocks, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n; i++) {
		uint64_t start = block_start(&blocks[i]);

		if (start && pc >= start && pc < blocks[i].end)
			return blocks[i].tables;
	}
	return NULL;
}

uint32_t rt_blocks_max(void)
{
	return __atomic_load_n(&nblocks, __ATOMIC_ACQUIRE);
}

const struct kron_tables *rt_block(uint32_t i)
{
	return block_start(&blocks[i]) ? blocks[i].tables : NULL;
}

uint64_t rt_block_size(uint32_t i)
{
	return blocks[i].end - blocks[i].start;
}

const struct kron_tables *rt_block_of_text_next(const struct kron_tables *after, uint64_t pc)
{
	uint32_t n = __atomic_load_n(&nblocks, __ATOMIC_ACQUIRE);
	bool passed = !after;

	for (uint32_t i = 0; i < n; i++) {
		const struct kron_tables *t = blocks[i].tables;

		if (!block_start(&blocks[i]))
			continue;
		if (passed && !blocks[i].released && pc >= t->lo && pc < t->hi)
			return t;
		passed |= t == after;
	}
	return NULL;
}

const struct kron_tables *rt_block_of_text(uint64_t pc)
{
	return rt_block_of_text_next(NULL, pc);
}

bool rt_block_is_released(uint32_t i)
{
	return blocks[i].released;
}

bool rt_unwind_claim(uint64_t addr, uint64_t len)
{
	uint32_t n = __atomic_load_n(&nblocks, __ATOMIC_ACQUIRE);
	bool found = false;

	for (uint32_t i = 0; i < n; i++) {
		const struct kron_tables *t = blocks[i].tables;

		if (block_start(&blocks[i]) && addr < t->hi &&
		    (t->lo <= addr || t->lo - addr < len))
			found |= !__atomic_exchange_n(&blocks[i].claimed, 1, __ATOMIC_ACQ_REL);
	}
	return found;
}

static const struct kron_tables *tables_of(uint64_t addr, uint64_t len)
{
	uint32_t at = *(const uint32_t *)(addr + KRON_BLOCK_TABLES);
	const struct kron_tables *t = (const struct kron_tables *)(addr + at);

	if (!at || at % 8 || at > len || len - at < sizeof(*t))
		return NULL;
	return t->magic == KRON_TABLES_MAGIC && t->size <= len - at ? t : NULL;
}

int rt_blocks_add(uint64_t addr, uint64_t len)
{
	const struct kron_tables *t = tables_of(addr, len);
	uint32_t i = 0;

	while (i < nblocks && blocks[i].start)
		i++;
	if (!t || i == RT_BLOCKS_MAX)
		return -1;
	blocks[i].end = addr + len;
	blocks[i].tables = t;
	blocks[i].claimed = 0;
	blocks[i].released = false;
	__atomic_store_n(&blocks[i].start, addr, __ATOMIC_RELEASE);
	if (i == nblocks)
		__atomic_store_n(&nblocks, i + 1, __ATOMIC_RELEASE);
	return (int)i;
}

int rt_blocks_remove(uint64_t addr)
{
	for (uint32_t i = 0; i < nblocks; i++) {
		if (blocks[i].start != addr)
			continue;
		__atomic_store_n(&blocks[i].start, 0, __ATOMIC_RELEASE);
		return (int)i;
	}
	return -1;
}

bool rt_unwind_has_room(void)
{
	for (uint32_t i = 0; i < RT_BLOCKS_MAX; i++)
		if (!block_start(&blocks[i]))
			return true;
	return false;
}

void rt_unwind_release(uint64_t addr)
{
	for (uint32_t i = 0; i < nblocks; i++)
		if (blocks[i].start == addr)
			blocks[i].released = true;
}
