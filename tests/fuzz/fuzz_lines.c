/* SPDX-License-Identifier: MIT */
/*
 * fuzz_lines.c - damaged debug information against inject/elf/lines.c: whatever libdw does of it,
 * we go on, and get an answer or a sentence.
 *
 *   fuzz_lines [-t SECONDS] [-s SEED] [-o FILE] ELF...       programs with a main and DWARF
 *   fuzz_lines -r FILE                                       that one again
 *
 * The input in use stands in FILE (default fuzz_lines.input), and stays there after a crash.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/vec.h"
#include "inject/code/functions.h"
#include "inject/elf/variables.h"
#include "tests/fuzz/fuzz.h"

static size_t answers, none, broken, refused;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- the questions ---- */

/* Names that programs have, with ways after them. */
static void ask_variables(struct lines *l, uint64_t vaddr)
{
	static const char *const names[] = {"argc", "argv[1]",         "n",      "x->next->value",
					    "i",    "stdout->_fileno", "->next", "[2]"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		bool is_typed = names[i][0] == '-' || names[i][0] == '[';
		struct variable_question q = {names[i], vaddr + i % 3 * 8,
					      (i % 3 ? 0u : VARIABLE_AT_ENTRY) |
						      (is_typed ? VARIABLE_IS_TYPED : 0u),
					      is_typed ? 1 + i % 2 : 0};
		struct variable v;
		struct err why;

		why.msg[0] = '\0';
		if (variables_find(l, &q, &v, &why))
			answers++;
		else if (!why.msg[0])
			abort();
	}
}

static void ask(struct lines *l, const uint64_t *functions, size_t n)
{
	struct line_places found;
	const char *file;
	unsigned line;

	for (size_t i = 0; i < n; i++) {
		ask_variables(l, functions[i]);
		if (!lines_function(l, functions[i], &file, &line))
			continue;
		if (!*file || !line)
			abort();
		lines_find(l, file, line + 1, &found);
		*(found.v.n ? &answers : &none) += 1;
		for (size_t k = 1; k < found.v.n; k++)
			if (found.v.v[k].vaddr <= found.v.v[k - 1].vaddr)
				abort();
		vec_free(&found.v);
	}
	if (lines_broken(l)) {
		if (!*lines_broken(l))
			abort();
		broken++;
	}
}

static void try(const char *path, const uint64_t *functions, size_t n)
{
	static const struct lines_limits limits = {.seconds = 1, .memory = 256ull << 20};
	struct elf_image *img;
	struct lines *l;
	struct err err = {""};

	if (elf_image_open(&img, path, NULL)) {
		refused++;
		return;
	}
	if (lines_open_with(&l, img, &limits, &err)) {
		if (l || !*err.msg)
			abort();
		refused++;
	} else {
		ask(l, functions, n);
		lines_close(l);
	}
	elf_image_close(img);
	if (waitpid(-1, NULL, WNOHANG) >= 0) /* a process is left */
		abort();
}

/* ---- the damage ---- */

struct range {
	uint64_t off, size;
};

struct seed {
	uint8_t *bytes;
	size_t size;
	struct range debug[32]; /* what libdw reads */
	size_t ndebug;
	uint64_t functions[4];
	size_t nfunctions;
};

static bool load(struct seed *s, const char *path)
{
	static const char *const names[] = {
		".debug_info",   ".debug_abbrev",   ".debug_line",     ".debug_str",
		".debug_ranges", ".debug_rnglists", ".debug_line_str", ".debug_aranges",
		".debug_loc",    ".debug_loclists", ".debug_addr",     ".debug_str_offsets",
	};
	struct elf_image *img;
	struct functions f;

	if (elf_image_open(&img, path, NULL))
		return false;
	s->bytes = xmalloc(img->size);
	memcpy(s->bytes, img->bytes, img->size);
	s->size = img->size;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct elf_section *sec = elf_image_section(img, names[i]);

		if (sec && sec->size && sec->off < s->size && sec->size <= s->size - sec->off)
			s->debug[s->ndebug++] = (struct range){sec->off, sec->size};
	}
	if (!functions_find(&f, img, NULL)) {
		for (size_t i = 0; i < f.n && s->nfunctions < 4; i++)
			if (f.v[i].name && f.v[i].end - f.v[i].start > 16 && f.v[i].name[0] != '_')
				s->functions[s->nfunctions++] = f.v[i].start;
		functions_free(&f);
	}
	elf_image_close(img);
	return s->ndebug && s->nfunctions;
}

