/* SPDX-License-Identifier: MIT */
/*
 * overrun.c - bursts of triggers into the MultiKron's FIFOs: what is lost, what waits.
 *
 *   trigger ─► chip FIFO ──── 1 byte / 2 NODECLKs ────► board FIFO ─► local memory
 *              a few samples   Trace    40 NODECLKs      1024 bytes    or nowhere, with its
 *              (default 4)     Resource 168              51 samples    state machine stopped
 *
 * For each distance between two triggers it sends a burst with the chip told to discard and
 * one with the chip told to wait, and prints what the chip counted beside what the numbers of
 * NISTIR 5571 and 5993 let one expect.  It has a board of its own, whose clock it moves itself
 * (so each run gives the same numbers), or with --real one whose clock is the machine's.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/opt.h"
#include "board/bus/bus.h"
#include "board/bus/node.h"

#define GAPS_MAX 64

enum { TRACE_NODECLKS = 40, RESOURCE_NODECLKS = 168, BOARD_SAMPLES = 51 };

static uint64_t burst = 100, depth = 4;
static bool real_clock;
static struct opt_list gap_texts;
static const struct opt options[] = {
	{'n', "burst", OPT_UINT, &burst, "N", "Triggers in a burst. Default 100.", 1, 100000},
	{'g', "gap", OPT_LIST, &gap_texts, "NODECLKS",
	 "Distance of two triggers; may be repeated. Default: 0 to 200 in steps.", 0, 0},
	{'d', "depth", OPT_UINT, &depth, "SAMPLES",
	 "Samples that the chip's FIFO holds. Default 4.", 1, MODEL_CHIP_FIFO_MAX},
	{0, "real", OPT_FLAG, &real_clock, NULL,
	 "Let the machine's clock run the board, not the program.", 0, 0},
	OPT_END,
};
static const struct opt_command command = {
	.name = "overrun",
	.alone = true,
	.summary = "Show what overruns and waits cost on a MultiKron board.",
	.opts = options,
};

static struct bus bus;

/* ---- one burst ---- */

struct experiment {
	bool resource;   /* Resource samples, else Trace samples */
	bool wait;       /* the chip waits, else it discards */
	bool stopped;    /* nothing empties the board's FIFO during the burst */
	uint64_t n, gap; /* triggers; NODECLKs between two */
};

struct outcome {
	uint64_t taken, overruns, waited;
	uint64_t gap; /* as it was: with the machine's clock never quite what one asked for */
};

static uint64_t node_clock(void)
{
	uint64_t t = bus_read64(&bus, KRON_CHIP_BYTE(KRON_WORD_TIMESTAMP));

	return 4 * (t & 0x00ffffffffffffffu); /* the Timestamp counts every fourth NODECLK */
}

static void pass_time(uint64_t nodeclks)
{
	uint64_t end = node_clock() + nodeclks;

	if (!real_clock)
		board_tick(&bus.board, nodeclks);
	else
		while (node_clock() < end)
			;
}

static void set_board(const struct experiment *e)
{
	uint32_t config = KRON_CONFIG_DEFAULT | (e->stopped ? KRON_CONFIG_DIS_STATE : 0);

	bus_init_default(&bus, 1);
	bus_write32(&bus, KRON_BOARD_CONFIG, config);
	bus_write32(&bus, KRON_CHIP_BYTE(KRON_WORD_CSR),
		    KRON_CSR_MODE64 | (e->wait ? KRON_CSR_WAIT : KRON_CSR_DISCARD));
	pass_time(1000);
}

static struct outcome run_burst(const struct experiment *e)
{
	uint32_t word = e->resource ? KRON_WORD_RESOURCE : KRON_WORD_TRACE;
	uint32_t words = (e->resource ? KRON_RESOURCE_SIZE : KRON_SAMPLE_SIZE) / 4;
	struct outcome o = {.gap = e->gap};
	uint64_t start, span;

	set_board(e);
	start = node_clock();
	for (uint64_t i = 0; i < e->n; i++) {
		if (i && (e->gap || !real_clock))
			pass_time(e->gap);
		bus_write64(&bus, KRON_CHIP_BYTE(word), i);
	}
	span = node_clock() - start;
	o.overruns = bus_read32(&bus, KRON_CHIP_BYTE(KRON_WORD_OVERRUN));
	o.waited = bus_read32(&bus, KRON_CHIP_BYTE(KRON_WORD_WAIT));
	if (real_clock && e->n > 1)
		o.gap = (span - o.waited) / (e->n - 1);
	bus_write32(&bus, KRON_BOARD_CONFIG, KRON_CONFIG_DEFAULT); /* let them all go to memory */
	pass_time((depth + BOARD_SAMPLES) * RESOURCE_NODECLKS + 10000);
	o.taken = (bus_read32(&bus, KRON_BOARD_MAP) & KRON_MAP_MASK) / words;
	return o;
}

/* ---- what the reports let one expect ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * Trace samples go one after the other, 40 NODECLKs each, while the next ones stand in the chip
 * FIFO.  At the last trigger (n - 1) * gap / 40 have gone, and as many as the FIFO holds are in
 * it.  A Resource sample needs the one set of shadow registers: there is room for one, and the
 * next is taken by the first trigger after its 168 NODECLKs.  So it is with Trace samples in a
 * FIFO of one place, which stands empty until a trigger comes.
 */
