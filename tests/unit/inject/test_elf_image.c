/* SPDX-License-Identifier: MIT */
/* Unit tests of inject/elf/elf_image.c and elf_constants.c, on made-up and on damaged files. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "inject/elf/demangle.h"
#include "inject/elf/elf_image.h"
#include "inject/elf/elf_symbols.h"
#include "inject/code/functions.h"
#include "base/vec.h"
#include "tests/unit/inject/elf_maker.h"

static struct elf_image *open_made(const struct made *m)
{
	struct elf_image *img;
	struct err err = {""};
	int rc = elf_image_from_memory(&img, m->bytes, sizeof(m->bytes), "made", &err);

	if (rc)
		print_error("%s\n", err.msg);
	assert_int_equal(rc, 0);
	return img;
}

static void assert_refused(const void *bytes, size_t n, int code, const char *sentence)
{
	struct elf_image *img = (void *)1;
	struct err err = {""};

	assert_int_equal(elf_image_from_memory(&img, bytes, n, "made", &err), code);
	assert_string_equal(err.msg, sentence);
	assert_null(img);
}

static void a_sound_file_is_read(void **state)
{
	static const uint8_t id[] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct made m;
	struct elf_image *img;

	(void)state;
	make_elf(&m, MADE_PIE);
	img = open_made(&m);
	assert_int_equal(img->kind, ELF_KIND_PIE);
	assert_int_equal(img->nsegments, 2);
	assert_int_equal(img->nsections, SH_COUNT);
	assert_int_equal(img->entry, MADE_BASE + 0x800);
	assert_int_equal(img->build_id_len, sizeof(id));
	assert_memory_equal(img->build_id, id, sizeof(id));
	assert_string_equal(img->interp, "/lib64/ld-linux-x86-64.so.2");
	assert_string_equal(img->sections[SH_TEXT].name, ".text");
	assert_ptr_equal(elf_image_section(img, ".text"), &img->sections[SH_TEXT]);
	assert_ptr_equal(elf_image_section_at(img, MADE_BASE + 0x980), &img->sections[SH_PLT]);
	assert_null(elf_image_section_at(img, MADE_BASE));
	assert_ptr_equal(elf_image_at(img, MADE_BASE + 0x800, 4), m.bytes + 0x800);
	assert_ptr_equal(elf_image_at(img, MADE_BASE + 0x2200, 8), m.bytes + 0x1200);
	assert_null(elf_image_at(img, MADE_BASE + 0xffd, 4));
	assert_null(elf_image_at(img, MADE_BASE + 0x1800, 1));
	assert_null(elf_image_at(img, UINT64_MAX, 1));
	assert_int_equal(elf_image_room(img, MADE_BASE + 0xffd), 3);
	assert_int_equal(elf_image_room(img, MADE_BASE - 1), 0);
	assert_true(elf_image_is_exec(img, MADE_BASE));
	assert_false(elf_image_is_exec(img, MADE_BASE + 0x2000));
	assert_false(img->has_text_relocs);
	elf_image_close(img);
}

static void kinds_are_told(void **state)
{
	static const struct {
		enum made_kind made;
		enum elf_kind kind;
	} cases[] = {
		{MADE_EXEC, ELF_KIND_EXEC},     {MADE_PIE, ELF_KIND_PIE},
		{MADE_SHARED, ELF_KIND_SHARED}, {MADE_LIBC, ELF_KIND_SHARED},
		{MADE_STATIC, ELF_KIND_STATIC}, {MADE_STATIC_PIE, ELF_KIND_STATIC},
	};
	struct made m;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct elf_image *img;

		make_elf(&m, cases[i].made);
		img = open_made(&m);
		assert_int_equal(img->kind, cases[i].kind);
		elf_image_close(img);
	}
}

static void other_machines_are_named(void **state)
{
	struct made m;

	(void)state;
	make_elf(&m, MADE_PIE);
	m.bytes[EI_CLASS] = ELFCLASS32;
	MADE_EHDR(&m)->e_machine = EM_386;
	assert_refused(&m, sizeof(m), -EPROTO, "made is a 32-bit program; kron traces x86-64 only");
	MADE_EHDR(&m)->e_machine = EM_X86_64;
	assert_refused(&m, sizeof(m), -EPROTO,
		       "made is an x32 program (64-bit code with 32-bit "
		       "pointers); kron traces x86-64 only");
	MADE_EHDR(&m)->e_machine = EM_ARM;
	assert_refused(&m, sizeof(m), -EPROTO, "made is for 32-bit Arm; kron traces x86-64 only");
	m.bytes[EI_CLASS] = ELFCLASS64;
	MADE_EHDR(&m)->e_machine = EM_AARCH64;
	assert_refused(&m, sizeof(m), -EPROTO, "made is for AArch64; kron traces x86-64 only");
	MADE_EHDR(&m)->e_machine = 4711;
	assert_refused(&m, sizeof(m), -EPROTO,
		       "made is for another machine (ELF number 4711); "
		       "kron traces x86-64 only");
	m.bytes[EI_DATA] = ELFDATA2MSB;
	assert_refused(&m, sizeof(m), -EPROTO,
		       "made is for a big-endian machine; kron traces x86-64 only");
}

static void what_is_no_program_is_named(void **state)
{
	struct made m;

	(void)state;
	assert_refused("hello, world", 12, -ENOEXEC, "made is not an ELF file");
	assert_refused("", 0, -ENOEXEC, "made is not an ELF file");
	assert_refused("#!/bin/sh", 9, -ENOEXEC, "made is a script, not an ELF file");
	make_elf(&m, MADE_PIE);
	MADE_EHDR(&m)->e_type = ET_REL;
	assert_refused(&m, sizeof(m), -ENOEXEC, "made is an object file that was not linked yet");
	MADE_EHDR(&m)->e_type = ET_CORE;
	assert_refused(&m, sizeof(m), -ENOEXEC, "made is a core dump, not a program");
	MADE_EHDR(&m)->e_type = 77;
	assert_refused(&m, sizeof(m), -ENOEXEC, "made is damaged: its ELF type 77 is unknown");
	m.bytes[EI_VERSION] = EV_NONE;
	assert_refused(&m, sizeof(m), -ENOEXEC, "made is damaged: its ELF version is unknown");
}

static void files_that_cannot_be_opened_are_named(void **state)
{
	struct elf_image *img;
	struct err err;

	(void)state;
	assert_int_equal(elf_image_open(&img, "/nowhere/x", &err), -ENOENT);
	assert_string_equal(err.msg, "cannot open /nowhere/x: No such file or directory");
	assert_int_equal(elf_image_open(&img, "/", &err), -EISDIR);
	assert_string_equal(err.msg, "/ is a directory");
	assert_int_equal(elf_image_open(&img, "/dev/null", &err), -ENOEXEC);
	assert_string_equal(err.msg, "/dev/null is not a regular file");
	assert_int_equal(elf_image_open(&img, "/proc/self/exe", &err), 0);
	assert_true(img->file.ino && img->file.ctime_ns && img->fd >= 0);
	elf_image_close(img);
}

static void lying_program_headers_are_refused(void **state)
{
	struct made m;

	(void)state;
	make_elf(&m, MADE_PIE);
	assert_refused(&m, 100, -ENOEXEC,
		       "made is truncated: program headers lie past the end of the file");
	assert_refused(&m, 40, -ENOEXEC, "made is truncated: it ends inside its ELF header");
	assert_refused(&m, 0x1200, -ENOEXEC,
		       "made is truncated: a segment lies past the end of the file");
	MADE_EHDR(&m)->e_phoff = UINT64_MAX - 8;
	assert_refused(&m, sizeof(m), -ENOEXEC,
		       "made is truncated: program headers lie past the end of the file");
	make_elf(&m, MADE_PIE);
	MADE_EHDR(&m)->e_phentsize = 1;
	assert_refused(&m, sizeof(m), -ENOEXEC,
		       "made is damaged: its program headers have a wrong size");
	make_elf(&m, MADE_PIE);
	MADE_EHDR(&m)->e_phnum = 0;
	assert_refused(&m, sizeof(m), -ENOEXEC,
		       "made has no program headers: nothing of it is loaded");
	make_elf(&m, MADE_PIE);
	MADE_PHDR(&m, PH_TEXT)->p_memsz = 1;
	assert_refused(&m, sizeof(m), -ENOEXEC,
		       "made is damaged: a segment is larger in the file than in memory");
	make_elf(&m, MADE_PIE);
	MADE_PHDR(&m, PH_DATA)->p_vaddr = MADE_BASE + 0x800;
	assert_refused(&m, sizeof(m), -ENOEXEC, "made is damaged: its segments overlap");
	make_elf(&m, MADE_PIE);
	MADE_PHDR(&m, PH_DATA)->p_vaddr = UINT64_MAX - 0x100;
	assert_refused(&m, sizeof(m), -ENOEXEC,
		       "made is damaged: a segment lies outside the address space");
	make_elf(&m, MADE_PIE);
	MADE_PHDR(&m, PH_TEXT)->p_memsz = 1ull << 40;
	MADE_PHDR(&m, PH_DATA)->p_vaddr = 1ull << 41;
	assert_refused(&m, sizeof(m), -ENOEXEC, "made spreads its code over more than 4 GiB");
	make_elf(&m, MADE_PIE);
	MADE_PHDR(&m, PH_TEXT)->p_type = MADE_PHDR(&m, PH_DATA)->p_type = PT_NULL;
	assert_refused(&m, sizeof(m), -ENOEXEC, "made has no segment to load");
}

static void lying_section_headers_are_dropped(void **state)
{
	struct made m;
	struct elf_image *img;

	(void)state;
	make_elf(&m, MADE_PIE);
	MADE_EHDR(&m)->e_shoff = UINT64_MAX - 4;
	img = open_made(&m);
	assert_int_equal(img->nsections, 0);
	elf_image_close(img);
	MADE_EHDR(&m)->e_shoff = 0x1800;
	MADE_EHDR(&m)->e_shnum = 60000;
	img = open_made(&m);
	assert_int_equal(img->nsections, 0);
	elf_image_close(img);
	make_elf(&m, MADE_PIE);
	MADE_SHDR(&m, SH_TEXT)->sh_size = 1ull << 60;
	MADE_SHDR(&m, SH_TEXT)->sh_name = UINT32_MAX;
	img = open_made(&m);
	assert_int_equal(img->sections[SH_TEXT].size, MADE_SIZE - 0x800);
	assert_string_equal(img->sections[SH_TEXT].name, "");
	elf_image_close(img);
	make_elf(&m, MADE_PIE);
	memset(m.bytes + 0x1700, 'x', 0x100); /* a string table without any NUL */
	img = open_made(&m);
	assert_string_equal(img->sections[SH_TEXT].name, "");
	elf_image_close(img);
	make_elf(&m, MADE_PIE);
	MADE_EHDR(&m)->e_shstrndx = SH_TEXT; /* not a string table */
	img = open_made(&m);
	assert_string_equal(img->sections[SH_TEXT].name, "");
	elf_image_close(img);
}

