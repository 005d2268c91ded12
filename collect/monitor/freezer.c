/* SPDX-License-Identifier: MIT */
/*
 * freezer.c - see freezer.h.
 *
 * All threads are traced first, which stops nobody; then all are asked to stop, then all are waited for.  Who
 * has started a thread or a process meanwhile is found by looking again, until nobody is new: who stands
 * starts nobody.  A thread in an uninterruptible wait of the kernel (a disk, a vfork) executes nothing of
 * its program's and would stop before it does: it counts as standing, and is let go when it comes out.
 *
 * A thread that sleeps in a system call which a stop would end with EINTR (signal(7), the second list) is not
 * woken.  The call could be made once more, but its time would begin anew at each interval, and never be
 * over.  It executes nothing while it sleeps; whether it did is looked at before the others go on.  Who has
 * just begun such a call, and is stopped in it, makes it once more (collect/live/restart.h).
 */
#define _GNU_SOURCE
#include "collect/monitor/freezer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/vec.h"
#include "collect/kernel/process_maps.h"
#include "collect/kernel/scheduler.h"
#include "collect/live/restart.h"
#include "collect/live/threads.h"
#include "collect/monitor/tree.h"

#define STOP_MS 2000  /* who is neither standing nor in the kernel after it is in our way */
#define LOOK_MS 2     /* then it is asked whether the late ones are in the kernel */
#define PATIENCE_S 10 /* of those that stand, with a kron that says nothing */
#define LATE_NS 200000
#define DENIED_NS 1000000
#define DENIED_TRIES 20u
#define ENDED_NS 2000000

enum what { ADD, STOP, GO };
struct request {
	enum what what;
	pid_t pid;
};
struct answer {
	int code;
	struct err err;
	struct freeze freeze;
};

/* ---- in the freezer: one process of the tree ---- */

struct sleeper {
	pid_t tid;
	uint64_t switches; /* how often it had gone to sleep */
};
struct frozen {
	struct live_threads t;
	VEC(struct sleeper) sleepers;
	uint64_t starttime;
	bool stays; /* has threads that stood in the kernel at the last GO */
};
struct state {
	struct tree tree;
	VEC(struct frozen) v;
	/* First threads, traced: their parents hear of the process's end after us. */
	VEC(pid_t) ended;
	bool stand; /* between STOP and GO */
	uint64_t stops_ns, first_ns, last_ns;
};

static struct frozen *frozen_of(struct state *s, pid_t pid)
{
	vec_for(&s->v, z)
		if (z->t.pid == pid)
			return z;
	return NULL;
}

static void forget(struct state *s, size_t i)
{
	struct frozen *z = &s->v.v[i];

	vec_free(&z->t.v);
	vec_free(&z->sleepers);
	if (z->t.mem >= 0)
		close(z->t.mem);
	*z = s->v.v[--s->v.n];
}

/* A zombie has no threads that could run. */
static bool is_over(pid_t pid)
{
	struct process_stat st;

	return !process_read_stat(pid, 0, &st) ||
	       ((st.state == 'Z' || st.state == 'X') && st.threads <= 1);
}

static size_t standing(const struct state *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->v.n; i++)
		for (size_t k = 0; k < s->v.v[i].t.v.n; k++)
			n += s->v.v[i].t.v.v[k].stopped;
	return n;
}

/* ---- who sleeps ---- */

static bool is_socket(pid_t pid, unsigned long fd)
{
	char path[64], to[16];

	snprintf(path, sizeof(path), "/proc/%d/fd/%lu", pid, fd);
	return readlink(path, to, sizeof(to)) > 7 && !memcmp(to, "socket:", 7);
}

/* signal(7): interrupted by a stop, whatever becomes of signals. */
static bool is_ended_by_a_stop(pid_t pid, long number, unsigned long first)
{
	switch (number) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_rt_sigtimedwait:
	case SYS_io_getevents:
	case SYS_io_pgetevents:
	case SYS_msgrcv:
	case SYS_msgsnd:
	case SYS_write: /* to a pipe: would return the part that is written */
	case SYS_writev:
	case SYS_sendfile:
		return true;
	case SYS_read:
	case SYS_readv:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_accept:
	case SYS_accept4:
	case SYS_connect:
		return is_socket(pid, first);
	default:
		return false;
	}
}

/* The kernel goes on with these by restart_syscall, and a filter may kill for that. */
static bool is_ended_by_a_filter(pid_t pid, pid_t tid, long number)
{
	switch (number) {
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_poll:
	case SYS_futex:
	case SYS_restart_syscall:
		return process_status_number(pid, tid, "Seccomp", 10) > 0;
	default:
		return false;
	}
}

