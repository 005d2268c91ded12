/* SPDX-License-Identifier: MIT */
/*
 * rt.h - the core of the runtime, and what its parts share.
 *
 * To be read in this order; each file needs only those before it, but for arrows back (^):
 *
 *   include/kron/segment.h  what is shared with the collector: the table says in which order
 *   lane.h                  the claim word, by which a slot is taken
 *   thunk.inc, thunk.S      the probe: from the program's stub to a sample, and back
 *   thread.h                how a thread finds its lane: the seam to runtime/dynamic/, runtime/static/
 *   samples.c               what a sample is made of, in C
 *   chunks.h, chunks.c      chunks change hands: FREE, OWNED, FULL
 *   proc.c, register.c      a slot for the process, a lane for each thread
 *   lane.c                  the slow path: no lane, no room, wait or lose
 *   apply.c                 an answer of the collector's: maps stubs, patches text
 *   start.c                 START: segment, question, answer (^ hooks/env.c)
 *   stacks.S                stacks of ours, where the program's are too small
 *
 * Beside it: collector/ (may we believe it, is it there, one question), bus/ (probes without lanes), faults/ (signals in stubs, unwinding), hooks/ (what
 * runs in front of the program's calls), sys/ (system calls, mappings).
 *
 * The rules of the house: raw system calls only, no memory but one's own, no lock, never exit,
 * never print but under KRON_LOG=rt:debug, never change errno, the signal mask or a
 * descriptor in a way that the program could see.  On any trouble: count it, leave the program
 * alone, let it go on.
 */
#ifndef RUNTIME_RT_H
#define RUNTIME_RT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <kron/segment.h>
#include <kron/wire.h>
#include "board/model/access.h"
#include "runtime/core/lane.h"

#define RT_PROC_SIZE 8192u  /* of struct rt_proc, in pages; the lanes follow */
#define RT_LANES_MAX 65536u /* threads alive at once; more lose their triggers, counted */

/*
 * Where our own mappings should lie, if nothing is there: not where the kernel would put them,
 * right below the libraries, because the collector has chosen gaps there for the trampolines
 * before we map anything.  It is where the sanitizers' layouts have application memory.  What each
 * start needs is close together: a page table of its own costs more than the pages in it.
 */
#define RT_LANES_HINT 0x7e9000100000ull
#define RT_FILE_END RT_LANES_HINT
#define RT_POOL_HINT 0x7e9001000000ull /* with 2 GiB after it */
#define RT_MEMORY_HINT 0x7e9a00000000ull
#define RT_STACKS_HINT 0x7e9c00000000ull
#define RT_PAGES_HINT 0x7e9d00000000ull

/* What a hook sees; it may change the argument registers of the hooked function. */
struct rt_regs {
	uint64_t rdi, rsi, rdx, rcx, r8, r9, r10, r11;
	uint64_t flags, rbp, back, rax;
};

enum rt_proc_state {
	RT_PROC_NONE = 0,
	RT_PROC_CLAIMING = 1,
	RT_PROC_LIVE = 2,
	RT_PROC_REFUSED = 3
};

/*
 * What belongs to one process and must not be inherited by its children.  It lies with the
 * lanes in MADV_WIPEONFORK memory: after fork, or a raw clone without CLONE_VM, the kernel
 * hands the child zero pages, and the child sees that it has no slot.
 */
struct rt_proc {
	uint32_t state; /* enum rt_proc_state; atomic.  LIVE releases pid, uid, slot, first_lane */
	uint32_t uid;
	uint32_t slot;
	int32_t pid;
	uint32_t first_lane; /* index of the lane that is given out first */
	uint32_t lanes_used; /* atomic: lanes [0, used) have been given out at least once */
	uint32_t lanes_dead; /* atomic: of them, known to be free again */
	uint32_t sweep_at;   /* atomic: look for dead threads when this many are used */
	uint32_t epoch;      /* board/model/access.h: zero in a forked child */
	uint32_t asks;       /* atomic: one of the threads asks the collector (hook_dl.c) */
	int32_t busy;        /* atomic: threads between rt_busy_begin() and rt_busy_end() */
	uint32_t grows;      /* atomic: a thread makes a mapping longer (memory.c) */
	/* All threads stood still for kron then, by sys_now_ms(), and some may not have gone on; 0: they have. */
	_Atomic uint64_t stood_ms;
	/* Atomic; a bit a chunk: its pages are in our page table.  Children start without. */
	uint64_t populated[KRON_CHUNKS_MAX / 64];
};

