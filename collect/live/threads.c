/* SPDX-License-Identifier: MIT */
/*
 * threads.c - see threads.h.
 *
 * PTRACE_SEIZE and INTERRUPT, because they leave no trace: no SIGSTOP that a parent could see.  A
 * thread that was in a system call stands at its end with what the kernel needs to make it once more,
 * in rax and orig_rax; that comes to pass when it goes on from a stop that is not a system call's, which is
 * why the thread that ran for us is stopped once more at the end.
 */
#define _GNU_SOURCE
#include "collect/live/threads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/kernel/memory_sharing.h"
#include "collect/kernel/process_maps.h"

#define STOP_MS 1000  /* for all of them, once they were asked */
#define LATE_MS 10000 /* one that nothing interrupts */
#define LOAN_MS 100   /* who has the memory for so long keeps it */
#define RUN_MS 10000
#define SIGNALS_MS 5
#define TRACER_MS 1000u
#define SPIN 200 /* looks without a pause in between */
/* The kernel's own: what rax holds where a system call is to be made once more. */
#define RESTARTS_FIRST 512
#define RESTARTS_LAST 516

static int64_t now_ms(void)
{
	return (int64_t)clock_ms(CLOCK_MONOTONIC);
}

static void pause_a_little(unsigned turn)
{
	const struct timespec ts = {.tv_nsec = 20000};

	if (turn > SPIN)
		nanosleep(&ts, NULL);
}

bool thread_restarts(const struct live_thread *t)
{
	const int64_t rax = (int64_t)t->regs.rax;

	return (int64_t)t->regs.orig_rax >= 0 && rax <= -RESTARTS_FIRST && rax >= -RESTARTS_LAST;
}

/* ---- one thread ---- */

enum wait { WAIT_STOPPED, WAIT_CALL, WAIT_SIGNAL, WAIT_GONE, WAIT_LATE };

/* Its next stop; *signal: which one came, of WAIT_SIGNAL. */
static enum wait wait_for(pid_t tid, int64_t deadline, int *signal)
{
	int status;

	for (unsigned turn = 0;; turn++) {
		pid_t r = waitpid(tid, &status, __WALL | WNOHANG);

		if (r == tid && WIFSTOPPED(status)) {
			*signal = WSTOPSIG(status);
			if (*signal == (SIGTRAP | 0x80))
				return WAIT_CALL;
			return status >> 16 ? WAIT_STOPPED : WAIT_SIGNAL;
		}
		if (r == tid || (r < 0 && errno == ECHILD))
			return WAIT_GONE;
		if (now_ms() > deadline)
			return WAIT_LATE;
		pause_a_little(turn);
	}
}

/*
 * A signal that was on its way is delivered first, and the stop that was asked for comes after it.  It is
 * asked for once more: the kernel forgets it if the signal's own stop had begun (ptrace_stop() clears
 * JOBCTL_TRAP_STOP).
 */
static enum wait wait_for_event(pid_t tid, int64_t deadline)
{
	enum wait w;
	int signal;

	while ((w = wait_for(tid, deadline, &signal)) == WAIT_SIGNAL) {
		ptrace(PTRACE_INTERRUPT, tid, 0, 0);
		ptrace(PTRACE_CONT, tid, 0, signal);
	}
	return w;
}

/* ---- stop ---- */

static struct live_thread *thread_of(struct live_threads *t, pid_t tid)
{
	vec_for(&t->v, k)
		if (k->tid == tid)
			return k;
	return NULL;
}

static bool is_dead(pid_t pid, pid_t tid)
{
	struct process_stat st;

	return !process_read_stat(pid, tid, &st) || st.state == 'Z' || st.state == 'X';
}

static bool is_called(pid_t pid, const char *what)
{
	char *name = pid ? process_thread_name(pid, 0) : NULL;
	const bool is = name && !strcmp(name, what);

	xfree(name);
	return is;
}

bool threads_is_freezer(pid_t tracer)
{
	return is_called(tracer, "kron-freezer");
}

bool threads_is_krons(pid_t tracer)
{
	return is_called(tracer, "kron-surgeon") || threads_is_freezer(tracer);
}

pid_t threads_await_krons(pid_t pid)
{
	const struct timespec ts = {.tv_nsec = 1000000};
	pid_t tracer = process_tracer(pid);

	for (unsigned ms = 0; ms < TRACER_MS && threads_is_krons(tracer); ms++) {
		nanosleep(&ts, NULL);
		tracer = process_tracer(pid);
	}
	return tracer;
}

