/* SPDX-License-Identifier: MIT */
/*
 * function_parts.c - tells functions from parts of functions.
 *
 * GCC moves the unlikely blocks of a function into another section and gives them an FDE of
 * their own.  In a stripped file such a part looks like a function; to count it as one would
 * be a lie, and its rets would be exits of nobody.  What gives it away:
 *
 *   .eh_frame, in file order      P  P.cold  Q  R  S  S.cold ...
 *   code, in address order        P.cold  S.cold ... | ... P  Q  R  S
 *
 *   - Its frame at the start: a call leaves nothing on the stack but a return address.  This
 *     settles most; but parts of leaf functions and of functions that left early look like
 *     entries.
 *   - Its FDE follows its parent's in the file, while its code lies elsewhere: an "excursion".
 *     Cold functions and constructors are excursions too.
 *   - It is never called, and jumps come from its parent only.
 *   - It jumps back into the middle of its parent.
 *
 * Nothing that somebody calls is a part: LLVM's outlined "f.cold.1" are functions.
 */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "inject/functions.h"

struct judge {
	struct functions *f;
	const struct function_evidence *ev; /* NULL: none */
	uint32_t *by_rank;                  /* FDE rank -> function, FUNCTION_NONE */
	size_t nranks;
};

bool function_is_cold_name(const char *name)
{
	const char *p = strstr(name, ".cold");

	if (!p || p == name)
		return false;
	p += strlen(".cold");
	if (*p == '.')
		p += 1 + strspn(p + 1, "0123456789");
	return !*p || *p == '@';
}

static void index_ranks(struct judge *j)
{
	for (size_t i = 0; i < j->f->n; i++) {
		uint32_t rank = j->f->v[i].fde_rank;

		if (rank != FUNCTION_NONE && rank >= j->nranks)
			j->nranks = rank + 1u;
	}
	j->by_rank = xmalloc(j->nranks * sizeof(*j->by_rank));
	memset(j->by_rank, 0xff, j->nranks * sizeof(*j->by_rank));
	for (size_t i = 0; i < j->f->n; i++)
		if (j->f->v[i].fde_rank != FUNCTION_NONE)
			j->by_rank[j->f->v[i].fde_rank] = i;
}

/* The function whose FDE stands before, or FUNCTION_NONE. */
static uint32_t predecessor(const struct judge *j, uint32_t i)
{
	uint32_t rank = j->f->v[i].fde_rank;

	return rank && rank != FUNCTION_NONE ? j->by_rank[rank - 1] : FUNCTION_NONE;
}

/* Do the FDEs follow each other while the code does not? */
static bool is_excursion(const struct judge *j, uint32_t i)
{
	uint32_t before = predecessor(j, i);

	return before != FUNCTION_NONE && i != before + 1;
}

/* Jumps come from the predecessor alone, or there are none. */
static bool is_reached_from_predecessor(const struct judge *j, uint32_t i)
{
	const struct function_evidence *ev = &j->ev[i];

	return !ev->many_jump_here && (ev->jumped_from == FUNCTION_NONE ||
				       ev->jumped_from == predecessor(j, i));
}

static bool judge_odd(const struct judge *j, uint32_t i)
{
	const struct function_evidence *ev = &j->ev[i];

	if (ev->called)
		return false;
	if (!ev->address_taken)
		return true;
	/* A switch table or a computed goto names the part's first block; but some assembly
	 * (_dl_runtime_resolve) is entered with more than a return address on the stack. */
	return is_excursion(j, i) || ev->jcc_from_other || ev->jmp_from_other ||
	       ev->jumps_into_other;
}

static bool judge_plain(const struct judge *j, uint32_t i)
{
	const struct function_evidence *ev = &j->ev[i];

	if (ev->called || !is_excursion(j, i) || !is_reached_from_predecessor(j, i))
		return false;
	if (ev->jumps_into_other && ev->jumps_into == predecessor(j, i))
		return true;
	/* A tail call is a plain jump; an if that leads to the part is a conditional one.  No
	 * jump at all: reached through a switch, or never, and then nothing is lost. */
	return !ev->address_taken && !ev->jmp_from_other;
}

static bool is_part(const struct judge *j, uint32_t i)
{
	const struct function *fn = &j->f->v[i];
	bool cold = fn->name && function_is_cold_name(fn->name);

	if (fn->name && !cold)
		return false;
	if (!j->ev)
		return cold || (!fn->name && fn->odd_start);
	if (cold)
		return !j->ev[i].called;
	if (!fn->has_fde)
		return false;
	return fn->odd_start ? judge_odd(j, i) : judge_plain(j, i);
}

/* The function that a part "f.cold" is named after. */
static uint32_t find_namesake(const struct functions *f, const char *cold)
{
	size_t n = strstr(cold, ".cold") - cold;

	for (size_t i = 0; i < f->n; i++)
		if (f->v[i].name && !f->v[i].is_part && !strncmp(f->v[i].name, cold, n) &&
		    !f->v[i].name[n])
			return i;
	return FUNCTION_NONE;
}

static bool is_named_after(const struct function *part, const struct function *fn)
{
	size_t n;

	if (!part->name || !fn->name)
		return true;
	n = strstr(part->name, ".cold") - part->name;
	return !strncmp(part->name, fn->name, n) && !fn->name[n];
}

/* Whom the part belongs to, which may be another part; or FUNCTION_NONE. */
static uint32_t find_parent(const struct judge *j, uint32_t i, unsigned int *namesakes)
{
	const struct function *part = &j->f->v[i];
	uint32_t before = predecessor(j, i);

	if (before != FUNCTION_NONE && is_excursion(j, i) &&
	    (!part->name || is_named_after(part, &j->f->v[before])))
		return before;
	if (j->ev && j->ev[i].jumped_from != FUNCTION_NONE)
		return j->ev[i].jumped_from;
	if (j->ev && j->ev[i].jumps_into != FUNCTION_NONE)
		return j->ev[i].jumps_into;
	/* A search through all names, so only for the few without FDE. */
	if (part->name && (*namesakes)++ < 1000)
		return find_namesake(j->f, part->name);
	return before;
}

/* Parents of parts are followed up to a function; a circle of parts has none. */
static void settle_parents(struct functions *f)
{
	for (uint32_t i = 0; i < f->n; i++) {
		uint32_t p = i, hops = 0;

		while (f->v[p].is_part && f->v[p].parent != p && hops++ < 16)
			p = f->v[p].parent;
		f->v[i].parent = f->v[p].is_part ? i : p;
	}
}

void functions_mark_parts(struct functions *f, const struct function_evidence *ev)
{
	struct judge j = { .f = f, .ev = ev };
	unsigned int namesakes = 0;

	index_ranks(&j);
	for (uint32_t i = 0; i < f->n; i++)
		f->v[i].is_part = is_part(&j, i);
	for (uint32_t i = 0; i < f->n; i++) {
		uint32_t parent = f->v[i].is_part ? find_parent(&j, i, &namesakes) : i;

		f->v[i].parent = parent == FUNCTION_NONE ? i : parent;
	}
	settle_parents(f);
	xfree(j.by_rank);
}
