/* SPDX-License-Identifier: MIT */
/*
 * link_order.h - in which order the dynamic linker of a process looks through its modules.
 *
 *   DT_DEBUG of the program ─► r_debug ─► link_map ─► link_map ─► ...
 *
 * At the start of a program the list has the order in which symbols are looked up: the program,
 * what LD_PRELOAD names, and what they need, by breadth.
 */
#ifndef COLLECT_LINK_ORDER_H
#define COLLECT_LINK_ORDER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The load biases of the modules, at most max of them; debug: address of the value of DT_DEBUG.
 * 0: it cannot be read, or makes no sense. */
size_t link_order_read(pid_t pid, uint64_t debug, uint64_t *bias, size_t max);

#endif
