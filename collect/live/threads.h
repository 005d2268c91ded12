/* SPDX-License-Identifier: MIT */
/*
 * threads.h - all threads of a process stand still, and one of them runs code for us.
 *
 *   threads_stop ─► regs may be read and changed, system calls made, code run ─► threads_go
 *
 * Knows ptrace(2) and nothing of kron.  Everything is for the thread that has called threads_stop().
 */
#ifndef COLLECT_LIVE_THREADS_H
#define COLLECT_LIVE_THREADS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/err.h"
#include "base/vec.h"

/* The kernel's own: in rax of who was stopped in a sleep, which it goes on with by restart_syscall. */
#define ERESTART_RESTARTBLOCK 516

struct live_thread {
	pid_t tid;
	bool stopped;
	bool gone;
	bool changed;    /* regs are to be written back */
	bool goes_ahead; /* by threads_go_ahead() */
	struct user_regs_struct regs;
};

/* Its system call dispatch, as it was (PR_SET_SYSCALL_USER_DISPATCH; the kernel's struct ptrace_sud_config). */
struct live_dispatch {
	uint64_t mode, selector, offset, len;
};

struct live_threads {
	pid_t pid;
	int mem;               /* /proc/PID/mem */
	uint64_t vdso_syscall; /* address of a system call instruction */
	bool filtered;         /* one of them is under a seccomp filter */
	pid_t runner;          /* the thread that has run code for us; 0: none yet */
	uint64_t mask;         /* its signals, as they were */
	struct live_dispatch dispatch;
	uint64_t since_ns; /* when the first was asked to stop */
	uint64_t stood_ns; /* after threads_go(): an upper bound of the longest stop */
	VEC(struct live_thread) v;
};

/* From each thread's %fs to its rseq_cs; 0: one has none, or they differ. */
int64_t threads_rseq_offset(const struct live_threads *t);
/* rseq_cs of whoever has it lead into [from, end), which goes, leads to nothing. */
void threads_drop_sequences(const struct live_threads *t, uint64_t from, uint64_t end);
/* Who traces a process, as process_tracer() has it, is a surgeon or freezer of ours, and soon will not. */
bool threads_is_krons(pid_t tracer);
bool threads_is_freezer(pid_t tracer);
/*
 * Who traces the process when none of ours does any more, or after a second: they are soon done, also when their
 * recorder was killed.  0: nobody.
 */
pid_t threads_await_krons(pid_t pid);

/*
 * None of them runs any more, none is in the middle of a system call, nor of a vfork.  Who borrows the memory for
 * longer than a moment is waited for until deadline (CLOCK_MONOTONIC).  -EBUSY: one did not stop, or somebody has the
 * memory; -EPERM, -ESRCH.  Whatever it returns, threads_go() is due: threads that have stopped stay so until then.
 */
int threads_stop(struct live_threads *t, pid_t pid, uint64_t deadline_ms, struct err *err);
/*
 * A thread that is about to execute a program: it is traced from then on (seize), runs on as it did (look,
 * whenever there is a SIGCHLD), and stands still in front of the program's first instruction (stand).
 */
int threads_seize_child(struct live_threads *t, pid_t tid, struct err *err);
enum live_exec { LIVE_EXEC_NOT_YET, LIVE_EXEC_DONE, LIVE_EXEC_GONE };
enum live_exec threads_look_for_exec(struct live_threads *t);
/* -ESRCH: it has ended instead. */
int threads_stand(struct live_threads *t, struct err *err);
/* It is not traced any more, whatever it is doing. */
void threads_let_go(struct live_threads *t);
/*
 * The steps of a stop one by one, for whoever stops several processes at once (collect/monitor/freezer.c).
 * -errno with a sentence.
 */
int threads_begin(struct live_threads *t, pid_t pid, struct err *err);
/*
 * Those that are not known yet are traced and run on; how many.  -errno: not even one.  A folder whose
 * threads end while it is read leaves some out: `whole` says whether it had as many as the process has.
 */
int threads_seize(struct live_threads *t, bool *whole, struct err *err);
/* All but the process's first thread; first: that one. */
void threads_interrupt(struct live_threads *t, bool first);
/* -EBUSY: one has not stopped yet; it will when it can, and may be waited for again. */
int threads_await(struct live_threads *t, bool first, uint64_t deadline_ms, struct err *err);
/* Who stands goes on, and is no longer here; how many are left: who has not stopped yet. */
size_t threads_go_standing(struct live_threads *t);
/* After a threads_stop() that failed: who stands goes on; who did not stop in time stands afterwards. */
void threads_go_before_late(struct live_threads *t);
/* Those that go ahead, and the first, go on; the others by threads_go(). */
void threads_go_ahead(struct live_threads *t);
/* Lets all threads go on, each with its regs. */
void threads_go(struct live_threads *t);

/*
 * What they do for us is not shown to their filters until they go on (PTRACE_O_SUSPEND_SECCOMP), and from
 * then on all is as it was.  0 also if there is none; -EPERM, with nothing changed.
 */
int threads_lift_filter(struct live_threads *t, struct err *err);

/* Will the kernel make the thread's system call once more, by its orig_rax and rax? */
bool thread_restarts(const struct live_thread *t);

/* A system call by one of them: its result, or -ECHILD if the process has ended. */
long threads_call(struct live_threads *t, long number, const uint64_t *arg, unsigned n);
/* Who runs for us is chosen by the first of these; or before, where its registers are looked at: it may have been in
 * a restartable sequence, and it is aborted then. */
void threads_choose_runner(struct live_threads *t);
/*
 * It runs code at pc with %rsp and %rdi until the word at `done` is not 0 and it sleeps.  0, -ECHILD: the
 * process has ended; -EFAULT: the code has faulted.
 */
int threads_run(struct live_threads *t, uint64_t pc, uint64_t rsp, uint64_t rdi, uint64_t done);

/* ---- runner.c: the thread that runs code for us is the program's ---- */

void runner_take(struct live_threads *t, struct live_thread *k);
void runner_give_back(const struct live_threads *t);
/* One of those that stand has its system calls dispatched: what the runtime calls would be a signal there. */
bool threads_dispatch_calls(const struct live_threads *t);

/* An int3 that the thread has executed, and whose signal it has not got yet. */
bool threads_is_trap_pending(const struct live_thread *k);

/* Bytes read; text is written to whatever its rights are. */
ssize_t threads_read(const struct live_threads *t, void *to, uint64_t from, size_t len);
ssize_t threads_write(const struct live_threads *t, uint64_t to, const void *from, size_t len);

#endif
