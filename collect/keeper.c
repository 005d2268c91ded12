/* SPDX-License-Identifier: MIT */
/*
 * keeper.c - see keeper.h.  Starts the process and ends it; keep.c is what it does later.
 *
 * Until it executes `kron --keep`, the keeper runs in the recorder's memory, on a stack of its own,
 * with the thread data of the thread that started it.  So what it runs (from keep() on) makes system
 * calls and nothing else: no function of libc, no errno, no memory but its room.  Its descriptors,
 * its folder, its process group and its signals are its own.
 */
#define _GNU_SOURCE
#include "collect/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROOM_SIZE 32768u /* of struct keeper_room, and the stack above it */
#define FIRST_FD 10      /* so low that a limit of few descriptors lets us */
#define LAST_FD 1024     /* what is closed where the kernel has no close_range() (before 5.9) */

struct keeper_room {
	uint32_t settled; /* nothing of the recorder's is open in the keeper any more; atomic */
	int fd;           /* the first of HELD_FDS */
	const char *exe;
	char object[OBJECT_NAME], link[sizeof(OBJECT_DIR) + OBJECT_NAME], number[16];
	char *argv[5];
};

/* ---- in the keeper: no libc from here on ---- */

/* Sanitizers' own code would use the recorder's thread data, too. */
#ifdef __clang__
#define KEEPER __attribute__((disable_sanitizer_instrumentation, no_stack_protector))
#else
#define KEEPER __attribute__((no_sanitize("address", "thread", "undefined")))
#endif
#define KEEPER_INLINE KEEPER __attribute__((always_inline)) static inline

KEEPER_INLINE long sys4(long nr, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return ret;
}

KEEPER_INLINE void close_all(long from, long to)
{
	if (!sys4(SYS_close_range, from, to, 0, 0))
		return;
	for (long fd = from; fd <= to && fd < LAST_FD; fd++)
		sys4(SYS_close, fd, 0, 0, 0);
}

/* Nothing of the recorder's besides: a pipe that it writes to, and the lock of its trace, must end with
 * it. */
KEEPER_INLINE void close_the_rest(int first)
{
	close_all(0, first - 1);
	close_all(first + HELD_FDS, (long)~0u);
}

KEEPER_INLINE void wait_for_the_end(int first)
{
	struct pollfd p = {.fd = first + HELD_LIFELINE, .events = POLLIN};

	do
		p.revents = 0;
	while (sys4(SYS_poll, (long)&p, 1, -1, 0) == -EINTR || !p.revents);
	sys4(SYS_close, first + HELD_RECORDER, 0, 0, 0);
	sys4(SYS_close, first + HELD_LIFELINE, 0, 0, 0);
}

/* Only what is to be held goes on to it. */
KEEPER_INLINE void execute_kron(struct keeper_room *r)
{
	sys4(SYS_fcntl, r->fd, F_SETFD, 0, 0);
	sys4(SYS_fcntl, r->fd + HELD_TRACE, F_SETFD, 0, 0);
	if (r->exe)
		sys4(SYS_execve, (long)r->exe, (long)r->argv, (long)environ, 0);
}

/* There is no kron to be executed.  At least who removes the name is heard. */
KEEPER_INLINE void hold_on(const struct keeper_room *r)
{
	long second[2] = {1, 0};
	char byte;

	while (sys4(SYS_readlink, (long)r->link, (long)&byte, 1, 0) != -ENOENT)
		sys4(SYS_nanosleep, (long)second, 0, 0, 0);
}

KEEPER __attribute__((noreturn, used)) static void keep(struct keeper_room *r)
{
	sys4(SYS_prctl, PR_SET_NAME, (long)"kron-keeper", 0, 0);
	close_the_rest(r->fd);
	__atomic_store_n(&r->settled, 1, __ATOMIC_RELEASE);
	sys4(SYS_futex, (long)&r->settled, FUTEX_WAKE_PRIVATE, 1, 0);
	wait_for_the_end(r->fd);
	execute_kron(r);
	hold_on(r);
	for (;;)
		sys4(SYS_exit_group, 0, 0, 0, 0);
}

/* ---- in the recorder ---- */

/* A process in our memory.  Like vfork(), but that we go on: so it needs a stack. */
static long clone_keeper(struct keeper_room *r)
{
	register void (*run)(struct keeper_room *) __asm__("r12") = keep;
	register struct keeper_room *room __asm__("r13") = r;
	register long r10 __asm__("r10") = 0;
	register long r8 __asm__("r8") = 0;
	char *stack = (char *)r + ROOM_SIZE; /* a multiple of 16, as a call wants it */
	long ret;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "mov %%r13, %%rdi\n\t"
			 "call *%%r12\n\t"
			 "ud2\n"
			 "1:"
			 : "=a"(ret)
			 : "a"(SYS_clone), "D"(CLONE_VM), "S"(stack), "d"(0), "r"(r10), "r"(r8),
			   "r"(run), "r"(room)
			 : "rcx", "r11", "memory");
	return ret;
}

