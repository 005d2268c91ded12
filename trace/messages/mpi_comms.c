/* SPDX-License-Identifier: MIT */
/* mpi_comms.c - which communicator a process means by a handle. */
#include "trace/messages/mpi_impl.h"

enum { FLAG_INTER = 1 }; /* OMPI_COMM_INTER */

static uint32_t process_of(const struct mpi_comms *x, const struct mpi_call *c)
{
	return x->t->lanes[c->lane].proc_uid;
}

/* uid order */
static size_t index_of_process(const struct trace *t, uint32_t uid)
{
	for (size_t i = 0; i < t->nprocs; i++)
		if (t->procs[i].uid == uid)
			return i;
	return t->nprocs;
}

/* Does it look like what Open MPI 4 has there? */
static bool makes_sense(const struct mpi_call *c)
{
	const unsigned need = MPI_HAS_COMM | MPI_HAS_ID | MPI_HAS_MEMBERS | MPI_HAS_FIRST;

	return (c->has & need) == need && c->size > 0 && c->id[1] < (uint32_t)c->size;
}

void mpi_comms_take(struct mpi_comms *x, const struct mpi_call *c)
{
	const uint32_t process = process_of(x, c);
	const uint32_t handle = index_of(&x->handles[0], c->comm);
	const uint32_t at = index_of(&x->handles[1], (uint64_t)process << 32 | handle);
	uint32_t id;
	size_t i;

	if (at == x->v.n)
		(void)vec_push(&x->v);
	x->v.v[at] = (struct mpi_comm){0};
	if (!makes_sense(c))
		return;
	x->v.v[at] = (struct mpi_comm){
		.number = index_of(&x->numbers,
				   (uint64_t)index_of(&x->firsts, c->first) << 32 | c->id[0]),
		.rank = (int32_t)c->id[1],
		.size = c->size,
		.is_inter = c->id[2] & FLAG_INTER,
	};
	id = index_of(&x->ids, (uint64_t)process << 32 | c->id[0]);
	if (id == x->by_id.n)
		(void)vec_push(&x->by_id);
	x->by_id.v[id] = x->v.v[at].number;
	i = index_of_process(x->t, process);
	if (!c->id[0] && i < x->t->nprocs)
		x->world[i] = (int32_t)c->id[1];
}

const struct mpi_comm *mpi_comm_of(const struct mpi_comms *x, const struct mpi_call *c)
{
	const uint32_t handle = index_find(&x->handles[0], c->comm);
	uint32_t at;

	if (!(c->has & MPI_HAS_COMM) || handle == INDEX_NONE)
		return NULL;
	at = index_find(&x->handles[1], (uint64_t)process_of(x, c) << 32 | handle);
	return at != INDEX_NONE && x->v.v[at].size ? &x->v.v[at] : NULL;
}

void mpi_comms_forget(struct mpi_comms *x, uint32_t process, uint32_t id)
{
	const uint32_t at = index_find(&x->ids, (uint64_t)process << 32 | id);

	if (at != INDEX_NONE)
		x->by_id.v[at] = INDEX_NONE;
}

uint32_t mpi_comm_by_id(const struct mpi_comms *x, uint32_t process, uint32_t id)
{
	const uint32_t at = index_find(&x->ids, (uint64_t)process << 32 | id);

	return at == INDEX_NONE ? INDEX_NONE : x->by_id.v[at];
}

void mpi_comms_free(struct mpi_comms *x)
{
	index_free(&x->firsts);
	index_free(&x->numbers);
	index_free(&x->handles[0]);
	index_free(&x->handles[1]);
	vec_free(&x->v);
	index_free(&x->ids);
	vec_free(&x->by_id);
}