static uint64_t expect_taken(const struct experiment *e, uint64_t gap)
{
	uint64_t every, nodeclks = e->resource ? RESOURCE_NODECLKS : TRACE_NODECLKS;

	if (e->stopped)
		return least(e->n, BOARD_SAMPLES + depth);
	if (!e->resource && depth > 1)
		return least(e->n, depth + (e->n - 1) * gap / TRACE_NODECLKS);
	if (!gap)
		return 1;
	every = (nodeclks + gap - 1) / gap;
	return 1 + (e->n - 1) / every;
}

/* The last of n is taken when all but those that find room have gone; it came at (n - 1) * gap. */
static uint64_t expect_waited(const struct experiment *e, uint64_t gap)
{
	uint64_t room = e->resource ? 1 : depth;
	uint64_t each = e->resource ? RESOURCE_NODECLKS : TRACE_NODECLKS;
	uint64_t end = e->n > room ? (e->n - room) * each : 0, asked = (e->n - 1) * gap;

	return end > asked && gap < each ? end - asked : 0;
}

/* ---- tables ---- */

static void print_gap(uint64_t gap)
{
	printf("%6" PRIu64, gap);
	if (gap)
		printf("%9.1f", KRON_OSCILLATOR_HZ / 1e3 / (double)gap);
	else
		printf("%9s", "-");
}

/* Both halves say their gap: by the machine's clock they differ. */
static void print_row(bool resource, uint64_t gap)
{
	struct experiment e = {.resource = resource, .n = burst, .gap = gap};
	struct outcome o = run_burst(&e);

	printf("%-9s", resource ? "Resource" : "Trace");
	print_gap(o.gap);
	printf("%8" PRIu64 "%8" PRIu64 "%9" PRIu64 "  |", o.taken, o.overruns,
	       expect_taken(&e, o.gap));
	e.wait = true;
	o = run_burst(&e);
	print_gap(o.gap);
	printf("%8" PRIu64 "%9" PRIu64 "%10" PRIu64 "\n", o.taken, o.waited,
	       expect_waited(&e, o.gap));
}

static void print_rates(const uint64_t *gaps, size_t n)
{
	printf("A burst of %" PRIu64 " triggers, the samples go to local memory.\n"
	       "A Trace sample leaves the chip in %d NODECLKs, a Resource sample in %d;\n"
	       "the chip's FIFO holds %" PRIu64 " samples, the shadow registers one.\n\n",
	       burst, TRACE_NODECLKS, RESOURCE_NODECLKS, depth);
	printf("         ----------------- discard --------------  |"
	       " ------------------ wait -----------------\n"
	       "sample      gap   1000/s   taken overrun expected  |"
	       "   gap   1000/s   taken   waited  expected\n");
	for (int resource = 0; resource < 2; resource++)
		for (size_t i = 0; i < n; i++)
			print_row(resource, gaps[i]);
}

static void print_buffer(void)
{
	static const uint64_t sizes[] = {1, 50, 51, 52, 53, 54, 55, 56, 60, 100, 200};

	printf("\nNothing empties the board's FIFO of 1024 bytes: room for %d Trace samples of 20,\n"
	       "and %" PRIu64 " in the chip.  Triggers %d NODECLKs apart, the chip discards.\n\n",
	       BOARD_SAMPLES, depth, TRACE_NODECLKS);
	printf("sample    burst  |   taken overrun  expected\n");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct experiment e = {.n = sizes[i], .gap = TRACE_NODECLKS, .stopped = true};
		struct outcome o = run_burst(&e);

		printf("%-9s%6" PRIu64 "  |%8" PRIu64 "%8" PRIu64 "%10" PRIu64 "\n", "Trace", e.n,
		       o.taken, o.overruns, expect_taken(&e, e.gap));
	}
}

/* ---- a board for us alone: it has a name only until it is open ---- */

static int open_board(struct err *err)
{
	struct model_geometry g = MODEL_GEOMETRY_DEFAULT;
	char name[64];
	int code;

	g.chip_fifo = (uint32_t)depth;
	snprintf(name, sizeof(name), "overrun.%d", (int)getpid());
	code = boards_create(name, &g, real_clock ? ACCESS_CLOCK_REAL : ACCESS_CLOCK_VIRTUAL,
			     NODE_DEFAULT, err);
	if (code)
		return code;
	code = bus_open(&bus, name, err);
	boards_remove(name, NULL);
	return code;
}

static bool parse_gap(const char *text, uint64_t *gap)
{
	char *end;

	*gap = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && *gap <= 1000000;
}

static int fail(const char *sentence, int status)
{
	fprintf(stderr, "overrun: %s\n", sentence);
	return status;
}

int main(int argc, char **argv)
{
	static const uint64_t usual[] = {0, 4, 8, 16, 20, 32, 39, 40, 41, 84, 100, 167, 168, 200};
	uint64_t gaps[GAPS_MAX];
	size_t n = 0;
	struct err err;
	int first = opt_parse(&command, argc, argv, &err);

	if (first == 0)
		opt_help(&command, stdout);
	if (first <= 0)
		return first ? fail(err.msg, 2) : 0;
	for (; n < gap_texts.n && n < GAPS_MAX; n++)
		if (!parse_gap(gap_texts.v[n], &gaps[n]))
			return fail("a gap is a number of NODECLKs, 0 to 1000000", 2);
	if (open_board(&err))
		return fail(err.msg, 1);
	print_rates(n ? gaps : usual, n ? n : sizeof(usual) / sizeof(*usual));
	print_buffer();
	bus_close(&bus);
	return fflush(stdout) ? 1 : 0;
}
