/* SPDX-License-Identifier: MIT */
/* main.c - calls total() of total.S as often as its argument says, and prints the sum. */
#include <stdio.h>
#include <stdlib.h>

int total(int n);

int main(int argc, char **argv)
{
	long sum = 0;

	for (int i = argc > 1 ? atoi(argv[1]) : 10; i > 0; i--)
		sum += total(5);
	printf("%ld\n", sum);
	return 0;
}
