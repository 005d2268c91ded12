/* SPDX-License-Identifier: MIT */
/*
 * tasks.c - see tasks.h.
 *
 * Is a process dead, and since when?  A newer slot has the same pid: it has executed another
 * program, at that slot's time.  Or its pidfd says so (ends.h), which is looked at as soon as it
 * does, and before any process that says HELLO goes on: so who comes after it begins after its end.
 *
 * The kernel's own records of exits, where they are to be had, are better still, and tell also of
 * children that had ended before we met them.
 *
 * Who has no pidfd is asked about now and then: kill(pid, 0) says ESRCH; or, asked thoroughly,
 * it is a zombie without threads, or a process that started at another time has its pid.  Of
 * processes in another pid namespace we know the pid if they said HELLO; forked ones are looked
 * for in /proc (pidns.h).  Where that may hide them they cannot be asked about, and keep their
 * slots until the end of the recording.
 */
#define _GNU_SOURCE
#include "collect/tasks_impl.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/counts.h"
#include "base/vec.h"
#include "collect/kernel/pidns.h"
#include "collect/kernel/process_maps.h"

#define PID_HASH 65536u         /* slots of uid_of_pid: collisions only delay a reap */
#define STEPS 16u               /* of the drain, until it gives way */
#define UID_HASH_BITS 14u       /* as many chains as slots */
#define LINEAGE_UIDS (1u << 22) /* uids in a chunk's state word are no longer */
#define PROC_SEARCH_SLACK 64u
#define LAST_ENDS 4096u

/* One piece of memory, which comes from the kernel: malloc() would clear three by hand, at each start. */
struct task_tables {
	/* newest uid by pid: a hash */
	uint32_t uid_of_pid[PID_HASH];
	/* slot + 1 by uid: heads of chains through task.next */
	uint32_t with_uid[1u << UID_HASH_BITS];
	/* a hash by uid: older ones give way */
	struct task_end last_ends[LAST_ENDS];
};

/* ---- the lock ---- */

void tasks_lock_soon(struct tasks *t)
{
	__atomic_add_fetch(&t->waiting, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&t->lock);
	__atomic_sub_fetch(&t->waiting, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&t->turns, 1, __ATOMIC_RELAXED);
}

/*
 * A traced process can fill the table, and each slot costs us system calls.  So the drain lets one of the
 * others in every few slots; more would hold up the drain.  Only it changes slots, so it finds them as it
 * left them.
 */
static void give_way(struct tasks *t)
{
	const struct timespec moment = {.tv_nsec = 20000};
	uint32_t turns;

	if (++t->steps % STEPS || !__atomic_load_n(&t->waiting, __ATOMIC_RELAXED))
		return;
	turns = __atomic_load_n(&t->turns, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&t->lock);
	for (int i = 0; i < 50 && turns == __atomic_load_n(&t->turns, __ATOMIC_RELAXED); i++)
		nanosleep(&moment, NULL);
	pthread_mutex_lock(&t->lock);
}

/* ---- slots ---- */

static uint32_t slot_state(const struct segment *seg, uint32_t i, uint32_t *uid)
{
	uint64_t s = __atomic_load_n(&seg->procs[i].state, __ATOMIC_ACQUIRE);

	*uid = (uint32_t)(s >> 8);
	return (uint32_t)(s & 0xff);
}

/* Once: traced processes write there. */
static struct kron_proc read_slot(const struct segment *seg, uint32_t i)
{
	const volatile struct kron_proc *p = &seg->procs[i];

	return (struct kron_proc){
		.pid = p->pid,
		.parent_uid = p->parent_uid,
		.start_tsc = p->start_tsc,
		.origin = p->origin,
		.flags = p->flags,
		.ticket = p->ticket,
	};
}

