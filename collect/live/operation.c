/* SPDX-License-Identifier: MIT */
/*
 * operation.c - see operation.h.
 *
 * While the threads stand still, each is in one of three places:
 *
 *   in code that no window has          it stays there
 *   in a window, not at its beginning   its instruction has moved to a stub, and so does the thread
 *   in a handler                        that of what it will go back to is in the signal's frame: likewise
 *
 * Return addresses are not a fourth one: no window contains a place that a call returns to.
 *
 * Detaching does the same the other way round.  A thread in the middle of a probe cannot be moved.  By then the
 * text is the file's again, so no other thread enters a stub, and a moment later this one has left it.
 */
#define _GNU_SOURCE
#include "collect/live/operation.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/kernel/pidns.h"
#include "collect/live/goroutines.h"
#include "collect/live/landings.h"
#include "collect/live/restart.h"
#include "collect/live/signal_frames.h"
#include "collect/live/thread_data.h"

#define DETACH_MS 10000u
#define DETACH_TRIES 150u /* at least: where many want the processors, its threads hardly run */
#define AHEAD_TRIES 4u    /* without it: mostly one is enough */
#define AHEAD_NS 3000000
#define DETACH_ALL_MS 60000 /* for the process and all its children, even if these go on forking */
/* Between two tries, twice as long after each 16: a thread that has not come out by then sleeps. */
#define DETACH_PAUSE_NS 2000000
#define DETACH_PAUSE_DOUBLINGS 6u
#define HWCAP2_FSGSBASE 2u
#define EFLAGS_TF 0x100u
#define RUNTIME_STACK 32768u /* bytes of a thread's stack that it uses at most */

/* ---- where the threads are ---- */

static uint64_t pc_of(const struct live_thread *k)
{
	return thread_restarts(k) ? k->regs.rip - 2 : k->regs.rip;
}

static void set_rip(struct live_thread *k, uint64_t rip)
{
	k->changed |= k->regs.rip != rip;
	k->regs.rip = rip;
}

static bool is_system_call(const struct live_threads *t, uint64_t pc)
{
	uint8_t insn[2];

	return threads_read(t, insn, pc, 2) == 2 && insn[0] == 0x0f && insn[1] == 0x05;
}

/*
 * A system call that is to be made once more ends with EINTR all the same if a signal comes first that
 * has a handler: the instruction in front of the thread and the one after it have to be right, and be
 * neighbours.  Where they are not, the call is made once more, whatever comes.
 */
static void place_in_call(const struct live_threads *t, struct live_thread *k, uint64_t pc,
			  uint64_t next)
{
	if (next && next != k->regs.rip && is_system_call(t, next - 2)) {
		set_rip(k, next);
	} else if (is_system_call(t, pc)) {
		set_rip(k, pc + 2);
	} else {
		set_rip(k, pc);
		k->regs.rax = k->regs.orig_rax;
		k->regs.orig_rax = (uint64_t)-1;
		k->changed = true;
	}
}

static void add_pc(struct kron_live_call *call, uint64_t pc)
{
	if (call->npcs < KRON_LIVE_PCS)
		call->pc[call->npcs++] = pc;
}

/*
 * Two addresses of each thread, then one of each frame; move_pcs() goes in the same order.  While the runtime
 * stays it corrects those of its own frames.
 */
static bool collect_pcs(struct kron_live_call *call, struct live_threads *t,
			const struct signal_frames *f)
{
	const size_t wrapped = call->op == KRON_LIVE_HOME ? f->wrapped.n : 0;
	const size_t room = sizeof(call->pc) / sizeof(call->pc[0]);

	call->npcs = 0;
	vec_for(&t->v, k) {
		add_pc(call, pc_of(k));
		add_pc(call, k->regs.rip);
	}
	for (size_t i = 0; i < f->v.n; i++)
		add_pc(call, f->v.v[i].pc);
	for (size_t i = 0; i < wrapped; i++)
		add_pc(call, f->wrapped.v[i].pc);
	return 2 * t->v.n + f->v.n + wrapped <= room;
}

