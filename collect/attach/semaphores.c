/* SPDX-License-Identifier: MIT */
/* semaphores.c - see semaphores.h */
#define _GNU_SOURCE
#include "collect/attach/semaphores.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "collect/attach/peers.h"

static int raise_one(pid_t pid, int pidfd, uint64_t addr)
{
	uint16_t count;
	struct iovec here = {&count, sizeof(count)};
	struct iovec there = {(void *)(uintptr_t)addr, sizeof(count)};

	if (process_vm_readv(pid, &here, 1, &there, 1, 0) != sizeof(count))
		return errno ? -errno : -EFAULT;
	if (count == UINT16_MAX)
		return 0; /* somebody's, and surely not zero */
	count++;
	if (!peer_is_there(pidfd))
		return -ESRCH;
	if (process_vm_writev(pid, &here, 1, &there, 1, 0) != sizeof(count))
		return errno ? -errno : -EFAULT;
	return 0;
}

int semaphores_raise(pid_t pid, int pidfd, uint64_t bias, const uint64_t *vaddrs, size_t n,
		     struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		int code = raise_one(pid, pidfd, bias + vaddrs[i]);

		if (code)
			return err_set(err, -code,
				       "the counters beside its USDT probes cannot be raised: %s",
				       strerror(-code));
	}
	return 0;
}
