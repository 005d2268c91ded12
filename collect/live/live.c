/* SPDX-License-Identifier: MIT */
/* live.c - see live.h. */
#define _GNU_SOURCE
#include "collect/live/live.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/attach/serve_live.h"
#include "collect/kernel/process_maps.h"

#define ATTACH_TRIES 10u
#define SEGMENT "/memfd:kron-" /* and the session */
#define KEEPER "kron-keeper"   /* collect/keeper.h */

/* ---- may we? ---- */

#define CAP_SYS_ADMIN_BIT (1ull << 21)

enum seccomp { SECCOMP_NONE, SECCOMP_STRICT, SECCOMP_FILTER }; /* as in /proc/PID/status */

/* Each thread may have one of its own, and probes run in all of them.  The strictest: strict has no clock. */
static enum seccomp seccomp_of(pid_t pid)
{
	enum seccomp found = SECCOMP_NONE;
	struct dirent *e;
	char path[64];
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	while (d && found != SECCOMP_STRICT && (e = readdir(d))) {
		const pid_t tid = atoi(e->d_name);
		const uint64_t mode =
			tid > 0 ? process_status_number(pid, tid, "Seccomp", 10) : SECCOMP_NONE;

		if (mode)
			found = (enum seccomp)mode;
	}
	if (d)
		closedir(d);
	return found;
}

/* The kernel lets a tracer lift it who has CAP_SYS_ADMIN, and no filter himself. */
static bool may_lift_filter(void)
{
	return process_status_number(getpid(), 0, "CapEff", 16) & CAP_SYS_ADMIN_BIT &&
	       !process_status_number(getpid(), 0, "Seccomp", 10);
}

static int check_seccomp(pid_t pid, struct err *err)
{
	const enum seccomp mode = seccomp_of(pid);

	if (mode == SECCOMP_STRICT)
		return err_set(
			err, ENOTSUP,
			"process %d is in seccomp's strict mode, where no probe can read the "
			"clock",
			pid);
	if (mode == SECCOMP_FILTER && !may_lift_filter())
		return err_set(err, ENOTSUP,
			       "process %d is under a seccomp filter, which could kill it for what "
			       "kron must do there: run kron as root, outside of containers, or "
			       "start it with `kron record -- CMD`",
			       pid);
	return 0;
}

int live_explain_denied(pid_t pid, bool is_others, enum live_who who, int scope, struct err *err)
{
	if (is_others)
		return err_set(err, EPERM, "process %d belongs to another user: run kron as root",
			       pid);
	if (scope == 3)
		return err_set(err, EPERM,
			       "this system allows nobody to trace a running process "
			       "(kernel.yama.ptrace_scope is 3, until it is started anew)");
	if (who == LIVE_BARE_ROOT)
		return err_set(err, EPERM,
			       "process %d may not be traced: kron runs as root, but without "
			       "CAP_SYS_PTRACE, as in many containers",
			       pid);
	if (who == LIVE_ROOT)
		return err_set(err, EPERM,
			       "process %d may not be traced, not by root either: it is the init "
			       "of a container, or in one that this root is not of, or a security "
			       "module forbids it",
			       pid);
	if (scope)
		return err_set(
			err, EPERM,
			"process %d may not be traced: kernel.yama.ptrace_scope is %d; run kron "
			"as root, or set it to 0",
			pid, scope);
	return err_set(err, EPERM, "process %d may not be traced: run kron as root", pid);
}

static int explain_denied(pid_t pid, struct err *err)
{
	uid_t uid = 0;

	return live_explain_denied(pid, process_uid(pid, &uid) && uid != geteuid() && geteuid(),
				   geteuid()                    ? LIVE_USER
				   : process_may_trace_others() ? LIVE_ROOT
								: LIVE_BARE_ROOT,
				   process_yama_scope(), err);
}

static const struct process_mapping *find_mapping(const struct process_maps *maps, const char *name)
{
	for (size_t i = 0; i < maps->n; i++)
		if (!strcmp(maps->v[i].path, name))
			return &maps->v[i];
	return NULL;
}

/* Where the kernel's system call instruction is that kron borrows: threads.c.  NULL: it is there. */
static const char *check_vdso(const struct process_maps *maps)
{
	if (find_mapping(maps, "[vdso]"))
		return NULL;
	for (size_t i = 0; i < maps->n; i++)
		if (maps->v[i].start == VALGRIND_BASE)
			return "runs under valgrind, which executes a translation of its code: no "
			       "probe would be hit; start it without valgrind";
	return "has no vdso, by which kron attaches: start it with `kron record -- CMD`";
}

