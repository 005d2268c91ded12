/* SPDX-License-Identifier: MIT */
/*
 * lock_memory.c - locks its memory by mlockall(), under a limit and without one, and says what it got.
 *
 *   lock_memory FLAGS KIB [raw]
 *
 * FLAGS: MCL_*, as a number.  KIB: its RLIMIT_MEMLOCK; 0: none, and root's rights.  raw: by syscall().
 * It prints how its calls ended (errno).  With SHOW_SIZES in its environment it prints how much address
 * space it has before, and how much of it is locked after (KiB).  With CALLS there it makes so many calls each
 * time instead of 200,000.
 *
 * Build: O2
 * Args: 3 0
 * Needs: root
 */
#define _GNU_SOURCE
#include "torture.h"
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define OWN (1ul << 20)

static long calls = 200000;

OPAQUE long work(long n)
{
	return n * 3 + 1;
}

static long much_work(void)
{
	long sum = 0;

	for (long i = 0; i < calls; i++)
		sum += work(i);
	return sum;
}

static long status(const char *name)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[256];
	long kib = -1;

	CHECK(f);
	while (kib < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			kib = atol(line + strlen(name));
	fclose(f);
	return kib;
}

static void drop_rights(rlim_t kib)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};
	struct rlimit limit = {kib << 10, kib << 10};

	CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit));
	CHECK(!syscall(SYS_capset, &head, none));
}

static int lock_all(int flags, int raw)
{
	errno = 0;
	if (raw ? syscall(SYS_mlockall, flags) : mlockall(flags))
		return errno;
	return 0;
}

static int map_and_touch(size_t size)
{
	char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return errno;
	memset(at, 1, size);
	return 0;
}

int main(int argc, char **argv)
{
	const int flags = argc > 1 ? atoi(argv[1]) : 0, raw = argc > 3;
	const long kib = argc > 2 ? atol(argv[2]) : 0;
	long before, sum;
	int got[6], n = 0;

	if (getenv("CALLS"))
		calls = atol(getenv("CALLS"));
	CHECK(!map_and_touch(OWN));
	sum = much_work();
	if (kib)
		drop_rights((rlim_t)kib);
	before = status("VmSize:");
	got[n++] = lock_all(flags, raw);
	got[n++] = lock_all(0, raw);
	got[n++] = lock_all(64, raw);
	sum += much_work();
	got[n++] = map_and_touch(OWN / 2);
	sum += much_work();
	CHECK(sum == 3 * (3l * calls * (calls - 1) / 2 + calls));
	for (int i = 0; i < n; i++)
		printf("%d ", got[i]);
	printf("\n");
	if (getenv("SHOW_SIZES"))
		printf("%ld %ld\n", before, status("VmLck:"));
	CHECK(!munlockall());
	return 0;
}
