/* SPDX-License-Identifier: MIT */
/*
 * rt.h - the parts of libkron-rt.so and what they share.
 *
 *                     ld.so                      the program
 *                       | constructor                | patched sites -> trampolines
 *                       v                            v
 *   env.c <-- init.c ---+--> apply.c             thunk.S --(no room)--> lane.c --> register.c, proc.c
 *               |  ^                                |                     +--> chunks.c --> memory.c
 *               |  |                                |   (board)--> source.c --> board/model/
 *               v  |                                +--(stores)-> action.c
 *               |  |                                +--(hooks)--> hook_exec.c, hook_child.c,
 *               |  |                                              hook_dl.c, hook_map.c,
 *             wire.c  <---------------------------------------    hook_seccomp.c
 *               |
 *            trust.c
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
 * before we map anything.  It is where the sanitizers' layouts have application memory.
 */
#define RT_POOL_HINT 0x7ea000000000ull
#define RT_LANES_HINT 0x7e9000000000ull
#define RT_FILE_HINT 0x7e9800000000ull
#define RT_MEMORY_HINT 0x7e9a00000000ull
#define RT_STACKS_HINT 0x7e9c00000000ull

_Static_assert(KRON_HOOK_SYSTEM_CALL == RT_HOOK_SYSTEM_CALL, "thunk_hook.S");

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
	uint32_t state; /* enum rt_proc_state; atomic */
	uint32_t uid;
	uint32_t slot;
	int32_t pid;
	uint32_t first_lane; /* index of the lane that is given out first */
	uint32_t lanes_used; /* atomic: lanes [0, used) have been given out at least once */
	uint32_t lanes_dead; /* atomic: of them, known to be free again */
	uint32_t sweep_at;   /* atomic: look for dead threads when this many are used */
	uint32_t epoch;      /* board/model/access.h: zero in a forked child */
	uint32_t asks;       /* atomic: one of the threads asks the collector (hook_dl.c) */
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

/* Set once at START and inherited by forked children, but for the marked fields. */
struct rt {
	bool live;        /* segment mapped, slot claimed; nothing else is valid before */
	bool quiet;       /* a seccomp filter may kill us: no system calls any more; only set */
	bool filtered;    /* there was a seccomp filter at START: nothing unusual is asked for */
	bool mute;        /* rdtsc faults in new threads: no samples any more; only set */
	bool one_mute;    /* in some threads; only set */
	bool orphan;      /* the collector is dead: nobody will make room; only set */
	bool cut_off;     /* the collector cannot be reached by its name from here; only set */
	bool waits;       /* the recording was begun with --when-full wait */
	bool stuck;       /* wait mode: no room came for long, while wake_waiters was stuck_at */
	bool debug;       /* KRON_LOG=rt:debug */
	bool no_children; /* the exec hook does nothing */
	bool env_hidden;
	uint32_t stuck_at;
	uint32_t grown_to; /* chunks ready when the collector was waited for and added none */
	struct kron_ctl *ctl;
	uint64_t *states;
	struct kron_proc *procs;
	struct kron_source *sources;
	struct kron_counts *count_table;
	struct board board; /* bus exact: with its local memory */
	uint8_t *pool;
	struct rt_growing opened; /* the pool, in chunks */
	uint64_t not_opened;      /* from where to where it could not grow last; atomic */
	uint32_t chunks;          /* of the segment */
	struct rt_growing mapped; /* what a fork wipes, in lanes */
	struct rt_proc *proc;     /* wiped on fork */
	struct rt_lane *lanes;    /* likewise */
	bool named;               /* RT_STATIC: on a board without a collector; no slot, no lanes */
	uint32_t lanes_before;    /* lanes that processes before a fork have used; atomic */
	int32_t collector_pid;    /* in our pid namespace; 0 = cannot be seen from here */
	uint32_t parent_uid;      /* who forked a process that has no slot yet; changes with every
				 * slot claimed */
	uint32_t parent_flags;    /* its slot's flags */
	uint32_t bus;         /* enum kron_bus, as the collector said: others can write to ctl */
	bool cuttable;        /* a SIGBUS in the segment is ours; set before the first of them */
	uint64_t no_waits_ms; /* until then nobody waits for room: see patience.c; atomic */
};

extern struct rt kron_rt __attribute__((visibility("hidden")));

/*
 * RT_STATIC: the runtime as a part of a static program from `kron patch` (static.h), where no
 * thread data is ours.  There it is the number of the thread that finds its lane.
 */
