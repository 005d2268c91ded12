/* SPDX-License-Identifier: MIT */
/*
 * segment.h - the shared-memory segment of a board: window, control block, tables, chunk pool.
 *
 *   offset        what                                      mapped by the runtime
 *   0x0000000     the board's local memory, 32 MiB           exact bus only, anywhere
 *   0x2000000     struct kron_ctl, one page                  KRON_CTL_ADDR         ┐
 *   0x2000c40     in it, struct kron_starts                                        │
 *   0x2001000     uint64_t chunk_state[KRON_CHUNKS_MAX]                            │ the
 *   0x2041000     struct kron_source source[KRON_SOURCES_MAX]                      │ window's
 *   0x2080000     struct kron_proc proc[KRON_PROCS_MAX]                            │ tail
 *   0x2180000     struct kron_counts counts[KRON_COUNTS_MAX]                       │
 *   0x2240000     the emulated board (board/model/access.h)                              ┘
 *   0x2400000     chunk pool, KRON_CHUNK_SIZE each           anywhere (KRON_POOL_*)
 *
 * In a process the window begins at KRON_WINDOW_ADDR with the board's address space (NISTIR
 * 5993, Table 1): 32 MiB that nobody can touch directly on an emulated board, for there every
 * access is a bus cycle of the model (board/model/access.h) or a trap that becomes one.  The same
 * 32 MiB of the segment hold the local memory, 4M words with 8 bytes each: the word, and which
 * generation of the model wrote it.
 *
 * The collector creates it (shm_open, mode 0600) and outlives nobody: every structure stays
 * consistent when any process, the collector included, is killed between two instructions.
 * There is no lock.  Ownership moves by one compare-and-swap on one word.
 *
 * Chunk states.  A chunk word says state, owner thread and owner process slot at once, so
 * that a kill at any point leaves no chunk whose owner is unknown.
 *
 *     ABSENT --collector: pages allocated--> FREE --RT: claim--> OWNED --RT: full--> FULL
 *                                             ^                    |                  |
 *                                             |    collector, once the thread is gone |
 *                                             +------ drained and zeroed -------------+
 *   With `kron stat` also: FREE --RT: claim--> CALLS --collector: process gone, summed, zeroed--> FREE
 *   With KRON_WHEN_FULL_WRAP also: FULL --RT: claim the oldest, zero it--> OWNED
 *
 * Who writes a field, who reads it, and in what order:
 *   C  the collector, or kron ctl      R  the runtime, in any process
 *   T  a stub or a thunk               B  whoever does a bus cycle (board/model/)
 *   once     written before anybody else can have the segment, or before a recording lets one in
 *   relaxed  the value alone matters; RMW: changed by one locked instruction
 *   -> X     the store releases X, and who loads the value, by an acquire, sees X (x86: plain moves)
 *   claim    a compare-and-swap, which acquires what "->" before it has released
 *
 *   field                     written  read   order
 *   ctl: magic, version, session, segment_size, node, bus, constant_time, permanent
 *                             C        all    once
 *     collector_pid           C        tools  -> 0: the recording has ended
 *     when_full, chunks_max   C        R      relaxed
 *     chunks_ready            C        R      -> the chunks' words and pages
 *     next_seq, next_uid      R        C      relaxed, RMW: each number is given once
 *     closing                 C        R      relaxed; wake_waiters comes after it
 *     free_count              R, C     R, C   relaxed, RMW: a hint
 *     wake_collector          R, C     C      -> what it is to look at: waiters, states
 *     wake_waiters, waiters   C; R     R; C   sequentially consistent (runtime/core/lane.c says why)
 *     wakers                  C        R      acquire, release
 *     csr, filter, config     B        R, C   relaxed; who writes looks again (board_repair_gates())
 *     gate                    B        T, R   relaxed: an old one is as good as a moment ago
 *     gates_were              B, C     C      relaxed, RMW: bits that are only set, until C takes them
 *     gate_changes            B        C      -> gates_were; RMW: each number is given once
 *     gate_change: number     B        C      -> the change's other fields; 0 while they are written
 *     lost_unowned, counts    R        C      relaxed, RMW: sums
 *     counts_ready            C        R      -> the entries' pages
 *     counts_used             R        R, C   -> the entry's word
 *     fetched; passed         C        R; -   -> local memory before it has been read; relaxed
 *     calls_shared            C        R      -> the chunk is all zero; 0: there is none yet
 *     line                    T        T      by threads on one CPU, in its program order (rseq)
 *   starts                    R, C     C      relaxed, RMW: execve() and HELLO come between
 *   chunk word: FREE          C, R     R      -> the chunk is all zero; claim
 *     OWNED                   R        C      the owner's name only; heads say what is in the chunk
 *     FULL                    R, C     C, R   -> its samples; claim, in wrap mode
 *     CALLS                   R, C     C      the owner's name, that of nobody if it is shared; claim
 *   chunk: seq                R; 0: C  R, C   -> its first records; 0 before the word changes
 *     a sample's head         T, R     C, R   -> the rest of the sample, stored before
 *   source: word              R, C     C      FULL -> start_tsc; FREE -> C has read it; claim
 *   counts: word              R, C     R, C   FREE -> n is as its owner left it; claim
 *     n                       T, R     R, C   relaxed: one writer, one instruction
 *   proc: state               R, C     C, R   LIVE -> the other fields; FREE -> C has read them; claim
 *     flags                   R, C     R, C   relaxed, RMW once LIVE: bits that are only set
 *     lost                    R        C      relaxed, RMW: a sum
 */