/* Small sections steer the large ones: each is as likely as the others. */
static size_t pick_place(const struct seed *s)
{
	const struct range *r = &s->debug[rnd(s->ndebug)];

	if (!rnd(16)) /* the section headers */
		return s->size - 1 - rnd(64 * 40);
	return r->off + rnd(rnd(2) ? r->size : (r->size < 64 ? r->size : 64));
}

static void mutate(const struct seed *s, uint8_t *p, size_t *size)
{
	static const uint64_t values[] = {
		0,      1,          2,          0x7f,       0x80,       0xff,  0x7fff,
		0xffff, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff, ~0ull,
	};
	uint64_t v = values[rnd(sizeof(values) / sizeof(*values))];
	size_t at = pick_place(s), n = 1u << rnd(4), from = pick_place(s);

	if (at >= s->size || s->size - at < 64 || s->size - from < 64 || from >= s->size)
		return;
	switch (rnd(8)) {
	case 0:
	case 1:
		p[at] = (uint8_t)rnd(256);
		break;
	case 2:
		p[at] ^= (uint8_t)(1u << rnd(8));
		break;
	case 3: /* the same is there again and again */
		n = 1 + rnd(32);
		for (size_t i = 0; i < rnd(200) && at + n + i < s->size; i++)
			p[at + n + i] = p[at + i];
		break;
	case 4:
		memcpy(p + at, &v, n < 8 ? n : 8);
		break;
	case 5:
		memmove(p + at, p + from, 1 + rnd(63));
		break;
	case 6:
		memset(p + at, (int)rnd(256), 1 + rnd(32));
		break;
	case 7:
		if (!rnd(16))
			*size = 1 + rnd(*size);
		break;
	}
}

static bool write_file(const char *path, const uint8_t *bytes, size_t size)
{
	FILE *f = fopen(path, "wb");

	return f && (fwrite(bytes, 1, size, f) == size) + !fclose(f) == 2;
}

static int fuzz(const struct seed *seeds, size_t n, double seconds, const char *out)
{
	double end = now() + seconds, slowest = 0;
	size_t runs = 0;

	while (now() < end) {
		const struct seed *s = &seeds[rnd(n)];
		uint8_t *bytes = xmalloc(s->size);
		size_t size = s->size;
		double start = now();

		memcpy(bytes, s->bytes, size);
		for (uint64_t i = runs < n ? 0 : 1 + rnd(rnd(3) ? 4 : 40); i > 0; i--)
			mutate(s, bytes, &size);
		if (!write_file(out, bytes, size))
			return 99;
		xfree(bytes);
		try(out, s->functions, s->nfunctions);
		if (now() - start > slowest)
			slowest = now() - start;
		runs++;
	}
	unlink(out);
	printf("# %zu inputs, the slowest took %.0f ms: %zu places found, %zu not; %zu refused, %zu "
	       "broke the reader\n",
	       runs, slowest * 1e3, answers, none, refused, broken);
	printf("%s 1 - damaged debug information\n1..1\n", answers ? "ok" : "not ok");
	return !answers;
}

static int again(const char *path)
{
	struct seed s = {0};

	load(&s, path);
	try(path, s.functions, s.nfunctions);
	printf("# %zu places found, %zu not; %zu refused, %zu broke the reader\n", answers, none,
	       refused, broken);
	return 0;
}

int main(int argc, char **argv)
{
	struct fuzz_options o = {.seed = 1, .out = "fuzz_lines.input"};
	struct seed *seeds = xcalloc((size_t)argc, sizeof(*seeds));
	size_t n = 0;
	int rc;

	if (!fuzz_options(&o, argc, argv))
		return 2;
	for (int i = optind; i < argc; i++)
		n += load(&seeds[n], argv[i]);
	rc = o.again ? again(o.again) : n ? fuzz(seeds, n, o.seconds, o.out) : 99;
	for (size_t i = 0; i < n; i++)
		xfree(seeds[i].bytes);
	xfree(seeds);
	return rc;
}
