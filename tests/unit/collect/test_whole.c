/* SPDX-License-Identifier: MIT */
/*
 * Unit tests of collect/cable/whole.c: what is sent of a file that grows byte by byte is never more than what the
 * trace's writer leaves of it when its recorder is killed there.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect/cable/whole.h"
#include "trace/chunks.h"
#include "trace/format.h"

static unsigned number_of(const char *name)
{
	unsigned i = 0;

	while (strcmp(cable_files[i], name))
		i++;
	return i;
}

static void append_chunk(int fd, uint32_t magic, uint32_t nbytes)
{
	struct trace_chunk head = {.magic = magic, .nbytes = nbytes};
	uint8_t *bytes = calloc(1, nbytes + 1);

	/* what looks like a head in the middle of one */
	if (nbytes >= 2 * sizeof(head))
		memcpy(bytes + sizeof(head), &head, sizeof(head));
	assert_int_equal(write(fd, &head, sizeof(head)), sizeof(head));
	assert_int_equal(write(fd, bytes, nbytes), nbytes);
	free(bytes);
}

/* As trace_writer_reopen() cuts it. */
static uint64_t kept_of_samples(int fd)
{
	struct chunk_map map;
	uint64_t whole;

	assert_int_equal(chunk_map_open(&map, fd), 0);
	whole = chunk_map_whole(&map);
	chunk_map_close(&map);
	return whole;
}

static void torn_chunks_wait(void **state)
{
	const int fd = memfd_create("samples", 0), part = memfd_create("part", 0);
	const uint64_t ends[] = {32 + 400, 2 * 32 + 500, 3 * 32 + 508, 4 * 32 + 508, 5 * 32 + 4508};
	uint64_t whole = 0;
	uint8_t bytes[8192];
	size_t n = 0;

	(void)state;
	append_chunk(fd, TRACE_CHUNK_MAGIC, 400);
	append_chunk(fd, TRACE_PACKED_MAGIC, 100);
	append_chunk(fd, TRACE_PAD_MAGIC, 8);
	append_chunk(fd, TRACE_CHUNK_MAGIC, 0);
	append_chunk(fd, TRACE_CHUNK_MAGIC, 4000);
	assert_int_equal(pread(fd, bytes, sizeof(bytes), 0), ends[4]);
	for (uint64_t size = 0; size <= ends[4]; size++) {
		if (size)
			assert_int_equal(write(part, &bytes[size - 1], 1), 1);
		while (n < 5 && ends[n] <= size)
			n++;
		whole = cable_whole(CABLE_SAMPLES, part, whole, size);
		assert_int_equal(whole, n == 3 ? ends[1] : n ? ends[n - 1] : 0);
		assert_true(kept_of_samples(part) >= whole);
	}
	close(fd);
	close(part);
}

static void torn_lines_wait(void **state)
{
	const int fd = memfd_create("tasks", 0);
	const unsigned tasks = number_of("tasks");
	char *line = malloc(20001);

	(void)state;
	assert_int_equal(cable_whole(tasks, fd, 0, 0), 0);
	assert_int_equal(write(fd, "ab\ncd", 5), 5);
	assert_int_equal(cable_whole(tasks, fd, 0, 5), 3);
	assert_int_equal(cable_whole(tasks, fd, 3, 5), 3);
	assert_int_equal(cable_whole(tasks, fd, 0, 2), 0);
	memset(line, 'x', 20000);
	line[20000] = '\n';
	assert_int_equal(write(fd, line, 20001), 20001);
	assert_int_equal(cable_whole(tasks, fd, 3, 5 + 20000), 3);
	assert_int_equal(cable_whole(tasks, fd, 3, 5 + 20001), 5 + 20001);
	assert_int_equal(cable_whole(number_of("switches"), fd, 0, 33), 32);
	free(line);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(torn_chunks_wait),
		cmocka_unit_test(torn_lines_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