#ifdef RT_STATIC
#define RT_THREAD
#define RT_LOCKED "lock "
#define RT_PROC_FLAGS KRON_PROC_STATIC
/* The calling thread's lane, NULL = none yet. */
struct rt_lane *rt_thread_lane(void) __attribute__((visibility("hidden")));
void rt_thread_set_lane(struct rt_lane *lane) __attribute__((visibility("hidden")));
/* From now on no probe finds its lane by itself. */
void rt_thread_forget(void) __attribute__((visibility("hidden")));
#else
#define RT_THREAD __thread __attribute__((tls_model("initial-exec")))
#define RT_LOCKED
#define RT_PROC_FLAGS 0u
extern __thread struct rt_lane *kron_rt_lane
	__attribute__((visibility("hidden"), tls_model("initial-exec")));
/* Where lanes lie: what else a thread finds in its data is not a lane. */
extern uint64_t kron_rt_lanes_start __attribute__((visibility("hidden")));
extern uint64_t kron_rt_lanes_size __attribute__((visibility("hidden")));
/* Thread data may be another's, or nobody's (strangers.c).  Only set. */
extern uint32_t kron_rt_strange __attribute__((visibility("hidden")));

static inline bool rt_is_strange(void)
{
	return __atomic_load_n(&kron_rt_strange, __ATOMIC_RELAXED) != 0;
}

struct rt_lane *rt_strange_lane(void) __attribute__((visibility("hidden")));

static inline struct rt_lane *rt_thread_lane(void)
{
	return rt_is_strange() ? rt_strange_lane() : kron_rt_lane;
}

static inline void rt_thread_set_lane(struct rt_lane *lane)
{
	if (!rt_is_strange())
		__atomic_store_n(&kron_rt_lane, lane, __ATOMIC_RELEASE);
}
#endif

/* ---- thunk.inc ---- */
/* RT_STACKS of them, NULL = the program's will do; which are in use. */
extern uint8_t *kron_rt_stacks __attribute__((visibility("hidden")));
extern uint64_t kron_rt_stacks_taken __attribute__((visibility("hidden")));

/* ---- thunk.S ---- */
/* Where the thunk finds the CPU number, from %fs: in rseq's area, or kron_rt_no_cpu. */
extern long kron_rt_cpu_offset __attribute__((visibility("hidden")));
void kron_rt_probe(void) __attribute__((visibility("hidden")));
void kron_rt_hook_thunk(void) __attribute__((visibility("hidden")));
/* The same with a payload of the probe's own (wire.h: KRON_BLOCK_PAYLOAD).  A device has a bus of
 * 32 bits and no room for one: there kron_rt_probe_device serves. */
void kron_rt_payload(void) __attribute__((visibility("hidden")));
void kron_rt_payload_constant(void) __attribute__((visibility("hidden")));
void kron_rt_payload_exact(void) __attribute__((visibility("hidden")));
/* On the lane bus, where some are Resource samples. */
void kron_rt_payload_counters(void) __attribute__((visibility("hidden")));
/* The board's counters (lane bus), as far as a sample holds them. */
void rt_counters_read(uint32_t out[KRON_COUNTERS]) __attribute__((visibility("hidden")));
/* A store to the board (KRON_BLOCK_ACTION). */
void kron_rt_action_thunk(void) __attribute__((visibility("hidden")));

/* ---- thunk_constant.S, thunk_bus.S ---- */
void kron_rt_probe_constant(void) __attribute__((visibility("hidden")));
void kron_rt_probe_exact(void) __attribute__((visibility("hidden")));
void kron_rt_probe_device(void) __attribute__((visibility("hidden")));
/* The critical section of the latter. */
extern const uint8_t kron_rt_device_start[] __attribute__((visibility("hidden")));
extern const uint8_t kron_rt_device_end[] __attribute__((visibility("hidden")));

/* ---- samples.c ---- */
struct rt_lane;
struct rt_trigger {
	uint32_t event, payload;
	bool resource;
	uint32_t source; /* 0: the lane's */
};
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
/* Whatever the lane's state: the trigger is one sample, or counted as lost. */
void kron_rt_slow(uint32_t event, uint32_t payload) __attribute__((visibility("hidden")));
void kron_rt_resource(uint32_t event, uint32_t payload) __attribute__((visibility("hidden")));
/* A record of the runtime's own in the thread's lane, which it has, by thread tid.  It is no trigger:
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

/* ---- strangers.c ---- */
#ifdef RT_STATIC
static inline bool rt_is_strange(void)
{
	return false; /* no probe goes by thread data */
}
#else
/* At START. */
void rt_home_find(void) __attribute__((visibility("hidden")));
/* From now on lanes are found by the thread's number, and thread data is not touched. */
void rt_strangers_come(void) __attribute__((visibility("hidden")));
/* Is this thread's data what libc made for it?  tid: its number. */
bool rt_is_at_home(uint32_t tid) __attribute__((visibility("hidden")));
/* In front of the system calls. */
void rt_hook_clone(uint64_t flags, uint64_t tls) __attribute__((visibility("hidden")));
void rt_hook_clone3(uint64_t args, uint64_t size) __attribute__((visibility("hidden")));
void rt_hook_arch_prctl(uint64_t code, uint64_t addr) __attribute__((visibility("hidden")));
#endif

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

