/* SPDX-License-Identifier: MIT */
/*
 * process_maps.h - what a process has mapped, from /proc/PID/maps.
 *
 * The text comes from the kernel, but file names in it are the traced program's choice: they
 * may hold blanks, newlines (\012) and anything else.
 */
#ifndef COLLECT_PROCESS_MAPS_H
#define COLLECT_PROCESS_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "inject/bind/space.h"

/* Where valgrind's tools are linked to: static programs. */
#define VALGRIND_BASE 0x58000000u

struct process_mapping {
	uint64_t start, end, off;
	uint64_t dev; /* as makedev(3) makes it */
	uint64_t ino;
	char perms[5];
	const char *path; /* into process_maps.text; "" when anonymous; escapes are resolved */
	bool deleted;     /* the kernel's " (deleted)" was there, and is cut off from path */
};

struct process_maps {
	struct process_mapping *v; /* sorted by start */
	size_t n;
	char *text;
};

int process_maps_read(struct process_maps *out, pid_t pid, struct err *err);
/* From text, which is copied; lines that make no sense are left out. */
void process_maps_parse(struct process_maps *out, const char *text, size_t len);
void process_maps_free(struct process_maps *m);

static inline bool process_mapping_is_exec(const struct process_mapping *m)
{
	return m->perms[2] == 'x';
}
const struct process_mapping *process_maps_at(const struct process_maps *m, uint64_t addr);
/* For space_find(): n entries, the caller frees with xfree(). */
struct space_mapping *process_maps_space(const struct process_maps *m, size_t *n);

/* A file without a name, of memfd_create(2). */
bool process_mapping_is_memfd(const struct process_mapping *m);
/* One that is called as kron's are: blocks, segments, the runtime that was put there. */
bool process_mapping_is_krons(const struct process_mapping *m);
/* "/memfd:kron:<session>:<number>": a command file of this session.  False: it is none. */
bool process_mapping_is_block(const struct process_mapping *m, uint64_t session, uint64_t *number);
/* Of whichever recording it is a block; 0: of none. */
uint64_t process_mapping_session(const struct process_mapping *m);

/* ---- small things of /proc/PID ---- */

/* Allocated; NULL when it cannot be read. */
char *process_exe(pid_t pid);
/* Arguments joined by blanks, each quoted if it must be; never NULL. */
char *process_cmdline(pid_t pid);
/* Name of a thread, or of the process if tid == 0; NULL when it is gone. */
char *process_thread_name(pid_t pid, pid_t tid);

/* A number of /proc/PID/task/TID/status, its first; 0 where it has none.  tid 0: the first thread. */
uint64_t process_status_number(pid_t pid, pid_t tid, const char *key, int base);
/* Who traces the process, as ptrace(2) has it; 0: nobody, or it cannot be known. */
pid_t process_tracer(pid_t pid);

struct process_stat {
	char state;
	pid_t ppid;
	int64_t threads;
	uint64_t starttime;
};
bool process_read_stat(pid_t pid, pid_t tid, struct process_stat *out);
/* Do we have CAP_SYS_PTRACE?  Root in a container may not. */
bool process_may_trace_others(void);
/* kernel.yama.ptrace_scope; 0 where there is no Yama. */
int process_yama_scope(void);
/* How long a thread has been on a processor, in nanoseconds, as of some milliseconds ago. */
bool process_thread_ran(pid_t pid, pid_t tid, uint64_t *ns);
/* A thread of the kernel's, which has no memory; false also where that is not known. */
bool process_is_kernels(pid_t pid);
#define PROCESS_IS_KERNELS "process %d is a thread of the kernel, which kron cannot trace"
/* It is in exit(2), or a zombie: it has no memory any more, or soon. */
bool process_is_ending(pid_t pid);
/*
 * Whose number says the process's memory, in /proc/TID and to process_vm_readv(2) and kcmp(2): its first thread's, and once
 * that has ended before the others, one of theirs.  PID where none has memory.
 */
pid_t process_memory_thread(pid_t pid);
/* A thread of the process's that the kernel has made, for io_uring or vhost: it never executes the program's code. */
bool process_thread_is_kernels(pid_t pid, pid_t tid);
/* The process's effective uid. */
bool process_uid(pid_t pid, uid_t *uid);

#endif
