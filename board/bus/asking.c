/* SPDX-License-Identifier: MIT */
/* asking.c - see asking.h. */
#include "board/bus/asking.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <kron/control.h>

#define START_MS 3000u
#define PAUSE_MS 50u

socklen_t asking_address(struct sockaddr_un *a, uint64_t recording)
{
	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, KRON_CONTROL_SOCKET, recording);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(a->sun_path + 1));
}

static int connect_once(const struct sockaddr_un *a, socklen_t len)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int code;

	if (fd >= 0 && !connect(fd, (const struct sockaddr *)a, len))
		return fd;
	code = -errno;
	if (fd >= 0)
		close(fd);
	return code;
}

int asking_connect(uint64_t recording, pid_t pid)
{
	const struct timespec ts = {.tv_nsec = PAUSE_MS * 1000000};
	struct sockaddr_un a;
	socklen_t len = asking_address(&a, recording);
	int fd = connect_once(&a, len);

	for (unsigned ms = 0;
	     fd == -ECONNREFUSED && ms < START_MS && (kill(pid, 0) == 0 || errno == EPERM);
	     ms += PAUSE_MS) {
		nanosleep(&ts, NULL);
		fd = connect_once(&a, len);
	}
	return fd;
}