/* ---- patience.c ---- */
/* Has a thread that waits for room waited too long, whatever the segment says?  Times in ms; *since: 0 at first. */
bool rt_waited_too_long(uint64_t *since, uint64_t now) __attribute__((visibility("hidden")));

/* ---- cpu.c ---- */
/* The CPU that we are on, from the processor itself. */
uint32_t rt_cpu(void) __attribute__((visibility("hidden")));
/* The C library registers its threads' rseq areas (but for threads that it did not make). */
bool rt_has_rseq(void) __attribute__((visibility("hidden")));
/* The same as the thunk knows it, and where it has no rseq area: what it is to know. */
uint32_t rt_cpu_read(void) __attribute__((visibility("hidden")));
void rt_cpu_note(void) __attribute__((visibility("hidden")));
void kron_rt_find_cpu(void) __attribute__((visibility("hidden")));

/* ---- source.c ---- */
/* A probe on the exact bus. */
void kron_rt_exact(uint32_t event, uint32_t payload, uint32_t gate)
	__attribute__((visibility("hidden")));
/* Make this thread's source address known.  False: it cannot be; its trigger counts as lost. */
bool kron_rt_meet(void) __attribute__((visibility("hidden")));
/* A trigger on the device bus could not be made. */
void kron_rt_lose(void) __attribute__((visibility("hidden")));

/* The way of the process's samples: enum kron_bus. */
static inline uint32_t rt_bus(void)
{
	return kron_rt.named ? (uint32_t)KRON_BUS_EXACT : kron_rt.bus;
}

/* A store to a trigger word by a thread that the board knows. */
void rt_trigger(uint32_t word, uint64_t data) __attribute__((visibility("hidden")));

/* ---- action.c ---- */
/* code: KRON_ACTION(). */
void kron_rt_action(uint32_t code, uint64_t data) __attribute__((visibility("hidden")));
/* kron_hello.counts */
int64_t rt_counts_offset(void) __attribute__((visibility("hidden")));

/* ---- proc.c ---- */
uint64_t rt_tsc(void) __attribute__((visibility("hidden")));
/* Count n lost triggers on this process, on nobody when it has no slot. */
void rt_proc_count_lost(uint64_t n) __attribute__((visibility("hidden")));
/* Make sure that this process has a slot.  Signals are blocked.  False: it cannot have one. */
bool rt_proc_ensure(void) __attribute__((visibility("hidden")));
bool rt_proc_claim(enum kron_proc_origin origin, int32_t pid) __attribute__((visibility("hidden")));
/* The same as rt_proc_ensure() without a system call; had_lane: the calling thread had one. */
bool rt_proc_ensure_quiet(bool had_lane) __attribute__((visibility("hidden")));
/* The calling thread belongs to this process, not to a vfork child that borrows its memory. */
bool rt_proc_is_ours(void) __attribute__((visibility("hidden")));
bool rt_collector_is_gone(void) __attribute__((visibility("hidden")));

/* ---- tid.c ---- */
/* At START, while there are system calls. */
void rt_tid_find(void) __attribute__((visibility("hidden")));
/* The calling thread has a lane under this number. */
void rt_tid_registered(uint32_t tid) __attribute__((visibility("hidden")));
/* From %fs to where libc has the kernel keep the thread's number; 0 = not known. */
long rt_tid_offset(void) __attribute__((visibility("hidden")));
/* The calling thread's number, 0 = not known.  forked: it is to be that of a new process, whose
 * first thread had a lane in its parent. */
uint32_t rt_tid_known(bool forked) __attribute__((visibility("hidden")));

/* ---- init.c ---- */
struct rt_segment {
	int fd;
	int device; /* bus device: what to map in the window; else -1 */
	uint64_t size;
	const uint8_t *session;
	uint8_t bus; /* enum kron_bus */
};
/* START: ask the collector, if the environment names one, and do what it says. */
void rt_start(char **envp) __attribute__((visibility("hidden")));
/* Stacks of our own, where the program's are too small for C (thunk.inc). */
bool rt_map_stacks(void) __attribute__((visibility("hidden")));
/* Map [off, off + len) of a segment, at addr and nowhere else if `fixed`. */
long rt_map_shared(uint64_t addr, bool fixed, uint64_t len, int prot, int fd, uint64_t off)
	__attribute__((visibility("hidden")));
/* Map the segment and claim a slot.  KRON_RESULT_OK or why not, with *detail. */
uint32_t rt_attach(const struct rt_segment *seg, uint64_t *detail)
	__attribute__((visibility("hidden")));

