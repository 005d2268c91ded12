/* SPDX-License-Identifier: MIT */
/*
 * board_main: two threads that call functions of liba.so and libb.so, and a plug-in that is loaded
 * ROUNDS times.  Prints how often each was called, by its own counters.
 *
 *   board_main PLUGIN ROUNDS
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

extern int a_calls, b_calls;
int hit_a(int x), hit_b(int x);
static int own_calls, plug_calls;

__attribute__((noipa)) int hit(int x)
{
	__atomic_fetch_add(&own_calls, 1, __ATOMIC_RELAXED);
	return x + 1;
}

static void *work(void *arg)
{
	int x = 0;

	for (int i = 0; i < 50; i++)
		x = hit(hit_a(hit_b(x)));
	*(int *)arg = x;
	return NULL;
}

static int load(const char *path)
{
	void *plug = dlopen(path, RTLD_NOW);
	int (*hit_p)(int);

	if (!plug)
		return 1;
	hit_p = (int (*)(int))dlsym(plug, "hit_p");
	for (int i = 0; i < 7; i++, plug_calls++)
		if (hit_p(i) != i + 1)
			return 1;
	return dlclose(plug);
}

int main(int argc, char **argv)
{
	pthread_t t;
	int x, y;

	if (argc < 3 || pthread_create(&t, NULL, work, &x))
		return 1;
	work(&y);
	pthread_join(t, NULL);
	for (int i = 0; i < atoi(argv[2]); i++)
		if (load(argv[1]))
			return 1;
	printf("hit %d\nhit_a %d\nhit_b %d\nhit_p %d\n", own_calls, a_calls, b_calls, plug_calls);
	return x != 150 || y != 150;
}
