/* SPDX-License-Identifier: MIT */
/*
 * mk_status.c - the state of a MultiKron board and of its chip (NISTIR 5993, 3.5): every
 * register by the name that the reports give it, every bit with its meaning.
 *
 * Looking disturbs nothing on an emulated board; on a real one the High Order 32 Bit Register
 * takes part in each read, as in every program that reads.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>

#include "board/bus/view.h"
#include "board/toolkit/tool.h"

static const char *board_name;

static const struct opt options[] = {
	{'b', "board", OPT_STR, &board_name, "NAME",
	 "The board, or the path of a device; default: $KRON_BOARD, then the board named default, "
	 "then the only one that there is.",
	 0, 0},
	OPT_END,
};

static const struct opt_command command = {
	.name = "mk_status",
	.summary = "Print the state of a MultiKron board and of its chip.",
	.opts = options,
	.alone = true,
};

static void put_bits(const struct view_bit *bits, uint32_t value)
{
	for (; bits->name; bits++)
		printf("    %-15s %u   %s\n", bits->name, value >> bits->bit & 1, bits->meaning);
}

static void put_cpu_lines(uint32_t config)
{
	uint32_t lines = config & KRON_CONFIG_CPU_ID;

	printf("    %-15s %02" PRIx32 "  ", "CPU_ID", lines);
	if (config & KRON_CONFIG_EXT_CPU)
		puts("not used: the external lines say which");
	else if (lines && !(lines & (lines - 1)))
		printf("CPU %d\n", __builtin_ctz(lines));
	else
		puts(lines ? "more than one line: the report allows one" : "no CPU");
}

static void put_board(const struct bus *b, const struct bus_view *v)
{
	printf("MultiKron interface board %s, %s, version %02" PRIx32 "\n", b->name,
	       bus_is_exact(b) ? "emulated" : "device", v->config >> 24);
	printf("  Configuration Register            %06" PRIx32 "\n", v->config & 0xffffff);
	put_cpu_lines(v->config);
	put_bits(view_config_bits, v->config);
	printf("  Memory Address Pointer            %06" PRIx32 "\n", v->map);
	printf("    %" PRIu32 " of %u words used, wrapped %u times (counted modulo 4)\n",
	       view_words_used(v), KRON_BOARD_MEMORY_WORDS, view_wraps(v));
}

static void put_levels(uint32_t filter)
{
	fputs("    levels on:", stdout);
	for (unsigned i = 0; i < KRON_LEVELS; i++)
		if (filter >> i & 1)
			printf(" %u", i);
	puts(filter ? "" : " none");
}

static void put_chip(const struct bus_view *v)
{
	double hz = bus_timestamp_hz(v->config);

	puts("MultiKron_II");
	printf("  Control and Status Register       %04" PRIx32 "\n", v->csr);
	put_bits(view_csr_bits, v->csr);
	printf("  Filter Register                   %04" PRIx32 "\n", v->filter);
	put_levels(v->filter);
	printf("  Timestamp                         %014" PRIx64 "  %.6f s at %.3f MHz\n",
	       v->timestamp, (double)v->timestamp / hz, hz / 1e6);
	printf("  Wait Error Counter                %08" PRIx32 "  %" PRIu32 "\n", v->wait,
	       v->wait);
	printf("  Overrun Error Counter             %08" PRIx32 "  %" PRIu32 "\n", v->overrun,
	       v->overrun);
	printf("  High Order 32 Bit Register        %08" PRIx32 "\n", v->high);
}

static void put_sources(const struct bus_view *v)
{
	puts("  Source Address Registers");
	for (unsigned i = 0; i < KRON_SOURCES; i++)
		printf("    %u  %08" PRIx32 "  node %" PRIu32 ", process %" PRIu32 "\n", i,
		       v->source[i], v->source[i] >> KRON_SOURCE_TID_BITS,
		       v->source[i] & KRON_SOURCE_TID_MASK);
}

static void put_counters(const struct bus_view *v)
{
	printf("  Resource Counters%s\n",
	       v->counters_are_shadows ? " (as last copied to the shadow registers)" : "");
	printf("    Enable %016" PRIx64 "  Mode %016" PRIx64 "  Clock Select %016" PRIx64 "\n",
	       v->enable, v->mode, v->clock);
	for (unsigned i = 0; i < KRON_COUNTERS; i++) {
		unsigned mode = view_field(v->mode, i);
		bool clocked = mode & 1; /* 1 and 3 count an internal clock */
		bool upper = i % 2 && view_is_double(v->mode, i);

		if (upper) {
			printf("    %2u  upper half of %u\n", i, i - 1);
			continue;
		}
		printf("    %2u  %*s%0*" PRIx64 "  %s, counts %s%s%s\n", i,
		       view_is_double(v->mode, i) ? 0 : 8, "", view_is_double(v->mode, i) ? 16 : 8,
		       v->counter[i], view_enable_word(view_field(v->enable, i)),
		       view_mode_word(mode), clocked ? ", " : "",
		       clocked ? view_clock_word(view_field(v->clock, i)) : "");
	}
}

int main(int argc, char **argv)
{
	struct bus_view view;
	struct bus bus;
	struct err err;
	int status;

	if (!tool_parse(&command, argc, argv, &status))
		return status;
	if (bus_open(&bus, board_name, &err) || bus_look(&bus, &view, &err))
		return tool_fail(&command, TOOL_ERROR, "%s", err.msg);
	put_board(&bus, &view);
	put_chip(&view);
	put_sources(&view);
	put_counters(&view);
	bus_close(&bus);
	return tool_finish(&command, TOOL_OK);
}
