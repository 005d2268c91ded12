/* SPDX-License-Identifier: MIT */
/* test_cache_dir.c - where the plan cache is: a folder that nobody else can change, or none. */
#define _GNU_SOURCE
#include "collect/cache/cache_dir.h"
#include "tests/unit/collect/plan_cache_rig.h"

/* ---- finding the folder ---- */

static void assert_folder(const char *xdg, const char *home, const char *want)
{
	struct plan_cache c;

	plan_cache_open(&c, xdg, home);
	if (want)
		assert_string_equal(c.path, want);
	else
		assert_null(c.path);
	assert_int_equal(c.dir >= 0, want && !access(want, F_OK));
	plan_cache_close(&c);
}

static void the_folder_is_found_or_not(void **state)
{
	(void)state;
	assert_folder(dir, "/h/y", in_dir("kron"));
	assert_folder(NULL, dir, in_dir(".cache/kron"));
	assert_folder(in_dir("new"), NULL, in_dir("new/kron"));
	assert_folder(in_dir("much/too/new"), NULL, in_dir("much/too/new/kron"));
	assert_int_not_equal(access(in_dir("much"), F_OK), 0);
	assert_folder("relative", NULL, NULL);
	assert_folder(NULL, NULL, NULL);
}

static void a_new_folder_is_ours_alone(void **state)
{
	struct plan_cache c = open_cache();
	struct stat st;

	(void)state;
	assert_int_equal(fstat(c.dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	plan_cache_close(&c);
}

static bool is_taken(const char *xdg)
{
	struct plan_cache c;
	bool taken;

	plan_cache_open(&c, xdg, NULL);
	taken = c.dir >= 0;
	plan_cache_close(&c);
	return taken;
}

static void a_way_that_others_can_change_is_not_gone(void **state)
{
	(void)state;
	assert_int_equal(chmod(dir, 0755), 0); /* mkdtemp() keeps everybody out */
	mkdir(in_dir("open"), 0700);
	mkdir(in_dir("open/below"), 0700);
	assert_true(is_taken(in_dir("open/below")));
	chmod(in_dir("open"), 0777);
	assert_false(is_taken(in_dir("open/below")));
	assert_false(is_taken(in_dir("open")));
	chmod(in_dir("open"), 0775);
	assert_false(is_taken(in_dir("open/below")));
	chmod(in_dir("open"), 01777); /* as /tmp is */
	assert_true(is_taken(in_dir("open/below")));
	chmod(in_dir("open"), 0755);
	chmod(in_dir("open/below/kron"), 0770);
	assert_false(is_taken(in_dir("open/below")));
	chmod(in_dir("open/below/kron"), 0700);
	assert_true(is_taken(in_dir("open/below")));
	/* whom nobody can come to may be as open as he likes */
	chmod(in_dir("open"), 0775);
	chmod(dir, 0700);
	assert_true(is_taken(in_dir("open/below")));
}

static void links_are_followed_if_they_are_ours(void **state)
{
	(void)state;
	mkdir(in_dir("a"), 0755);
	mkdir(in_dir("a/b"), 0700);
	assert_int_equal(symlink("a/b", in_dir("relative")), 0);
	assert_int_equal(symlink(in_dir("relative"), in_dir("absolute")), 0);
	assert_int_equal(symlink("../a", in_dir("a/up")), 0);
	assert_int_equal(symlink("loop", in_dir("loop")), 0);
	assert_true(is_taken(in_dir("relative")));
	assert_int_equal(access(in_dir("a/b/kron"), F_OK), 0);
	assert_true(is_taken(in_dir("absolute")));
	assert_true(is_taken(in_dir("a/up/b")));
	assert_false(is_taken(in_dir("loop")));
	rmdir(in_dir("a/b/kron"));
	put_file(in_dir("a/b/kron"), "", 0, 0600);
	assert_false(is_taken(in_dir("relative")));
}

static void what_strangers_have_is_not_taken(void **state)
{
	(void)state;
	if (geteuid())
		return;
	chmod(dir, 0755);
	mkdir(in_dir("his"), 0700);
	mkdir(in_dir("his/below"), 0700);
	mkdir(in_dir("ours"), 0700);
	assert_int_equal(chown(in_dir("his"), STRANGER, STRANGER), 0);
	assert_false(is_taken(in_dir("his")));
	assert_false(is_taken(in_dir("his/below")));
	assert_int_equal(symlink("ours", in_dir("link")), 0);
	assert_true(is_taken(in_dir("link")));
	assert_int_equal(lchown(in_dir("link"), STRANGER, STRANGER), 0);
	assert_false(is_taken(in_dir("link")));
	assert_int_equal(chown(in_dir("ours/kron"), STRANGER, STRANGER), 0);
	assert_false(is_taken(in_dir("ours")));
}

static void as_a_stranger(void)
{
	CHECK(!setgid(STRANGER) && !setuid(STRANGER));
	if (access(dir, X_OK))
		_exit(0);                 /* the way there is closed to him */
	CHECK(is_taken(in_dir("his")));   /* below root's folders: nothing wrong with that */
	CHECK(!is_taken(in_dir("ours"))); /* root's own cache */
}

static void others_do_not_take_roots(void **state)
{
	(void)state;
	if (geteuid())
		return;
	chmod(dir, 0755);
	mkdir(in_dir("his"), 0700);
	mkdir(in_dir("ours"), 0755);
	mkdir(in_dir("ours/kron"), 0755);
	assert_int_equal(chown(in_dir("his"), STRANGER, STRANGER), 0);
	in_child(as_a_stranger);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(the_folder_is_found_or_not),
		CASE(a_new_folder_is_ours_alone),
		CASE(a_way_that_others_can_change_is_not_gone),
		CASE(links_are_followed_if_they_are_ours),
		CASE(what_strangers_have_is_not_taken),
		CASE(others_do_not_take_roots),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