/* Or is about to: its memory is gone. */
static bool has_ended(pid_t pid)
{
	struct process_stat st;

	if (!process_read_stat(pid, 0, &st) || st.state == 'X')
		return true;
	if (st.state == 'Z')
		return st.threads <= 1;
	return !process_status_number(pid, 0, "VmSize", 10) && !process_is_kernels(pid);
}

static bool holds_runtime(const struct process_maps *maps)
{
	for (size_t i = 0; i < maps->n; i++)
		if (!strncmp(maps->v[i].path, "/memfd:kron", 11) ||
		    strstr(maps->v[i].path, "/libkron-rt.so"))
			return true;
	return false;
}

/*
 * Not one that ends: its first thread is a zombie, while others may still be on their way.  Nor a keeper, which has the
 * memory of its recorder for a moment when that was killed.
 */
static bool is_called_kron(pid_t pid)
{
	struct process_stat st;
	const bool ends = !process_read_stat(pid, 0, &st) || st.state == 'Z' || has_ended(pid);
	char *name = ends ? NULL : process_thread_name(pid, 0);
	bool is = name && !strncmp(name, "kron", 4) && strcmp(name, KEEPER);

	xfree(name);
	return is;
}

static bool is_keeper(pid_t pid)
{
	char *name = process_thread_name(pid, 0);
	bool is = name && !strcmp(name, KEEPER);

	xfree(name);
	return is;
}

/* It has one of those segments and no runtime: a recorder.  Of whom nothing may be seen, the name decides. */
static bool looks_like_recorder(pid_t pid, const struct process_maps *segments)
{
	const struct process_mapping *shared = NULL;
	bool traced = false;
	struct process_maps maps;
	struct err err;

	if (process_maps_read(&maps, pid, &err)) /* another user's */
		return is_called_kron(pid);
	for (size_t i = 0; i < maps.n; i++) {
		const char *path = maps.v[i].path;

		if (!strncmp(path, SEGMENT, strlen(SEGMENT)))
			shared = shared ? shared : find_mapping(segments, path);
		else
			traced |=
				!strncmp(path, "/memfd:kron", 11) || strstr(path, "/libkron-rt.so");
	}
	process_maps_free(&maps);
	return shared && !traced && !is_keeper(pid);
}

/*
 * Two looks: of a traced process that ends or executes a program meanwhile the first may show the segment, and
 * no longer the runtime, which lies at a higher address; and a keeper's name is another one after it has executed kron.
 */
static bool is_recorder(pid_t pid, const struct process_maps *segments)
{
	return looks_like_recorder(pid, segments) && looks_like_recorder(pid, segments);
}

static bool is_recorded(pid_t pid, const struct process_maps *maps)
{
	DIR *d = opendir("/proc");
	bool found = !d;
	struct dirent *e;

	while (d && !found && (e = readdir(d)))
		found = atoi(e->d_name) > 0 && atoi(e->d_name) != pid &&
			atoi(e->d_name) != getpid() && is_recorder(atoi(e->d_name), maps);
	if (d)
		closedir(d);
	return found;
}

/* -EUCLEAN: what an ended recording has left is to be taken out first. */
static int check_memory(pid_t pid, struct err *err)
{
	struct process_maps maps;
	const char *what = NULL;
	bool remains;
	char path[64];
	int fd, code;

	snprintf(path, sizeof(path), "/proc/%d/mem", process_memory_thread(pid));
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 && (errno == EACCES || errno == EPERM))
		return explain_denied(pid, err);
	if (fd < 0 && (errno == ENOENT || errno == ESRCH))
		return err_set(err, ESRCH, "process %d has ended", pid);
	if (fd < 0)
		return err_set(err, errno, "cannot reach the memory of process %d: %s", pid,
			       strerror(errno));
	close(fd);
	code = process_maps_read(&maps, pid, err);
	if (code)
		return code;
	what = maps.n ? check_vdso(&maps) : "has ended"; /* killed a moment ago */
	remains = holds_runtime(&maps) && !is_recorded(pid, &maps);
	if (remains)
		what = "has kron's runtime of an ended recording still: it can be recorded once it "
		       "is started again";
	else if (holds_runtime(&maps))
		what = "is recorded by kron already: `kron ctl` and `kron top` work on that";
	process_maps_free(&maps);
	return what ? err_set(err, remains ? EUCLEAN : EBUSY, "process %d %s", pid, what) : 0;
}

