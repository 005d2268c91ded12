/* SPDX-License-Identifier: MIT */
/*
 * status.c - kron status: a board as it is now, every register by name and bit.
 *
 * Looking changes nothing: board/bus/view.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "board/bus/lanes.h"
#include "board/bus/samples.h"
#include "board/bus/view.h"
#include "cmd/cmd.h"

static const char *board;
static bool json;
static uint64_t watch;

static const struct opt options[] = {
	{0, "board", OPT_STR, &board, "NAME",
	 "The board: a name, the process id of a kron record, or the path of a device. Default: "
	 "$KRON_BOARD, else \"default\", else the only one that there is.",
	 0, 0},
	{0, "json", OPT_FLAG, &json, NULL, "Print a JSON object; with --watch one a line.", 0, 0},
	{'w', "watch", OPT_UINT, &watch, "SECONDS", "Show it again every SECONDS, until ^C.", 1,
	 86400},
	OPT_END,
};

static const struct opt_command command = {
	.name = "status",
	.summary = "Show a board: every register by name and bit, counters, clock, memory, and who "
		   "records on it.",
	.opts = options,
};

/* All that is shown, taken before anything is written. */
struct status {
	struct bus_view view;
	struct lanes_view lanes;
	uint32_t virtual[KRON_VC_COUNTERS]; /* if there is a MultiKron_vc */
	uint32_t words;                     /* of local memory that hold samples */
	uint64_t samples;                   /* in them */
	bool exact, virtual_clock;
	double timestamp_hz;
};

/* ---- samples in local memory ---- */

static int count_sample(void *to, const uint32_t *words, unsigned n)
{
	(void)words;
	(void)n;
	++*(uint64_t *)to;
	return 0;
}

static int take(struct bus *b, struct status *s, struct err *err)
{
	int code;

	memset(s, 0, sizeof(*s));
	code = bus_look(b, &s->view, err);
	if (code)
		return code;
	s->exact = bus_is_exact(b);
	s->virtual_clock = s->exact && bus_has_virtual_clock(b);
	s->timestamp_hz = bus_timestamp_hz(s->view.config);
	s->words = view_words_used(&s->view);
	if (s->view.geometry.vc && !board_read_counters(&b->board, s->virtual))
		return err_set(
			err, EAGAIN,
			"board %s is in use without a pause: its virtual counters cannot be read at one moment; try again",
			b->name);
	lanes_look(b, &s->lanes);
	return bus_samples(b, count_sample, &s->samples, err);
}

/* ---- text ---- */

static void print_bits(const char *name, uint32_t value, const struct view_bit *bits)
{
	printf("%-14s %0*" PRIx32 "\n", name, bits == view_csr_bits ? 4 : 8, value);
	for (; bits->name; bits++)
		printf("  %2u %-14s  %u  %s\n", bits->bit, bits->name, value >> bits->bit & 1,
		       bits->meaning);
}

static void print_groups(const struct bus_view *v)
{
	printf("%-14s %04x\n  groups on: ", "Filter", v->filter);
	for (unsigned i = 0; i < KRON_LEVELS; i++)
		if (v->filter >> i & 1)
			printf(" %u", i);
	puts(v->filter ? "" : " none");
}

static void print_source(const struct bus_view *v)
{
	puts("Source Address  (node, process)");
	for (unsigned i = 0; i < KRON_SOURCES; i++)
		printf("  %2u %08" PRIx32 "  %" PRIu32 ", %" PRIu32 "\n", i, v->source[i],
		       v->source[i] >> KRON_SOURCE_TID_BITS, v->source[i] & KRON_SOURCE_TID_MASK);
}

static void print_counters(const struct bus_view *v)
{
	printf("Resource Counters%s\n",
	       v->counters_are_shadows ? "  (shadow registers: what was last copied)" : "");
	for (unsigned i = 0; i < KRON_COUNTERS; i++) {
		unsigned mode = view_field(v->mode, i);
		bool twofold = view_is_double(v->mode, i);

		printf("  %2u %20" PRIu64 "  %-8s  %-20s  %-11s  %s\n", i, v->counter[i],
		       view_enable_word(view_field(v->enable, i)), view_mode_word(mode),
		       view_clock_word(view_field(v->clock, i)),
		       !twofold ? "32 bits"
		       : i % 2  ? "upper half"
				: "64 bits");
	}
}

