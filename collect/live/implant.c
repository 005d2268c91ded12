/* SPDX-License-Identifier: MIT */
/* implant.c - see implant.h. */
#define _GNU_SOURCE
#include "collect/live/implant.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/vec.h"
#include "collect/live/live_code.h"

#define PAGE 4096ull
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#define TRIES 64u

static struct kron_live head(void)
{
	struct kron_live h;

	memcpy(&h, live_code, sizeof(h));
	return h;
}

static bool is_free(const struct process_maps *maps, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < maps->n; i++)
		if (maps->v[i].start < end && start < maps->v[i].end)
			return false;
	return true;
}

void implant_at(struct implant *im, uint64_t code)
{
	const struct kron_live h = head();

	im->code = code;
	im->data = im->code + h.data_off;
	im->call = im->data + h.data_len;
	im->stack = im->call + KRON_LIVE_CALL;
	im->end = im->stack + KRON_LIVE_STACK;
	im->entry = im->code + h.entry;
}

bool implant_is_childs(uint64_t code)
{
	return code - IMPLANT_CHILD < TRIES * IMPLANT_STEP && code % IMPLANT_STEP == 0;
}

bool implant_is_own(const struct implant *im, const struct live_threads *t)
{
	char bytes[4096];

	for (size_t done = 0; done < live_code_size; done += sizeof(bytes)) {
		const size_t left = live_code_size - done;
		const size_t n = left < sizeof(bytes) ? left : sizeof(bytes);

		if (threads_read(t, bytes, im->code + done, n) != (ssize_t)n ||
		    memcmp(bytes, live_code + done, n))
			return false;
	}
	return true;
}

int implant_choose(struct implant *im, uint64_t hint, const struct process_maps *maps,
		   struct err *err)
{
	for (unsigned i = 0; i < TRIES; i++) {
		implant_at(im, hint + i * IMPLANT_STEP);
		if (is_free(maps, im->code - PAGE, im->end + PAGE))
			return 0;
	}
	return err_set(err, ENOMEM, "there is no room for kron's runtime in the process");
}

void implant_hello(const struct implant *im, struct kron_hello *out)
{
	const struct kron_live h = head();

	memset(out, 0, sizeof(*out));
	out->magic = KRON_WIRE_MAGIC;
	out->version = KRON_WIRE_VERSION;
	out->kind = KRON_HELLO_START;
	out->flags = KRON_HELLO_LIVE;
	out->hook_thunk = im->code + h.hook;
	out->thunk[KRON_THUNK_LANE] = im->code + h.probe;
	out->payload_thunk[KRON_THUNK_LANE] = im->code + h.payload;
	out->thunk[KRON_THUNK_LANE_CONSTANT] = im->code + h.constant;
	out->payload_thunk[KRON_THUNK_LANE_CONSTANT] = im->code + h.payload_constant;
	out->thunk[KRON_THUNK_LANE_SPARSE] = im->code + h.sparse;
	out->payload_thunk[KRON_THUNK_LANE_SPARSE] = im->code + h.payload;
	out->timed_thunk = im->code + h.timed;
	out->thunk[KRON_THUNK_EXACT] = im->code + h.exact;
	out->payload_thunk[KRON_THUNK_EXACT] = im->code + h.payload_exact;
	out->resource_thunk = im->code + h.counters;
	out->wide_thunk = im->code + h.wide;
	out->memory_thunk = im->code + h.memory;
	out->action_thunk = im->code + h.action;
	out->live_entry = im->entry;
}

/* ---- in the process ---- */

static long call6(struct live_threads *t, long number, uint64_t a, uint64_t b, uint64_t c,
		  uint64_t d, uint64_t e, uint64_t f)
{
	const uint64_t arg[] = {a, b, c, d, e, f};

	return threads_call(t, number, arg, 6);
}

static void close_there(struct live_threads *t, int fd)
{
	call6(t, SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
}

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

static int fd_of(pid_t thread, unsigned flags, int fd)
{
	const int pidfd = (int)syscall(SYS_pidfd_open, thread, flags);
	int got;

	if (pidfd < 0)
		return errno == EINVAL ? -ENOTSUP : -errno;
	got = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	got = got < 0 ? -errno : got;
	close(pidfd);
	return got;
}

/* A first thread that has ended has no descriptors; of others the kernel gives them from Linux 6.9 on. */
static int take_fd(const struct live_threads *t, int fd)
{
	const int got = fd_of(t->pid, 0, fd);
	const pid_t thread = got < 0 ? process_memory_thread(t->pid) : t->pid;

	return thread == t->pid ? got : fd_of(thread, PIDFD_THREAD, fd);
}

/* [from, to) as memory of its own. */
static int map_memory(struct live_threads *t, uint64_t from, uint64_t to)
{
	long at = call6(t, SYS_mmap, from, to - from, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, (uint64_t)-1, 0);

	if (at >= 0 && (uint64_t)at != from)
		return -EEXIST;
	return at < 0 ? (int)at : 0;
}

/*
 * Whoever shares the process's descriptors, and is none of its threads, may have put another file in
 * their place; what we write, and when that blocks, is not for him to say.
 */
static bool is_own_file(int fd)
{
	struct stat st;

	return fcntl(fd, F_GET_SEALS) >= 0 && !fstat(fd, &st) && !st.st_size && !st.st_nlink;
}

static bool has_option(int sock, int option, int value)
{
	int is = -1;
	socklen_t len = sizeof(is);

	return !getsockopt(sock, SOL_SOCKET, option, &is, &len) && is == value;
}

static bool is_own_socket(int sock, pid_t pid)
{
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);

	return has_option(sock, SO_DOMAIN, AF_UNIX) && has_option(sock, SO_TYPE, SOCK_SEQPACKET) &&
	       !getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) && peer.pid == pid;
}