_Static_assert(sizeof(struct rt_proc) <= RT_PROC_SIZE, "whole pages");

/* A mapping that grows where it lies (memory.c): `head` bytes and units of some size. */
struct rt_growing {
	uint64_t start, head;
	uint32_t now;  /* units that may be touched; only grows; atomic */
	uint32_t next; /* what somebody is making of it */
};

/*
 * Inherited by forked children.  _Atomic: any thread may write it at any time.  All else is written at
 * START, by one thread, before `live`, which releases it; who has seen `live` reads it plainly.
 */
struct rt {
	_Atomic bool live;  /* segment mapped, slot claimed; nothing else is valid before */
	_Atomic bool quiet; /* a seccomp filter may kill us: no system calls any more; only set */
	_Atomic bool mute;  /* rdtsc faults in new threads: no samples any more; only set */
	_Atomic bool one_mute; /* in some threads; only set */
	_Atomic bool orphan;   /* the collector is dead: nobody will make room; only set */
	_Atomic bool cut_off;  /* the collector cannot be reached by its name from here; only set */
	bool filtered;         /* there was a seccomp filter: nothing unusual is asked for */
	bool waits;            /* the recording was begun with --when-full wait */
	bool debug;            /* KRON_LOG=rt:debug */
	bool no_children;      /* the exec hook does nothing */
	bool attached;         /* ... but say so: the process ran before */
	bool leaves;           /* it has every program attached to: these are to be left again */
	bool env_hidden;
	bool named;    /* static programs: a board without collector: no slot, no lanes */
	int32_t busy;  /* proc->busy where there is no slot; atomic */
	bool cuttable; /* a SIGBUS in the segment is ours; set before the first of them */
	/* Wait mode: stuck_at(wake_waiters) when a thread waited for long and no room came. */
	_Atomic uint64_t stuck;
	_Atomic uint64_t no_waits_ms; /* until then nobody waits for room: lane.c */
	/* Chunks ready when the collector was waited for and added none. */
	_Atomic uint32_t grown_to;
	struct kron_ctl *ctl;
	uint64_t *states;
	struct kron_proc *procs;
	struct kron_source *sources;
	struct kron_counts *count_table;
	struct board board; /* bus exact: with its local memory */
	uint8_t *pool;
	uint32_t bus;    /* enum kron_bus, as the collector said: others can write to ctl */
	uint32_t chunks; /* of the segment */
	struct rt_growing opened;      /* the pool, in chunks */
	_Atomic uint64_t not_opened;   /* from where to where it could not grow last */
	struct rt_growing mapped;      /* what a fork wipes, in lanes */
	struct rt_proc *proc;          /* wiped on fork */
	struct rt_lane *lanes;         /* likewise */
	uint64_t page_tables;          /* atomic: bus/pages.c, the first of all tables; 0: none */
	_Atomic uint32_t lanes_before; /* lanes that processes before a fork have used */
	_Atomic int32_t collector_pid; /* in our pid namespace; 0 = cannot be seen from here */
	_Atomic uint32_t parent_flags; /* of its slot; at START what kind of program we are in */
	/* Who forked a process that has no slot yet; changes with every slot claimed, by the one thread
	 * that has made rt_proc.state CLAIMING. */
	uint32_t parent_uid;
};

extern struct rt kron_rt __attribute__((visibility("hidden")));

static inline uint32_t rt_when_full(void)
{
	return __atomic_load_n(&kron_rt.ctl->when_full, __ATOMIC_RELAXED);
}

/* This process cannot have a slot. */
static inline bool rt_proc_is_refused(void)
{
	return __atomic_load_n(&kron_rt.proc->state, __ATOMIC_RELAXED) == RT_PROC_REFUSED;
}

/* The way of the process's samples: enum kron_bus. */
static inline uint32_t rt_bus(void)
{
	return kron_rt.named ? (uint32_t)KRON_BUS_EXACT : kron_rt.bus;
}

/* ---- thunk.inc ---- */
/* RT_STACKS of them, NULL = the program's will do; which are in use. */
extern uint8_t *kron_rt_stacks __attribute__((visibility("hidden")));
extern uint64_t kron_rt_stacks_taken __attribute__((visibility("hidden")));

