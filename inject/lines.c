/* SPDX-License-Identifier: MIT */
/* lines.c - see lines.h */
#define _GNU_SOURCE
#include "inject/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

bool lines_is_file(const char *path, const char *file)
{
	size_t n = strlen(path), m = strlen(file);

	while (m > 2 && file[0] == '.' && file[1] == '/') {
		file += 2;
		m -= 2;
	}
	return m && n >= m && !strcmp(path + n - m, file) &&
	       (n == m || path[n - m - 1] == '/' || file[0] == '/');
}

#ifdef HAVE_DW

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <unistd.h>

#include "inject/elf_symbols.h"

struct lines {
	Dwarf *dw;
	int fd;
};

/* ---- opening ---- */

static bool has_debug_info(const struct elf_image *img)
{
	return elf_image_section(img, ".debug_info") || elf_image_section(img, ".zdebug_info");
}

static int open_dwarf(struct lines **out, const struct elf_image *of, struct err *err)
{
	struct lines *l = xcalloc(1, sizeof(*l));

	l->fd = open(of->path, O_RDONLY | O_CLOEXEC);
	if (l->fd < 0) {
		xfree(l);
		return err_set(err, errno, "cannot open %s: %s", of->path, strerror(errno));
	}
	l->dw = dwarf_begin(l->fd, DWARF_C_READ);
	if (!l->dw) {
		close(l->fd);
		xfree(l);
		return err_set(err, EINVAL, "%s: %s", of->path, dwarf_errmsg(-1));
	}
	*out = l;
	return 0;
}

int lines_open(struct lines **out, const struct elf_image *img, struct err *err)
{
	struct elf_image *debug;
	int code;

	*out = NULL;
	if (!img->path)
		return err_set(err, ENOENT, "this image is no file");
	if (has_debug_info(img))
		return open_dwarf(out, img, err);
	debug = elf_debug_file(img, NULL);
	if (debug && has_debug_info(debug))
		code = open_dwarf(out, debug, err);
	else
		code = err_set(err, ENOENT,
			       "it has no debug information (compile with -g, or install its debug "
			       "symbols)");
	if (debug)
		elf_image_close(debug);
	return code;
}

void lines_close(struct lines *l)
{
	if (!l)
		return;
	dwarf_end(l->dw);
	close(l->fd);
	xfree(l);
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
static bool unit_has_file(Dwarf_Die *cu, const char *name)
{
	Dwarf_Files *files;
	size_t n;

	if (dwarf_getsrcfiles(cu, &files, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		const char *path = dwarf_filesrc(files, i, NULL, NULL);

		if (path && lines_is_file(path, name))
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

	if (!unit_has_file(cu, s->file) || dwarf_getsrclines(cu, &rows, &n))
		return;
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

void lines_find(struct lines *l, const char *file, unsigned line, struct line_places *out)
{
	struct search s = {.file = file, .line = line, .out = out};
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;

	memset(out, 0, sizeof(*out));
	while (dwarf_get_units(l->dw, cu, &cu, NULL, NULL, &die, NULL) == 0)
		search_unit(&s, &die);
	vec_for(&s.found, c)
		if (!out->v.n || out->v.v[out->v.n - 1].vaddr != c->place.vaddr)
			*vec_push(&out->v) = c->place;
	if (out->v.n)
		qsort(out->v.v, out->v.n, sizeof(out->v.v[0]), compare_candidates);
	vec_free(&s.found);
}

/* ---- functions ---- */

bool lines_function(struct lines *l, uint64_t vaddr, const char **file, unsigned *line)
{
	Dwarf_Die cu, *scopes = NULL;
	bool found = false;
	int n, number;

	if (!dwarf_addrdie(l->dw, vaddr, &cu))
		return false;
	n = dwarf_getscopes(&cu, vaddr, &scopes);
	for (int i = 0; i < n && !found; i++) {
		if (dwarf_tag(&scopes[i]) != DW_TAG_subprogram)
			continue;
		*file = dwarf_decl_file(&scopes[i]);
		found = *file && !dwarf_decl_line(&scopes[i], &number) && number > 0;
		*line = found ? (unsigned)number : 0;
	}
	free(scopes);
	return found;
}

#else

int lines_open(struct lines **out, const struct elf_image *img, struct err *err)
{
	(void)img;
	*out = NULL;
	return err_set(err, ENOTSUP, "this kron was built without libdw");
}

void lines_close(struct lines *l)
{
	(void)l;
}

void lines_find(struct lines *l, const char *file, unsigned line, struct line_places *out)
{
	(void)l, (void)file, (void)line;
	memset(out, 0, sizeof(*out));
}

bool lines_function(struct lines *l, uint64_t vaddr, const char **file, unsigned *line)
{
	(void)l, (void)vaddr, (void)file, (void)line;
	return false;
}

#endif
