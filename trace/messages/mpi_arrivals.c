/* SPDX-License-Identifier: MIT */
/*
 * mpi_arrivals.c - which arrival a receive gets, as the library does it (Open MPI's pml ob1).
 *
 *   arrivals of a sender ─► in the order of their numbers ─► the first posted receive that fits, or unexpected
 *   receives             ─► the first unexpected arrival that fits, or posted
 *
 * Posts and arrivals of a process are in the order in which its library has had them. So it is known what a receive from any
 * rank gets, though the program is told later, or never asks.
 */
#include <string.h>

#include "trace/messages/mpi_impl.h"

enum { FIRST_NUMBER = 1 };

bool mpi_arrivals_seen(const struct mpi_arrivals *x, uint32_t process)
{
	return index_find(&x->processes, process) != INDEX_NONE;
}

static uint32_t box_of(struct mpi_arrivals *x, uint32_t process, uint32_t comm)
{
	const uint32_t at = index_of(&x->boxes_of, (uint64_t)process << 32 | comm);

	if (at == x->boxes.n)
		(void)vec_push(&x->boxes);
	return at;
}

static bool fits(const struct mpi_posted *p, const struct mpi_arrival *a)
{
	return (p->from == a->from || p->from == MPI_ANY_RANK) && mpi_tag_fits(p->tag, a->tag);
}

void mpi_arrivals_post(struct mpi_arrivals *x, uint32_t process, uint32_t comm,
		       const struct mpi_posted *p)
{
	const uint32_t box = box_of(x, process, comm);
	struct mpi_box *b = &x->boxes.v[box];

	for (size_t i = 0; i < b->unexpected.n; i++) {
		const struct mpi_arrival a = b->unexpected.v[i];

		if (!fits(p, &a))
			continue;
		memmove(&b->unexpected.v[i], &b->unexpected.v[i + 1],
			(--b->unexpected.n - i) * sizeof(a));
		x->found(x->arg, p->half, a.from, a.tag);
		return;
	}
	*vec_push(&b->posted) = *p;
}

static void drop_posted(struct mpi_box *b, size_t i)
{
	memmove(&b->posted.v[i], &b->posted.v[i + 1], (--b->posted.n - i) * sizeof(*b->posted.v));
}

bool mpi_arrivals_cancel(struct mpi_arrivals *x, uint32_t process, uint32_t comm, uint32_t half)
{
	const uint32_t box = box_of(x, process, comm);
	struct mpi_box *b = &x->boxes.v[box];

	for (size_t i = 0; i < b->posted.n; i++)
		if (b->posted.v[i].half == half) {
			drop_posted(b, i);
			return true;
		}
	return false;
}

/* It is its sender's turn. */
static void match(struct mpi_arrivals *x, struct mpi_box *b, const struct mpi_arrival *a)
{
	if (a->tag < 0) /* the library's own */
		return;
	for (size_t i = 0; i < b->posted.n; i++) {
		const struct mpi_posted p = b->posted.v[i];

		if (!fits(&p, a))
			continue;
		drop_posted(b, i);
		x->found(x->arg, p.half, a->from, a->tag);
		return;
	}
	*vec_push(&b->unexpected) = *a;
}

static bool take_early(struct mpi_line *l, struct mpi_arrival *out)
{
	for (size_t i = 0; i < l->early.n; i++)
		if (l->early.v[i].number == l->next) {
			*out = l->early.v[i];
			l->early.v[i] = l->early.v[--l->early.n];
			return true;
		}
	return false;
}

void mpi_arrivals_take(struct mpi_arrivals *x, uint32_t process, uint32_t comm,
		       const struct mpi_arrival *a)
{
	const uint32_t box = box_of(x, process, comm);
	const uint32_t at = index_of(&x->lines_of, (uint64_t)box << 32 | (uint32_t)a->from);
	struct mpi_arrival now = *a;
	struct mpi_line *l;

	if (at == x->lines.n)
		*vec_push(&x->lines) = (struct mpi_line){.next = FIRST_NUMBER};
	l = &x->lines.v[at];
	if (now.number != l->next) {
		*vec_push(&l->early) = now;
		return;
	}
	do {
		l->next++;
		match(x, &x->boxes.v[box], &now);
	} while (take_early(l, &now));
}

void mpi_arrivals_free(struct mpi_arrivals *x)
{
	vec_for(&x->boxes, b) {
		vec_free(&b->posted);
		vec_free(&b->unexpected);
	}
	vec_for(&x->lines, l)
		vec_free(&l->early);
	vec_free(&x->boxes);
	vec_free(&x->lines);
	vec_free(&x->homeless);
	index_free(&x->processes);
	index_free(&x->boxes_of);
	index_free(&x->lines_of);
}
