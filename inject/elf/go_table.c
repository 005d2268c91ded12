/* SPDX-License-Identifier: MIT */
/*
 * go_table.c - see go_table.h.
 *
 *   header   magic │ 0 0 1 8 │ n │ where the other parts are
 *   index    n entries of {start, where} and the end of the last function, in order
 *   function what the runtime must know of it: start, name, ...
 *
 *   magic        since   numbers of an entry    start of the function     parts
 *   0xfffffffb   1.2     8 bytes                an address                all in one
 *   0xfffffffa   1.16    8 bytes                an address                by offsets
 *   0xfffffff0   1.18    4 bytes                from the text's start     by offsets
 *   0xfffffff1   1.20    4 bytes                from the text's start     by offsets
 *
 * The source is Go's own: debug/gosym, and the linker's pcln.go.  Each function tells its start
 * twice, in the index and in what the index leads to; where the two differ nothing is believed.
 * A file without section headers is searched for the header.
 */
#include "inject/elf/go_table.h"

#include <errno.h>

#define GO_1_2 0xfffffffbu
#define GO_1_16 0xfffffffau
#define GO_1_18 0xfffffff0u
#define GO_1_20 0xfffffff1u

#define HEADER 8u /* magic and what never changes: two zeros, least instruction, pointer size */
#define HEADER_1_16 64u
#define HEADER_1_18 72u
#define TEXT_START 24u /* in HEADER_1_18 */
#define NAME_MAX_LEN 4096u
#define HEADERS_MAX 16u /* that a search looks into */

static uint64_t word_at(const struct go_table *t, uint64_t off)
{
	return elf_read64(t->bytes + off);
}

static bool has(const struct go_table *t, uint64_t off, uint64_t n)
{
	return elf_file_has(t->size, off, n);
}

static bool is_header(const uint8_t *p)
{
	return elf_read32(p) >= GO_1_18 && p[4] == 0 && p[5] == 0 && p[6] == 1 && p[7] == 8;
}

/* ---- the parts ---- */

/* [from, to) of the table, which names lie in. */
static bool take_names(struct go_table *t, uint64_t from, uint64_t to)
{
	if (from > to || !has(t, from, to - from))
		return false;
	t->names = elf_strings(t->img, (uint64_t)(t->bytes - t->img->bytes) + from, to - from);
	return true;
}

static bool read_1_2(struct go_table *t)
{
	t->index = HEADER + 8;
	t->funcs = 0;
	t->word = 8;
	return take_names(t, 0, t->size);
}

/* at: of the first of the offsets: names, compilation units, files, tables, index. */
static bool read_offsets(struct go_table *t, uint64_t at)
{
	t->index = t->funcs = word_at(t, at + 32);
	return take_names(t, word_at(t, at), word_at(t, at + 8));
}

static bool read_1_16(struct go_table *t)
{
	t->word = 8;
	return has(t, 0, HEADER_1_16) && read_offsets(t, 24);
}

/* Is it the program's entry point, as Go's own linker has it? */
static bool names_entry_point(const struct go_table *t)
{
	struct go_function f;

	for (uint64_t i = 0; i < t->n; i++)
		if (go_table_function(t, i, &f) && f.start == t->img->entry)
			return true;
	return false;
}

/* Since 1.26 the header does not tell it; then it is the section's start, if that fits. */
static bool guess_text(struct go_table *t)
{
	const struct elf_section *s = elf_image_section(t->img, ".text");
	const struct elf_segment *g = t->img->segments;

	for (size_t i = 0; !s && i < t->img->nsegments; i++, g++)
		if (g->flags & PF_X)
			break;
	if (!s && g == t->img->segments + t->img->nsegments)
		return false;
	t->text = s ? s->vaddr : g->vaddr;
	return names_entry_point(t);
}

static bool read_1_18(struct go_table *t)
{
	t->word = 4;
	return has(t, 0, HEADER_1_18) && read_offsets(t, 32);
}

static bool find_text(struct go_table *t)
{
	if (t->word == 8)
		return true;
	t->text = elf_image_word(t->img, t->vaddr + TEXT_START);
	return t->text || guess_text(t);
}

static bool read_parts(struct go_table *t)
{
	switch (elf_read32(t->bytes)) {
	case GO_1_2:
		return read_1_2(t);
	case GO_1_16:
		return read_1_16(t);
	default:
		return read_1_18(t);
	}
}

