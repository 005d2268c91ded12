/* SPDX-License-Identifier: MIT */
/*
 * dlopen_storm.c - threads map and unmap memory as fast as they can while others load libraries:
 * every gap in the address space is somebody else's the next moment.  Each library is used, so a
 * trace that lacks one lacks its calls.
 *
 * Build: O2
 * Flags: -pthread -ldl
 * Plugins: libplug0.so:plug.c libplug1.so:plug.c libplug2.so:plug.c libplug3.so:plug.c libplug4.so:plug.c libplug5.so:plug.c libplug6.so:plug.c libplug7.so:plug.c
 * Calls-lib: plug_work=960 plug_start=48 plug_stop=48
 * Modes: lib
 */
#include "torture.h"
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>

#define STORM 4
#define HELD 16
#define LIBS 8
#define ROUNDS 6
#define USES 20

static volatile int stop;

/* Sizes that a block of trampolines has, and now and then one that takes all that is near. */
static size_t size_of(unsigned n)
{
	return n % HELD == 0 ? (8u << 20) << n / HELD % 5 : 4096u * (1 + n * 7 % 24);
}

static void *storm(void *arg)
{
	void *held[HELD] = {NULL};
	size_t len[HELD] = {0};
	unsigned n = (unsigned)(uintptr_t)arg;

	while (!stop) {
		unsigned k = n++ % HELD;

		if (held[k])
			CHECK(!munmap(held[k], len[k]));
		len[k] = size_of(n - 1);
		held[k] = mmap(NULL, len[k], PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		CHECK(held[k] != MAP_FAILED);
		if (n % 8 == 0)
			*(volatile char *)held[k] = 1;
	}
	for (unsigned k = 0; k < HELD; k++)
		if (held[k])
			CHECK(!munmap(held[k], len[k]));
	return NULL;
}

OPAQUE static void use(void *lib, int id)
{
	int (*work)(int) = (int (*)(int))dlsym(lib, "plug_work");

	CHECK(work);
	for (int i = 0; i < USES; i++)
		CHECK(work(i) == i + 10 * id + 1);
}

static void *loader(void *arg)
{
	int id = (int)(intptr_t)arg;
	char name[] = "./libplug0.so";

	name[9] = (char)('0' + id);
	for (int i = 0; i < ROUNDS; i++) {
		void *lib = dlopen(name, RTLD_NOW);

		CHECK(lib);
		use(lib, id);
		CHECK(!dlclose(lib));
	}
	return NULL;
}

int main(void)
{
	pthread_t s[STORM], l[LIBS];

	for (intptr_t i = 0; i < STORM; i++)
		CHECK(!pthread_create(&s[i], NULL, storm, (void *)i));
	for (intptr_t i = 0; i < LIBS; i++)
		CHECK(!pthread_create(&l[i], NULL, loader, (void *)i));
	for (int i = 0; i < LIBS; i++)
		CHECK(!pthread_join(l[i], NULL));
	stop = 1;
	for (int i = 0; i < STORM; i++)
		CHECK(!pthread_join(s[i], NULL));
	puts("loaded in a storm");
	return 0;
}
