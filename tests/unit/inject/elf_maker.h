/* SPDX-License-Identifier: MIT */
/*
 * elf_maker.h - a small made-up ELF file for tests to damage.
 *
 *   off     what                                   vaddr = base + off
 *   0x000   ELF header, 0x040 program headers
 *   0x200   interpreter, 0x240 build-id note
 *   0x280   .dynsym, 0x340 .dynstr, 0x380 .hash
 *   0x400   .rela.dyn, 0x480 .relr
 *   0x500   .eh_frame_hdr, 0x520 .eh_frame, 0x700 .gcc_except_table
 *   0x800   .text: a, b, c; 0x900 the cold part of a; 0x980 .plt
 *   0x1000  .dynamic                               vaddr = base + 0x1000 + off, writable
 *   0x1200  .data
 *   0x1400  .symtab, 0x1600 .strtab, 0x1700 .shstrtab, 0x1800 section headers   (not loaded)
 *
 *   a  0x800..0x818  sub $8,%rsp; call b; test; jne a.cold; add $8,%rsp; ret
 *   b  0x820..0x827  xor %eax,%eax; jmp c
 *   c  0x840..0x841  ret          (global, in .dynsym)
 *   a.cold 0x900..0x902  ud2      (frame: 16 bytes above rsp)
 */
#ifndef TESTS_UNIT_ELF_MAKER_H
#define TESTS_UNIT_ELF_MAKER_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MADE_SIZE 0x1d00
#define MADE_BASE 0x10000ull

enum made_kind { MADE_PIE, MADE_EXEC, MADE_SHARED, MADE_LIBC, MADE_STATIC, MADE_STATIC_PIE };

enum made_phdr { PH_TEXT, PH_DATA, PH_DYNAMIC, PH_INTERP, PH_NOTE, PH_EH, PH_COUNT };

enum made_section {
	SH_NULL,
	SH_TEXT,
	SH_PLT,
	SH_DYNSYM,
	SH_DYNSTR,
	SH_RELA,
	SH_EH_FRAME,
	SH_DYNAMIC,
	SH_DATA,
	SH_SYMTAB,
	SH_STRTAB,
	SH_SHSTRTAB,
	SH_COUNT
};

struct made {
	uint8_t bytes[MADE_SIZE];
};

#define MADE_AT(m, off, type) ((type *)((m)->bytes + (off)))
#define MADE_EHDR(m) MADE_AT(m, 0, Elf64_Ehdr)
#define MADE_PHDR(m, i) (MADE_AT(m, 0x40, Elf64_Phdr) + (i))
#define MADE_SHDR(m, i) (MADE_AT(m, 0x1800, Elf64_Shdr) + (i))
#define MADE_DYN(m) MADE_AT(m, 0x1000, Elf64_Dyn)
#define MADE_DYNSYM(m, i) (MADE_AT(m, 0x280, Elf64_Sym) + (i))
#define MADE_SYMTAB(m, i) (MADE_AT(m, 0x1400, Elf64_Sym) + (i))
#define MADE_RELA(m, i) (MADE_AT(m, 0x400, Elf64_Rela) + (i))

static inline void made_phdr(struct made *m, enum made_phdr i, uint32_t type, uint32_t flags,
			     uint64_t off, uint64_t size)
{
	uint64_t vaddr = MADE_BASE + off + (off >= 0x1000 ? 0x1000 : 0);

	*MADE_PHDR(m, i) = (Elf64_Phdr){.p_type = type,
					.p_flags = flags,
					.p_offset = off,
					.p_vaddr = vaddr,
					.p_paddr = vaddr,
					.p_filesz = size,
					.p_memsz = size,
					.p_align = type == PT_LOAD ? 0x1000 : 4};
}

static inline void made_section(struct made *m, enum made_section i, const char *name,
				uint32_t type, uint64_t flags, uint64_t off, uint64_t size,
				uint32_t link)
{
	char *names = (char *)m->bytes + 0x1700;
	uint32_t at = 1;

	while (names[at])
		at += strlen(names + at) + 1;
	strcpy(names + at, name);
	*MADE_SHDR(m, i) = (Elf64_Shdr){
		.sh_name = at,
		.sh_type = type,
		.sh_flags = flags,
		.sh_offset = off,
		.sh_size = size,
		.sh_link = link,
		.sh_addr = flags & SHF_ALLOC ? MADE_BASE + off + (off >= 0x1000 ? 0x1000 : 0) : 0,
	};
}