/* Its handler returns to the program's own restorer, as all of them do.  False: none is known. */
static bool unwrap(const struct kron_live_call *call, struct live_threads *t,
		   const struct wrapped_frame *w, uint64_t pc)
{
	uint64_t restorer = w->signal < KRON_LIVE_SIGNALS ? call->restorer[w->signal] : 0;

	for (unsigned i = 0; i < KRON_LIVE_SIGNALS && !restorer; i++) /* SA_RESETHAND */
		restorer = call->restorer[i];
	return restorer && threads_write(t, w->pc_at, &pc, sizeof(pc)) == sizeof(pc) &&
	       threads_write(t, w->at, &restorer, sizeof(restorer)) == sizeof(restorer);
}

/* A thread or frame whose new address is 0 stays where it is.  Returns how many do. */
static size_t move_pcs(const struct kron_live_call *call, struct live_threads *t,
		       const struct signal_frames *f)
{
	size_t n = 0, left = 0;

	vec_for(&t->v, k) {
		if (call->pc[n] && thread_restarts(k))
			place_in_call(t, k, call->pc[n], call->pc[n + 1]);
		else if (call->pc[n])
			set_rip(k, call->pc[n]);
		k->goes_ahead = !call->pc[n] && k->stopped;
		left += k->goes_ahead;
		n += 2;
	}
	for (size_t i = 0; i < f->v.n; i++, n++) {
		left += !call->pc[n];
		if (call->pc[n] && call->pc[n] != f->v.v[i].pc)
			threads_write(t, f->v.v[i].at, &call->pc[n], sizeof(call->pc[n]));
	}
	for (size_t i = 0; call->op == KRON_LIVE_HOME && i < f->wrapped.n; i++, n++)
		left += !call->pc[n] || !unwrap(call, t, &f->wrapped.v[i], call->pc[n]);
	return left;
}

/* ---- out ---- */

static void unmap_blocks(struct live_threads *t, const struct process_maps *maps, uint64_t session)
{
	uint64_t number;

	for (size_t i = 0; i < maps->n; i++) {
		const struct process_mapping *m = &maps->v[i];
		const uint64_t arg[] = {m->start, m->end - m->start};

		if (process_mapping_is_block(m, session, &number))
			threads_call(t, SYS_munmap, arg, 2);
	}
}

/* No thread is in a stub any more: the runtime leaves, and all mappings of ours go. */
static int take_out(const struct implant *im, struct live_threads *t,
		    const struct process_maps *maps, uint64_t session, struct err *err)
{
	struct kron_live_call *call = xcalloc(1, sizeof(*call));
	int code;

	call->op = KRON_LIVE_LEAVE;
	call->tsc = clock_tsc();
	code = implant_call(im, t, call, err);
	if (!code && call->rseq_offset)
		threads_drop_sequences(t, im->code, im->end);
	xfree(call);
	if (code)
		return code;
	unmap_blocks(t, maps, session);
	implant_remove(im, t);
	return 0;
}

/* Where handlers will return to, and where stopped goroutines will go on. */
static int find_frames(struct signal_frames *out, uint64_t go_lo, uint64_t go_hi,
		       struct live_threads *t, const struct process_maps *maps, struct err *err)
{
	signal_frames_find(out, t, maps);
	return go_lo ? goroutines_find(out, t, maps, go_lo, go_hi, err) : 0;
}

/* ---- in ---- */

/*
 * Go looks up where a goroutine goes on, and finds nothing in a stub; and a handler may have read already where
 * it was.  So nobody may be in the middle of a window: they are in a moment somewhere else.
 */
static int check_goroutines(const struct kron_live_call *call, const struct live_threads *t,
			    const struct signal_frames *f, struct err *err)
{
	const uint64_t *pc = &call->pc[2 * t->v.n];

	for (size_t i = 0; i < f->v.n; i++)
		if (pc[i] != f->v.v[i].pc)
			return err_set(err, EAGAIN,
				       "a goroutine of process %d is always in the middle of what "
				       "kron has to change: try again",
				       t->pid);
	return 0;
}