#ifndef KRON_SEGMENT_H
#define KRON_SEGMENT_H

#include <stdint.h>
#include <kron/board.h>

#define KRON_SEGMENT_MAGIC 0x3130474553524b00ull /* "\0KRSEG01" read as bytes */
#define KRON_SEGMENT_VERSION 7u

/*
 * The window: free in PIE, non-PIE and static programs, below 2 GiB, so that an instruction
 * reaches it by absolute address from anywhere without a register.
 */
#define KRON_WINDOW_ADDR 0x6b000000u
#define KRON_CTL_OFFSET KRON_BOARD_SIZE
#define KRON_STATES_OFFSET (KRON_CTL_OFFSET + 0x1000u)
#define KRON_SOURCES_OFFSET (KRON_CTL_OFFSET + 0x41000u)
#define KRON_PROCS_OFFSET (KRON_CTL_OFFSET + 0x80000u)
#define KRON_COUNTS_OFFSET (KRON_CTL_OFFSET + 0x180000u)
#define KRON_NO_PAGE_OFFSET (KRON_CTL_OFFSET + 0x210000u)
#define KRON_MODEL_OFFSET (KRON_CTL_OFFSET + 0x240000u)
#define KRON_MODEL_SIZE 0x80000u
/* Where what the board sends over its cable waits to be taken: 16 bits in each 64. */
#define KRON_CABLE_OFFSET (KRON_MODEL_OFFSET + KRON_MODEL_SIZE)
#define KRON_CABLE_BYTES 0x100000u
#define KRON_MEMORY_OFFSET 0u
#define KRON_MEMORY_BYTES (8u * KRON_BOARD_MEMORY_WORDS)
#define KRON_POOL_OFFSET (KRON_CTL_OFFSET + 0x400000u)
#define KRON_WINDOW_SIZE KRON_POOL_OFFSET
#define KRON_CTL_ADDR (KRON_WINDOW_ADDR + KRON_CTL_OFFSET)

#define KRON_CHUNK_SIZE 0x10000u /* 64 KiB, and aligned to it */
#define KRON_CHUNK_HEADER 16u
#define KRON_CHUNK_SAMPLES 3276u /* (65536 - 16) / 20, no remainder */
#define KRON_CHUNKS_MAX 32768u   /* 2 GiB of pool */
#define KRON_SOURCES_MAX 16128u
#define KRON_PROCS_MAX 16384u
_Static_assert(KRON_CHUNK_HEADER + KRON_CHUNK_SAMPLES * KRON_SAMPLE_SIZE == KRON_CHUNK_SIZE,
	       "samples fill a chunk exactly");