static bool sleeps(pid_t pid, pid_t tid)
{
	char path[64];
	unsigned long first = 0;
	long number = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fscanf(f, "%ld %lx", &number, &first) != 2) /* "running" */
		number = -1;
	fclose(f);
	return number >= 0 &&
	       (is_ended_by_a_stop(pid, number, first) || is_ended_by_a_filter(pid, tid, number));
}

static uint64_t switches_of(pid_t pid, pid_t tid)
{
	return process_status_number(pid, tid, "voluntary_ctxt_switches", 10);
}

static bool is_asleep(pid_t pid, pid_t tid)
{
	struct process_stat st;

	return process_read_stat(pid, tid, &st) && st.state == 'S';
}

static bool is_there(const struct frozen *z, pid_t tid)
{
	for (size_t i = 0; i < z->t.v.n; i++)
		if (z->t.v.v[i].tid == tid)
			return true;
	return false;
}

/* Those of the process that sleep so are not traced: they stand here as gone. */
static void spare_sleepers(struct frozen *z)
{
	const pid_t pid = z->t.pid;
	char path[64];
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		const pid_t tid = atoi(e->d_name);
		const uint64_t switches = tid > 0 ? switches_of(pid, tid) : 0;

		if (tid <= 0 || is_there(z, tid) || !sleeps(pid, tid) || !is_asleep(pid, tid))
			continue;
		*vec_push(&z->sleepers) = (struct sleeper){tid, switches};
		*vec_push(&z->t.v) = (struct live_thread){.tid = tid, .gone = true};
	}
	if (d)
		closedir(d);
}

/* How many of them have run since; they may do what they like now. */
static uint32_t look_at_sleepers(struct state *s)
{
	uint32_t ran = 0;

	vec_for(&s->v, z) {
		for (size_t i = 0; i < z->sleepers.n; i++) {
			const struct sleeper *k = &z->sleepers.v[i];

			ran += !is_asleep(z->t.pid, k->tid) ||
			       switches_of(z->t.pid, k->tid) != k->switches;
		}
		vec_free(&z->sleepers);
	}
	return ran;
}

/* ---- stop ---- */

/* Traces whoever is new; how many threads. */
static int seize_all(struct state *s, struct err *err)
{
	int new = 0;

	tree_look(&s->tree);
	for (size_t i = 0; i < s->tree.v.n; i++) {
		const struct tree_process *p = &s->tree.v.v[i];
		struct frozen *z = frozen_of(s, p->pid);
		bool whole;
		int n;

		if (is_over(p->pid))
			continue;
		if (!z) {
			struct frozen begun = {.starttime = p->starttime};

			n = threads_begin(&begun.t, p->pid, err);
			/* one that is ending has no memory any more, and comes back to no program */
			if (n == -ESRCH || n == -ENOENT || (n && is_over(p->pid)))
				continue;
			if (n)
				return n;
			begun.t.filtered = true; /* each is asked when it matters */
			*vec_push(&s->v) = begun;
			z = &s->v.v[s->v.n - 1];
		}
		spare_sleepers(z);
		n = threads_seize(&z->t, &whole, err);
		if (n < 0 && !is_over(p->pid))
			return n;
		new += n > 0 ? n : 0;
		new += n >= 0 && !whole && !is_over(p->pid);
	}
	return new;
}

/* Those that have stopped since, and when. */
static void note_stops(struct state *s, size_t before)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	const size_t n = standing(s);

	if (n == before)
		return;
	s->first_ns = s->first_ns ? s->first_ns : now;
	s->last_ns = now;
	s->stops_ns += now * (n - before); /* wraps; so does what is taken from it */
}

/* In the kernel, where nothing but itself ends its wait. */
static bool is_in_kernel(const struct live_threads *t, const struct live_thread *k)
{
	struct process_stat st;

	return process_read_stat(t->pid, k->tid, &st) && st.state == 'D';
}

static bool are_late_in_kernel(const struct live_threads *t, bool first)
{
	for (size_t i = 0; i < t->v.n; i++) {
		const struct live_thread *k = &t->v.v[i];

		if (!k->stopped && !k->gone && (k->tid == t->pid) == first && !is_in_kernel(t, k))
			return false;
	}
	return true;
}

/* A first thread that has ended before the others stops for nobody. */
static void leave_ended(struct state *s, struct live_threads *t)
{
	vec_for(&t->v, k) {
		struct process_stat st;

		if (k->tid != t->pid || k->stopped || k->gone ||
		    !process_read_stat(t->pid, k->tid, &st) || st.state != 'Z')
			continue;
		k->gone = true;
		*vec_push(&s->ended) = k->tid;
	}
}

static void wait_for_ended(struct state *s)
{
	for (size_t i = s->ended.n; i-- > 0;)
		if (waitpid(s->ended.v[i], NULL, __WALL | WNOHANG))
			s->ended.v[i] = s->ended.v[--s->ended.n];
}

