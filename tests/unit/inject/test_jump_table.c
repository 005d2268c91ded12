/* SPDX-License-Identifier: MIT */
/*
 * Unit test of the jump-table analysis: tests/bins/switches.c, compiled in many ways.
 *
 * The truth is the compiler's own assembly: each line of a jump table or of an array of labels
 * names labels, and the assembler says where they are (as keeps the .L labels with -L).
 *
 *      .long .L7-.L4          table entry: .L7 must be marked (not .L4, the table)
 *      .quad .L12             array of labels, and non-PIE switches
 *
 * What is analysed is a copy of the program without those labels.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "inject/code/code_map.h"
#include "tests/unit/inject/assemble.h"

struct built {
	struct assembled a;
	struct functions f;
	struct code_map *m;
	const char *how;
};

static bool build(struct built *t, const char *cc, const char *options)
{
	const char *top = getenv("KRON_TOP_SRC");
	struct err err = {""};

	make_folder(&t->a);
	if (run_command("cd %s && %s %s -w -S -o source.s %s/tests/bins/switches.c && "
			"%s %s -w -Wa,-L -c -o source.o source.s && %s %s -w -o labelled source.o",
			t->a.folder, cc, options, top ? top : ".", cc, options, cc, options))
		return false;
	return open_both(&t->a) && !functions_find(&t->f, t->a.img, &err) &&
	       !code_map_build(&t->m, t->a.img, &t->f, &err);
}

static void close_built(struct built *t)
{
	code_map_free(t->m);
	functions_free(&t->f);
	assembled_close(&t->a);
}

/* The first label of a data line, without "-base"; false when it is no such line. */
static bool entry_label(const char *line, char *out, size_t size)
{
	const char *p = line + strspn(line, " \t");
	size_t n;

	if (strncmp(p, ".long", 5) && strncmp(p, ".quad", 5))
		return false;
	p += 5;
	p += strspn(p, " \t");
	n = strcspn(p, "-+ \t\n");
	if (strncmp(p, ".L", 2) || !n || n >= size)
		return false;
	memcpy(out, p, n);
	out[n] = 0;
	return true;
}

/* Every label that a table names, if it is in the code, must be marked. */
static unsigned check_tables(const struct built *t)
{
	char path[96], name[128], *line = NULL;
	size_t size = 0;
	unsigned n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/source.s", t->a.folder);
	f = fopen(path, "r");
	assert_non_null(f);
	while (getline(&line, &size, f) > 0) {
		struct elf_symbol sym;

		if (!entry_label(line, name, sizeof(name)) ||
		    !elf_symbols_lookup(t->a.labelled, name, &sym) ||
		    !(code_map_flags(t->m, sym.value) & CODE_IN_FUNCTION))
			continue;
		n++;
		if (!(code_map_flags(t->m, sym.value) & CODE_CONSTANT))
			fail_msg("%s: %s at %#lx is in a table, and not marked", t->how, name,
				 (unsigned long)sym.value);
	}
	fclose(f);
	free(line);
	return n;
}

/* The names say what indirect jumps a function has; see switches.c. */
static void check_exits(const struct built *t, bool optimized)
{
	for (size_t i = 0; i < t->f.n; i++) {
		const char *name = t->f.v[i].name;
		bool is_switch = name && !strncmp(name, "switch_", 7);
		bool is_tail = name && !strncmp(name, "tail_", 5);
		unsigned indirect = 0, refused = 0;

		if ((!is_switch && !is_tail) || t->f.v[i].is_part)
			continue;
		for (size_t k = 0; k < t->m->nexits; k++) {
			const struct code_exit *e = &t->m->exits[k];

			if (e->function != i || e->kind != CODE_EXIT_TAIL_INDIRECT)
				continue;
			indirect += !e->refusal;
			refused += e->refusal != REFUSAL_NONE;
		}
		if (indirect != (is_tail && optimized))
			fail_msg("%s: %s has %u indirect tail calls", t->how, name, indirect);
		if (optimized && refused)
			fail_msg("%s: %s has %u ambiguous jumps", t->how, name, refused);
		if (optimized && t->m->per_function[i].unresolved_indirect)
			fail_msg("%s: %s is unresolved", t->how, name);
		assert_false(t->m->per_function[i].undecodable);
	}
}

static void check(const char *cc, const char *level, const char *kind)
{
	struct built t = {0};
	char how[128];
	unsigned n;
	/* clang -O1 and gcc -O1 make no tail calls, and -O0 keeps everything in memory */
	bool optimized = strcmp(level, "-O0") != 0 && strcmp(level, "-O1") != 0;

	snprintf(how, sizeof(how), "%s %s %s", cc, level, kind);
	t.how = how;
	assert_true(build(&t, cc, how + strlen(cc)));
	n = check_tables(&t);
	print_message("%s: %u entries\n", how, n);
	assert_true(n > 400);
	check_exits(&t, optimized);
	close_built(&t);
}

static void every_way(const char *cc)
{
	static const char *const levels[] = {"-O0", "-O1", "-O2", "-O3", "-Os"};
	static const char *const kinds[] = {"-fPIE -pie", "-fno-pie -no-pie",
					    "-fPIE -pie -fcf-protection"};

	if (!is_installed(cc)) {
		print_message("%s is not installed\n", cc);
		return;
	}
	for (size_t l = 0; l < sizeof(levels) / sizeof(*levels); l++)
		for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
			check(cc, levels[l], kinds[k]);
}

static void by_gcc(void **state)
{
	(void)state;
	every_way("gcc");
}

static void by_clang(void **state)
{
	(void)state;
	every_way(is_installed("clang") ? "clang" : "clang-14");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_gcc),
		cmocka_unit_test(by_clang),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
