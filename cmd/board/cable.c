/* SPDX-License-Identifier: MIT */
/*
 * cable.c - see cable.h.
 *
 *   kron board create ──fork──► kron-cable     lock of the cable, descriptor of the far end
 *
 * Nobody can wake it, for a traced program makes no system call for that: it looks each millisecond.  What the
 * far end does not take stays in the board, whose FIFOs then fill.
 */
#define _GNU_SOURCE
#include "cmd/board/cable.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/vec.h"
#include "board/bus/cable.h"
#include "collect/cable/address.h"

#define LOOK_MS 1
#define REMOVED_MS \
	1000 /* so long a far end that takes nothing is waited for when the board is gone */

/* ---- where to ---- */

static int open_address(int *to, const char *text, struct err *err)
{
	struct cable_address a;
	bool local;

	if (cable_address_parse(&a, text, false, err))
		return -EINVAL;
	*to = cable_connect(&a, &local, err);
	if (*to < 0)
		return *to;
	if (local)
		return 0;
	close(*to);
	*to = -1;
	return err_set(err, EACCES,
		       "%s is on another machine, and the cable's bytes are not protected: lead it "
		       "through a tunnel",
		       text);
}

int board_cable_open(int *to, const char *path, struct err *err)
{
	char address[128];
	struct stat st;

	*to = -1;
	if (cable_is_address(path))
		return open_address(to, path, err);
	if (!stat(path, &st) && S_ISSOCK(st.st_mode)) {
		if (snprintf(address, sizeof(address), "unix:%s", path) >= (int)sizeof(address))
			return err_set(err, ENAMETOOLONG, "%s is too long for a socket", path);
		return open_address(to, address, err);
	}
	if (!stat(path, &st) && S_ISFIFO(st.st_mode)) {
		if (access(path, W_OK))
			return err_set(err, errno, "cannot write %s: %s", path, strerror(errno));
		return 0;
	}
	*to = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (*to < 0)
		return err_set(err, errno, "cannot write %s: %s", path, strerror(errno));
	return 0;
}

/* ---- the process ---- */

struct drain {
	struct bus bus;
	struct bus_cable cable;
	char *fifo; /* not yet open */
	int to;
};

static void nap(void)
{
	const struct timespec t = {.tv_nsec = LOOK_MS * 1000000};

	nanosleep(&t, NULL);
}

/* false: the board went before anybody read there. */
static bool wait_for_reader(struct drain *d)
{
	while (d->to < 0) {
		d->to = open(d->fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
		if (d->to < 0 && errno != ENXIO && errno != EINTR)
			return false;
		if (d->to < 0 && !bus_cable_is_there(&d->cable))
			return false;
		if (d->to < 0)
			nap();
	}
	return true;
}

static bool write_all(struct drain *d, const uint8_t *p, size_t n)
{
	struct pollfd out = {.fd = d->to, .events = POLLOUT};
	unsigned waited = 0;

	while (n) {
		ssize_t k = write(d->to, p, n);

		if (k > 0) {
			p += k;
			n -= (size_t)k;
			waited = 0;
			continue;
		}
		if (k < 0 && errno != EAGAIN && errno != EINTR)
			return false;
		poll(&out, 1, 100);
		waited += 100;
		if (waited > REMOVED_MS && !bus_cable_is_there(&d->cable))
			return false;
	}
	return true;
}

static void run(struct drain *d)
{
	bool there = true;
	size_t n = 0;

	if (!wait_for_reader(d))
		return;
	fcntl(d->to, F_SETFL, fcntl(d->to, F_GETFL) | O_NONBLOCK);
	while (there || n) {
		if (!n)
			there = bus_cable_is_there(&d->cable);
		if (bus_cable_take(&d->cable, &n, NULL))
			return;
		/* What was taken and not written stays in the board, for who comes next. */
		if (n && !write_all(d, d->cable.bytes, n))
			return;
		if (!n && there)
			nap();
	}
	bus_cable_close(&d->cable);
}

static void become_daemon(int keep, int to)
{
	int null = open("/dev/null", O_RDWR);

	setsid();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	prctl(PR_SET_NAME, "kron-cable");
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
	for (int fd = 3; fd < 1024; fd++)
		if (fd != keep && fd != to)
			close(fd);
}

int board_cable_start(const char *board, const char *path, int to, struct err *err)
{
	struct drain *d = xmalloc(sizeof(*d));
	int code = bus_open(&d->bus, board, err);
	pid_t pid;

	d->to = to;
	d->fifo = to < 0 ? realpath(path, NULL) : NULL;
	if (!code)
		code = bus_cable_open(&d->cable, &d->bus, err);
	if (!code && to < 0 && !d->fifo)
		code = err_set(err, errno, "cannot write %s: %s", path, strerror(errno));
	if (code)
		return code;
	pid = fork();
	if (pid < 0)
		return err_set(err, errno, "cannot start the cable's far end: %s", strerror(errno));
	if (pid)
		return 0; /* the lock is the child's, too, and stays with it */
	become_daemon(d->bus.fd, d->to);
	if (chdir("/"))
		_exit(1);
	run(d);
	_exit(0);
}