static void print_clock(const struct status *s)
{
	const struct bus_view *v = &s->view;

	printf("%-14s %" PRIu64 " ticks, %.6f s at %.3f MHz\n", "Timestamp", v->timestamp,
	       (double)v->timestamp / s->timestamp_hz, s->timestamp_hz / 1e6);
	printf("%-14s %" PRIu32 " NODECLKs\n", "Wait", v->wait);
	printf("%-14s %" PRIu32 " samples lost\n", "Overrun", v->overrun);
	printf("%-14s %08" PRIx32 "\n", "High Order", v->high);
}

static void print_memory(const struct status *s)
{
	char words[STR_NUMBER], samples[STR_NUMBER];
	const struct bus_view *v = &s->view;
	unsigned wraps = view_wraps(v);

	printf("%-14s %06" PRIx32 "  %s words, %s samples", "Memory Pointer", v->map,
	       str_thousands(words, sizeof(words), s->words),
	       str_thousands(samples, sizeof(samples), s->samples));
	if (v->config & KRON_CONFIG_WRAPB)
		puts(v->map > KRON_MAP_WORD ? ", simple buffer, full" : ", simple buffer");
	else
		printf(", circular, %u wraps (of 4)\n", wraps);
}

static void print_board(const struct bus *b, const struct status *s)
{
	const struct model_geometry *g = &s->view.geometry;

	printf("%-14s %s\n", "Board", b->name);
	if (!s->exact) {
		printf("%-14s device, stores and loads as they are\n", "Access");
		return;
	}
	printf("%-14s emulated, %s clock\n", "Access", s->virtual_clock ? "virtual" : "real");
	printf("%-14s chip FIFO %" PRIu32 " samples, board FIFO %" PRIu32 " bytes, drain %" PRIu32
	       " clocks to memory, %" PRIu32 " to the cable; cable %s, MultiKron_vc %s\n",
	       "Geometry", g->chip_fifo, g->board_fifo, g->drain_memory, g->drain_cable,
	       g->cable ? "connected" : "not connected", g->vc ? "installed" : "not installed");
}

static void print_lanes(const struct status *s)
{
	const struct lanes_view *l = &s->lanes;
	char lost[STR_NUMBER], room[STR_NUMBER];

	if (!s->exact)
		return;
	if (!l->recorder_pid) {
		printf("%-14s %s\n", "Recorder",
		       l->orphaned ? "killed; its samples are here still: `kron recover`" : "none");
		return;
	}
	printf("%-14s kron record, pid %d, bus %s%s\n", "Recorder", l->recorder_pid,
	       lanes_bus_word(l->bus), l->constant_time ? ", constant time" : "");
	if (l->dir[0])
		printf("%-14s %s\n", "Trace", l->dir);
	printf("%-14s %u live, %u since the start\n", "Processes", l->live, l->started);
	printf("%-14s %u free, %u in use, %u full, of %u (%s)\n", "Chunks", l->free, l->owned,
	       l->full, l->chunks_max,
	       str_bytes(room, sizeof(room), (uint64_t)l->chunks_max * KRON_CHUNK_SIZE));
	printf("%-14s %s samples\n", "Lost", str_thousands(lost, sizeof(lost), l->lost));
	for (unsigned i = 0; i < KRON_COUNTERS; i++)
		if (l->counts[i])
			printf("%-14s %2u: %s\n", "Counted", i,
			       str_thousands(lost, sizeof(lost), l->counts[i]));
}