/* One table's symbol; names is the offset of its string table in the file. */
static inline void made_symbol(struct made *m, Elf64_Sym *sym, uint64_t names, const char *name,
			       int bind, int type, uint64_t off, uint64_t size)
{
	char *table = (char *)m->bytes + names;
	uint32_t at = 1;

	while (table[at])
		at += strlen(table + at) + 1;
	strcpy(table + at, name);
	*sym = (Elf64_Sym){.st_name = at,
			   .st_info = ELF64_ST_INFO(bind, type),
			   .st_shndx = SH_TEXT,
			   .st_value = MADE_BASE + off,
			   .st_size = size};
}

static inline void made_put32(struct made *m, uint64_t off, uint32_t v)
{
	memcpy(m->bytes + off, &v, sizeof(v));
}

/* Returns where the next entry goes. */
static inline uint64_t made_fde(struct made *m, uint64_t at, uint64_t start, uint64_t end,
				const void *insns, size_t n)
{
	uint64_t length = (4 + 4 + 4 + 1 + n + 7) & ~7ull;

	made_put32(m, at, length);
	made_put32(m, at + 4, at + 4 - 0x520);
	made_put32(m, at + 8, start - (at + 8));
	made_put32(m, at + 12, end - start);
	m->bytes[at + 16] = 0; /* no augmentation data */
	memcpy(m->bytes + at + 17, insns, n);
	return at + 4 + length;
}

static inline void made_eh_frame(struct made *m)
{
	static const uint8_t cie[] = {0x14, 0,    0,  0, 0,    0,    0, 0, 1,    'z', 'R', 0,
				      1,    0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1,   0,   0};
	/* advance 4, CFA rsp+16; advance 0x13, CFA rsp+8 */
	static const uint8_t rows[] = {0x44, 0x0e, 16, 0x53, 0x0e, 8};
	static const uint8_t cold[] = {0x0e, 16};
	static const uint8_t header[] = {1, 0x1b, 0xff, 0xff};
	uint64_t at = 0x520 + sizeof(cie);

	memcpy(m->bytes + 0x520, cie, sizeof(cie));
	at = made_fde(m, at, 0x800, 0x819, rows, sizeof(rows));
	at = made_fde(m, at, 0x900, 0x902, cold, sizeof(cold));
	at = made_fde(m, at, 0x820, 0x827, "", 0);
	at = made_fde(m, at, 0x840, 0x841, "", 0);
	at = made_fde(m, at, 0x980, 0x9a0, "", 0); /* what linkers write for .plt */
	memcpy(m->bytes + 0x500, header, sizeof(header));
	made_put32(m, 0x504, 0x520 - 0x504);
	made_section(m, SH_EH_FRAME, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, 0x520, at + 4 - 0x520,
		     0);
}

static inline void made_code(struct made *m)
{
	static const uint8_t a[] = {0x48, 0x83, 0xec, 0x08, 0xe8, 0x17, 0,   0, 0,
				    0x85, 0xc0, 0x0f, 0x85, 0xef, 0,    0,   0, 0x90,
				    0x90, 0x48, 0x83, 0xc4, 0x08, 0x90, 0xc3};
	static const uint8_t b[] = {0x31, 0xc0, 0xe9, 0x19, 0, 0, 0};
	static const uint8_t plt[] = {0xff, 0x25, 0, 0, 0, 0, 0x66, 0x90};

	memset(m->bytes + 0x800, 0xcc, 0x800);
	memcpy(m->bytes + 0x800, a, sizeof(a));
	memcpy(m->bytes + 0x820, b, sizeof(b));
	m->bytes[0x840] = 0xc3;
	memcpy(m->bytes + 0x900, "\x0f\x0b", 2);
	for (int i = 0; i < 4; i++)
		memcpy(m->bytes + 0x980 + 8 * i, plt, sizeof(plt));
}

static inline void made_dynamic(struct made *m, enum made_kind kind)
{
	Elf64_Dyn *d = MADE_DYN(m);

	*d++ = (Elf64_Dyn){DT_SYMTAB, {MADE_BASE + 0x280}};
	*d++ = (Elf64_Dyn){DT_STRTAB, {MADE_BASE + 0x340}};
	*d++ = (Elf64_Dyn){DT_STRSZ, {0x40}};
	*d++ = (Elf64_Dyn){DT_HASH, {MADE_BASE + 0x380}};
	*d++ = (Elf64_Dyn){DT_RELA, {MADE_BASE + 0x400}};
	*d++ = (Elf64_Dyn){DT_RELASZ, {4 * sizeof(Elf64_Rela)}};
	*d++ = (Elf64_Dyn){36 /* DT_RELR */, {MADE_BASE + 0x480}};
	*d++ = (Elf64_Dyn){35 /* DT_RELRSZ */, {16}};
	if (kind == MADE_SHARED || kind == MADE_LIBC)
		*d++ = (Elf64_Dyn){DT_SONAME, {1}};
	if (kind == MADE_PIE || kind == MADE_STATIC_PIE)
		*d++ = (Elf64_Dyn){DT_FLAGS_1, {DF_1_PIE}};
	*d = (Elf64_Dyn){DT_NULL, {0}};
}

