/* SPDX-License-Identifier: MIT */
/*
 * lines_dwarf.c - what lines.c asks of libdw; it runs in the reader process alone, for libdw
 * trusts what it reads.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "inject/elf/lines_impl.h"

#ifdef HAVE_DW

#include "inject/elf/dwarf_impl.h"

/* libdw's own would print, and run what kron registered with atexit(). */
static void __attribute__((noreturn)) no_memory(void)
{
	_exit(LINES_NO_MEMORY);
}

struct dwarf_lines *dwarf_lines_open(int fd, struct err *err)
{
	Dwarf *dw = dwarf_begin(fd, DWARF_C_READ);
	struct dwarf_lines *l;

	if (!dw) {
		err_set(err, EINVAL, "%s", dwarf_errmsg(-1));
		return NULL;
	}
	dwarf_new_oom_handler(dw, no_memory);
	l = xcalloc(1, sizeof(*l));
	l->dw = dw;
	return l;
}

/* ---- scopes ---- */

/* The function or inlined copy that vaddr lies in: the offset of its DIE; 0: none. */
static Dwarf_Off scope_of(Dwarf_Die *cu, Dwarf_Addr addr, bool *inlined)
{
	Dwarf_Die *scopes = NULL;
	int n = dwarf_getscopes(cu, addr, &scopes);
	Dwarf_Off found = 0;

	*inlined = false;
	for (int i = 0; i < n && !found; i++) {
		int tag = dwarf_tag(&scopes[i]);

		if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine)
			continue;
		found = dwarf_dieoffset(&scopes[i]);
		*inlined = tag == DW_TAG_inlined_subroutine;
	}
	free(scopes);
	return found;
}

/* ---- a line ---- */

struct candidate {
	Dwarf_Off scope;
	struct line_place place;
};

struct search {
	const char *file;
	unsigned line;
	struct line_places *out;
	VEC(struct candidate) found;
};

static void keep_lowest(struct search *s, Dwarf_Off scope, const struct line_place *place)
{
	vec_for(&s->found, c) {
		if (c->scope != scope)
			continue;
		if (place->vaddr < c->place.vaddr)
			c->place = *place;
		return;
	}
	*vec_push(&s->found) = (struct candidate){scope, *place};
}

static void note_neighbour(struct search *s, unsigned line)
{
	if (line < s->line && line > s->out->before)
		s->out->before = line;
	if (line > s->line && (!s->out->next || line < s->out->next))
		s->out->next = line;
}

static void consider_row(struct search *s, Dwarf_Die *cu, Dwarf_Line *row)
{
	struct line_place place = {0};
	bool statement = false, end = false;
	Dwarf_Addr addr;
	Dwarf_Off scope;
	int line;

	if (dwarf_lineno(row, &line) || dwarf_lineaddr(row, &addr) || line <= 0 ||
	    dwarf_linebeginstatement(row, &statement) || dwarf_lineendsequence(row, &end) || end ||
	    !statement || !addr)
		return;
	if ((unsigned)line != s->line) {
		note_neighbour(s, (unsigned)line);
		return;
	}
	scope = scope_of(cu, addr, &place.is_inlined);
	place.vaddr = addr;
	keep_lowest(s, scope, &place);
}

/* Has the unit a file of this name at all?  Most have not, and their rows need no look. */
static bool unit_has_file(struct search *s, Dwarf_Die *cu)
{
	Dwarf_Files *files;
	size_t n;

	if (dwarf_getsrcfiles(cu, &files, &n)) {
		s->out->unreadable += dwarf_hasattr(cu, DW_AT_stmt_list);
		return false;
	}
	for (size_t i = 0; i < n; i++) {
		const char *path = dwarf_filesrc(files, i, NULL, NULL);

		if (path && lines_is_file(path, s->file))
			return true;
	}
	return false;
}

static void search_unit(struct search *s, Dwarf_Die *cu)
{
	const char *last = NULL;
	bool last_matches = false;
	Dwarf_Lines *rows;
	size_t n;

	if (!unit_has_file(s, cu))
		return;
	if (dwarf_getsrclines(cu, &rows, &n)) {
		s->out->unreadable++;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		Dwarf_Line *row = dwarf_onesrcline(rows, i);
		const char *path = dwarf_linesrc(row, NULL, NULL);

		if (!path)
			continue;
		if (path != last) {
			last = path;
			last_matches = lines_is_file(path, s->file);
		}
		if (!last_matches)
			continue;
		s->out->has_file = true;
		consider_row(s, cu, row);
	}
}

