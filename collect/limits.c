/* SPDX-License-Identifier: MIT */
/* limits.c - see limits.h */
#define _GNU_SOURCE
#include "collect/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "collect/segment.h"

#define MIB (1ull << 20)
#define BUFFER_MIN ((uint64_t)SEGMENT_CHUNKS_MIN * KRON_CHUNK_SIZE)
#define STACK (2 * MIB) /* of a thread: what demanglers take at most, and as much again */
#define THREADS 4u      /* stacks of serve, drain, grow and of one that answers */
#define WORK (20 * MIB) /* for tables, and the plan of a libc with all its functions */
#define SHARE 8u        /* of the address space of each traced process */
#define DESCRIPTORS 32u

static uint64_t limit_of(int resource)
{
	struct rlimit r;

	return getrlimit((__rlimit_resource_t)resource, &r) || r.rlim_cur == RLIM_INFINITY
		       ? UINT64_MAX
		       : (uint64_t)r.rlim_cur;
}

static uint64_t without(uint64_t all, uint64_t part)
{
	return all == UINT64_MAX ? all : all > part ? all - part : 0;
}

struct in_use { /* pages */
	uint64_t all, data;
};

static struct in_use pages_in_use(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	struct in_use p;

	if (!f || fscanf(f, "%" SCNu64 " %*u %*u %*u %*u %" SCNu64, &p.all, &p.data) != 2)
		p = (struct in_use){0};
	if (f)
		fclose(f);
	return p;
}

static uint64_t stack_size(void)
{
	pthread_attr_t attr;
	size_t size = 8 * MIB;

	if (!pthread_getattr_default_np(&attr)) { /* as limits_set_stacks() has it */
		pthread_attr_getstacksize(&attr, &size);
		pthread_attr_destroy(&attr);
	}
	return size;
}

static uint64_t page_size(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Of our own, but for the pool. */
static uint64_t needed(void)
{
	return THREADS * stack_size() + WORK;
}

/* How much of the pool fits into kron's own address space. */
static uint64_t room_in_address_space(void)
{
	uint64_t limit = limit_of(RLIMIT_AS);

	if (limit == UINT64_MAX)
		return limit;
	return without(limit, pages_in_use().all * page_size() + KRON_WINDOW_SIZE + needed());
}

static uint64_t room_in_file(void)
{
	return without(limit_of(RLIMIT_FSIZE), KRON_WINDOW_SIZE);
}

uint64_t limits_default_buffer(void)
{
	uint64_t room = room_in_address_space(), file = room_in_file();
	uint64_t share = room == UINT64_MAX ? room : limit_of(RLIMIT_AS) / SHARE;

	if (share < room)
		room = share;
	return file < room ? file : room;
}

static int check_room(uint64_t room, uint64_t buffer, const char *what, struct err *err)
{
	if (room < BUFFER_MIN)
		return err_set(err, ENOMEM,
			       "%s leaves no room for kron's buffer, which takes %llu MiB at least",
			       what, BUFFER_MIN / MIB);
	if (buffer > room)
		return err_set(err, ENOMEM,
			       "a buffer of %llu MiB does not fit below %s: %llu MiB do",
			       (unsigned long long)(buffer / MIB), what,
			       (unsigned long long)(room / MIB));
	return 0;
}

/* The pool is shared memory, which does not count here. */
static int check_data(struct err *err)
{
	uint64_t limit = limit_of(RLIMIT_DATA);
	uint64_t least = pages_in_use().data * page_size() + needed();

	if (limit >= least)
		return 0;
	return err_set(err, ENOMEM,
		       "the limit of data (ulimit -d) is %" PRIu64
		       " KiB: kron record needs %" PRIu64 " at least, and more for large programs",
		       limit / 1024, least / 1024);
}

/* Each thread's whole stack counts against the limits, used or not. */
void limits_set_stacks(void)
{
	pthread_attr_t attr;

	if (pthread_getattr_default_np(&attr))
		return;
	if (!pthread_attr_setstacksize(&attr, STACK))
		pthread_setattr_default_np(&attr);
	pthread_attr_destroy(&attr);
}

int limits_check(uint64_t buffer, struct err *err)
{
	uint64_t descriptors = limit_of(RLIMIT_NOFILE);
	int code;

	if (descriptors < DESCRIPTORS)
		return err_set(err, EMFILE,
			       "the limit of open files (ulimit -n) is %" PRIu64
			       ": kron record needs %u at least",
			       descriptors, DESCRIPTORS);
	code = check_room(room_in_file(), buffer, "the limit of file sizes (ulimit -f)", err);
	if (code)
		return code;
	code = check_data(err);
	if (code)
		return code;
	return check_room(room_in_address_space(), buffer,
			  "the limit of the address space (ulimit -v)", err);
}
