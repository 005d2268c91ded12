/* SPDX-License-Identifier: MIT */
/* Unit tests of the function finder and the frame information, on made-up files. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/vec.h"
#include "inject/elf/eh_frame.h"
#include "inject/code/functions.h"
#include "tests/unit/inject/elf_maker.h"

struct subject {
	struct made m;
	struct elf_image *img;
	struct functions f;
};

static void find(struct subject *s, uint32_t sources)
{
	struct err err = {""};

	assert_int_equal(elf_image_from_memory(&s->img, &s->m, sizeof(s->m), "made", &err), 0);
	assert_int_equal(functions_find_with(&s->f, s->img,
					     &(struct functions_options){.sources = sources}, &err),
			 0);
}

static void done(struct subject *s)
{
	functions_free(&s->f);
	elf_image_close(s->img);
}

static void assert_function(const struct subject *s, size_t i, uint64_t start, uint64_t end,
			    const char *name)
{
	const struct function *fn = &s->f.v[i];

	assert_true(i < s->f.n);
	assert_int_equal(fn->start, MADE_BASE + start);
	assert_int_equal(fn->end, MADE_BASE + end);
	if (name)
		assert_string_equal(fn->name, name);
	else
		assert_null(fn->name);
}

static void symbols_and_frames_are_merged(void **state)
{
	struct subject s;

	(void)state;
	make_elf(&s.m, MADE_PIE);
	find(&s, 0);
	assert_int_equal(s.f.n, 4); /* the PLT's FDE is none */
	assert_function(&s, 0, 0x800, 0x819, "a");
	assert_function(&s, 1, 0x820, 0x827, "b"); /* rather than __b */
	assert_function(&s, 2, 0x840, 0x841, "c"); /* without its version */
	assert_function(&s, 3, 0x900, 0x902, "a.cold");
	for (size_t i = 0; i < s.f.n; i++) {
		assert_true(s.f.v[i].has_fde && s.f.v[i].has_size);
		assert_int_equal(s.f.v[i].is_part, i == 3);
		assert_int_equal(s.f.v[i].parent, i == 3 ? 0 : i);
		assert_int_equal(s.f.v[i].is_ifunc, i == 1); /* by its IRELATIVE relocation */
	}
	assert_int_equal(s.f.v[2].sources, FUNCTION_SYMTAB | FUNCTION_DYNSYM | FUNCTION_EH_FRAME);
	assert_ptr_equal(functions_at(&s.f, MADE_BASE + 0x818), &s.f.v[0]);
	assert_null(functions_at(&s.f, MADE_BASE + 0x819));
	assert_null(functions_at(&s.f, 0));
	assert_int_equal(s.f.nsymbols, 5); /* with the label in the middle of a */
	assert_int_equal(s.f.symbols[1], MADE_BASE + 0x804);
	done(&s);
}

static void a_stripped_file_gives_the_same(void **state)
{
	struct subject s;

	(void)state;
	make_elf(&s.m, MADE_PIE);
	find(&s, FUNCTION_DYNSYM | FUNCTION_EH_FRAME);
	assert_int_equal(s.f.n, 4);
	assert_function(&s, 0, 0x800, 0x819, NULL);
	assert_function(&s, 2, 0x840, 0x841, "c");
	assert_true(s.f.v[3].is_part); /* by its frame */
	assert_int_equal(s.f.v[3].parent, 0);
	done(&s);
	made_drop_sections(&s.m);
	find(&s, 0);
	assert_int_equal(s.f.n, 4); /* PLT stubs are told by their look */
	assert_function(&s, 1, 0x820, 0x827, NULL);
	assert_function(&s, 2, 0x840, 0x841, "c");
	done(&s);
}

