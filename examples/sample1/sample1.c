/* SPDX-License-Identifier: MIT */
/*
 * sample1.c - interval classes 1, 2 and 3 of mk_rpt(1): system calls in a loop, and a store to
 * the board wherever an interval begins or ends.  NISTIR 5993, 3.6.
 *
 *	cc -o sample1 sample1.c -lmk
 *	./sample1 && mk_rdsample && mk_rpt        with interval.info beside them
 *
 * The times are those of the wall clock, not of the process.
 */
#include <fcntl.h>
#include <mk.h>
#include <sys/stat.h>
#include <unistd.h>

/* Sequence numbers: the same as in interval.info. */
#define PROGRAM_BEGIN 10 /* class 1: the whole program */
#define PROGRAM_END 20
#define IF_BEGIN 81 /* class 2: one of two ways */
#define IF_THEN 82
#define IF_ELSE 83
#define INPUT_BEGIN 8 /* class 3: input, then output */
#define INPUT_END 17
#define OUTPUT_END 12

#define LOOPS 100

/* Is there a file of that name? */
static int look_for(const char *path)
{
	struct stat st;
	int found;

	mk_ts2 = IF_BEGIN;
	found = stat(path, &st) == 0;
	if (found)
		mk_ts2 = IF_THEN;
	else
		mk_ts2 = IF_ELSE;
	return found;
}

static int copy_some(int from, int to)
{
	char buffer[4096];
	ssize_t n;

	mk_ts3 = INPUT_BEGIN;
	n = read(from, buffer, sizeof(buffer));
	mk_ts3 = INPUT_END;
	if (n > 0)
		n = write(to, buffer, (size_t)n);
	mk_ts3 = OUTPUT_END;
	return n < 0;
}

int main(void)
{
	int from, to, i, found = 0;

	MK_DEFAULT_MAP();
	from = open("/dev/zero", O_RDONLY);
	to = open("/dev/null", O_WRONLY);
	if (from < 0 || to < 0) {
		perror("sample1");
		return 1;
	}
	mk_ts1 = PROGRAM_BEGIN;
	for (i = 0; i < LOOPS; i++) {
		found += look_for(i % 3 ? "/" : "/no/such/file");
		if (copy_some(from, to)) {
			perror("sample1");
			return 1;
		}
	}
	mk_ts1 = PROGRAM_END;
	printf("%d loops, the file was there %d times\n", LOOPS, found);
	return 0;
}
