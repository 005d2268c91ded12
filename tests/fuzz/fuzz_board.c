/* SPDX-License-Identifier: MIT */
/*
 * fuzz_board.c - hostile shared memory against everything that opens a board: what kron board,
 * ctl, status, read and record do first, registers, local memory, cycles of all kinds.
 *
 *   fuzz_board [-t SECONDS] [-s SEED] [-o FILE]     mutates a board, prints TAP
 *   fuzz_board -r SEED                              that one again
 *
 * The seed of the round in use stands in FILE (default fuzz_board.input), so that a crash leaves
 * it there.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/vec.h"
#include "board/bus/bus.h"
#include "board/bus/node.h"
#include "board/bus/lanes.h"
#include "board/bus/object.h"
#include "board/bus/samples.h"
#include "board/bus/view.h"
#include "collect/segment.h"
#include "tests/fuzz/fuzz.h"

#define SLOW 20 /* seconds a round may take on a busy machine */

static char name[64], object[OBJECT_NAME];
static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* ---- the board that is spoiled ---- */

static uint8_t *window, *pristine;
static int fd;
#define KEPT_OFFSET KRON_CTL_OFFSET
#define KEPT_BYTES (KRON_POOL_OFFSET - KRON_CTL_OFFSET)

static void make(void)
{
	struct object o;
	struct err err;

	snprintf(name, sizeof(name), "fuzz-%d", getpid());
	object_name_of_board(object, sizeof(object), name);
	if (boards_create(name, NULL, rnd(2) ? ACCESS_CLOCK_VIRTUAL : ACCESS_CLOCK_REAL,
			  NODE_DEFAULT, &err) ||
	    object_open(object, name, &o, &err)) {
		printf("Bail out! %s\n", err.msg);
		exit(99);
	}
	fd = o.fd;
	window = mmap(NULL, KRON_WINDOW_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	pristine = xmalloc(KEPT_BYTES);
	memcpy(pristine, window + KEPT_OFFSET, KEPT_BYTES);
}

static void restore(void)
{
	if (object_set_size(fd, KRON_WINDOW_SIZE))
		exit(99);
	memcpy(window + KEPT_OFFSET, pristine, KEPT_BYTES);
}

static void spoil_range(uint32_t offset, uint32_t bytes, unsigned n)
{
	static const uint64_t odd[] = {0,      1,          0x7f,       0x80,
				       0xffff, 0x7fffffff, 0xffffffff, UINT64_MAX};

	while (n--) {
		uint8_t *at = window + offset + rnd(bytes - 8);
		uint64_t v = rnd(3) ? rnd64() : odd[rnd(8)];

		if (!rnd(3))
			*at ^= (uint8_t)(1u << rnd(8));
		else
			memcpy(at, &v, 1u << rnd(4));
	}
}

/* Registers and indices of the machine lie in the first kilobyte of each slot. */
static void spoil(void)
{
	for (unsigned n = 1 + (unsigned)rnd(3); n; n--) {
		switch (rnd(8)) {
		case 0:
			spoil_range(KRON_CTL_OFFSET + 12, sizeof(struct kron_ctl), 3);
			break;
		case 1:
			spoil_range(KRON_CTL_OFFSET + OBJECT_NOTE_OFFSET, 1032, 20);
			break;
		case 2:
			spoil_range(KRON_MODEL_OFFSET, 256, 1);
			break;
		case 3:
		case 4:
		case 5:
			for (uint32_t at = 0; at < KRON_MODEL_SIZE; at += 4096)
				spoil_range(KRON_MODEL_OFFSET + at, 1024, 1);
			break;
		case 6:
			spoil_range(KRON_STATES_OFFSET, KRON_MODEL_OFFSET - KRON_STATES_OFFSET,
				    500);
			break;
		default:
			spoil_range(0, 65536, 300);
		}
	}
}

/* ---- all that is done with it ---- */

static int count(void *to, const uint32_t *words, unsigned n)
{
	uint64_t *sum = to;

	for (unsigned i = 0; i < n; i++)
		*sum += words[i];
	return 0;
}

static void cycle(struct bus *b)
{
	static const uint32_t places[] = {KRON_BOARD_RESET, KRON_BOARD_CONFIG, KRON_BOARD_MAP,
					  KRON_BOARD_TEST, KRON_BOARD_MEMORY};
	uint32_t offset = rnd(3) ? KRON_CHIP_BYTE((uint32_t)rnd(KRON_CHIP_WORDS)) : places[rnd(5)];

	switch (rnd(6)) {
	case 0:
		bus_read32(b, offset);
		break;
	case 1:
		bus_read64(b, offset);
		break;
	case 2:
		bus_write32(b, offset, (uint32_t)rnd64());
		break;
	case 3:
		bus_write64(b, offset, rnd64());
		break;
	case 4:
		board_trigger(&b->board, KRON_WORD_TRACE + (uint32_t)rnd(32), (unsigned)rnd(9),
			      (uint32_t)rnd64(), rnd64());
		break;
	default:
		board_tick(&b->board, rnd(1ull << rnd(40)));
	}
}

static void use_bus(void)
{
	struct lanes_view lanes;
	struct bus_view view;
	uint64_t sum = 0;
	struct bus bus;
	struct err err;

	if (bus_open(&bus, name, &err))
		return;
	bus_look(&bus, &view, &err);
	lanes_look(&bus, &lanes);
	bus_samples(&bus, count, &sum, &err);
	for (unsigned n = (unsigned)rnd(60); n; n--)
		cycle(&bus);
	bus_look(&bus, &view, &err);
	if (!rnd(8))
		bus_init_default(&bus, (uint32_t)rnd64());
	bus_close(&bus);
}

static void use_recorder(void)
{
	struct segment_options opt = {.board = name, .buffer = 1 << 20, .keep_filter = true};
	struct segment seg;
	struct err err;

	if (!segment_open(&seg, object, -1, &err))
		segment_close(&seg);
	if (!segment_create(&seg, &opt, &err)) {
		segment_set_sampling(&seg, true);
		segment_grow(&seg, 4);
		seg.ctl->permanent =
			1; /* whatever was made of it: it must stay for the next round */
		segment_unlink(&seg);
		segment_close(&seg);
	}
}

static void use_list(void)
{
	struct boards_entry *all;
	size_t n;

	if (!boards_list(&all, &n, NULL))
		xfree(all);
}

static void run_round(uint64_t seed)
{
	random_state = seed | 1;
	for (int i = 0; i < 8; i++)
		rnd64();
	restore();
	spoil();
	if (!rnd(20))
		object_set_size(fd,
				rnd(2) ? rnd(KRON_WINDOW_SIZE) : KRON_WINDOW_SIZE + rnd(1u << 24));
	use_list();
	use_bus();
	if (!rnd(4))
		use_recorder();
}

/* ---- rounds ---- */

static double fuzz(uint64_t seed, double seconds, const char *out, uint64_t *rounds)
{
	double end = now() + seconds, slowest = 0;
	int file = open(out, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char text[32];

	for (*rounds = 0; now() < end; ++*rounds) {
		double start = now();

		snprintf(text, sizeof(text), "%-20" PRIu64 "\n", seed + *rounds);
		if (file < 0 || pwrite(file, text, strlen(text), 0) < 0)
			exit(99);
		alarm(2 * SLOW); /* a round that never ends is a crash, too */
		run_round(seed + *rounds);
		if (now() - start > slowest)
			slowest = now() - start;
	}
	alarm(0);
	close(file);
	unlink(out);
	return slowest;
}

int main(int argc, char **argv)
{
	struct fuzz_options o = {.seed = (uint64_t)time(NULL) * 1000003 + (uint64_t)getpid(),
				 .out = "fuzz_board.input"};
	uint64_t rounds;
	double slowest;

	if (!fuzz_options(&o, argc, argv))
		return 2;
	make();
	if (o.again) {
		run_round(strtoull(o.again, NULL, 0));
		object_remove(object);
		return 0;
	}
	slowest = fuzz(o.seed, o.seconds, o.out, &rounds);
	object_remove(object);
	printf("# seed %" PRIu64 ", %" PRIu64 " rounds, the slowest %.3f s\n", o.seed, rounds,
	       slowest);
	printf("%s 1 - hostile boards\n1..1\n", slowest < SLOW ? "ok" : "not ok");
	return slowest < SLOW ? 0 : 1;
}
