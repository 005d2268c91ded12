/* SPDX-License-Identifier: MIT */
/*
 * mpi_sizes.c - how many bytes each rank gives and gets in a collective.
 *
 * Each call says how much one rank gives to each that it gives to, or gets from the root; in those with a number for each rank,
 * how much to each.  All else follows from who gives to whom.  A rank gives its own part to itself, too, unless that stays in
 * its place.  That is how Score-P counts, for whose archives the tools are made.
 */
#include "trace/messages/mpi_impl.h"

#include <stdlib.h>

#define UNKNOWN UINT64_MAX

static int by_rank(const void *a, const void *b)
{
	const struct mpi_member *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

static bool stays(const struct mpi_member *m)
{
	return (m->share.has & MPI_HAS_IN_PLACE) != 0;
}

/* Of elements.  What no memory has room for is not true. */
static uint64_t bytes_of(const struct mpi_share *s, int32_t count)
{
	return s->has & MPI_HAS_SIZE && s->type_size <= UINT32_MAX && count >= 0
		       ? (uint64_t)count * s->type_size
		       : UNKNOWN;
}

/* For that rank. */
static uint64_t bytes_for(const struct mpi_share *s, size_t rank)
{
	return rank < s->counts.n ? bytes_of(s, s->counts.v[rank]) : UNKNOWN;
}

/* What it gives to each, or gets from the root. */
static uint64_t block_of(const struct mpi_member *m, unsigned does, int32_t root)
{
	const bool has_root = (does & (MPI_TO_ROOT | MPI_FROM_ROOT)) != 0;

	if (has_root && m->rank == root && stays(m))
		return 0; /* the library does not look at it */
	if (m->share.has & MPI_HAS_COUNT)
		return bytes_of(&m->share, m->share.count);
	return stays(m) ? bytes_for(&m->share, (size_t)m->rank) : UNKNOWN;
}

static void give(struct mpi_member *from, struct mpi_member *to, uint64_t bytes)
{
	from->sent += bytes;
	to->received += bytes;
}

static bool sum_with_root(struct mpi_collective *k, unsigned does, int32_t root)
{
	struct mpi_member *r = &k->members.v[root];

	vec_for(&k->members, m) {
		const uint64_t block = block_of(m, does, root);

		if (block == UNKNOWN)
			return false;
		if (does & MPI_TO_ROOT)
			give(m, r, block);
		else
			give(r, m, block);
	}
	return true;
}

/* Each to all, or to those that are not below it. */
static bool sum_blocks(struct mpi_collective *k, unsigned does)
{
	const uint64_t n = k->members.n;
	uint64_t all = 0, below = 0;

	vec_for(&k->members, m) {
		const uint64_t block = block_of(m, does, MESSAGE_NO_RANK);

		if (block == UNKNOWN)
			return false;
		m->sent = block;
		all += block;
	}
	vec_for(&k->members, m) {
		const uint64_t block = m->sent;
		const uint64_t own = stays(m) || does & MPI_OF_OTHERS ? block : 0;

		below += block;
		m->sent = block * (does & MPI_IN_ORDER ? n - (uint64_t)m->rank : n) - own;
		m->received = (does & MPI_IN_ORDER ? below : all) - own;
	}
	return true;
}

/* A number for each rank. */
static bool sum_counts(struct mpi_collective *k)
{
	vec_for(&k->members, from)
		vec_for(&k->members, to) {
			const uint64_t bytes = bytes_for(&from->share, (size_t)to->rank);

			if (bytes == UNKNOWN)
				return false;
			if (from != to || !stays(from))
				give(from, to, bytes);
		}
	return true;
}

static bool are_all_ranks(struct mpi_collective *k)
{
	for (size_t i = 0; i < k->members.n; i++)
		if (k->members.v[i].rank != (int32_t)i)
			return false;
	return true;
}

static bool sum_up(struct mpi_collective *k, unsigned does, int32_t root)
{
	if (does & MPI_NO_DATA)
		return true;
	if (!are_all_ranks(k))
		return false;
	if (does & (MPI_TO_ROOT | MPI_FROM_ROOT))
		return root != MESSAGE_NO_RANK && sum_with_root(k, does, root);
	return does & MPI_COUNTS ? sum_counts(k) : sum_blocks(k, does);
}

void mpi_sizes(struct mpi_collective *k, unsigned does, int32_t root)
{
	qsort(k->members.v, k->members.n, sizeof(*k->members.v), by_rank);
	if (!sum_up(k, does, root))
		vec_for(&k->members, m)
			m->sent = m->received = UNKNOWN;
}