static void print_vc(const struct status *s)
{
	const struct view_vc *v = &s->view.vc;
	char name[16];

	if (!s->view.geometry.vc)
		return;
	puts("MultiKron_vc");
	printf("  %-17s %" PRIu64 " ticks\n", "Timestamp", v->timestamp);
	printf("  %-17s %04" PRIx32 "\n", "CSR", v->csr);
	printf("  %-17s %08" PRIx32 "\n", "High Order", v->high);
	printf("  %-17s %" PRIu32 "  counters %" PRIu32 " to %" PRIu32 "\n", "Page", v->page,
	       v->page * KRON_COUNTERS, v->page * KRON_COUNTERS + KRON_COUNTERS - 1);
	for (unsigned i = 0; i < KRON_COUNTERS; i++)
		printf("  %2u %-8s  %-20s  %-11s  %s\n", i,
		       view_enable_word(view_field(v->enable, i)),
		       view_mode_word(view_field(v->mode, i)),
		       view_clock_word(view_field(v->clock, i)),
		       !view_is_double(v->mode, i) ? "32 bits"
		       : i % 2                     ? "upper half"
						   : "64 bits");
	for (unsigned n = 0; n < KRON_VC_COUNTERS; n++)
		if (s->virtual[n]) {
			snprintf(name, sizeof(name), "%u", n);
			printf("  %-17s %" PRIu32 "\n", name, s->virtual[n]);
		}
}

static void print_text(const struct bus *b, const struct status *s)
{
	print_board(b, s);
	print_lanes(s);
	putchar('\n');
	print_clock(s);
	print_memory(s);
	print_groups(&s->view);
	print_bits("CSR", s->view.csr, view_csr_bits);
	print_bits("Configuration", s->view.config, view_config_bits);
	printf("   0-7 CPU_ID         %02x\n", s->view.config & KRON_CONFIG_CPU_ID);
	printf("  24-31 V_NUM         %02x\n", s->view.config >> 24);
	print_source(&s->view);
	print_counters(&s->view);
	print_vc(s);
}

/* ---- JSON ---- */

static void json_bits(struct json *j, const char *key, uint32_t value, const struct view_bit *bits)
{
	json_key(j, key);
	json_open(j, '{');
	json_ku64(j, "value", value);
	for (; bits->name; bits++) {
		json_key(j, bits->name);
		json_bool(j, value >> bits->bit & 1);
	}
	json_close(j, '}');
}