/* The made file with n headers like `sh` for sections: the caller frees it. */
static struct made *with_sections(unsigned n, const Elf64_Shdr *sh, size_t *size)
{
	struct made *m;

	*size = sizeof(*m) + n * sizeof(*sh);
	m = malloc(*size);
	assert_non_null(m);
	make_elf(m, MADE_PIE);
	MADE_EHDR(m)->e_shoff = sizeof(*m);
	MADE_EHDR(m)->e_shnum = (uint16_t)n;
	MADE_EHDR(m)->e_shstrndx = 0;
	for (unsigned i = 0; i < n; i++)
		memcpy((uint8_t *)(m + 1) + i * sizeof(*sh), sh, sizeof(*sh));
	return m;
}

/* They would cost memory or time without end, in libelf or here. */
static void tables_without_end_are_refused(void **state)
{
	const Elf64_Shdr rela = {
		.sh_type = SHT_RELA, .sh_flags = SHF_ALLOC, .sh_offset = 0x400, .sh_size = 24};
	const Elf64_Shdr filler = {.sh_name = 1,
				   .sh_type = 1}; /* or: DT_NEEDED, twice, and so on */
	Elf64_Phdr *dynamic;
	struct made m, *big;
	size_t size;

	(void)state;
	make_elf(&m, MADE_PIE);
	MADE_EHDR(&m)->e_shnum = 0;
	MADE_SHDR(&m, 0)->sh_size = UINT32_MAX + 1ull;
	assert_refused(&m, sizeof(m), -ENOEXEC,
		       "made is damaged: it has more than 1048576 section headers");
	MADE_SHDR(&m, 0)->sh_size = SH_COUNT;
	elf_image_close(open_made(&m));
	big = with_sections(1025, &rela, &size);
	assert_refused(big, size, -ENOEXEC, "made is damaged: it has 1025 sections of relocations");
	free(big);
	big = with_sections(1u << 14, &filler, &size); /* 64 bytes each */
	memset(big + 1, 1, size - sizeof(*big));
	MADE_EHDR(big)->e_shoff = 0;
	dynamic = MADE_PHDR(big, PH_DYNAMIC);
	dynamic->p_offset = sizeof(*big);
	dynamic->p_filesz = size - sizeof(*big);
	assert_refused(big, size, -ENOEXEC,
		       "made is damaged: it has more than 65535 dynamic entries");
	free(big);
}

