/* SPDX-License-Identifier: MIT */
/* diff_build.c - lays functions out and makes an ELF file of them. */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/fuzz/diff.h"

#define SYMBOLS_OFF MODULE_SIZE
#define STRINGS_OFF (SYMBOLS_OFF + 0x1000u)
#define SECTIONS_OFF (STRINGS_OFF + 0x1000u)
#define FILE_SIZE (SECTIONS_OFF + 0x200u)
#define FIXED_BASE 0x10000000ull
#define PIE_BIAS 0x200000000000ull

void image_clear(struct image *im)
{
	for (unsigned i = 0; i < FUNCTIONS_MAX; i++) {
		xfree(im->fn[i].items.v);
		xfree(im->fn[i].at);
	}
	xfree(im->tables.v);
	xfree(im->file);
	memset(im, 0, sizeof(*im));
}

/* ---- layout ---- */

static bool is_loop_opcode(const struct item *it)
{
	return it->field && it->bytes[it->field - 1] >= 0xe0 && it->bytes[it->field - 1] <= 0xe3;
}

/* A short jump that does not reach becomes a long one; loops, which cannot, a no-op. */
static void widen(struct item *it)
{
	uint8_t op = it->bytes[it->field - 1];

	if (is_loop_opcode(it)) {
		*it = (struct item){.len = 2, .bytes = {0x66, 0x90}};
	} else if (op == 0xeb) {
		*it = (struct item){
			.len = 5, .kind = ITEM_JUMP, .field = 1, .size = 4, .to = it->to};
		it->bytes[0] = 0xe9;
	} else {
		*it = (struct item){
			.len = 6, .kind = ITEM_JUMP, .field = 2, .size = 4, .to = it->to};
		it->bytes[0] = 0x0f;
		it->bytes[1] = 0x80 | (op & 15);
	}
}

/* Places of the items.  False: something grew, again. */
static bool place_items(struct code *c)
{
	uint32_t at = c->start;
	bool stable = true;

	for (unsigned i = 0; i < c->items.n; i++) {
		c->at[i] = at;
		at += c->items.v[i].len;
	}
	c->at[c->items.n] = c->end = at;
	for (unsigned i = 0; i < c->items.n; i++) {
		struct item *it = &c->items.v[i];
		int32_t distance;

		if (it->kind != ITEM_JUMP || it->size != 1)
			continue;
		if (it->to > c->items.n)
			it->to = c->items.n;
		distance = (int32_t)(c->at[it->to] - (c->at[i] + it->len));
		if (distance != (int8_t)distance) {
			widen(it);
			stable = false;
		}
	}
	return stable;
}

static void lay_out(struct image *im)
{
	uint32_t at = 0;

	for (unsigned f = 0; f < im->nfn; f++) {
		struct code *c = &im->fn[f];

		at = (at + c->alignment - 1) & -(uint32_t)c->alignment;
		c->start = at;
		xfree(c->at);
		c->at = xmalloc((c->items.n + 1) * sizeof(*c->at));
		while (!place_items(c))
			;
		at = c->end + c->padding;
		if (at > TEXT_SIZE - 64) {
			printf("Bail out! more code than there is room\n");
			exit(1);
		}
	}
}

/* ---- bytes ---- */

static void put32(uint8_t *at, uint32_t v)
{
	memcpy(at, &v, 4);
}

static uint64_t target(const struct image *im, const struct code *c, const struct item *it)
{
	switch ((enum item_kind)it->kind) {
	case ITEM_PLAIN:
		break;
	case ITEM_DATA:
		return DATA_OFF + it->to;
	case ITEM_JUMP:
	case ITEM_LABEL:
		return TEXT_OFF + c->at[it->to > c->items.n ? c->items.n : it->to];
	case ITEM_FN:
		return TEXT_OFF + im->fn[it->to].start;
	case ITEM_POINTER:
		return DATA_OFF + DATA_RANDOM + 8 * it->to;
	case ITEM_TABLE:
		return RODATA_OFF + it->to * 4 * TABLE_CASES;
	}
	return 0;
}

static void write_code(struct image *im, const struct code *c, uint8_t *text)
{
	for (unsigned i = 0; i < c->items.n; i++) {
		const struct item *it = &c->items.v[i];
		uint8_t *to = text + c->at[i];
		uint32_t distance;

		memcpy(to, it->bytes, it->len);
		if (it->kind == ITEM_PLAIN)
			continue;
		distance = target(im, c, it) - (TEXT_OFF + c->at[i] + it->len);
		if (it->size == 1)
			to[it->field] = (uint8_t)distance;
		else
			put32(to + it->field, distance);
	}
	for (unsigned i = 0; i < c->padding; i++)
		text[c->end + i] = c->filler;
}

