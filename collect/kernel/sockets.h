/* SPDX-License-Identifier: MIT */
/* sockets.h - what all of our unix sockets need: messages with descriptors, limits of time. */
#ifndef COLLECT_SOCKETS_H
#define COLLECT_SOCKETS_H

#include <stddef.h>
#include <time.h>

#define SOCKET_DESCRIPTORS_MAX 3

/* 0 or -errno.  Of a socket that keeps messages apart (SOCK_SEQPACKET): all of it or nothing. */
int socket_send(int sock, const void *data, size_t size, const int *fds, size_t nfds);

/* Seconds that receiving and sending may take there. */
void socket_limit(int sock, time_t receiving_s, time_t sending_s);

#endif