void tasks_init(struct tasks *t, struct segment *seg, struct journal *j)
{
	memset(t, 0, sizeof(*t));
	t->seg = seg;
	t->journal = j;
	pthread_mutex_init(&t->lock, NULL);
	t->slot = xcalloc(KRON_PROCS_MAX, sizeof(*t->slot));
	t->tables = xcalloc(1, sizeof(*t->tables));
	if (getrandom(&t->hash_key, sizeof(t->hash_key), 0) != sizeof(t->hash_key))
		t->hash_key = clock_tsc();
	t->hash_key |= 1;
	t->own_pidns = pidns_of(getpid());
	ends_init(&t->ends);
}

void tasks_free(struct tasks *t)
{
	while (t->notes) {
		struct task_note *n = t->notes;

		t->notes = n->next;
		tasks_free_note(t, n);
	}
	for (uint32_t i = 0; i < t->slots_used; i++) {
		xfree(t->slot[i].exe);
		xfree(t->slot[i].cmdline);
	}
	xfree(t->slot);
	xfree(t->tables);
	xfree(t->threads);
	vec_free(&t->thread_ends);
	xfree(t->fork_parent);
	ends_free(&t->ends);
	t->slot = NULL;
	t->threads = NULL;
}

void tasks_expect_exits(struct tasks *t)
{
	ends_expect_exits(&t->ends);
}

void tasks_note_exit(struct tasks *t, pid_t pid, pid_t tid, uint64_t ticks)
{
	pthread_mutex_lock(&t->lock);
	ends_note_exit(&t->ends, pid, tid, ticks);
	pthread_mutex_unlock(&t->lock);
}

void tasks_note_ends(struct tasks *t)
{
	tasks_lock_soon(t);
	ends_look(&t->ends);
	pthread_mutex_unlock(&t->lock);
}

/* ---- new processes ---- */

static uint32_t *chain_of(const struct tasks *t, uint32_t uid)
{
	return &t->tables->with_uid[uid * t->hash_key >> (64 - UID_HASH_BITS)];
}

static void enter_uid(struct tasks *t, struct task *k, uint32_t uid)
{
	uint32_t *head = chain_of(t, uid);

	k->uid = uid;
	k->next = *head;
	*head = (uint32_t)(k - t->slot) + 1;
	if (uid > t->highest_uid && uid < LINEAGE_UIDS)
		t->highest_uid = uid;
}

static void leave_uid(struct tasks *t, const struct task *k)
{
	uint32_t *p = chain_of(t, k->uid);

	while (*p && &t->slot[*p - 1] != k)
		p = &t->slot[*p - 1].next;
	if (*p)
		*p = k->next;
}

static struct task *task_of_uid(const struct tasks *t, uint32_t uid)
{
	for (uint32_t i = uid ? *chain_of(t, uid) : 0; i; i = t->slot[i - 1].next)
		if (t->slot[i - 1].uid == uid)
			return &t->slot[i - 1];
	return NULL;
}

/* In which pid namespace a process is whose pid is not ours; `parent` may be NULL. */
static uint64_t foreign_pidns(const struct task *parent, const struct kron_proc *p)
{
	if (!parent)
		return 0;
	if (p->origin == KRON_PROC_FORK && p->pid == 1) /* the first of a new one */
		return parent->here ? pidns_for_children(parent->here) : 0;
	return parent->pidns;
}

static void take_comm(struct task *k, const char *comm)
{
	snprintf(k->comm, sizeof(k->comm), "%s", comm ? comm : "");
}

static void name_process(struct tasks *t, struct task *k, const struct kron_proc *p,
			 struct task_note *note)
{
	const struct task *parent = task_of_uid(t, p->parent_uid);
	struct process_stat st;

