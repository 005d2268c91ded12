/* SPDX-License-Identifier: MIT */
/* plan_rig.h - plans of real files, saved to memory and bound to made-up addresses. */
#ifndef TESTS_PLAN_RIG_H
#define TESTS_PLAN_RIG_H

#include <errno.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/vec.h"
#include "inject/bind/bind.h"
#include "inject/plan/plan.h"
#include "inject/code/hooks.h"

#define BIAS 0x555555554000ull
#define BLOCK 0x555540000000ull
#define THUNK 0x7ffff7c00100ull
#define HOOK_THUNK 0x7ffff7c00200ull

/* ---- helpers ---- */

static inline struct plan *plan_file_of(const char *path, bool hooks_only)
{
	struct plan_options opt = {.hooks_only = hooks_only};
	struct elf_image *img;
	struct plan *p = NULL;
	struct err err;

	if (elf_image_open(&img, path, &err) || plan_make(&p, img, &opt, &err))
		fail_msg("%s", err.msg);
	elf_image_close(img);
	return p;
}

static inline int find_libc(struct dl_phdr_info *info, size_t size, void *ctx)
{
	(void)size;
	if (!strstr(info->dlpi_name, "/libc.so.6"))
		return 0;
	*(char **)ctx = xstrdup(info->dlpi_name);
	return 1;
}

static inline struct plan *plan_of_libc(bool hooks_only)
{
	char *path = NULL;
	struct plan *p;

	dl_iterate_phdr(find_libc, &path);
	assert_non_null(path);
	p = plan_file_of(path, hooks_only);
	xfree(path);
	return p;
}

static inline int memory_file(void)
{
	int fd = memfd_create("plan", 0);

	assert_true(fd >= 0);
	return fd;
}

static const struct plan_key key = {.source = "what it is made from", .request = 7, .tactics = 3};

static inline uint8_t *saved(const struct plan *p, size_t *n)
{
	int fd = memory_file();
	struct stat st;
	uint8_t *bytes;

	assert_int_equal(plan_save(p, &key, fd, NULL), 0);
	assert_int_equal(fstat(fd, &st), 0);
	*n = st.st_size;
	bytes = xmalloc(*n);
	assert_int_equal(pread(fd, bytes, *n, 0), *n);
	close(fd);
	return bytes;
}

static inline int load_bytes(struct plan **out, const void *bytes, size_t n)
{
	int fd = memory_file(), r;
	struct err err;

	assert_int_equal(pwrite(fd, bytes, n, 0), n);
	r = plan_load(out, &key, fd, &err);
	if (r)
		assert_int_equal(r, -EINVAL);
	close(fd);
	return r;
}

static inline struct binding binding_of(const struct plan *p, const uint8_t *selected, bool hooks)
{
	return (struct binding){
		.plan = p,
		.selected = selected,
		.hooks = hooks,
		.unwinds = hooks,
		.event_base = 7,
		.level = 2,
		.bias = BIAS,
		.block = BLOCK,
		.thunk = THUNK,
		.hook_thunk = HOOK_THUNK,
	};
}

static inline uint8_t *select_all(const struct plan *p)
{
	return memset(xmalloc(p->nfunctions + 1), 1, p->nfunctions + 1);
}

#endif
