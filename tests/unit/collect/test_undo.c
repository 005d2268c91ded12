/* SPDX-License-Identifier: MIT */
/*
 * test_undo.c - what is taken for a probe, for a debugger's breakpoint on one, and for neither.  The process is
 * this one, its text a page of data.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect/live/undo.h"

#define SESSION 0x5eull
#define BLOCK 0x10000ull /* nothing lies there; only its name is looked at */
#define WINDOW 100u

struct file {
	struct kron_commands head;
	struct kron_command cmd[2];
	struct kron_patch patch;
};

static _Alignas(4096) uint8_t text[4096];
static const uint8_t jump[5] = {0xe9, 0xcc, 0x10, 0x20,
				0x00}; /* its displacement has a byte of int3 */

static void take_more(void *ctx)
{
	(void)ctx;
}

static int make_file(const uint8_t *old)
{
	struct file f = {
		.head = {.ncommands = 2, .size = sizeof(f)},
		.cmd = {{.kind = KRON_CMD_MAP, .addr = BLOCK, .len = 4096, .group = 1},
			{.kind = KRON_CMD_PATCH,
			 .count = 1,
			 .addr = (uintptr_t)text,
			 .len = sizeof(text),
			 .file_off = offsetof(struct file, patch),
			 .group = 1}},
		.patch = {.off = WINDOW, .old_len = sizeof(jump), .new_len = sizeof(jump)},
	};
	int fd = memfd_create("commands", MFD_CLOEXEC);

	memcpy(f.patch.old_bytes, old, sizeof(jump));
	memcpy(f.patch.new_bytes, jump, sizeof(jump));
	assert_int_equal(write(fd, &f, sizeof(f)), sizeof(f));
	return fd;
}

static char rights[5] = "r-xp"; /* of the text */

/* What stands in the window; returns how many patches were taken back. */
static uint64_t undo(const uint8_t *old, const uint8_t *now, uint64_t *left)
{
	struct process_mapping v[] = {
		{.start = BLOCK, .end = BLOCK + 4096, .path = "/memfd:kron:5e:1"},
		{.start = (uintptr_t)text, .end = (uintptr_t)text + sizeof(text), .path = "/lib/x"},
	};
	const struct process_maps maps = {.v = v, .n = 2};
	struct live_threads t = {.pid = getpid(), .mem = open("/proc/self/mem", O_RDWR)};
	struct live_files files = {.take_more = take_more};
	struct live_file *file = vec_push(&files.v);
	uint64_t n;

	memcpy(v[1].perms, rights, sizeof(rights));
	*file = (struct live_file){.number = 1, .fd = make_file(old)};
	memset(text, 0x90, sizeof(text));
	memcpy(text + WINDOW, now, sizeof(jump));
	n = undo_patches(&t, &maps, SESSION, &files, left);
	close(files.v.v[0].fd);
	close(t.mem);
	vec_free(&files.v);
	return n;
}

static const uint8_t code[5] = {0x55, 0x48, 0x89, 0xe5, 0x53};
static const uint8_t padding[5] = {0xcc, 0xcc, 0xcc, 0xcc, 0xcc};

static void a_patch_is_taken_back(void **state)
{
	uint64_t left;

	(void)state;
	assert_int_equal(undo(code, jump, &left), 1);
	assert_int_equal(left, 0);
	assert_memory_equal(text + WINDOW, code, sizeof(code));
	assert_int_equal(text[WINDOW - 1], 0x90);
	assert_int_equal(text[WINDOW + sizeof(code)], 0x90);
}

static void a_breakpoint_on_a_patch_is_left(void **state)
{
	const uint8_t trapped[5] = {0xcc, 0xcc, 0x10, 0x20, 0x00};
	uint64_t left;

	(void)state;
	assert_int_equal(undo(code, trapped, &left), 0);
	assert_int_equal(left, 1);
	assert_memory_equal(text + WINDOW, trapped, sizeof(trapped));
}

/* Go's compiler pads with int3, and landings lie there. */
static void padding_of_int3_is_no_breakpoint(void **state)
{
	uint64_t left;

	(void)state;
	assert_int_equal(undo(padding, jump, &left), 1);
	assert_int_equal(left, 0);
	assert_memory_equal(text + WINDOW, padding, sizeof(padding));
	assert_int_equal(undo(padding, padding, &left), 0);
	assert_int_equal(left, 0);
}

static void what_is_neither_stays(void **state)
{
	const uint8_t other[5] = {0x55, 0xcc, 0x10, 0x20, 0x00};
	uint64_t left;

	(void)state;
	assert_int_equal(undo(code, code, &left), 0);
	assert_int_equal(left, 0);
	assert_int_equal(undo(code, other, &left), 0);
	assert_int_equal(left, 0);
	assert_memory_equal(text + WINDOW, other, sizeof(other));
}

static void what_others_have_too_stays(void **state)
{
	uint64_t left;

	(void)state;
	rights[3] = 's';
	assert_int_equal(undo(code, jump, &left), 0);
	assert_memory_equal(text + WINDOW, jump, sizeof(jump));
	rights[3] = 'p';
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_patch_is_taken_back),
		cmocka_unit_test(a_breakpoint_on_a_patch_is_left),
		cmocka_unit_test(padding_of_int3_is_no_breakpoint),
		cmocka_unit_test(what_is_neither_stays),
		cmocka_unit_test(what_others_have_too_stays),
	};

	return cmocka_run_group_tests_name("undo", tests, NULL, NULL);
}
