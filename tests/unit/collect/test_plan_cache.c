/* SPDX-License-Identifier: MIT */
/*
 * test_plan_cache.c - the plan cache: what it keeps, what it believes, and how large it gets.
 *
 * Cases that play another user, or need a mount of their own, do so as root, and are left out
 * otherwise.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/vec.h"
#include "collect/cache/cache_dir.h"
#include "collect/cache/plan_cache.h"
#include "collect/cache/plan_source.h"

#define STRANGER 65534
#define DAY 86400

/* ---- a folder of our own for each case, where files are settled if anywhere ---- */

static char *dir;

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static int make_dir(void **state)
{
	char name[PATH_MAX];

	(void)state;
	assert_non_null(getcwd(name, sizeof(name) - 20));
	strcat(name, "/cache-XXXXXX");
	if (!mkdtemp(name)) {
		strcpy(name, "/tmp/cache-XXXXXX");
		assert_non_null(mkdtemp(name));
	}
	dir = xstrdup(name);
	return 0;
}

static int remove_dir(void **state)
{
	int code;

	(void)state;
	plan_source_set_age(0);
	code = nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	xfree(dir);
	return code;
}

/* Good for the next some calls. */
static char *in_dir(const char *name)
{
	static char *path[16];
	static unsigned i;
	char **p = &path[i++ % 16];

	xfree(*p);
	*p = xasprintf("%s/%s", dir, name);
	return *p;
}

static void put_file(const char *path, const void *bytes, size_t n, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static uint8_t *get_file(const char *path, size_t *n)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	uint8_t *bytes;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	*n = (size_t)st.st_size;
	bytes = xmalloc(*n + 1);
	assert_int_equal(read(fd, bytes, *n), *n);
	close(fd);
	return bytes;
}

/* ---- the cache and what is in it ---- */

static struct plan_cache open_cache(void)
{
	struct plan_cache c;

	plan_cache_open(&c, dir, NULL);
	assert_true(c.dir >= 0);
	return c;
}

static bool is_named(const char *name, const char *pattern)
{
	size_t n = strlen(pattern);

	if (pattern[n - 1] == '*')
		return !strncmp(name, pattern, n - 1);
	return strlen(name) > n - 1 && !strcmp(name + strlen(name) - (n - 1), pattern + 1);
}

/* How many entries have names like "known-*" or "*.plan"; the path of the last one. */
static unsigned find_entries(const char *pattern, char **last)
{
	DIR *d = opendir(in_dir("kron"));
	struct dirent *e;
	unsigned n = 0;

	while (d && (e = readdir(d))) {
		if (!is_named(e->d_name, pattern))
			continue;
		if (last)
			*last = in_dir(xasprintf("kron/%s", e->d_name));
		n++;
	}
	if (d)
		closedir(d);
	return n;
}

static unsigned count_entries(const char *pattern)
{
	return find_entries(pattern, NULL);
}

static char *the_entry(const char *pattern)
{
	char *path = NULL;

	assert_int_equal(find_entries(pattern, &path), 1);
	return path;
}

static uint64_t bytes_in_cache(void)
{
	DIR *d = opendir(in_dir("kron"));
	struct dirent *e;
	struct stat st;
	uint64_t n = 0;

	while (d && (e = readdir(d)))
		if (!fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
		    S_ISREG(st.st_mode) && strcmp(e->d_name, ".room"))
			n += (uint64_t)st.st_size;
	if (d)
		closedir(d);
	return n;
}

static struct elf_image *open_image(const char *path)
{
	struct elf_image *img;
	struct err err = {{0}};

	if (elf_image_open(&img, path, &err))
		fail_msg("%s", err.msg);
	return img;
}

/* The plan as a file; *was_there: it came from the cache. */
static uint8_t *plan_bytes(const struct plan_cache *c, const char *path, bool hooks_only, size_t *n,
			   bool *was_there)
{
	static const struct plan_key none;
	struct elf_image *img = open_image(path);
	struct plan *p = NULL;
	struct err err = {{0}};
	uint8_t *bytes;
	int fd = memfd_create("plan", 0);

	if (plan_cache_get(c, &p, img, hooks_only, &err))
		fail_msg("%s", err.msg);
	*was_there = p->mapping;
	*n = plan_file_size(p);
	assert_int_equal(plan_save(p, &none, fd, NULL), 0);
	bytes = xmalloc(*n);
	assert_int_equal(pread(fd, bytes, *n, 0), *n);
	close(fd);
	plan_free(p);
	elf_image_close(img);
	return bytes;
}