/* ---- symbols ---- */

static bool count_symbol(const struct elf_symbol *sym, void *ctx)
{
	assert_non_null(sym->name);
	++*(unsigned int *)ctx;
	return true;
}

static unsigned int count_symbols(const struct made *m, uint32_t type)
{
	struct elf_image *img = open_made(m);
	unsigned int n = 0;

	elf_symbols_for_each(img, type, count_symbol, &n);
	elf_image_close(img);
	return n;
}

static void symbols_are_read(void **state)
{
	struct made m;
	struct elf_image *img;
	struct elf_symbol sym;

	(void)state;
	make_elf(&m, MADE_PIE);
	assert_int_equal(count_symbols(&m, SHT_SYMTAB), 6);
	assert_int_equal(count_symbols(&m, SHT_DYNSYM), 1);
	img = open_made(&m);
	assert_true(elf_symbols_lookup(img, "b", &sym));
	assert_int_equal(sym.value, MADE_BASE + 0x820);
	assert_true(elf_symbols_lookup(img, "c", &sym));
	assert_false(elf_symbols_lookup(img, "nothing", &sym));
	elf_image_close(img);
	made_drop_sections(&m);
	assert_int_equal(count_symbols(&m, SHT_SYMTAB), 0);
	assert_int_equal(count_symbols(&m, SHT_DYNSYM), 1);
}