/* The program's ELF class; 0: it cannot be read. */
static int elf_class(pid_t pid)
{
	unsigned char ident[5] = "";
	char path[64];
	int fd, n = 0;

	snprintf(path, sizeof(path), "/proc/%d/exe", process_memory_thread(pid));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = (int)read(fd, ident, sizeof(ident));
		close(fd);
	}
	return n == sizeof(ident) ? ident[4] : 0;
}

static int check(pid_t pid, struct err *err)
{
	struct process_stat st;
	pid_t leader, tracer;
	int code;

	if (!process_read_stat(pid, 0, &st))
		return err_set(err, ESRCH, "there is no process %d", pid);
	if (pid == getpid())
		return err_set(err, EINVAL, "kron cannot record itself by --pid");
	leader = (pid_t)process_status_number(pid, 0, "Tgid", 10);
	if (!leader)
		return err_set(err, ESRCH, "process %d has ended", pid);
	if (leader != pid)
		return err_set(err, EINVAL, "%d is a thread: give the number of its process, %d",
			       pid, leader);
	if (process_is_kernels(pid))
		return err_set(err, EBUSY, PROCESS_IS_KERNELS, pid);
	if (st.threads > KRON_LIVE_THREADS)
		return err_set(err, E2BIG, "process %d has more than %u threads", pid,
			       KRON_LIVE_THREADS);
	if ((st.state == 'Z' && st.threads <= 1) || st.state == 'X')
		return err_set(err, ESRCH,
			       "process %d has ended (its parent has not asked for its status)",
			       pid);
	tracer = threads_await_krons(pid);
	if (tracer)
		return err_set(err, EBUSY, "process %d is traced by process %d: end that first",
			       pid, tracer);
	code = check_memory(pid, err);
	if (code)
		return code;
	if (elf_class(pid) == 1)
		return err_set(err, ENOTSUP,
			       "process %d is a 32-bit program: kron traces x86-64 only", pid);
	return check_seccomp(pid, err);
}

int live_process_check(pid_t pid, struct err *err)
{
	const bool was_there = !has_ended(pid);
	int code = check(pid, err);

	if (code && was_there && has_ended(pid)) /* in the middle of it: whatever was seen last */
		return err_set(err, ESRCH, "process %d has ended", pid);
	return code;
}

int live_process_check_stop(pid_t pid, struct err *err)
{
	const pid_t tracer = process_tracer(pid);
	struct process_stat st;

	if (tracer)
		return err_set(err,
			       threads_is_krons(tracer) || (process_read_stat(tracer, 0, &st) &&
							    st.ppid == getpid())
				       ? EAGAIN
				       : EBUSY,
			       "process %d is traced by process %d: end that first", pid, tracer);
	if (seccomp_of(pid))
		return err_set(err, ENOTSUP,
			       "process %d is under a seccomp filter, which could kill it for what "
			       "kron must do there: give its probes at the start, with -p",
			       pid);
	return 0;
}

/* ---- in ---- */

struct attempt {
	struct live_process *l;
	struct server *server;
	struct kron_hello hello;
	struct live_answer *answer;
	bool last;
	int sock; /* of the runtime there */
};

static int prepare(struct attempt *a, struct err *err)
{
	return serve_live_prepare(&a->answer, a->server, a->l->pid, &a->hello, err);
}

/* It stands still by now.  One that loads libraries all the time does so until the last answer is made. */
static int make_current(struct attempt *a, struct err *err)
{
	if (!a->last && serve_live_is_current(a->answer))
		return 0;
	if (!a->last)
		return err_set(err, EAGAIN, "process %d has loaded or unloaded libraries",
			       a->l->pid);
	serve_live_free(a->answer);
	a->answer = NULL;
	return prepare(a, err);
}

/* All of them, for they stand still; at another try their events are there already. */
static void watch_threads(struct live_process *l)
{
	if (l->switches && !l->is_watched)
		switches_add_process(l->switches, l->pid, &l->unwatched);
	l->is_watched = true;
}

