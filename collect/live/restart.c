/* SPDX-License-Identifier: MIT */
/*
 * restart.c - see restart.h.
 *
 * A thread that is about to see EINTR sees it because of us, unless a signal comes that it has a handler
 * for.  The kernel knows that best, at the moment when the thread goes on: its call gets the result that
 * means EINTR after a handler, and the call once more otherwise.  When its call began nobody says; but when
 * a thread was put on a processor last the scheduler does, and a thread that waits has been put there for the
 * last time when it began to.
 */
#define _GNU_SOURCE
#include "collect/live/restart.h"

#include <dirent.h>
#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/kernel/process_maps.h"
#include "collect/kernel/scheduler.h"

#define SLEEPERS_MAX 4096 /* the oldest is forgotten */
#define GO_ON_MS 10000    /* of who has yet to get a processor */
#define RAN_NS 2000000    /* who has run for so long has gone on */
#define UNKNOWN_MS 200    /* the same, where the kernel does not say how long anybody has run */
#define SLICE_MS 200      /* how often it is asked whether the stop is still wanted */
#define STOP_MS 10000     /* a child that borrows the memory ends, or executes a program */
#define DENIED_TRIES 5u

/* ---- since when ---- */

#define ERESTARTNOHAND 514 /* the kernel's own */

struct runs {
	VEC(struct run {
		pid_t tid;
		struct thread_run run;
	})
	v;
};
struct clocks {
	VEC(struct processor_clock) v;
};

static struct processor_clock *clock_of(struct clocks *c, int cpu)
{
	vec_for(&c->v, at)
		if (at->cpu == cpu)
			return at;
	return NULL;
}

static void look_at(struct runs *r, struct clocks *c, pid_t pid, pid_t tid)
{
	const struct thread_run run = thread_run_read(pid, tid);

	if (!run.at)
		return;
	*vec_push(&r->v) = (struct run){tid, run};
	if (!clock_of(c, run.cpu))
		*vec_push(&c->v) = (struct processor_clock){.cpu = run.cpu};
}

static void waits_look(struct live_waits *w, pid_t pid)
{
	struct clocks c = {0};
	struct runs r = {0};
	char path[64];
	struct dirent *e;
	DIR *d;

	memset(w, 0, sizeof(*w));
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	while (d && (e = readdir(d)))
		if (atoi(e->d_name) > 0)
			look_at(&r, &c, pid, atoi(e->d_name));
	if (d)
		closedir(d);
	processor_clocks_read(c.v.v, c.v.n);
	vec_for(&r.v, k) {
		const struct processor_clock *at = clock_of(&c, k->run.cpu);

		if (k->run.at <= at->now)
			*vec_push(&w->v) = (struct live_wait){
				k->tid, at->mono - (at->now - k->run.at), k->run.switches};
	}
	vec_free(&r.v);
	vec_free(&c.v);
}

/* 0: it is not known.  One that has slept since we looked, but for its stop, is in another call now. */
static uint64_t waited_ns(const struct live_waits *w, pid_t pid, pid_t tid)
{
	for (size_t i = 0; i < w->v.n; i++)
		if (w->v.v[i].tid == tid)
			return thread_switches_read(pid, tid) <= w->v.v[i].switches + 1
				       ? clock_ns(CLOCK_MONOTONIC) - w->v.v[i].since_ns
				       : 0;
	return 0;
}

/* ---- whose EINTR is it? ---- */

/* The kernel makes io_pgetevents again by itself, with all of its timeout. */
static bool ends_by_stop(const struct live_thread *k)
{
	return (int64_t)k->regs.rax == -EINTR ||
	       (k->regs.orig_rax == SYS_io_pgetevents && (int64_t)k->regs.rax == -ERESTARTNOHAND);
}

static bool was_interrupted(const struct live_threads *t, const struct live_thread *k)
{
	uint8_t insn[2];

	return (int64_t)k->regs.orig_rax >= 0 && ends_by_stop(k) &&
	       k->regs.orig_rax != SYS_close && /* what it closes is closed */
	       threads_read(t, insn, k->regs.rip - 2, 2) == 2 && insn[0] == 0x0f && insn[1] == 0x05;
}

/*
 * The kernel would go on with it by another system call, restart_syscall, which a filter may forbid: the
 * program itself never makes it.
 */
