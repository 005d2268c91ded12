/* SPDX-License-Identifier: MIT */
/*
 * mpi_collectives.c - who was late at a collective.
 *
 * The n-th one of a process on a communicator is the n-th of all others there. Where all ranks need all others,
 * each waits until the last has come; for a root they wait until it has come, and it waits for the last of them; where
 * ranks need those below them (MPI_Scan), each waits for the last of these.  That is what the results need: an algorithm of
 * the library may make a rank wait for others besides.
 *
 * All ranks make the same call, with the same root.  Where they do not, samples are missing, and from there on nobody knows
 * which belong together on that communicator.  Missing ones among calls that are all the same are not seen so.
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
		message_tell_wait(x->sink,
				  &(struct message_wait){.who = who->lane,
							 .by = by->lane,
							 .since = who->begin,
							 .until = by->begin < who->end ? by->begin
										       : who->end,
							 .why = MESSAGE_LATE_AT_COLLECTIVE});
}

static const struct mpi_member *last_of(struct mpi_collective *k)
{
	const struct mpi_member *last = k->members.v;

	vec_for(&k->members, m)
		if (m->begin > last->begin)
			last = m;
	return last;
}

/* Each for the last of those below it; they are sorted. */
static void wait_in_order(struct mpi_collectives *x, struct mpi_collective *k)
{
	const struct mpi_member *last = k->members.v;

	vec_for(&k->members, m) {
		if (m->begin > last->begin)
			last = m;
		wait_for(x, m, last);
	}
}

static const struct mpi_member *member_of(struct mpi_collective *k, int32_t rank)
{
	vec_for(&k->members, m)
		if (m->rank == rank)
			return m;
	return NULL;
}

/* As far as its members know. */
static int32_t root_of(struct mpi_collective *k)
{
	vec_for(&k->members, m)
		if (m->root != MESSAGE_NO_RANK)
			return m->root;
	return MESSAGE_NO_RANK;
}

static bool is_one(struct mpi_collective *k, int32_t root)
{
	vec_for(&k->members, m)
		if (m->kind != k->members.v[0].kind ||
		    (m->root != root && m->root != MESSAGE_NO_RANK))
			return false;
	return true;
}

/* All of it, or nothing. */
static void tell_members(struct mpi_collectives *x, struct mpi_collective *k, uint32_t comm,
			 int32_t root)
{
	if (!x->sink->collective)
		return;
	vec_for(&k->members, m)
		if (m->end == UINT64_MAX)
			return;
	vec_for(&k->members, m)
		x->sink->collective(x->sink->arg, &(struct message_collective){
							  .call = mpi_call_name(m->kind),
							  .comm = comm,
							  .root = root,
							  .lane = m->lane,
							  .begin = m->begin,
							  .end = m->end,
							  .sent = m->sent,
							  .received = m->received,
						  });
}

static void tell_waits(struct mpi_collectives *x, struct mpi_collective *k, unsigned does,
		       const struct mpi_member *root)
{
	const struct mpi_member *last = last_of(k);

	if (does & MPI_IN_ORDER) {
		wait_in_order(x, k);
	} else if (does & MPI_TO_ROOT) {
		if (root)
			wait_for(x, root, last);
	} else {
		vec_for(&k->members, m)
			if (!(does & MPI_FROM_ROOT))
				wait_for(x, m, last);
			else if (root)
				wait_for(x, m, root);
	}
}

static void free_members(struct mpi_collective *k)
{
	vec_for(&k->members, m)
		vec_free(&m->share.counts);
	vec_free(&k->members);
}

void mpi_collectives_take(struct mpi_collectives *x, const struct mpi_comm *comm, uint32_t process,
			  const struct mpi_call *c)
{
	const bool has_root = (c->does & (MPI_TO_ROOT | MPI_FROM_ROOT)) != 0;
	const bool knows_root = has_root && c->has & MPI_HAS_ROOT;
	struct mpi_collective *k;
	int32_t root;
	uint32_t at;

	if (knows_root && (c->root < 0 || c->root >= comm->size))
		return; /* the library refuses it, and nobody else takes part */
	at = index_of(&x->turns,
		      (uint64_t)comm->number << 32 | (uint32_t)turn_of(x, comm, process));
	if (at == x->v.n)
		(void)vec_push(&x->v);
	k = &x->v.v[at];
	*vec_push(&k->members) = (struct mpi_member){
		.lane = c->lane,
		.rank = comm->rank,
		.begin = c->begin,
		.root = knows_root ? c->root : MESSAGE_NO_RANK,
		.kind = c->kind,
		.end = c->end ? c->end : UINT64_MAX,
		.share = {.has = c->has, .count = c->count, .type_size = c->type_size},
	};
	vec_add(&k->members.v[k->members.n - 1].share.counts, c->counts.v, c->counts.n);
	if (k->members.n < (size_t)comm->size)
		return;
	root = root_of(k);
	if (!is_one(k, root))
		index_of(&x->strange, comm->number);
	if (index_find(&x->strange, comm->number) == INDEX_NONE) {
		x->counts->collectives++;
		mpi_sizes(k, c->does, root);
		if (!has_root || root != MESSAGE_NO_RANK)
			tell_members(x, k, comm->number, root);
		tell_waits(x, k, c->does, member_of(k, root));
	} else {
		x->counts->collectives_cut++;
	}
	free_members(k);
}

void mpi_collectives_finish(struct mpi_collectives *x)
{
	vec_for(&x->v, k) {
		x->counts->collectives_cut += k->members.n > 0;
		free_members(k);
	}
	index_free(&x->processes);
	index_free(&x->turns);
	index_free(&x->strange);
	vec_free(&x->v);
	vec_free(&x->had);
}
