/* SPDX-License-Identifier: MIT */
/*
 * keeper.h - holds a recorder's own segment, so that a killed recorder loses nothing.
 *
 *   kron record ──clone──► kron-keeper   sleeps; the link in /dev/shm leads to its descriptor
 *        │ lifeline (a pipe)    │
 *        └──────ends───────────►│ `kron --keep`: until `kron recover` has fetched what is there, or
 *                               ▼ half a minute after the last traced process, when it does that itself
 *
 * Sealed memory lives as long as somebody has it open (board/bus/held.c).  A process of its own
 * survives what
 * kills the recorder.  It costs the recorder one clone() that shares its memory: no page table is
 * copied, and nothing is executed before the recorder has gone.
 *
 * Of a recorder that records only to show something (kron stat) nothing is fetched: `kron --drop` removes its
 * folder.
 *
 * An orderly end takes it away again (keeper_dismiss).  When the memory runs out, the kernel ends both,
 * because they share theirs, and that of the samples is free again: so it should be.
 */
#ifndef COLLECT_KEEPER_H
#define COLLECT_KEEPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "board/bus/object.h"

struct keeper {
	struct holder held; /* keeper 0: none */
	bool dismissed;
	int lifeline;
	struct keeper_room *room; /* its stack, and what it knows */
};

struct keeper_options {
	int memory;         /* what it holds */
	const char *object; /* whose name it goes with */
	const char *trace;  /* the folder; NULL: none */
	bool is_scratch;    /* the folder, and the one that it is in, are for this recorder alone */
	const char *exe;    /* kron, to be executed once we are gone; NULL: it only holds */
};

int keeper_start(struct keeper *k, const struct keeper_options *o, struct err *err);
/* Nobody needs what it holds. */
void keeper_dismiss(struct keeper *k);
/* One that was dismissed is gone when this returns.  Another is on its own from now on, as if we had
 * been killed. */
void keeper_leave(struct keeper *k);
/* Was it killed? */
bool keeper_is_gone(const struct keeper *k);

/* ---- the other side: what `kron --keep OBJECT FD` does, in the process that was the keeper ---- */
/* is_scratch: `kron --drop`. */
int keeper_main(const char *object, const char *fd, bool is_scratch);

#endif
