/* SPDX-License-Identifier: MIT */
/*
 * Unit tests of base/file_bytes.c and guard.c: files that change and shrink while they are read, and
 * that the planner notices.  The test cuts them off itself.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file_bytes.h"
#include "base/guard.h"
#include "inject/elf/elf_image.h"
#include "inject/plan/plan.h"

#define SIZE (64 * 1024)
#define CUT 77 /* exit status */

static char path[] = "/tmp/kron-file-bytes-XXXXXX";
static int file;

static void fill(mode_t mode)
{
	char page[4096];

	guard_install(CUT); /* cmocka takes SIGBUS for itself, test by test */
	assert_int_equal(ftruncate(file, 0), 0);
	memset(page, 'x', sizeof(page));
	for (int i = 0; i < SIZE / 4096; i++)
		assert_int_equal(pwrite(file, page, sizeof(page), i * 4096), sizeof(page));
	assert_int_equal(fchmod(file, mode), 0);
}

static void open_it(struct file_bytes *b)
{
	struct stat st;
	struct err err = {""};

	assert_int_equal(fstat(file, &st), 0);
	if (file_bytes_open(b, file, &st, path, &err))
		fail_msg("%s", err.msg);
	assert_int_equal(b->size, SIZE);
}

static unsigned count(const struct file_bytes *b, int byte)
{
	unsigned n = 0;

	for (size_t i = 0; i < b->size; i++)
		n += b->v[i] == byte;
	return n;
}

static void our_file_is_mapped_and_ends_in_zeros(void **state)
{
	struct file_bytes b;

	(void)state;
	fill(0600);
	open_it(&b);
	assert_false(b.copied);
	assert_int_equal(count(&b, 'x'), SIZE);
	assert_false(file_bytes_are_cut(&b));
	assert_int_equal(ftruncate(file, 5000), 0);
	/* the page that the end is in has zeros after it, and those after it are not there */
	assert_int_equal(count(&b, 'x'), 5000);
	assert_int_equal(count(&b, 0), SIZE - 5000);
	assert_true(file_bytes_are_cut(&b));
	file_bytes_close(&b);
	/* the next one is another */
	fill(0600);
	open_it(&b);
	assert_int_equal(count(&b, 'x'), SIZE);
	assert_false(file_bytes_are_cut(&b));
	file_bytes_close(&b);
}

static void what_others_can_write_is_copied(void **state)
{
	static const mode_t modes[] = {0620, 0602, 0666};
	struct file_bytes b;

	(void)state;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		fill(modes[i]);
		open_it(&b);
		assert_true(b.copied);
		assert_int_equal(pwrite(file, "yyyy", 4, 100), 4);
		assert_int_equal(ftruncate(file, 200), 0);
		assert_int_equal(count(&b, 'x'), SIZE);
		assert_false(file_bytes_are_cut(&b));
		file_bytes_close(&b);
	}
}

static void what_others_own_is_copied(void **state)
{
	struct stat st = {.st_uid = 65534, .st_mode = S_IFREG | 0644};

	(void)state;
	assert_true(file_is_others(&st) || geteuid() == 65534);
	st.st_uid = geteuid();
	assert_false(file_is_others(&st));
	st.st_uid = 0;
	assert_false(file_is_others(&st));
	st.st_mode |= 020;
	assert_true(file_is_others(&st));
}

/* Between fstat() and read(). */
static void a_copy_that_falls_short_is_refused(void **state)
{
	struct file_bytes b;
	struct stat st;
	struct err err = {""};

	(void)state;
	fill(0666);
	assert_int_equal(fstat(file, &st), 0);
	assert_int_equal(ftruncate(file, 300), 0);
	assert_int_equal(file_bytes_open(&b, file, &st, path, &err), -ESTALE);
	assert_non_null(strstr(err.msg, "was cut off while it was read"));
}

static uint64_t number_in(const char *proc_file, const char *format)
{
	FILE *f = fopen(proc_file, "re");
	uint64_t n = 0;
	char line[256];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, format, &n) == 1)
			break;
	fclose(f);
	return n;
}

static void make_sparse(off_t size)
{
	fill(0666);
	assert_int_equal(ftruncate(file, size), 0);
	assert_int_equal(pwrite(file, "x", 1, size - 1), 1);
}

/* Another user's file of a gigabyte may have taken him no more than a page. */
static void holes_take_no_memory(void **state)
{
	struct file_bytes b;
	struct stat st;
	struct err err = {""};
	uint64_t before;

	(void)state;
	make_sparse(1 << 30);
	assert_int_equal(fstat(file, &st), 0);
	before = number_in("/proc/self/status", "VmRSS: %" SCNu64);
	assert_int_equal(file_bytes_open(&b, file, &st, path, &err), 0);
	assert_true(b.copied);
	assert_true(number_in("/proc/self/status", "VmRSS: %" SCNu64) - before < 64 * 1024);
	assert_int_equal(b.v[SIZE - 1], 'x');
	assert_int_equal(b.v[SIZE], 0);
	assert_int_equal(b.v[b.size - 1], 'x');
	file_bytes_close(&b);
}

