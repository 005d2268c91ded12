/* SPDX-License-Identifier: MIT */
/*
 * held.c - the board that a kron record has for itself: sealed memory that a process holds.
 *
 *   /dev/shm/kron-<16 hex> ─► /proc/<keeper>/fd/<n>#<its pid namespace> ─► memfd "kron-<16 hex>", sealed
 *                             /proc/<keeper>/fdinfo/<n + 1> ─► pid of the recorder, while it lives
 *                             /proc/<keeper>/fd/<n + 3> ─► the trace's folder
 *
 * Traced processes, of other users too, have this memory open.  So it is not a file of /dev/shm: those can
 * be cut off by whoever may write to them, and then all who use the rest die of it.  Sealed memory
 * cannot, but it lives only as long as somebody has it open: the keeper (collect/keeper.h).
 *
 * The link is read and never followed: what is opened must be memory of this very name, which the
 * kernel tells, and ours.  Nothing here is taken from the memory itself.  A container may share /dev/shm,
 * and the keeper's number means nothing there, or another process: who does not find the memory from there is
 * told that it is in another namespace, not that it is gone.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "board/bus/bus.h"
#include "board/bus/object.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define MIB (1024.0 * 1024.0)
#define LINK_TEXT 96

/* ---- making one ---- */

int held_begin(const char *object, int *fd, uint64_t size, struct err *err)
{
	int code;

	*fd = memfd_create(object + 1, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (*fd < 0 && errno == EINVAL) /* before Linux 6.3 */
		*fd = memfd_create(object + 1, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return err_set(err, errno, "cannot make shared memory: %s", strerror(errno));
	code = fchmod(*fd, 0600) ? -errno : object_set_size(*fd, size);
	if (!code && fcntl(*fd, F_ADD_SEALS, SEALS))
		code = -errno;
	if (!code)
		return 0;
	close(*fd);
	*fd = -1;
	return err_set(err, -code, "cannot make %.0f MiB of shared memory: %s", (double)size / MIB,
		       strerror(-code));
}

bool held_pages_may_come_late(void)
{
	int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
	char policy;
	bool may;

	if (fd < 0)
		return false;
	may = read(fd, &policy, 1) == 1 && policy != '2';
	close(fd);
	return may;
}

static void path_of_link(char *path, size_t size, const char *object)
{
	snprintf(path, size, OBJECT_DIR "%s", object);
}

static void path_of_memory(char *path, size_t size, const struct holder *h)
{
	snprintf(path, size, "/proc/%d/fd/%d", h->keeper, h->fd);
}

/* 0: not known. */
static uint64_t own_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) ? 0 : st.st_ino;
}

static void text_of_link(char *text, size_t size, const struct holder *h, uint64_t pidns)
{
	snprintf(text, size, "/proc/%d/fd/%d#%" PRIu64, h->keeper, h->fd, pidns);
}

int held_publish(const char *object, const struct holder *h)
{
	char path[sizeof(OBJECT_DIR) + OBJECT_NAME], target[LINK_TEXT];

	path_of_link(path, sizeof(path), object);
	text_of_link(target, sizeof(target), h, own_namespace());
	return symlink(target, path) ? -errno : 0;
}

/* In one step: who looks finds the old one or the new one. */
int held_republish(const char *object, const struct holder *h)
{
	char path[sizeof(OBJECT_DIR) + OBJECT_NAME], aside[sizeof(path) + 8], target[LINK_TEXT];

	path_of_link(path, sizeof(path), object);
	snprintf(aside, sizeof(aside), "%s.new", path);
	text_of_link(target, sizeof(target), h, own_namespace());
	unlink(aside);
	if (symlink(target, aside))
		return -errno;
	if (!rename(aside, path))
		return 0;
	unlink(aside);
	return -errno;
}

/* ---- opening one ---- */

/* The descriptor that the link names, and nothing else that a link may say. */
static int read_link(const char *object, struct holder *h, uint64_t *pidns)
{
	char path[sizeof(OBJECT_DIR) + OBJECT_NAME], target[LINK_TEXT], wanted[LINK_TEXT];
	ssize_t n;

	path_of_link(path, sizeof(path), object);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return -errno;
	target[n] = 0;
	if (sscanf(target, "/proc/%d/fd/%d#%" SCNu64, &h->keeper, &h->fd, pidns) != 3 ||
	    h->keeper <= 0 || h->fd < 0)
		return -EINVAL;
	text_of_link(wanted, sizeof(wanted), h, *pidns);
	return strcmp(target, wanted) ? -EINVAL : 0;
}

