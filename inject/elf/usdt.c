/* SPDX-License-Identifier: MIT */
/* usdt.c - see usdt.h */
#include "inject/elf/usdt.h"

#include <stdlib.h>
#include <string.h>

#include "inject/elf/elf_data.h"

#define NOTE_STAPSDT 3u

/* A string that ends before `end`, and what follows it. */
static const char *take_string(const char **at, const char *end)
{
	const char *s = *at;
	const char *nul = s < end ? memchr(s, 0, (size_t)(end - s)) : NULL;

	if (!nul)
		return NULL;
	*at = nul + 1;
	return s;
}

/* Addresses count from .stapsdt.base: prelink moves that, and not what the notes say. */
static uint64_t moved_by(const struct elf_image *img, uint64_t base)
{
	const struct elf_section *s = elf_image_section(img, ".stapsdt.base");

	return s && base ? s->vaddr - base : 0;
}

static bool read_note(const struct elf_image *img, const uint8_t *desc, uint64_t size,
		      struct usdt_note *out)
{
	const char *at = (const char *)desc + 24, *end = (const char *)desc + size;
	uint64_t by;

	if (size < 24)
		return false;
	by = moved_by(img, elf_read64(desc + 8));
	out->vaddr = elf_read64(desc) + by;
	out->semaphore = elf_read64(desc + 16);
	out->semaphore += out->semaphore ? by : 0;
	out->provider = take_string(&at, end);
	out->name = take_string(&at, end);
	out->args = take_string(&at, end);
	if (!out->args)
		out->args = "";
	return out->provider && out->name;
}

static void read_section(const struct elf_image *img, const struct elf_section *s,
			 bool (*fn)(const struct usdt_note *n, void *ctx), void *ctx)
{
	Elf_Data *d = elf_data_notes(img, s->off, s->size, 4);
	size_t at = 0, name, desc;
	GElf_Nhdr nh;

	while ((at = gelf_getnote(d, at, &nh, &name, &desc))) {
		const uint8_t *p = img->bytes + s->off;
		struct usdt_note note;

		if (nh.n_type == NOTE_STAPSDT && nh.n_namesz == 8 &&
		    !memcmp(p + name, "stapsdt", 8) &&
		    read_note(img, p + desc, nh.n_descsz, &note) && !fn(&note, ctx))
			return;
	}
}

void usdt_for_each(const struct elf_image *img, bool (*fn)(const struct usdt_note *n, void *ctx),
		   void *ctx)
{
	const struct elf_section *s = elf_image_section(img, ".note.stapsdt");

	if (s && s->type == SHT_NOTE)
		read_section(img, s, fn, ctx);
}

/* ---- arguments ---- */

/* Every name of a general register, by its number: 64, 32, 16 and 8 bits. */
static const char *const registers[16][4] = {
	{"rax", "eax", "ax", "al"},      {"rcx", "ecx", "cx", "cl"},
	{"rdx", "edx", "dx", "dl"},      {"rbx", "ebx", "bx", "bl"},
	{"rsp", "esp", "sp", "spl"},     {"rbp", "ebp", "bp", "bpl"},
	{"rsi", "esi", "si", "sil"},     {"rdi", "edi", "di", "dil"},
	{"r8", "r8d", "r8w", "r8b"},     {"r9", "r9d", "r9w", "r9b"},
	{"r10", "r10d", "r10w", "r10b"}, {"r11", "r11d", "r11w", "r11b"},
	{"r12", "r12d", "r12w", "r12b"}, {"r13", "r13d", "r13w", "r13b"},
	{"r14", "r14d", "r14w", "r14b"}, {"r15", "r15d", "r15w", "r15b"},
};

static bool find_register(const char *name, unsigned n, uint8_t *out)
{
	for (uint8_t r = 0; r < 16; r++)
		for (int size = 0; size < 4; size++)
			if (strlen(registers[r][size]) == n &&
			    !memcmp(registers[r][size], name, n)) {
				*out = r;
				return true;
			}
	return false;
}

/* What follows the @. */
static void read_operand(const char *s, unsigned n, struct usdt_arg *out)
{
	char number[32], *end;

	if (n && s[0] == '%') {
		out->kind = find_register(s + 1, n - 1, &out->reg) ? USDT_REGISTER : USDT_ODD;
		return;
	}
	if (n > 1 && s[0] == '$' && n - 1 < sizeof(number)) {
		memcpy(number, s + 1, n - 1);
		number[n - 1] = 0;
		out->value = strtoull(number, &end, 0);
		out->kind = *end ? USDT_ODD : USDT_CONSTANT;
		return;
	}
	out->kind = memchr(s, '(', n) ? USDT_MEMORY : USDT_ODD;
}

void usdt_arg(const char *args, unsigned number, struct usdt_arg *out)
{
	*out = (struct usdt_arg){.kind = USDT_NONE};
	for (unsigned i = 1;; i++) {
		const char *at;

		args += strspn(args, " ");
		if (!*args)
			return;
		if (i < number) {
			args += strcspn(args, " ");
			continue;
		}
		out->text = args;
		out->len = (unsigned)strcspn(args, " ");
		at = memchr(args, '@', out->len);
		out->kind = USDT_ODD;
		if (at)
			read_operand(at + 1, out->len - (unsigned)(at + 1 - args), out);
		return;
	}
}
