/* SPDX-License-Identifier: MIT */
/*
 * Unit tests of bus/local_memory on a made-up board that stores samples while it is read: each
 * read of memory finds `meanwhile` more words stored.  Samples carry numbers, so that what comes
 * out can be told.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "board/bus/find_sample.h"
#include "board/bus/local_memory.h"

static uint32_t memory[KRON_BOARD_MEMORY_WORDS];
static uint64_t stored; /* words since the beginning */
static uint32_t config, meanwhile;

/* Word w of an endless row of samples; every seventh is a Resource sample. */
static uint32_t word_of_stream(uint64_t w)
{
	const uint64_t round = 6 * 5 + 21;
	uint64_t in = w % round, number = w / round * 7 + (in < 30 ? in / 5 : 6);
	uint64_t time = 1000 * number;

	switch (in < 30 ? in % 5 : in - 30) {
	case 0:
		return (in < 30 ? 2u : 3u) << 27 | (uint32_t)(time >> 32);
	case 1:
		return (uint32_t)time;
	case 2:
		return 4711;
	case 3:
		return 0;
	case 4:
		return (uint32_t)number;
	default:
		return (uint32_t)(0x9e3779b9 * w);
	}
}

static void store(uint64_t n)
{
	for (; n; n--, stored++)
		memory[stored % KRON_BOARD_MEMORY_WORDS] = word_of_stream(stored);
}

static uint32_t read32(struct bus *b, uint32_t offset)
{
	(void)b;
	if (offset == KRON_BOARD_MAP)
		return (uint32_t)stored | ~KRON_MAP_MASK;
	assert_int_equal(offset, KRON_BOARD_CONFIG);
	return config;
}

static void read_memory(struct bus *b, uint32_t first, uint32_t n, uint32_t *out)
{
	(void)b;
	assert_true(first <= KRON_BOARD_MEMORY_WORDS && n <= KRON_BOARD_MEMORY_WORDS - first);
	store(meanwhile);
	memcpy(out, memory + first, n * sizeof(*out));
}

static const struct bus_ops ops = {.read32 = read32, .read_memory = read_memory};

static uint64_t number_at(const struct local_memory *m, size_t at)
{
	return m->words[at + 4];
}

/* Every sample is there, from the first one on, and each is whole. */
static void check(const struct local_memory *m, uint64_t *first, uint64_t *last)
{
	size_t at = 0, size;
	uint64_t n;

	*first = number_at(m, 0);
	for (n = *first; at < m->n; n++, at += size) {
		size = sample_size((const uint8_t *)(m->words + at)) / 4;
		assert_int_equal(size, n % 7 == 6 ? 21 : 5);
		assert_int_equal(number_at(m, at), n);
		for (size_t i = 5; i < size; i++)
			assert_int_equal(m->words[at + i], word_of_stream(n / 7 * 51 + 30 + i));
	}
	assert_int_equal(at, m->n);
	*last = n - 1;
}

static void begin(uint64_t words, uint32_t more)
{
	memset(memory, 0, sizeof(memory));
	stored = 0;
	store(words);
	meanwhile = more;
}

static void read_all(struct local_memory *m)
{
	const struct local_range all = {0};
	struct bus b = {.ops = &ops};
	struct err err;

	assert_int_equal(local_memory_read(m, &b, &all, &err), 0);
}

static void what_is_overwritten_while_it_is_read_is_left_out(void **state)
{
	const uint64_t full = KRON_BOARD_MEMORY_WORDS;

	(void)state;
	for (uint32_t more = 0; more < 300; more += more < 30 ? 1 : 57) {
		for (unsigned wraps = 1; wraps <= 5; wraps += 2) {
			uint64_t total = wraps * full + 12345 + 7 * more, first, last;
			struct local_memory m;

			begin(total, more);
			read_all(&m);
			check(&m, &first, &last);
			assert_true(m.wrapped);
			/* first: the first whole one that is not older than what was overwritten */
			assert_true(m.overwritten >= more && m.overwritten <= 4 * more);
			assert_in_range(m.oldest, 0, 20);
			assert_in_range(m.newest, 0, 20);
			assert_int_equal(m.n + m.overwritten + m.oldest + m.newest, full);
			local_memory_free(&m);
		}
	}
}

static void a_memory_that_fills_up_while_it_is_read(void **state)
{
	uint64_t first, last;
	struct local_memory m;

	(void)state;
	/* 100 words are free, 150 come: the 50 oldest go */
	begin(KRON_BOARD_MEMORY_WORDS - 100, 150);
	read_all(&m);
	check(&m, &first, &last);
	assert_true(m.overwritten >= 50);
	assert_true(first >= 8);
	local_memory_free(&m);
	/* the board stores faster than anybody reads */
	begin(2 * (uint64_t)KRON_BOARD_MEMORY_WORDS, KRON_BOARD_MEMORY_WORDS);
	read_all(&m);
	assert_int_equal(m.n, 0);
	local_memory_free(&m);
}

static void a_simple_buffer_keeps_the_oldest(void **state)
{
	uint64_t first, last;
	struct local_memory m;

	(void)state;
	config = KRON_CONFIG_WRAPB;
	begin(KRON_BOARD_MEMORY_WORDS, 0);
	stored = KRON_BOARD_MEMORY_WORDS - 1; /* the pointer stops there */
	read_all(&m);
	check(&m, &first, &last);
	assert_int_equal(first, 0);
	assert_in_range(m.n, KRON_BOARD_MEMORY_WORDS - 20, KRON_BOARD_MEMORY_WORDS);
	local_memory_free(&m);
	config = 0;
}

/* Whatever memory holds, the walk ends, and each word is a sample's, damage, or cut off. */
static void any_memory_is_accounted_for(void **state)
{
	static const uint32_t kinds[] = {0, 2u << 27, 3u << 27, 1u << 24};
	uint64_t x = 88172645463325252ull;

	(void)state;
	for (uint32_t round = 0; round < 400; round++) {
		const uint32_t n = 1 + round * 7 % 997;
		struct local_memory m;

		begin(n, 0);
		for (uint32_t i = 0; i < round % 60 * n / 40; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			memory[x % n] = x >> 60 ? (uint32_t)(x >> 20) : kinds[x >> 40 & 3];
		}
		read_all(&m);
		assert_int_equal(m.n + m.oldest + m.newest + m.overwritten, n);
		assert_int_equal(5 * m.trace + 21 * m.resource + m.damaged, m.n);
		local_memory_free(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_overwritten_while_it_is_read_is_left_out),
		cmocka_unit_test(a_memory_that_fills_up_while_it_is_read),
		cmocka_unit_test(a_simple_buffer_keeps_the_oldest),
		cmocka_unit_test(any_memory_is_accounted_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
