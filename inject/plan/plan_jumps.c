/* SPDX-License-Identifier: MIT */
/*
 * plan_jumps.c - see plan_jumps.h.
 *
 *   jmp g              a function of this image: its start or its middle
 *   jmp stub           of the linker: jmp *slot, and the slot's relocation has a name
 *   jmp *slot(%rip)    the same without a stub (-fno-plt)
 *   jmp *%rax          through a pointer: nobody knows
 *
 * The text may have been patched already; what stood there is in the plan.
 */
#include "inject/plan/plan_jumps.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "base/search.h"
#include "inject/elf/demangle.h"
#include "inject/elf/elf_symbols.h"
#include "inject/elf/callsite_links.h"
#include "inject/code/insn.h"

#define INSN_MOST 15u
#define STUB_INSNS 3u /* endbr64, and what old linkers put before the jump */
#define LOOK_BACK 64u /* for a jump like this one: a file could have millions */

struct export
{
	uint32_t function;
	const char *name;
};
struct adding {
	struct plan *p;
	const struct elf_image *img;
	struct callsite_links *links; /* slots alone */
	VEC(struct plan_jump) jumps;
	size_t first; /* of the function at work */
	VEC(char) strings;
	VEC(struct export) exports;
	uint32_t *names; /* by import: its name's place in strings, 0: not there yet */
};

/* ---- the image as it was ---- */

static void lay_over(uint8_t *out, unsigned n, uint64_t at, const uint8_t *old, uint64_t old_at,
		     unsigned old_len)
{
	for (unsigned i = 0; i < n; i++)
		if (at + i - old_at < old_len)
			out[i] = old[at + i - old_at];
}

/* What sites near `at` have displaced, over what stands there now. */
static void lay_over_sites(const struct plan *p, uint8_t *out, unsigned n, uint64_t at)
{
	size_t lo = partition_point(i, p->nsites, p->sites[i].vaddr < at + n);

	while (lo-- > 0) {
		const struct plan_site *s = &p->sites[lo];

		lay_over(out, n, at, plan_old_bytes(p, s), s->vaddr, s->window);
		if (s->vaddr + s->window <= at)
			break; /* windows do not overlap */
	}
}

static bool decode(const struct adding *a, uint64_t at, struct insn *out)
{
	uint8_t code[INSN_MOST];
	uint64_t room = elf_image_room(a->img, at);
	unsigned n = room < INSN_MOST ? (unsigned)room : INSN_MOST;
	const uint8_t *now = n ? elf_image_at(a->img, at, n) : NULL;

	if (!now)
		return false;
	memcpy(code, now, n);
	lay_over_sites(a->p, code, n, at);
	return insn_scan(out, code, n, at);
}

/* ---- names ---- */

static uint32_t add_string(struct adding *a, const char *s)
{
	size_t at = a->strings.n, n = strlen(s) + 1;

	if (n == 1 || at + n > UINT32_MAX)
		return 0;
	vec_reserve(&a->strings, at + n);
	memcpy(a->strings.v + at, s, n);
	a->strings.n += n;
	return (uint32_t)at;
}

/* The name of what a slot will hold, readable; 0: nobody knows. */
static uint32_t slot_name(struct adding *a, uint64_t vaddr)
{
	const struct callsite_import *im = callsite_links_slot_at(a->links, vaddr);
	char *readable;
	size_t i;

	if (!im)
		return 0;
	i = (size_t)(im - a->links->imports.v);
	if (!a->names[i]) {
		readable = symbol_demangle(im->name);
		a->names[i] = add_string(a, readable ? readable : im->name);
		xfree(readable);
	}
	return a->names[i];
}

/* ---- jumps ---- */

/* The plan's function that holds vaddr; nfunctions: none. */
static size_t function_at(const struct plan *p, uint64_t vaddr)
{
	size_t lo = partition_point(i, p->nfunctions, p->functions[i].vaddr <= vaddr);

	if (lo && vaddr - p->functions[lo - 1].vaddr < p->functions[lo - 1].size)
		return lo - 1;
	return p->nfunctions;
}

static bool is_through_slot(const struct insn *in)
{
	return in->kind == INSN_JMP_INDIRECT && in->rip_relative;
}

static void take_slot(struct adding *a, struct plan_jump *j, uint64_t slot)
{
	uint32_t name = slot_name(a, slot);

	if (!name)
		return;
	j->to = PLAN_JUMP_NAME;
	j->target = name;
}

static void take_stub(struct adding *a, struct plan_jump *j, uint64_t at)
{
	struct insn in;

	for (unsigned i = 0; i < STUB_INSNS && decode(a, at, &in); i++, at += in.len) {
		if (is_through_slot(&in))
			take_slot(a, j, in.target);
		if (in.kind != INSN_PADDING && in.kind != INSN_PLAIN)
			break;
	}
}