/* The recorder's pid: our parent's.  0: the process is in another pid namespace. */
static int32_t recorder_for(pid_t pid)
{
	return pidns_of(pid) == pidns_of(getpid()) ? getppid() : 0;
}

static void make_call(struct kron_live_call *call, const struct operation *o,
		      const struct live_threads *t, const char *entry, int theirs)
{
	call->op = KRON_LIVE_ATTACH;
	call->sock = theirs;
	call->flags = getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE ? KRON_LIVE_FSGSBASE : 0;
	call->flags |= o->starts ? KRON_LIVE_STARTS : 0;
	call->flags |= o->children ? KRON_LIVE_CHILDREN : 0;
	call->flags |= o->leaves ? KRON_LIVE_LEAVES : 0;
	call->flags |= o->stays ? KRON_LIVE_STAYS : 0;
	call->flags |= kron_live_has_rdpid() ? KRON_LIVE_RDPID : 0;
	call->collector_pid = recorder_for(o->pid);
	snprintf(call->entry, sizeof(call->entry), "%s", entry);
	call->go_lo = o->go_lo;
	call->go_hi = o->go_hi;
	call->rseq_offset = threads_rseq_offset(t);
}

/* Its filters see what the runtime does from now on: that has to find each thread's number without a call. */
static int become_quiet(struct kron_live_call *call, struct live_threads *t, uint64_t room,
			struct err *err)
{
	call->flags |= KRON_LIVE_QUIET;
	return thread_data_find_number(call, t, room, err);
}

/* False: the runtime stays. */
static bool undo_all(struct operation *o, struct live_threads *t)
{
	struct process_maps maps;
	uint64_t left;
	struct err err;

	if (process_maps_read(&maps, o->pid, &err))
		return false;
	undo_patches(t, &maps, o->session, o->files, &left);
	if (!left)
		take_out(&o->implant, t, &maps, o->session, &err);
	process_maps_free(&maps);
	return !left;
}

/* Attaches to a process that is stopped.  Its threads can go on afterwards whatever is returned. */
static int put_in(struct operation *o, struct live_threads *t, const char *entry,
		  const struct operation_steps *steps, struct err *err)
{
	struct kron_live_call *call = xcalloc(1, sizeof(*call));
	struct signal_frames frames = {0};
	struct process_maps maps;
	int sock = -1, theirs, code;

	code = process_maps_read(&maps, o->pid, err);
	if (!code) {
		code = find_frames(&frames, o->go_lo, o->go_hi, t, &maps, err);
		thread_data_find(call, t, &maps);
		process_maps_free(&maps);
	}
	if (!code && threads_dispatch_calls(t))
		code = err_set(
			err, ENOTSUP,
			"process %d has its system calls dispatched to itself (PR_SET_SYSCALL_USER_DISPATCH): "
			"kron's would be, too; start it with `kron record -- CMD`",
			o->pid);
	if (!code)
		code = threads_lift_filter(t, err);
	if (!code)
		code = implant_put(&o->implant, t, &sock, &theirs, err);
	if (code)
		goto out;
	make_call(call, o, t, entry, theirs);
	if (t->filtered)
		code = become_quiet(call, t, o->implant.call, err);
	if (code)
		;
	else if (!collect_pcs(call, t, &frames))
		code = err_set(err, E2BIG, "process %d has too many threads", o->pid);
	else
		code = steps->answer(steps->ctx, sock, err);
	if (code)
		implant_hang_up(t, theirs);
	else
		code = implant_call(&o->implant, t, call, err);
	o->stood = call->stood;
	if (!code && o->go_lo)
		code = check_goroutines(call, t, &frames, err);
	if (!code)
		code = steps->settle(steps->ctx, err);
	if (!code)
		move_pcs(call, t, &frames);
	else if (undo_all(o, t))
		o->stood = 0; /* it is mapped no more */
	close(sock);
out:
	signal_frames_free(&frames);
	xfree(call);
	return code;
}

static bool is_another(const struct operation *o)
{
	struct process_stat st;

	return !process_read_stat(o->pid, 0, &st) || st.starttime != o->started;
}

