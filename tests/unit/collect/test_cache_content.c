/* SPDX-License-Identifier: MIT */
/* test_cache_content.c - sums of files, and which of them the plan cache believes. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <time.h>

#include "tests/unit/collect/plan_cache_rig.h"

/* ---- sums that are known ---- */

/* Files of ours in `dir` can be settled at all. */
static bool files_settle(struct plan_cache *c)
{
	char *name = make_program("settles", "?");
	bool settled;

	plan_source_set_age(1);
	assert_plan(c, name, PLANNED);
	settled = count_entries("known-*");
	if (settled)
		unlink(the_entry("known-*"));
	else
		printf("# %s is on no filesystem whose times are believed\n", dir);
	return settled;
}

static void sum_of(const struct plan_cache *c, const char *path, char text[CONTENT_TEXT])
{
	struct elf_image *img = open_image(path);
	struct plan_source s;

	plan_source_find(&s, img, c->dir);
	content_write(text, &s.content);
	elf_image_close(img);
}

static void a_known_file_is_not_read(void **state)
{
	struct plan_cache c = open_cache();
	char *a, *text, sum[CONTENT_TEXT], other[CONTENT_TEXT], plan[PATH_MAX];

	(void)state;
	if (!files_settle(&c))
		return;
	a = make_program("a", "1");
	assert_plan(&c, a, PLANNED);
	text = the_entry("known-*");
	/* the sum of another program: the text is taken at its word, and that one's plan is loaded */
	sum_of(&c, a, sum);
	assert_int_equal(unlink(text), 0);
	sum_of(&c, in_dir("settles"), other);
	assert_int_equal(unlink(the_entry("known-*")), 0);
	assert_int_equal(symlink(other, text), 0);
	snprintf(plan, sizeof(plan), "%s/kron/%s-v%u-full.plan", dir, sum, PLAN_VERSION);
	assert_int_equal(unlink(plan), 0);
	assert_plan(&c, a, FROM_CACHE); /* as its own would be: they differ after the code */
	assert_int_equal(count_entries("*.plan"), 1);
	if (!geteuid()) { /* but not at a stranger's */
		assert_int_equal(lchown(text, STRANGER, STRANGER), 0);
		assert_plan(&c, a, PLANNED);
		assert_int_equal(unlink(plan), 0);
	}
	unlink(text);
	assert_plan(&c, a, PLANNED);
	plan_cache_close(&c);
}

/* A text that names no plan: nothing is stored under what it says. */
static void a_wrong_text_is_put_right(void **state)
{
	static const char *const wrong[] = {
		"00000000000000000000000000000000000000000000000000000000", "x",
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		"/etc/passwd"};
	struct plan_cache c = open_cache();
	char *a, *text, was[PATH_MAX], now[PATH_MAX];
	ssize_t n;

	(void)state;
	if (!files_settle(&c))
		return;
	a = make_program("a", "1");
	assert_plan(&c, a, PLANNED);
	text = xstrdup(the_entry("known-*"));
	n = readlink(text, was, sizeof(was));
	assert_int_equal(n, CONTENT_TEXT - 1);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		unlink(text);
		assert_int_equal(symlink(wrong[i], text), 0);
		assert_plan(&c, a, FROM_CACHE);
		assert_int_equal(readlink(text, now, sizeof(now)), n);
		assert_memory_equal(now, was, n);
	}
	if (!geteuid()) {
		unlink(text);
		assert_int_equal(symlink(wrong[0], text), 0);
		assert_int_equal(lchown(text, STRANGER, STRANGER), 0);
		assert_plan(&c, a, FROM_CACHE);
		assert_int_equal(readlink(text, now, sizeof(now)), n);
		assert_memory_equal(now, was, n);
	}
	assert_int_equal(count_entries("*.plan"), 2);
	xfree(text);
	plan_cache_close(&c);
}

/* One byte, in place, with the old mtime. */
static void edit(const char *path)
{
	struct timespec t[2];
	struct stat st;
	uint8_t byte;
	int fd = open(path, O_RDWR);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(pread(fd, &byte, 1, st.st_size - 1), 1);
	byte++;
	assert_int_equal(pwrite(fd, &byte, 1, st.st_size - 1), 1);
	t[0] = st.st_atim;
	t[1] = st.st_mtim;
	assert_int_equal(futimens(fd, t), 0);
	close(fd);
}

static void wait_for_a_tick(const char *path)
{
	struct stat st, now;

	assert_int_equal(stat(path, &st), 0);
	do {
		chmod(path, st.st_mode & 07777);
		assert_int_equal(stat(path, &now), 0);
	} while (now.st_ctim.tv_sec == st.st_ctim.tv_sec &&
		 now.st_ctim.tv_nsec == st.st_ctim.tv_nsec);
}

static void an_edit_shows(void **state)
{
	struct plan_cache c = open_cache();
	char *a;

	(void)state;
	if (!files_settle(&c))
		return;
	a = make_program("a", "1");
	wait_for_a_tick(a);
	assert_plan(&c, a, PLANNED);
	wait_for_a_tick(in_dir("settles"));
	edit(a);
	assert_plan(&c, a, PLANNED);
	assert_int_equal(count_entries("known-*"), 2);
	plan_cache_close(&c);
}

static void a_young_file_is_not_known(void **state)
{
	struct plan_cache c = open_cache();
	char *a = make_program("a", "1");

	(void)state;
	for (int i = 0; i < 5; i++) {
		assert_plan(&c, a, PLANNED);
		assert_plan(&c, a, FROM_CACHE); /* its bytes say so */
		edit(a);                        /* mostly within the same tick */
	}
	assert_int_equal(count_entries("known-*"), 0);
	assert_int_equal(count_entries("*.plan"), 5);
	plan_cache_close(&c);
}

