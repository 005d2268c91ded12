/* SPDX-License-Identifier: MIT */
/*
 * fuzz_access.c - segments that somebody damaged, against everything that uses a machine in one.
 *
 *   fuzz_access [-t SECONDS] [-s SEED]        TAP; KRON_FUZZ_SECONDS, else 10
 *
 * A board in use gets wrong bytes: in its header, in the slots' heads, in the state, everywhere.
 * Then it is judged and used all the same, as by a process that had mapped it before.  Control
 * block, machine and local memory lie between pages that nobody may touch.  No access may take
 * longer than a few seconds (those are of waits for a slot).  With --enable-asan the compiler
 * also sees indices that stay inside.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "board/model/access_layout.h"
#include "tests/fuzz/fuzz.h"

#define GUARD 65536
#define HANG_SECONDS 60

static uint64_t round_state; /* what makes the round again: -s */

/* ---- a board between guards ---- */

static void *guarded(size_t size)
{
	uint8_t *at = mmap(NULL, size + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED || mprotect(at + GUARD, size, PROT_READ | PROT_WRITE)) {
		printf("Bail out! no memory\n");
		exit(99);
	}
	return at + GUARD;
}

static void use_well(const struct board *b)
{
	unsigned i;

	board_write32(b, KRON_BOARD_CONFIG,
		      (KRON_CONFIG_DEFAULT | KRON_CONFIG_EXT_CPU) & ~(rnd(2) * KRON_CONFIG_LOCAL));
	board_write32(b, KRON_CHIP_BYTE(KRON_WORD_FILTER), 0xffff);
	board_write32(b, KRON_CHIP_BYTE(KRON_WORD_CSR), KRON_CSR_SAMPLING);
	board_write64(b, KRON_CHIP_BYTE(KRON_WORD_ENABLE), 0x2222222222222222ull);
	for (i = 0; i < rnd(40); i++) {
		board_trigger(b, (unsigned)(KRON_WORD_TRACE + rnd(32)), (unsigned)rnd(8), i, i);
		board_tick(b, rnd(100));
	}
}

/* ---- damage ---- */

static uint64_t bad_word(uint64_t old)
{
	switch (rnd(8)) {
	case 0:
		return 0;
	case 1:
		return ~0ull;
	case 2:
		return old + rnd(64) - 32;
	case 3:
		return old ^ 1ull << rnd(64);
	case 4:
		return rnd(300);
	case 5:
		return 1ull << rnd(64);
	case 6:
		return old ^ 0xffull << 8 * rnd(8);
	default:
		return rnd(~0ull) ^ rnd(~0ull) << 32;
	}
}

static void damage_words(void *at, size_t bytes, unsigned n)
{
	while (n--) {
		uint64_t *word = (uint64_t *)at + rnd(bytes / 8);

		*word = bad_word(*word);
	}
}

static void damage(const struct board *b)
{
	struct access_slot *active = access_slot(b, access_slot_number(b->model->active));
	size_t i;

	switch (rnd(8)) {
	case 0:
		damage_words(b->model, 256, 1 + (unsigned)rnd(4));
		break;
	case 1:
		damage_words(active, 64, 1 + (unsigned)rnd(4));
		break;
	case 2:
		damage_words(&active->state, sizeof(active->state), 1 + (unsigned)rnd(100));
		break;
	case 3: /* but the header */
		for (i = 512; i < KRON_MODEL_SIZE / 8; i++)
			((uint64_t *)b->model)[i] = rnd(~0ull);
		break;
	case 4:
		for (i = 0; i < ACCESS_SLOTS; i++)
			damage_words(&access_slot(b, (unsigned)i)->owner, 8, 1);
		break;
	case 5:
		damage_words(b->ctl, sizeof(*b->ctl), 50);
		damage_words(&active->state, sizeof(active->state), 1);
		break;
	default: /* one field is the hardest to notice */
		damage_words(&active->state, offsetof(struct model_state, entry), 1);
	}
}

