/* SPDX-License-Identifier: MIT */
/*
 * rt_board.h - a board, a collector and a trampoline block made by hand, for the tests of the
 * runtime and for the benchmark of the probe.
 *
 * The runtime's objects are linked into the program, which attaches itself to the board.  The
 * stubs are written byte by byte after the contract in <kron/wire.h>, not by the planner.
 */
#ifndef TESTS_RT_BOARD_H
#define TESTS_RT_BOARD_H

#include <stdbool.h>
#include <stdint.h>
#include <kron/segment.h>
#include <kron/wire.h>
#include "board/model/access.h"

struct rig {
	int fd;
	int hardware; /* for bus device, else -1 */
	uint64_t size;
	uint8_t session[16];
	/* A mapping of our own: it stays what it is when the runtime's is gone. */
	struct kron_ctl *ctl;
	uint64_t *states;
	struct kron_source *sources;
	struct kron_proc *procs;
	uint8_t *pool;
	struct board board; /* its model, for bus exact */
	uint8_t *window;    /* the device, for bus device */
};

/* chunks in all, of which `ready` are FREE and the rest ABSENT; all gates open. */
void rig_make(struct rig *b, uint32_t chunks, uint32_t ready, enum kron_when_full when_full);
/* The same for the other buses; lanes are there, too, but nobody uses them. */
void rig_make_exact(struct rig *b, enum kron_when_full when_full);
/* The device is memory: each CPU that we may run on has its line. */
void rig_make_hardware(struct rig *b);
/* Attach this process as START does; dies when that fails. */
void rig_attach(const struct rig *b);

/* The stubs to come call this thunk; KRON_THUNK_LANE at first. */
void rig_use_thunk(enum kron_thunk thunk);
/* A stub: a probe of that event and level, then "ret". */
typedef void (*stub_fn)(void);
stub_fn rig_stub(uint32_t event, unsigned level);
/* The same for a hook. */
stub_fn rig_hook_stub(uint32_t hook);
/* Call it n times. */
void rig_trigger(stub_fn stub, uint64_t n);

struct kron_chunk *rig_chunk(const struct rig *b, uint32_t index);
const struct kron_sample *rig_samples(const struct rig *b, uint32_t index);

struct tally {
	uint64_t samples;      /* Trace samples of events below KRON_EVENT_SPECIAL */
	uint64_t lost_records; /* sum of the payloads of LOST records */
	uint64_t cpu_records;
	uint64_t holes;
	uint64_t chunks;  /* that held anything */
	uint64_t flagged; /* samples with the FIFO overflow bit */
};
/* Add what a chunk holds. */
void rig_tally_chunk(const struct rig *b, uint32_t index, struct tally *t);
/* Add what all chunks hold that are OWNED or FULL. */
void rig_tally(const struct rig *b, struct tally *t);
/* As the collector does: count the FULL chunks, zero them, set them free, wake waiters. */
unsigned rig_drain(const struct rig *b, struct tally *t);
/* Losses of all process slots, and of none. */
uint64_t rig_lost(const struct rig *b);

#endif
