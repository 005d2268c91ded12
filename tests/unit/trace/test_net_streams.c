/* SPDX-License-Identifier: MIT */
/*
 * test_net_streams.c - which bytes of a stream each call has transferred.
 *
 * The calls of some threads are made at random; every two of them are compared, and what net_stream_settle() says of their
 * places is held against that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trace/messages/net_impl.h"

enum { CALLS = 60, LANES = 4, RUNS = 20000 };

static uint64_t state = 88172645463325252u;

static unsigned dice(unsigned n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state >> 33) % n;
}

static void add(struct net_stream *s, uint32_t lane, uint64_t begin, uint64_t end, int64_t n,
		unsigned slack)
{
	net_stream_add(s, &(struct net_call){.lane = lane,
					     .is_receive = true,
					     .n = n,
					     .begin = begin,
					     .earliest = begin - slack,
					     .end = end,
					     .latest = end == UINT64_MAX ? end : end + slack});
}

static void make(struct net_stream *s, unsigned n, unsigned lanes, unsigned gap, unsigned slack)
{
	uint64_t now[LANES] = {100, 103, 106, 109};
	struct net_call last = {.begin = 0};

	for (unsigned i = 0; i < n; i++) {
		const unsigned lane = dice(lanes);
		const uint64_t begin = now[lane] + dice(gap), end = begin + 1 + dice(8);

		now[lane] = end;
		/* one that never came back is the last one of its thread */
		if (!dice(4 * CALLS) && !last.begin)
			last = (struct net_call){.lane = lane, .begin = begin};
		else if (!last.begin || last.lane != lane)
			add(s, lane, begin, end, 1 + dice(9), slack);
	}
	if (last.begin)
		add(s, last.lane, last.begin, UINT64_MAX, 0, slack);
}

/* joined[i]: the call and the one before it are of one group. */
static void compare_all(const struct net_stream *s, bool *joined)
{
	for (size_t i = 0; i < s->parts.n; i++)
		for (size_t k = 0; k < i; k++)
			if (s->parts.v[k].lane != s->parts.v[i].lane &&
			    s->parts.v[k].latest > s->parts.v[i].earliest)
				memset(joined + k + 1, true, i - k);
}

static void need_places(const struct net_stream *s)
{
	bool joined[CALLS + 2] = {false}, is_known = true;
	uint64_t offset = 0;

	compare_all(s, joined);
	for (size_t i = 0, end; i < s->parts.n; i = end) {
		uint64_t sum = 0;

		for (end = i; end < s->parts.n && (end == i || joined[end]); end++) {
			is_known = is_known && s->parts.v[end].n != NET_UNKNOWN;
			sum += s->parts.v[end].n;
		}
		for (size_t k = i; k < end; k++) {
			const struct net_part *p = &s->parts.v[k];

			assert_int_equal(p->offset, is_known ? offset : NET_UNKNOWN);
			if (!is_known)
				continue;
			assert_int_equal(p->span, sum);
			assert_int_equal(p->is_unordered, end - i > 1);
		}
		offset += is_known ? sum : 0;
	}
	assert_int_equal(s->total, offset);
	assert_int_equal(s->is_untold, !is_known);
}

static void test_random(void **arg)
{
	(void)arg;
	for (unsigned run = 0; run < RUNS; run++) {
		struct net_stream s = {.total = 0};

		make(&s, 1 + dice(CALLS), 1 + dice(LANES), 1 + dice(60), run % 2 ? 0 : dice(9));
		net_stream_settle(&s);
		need_places(&s);
		vec_free(&s.parts);
	}
}

/* One thread waits all the time while another one receives: a group, and no time that grows with its square. */
static void test_long(void **arg)
{
	struct net_stream s = {.total = 0};
	const unsigned n = 300000;

	(void)arg;
	add(&s, 0, 1, 10 * n + 20, 5, 0);
	for (unsigned i = 0; i < n; i++)
		add(&s, 1, 10 + 10 * i, 15 + 10 * i, 1, 0);
	net_stream_settle(&s);
	assert_int_equal(s.total, n + 5);
	assert_int_equal(s.parts.v[n].span, n + 5);
	vec_free(&s.parts);
}

static void test_ends(void **arg)
{
	struct net_stream s = {.total = 0};

	(void)arg;
	add(&s, 0, 1, 2, -11, 0);
	assert_false(s.has_ended || s.parts.n);
	net_stream_add(&s, &(struct net_call){.is_receive = true, .is_empty = true, .end = 5});
	assert_false(s.has_ended);
	add(&s, 0, 6, 7, 0, 0);
	assert_true(s.has_ended);
	net_stream_settle(&s);
	assert_int_equal(s.total, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_ends),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
