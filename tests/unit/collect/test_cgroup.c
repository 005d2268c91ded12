/* SPDX-License-Identifier: MIT */
/* Unit tests of collect/kernel/cgroup.c, with trees of files that stand for /proc and /sys/fs/cgroup. */
#define _GNU_SOURCE
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "collect/kernel/cgroup.h"

#define MIB (1ull << 20)
#define V1_NONE "9223372036854771712"

/* ---- a tree ---- */

static char root[32];

static int new_root(void **state)
{
	(void)state;
	strcpy(root, "/tmp/kron-cgroup-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static int remove_root(void **state)
{
	(void)state;
	return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *path, const char *text)
{
	char *full = xasprintf("%s%s", root, path);
	FILE *f;

	for (char *p = strchr(full + strlen(root) + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = 0;
		mkdir(full, 0700);
		*p = '/';
	}
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	xfree(full);
}

static void put_number(const char *dir, const char *name, uint64_t n)
{
	char *path = xasprintf("%s/%s", dir, name),
	     *text = xasprintf("%llu\n", (unsigned long long)n);

	put(path, text);
	xfree(path);
	xfree(text);
}

static void group_v2(const char *dir, const char *max, const char *high, uint64_t used_mib,
		     uint64_t inactive_mib)
{
	char *p = xasprintf("%s/memory.max", dir), *q = xasprintf("%s/memory.high", dir);
	char *r = xasprintf("%s/memory.stat", dir), *text;

	put(p, max);
	put(q, high);
	put_number(dir, "memory.current", used_mib * MIB);
	text = xasprintf("anon 4096\nfile 123\nactive_file 77\ninactive_file %llu\nshmem 0\n",
			 (unsigned long long)(inactive_mib * MIB));
	put(r, text);
	xfree(p);
	xfree(q);
	xfree(r);
	xfree(text);
}

static void group_v1(const char *dir, const char *limit, uint64_t used_mib, uint64_t inactive_mib)
{
	char *p = xasprintf("%s/memory.limit_in_bytes", dir);
	char *r = xasprintf("%s/memory.stat", dir), *text;

	put(p, limit);
	put_number(dir, "memory.usage_in_bytes", used_mib * MIB);
	text = xasprintf("cache 1\ninactive_file 5\nhierarchical_memory_limit 9\n"
			 "total_inactive_file %llu\ntotal_unevictable 0\n",
			 (unsigned long long)(inactive_mib * MIB));
	put(r, text);
	xfree(p);
	xfree(r);
	xfree(text);
}

static uint64_t left(void)
{
	struct cgroups c;
	uint64_t n;

	cgroups_find(&c, root);
	n = cgroups_memory_left(&c);
	cgroups_free(&c);
	return n;
}

#define V2_MOUNT "31 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"

/* ---- tests ---- */

static void nothing_there_limits_nothing(void **state)
{
	(void)state;
	assert_int_equal(left(), CGROUP_NO_LIMIT);
	put("/proc/self/cgroup", "0::/a\n");
	assert_int_equal(left(), CGROUP_NO_LIMIT);
	put("/proc/self/mountinfo", V2_MOUNT);
	assert_int_equal(left(), CGROUP_NO_LIMIT);
	put("/proc/self/cgroup", "no colon\n\n0:\n::\n0::\n");
	put("/proc/self/mountinfo", "31 24 0:26 /\n - cgroup2\n\n31 24 0:26 / /sys - cgroup2\n");
	assert_int_equal(left(), CGROUP_NO_LIMIT);
}

static void the_group_itself(void **state)
{
	(void)state;
	put("/proc/self/cgroup", "0::/user.slice/a.scope\n");
	put("/proc/self/mountinfo", "22 1 0:20 / /proc rw - proc proc rw\n" V2_MOUNT);
	group_v2("/sys/fs/cgroup/user.slice", "max\n", "max\n", 5000, 0);
	group_v2("/sys/fs/cgroup/user.slice/a.scope", "104857600\n", "max\n", 30, 10);
	assert_int_equal(left(), 80 * MIB);
	group_v2("/sys/fs/cgroup/user.slice/a.scope", "104857600\n", "52428800\n", 30, 10);
	assert_int_equal(left(), 30 * MIB);
	group_v2("/sys/fs/cgroup/user.slice/a.scope", "max\n", "max\n", 30, 10);
	assert_int_equal(left(), CGROUP_NO_LIMIT);
	/* more than allowed, as memory.high permits; caches that are more than all */
	group_v2("/sys/fs/cgroup/user.slice/a.scope", "max\n", "10485760\n", 30, 10);
	assert_int_equal(left(), 0);
	group_v2("/sys/fs/cgroup/user.slice/a.scope", "104857600\n", "max\n", 30, 300);
	assert_int_equal(left(), 100 * MIB);
}

static void groups_above_it(void **state)
{
	(void)state;
	put("/proc/self/cgroup", "0::/top/mid/low\n");
	put("/proc/self/mountinfo", V2_MOUNT);
	group_v2("/sys/fs/cgroup/top", "1073741824\n", "max\n", 1000, 0);
	group_v2("/sys/fs/cgroup/top/mid", "max\n", "max\n", 900, 0);
	group_v2("/sys/fs/cgroup/top/mid/low", "524288000\n", "max\n", 100, 0);
	assert_int_equal(left(), 24 * MIB);
	group_v2("/sys/fs/cgroup/top/other", "1048576\n", "max\n", 1, 0);
	assert_int_equal(left(), 24 * MIB);
}

static void version_1(void **state)
{
	(void)state;
	put("/proc/self/cgroup",
	    "12:pids:/p\n4:cpu,memory:/jobs/7\n3:cpuset:/\n1:name=systemd:/init.scope\n0::/\n");
	put("/proc/self/mountinfo",
	    "30 24 0:25 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"
	    "35 30 0:32 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
	    "36 30 0:33 / /sys/fs/cgroup/cpu,memory rw - cgroup cgroup rw,cpu,memory\n"
	    "37 30 0:34 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
	group_v1("/sys/fs/cgroup/cpu,memory", V1_NONE "\n", 4000, 0);
	group_v1("/sys/fs/cgroup/cpu,memory/jobs", "209715200\n", 150, 0);
	group_v1("/sys/fs/cgroup/cpu,memory/jobs/7", V1_NONE "\n", 40, 0);
	assert_int_equal(left(), 50 * MIB);
	group_v1("/sys/fs/cgroup/cpu,memory/jobs/7", "62914560\n", 40, 16);
	assert_int_equal(left(), 36 * MIB);
}

/* Without a namespace of its own a container sees its whole path, but only its part of the tree. */
static void containers(void **state)
{
	(void)state;
	put("/proc/self/cgroup", "4:memory:/docker/f00d/sub\n");
	put("/proc/self/mountinfo",
	    "36 30 0:33 /docker/f00d /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
	group_v1("/sys/fs/cgroup/memory", "104857600\n", 60, 0);
	group_v1("/sys/fs/cgroup/memory/sub", "94371840\n", 20, 0);
	assert_int_equal(left(), 40 * MIB);
	/* with one, its own group is the root */
	put("/proc/self/cgroup", "4:memory:/\n");
	put("/proc/self/mountinfo",
	    "36 30 0:33 / /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
	assert_int_equal(left(), 40 * MIB);
	/* moved out of what it sees, or entered from outside */
	put("/proc/self/cgroup", "4:memory:/../../other\n");
	assert_int_equal(left(), 40 * MIB);
	put("/proc/self/cgroup", "4:memory:/docker/f00d2\n");
	put("/proc/self/mountinfo",
	    "36 30 0:33 /docker/f00d /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
	assert_int_equal(left(), 40 * MIB);
}

static void odd_names(void **state)
{
	(void)state;
	put("/proc/self/cgroup", "0::/with blank\n");
	put("/proc/self/mountinfo", "31 24 0:26 / /sys/a\\040b rw - cgroup2 none rw\n");
	group_v2("/sys/a b/with blank", "10485760\n", "max\n", 2, 0);
	assert_int_equal(left(), 8 * MIB);
}

/* What is in use is read each time. */
static void it_changes(void **state)
{
	struct cgroups c;

	(void)state;
	put("/proc/self/cgroup", "0::/g\n");
	put("/proc/self/mountinfo", V2_MOUNT);
	group_v2("/sys/fs/cgroup/g", "104857600\n", "max\n", 30, 0);
	cgroups_find(&c, root);
	assert_int_equal(cgroups_memory_left(&c), 70 * MIB);
	group_v2("/sys/fs/cgroup/g", "104857600\n", "max\n", 90, 0);
	assert_int_equal(cgroups_memory_left(&c), 10 * MIB);
	group_v2("/sys/fs/cgroup/g", "max\n", "max\n", 90, 0);
	assert_int_equal(cgroups_memory_left(&c), CGROUP_NO_LIMIT);
	cgroups_free(&c);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, new_root, remove_root)
	const struct CMUnitTest tests[] = {
		T(nothing_there_limits_nothing),
		T(the_group_itself),
		T(groups_above_it),
		T(version_1),
		T(containers),
		T(odd_names),
		T(it_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
