/* SPDX-License-Identifier: MIT */
/*
 * test_landings.c - threads and handlers' frames that stand at a jump of ours: this process has a block, and jumps
 * that lead there.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect/live/landings.h"

#define SESSION 0x1234abcdull
#define STUB 64 /* in the block */

static uint8_t *block, *text;
static struct live_threads t;
static struct process_maps maps;

static void jump_near(unsigned at, const uint8_t *to)
{
	const int32_t far = (int32_t)(to - (text + at + 5));

	text[at] = 0xe9;
	memcpy(text + at + 1, &far, sizeof(far));
}

static void jump_short(unsigned at, unsigned to)
{
	text[at] = 0xeb;
	text[at + 1] = (uint8_t)(to - at - 2);
}

static int set_up(void **state)
{
	struct err err;
	int fd = memfd_create("kron:1234abcd:1", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(ftruncate(fd, 4096), 0);
	text = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	block = mmap(text + 4096, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0);
	assert_ptr_not_equal(block, MAP_FAILED);
	close(fd);
	t = (struct live_threads){.pid = getpid(),
				  .mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC)};
	assert_int_equal(process_maps_read(&maps, getpid(), &err), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	process_maps_free(&maps);
	vec_free(&t.v);
	close(t.mem);
	munmap(text, 8192);
	return 0;
}

static uint64_t address(const uint8_t *p)
{
	return (uint64_t)(uintptr_t)p;
}

static uint64_t follow(unsigned at)
{
	return landings_follow(&t, &maps, SESSION, address(text + at));
}

static void a_jump_into_the_block(void **state)
{
	(void)state;
	jump_near(100, block + STUB);
	assert_int_equal(follow(100), address(block + STUB));
	text[99] = 0x2e; /* a prefix in front of it */
	assert_int_equal(follow(99), address(block + STUB));
	assert_int_equal(landings_follow(&t, &maps, SESSION + 1, address(text + 100)),
			 address(text + 100));
}

static void by_relays(void **state)
{
	(void)state;
	jump_short(10, 50);
	jump_short(50, 20);
	jump_near(20, block + STUB);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(follow((unsigned[]){10, 50, 20}[i]), address(block + STUB));
}

/* Jumps of the program's, in a ring, out of its memory; and what is no jump. */
static void others_stay(void **state)
{
	(void)state;
	jump_near(10, text + 200);
	jump_short(300, 340);
	jump_short(340, 300);
	jump_near(400, text - (1u << 30));
	text[500] = 0xe8;
	for (unsigned i = 0; i < 5; i++) {
		const unsigned at = (unsigned[]){10, 200, 300, 400, 500}[i];

		assert_int_equal(follow(at), address(text + at));
	}
}

static void threads_and_frames(void **state)
{
	uint64_t words[2] = {address(text + 100), address(text + 100)};
	struct signal_frames f = {0};

	(void)state;
	jump_near(100, block + STUB);
	for (unsigned i = 0; i < 3; i++) {
		struct live_thread *k = vec_push(&t.v);

		memset(k, 0, sizeof(*k));
		k->stopped = i < 2;
		k->regs.rip = address(text + (i ? 100 : 99));
		k->regs.orig_rax = (unsigned long long)-1;
	}
	for (unsigned i = 0; i < 2; i++)
		*vec_push(&f.v) = (struct signal_frame){
			.at = address((uint8_t *)&words[i]), .pc = words[i], .sp = i ? 8 : 0};
	*vec_push(&f.wrapped) = (struct wrapped_frame){.pc = address(text + 100)};
	landings_leave(&t, &f, &maps, SESSION);
	assert_int_equal(t.v.v[0].regs.rip, address(text + 99));
	assert_false(t.v.v[0].changed);
	assert_int_equal(t.v.v[1].regs.rip, address(block + STUB));
	assert_true(t.v.v[1].changed);
	assert_int_equal(t.v.v[2].regs.rip, address(text + 100));
	assert_int_equal(words[0],
			 address(text + 100)); /* a goroutine's: Go finds nothing in a stub */
	assert_int_equal(words[1], address(block + STUB));
	assert_int_equal(f.v.v[1].pc, address(block + STUB));
	assert_int_equal(f.wrapped.v[0].pc, address(block + STUB));
	signal_frames_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_jump_into_the_block, set_up, tear_down),
		cmocka_unit_test_setup_teardown(by_relays, set_up, tear_down),
		cmocka_unit_test_setup_teardown(others_stay, set_up, tear_down),
		cmocka_unit_test_setup_teardown(threads_and_frames, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("landings", tests, NULL, NULL);
}
