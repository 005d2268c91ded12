/* SPDX-License-Identifier: MIT */
/*
 * child.h - the traced program as kron's child: starts it as if kron were not there, and waits
 * for it and for signals.
 */
#ifndef CMD_RECORD_CHILD_H
#define CMD_RECORD_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct child {
	pid_t pid;
	int status; /* of waitpid, once ended */
	bool ended;
	struct rusage usage; /* of the program and the children that it waited for */
	int signal;          /* that somebody sent to kron: end the recording; 0 = none */
	/* NULL, or: it has ended, and nobody has waited for it yet, so /proc still has what it did */
	void (*on_end)(void *ctx);
	void *on_end_ctx;
};

/*
 * Block the signals that child_wait() handles, in every thread that is started from here on.
 * Call before any thread exists.  The program gets what kron got (cmd/record/inherited.h).
 */
void child_prepare(struct child *c);
/* What we print is for somebody to read: who has seen enough ends us.  After child_prepare(). */
static inline void child_needs_reader(void)
{
	signal(SIGPIPE, SIG_DFL);
}
/* A descriptor: readable when somebody asks kron to end, by a signal that child_prepare() has blocked. */
int child_open_signals_of_end(void);

/* Start it.  0, or -errno of execve(2). */
int child_start(struct child *c, const char *path, char *const *argv, char *const *envp);

/* The same; a file that execve(2) does not know is for the shell. */
int child_start_program(struct child *c, char *path, bool needs_shell, char **argv,
			char *const *envp);

/*
 * The same, with somebody to be told of the process before it executes the program: seize().  What that
 * says does not matter here.
 */
int child_start_seized(struct child *c, const char *path, char *const *argv, char *const *envp,
		       void (*seize)(void *ctx, pid_t pid), void *ctx);

/*
 * Until the program ends (c->ended) or a signal asks kron to end (c->signal): SIGINT, SIGTERM,
 * SIGHUP or SIGQUIT that somebody sent.  It is passed on, and the program has a second to end.
 * What a terminal sends goes to the program without us, and is no business of ours.
 */
void child_wait(struct child *c);

/* Die by sig, without a core of our own; returns only if that is not possible. */
void child_raise(int sig);

/* Of the program, and of the children that it, or who it waited for, waited for; 0: it has not ended. */
uint64_t child_cpu_ns(const struct child *c);
/* "exited 1", "signal 9", "running" */
void child_describe_end(const struct child *c, char *text, size_t size);
/* kron ends as the program did: the status for exit(), if the signal that ended it does not end us. */
int child_hand_on(const struct child *c);

#endif
