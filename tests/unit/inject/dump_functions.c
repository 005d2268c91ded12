/* SPDX-License-Identifier: MIT */
/*
 * dump_functions.c - prints what the function finder says, for tests/e2e/patch/twins.py.
 *
 *   dump_functions [-s SOURCES] [-d DEBUG_DIR] ELF
 *
 * One line each: start end(hex) kind(f, p = part) index-of-parent name(or -).  SOURCES is a sum
 * of enum function_source.  With -t only the time of the whole discovery, in microseconds.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "inject/code/code_map.h"
#include "inject/code/functions.h"

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000ull + t.tv_nsec / 1000;
}

static int fail(const struct err *err)
{
	fprintf(stderr, "%s\n", err->msg);
	return 1;
}

static void print(const struct functions *f)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct function *fn = &f->v[i];

		printf("%" PRIx64 " %" PRIx64 " %c %u %s\n", fn->start, fn->end,
		       fn->is_part ? 'p' : 'f', fn->parent, fn->name ? fn->name : "-");
	}
}

static int dump(const char *path, const struct functions_options *opt, bool only_time)
{
	struct elf_image *img;
	struct functions f;
	struct code_map *map;
	struct err err;
	uint64_t start = now_us();

	if (elf_image_open(&img, path, &err) || functions_find_with(&f, img, opt, &err))
		return fail(&err);
	if (only_time) {
		printf("%" PRIu64 "\n", now_us() - start);
	} else {
		if (code_map_build(&map, img, &f, &err))
			return fail(&err);
		code_map_free(map);
		print(&f);
	}
	functions_free(&f);
	elf_image_close(img);
	return 0;
}

int main(int argc, char **argv)
{
	struct functions_options opt = {0};
	bool only_time = false;
	int c;

	while ((c = getopt(argc, argv, "s:d:t")) != -1) {
		switch (c) {
		case 's':
			opt.sources = strtoul(optarg, NULL, 0);
			break;
		case 'd':
			opt.debug_dir = optarg;
			break;
		case 't':
			only_time = true;
			break;
		default:
			return 2;
		}
	}
	if (optind + 1 != argc)
		return 2;
	return dump(argv[optind], &opt, only_time);
}
