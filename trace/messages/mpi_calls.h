/* SPDX-License-Identifier: MIT */
/* mpi_calls.h - puts the samples of a call together again. */
#ifndef TRACE_MESSAGES_MPI_CALLS_H
#define TRACE_MESSAGES_MPI_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "trace/reader.h"

/* What a call does. */
enum {
	MPI_SENDS = 1,
	MPI_RECEIVES = 2,
	MPI_REQUESTS = 4,   /* makes a request of it */
	MPI_PERSISTS = 8,   /* ... that MPI_Start starts */
	MPI_STARTS = 16,    /* the requests that it names */
	MPI_WAITS = 32,     /* until they are done */
	MPI_TESTS = 64,     /* whether they are, or some of them */
	MPI_FREES = 128,    /* a request that nobody waits for */
	MPI_PROBED = 256,   /* receives what a matched probe has found */
	MPI_COLLECTS = 512, /* all ranks of the communicator call it */
	MPI_TO_ROOT = 1024,
	MPI_FROM_ROOT = 2048,
	MPI_MAKES = 4096, /* a communicator, as far as this process knows */
	MPI_CANCELS = 8192,
	MPI_PICKS = 16384, /* of the requests that it tests, those that are done; the others stay */
	MPI_PROBES = 32768,     /* sets a message aside, if it finds one */
	MPI_PASSES = 65536,     /* may make another call that does all of it */
	MPI_IN_ORDER = 131072,  /* what a rank gets needs those below it only */
	MPI_OF_OTHERS = 262144, /* nothing of it is its own */
	MPI_COUNTS = 524288,    /* a number of elements for each rank */
	MPI_NO_DATA = 1048576
};

/* Of which parts there are samples. */
enum {
	MPI_HAS_COMM = 1,
	MPI_HAS_TO = 2,
	MPI_HAS_TAG = 4,
	MPI_HAS_COUNT = 8,
	MPI_HAS_SIZE = 16,
	MPI_HAS_FROM = 32,
	MPI_HAS_RTAG = 64,
	MPI_HAS_STATUS = 128,
	MPI_HAS_REQUEST = 256,
	MPI_HAS_ROOT = 512,
	MPI_HAS_ID = 1024,
	MPI_HAS_MEMBERS = 2048,
	MPI_HAS_FIRST = 4096,
	MPI_HAS_IN_PLACE = 8192, /* its own part stays where it is */
	MPI_HAS_COUNTS = 16384
};

struct mpi_call {
	unsigned does, has;
	unsigned kind; /* one number for a name */
	uint32_t lane;
	uint64_t begin, end; /* ticks; end 0: it was not seen */
	uint64_t comm;       /* the handle */
	int32_t to, tag, from, rtag, root;
	int32_t count;
	VEC(int32_t) counts; /* for each rank; more than there are */
	bool counts_torn;    /* there is more that cannot be read */
	uint64_t type_size;
	int32_t status
		[6]; /* of what was received: rank, tag, error, whether cancelled, bytes in two halves */
	uint64_t request; /* the new one */
	/* MPI_MAKES */
	uint32_t id[3]; /* number, own rank, flags */
	int32_t size;
	uint64_t first;         /* which process is rank 0 */
	VEC(uint64_t) requests; /* that it names */
	bool passed;            /* it has made that call */
	uint32_t own;           /* on_posted()'s, 0 before */
};

struct mpi_arrival { /* of a message, at the library of the receiver */
	uint32_t lane;
	uint32_t comm; /* the library's number of it */
	int32_t from, tag;
	uint16_t number; /* of the sender's messages on it */
};

struct mpi_calls;
struct mpi_calls_sink {
	void *arg;
	/* It is known what a call that blocks until it has received wants to receive. */
	void (*on_posted)(void *arg, struct mpi_call *c);
	void (*on_end)(void *arg, const struct mpi_call *c);
	void (*on_arrival)(void *arg, const struct mpi_arrival *a);
	/* The library of the process knows this number no more. */
	void (*on_gone)(void *arg, uint32_t lane, uint32_t comm);
};

/* NULL: the trace has no such events. */
struct mpi_calls *mpi_calls_new(const struct trace *t, const struct mpi_calls_sink *sink);
/* Events in order. */
void mpi_calls_feed(struct mpi_calls *x, const struct trace_event *e);
/* "MPI_Send" */
const char *mpi_call_name(unsigned kind);
/* Is the event an arrival? */
bool mpi_calls_is_arrival(const struct mpi_calls *x, const struct trace_event *e);
/* Gives those out that have no end, and frees. */
void mpi_calls_finish(struct mpi_calls *x);

#endif