/* ---- thunk.S ---- */
void kron_rt_probe(void) __attribute__((visibility("hidden")));
void kron_rt_hook_thunk(void) __attribute__((visibility("hidden")));
/* The same with a payload of the probe's own (wire.h: KRON_BLOCK_PAYLOAD).  The hardware's bus has
 * 32 bits and no room for one: there kron_rt_probe_hardware serves. */
void kron_rt_payload(void) __attribute__((visibility("hidden")));
/* Where most samples copy their time: the clock is read where (65536 - free slots) & mask is 0. */
extern uint32_t kron_rt_clock_mask __attribute__((visibility("hidden")));
void kron_rt_probe_sparse(void) __attribute__((visibility("hidden")));
/* There, one that reads it. */
void kron_rt_probe_timed(void) __attribute__((visibility("hidden")));
void kron_rt_payload_constant(void) __attribute__((visibility("hidden")));
void kron_rt_payload_exact(void) __attribute__((visibility("hidden")));
/* On the lane bus, where some are Resource samples. */
void kron_rt_payload_counters(void) __attribute__((visibility("hidden")));
/* On the lane bus, with 64 bits of payload (KRON_BLOCK_WIDE). */
void kron_rt_wide(void) __attribute__((visibility("hidden")));
/* On the lane bus, with a value from memory (KRON_BLOCK_MEMORY). */
void kron_rt_memory(void) __attribute__((visibility("hidden")));
/* A store to the board (KRON_BLOCK_ACTION). */
void kron_rt_action_thunk(void) __attribute__((visibility("hidden")));

/* ---- thunk_constant.S, thunk_bus.S ---- */
void kron_rt_probe_constant(void) __attribute__((visibility("hidden")));
void kron_rt_probe_exact(void) __attribute__((visibility("hidden")));
void kron_rt_probe_hardware(void) __attribute__((visibility("hidden")));

/* ---- samples.c ---- */
struct rt_part { /* a record right before its sample (board.h) */
	uint32_t event, payload;
};
struct rt_trigger {
	uint32_t event, payload;
	uint32_t source; /* 0: the lane's */
	bool resource;
	uint8_t nparts;
	const struct rt_part *parts;
};
#define RT_PARTS_MAX \
	(KRON_MEMORY_PARTS > KRON_RESOURCE_SLOTS ? KRON_MEMORY_PARTS : KRON_RESOURCE_SLOTS)
/* What all samples of a thread on a CPU have in common. */
struct rt_stamp {
	uint32_t source, head;
};
/* In one slot, at addr. */
void rt_sample_put(struct rt_stamp stamp, uint64_t addr, uint32_t event, uint32_t payload)
	__attribute__((visibility("hidden")));
uint32_t rt_trigger_slots(const struct rt_trigger *t) __attribute__((visibility("hidden")));
/* claim: the lane's word, which was `after` when the slots were claimed.  False: a handler has taken a
 * sample since, so that the counters would be of a later time; nothing is stored.  NULL: no matter. */
bool rt_trigger_put(struct rt_stamp stamp, uint64_t addr, const struct rt_trigger *t,
		    const uint64_t *claim, uint64_t after) __attribute__((visibility("hidden")));
/* Slots that were claimed in vain: a chunk that is handed over has no empty ones. */
void rt_fill_slots(struct rt_stamp stamp, uint64_t addr, uint32_t slots)
	__attribute__((visibility("hidden")));

/* ---- lane.c ---- */
/* Stands in for the lane of a thread that may take no sample: it never has room. */
extern struct rt_lane kron_rt_mute_lane __attribute__((visibility("hidden")));
/* Whatever the lane's state: the trigger is one sample, or counted as lost. */
void rt_trigger_take(const struct rt_trigger *t) __attribute__((visibility("hidden")));
void kron_rt_slow(uint32_t event, uint32_t payload) __attribute__((visibility("hidden")));
void kron_rt_resource(uint32_t event, uint32_t payload) __attribute__((visibility("hidden")));
/* claim: the lane's word whose slots the thunk has claimed in vain; 0: none. */
void kron_rt_slow_wide(uint32_t event, uint64_t payload, uint64_t claim)
	__attribute__((visibility("hidden")));
/* A record of the runtime's own in the thread's lane, which it has, by thread tid.  It is not a trigger:
 * where there is no room, nothing is lost. */
void rt_lane_record(uint32_t event, uint32_t payload, uint32_t tid)
	__attribute__((visibility("hidden")));
/* take: 0 or 1. */
void kron_rt_slow_constant(uint32_t event, uint32_t payload, uint32_t take)
	__attribute__((visibility("hidden")));
