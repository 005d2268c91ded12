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
 *                                 cold region
 *
 *   - Its frame at the start: a call leaves nothing on the stack but a return address.  This
 *     settles most; but parts of leaf functions and of functions that left early look like
 *     entries ("plain" below).
 *   - Its FDE follows its parent's in the file, while its code lies away from it, among other
 *     parts.  (Cold functions and constructors lie away, too.)
 *   - It is never called, and jumps come from its parent only, some of them conditional: in a
 *     tail call they are not.
 *   - It jumps back into the middle of its parent.
 *
 * Assembly has parts too: libc closes the FDE of a system call and opens another for the lines
 * that set errno.  Those touch their parent, and a conditional jump leads to them.
 *
 * Nothing that somebody calls is a part: LLVM's outlined "f.cold.1" are functions.
 */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "inject/code/functions.h"

#define NEIGHBOURS 4
#define PASSES_MAX 8

struct judge {
	struct functions *f;
	const struct function_evidence *ev; /* NULL: none */
	uint32_t *by_rank;                  /* FDE rank -> function, FUNCTION_NONE */
	size_t nranks;
};

/* Where ".cold" starts, as GCC and LLVM name parts, or ".warm", as BOLT does; or NULL. */
static const char *find_suffix(const char *name)
{
	static const char *const suffixes[] = {".cold", ".warm"};

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		const char *at = strstr(name, suffixes[i]), *p = at;

		if (!at || at == name)
			continue;
		p += strlen(suffixes[i]);
		if (*p == '.')
			p += 1 + strspn(p + 1, "0123456789");
		if (!*p || *p == '@')
			return at;
	}
	return NULL;
}