static void take_target(struct adding *a, struct plan_jump *j, uint64_t to)
{
	size_t i = function_at(a->p, to);

	if (i < a->p->nfunctions && !(a->p->functions[i].sources & FUNCTION_STUB)) {
		j->to = to == a->p->functions[i].vaddr ? PLAN_JUMP_FUNCTION : PLAN_JUMP_INSIDE;
		j->target = (uint32_t)i;
	} else {
		take_stub(a, j, to);
	}
}

/* The number of a jump like this one, of this function. */
static uint32_t number_of(struct adding *a, const struct plan_jump *j)
{
	size_t far = a->jumps.n > LOOK_BACK ? a->jumps.n - LOOK_BACK : 0;

	for (size_t i = a->first > far ? a->first : far; i < a->jumps.n; i++)
		if (a->jumps.v[i].to == j->to && a->jumps.v[i].target == j->target)
			return (uint32_t)i;
	*vec_push(&a->jumps) = *j;
	return (uint32_t)a->jumps.n - 1;
}

static void add_exit(struct adding *a, struct plan_probe *probe)
{
	struct plan_jump j = {.function = probe->function};
	struct insn in;

	if (!decode(a, probe->vaddr, &in))
		return;
	if (in.kind == INSN_JMP || in.kind == INSN_JCC)
		take_target(a, &j, in.target);
	else if (is_through_slot(&in))
		take_slot(a, &j, in.target);
	else if (in.kind != INSN_JMP_INDIRECT)
		return;
	probe->action = number_of(a, &j) + 1;
}

/* ---- aliases ---- */

/* It exports nothing, and ld makes local what a static-pie would have exported: malloc. */
static bool is_static(const struct elf_image *img)
{
	return img->kind == ELF_KIND_STATIC;
}

static bool add_export(const struct elf_symbol *sym, void *ctx)
{
	struct adding *a = ctx;
	size_t i = function_at(a->p, sym->value);

	if (sym->shndx != SHN_UNDEF && (sym->bind != STB_LOCAL || is_static(a->img)) &&
	    i < a->p->nfunctions && a->p->functions[i].vaddr == sym->value)
		*vec_push(&a->exports) = (struct export){(uint32_t)i, sym->name};
	return true;
}

static int by_function(const void *a, const void *b)
{
	const struct export *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* A name that the function does not have already; at the end of the strings, after others of it. */
static void add_alias(struct adding *a, struct plan_function *f, const char *name)
{
	char *readable = symbol_demangle(name);
	const char *alias = readable ? readable : name;
	size_t end = a->strings.n;

	if (strcmp(name, a->strings.v + f->raw_name) && strcmp(alias, a->strings.v + f->name) &&
	    !strchr(alias, '\n')) {
		if (f->aliases)
			a->strings.v[end - 1] = '\n';
		if (!add_string(a, alias) && f->aliases)
			a->strings.v[end - 1] = 0;
		else if (!f->aliases && a->strings.n > end)
			f->aliases = (uint32_t)end;
	}
	xfree(readable);
}

static void add_aliases(struct adding *a)
{
	elf_symbols_for_each(a->img, is_static(a->img) ? SHT_SYMTAB : SHT_DYNSYM, add_export, a);
	if (a->exports.n)
		qsort(a->exports.v, a->exports.n, sizeof(*a->exports.v), by_function);
	for (size_t i = 0; i < a->exports.n; i++)
		if (!i || by_function(&a->exports.v[i - 1], &a->exports.v[i]))
			add_alias(a, &a->p->functions[a->exports.v[i].function],
				  a->exports.v[i].name);
}

/* ---- the whole ---- */

void plan_drop_jumps(struct plan *p)
{
	for (size_t i = 0; i < p->nprobes; i++)
		if (p->probes[i].kind == PROBE_EXIT)
			p->probes[i].action = 0;
	xfree(p->jumps);
	p->jumps = NULL;
	p->njumps = 0;
}

void plan_add_jumps(struct plan *p, const struct elf_image *img)
{
	struct adding a = {.p = p, .img = img, .links = callsite_links_make_slots(img)};

	a.strings.v = p->strings;
	a.strings.n = a.strings.cap = p->strings_len;
	a.names = xcalloc(a.links->imports.n + 1, sizeof(*a.names));
	for (size_t i = 0; i < p->nfunctions; i++) {
		const struct plan_function *f = &p->functions[i];

		a.first = a.jumps.n;
		for (uint32_t k = 0; k < f->nprobes; k++)
			if (p->probes[f->first_probe + k].kind == PROBE_EXIT)
				add_exit(&a, &p->probes[f->first_probe + k]);
	}
	add_aliases(&a);
	p->jumps = a.jumps.v;
	p->njumps = a.jumps.n;
	p->strings = a.strings.v;
	p->strings_len = a.strings.n;
	vec_free(&a.exports);
	callsite_links_free(a.links);
	xfree(a.names);
}
