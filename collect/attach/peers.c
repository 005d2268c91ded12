/* SPDX-License-Identifier: MIT */
/* peers.c - see peers.h */
#define _GNU_SOURCE
#include "collect/attach/peers.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/kernel/pidns.h"
#include "collect/kernel/process_maps.h"
#include "collect/starts.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#define GENERATIONS_MAX 64 /* shells in shells */

void peer_of_socket(struct peer *p, int fd)
{
	struct ucred cred = {.uid = (uid_t)-1};
	socklen_t len = sizeof(cred);

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len);
	*p = (struct peer){.pid = cred.pid, .its_pid = cred.pid, .uid = cred.uid, .pidfd = -1};
}

/* Its pid in its own pid namespace, from /proc: without asking the process. */
static pid_t its_pid_of(pid_t pid)
{
	uint64_t ns = pidns_of(pid);
	pid_t inner = ns && ns == pidns_of(getpid()) ? 0 : pidns_inner_of(pid);

	return inner ? inner : pid;
}

/* Linux 6.5 knows who connected.  Before, who has the number now is believed to be it if it is of
 * the same user: it can trick us into looking at another process of its own, and no more. */
bool peer_identify(struct peer *p, int fd)
{
	socklen_t len = sizeof(p->pidfd);
	uid_t uid;

	if (p->pid <= 0)
		return false;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &p->pidfd, &len)) {
		p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
		if (!process_uid(p->pid, &uid) || uid != p->uid)
			peer_close(p);
	}
	if (p->pidfd >= 0)
		p->its_pid = its_pid_of(p->pid);
	return peer_is_there(p->pidfd);
}

bool peer_is_there(int pidfd)
{
	return pidfd >= 0 && (!syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) || errno == EPERM);
}

void peer_close(struct peer *p)
{
	if (p->pidfd >= 0)
		close(p->pidfd);
	p->pidfd = -1;
}

/* It, or one of those that it comes from, is a process of the table, or was started by us. */
static bool is_descendant(pid_t pid, struct tasks *t)
{
	pid_t us = getpid();

	for (int i = 0; i < GENERATIONS_MAX && pid > 1; i++) {
		struct process_stat st;

		if (pid == us || tasks_has_process(t, pid))
			return true;
		if (!process_read_stat(pid, 0, &st))
			return false;
		pid = st.ppid;
	}
	return false;
}

bool peer_belongs(struct peer_users *u, const struct peer *p, struct tasks *t)
{
	vec_for(&u->known, uid)
		if (*uid == p->uid)
			return true;
	if (!is_descendant(p->pid, t) && !starts_vouches(t->seg, p->its_pid, p->uid))
		return false;
	*vec_push(&u->known) = p->uid;
	return true;
}

bool peer_is_in_other_users(const struct peer *p)
{
	struct stat theirs, ours;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", p->pid);
	return !stat(path, &theirs) && !stat("/proc/self/ns/user", &ours) &&
	       theirs.st_ino != ours.st_ino;
}