static void tables_need_no_alignment(void **state)
{
	struct made m;
	struct elf_image *img;
	struct elf_symbol sym;

	(void)state;
	make_elf(&m, MADE_PIE);
	memmove(m.bytes + 0x1403, m.bytes + 0x1400, 7 * sizeof(Elf64_Sym));
	MADE_SHDR(&m, SH_SYMTAB)->sh_offset += 3;
	memmove(m.bytes + 0x241, m.bytes + 0x240, 24);
	MADE_PHDR(&m, PH_NOTE)->p_offset++;
	assert_int_equal(count_symbols(&m, SHT_SYMTAB), 6);
	img = open_made(&m);
	assert_true(elf_symbols_lookup(img, "b", &sym));
	assert_int_equal(sym.value, MADE_BASE + 0x820);
	assert_int_equal(img->build_id_len, 8);
	assert_int_equal(img->build_id[7], 8);
	elf_image_close(img);
}

/* Its padding belongs to no note. */
static void the_last_note_may_end_unpadded(void **state)
{
	struct made m;
	struct elf_image *img;

	(void)state;
	make_elf(&m, MADE_PIE);
	made_put32(&m, 0x244, 7); /* n_descsz */
	MADE_PHDR(&m, PH_NOTE)->p_filesz = 23;
	img = open_made(&m);
	assert_int_equal(img->build_id_len, 7);
	elf_image_close(img);
}

static void lying_symbol_tables_give_less(void **state)
{
	struct made m;

	(void)state;
	make_elf(&m, MADE_PIE);
	MADE_SHDR(&m, SH_SYMTAB)->sh_size = 24ull << 60;
	MADE_SHDR(&m, SH_DYNSYM)->sh_link = SH_DYNSYM; /* a table that is its own strings */
	MADE_SHDR(&m, SH_SYMTAB)->sh_link = UINT32_MAX;
	assert_in_range(count_symbols(&m, SHT_SYMTAB), 0, MADE_SIZE / 24);
	assert_int_equal(count_symbols(&m, SHT_DYNSYM), 1);
	make_elf(&m, MADE_PIE);
	made_drop_sections(&m);
	made_put32(&m, 0x384, UINT32_MAX); /* DT_HASH: four billion symbols */
	assert_in_range(count_symbols(&m, SHT_DYNSYM), 0, MADE_SIZE / 24);
}

