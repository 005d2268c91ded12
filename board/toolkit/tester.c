/* SPDX-License-Identifier: MIT */
/* tester.c - what the toolkit's test programs share. */
#define _GNU_SOURCE
#include "board/toolkit/tester.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- words to the user ---- */

int tester_usage(const struct opt_command *c, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return tool_fail(c, TESTER_USAGE, "%s (`%s --help` shows the usage)", text, c->name);
}

bool tester_seconds(const char *text, double max, double *out)
{
	char *end;

	if ((*text < '0' || *text > '9') && *text != '.')
		return false;
	*out = strtod(text, &end);
	return !*end && isfinite(*out) && *out >= 0 && *out <= max;
}

void tester_error(struct tester *t, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	if (t->errors++ >= TESTER_SHOW)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	tool_note(t->program, "%s", text);
	if (t->errors == TESTER_SHOW)
		tool_note(t->program, "further errors are only counted");
}

bool tester_expect(struct tester *t, const char *what, uint64_t got, uint64_t want)
{
	if (got == want)
		return true;
	tester_error(t, "%s: expected %" PRIx64 ", read %" PRIx64, what, want, got);
	return false;
}

int tester_summary(const struct tester *t, const char *fmt, ...)
{
	va_list ap;

	printf("%s: ", t->program->name);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	if (t->errors)
		printf(": %" PRIu64 " error%s\n", t->errors, t->errors == 1 ? "" : "s");
	else
		printf(": no errors\n");
	return tool_finish(t->program, t->errors ? TESTER_ERRORS : TESTER_OK);
}

/* ---- whose board it is: locks on bytes far past anything in the file ---- */

#define LOCK_BASE ((off_t)1 << 40)
/* bytes after LOCK_BASE; seat n is byte n, word w of local memory is byte LOCK_MEMORY + w */
enum { LOCK_DOOR = 0, LOCK_SEAT = 1, LOCK_MEMORY = 4096 };

static int lock_bytes(struct tester *t, uint32_t first, uint32_t n, int type)
{
	struct flock l = {
		.l_type = (short)type,
		.l_whence = SEEK_SET,
		.l_start = LOCK_BASE + first,
		.l_len = n,
	};

	return fcntl(t->bus.fd, F_OFD_SETLK, &l) ? -errno : 0;
}

static bool is_locked(struct tester *t, uint32_t first, uint32_t n)
{
	struct flock l = {
		.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = LOCK_BASE + first,
		.l_len = n,
	};

	return !fcntl(t->bus.fd, F_OFD_GETLK, &l) && l.l_type != F_UNLCK;
}

static int cannot(const struct tester *t, const char *why)
{
	return tool_fail(t->program, TESTER_CANNOT, "board %s: %s", t->bus.name, why);
}

/* A lock that could not be had: somebody has it, or the file takes no locks. */
static int no_lock(const struct tester *t, int code)
{
	if (code == -EAGAIN || code == -EACCES)
		return cannot(t, "another test program is on it");
	return tool_fail(t->program, TESTER_CANNOT, "board %s: cannot lock it: %s", t->bus.name,
			 strerror(-code));
}

static int open_own(struct tester *t, struct err *err)
{
	int code = boards_open_own(&t->bus, err);

	if (!code)
		tool_note(t->program,
			  "on a board of its own, which goes with it; --board or " BOARDS_ENV
			  " names another");
	return code;
}

/* What is on a board goes in a test, so nobody's is taken just because it is there. */
static int open_board(struct tester *t, const char *name, struct err *err)
{
	const char *env = getenv(BOARDS_ENV);

	if (!name && env && *env)
		name = env;
	return name ? bus_open(&t->bus, name, err) : open_own(t, err);
}

int tester_open(struct tester *t, const struct opt_command *program, const char *name)
{
	struct err err;
	int32_t recorder;

	memset(t, 0, sizeof(*t));
	t->program = program;
	if (open_board(t, name, &err))
		return tool_fail(program, TESTER_CANNOT, "%s", err.msg);
	recorder = bus_is_exact(&t->bus)
			   ? __atomic_load_n(&t->bus.board.ctl->collector_pid, __ATOMIC_RELAXED)
			   : 0;
	if (recorder > 0 && (!kill(recorder, 0) || errno == EPERM)) {
		tool_fail(program, TESTER_CANNOT,
			  "board %s: kron record is on it (pid %" PRId32 ")", t->bus.name,
			  recorder);
		bus_close(&t->bus);
		return TESTER_CANNOT;
	}
	return TESTER_OK;
}

void tester_close(struct tester *t)
{
	bus_close(&t->bus); /* and with the file go the locks */
}

int tester_take_board(struct tester *t)
{
	int code = lock_bytes(t, LOCK_DOOR, LOCK_SEAT + TESTER_SEATS, F_WRLCK);

	return code ? no_lock(t, code) : TESTER_OK;
}

