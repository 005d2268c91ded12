/* SPDX-License-Identifier: MIT */
/*
 * group_socket.h - where the datagrams of a group go.
 *
 *   one host    /dev/shm/kron-group.UID.NAME/ID: a socket a member, in a directory of one user
 *   more        UDP: a port that is the group's, to be found at, and one of the member's own, to answer to
 */
#ifndef COLLECT_CABLE_GROUP_SOCKET_H
#define COLLECT_CABLE_GROUP_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/vec.h"

struct group_address {
	struct sockaddr_storage a;
	socklen_t size;
	bool is_whole; /* what came is as long as was asked for */
};

struct group_socket {
	int fd;    /* sends, and gets what is for this member alone */
	int found; /* UDP: gets what is for all of the group; -1: none, or another member here does */
	VEC(struct group_address) others;
	char dir[96], path[108]; /* one host */
};
#define GROUP_SOCKET_NONE ((struct group_socket){.fd = -1, .found = -1})

/* 0, or -errno with a sentence. */
int group_socket_unix(struct group_socket *s, const char *name, const unsigned char *id,
		      struct err *err);
int group_socket_udp(struct group_socket *s, const char *hosts, struct err *err);
/* Of several members on a host one has the group's port; the next one when that one has gone. */
void group_socket_take_port(struct group_socket *s);
void group_socket_close(struct group_socket *s);

void group_send(const struct group_socket *s, const struct group_address *to, const void *v,
		size_t n);
/* To whoever may be of the group. */
void group_send_all(const struct group_socket *s, const void *v, size_t n);
/* Until something comes, or `wake` can be read, or so many milliseconds are over. */
void group_wait(const struct group_socket *s, int wake, int ms);
/* false: nothing is there. */
bool group_receive(const struct group_socket *s, struct group_address *from, void *v, size_t n);

#endif
