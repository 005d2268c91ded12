/* SPDX-License-Identifier: MIT */
/*
 * trust.c - is it the collector who listens there, and may it tell us what to do?
 *
 * Abstract names belong to nobody: once the recorder is gone, any user of the machine can listen
 * under its name.  Who answers is obeyed, down to the code that is mapped.  So before the first
 * byte is sent, the peer must pass both questions (doc/SECURITY.md):
 *
 *   uid        Is it root, or the one user that we are all of, in our group, while we have no capability?
 *              Such a peer can do with us what it likes anyway, with ptrace().  The kernel gives its uid
 *              in our own user namespace.
 *   identity   Is it the process that KRON_RT names?  The name has the number of its pidfd, which is
 *              never given twice (Linux 6.9); 0: the recorder's kernel could not tell.
 *
 * A uid that has no number in our user namespace shows as 65534, and so may anybody's.  Then the
 * identity alone decides.  Not everywhere: a program that a set-id one has started got its KRON_RT
 * from who knows whom, but that one is not in a namespace where uids are missing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/prctl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include "runtime/core/rt.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#define NO_NUMBER 65534u /* of a uid: the kernel's overflowuid */
#define ALL_UIDS "4294967295"

enum answer { NO, YES, CANNOT_TELL };

/* Has every uid a number in our user namespace?  Then 65534 is somebody like others. */
static bool are_all_uids_mapped(void)
{
	char map[64];
	long fd = sys4(__NR_openat, AT_FDCWD, (long)"/proc/self/uid_map", O_RDONLY | O_CLOEXEC, 0);
	long n;

	if (fd < 0)
		return false;
	n = sys3(__NR_read, fd, (long)map, sizeof(map) - 1);
	sys_close((int)fd);
	map[n > 0 ? n : 0] = '\0';
	return mini_contains(map, ALL_UIDS);
}

static bool has_capabilities(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct have[2];

	return sys2(__NR_capget, (long)&head, (long)have) != 0 || have[0].permitted ||
	       have[1].permitted;
}

/* As ptrace() wants it.  A group without a number in our user namespace is like all such groups. */
static bool is_in_our_group(uint32_t peer)
{
	uint32_t real = 0, effective = 0, saved = 0;

	sys3(__NR_getresgid, (long)&real, (long)&effective, (long)&saved);
	return peer == real && peer == effective && peer == saved;
}

static enum answer has_power_over_us(const struct ucred *cred)
{
	const uint32_t peer = cred->uid;
	uint32_t real = 0, effective = 0, saved = 0;
	bool ours;

	sys3(__NR_getresuid, (long)&real, (long)&effective, (long)&saved);
	if ((peer == NO_NUMBER || real == NO_NUMBER || effective == NO_NUMBER ||
	     saved == NO_NUMBER) &&
	    !are_all_uids_mapped())
		return CANNOT_TELL;
	ours = peer == real && peer == effective && peer == saved && is_in_our_group(cred->gid) &&
	       !has_capabilities();
	return peer == 0 || ours ? YES : NO;
}

static enum answer is_named_process(int sock)
{
	int pidfd = -1;
	uint32_t len = sizeof(pidfd);
	struct stat st;
	long ret;

	if (!kron_rt_env.collector)
		return CANNOT_TELL;
	if (sys5(__NR_getsockopt, sock, SOL_SOCKET, SO_PEERPIDFD, (long)&pidfd, (long)&len) != 0)
		return NO;
	ret = sys2(__NR_fstat, pidfd, (long)&st);
	sys_close(pidfd);
	return ret == 0 && st.st_ino == kron_rt_env.collector ? YES : NO;
}

/*
 * Does the process that KRON_RT names live, so that the name is its own and nobody else's?  False also
 * where that cannot be told: its number is that of another pid namespace, a filter may not let us ask.
 */
bool rt_collector_lives(void)
{
	struct pollfd end = {.events = POLLIN}; /* readable once it has ended */
	struct stat st;
	bool lives;

	if (!kron_rt_env.collector || kron_rt_env.collector_pid <= 0 ||
	    sys1(__NR_prctl, PR_GET_SECCOMP) != 0)
		return false;
	end.fd = (int)sys2(__NR_pidfd_open, kron_rt_env.collector_pid, 0);
	if (end.fd < 0)
		return false;
	lives = sys2(__NR_fstat, end.fd, (long)&st) == 0 && st.st_ino == kron_rt_env.collector &&
		sys3(__NR_poll, (long)&end, 1, 0) == 0;
	sys_close(end.fd);
	return lives;
}

bool rt_peer_is_trusted(int sock, const struct ucred *peer)
{
	enum answer same = is_named_process(sock);
	enum answer power = has_power_over_us(peer);

	if (power == CANNOT_TELL)
		return same == YES;
	return power == YES && same != NO;
}