/*
 * Wait mode without lanes: sleep until the collector has made room, or is not going to.  Handlers
 * run meanwhile, and one may fork.
 */
void rt_wait_while(bool (*full)(void)) __attribute__((visibility("hidden")));
/* This thread may not read the time: nothing of it can be a sample. */
bool rt_lane_is_mute(void) __attribute__((visibility("hidden")));
/* rdtsc is about to be forbidden: no samples on this thread any more, losses only. */
void rt_lane_mute(void) __attribute__((visibility("hidden")));

/* ---- register.c ---- */
/* The lane that is registered under this number, or NULL. */
struct rt_lane *rt_lane_of(uint32_t tid) __attribute__((visibility("hidden")));
/*
 * The calling thread's lane, made if there is none; without a chunk.  Signals are blocked.
 * NULL: this thread cannot have one.
 */
struct rt_lane *rt_lane_self(void) __attribute__((visibility("hidden")));
/* The same, and signals are open. */
struct rt_lane *rt_lane_self_open(void) __attribute__((visibility("hidden")));
/* The same without a system call: signals are open, and NULL comes more often. */
struct rt_lane *rt_lane_self_quiet(void) __attribute__((visibility("hidden")));
/*
 * Under a seccomp filter no system call is made: signals stay open whoever is at work, and a
 * handler's trigger that finds us at work is lost.  So are those of threads that we cannot name
 * (thread.h).
 */
static inline struct rt_lane *rt_lane_find(void)
{
	return kron_rt.quiet ? rt_lane_self_quiet() : rt_lane_self_open();
}

/*
 * Around whatever may make a system call: whoever installs a seccomp filter, which may be for all threads,
 * waits until those that have begun before `quiet` was set are through (hook_seccomp.c).  It nests.
 * Sequentially consistent, with the partner's store to `quiet` and load of `busy`: one of the two sees the other.
 */
static inline int32_t *rt_busy(void)
{
	return kron_rt.proc ? &kron_rt.proc->busy : &kron_rt.busy;
}

static inline void rt_busy_begin(void)
{
	__atomic_fetch_add(rt_busy(), 1, __ATOMIC_SEQ_CST);
}

static inline void rt_busy_end(void)
{
	__atomic_fetch_sub(rt_busy(), 1, __ATOMIC_RELEASE);
}

/* ---- proc.c ---- */
/* Count n lost triggers on this process, on nobody when it has no slot. */
void rt_proc_count_lost(uint64_t n) __attribute__((visibility("hidden")));
/* Make sure that this process has a slot.  Signals are blocked.  False: it cannot have one. */
bool rt_proc_ensure(void) __attribute__((visibility("hidden")));
bool rt_proc_claim(enum kron_proc_origin origin, int32_t pid, uint32_t ticket)
	__attribute__((visibility("hidden")));
/* The same as rt_proc_ensure() without a system call; had_lane: the calling thread had one. */
bool rt_proc_ensure_quiet(bool had_lane) __attribute__((visibility("hidden")));
/* The calling thread belongs to this process, not to a vfork child that borrows its memory. */
bool rt_proc_is_ours(void) __attribute__((visibility("hidden")));
/* The process lives on without us: its slot says so. */
void rt_proc_leave(uint64_t tsc) __attribute__((visibility("hidden")));

/* ---- start.c ---- */
struct rt_segment {
	int fd;
	int hardware; /* bus device: what to map in the window; else -1 */
	uint64_t size;
	const uint8_t *session;
	uint32_t ticket; /* kron_reply.ticket */
	uint8_t bus;     /* enum kron_bus */
};
/* May our data be written to?  In a static program hooks may run before START. */
bool rt_has_data(void) __attribute__((visibility("hidden")));
/* For kron_hello.live_entry; 0: there is none. */
uint64_t rt_live_entry(void) __attribute__((visibility("hidden")));
/* KRON_HELLO_*: how we came into the program. */
uint32_t rt_hello_flags(void) __attribute__((visibility("hidden")));
/* START: ask the collector, if the environment names one, and do what it says. */
/* Returns kron_reply.more: what its program is to ask for next. */
uint32_t rt_start(char **envp) __attribute__((visibility("hidden")));
/* Do what the answer to START says; res: what became of it.  The flags of all that was applied. */
struct rt_answer;
uint32_t rt_begin(const struct rt_answer *a, struct kron_result *res)
	__attribute__((visibility("hidden")));