	k->is_static = p->flags & KRON_PROC_STATIC;
	k->foreign =
		t->all_ended || (p->flags & KRON_PROC_FOREIGN_PIDNS) || (parent && parent->foreign);
	k->here = k->foreign || k->pid < 0 ? 0 : k->pid;
	if (k->foreign)
		k->pidns = foreign_pidns(parent, p);
	if (note) {
		k->exe = note->exe;
		k->cmdline = note->cmdline;
		k->foreign = note->pid != note->its_pid ||
			     (note->pidns && t->own_pidns && note->pidns != t->own_pidns);
		k->pidns = note->pidns;
		k->here = note->pid; /* the socket's credentials know it */
		k->end = note->end;
		note->end = 0;
		note->exe = note->cmdline = NULL;
		take_comm(k, note->comm);
	} else if (!k->foreign && p->origin != KRON_PROC_FORK) {
		/* A forked child is what its parent was; what /proc says may be its next program. */
		k->exe = process_exe(k->pid);
		if (k->exe)
			k->cmdline = process_cmdline(k->pid);
	}
	if (!k->exe && parent && parent->exe) {
		k->exe = xstrdup(parent->exe);
		k->cmdline = xstrdup(parent->cmdline ? parent->cmdline : "");
		take_comm(k, parent->comm);
	}
	if (k->here && !k->end)
		k->end = ends_watch(&t->ends, k->here);
	if (k->here && process_read_stat(k->here, 0, &st))
		k->starttime = st.starttime;
}

static bool has_record(const struct tasks *t, uint32_t uid)
{
	for (size_t i = 0; i < t->nknown && t->known[i] <= uid; i++)
		if (t->known[i] == uid)
			return true;
	return false;
}

static void write_process(struct tasks *t, const struct task *k, const struct kron_proc *p)
{
	const struct trace_proc_line line = {.uid = k->uid,
					     .pid = k->pid,
					     .parent_uid = p->parent_uid,
					     .by_fork = p->origin == KRON_PROC_FORK,
					     .start_tsc = board_clock_ticks(t->clock, p->start_tsc),
					     .note = k->foreign ? "pidns" : "",
					     .exe = k->exe,
					     .cmdline = k->cmdline};

	journal_put(t->journal, trace_writer_proc, &line);
}

/* Who has samples is in the table.  Of others that are one process's the table has room for so many. */
static void list_process(struct tasks *t, struct task *k, const struct kron_proc *p)
{
	if (has_record(t, k->uid))
		return;
	k->unnamed = !journal_has_room(t->journal, k->here ? k->here : k->pid);
	if (!k->unnamed)
		write_process(t, k, p);
}

void tasks_list_after_all(struct tasks *t, struct task *k)
{
	const struct kron_proc p = read_slot(t->seg, (uint32_t)(k - t->slot));

	k->unnamed = false;
	journal_make_room(t->journal);
	write_process(t, k, &p);
}

static void forget_task(struct tasks *t, struct task *k)
{
	ends_forget(&t->ends, k->end);
	xfree(k->exe);
	xfree(k->cmdline);
	if (k->uid)
		leave_uid(t, k);
	memset(k, 0, sizeof(*k));
}

static void note_parent(struct tasks *t, uint32_t uid, const struct kron_proc *p)
{
	uint32_t n = t->fork_parents;

	if (p->origin != KRON_PROC_FORK || p->parent_uid >= uid || uid >= LINEAGE_UIDS)
		return;
	if (uid >= n) {
		n = uid + uid / 2 + 64;
		t->fork_parent = xrealloc(t->fork_parent, n * sizeof(*t->fork_parent));
		memset(t->fork_parent + t->fork_parents, 0,
		       (n - t->fork_parents) * sizeof(*t->fork_parent));
		t->fork_parents = n;
	}
	t->fork_parent[uid] = p->parent_uid;
}

void tasks_lineage(struct tasks *t, uint32_t uid, uint32_t slot, uint32_t *out, uint32_t max)
{
	uint32_t n = 0, real;
	struct kron_proc p;

	tasks_lock_soon(t);
	if (slot < segment_procs_ready(t->seg) &&
	    slot_state(t->seg, slot, &real) == KRON_PROC_LIVE && real == uid) {
		p = read_slot(t->seg, slot);
		note_parent(t, uid, &p);
	}
	while (uid && n < max) { /* parents are older: it ends */
		out[n++] = uid;
		uid = uid < t->fork_parents ? t->fork_parent[uid] : 0;
	}
	out[n] = 0;
	pthread_mutex_unlock(&t->lock);
}

