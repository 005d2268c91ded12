/* SPDX-License-Identifier: MIT */
/*
 * mk_expand.c - prints the samples of mk.dat for people (NISTIR 5993, 3.5).
 *
 *   header  timestamp       source    user data          one line a sample
 *     10    0000000003d09   00000001  000000000000000a
 *             00000000 00000000 ...                      -c: the counters of a Resource sample
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <string.h>

#include "board/toolkit/input.h"

enum radix { RADIX_D, RADIX_O, RADIX_X }; /* in the order of "d|o|x" */

static bool counters, elapsed, heading, expand;
static int counter_radix = RADIX_X, source_radix = RADIX_X, time_radix = RADIX_X,
	   data_radix = RADIX_X;

static const struct opt options[] = {
	{'c', "counters", OPT_FLAG, &counters, NULL,
	 "Print the counters of Resource samples below them.", 0, 0},
	{'e', "elapsed", OPT_FLAG, &elapsed, NULL,
	 "Print the time since the first sample instead of the timestamp.", 0, 0},
	{'h', "heading", OPT_FLAG, &heading, NULL, "Print a heading at the top.", 0, 0},
	{'r', "counter-radix", OPT_CHOICE, &counter_radix, "d|o|x",
	 "Print counters in decimal, octal or hexadecimal (x, the default).", 0, 0},
	{'s', "source-radix", OPT_CHOICE, &source_radix, "d|o|x",
	 "Print source addresses in this radix.", 0, 0},
	{'t', "time-radix", OPT_CHOICE, &time_radix, "d|o|x",
	 "Print timestamps or elapsed times in this radix.", 0, 0},
	{'u', "data-radix", OPT_CHOICE, &data_radix, "d|o|x", "Print user data in this radix.", 0,
	 0},
	{'x', "expand-header", OPT_FLAG, &expand, NULL,
	 "Separate the bits of the header: CPU ID, sample type (10 Trace, 11 Resource), shadow "
	 "register overflow, FIFO overflow, N/A.",
	 0, 0},
	OPT_END,
};

static const struct opt_command command = {
	.name = "mk_expand",
	.operands = "[FILE]...",
	.summary = "Print the samples of mk.dat, or of each FILE (- is standard input), one a "
		   "line: header, timestamp, source address, user data.",
	.opts = options,
	.alone = true,
};

static const char *const radix_words[] = {"dec", "oct", "hex"};

/* How many columns hold any number of this many bits. */
static int width_of(int radix, unsigned bits)
{
	switch (radix) {
	case RADIX_D:
		return bits == 32 ? 10 : bits == 56 ? 17 : 20;
	case RADIX_O:
		return (int)(bits + 2) / 3;
	default:
		return (int)bits / 4;
	}
}

static const char *digits_of(int radix, uint64_t v, char *out, size_t size)
{
	if (radix == RADIX_D)
		snprintf(out, size, "%" PRIu64, v);
	else if (radix == RADIX_O)
		snprintf(out, size, "%" PRIo64, v);
	else
		snprintf(out, size, "%" PRIx64, v);
	return out;
}

/* Decimal numbers stand to the right, others have leading zeros. */
static void print_number(int radix, unsigned bits, uint64_t v)
{
	int width = width_of(radix, bits);
	char digits[32];

	digits_of(radix, v, digits, sizeof(digits));
	for (int n = (int)strlen(digits); n < width; n++)
		putchar(radix == RADIX_D ? ' ' : '0');
	fputs(digits, stdout);
}

/* A sample of another board may be earlier than the first one: then there is a minus. */
static void print_elapsed(int64_t ticks)
{
	uint64_t size = ticks < 0 ? -(uint64_t)ticks : (uint64_t)ticks;
	char digits[32] = "-";

	digits_of(time_radix, size, digits + 1, sizeof(digits) - 1);
	printf("%*s", width_of(time_radix, SAMPLE_TIME_BITS) + 1, ticks < 0 ? digits : digits + 1);
}

static void print_heading(void)
{
	int t = width_of(time_radix, SAMPLE_TIME_BITS) + elapsed;
	int s = width_of(source_radix, 32);

	printf("%s  %-*s  %-*s  %s\n", expand ? "CPU TY SO FO NA" : "HD", t,
	       elapsed ? "ELAPSED" : "TIMESTAMP", s, "SOURCE", "USER DATA");
	printf("%s %-*s  %-*s  %s\n", expand ? "dec bin b  b  b " : "hex", t,
	       radix_words[time_radix], s, radix_words[source_radix], radix_words[data_radix]);
}

static void print_header(uint8_t h)
{
	if (!expand) {
		printf("%02x", h);
		return;
	}
	printf("%3d %d%d %2d %2d %2d", h >> 5, h >> 4 & 1, h >> 3 & 1, h >> 2 & 1, h >> 1 & 1,
	       h & 1);
}

static void print_counters(const struct mkdat_sample *s)
{
	for (unsigned i = 0; i < KRON_COUNTERS; i++) {
		fputs(i % 8 ? " " : "    ", stdout);
		print_number(counter_radix, 32, s->counter[i]);
		if (i % 8 == 7)
			putchar('\n');
	}
}

struct progress {
	bool started;
	uint64_t first;
};

static bool print_sample(void *arg, const struct mkdat_sample *s)
{
	struct progress *p = arg;

	if (!p->started && heading)
		print_heading();
	if (!p->started)
		p->first = s->time;
	p->started = true;
	print_header(s->header);
	fputs("  ", stdout);
	if (elapsed)
		print_elapsed(sample_elapsed(p->first, s->time));
	else
		print_number(time_radix, SAMPLE_TIME_BITS, s->time);
	fputs("  ", stdout);
	print_number(source_radix, 32, s->source);
	fputs("  ", stdout);
	print_number(data_radix, 64, s->data);
	putchar('\n');
	if (counters && s->resource)
		print_counters(s);
	return tool_can_write();
}

int main(int argc, char **argv)
{
	int status, first = tool_parse(&command, argc, argv, &status);
	struct input in = {.command = &command};
	struct progress progress = {0};

	if (!first)
		return status;
	in.names = argv + first;
	in.n = argc - first;
	status = input_read(&in, print_sample, &progress);
	return tool_finish(&command, status);
}
