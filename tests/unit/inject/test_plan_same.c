/* SPDX-License-Identifier: MIT */
/*
 * test_plan_same.c - the plan of a file is the same bytes on any number of processors.
 *
 * Of programs and libraries of this machine, some of which are cut into many pieces: with their
 * functions, with hooks alone, and with a probe at every instruction; and while other files are
 * planned by other threads.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/jobs.h"
#include "base/vec.h"
#include "inject/code/code_map.h"
#include "inject/plan/plan.h"

#define LIBS "/usr/lib/x86_64-linux-gnu/"

static const char *const files[] = {
	"/usr/bin/bash",  "/usr/bin/git",        "/usr/bin/gdb",
	"/usr/bin/perl",  "/usr/bin/python3.11", LIBS "ld-linux-x86-64.so.2",
	LIBS "libc.so.6", LIBS "libcrypto.so.3", LIBS "libstdc++.so.6",
};
#define FILES (sizeof(files) / sizeof(*files))

enum what { FUNCTIONS, HOOKS, INSTRUCTIONS, WHATS };

struct bytes {
	uint8_t *v;
	size_t n;
};

static struct plan *plan_instructions(const struct elf_image *img, struct err *err)
{
	struct place_action action = {.kind = ACTION_TRACE};
	struct plan_request request = {.actions = &action, .nactions = 1, .functions = true};
	struct plan_options opt = {.request = &request};
	struct functions f = {0};
	VEC(struct place_request) places = {0};
	struct code_map *map = NULL;
	struct plan *p = NULL;

	if (functions_find(&f, img, err) || code_map_build(&map, img, &f, err))
		return NULL;
	for (uint64_t at = map->lo; at < map->hi; at++)
		if (code_map_flags(map, at) & CODE_INSN)
			*vec_push(&places) = (struct place_request){.vaddr = at};
	request.places = places.v;
	request.nplaces = places.n;
	plan_make_from(&p, map, &opt, err);
	code_map_free(map);
	functions_free(&f);
	vec_free(&places);
	return p;
}

static struct bytes saved(const struct plan *p)
{
	static const struct plan_key key;
	int fd = memfd_create("plan", MFD_CLOEXEC);
	struct bytes b = {0};
	struct stat st;

	if (fd < 0 || plan_save(p, &key, fd, NULL) || fstat(fd, &st))
		return b;
	b.v = xmalloc((size_t)st.st_size);
	if (pread(fd, b.v, (size_t)st.st_size, 0) == st.st_size)
		b.n = (size_t)st.st_size;
	close(fd);
	return b;
}

/* Nothing: it cannot be planned.  Callable from any thread. */
static struct bytes plan_bytes(const char *path, enum what what)
{
	struct plan_options opt = {.hooks_only = what == HOOKS};
	struct bytes b = {0};
	struct elf_image *img;
	struct plan *p = NULL;
	struct err err;

	if (elf_image_open(&img, path, &err))
		return b;
	if (what == INSTRUCTIONS)
		p = plan_instructions(img, &err);
	else
		plan_make(&p, img, &opt, &err);
	if (p)
		b = saved(p);
	plan_free(p);
	elf_image_close(img);
	return b;
}

static bool are_same(const struct bytes *a, const struct bytes *b)
{
	return a->n && a->n == b->n && !memcmp(a->v, b->v, a->n);
}

static void check_file(const char *path, enum what what)
{
	static const unsigned limits[] = {2, 3, 8};
	struct bytes one, many;

	jobs_set_limit(1);
	one = plan_bytes(path, what);
	if (!one.n)
		fail_msg("%s: no plan", path);
	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		jobs_set_limit(limits[i]);
		many = plan_bytes(path, what);
		if (!are_same(&one, &many))
			fail_msg("%s: another plan on %u processors", path, limits[i]);
		xfree(many.v);
	}
	xfree(one.v);
}

static void check_all(enum what what)
{
	unsigned seen = 0;

	for (size_t i = 0; i < FILES; i++) {
		if (access(files[i], R_OK))
			continue;
		check_file(files[i], what);
		seen++;
	}
	jobs_set_limit(0);
	if (!seen)
		skip();
}

static void functions_are_the_same(void **state)
{
	(void)state;
	check_all(FUNCTIONS);
}

static void hooks_are_the_same(void **state)
{
	(void)state;
	check_all(HOOKS);
}

static void instructions_are_the_same(void **state)
{
	(void)state;
	jobs_set_limit(1);
	check_file(LIBS "libc.so.6", INSTRUCTIONS);
	if (!access("/usr/bin/git", R_OK))
		check_file("/usr/bin/git", INSTRUCTIONS);
	jobs_set_limit(0);
}

struct among_others {
	const char *path;
	struct bytes alone, now;
};

static void *plan_among_others(void *arg)
{
	struct among_others *a = arg;

	a->now = plan_bytes(a->path, FUNCTIONS);
	return NULL;
}

/* As when several processes start: each thread has its file, and they share the helpers. */
static void files_do_not_meet(void **state)
{
	struct among_others all[FILES];
	pthread_t threads[FILES];
	size_t n = 0;

	(void)state;
	jobs_set_limit(1);
	for (size_t i = 0; i < FILES; i++)
		if (!access(files[i], R_OK))
			all[n++] = (struct among_others){
				files[i], plan_bytes(files[i], FUNCTIONS), {0}};
	jobs_set_limit(4);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, plan_among_others, &all[i]), 0);
	for (size_t i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	jobs_set_limit(0);
	for (size_t i = 0; i < n; i++) {
		if (!are_same(&all[i].alone, &all[i].now))
			fail_msg("%s: another plan while others are made", all[i].path);
		xfree(all[i].alone.v);
		xfree(all[i].now.v);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_the_same),
		cmocka_unit_test(hooks_are_the_same),
		cmocka_unit_test(instructions_are_the_same),
		cmocka_unit_test(files_do_not_meet),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