static void note_newest(struct tasks *t, const struct task *k)
{
	uint32_t *newest = &t->tables->uid_of_pid[(uint32_t)k->here % PID_HASH];

	if (k->here && *newest < k->uid)
		*newest = k->uid;
}

static void meet_process(struct tasks *t, uint32_t i, uint32_t uid)
{
	const struct kron_proc p = read_slot(t->seg, i);
	struct task *k = &t->slot[i];
	struct task_note *note = NULL;

	forget_task(t, k); /* nobody frees slots but us; a slot that changed hands is hostile */
	t->met++;
	enter_uid(t, k, uid);
	k->pid = p.pid;
	note_parent(t, uid, &p);
	if (p.origin == KRON_PROC_EXEC) {
		k->ticket = p.ticket;
		note = tasks_take_note(t, k->pid, p.ticket);
	}
	name_process(t, k, &p, note);
	if (note)
		tasks_free_note(t, note);
	if (k->foreign) /* the runtime hands it on to the children that it forks */
		__atomic_or_fetch(&t->seg->procs[i].flags, KRON_PROC_FOREIGN_PIDNS,
				  __ATOMIC_RELAXED);
	note_newest(t, k);
	list_process(t, k, &p);
}

struct new_slot {
	uint32_t uid, slot;
};

static int by_uid(const void *a, const void *b)
{
	const struct new_slot *x = a, *y = b;

	return x->uid < y->uid ? -1 : x->uid > y->uid;
}

/*
 * Search the table for slots that came into use; only while there are uids without one: a
 * process takes its uid first, then a slot, and may be stopped or killed in between.
 * Parents, whose uid is lower, are met before their children.
 */
static void find_new(struct tasks *t)
{
	VEC(struct new_slot) found = {0};
	uint32_t next = __atomic_load_n(&t->seg->ctl->next_uid, __ATOMIC_ACQUIRE);
	uint32_t limit = segment_procs_ready(t->seg), used = 0;

	if (t->met == next - 1)
		return;
	/* Slots are claimed from the lowest up: after a stretch of unused ones is nothing, but
	 * pages that would have to be made to be read. */
	for (uint32_t i = 0; i < limit && i < used + PROC_SEARCH_SLACK + t->slots_used; i++) {
		uint32_t uid, state = slot_state(t->seg, i, &uid);

		if (state == KRON_PROC_FREE)
			continue;
		used = i + 1;
		if (state == KRON_PROC_LIVE && t->slot[i].uid != uid)
			*vec_push(&found) = (struct new_slot){uid, i};
	}
	if (used > t->slots_used)
		t->slots_used = used;
	if (found.n)
		qsort(found.v, found.n, sizeof(*found.v), by_uid);
	vec_for(&found, f) {
		give_way(t);
		meet_process(t, f->slot, f->uid);
	}
	vec_free(&found);
}

/* ---- who is dead ---- */

bool tasks_is_pid_gone(pid_t pid)
{
	return kill(pid, 0) && errno == ESRCH;
}

/* A zombie whose threads are all gone runs nothing any more; its leader alone may have ended. */
static bool is_finished(const struct process_stat *st)
{
	return (st->state == 'Z' || st->state == 'X') && st->threads <= 1;
}

/* The program that the process executed next, or the next process with its pid; NULL: none. */
static const struct kron_proc *successor_of(const struct tasks *t, const struct task *k)
{
	/* The hash may have taken another pid's uid: look for the real thing. */
	if (t->tables->uid_of_pid[(uint32_t)k->here % PID_HASH] <= k->uid)
		return NULL;
	for (uint32_t i = 0; i < t->slots_used; i++)
		if (t->slot[i].here == k->here && t->slot[i].uid > k->uid)
			return &t->seg->procs[i];
	return NULL;
}

/* Without anybody to ask: a later slot has the same number.  0: none. */
static uint64_t executed_another(const struct tasks *t, const struct task *k)
{
	uint64_t first = 0;

	for (uint32_t i = 0; i < t->slots_used; i++) {
		const uint64_t start = t->seg->procs[i].start_tsc;

		if (t->slot[i].uid > k->uid && t->slot[i].pid == k->pid &&
		    t->seg->procs[i].origin == KRON_PROC_EXEC && start < t->all_ended &&
		    (!first || start < first))
			first = start;
	}
	return first;
}

