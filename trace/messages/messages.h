/* SPDX-License-Identifier: MIT */
/*
 * messages.h - the messages of a trace, and who waited for whom.
 *
 *   pack mpi ─► mpi.h ─┐
 *                      ├─► messages, waits ─► sink: report, SQLite, view, --mend-clocks
 *   pack net ─► net.h ─┘        waits ─► message_blame(): whose fault
 *
 * No time decides which receive has got which send: MPI's are matched by communicator, ranks, tag and order, those of TCP by
 * connection and byte.  So clocks that disagree do no harm.
 */
#ifndef TRACE_MESSAGES_MESSAGES_H
#define TRACE_MESSAGES_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/reader.h"

#define MESSAGE_NO_RANK (-1)

enum message_kind { MESSAGE_MPI, MESSAGE_TCP };
#define MESSAGE_KINDS 2
extern const char *const message_kinds[MESSAGE_KINDS]; /* "MPI" ... */

struct mpi_counts;
struct net_counts;

struct message {
	enum message_kind kind;
	uint32_t from, to; /* lanes */
	/* MPI; of TCP no ranks, and tag 0. */
	int32_t from_rank, to_rank, tag;
	uint32_t comm;   /* the trace's number of the communicator, or of the connection */
	uint64_t offset; /* TCP: of the message's first byte among those of its direction */
	uint64_t bytes;  /* UINT64_MAX: not known */
	/* Ticks. */
	uint64_t sent;   /* when the sending call began */
	uint64_t posted; /* when the receiving call began, or the one that made the request */
	uint64_t
		received; /* when the call ended that returned it, or its last byte; 0: not known */
};

/* A process stood still in a call because another was late. */
enum message_why { MESSAGE_LATE_SENDER, MESSAGE_LATE_RECEIVER, MESSAGE_LATE_AT_COLLECTIVE };
#define MESSAGE_WHYS 3
struct message_wait {
	uint32_t who, by; /* lanes */
	uint64_t since, until;
	enum message_why why;
};

/*
 * What one process did of a collective in which all ranks of the communicator were, and each was seen to end.  Those of one
 * are told in a row.
 */
struct message_collective {
	const char *call; /* "MPI_Bcast" */
	uint32_t comm;
	int32_t root;        /* its rank; MESSAGE_NO_RANK: such a call has none */
	uint32_t lane;       /* of the call */
	uint64_t begin, end; /* ticks */
	/* In bytes: to all ranks and from all, itself included but where its part is in place; UINT64_MAX: not known. */
	uint64_t sent, received;
};

struct message_sink { /* NULL: not wanted */
	void *arg;
	void (*message)(void *arg, const struct message *m);
	void (*wait)(void *arg, const struct message_wait *w);
	void (*collective)(void *arg, const struct message_collective *c);
	/* A process has made a communicator of MPI, in this lane, and has this rank there. */
	void (*member)(void *arg, uint32_t comm, int32_t rank, int32_t size, uint32_t lane);
};

static inline void message_tell_wait(const struct message_sink *sink, const struct message_wait *w)
{
	if (sink->wait && w->until > w->since)
		sink->wait(sink->arg, w);
}

/*
 * Adds to caused[lane] for how long others have waited because of it, while it did not wait itself; all of it is as much as
 * all waits are. Sorts the waits; a lane does not wait twice at a time.
 */
void message_blame(struct message_wait *waits, size_t n, uint64_t *caused, size_t nlanes);

/* Does the trace have events of such a pack? */
bool messages_has_kind(const struct trace *t, enum message_kind kind);
bool messages_has(const struct trace *t);
/*
 * All of them, source after source.  Each count may be NULL; ranks: an array of t->nprocs, by index of the process: its
 * rank in MPI_COMM_WORLD, or MESSAGE_NO_RANK; or NULL.
 */
void messages_read(const struct trace *t, const struct message_sink *sink, struct mpi_counts *mpi,
		   struct net_counts *net, int32_t *ranks);

#endif
