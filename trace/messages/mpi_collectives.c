/* SPDX-License-Identifier: MIT */
/*
 * mpi_collectives.c - who was late at a collective.
 *
 * The n-th one of a process on a communicator is the n-th of all others there. Where all ranks need all others,
 * each waits until the last has come; for a root they wait until it has come, and it waits for the last of them.
 */
#include "trace/messages/mpi_impl.h"

/* A process' next one there. */
static uint64_t turn_of(struct mpi_collectives *x, const struct mpi_comm *comm, uint32_t process)
{
	const uint32_t at = index_of(&x->processes, (uint64_t)comm->number << 32 | process);

	if (at == x->had.n)
		*vec_push(&x->had) = 0;
	return x->had.v[at]++;
}

static void wait_for(struct mpi_collectives *x, const struct mpi_member *who,
		     const struct mpi_member *by)
{
	if (who != by)
		mpi_tell_wait(x->sink, &(struct mpi_wait){.who = who->lane,
							  .by = by->lane,
							  .since = who->begin,
							  .until = by->begin < who->end ? by->begin
											: who->end,
							  .why = MPI_LATE_AT_COLLECTIVE});
}

static const struct mpi_member *last_of(struct mpi_collective *k)
{
	const struct mpi_member *last = k->members.v;

	vec_for(&k->members, m)
		if (m->begin > last->begin)
			last = m;
	return last;
}

static const struct mpi_member *root_of(struct mpi_collective *k, int32_t rank)
{
	vec_for(&k->members, m)
		if (m->rank == rank)
			return m;
	return NULL;
}

/* All are there. */
static void tell(struct mpi_collectives *x, struct mpi_collective *k, const struct mpi_call *c)
{
	const struct mpi_member *last = last_of(k);
	const struct mpi_member *root = c->has & MPI_HAS_ROOT ? root_of(k, c->root) : NULL;

	x->counts->collectives++;
	if (c->does & MPI_TO_ROOT) {
		if (root)
			wait_for(x, root, last);
	} else {
		vec_for(&k->members, m)
			if (!(c->does & MPI_FROM_ROOT))
				wait_for(x, m, last);
			else if (root)
				wait_for(x, m, root);
	}
	vec_free(&k->members);
}

void mpi_collectives_take(struct mpi_collectives *x, const struct mpi_comm *comm, uint32_t process,
			  const struct mpi_call *c)
{
	const uint64_t turn = turn_of(x, comm, process);
	const uint32_t at = index_of(&x->turns, (uint64_t)comm->number << 32 | (uint32_t)turn);
	struct mpi_collective *k;

	if (at == x->v.n)
		(void)vec_push(&x->v);
	k = &x->v.v[at];
	*vec_push(&k->members) = (struct mpi_member){
		.lane = c->lane,
		.rank = comm->rank,
		.begin = c->begin,
		.end = c->end ? c->end : UINT64_MAX,
	};
	if (k->members.n == (size_t)comm->size)
		tell(x, k, c);
}

void mpi_collectives_finish(struct mpi_collectives *x)
{
	vec_for(&x->v, k) {
		x->counts->collectives_cut += k->members.n > 0;
		vec_free(&k->members);
	}
	index_free(&x->processes);
	index_free(&x->turns);
	vec_free(&x->v);
	vec_free(&x->had);
}