static int await(struct state *s, bool first, struct err *err)
{
	const uint64_t end = clock_ms(CLOCK_MONOTONIC) + STOP_MS;
	int code = 0;

	for (size_t i = 0; i < s->v.n; i++) {
		struct live_threads *t = &s->v.v[i].t;

		do {
			const size_t before = standing(s);

			code = threads_await(t, first, clock_ms(CLOCK_MONOTONIC) + LOOK_MS, err);
			note_stops(s, before);
			if (code)
				leave_ended(s, t);
		} while (code && !are_late_in_kernel(t, first) && clock_ms(CLOCK_MONOTONIC) < end);
		if (code && !are_late_in_kernel(t, first))
			return code;
	}
	return 0;
}

static int stop_all(struct state *s, struct err *err)
{
	const uint64_t end = clock_ms(CLOCK_MONOTONIC) + STOP_MS;
	int new, code;

	do {
		new = seize_all(s, err);
		if (new < 0)
			return new;
		/* a process's signals are its first thread's: that stops last and goes first */
		for (int first = 0; first < 2; first++) {
			vec_for(&s->v, z)
				threads_interrupt(&z->t, first);
			code = await(s, first, err);
			if (code)
				return code;
		}
	} while (new > 0 && clock_ms(CLOCK_MONOTONIC) < end);
	return new > 0 ? err_set(err, EBUSY, "new threads come faster than they can be stopped")
		       : 0;
}

static bool has_waited(const struct frozen *z)
{
	for (size_t i = 0; i < z->t.v.n; i++)
		if (z->t.v.v[i].stopped && !thread_restarts(&z->t.v.v[i]))
			return false;
	return true;
}

static const struct live_waits just_begun; /* none of them has waited for long */

static uint32_t living(const struct frozen *z)
{
	uint32_t n = 0;

	for (size_t i = 0; i < z->t.v.n; i++)
		n += !z->t.v.v[i].gone;
	return n + (uint32_t)z->sleepers.n;
}

static void mend(struct state *s, struct freeze *out)
{
	out->waited = true;
	vec_for(&s->v, z) {
		restart_interrupted(&z->t, &just_begun);
		out->waited &= has_waited(z);
		out->processes += living(z) > 0;
		out->threads += living(z);
	}
	out->first_ns = s->first_ns;
	out->last_ns = s->last_ns;
}

/* ---- go ---- */

static void go(struct state *s, struct freeze *out)
{
	const size_t n = standing(s);
	uint64_t gone = 0;

	out->ran = look_at_sleepers(s);
	for (size_t i = 0; i < s->v.n; i++) {
		const size_t before = standing(s);

		s->v.v[i].stays = threads_go_standing(&s->v.v[i].t) > 0;
		gone += clock_ns(CLOCK_MONOTONIC) * (before - standing(s));
	}
	for (size_t i = s->v.n; i-- > 0;)
		if (!s->v.v[i].stays)
			forget(s, i);
	out->stood_ns = n ? (gone - s->stops_ns) / n : 0;
	wait_for_ended(s);
	s->stops_ns = s->first_ns = s->last_ns = 0;
	s->stand = false;
}

/* Who was in the kernel comes out, stops, and is let go. */
static void let_late_go(struct state *s)
{
	struct err err;

	for (size_t i = s->v.n; i-- > 0;) {
		struct live_threads *t = &s->v.v[i].t;

		threads_await(t, false, 0, &err);
		threads_await(t, true, 0, &err);
		restart_interrupted(t, &just_begun);
		if (!threads_go_standing(t))
			forget(s, i);
	}
}

/* ---- the freezer's life ---- */

/* Who is traced and was not asked to stop could not be let go. */
static void interrupt_all(struct state *s)
{
	for (int first = 0; first < 2; first++)
		vec_for(&s->v, z)
			threads_interrupt(&z->t, first);
}

/* Another one of ours that has the process lets it go soon. */
static int stop_or_wait(struct state *s, struct err *err)
{
	const struct timespec soon = {.tv_nsec = DENIED_NS};
	struct freeze none;
	int code = stop_all(s, err);

	for (unsigned i = 0; i < DENIED_TRIES && code == -EPERM; i++) {
		interrupt_all(s);
		go(s, &none);
		nanosleep(&soon, NULL);
		code = stop_all(s, err);
	}
	return code;
}

static void stop(struct state *s, struct answer *a)
{
	struct freeze none;

	a->code = stop_or_wait(s, &a->err);
	mend(s, &a->freeze);
	if (!a->code && !a->freeze.threads)
		a->code = err_set(&a->err, ESRCH, "nobody is left");
	s->stand = !a->code;
	if (!a->code)
		return;
	interrupt_all(s);
	go(s, &none);
}

