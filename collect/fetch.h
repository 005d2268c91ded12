/* SPDX-License-Identifier: MIT */
/*
 * fetch.h - bus exact: the samples in the board's local memory become chunks of the trace.
 *
 *   local memory, circular      0 ............. fetched ≡≡≡≡≡≡≡≡ passed ........ 4M words
 *                                    in the trace       to fetch      │ oldest: overwritten next
 *                                                                     └ Memory Address Pointer
 *   round: pointer ─► source table ─► words ─► sorted by thread ─► chunks ─► fetched
 *
 * Both positions count words since the recording began, their low 24 bits are the pointer's.
 * The pointer is read before the table, so every sample up to it has its thread there.
 *
 * What is lost: the chip's Overrun Counter has what found its FIFO full; what came round in
 * memory before it was fetched is counted here.  samples + lost = triggers.
 *
 * On bus device the board keeps its samples; then this looks after the source table only.
 *
 * In wrap mode nothing is fetched before the end: the last 16 MiB of samples are the recording.
 */
#ifndef COLLECT_FETCH_H
#define COLLECT_FETCH_H

#include "collect/drain.h"
#include "collect/board_setup.h"
#include "collect/sources.h"

struct outbox {          /* what one thread has in the batch */
	uint64_t word;   /* of the thread's entry; 0: not known */
	uint32_t source; /* source address */
	uint32_t next;   /* index + 1 of the next one with the same hash */
	uint64_t first;  /* position of its first sample */
	uint32_t samples;
	VEC(uint8_t) bytes;
};

struct fetch {
	struct drain *drain; /* whose journal, tasks and totals are used */
	struct segment *seg;
	struct bus bus;
	const struct board *board; /* NULL: hardware, which keeps its samples */
	struct board_clock clock;
	struct sources sources;
	bool at_end;      /* wrap mode */
	bool stays;       /* the board was there before us */
	uint64_t fetched; /* words */
	uint64_t passed;
	uint64_t passed_ns;   /* no later than the pointer was there */
	uint64_t handed_on;   /* samples, to the sink */
	uint64_t overwritten; /* samples */
	uint64_t overruns;    /* samples */
	uint64_t waited;      /* NODECLKs */
	uint64_t damaged;     /* words that belong to no sample */
	uint32_t overrun_register, wait_register;
	uint32_t config; /* of a board that stays, before we came */
	bool unsure;     /* words were skipped: look where the next sample begins */
	bool has_before; /* the time of the sample before is known: */
	uint64_t before;
	uint32_t *words;
	VEC(struct outbox) boxes;
	uint32_t nboxes;  /* of this batch */
	uint32_t *box_at; /* hash: index + 1 */
	/* recover: what the file has past the position `fetched`, by source */
	VEC(struct fetched_already {
		uint32_t source;
		uint64_t bytes;
	})
	already;
	uint64_t last_ticks; /* of the latest sample */
};

/* Sets the board up, sampling off, as far as it does not stay.  d's segment is for bus exact; d
 * and its tasks use f from here on. */
void fetch_start(struct fetch *f, struct drain *d, const struct board_setup *s);
/* Bus device: no samples, but whose source address is whose. */
void fetch_start_hardware(struct fetch *f, struct drain *d);
/* Take over from a killed collector. */
void fetch_resume(struct fetch *f, struct drain *d);
/* The trace has these samples past f->fetched already. */
void fetch_has_already(struct fetch *f, uint32_t source, uint32_t bytes);
/* Give a board that stays its Configuration Register back. */
void fetch_restore(struct fetch *f);
void fetch_free(struct fetch *f);

/* One round.  Returns samples that the sink got. */
uint64_t fetch_round(struct fetch *f, bool deaths, bool thorough);

/* The last one: sampling is off; what is in the FIFOs gets its time to come out. */
void fetch_all(struct fetch *f);

/* Nanoseconds that a trigger takes here, measured with sampling off. */
double fetch_trigger_ns(const struct fetch *f, double tsc_hz);

#endif
