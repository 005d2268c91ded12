/* SPDX-License-Identifier: MIT */
/* exec_static.h - the collector attaches to a program that this thread executes. */
#ifndef RUNTIME_EXEC_STATIC_H
#define RUNTIME_EXEC_STATIC_H

#include <stdbool.h>

/* Signals are blocked by the caller.  True: the program is awaited; false: it runs untraced, and that is noted. */
bool rt_exec_announce(void) __attribute__((visibility("hidden")));
/* Tells the collector that the awaited execve has failed. */
void rt_exec_take_back(void) __attribute__((visibility("hidden")));

#endif