/* Of the first `known` threads; *next: the one that is probably next, for the folder has them in their order. */
static bool is_known(const struct live_threads *t, size_t known, size_t *next, pid_t tid)
{
	for (size_t i = 0; i < known; i++) {
		const size_t at = (*next + i) % known;

		if (t->v.v[at].tid == tid) {
			*next = at + 1;
			return true;
		}
	}
	return false;
}

/* One that an earlier try has not let go, because it did not stop in time. */
static bool is_ours(pid_t pid, pid_t tid)
{
	const int saved = errno;
	const bool is = saved == EPERM &&
			process_status_number(pid, tid, "TracerPid", 10) == (uint64_t)gettid();

	errno = saved;
	return is;
}

int threads_seize(struct live_threads *t, bool *whole, struct err *err)
{
	const size_t known = t->v.n;
	struct process_stat st = {0};
	char path[64];
	struct dirent *e;
	int64_t seen = 0;
	size_t next = 0;
	int n = 0, code = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", t->pid);
	d = opendir(path);
	if (!d)
		return err_set(err, ESRCH, "there is no process %d", t->pid);
	while (!code && (e = readdir(d))) {
		pid_t tid = atoi(e->d_name);

		seen += tid > 0;
		if (tid <= 0 || is_known(t, known, &next, tid) ||
		    process_thread_is_kernels(t->pid, tid))
			continue;
		if (!ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD) || is_ours(t->pid, tid)) {
			*vec_push(&t->v) = (struct live_thread){.tid = tid};
			n++;
		} else if (errno != ESRCH && !is_dead(t->pid, tid)) {
			code = err_set(err, errno, "cannot stop thread %d of process %d: %s", tid,
				       t->pid, strerror(errno));
		}
	}
	closedir(d);
	*whole = process_read_stat(t->pid, 0, &st) && seen >= st.threads;
	return code ? code : n;
}

static bool is_to_stop(const struct live_threads *t, const struct live_thread *k, bool first)
{
	return !k->stopped && !k->gone && (k->tid == t->pid) == first;
}

void threads_interrupt(struct live_threads *t, bool first)
{
	vec_for(&t->v, k)
		if (is_to_stop(t, k, first))
			ptrace(PTRACE_INTERRUPT, k->tid, 0, 0);
}

static const char *why_it_does_not_stop(pid_t pid, pid_t tid)
{
	struct process_stat st;

	return process_read_stat(pid, tid, &st) && st.state == 'R'
		       ? "it has got no processor for too long, because others want them"
		       : "it is in a system call that nothing interrupts";
}

int threads_await(struct live_threads *t, bool first, uint64_t deadline_ms, struct err *err)
{
	const int64_t deadline = (int64_t)deadline_ms;
	int code = 0;

	vec_for(&t->v, k) {
		enum wait w;

		if (!is_to_stop(t, k, first))
			continue;
		w = wait_for_event(k->tid, deadline);
		k->gone = w == WAIT_GONE;
		k->stopped = w == WAIT_STOPPED && !ptrace(PTRACE_GETREGS, k->tid, 0, &k->regs);
		if (!k->stopped && !k->gone)
			code = err_set(err, EBUSY, "thread %d of process %d does not stop: %s",
				       k->tid, t->pid, why_it_does_not_stop(t->pid, k->tid));
	}
	return code;
}

static int stop_some(struct live_threads *t, bool first, int64_t deadline, struct err *err)
{
	threads_interrupt(t, first);
	return threads_await(t, first, (uint64_t)deadline, err);
}

/*
 * The kernel gives the process's signals to its first thread unless that stands still: it is the last to
 * stop and the first to go, so that no other thread's call is interrupted by one of them.
 */
static int stop_new(struct live_threads *t, int64_t deadline, struct err *err)
{
	struct err other;
	const int code = stop_some(t, false, deadline, err);
	const int last = stop_some(t, true, deadline, code ? &other : err);

	return code ? code : last;
}

/* Of the process that was stopped last: who reads its memory waits for a lock that hundreds of its threads may queue for. */
static pid_t call_of;
static uint64_t call_at;

