/* SPDX-License-Identifier: MIT */
/*
 * dlopen_loop.c - three libraries come and go, two thousand times in all, and land on each
 * other's addresses: a probe of a library that is gone must not stay.
 *
 * Build: O2
 * Flags: -ldl
 * Plugins: libplug0.so:plug.c libplug1.so:plug.c libplug2.so:plug.c
 * Calls: use=2000 main=1
 * Calls-lib: plug_work=6000
 */
#include "torture.h"
#include <dlfcn.h>

OPAQUE static long use(void *lib, int id)
{
	int (*work)(int) = (int (*)(int))dlsym(lib, "plug_work");
	int (*select)(int) = (int (*)(int))dlsym(lib, "plug_select");
	long sum = 0;

	CHECK(work && select);
	for (int i = 0; i < 3; i++) {
		CHECK(work(i) == i + 10 * id + 1);
		sum += select(i);
	}
	return sum;
}

int main(void)
{
	void *held = NULL;
	long sum = 0;

	for (int i = 0; i < 2000; i++) {
		char name[] = "./libplug0.so";
		void *lib;

		name[9] = (char)('0' + i % 3);
		lib = dlopen(name, i & 1 ? RTLD_NOW : RTLD_LAZY);
		CHECK(lib);
		sum += use(lib, i % 3);
		/* Now and then one stays a while, so that the next lands elsewhere. */
		if (held)
			CHECK(!dlclose(held));
		held = i % 7 == 0 ? lib : NULL;
		if (!held)
			CHECK(!dlclose(lib));
	}
	printf("loop %ld\n", sum);
	return 0;
}
