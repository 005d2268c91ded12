/* SPDX-License-Identifier: MIT */
/* mpi_impl.h - what the files of mpi.h share. Nobody else includes it. */
#ifndef TRACE_MESSAGES_MPI_IMPL_H
#define TRACE_MESSAGES_MPI_IMPL_H

#include "base/vec.h"
#include "trace/index.h"
#include "trace/messages/mpi.h"
#include "trace/messages/mpi_calls.h"

/* ---- mpi_comms.c ---- */
struct mpi_comm { /* as one process knows it */
	uint32_t number; /* the trace's */
	int32_t rank, size;
	bool is_inter;
};
struct mpi_comms {
	const struct trace *t;
	struct index firsts, numbers; /* processes that are rank 0; with the library's number: the trace's */
	struct index handles[2];      /* handle; with the process */
	VEC(struct mpi_comm) v;       /* by index of the second */
	int32_t *world;               /* by index of the process: its rank there */
};
void mpi_comms_take(struct mpi_comms *x, const struct mpi_call *made);
/* NULL: it was not seen to be made. Until the next one is taken. */
const struct mpi_comm *mpi_comm_of(const struct mpi_comms *x, const struct mpi_call *c);
void mpi_comms_free(struct mpi_comms *x);

/* ---- mpi_collectives.c ---- */
struct mpi_member { /* of a collective */
	uint32_t lane;
	int32_t rank;
	uint64_t begin, end;
};
struct mpi_collective {
	VEC(struct mpi_member) members;
};
struct mpi_collectives {
	struct index processes, turns; /* communicator and process: how many they had; which one it is */
	VEC(uint64_t) had;             /* by index of the first */
	VEC(struct mpi_collective) v;  /* by index of the second */
	const struct mpi_sink *sink;
	struct mpi_counts *counts;
};
void mpi_collectives_take(struct mpi_collectives *x, const struct mpi_comm *comm,
			  uint32_t process, const struct mpi_call *c);
void mpi_collectives_finish(struct mpi_collectives *x);

#endif