static void write_tables(const struct image *im, uint8_t *rodata)
{
	for (unsigned t = 0; t < im->tables.n; t++) {
		const struct table *table = &im->tables.v[t];
		const struct code *c = &im->fn[table->function];

		for (unsigned k = 0; k < TABLE_CASES; k++) {
			uint32_t to = table->to[k] > c->items.n ? c->items.n : table->to[k];
			uint32_t at = t * 4 * TABLE_CASES;

			put32(rodata + at + 4 * k, TEXT_OFF + c->at[to] - (RODATA_OFF + at));
		}
	}
}

/* ---- headers ---- */

static void write_headers(struct image *im)
{
	static const struct {
		uint32_t off, size, flags;
	} loads[] = {
		{0, TEXT_OFF + TEXT_SIZE, PF_R | PF_X},
		{RODATA_OFF, RODATA_SIZE, PF_R},
		{DATA_OFF, DATA_SIZE, PF_R | PF_W},
	};
	Elf64_Phdr *ph = (Elf64_Phdr *)(im->file + sizeof(Elf64_Ehdr));

	*(Elf64_Ehdr *)im->file = (Elf64_Ehdr){
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = im->fixed ? ET_EXEC : ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_shoff = SECTIONS_OFF,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 3,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 4,
		.e_shstrndx = 3,
	};
	for (int i = 0; i < 3; i++)
		ph[i] = (Elf64_Phdr){
			.p_type = PT_LOAD,
			.p_flags = loads[i].flags,
			.p_offset = loads[i].off,
			.p_vaddr = im->base + loads[i].off,
			.p_filesz = loads[i].size,
			.p_memsz = loads[i].size,
			.p_align = 0x1000,
		};
}

static void write_sections(struct image *im)
{
	Elf64_Shdr *sh = (Elf64_Shdr *)(im->file + SECTIONS_OFF);
	Elf64_Sym *sym = (Elf64_Sym *)(im->file + SYMBOLS_OFF);
	char *strings = (char *)im->file + STRINGS_OFF;
	uint32_t at = 32;

	memcpy(strings, "\0.text\0.symtab\0.strtab", 22);
	for (unsigned f = 0; f < im->nfn; f++) {
		sym[f + 1] = (Elf64_Sym){
			.st_name = at,
			.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			.st_shndx = 1,
			.st_value = im->base + TEXT_OFF + im->fn[f].start,
			.st_size = im->fn[f].end - im->fn[f].start,
		};
		at += sprintf(strings + at, "f%u", f) + 1;
	}
	sh[1] = (Elf64_Shdr){1,
			     SHT_PROGBITS,
			     SHF_ALLOC | SHF_EXECINSTR,
			     im->base + TEXT_OFF,
			     TEXT_OFF,
			     TEXT_SIZE,
			     0,
			     0,
			     16,
			     0};
	sh[2] = (Elf64_Shdr){
		7, SHT_SYMTAB,       0, 0, SYMBOLS_OFF, (im->nfn + 1) * sizeof(Elf64_Sym), 3, 1,
		8, sizeof(Elf64_Sym)};
	sh[3] = (Elf64_Shdr){15, SHT_STRTAB, 0, 0, STRINGS_OFF, 0x1000, 0, 0, 1, 0};
}

void image_build(struct image *im)
{
	im->base = im->fixed ? FIXED_BASE : 0;
	im->bias = im->fixed ? 0 : PIE_BIAS;
	im->text = im->bias + im->base + TEXT_OFF;
	lay_out(im);
	xfree(im->file);
	im->file = xcalloc(1, FILE_SIZE);
	im->file_size = FILE_SIZE;
	write_headers(im);
	write_sections(im);
	for (unsigned f = 0; f < im->nfn; f++) {
		write_code(im, &im->fn[f], im->file + TEXT_OFF);
		if (im->fixed) /* else it is a relocation's business */
			memcpy(im->file + DATA_OFF + DATA_RANDOM + 8 * f,
			       &(uint64_t){im->text + im->fn[f].start}, 8);
	}
	write_tables(im, im->file + RODATA_OFF);
}

void image_unlock(const struct image *im, bool on)
{
	if (mprotect((void *)im->text, TEXT_SIZE,
		     on ? PROT_READ | PROT_WRITE : PROT_READ | PROT_EXEC))
		abort();
}

void image_load(const struct image *im)
{
	static uint64_t mapped[2];
	uint64_t at = im->bias + im->base;
	uint64_t *words = (uint64_t *)(at + DATA_OFF + DATA_RANDOM);

	if (mapped[im->fixed] != at) {
		mapped[im->fixed] = at;
		if (mmap((void *)at, MODULE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != (void *)at) {
			printf("Bail out! no memory at %#lx\n", at);
			exit(1);
		}
	}
	image_unlock(im, true);
	memcpy((void *)im->text, im->file + TEXT_OFF, MODULE_SIZE - TEXT_OFF);
	image_unlock(im, false);
	for (unsigned f = 0; f < im->nfn; f++)
		words[f] = im->text + im->fn[f].start;
}