static int compare_candidates(const void *a, const void *b)
{
	const struct line_place *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

void dwarf_lines_find(struct dwarf_lines *l, const char *file, unsigned line,
		      struct line_places *out)
{
	struct search s = {.file = file, .line = line, .out = out};
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	int r;

	memset(out, 0, sizeof(*out));
	while (!(r = dwarf_get_units(l->dw, cu, &cu, NULL, NULL, &die, NULL)))
		search_unit(&s, &die);
	if (r < 0)
		out->unreadable++;
	vec_for(&s.found, c)
		if (!out->v.n || out->v.v[out->v.n - 1].vaddr != c->place.vaddr)
			*vec_push(&out->v) = c->place;
	if (out->v.n)
		qsort(out->v.v, out->v.n, sizeof(out->v.v[0]), compare_candidates);
	vec_free(&s.found);
}

/* ---- functions ---- */

static int compare_units(const void *a, const void *b)
{
	const struct unit *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void list_units(struct dwarf_lines *l)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;

	l->listed = true;
	while (!dwarf_get_units(l->dw, cu, &cu, NULL, NULL, &die, NULL)) {
		Dwarf_Addr base, start, end;
		ptrdiff_t at = 0;

		while ((at = dwarf_ranges(&die, at, &base, &start, &end)) > 0)
			*vec_push(&l->units) = (struct unit){start, end, dwarf_dieoffset(&die)};
	}
	if (l->units.n)
		qsort(l->units.v, l->units.n, sizeof(*l->units.v), compare_units);
}

/* The unit that vaddr lies in.  gcc writes a table for that (.debug_aranges), clang and rustc do
 * not: their units' own ranges tell. */
bool dwarf_lines_unit(struct dwarf_lines *l, uint64_t vaddr, Dwarf_Die *out)
{
	size_t low = 0, high;

	if (dwarf_addrdie(l->dw, vaddr, out))
		return true;
	if (!l->listed)
		list_units(l);
	for (high = l->units.n; low < high;) {
		size_t middle = (low + high) / 2;

		if (l->units.v[middle].start <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low && vaddr < l->units.v[low - 1].end &&
	       dwarf_offdie(l->dw, l->units.v[low - 1].die, out);
}

/* Number 0 is the unit's own source since DWARF 5; dwarf_decl_file() takes it for none, as it was
 * before. */
static const char *decl_file(Dwarf_Die *function, Dwarf_Die *cu)
{
	const char *name = dwarf_decl_file(function);
	Dwarf_Half version = 0;
	Dwarf_Attribute attr;
	Dwarf_Files *files;
	Dwarf_Word number;
	size_t n;

	if (name || !dwarf_attr_integrate(function, DW_AT_decl_file, &attr) ||
	    dwarf_formudata(&attr, &number) || number ||
	    dwarf_cu_info(cu->cu, &version, NULL, NULL, NULL, NULL, NULL, NULL) || version < 5 ||
	    dwarf_getsrcfiles(cu, &files, &n) || !n)
		return name;
	return dwarf_filesrc(files, 0, NULL, NULL);
}

bool dwarf_lines_function(struct dwarf_lines *l, uint64_t vaddr, const char **file, unsigned *line)
{
	Dwarf_Die cu, *scopes = NULL;
	bool found = false;
	int n, number;

	if (!dwarf_lines_unit(l, vaddr, &cu))
		return false;
	n = dwarf_getscopes(&cu, vaddr, &scopes);
	for (int i = 0; i < n && !found; i++) {
		if (dwarf_tag(&scopes[i]) != DW_TAG_subprogram)
			continue;
		*file = decl_file(&scopes[i], &cu);
		found = *file && !dwarf_decl_line(&scopes[i], &number) && number > 0;
		*line = found ? (unsigned)number : 0;
	}
	free(scopes);
	return found;
}

#endif