static void note_stop(struct operation *o, const struct live_threads *t)
{
	o->stood_ns = t->stood_ns > o->stood_ns ? t->stood_ns : o->stood_ns;
}

int operation_begin(struct operation *o, struct live_threads *stopped, const char *entry,
		    const struct operation_steps *steps, struct err *err)
{
	int code = put_in(o, stopped, entry, steps, err);

	restart_go(stopped, o->stood);
	return code;
}

int operation_attach(struct operation *o, const char *entry, const struct operation_steps *steps,
		     struct err *err)
{
	struct live_threads t;
	int code = restart_stop(&t, o->pid, o->unwanted, o->ctx, err);

	if (!code) {
		code = is_another(o) ? err_set(err, ESRCH, "process %d has ended", o->pid)
				     : put_in(o, &t, entry, steps, err);
		restart_go(&t, o->stood);
		note_stop(o, &t);
	}
	return code;
}

/* ---- other probes ---- */

/*
 * A thread in the runtime was called by a stub and will return to it.  The return address is on its stack, no
 * deeper than the runtime's own frames.  False: it is not there, because these frames are on another stack.
 */
static bool add_callers(struct kron_live_call *call, const struct live_threads *t,
			const struct live_thread *k, const struct process_maps *maps,
			uint64_t session)
{
	static uint64_t stack[RUNTIME_STACK / sizeof(uint64_t)];
	const ssize_t n = threads_read(t, stack, k->regs.rsp, sizeof(stack));
	const uint32_t before = call->npcs;
	uint64_t number;

	for (ssize_t i = 0; i < n / (ssize_t)sizeof(stack[0]); i++) {
		const struct process_mapping *m = process_maps_at(maps, stack[i]);

		if (m && process_mapping_is_block(m, session, &number))
			add_pc(call, stack[i]);
	}
	return call->npcs > before && call->npcs < KRON_LIVE_PCS;
}

/* Adds to the call where threads in the runtime will return to.  False: some places are not known. */
static bool is_all_known(struct kron_live_call *call, const struct live_threads *t,
			 const struct signal_frames *frames, const struct process_maps *maps,
			 uint64_t entry, uint64_t session)
{
	const struct process_mapping *runtime = process_maps_at(maps, entry);

	for (size_t i = 0; i < t->v.n; i++) {
		const struct live_thread *k = &t->v.v[i];
		const struct process_mapping *m = process_maps_at(maps, k->regs.rip);

		/* by its file, since it may be several mappings */
		if (m && runtime && m->ino == runtime->ino && m->dev == runtime->dev &&
		    !add_callers(call, t, k, maps, session))
			return false;
	}
	return runtime && !frames->v.n && !frames->wrapped.n;
}

/* A thread in a window that was patched goes on in its stub, whatever became of the other windows. */
static int change(struct operation *o, struct live_threads *t, uint64_t entry,
		  const struct operation_steps *steps, struct err *err)
{
	struct kron_live_call *call = xcalloc(1, sizeof(*call));
	struct signal_frames frames = {0};
	struct process_maps maps;
	struct implant im;
	int sock = -1, theirs, code;

	code = process_maps_read(&maps, o->pid, err);
	if (code)
		goto free_call;
	code = find_frames(&frames, o->go_lo, o->go_hi, t, &maps, err);
	if (!code)
		landings_leave(t, o->go_lo ? NULL : &frames, &maps, o->session);
	if (!code)
		code = implant_borrow(&im, entry, t, &sock, &theirs, err);
	if (code)
		goto out;
	call->op = KRON_LIVE_CHANGE;
	call->sock = theirs;
	call->goroutines = o->go_lo ? (uint32_t)(2 * t->v.n) : 0;
	if (!collect_pcs(call, t, &frames))
		code = err_set(err, E2BIG, "process %d has too many threads", o->pid);
	else
		code = steps->answer(steps->ctx, sock, err);
	if (is_all_known(call, t, &frames, &maps, entry, o->session))
		call->flags = KRON_LIVE_SWEEP;
	if (code)
		implant_hang_up(t, theirs);
	else
		code = implant_call(&im, t, call, err);
	o->stood = call->stood;
	if (!code) {
		move_pcs(call, t, &frames);
		code = steps->settle(steps->ctx, err);
	}
	implant_remove(&im, t);
	close(sock);
out:
	process_maps_free(&maps);
free_call:
	signal_frames_free(&frames);
	xfree(call);
	return code;
}