static int find_system_call(struct live_threads *t, struct err *err)
{
	struct process_maps maps;
	uint8_t code[16384];
	int ret = process_maps_read(&maps, t->pid, err);

	if (ret)
		return ret;
	for (size_t i = 0; i < maps.n && !t->vdso_syscall; i++) {
		ssize_t n = 0;

		if (!strcmp(maps.v[i].path, "[vdso]"))
			n = threads_read(t, code, maps.v[i].start, sizeof(code));
		for (ssize_t at = 0; at + 1 < n && !t->vdso_syscall; at++)
			if (code[at] == 0x0f && code[at + 1] == 0x05)
				t->vdso_syscall = maps.v[i].start + (uint64_t)at;
	}
	process_maps_free(&maps);
	call_of = t->pid;
	call_at = t->vdso_syscall;
	return t->vdso_syscall ? 0 : err_set(err, ENOTSUP, "process %d has no vdso", t->pid);
}

/* Of the program that it was when it was opened; one that was executed meanwhile has another. */
static bool has_memory(const struct live_threads *t)
{
	static const uint8_t insn[] = {0x0f, 0x05};
	uint8_t there[2];

	if (threads_read(t, there, t->vdso_syscall, sizeof(there)) == sizeof(there) &&
	    !memcmp(there, insn, sizeof(insn)))
		return true;
	call_of = 0;
	return false;
}

static int find_shared(struct live_threads *t, bool shared, struct err *err)
{
	return shared ? err_set(err, EBUSY,
				"another process than %d runs in its memory, too: a child of vfork or "
				"posix_spawn that has not executed its program yet, or one that shares it "
				"for good",
				t->pid)
		      : 0;
}

enum loan { LOAN_NONE, LOAN_BRIEF, LOAN_LASTING };

/* Until nobody has it, or it is known whether those who have it keep it. */
static enum loan look_for_loan(pid_t pid)
{
	const struct timespec ts = {.tv_nsec = 1000000};
	const int64_t until = now_ms() + LOAN_MS;
	struct memory_sharers first, s;
	enum loan loan;

	memory_sharers_read(&first, pid);
	loan = first.v.n ? LOAN_LASTING : LOAN_NONE;
	while (loan != LOAN_NONE && now_ms() < until) {
		nanosleep(&ts, NULL);
		memory_sharers_read(&s, pid);
		loan = !s.v.n                            ? LOAN_NONE
		       : memory_sharers_meet(&first, &s) ? LOAN_LASTING
							 : LOAN_BRIEF;
		memory_sharers_free(&s);
	}
	memory_sharers_free(&first);
	return loan;
}

/*
 * Threads that vfork all the time, in turns, leave no moment without a child in the memory.  They begin no other
 * while they are being stopped, and stand when their children are done.  number: 0 then; else as memory_is_shared() has it.
 */
static int try_to_stop(struct live_threads *t, pid_t number, struct err *err)
{
	const uint64_t each_ms = number ? STOP_MS : LOAN_MS;
	const int64_t deadline = now_ms() + (int64_t)each_ms;
	int n, code;
	bool whole;

	do {
		n = threads_seize(t, &whole, err);
		if (!t->since_ns)
			t->since_ns = clock_ns(CLOCK_MONOTONIC);
		code = n < 0 ? n : stop_new(t, now_ms() + (int64_t)each_ms, err);
	} while (!code && (n > 0 || (!whole && now_ms() < deadline)));
	if (!code && !has_memory(t))
		code = err_set(err, EBUSY, "process %d executes another program", t->pid);
	return code ? code : find_shared(t, memory_is_shared(t->pid, number), err);
}

/* ---- seccomp ---- */

/* To ask of more of them while they stand still would take longer than all that is done to them. */
#define ASKED_OF 64u

static bool is_filtered(pid_t pid, pid_t tid)
{
	return process_status_number(pid, tid, "Seccomp", 10) > 0;
}

/* Each thread may have a filter of its own. */
static bool has_filter(pid_t pid)
{
	bool found = false;
	struct dirent *e;
	char path[64];
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	while (d && !found && (e = readdir(d)))
		found = atoi(e->d_name) > 0 && is_filtered(pid, atoi(e->d_name));
	if (d)
		closedir(d);
	return found;
}

/* It was looked for a moment ago: what came since, in the first thread that will run for us, and in some more. */
static void look_for_filters(struct live_threads *t)
{
	for (size_t i = 0, n = 0; i < t->v.n && n < ASKED_OF && !t->filtered; i++) {
		n += t->v.v[i].stopped;
		t->filtered = t->v.v[i].stopped && is_filtered(t->pid, t->v.v[i].tid);
	}
}

