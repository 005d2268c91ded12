/* SPDX-License-Identifier: MIT */
/* object.c - see object.h */
#define _GNU_SOURCE
#include "board/bus/object.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "board/bus/bus.h"

#define OWN_PREFIX "/kron-"
#define OWN_DIGITS 16
#define BOARD_PREFIX "/kron-board."
#define MIB (1024.0 * 1024.0)
#define CHANGE_MS 2000

/* ---- names ---- */

void object_name_of_board(char *out, size_t size, const char *board)
{
	snprintf(out, size, BOARD_PREFIX "%u.%s", (unsigned)geteuid(), board);
}

bool object_is_recorders_own(const char *object)
{
	const char *digits = object + strlen(OWN_PREFIX);

	return !strncmp(object, OWN_PREFIX, strlen(OWN_PREFIX)) && strlen(digits) == OWN_DIGITS &&
	       strspn(digits, "0123456789abcdef") == OWN_DIGITS;
}

bool object_shown_name(const char *object, char *out, size_t size)
{
	char prefix[OBJECT_NAME];

	object_name_of_board(prefix, sizeof(prefix), "");
	if (object_is_recorders_own(object))
		snprintf(out, size, "%s", object + 1);
	else if (!strncmp(object, prefix, strlen(prefix)) &&
		 boards_name_is_valid(object + strlen(prefix)))
		snprintf(out, size, "%s", object + strlen(prefix));
	else
		return false;
	return true;
}

/* ---- making one ---- */

uint64_t object_room(void)
{
	struct statvfs v;

	if (statvfs(OBJECT_DIR, &v))
		return 0;
	if (v.f_blocks == 0) /* a tmpfs without a limit */
		return UINT64_MAX / 4;
	return (uint64_t)v.f_bavail * v.f_frsize;
}

/* -EFBIG where the kernel would send SIGXFSZ, too. */
static int truncate_quietly(int fd, uint64_t size)
{
	const struct timespec now = {0};
	sigset_t set, old, pending;
	int code;

	sigpending(&pending);
	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &set, &old);
	code = ftruncate(fd, (off_t)size) ? -errno : 0;
	if (code == -EFBIG && !sigismember(&pending, SIGXFSZ))
		sigtimedwait(&set, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return code;
}

int object_set_size(int fd, uint64_t size)
{
	struct rlimit old, none = {RLIM_INFINITY, RLIM_INFINITY};
	int code;

	/* Only around this call: files on disk obey the limit. */
	getrlimit(RLIMIT_FSIZE, &old);
	if (setrlimit(RLIMIT_FSIZE, &none)) { /* only root may raise the hard one */
		none.rlim_cur = none.rlim_max = old.rlim_max;
		setrlimit(RLIMIT_FSIZE, &none);
	}
	code = truncate_quietly(fd, size);
	setrlimit(RLIMIT_FSIZE, &old);
	return code;
}

int object_get_pages(int fd, uint64_t off, uint64_t len)
{
	int code;

	do
		code = posix_fallocate(fd, (off_t)off, (off_t)len);
	while (code == EINTR);
	return -code;
}

int object_begin(int *fd, uint64_t size, struct err *err)
{
	int code;

	*fd = open(OBJECT_DIR, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (*fd < 0)
		return err_set(err, errno, "cannot create shared memory in " OBJECT_DIR ": %s",
			       strerror(errno));
	/* Whatever the umask says, the owner has it and nobody else. */
	code = fchmod(*fd, 0600) ? -errno : object_set_size(*fd, size);
	if (!code)
		return 0;
	close(*fd);
	*fd = -1;
	return err_set(err, -code, "cannot make %.0f MiB of shared memory: %s", (double)size / MIB,
		       strerror(-code));
}

static void path_of(char *path, size_t size, const char *object)
{
	snprintf(path, size, OBJECT_DIR "%s", object);
}

int object_publish(int fd, const char *object, int *again, struct err *err)
{
	char path[sizeof(OBJECT_DIR) + OBJECT_NAME], self[64];

	path_of(path, sizeof(path), object);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW))
		return err_set(err, errno, "cannot create %s: %s", path, strerror(errno));
	/* By its name, so that /proc/PID/maps shows that. */
	*again = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (*again < 0) {
		int code = errno;

		unlink(path);
		return err_set(err, code, "cannot open %s: %s", path, strerror(code));
	}
	return 0;
}

int object_remove(const char *object)
{
	char path[sizeof(OBJECT_DIR) + OBJECT_NAME];

	path_of(path, sizeof(path), object);
	if (!unlink(path))
		return 0;
	/* Whatever somebody has put there. */
	return errno == EISDIR && !rmdir(path) ? 0 : -errno;
}

int object_stat(const char *object, struct stat *st)
{
	char path[sizeof(OBJECT_DIR) + OBJECT_NAME];

	path_of(path, sizeof(path), object);
	return lstat(path, st);
}

