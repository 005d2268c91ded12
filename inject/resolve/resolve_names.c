/* SPDX-License-Identifier: MIT */
/*
 * resolve_names.c - which functions a name means.
 *
 * A function has one name in struct functions, but symbol tables may give its start several
 * (malloc is also __libc_malloc); all of them count.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inject/elf/demangle.h"
#include "inject/elf/elf_symbols.h"
#include "inject/plan/callsite.h"
#include "base/name_forms.h"
#include "base/near.h"
#include "inject/resolve/resolve_impl.h"

/* ---- all names ---- */

static void add_alias(struct resolver *r, const char *raw, uint32_t function, bool is_ifunc)
{
	struct alias *a = vec_push(&r->aliases);

	a->raw = raw;
	a->readable = symbol_demangle(raw);
	a->function = function;
	a->is_ifunc = is_ifunc;
}

static bool take_symbol(const struct elf_symbol *sym, void *ctx)
{
	struct resolver *r = ctx;
	const struct function *f;

	if (!*sym->name || sym->shndx == SHN_UNDEF ||
	    (sym->type != STT_FUNC && sym->type != STT_GNU_IFUNC))
		return true;
	f = functions_at(r->fns, sym->value);
	if (!f || f->start != sym->value || f->is_part || (f->name && !strcmp(f->name, sym->name)))
		return true;
	add_alias(r, sym->name, (uint32_t)(f - r->fns->v), sym->type == STT_GNU_IFUNC);
	return true;
}

void names_build(struct resolver *r)
{
	if (r->aliases.n)
		return;
	for (size_t i = 0; i < r->fns->n; i++)
		if (!r->fns->v[i].is_part && r->fns->v[i].name && *r->fns->v[i].name)
			add_alias(r, r->fns->v[i].name, (uint32_t)i, r->fns->v[i].is_ifunc);
	elf_symbols_for_each(r->img, SHT_DYNSYM, take_symbol, r);
	elf_symbols_for_each(r->img, SHT_SYMTAB, take_symbol, r);
}

void names_free(struct resolver *r)
{
	vec_for(&r->aliases, a)
		xfree(a->readable);
	vec_free(&r->aliases);
}

/* ---- matching ---- */

/*
 * A function without a name is called after its module, "bash+0x1234", and must not be caught by
 * every glob for names: only by '*', and by what spells the "+0x".
 */
static bool matches_unnamed(const struct resolver *r, uint32_t function)
{
	const struct spec_name *n = &r->spec->function;
	char *name;
	bool yes;

	if (n->match == MATCH_GLOB && !strcmp(n->text, "*"))
		return true;
	if (n->match == MATCH_REGEX && !strcmp(n->text, ".*"))
		return true;
	if (!strstr(n->text, "+0x") && !strstr(n->text, "\\+0x"))
		return false;
	name = resolver_function_name(r, function);
	yes = spec_name_matches(n, name);
	xfree(name);
	return yes;
}

/* FUNC@SRC */
static bool has_source(struct resolver *r, uint32_t function)
{
	struct lines *l;
	const char *file;
	unsigned line;

	if (!r->spec->source)
		return true;
	l = resolver_lines(r);
	return l && lines_function(l, r->fns->v[function].start, &file, &line) &&
	       lines_is_file(file, r->spec->source);
}

/* ---- what the user may have meant ---- */

static void note_no_function(struct resolver *r)
{
	const char *wanted = r->spec->function.text;
	struct near near = {.n = 0};
	char list[256] = "";
	size_t at = 0;

	if (r->spec->function.match == MATCH_NAME)
		vec_for(&r->aliases, a)
			near_consider(&near, wanted, a->raw);
	for (unsigned i = 0; i < near.n; i++)
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s",
				       i == 0 ? "; is it " : " or ", near.v[i]);
	resolver_note(
		r, true, "%s has %sno function %s%s%s", r->path,
		r->spec->place == SPEC_CALLERS ? "and calls " : "",
		r->spec->function.match == MATCH_NAME ? "of this name" : "that matches", list,
		r->aliases.n ? "" : " (it has no symbols at all: `kron list` shows its functions)");
}

static void note_no_source(struct resolver *r)
{
	if (!resolver_lines(r))
		resolver_note(r, true, "the source of a function cannot be told: %s: %s", r->path,
			      r->no_lines.msg);
	else
		resolver_note(r, true, "%s has a function of this name, but not in %s", r->path,
			      r->spec->source);
}

/* ---- all together ---- */

/*
 * The symbol stands for a function that is chosen when the program starts: what lies here is the
 * code that chooses.  Its callers can be watched.
 */
static void take_ifunc(struct resolver *r, const struct alias *a)
{
	uint64_t start = r->fns->v[a->function].start;

	if (r->spec->place == SPEC_ENTRY && r->spec->payload != SPEC_PAYLOAD_ADDRESS &&
	    !r->set->no_callsites) {
		resolver_add_callsite(r, start, PLACE_BEFORE, true);
		return;
	}
	if (resolver_may_call(r) && callsite_knows(a->raw)) {
		resolver_add_callsite(r, start, PLACE_AFTER, true);
		return;
	}
	if (callsite_take_ifunc(r, start, a->raw))
		return;
	resolver_note(
		r, resolver_count(r) == r->before,
		"%s is chosen among several when the program starts (IFUNC): name the one that "
		"is meant, or %s%%after in the module that calls it",
		a->raw, a->raw);
}

bool names_for_each(struct resolver *r, void (*fn)(struct resolver *r, uint32_t function))
{
	uint8_t *matched = xcalloc(r->fns->n + 1, 1);
	bool any = false, other_source = false;

	names_build(r);
	vec_for(&r->aliases, a) {
		if (matched[a->function] || !names_match(&r->spec->function, a->raw, a->readable))
			continue;
		matched[a->function] = 1;
		if (a->is_ifunc) { /* a glob means it no more than its author did */
			matched[a->function] = 2;
			if (r->spec->function.match != MATCH_NAME)
				continue;
			take_ifunc(r, a);
			any = true;
		}
	}
	for (uint32_t i = 0; i < r->fns->n; i++) {
		const struct function *f = &r->fns->v[i];

		if (f->is_part || f->is_stub || matched[i] == 2 ||
		    (!matched[i] && ((f->name && *f->name) || !matches_unnamed(r, i))))
			continue;
		if (!has_source(r, i)) {
			other_source = true;
			continue;
		}
		any = true;
		fn(r, i);
	}
	xfree(matched);
	if (!any && !other_source)
		any = callsite_take(r);
	if (!any && other_source)
		note_no_source(r);
	else if (!any)
		note_no_function(r);
	return any;
}