enum from { PLANNED, FROM_CACHE };

/* It is the plan that there is without any cache, and comes from there. */
static void assert_plan(const struct plan_cache *c, const char *path, enum from from)
{
	const struct plan_cache none = {.dir = -1};
	bool was_there;
	size_t n, want_n;
	uint8_t *want = plan_bytes(&none, path, false, &want_n, &was_there);
	uint8_t *got = plan_bytes(c, path, false, &n, &was_there);

	assert_int_equal(was_there, from == FROM_CACHE);
	assert_int_equal(n, want_n);
	assert_memory_equal(got, want, n);
	xfree(got);
	xfree(want);
}

/* A program of ours: /bin/true and some bytes more. */
static char *make_program(const char *name, const char *more)
{
	char *path = in_dir(name);
	size_t n;
	uint8_t *bytes = get_file("/bin/true", &n);

	bytes = xrealloc(bytes, n + strlen(more) + 1);
	memcpy(bytes + n, more, strlen(more));
	put_file(path, bytes, n + strlen(more), 0755);
	xfree(bytes);
	return path;
}

/* Runs the case in a process of its own, for it changes who or where we are. */
static void in_child(void (*fn)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define CHECK(condition)                                                          \
	do {                                                                      \
		if (!(condition)) {                                               \
			fprintf(stderr, "# line %d: %s\n", __LINE__, #condition); \
			_exit(1);                                                 \
		}                                                                 \
	} while (0)

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

/* ---- keeping plans ---- */

static void a_plan_is_kept(void **state)
{
	struct plan_cache c = open_cache();
	struct stat st;

	(void)state;
	assert_plan(&c, "/bin/true", PLANNED);
	assert_int_equal(stat(the_entry("*-full.plan"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_plan(&c, "/bin/true", FROM_CACHE);
	assert_int_equal(count_entries(".new-*"), 0);
	plan_cache_close(&c);
}

static void the_same_bytes_have_the_same_plan(void **state)
{
	struct plan_cache c = open_cache();

	(void)state;
	assert_plan(&c, make_program("a", "1"), PLANNED);
	assert_plan(&c, make_program("b", "1"), FROM_CACHE);
	assert_plan(&c, make_program("c", "2"), PLANNED);
	assert_int_equal(count_entries("*.plan"), 2);
	plan_cache_close(&c);
}

static void no_cache_is_no_trouble(void **state)
{
	struct plan_cache none = {.dir = -1}, gone = open_cache();

	(void)state;
	assert_plan(&none, "/bin/true", PLANNED);
	assert_int_equal(rmdir(in_dir("kron")), 0);
	assert_plan(&gone, "/bin/true", PLANNED);
	assert_plan(&gone, "/bin/true", PLANNED);
	plan_cache_close(&gone);
}

/* Cut at many lengths, and each byte of the beginning and some of the rest flipped: planned anew. */
static void a_damaged_plan_is_made_again(void **state)
{
	struct plan_cache c = open_cache();
	unsigned seed = 1;
	char *path, *name;
	uint8_t *bytes;
	size_t n;

	(void)state;
	name = make_program("a", "1");
	assert_plan(&c, name, PLANNED);
	path = the_entry("*.plan");
	bytes = get_file(path, &n);
	for (size_t i = 0; i < 30; i++) {
		put_file(path, bytes, n * i / 30, 0600);
		assert_plan(&c, name, PLANNED);
		assert_plan(&c, name, FROM_CACHE);
	}
	for (size_t i = 0; i < 300; i++) {
		size_t at = i < 230 ? i : (size_t)rand_r(&seed) % n;

		bytes[at] ^= 0x55;
		put_file(path, bytes, n, 0600);
		bytes[at] ^= 0x55;
		assert_plan(&c, name, PLANNED);
	}
	assert_plan(&c, name, FROM_CACHE);
	xfree(bytes);
	plan_cache_close(&c);
}

/* A whole plan in another one's place. */
static void an_entry_says_what_it_is_of(void **state)
{
	struct plan_cache c = open_cache();
	char *a, *b, *path;
	bool was_there;
	uint8_t *bytes;
	size_t n;

	(void)state;
	a = make_program("a", "1");
	b = make_program("b", "2");
	assert_plan(&c, a, PLANNED);
	path = xstrdup(the_entry("*.plan"));
	assert_int_equal(rename(path, in_dir("kept")), 0);
	assert_plan(&c, b, PLANNED);
	assert_int_equal(rename(in_dir("kept"), the_entry("*.plan")), 0);
	assert_plan(&c, b, PLANNED);
	/* nor do hooks pass for a whole plan */
	unlink(the_entry("*.plan"));
	xfree(plan_bytes(&c, a, true, &n, &was_there));
	bytes = get_file(the_entry("*-hooks.plan"), &n);
	put_file(path, bytes, n, 0600);
	assert_plan(&c, a, PLANNED);
	assert_plan(&c, a, FROM_CACHE);
	xfree(bytes);
	xfree(path);
	plan_cache_close(&c);
}

static void an_entry_of_others_is_not_used(void **state)
{
	struct plan_cache c = open_cache();
	char *name, *path;
	struct stat st;

	(void)state;
	name = make_program("a", "1");
	assert_plan(&c, name, PLANNED);
	path = xstrdup(the_entry("*.plan"));
	for (unsigned i = 0; i < 5; i++) {
		if (i == 0)
			assert_int_equal(chmod(path, 0666), 0);
		if (i == 1)
			assert_int_equal(chmod(path, 0620), 0);
		if (i == 2) { /* whole and ours, but not there */
			assert_int_equal(rename(path, in_dir("kept")), 0);
			assert_int_equal(symlink(in_dir("kept"), path), 0);
		}
		if (i == 3) {
			unlink(path);
			assert_int_equal(mkfifo(path, 0600), 0);
		}
		if (i == 4 && (geteuid() || chown(path, STRANGER, STRANGER)))
			break;
		assert_plan(&c, name, PLANNED);
		assert_int_equal(lstat(path, &st), 0);
		assert_true(S_ISREG(st.st_mode));
		assert_int_equal(st.st_mode & 0777, 0600);
		assert_int_equal(st.st_uid, geteuid());
		assert_plan(&c, name, FROM_CACHE);
	}
	unlink(path);
	mkdir(path, 0700); /* nobody can put an entry there: planned each time */
	assert_plan(&c, name, PLANNED);
	assert_plan(&c, name, PLANNED);
	assert_int_equal(count_entries(".new-*"), 0);
	xfree(path);
	plan_cache_close(&c);
}

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

/* ---- the limit ---- */

#define KIB 1024u

static int fill_with(int fd, void *ctx, struct err *err)
{
	static const char block[4096];
	size_t left = *(const size_t *)ctx;

	while (left) {
		ssize_t n = write(fd, block, left < sizeof(block) ? left : sizeof(block));

		if (n < 0)
			return err_set(err, errno, "%s", strerror(errno));
		left -= (size_t)n;
	}
	return 0;
}

static int put(const struct plan_cache *c, const char *name, size_t size)
{
	return cache_dir_put(c->dir, name, size, c->max_bytes, fill_with, &size, NULL);
}

static void the_limit_holds_at_every_write(void **state)
{
	struct plan_cache c = open_cache();
	unsigned seed = 7, stored = 0;
	char name[40];

	(void)state;
	c.max_bytes = 1024 * KIB;
	for (int i = 0; i < 200; i++) {
		size_t size = (size_t)rand_r(&seed) % (i % 10 ? 100 * KIB : 900 * KIB);

		snprintf(name, sizeof(name), "%d.plan", i % 150);
		assert_int_equal(put(&c, name, size), 0);
		assert_true(bytes_in_cache() <= c.max_bytes);
		stored += !access(in_dir(xasprintf("kron/%s", name)), F_OK);
	}
	assert_int_equal(stored, 200); /* the latest is never the one that goes */
	assert_int_equal(put(&c, "large.plan", 1025 * KIB), -EFBIG);
	assert_int_equal(put(&c, "all.plan", 1024 * KIB), 0);
	assert_int_equal(count_entries("*.plan"), 1);
	plan_cache_close(&c);
}

static void use_at(const char *name, time_t when)
{
	struct timespec t[2] = {{.tv_sec = when}, {.tv_sec = when}};

	assert_int_equal(utimensat(AT_FDCWD, in_dir(name), t, 0), 0);
}

static void what_was_used_longest_ago_goes(void **state)
{
	struct plan_cache c = open_cache();
	time_t now = time(NULL);

	(void)state;
	c.max_bytes = 400 * KIB;
	assert_int_equal(put(&c, "a.plan", 100 * KIB), 0);
	assert_int_equal(put(&c, "b.plan", 100 * KIB), 0);
	assert_int_equal(put(&c, "c.plan", 100 * KIB), 0);
	use_at("kron/a.plan", now - 20);
	use_at("kron/b.plan", now - 3000);
	use_at("kron/c.plan", now - 2000);
	assert_int_equal(put(&c, "d.plan", 150 * KIB), 0);
	assert_int_equal(access(in_dir("kron/a.plan"), F_OK), 0);
	assert_int_not_equal(access(in_dir("kron/b.plan"), F_OK), 0);
	assert_int_not_equal(access(in_dir("kron/c.plan"), F_OK), 0); /* an eighth more */
	assert_int_equal(access(in_dir("kron/d.plan"), F_OK), 0);
	plan_cache_close(&c);
}

static void a_plan_larger_than_all_is_used_and_not_kept(void **state)
{
	struct plan_cache c = open_cache();

	(void)state;
	c.max_bytes = 4096;
	assert_plan(&c, "/bin/true", PLANNED);
	assert_plan(&c, "/bin/true", PLANNED);
	assert_int_equal(count_entries("*.plan"), 0);
	plan_cache_close(&c);
}

/* A sum that is lost, nonsense, or somebody else's. */
static void the_sum_is_made_again(void **state)
{
	struct plan_cache c = open_cache();
	uint64_t little[3] = {0x4d4f4f524e4f524bull, 0, (uint64_t)time(NULL)};

	(void)state;
	c.max_bytes = 400 * KIB;
	for (int i = 0; i < 3; i++)
		assert_int_equal(put(&c, i ? i > 1 ? "c.plan" : "b.plan" : "a.plan", 120 * KIB), 0);
	put_file(in_dir("kron/.room"), "x", 1, 0600);
	assert_int_equal(put(&c, "d.plan", 120 * KIB), 0);
	assert_true(bytes_in_cache() <= c.max_bytes);
	unlink(in_dir("kron/.room"));
	assert_int_equal(put(&c, "e.plan", 120 * KIB), 0);
	assert_true(bytes_in_cache() <= c.max_bytes);
	/* one that others can write to is not believed, and nothing is kept beside it */
	put_file(in_dir("kron/.room"), little, sizeof(little), 0666);
	assert_int_equal(put(&c, "f.plan", 120 * KIB), -EPERM);
	unlink(in_dir("kron/.room"));
	assert_int_equal(mkfifo(in_dir("kron/.room"), 0600), 0);
	assert_int_equal(put(&c, "f.plan", 120 * KIB), -EPERM);
	assert_true(bytes_in_cache() <= c.max_bytes);
	plan_cache_close(&c);
}

static void a_kron_that_is_stopped_stops_nobody(void **state)
{
	struct plan_cache c = open_cache();
	int fd;

	(void)state;
	assert_int_equal(put(&c, "a.plan", 10), 0);
	fd = open(in_dir("kron/.room"), O_RDWR);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(put(&c, "b.plan", 10), -EBUSY);
	assert_plan(&c, "/bin/true", PLANNED);
	close(fd);
	assert_int_equal(put(&c, "b.plan", 10), 0);
	plan_cache_close(&c);
}

/* ---- several at once, and killed ---- */

#define WRITERS 4

static void write_for_ever(unsigned seed)
{
	struct plan_cache c = open_cache();
	char name[40];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	c.max_bytes = 1024 * KIB;
	for (;;) {
		snprintf(name, sizeof(name), "%d.plan", rand_r(&seed) % 50);
		put(&c, name, (size_t)rand_r(&seed) % (100 * KIB));
	}
}

static pid_t start_writer(unsigned seed)
{
	pid_t pid = fork();

	if (!pid) {
		write_for_ever(seed);
		_exit(1);
	}
	assert_true(pid > 0);
	return pid;
}

static void end_writer(pid_t pid)
{
	int status;

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
}

/* Four write, one after the other is killed at any moment: never too much, and all is told. */
static void writers_are_killed(void **state)
{
	struct plan_cache c = open_cache();
	pid_t pid[WRITERS];
	unsigned seed = 3;

	(void)state;
	c.max_bytes = 1024 * KIB;
	for (unsigned i = 0; i < WRITERS; i++)
		pid[i] = start_writer(i);
	for (unsigned i = 0; i < 200; i++) {
		struct timespec pause = {.tv_nsec = rand_r(&seed) % 2000000};

		nanosleep(&pause, NULL);
		/* while it is looked at, entries take others' places: each may be seen twice */
		assert_true(bytes_in_cache() <= 2 * c.max_bytes);
		end_writer(pid[i % WRITERS]);
		pid[i % WRITERS] = start_writer(100 + i);
	}
	for (unsigned i = 0; i < WRITERS; i++)
		end_writer(pid[i]);
	assert_true(bytes_in_cache() <= c.max_bytes);
	assert_int_equal(put(&c, "large.plan", 1000 * KIB), 0); /* which counts */
	assert_int_equal(count_entries(".new-*"), 0);
	assert_true(bytes_in_cache() <= c.max_bytes);
	plan_cache_close(&c);
}

static void use_and_remove(void)
{
	struct plan_cache c = open_cache();

	for (int k = 0; k < 6; k++) {
		char *path = NULL;
		bool was_there;
		size_t n;

		xfree(plan_bytes(&c, "/bin/true", false, &n, &was_there));
		if (k % 2 && find_entries("*.plan", &path))
			unlink(path);
	}
	plan_cache_close(&c);
}

static void one_plan_from_many(void **state)
{
	struct plan_cache c = open_cache();
	pid_t pid[8];
	int status;

	(void)state;
	for (int i = 0; i < 8; i++) {
		pid[i] = fork();
		if (!pid[i]) {
			use_and_remove();
			_exit(0);
		}
	}
	for (int i = 0; i < 8; i++) {
		assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
		assert_int_equal(status, 0);
	}
	if (count_entries("*.plan"))
		unlink(the_entry("*.plan"));
	assert_plan(&c, "/bin/true", PLANNED);
	assert_plan(&c, "/bin/true", FROM_CACHE);
	assert_int_equal(count_entries(".new-*"), 0);
	plan_cache_close(&c);
}

static void on_a_full_disk(void)
{
	char *there = in_dir("mount");
	struct plan_cache c;
	char block[4096] = "";
	int fd;

	CHECK(!unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	mkdir(there, 0755);
	CHECK(!mount("tmpfs", there, "tmpfs", 0, "size=64k,mode=755"));
	plan_cache_open(&c, there, NULL);
	CHECK(c.dir >= 0);
	fd = open(in_dir("mount/all"), O_WRONLY | O_CREAT, 0600);
	while (write(fd, block, sizeof(block)) > 0)
		;
	assert_plan(&c, "/bin/true", PLANNED);
	assert_plan(&c, "/bin/true", PLANNED);
	CHECK(!faccessat(c.dir, ".", F_OK, 0));
	ftruncate(fd, 0);
	c.max_bytes = 1 << 20;
	CHECK(!put(&c, "small.plan", 10));
	CHECK(access(in_dir("mount/kron/small.plan"), F_OK) == 0);
	plan_cache_close(&c);
}

static void a_full_disk_is_no_trouble(void **state)
{
	(void)state;
	if (!geteuid())
		in_child(on_a_full_disk);
}

/* ---- what is old ---- */

static void put_old(const char *name, size_t size, int days)
{
	char *bytes = xcalloc(1, size + 1);

	put_file(in_dir(name), bytes, size, 0600);
	use_at(name, time(NULL) - (time_t)days * DAY - 3600);
	xfree(bytes);
}

static bool has(const char *name)
{
	struct stat st;

	return !lstat(in_dir(name), &st);
}

static void count_long_ago(int days)
{
	uint64_t room[3] = {0x4d4f4f524e4f524bull, 0, (uint64_t)(time(NULL) - (time_t)days * DAY)};

	put_file(in_dir("kron/.room"), room, sizeof(room), 0600);
}

static void what_is_old_goes(void **state)
{
	struct plan_cache c = open_cache();
	struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

	(void)state;
	c.max_bytes = 100 << 10;
	plan_cache_trim(&c); /* there is nothing yet */
	count_long_ago(1);
	put_old("kron/young.plan", 40000, 0);
	put_old("kron/old.plan", 10, 91);
	put_old("kron/large.plan", 90000, 5);
	put_old("kron/small.plan", 10, 6);
	put_old("kron/.new-abcdef", 10, 0); /* nobody has it locked */
	put_old("kron/not-ours", 10, 400);
	assert_int_equal(symlink("x", in_dir("kron/known-old")), 0);
	assert_int_equal(symlink("x", in_dir("kron/known-new")), 0);
	utimensat(AT_FDCWD, in_dir("kron/known-old"), old, AT_SYMLINK_NOFOLLOW);
	plan_cache_trim(&c);
	assert_true(has("kron/young.plan"));
	assert_false(has("kron/old.plan"));
	assert_false(has("kron/large.plan"));
	assert_false(has("kron/small.plan")); /* its use was longer ago than large's */
	assert_false(has("kron/.new-abcdef"));
	assert_true(has("kron/not-ours"));
	assert_true(has("kron/known-new"));
	assert_false(has("kron/known-old"));

	put_old("kron/old.plan", 10, 91); /* once a day */
	plan_cache_trim(&c);
	assert_true(has("kron/old.plan"));
	count_long_ago(1);
	plan_cache_trim(&c);
	assert_false(has("kron/old.plan"));
	assert_true(has("kron/young.plan"));
	plan_cache_close(&c);
}

/* Another kron counts while an entry is written. */
static int fill_and_count(int fd, void *ctx, struct err *err)
{
	size_t size = 8192;

	count_long_ago(2);
	plan_cache_trim(ctx);
	return fill_with(fd, &size, err);
}

static void what_is_being_written_stays(void **state)
{
	struct plan_cache c = open_cache();

	(void)state;
	put_old("kron/.new-abcdef", 10, 0); /* of a kron that was killed */
	assert_int_equal(
		cache_dir_put(c.dir, "a.plan", 8192, c.max_bytes, fill_and_count, &c, NULL), 0);
	assert_true(has("kron/a.plan"));
	assert_false(has("kron/.new-abcdef"));
	plan_cache_close(&c);
}

static void a_used_plan_is_young(void **state)
{
	struct plan_cache c = open_cache();
	struct timespec old[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
	struct stat st;
	char *path;

	(void)state;
	assert_plan(&c, "/bin/true", PLANNED);
	path = the_entry("*.plan");
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	assert_plan(&c, "/bin/true", FROM_CACHE);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_mtime > time(NULL) - 600);
	plan_cache_close(&c);
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

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, make_dir, remove_dir)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(the_folder_is_found_or_not),
		CASE(a_new_folder_is_ours_alone),
		CASE(a_way_that_others_can_change_is_not_gone),
		CASE(links_are_followed_if_they_are_ours),
		CASE(what_strangers_have_is_not_taken),
		CASE(others_do_not_take_roots),
		CASE(a_plan_is_kept),
		CASE(the_same_bytes_have_the_same_plan),
		CASE(no_cache_is_no_trouble),
		CASE(a_damaged_plan_is_made_again),
		CASE(an_entry_says_what_it_is_of),
		CASE(an_entry_of_others_is_not_used),
		CASE(a_known_file_is_not_read),
		CASE(a_wrong_text_is_put_right),
		CASE(an_edit_shows),
		CASE(a_young_file_is_not_known),
		CASE(a_change_meanwhile_shows),
		CASE(what_others_can_change_is_not_known),
		CASE(mounts_that_may_lie_are_not_believed),
		CASE(the_limit_holds_at_every_write),
		CASE(what_was_used_longest_ago_goes),
		CASE(a_plan_larger_than_all_is_used_and_not_kept),
		CASE(the_sum_is_made_again),
		CASE(a_kron_that_is_stopped_stops_nobody),
		CASE(writers_are_killed),
		CASE(one_plan_from_many),
		CASE(a_full_disk_is_no_trouble),
		CASE(what_is_old_goes),
		CASE(what_is_being_written_stays),
		CASE(a_used_plan_is_young),
		CASE(sums_are_of_all_bytes),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