/* Unmaps the segment and the lanes; device: the window, too. */
void rt_unmap_all(bool device) __attribute__((visibility("hidden")));
/* pages.c: a thread's table becomes another's. */
void rt_pages_clear(int64_t *table) __attribute__((visibility("hidden")));
/* pages.c: unmaps the tables of all threads, which stand still. */
void rt_pages_leave(void) __attribute__((visibility("hidden")));
/* Map the segment and claim a slot.  KRON_RESULT_OK or why not, with *detail. */
uint32_t rt_attach(const struct rt_segment *seg, uint64_t *detail)
	__attribute__((visibility("hidden")));

/* ---- runtime/collector/ ---- */
struct ucred;
/* Wakes the collector: chunks run short, or a thread waits for one. */
void rt_collector_wake(void) __attribute__((visibility("hidden")));
/* True: the collector is dead, and nobody will make room any more. */
bool rt_collector_is_gone(void) __attribute__((visibility("hidden")));
/* A connection to the collector and to nobody else, or -errno; *peer: what the kernel says of it. */
int rt_collector_connect(struct ucred *peer) __attribute__((visibility("hidden")));
int rt_collector_send(int sock, const void *msg, size_t len) __attribute__((visibility("hidden")));
/* trust.c: may we tell this peer anything, and do what it says? */
bool rt_peer_is_trusted(int sock, const struct ucred *peer) __attribute__((visibility("hidden")));
/* trust.c: is it certain that the collector has its name still? */
bool rt_collector_lives(void) __attribute__((visibility("hidden")));

/* ---- ask.c there: one question to the collector ---- */
#define RT_ANSWER_FDS 3
struct rt_answer {
	int sock;
	int fd[RT_ANSWER_FDS]; /* in the order of wire.h; -1 = none */
	struct kron_reply reply;
	/* A change: where goroutines go on.  No window may have one inside: Go finds nothing in a stub. */
	const uint64_t *goroutines;
	uint32_t ngoroutines;
};
struct rt_question { /* as in struct kron_hello */
	uint32_t kind, again, more;
	uint64_t range, range_len;
};
/* 0 or -errno; -ECONNREFUSED: the collector is not there, and will not be.  On success the caller
 * ends with rt_ask_end(). */
int rt_ask(struct rt_answer *a, const struct rt_question *q) __attribute__((visibility("hidden")));
/* The same for a question that the collector asked for us: the answer comes through this socket. */
int rt_ask_take(struct rt_answer *a, int sock) __attribute__((visibility("hidden")));
void rt_tell(const struct rt_answer *a, const struct kron_result *result)
	__attribute__((visibility("hidden")));
/* result may be NULL: nothing to tell. */
void rt_ask_end(struct rt_answer *a, const struct kron_result *result)
	__attribute__((visibility("hidden")));

/* ---- apply.c ---- */
/* Apply the command file that came as fd, and tell the collector which groups could not be.  Fills
 * res; returns the flags of all commands that were applied. */
uint32_t rt_apply(const struct rt_answer *a, int fd, struct kron_result *res)
	__attribute__((visibility("hidden")));

/* ---- env.c ---- */
struct rt_env {
	char name[108]; /* abstract socket name */
	uint32_t name_len;
	uint64_t collector;    /* who must listen there (wire.h); 0: nobody can tell */
	int32_t collector_pid; /* in its own pid namespace */
	uint8_t session[16];
	const char *entry; /* our copy of "KRON_RT=..." */
	const char *path;  /* in it: path of libkron-rt.so */
};
extern struct rt_env kron_rt_env __attribute__((visibility("hidden")));
/* False: the environment does not ask us to do anything. */
bool rt_env_read(char **envp) __attribute__((visibility("hidden")));
void rt_env_hide(char **envp) __attribute__((visibility("hidden")));

/* ---- hooks/ ---- */
/* Carries out KRON_CMD_COPIES; always 0. */
long rt_copies_watch(uint64_t addr, uint64_t len) __attribute__((visibility("hidden")));
/* Unlocks a new mapping of ours, in case the program has called mlockall(MCL_FUTURE). */
void rt_unlock(uint64_t addr, uint64_t size) __attribute__((visibility("hidden")));

/* ---- log.c: only under KRON_LOG=rt:debug ---- */
void rt_log(const char *what, uint64_t value) __attribute__((visibility("hidden")));

#endif