_Static_assert(KRON_MEMORY_OFFSET + KRON_MEMORY_BYTES <= KRON_CTL_OFFSET, "memory overlaps");
#define KRON_COUNTS_MAX 1024u
_Static_assert(KRON_COUNTS_OFFSET + 576u * KRON_COUNTS_MAX <= KRON_NO_PAGE_OFFSET,
	       "counts overlap");
_Static_assert(KRON_CABLE_OFFSET + KRON_CABLE_BYTES <= KRON_POOL_OFFSET, "cable overlaps");
_Static_assert(KRON_STATES_OFFSET + 8u * KRON_CHUNKS_MAX <= KRON_SOURCES_OFFSET, "tables overlap");
_Static_assert(KRON_SOURCES_OFFSET + 16u * KRON_SOURCES_MAX <= KRON_PROCS_OFFSET, "tables overlap");

/* ---- what happens when no chunk is free ---- */
enum kron_when_full {
	KRON_WHEN_FULL_DISCARD = 0, /* the trigger is lost and counted */
	KRON_WHEN_FULL_WAIT = 1,    /* the thread waits for the collector; nothing is lost */
	KRON_WHEN_FULL_WRAP = 2     /* the oldest full chunk goes; its samples count as lost */
};

/* ---- the way that samples of injected probes go ---- */
enum kron_bus {
	KRON_BUS_LANE = 0,    /* into the thread's lane */
	KRON_BUS_EXACT = 1,   /* a bus cycle of the model */
	KRON_BUS_HARDWARE = 2 /* a store to real hardware, or to a file */
};

/*
 * Bus device: a CPU ID line and the CPU whose line it is.  `owner` is the source address that
 * the line's Source Address Register holds, 0 while it is being changed.  Written by threads on
 * that CPU only, inside an rseq critical section (runtime/bus/thunk_bus.S).
 */
struct kron_line {
	_Alignas(64) uint32_t owner; /* RT */
	uint32_t cpu;                /* full number; KRON_LINE_UNUSED: none */
};
#define KRON_LINE_UNUSED 0xffffffffu

/* The gates were changed, by whom ever: between two readings of the TSC. */
#define KRON_GATE_CHANGES 32u
struct kron_gate_change {
	uint64_t from, until;
	uint32_t open;   /* levels, a bit each */
	uint32_t number; /* of all changes, from 1; last, for it says that the rest is there */
};

/* ---- calls, on the lane bus ----
 *
 * Each function of a recording that counts calls has a counter.  A thread's lie in chunks of its own, 8,190
 * of them in each, and it is the only one to write there, by one instruction, unlocked.  Those of
 * part k begin with function k * KRON_CALLS_IN_CHUNK; what leads to them is word KRON_CALLS_WORD + k after
 * the one that leads to the thread's Resource Counters (wire.h).  Where a thread has none it counts in
 * the chunks that all share, by a locked instruction.  When a process is gone the collector adds its
 * chunks to those: the sum over all chunks of a part is right at any time but that one.
 */
#define KRON_CALLS_PARTS 4u /* as many as a lane has words for */
#define KRON_CALLS_WORD 4u
#define KRON_CALLS_IN_CHUNK ((KRON_CHUNK_SIZE - KRON_CHUNK_HEADER) / 8)
#define KRON_CALLS_MAX (KRON_CALLS_PARTS * KRON_CALLS_IN_CHUNK)
struct kron_calls {
	uint64_t part; /* k + 1; 0: being prepared */
	uint64_t reserved;
	uint64_t n[KRON_CALLS_IN_CHUNK];
};
_Static_assert(sizeof(struct kron_calls) == KRON_CHUNK_SIZE, "a chunk");

/* ---- control block ---- */
struct kron_ctl {
	uint64_t magic;
	uint32_t version;
	uint32_t when_full; /* enum kron_when_full */
	uint64_t segment_size;
	uint8_t session[16]; /* random; also the token of the socket protocol */
	int32_t collector_pid;
	uint32_t node;         /* 10 bits, goes into every source address */
	uint32_t chunks_max;   /* so far the pool may grow, <= KRON_CHUNKS_MAX; atomic */
	uint32_t chunks_ready; /* chunks [0, ready) have left ABSENT; only grows; atomic */
	uint64_t next_seq;     /* RT, atomic: chunk sequence numbers, from 1 */
	uint32_t next_uid;     /* RT, atomic: process uids, from 1 */
	uint32_t closing;      /* collector is finishing: waiters give up; atomic */

