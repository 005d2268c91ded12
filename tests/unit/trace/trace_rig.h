/* SPDX-License-Identifier: MIT */
/* trace_rig.h - a folder for each test, and short ways to write a trace and read its order. */
#ifndef TESTS_TRACE_RIG_H
#define TESTS_TRACE_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/vec.h"
#include "trace/names.h"
#include "trace/reader.h"
#include "trace/writer.h"

static char top[] = "/tmp/kron-test-trace.XXXXXX";

static inline int enter_folder(void **state)
{
	(void)state;
	strcpy(top + sizeof(top) - 7, "XXXXXX");
	return !mkdtemp(top) || chdir(top);
}

static inline int leave_folder(void **state)
{
	char *command = xasprintf("rm -rf '%s'", top);
	int ret;

	(void)state;
	ret = chdir("/") || system(command);
	xfree(command);
	return ret;
}

/* ---- helpers ---- */

static inline struct trace_writer *begin(const char *dir)
{
	struct trace_writer *w;
	struct err err;

	if (trace_writer_create(&w, dir, &err))
		fail_msg("%s", err.msg);
	return w;
}

static inline struct trace *open_trace(const char *dir)
{
	struct trace *t;
	struct err err;

	if (trace_open(&t, dir, &err))
		fail_msg("%s", err.msg);
	return t;
}

static inline struct kron_sample sample(uint64_t tsc, uint32_t event)
{
	return (struct kron_sample){.head = KRON_HEAD_TRACE(0) | (uint32_t)(tsc >> 32 & 0xffffff),
				    .time_lo = (uint32_t)tsc,
				    .event = event};
}

/* A chunk of samples at the given times; their event numbers count up from event. */
static inline void chunk(struct trace_writer *w, uint32_t uid, uint32_t tid, uint64_t seq,
			 uint32_t event, const uint64_t *times, uint32_t n)
{
	struct trace_chunk head = {
		.nbytes = n * KRON_SAMPLE_SIZE, .seq = seq, .proc_uid = uid, .tid = tid};
	struct kron_sample s[16];

	assert_true(n <= 16);
	for (uint32_t i = 0; i < n; i++)
		s[i] = sample(times[i], event + i);
	assert_int_equal(trace_writer_chunk(w, &head, s), 0);
}
#define CHUNK(w, uid, tid, seq, event, ...)                             \
	chunk(w, uid, tid, seq, event, (const uint64_t[]){__VA_ARGS__}, \
	      sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

/* The events of the trace, in order, as words. */
static inline void expect_order(const char *dir, const char *expected)
{
	struct trace *t = open_trace(dir);
	struct trace_cursor *c = trace_cursor_open(t, -1);
	struct trace_event e;
	char text[1024] = "", word[16];

	while (trace_cursor_next(c, &e)) {
		snprintf(word, sizeof(word), "%s%u", text[0] ? " " : "", e.s.event);
		strncat(text, word, sizeof(text) - strlen(text) - 1);
	}
	trace_cursor_close(c);
	trace_close(t);
	assert_string_equal(text, expected);
}

static inline void write_text(const char *path, const char *text, size_t n)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static inline void append(const char *path, const void *data, size_t n)
{
	FILE *f = fopen(path, "a");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static inline off_t size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? -1 : st.st_size;
}

#define T(f) cmocka_unit_test_setup_teardown(f, enter_folder, leave_folder)

#endif
