/* SPDX-License-Identifier: MIT */
/* Unit tests of collect/pages/maps.c: this process's own mappings. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect/pages/impl.h"

#define PAGE 4096
#define MANY 20000

static struct pages p;

static int begin(void **state)
{
	(void)state;
	memset(&p, 0, sizeof(p));
	return pthread_mutex_init(&p.lock, NULL);
}

static int end(void **state)
{
	(void)state;
	pages_maps_free(&p.maps);
	trace_pages_free(&p.out);
	return 0;
}

static const struct trace_mapping *mapping_at(uint32_t uid, uint64_t start)
{
	vec_for(&p.out.maps, m)
		if (m->uid == uid && m->start == start)
			return m;
	return NULL;
}

/* Of all processes: how often it is noted.  Others come at any time: sanitizers map what they need. */
static size_t times_at(uint64_t start)
{
	size_t n = 0;

	vec_for(&p.out.maps, m)
		n += m->start == start;
	return n;
}

/* Each other page of it has other rights than the one before: as many mappings as pages. */
static uint8_t *pieces(size_t n)
{
	uint8_t *m = mmap(NULL, n * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(m != MAP_FAILED);
	for (size_t i = 0; i < n; i += 2)
		assert_int_equal(mprotect(m + i * PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	return m;
}

static void each_is_noted_once(void **state)
{
	uint8_t *m = pieces(MANY);

	(void)state;
	for (int i = 0; i < 3; i++)
		pages_note_maps(&p, getpid(), 1, 0);
	assert_true(p.out.maps.n >= MANY);
	for (size_t i = 1; i < MANY - 1; i += 1000)
		assert_int_equal(times_at((uintptr_t)m + i * PAGE), 1);
	assert_int_equal(mapping_at(1, (uintptr_t)m + PAGE)->end, (uintptr_t)m + 2 * PAGE);
	munmap(m, MANY * PAGE);
	pages_note_maps(&p, getpid(), 1, 0);
	assert_non_null(mapping_at(1, (uintptr_t)m + PAGE));
	assert_int_equal(pages_unnoted_maps(&p), 0);
}

/* What was noted by a ticket is not noted again when the process has its number. */
static void a_ticket_becomes_a_process(void **state)
{
	uint8_t *m = pieces(10);
	const uint64_t piece = (uintptr_t)m + 3 * PAGE;

	(void)state;
	pages_note_maps(&p, getpid(), 0, 7);
	pages_note_maps(&p, getpid(), 0, 8);
	assert_int_equal(times_at(piece), 2);
	assert_null(mapping_at(3, piece));
	pages_name_owner(&p, 7, 3);
	assert_non_null(mapping_at(3, piece));
	pages_note_maps(&p, getpid(), 3, 0);
	pages_note_maps(&p, getpid(), 0, 8);
	assert_int_equal(times_at(piece), 2);
	pages_maps_end(&p);
	assert_int_equal(times_at(piece), 1);
	assert_non_null(mapping_at(3, piece));
	munmap(m, 10 * PAGE);
}

/* Of a process that has too many, and of all, the rest is counted, and takes no memory. */
static void there_is_a_limit(void **state)
{
	size_t keys;
	uint64_t piece;
	uint8_t *m;

	(void)state;
	pages_note_maps(&p, getpid(), 1, 0);
	keys = p.maps.keys.n;
	m = pieces(1000);
	piece = (uintptr_t)m + 3 * PAGE;
	p.maps.of_owner.v[index_find(&p.maps.owners, 1)] = PAGES_MAPS_OF_ONE;
	pages_note_maps(&p, getpid(), 1, 0);
	assert_int_equal(times_at(piece), 0);
	assert_int_equal(p.maps.keys.n, keys);
	assert_true(pages_unnoted_maps(&p) >= 990);
	pages_note_maps(&p, getpid(), 0, 9);
	assert_int_equal(times_at(piece), 1);
	keys = p.maps.keys.n;
	p.maps.bytes = PAGES_MAPS_BYTES;
	pages_note_maps(&p, getpid(), 0, 10);
	assert_int_equal(times_at(piece), 1);
	assert_int_equal(p.maps.keys.n, keys);
	munmap(m, 1000 * PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_is_noted_once, begin, end),
		cmocka_unit_test_setup_teardown(a_ticket_becomes_a_process, begin, end),
		cmocka_unit_test_setup_teardown(there_is_a_limit, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
