/* SPDX-License-Identifier: MIT */
/*
 * tables.c - which of its tables a program works on, by the page, as it goes on: the question that refcnt(5) was made
 * for.  A matrix is summed up by rows, then one column of it is; each time its pages are a section of their own.
 *
 *   kron pages -o pages.txt -- ./tables      examples/refcnt/run does it
 */
#include <refcnt.h>
#include <stdio.h>
#include <stdlib.h>

#define PAGES 16
#define ROW (REFCNT_HW_PAGE / sizeof(long)) /* a row is a page */

static _Alignas(REFCNT_HW_PAGE) long matrix[PAGES][ROW];

static __attribute__((noinline)) long by_rows(void)
{
	long sum = 0;

	for (unsigned i = 0; i < PAGES / 2; i++)
		for (unsigned k = 0; k < ROW; k++)
			sum += matrix[i][k];
	return sum;
}

static __attribute__((noinline)) long by_column(void)
{
	long sum = 0;

	for (unsigned i = 0; i < PAGES; i++)
		sum += matrix[i][0];
	return sum;
}

static void fail(void)
{
	fprintf(stderr, "tables: %s\n", refcnt_error());
	exit(1);
}

static void show(struct refcnt *r, const char *what)
{
	static sn0_refcnt_buf_t counted[PAGES], extended[PAGES];
	sn0_refcnt_args_t args = {(char *)matrix, sizeof(matrix), counted};

	if (refcnt_ioctl(r, PIOCGETSN0REFCNTRS, &args) < 0)
		fail();
	args.buf = extended;
	if (refcnt_ioctl(r, PIOCGETSN0EXTREFCNTRS, &args) < 0)
		fail();
	printf("%-10s", what);
	for (int i = 0; i < PAGES; i++)
		printf(" %4u", counted[i].refcnt_set.refcnt[0] + extended[i].refcnt_set.refcnt[0]);
	printf("\n");
}

int main(void)
{
	struct refcnt *r = refcnt_open(0);
	volatile long sum;

	if (!r || refcnt_enable(r, matrix, sizeof(matrix)))
		fail();
	printf("References to each page of the matrix\n");
	sum = by_rows();
	show(r, "by rows");
	/* a section that is enabled again begins at 0 */
	if (refcnt_disable(r, matrix, sizeof(matrix)) || refcnt_enable(r, matrix, sizeof(matrix)))
		fail();
	sum = by_column();
	show(r, "by column");
	(void)sum;
	refcnt_close(r);
	return 0;
}