int threads_begin(struct live_threads *t, pid_t pid, struct err *err)
{
	char path[64];

	memset(t, 0, sizeof(*t));
	t->pid = pid;
	snprintf(path, sizeof(path), "/proc/%d/mem", process_memory_thread(pid));
	t->mem = open(path, O_RDWR | O_CLOEXEC);
	if (t->mem < 0)
		return err_set(err, errno, "cannot reach the memory of process %d: %s", pid,
			       strerror(errno));
	return 0;
}

int threads_stop(struct live_threads *t, pid_t pid, uint64_t deadline_ms, struct err *err)
{
	enum loan loan;
	pid_t number;
	int code;

	do {
		number = memory_number_now();
		loan = look_for_loan(pid);
	} while (loan == LOAN_LASTING && clock_ms(CLOCK_MONOTONIC) < deadline_ms);
	code = threads_begin(t, pid, err);
	if (code)
		return code;
	t->vdso_syscall = call_of == pid ? call_at : 0;
	code = t->vdso_syscall ? 0 : find_system_call(t, err);
	t->filtered = has_filter(pid);
	if (!code)
		code = find_shared(t, loan == LOAN_LASTING, err);
	if (!code)
		code = try_to_stop(t, loan == LOAN_NONE ? number : 0, err);
	look_for_filters(t);
	return code;
}

/* PTRACE_DETACH, and the end of the surgeon, put the filter back. */
int threads_lift_filter(struct live_threads *t, struct err *err)
{
	vec_for(&t->v, k)
		if (t->filtered && k->stopped && is_filtered(t->pid, k->tid) &&
		    ptrace(PTRACE_SETOPTIONS, k->tid, 0,
			   PTRACE_O_TRACESYSGOOD | PTRACE_O_SUSPEND_SECCOMP))
			return err_set(
				err, EPERM,
				"process %d is under a seccomp filter, which could kill it "
				"for what kron must do there, and kron may not lift that: %s",
				t->pid, strerror(errno));
	return 0;
}

/* The stop comes before a signal that the thread's own instruction has raised. */
bool threads_is_trap_pending(const struct live_thread *k)
{
	siginfo_t pending[8];
	struct __ptrace_peeksiginfo_args which = {.nr = 8};
	long n = k->stopped ? ptrace(PTRACE_PEEKSIGINFO, k->tid, &which, pending) : 0;

	for (long i = 0; i < n; i++)
		if (pending[i].si_signo == SIGTRAP && pending[i].si_code == SI_KERNEL)
			return true;
	return false;
}

/* ---- a program that starts ---- */

int threads_seize_child(struct live_threads *t, pid_t tid, struct err *err)
{
	memset(t, 0, sizeof(*t));
	t->pid = tid;
	t->mem = -1;
	if (ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC))
		return err_set(err, errno, "cannot trace process %d: %s", tid, strerror(errno));
	*vec_push(&t->v) = (struct live_thread){.tid = tid};
	return 0;
}