static bool is_task_dead(const struct tasks *t, struct task *k, bool thorough)
{
	const struct kron_proc *next;
	struct process_stat st;
	uint64_t tsc;

	/* Acquire: what it has stored; partner: rt_proc_leave(). */
	tsc = __atomic_load_n(&t->seg->procs[k - t->slot].left_tsc, __ATOMIC_ACQUIRE);
	if (tsc) {
		k->ended = board_clock_ticks(t->clock, tsc);
		return true;
	}
	if (t->all_ended) {
		k->ended = executed_another(t, k);
		k->replaced = k->ended != 0;
		k->ended = k->ended ? k->ended : t->all_ended;
		return true;
	}
	if (!k->here)
		return !k->foreign; /* no process has pid 0 */
	next = successor_of(t, k);
	tsc = next ? next->start_tsc : k->end ? ends_when(&t->ends, k->end) : 0;
	k->replaced = next != NULL;
	if (tsc)
		k->ended = board_clock_ticks(t->clock, tsc);
	if (next || k->end)
		return tsc != 0;
	if (tasks_is_pid_gone(k->here))
		return true;
	if (!thorough || !process_read_stat(k->here, 0, &st))
		return false;
	return is_finished(&st) || (k->starttime && st.starttime != k->starttime);
}

static bool is_unplaced(const struct task *k)
{
	return k->uid && !k->dead && k->foreign && !k->here && k->pidns;
}

/* Forked processes of other pid namespaces: which of ours are they, or are they gone? */
static void place_foreign(struct tasks *t)
{
	struct pidns_list list;
	struct process_stat st;
	bool any = false;

	for (uint32_t i = 0; i < t->slots_used && !any; i++)
		any = is_unplaced(&t->slot[i]);
	if (!any)
		return;
	pidns_list_read(&list);
	for (uint32_t i = 0; i < t->slots_used; i++) {
		struct task *k = &t->slot[i];
		enum pidns_answer a;

		if (!is_unplaced(k))
			continue;
		a = pidns_find(&list, k->pidns, k->pid, &k->here);
		k->dead = a == PIDNS_GONE;
		if (a == PIDNS_FOUND && process_read_stat(k->here, 0, &st))
			k->starttime = st.starttime;
		note_newest(t, k);
	}
	pidns_list_free(&list);
}

static void look_at_task(struct tasks *t, struct task *k, bool thorough)
{
	if (k->uid && !k->dead)
		k->fresh = k->dead = is_task_dead(t, k, thorough);
	if (k->dead && !k->ended) /* nobody told us: now, at the latest */
		k->ended = board_clock_ticks(t->clock, clock_tsc());
}

void tasks_look(struct tasks *t, bool deaths, bool thorough)
{
	pthread_mutex_lock(&t->lock);
	ends_look(&t->ends);
	find_new(t);
	if (deaths && thorough)
		place_foreign(t);
	for (uint32_t i = 0; i < t->slots_used; i++) {
		struct task *k = &t->slot[i];

		k->left = false;
		if (!deaths)
			continue;
		k->fresh = false;
		look_at_task(t, k, thorough);
		give_way(t);
	}
	pthread_mutex_unlock(&t->lock);
}

static uint32_t find_uid(struct tasks *t, pid_t pid, bool also_dead)
{
	uint32_t limit = segment_procs_ready(t->seg), uid, found = 0;

	tasks_lock_soon(t);
	if (limit > t->slots_used + PROC_SEARCH_SLACK)
		limit = t->slots_used + PROC_SEARCH_SLACK;
	for (uint32_t i = 0; i < limit; i++) {
		const struct task *k = &t->slot[i];

		if (k->uid && (k->here != pid || (k->dead && !also_dead)))
			continue;
		/* else the drain has not met it yet */
		if (!k->uid &&
		    (slot_state(t->seg, i, &uid) != KRON_PROC_LIVE || t->seg->procs[i].pid != pid))
			continue;
		if (k->uid)
			uid = k->uid;
		if (uid > found)
			found = uid;
	}
	pthread_mutex_unlock(&t->lock);
	return found;
}

