/* SPDX-License-Identifier: MIT */
/*
 * answer_copies.c - text of a module that a process has mapped more than once.
 *
 *   module   |.......|=stretch=|......|           known by all its segments
 *   copy                       |=stretch=|        the same file, at another bias: some of a segment
 *
 * A program that is known to do so (inject/code/copied.h) reports the copy before anything runs there.
 * The sites in the copy get the same probes, from the same plan, with trampolines of their own.  Every
 * other copy is left alone, because code may be running in it.
 */
#include "collect/attach/answer_impl.h"

#define PAGE 4096ull

/* Is all the module's code there, at this bias? */
static bool is_whole(const struct work *w, const struct loaded *l)
{
	for (size_t i = 0; i < l->module->nsegments; i++) {
		const struct elf_segment *s = &l->module->segments[i];

		if (s->flags & PF_X && s->filesz &&
		    !answer_is_text_of(process_maps_at(&w->maps, (l->bias + s->vaddr) & -PAGE), l))
			return false;
	}
	return true;
}

static bool has_whole(const struct work *w, const struct loaded *l)
{
	for (size_t i = 0; i < w->loaded.n; i++)
		if (w->loaded.v[i].module == l->module && is_whole(w, &w->loaded.v[i]))
			return true;
	return false;
}

/* It is what the process asks about: the mapping there has the same bias. */
static bool is_asked_about(const struct work *w, struct loaded *l)
{
	const struct process_mapping *m = process_maps_at(&w->maps, w->q->range);
	uint64_t bias, end = w->q->range + w->q->range_len;

	if (w->q->kind != KRON_HELLO_MAPPED || !answer_is_text_of(m, l) ||
	    !module_bias(l->module, m, &bias) || bias != l->bias)
		return false;
	l->copy_lo = w->q->range - bias;
	l->copy_hi = (end < m->end ? end : m->end) - bias;
	return true;
}

void answer_sort_copies(struct work *w)
{
	size_t n = 0;

	for (size_t i = 0; i < w->loaded.n; i++) {
		struct loaded l = w->loaded.v[i];
		bool is_copy = !is_whole(w, &l) && has_whole(w, &l);

		if (is_copy && !is_asked_about(w, &l))
			continue;
		/* all the others it asks about when they are loaded */
		l.done = w->q->kind == KRON_HELLO_MAPPED && !is_copy;
		w->loaded.v[n++] = l;
	}
	w->loaded.n = n;
}

void answer_watch_copies(struct work *w, const struct loaded *l, const struct binding *b)
{
	struct kron_command *c;

	if (b->plan->copied_lo == b->plan->copied_hi || l->copy_hi || l->is_caller || b->whole)
		return;
	c = answer_add_command(w, KRON_CMD_COPIES, (uint32_t)w->bound.n - 1);
	c->addr = l->bias + b->plan->copied_lo;
	c->len = b->plan->copied_hi - b->plan->copied_lo;
}
