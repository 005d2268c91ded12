/* SPDX-License-Identifier: MIT */
/*
 * message.h - what sender and receiver share but for the probes: a socket between them.
 *
 * Intervals from one board to another mean something only when both timestamps count the same.
 * With hardware a common clock and reset signal see to that (NISTIR 5571); with emulated boards
 * `kron ctl reset` does, which the script run calls.
 */
#ifndef MESSAGE_H
#define MESSAGE_H

#include <mk.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define SEND_EVENT 10
#define RECEIVE_EVENT 20

#define MESSAGES 200
#define BURST 4 /* messages before the receiver gets a chance */

static inline int fail(const char *what)
{
	perror(what);
	return 1;
}

static inline int send_msg(int fd, uint64_t value)
{
	return send(fd, &value, sizeof(value), 0) != sizeof(value);
}

static inline int receive_msg(int fd, uint64_t *value)
{
	return recv(fd, value, sizeof(*value), 0) != sizeof(*value);
}

static inline struct sockaddr_un address_of(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	strncpy(a.sun_path, path, sizeof(a.sun_path) - 1);
	return a;
}

#endif