	/* Futex words, FUTEX_WAIT without PRIVATE.  free_count is a hint that may drift when a
	 * process is killed between claim and decrement; the collector sets it right. */
	int32_t free_count;      /* RT, atomic: chunks in state FREE */
	uint32_t wake_collector; /* RT, atomic: ++ and FUTEX_WAKE when chunks run short */
	uint32_t wake_waiters;   /* atomic: collector ++ and FUTEX_WAKE after freeing chunks */
	uint32_t waiters;        /* RT, atomic: threads in FUTEX_WAIT on wake_waiters */

	/*
	 * What the gates were last computed from.  The registers themselves are in the model;
	 * who changes them there brings these and the gates up to date (board/model/access.h).
	 */
	uint32_t csr;    /* KRON_CSR_SAMPLING is what the gates need */
	uint32_t filter; /* Filter Register, 16 bits */
	uint32_t config; /* KRON_CONFIG_MK_OE: without it no trigger is answered */
	uint32_t bus;    /* enum kron_bus; fixed while a recorder is on the board */
	/* 1: a trigger costs the same whether or not its sample is taken, as on the hardware */
	uint32_t constant_time;
	uint32_t permanent; /* 1: made by `kron board create`; else it goes with its recorder */

	/* Levels whose gate was closed since the collector looked, bits 0-15, and open, 16-31 */
	uint32_t gates_were;

	/* Losses that belong to no process slot (table full). RT, atomic. */
	uint64_t lost_unowned;

	/*
	 * One gate a filter level.  What CSR, Filter Register and Configuration Register say
	 * together (kron_gate_recompute).  Every trampoline reads its gate by absolute address;
	 * zero sends it past the probe, and what is not zero reaches the thunk in %ecx.
	 */
	_Alignas(64) uint8_t gate[KRON_LEVELS];

	/* Bus exact, for `kron recover`: words of local memory, counted from the start of the
	 * recording, whose samples are in the trace's file; and where the Memory Address Pointer
	 * was seen last.  It has their low 24 bits. */
	uint64_t fetched, passed;

	/* Counters of calls that are nobody's own: index of the chunk with each part, + 1. */
	uint32_t calls_shared[KRON_CALLS_PARTS];

	struct kron_line line[KRON_SOURCES];

	/* Lane bus: counts of threads that found no entry in the table. RT, atomic. */
	uint64_t counts[KRON_COUNTERS];
	uint32_t counts_ready; /* entries [0, ready) have pages */
	uint32_t counts_used;  /* RT, atomic: entries [0, used) have been owned; only grows */
	uint32_t wakers;       /* atomic: collector's threads that wake waiters just now */

	/* The last changes of the gates; what has been overwritten is in gates_were, without a time. */
	uint32_t gate_changes; /* atomic: how many there were */
	struct kron_gate_change gate_change[KRON_GATE_CHANGES];
};
_Static_assert(sizeof(struct kron_ctl) <= 4096, "the control block is one page");
_Static_assert(__builtin_offsetof(struct kron_ctl, line) == 192, "RT_LINE_OWNER");
#define KRON_GATE_CLOSED 0u
#define KRON_GATE_TAKE 1u /* take the sample */
#define KRON_GATE_DROP 2u /* constant time: do all of it, keep nothing */
#define KRON_GATE(how, level) ((uint8_t)((how) | (level) << 4))
#define KRON_GATE_ADDR(level) \
	(KRON_CTL_ADDR + (uint32_t) __builtin_offsetof(struct kron_ctl, gate) + (level))

/* ---- chunk state word ----
 *
 *   bits   0-3   state
 *   bits   4-25  thread id of the owner
 *   bits  26-41  process slot of the owner
 *   bits  42-63  low 22 bits of the owner's process uid
 */