static bool is_stop_signal(int signal)
{
	return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

/* Signals come to it as ever, and who is stopped stays so. */
static void go_on(pid_t tid, int event, int signal)
{
	if (event == PTRACE_EVENT_STOP && is_stop_signal(signal))
		ptrace(PTRACE_LISTEN, tid, 0, 0);
	else
		ptrace(PTRACE_CONT, tid, 0, event ? 0 : signal);
}

/* A thread that executes a program gets the number of its process. */
enum live_exec threads_look_for_exec(struct live_threads *t)
{
	int status;
	pid_t tid;

	while ((tid = waitpid(-1, &status, __WALL | WNOHANG)) > 0) {
		if (!WIFSTOPPED(status))
			continue;
		if (status >> 16 != PTRACE_EVENT_EXEC) {
			go_on(tid, status >> 16, WSTOPSIG(status));
			continue;
		}
		t->since_ns = clock_ns(CLOCK_MONOTONIC);
		t->pid = t->v.v[0].tid = tid;
		return LIVE_EXEC_DONE;
	}
	return tid < 0 && errno == ECHILD ? LIVE_EXEC_GONE : LIVE_EXEC_NOT_YET;
}

/* The stop of an exec is inside of the system call; the one after it is not. */
int threads_stand(struct live_threads *t, struct err *err)
{
	struct live_thread *k = &t->v.v[0];
	char path[64];
	enum wait w;
	int code;

	ptrace(PTRACE_INTERRUPT, k->tid, 0, 0);
	ptrace(PTRACE_CONT, k->tid, 0, 0);
	w = wait_for_event(k->tid, now_ms() + RUN_MS);
	k->gone = w == WAIT_GONE;
	k->stopped = w == WAIT_STOPPED && !ptrace(PTRACE_GETREGS, k->tid, 0, &k->regs);
	if (!k->stopped) {
		vec_free(&t->v);
		return err_set(err, ESRCH, "process %d has ended", t->pid);
	}
	look_for_filters(t);
	snprintf(path, sizeof(path), "/proc/%d/mem", t->pid);
	t->mem = open(path, O_RDWR | O_CLOEXEC);
	code = t->mem < 0 ? err_set(err, errno, "cannot reach the memory of process %d: %s", t->pid,
				    strerror(errno))
			  : find_system_call(t, err);
	if (code)
		threads_go(t);
	return code;
}

void threads_let_go(struct live_threads *t)
{
	vec_for(&t->v, k)
		if (!k->stopped && !k->gone)
			ptrace(PTRACE_INTERRUPT, k->tid, 0, 0);
	threads_go(t);
}

/* ---- read, write ---- */

ssize_t threads_read(const struct live_threads *t, void *to, uint64_t from, size_t len)
{
	return pread(t->mem, to, len, (off_t)from);
}

ssize_t threads_write(const struct live_threads *t, uint64_t to, const void *from, size_t len)
{
	return pwrite(t->mem, from, len, (off_t)to);
}

/* ---- run ---- */

/* The one that runs for us. */
static struct live_thread *runner(struct live_threads *t)
{
	vec_for(&t->v, k) {
		if (!k->stopped || (t->runner && t->runner != k->tid))
			continue;
		if (!t->runner)
			runner_take(t, k);
		return k;
	}
	return NULL;
}

void threads_choose_runner(struct live_threads *t)
{
	runner(t);
}

/*
 * Into a system call, or out of it.  A SIGSTOP, which nobody can block, is delivered: the process is
 * stopped by it once we are gone, unless a SIGCONT comes first; until then its thread runs for us.
 */
static int go_to_call(struct live_thread *k)
{
	const int64_t deadline = now_ms() + RUN_MS;
	enum wait w;
	int signal = 0;

	do {
		ptrace(PTRACE_SYSCALL, k->tid, 0, signal);
		signal = 0;
		w = wait_for(k->tid, deadline, &signal);
	} while (w == WAIT_STOPPED || (w == WAIT_SIGNAL && signal == SIGSTOP));
	k->gone = w == WAIT_GONE;
	k->stopped = w == WAIT_CALL || w == WAIT_SIGNAL; /* the latter: our code is not there */
	return w == WAIT_CALL ? 0 : -ECHILD;
}

long threads_call(struct live_threads *t, long number, const uint64_t *arg, unsigned n)
{
	struct live_thread *k = runner(t);
	struct user_regs_struct r;
	uint64_t a[6] = {0};

	if (!k)
		return -ECHILD;
	memcpy(a, arg, n * sizeof(*a));
	r = k->regs;
	r.rip = t->vdso_syscall;
	r.rax = (uint64_t)number;
	r.orig_rax = (uint64_t)-1;
	r.rdi = a[0];
	r.rsi = a[1];
	r.rdx = a[2];
	r.r10 = a[3];
	r.r8 = a[4];
	r.r9 = a[5];
	if (ptrace(PTRACE_SETREGS, k->tid, 0, &r) || go_to_call(k) || go_to_call(k) ||
	    ptrace(PTRACE_GETREGS, k->tid, 0, &r))
		return -ECHILD;
	return (long)r.rax;
}

/* It has run to its end, and sleeps. */
static bool is_done(const struct live_threads *t, uint64_t done)
{
	uint32_t word = 0;

	return threads_read(t, &word, done, sizeof(word)) == sizeof(word) && word;
}

int threads_run(struct live_threads *t, uint64_t pc, uint64_t rsp, uint64_t rdi, uint64_t done)
{
	struct live_thread *k = runner(t);
	const int64_t deadline = now_ms() + RUN_MS;
	struct user_regs_struct r;
	int status;

	if (!k)
		return -ECHILD;
	r = k->regs;
	r.rip = pc;
	r.rsp = rsp & ~15ull;
	r.rdi = rdi;
	r.orig_rax = (uint64_t)-1;
	if (ptrace(PTRACE_SETREGS, k->tid, 0, &r) || ptrace(PTRACE_CONT, k->tid, 0, 0))
		return -ECHILD;
	for (unsigned turn = 0; !is_done(t, done); turn++) {
		pid_t got = waitpid(k->tid, &status, __WALL | WNOHANG);

		if (got == k->tid && WIFSTOPPED(status)) {
			const int signal = status >> 16 ? 0 : WSTOPSIG(status);

			if (signal && signal != SIGSTOP)
				return -EFAULT;
			ptrace(PTRACE_CONT, k->tid, 0, signal);
		} else if (got) {
			k->gone = true;
			k->stopped = false;
			return -ECHILD;
		} else if (now_ms() > deadline) {
			break;
		}
		pause_a_little(turn);
	}
	ptrace(PTRACE_INTERRUPT, k->tid, 0, 0);
	k->stopped = wait_for_event(k->tid, now_ms() + RUN_MS) == WAIT_STOPPED;
	if (!k->stopped)
		return -ECHILD;
	return is_done(t, done) ? 0 : -EFAULT;
}

/* ---- go ---- */

/* Its own registers; and in a stop that is not a system call's, or the kernel would not make its own
 * one once more. */
static void put_back(struct live_threads *t, struct live_thread *k)
{
	ptrace(PTRACE_SETREGS, k->tid, 0, &k->regs);
	if (k->tid != t->runner)
		return;
	ptrace(PTRACE_INTERRUPT, k->tid, 0, 0);
	ptrace(PTRACE_CONT, k->tid, 0, 0);
	k->stopped = wait_for_event(k->tid, now_ms() + RUN_MS) == WAIT_STOPPED;
	runner_give_back(t);
}

static void let_go(struct live_threads *t, struct live_thread *k)
{
	if (k->changed && k->stopped)
		put_back(t, k);
	/* who was killed while it stood is still ours to wait for: its parent hears of it only then */
	if (k->stopped && !ptrace(PTRACE_DETACH, k->tid, 0, 0))
		k->gone = true;
	k->stopped = false;
}

/* What came for the process meanwhile: whoever else goes on now would take it. */
static void let_first_take_signals(const struct live_threads *t)
{
	const int64_t deadline = now_ms() + SIGNALS_MS;

	for (unsigned turn = 0; now_ms() < deadline; turn++) {
		const uint64_t pending = process_status_number(t->pid, 0, "ShdPnd", 16);

		if (!pending || !(pending & ~process_status_number(t->pid, 0, "SigBlk", 16)))
			return;
		pause_a_little(turn);
	}
}

/* ahead: only those that go ahead, and the first in any case. */
static void let_all_go(struct live_threads *t, bool ahead)
{
	struct live_thread *first = thread_of(t, t->pid);

	if (first && first->stopped) {
		let_go(t, first);
		let_first_take_signals(t);
	}
	/* They have another system call to make, which a filter that comes next may forbid. */
	vec_for(&t->v, k)
		if ((int64_t)k->regs.rax == -ERESTART_RESTARTBLOCK && (!ahead || k->goes_ahead))
			let_go(t, k);
	vec_for(&t->v, k)
		if (!ahead || k->goes_ahead)
			let_go(t, k);
}

static void await_late(struct live_threads *t, bool first)
{
	vec_for(&t->v, k) {
		if (k->gone || (k->tid == t->pid) != first)
			continue;
		k->stopped = wait_for_event(k->tid, now_ms() + LATE_MS) == WAIT_STOPPED &&
			     !ptrace(PTRACE_GETREGS, k->tid, 0, &k->regs);
		k->gone = !k->stopped; /* the end of the surgeon lets it go */
	}
}

/* The others run meanwhile: a thread cannot be let go before it has stopped. */
void threads_go_before_late(struct live_threads *t)
{
	let_all_go(t, false);
	await_late(t, false);
	await_late(t, true); /* the end of a first thread comes after those of the others */
}

size_t threads_go_standing(struct live_threads *t)
{
	size_t n = 0;

	let_all_go(t, false);
	for (size_t i = 0; i < t->v.n; i++)
		if (!t->v.v[i].gone)
			t->v.v[n++] = t->v.v[i];
	t->v.n = n;
	return n;
}

void threads_go_ahead(struct live_threads *t)
{
	let_all_go(t, true);
}

void threads_go(struct live_threads *t)
{
	threads_go_before_late(t);
	let_all_go(t, false);
	t->stood_ns = clock_ns(CLOCK_MONOTONIC) - t->since_ns;
	vec_free(&t->v);
	if (t->mem >= 0)
		close(t->mem);
	t->mem = -1;
}
