/* SPDX-License-Identifier: MIT */
/* boot.c - see boot.h. */
#include "base/boot.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char id[BOOT_ID_LEN + 1];

static void read_id(void)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && read(fd, id, BOOT_ID_LEN) != BOOT_ID_LEN)
		id[0] = 0;
	if (fd >= 0)
		close(fd);
}

const char *boot_id(void)
{
	pthread_once(&once, read_id);
	return id;
}
