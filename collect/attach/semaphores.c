/* SPDX-License-Identifier: MIT */
/* semaphores.c - see semaphores.h */
#define _GNU_SOURCE
#include "collect/attach/semaphores.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "collect/attach/peers.h"
#include "collect/kernel/process_maps.h"

static int change_one(pid_t pid, int pidfd, uint64_t addr, int step)
{
	uint16_t count;
	struct iovec here = {&count, sizeof(count)};
	struct iovec there = {(void *)(uintptr_t)addr, sizeof(count)};

	if (process_vm_readv(pid, &here, 1, &there, 1, 0) != sizeof(count))
		return errno ? -errno : -EFAULT;
	if (count == (step < 0 ? 0 : UINT16_MAX))
		return 0; /* at its limit, or lowered by somebody else: leave it */
	count = (uint16_t)(count + step);
	if (!peer_is_there(pidfd))
		return -ESRCH;
	if (process_vm_writev(pid, &here, 1, &there, 1, 0) != sizeof(count))
		return errno ? -errno : -EFAULT;
	return 0;
}

int semaphores_change(pid_t pid, int pidfd, uint64_t bias, const uint64_t *vaddrs, size_t n,
		      int step, struct err *err)
{
	const pid_t thread = n ? process_memory_thread(pid) : pid;

	for (size_t i = 0; i < n; i++) {
		int code = change_one(thread, pidfd, bias + vaddrs[i], step);

		if (code)
			return err_set(err, -code,
				       "the counters beside its USDT probes cannot be changed: %s",
				       strerror(-code));
	}
	return 0;
}
