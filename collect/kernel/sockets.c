/* SPDX-License-Identifier: MIT */
/* sockets.c - see sockets.h. */
#include "collect/kernel/sockets.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

int socket_send(int sock, const void *data, size_t size, const int *fds, size_t nfds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(SOCKET_DESCRIPTORS_MAX * sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = (void *)data, .iov_len = size};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;
	ssize_t n;

	if (nfds > SOCKET_DESCRIPTORS_MAX)
		return -E2BIG;
	if (nfds) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
	}
	do
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

void socket_limit(int sock, time_t receiving_s, time_t sending_s)
{
	const struct timeval receiving = {.tv_sec = receiving_s}, sending = {.tv_sec = sending_s};

	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &receiving, sizeof(receiving));
	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &sending, sizeof(sending));
}