/* ---- opening one ---- */

int object_refuse_foreign(const char *object, const char *shown, uid_t owner, struct err *err)
{
	if (geteuid() == 0)
		return err_set(err, EACCES,
			       "the name of board %s is taken: " OBJECT_DIR
			       "%s belongs to another user (uid %u); `kron board rm %s` removes it",
			       shown, object, (unsigned)owner, shown);
	return err_set(
		err, EACCES,
		"the name of board %s is taken: " OBJECT_DIR
		"%s belongs to another user (uid %u), and only that one, or root, can remove "
		"it: choose another name",
		shown, object, (unsigned)owner);
}

static int check_owner(const char *object, const char *shown, const struct stat *st,
		       struct err *err)
{
	if (st->st_uid != geteuid())
		return object_refuse_foreign(object, shown, st->st_uid, err);
	if (!S_ISREG(st->st_mode))
		return err_set(err, EINVAL, OBJECT_DIR "%s is not a board", object);
	if (st->st_mode & 077)
		return err_set(err, EACCES,
			       "other users may write to board %s (mode %03o), so it is not to be "
			       "trusted: `kron board rm %s` removes it",
			       shown, st->st_mode & 0777u, shown);
	return 0;
}

static int explain_failed_open(const char *object, const char *shown, struct err *err)
{
	int code = errno;
	struct stat st;

	if (code == ENOENT)
		return err_set(err, ENOENT, "there is no board %s", shown);
	if (!object_stat(object, &st) && check_owner(object, shown, &st, err))
		return code == ELOOP ? -EINVAL : -EACCES;
	return err_set(err, code, "cannot open board %s: %s", shown, strerror(code));
}

static int open_file(const char *object, const char *shown, struct object *o, struct err *err)
{
	struct stat st;
	int code;

	o->fd = shm_open(object, O_RDWR | O_CLOEXEC | O_NONBLOCK, 0);
	if (o->fd < 0)
		return explain_failed_open(object, shown, err);
	if (fstat(o->fd, &st))
		return err_set(err, errno, "cannot open board %s: %s", shown, strerror(errno));
	code = check_owner(object, shown, &st, err);
	o->size = (uint64_t)st.st_size;
	o->bytes = (uint64_t)st.st_blocks * 512;
	return code;
}

int object_open(const char *object, const char *shown, struct object *o, struct err *err)
{
	int code;

	*o = (struct object){.fd = -1};
	code = object_is_recorders_own(object) ? held_open(object, shown, o, err)
					       : open_file(object, shown, o, err);
	if (!code && o->size < KRON_WINDOW_SIZE)
		code = err_set(err, EINVAL,
			       "board %s is damaged: its shared memory has %" PRIu64
			       " of %u bytes; `kron board rm %s` removes it",
			       shown, o->size, KRON_WINDOW_SIZE, shown);
	if (code)
		object_close(o);
	return code;
}

void object_close(struct object *o)
{
	if (o->fd >= 0)
		close(o->fd);
	o->fd = -1;
}

