/* SPDX-License-Identifier: MIT */
/*
 * peers.h - who is at the other end of a connection, and does it belong to this recording?
 *
 * The kernel says pid and uid; all else is hearsay.  doc/SECURITY.md has the rules.
 */
#ifndef COLLECT_PEERS_H
#define COLLECT_PEERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "collect/segment.h"
#include "collect/tasks.h"

struct peer {
	pid_t pid;     /* in our namespace; 0: it cannot be seen from here */
	pid_t its_pid; /* in its own namespace; equal to pid until it is identified */
	uid_t uid;     /* effective, when it connected */
	int pidfd;     /* -1: not identified */
};

/* Users of whom a process has proved that it belongs to the recording. */
struct peer_users {
	VEC(uid_t) known;
};

/* From the socket's credentials. */
void peer_of_socket(struct peer *p, int fd);
/* Get hold of the process that connected.  False: its number is another's by now, or nobody's. */
bool peer_identify(struct peer *p, int fd);
/* The number still means that process.  Numbers are used again. */
bool peer_is_there(int pidfd);
void peer_close(struct peer *p);

/*
 * A process of another user says HELLO with this recording's token.  Was it started by a process of the
 * recording?
 */
bool peer_belongs(struct peer_users *u, const struct peer *p, struct tasks *t);

/* Is it in another user namespace than we are? */
bool peer_is_in_other_users(const struct peer *p);

#endif