static void symbols_alone_do_too(void **state)
{
	struct subject s;

	(void)state;
	make_elf(&s.m, MADE_PIE);
	MADE_SYMTAB(&s.m, 1)->st_size = 0; /* a: up to the next */
	MADE_SYMTAB(&s.m, 5)->st_size = 0; /* c: up to a.cold */
	MADE_DYNSYM(&s.m, 1)->st_size = 0;
	MADE_SYMTAB(&s.m, 4)->st_size = 1ull << 60;
	find(&s, FUNCTION_SYMTAB | FUNCTION_DYNSYM);
	assert_int_equal(s.f.n, 4);
	assert_function(&s, 0, 0x800, 0x820, "a");
	assert_function(&s, 1, 0x820, 0x827, "b");
	assert_function(&s, 2, 0x840, 0x900, "c");
	assert_function(&s, 3, 0x900, 0x980, "a.cold"); /* the section ends there */
	assert_false(s.f.v[0].has_size || s.f.v[0].has_fde);
	assert_true(s.f.v[1].has_size);
	assert_true(s.f.v[3].is_part);
	assert_int_equal(s.f.v[3].parent, 0);
	done(&s);
}

/* Only a global function's symbol cuts an FDE's range. */
static void inner_symbols(void **state)
{
	struct subject s;

	(void)state;
	make_elf(&s.m, MADE_PIE);
	MADE_SYMTAB(&s.m, 2)->st_value = MADE_BASE + 0x809; /* local */
	MADE_SYMTAB(&s.m, 3)->st_value = MADE_BASE + 0x813; /* global, "b" */
	find(&s, 0);
	assert_int_equal(s.f.n, 5);
	assert_function(&s, 0, 0x800, 0x813, "a");
	assert_function(&s, 1, 0x813, 0x819, "b");
	assert_true(s.f.v[1].has_fde && !s.f.v[1].is_part);
	assert_function(&s, 2, 0x820, 0x827, NULL);
	done(&s);
}

static void bogus_symbols_are_no_functions(void **state)
{
	struct subject s;

	(void)state;
	make_elf(&s.m, MADE_PIE);
	for (int i = 1; i <= 6; i++)
		MADE_SYMTAB(&s.m, i)->st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
	MADE_SYMTAB(&s.m, 1)->st_value = MADE_BASE + 0x2200; /* data */
	MADE_SYMTAB(&s.m, 2)->st_value = UINT64_MAX;
	MADE_SYMTAB(&s.m, 3)->st_value = MADE_BASE + 0x988; /* a PLT stub */
	MADE_SYMTAB(&s.m, 4)->st_shndx = SHN_ABS;
	MADE_SYMTAB(&s.m, 5)->st_shndx = SHN_UNDEF;
	MADE_SYMTAB(&s.m, 6)->st_value = 0;
	find(&s, FUNCTION_SYMTAB);
	assert_int_equal(s.f.n, 0);
	done(&s);
}

static void bogus_frames_are_no_functions(void **state)
{
	struct subject s;

	(void)state;
	make_elf(&s.m, MADE_PIE);
	made_put32(&s.m, 0x538 + 12, 0x100000); /* a: longer than the file */
	find(&s, FUNCTION_EH_FRAME);
	assert_int_equal(s.f.n, 3);
	done(&s);
	make_elf(&s.m, MADE_PIE);
	s.m.bytes[0x52a] = 'S'; /* "zS": all of them return from signals */
	find(&s, FUNCTION_EH_FRAME);
	assert_int_equal(s.f.n, 0);
	done(&s);
}

/* ---- parts, by the code map's evidence ---- */

