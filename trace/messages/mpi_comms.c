/* SPDX-License-Identifier: MIT */
/*
 * mpi_comms.c - which communicator a process means by a handle.
 *
 * The library uses the number of a communicator again once it is freed, for other processes, too:
 *
 *   number 3, rank 0 is process A    1st life: A B    2nd life: A C    3rd life: A B
 *
 * A process joins the first life of its number and its rank 0 that has its size and nobody of its rank, after the one that
 * it joined last. So clocks that disagree do no harm.
 */
#include "trace/messages/mpi_impl.h"

enum { FLAG_INTER = 1 };       /* OMPI_COMM_INTER */
enum { MOST_RANKS = 1 << 24 }; /* what more says is no size */

static uint32_t process_of(const struct mpi_comms *x, const struct mpi_call *c)
{
	return x->t->lanes[c->lane].proc_uid;
}

/* Does it look like what Open MPI 4 has there? */
static bool makes_sense(const struct mpi_call *c)
{
	const unsigned need = MPI_HAS_COMM | MPI_HAS_ID | MPI_HAS_MEMBERS | MPI_HAS_FIRST;

	return (c->has & need) == need && c->size > 0 && c->size <= MOST_RANKS &&
	       c->id[1] < (uint32_t)c->size;
}

static bool has_room(const struct mpi_comms *x, const struct mpi_life *l, const struct mpi_call *c)
{
	return l->size == c->size && l->left &&
	       index_find(&x->taken, (uint64_t)l->number << 32 | c->id[1]) == INDEX_NONE;
}

/* The process joins one. */
static uint32_t join(struct mpi_comms *x, const struct mpi_call *c)
{
	const uint32_t name =
		index_of(&x->names, (uint64_t)index_of(&x->firsts, c->first) << 32 | c->id[0]);
	const uint32_t at = index_of(&x->joined_of, (uint64_t)process_of(x, c) << 32 | name);
	struct mpi_lives *lives;
	struct mpi_life *l;
	size_t i;

	if (name == x->lives.n)
		(void)vec_push(&x->lives);
	if (at == x->joined.n)
		*vec_push(&x->joined) = 0;
	lives = &x->lives.v[name];
	while (lives->full < lives->n && !lives->v[lives->full].left)
		lives->full++;
	i = x->joined.v[at] > lives->full ? x->joined.v[at] : lives->full;
	while (i < lives->n && !has_room(x, &lives->v[i], c))
		i++;
	if (i == lives->n)
		*vec_push(lives) = (struct mpi_life){
			.number = x->n++, .size = c->size, .left = (uint32_t)c->size};
	l = &lives->v[i];
	l->left--;
	index_of(&x->taken, (uint64_t)l->number << 32 | c->id[1]);
	x->joined.v[at] = (uint32_t)i + 1;
	return l->number;
}

const struct mpi_comm *mpi_comms_take(struct mpi_comms *x, const struct mpi_call *c)
{
	const uint32_t process = process_of(x, c);
	const uint32_t handle = index_of(&x->handles[0], c->comm);
	const uint32_t at = index_of(&x->handles[1], (uint64_t)process << 32 | handle);
	const struct trace_proc *p = trace_proc_of(x->t, process);
	uint32_t id;

	if (at == x->v.n)
		(void)vec_push(&x->v);
	x->v.v[at] = (struct mpi_comm){0};
	if (!makes_sense(c)) {
		if (c->has & MPI_HAS_ID)
			mpi_comms_forget(x, process, c->id[0]);
		return NULL;
	}
	x->v.v[at] = (struct mpi_comm){
		.number = join(x, c),
		.rank = (int32_t)c->id[1],
		.size = c->size,
		.is_inter = c->id[2] & FLAG_INTER,
	};
	id = index_of(&x->ids, (uint64_t)process << 32 | c->id[0]);
	if (id == x->by_id.n)
		(void)vec_push(&x->by_id);
	x->by_id.v[id] = x->v.v[at].number;
	if (!c->id[0] && p && x->world)
		x->world[p - x->t->procs] = (int32_t)c->id[1];
	return &x->v.v[at];
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
	index_free(&x->names);
	index_free(&x->joined_of);
	index_free(&x->taken);
	vec_for(&x->lives, l)
		vec_free(l);
	vec_free(&x->lives);
	vec_free(&x->joined);
	index_free(&x->handles[0]);
	index_free(&x->handles[1]);
	vec_free(&x->v);
	index_free(&x->ids);
	vec_free(&x->by_id);
}
