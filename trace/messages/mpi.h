/* SPDX-License-Identifier: MIT */
/*
 * mpi.h - the messages and collectives of a trace that has the events of the probe pack mpi.
 *
 *   events ─► mpi_calls.c ─► calls ─► mpi_match.c ───────► messages ─► sink
 *                              │                              waits ─►
 *                              ├────► mpi_collectives.c ──────┘
 *                              └────► mpi_comms.c: handles of a process ─► communicators
 *
 * A send and a receive belong together by communicator, sender, receiver and tag, and by the order in which they
 * were made there, as MPI demands of the library (MPI 3.1, 3.5): never by their times.  So clocks that disagree do no
 * harm.  What a receive from any rank gets is known by what arrives at the library, in its order (mpi_arrivals.c).  Where
 * that was not seen, and the program asks for no status, nobody knows: from there on receives of that rank and tag are in
 * doubt, and not matched.
 *
 * Of threads that send under one tag at the same time the one that comes back first is taken to have sent first, which
 * need not be so: such sends are counted.
 *
 * Communicators of a trace are told apart by their number (which processes of one agree on) and by the process that
 * is rank 0 of it, and by how often these have been made anew (mpi_comms.c).
 *
 * Allocates; reads all samples of the trace twice.
 */
#ifndef TRACE_MESSAGES_MPI_H
#define TRACE_MESSAGES_MPI_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/reader.h"

#define MPI_NO_RANK (-1)

struct mpi_message {
	uint32_t from, to; /* lanes */
	int32_t from_rank, to_rank, tag;
	uint32_t comm;  /* the trace's number of it */
	uint64_t bytes; /* UINT64_MAX: not known */
	/* Ticks. */
	uint64_t sent;     /* when the sending call began */
	uint64_t posted;   /* when the receiving call began, or the one that made the request */
	uint64_t received; /* when the call ended that returned it; 0: not known */
};

/* A process stood still in a call because another was late. */
enum mpi_why { MPI_LATE_SENDER, MPI_LATE_RECEIVER, MPI_LATE_AT_COLLECTIVE };
#define MPI_WHYS 3
struct mpi_wait {
	uint32_t who, by; /* lanes */
	uint64_t since, until;
	enum mpi_why why;
};

struct mpi_sink { /* NULL: not wanted */
	void *arg;
	void (*message)(void *arg, const struct mpi_message *m);
	void (*wait)(void *arg, const struct mpi_wait *w);
	/* A process has made a communicator, in this lane, and has this rank there. */
	void (*member)(void *arg, uint32_t comm, int32_t rank, int32_t size, uint32_t lane);
};

struct mpi_counts {
	uint64_t messages;
	uint64_t sends, receives; /* that were made: of a rank, not of MPI_PROC_NULL */
	uint64_t sent_only;       /* nobody received them */
	uint64_t received_only; /* nobody sent them; of those that any rank could have sent, too */
	uint64_t any;           /* receives from any rank that do not say from which */
	uint64_t in_doubt;      /* receives that were not matched for it */
	uint64_t cancelled;     /* receives */
	uint64_t strange;       /* calls on communicators that the trace does not know */
	uint64_t broken;        /* calls of which samples are missing */
	uint64_t
		differing; /* messages of which another size came than was sent: they do not belong together */
	uint64_t
		unordered; /* sends of one tag to one rank, while another thread of theirs was in such a one */
	uint64_t collectives;     /* in which all ranks were */
	uint64_t collectives_cut; /* in which not all were */
};

/*
 * Adds to caused[lane] for how long others have waited because of it, while it did not wait itself; all of it is as much as
 * all waits are. Sorts the waits; a lane does not wait twice at a time.
 */
void mpi_blame(struct mpi_wait *waits, size_t n, uint64_t *caused, size_t nlanes);

/* Does the trace have such events? */
bool mpi_has(const struct trace *t);
/*
 * What has not all been there, or is not known, is in *counts.  ranks: an array of t->nprocs, by index of the process: its
 * rank in MPI_COMM_WORLD, or MPI_NO_RANK.  Both may be NULL.
 */
void mpi_read(const struct trace *t, const struct mpi_sink *sink, struct mpi_counts *counts,
	      int32_t *ranks);

#endif