static inline void made_relocs(struct made *m)
{
	uint64_t relr[] = {MADE_BASE + 0x2200, 1 | 1 << 1}, word;

	*MADE_RELA(m, 0) = (Elf64_Rela){MADE_BASE + 0x2300, R_X86_64_RELATIVE, MADE_BASE + 0x801};
	*MADE_RELA(m, 1) = (Elf64_Rela){MADE_BASE + 0x2308, R_X86_64_IRELATIVE, MADE_BASE + 0x820};
	*MADE_RELA(m, 2) =
		(Elf64_Rela){MADE_BASE + 0x2310, ELF64_R_INFO(1ull, R_X86_64_GLOB_DAT), 0};
	*MADE_RELA(m, 3) =
		(Elf64_Rela){MADE_BASE + 0x2318, ELF64_R_INFO(1ull << 24, R_X86_64_64), 5};
	memcpy(m->bytes + 0x480, relr, sizeof(relr));
	word = MADE_BASE + 0x803;
	memcpy(m->bytes + 0x1200, &word, 8);
	word = MADE_BASE + 0x804;
	memcpy(m->bytes + 0x1208, &word, 8);
}

static inline void made_symbols(struct made *m)
{
	made_symbol(m, MADE_DYNSYM(m, 1), 0x340, "c", STB_GLOBAL, STT_FUNC, 0x840, 1);
	made_put32(m, 0x380, 1); /* DT_HASH: nbucket, nchain = number of symbols */
	made_put32(m, 0x384, 2);
	made_symbol(m, MADE_SYMTAB(m, 1), 0x1600, "a", STB_LOCAL, STT_FUNC, 0x800, 0x19);
	made_symbol(m, MADE_SYMTAB(m, 2), 0x1600, "__b", STB_LOCAL, STT_FUNC, 0x820, 7);
	made_symbol(m, MADE_SYMTAB(m, 3), 0x1600, "b", STB_GLOBAL, STT_FUNC, 0x820, 7);
	made_symbol(m, MADE_SYMTAB(m, 4), 0x1600, "a.cold", STB_LOCAL, STT_FUNC, 0x900, 2);
	made_symbol(m, MADE_SYMTAB(m, 5), 0x1600, "c@@V1", STB_GLOBAL, STT_FUNC, 0x840, 1);
	made_symbol(m, MADE_SYMTAB(m, 6), 0x1600, "label", STB_LOCAL, STT_NOTYPE, 0x804, 0);
}

static inline void made_sections(struct made *m)
{
	made_section(m, SH_TEXT, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x800, 0x180, 0);
	made_section(m, SH_PLT, ".plt", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x980, 0x20, 0);
	made_section(m, SH_DYNSYM, ".dynsym", SHT_DYNSYM, SHF_ALLOC, 0x280, 48, SH_DYNSTR);
	made_section(m, SH_DYNSTR, ".dynstr", SHT_STRTAB, SHF_ALLOC, 0x340, 0x40, 0);
	made_section(m, SH_RELA, ".rela.dyn", SHT_RELA, SHF_ALLOC, 0x400, 96, SH_DYNSYM);
	made_section(m, SH_DYNAMIC, ".dynamic", SHT_DYNAMIC, SHF_ALLOC, 0x1000, 0x200, SH_DYNSTR);
	made_section(m, SH_DATA, ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0x1200, 0x200, 0);
	made_section(m, SH_SYMTAB, ".symtab", SHT_SYMTAB, 0, 0x1400, 7 * 24, SH_STRTAB);
	made_section(m, SH_STRTAB, ".strtab", SHT_STRTAB, 0, 0x1600, 0x100, 0);
	made_section(m, SH_SHSTRTAB, ".shstrtab", SHT_STRTAB, 0, 0x1700, 0x100, 0);
}

