/* SPDX-License-Identifier: MIT */
/*
 * dlopen_alone.c - a library that comes when the first thread has ended, which has taken the process's memory out of
 * /proc/PID; its calls must be recorded.
 *
 * Build: O2 O2,no-pie
 * Flags: -ldl -pthread
 * Plugins: libplug0.so:plug.c
 * Args: ./libplug0.so
 * Calls: use=1 main=1
 * Calls-lib: plug_work=1000 plug_inner=1000 plug_start=1
 * Exits-lib: plug_work=1000 plug_inner=1000
 */
#include "torture.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *name;

OPAQUE static long use(void *lib)
{
	int (*work)(int) = (int (*)(int))dlsym(lib, "plug_work");
	long sum = 0;

	CHECK(work);
	for (int i = 0; i < 1000; i++)
		sum += work(i);
	return sum;
}

static int first_has_ended(void)
{
	char text[512], *end;
	FILE *f = fopen("/proc/self/stat", "r");
	size_t n;

	CHECK(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = 0;
	end = strrchr(text, ')');
	return end && end[2] == 'Z';
}

static void *alone(void *arg)
{
	void *lib;

	while (!first_has_ended())
		usleep(1000);
	lib = dlopen(name, RTLD_NOW);
	CHECK(lib);
	printf("alone %ld\n", use(lib));
	CHECK(!dlclose(lib));
	exit(0);
}

int main(int argc, char **argv)
{
	pthread_t t;

	CHECK(argc == 2);
	name = argv[1];
	CHECK(!pthread_create(&t, NULL, alone, NULL));
	pthread_exit(NULL);
}
