/* SPDX-License-Identifier: MIT */
/*
 * socket.h - which socket a descriptor is, and between which addresses it is: as the kernel says.
 *
 * Descriptors are duplicated, inherited, sent to other processes, closed and used again. The kernel gives each socket a
 * number (SO_COOKIE) that no other one of the host gets, so nobody has to follow descriptors.
 *
 * Under a seccomp filter there are no system calls (hook_seccomp.c): then nothing is known.
 */
#ifndef RUNTIME_SOCKET_H
#define RUNTIME_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include <kron/wire.h>

/* 0: it is no socket.  False: the kernel may not be asked, or does not say (before Linux 4.12). */
bool rt_socket_number(int fd, uint64_t *out) __attribute__((visibility("hidden")));
/*
 * False: it is no socket, has no peer (yet), or this process has told it already.  It is told again when
 * others have taken its place in the table of what was told.
 */
bool rt_socket_endpoints(int fd, struct kron_endpoints *out) __attribute__((visibility("hidden")));

#endif