/* ---- address constants ---- */

struct seen {
	uint64_t v[4096];
	size_t n;
};

static void see(uint64_t value, void *ctx)
{
	struct seen *s = ctx;

	if (s->n < 4096)
		s->v[s->n++] = value - MADE_BASE;
}

static bool has(const struct seen *s, uint64_t off)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i] == off)
			return true;
	return false;
}

static struct seen constants_of(const struct made *m)
{
	struct elf_image *img = open_made(m);
	struct seen s = {.n = 0};

	elf_image_for_each_address_constant(img, see, &s);
	elf_image_close(img);
	return s;
}

static void address_constants_are_found(void **state)
{
	struct made m;
	struct seen s;

	(void)state;
	make_elf(&m, MADE_PIE);
	s = constants_of(&m);
	assert_true(has(&s, 0x800)); /* entry */
	assert_true(has(&s, 0x801)); /* RELATIVE */
	assert_true(has(&s, 0x820)); /* IRELATIVE */
	assert_true(has(&s, 0x840)); /* GLOB_DAT c */
	assert_true(has(&s, 0x803)); /* RELR, the address itself */
	assert_true(has(&s, 0x804)); /* RELR, by the map */
	assert_int_equal(s.n, 6);    /* a symbol number out of bounds adds none */
	make_elf(&m, MADE_STATIC);
	memcpy(m.bytes + 0x13f8, &(uint64_t){MADE_BASE + 0x844}, 8);
	s = constants_of(&m); /* plain words of .data, relocations by section */
	assert_true(has(&s, 0x803) && has(&s, 0x804) && has(&s, 0x844) && has(&s, 0x820));
	made_drop_sections(&m);
	s = constants_of(&m);
	assert_true(has(&s, 0x803) && has(&s, 0x804) && has(&s, 0x844));
}

static void lying_relocations_give_less(void **state)
{
	struct made m;

	(void)state;
	make_elf(&m, MADE_PIE);
	MADE_DYN(&m)[5].d_un.d_val = 1ull << 60; /* DT_RELASZ */
	MADE_DYN(&m)[7].d_un.d_val = UINT64_MAX; /* DT_RELRSZ */
	constants_of(&m);
	MADE_DYN(&m)[4].d_un.d_ptr = UINT64_MAX - 3;    /* DT_RELA */
	MADE_DYN(&m)[6].d_un.d_ptr = 1;                 /* DT_RELR */
	MADE_DYN(&m)[0].d_un.d_ptr = MADE_BASE + 0xfff; /* DT_SYMTAB */
	constants_of(&m);
}

/* ---- damage ---- */

static void use(const uint8_t *bytes, size_t n)
{
	struct elf_image *img;
	struct functions f;
	struct frame_info *fi;
	struct seen s = {.n = 0};
	struct err err = {""};

	if (elf_image_from_memory(&img, bytes, n, "made", &err)) {
		assert_true(*err.msg);
		return;
	}
	elf_image_for_each_address_constant(img, see, &s);
	functions_find_with(&f, img,
			    &(struct functions_options){.sources = FUNCTION_ALL_SOURCES &
								   ~FUNCTION_DEBUG_FILE},
			    &err);
	fi = frame_info_open(img);
	frame_info_for_each_landing_pad(fi, see, &s);
	for (size_t i = 0; i < f.n; i++) {
		assert_true(f.v[i].start < f.v[i].end);
		assert_true(!i || f.v[i - 1].end <= f.v[i].start);
		assert_non_null(elf_image_at(img, f.v[i].start, f.v[i].end - f.v[i].start));
		assert_true(f.v[i].parent < f.n);
		frame_info_cfa_from_sp(fi, f.v[i].start);
		frame_info_cfa_from_sp(fi, f.v[i].end - 1);
	}
	frame_info_close(fi);
	functions_free(&f);
	elf_image_close(img);
}

/* A copy on the heap of just that size, so that a sanitizer sees one byte too far. */
static void use_copy(const uint8_t *bytes, size_t n)
{
	uint8_t *copy = xmalloc(n);

	memcpy(copy, bytes, n);
	use(copy, n);
	xfree(copy);
}

