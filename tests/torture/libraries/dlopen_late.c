/* SPDX-License-Identifier: MIT */
/*
 * dlopen_late.c - a library that comes after start; its calls must be recorded.
 *
 * Build: O2 O2,no-pie
 * Flags: -ldl
 * Plugins: libplug0.so:plug.c
 * Args: ./libplug0.so
 * Calls: use=1 main=1
 * Calls-lib: plug_work=1000 plug_select=1000 plug_inner=2000 plug_start=1
 * Exits-lib: plug_work=1000 plug_inner=2000
 */
#include "torture.h"
#include <dlfcn.h>

OPAQUE static long use(void *lib)
{
	int (*work)(int) = (int (*)(int))dlsym(lib, "plug_work");
	int (*select)(int) = (int (*)(int))dlsym(lib, "plug_select");
	long sum = 0;

	CHECK(work && select);
	for (int i = 0; i < 1000; i++) {
		CHECK(work(i) == i + 1);
		sum += select(i);
	}
	return sum;
}

int main(int argc, char **argv)
{
	void *lib;

	CHECK(argc == 2);
	lib = dlopen(argv[1], RTLD_NOW);
	CHECK(lib);
	printf("late %ld\n", use(lib));
	CHECK(!dlclose(lib));
	return 0;
}