static void json_counters(struct json *j, const struct bus_view *v)
{
	json_key(j, "counters");
	json_open(j, '[');
	for (unsigned i = 0; i < KRON_COUNTERS; i++) {
		json_open(j, '{');
		json_ku64(j, "value", v->counter[i]);
		json_kstr(j, "enable", view_enable_word(view_field(v->enable, i)));
		json_kstr(j, "mode", view_mode_word(view_field(v->mode, i)));
		json_kstr(j, "clock", view_clock_word(view_field(v->clock, i)));
		json_ku64(j, "bits", view_is_double(v->mode, i) ? 64 : 32);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void json_registers(struct json *j, const struct status *s)
{
	const struct bus_view *v = &s->view;

	json_ku64(j, "timestamp", v->timestamp);
	json_key(j, "timestamp_hz");
	json_f64(j, s->timestamp_hz);
	json_key(j, "seconds");
	json_f64(j, (double)v->timestamp / s->timestamp_hz);
	json_ku64(j, "wait", v->wait);
	json_ku64(j, "overrun", v->overrun);
	json_ku64(j, "high", v->high);
	json_ku64(j, "filter", v->filter);
	json_bits(j, "csr", v->csr, view_csr_bits);
	json_bits(j, "config", v->config, view_config_bits);
	json_ku64(j, "cpu_id", v->config & KRON_CONFIG_CPU_ID);
	json_ku64(j, "map", v->map);
	json_ku64(j, "words", s->words);
	json_ku64(j, "wraps", view_wraps(v));
	json_ku64(j, "samples", s->samples);
	json_ku64(j, "enable", v->enable);
	json_ku64(j, "mode", v->mode);
	json_ku64(j, "clock", v->clock);
	json_key(j, "source");
	json_open(j, '[');
	for (unsigned i = 0; i < KRON_SOURCES; i++)
		json_u64(j, v->source[i]);
	json_close(j, ']');
	json_counters(j, v);
}

static void json_vc(struct json *j, const struct status *s)
{
	const struct view_vc *v = &s->view.vc;

	json_key(j, "vc");
	json_open(j, '{');
	json_ku64(j, "timestamp", v->timestamp);
	json_ku64(j, "csr", v->csr);
	json_ku64(j, "high", v->high);
	json_ku64(j, "page", v->page);
	json_ku64(j, "enable", v->enable);
	json_ku64(j, "mode", v->mode);
	json_ku64(j, "clock", v->clock);
	json_key(j, "counters");
	json_open(j, '[');
	for (unsigned n = 0; n < KRON_VC_COUNTERS; n++) {
		if (!s->virtual[n])
			continue;
		json_open(j, '{');
		json_ku64(j, "number", n);
		json_ku64(j, "value", s->virtual[n]);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_close(j, '}');
}

static void json_geometry(struct json *j, const struct model_geometry *g)
{
	json_key(j, "geometry");
	json_open(j, '{');
	json_ku64(j, "chip_fifo", g->chip_fifo);
	json_ku64(j, "board_fifo", g->board_fifo);
	json_ku64(j, "drain_memory", g->drain_memory);
	json_ku64(j, "drain_cable", g->drain_cable);
	json_ku64(j, "cable", g->cable);
	json_ku64(j, "vc", g->vc);
	json_close(j, '}');
}

static void json_lanes(struct json *j, const struct lanes_view *l)
{
	json_key(j, "recorder_pid");
	json_i64(j, l->recorder_pid);
	json_key(j, "orphaned");
	json_bool(j, l->orphaned);
	if (!l->recorder_pid)
		return;
	json_kstr(j, "bus", lanes_bus_word(l->bus));
	json_kstr(j, "trace", l->dir[0] ? l->dir : NULL);
	json_ku64(j, "processes", l->live);
	json_ku64(j, "processes_started", l->started);
	json_ku64(j, "chunks_free", l->free);
	json_ku64(j, "chunks_owned", l->owned);
	json_ku64(j, "chunks_full", l->full);
	json_ku64(j, "chunks_max", l->chunks_max);
	json_ku64(j, "lost", l->lost);
	json_key(j, "counts");
	json_open(j, '[');
	for (unsigned i = 0; i < KRON_COUNTERS; i++)
		json_u64(j, l->counts[i]);
	json_close(j, ']');
}

static void print_json(const struct bus *b, const struct status *s)
{
	struct json j = JSON_INIT(stdout);

	json_open(&j, '{');
	json_kstr(&j, "board", b->name);
	json_kstr(&j, "access", b->ops->name);
	if (s->exact) {
		json_kstr(&j, "time", s->virtual_clock ? "virtual" : "real");
		json_geometry(&j, &s->view.geometry);
	}
	json_registers(&j, s);
	if (s->view.geometry.vc)
		json_vc(&j, s);
	if (s->exact)
		json_lanes(&j, &s->lanes);
	json_close(&j, '}');
}

/* ---- all together ---- */

static int show(struct bus *b)
{
	static struct status s; /* 32 KiB of counters */
	struct err err;

	if (take(b, &s, &err))
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	if (watch && !json && isatty(STDOUT_FILENO))
		fputs("\033[H\033[2J", stdout);
	if (json)
		print_json(b, &s);
	else
		print_text(b, &s);
	if (watch && !json)
		putchar('\n');
	return cmd_finish(&command, CMD_OK);
}

int cmd_status(int argc, char **argv)
{
	struct timespec pause = {0};
	struct bus bus;
	struct err err;
	int status;

	if (!cmd_parse(&command, argc, argv, &status))
		return status;
	if (bus_open(&bus, board, &err))
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	status = show(&bus);
	pause.tv_sec = (time_t)watch;
	while (watch && status == CMD_OK && !ferror(stdout)) {
		nanosleep(&pause, NULL);
		status = show(&bus);
	}
	bus_close(&bus);
	return status;
}