int object_map(int fd, struct window *w, struct err *err)
{
	void *at = mmap(NULL, KRON_WINDOW_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	memset(w, 0, sizeof(*w));
	if (at == MAP_FAILED)
		return err_set(err, errno, "cannot map a board's %.0f MiB: %s",
			       KRON_WINDOW_SIZE / MIB, strerror(errno));
	w->base = at;
	w->board.ctl = (struct kron_ctl *)(w->base + KRON_CTL_OFFSET);
	w->board.model = (struct model *)(w->base + KRON_MODEL_OFFSET);
	w->board.memory = w->base + KRON_MEMORY_OFFSET;
	return 0;
}

void object_unmap(struct window *w)
{
	if (w->base)
		munmap(w->base, KRON_WINDOW_SIZE);
	w->base = NULL;
}

/* Looking at a board whose pages are there must not even change its times. */
static int get_missing_pages(int fd, uint64_t off, uint64_t len)
{
	off_t hole = lseek(fd, (off_t)off, SEEK_HOLE);

	return hole >= (off_t)(off + len) ? 0 : object_get_pages(fd, off, len);
}

/* What every user of a board touches.  Local memory has pages where samples go there. */
static int get_pages_of_model(int fd)
{
	int code = get_missing_pages(fd, KRON_CTL_OFFSET, 4096);

	return code ? code : get_missing_pages(fd, KRON_MODEL_OFFSET, KRON_MODEL_SIZE);
}

int object_check_format(const char *shown, const struct window *w, struct err *err)
{
	const struct kron_ctl *ctl = w->board.ctl;
	uint32_t version = ctl->version;

	if (__atomic_load_n(&ctl->magic, __ATOMIC_ACQUIRE) != KRON_SEGMENT_MAGIC)
		return err_set(err, EINVAL,
			       "there is no board in the shared memory of %s: `kron board rm %s` "
			       "removes it",
			       shown, shown);
	if (version != KRON_SEGMENT_VERSION)
		return err_set(err, EINVAL,
			       "board %s was made by another version of kron (its layout is %u, "
			       "this kron's is %u): `kron board rm %s` removes it",
			       shown, version, KRON_SEGMENT_VERSION, shown);
	return 0;
}

static int check_model(const char *shown, const struct window *w, struct err *err)
{
	if (!board_is_sane(&w->board))
		return err_set(err, EINVAL,
			       "board %s is damaged: its state makes no sense; `kron board rm %s` "
			       "removes it",
			       shown, shown);
	return 0;
}

int object_map_checked(int fd, const char *shown, struct window *w, struct err *err)
{
	int code = get_pages_of_model(fd);

	memset(w, 0, sizeof(*w));
	if (code)
		return err_set(err, -code, "cannot read board %s: %s", shown, strerror(-code));
	code = object_map(fd, w, err);
	if (!code)
		code = object_check_format(shown, w, err);
	if (!code)
		code = check_model(shown, w, err);
	if (code)
		object_unmap(w);
	return code;
}

int object_get_board(int fd, const struct model_geometry *g, bool memory, struct err *err)
{
	int code = get_pages_of_model(fd);

	if (!code && g->cable)
		code = object_get_pages(fd, KRON_CABLE_OFFSET, KRON_CABLE_BYTES);
	if (!code && memory)
		code = object_get_pages(fd, KRON_MEMORY_OFFSET, KRON_MEMORY_BYTES);
	return code ? err_set(err, -code,
			      "a board needs %u MiB of shared memory; " OBJECT_DIR
			      " has room for %.0f MiB: %s",
			      memory ? 33 : 1, (double)object_room() / MIB, strerror(-code))
		    : 0;
}

void object_fill(struct window *w, const struct model_geometry *g, enum access_clock clock,
		 uint64_t tsc_hz)
{
	board_init(&w->board, g, clock, tsc_hz);
	w->board.ctl->version = KRON_SEGMENT_VERSION;
}

void object_seal(struct window *w, uint64_t size)
{
	w->board.ctl->segment_size = size;
	__atomic_store_n(&w->board.ctl->magic, KRON_SEGMENT_MAGIC, __ATOMIC_RELEASE);
}

/* ---- its recorder ---- */

void object_find_recorder(const struct object *o, const struct kron_ctl *ctl,
			  struct object_recorder *out)
{
	memset(out, 0, sizeof(*out));
	if (o->held.keeper) {
		held_find_recorder(&o->held, out);
		return;
	}
	out->pid = ctl->collector_pid;
	out->killed = out->pid && !object_is_locked(o->fd);
	if (out->pid)
		snprintf(out->dir, sizeof(out->dir), "%.*s", (int)sizeof(out->dir) - 1,
			 object_note(ctl)->dir);
}

bool object_is_recorder(int sock, pid_t pid)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return false;
	/* one that lives in another pid namespace has the number 0 here */
	return (!peer.pid || peer.pid == pid) && (!peer.uid || peer.uid == geteuid());
}

/*
 * Locks of the open file, not of the process: a fork or a close elsewhere keeps them, and a
 * SIGKILL ends them.
 */
enum { BYTE_RECORDER = 0, BYTE_CHANGE = 1, BYTE_CABLE = 2 };

static int set_lock(int fd, int command, short type, off_t byte)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
	int code;

	do
		code = fcntl(fd, command, &l) ? -errno : 0;
	while (code == -EINTR);
	return code == -EACCES || code == -EAGAIN ? -EBUSY : code;
}

int object_lock(int fd)
{
	return set_lock(fd, F_OFD_SETLK, F_WRLCK, BYTE_RECORDER);
}

int object_lock_cable(int fd)
{
	return set_lock(fd, F_OFD_SETLK, F_WRLCK, BYTE_CABLE);
}

bool object_is_locked(int fd)
{
	struct flock l = {.l_type = F_WRLCK, .l_start = BYTE_RECORDER, .l_len = 1};

	return !fcntl(fd, F_OFD_GETLK, &l) && l.l_type != F_UNLCK;
}

bool object_lock_change(int fd)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	int code = -EBUSY;

	for (int i = 0; i < CHANGE_MS && code == -EBUSY; i++) {
		code = set_lock(fd, F_OFD_SETLK, F_WRLCK, BYTE_CHANGE);
		if (code == -EBUSY)
			nanosleep(&nap, NULL);
	}
	return code != -EBUSY;
}

void object_unlock_change(int fd)
{
	set_lock(fd, F_OFD_SETLK, F_UNLCK, BYTE_CHANGE);
}

bool object_is_named(int fd, const char *object)
{
	struct stat by_fd, by_name;

	return !fstat(fd, &by_fd) && !object_stat(object, &by_name) &&
	       by_fd.st_ino == by_name.st_ino && by_fd.st_dev == by_name.st_dev;
}
