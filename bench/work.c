/* SPDX-License-Identifier: MIT */
/*
 * work.c - a program with a known number of function calls, for comparing tracers.
 *
 *   work loop N     N calls of an empty function
 *   work tree N     builds, sorts and walks binary trees of N nodes: small functions, real work
 *   work threads T N   T threads, N calls each
 *
 * Prints the calls it made of its own functions, main not counted, so that ns per event can be
 * computed without asking a tracer.  Compiled without inlining of the counted functions.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNTED __attribute__((noinline, noclone))

static _Thread_local uint64_t calls;

COUNTED void empty(void)
{
	calls++;
}

struct node {
	struct node *left, *right;
	uint64_t key, value;
};

COUNTED static uint64_t mix(uint64_t x)
{
	calls++;
	x ^= x >> 31;
	x *= 0x9e3779b97f4a7c15ull;
	x ^= x >> 29;
	return x;
}

COUNTED static struct node *make_node(uint64_t key)
{
	struct node *n = calloc(1, sizeof(*n));

	calls++;
	n->key = key;
	n->value = mix(key);
	return n;
}

COUNTED static int compare(const struct node *n, uint64_t key)
{
	calls++;
	return key < n->key ? -1 : key > n->key;
}

COUNTED static struct node *insert(struct node *root, uint64_t key)
{
	struct node **at = &root;

	calls++;
	while (*at) {
		int c = compare(*at, key);

		if (!c)
			return root;
		at = c < 0 ? &(*at)->left : &(*at)->right;
	}
	*at = make_node(key);
	return root;
}

COUNTED static uint64_t walk(const struct node *n)
{
	calls++;
	if (!n)
		return 0;
	return walk(n->left) + n->value + walk(n->right);
}

COUNTED static void release(struct node *n)
{
	calls++;
	if (!n)
		return;
	release(n->left);
	release(n->right);
	free(n);
}

static void *thread_main(void *arg)
{
	uint64_t n = *(uint64_t *)arg;

	for (uint64_t i = 0; i < n; i++)
		empty();
	return (void *)(uintptr_t)calls;
}

int main(int argc, char **argv)
{
	uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000000;
	const char *mode = argc > 1 ? argv[1] : "loop";
	uint64_t sum = 0;

	if (!strcmp(mode, "loop")) {
		for (uint64_t i = 0; i < n; i++)
			empty();
	} else if (!strcmp(mode, "tree")) {
		struct node *root = NULL;

		for (uint64_t i = 0; i < n; i++)
			root = insert(root, mix(i) % (4 * n));
		sum = walk(root);
		release(root);
	} else if (!strcmp(mode, "threads")) {
		pthread_t t[64];
		uint64_t each = argc > 3 ? strtoull(argv[3], NULL, 10) : 1000000;

		if (n < 1 || n > 64)
			n = 2;
		for (uint64_t i = 0; i < n; i++)
			if (pthread_create(&t[i], NULL, thread_main, &each))
				return 1;
		for (uint64_t i = 0; i < n; i++) {
			void *c;

			pthread_join(t[i], &c);
			calls += (uintptr_t)c + 1; /* thread_main itself */
		}
	} else {
		fprintf(stderr, "usage: work loop|tree N, work threads T N\n");
		return 2;
	}
	printf("calls %llu sum %llu\n", (unsigned long long)calls, (unsigned long long)sum);
	return 0;
}
