/* SPDX-License-Identifier: MIT */
/* test_recover.c - a full disk, recover, and segments that were damaged. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "collect/recover/recover.h"
#include "tests/unit/collect/drain_rig.h"

/* ---- a full disk, and recover ---- */

static void limit_files(rlim_t bytes)
{
	struct rlimit r;

	getrlimit(RLIMIT_FSIZE, &r);
	r.rlim_cur = bytes;
	setrlimit(RLIMIT_FSIZE, &r);
}

static void a_full_disk_loses_nothing(void **state)
{
	pid_t pid = start_sleeper();
	struct recovery r;
	struct err err = {{0}};
	struct recording b;
	char *dir;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	board_open(&b, "disk", KRON_WHEN_FULL_DISCARD);
	dir = xstrdup(b.dir);
	slot_claim(&b, 0, 1, pid, 0);
	for (uint32_t i = 0; i < 4; i++) {
		fill(&b, i, KRON_CHUNK_SAMPLES);
		claim(&b, i, KRON_CHUNK_FULL, 0, 1, pid);
	}
	fill(&b, 4, 11);
	claim(&b, 4, KRON_CHUNK_OWNED, 0, 1, pid);
	assert_int_equal(b.seg.ctl->gate[0], 1);
	limit_files(40000); /* two chunks, packed, and a bit */
	assert_int_equal(drain_round(&b.drain, true, true), 2);
	assert_int_equal(b.seg.ctl->gate[0], 0);
	assert_int_equal(b.drain.totals.samples, 2 * KRON_CHUNK_SAMPLES);
	end_sleeper(pid);
	drain_all(&b.drain);
	assert_int_equal(b.drain.totals.stranded, 2 * KRON_CHUNK_SAMPLES + 11);
	limit_files(RLIM_INFINITY);
	board_close(&b, true);
	assert_int_equal(samples_in(dir), 2 * KRON_CHUNK_SAMPLES);
	if (recover_trace(dir, &r, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(r.recovered, 2 * KRON_CHUNK_SAMPLES + 11);
	assert_int_equal(samples_in(dir), 4 * KRON_CHUNK_SAMPLES + 11);
	assert_int_equal(recover_trace(dir, &r, &err), -EALREADY);
	xfree(dir);
}

static void recover_adds_no_chunk_twice(void **state)
{
	struct kron_chunk *copy = xmalloc(KRON_CHUNK_SIZE);
	struct recovery r;
	struct err err = {{0}};
	struct recording b;
	char *dir;

	(void)state;
	board_open(&b, "twice", KRON_WHEN_FULL_DISCARD);
	dir = xstrdup(b.dir);
	slot_claim(&b, 0, 1, getpid(), 0);
	b.seg.procs[0].lost = 5;
	fill(&b, 0, KRON_CHUNK_SAMPLES);
	memcpy(copy, segment_chunk(&b.seg, 0), KRON_CHUNK_SIZE);
	claim(&b, 0, KRON_CHUNK_FULL, 0, 1, getpid());
	assert_int_equal(drain_round(&b.drain, false, false), 1);
	/* Killed between the write and the zeroing, so to speak. */
	memcpy(segment_chunk(&b.seg, 0), copy, KRON_CHUNK_SIZE);
	claim(&b, 0, KRON_CHUNK_FULL, 0, 1, getpid());
	fill(&b, 1, 20);
	claim(&b, 1, KRON_CHUNK_OWNED, 0, 1, getpid());
	assert_int_equal(recover_trace(dir, &r, &err), -EBUSY); /* the collector lives */
	board_close(&b, true);
	if (recover_trace(dir, &r, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(r.living, 1); /* that is us */
	assert_int_equal(r.recovered, 20);
	assert_int_equal(r.in_file, KRON_CHUNK_SAMPLES);
	assert_int_equal(r.lost, 5);
	assert_int_equal(r.processes, 1);
	assert_int_equal(samples_in(dir), KRON_CHUNK_SAMPLES + 20);
	xfree(copy);
	xfree(dir);
}

static void recover_without_a_segment_says_so(void **state)
{
	struct recovery r;
	struct err err = {{0}};
	struct recording b;
	char *dir;

	(void)state;
	board_open(&b, "gone", KRON_WHEN_FULL_DISCARD);
	dir = xstrdup(b.dir);
	board_close(&b, false);
	assert_int_equal(recover_trace(dir, &r, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "gone"));
	assert_true(recover_trace("/nonexistent", &r, &err) < 0);
	xfree(dir);
}

/* Whatever the traced processes wrote into the segment, recover ends. */
static void a_hostile_segment_is_survived(void **state)
{
	unsigned seed = 7;

	(void)state;
	for (int round = 0; round < 12; round++) {
		struct recovery r;
		struct err err = {{0}};
		struct recording b;
		char name[40];
		uint8_t *p;
		char *dir;

		board_open(&b, "hostile", KRON_WHEN_FULL_DISCARD);
		dir = xstrdup(b.dir);
		strcpy(name, b.seg.name);
		for (uint32_t i = 0; i < segment_ready(&b.seg); i++) {
			b.seg.states[i] = (uint64_t)rand_r(&seed) << 33 ^
					  (uint64_t)rand_r(&seed) << 4 ^
					  (unsigned)rand_r(&seed) % 6;
			p = (uint8_t *)segment_chunk(&b.seg, i);
			for (int k = 0; k < 4000; k++)
				p[(unsigned)rand_r(&seed) % KRON_CHUNK_SIZE] =
					(uint8_t)rand_r(&seed);
		}
		segment_grow_procs(&b.seg);
		p = (uint8_t *)b.seg.procs;
		for (int k = 0; k < 20000; k++) /* no pid of anybody: kill(pid, 0) harms none */
			p[(unsigned)rand_r(&seed) % (64 * 300)] = (uint8_t)rand_r(&seed);
		if (round % 2) {
			b.seg.ctl->chunks_ready = 0xffffffff;
			b.seg.ctl->chunks_max = 0xffffffff;
			b.seg.ctl->next_uid = (uint32_t)rand_r(&seed);
		}
		if (round % 3 == 0)
			drain_round(&b.drain, true, true);
		if (round == 11)
			b.seg.ctl->magic = 0;
		board_close(&b, true);
		if (round == 11)
			assert_int_equal(recover_trace(dir, &r, &err), -EINVAL);
		else
			recover_trace(dir, &r, &err);
		samples_in(dir);
		shm_unlink(name); /* still there when it could not be recovered */
		xfree(dir);
	}
}

static void a_segment_is_checked(void **state)
{
	struct segment seg;
	struct err err;

	(void)state;
	assert_int_equal(segment_open(&seg, "/etc/passwd", -1, &err), -EINVAL);
	assert_int_equal(segment_open(&seg, "/kron-../../../etc", -1, &err), -EINVAL);
	assert_int_equal(segment_open(&seg, "/kron-0123456789abcdef", -1, &err), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_disk_loses_nothing),
		cmocka_unit_test(recover_adds_no_chunk_twice),
		cmocka_unit_test(recover_without_a_segment_says_so),
		cmocka_unit_test(a_hostile_segment_is_survived),
		cmocka_unit_test(a_segment_is_checked),
	};

	return cmocka_run_group_tests(tests, make_base, remove_base);
}
