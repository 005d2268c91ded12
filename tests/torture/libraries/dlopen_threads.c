/* SPDX-License-Identifier: MIT */
/*
 * dlopen_threads.c - a thread loads and unloads libraries while others run in the program and
 * in libc, so that code is patched beside running threads.
 *
 * Build: O2
 * Flags: -pthread -ldl
 * Plugins: libplug0.so:plug.c libplug1.so:plug.c
 * Calls: loader=2 use=300 main=1
 */
#include "torture.h"
#include <dlfcn.h>
#include <pthread.h>

static volatile int stop;

OPAQUE static unsigned long busy(unsigned long x)
{
	char text[32];

	snprintf(text, sizeof(text), "%lu", x);
	return strtoul(text, NULL, 10) + 1;
}
OPAQUE static void *runner(void *arg)
{
	unsigned long n = 0;

	(void)arg;
	while (!stop) {
		unsigned long next = busy(n);

		CHECK(next == n + 1);
		n = next;
		/* always somewhere in libc, but without a gigabyte of samples */
		if (n % 64 == 0)
			usleep(20);
	}
	return NULL;
}
OPAQUE static void use(void *lib, int id)
{
	int (*work)(int) = (int (*)(int))dlsym(lib, "plug_work");

	CHECK(work);
	for (int i = 0; i < 20; i++)
		CHECK(work(i) == i + 10 * id + 1);
}
OPAQUE static void *loader(void *arg)
{
	int id = (int)(intptr_t)arg;
	char name[] = "./libplug0.so";

	name[9] = (char)('0' + id);
	for (int i = 0; i < 150; i++) {
		void *lib = dlopen(name, RTLD_NOW);

		CHECK(lib);
		use(lib, id);
		CHECK(!dlclose(lib));
	}
	return NULL;
}

int main(void)
{
	pthread_t r[2], l[2];

	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&r[i], NULL, runner, NULL));
	for (intptr_t i = 0; i < 2; i++)
		CHECK(!pthread_create(&l[i], NULL, loader, (void *)i));
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_join(l[i], NULL));
	stop = 1;
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_join(r[i], NULL));
	puts("loaded beside running threads");
	return 0;
}