/* What a descriptor of the keeper's is called; "" when there is none. */
static void name_of_fd(const struct holder *h, int number, char *name, size_t size)
{
	const struct holder wanted = {.keeper = h->keeper, .fd = h->fd + number};
	char path[64];
	ssize_t n;

	path_of_memory(path, sizeof(path), &wanted);
	n = readlink(path, name, size - 1);
	name[n < 0 ? 0 : n] = 0;
}

static bool holds_it(const struct holder *h, const char *object)
{
	char name[OBJECT_NAME + 32], wanted[OBJECT_NAME + 32];

	name_of_fd(h, 0, name, sizeof(name));
	snprintf(wanted, sizeof(wanted), "/memfd:%s (deleted)", object + 1);
	return !strcmp(name, wanted);
}

static int open_memory(const struct holder *h, struct stat *st)
{
	char path[64];
	int fd, seals;

	path_of_memory(path, sizeof(path), h);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	seals = fcntl(fd, F_GET_SEALS);
	if (!fstat(fd, st) && S_ISREG(st->st_mode) && st->st_uid == geteuid() &&
	    !(st->st_mode & 077) && seals >= 0 && (seals & SEALS) == SEALS)
		return fd;
	close(fd);
	return -EINVAL;
}

static int refuse_absent(const struct holder *h, uint64_t pidns, const char *shown, struct err *err)
{
	if (pidns != own_namespace())
		return err_set(
			err, EXDEV,
			"board %s is of a recording in another pid namespace, a container's or "
			"the host's: use it there",
			shown);
	return err_set(err, ESRCH,
		       "what board %s held is gone with process %d, which kept it: `kron board "
		       "rm %s` removes the name",
		       shown, h->keeper, shown);
}

int held_open(const char *object, const char *shown, struct object *o, struct err *err)
{
	uint64_t pidns;
	struct stat st;
	int code;

	if (object_stat(object, &st))
		return err_set(err, errno, "there is no board %s", shown);
	if (st.st_uid != geteuid())
		return err_set(err, EACCES,
			       "board %s belongs to another user (uid %u): only its owner can use "
			       "it",
			       shown, (unsigned)st.st_uid);
	code = read_link(object, &o->held, &pidns);
	if (code)
		return err_set(err, EINVAL, OBJECT_DIR "%s is not a board", object);
	if (!holds_it(&o->held, object))
		return refuse_absent(&o->held, pidns, shown, err);
	o->fd = open_memory(&o->held, &st);
	if (o->fd < 0)
		return err_set(err, -o->fd, "cannot open board %s: %s", shown, strerror(-o->fd));
	o->size = (uint64_t)st.st_size;
	o->bytes = (uint64_t)st.st_blocks * 512;
	return 0;
}

/* ---- its recorder ---- */

/* 0: the keeper does not have it any more, or it is gone. */
static pid_t pid_of_pidfd(const struct holder *h, int number)
{
	char path[64], line[64];
	pid_t pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", h->keeper, h->fd + number);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Pid:\t%d", &pid) == 1)
			break;
	if (f)
		fclose(f);
	return pid > 0 ? pid : 0;
}

void held_find_recorder(const struct holder *h, struct object_recorder *out)
{
	out->pid = pid_of_pidfd(h, HELD_RECORDER);
	out->killed = !out->pid;
	name_of_fd(h, HELD_TRACE, out->dir, sizeof(out->dir));
}

/* ---- the end ---- */

static bool is_of_this_memory(const struct holder *h, int fd)
{
	struct stat theirs, ours;
	char path[64];

	path_of_memory(path, sizeof(path), h);
	return !stat(path, &theirs) && !fstat(fd, &ours) && theirs.st_ino == ours.st_ino &&
	       theirs.st_dev == ours.st_dev;
}

void held_let_go(const struct object *o)
{
	int pidfd;

	if (!o->held.keeper || o->held.keeper == getpid())
		return;
	/* First a hold on it, then a look at who it is. */
	pidfd = (int)syscall(SYS_pidfd_open, o->held.keeper, 0);
	if (pidfd < 0)
		return;
	if (is_of_this_memory(&o->held, o->fd))
		syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	close(pidfd);
}