static void what_takes_most_of_the_memory_is_refused(void **state)
{
	uint64_t available = number_in("/proc/meminfo", "MemAvailable: %" SCNu64) << 10;
	struct file_bytes b;
	struct stat st;
	struct err err = {""};

	(void)state;
	make_sparse((off_t)(available / 4 * 3));
	assert_int_equal(fstat(file, &st), 0);
	for (int i = 0; i < 2; i++) { /* the first leaves nothing behind */
		assert_int_equal(file_bytes_open(&b, file, &st, path, &err), -EFBIG);
		assert_non_null(strstr(err.msg, "is too large"));
	}
	fill(0666);
	open_it(&b);
	file_bytes_close(&b);
}

static void *read_on(void *arg)
{
	struct file_bytes *b = arg;

	uintptr_t sum = 0;

	for (int i = 0; i < 200; i++)
		sum += count(b, 'x');
	return (void *)sum; /* or the compiler reads nothing */
}

static void threads_may_meet_the_end_at_once(void **state)
{
	struct file_bytes b;
	pthread_t t[4];

	(void)state;
	fill(0600);
	open_it(&b);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, read_on, &b), 0);
	assert_int_equal(ftruncate(file, 0), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(count(&b, 0), SIZE);
	assert_true(file_bytes_are_cut(&b));
	file_bytes_close(&b);
}

/* What nobody has asked to guard: the end, but one with a sentence. */
static void other_files_end_it(void **state)
{
	volatile uint8_t *p;
	int status;
	pid_t pid;

	(void)state;
	fill(0600);
	p = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, file, 0);
	assert_true(p != MAP_FAILED);
	assert_int_equal(ftruncate(file, 0), 0);
	pid = fork();
	if (!pid) {
		close(STDERR_FILENO);
		(void)p[8000];
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == CUT);
	munmap((void *)(uintptr_t)p, SIZE);
}

static void copy_own_program(void)
{
	char buf[65536];
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	guard_install(CUT);
	assert_int_equal(ftruncate(file, 0), 0);
	lseek(file, 0, SEEK_SET);
	while ((n = read(self, buf, sizeof(buf))) > 0)
		assert_int_equal(write(file, buf, (size_t)n), n);
	close(self);
	assert_int_equal(fchmod(file, 0600), 0);
}

static void no_plan_is_made_from_zeros(void **state)
{
	struct elf_image *img;
	struct plan *plan = NULL;
	struct err err = {""};

	(void)state;
	copy_own_program();
	assert_int_equal(elf_image_open(&img, path, &err), 0);
	assert_int_equal(elf_image_check(img, &err), 0);
	assert_int_equal(ftruncate(file, 8192), 0);
	assert_int_not_equal(plan_make(&plan, img, NULL, &err), 0);
	assert_non_null(strstr(err.msg, "was cut off while it was read"));
	assert_null(plan);
	elf_image_close(img);
}

static void only_plain_files_are_opened(void **state)
{
	char fifo[] = "/tmp/kron-file-fifo-XXXXXX";
	struct stat st;
	int fd;

	(void)state;
	assert_true(file_open_plain("/nowhere/at/all") < 0);
	assert_int_equal(errno, ENOENT);
	fd = file_open_plain("/dev/null");
	assert_true(fd >= 0 && fcntl(fd, F_GETFL) & O_PATH);
	close(fd);
	close(mkstemp(fifo));
	unlink(fifo);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	fd = file_open_plain(fifo);
	assert_true(fd >= 0 && fcntl(fd, F_GETFL) & O_PATH);
	close(fd);
	unlink(fifo);
	fd = file_open_plain(path);
	assert_true(fd >= 0 && !fstat(fd, &st) && !(fcntl(fd, F_GETFL) & O_PATH));
	close(fd);
}

static int make_file(void **state)
{
	(void)state;
	file = mkostemp(path, O_CLOEXEC);
	return file < 0;
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(our_file_is_mapped_and_ends_in_zeros),
		cmocka_unit_test(what_others_can_write_is_copied),
		cmocka_unit_test(what_others_own_is_copied),
		cmocka_unit_test(a_copy_that_falls_short_is_refused),
		cmocka_unit_test(holes_take_no_memory),
		cmocka_unit_test(what_takes_most_of_the_memory_is_refused),
		cmocka_unit_test(threads_may_meet_the_end_at_once),
		cmocka_unit_test(other_files_end_it),
		cmocka_unit_test(no_plan_is_made_from_zeros),
		cmocka_unit_test(only_plain_files_are_opened),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