/* Of a terminal, of a group, of whoever is in a hurry: none is for the keeper. */
static long clone_without_signals(struct keeper_room *r)
{
	sigset_t all, old;
	long pid;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	pid = clone_keeper(r);
	if (pid >
	    0) /* a kill of our group is not for it; by us, so that nobody waits until it runs */
		setpgid((pid_t)pid, (pid_t)pid);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return pid;
}

static struct keeper_room *make_room(const struct keeper_options *o, int fd)
{
	struct keeper_room *r =
		mmap(NULL, ROOM_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (r == MAP_FAILED)
		return NULL;
	r->fd = fd;
	r->exe = o->exe;
	snprintf(r->object, sizeof(r->object), "%s", o->object);
	snprintf(r->link, sizeof(r->link), OBJECT_DIR "%s", o->object);
	snprintf(r->number, sizeof(r->number), "%d", fd);
	r->argv[0] = "kron-keeper";
	r->argv[1] = o->is_scratch ? "--drop" : "--keep";
	r->argv[2] = r->object;
	r->argv[3] = r->number;
	return r;
}

/* ---- descriptors, as enum held_fd has them: they are there from the keeper's first moment ---- */

/* The first of enough consecutive descriptors that nobody has. */
static int find_free_fds(void)
{
	int first = FIRST_FD, n = 0;

	while (n < HELD_FDS) {
		if (fcntl(first + n, F_GETFD) < 0) {
			n++;
		} else {
			first += n + 1;
			n = 0;
		}
	}
	return first;
}

static bool move_fd(int fd, int to)
{
	bool moved;

	if (fd < 0 || fd == to)
		return fd == to;
	moved = dup3(fd, to, O_CLOEXEC) == to;
	close(fd);
	return moved;
}

static void close_fds(int first)
{
	for (int i = 0; i < HELD_FDS; i++)
		close(first + i);
}

/* The first of them, or -errno. */
static int arrange_fds(const struct keeper_options *o, int *lifeline)
{
	int ends[2], first, code;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	first = find_free_fds();
	*lifeline = ends[1];
	if (move_fd(ends[0], first + HELD_LIFELINE) && dup3(o->memory, first, O_CLOEXEC) == first &&
	    move_fd((int)syscall(SYS_pidfd_open, getpid(), 0), first + HELD_RECORDER) &&
	    (!o->trace ||
	     move_fd(open(o->trace, O_RDONLY | O_DIRECTORY | O_CLOEXEC), first + HELD_TRACE)))
		return first;
	code = errno;
	close_fds(first);
	close(*lifeline);
	return -code;
}

static int refuse(int code, struct err *err)
{
	return err_set(err, code, "cannot start the process that keeps the samples: %s",
		       strerror(code));
}

int keeper_start(struct keeper *k, const struct keeper_options *o, struct err *err)
{
	int first = arrange_fds(o, &k->lifeline);
	long pid;

	if (first < 0)
		return refuse(-first, err);
	k->room = make_room(o, first);
	pid = k->room ? clone_without_signals(k->room) : -ENOMEM;
	close_fds(first);
	if (pid > 0) {
		k->held = (struct holder){.keeper = (pid_t)pid, .fd = first};
		return 0;
	}
	close(k->lifeline);
	if (k->room)
		munmap(k->room, ROOM_SIZE);
	return refuse((int)-pid, err);
}

bool keeper_is_gone(const struct keeper *k)
{
	siginfo_t info = {0};

	return !waitid(P_PID, (id_t)k->held.keeper, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) &&
	       info.si_pid;
}

void keeper_dismiss(struct keeper *k)
{
	k->dismissed = true;
	if (k->held.keeper)
		kill(k->held.keeper, SIGKILL);
}

static void await_settled(const struct keeper *k)
{
	const struct timespec look = {.tv_nsec = 50000000};

	while (k->held.keeper && !__atomic_load_n(&k->room->settled, __ATOMIC_ACQUIRE) &&
	       !keeper_is_gone(k))
		syscall(SYS_futex, &k->room->settled, FUTEX_WAIT_PRIVATE, 0, &look, NULL, 0);
}

void keeper_leave(struct keeper *k)
{
	if (!k->held.keeper)
		return;
	if (k->dismissed) {
		while (waitpid(k->held.keeper, NULL, __WALL) < 0 && errno == EINTR)
			;
		munmap(k->room, ROOM_SIZE);
	} else { /* It still runs in its room.  The trace's lock, of which it has a copy, is to be free. */
		await_settled(k);
	}
	close(k->lifeline);
	k->held.keeper = 0;
}