static void evidence_has_the_last_word(void **state)
{
	struct function_evidence ev[4] = {0};
	struct subject s;

	(void)state;
	make_elf(&s.m, MADE_PIE);
	find(&s, FUNCTION_EH_FRAME);
	for (int i = 0; i < 4; i++)
		ev[i].jumped_from = ev[i].jumps_into = FUNCTION_NONE;
	ev[3].called = true; /* an odd frame, but somebody calls it */
	functions_mark_parts(&s.f, ev);
	assert_false(s.f.v[3].is_part);
	ev[3].called = false;
	functions_mark_parts(&s.f, ev);
	assert_true(s.f.v[3].is_part);
	/* a plain frame: a conditional jump from the function whose FDE stands before */
	s.f.v[3].odd_start = false;
	functions_mark_parts(&s.f, ev);
	assert_false(s.f.v[3].is_part);
	ev[3].jcc_from_other = true;
	ev[3].jumped_from = 0;
	functions_mark_parts(&s.f, ev);
	assert_true(s.f.v[3].is_part);
	assert_int_equal(s.f.v[3].parent, 0);
	ev[3].jumped_from = 1; /* from some other function: a tail call */
	functions_mark_parts(&s.f, ev);
	assert_false(s.f.v[3].is_part);
	ev[3] = (struct function_evidence){
		.jmp_from_other = true, .jumped_from = 0, .jumps_into = FUNCTION_NONE};
	functions_mark_parts(&s.f, ev);
	assert_false(s.f.v[3].is_part); /* a lone jump may be a tail call */
	ev[3].jumps_into_other = true;
	ev[3].jumps_into = 0;
	functions_mark_parts(&s.f, ev);
	assert_true(s.f.v[3].is_part); /* but not if it comes back */
	done(&s);
}

static void cold_names_are_told(void **state)
{
	(void)state;
	assert_true(function_is_cold_name("f.cold"));
	assert_true(function_is_cold_name("f.cold.12"));
	assert_true(function_is_cold_name("f.part.0.cold"));
	assert_true(function_is_cold_name("f.cold@V1"));
	assert_true(function_is_cold_name("f.warm"));
	assert_false(function_is_cold_name("f.part.0"));
	assert_false(function_is_cold_name("f.coldest"));
	assert_false(function_is_cold_name(".cold"));
	assert_false(function_is_cold_name("cold"));
}

/* ---- frames ---- */

static void the_stack_depth_is_known(void **state)
{
	static const struct {
		uint64_t off;
		int64_t cfa;
	} cases[] = {
		{0x800, 8}, {0x803, 8},  {0x804, 16}, {0x816, 16}, {0x817, 8},
		{0x818, 8}, {0x819, -1}, {0x820, 8},  {0x900, 16}, {0x7ff, -1},
	};
	struct frame_info *fi;
	struct subject s;

	(void)state;
	make_elf(&s.m, MADE_PIE);
	find(&s, 0);
	fi = frame_info_open(s.img);
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
			assert_int_equal(frame_info_cfa_from_sp(fi, MADE_BASE + cases[i].off),
					 cases[i].cfa);
	frame_info_close(fi);
	done(&s);
}

/* Runs one FDE's program over [0, 0x100) and gives the row at an address. */
struct program {
	uint64_t at;
	struct eh_row row;
	bool found;
};

static bool keep(uint64_t start, uint64_t end, const struct eh_row *row, void *ctx)
{
	struct program *p = ctx;

	if (p->at < start || p->at >= end)
		return true;
	p->row = *row;
	p->found = true;
	return false;
}

static struct program run(const void *insns, size_t n, uint64_t at)
{
	struct eh_cie cie = {
		.code_align = 1, .data_align = -8, .initial = {.reg = EH_REG_RSP, .offset = 8}};
	struct eh_fde fde = {.start = 0x1000, .end = 0x1100, .insns = insns, .ninsns = n};
	struct eh_frame frame = {.v = &fde, .n = 1, .cies = &cie, .ncies = 1};
	struct program p = {.at = 0x1000 + at};

	eh_frame_rows(&frame, &fde, keep, &p);
	return p;
}

#define RUN(at, ...) run((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), at)