static bool is_barred(const struct live_threads *t, const struct live_thread *k)
{
	return t->filtered && process_status_number(t->pid, k->tid, "Seccomp", 10) > 0;
}

/*
 * Who is in restart_syscall when it is stopped, with a filter that came meanwhile, was there because of our last
 * stop, nearly always: which call that was, is known from then.  (A place in the code may make several.)
 */
static VEC(struct sleeper {
	pid_t tid;
	uint64_t rip;
	uint64_t fs_base;
	uint64_t call;
}) sleepers;

/* NULL: not known. */
static struct sleeper *sleeper_of(const struct live_thread *k)
{
	vec_for(&sleepers, s)
		if (s->tid == k->tid && s->rip == k->regs.rip && s->fs_base == k->regs.fs_base)
			return s;
	return NULL;
}

static struct sleeper *new_sleeper(const struct live_thread *k)
{
	static size_t oldest;
	struct sleeper *s = sleeper_of(k);

	if (!s && sleepers.n < SLEEPERS_MAX)
		s = vec_push(&sleepers);
	else if (!s)
		s = &sleepers.v[oldest++ % SLEEPERS_MAX];
	*s = (struct sleeper){.tid = k->tid,
			      .rip = k->regs.rip,
			      .fs_base = k->regs.fs_base,
			      .call = k->regs.orig_rax};
	return s;
}

/*
 * Its call is to be made once more by us, not gone on with by the kernel.  Where the call is not known it ends
 * with EINTR.  (What it had slept before an earlier stop is not taken off: to ask for that at each stop, and
 * of all threads, takes long.)
 */
static bool is_to_sleep_again(const struct live_threads *t, struct live_thread *k)
{
	struct sleeper *s;

	if ((int64_t)k->regs.orig_rax < 0 || (int64_t)k->regs.rax != -ERESTART_RESTARTBLOCK)
		return false;
	s = k->regs.orig_rax == SYS_restart_syscall ? sleeper_of(k) : new_sleeper(k);
	if (!is_barred(t, k))
		return false;
	if (s) {
		k->regs.orig_rax = s->call;
	} else {
		k->regs.rax = (uint64_t)-EINTR;
		k->changed = true;
	}
	return s;
}

/* ---- the time that is left ---- */

/* A timeout in milliseconds, in a register; negative: none. */
static void shorten_ms(unsigned long long *reg, uint64_t waited)
{
	int32_t ms = (int32_t)*reg;
	uint64_t gone = waited / 1000000;

	if (ms > 0)
		*reg = gone < (uint64_t)ms ? (uint32_t)((uint64_t)ms - gone) : 0;
}

/*
 * A struct timespec: the program's own stays as it is, a copy below its stack is what the call gets.
 * The kernel reads it when the call begins.
 */