uint32_t tasks_process_uid(struct tasks *t, pid_t pid)
{
	return find_uid(t, pid, false);
}

uint32_t tasks_last_uid(struct tasks *t, pid_t pid)
{
	return find_uid(t, pid, true);
}

uint32_t tasks_new_uid(struct tasks *t)
{
	uint32_t uid;

	pthread_mutex_lock(&t->lock);
	uid = ++t->highest_uid;
	pthread_mutex_unlock(&t->lock);
	return uid;
}

bool tasks_has_process(struct tasks *t, pid_t pid)
{
	return tasks_process_uid(t, pid) != 0;
}

size_t tasks_living(struct tasks *t, pid_t *out, size_t max)
{
	size_t n = 0;

	pthread_mutex_lock(&t->lock);
	for (uint32_t i = 0; i < t->slots_used && n < max; i++)
		if (t->slot[i].uid && !t->slot[i].dead && !t->slot[i].foreign && t->slot[i].here)
			out[n++] = t->slot[i].here;
	pthread_mutex_unlock(&t->lock);
	return n;
}

/* The first that was met by this name: others who take it come too late. */
static const struct task *first_of_uid(const struct tasks *t, uint32_t uid)
{
	const struct task *first = NULL;

	for (uint32_t i = uid ? *chain_of(t, uid) : 0; i; i = t->slot[i - 1].next)
		if (t->slot[i - 1].uid == uid)
			first = &t->slot[i - 1];
	return first;
}

bool tasks_is_process(struct tasks *t, uint32_t uid, uint32_t slot, pid_t pid, pid_t its_pid)
{
	const struct task_end *e = &t->tables->last_ends[uid % LAST_ENDS];
	const struct task *k;
	uint32_t real;
	bool is = false;

	tasks_lock_soon(t);
	k = first_of_uid(t, uid);
	if (k)
		is = k->here ? k->here == pid : k->pid == its_pid;
	else if (uid && e->uid == uid)
		is = e->here == pid;
	else if (uid && slot < segment_procs_ready(t->seg)) /* the drain has not met it yet */
		is = slot_state(t->seg, slot, &real) == KRON_PROC_LIVE && real == uid &&
		     t->seg->procs[slot].pid == its_pid;
	pthread_mutex_unlock(&t->lock);
	return is;
}

static bool is_thread_gone(const struct task *k, pid_t tid, bool thorough)
{
	struct process_stat st;

	if (syscall(SYS_tgkill, k->pid, tid, 0) && errno == ESRCH)
		return true;
	return thorough && tid != k->pid && process_read_stat(k->pid, tid, &st) &&
	       (st.state == 'Z' || st.state == 'X');
}

void tasks_of_chunk(struct tasks *t, uint64_t word, bool thorough, struct chunk_owner *out)
{
	uint32_t slot = kron_chunk_word_slot(word);
	uint32_t uid = kron_chunk_word_uid(word);
	struct task *k;
	uint32_t real;

	memset(out, 0, sizeof(*out));
	out->tid = (pid_t)kron_chunk_word_tid(word);
	out->uid = uid;
	if (slot >= KRON_PROCS_MAX) { /* the table was full when it started */
		out->dead = t->all_ended || tasks_is_pid_gone(out->tid);
		return;
	}
	k = &t->slot[slot];
	if (k->uid && (k->uid & 0x3fffffu) == uid) {
		out->task = k;
		out->uid = k->uid;
		out->dead = k->dead || (!k->foreign && is_thread_gone(k, out->tid, thorough));
		return;
	}
	/* Not met yet (its P record comes with the next look), or a slot that was freed. */
	if (slot >= segment_procs_ready(t->seg)) {
		out->dead = true;
		return;
	}
	slot_state(t->seg, slot, &real);
	out->dead = (real & 0x3fffffu) != uid;
	if (!out->dead)
		out->uid = real;
}

