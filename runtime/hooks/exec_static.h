/* SPDX-License-Identifier: MIT */
/* exec_static.h - the collector attaches to a program that this thread executes. */
#ifndef RUNTIME_EXEC_STATIC_H
#define RUNTIME_EXEC_STATIC_H

#include <stdbool.h>

/*
 * Signals are blocked by the caller.  loads: its dynamic linker could bring the runtime.  LOADS: it is to do so;
 * NOT: it runs untraced, and that is noted.
 */
enum rt_exec_answer { RT_EXEC_NOT, RT_EXEC_AWAITED, RT_EXEC_LOADS };
enum rt_exec_answer rt_exec_announce(bool loads) __attribute__((visibility("hidden")));
/* Tells the collector that the awaited execve has failed. */
void rt_exec_take_back(void) __attribute__((visibility("hidden")));

#endif