static void shorten_timespec(const struct live_threads *t, struct live_thread *k,
			     unsigned long long *reg, uint64_t waited)
{
	const uint64_t copy = (k->regs.rsp - 256) & ~15ull;
	struct timespec ts;
	uint64_t ns;

	if (!*reg || threads_read(t, &ts, *reg, sizeof(ts)) != sizeof(ts) || ts.tv_sec < 0)
		return;
	ns = (uint64_t)ts.tv_sec > UINT64_MAX / 2000000000u
		     ? UINT64_MAX / 2
		     : (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	ns = ns > waited ? ns - waited : 0;
	ts = (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
	if (threads_write(t, copy, &ts, sizeof(ts)) == sizeof(ts))
		*reg = copy;
}

static void shorten(const struct live_threads *t, struct live_thread *k, uint64_t waited)
{
	switch (k->regs.orig_rax) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		shorten_ms(&k->regs.r10, waited);
		break;
	case SYS_poll:
		shorten_ms(&k->regs.rdx, waited);
		break;
	case SYS_nanosleep:
		shorten_timespec(t, k, &k->regs.rdi, waited);
		break;
	case SYS_clock_nanosleep: /* until a time: it is made again by itself */
		shorten_timespec(t, k, &k->regs.rdx, waited);
		break;
	case SYS_futex:
		if ((k->regs.rsi & FUTEX_CMD_MASK) == FUTEX_WAIT) /* others say until when */
			shorten_timespec(t, k, &k->regs.r10, waited);
		break;
	case SYS_epoll_pwait2:
	case SYS_semtimedop:
		shorten_timespec(t, k, &k->regs.r10, waited);
		break;
	case SYS_rt_sigtimedwait:
		shorten_timespec(t, k, &k->regs.rdx, waited);
		break;
	case SYS_io_getevents:
	case SYS_io_pgetevents:
		shorten_timespec(t, k, &k->regs.r8, waited);
		break;
	}
}

void restart_interrupted(struct live_threads *t, const struct live_waits *w)
{
	vec_for(&t->v, k) {
		uint64_t waited;

		if (!k->stopped || (!was_interrupted(t, k) && !is_to_sleep_again(t, k)))
			continue;
		waited = waited_ns(w, t->pid, k->tid);
		if (waited)
			shorten(t, k, waited);
		k->regs.rax = (uint64_t)-ERESTARTNOHAND;
		k->changed = true;
	}
}

/* Who stops it at intervals lets it go soon, and may have by now. */
static bool is_held_for_a_moment(pid_t pid, int code, unsigned *denied)
{
	const struct timespec ts = {.tv_nsec = 1000000};

	if (code != -EPERM ||
	    (++*denied > DENIED_TRIES && !threads_is_freezer(process_tracer(pid))))
		return false;
	nanosleep(&ts, NULL);
	return true;
}

int restart_stop(struct live_threads *t, pid_t pid, bool (*unwanted)(void *ctx), void *ctx,
		 struct err *err)
{
	const uint64_t deadline = clock_ms(CLOCK_MONOTONIC) + STOP_MS;
	unsigned denied = 0;
	int code;

	do {
		const uint64_t slice = clock_ms(CLOCK_MONOTONIC) + SLICE_MS;
		struct live_waits waits;

		if (unwanted && unwanted(ctx))
			return err_set(err, ECANCELED, "the recorder does not want it");
		waits_look(&waits, pid);
		code = threads_stop(t, pid, slice, err);
		restart_interrupted(t, &waits);
		if (code) {
			threads_go_before_late(t);
			restart_interrupted(t, &waits);
			threads_go(t);
		}
		vec_free(&waits.v);
	} while ((code == -EBUSY || is_held_for_a_moment(pid, code, &denied)) &&
		 clock_ms(CLOCK_MONOTONIC) < deadline);
	return code;
}

/* ---- they go on ---- */

struct waking {
	pid_t tid;
	uint64_t ran_ns; /* when it was looked at first */
};
struct wakings {
	VEC(struct waking) v;
};

/* It sleeps again, or has run: who waits for a processor has the call still to make. */
static bool has_gone_on(pid_t pid, struct waking *w, uint64_t waited_ms)
{
	struct process_stat st;
	uint64_t ran = 0;

	if (!process_read_stat(pid, w->tid, &st) || !strchr("Rt", st.state))
		return true;
	process_thread_ran(pid, w->tid, &ran);
	if (!w->ran_ns)
		w->ran_ns = ran;
	return ran ? ran > w->ran_ns + RAN_NS : waited_ms > UNKNOWN_MS;
}

static void await_wakings(struct wakings *w, pid_t pid)
{
	const uint64_t start = clock_ms(CLOCK_MONOTONIC);
	const struct timespec ts = {.tv_nsec = 100000};
	uint64_t waited = 0;

	while (w->v.n && waited < GO_ON_MS) {
		if (has_gone_on(pid, &w->v.v[w->v.n - 1], waited))
			w->v.n--;
		else
			nanosleep(&ts, NULL);
		waited = clock_ms(CLOCK_MONOTONIC) - start;
	}
}

void restart_go(struct live_threads *t, uint64_t stood)
{
	const uint64_t none = 0;
	struct wakings w = {0};
	const int mem = dup(t->mem);

	vec_for(&t->v, k)
		if (k->stopped && (int64_t)k->regs.rax == -ERESTART_RESTARTBLOCK)
			*vec_push(&w.v) = (struct waking){.tid = k->tid};
	threads_go(t);
	await_wakings(&w, t->pid);
	if (stood && pwrite(mem, &none, sizeof(none), (off_t)stood) < 0) {
		/* it has ended, or executed another program */
	}
	close(mem);
	vec_free(&w.v);
}