/* ---- the end of a process ---- */

static uint64_t end_of(const struct tasks *t, const struct task *k, const struct kron_proc *p)
{
	uint64_t since = board_clock_ticks(t->clock, p->start_tsc);
	uint64_t exact = k->replaced ? 0 : ends_exit_of(&t->ends, k->here, since);

	return exact ? exact : k->ended;
}

uint64_t tasks_when_ended(struct tasks *t, uint32_t uid)
{
	const struct task_end *e = &t->tables->last_ends[uid % LAST_ENDS];
	uint64_t ticks = 0;
	struct task *k;

	pthread_mutex_lock(&t->lock);
	ends_look(&t->ends);
	find_new(t);
	k = task_of_uid(t, uid);
	if (k) {
		look_at_task(t, k, true);
		ticks = k->ended;
	} else if (uid && e->uid == uid) {
		ticks = e->ticks;
	}
	pthread_mutex_unlock(&t->lock);
	return ticks;
}

static void note_end(struct tasks *t, const struct task *k, uint64_t ended, uint64_t lost)
{
	const struct trace_proc_end_line line = {
		.uid = k->uid, .end_tsc = ended, .lost = lost, .cut_off = k->cut_off};

	t->tables->last_ends[k->uid % LAST_ENDS] = (struct task_end){k->uid, k->here, ended};
	if (!k->unnamed)
		journal_put(t->journal, trace_writer_proc_end, &line);
}

static void release_slot(struct tasks *t, uint32_t i)
{
	struct kron_proc *p = &t->seg->procs[i];
	struct task *k = &t->slot[i];
	uint64_t want = (uint64_t)k->uid << 8 | KRON_PROC_LIVE;
	uint64_t lost = __atomic_load_n(&p->lost, __ATOMIC_ACQUIRE);

	note_end(t, k, end_of(t, k, p), lost);
	t->ended.processes++;
	t->ended.unrecorded += !has_record(t, k->uid);
	t->ended.samples += k->samples;
	t->ended.samples_static += k->is_static ? k->samples : 0;
	t->ended.cut_off += k->cut_off;
	t->ended.lost += lost;
	counts_release(t->seg, k->uid);
	calls_release(t->seg, k->uid);
	forget_task(t, k);
	/* Release: a claimer must find what was read here read. */
	__atomic_compare_exchange_n(&p->state, &want, (uint64_t)KRON_PROC_FREE, false,
				    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* Its end may be among the kernel's records that are read after this look. */
static bool has_time(const struct tasks *t, const struct task *k)
{
	return k->fresh && t->ends.exits;
}

void tasks_release(struct tasks *t, bool last)
{
	pthread_mutex_lock(&t->lock);
	tasks_write_thread_ends(t, last);
	for (uint32_t i = 0; i < t->slots_used; i++) {
		const struct task *k = &t->slot[i];

		if (k->uid && k->dead && !k->left && (last || !has_time(t, k)))
			release_slot(t, i);
		give_way(t);
	}
	pthread_mutex_unlock(&t->lock);
}

void tasks_totals(struct tasks *t, struct task_totals *out)
{
	pthread_mutex_lock(&t->lock);
	*out = t->ended;
	for (uint32_t i = 0; i < t->slots_used; i++) {
		const struct task *k = &t->slot[i];

		if (!k->uid)
			continue;
		out->processes++;
		out->unrecorded += !has_record(t, k->uid);
		out->living += k->here && !k->dead;
		out->samples += k->samples;
		out->samples_static += k->is_static ? k->samples : 0;
		out->cut_off += k->cut_off;
		out->lost += __atomic_load_n(&t->seg->procs[i].lost, __ATOMIC_ACQUIRE);
	}
	out->lost += __atomic_load_n(&t->seg->ctl->lost_unowned, __ATOMIC_ACQUIRE);
	out->threads = t->nthreads;
	pthread_mutex_unlock(&t->lock);
}