/* A file that is changed between the moment when it is summed and the end of its planning. */
static void a_change_meanwhile_shows(void **state)
{
	static const struct plan_request request = {.functions = true};
	struct plan_cache c = open_cache();
	struct elf_image *img;
	struct plan_source s;
	struct functions f = {0};
	struct code_map *map;
	struct plan *p = NULL;
	struct err err = {{0}};

	(void)state;
	for (int cached = 0; cached < 2; cached++) {
		img = open_image(make_program("a", "1"));
		for (int edited = cached; edited >= 0; edited--) {
			plan_cache_source(&c, &s, img);
			assert_int_equal(functions_find(&f, img, &err), 0);
			assert_int_equal(code_map_build(&map, img, &f, &err), 0);
			if (!edited)
				edit(in_dir("a"));
			assert_int_equal(plan_cache_get_request(&c, &p, &s, map, &request, &err),
					 edited ? 0 : -ESTALE);
			assert_int_equal(count_entries("*.plan"), cached);
			plan_free(p);
			code_map_free(map);
			functions_free(&f);
		}
		assert_non_null(strstr(err.msg, "was changed while it was planned"));
		elf_image_close(img);
	}
	plan_cache_close(&c);
}

static void what_others_can_change_is_not_known(void **state)
{
	static const mode_t modes[] = {0775, 0757, 0777};
	struct plan_cache c = open_cache();
	char *a;

	(void)state;
	if (!files_settle(&c))
		return;
	a = make_program("a", "1");
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		chmod(a, modes[i]);
		assert_plan(&c, a, i ? FROM_CACHE : PLANNED);
		assert_int_equal(count_entries("known-*"), 0);
	}
	chmod(a, 0755);
	if (!geteuid()) {
		assert_int_equal(chown(a, STRANGER, STRANGER), 0);
		assert_plan(&c, a, FROM_CACHE);
		assert_int_equal(count_entries("known-*"), 0);
		assert_int_equal(chown(a, 0, 0), 0);
	}
	assert_plan(&c, a, FROM_CACHE);
	assert_int_equal(count_entries("known-*"), 1);
	plan_cache_close(&c);
}

static struct plan_cache for_child;

static unsigned known_after(const char *path)
{
	assert_plan(&for_child, path, FROM_CACHE);
	return count_entries("known-*");
}

static void on_mounts(void)
{
	char *there = in_dir("mount"), *name = in_dir("mount/a");

	CHECK(!unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	mkdir(there, 0755);
	CHECK(!mount("tmpfs", there, "tmpfs", 0, NULL)); /* shared mappings leave no trace there */
	make_program("mount/a", "1");
	CHECK(known_after(name) == 0);
	CHECK(!umount(there));
	CHECK(!mount(in_dir("from"), there, NULL, MS_BIND, NULL));
	CHECK(!mount(NULL, there, NULL, MS_BIND | MS_REMOUNT | MS_NOSUID, NULL));
	CHECK(known_after(name) == 0);
	CHECK(!mount(NULL, there, NULL, MS_BIND | MS_REMOUNT, NULL));
	CHECK(known_after(name) == 1);
	CHECK(!umount(there));
}

static void mounts_that_may_lie_are_not_believed(void **state)
{
	(void)state;
	for_child = open_cache();
	if (!geteuid() && files_settle(&for_child)) {
		mkdir(in_dir("from"), 0755);
		make_program("from/a", "1");
		assert_plan(&for_child, in_dir("from/a"), PLANNED);
		unlink(the_entry("known-*"));
		in_child(on_mounts);
	}
	plan_cache_close(&for_child);
}

/* ---- content.h ---- */

static void sums_are_of_all_bytes(void **state)
{
	static const size_t sizes[] = {0, 1, 63, 1 << 20, (1 << 20) + 1, 3 << 20};
	uint8_t *bytes = xcalloc(1, 3 << 20);
	struct content a, b, seen[6];
	char text[CONTENT_TEXT + 1]; /* and one digit too many */

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		content_of(&seen[i], bytes, sizes[i]);
		for (size_t k = 0; k < i; k++)
			assert_false(content_is(&seen[i], &seen[k]));
	}
	for (size_t at = 0; at < 3 << 20; at += 99991) {
		bytes[at] = 1;
		content_of(&a, bytes, 3 << 20);
		assert_false(content_is(&a, &seen[5]));
		bytes[at] = 0;
	}
	content_of(&a, bytes, 3 << 20);
	assert_true(content_is(&a, &seen[5]));
	/* SHA-256 of 1, eight zeros for the length, and no leaf */
	content_write(text, &seen[0]);
	assert_string_equal(text, "a536aa3cede6ea3c1f3e0357c3c60e0f216a8c89b853df13b29daa8f");
	assert_true(content_read(&b, text));
	assert_true(content_is(&b, &seen[0]));
	assert_false(content_read(&b, "00"));
	assert_false(content_read(&b, strcat(text, "0")));
	xfree(bytes);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(a_known_file_is_not_read),
		CASE(a_wrong_text_is_put_right),
		CASE(an_edit_shows),
		CASE(a_young_file_is_not_known),
		CASE(a_change_meanwhile_shows),
		CASE(what_others_can_change_is_not_known),
		CASE(mounts_that_may_lie_are_not_believed),
		CASE(sums_are_of_all_bytes),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