static void every_truncation_is_survived(void **state)
{
	struct made m;

	(void)state;
	make_elf(&m, MADE_PIE);
	for (size_t n = 0; n <= sizeof(m.bytes); n++)
		use_copy(m.bytes, n);
}

static void every_single_byte_may_be_wrong(void **state)
{
	static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
	struct made m;

	(void)state;
	for (int kind = MADE_PIE; kind <= MADE_STATIC; kind += MADE_STATIC - MADE_PIE) {
		make_elf(&m, kind);
		for (size_t i = 0; i < sizeof(m.bytes); i++) {
			uint8_t old = m.bytes[i];

			for (size_t v = 0; v < sizeof(values); v++) {
				m.bytes[i] = values[v];
				use(m.bytes, sizeof(m.bytes));
			}
			m.bytes[i] = old;
		}
	}
}

static void random_damage_is_survived(void **state)
{
	uint64_t seed = 20240229;
	struct made m, bad;

	(void)state;
	make_elf(&m, MADE_PIE);
	for (int round = 0; round < 20000; round++) {
		bad = m;
		for (int i = 0; i < 1 + round % 8; i++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			bad.bytes[(seed >> 33) % sizeof(bad.bytes)] ^= seed >> 25;
		}
		use(bad.bytes, sizeof(bad.bytes));
	}
}

/* ---- names ---- */

static void assert_demangles(const char *raw, const char *want)
{
	char *got = symbol_demangle(raw);

	if (want)
		assert_string_equal(got, want);
	else
		assert_null(got);
	xfree(got);
}

static void names_are_demangled(void **state)
{
	(void)state;
	assert_demangles("_Z3fooiPc", "foo");
	assert_demangles("_ZN3foo3barEv.part.0", "foo::bar");
	assert_demangles("_ZNSt6vectorIiSaIiEE9push_backERKi",
			 "std::vector<int, std::allocator<int> >::push_back");
	assert_demangles("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
			 "core::fmt::Write::write_fmt");
	assert_demangles("_RNvCs1234_7mycrate3foo", "mycrate::foo");
	assert_demangles("main", NULL);
	assert_demangles("_Zxx", NULL);
	assert_demangles("", NULL);
}

/* A few hundred bytes that stand for 2^60: pair<pair<...>, pair<...> >. */
static void hostile_names_end_soon(void **state)
{
	char name[4096] = "_Z1fISt4pairI1a1aE", *huge;
	size_t n = strlen(name);

	(void)state;
	for (int i = 0; i < 60; i++) {
		char s[8];

		snprintf(s, sizeof(s), i < 1 ? "S0_" : "S%c_", i < 10 ? '0' + i : 'A' + i % 26);
		n += snprintf(name + n, sizeof(name) - n, "St4pairI%s%sE", s, s);
	}
	snprintf(name + n, sizeof(name) - n, "Evv");
	xfree(symbol_demangle(name));
	huge = xmalloc(1 << 20);
	memset(huge, 'P', 1 << 20);
	memcpy(huge, "_Z1f", 4);
	huge[(1 << 20) - 1] = 0;
	assert_null(symbol_demangle(huge));
	huge[4000] = 0;
	xfree(symbol_demangle(huge));
	xfree(huge);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sound_file_is_read),
		cmocka_unit_test(kinds_are_told),
		cmocka_unit_test(other_machines_are_named),
		cmocka_unit_test(what_is_no_program_is_named),
		cmocka_unit_test(files_that_cannot_be_opened_are_named),
		cmocka_unit_test(lying_program_headers_are_refused),
		cmocka_unit_test(lying_section_headers_are_dropped),
		cmocka_unit_test(tables_without_end_are_refused),
		cmocka_unit_test(symbols_are_read),
		cmocka_unit_test(tables_need_no_alignment),
		cmocka_unit_test(the_last_note_may_end_unpadded),
		cmocka_unit_test(lying_symbol_tables_give_less),
		cmocka_unit_test(address_constants_are_found),
		cmocka_unit_test(lying_relocations_give_less),
		cmocka_unit_test(every_truncation_is_survived),
		cmocka_unit_test(every_single_byte_may_be_wrong),
		cmocka_unit_test(random_damage_is_survived),
		cmocka_unit_test(names_are_demangled),
		cmocka_unit_test(hostile_names_end_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
