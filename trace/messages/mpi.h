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

#include "trace/messages/messages.h"

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
	uint64_t collectives; /* in which all ranks were */
	uint64_t
		collectives_cut; /* in which not all were, or not in the same call, or that came after such ones */
};

/* Does the trace have such events? */
bool mpi_has(const struct trace *t);
/*
 * What has not all been there, or is not known, is in *counts.  ranks: an array of t->nprocs, by index of the process: its
 * rank in MPI_COMM_WORLD, or MESSAGE_NO_RANK.  Both may be NULL.
 */
void mpi_read(const struct trace *t, const struct message_sink *sink, struct mpi_counts *counts,
	      int32_t *ranks);

#endif