static inline void make_elf(struct made *m, enum made_kind kind)
{
	static const uint8_t note[] = {4, 0, 0, 0,   8,   0,   0, 0, NT_GNU_BUILD_ID,
				       0, 0, 0, 'G', 'N', 'U', 0, 1, 2,
				       3, 4, 5, 6,   7,   8};
	bool has_interp = kind == MADE_PIE || kind == MADE_EXEC || kind == MADE_LIBC;

	memset(m, 0, sizeof(*m));
	*MADE_EHDR(m) = (Elf64_Ehdr){
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = kind == MADE_EXEC || kind == MADE_STATIC ? ET_EXEC : ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_entry = MADE_BASE + 0x800,
		.e_phoff = 0x40,
		.e_shoff = 0x1800,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = PH_COUNT,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = SH_COUNT,
		.e_shstrndx = SH_SHSTRTAB,
	};
	made_phdr(m, PH_TEXT, PT_LOAD, PF_R | PF_X, 0, 0x1000);
	made_phdr(m, PH_DATA, PT_LOAD, PF_R | PF_W, 0x1000, 0x400);
	made_phdr(m, PH_DYNAMIC, kind == MADE_STATIC ? PT_NULL : PT_DYNAMIC, PF_R, 0x1000, 0x200);
	made_phdr(m, PH_INTERP, has_interp ? PT_INTERP : PT_NULL, PF_R, 0x200, 28);
	made_phdr(m, PH_NOTE, PT_NOTE, PF_R, 0x240, sizeof(note));
	made_phdr(m, PH_EH, PT_GNU_EH_FRAME, PF_R, 0x500, 8);
	strcpy((char *)m->bytes + 0x200, "/lib64/ld-linux-x86-64.so.2");
	memcpy(m->bytes + 0x240, note, sizeof(note));
	made_code(m);
	made_sections(m);
	made_eh_frame(m);
	made_relocs(m);
	made_symbols(m);
	made_dynamic(m, kind);
}

#define MADE_GO 0x1200 /* where the table is, and how long */
#define MADE_GO_SIZE 0x100
#define MADE_GO_NAMES 0x50
#define MADE_GO_INDEX 0x60
#define MADE_GO_FUNCS 0xa0

/*
 * A static file whose functions a, b and c (0x800, 0x820, 0x840 to 0x848) only Go's table names, in
 * the form of this magic number: 0xfffffffb and 0xfffffffa have addresses, 0xfffffff0 and
 * 0xfffffff1 distances from the text's start.
 */
static inline void make_go_elf(struct made *m, uint32_t magic)
{
	const bool first = magic == 0xfffffffb, wide = first || magic == 0xfffffffa;
	const uint64_t index = first ? 16 : MADE_GO_INDEX, word = wide ? 8 : 4;
	const uint64_t text = wide ? MADE_BASE + 0x800 : 0, starts[] = {0, 0x20, 0x40, 0x48};
	const uint64_t parts[] = {MADE_GO_NAMES, MADE_GO_INDEX, 0, 0, MADE_GO_INDEX};
	uint8_t *t = m->bytes + MADE_GO;

	make_elf(m, MADE_STATIC);
	MADE_EHDR(m)->e_shoff = 0;
	MADE_EHDR(m)->e_shnum = 0;
	MADE_PHDR(m, PH_EH)->p_type = PT_NULL;
	memset(m->bytes + MADE_GO, 0, MADE_SIZE - MADE_GO);
	made_put32(m, MADE_GO, magic);
	t[6] = 1;
	t[7] = 8;
	t[8] = 3;
	if (!first)
		memcpy(t + (wide ? 24 : 32), parts, sizeof(parts));
	if (!wide)
		made_put32(m, MADE_GO + 24, MADE_BASE + 0x800);
	memcpy(t + MADE_GO_NAMES, "a\0b\0c", 6);
	for (uint32_t i = 0; i < 4; i++) {
		uint64_t start = text + starts[i], func = MADE_GO_FUNCS + 16 * i;
		uint64_t where = first ? func : func - MADE_GO_INDEX;

		memcpy(t + index + 2 * i * word, &start, word);
		if (i == 3)
			break;
		memcpy(t + index + (2 * i + 1) * word, &where, word);
		memcpy(t + func, &start, word);
		t[func + word] = (uint8_t)(2 * i + (first ? MADE_GO_NAMES : 0));
	}
}

/* As strip(1) with no section headers left. */
static inline void made_drop_sections(struct made *m)
{
	MADE_EHDR(m)->e_shoff = 0;
	MADE_EHDR(m)->e_shnum = 0;
	MADE_EHDR(m)->e_shstrndx = 0;
	memset(m->bytes + 0x1400, 0, MADE_SIZE - 0x1400);
}

#endif