enum kron_chunk_state {
	KRON_CHUNK_ABSENT = 0,
	KRON_CHUNK_FREE = 1,
	KRON_CHUNK_OWNED = 2,
	KRON_CHUNK_FULL = 3,
	KRON_CHUNK_CALLS = 4, /* counters of calls: struct kron_calls */
	KRON_CHUNK_TAKEN =
		5 /* wrap: by this owner, or the recorder, from another, whose samples it still holds: nobody's */
};
#define KRON_STATE_MASK 15u
#define KRON_CHUNK_UID_MASK 0x3fffffu
static inline uint64_t kron_chunk_word(unsigned state, uint32_t tid, uint32_t slot, uint32_t uid)
{
	return (uint64_t)state | (uint64_t)(tid & KRON_SOURCE_TID_MASK) << 4 |
	       (uint64_t)(slot & 0xffffu) << 26 | (uint64_t)(uid & KRON_CHUNK_UID_MASK) << 42;
}
#define KRON_TAKEN_BY_RECORDER kron_chunk_word(KRON_CHUNK_TAKEN, 0, KRON_PROC_NONE, 0)
static inline unsigned kron_chunk_word_state(uint64_t w)
{
	return (unsigned)(w & KRON_STATE_MASK);
}
/* Thread and process at once: words of the same owner differ in the state alone. */
static inline uint64_t kron_chunk_word_owner(uint64_t w)
{
	return w & ~(uint64_t)KRON_STATE_MASK;
}
static inline uint32_t kron_chunk_word_tid(uint64_t w)
{
	return (uint32_t)(w >> 4) & KRON_SOURCE_TID_MASK;
}
static inline uint32_t kron_chunk_word_slot(uint64_t w)
{
	return (uint32_t)(w >> 26) & 0xffffu;
}
static inline uint32_t kron_chunk_word_uid(uint64_t w)
{
	return (uint32_t)(w >> 42);
}

/* First bytes of a chunk; samples follow at KRON_CHUNK_HEADER.  A chunk in state FREE is all
 * zero.  A sample whose head word is zero does not exist: at the end it is room that was not
 * used, before another sample (a hole) it is a claim that was cut off or is still being
 * written.
 *
 * Holes in a FULL chunk: a thread may be interrupted between its claim and the store of the
 * head, and the handler's probes fill the chunk and hand it over; when the handler returns,
 * the thread writes into the FULL chunk.  So whoever takes FULL chunks (the collector, a
 * wrapping runtime) leaves one with holes alone while its owner thread lives.  The first
 * record of a chunk is always KRON_EVENT_CPU: a chunk can be read without its predecessor. */
struct kron_chunk {
	uint64_t seq;    /* board-wide, from 1: orders the chunks of a lane.  0 in an OWNED
			  * chunk: being prepared, what it holds does not count (it may be the
			  * rest of an older chunk that wrap mode has already counted as lost) */
	uint32_t source; /* source address of the lane */
	uint32_t kind;   /* enum kron_chunk_kind; before seq.  Of pages: KRON_CHUNK_BEGUN_ON() */
};
enum kron_chunk_kind { KRON_CHUNK_OF_SAMPLES = 0, KRON_CHUNK_OF_PAGES = 1 };
#define KRON_CHUNK_KIND(kind) ((kind)&0xff)
#define KRON_CHUNK_BEGUN_ON(cpu) ((uint32_t)(cpu) << 8) /* its thread was there when it began it */
#define KRON_CHUNK_CPU(kind) ((kind) >> 8)
_Static_assert(sizeof(struct kron_chunk) == KRON_CHUNK_HEADER, "chunk header");

/* ---- source table ----
 *
 * Samples that went through a board name their thread by source address only.  On the buses
 * exact and device each thread says here, before its first trigger, whose it is; a thread id that
 * is used again has an entry for each thread that had it, told apart by the time.
 *
 *   FREE --RT: CAS to OWNED, start_tsc, then--> FULL --collector: the thread is gone and its
 *   samples are in the trace--> FREE
 *
 * The word is that of a chunk: state, thread id, process slot and uid of the owner.
 */
