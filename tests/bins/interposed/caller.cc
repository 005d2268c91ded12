// SPDX-License-Identifier: MIT
//
// caller.cc - calls the functions of callee.c in all ways that a probe at the linker's stubs
// could disturb, and prints what it sees.
#include <csetjmp>
#include <cstdio>
#include <dlfcn.h>
#include <thread>
#include <vector>

extern "C" {
long add(long);
double sum(int n, ...);
void call(void (*fn)());
long old_twice(long);
long twice(long);
long outer(long);
long chosen(long);
void report();
}
__asm__(".symver old_twice,twice@V1");

static jmp_buf back;

static void throws()
{
	throw 42;
}

static void jumps()
{
	longjmp(back, 1);
}

static void exceptions()
{
	int caught = 0, jumped = 0;

	for (int i = 0; i < 5; i++) {
		try {
			call(throws);
		} catch (int n) {
			caught += n;
		}
	}
	for (volatile int i = 0; i < 4; i = i + 1) {
		if (setjmp(back))
			jumped++;
		else
			call(jumps);
	}
	printf("caught %d jumped %d\n", caught, jumped);
}

static void plugins(const char *path, int flags)
{
	void *handle = dlopen(path, flags);

	if (!handle) {
		printf("%s\n", dlerror());
		return;
	}
	auto run = (long (*)(int))dlsym(handle, "plugin");
	auto address = (void *(*)())dlsym(handle, "plugin_add");
	printf("plugin %ld\n", run(10));
	printf("one address: %d %d\n", address() == (void *)add,
	       dlsym(RTLD_DEFAULT, "add") == (void *)add);
	dlclose(handle);
}

int main(int argc, char **argv)
{
	std::vector<std::thread> threads;
	long (*volatile pointer)(long) = add;
	long n = 0;

	setvbuf(stdout, nullptr, _IOLBF, 0);
	for (int i = 0; i < 100; i++)
		n = add(n);
	printf("add %ld, by pointer %ld\n", n, pointer(1));
	printf("sum %.1f\n", sum(12, 1l, 2.5, 3l, 4.5, 5l, 6.5, 7l, 8.5, 9l, 10.5, 11l, 12.5));
	printf("twice %ld %ld %ld\n", old_twice(4), twice(4), twice(5));
	printf("outer %ld chosen %ld\n", outer(1), chosen(2));
	exceptions();
	for (int i = 0; i < 4; i++)
		threads.emplace_back([] {
			for (int k = 0; k < 1000; k++)
				chosen(k);
		});
	for (auto &t : threads)
		t.join();
	for (int i = 1; i < argc; i++) {
		plugins(argv[i], RTLD_LAZY);
		plugins(argv[i], RTLD_NOW);
	}
	report();
	return 0;
}
