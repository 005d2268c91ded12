/* SPDX-License-Identifier: MIT */
/* counts.c - see counts.h */
#include "collect/counts.h"

#include <inttypes.h>
#include <stdio.h>

#include <string.h>

#include "board/bus/lanes.h"
#include "board/bus/object.h"

static struct kron_counts *table_of(const struct segment *seg)
{
	return (struct kron_counts *)(seg->window.base + KRON_COUNTS_OFFSET);
}

void counts_start(struct segment *seg)
{
	struct kron_ctl *ctl = seg->ctl;

	/* a board that stays may have them from its last recorder; the table is wiped with it */
	memset(ctl->counts, 0, sizeof(ctl->counts));
	ctl->counts_used = ctl->counts_ready = 0;
}

void counts_make_room(struct segment *seg)
{
	struct kron_ctl *ctl = seg->ctl;

	if (__atomic_load_n(&ctl->counts_ready, __ATOMIC_ACQUIRE))
		return;
	if (object_get_pages(seg->fd, KRON_COUNTS_OFFSET,
			     KRON_COUNTS_MAX * sizeof(struct kron_counts)))
		return;
	/* Release: who reads it finds pages; partner: runtime/bus/action.c. */
	__atomic_store_n(&ctl->counts_ready, KRON_COUNTS_MAX, __ATOMIC_RELEASE);
}

/* Four bits a counter (NISTIR 5571, Tables B5 and B7). */
static uint64_t fields(uint16_t counters, unsigned value)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < KRON_COUNTERS; i++)
		if (counters >> i & 1)
			all |= (uint64_t)value << 4 * i;
	return all;
}

void counts_set_up(struct bus *b, uint16_t counters)
{
	if (!counters)
		return;
	bus_write64(b, KRON_CHIP_BYTE(KRON_WORD_MODE), fields(counters, KRON_MODE_SOFTWARE));
	bus_write64(b, KRON_CHIP_BYTE(KRON_WORD_ENABLE), fields(counters, KRON_ENABLE_RESET));
	bus_write64(b, KRON_CHIP_BYTE(KRON_WORD_ENABLE), fields(counters, KRON_ENABLE_ON));
}

void counts_release(struct segment *seg, uint32_t uid)
{
	struct kron_counts *table = table_of(seg);
	uint32_t used = lanes_counts_used(seg->ctl);

	for (uint32_t i = 0; i < used; i++) {
		uint64_t word = __atomic_load_n(&table[i].word, __ATOMIC_RELAXED);

		if (word && kron_chunk_word_uid(word) == (uid & 0x3fffff))
			__atomic_store_n(&table[i].word, 0, __ATOMIC_RELEASE);
	}
}

void counts_read_board(struct bus *b, uint64_t out[KRON_COUNTERS])
{
	/* with copy: as of now */
	for (unsigned k = 0; k < KRON_COUNTERS; k++)
		out[k] = bus_read32(b, KRON_CHIP_BYTE(KRON_WORD_COUNTER + k));
}

void counts_write(struct journal *j, const uint64_t counts[KRON_COUNTERS])
{
	char key[16];

	for (unsigned k = 0; k < KRON_COUNTERS; k++) {
		if (!counts[k])
			continue;
		snprintf(key, sizeof(key), "counter.%u", k);
		journal_session(j, key, "%" PRIu64, counts[k]);
	}
}