int operation_change(struct operation *o, uint64_t entry, const struct operation_steps *steps,
		     struct err *err)
{
	struct live_threads t;
	int code = restart_stop(&t, o->pid, o->unwanted, o->ctx, err);

	if (code == -EPERM && threads_is_krons(process_tracer(o->pid)))
		return -EAGAIN; /* it has just been executed */
	if (!code) {
		code = is_another(o) ? err_set(err, ESRCH, "process %d has ended", o->pid)
				     : change(o, &t, entry, steps, err);
		restart_go(&t, o->stood);
		note_stop(o, &t);
	}
	return code;
}

/* ---- out again ---- */

/* The runtime in a process, and where Go has a goroutine stop. */
struct inside {
	struct implant implant;
	uint64_t go_lo, go_hi;
	bool stays;
	bool is_childs; /* of a program that was executed: the rest says what its surgeon has left there */
	bool remains; /* of an ended recording: likewise, and whatever is there may be somebody else's */
};

static int ask_inside(struct inside *in, const struct live_threads *t, struct kron_live_call *call,
		      struct err *err)
{
	const size_t len = offsetof(struct kron_live_call, pc);

	if (in->remains && !implant_is_own(&in->implant, t))
		return err_set(err, EBUSY,
			       "process %d has the runtime of another kron still: it can be "
			       "recorded once it is started again",
			       t->pid);
	if (in->is_childs && threads_read(t, call, in->implant.call, len) != (ssize_t)len)
		return err_set(err, EFAULT, "the memory of process %d cannot be read", t->pid);
	if (in->is_childs) {
		in->go_lo = call->go_lo;
		in->go_hi = call->go_hi;
		in->stays = call->flags & KRON_LIVE_STAYS;
	}
	if (in->stays)
		return err_set(err, ENOTSUP,
			       "process %d is a Go program without the names of its functions: "
			       "kron's runtime and probes stay in it, switched off",
			       t->pid);
	return 0;
}

/* They stay there until the runtime is unmapped: it may take more than one try. */
static void prepare_call(struct kron_live_call *call, const struct inside *in)
{
	memset(call, 0, offsetof(struct kron_live_call, pc));
	call->go_lo = in->go_lo;
	call->go_hi = in->go_hi;
	call->op = KRON_LIVE_HOME;
}

static bool is_trap_pending(struct live_threads *t)
{
	vec_for(&t->v, k)
		if (threads_is_trap_pending(k))
			return true;
	return false;
}

/* A signal of Go's that is put off steps to where it may come (static_go.c). */
static bool is_put_off(struct live_threads *t, const struct signal_frames *f)
{
	vec_for(&t->v, k)
		if (k->stopped && k->regs.eflags & EFLAGS_TF)
			return true;
	return f->steps;
}

/* 1: not yet: a thread is in the middle of a probe, or in what the recorder has just answered. */
static int try_to_detach(struct operation *o, struct inside *in, struct live_threads *t,
			 struct err *err)
{
	struct kron_live_call *call = xcalloc(1, sizeof(*call));
	struct signal_frames before = {0}, frames = {0};
	const pid_t pid = t->pid;
	struct process_maps maps;
	struct err barred;
	uint64_t left;
	int code = ask_inside(in, t, call, err);