static void serve(int sock)
{
	struct state s = {.tree.kron = getppid()}; /* whoever started it may be watched by it */
	struct freeze none;
	const struct timespec patience = {.tv_sec = PATIENCE_S};
	struct request r;

	for (;;) {
		struct pollfd p = {.fd = sock, .events = POLLIN};
		const struct timespec soon = {.tv_nsec = s.v.n ? LATE_NS : ENDED_NS};
		struct answer a = {0};

		if (!s.stand && s.v.n + s.ended.n && !ppoll(&p, 1, &soon, NULL)) {
			let_late_go(&s);
			wait_for_ended(&s);
			continue;
		}
		if (s.stand && !ppoll(&p, 1, &patience, NULL)) {
			go(&s, &none); /* kron itself may have been stopped */
			continue;
		}
		if (recv(sock, &r, sizeof(r), 0) != sizeof(r))
			break;
		if (r.what == ADD) {
			a.code = tree_add(&s.tree, r.pid);
			if (a.code)
				err_set(&a.err, ESRCH, "there is no process %d", r.pid);
		} else if (r.what == STOP) {
			stop(&s, &a);
		} else if (s.stand) {
			go(&s, &a.freeze);
		} else {
			a.freeze.ran = 1; /* they went on long ago */
		}
		if (send(sock, &a, sizeof(a), MSG_NOSIGNAL) != sizeof(a))
			break;
	}
	go(&s, &none);
	while (s.v.n) {
		const struct timespec soon = {.tv_nsec = LATE_NS};

		let_late_go(&s);
		nanosleep(&soon, NULL);
	}
}

static void close_others(int sock)
{
	if (sock > STDERR_FILENO + 1)
		syscall(SYS_close_range, STDERR_FILENO + 1, sock - 1, 0);
	syscall(SYS_close_range, sock + 1, ~0u, 0);
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		close(fd); /* who reads from a pipe of kron's is not to wait for us */
}

/* ---- kron's side ---- */

int freezer_start(struct freezer *f, struct err *err)
{
	sigset_t all, old;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return err_set(err, errno, "cannot make a socket: %s", strerror(errno));
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	f->pid = fork();
	if (!f->pid) {
		setsid(); /* no kill of kron's group, no terminal */
		prctl(PR_SET_NAME, "kron-freezer");
		close_others(ends[0]);
		scheduler_come_first(); /* who is let go would take the processor from us while others still stand */
		serve(ends[0]);
		_exit(0);
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	close(ends[0]);
	f->sock = ends[1];
	if (f->pid > 0)
		return 0;
	f->pid = 0;
	close(ends[1]);
	return err_set(err, errno, "cannot start a process: %s", strerror(errno));
}

const char *freezer_refusal(void)
{
	if (process_yama_scope() > 0 && !process_may_trace_others())
		return "kernel.yama.ptrace_scope is not 0: only root (CAP_SYS_PTRACE) may stop the "
		       "threads of other processes";
	return NULL;
}

static int ask(struct freezer *f, const struct request *r, struct answer *a, struct err *err)
{
	if (send(f->sock, r, sizeof(*r), MSG_NOSIGNAL) != sizeof(*r) ||
	    recv(f->sock, a, sizeof(*a), 0) != sizeof(*a))
		return err_set(err, EPIPE, "kron-freezer has ended");
	if (a->code)
		*err = a->err;
	return a->code;
}

int freezer_add(struct freezer *f, pid_t pid, struct err *err)
{
	const struct request r = {ADD, pid};
	struct answer a;

	return ask(f, &r, &a, err);
}

int freezer_stop(struct freezer *f, struct freeze *out, struct err *err)
{
	const struct request r = {STOP, 0};
	struct answer a;
	int code = ask(f, &r, &a, err);

	if (!code)
		*out = a.freeze;
	return code;
}

void freezer_go(struct freezer *f, struct freeze *out)
{
	const struct request r = {GO, 0};
	struct answer a = {0};
	struct err err;

	ask(f, &r, &a, &err);
	out->stood_ns = a.freeze.stood_ns;
	out->ran = a.freeze.ran;
}

void freezer_end(struct freezer *f)
{
	const uint64_t end = clock_ms(CLOCK_MONOTONIC) + STOP_MS;
	const struct timespec soon = {.tv_nsec = LATE_NS};

	if (f->pid <= 0)
		return;
	close(f->sock);
	/* a wait that nothing interrupts may be long: it lets that thread go without us */
	while (clock_ms(CLOCK_MONOTONIC) < end && !waitpid(f->pid, NULL, WNOHANG))
		nanosleep(&soon, NULL);
	f->pid = 0;
}
