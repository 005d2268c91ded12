/* SPDX-License-Identifier: MIT */
/* Unit tests of inject/elf/go_table.c: Go's table of functions, each form of it, and damaged. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "inject/code/functions.h"
#include "inject/elf/go_table.h"
#include "tests/unit/inject/elf_maker.h"

static const uint32_t magics[] = {0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1};
#define FORMS (sizeof(magics) / sizeof(magics[0]))

static struct elf_image *open_made(const struct made *m)
{
	struct elf_image *img;

	assert_int_equal(elf_image_from_memory(&img, m->bytes, sizeof(m->bytes), "made", NULL), 0);
	return img;
}

static void find(struct functions *f, const struct elf_image *img)
{
	static const struct functions_options opt = {.sources = FUNCTION_GO_TABLE};

	assert_int_equal(functions_find_with(f, img, &opt, NULL), 0);
}

static void assert_all_found(const struct made *m)
{
	static const uint64_t starts[] = {0x800, 0x820, 0x840, 0x848};
	struct elf_image *img = open_made(m);
	struct functions f;

	find(&f, img);
	assert_int_equal(f.n, 3);
	for (size_t i = 0; i < f.n; i++) {
		const char name[] = {(char)('a' + i), 0};

		assert_int_equal(f.v[i].start, MADE_BASE + starts[i]);
		assert_int_equal(f.v[i].end, MADE_BASE + starts[i + 1]);
		assert_string_equal(f.v[i].name, name);
		assert_int_equal(f.v[i].sources, FUNCTION_GO_TABLE);
	}
	functions_free(&f);
	elf_image_close(img);
}

static void each_form_is_read(void **state)
{
	struct made m;

	(void)state;
	for (size_t i = 0; i < FORMS; i++) {
		make_go_elf(&m, magics[i]);
		assert_all_found(&m);
	}
}

/* As Go 1.26 has it: the program begins with one of its functions. */
static void a_text_start_that_is_missing_is_found(void **state)
{
	struct elf_image *img;
	struct functions f;
	struct made m;

	(void)state;
	make_go_elf(&m, 0xfffffff1);
	memset(m.bytes + MADE_GO + 24, 0, 8);
	MADE_PHDR(&m, PH_TEXT)->p_offset += 0x800;
	MADE_PHDR(&m, PH_TEXT)->p_vaddr += 0x800;
	MADE_PHDR(&m, PH_TEXT)->p_filesz -= 0x800;
	MADE_PHDR(&m, PH_TEXT)->p_memsz -= 0x800;
	assert_all_found(&m);
	MADE_EHDR(&m)->e_entry += 4;
	img = open_made(&m);
	find(&f, img);
	assert_int_equal(f.n, 0);
	functions_free(&f);
	elf_image_close(img);
}

static void refused(const struct made *m, int code, const char *sentence)
{
	struct elf_image *img = open_made(m);
	struct err err = {""};
	struct go_table t;

	assert_int_equal(go_table_find(&t, img, &err), code);
	assert_string_equal(err.msg, sentence);
	elf_image_close(img);
}

static void unknown_forms_are_named(void **state)
{
	struct made m;

	(void)state;
	make_elf(&m, MADE_STATIC);
	refused(&m, -ENOENT, "");
	made_section(&m, SH_DATA, ".gopclntab", SHT_PROGBITS, SHF_ALLOC, MADE_GO, MADE_GO_SIZE, 0);
	refused(&m, -EINVAL, "its table of Go functions (.gopclntab) is damaged");
	memcpy(m.bytes + MADE_GO, "\xf5\xff\xff\xff\0\0\1\10\3", 9);
	refused(&m, -ENOTSUP,
		"its table of Go functions (.gopclntab) is of a version of Go that is not known "
		"here: 0xfffffff5");
	memcpy(m.bytes + MADE_GO, "\xf1\xff\xff\xff\0\0\1\10\3", 9);
	refused(&m, -EINVAL, "its table of Go functions (.gopclntab) is damaged");
}

/* Go's threads have thread data of a C library only if there is one. */
static void kinds_are_told(void **state)
{
	static const uint8_t note[] = {4, 0, 0,   0,   4, 0, 0, 0, 4, 0,
				       0, 0, 'G', 'o', 0, 0, 1, 2, 3, 4};
	struct elf_image *img;
	struct made m;

	(void)state;
	for (int needed = 0; needed < 2; needed++) {
		make_elf(&m, MADE_PIE);
		memcpy(m.bytes + 0x240, note, sizeof(note));
		if (needed)
			MADE_DYN(&m)->d_tag = DT_NEEDED;
		img = open_made(&m);
		assert_true(img->is_go);
		assert_int_equal(img->kind, needed ? ELF_KIND_PIE : ELF_KIND_STATIC);
		elf_image_close(img);
	}
}

static void look(const struct made *m)
{
	struct elf_image *img;
	struct functions f;

	if (elf_image_from_memory(&img, m->bytes, sizeof(m->bytes), "made", NULL))
		return;
	find(&f, img);
	for (size_t i = 0; i < f.n; i++) {
		assert_true(f.v[i].start < f.v[i].end);
		assert_non_null(elf_image_at(img, f.v[i].start, f.v[i].end - f.v[i].start));
		assert_true(elf_image_is_exec(img, f.v[i].start));
	}
	functions_free(&f);
	elf_image_close(img);
}

static void every_byte_may_be_wrong(void **state)
{
	static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
	struct made m;

	(void)state;
	for (size_t i = 0; i < FORMS; i++) {
		make_go_elf(&m, magics[i]);
		for (size_t at = MADE_GO; at < MADE_GO + MADE_GO_SIZE; at++) {
			uint8_t old = m.bytes[at];

			for (size_t v = 0; v < sizeof(values); v++) {
				m.bytes[at] = values[v];
				look(&m);
			}
			m.bytes[at] = old;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_form_is_read),
		cmocka_unit_test(a_text_start_that_is_missing_is_found),
		cmocka_unit_test(unknown_forms_are_named),
		cmocka_unit_test(kinds_are_told),
		cmocka_unit_test(every_byte_may_be_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