bool function_is_cold_name(const char *name)
{
	return find_suffix(name);
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
static bool lies_away(const struct judge *j, uint32_t i)
{
	uint32_t before = predecessor(j, i);

	return before != FUNCTION_NONE && i != before + 1;
}

static bool touches_predecessor(const struct judge *j, uint32_t i)
{
	return i && predecessor(j, i) == i - 1 && j->f->v[i - 1].end == j->f->v[i].start;
}

/* Cold parts come in crowds, with a few cold functions between them. */
static bool is_among_parts(const struct judge *j, uint32_t i)
{
	uint32_t from = i > NEIGHBOURS ? i - NEIGHBOURS : 0;

	for (uint32_t n = from; n <= i + NEIGHBOURS && n < j->f->n; n++)
		if (n != i && j->f->v[n].is_part && !touches_predecessor(j, n))
			return true;
	return false;
}

/* The function that i is, or is a part of. */
static uint32_t root_of(const struct judge *j, uint32_t i)
{
	unsigned int hops = 0;

	while (i != FUNCTION_NONE && j->f->v[i].is_part && j->f->v[i].parent != i && hops++ < 16)
		i = j->f->v[i].parent;
	return i;
}

/* Jumps come from the predecessor and its parts alone, or there are none. */
static bool is_reached_from_predecessor(const struct judge *j, uint32_t i)
{
	const struct function_evidence *ev = &j->ev[i];

	return !ev->many_jump_here &&
	       (ev->jumped_from == FUNCTION_NONE ||
		root_of(j, ev->jumped_from) == root_of(j, predecessor(j, i)));
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
	return lies_away(j, i) || ev->jcc_from_other || ev->jmp_from_other || ev->jumps_into_other;
}

static bool judge_touching(const struct judge *j, uint32_t i)
{
	const struct function_evidence *ev = &j->ev[i];

	if (ev->address_taken || !is_reached_from_predecessor(j, i))
		return false;
	/* A jump into the middle: the predecessor also falls into it. */
	return ev->jcc_from_other || j->ev[i - 1].jumps_into == i;
}

static bool judge_plain(const struct judge *j, uint32_t i)
{
	const struct function_evidence *ev = &j->ev[i];
	uint32_t before = predecessor(j, i);
	bool crowd;

	if (before == FUNCTION_NONE || ev->called)
		return false;
	if (touches_predecessor(j, i))
		return judge_touching(j, i);
	if (!lies_away(j, i) || j->f->v[before].is_part)
		return false;
	/* Several functions may share a cold part that is empty but for what comes next. */
	crowd = is_among_parts(j, i);
	if (crowd && ev->jcc_from_other)
		return true;
	if (!is_reached_from_predecessor(j, i))
		return false;
	if (ev->jumps_into_other && root_of(j, ev->jumps_into) == before)
		return true;
	if (ev->address_taken)
		return false;
	/* In the crowd a lone jump of the predecessor is not a tail call, and what nobody jumps to
	 * is reached through a switch, or never, and then nothing is lost. */
	return crowd || ev->jcc_from_other;
}

static bool has_function_name(const struct function *fn)
{
	return fn->name && !function_is_cold_name(fn->name);
}

/* What its name or its frame tells. */
static bool is_certain_part(const struct judge *j, uint32_t i)
{
	const struct function *fn = &j->f->v[i];

	if (has_function_name(fn))
		return false;
	if (fn->name)
		return !j->ev || !j->ev[i].called;
	if (!fn->odd_start)
		return false;
	return !j->ev || judge_odd(j, i);
}

/* The function that a part "f.cold" is named after. */
static uint32_t find_namesake(const struct functions *f, const char *cold)
{
	size_t n = find_suffix(cold) - cold;

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
	n = find_suffix(part->name) - part->name;
	return !strncmp(part->name, fn->name, n) && !fn->name[n];
}

/* Whom the part belongs to, which may be another part; itself when that is not known. */
static uint32_t find_parent(const struct judge *j, uint32_t i, unsigned int *namesakes)
{
	const struct function *part = &j->f->v[i];
	uint32_t parent = predecessor(j, i);

	if (parent != FUNCTION_NONE && lies_away(j, i) && is_named_after(part, &j->f->v[parent]))
		return parent;
	if (j->ev && j->ev[i].jumped_from != FUNCTION_NONE)
		return j->ev[i].jumped_from;
	if (j->ev && j->ev[i].jumps_into != FUNCTION_NONE)
		return j->ev[i].jumps_into;
	/* A search through all names, so only for the few without FDE. */
	if (part->name && (*namesakes)++ < 1000)
		parent = find_namesake(j->f, part->name);
	return parent == FUNCTION_NONE ? i : parent;
}

static void make_part(struct judge *j, uint32_t i, unsigned int *namesakes)
{
	struct function *fn = &j->f->v[i];

	fn->is_part = true;
	fn->parent = find_parent(j, i, namesakes);
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

/* In file order, as a part may follow another; returns how many were found. */
static size_t mark_plain_parts(struct judge *j, unsigned int *namesakes)
{
	size_t found = 0;

	for (size_t rank = 0; rank < j->nranks; rank++) {
		uint32_t i = j->by_rank[rank];
		const struct function *fn = i == FUNCTION_NONE ? NULL : &j->f->v[i];

		if (!fn || fn->is_part || fn->name || fn->odd_start || !judge_plain(j, i))
			continue;
		make_part(j, i, namesakes);
		found++;
	}
	return found;
}

void functions_mark_parts(struct functions *f, const struct function_evidence *ev)
{
	struct judge j = {.f = f, .ev = ev};
	unsigned int namesakes = 0;

	index_ranks(&j);
	for (uint32_t i = 0; i < f->n; i++) {
		f->v[i].is_part = false;
		f->v[i].parent = i;
	}
	for (uint32_t i = 0; i < f->n; i++)
		if (is_certain_part(&j, i))
			make_part(&j, i, &namesakes);
	/* Each time more neighbours are known. */
	for (unsigned int pass = 0; ev && pass < PASSES_MAX; pass++)
		if (!mark_plain_parts(&j, &namesakes))
			break;
	settle_parents(f);
	xfree(j.by_rank);
}

uint32_t *functions_link_parts(const struct functions *f)
{
	uint32_t *next = xmalloc((f->n + 1) * sizeof(*next));

	memset(next, 0xff, (f->n + 1) * sizeof(*next));
	for (size_t i = f->n; i-- > 0;) {
		const struct function *fn = &f->v[i];

		if (!fn->is_part || fn->parent == i || fn->parent >= f->n)
			continue;
		next[i] = next[fn->parent];
		next[fn->parent] = (uint32_t)i;
	}
	return next;
}
