/* SPDX-License-Identifier: MIT */
/* test_packed.c - what is packed comes out again, and what nobody packed does no harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trace/packed.h"

#define MAX 3276u

static uint64_t seed = 88172645463325252ull;

static uint64_t dice(uint64_t sides)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % sides;
}

static struct kron_sample sample(uint64_t time, unsigned cpu, uint32_t event, uint32_t payload)
{
	return (struct kron_sample){.head = KRON_HEAD_TRACE(cpu) |
					    ((uint32_t)(time >> 32) & KRON_HEAD_TIME_MASK),
				    .time_lo = (uint32_t)time,
				    .source = 4711,
				    .payload = payload,
				    .event = event};
}

/* Each of n samples comes out, holes left out, and nothing else. */
static void expect_same(const struct kron_sample *s, size_t n, const uint8_t *packed, size_t size)
{
	const struct kron_sample *got;
	struct sample_walk w;
	uint64_t damaged = 0;

	sample_walk_start(&w, packed, size, true);
	for (size_t i = 0; i < n; i++) {
		if (!s[i].head)
			continue;
		got = sample_walk_next(&w, &damaged);
		assert_non_null(got);
		assert_memory_equal(got, &s[i], sizeof(*got));
	}
	assert_null(sample_walk_next(&w, &damaged));
	assert_null(sample_walk_next(&w, &damaged));
	assert_int_equal(damaged, 0);
}

/* And all of them at once, with the holes where they were. */
static void expect_restored(const struct kron_sample *s, size_t n, const uint8_t *packed,
			    size_t size)
{
	static const struct kron_sample hole;
	struct kron_sample *out = malloc((n + 1) * sizeof(*out));

	assert_non_null(out);
	assert_int_equal(packed_restore(out, (n + 1) * sizeof(*out), packed, size),
			 n * sizeof(*out));
	for (size_t i = 0; i < n; i++)
		assert_memory_equal(&out[i], s[i].head ? &s[i] : &hole, sizeof(*out));
	if (n)
		assert_int_equal(packed_restore(out, (n - 1) * sizeof(*out), packed, size),
				 (n - 1) * sizeof(*out));
	free(out);
}

/* Into a block of just that size, so that a byte too far is seen; how many bytes it took. */
static size_t pack(const struct kron_sample *s, size_t n, size_t room)
{
	uint8_t *out = malloc(room ? room : 1);
	size_t size;

	assert_non_null(out);
	size = packed_make(out, room, s, n * sizeof(*s));
	assert_true(size <= room);
	if (size) {
		expect_same(s, n, out, size);
		expect_restored(s, n, out, size);
	}
	free(out);
	return size;
}

static size_t filled(size_t n)
{
	return (n + 3) / 4 * 4;
}

static void what_is_new_takes_five_bytes(void **state)
{
	struct kron_sample s[100];

	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		s[i] = sample((1ull << 32) - 3000 + 60 * i, 1, 2 * i + 2, 0x7ffe0000 + 16 * i);
	assert_int_equal(pack(s, 100, sizeof(s)), filled(21 + 99 * 5));
}

/* A loop: all of it is new once, but for the histories of its very first turns. */
static void what_comes_again_takes_a_byte(void **state)
{
	const uint32_t events[] = {20, 30, 31, 40, 50, 51, 41, 21};
	const uint32_t depths[] = {0, 64, 64, 48, 4096, 4096, 48, 0};
	static struct kron_sample s[MAX];
	size_t size;

	(void)state;
	for (uint32_t i = 0; i < MAX; i++)
		s[i] = sample(70 * i, 0, events[i % 8], 0x7ffe0000 - depths[i % 8]);
	size = pack(s, MAX, sizeof(s));
	assert_in_range(size, MAX + 7 * 4, MAX + 20 + 16 * 8);
}

/* Two records a sample: each of them as the one of its kind before. */
static void wide_samples_take_two_bytes(void **state)
{
	static struct kron_sample s[MAX];
	size_t size;

	(void)state;
	for (uint32_t i = 0; i < MAX; i += 2) {
		s[i] = sample(70 * i, 0, KRON_EVENT_WIDE, 0x7ffe);
		s[i + 1] = sample(70 * i, 0, 20, 0xfffff000 + 8 * i);
	}
	size = pack(s, MAX, sizeof(s));
	assert_in_range(size, MAX, MAX + 100);
}

static void edges_come_out(void **state)
{
	const uint64_t top = 1ull << 56;
	struct kron_sample s[] = {
		sample(top - 10, 7, 0xffff, 0xffffffff),
		sample(top + 20, 7, 0, 0),       /* the clock's 56 bits go round */
		sample(top + 20, 7, 0, 0),       /* no tick */
		sample(top + 20, 7, 0x10000, 1), /* a large event */
		sample(top + 19, 7, 1, 1),       /* back: a handler's */
		sample(top + 20, 6, 5, 1),       /* another CPU */
		{0},                             /* a hole */
		sample(top + 21, 6, 5, 1),       /* as before the hole */
		sample(top + 21 + (1ull << 32) - 1, 6, 5, 1),
		sample(top + 21 + (1ull << 33) - 1, 6, 5, 1),
		sample(top + 22 + (1ull << 33), 6, KRON_EVENT_LOST, 3),
		sample(top + 23 + (1ull << 33), 6, KRON_EVENT_CPU, 300),
	};
	size_t n = sizeof(s) / sizeof(s[0]);

	(void)state;
	s[5].source = 4712;
	s[2].head |= KRON_HEAD_FIFO_OVERFLOW;
	assert_true(pack(s, n, 1000) > 0);
}