struct kron_source {
	uint64_t word;      /* atomic */
	uint64_t start_tsc; /* before its first trigger, after the last of who had its number */
};
_Static_assert(sizeof(struct kron_source) == 16, "source table");

/* ---- Resource Counters on the lane bus ----
 *
 * Each thread that counts has an entry and is the only one to write its counters, by one
 * instruction each, unlocked.  There are several of each counter, because an increment has to wait
 * for the one before it in the same place.  Board counter j is the sum of all n[..][j], whoever
 * owns the entry or owned it, and of ctl->counts[j]: an entry keeps its numbers when it changes hands, so nothing
 * has to be added up at the death of anybody, and a kill at any point loses nothing.
 *
 *   FREE (0) --RT: CAS--> OWNED, by a lane of a process --collector: the process is gone--> FREE
 */
#define KRON_COUNT_BANKS 4u
#define KRON_COUNT_BANK 2u /* pointers to a thread's counters point to those of this bank */
struct kron_counts {
	uint64_t word; /* atomic; that of a chunk: state OWNED, thread, slot and uid */
	uint64_t reserved[7];
	uint64_t n[KRON_COUNT_BANKS][KRON_COUNTERS];
};
_Static_assert(sizeof(struct kron_counts) == 576, "nine cache lines");

/* ---- page reference counters: doc/internals/pages.md ----
 *
 * A KRON_CHUNK_OF_PAGES holds records of this struct, KRON_PAGES_IN_CHUNK of them after
 * one that is left out.  It stays OWNED by its thread, who alone writes to it, until the thread is gone;
 * the collector reads it then, or at the end.  A thread may have several records of one page.
 *
 * KRON_NO_PAGE_ADDR is a record of no page: its address is far from every one that a program may have.
 */
struct kron_page {
	uint64_t page; /* address of its first byte; 0: not in use */
	uint64_t reads, writes;
	uint32_t
		next; /* the thread's own: another record of its, as a number of records from the pool's
			* start; whoever reads it bounds it */
	uint32_t function; /* 0; by function: its number and 1 */
};
_Static_assert(sizeof(struct kron_page) == 32, "two of them in a cache line");
#define KRON_PAGES_IN_CHUNK (KRON_CHUNK_SIZE / 32u - 1u)
#define KRON_PAGE_SHIFT 12u
#define KRON_LINE_SHIFT \
	6u /* what is counted may be lines of 64 bytes: a page is one of them then */
#define KRON_NO_PAGE (1ull << 63)
#define KRON_NO_PAGE_ADDR (KRON_WINDOW_ADDR + KRON_NO_PAGE_OFFSET)
/*
 * Beside it: lines of 64 bytes in which each address has a record of its own, which is found by the next entry of
 * the table and so by no trampoline.  C writes; R reads; n -> the lines.
 */
#define KRON_WATCH_OFFSET (KRON_NO_PAGE_OFFSET + 64u)
#define KRON_WATCH_LINES 255u
struct kron_watch {
	uint32_t n;          /* atomic; only grows */
	uint32_t by_address; /* 1: an access counts in the line where it begins alone; once */
	uint64_t line[KRON_WATCH_LINES];
};
/* A thread's table of pages (wire.h): 8 bytes an entry, by the page number's low bits. */
#define KRON_PAGE_TABLE_ENTRIES 4096u
#define KRON_PAGE_TABLE_SIZE (8u * KRON_PAGE_TABLE_ENTRIES)
/*
 * By function it has more of them, for there are more records, and an entry's number depends on the function, too:
 * the page number is xor-ed with this.
 */
#define KRON_FUNCTION_TABLE_BITS 15u
#define KRON_FUNCTION_TABLE_ENTRIES (1u << KRON_FUNCTION_TABLE_BITS)
#define KRON_FUNCTION_TABLE_SIZE (8u * KRON_FUNCTION_TABLE_ENTRIES)
#define KRON_PAGE_SALT(function) \
	((uint32_t)(function)*0x9e3779b1u >> (32 - KRON_FUNCTION_TABLE_BITS))

/* ---- process table ----
 *
 *   FREE --RT or collector: CAS to CLAIMED, fill, then--> LIVE --collector: pid gone and its
 *   chunks drained--> FREE
 *
 * state holds uid << 8 | state, so the CAS also fixes whose slot it is.
 */