static void programs_are_run(void **state)
{
	struct program p;

	(void)state;
	p = RUN(0, 0);
	assert_true(p.found && p.row.reg == EH_REG_RSP && p.row.offset == 8);
	p = RUN(5, 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6); /* push rbp; mov rsp,rbp */
	assert_true(p.row.reg == 6 && p.row.offset == 16 && p.row.saved == 1 << 6);
	p = RUN(0x50, 0x0a, 0x41, 0x0e, 32, 0x83, 3, 0x02, 0x20, 0x0b);
	assert_true(p.row.offset == 8 && !p.row.saved); /* remember, restore */
	p = RUN(0x30, 0x0a, 0x41, 0x0e, 32, 0x83, 3, 0x02, 0x40, 0x0b);
	assert_true(p.row.offset == 32 && p.row.saved == 1 << 3);
	p = RUN(0, 0x0f, 3, 0x77, 8, 0x06); /* an expression: who knows */
	assert_true(p.row.reg == EH_REG_UNKNOWN);
	p = RUN(0, 0x07, 16); /* no return address */
	assert_true(p.row.outermost);
	p = RUN(0x80, 0x03, 0x20, 0, 0x13, 0x7e); /* advance_loc2; def_cfa_offset_sf -2 */
	assert_int_equal(p.row.offset, 16);
	p = RUN(0x10, 0x0c, 7, 0x80, 2); /* def_cfa rsp+256 */
	assert_int_equal(p.row.offset, 256);
	p = RUN(0x10, 0x41, 0x3f); /* an opcode that nobody knows */
	assert_false(p.found);
	p = RUN(0x10, 0x0b); /* nothing to restore */
	assert_false(p.found);
	p = RUN(0x10, 0x41, 0x0f, 0xff, 0xff, 0x03); /* a block longer than the program */
	assert_false(p.found);
}

static void see_pad(uint64_t vaddr, void *ctx)
{
	*(uint64_t *)ctx = *(uint64_t *)ctx * 0x1000 + vaddr - MADE_BASE;
}

static void landing_pads_are_found(void **state)
{
	/* no base, no types, uleb call sites: [0,4) -> 0x11, [4,8) -> none, [8,9) -> 0x13 */
	static const uint8_t lsda[] = {0xff, 0xff, 1, 12, 0, 4, 0x11, 0, 4, 4, 0, 0, 8, 1, 0x13, 0};
	static const uint8_t cie[] = {0x1c, 0, 0, 0,    0,  0, 0,    0,    1,    'z', 'L',
				      'R',  0, 1, 0x78, 16, 2, 0x1b, 0x1b, 0x0c, 7,   8,
				      0x90, 1, 0, 0,    0,  0, 0,    0,    0,    0};
	struct subject s;
	struct frame_info *fi;
	uint64_t seen = 0;

	(void)state;
	make_elf(&s.m, MADE_PIE);
	memset(s.m.bytes + 0x520, 0, 0x100);
	memcpy(s.m.bytes + 0x520, cie, sizeof(cie));
	memcpy(s.m.bytes + 0x700, lsda, sizeof(lsda));
	made_put32(&s.m, 0x540, 24);
	made_put32(&s.m, 0x544, 0x544 - 0x520);
	made_put32(&s.m, 0x548, 0x800 - 0x548);
	made_put32(&s.m, 0x54c, 0x19);
	s.m.bytes[0x550] = 4;
	made_put32(&s.m, 0x551, 0x700 - 0x551);
	MADE_SHDR(&s.m, SH_EH_FRAME)->sh_size = 0x40;
	find(&s, 0);
	fi = frame_info_open(s.img);
	frame_info_for_each_landing_pad(fi, see_pad, &seen);
	assert_int_equal(seen, 0x811 * 0x1000 + 0x813);
	frame_info_close(fi);
	done(&s);
	s.m.bytes[0x703] = 0xff; /* a table longer than the file */
	s.m.bytes[0x704] = 0xff;
	s.m.bytes[0x705] = 0x7f;
	find(&s, 0);
	fi = frame_info_open(s.img);
	seen = 0;
	frame_info_for_each_landing_pad(fi, see_pad, &seen);
	assert_int_equal(seen, 0);
	frame_info_close(fi);
	done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(symbols_and_frames_are_merged),
		cmocka_unit_test(a_stripped_file_gives_the_same),
		cmocka_unit_test(symbols_alone_do_too),
		cmocka_unit_test(inner_symbols),
		cmocka_unit_test(bogus_symbols_are_no_functions),
		cmocka_unit_test(bogus_frames_are_no_functions),
		cmocka_unit_test(evidence_has_the_last_word),
		cmocka_unit_test(cold_names_are_told),
		cmocka_unit_test(the_stack_depth_is_known),
		cmocka_unit_test(programs_are_run),
		cmocka_unit_test(landing_pads_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