int tester_take_seat(struct tester *t, bool *first)
{
	int code = -EAGAIN;

	/* whoever is in the door is initialising, which takes no time */
	for (int i = 0; i < 200 && code == -EAGAIN; i++) {
		code = lock_bytes(t, LOCK_DOOR, 1, F_WRLCK);
		if (code == -EAGAIN)
			usleep(10000);
	}
	if (code)
		return no_lock(t, code);
	*first = !is_locked(t, LOCK_SEAT, TESTER_SEATS);
	for (t->seat = 1; t->seat <= TESTER_SEATS; t->seat++) {
		code = lock_bytes(t, t->seat, 1, F_WRLCK);
		if (!code)
			return TESTER_OK;
		if (code != -EAGAIN && code != -EACCES)
			return no_lock(t, code);
	}
	return cannot(t, "as many mk_nite_test as may share it are on it");
}

void tester_seated(struct tester *t)
{
	lock_bytes(t, LOCK_DOOR, 1, F_UNLCK);
}

bool tester_lock_memory(struct tester *t, uint32_t first, uint32_t count)
{
	return !lock_bytes(t, LOCK_MEMORY + first, count, F_WRLCK);
}

void tester_unlock_memory(struct tester *t, uint32_t first, uint32_t count)
{
	lock_bytes(t, LOCK_MEMORY + first, count, F_UNLCK);
}

bool tester_is_memory_locked(struct tester *t, uint32_t first, uint32_t count)
{
	uint32_t to_end;

	first &= KRON_MAP_WORD;
	to_end = KRON_BOARD_MEMORY_WORDS - first;
	if (count <= to_end)
		return is_locked(t, LOCK_MEMORY + first, count);
	return is_locked(t, LOCK_MEMORY + first, to_end) ||
	       is_locked(t, LOCK_MEMORY, count - to_end);
}

/* ---- the board ---- */

uint64_t tester_timestamp(struct tester *t)
{
	return chip_read64(t, KRON_WORD_TIMESTAMP) & TESTER_TIME_MASK;
}

uint32_t tester_pointer(struct tester *t)
{
	return bus_memory_pointer(&t->bus);
}

void tester_init_board(struct tester *t, uint32_t source)
{
	bus_init_default(&t->bus, source);
	chip_write32(t, KRON_WORD_CSR, KRON_CSR_WAIT | KRON_CSR_READ_WAIT | KRON_CSR_MODE64);
}

uint64_t tester_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

bool tester_wait_pointer(struct tester *t, uint32_t pointer)
{
	uint64_t end = tester_now() + 100000000u;

	for (;;) {
		bool late = tester_now() > end; /* asked first: the pointer has the last word */

		if (tester_pointer(t) == (pointer & KRON_MAP_MASK))
			return true;
		if (late)
			return false;
		if (bus_is_exact(&t->bus))
			board_tick(&t->bus.board, 40);
	}
}

/* ---- samples ---- */

void tester_read_sample(struct tester *t, uint32_t at, unsigned words, struct tester_sample *s)
{
	s->words = words;
	for (unsigned i = 0; i < words; i++)
		s->word[i] = bus_read32(&t->bus, board_memory_byte(at + i));
}

static bool is_between(uint64_t after, uint64_t time, uint64_t before)
{
	/* 56 bits that may wrap in between */
	return ((time - after) & TESTER_TIME_MASK) <= ((before - after) & TESTER_TIME_MASK);
}

bool tester_check_sample(struct tester *t, const struct tester_sample *s,
			 const struct tester_expected *want)
{
	uint32_t type = want->resource ? KRON_HEAD_TYPE_RESOURCE : KRON_HEAD_TYPE_TRACE;
	uint32_t head = want->cpu << KRON_HEAD_CPU_SHIFT | type << KRON_HEAD_TYPE_SHIFT;
	uint64_t time = tester_sample_time(s);
	bool good;

	good = tester_expect(t, "sample's header", s->word[0] >> 24, head >> 24);
	good &= tester_expect(t, "sample's source address", s->word[2], want->source);
	good &= tester_expect(t, "sample's user data", (uint64_t)s->word[3] << 32 | s->word[4],
			      want->data);
	if (!is_between(want->after, time, want->before)) {
		tester_error(t,
			     "sample's timestamp: %014" PRIx64
			     ", but it was taken between %014" PRIx64 " and %014" PRIx64,
			     time, want->after, want->before);
		good = false;
	}
	return good;
}

bool tester_take_sample(struct tester *t, unsigned level, struct tester_expected *want,
			struct tester_sample *s)
{
	unsigned words = (want->resource ? KRON_RESOURCE_SIZE : KRON_SAMPLE_SIZE) / 4;
	uint32_t word = (want->resource ? KRON_WORD_RESOURCE : KRON_WORD_TRACE) + level;
	uint32_t at = tester_pointer(t);

	memset(s, 0, sizeof(*s));
	want->after = tester_timestamp(t);
	chip_write64(t, word, want->data);
	want->before = tester_timestamp(t);
	if (!tester_wait_pointer(t, at + words)) {
		tester_error(t,
			     "sample of level %u: memory address pointer went from %06x to %06x, "
			     "not to %06x",
			     level, at, tester_pointer(t), (at + words) & KRON_MAP_MASK);
		return false;
	}
	tester_read_sample(t, at, words, s);
	return tester_check_sample(t, s, want);
}
