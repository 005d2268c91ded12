/* SPDX-License-Identifier: MIT */
/* places.c - a program with an inlined function, loops, calls of libc, for probes at places. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct item {
	struct item *next;
	int key, value;
};

static inline __attribute__((always_inline)) int mix(int a, int b)
{
	int c = a * 31 + b;

	return c ^ c >> 7;
}

__attribute__((noinline)) static int sum(const struct item *list, int limit)
{
	int total = 0;

	for (const struct item *i = list; i; i = i->next) {
		if (i->key > limit)
			continue;
		total += mix(i->value, i->key);
	}
	return total;
}

__attribute__((noinline)) static struct item *add(struct item *list, int key, size_t size)
{
	struct item *i = malloc(size);

	if (!i)
		abort();
	memset(i, 0, sizeof(*i));
	i->key = key;
	i->value = mix(key, 7);
	i->next = list;
	return i;
}

__attribute__((noinline)) static void release(struct item *list)
{
	while (list) {
		struct item *next = list->next;

		free(list);
		list = next;
	}
}

__attribute__((noinline)) int choose(int n)
{
	switch (n % 7) {
	case 0:
		return n + 3;
	case 1:
		return n * 5;
	case 2:
		return n ^ 0x55;
	case 3:
		return n >> 1;
	case 4:
		return -n;
	default:
		return 1;
	}
}

int main(void)
{
	struct item *list = NULL;
	int r = 0;

	for (int i = 0; i < 40; i++)
		list = add(list, i, sizeof(*list) + 8 * (i % 5));
	for (int i = 0; i < 50; i++)
		r = mix(r, choose(i)) + sum(list, i);
	release(list);
	printf("%d\n", r);
	return 0;
}