	threads_choose_runner(t);
	if (!code)
		code = process_maps_read(&maps, pid, err);
	if (code)
		goto out;
	if (!undo_knows_all(&maps, o->session, o->files)) {
		err_set(err, EBUSY, "what was put into process %d is not known: kron stays in it",
			pid);
		code = o->remains ? -EBUSY : 1;
		process_maps_free(&maps);
		goto out;
	}
	signal_frames_find(&before, t, &maps);
	landings_leave(t, &before, &maps, o->session);
	undo_patches(t, &maps, o->session, o->files, &left);
	code = o->remains && t->filtered ? -EPERM : threads_lift_filter(t, &barred);
	if (code) {
		code = err_set(
			err, EPERM,
			"process %d has come under a seccomp filter, which could kill it for "
			"what kron must do there: its code is what it was, but kron's "
			"runtime stays in it",
			pid);
		process_maps_free(&maps);
		goto out;
	}
	/* the code of asyncPreempt is the program's again, by which goroutines are found */
	code = find_frames(&frames, in->go_lo, in->go_hi, t, &maps, err);
	landings_keep(&frames, &before);
	prepare_call(call, in);
	if (code)
		;
	else if (is_trap_pending(t) || (in->go_lo && is_put_off(t, &frames)) ||
		 !collect_pcs(call, t, &frames))
		code = 1;
	else
		code = implant_call(&in->implant, t, call, err);
	if (!code)
		code = move_pcs(call, t, &frames) || left ? 1 : 0;
	if (!code)
		code = take_out(&in->implant, t, &maps, o->session, err);
	if (code == 1 && left) {
		err_set(err, EBUSY,
			"a debugger has breakpoints on %" PRIu64 " probe%s in process %d: they and "
			"kron's runtime stay in it",
			left, left == 1 ? "" : "s", pid);
		code = o->remains ? -EBUSY : 1; /* it was waited for when the recording ended */
	} else if (code == 1) {
		err_set(err, EBUSY,
			"a thread of process %d does not come out of a probe: its code is what it "
			"was, but kron's runtime stays in it",
			pid);
	}
	process_maps_free(&maps);
out:
	signal_frames_free(&before);
	signal_frames_free(&frames);
	xfree(call);
	return code;
}

static bool is_runtime(const struct operation *o, const struct process_mapping *m)
{
	return m->start == o->implant.code ||
	       (o->leaves && implant_is_childs(m->start) && m->perms[2] == 'x' &&
		!strncmp(m->path, "/memfd:kron", 11));
}

/*
 * Blocks, and the runtime where we put it.  A program that was executed has neither, or a runtime of its
 * own: libkron-rt.so, or ours at another address (IMPLANT_CHILD).  Of an ended recording only the process that
 * is asked for is known to be ours; a fork of it has the very same files.  Everybody else's runtime lies
 * at the same address, and a session's name proves nothing.
 */
static bool find_inside(const struct operation *o, pid_t pid, struct inside *in)
{
	bool blocks = false, strange = false, runtime = false;
	struct process_maps maps;
	uint64_t number;
	struct err err;

	if (process_maps_read(&maps, pid, &err))
		return false;
	for (size_t i = 0; i < maps.n; i++) {
		if (process_mapping_is_block(&maps.v[i], o->session, &number)) {
			blocks = true;
			strange |= live_file_of(o->files, &maps.v[i], number) < 0;
		}
		if (runtime || !is_runtime(o, &maps.v[i]))
			continue;
		runtime = true;
		*in = (struct inside){.go_lo = o->go_lo, .go_hi = o->go_hi, .stays = o->stays};
		implant_at(&in->implant, maps.v[i].start);
		in->remains = o->remains;
		in->is_childs = o->remains || maps.v[i].start != o->implant.code;
	}
	process_maps_free(&maps);
	if (o->remains)
		return runtime && (pid == o->pid || (blocks && !strange));
	return runtime && blocks;
}

static bool is_inside(const struct operation *o, pid_t pid)
{
	struct inside in;

	return find_inside(o, pid, &in);
}

static void pause_before(unsigned try)
{
	const unsigned doublings =
		try / 16 < DETACH_PAUSE_DOUBLINGS ? try / 16 : DETACH_PAUSE_DOUBLINGS;
	const struct timespec ts = {.tv_nsec = (long)DETACH_PAUSE_NS << doublings};

	nanosleep(&ts, NULL);
}

/*
 * Where many threads want the processors, one that is in a probe may not run for seconds, or be the next to
 * sleep in the kernel's queue for the memory map: it runs on before the others do.
 */