/* Each number of ticks with each step, all around the limits of the pieces; guessed and not. */
static void limits_come_out(void **state)
{
	const uint32_t ticks[] = {0,     1,      0xef,   0xf0,    0xff,    0x100,      0x7ff,
				  0x800, 0xfffe, 0xffff, 0x10000, 0x10001, 0xffffffffu};
	const uint32_t steps[] = {
		0,       1, 7, 8, 1016, 1023, 1024, (uint32_t)-8, (uint32_t)-1024, (uint32_t)-1032,
		1u << 31};
	const uint32_t events[] = {0, 1, 0xfffe, 0xffff, 0x10000, 0xffffffffu};
	struct kron_sample s[60];

	(void)state;
	for (size_t t = 0; t < sizeof(ticks) / 4; t++)
		for (size_t d = 0; d < sizeof(steps) / 4; d++)
			for (size_t e = 0; e < sizeof(events) / 4; e++) {
				for (uint32_t i = 0; i < 60; i++)
					s[i] = sample((1ull << 40) + (uint64_t)i * ticks[t], 3,
						      events[e], i * steps[d]);
				assert_true(pack(s, 60, sizeof(s)) > 0);
			}
}

static void random_lanes_come_out(void **state)
{
	static struct kron_sample s[MAX];

	(void)state;
	for (int round = 0; round < 300; round++) {
		uint64_t time = dice(1ull << 56), wild = 1 + dice(200);
		uint64_t loop = 1 + dice(100), surprise = 1 + dice(50);
		unsigned cpu = 0;
		size_t n = 1 + dice(MAX);

		for (size_t i = 0; i < n; i++) {
			bool odd = dice(wild) == 0;

			time += odd ? dice(1ull << 40) - (1ull << 39) : dice(300);
			cpu = odd ? (unsigned)dice(8) : cpu;
			s[i] = sample(time, cpu, (uint32_t)(i % loop), (uint32_t)(8 * (i % loop)));
			if (odd || dice(surprise) == 0)
				s[i] = sample(time, cpu, (uint32_t)dice(odd ? 1ull << 32 : 5000),
					      (uint32_t)dice(1ull << 32));
			if (dice(surprise) == 0)
				s[i].event = KRON_EVENT_WIDE;
			if (odd && dice(3) == 0)
				memset(&s[i], 0, sizeof(s[i]));
		}
		pack(s, n, n * (4 + sizeof(s[0])));
	}
}

static void no_room_or_a_resource_sample_is_refused(void **state)
{
	struct kron_sample s[10];
	size_t size;

	(void)state;
	for (uint32_t i = 0; i < 10; i++)
		s[i] = sample(100 * i, 0, i, i);
	size = pack(s, 10, sizeof(s));
	assert_int_equal(size, filled(21 + 9 * 9));
	for (size_t room = 0; room < size; room++)
		assert_int_equal(pack(s, 10, room), 0);
	assert_int_equal(packed_make((uint8_t[500]){0}, 500, s, sizeof(s) - 4), 0);
	s[5].head |= KRON_HEAD_TYPE_RESOURCE << KRON_HEAD_TYPE_SHIFT;
	assert_int_equal(pack(s, 10, sizeof(s)), 0);
}

/* Whatever the bytes: only Trace samples, an end, and every byte accounted for. */
static void garbage_is_walked_to_its_end(void **state)
{
	(void)state;
	for (int round = 0; round < 20000; round++) {
		size_t n = dice(200), steps = 0;
		uint8_t *data = malloc(n ? n : 1);
		const struct kron_sample *s;
		struct sample_walk w;
		uint64_t damaged = 0;

		assert_non_null(data);
		for (size_t i = 0; i < n; i++)
			data[i] = (uint8_t)(dice(3) ? dice(256) : 0xf8 + dice(8));
		if (n > 4 && dice(2)) {
			const uint32_t head = KRON_HEAD_TRACE(1);

			data[0] = 0xff;
			memcpy(data + 1, &head, sizeof(head));
		}
		sample_walk_start(&w, data, n, true);
		while ((s = sample_walk_next(&w, &damaged))) {
			assert_int_equal(s->head >> KRON_HEAD_TYPE_SHIFT & KRON_HEAD_TYPE_MASK,
					 KRON_HEAD_TYPE_TRACE);
			steps++;
		}
		assert_true(steps + damaged <= n);
		free(data);
	}
}

static void a_cut_short_chunk_gives_what_is_whole(void **state)
{
	struct kron_sample s[3] = {sample(1, 0, 1, 1), sample(2, 0, 2, 2), sample(3, 1, 3, 3)};
	uint8_t out[200];
	size_t size = packed_make(out, sizeof(out), s, sizeof(s));

	(void)state;
	assert_int_equal(size, filled(21 + 9 + 21));
	for (size_t cut = 0; cut <= size; cut++) {
		const size_t ends[] = {0, 21, 30, 51};
		size_t whole = cut < 21 ? 0 : cut < 30 ? 1 : cut < 51 ? 2 : 3, n = 0;
		uint64_t damaged = 0;
		struct sample_walk w;

		sample_walk_start(&w, out, cut, true);
		while (sample_walk_next(&w, &damaged))
			n++;
		assert_int_equal(n, whole);
		assert_int_equal(damaged, whole > 2 ? 0 : cut - ends[whole]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_new_takes_five_bytes),
		cmocka_unit_test(what_comes_again_takes_a_byte),
		cmocka_unit_test(wide_samples_take_two_bytes),
		cmocka_unit_test(edges_come_out),
		cmocka_unit_test(limits_come_out),
		cmocka_unit_test(random_lanes_come_out),
		cmocka_unit_test(no_room_or_a_resource_sample_is_refused),
		cmocka_unit_test(garbage_is_walked_to_its_end),
		cmocka_unit_test(a_cut_short_chunk_gives_what_is_whole),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