static int give_answer(void *ctx, int sock, struct err *err)
{
	struct attempt *a = ctx;
	int code;

	a->sock = sock;
	code = make_current(a, err);
	if (code)
		return code;
	watch_threads(a->l);
	return serve_live_reply(a->answer, sock)
		       ? err_set(err, EPIPE, "no answer reaches the process")
		       : 0;
}

static int settle(void *ctx, struct err *err)
{
	struct attempt *a = ctx;

	return serve_live_settle(a->answer, err);
}

static int choose_place(struct live_process *l, struct err *err)
{
	struct process_maps maps;
	int code = process_maps_read(&maps, l->pid, err);

	if (code)
		return code;
	code = implant_choose(&l->implant,
			      l->is_child
				      ? IMPLANT_CHILD
				      : IMPLANT_ATTACHED + l->place % IMPLANT_PLACES * IMPLANT_STEP,
			      &maps, err);
	process_maps_free(&maps);
	return code;
}

/* A surgeon that was started for this process alone has no command file yet. */
static void hand_over_file(const struct live_answer *answer, struct surgeon *surgeon)
{
	uint64_t number;
	int fd = serve_live_file(answer, &number);

	surgeon_take_file(surgeon, number, fd);
}

static int try_to_attach(struct live_process *l, struct surgeon *surgeon, struct server *s,
			 const char *entry, bool last, struct err *err)
{
	struct surgeon_job job = {.pid = l->pid,
				  .starts = l->starts,
				  .children = l->children,
				  .leaves = l->leaves,
				  .is_child = l->is_child,
				  .session = s->answerer->session};
	struct attempt a = {.l = l, .server = s, .last = last, .sock = -1};
	const struct operation_steps steps = {&a, give_answer, settle};
	struct process_stat st;
	uint64_t started = process_read_stat(l->pid, 0, &st) ? st.starttime : 0;
	int code = choose_place(l, err);

	if (code)
		return code;
	implant_hello(&l->implant, &a.hello);
	memcpy(a.hello.session, s->session, sizeof(a.hello.session));
	code = prepare(&a, err);
	if (code)
		return code;
	job.stays = !serve_live_go(a.answer, &job.go_lo, &job.go_hi);
	if (job.stays && !l->starts) {
		serve_live_free(a.answer);
		return err_set(
			err, ENOTSUP,
			"process %d is a Go program without the names of its functions: start it "
			"with `kron record -- CMD`",
			l->pid);
	}
	if (l->is_child)
		hand_over_file(a.answer, surgeon);
	job.implant = l->implant;
	snprintf(job.entry, sizeof(job.entry), "%s", entry);
	job.started = started;
	code = surgeon_attach(surgeon, &job, &steps, &l->stood_ns, err);
	if (!code)
		l->sites = serve_live_probes(a.answer);
	if (a.sock >= 0)
		close(a.sock);
	serve_live_free(a.answer);
	return code;
}

int live_process_attach(struct live_process *l, struct surgeon *surgeon, struct server *s,
			const char *entry, struct err *err)
{
	const bool was_there = !has_ended(l->pid);
	int code = l->starts ? 0 : live_process_check(l->pid, err);

	if (code == -EUCLEAN) {
		code = surgeon_take_out_remains(surgeon, l->pid, &l->stood_ns, err);
		code = code ? code : live_process_check(l->pid, err);
	}
	l->pidfd = (int)syscall(SYS_pidfd_open, l->pid, 0);
	if (!code && l->pidfd < 0)
		code = err_set(err, errno, "there is no process %d", l->pid);
	for (unsigned i = 0; !code && !l->attached && i < (l->starts ? 1 : ATTACH_TRIES); i++) {
		code = try_to_attach(l, surgeon, s, entry, i + 1 == ATTACH_TRIES, err);
		l->attached = !code;
		if (code == -EAGAIN)
			code = 0;
	}
	if (!code && !l->attached)
		code = -EAGAIN;
	if (code && !l->starts && was_there && has_ended(l->pid))
		return err_set(err, ESRCH, "process %d has ended", l->pid);
	return code;
}

int live_process_detach(struct live_process *l, struct surgeon *surgeon, struct err *err)
{
	int code = surgeon_detach(surgeon, l->pid, &l->stood_ns, err);

	l->detached = !code || code == -ESTALE;
	return code;
}

void live_process_close(struct live_process *l)
{
	if (l->pidfd >= 0)
		close(l->pidfd);
	l->pidfd = -1;
}