static void go_on(struct live_threads *t, unsigned try)
{
	const struct timespec ahead = {.tv_nsec = AHEAD_NS};

	if (try >= AHEAD_TRIES) {
		threads_go_ahead(t);
		nanosleep(&ahead, NULL);
	}
	threads_go(t);
}

static int detach_process(struct operation *o, pid_t pid, struct err *err)
{
	const uint64_t start = clock_ms(CLOCK_MONOTONIC);
	uint64_t now = start;
	int code = 1;

	err_set(err, EBUSY, "kron has not left process %d in time: its runtime stays in it", pid);
	for (unsigned i = 0;
	     code == 1 && now < o->deadline && (now < start + DETACH_MS || i < DETACH_TRIES);
	     i++, now = clock_ms(CLOCK_MONOTONIC)) {
		struct live_threads t;
		struct inside in;

		if (i)
			pause_before(i);
		if (!find_inside(o, pid, &in))
			return 0; /* it has ended, or executed another program */
		code = restart_stop(&t, pid, NULL, NULL, err);
		if (!code) {
			code = try_to_detach(o, &in, &t, err);
			if (code == 1)
				go_on(&t, i); /* stopped again at once */
			else
				restart_go(&t, 0);
			note_stop(o, &t);
		} else if (threads_is_krons(process_tracer(pid))) {
			code = 1;
		}
	}
	if (code && !is_inside(o, pid))
		return 0; /* it ended, or executed one, meanwhile */
	return code == 1 ? -EBUSY : code;
}

/* Detaches from forked children; returns how many had our blocks.  An error keeps no other from its text. */
static unsigned detach_others(struct operation *o, int *code, struct err *err)
{
	DIR *d = opendir("/proc");
	unsigned n = 0;
	struct dirent *e;

	while (d && (e = readdir(d))) {
		pid_t pid = atoi(e->d_name);
		struct err other;
		int ret;

		if (pid <= 0 || pid == o->pid || pid == getpid() || !is_inside(o, pid))
			continue;
		ret = detach_process(o, pid, &other);
		n++;
		if (ret && !*code)
			*err = other;
		*code = *code ? *code : ret;
	}
	if (d)
		closedir(d);
	return n;
}

/* The dynamic linker has brought the runtime: KRON_REPLY_LOADS. */
static bool has_loaded(const struct operation *o, pid_t pid)
{
	bool blocks = false, library = false;
	struct process_maps maps;
	uint64_t number;
	struct err err;

	if (process_maps_read(&maps, pid, &err))
		return false;
	for (size_t i = 0; i < maps.n; i++) {
		blocks |= process_mapping_is_block(&maps.v[i], o->session, &number);
		library |= strstr(maps.v[i].path, "/libkron-rt.so") != NULL;
	}
	process_maps_free(&maps);
	return blocks && library;
}

static int check_loaded(const struct operation *o, struct err *err)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	int code = 0;

	while (d && !code && (e = readdir(d))) {
		const pid_t pid = atoi(e->d_name);

		if (pid > 0 && pid != getpid() && has_loaded(o, pid))
			code = err_set(err, ENOTSUP,
				       "process %d was executed while it had probes of `kron ctl`: "
				       "kron's runtime stays in it, switched off",
				       pid);
	}
	if (d)
		closedir(d);
	return code;
}

/* Is it alive with nothing of ours in it?  Then it has executed another program; what is ending has no memory, either. */
static bool has_executed(const struct operation *o)
{
	return !o->starts && !o->children && !is_inside(o, o->pid) && !process_is_ending(o->pid) &&
	       !is_another(o);
}

int operation_detach(struct operation *o, struct err *err)
{
	const bool executed = has_executed(o);
	int code;

	o->deadline = clock_ms(CLOCK_MONOTONIC) + DETACH_ALL_MS;
	code = detach_process(o, o->pid, err);
	/* A child may have forked while the list was read, and its child stand in the part already read. */
	while (detach_others(o, &code, err) && !code)
		;
	if (!code && o->leaves)
		code = check_loaded(o, err);
	if (!code && executed)
		code = err_set(
			err, ESTALE,
			"process %d executed another program meanwhile, which was not recorded",
			o->pid);
	return code;
}