static int write_code(int fd)
{
	size_t done = 0;

	while (done < live_code_size) {
		ssize_t n = write(fd, live_code + done, live_code_size - done);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

/* From a file without a name, so that it is never writable there and need not become executable. */
static int map_code(const struct implant *im, struct live_threads *t)
{
	static const char name[] = "kron";
	long fd, at;
	int own, code;

	if (threads_write(t, im->call, name, sizeof(name)) != sizeof(name))
		return -EFAULT;
	fd = call6(t, SYS_memfd_create, im->call, MFD_CLOEXEC | MFD_EXEC, 0, 0, 0, 0);
	if (fd == -EINVAL) /* before Linux 6.3 every memfd was executable */
		fd = call6(t, SYS_memfd_create, im->call, MFD_CLOEXEC, 0, 0, 0, 0);
	if (fd < 0)
		return (int)fd;
	own = take_fd(t, (int)fd);
	code = own < 0 ? own : is_own_file(own) ? write_code(own) : -EBADF;
	if (!code) {
		at = call6(t, SYS_mmap, im->code, im->data - im->code, PROT_READ | PROT_EXEC,
			   MAP_PRIVATE | MAP_FIXED_NOREPLACE, (uint64_t)fd, 0);
		code = at < 0 ? (int)at : 0;
	}
	if (own >= 0)
		close(own);
	close_there(t, (int)fd);
	return code;
}

static int connect_both(const struct implant *im, struct live_threads *t, int *sock, int *theirs)
{
	int32_t fd[2];
	long ret =
		call6(t, SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, im->call, 0, 0);

	if (ret < 0)
		return (int)ret;
	if (threads_read(t, fd, im->call, sizeof(fd)) != sizeof(fd))
		return -EFAULT;
	*sock = take_fd(t, fd[1]);
	close_there(t, fd[1]);
	*theirs = fd[0];
	if (*sock >= 0 && !is_own_socket(*sock, t->pid)) {
		close(*sock);
		*sock = -EBADF;
	}
	if (*sock < 0)
		close_there(t, fd[0]);
	return *sock < 0 ? *sock : 0;
}

static int fail(const struct live_threads *t, const char *what, int code, struct err *err)
{
	if (code == -ENOTSUP)
		return err_set(
			err, ENOTSUP,
			"the first thread of process %d has ended, and this kernel gives nobody the "
			"descriptors of the others (Linux 6.9 does): start it with `kron record "
			"-- CMD`",
			t->pid);
	return err_set(err, -code, "%s process %d: %s", what, t->pid, strerror(-code));
}

/* Only the thread that makes the calls is asked.  Who forbids it later is muted by the hook. */
static bool may_read_clock(const struct implant *im, struct live_threads *t)
{
	int32_t mode;

	return call6(t, SYS_prctl, PR_GET_TSC, im->call, 0, 0, 0, 0) < 0 ||
	       threads_read(t, &mode, im->call, sizeof(mode)) != sizeof(mode) ||
	       mode != PR_TSC_SIGSEGV;
}

int implant_put(const struct implant *im, struct live_threads *t, int *sock, int *theirs,
		struct err *err)
{
	int code = map_memory(t, im->data, im->end);

	if (code)
		return err_set(err, -code, "process %d gets no memory for kron's runtime: %s",
			       t->pid, strerror(-code));
	if (!may_read_clock(im, t)) {
		implant_remove(im, t);
		return err_set(
			err, ENOTSUP,
			"process %d has forbidden itself to read the clock (PR_SET_TSC): a probe would "
			"fault there",
			t->pid);
	}
	code = map_code(im, t);
	if (code)
		fail(t, "kron's runtime cannot be mapped in", code, err);
	else if ((code = connect_both(im, t, sock, theirs)))
		fail(t, "no connection to", code, err);
	if (code)
		implant_remove(im, t);
	return code;
}

int implant_borrow(struct implant *im, uint64_t entry, struct live_threads *t, int *sock,
		   int *theirs, struct err *err)
{
	long at = call6(t, SYS_mmap, 0, KRON_LIVE_CALL + KRON_LIVE_STACK, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0);
	int code;

	if (at < 0)
		return err_set(err, (int)-at, "process %d gets no memory for the call: %s", t->pid,
			       strerror((int)-at));
	im->code = im->data = im->call = (uint64_t)at;
	im->stack = im->call + KRON_LIVE_CALL;
	im->end = im->stack + KRON_LIVE_STACK;
	im->entry = entry;
	code = connect_both(im, t, sock, theirs);
	if (!code)
		return 0;
	implant_remove(im, t);
	return fail(t, "no connection to", code, err);
}

void implant_hang_up(struct live_threads *t, int theirs)
{
	close_there(t, theirs);
}

int implant_call(const struct implant *im, struct live_threads *t, struct kron_live_call *call,
		 struct err *err)
{
	const size_t used = offsetof(struct kron_live_call, pc) + call->npcs * sizeof(call->pc[0]);
	int code;

	call->done = 0;
	if (threads_write(t, im->call, call, used) != (ssize_t)used)
		return err_set(err, EFAULT, "the memory of process %d cannot be written", t->pid);
	code = threads_run(t, im->entry, im->end, im->call,
			   im->call + offsetof(struct kron_live_call, done));
	if (!code && threads_read(t, call, im->call, used) != (ssize_t)used)
		code = -EFAULT;
	if (code)
		return err_set(err, -code,
			       code == -ECHILD ? "process %d has ended"
					       : "kron's runtime in process %d has failed",
			       t->pid);
	return 0;
}

void implant_remove(const struct implant *im, struct live_threads *t)
{
	call6(t, SYS_munmap, im->code, im->end - im->code, 0, 0, 0, 0);
}