/* ---- wire.c: one question to the collector ---- */
/* False: nobody listens on its socket, or another one does.  Where we cannot see its pid. */
bool rt_collector_may_answer(void) __attribute__((visibility("hidden")));
struct ucred;
/* trust.c: may we tell this peer anything, and do what it says? */
bool rt_peer_is_trusted(int sock, const struct ucred *peer) __attribute__((visibility("hidden")));
/* trust.c: is it certain that the collector has its name still? */
bool rt_collector_lives(void) __attribute__((visibility("hidden")));
#define RT_ANSWER_FDS 3
struct rt_answer {
	int sock;
	int fd[RT_ANSWER_FDS]; /* in the order of wire.h; -1 = none */
	struct kron_reply reply;
};
struct rt_question { /* as in struct kron_hello */
	uint32_t kind, again;
	uint64_t range, range_len;
};
/* 0 or -errno; -ECONNREFUSED: the collector is not there, and will not be.  On success the caller
 * ends with rt_ask_end(). */
int rt_ask(struct rt_answer *a, const struct rt_question *q) __attribute__((visibility("hidden")));
void rt_tell(const struct rt_answer *a, const struct kron_result *result)
	__attribute__((visibility("hidden")));
/* result may be NULL: nothing to tell. */
void rt_ask_end(struct rt_answer *a, const struct kron_result *result)
	__attribute__((visibility("hidden")));

/* ---- apply.c ---- */
/* 0, or -errno: text that was writable may not be executed again. */
long rt_apply_trial(void) __attribute__((visibility("hidden")));
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

/* ---- hooks ---- */
void kron_rt_hook(uint32_t hook, struct rt_regs *regs) __attribute__((visibility("hidden")));
struct rt_exec {
	int dirfd;
	const char *path;
	char *const *argv;
	char *const *envp;
	int flags;
	bool at; /* execveat: with dirfd and flags */
};
/* sp: the program's, in front of the hooked function. */
void rt_hook_exec(const struct rt_exec *c, uint64_t sp) __attribute__((visibility("hidden")));
/* In front of vfork, of posix_spawn, of clone. */
void rt_hook_vfork(uint64_t sp) __attribute__((visibility("hidden")));
void rt_hook_spawn(uint64_t sp) __attribute__((visibility("hidden")));
void rt_hook_child_clone(uint64_t flags, uint64_t sp) __attribute__((visibility("hidden")));
/* A process that may be a child with borrowed memory is about to give it back; true: it is one.
 * It was not to be. */
bool rt_child_ends(uint64_t sp) __attribute__((visibility("hidden")));
void rt_child_lives(uint64_t sp) __attribute__((visibility("hidden")));
void rt_hook_dl_state(void) __attribute__((visibility("hidden")));
/* After the system call: rax is what it returned. */
void rt_hook_mmap(const struct rt_regs *r) __attribute__((visibility("hidden")));
void rt_hook_mremap(const struct rt_regs *r) __attribute__((visibility("hidden")));
void rt_hook_mprotect(const struct rt_regs *r) __attribute__((visibility("hidden")));
/* Ask, and do what the answer says, while nothing of what it is about runs. */
void rt_modules_ask(struct rt_question q) __attribute__((visibility("hidden")));
/* KRON_CMD_COPIES.  0. */
long rt_copies_watch(uint64_t addr, uint64_t len) __attribute__((visibility("hidden")));
void rt_hook_prctl(uint64_t option, uint64_t arg, uint64_t filter)
	__attribute__((visibility("hidden")));
void rt_hook_seccomp(uint64_t operation, uint64_t flags, uint64_t args)
	__attribute__((visibility("hidden")));
/* In front of a system call whose number and arguments these are. */
void rt_hook_mlockall(uint64_t *number, uint64_t *first, uint64_t *second)
	__attribute__((visibility("hidden")));
/* Of ours, just mapped: the program may have asked for all to be locked. */
void rt_unlock(uint64_t addr, uint64_t size) __attribute__((visibility("hidden")));

/* ---- starts.c ---- */
/* This process is about to execute a program with our environment.  A number for when it fails. */
uint32_t rt_start_enter(void) __attribute__((visibility("hidden")));
void rt_start_leave(uint32_t i) __attribute__((visibility("hidden")));
/* ... or without it. */
void rt_start_untraced(enum kron_untraced why) __attribute__((visibility("hidden")));

/* ---- signals: nothing of the program runs on this thread in between ---- */
uint64_t rt_signals_block(void) __attribute__((visibility("hidden")));
void rt_signals_restore(uint64_t mask) __attribute__((visibility("hidden")));

/* ---- log.c: only under KRON_LOG=rt:debug ---- */
void rt_log(const char *what, uint64_t value) __attribute__((visibility("hidden")));

#endif