static bool has_known_magic(const uint8_t *p)
{
	uint32_t magic = elf_read32(p);

	return magic == GO_1_2 || magic == GO_1_16 || magic == GO_1_18 || magic == GO_1_20;
}

/* size: of what is there from vaddr on; 0, -ENOENT: no header, -ENOTSUP, -EINVAL. */
static int read_table(struct go_table *t, const struct elf_image *img, uint64_t vaddr,
		      uint64_t size)
{
	*t = (struct go_table){.img = img, .vaddr = vaddr, .size = size};
	t->bytes = elf_image_at(img, vaddr, size);
	if (!t->bytes || size < HEADER + 8 || !is_header(t->bytes))
		return -ENOENT;
	if (!has_known_magic(t->bytes))
		return -ENOTSUP;
	t->n = word_at(t, HEADER);
	if (!read_parts(t) || !t->n || t->n > t->size || !has(t, t->index, t->word) ||
	    t->n > (t->size - t->index - t->word) / (2u * t->word) || !find_text(t))
		return -EINVAL;
	return 0;
}

/* ---- where it is ---- */

static const struct elf_section *section_of(const struct elf_image *img)
{
	const struct elf_section *s = elf_image_section(img, ".gopclntab");

	return s ? s : elf_image_section(img, ".data.rel.ro.gopclntab");
}

/* Linkers that are not Go's may have put it into a section with other things. */
static bool may_be_hidden(const struct elf_image *img)
{
	return !img->nsections || img->is_go;
}

/* Tables are aligned; what only begins like one is passed by. */
static bool search_segment(struct go_table *t, const struct elf_image *img,
			   const struct elf_segment *s, unsigned *budget)
{
	const uint8_t *p = img->bytes + s->off;

	for (uint64_t at = -s->vaddr & 7; at < s->filesz && s->filesz - at >= HEADER + 8; at += 8) {
		if (!is_header(p + at))
			continue;
		if (!*budget)
			break;
		--*budget;
		if (!read_table(t, img, s->vaddr + at, s->filesz - at))
			return true;
	}
	return false;
}

static int search(struct go_table *t, const struct elf_image *img)
{
	unsigned budget = HEADERS_MAX;

	for (size_t i = 0; may_be_hidden(img) && i < img->nsegments; i++)
		if (search_segment(t, img, &img->segments[i], &budget))
			return 0;
	return -ENOENT;
}

static int refuse(const struct go_table *t, int code, struct err *err)
{
	if (code == -ENOTSUP)
		return err_set(err, ENOTSUP,
			       "its table of Go functions (.gopclntab) is of a version of Go that "
			       "is not known here: 0x%08x",
			       elf_read32(t->bytes));
	return err_set(err, EINVAL, "its table of Go functions (.gopclntab) is damaged");
}

int go_table_find(struct go_table *out, const struct elf_image *img, struct err *err)
{
	const struct elf_section *s = section_of(img);
	uint64_t room = s ? elf_image_room(img, s->vaddr) : 0;
	int code;

	if (!s)
		return search(out, img);
	code = read_table(out, img, s->vaddr, s->size < room ? s->size : room);
	if (!code)
		return 0;
	if (code == -ENOENT)
		return err_set(err, EINVAL, "its table of Go functions (.gopclntab) is damaged");
	return refuse(out, code, err);
}

/* ---- its functions ---- */

static uint64_t number(const struct go_table *t, uint64_t off)
{
	return t->word == 8 ? word_at(t, off) : elf_read32(t->bytes + off);
}

bool go_table_function(const struct go_table *t, uint64_t i, struct go_function *out)
{
	uint64_t at = t->index + i * 2 * t->word, start = number(t, at);
	uint64_t func = t->funcs + number(t, at + t->word);
	const char *name;

	if (func < t->funcs || !has(t, func, t->word + 4u) || number(t, func) != start)
		return false;
	out->start = t->text + start;
	out->end = t->text + number(t, at + 2u * t->word);
	name = elf_strings_get(&t->names, elf_read32(t->bytes + func + t->word));
	out->name = strnlen(name, NAME_MAX_LEN) < NAME_MAX_LEN ? name : "";
	return true;
}
