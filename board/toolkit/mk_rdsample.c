/* SPDX-License-Identifier: MIT */
/*
 * mk_rdsample.c - writes the samples of a board's local memory to mk.dat (NISTIR 5993, 3.5), or those
 * that come over its cable.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/output.h"
#include "board/bus/local_memory.h"
#include "board/toolkit/far_end.h"
#include "board/toolkit/mkdat.h"
#include "board/toolkit/tool.h"

static const char *file_name = MKDAT_FILE, *start_text, *end_text, *board_name, *cable;
static bool verbose, follow;
static volatile int stop;

static const struct opt options[] = {
	{'f', "file", OPT_STR, &file_name, "FILE",
	 "Write to FILE instead of mk.dat; - is standard output.", 0, 0},
	{'s', "start", OPT_STR, &start_text, "WORD",
	 "Begin at this word of local memory, decimal or 0x and hexadecimal; default 0, or the "
	 "oldest sample of a circular memory that has wrapped.",
	 0, 0},
	{'e', "end", OPT_STR, &end_text, "WORD",
	 "End before this word; default: the Memory Address Pointer.", 0, 0},
	{0, "follow", OPT_FLAG, &follow, NULL,
	 "Take the samples that the board sends over its external cable, as they come, until SIGINT, "
	 "SIGTERM, or the board is removed.",
	 0, 0},
	{0, "cable", OPT_STR, &cable, "PATH",
	 "Read what `kron board create --cable` writes from this FIFO or file, from standard input (-), "
	 "or from the connection to unix:PATH that is waited for, until its end; with --follow a file "
	 "has none.",
	 0, 0},
	{'v', "verbose", OPT_FLAG, &verbose, NULL, "Say what is being done.", 0, 0},
	{'b', "board", OPT_STR, &board_name, "NAME",
	 "The board, or the path of a device; default: $KRON_BOARD, then the board named default, "
	 "then the only one that there is.",
	 0, 0},
	OPT_END,
};

static const struct opt_command command = {
	.name = "mk_rdsample",
	.summary =
		"Write the samples in the local memory of a MultiKron board, or those that come over its "
		"cable, to mk.dat.",
	.opts = options,
	.alone = true,
};

/* Word `text`, below `limit`. */
static int read_word(const char *option, const char *text, uint32_t limit, bool *has, uint32_t *out)
{
	uint64_t v;

	if (!text)
		return TOOL_OK;
	if (tool_number(text, &v) || v >= limit)
		return tool_fail(&command, TOOL_USAGE,
				 "--%s: '%s' is not a word of local memory: 0 to %#x", option, text,
				 limit - 1);
	*has = true;
	*out = (uint32_t)v;
	return TOOL_OK;
}

static int write_words(FILE *f, const struct local_memory *m)
{
	return fwrite(m->words, sizeof(*m->words), m->n, f) == m->n && !fflush(f) ? 0 : -errno;
}

static int write_file(const struct local_memory *m)
{
	struct output out;
	struct err err;

	if (!strcmp(file_name, "-")) {
		int code = write_words(stdout, m);

		return code ? tool_fail(&command, TOOL_ERROR, "cannot write standard output: %s",
					strerror(-code))
			    : TOOL_OK;
	}
	if (output_begin(&out, file_name, OUTPUT_STREAM, &err))
		return tool_fail(&command, TOOL_ERROR, "%s", err.msg);
	write_words(output_stream(&out), m); /* output_end() knows what went wrong */
	if (output_end(&out, &err))
		return tool_fail(&command, TOOL_ERROR, "%s", err.msg);
	return TOOL_OK;
}

static void say_dropped(size_t words, const char *why)
{
	if (words)
		tool_note(&command, "%zu %s left out: %s", words, words == 1 ? "word" : "words",
			  why);
}

static void say_result(const struct local_memory *m)
{
	say_dropped(m->overwritten,
		    "the board stored newer samples over them while they were read");
	say_dropped(m->oldest, "the oldest sample is overwritten in part");
	say_dropped(m->newest, "the newest sample is not all there yet");
	if (m->damaged)
		tool_note(&command, "%zu %s in no sample; they are in %s as they are", m->damaged,
			  m->damaged == 1 ? "word is" : "words are", file_name);
	if (!m->n)
		tool_note(&command, "there is no sample in local memory");
	if (verbose)
		tool_note(&command,
			  "%" PRIu64 " Trace and %" PRIu64 " Resource samples, %zu words, to %s",
			  m->trace, m->resource, m->n, file_name);
}

static int read_samples(struct bus *b, const struct local_range *range)
{
	struct local_memory m;
	struct err err;
	int status;

	if (verbose)
		tool_note(&command, "board %s, Memory Address Pointer %06x", b->name,
			  bus_memory_pointer(b));
	if (local_memory_read(&m, b, range, &err))
		return tool_fail(&command, TOOL_ERROR, "%s", err.msg);
	if (verbose && m.wrapped)
		tool_note(&command, "the memory has wrapped: oldest samples first");
	status = write_file(&m);
	if (!status)
		say_result(&m);
	local_memory_free(&m);
	return status;
}

/* ---- the cable ---- */

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static int take_samples(struct far_end *f, struct err *err)
{
	struct bus bus;
	int code;

	if (cable)
		return far_end_of_path(f, cable, err);
	code = bus_open(&bus, board_name, err);
	if (code)
		return code;
	code = far_end_of_board(f, &bus, err);
	bus_close(&bus);
	return code;
}

static void say_followed(const struct far_end *f)
{
	if (f->n)
		tool_note(&command, "%zu bytes left out: the newest sample is not all there", f->n);
	if (f->damaged)
		tool_note(&command, "%" PRIu64 " bytes left out: they are in no sample",
			  f->damaged);
	if (verbose)
		tool_note(&command, "%" PRIu64 " Trace and %" PRIu64 " Resource samples, to %s",
			  f->trace, f->resource, file_name);
}

static int follow_cable(void)
{
	static struct far_end f;
	struct sigaction act = {.sa_handler = on_signal};
	bool is_stdout = !strcmp(file_name, "-");
	struct output out;
	struct err err;
	int code;

	if (start_text || end_text)
		return tool_fail(&command, TOOL_USAGE,
				 "--start and --end are words of local memory");
	if (!is_stdout && output_begin(&out, file_name, OUTPUT_STREAM, &err))
		return tool_fail(&command, TOOL_ERROR, "%s", err.msg);
	f = (struct far_end){
		.out = is_stdout ? stdout : output_stream(&out), .follow = follow, .stop = &stop};
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	code = take_samples(&f, &err);
	if (!is_stdout && code)
		output_drop(&out);
	else if (!is_stdout)
		code = output_end(&out, &err);
	if (code)
		return tool_fail(&command, TOOL_ERROR, "%s", err.msg);
	say_followed(&f);
	return TOOL_OK;
}

int main(int argc, char **argv)
{
	int status;
	struct local_range range = {0};
	struct bus bus;
	struct err err;

	if (!tool_parse(&command, argc, argv, &status))
		return status;
	if (follow || cable)
		return follow_cable();
	status = read_word("start", start_text, KRON_BOARD_MEMORY_WORDS, &range.has_start,
			   &range.start);
	if (!status)
		status = read_word("end", end_text, KRON_BOARD_MEMORY_WORDS + 1, &range.has_end,
				   &range.end);
	if (status)
		return status;
	if (bus_open(&bus, board_name, &err))
		return tool_fail(&command, TOOL_ERROR, "%s", err.msg);
	status = read_samples(&bus, &range);
	bus_close(&bus);
	return status;
}
