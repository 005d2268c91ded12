/* SPDX-License-Identifier: MIT */
/* test_plan_cache.c - the plan cache: what it keeps, and how large it gets. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <time.h>

#include "collect/cache/cache_dir.h"
#include "tests/unit/collect/plan_cache_rig.h"

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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(a_plan_is_kept),
		CASE(the_same_bytes_have_the_same_plan),
		CASE(no_cache_is_no_trouble),
		CASE(a_damaged_plan_is_made_again),
		CASE(an_entry_says_what_it_is_of),
		CASE(an_entry_of_others_is_not_used),
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
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
