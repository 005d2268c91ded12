/* SPDX-License-Identifier: MIT */
/*
 * test_plan_file.c - plans saved and loaded; damaged files are refused.
 *
 * plan_file.c is compiled into this test, so that a damaged file can be given a checksum that
 * is right: only then do the checks after it get something to do.
 */
#define _GNU_SOURCE
#include <stdlib.h>

#include "inject/disk/plan_file.c"
#include "tests/unit/inject/plan_rig.h"

/* ---- files ---- */

static void load_gives_what_was_saved(void **state)
{
	struct plan *p = plan_of_libc(false), *q;
	size_t n, m;
	uint8_t *x = saved(p, &n), *y;

	(void)state;
	assert_int_equal(load_bytes(&q, x, n), 0);
	y = saved(q, &m);
	assert_int_equal(n, m);
	assert_memory_equal(x, y, n);
	assert_int_equal(q->nfunctions, p->nfunctions);
	assert_true(p->njumps > 0);
	assert_int_equal(q->njumps, p->njumps);
	assert_int_equal(q->text_hi, p->text_hi);
	assert_int_equal(q->build_id_len, p->build_id_len);
	plan_free(p);
	plan_free(q);
	xfree(x);
	xfree(y);
}

static void empty_plan_can_be_saved(void **state)
{
	struct plan *p = plan_file_of("/proc/self/exe", true), *q;
	size_t n;
	uint8_t *x = saved(p, &n);

	(void)state;
	assert_int_equal(load_bytes(&q, x, n), 0);
	assert_int_equal(q->nsites, 0);
	plan_free(p);
	plan_free(q);
	xfree(x);
}

static void cut_files_are_refused(void **state)
{
	struct plan *p = plan_of_libc(true), *q;
	size_t n;
	uint8_t *x = saved(p, &n);

	(void)state;
	for (size_t len = 0; len < n; len += len < 256 ? 1 : 61)
		assert_int_equal(load_bytes(&q, x, len), -EINVAL);
	plan_free(p);
	xfree(x);
}

static void flipped_bits_are_refused(void **state)
{
	struct plan *p = plan_of_libc(true), *q;
	size_t n;
	uint8_t *x = saved(p, &n);

	(void)state;
	for (size_t i = 0; i < n; i += i < 200 ? 1 : 7) {
		x[i] ^= 1 << i % 8;
		assert_int_equal(load_bytes(&q, x, n), -EINVAL);
		x[i] ^= 1 << i % 8;
	}
	plan_free(p);
	xfree(x);
}

/* Damage with a right checksum: refused, or harmless. */
static void lying_files_do_no_harm(void **state)
{
	struct plan *p = plan_of_libc(true), *q;
	size_t n;
	uint8_t *good = saved(p, &n), *x = xmalloc(n);
	struct header h;
	unsigned loaded = 0, refused = 0;

	(void)state;
	srand(1);
	for (int round = 0; round < 6000; round++) {
		size_t at = 64 + rand() % (n - 64 - 8);
		static const uint64_t values[] = {0,          1,          0xff,       0xffff,
						  0x7fffffff, UINT32_MAX, 1ull << 32, UINT64_MAX};
		uint64_t value = values[rand() % 8];

		memcpy(x, good, n);
		memcpy(x + at, &value, 1 << rand() % 4);
		memcpy(&h, x, sizeof(h));
		h.checksum = file_checksum((const struct header *)x);
		memcpy(x, &h, sizeof(h));
		if (load_bytes(&q, x, n) == 0) {
			struct binding b = binding_of(q, select_all(q), true);
			struct bound out = {0};
			struct plan_counts c;

			loaded++;
			plan_count(q, PROBE_HOOK, &c);
			if (bind_make(&out, &b, NULL) == 0)
				bound_free(&out);
			xfree((void *)b.selected);
			plan_free(q);
		} else {
			refused++;
		}
	}
	assert_true(loaded > 100 && refused > 100);
	plan_free(p);
	xfree(good);
	xfree(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(load_gives_what_was_saved),
		cmocka_unit_test(empty_plan_can_be_saved),
		cmocka_unit_test(cut_files_are_refused),
		cmocka_unit_test(flipped_bits_are_refused),
		cmocka_unit_test(lying_files_do_no_harm),
	};

	return cmocka_run_group_tests_name("plan_file", tests, NULL, NULL);
}
