/* SPDX-License-Identifier: MIT */
/*
 * board_stream.h - reads a board's local memory as it fills, sample by sample, and checks it.
 *
 * For tests that trigger from many places at once.  Each place ("source") numbers its triggers;
 * user data is {check(source, number), number}.  So each sample shows whether it is whole, whose
 * it is, and whether it was there before.
 */
#ifndef TESTS_BOARD_STREAM_H
#define TESTS_BOARD_STREAM_H

#include "board/model/access.h"

/* What a source says of itself; in shared memory, written by the source alone. */
struct source {
	uint64_t started;      /* triggers begun */
	uint64_t acknowledged; /* triggers that came back */
	uint64_t taken;        /* of these: the sample is in the FIFO */
	/* by the reader of the stream */
	uint64_t seen;
	uint32_t last; /* number of the last sample seen */
};

struct stream {
	struct board board;
	struct source *sources;
	uint32_t nsources;
	uint64_t words; /* read so far */
	uint64_t samples;
	uint64_t time; /* timestamp of the last sample */
	uint32_t map;  /* Memory Address Pointer, as of the last look */
	uint64_t room; /* shared: how many samples may be stored before we have read on */
	uint32_t *buffer;
	bool repeats;    /* a forked child may finish what its parent began: no accounts */
	char wrong[200]; /* the first thing that is wrong */
};

#define STREAM_BUFFER (1u << 20) /* words */

/* A board of its own, private or for forked children; `sources` likewise. */
bool stream_open(struct stream *s, enum access_clock clock, uint32_t nsources);
void stream_close(struct stream *s);
/* Default configuration with the CPUs' own lines, all levels, sampling on. */
void stream_start(struct stream *s, uint32_t csr);

/* Leave n slots besides the active one, so that those of the dead are needed all the time; 0:
 * all of them again. */
void stream_leave_slots(struct stream *s, unsigned n);

/* Trigger number `number` of a source; counts what became of it. */
bool stream_trigger(const struct board *b, struct source *sources, uint32_t source);

/* Read and check what is new.  False: s->wrong says what. */
bool stream_read(struct stream *s);
/* Wait until the FIFOs are empty, and read the rest. */
bool stream_drain(struct stream *s);
/* Seen = taken for each source; of those in flight when cut off (`cuts` in all) one each may be
 * there or not.  Overruns account for all others. */
bool stream_settle(struct stream *s, uint64_t cuts);

bool stream_fail(struct stream *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
