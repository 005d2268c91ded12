/* SPDX-License-Identifier: MIT */
/* link_order.c - see link_order.h */
#define _GNU_SOURCE
#include "collect/modules/link_order.h"

#include <link.h>
#include <stdbool.h>
#include <sys/uio.h>

#include "collect/kernel/process_maps.h"

static bool peek(pid_t pid, uint64_t addr, void *out, size_t n)
{
	struct iovec here = {.iov_base = out, .iov_len = n};
	struct iovec there = {.iov_base = (void *)(uintptr_t)addr, .iov_len = n};

	return addr && process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)n;
}

size_t link_order_read(pid_t pid, uint64_t debug, uint64_t *bias, size_t max)
{
	const pid_t thread = process_memory_thread(pid);
	struct r_debug head;
	struct link_map map;
	uint64_t at;
	size_t n = 0;

	if (!peek(thread, debug, &at, sizeof(at)) || !peek(thread, at, &head, sizeof(head)))
		return 0;
	for (at = (uintptr_t)head.r_map; at && n < max; at = (uintptr_t)map.l_next) {
		if (!peek(thread, at, &map, sizeof(map)))
			return 0;
		bias[n++] = map.l_addr;
	}
	return at ? 0 : n;
}
