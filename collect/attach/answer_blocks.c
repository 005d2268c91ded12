/* SPDX-License-Identifier: MIT */
/*
 * answer_blocks.c - which trampolines a process has already.  A module that has its own needs no more;
 * trampolines of code that is no longer mapped are unmapped.
 */
#include <string.h>

#include "collect/attach/answer_impl.h"

static void unmap_block(struct work *w, uint64_t addr, uint64_t len)
{
	struct kron_command *c = answer_add_command(w, KRON_CMD_UNMAP, (uint32_t)w->bound.n);

	/* take the group's number */
	memset(vec_push(&w->bound), 0, sizeof(struct bound));
	vec_push(&w->out->groups);
	c->addr = addr;
	c->len = len;
}

/*
 * May the code that leads into it be there?  Its file is not mapped there any more if the program has
 * moved its text to pages of its own (huge ones), and what it moved leads there all the same.
 */
static bool is_entered(const struct process_maps *maps, const struct block_record *b)
{
	const struct process_mapping *m = process_maps_at(maps, b->text);

	if (m && !m->ino)
		return process_mapping_is_exec(m);
	return m && m->dev == b->dev && m->ino == b->ino;
}

/* A copy of the code has come to where an older one was. */
static bool is_replaced(const struct work *w, const struct block_record *b)
{
	return b->is_copy && w->q->kind == KRON_HELLO_MAPPED &&
	       b->text - w->q->range < w->q->range_len;
}

static bool is_of(const struct block_record *b, const struct loaded *l)
{
	return l->dev == b->dev && l->ino == b->ino && l->bias == b->bias;
}

static void consider_block(struct work *w, const struct process_mapping *m,
			   const struct block_record *b)
{
	uint64_t addr = m->start + b->off - m->off;

	if (is_entered(&w->maps, b) && (b->is_added || !is_replaced(w, b))) {
		if (b->is_stubs)
			*vec_push(&w->stubs) = *b;
		vec_for(&w->loaded, l)
			l->done |= !b->is_stubs && !b->is_added &&
				   b->number >= w->a->oldest_number && is_of(b, l);
		return;
	}
	if (w->q->changes) /* it is unmapped when the process asks, which comes first */
		return;
	/* Only whole blocks: what is left of one is not known to be ours any more. */
	if (b->off >= m->off && addr + b->len <= m->end)
		unmap_block(w, addr, b->len);
}

bool answer_find_question(struct answerer *a, const struct process_maps *maps, struct question *out)
{
	bool found = false;
	uint64_t number;

	pthread_mutex_lock(&a->lock);
	for (size_t i = 0; i < maps->n && !found; i++) {
		if (!process_mapping_is_block(&maps->v[i], a->session, &number))
			continue;
		for (size_t k = 0; k < a->asked.n && !found; k++) {
			found = a->asked.v[k].number == number;
			*out = a->asked.v[k].question;
		}
	}
	pthread_mutex_unlock(&a->lock);
	return found;
}

/* Each block once, wherever its mapping has been cut. */
static uint64_t count_in(const struct answerer *a, const struct process_maps *maps,
			 const struct process_mapping *m, uint64_t number)
{
	uint64_t n = 0;

	for (size_t i = 0; i < a->blocks.n; i++) {
		const struct block_record *b = &a->blocks.v[i];

		if (b->number == number && b->off >= m->off &&
		    b->off - m->off < m->end - m->start && is_entered(maps, b))
			n += b->probes;
	}
	return n;
}

uint64_t answer_count_probes(struct answerer *a, const struct process_maps *maps)
{
	uint64_t n = 0, number;

	pthread_mutex_lock(&a->lock);
	for (size_t i = 0; i < maps->n; i++)
		if (process_mapping_is_block(&maps->v[i], a->session, &number) &&
		    number >= a->oldest_number)
			n += count_in(a, maps, &maps->v[i], number);
	pthread_mutex_unlock(&a->lock);
	return n;
}

void answer_consider_blocks(struct work *w)
{
	for (size_t i = 0; i < w->maps.n; i++) {
		const struct process_mapping *m = &w->maps.v[i];
		uint64_t number;

		if (!process_mapping_is_block(m, w->a->session, &number))
			continue;
		pthread_mutex_lock(&w->a->lock);
		vec_for(&w->a->blocks, b)
			if (b->number == number && b->off < m->off + (m->end - m->start) &&
			    b->off + b->len > m->off)
				consider_block(w, m, b);
		pthread_mutex_unlock(&w->a->lock);
	}
}
