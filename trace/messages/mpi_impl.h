/* SPDX-License-Identifier: MIT */
/* mpi_impl.h - what the files of mpi.h share. Nobody else includes it. */
#ifndef TRACE_MESSAGES_MPI_IMPL_H
#define TRACE_MESSAGES_MPI_IMPL_H

#include "base/vec.h"
#include "trace/index.h"
#include "trace/messages/mpi.h"
#include "trace/messages/mpi_calls.h"

/* Open MPI's mpi.h */
enum { MPI_ANY_RANK = -1, MPI_NULL_RANK = -2, MPI_ANY_TAG = -1 };
static inline bool mpi_tag_fits(int32_t wanted, int32_t tag)
{
	return wanted == tag || (wanted == MPI_ANY_TAG && tag >= 0);
}

/* ---- mpi_comms.c ---- */
struct mpi_comm {        /* as one process knows it */
	uint32_t number; /* the trace's */
	int32_t rank, size;
	bool is_inter;
};
struct mpi_life {        /* of a communicator's number, until the library uses it again */
	uint32_t number; /* the trace's */
	int32_t size;
	uint32_t left; /* ranks that have not been seen to join */
};
struct mpi_lives {
	struct mpi_life *v;
	size_t n, cap;
	size_t full; /* all before have all their ranks */
};
struct mpi_comms {
	const struct trace *t;
	struct index firsts, names;  /* processes that are rank 0; with the library's number */
	VEC(struct mpi_lives) lives; /* by index of the second */
	struct index joined_of;      /* process and name */
	VEC(uint32_t) joined;        /* by index of that: lives up to the one that it joined last */
	struct index taken;          /* the trace's number and rank */
	uint32_t n;                  /* the trace's numbers */
	struct index handles[2];     /* handle; with the process */
	VEC(struct mpi_comm) v;      /* by index of the second */
	struct index ids;            /* process and the library's number */
	VEC(uint32_t) by_id;         /* by index of that: the trace's */
	int32_t *world;              /* by index of the process: its rank there; or NULL */
};
/* NULL: it does not look like one. Until the next one is taken. */
const struct mpi_comm *mpi_comms_take(struct mpi_comms *x, const struct mpi_call *made);
/* NULL: it was not seen to be made. Until the next one is taken. */
const struct mpi_comm *mpi_comm_of(const struct mpi_comms *x, const struct mpi_call *c);
void mpi_comms_forget(struct mpi_comms *x, uint32_t process, uint32_t id);
/* By the library's number; INDEX_NONE: unknown. */
uint32_t mpi_comm_by_id(const struct mpi_comms *x, uint32_t process, uint32_t id);
void mpi_comms_free(struct mpi_comms *x);

/* ---- mpi_arrivals.c: which arrival a receive gets, as the library does it ---- */
#define MPI_NOBODY UINT32_MAX
struct mpi_posted {        /* a receive */
	int32_t from, tag; /* or any */
	uint32_t half;
};
struct mpi_box { /* of a process and a communicator */
	VEC(struct mpi_posted) posted;
	VEC(struct mpi_arrival) unexpected;
};
struct mpi_line { /* of a sender to a box: its messages come in the order of their numbers */
	uint16_t next;
	VEC(struct mpi_arrival) early;
};
struct mpi_arrivals {
	struct index processes;     /* that see what arrives */
	struct index boxes_of;      /* process and communicator */
	VEC(struct mpi_box) boxes;  /* by index of that */
	struct index lines_of;      /* box and sender */
	VEC(struct mpi_line) lines; /* by index of that */
	/* Came before the process had the communicator that they are for. */
	VEC(struct mpi_arrival) homeless;
	/* The receive gets what this rank has sent under this tag. */
	void (*found)(void *arg, uint32_t half, int32_t from, int32_t tag);
	void *arg;
};
/* Has the process' library been seen? */
bool mpi_arrivals_seen(const struct mpi_arrivals *x, uint32_t process);
void mpi_arrivals_post(struct mpi_arrivals *x, uint32_t process, uint32_t comm,
		       const struct mpi_posted *p);
/* false: it has been found, or is not there. */
bool mpi_arrivals_cancel(struct mpi_arrivals *x, uint32_t process, uint32_t comm, uint32_t half);
void mpi_arrivals_take(struct mpi_arrivals *x, uint32_t process, uint32_t comm,
		       const struct mpi_arrival *a);
void mpi_arrivals_free(struct mpi_arrivals *x);

/* ---- mpi_collectives.c ---- */
struct mpi_share { /* what a call says of its bytes */
	unsigned has;
	int32_t count;
	VEC(int32_t) counts;
	uint64_t type_size;
};
struct mpi_member { /* of a collective */
	uint32_t lane;
	int32_t rank;
	int32_t root; /* MESSAGE_NO_RANK: the call has none, or it is not known */
	unsigned kind;
	uint64_t begin, end; /* UINT64_MAX: it was not seen */
	struct mpi_share share;
	uint64_t sent, received; /* UINT64_MAX: not known */
};
struct mpi_collective {
	VEC(struct mpi_member) members;
};
struct mpi_collectives {
	struct index processes,
		turns;        /* communicator and process: how many they had; which one it is */
	VEC(uint64_t) had;    /* by index of the first */
	struct index strange; /* communicators on which ranks were not in the same one */
	VEC(struct mpi_collective) v; /* by index of the second */
	const struct message_sink *sink;
	struct mpi_counts *counts;
};
void mpi_collectives_take(struct mpi_collectives *x, const struct mpi_comm *comm, uint32_t process,
			  const struct mpi_call *c);
void mpi_collectives_finish(struct mpi_collectives *x);

/* ---- mpi_sizes.c ---- */
/* All ranks are there, and are sorted by them afterwards. */
void mpi_sizes(struct mpi_collective *k, unsigned does, int32_t root);

#endif