enum kron_proc_state { KRON_PROC_FREE = 0, KRON_PROC_CLAIMED = 1, KRON_PROC_LIVE = 2 };
enum kron_proc_origin { KRON_PROC_EXEC = 1, KRON_PROC_FORK = 2 };
#define KRON_PROC_FOREIGN_PIDNS 1u /* its pids are not the collector's: reap only at the end */
#define KRON_PROC_STATIC 2u        /* a static program: its samples take longer */
struct kron_proc {
	uint64_t state;      /* atomic: uid << 8 | enum kron_proc_state */
	int32_t pid;         /* in the process's own pid namespace */
	uint32_t parent_uid; /* uid of the slot that it was forked from, or 0 */
	uint64_t start_tsc;
	uint64_t lost;   /* RT, atomic: triggers lost */
	uint32_t origin; /* enum kron_proc_origin */
	uint32_t flags;
	uint64_t left_tsc; /* RT, atomic: kron left it then, and it lives on; 0: not so */
	uint32_t
		ticket; /* EXEC: kron_reply.ticket; two processes in two pid namespaces have the same pid */
	uint32_t reserved[3];
};
_Static_assert(sizeof(struct kron_proc) == 64, "one cache line a process");
_Static_assert(KRON_PROCS_OFFSET + 64u * KRON_PROCS_MAX <= KRON_POOL_OFFSET, "tables overlap");

#define KRON_PROC_NONE 0xffffu /* slot value: no slot could be had */

/* ---- programs that are being started ----
 *
 * Who is about to execute a program with kron's environment enters it here, and takes it out when
 * the execve fails; the collector takes it out when the program says HELLO.  So what is left was
 * started and did not come through: no program goes untraced without a word.  An entry also
 * vouches for a program of another user: doc/SECURITY.md.
 *
 *   FREE (0) --RT: CAS--> pid, uid --RT: execve failed, or collector: HELLO--> FREE
 */
#define KRON_STARTS_MAX 112u
/* Programs that are started without kron's environment. */
enum kron_untraced {
	KRON_UNTRACED_NOT = 0,   /* this one gets it */
	KRON_UNTRACED_FILE = 1,  /* set-id, of another architecture or loader */
	KRON_UNTRACED_IDS = 2,   /* by a process with ids of two users */
	KRON_UNTRACED_ROOT = 3,  /* where libkron-rt.so cannot be read: another root directory */
	KRON_UNTRACED_QUIET = 4, /* by a process under a seccomp filter, which cannot say more */
	KRON_UNTRACED_SPACE = 5, /* with too large an environment */
	/* What a traced process has loaded: nobody answered its question. */
	KRON_UNTRACED_UNHEARD = 6,
	KRON_UNTRACED_STATIC = 7,    /* a static one, and kron did not answer */
	KRON_UNTRACED_UNASKED = 8,   /* by a process that was attached to without --children */
	KRON_UNTRACED_UNAWAITED = 9, /* one to be attached to, and kron did not answer */
	KRON_UNTRACED_LIMITS = 10,   /* under limits that leave no room for libkron-rt.so */
	KRON_UNTRACED_GONE = 11,     /* after the recorder was killed */
	/* What a traced process has loaded then, or only closed. */
	KRON_UNTRACED_GONE_LOADS = 12,
	KRON_UNTRACED_REASONS
};
struct kron_starts {
	uint32_t unlisted;                        /* RT, atomic: the table was full */
	uint32_t untraced[KRON_UNTRACED_REASONS]; /* RT, atomic: how many */
	uint64_t start[KRON_STARTS_MAX]; /* atomic: pid | uid << 32, as the process sees them */
};
#define KRON_STARTS_OFFSET 3136u /* in the page of the control block */
_Static_assert(KRON_STARTS_OFFSET + sizeof(struct kron_starts) <= 4096, "in the page");
static inline struct kron_starts *kron_starts(const struct kron_ctl *ctl)
{
	return (struct kron_starts *)((uintptr_t)ctl + KRON_STARTS_OFFSET);
}

#endif