/* ---- use ---- */

static uint32_t any_offset(void)
{
	switch (rnd(4)) {
	case 0:
		return (uint32_t)rnd(KRON_BOARD_SIZE) & ~3u;
	case 1:
		return KRON_BOARD_RESET + 4 * (uint32_t)rnd(4);
	default:
		return KRON_CHIP_BYTE((uint32_t)rnd(128));
	}
}

static void use_badly(const struct board *b)
{
	struct model_state s;
	struct access_cable cable = {.took = (uint32_t)rnd(2)};
	uint32_t words[100];
	uint16_t values[100];
	unsigned i;

	if (board_snapshot(b, &s) && !model_is_sane(&s)) {
		printf("not ok 1 - snapshot\n");
		abort();
	}
	/* A damaged real clock makes each access wait for the seconds that it may. */
	for (i = 0; i < (b->model->clock != ACCESS_CLOCK_VIRTUAL ? 1 : 20); i++) {
		struct model_cycle c = {.offset = any_offset(),
					.bytes = rnd(2) ? 4 : 8,
					.write = rnd(2),
					.cpu_lines = (uint8_t)rnd(256),
					.set_source = rnd(2),
					.data = rnd(~0ull)};

		/* Once damaged for sure, the rest would say the same. */
		if (board_cycle(b, &c))
			return;
		board_tick(b, rnd(4) ? rnd(1000) : rnd(1ull << 40));
		board_set_external(b, (unsigned)rnd(20), (enum access_level)rnd(3));
		board_read_memory(b, (uint32_t)rnd(1u << 23), 100, words);
		board_take_cable(b, &cable, values, 100);
		board_repair_gates(b);
		board_tsc_of_tick(b, rnd(~0ull));
	}
}

static void say_and_die(int sig)
{
	static char text[] = "# fuzz_access -s 0x................ -t 0 makes it again\nnot ok 1\n";
	uint64_t x = round_state;
	int i;

	for (i = 35 - 1; i >= 35 - 16; i--, x >>= 4)
		text[i] = "0123456789abcdef"[x & 15];
	if (write(1, text, sizeof(text) - 1) < 0)
		_exit(98);
	signal(sig, SIG_DFL);
	raise(sig);
}

static uint64_t fuzz(double seconds)
{
	struct model_geometry geometry = MODEL_GEOMETRY_DEFAULT;
	struct board b = {.ctl = guarded(4096),
			  .model = guarded(KRON_MODEL_SIZE + KRON_CABLE_BYTES),
			  .memory = guarded(KRON_MEMORY_BYTES)};
	time_t end = time(NULL) + (time_t)(seconds + 0.5);
	uint64_t rounds, refused = 0;

	for (rounds = 0; rounds == 0 || time(NULL) < end; rounds++) {
		round_state = random_state;
		alarm(HANG_SECONDS);
		memset(b.model, 0, KRON_MODEL_SIZE);
		geometry.cable = (uint32_t)rnd(2) * MODEL_CABLE_MAX;
		board_init(&b, &geometry, rnd(256) ? ACCESS_CLOCK_VIRTUAL : ACCESS_CLOCK_REAL,
			   2000000000);
		use_well(&b);
		damage(&b);
		refused += !board_is_sane(&b);
		use_badly(&b);
	}
	printf("ok 1 - damaged segments do no harm\n# %" PRIu64 " rounds, %" PRIu64
	       " refused\n1..1\n",
	       rounds, refused);
	return rounds;
}

int main(int argc, char **argv)
{
	struct fuzz_options o = {.seed = 1};

	if (!fuzz_options(&o, argc, argv))
		return 2;
	signal(SIGSEGV, say_and_die);
	signal(SIGBUS, say_and_die);
	signal(SIGALRM, say_and_die);
	signal(SIGABRT, say_and_die);
	return !fuzz(o.seconds);
}
