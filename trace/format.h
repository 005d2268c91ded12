/* SPDX-License-Identifier: MIT */
/*
 * format.h - the trace directory (default name kron.data), readable after a crash at any
 * moment because every file is only ever appended to.
 *
 *   lock        flock'ed by the collector while it records
 *   session     text, "key=value" lines; a later line of the same key replaces an earlier one
 *   modules     text, a line a module:    id TAB event_base TAB nfunctions TAB patched_entries
 *               TAB patched_exits TAB refused_entries TAB refused_exits TAB build_id TAB path
 *   functions   text, a line a function that carries a probe:  n TAB module_id TAB vaddr(hex)
 *               TAB size TAB name [TAB level [TAB ways [TAB aliases]]]
 *               n counts over the whole trace: events 2n and 2n+1.  ways: how it is left, as far
 *               as kron knows, some of: r by a return, j by a jump into another function, c by a
 *               call of one that does not return; u: one of its returns and jumps has no probe,
 *               or more; i: its name means what an IFUNC's resolver chooses; h: its samples are the
 *               resolver's; g: that it is a function is a guess; d: no pointer leads to it, it is
 *               reached directly alone; and t: it has read the clock each time, where others share
 *               a reading (clock_every).
 *               aliases: its other names, with a newline between two
 *   jumps       text, a line an exit by a jump:  j TAB n TAB how TAB target
 *               event 0x80000000 + 2j + 1 is an exit of function n.  It leads to ("how") the entry
 *               of a `function`, or `inside` one (target: its n [TAB its name, if the table functions
 *               has it not]), to an `import` (target: its
 *               name, which any module may have), or `unknown` (through a pointer)
 *   events      text, a line an event of the user's (-p):  n TAB level TAB trace|resource TAB
 *               payload TAB module_id TAB vaddr(hex) TAB name [TAB refused]   its samples carry 2n; n is no
 *               function's number; payload: what the high word is called, empty without one, and
 *               with :TYPE where it has one (trace/value.h);
 *               module and vaddr: of its first place there; a line each for an n that lies in several modules
 *               refused: "1/3 no-room", where one of its three places in the module got no probe, and why the first
 *   refusals    text: module_id TAB entry|exit|place TAB key TAB count TAB sentence
 *               (no sentence in older traces)
 *   imports     text, a line for each stub of a module by which it calls a function that is
 *               probed there and not in its own code:  module_id TAB vaddr(hex) of the function
 *               TAB name (may be empty) TAB why TAB path of the caller
 *   changes     text, a line for each probe that came or went while the program ran:  tsc TAB
 *               add|remove TAB places TAB name TAB SPEC    tsc: when it was done in all processes.
 *               No SPEC: the functions of the module with this name, which ran without before
 *   sleeps      text, a line each time that functions went to sleep, or woke:  since TAB until TAB
 *               sleep|wake TAB asked|budget|groups TAB numbers    in any order of time
 *               before `since` none of them had turned, from `until` on all have, in all processes; asked:
 *               by `kron ctl probe`; budget: by --budget; numbers: n of functions, like "3 7-9"
 *               groups: the gates of these filter groups, 0 to 15, were closed (sleep) or opened (wake), in
 *               the Filter Register or by sampling being switched off or on
 *   tasks       text, one record a line, fields separated by TAB:
 *                 P uid pid parent_uid exec|fork start_tsc note exe cmdline
 *                 E uid end_tsc lost cut_off          process ended
 *                 T uid tid name end_tsc              name of a thread, and when it ended; often
 *                                                     without the latter, for it lives, or nobody
 *                                                     knows
 *                 U pid reason                        a program that ran untraced
 *   samples     binary: struct trace_chunk + samples, repeated, in no order; seq orders them;
 *               and pads between them, of which only magic and nbytes count
 *   clock       text, of what came over a cable:  reference TAB boot_id    whose clock is read from here on
 *                 tsc TAB mono_ns TAB ref_ns TAB error_ns    our counter and CLOCK_MONOTONIC when the
 *                                 collector's CLOCK_MONOTONIC was ref_ns, give or take error_ns
 *   cable       text, beside it: the session of the cable, in hexadecimal
 *   pages       text, of `kron pages`: page reference counters (trace/pages.h)
 *   monitor     text, of `kron monitor`, one record a line, columns first:
 *                 C count|ns|bytes|percent|value u|s|x|d name
 *                 I from_ns to_ns stood_ns skew_ns threads ran|stood values
 *                                    an interval, from start_mono_ns on; a value for each column with a comma
 *                                    between two (trace/monitor/monitored.h)
 *                 E real_ns virtual_ns stood_ns probes_ns all_stood_ns stops failed_stops
 *                                    absent: the monitor was killed; probes_ns 2^64-1: not known
 *   switches    binary: struct trace_switch, repeated, roughly by time; absent: none were recorded
 *
 * trace/rows.c writes and reads these lines.  In text files a TAB, newline or
 * backslash inside a field is written \t \n \\.  A last line without newline is a torn write
 * and is ignored, and so is a torn last chunk.
 */
#ifndef TRACE_FORMAT_H
#define TRACE_FORMAT_H

#include <stdint.h>
#include <kron/board.h>

#define TRACE_DEFAULT_DIR "kron.data"
/* 1: without packed chunks; 2 packed them otherwise, and is not read; 3: without jumps; 4: without
 * wide samples; 5: without values from memory */
#define TRACE_VERSION 6

/* Header of one chunk in `samples`, little-endian. */
#define TRACE_CHUNK_MAGIC 0x4b43484bu
#define TRACE_PACKED_MAGIC 0x4b434750u /* a chunk whose samples are packed: trace/packed.h */
#define TRACE_PAD_MAGIC 0x4b504144u    /* nothing follows, nbytes of it */
#define TRACE_CHUNK_MAX 0x10000u       /* most sample bytes in one chunk */
struct trace_chunk {
	uint32_t magic;
	uint32_t nbytes; /* that follow; of samples as they are a multiple of 20 while there are
			      only Trace samples; trailing unused room is not stored */
	uint64_t seq;    /* board-wide, orders the chunks of one lane; unique */
	uint32_t proc_uid;
	uint32_t tid;
	uint32_t source;
	uint32_t holes; /* zero headers among them: triggers that a kill or a longjmp cut off */
};
_Static_assert(sizeof(struct trace_chunk) == 32, "chunk header");

/* One record in `switches`: a thread left a processor or came to one. */
enum trace_switch_kind {
	TRACE_SWITCH_IN = 1,
	TRACE_SWITCH_OUT,       /* it waits for something */
	TRACE_SWITCH_PREEMPTED, /* out, though it could go on */
	TRACE_SWITCH_LOST       /* tid: how many records the kernel dropped here */
};
struct trace_switch {
	uint64_t tsc; /* on the samples' clock */
	uint32_t tid;
	uint16_t cpu;
	uint16_t kind;
};
_Static_assert(sizeof(struct trace_switch) == 16, "record of a context switch");

#define TRACE_COUNTERS 8192u     /* virtual counters; the first 16 are the resource counters */
#define TRACE_COUNTERS_LINE 128u /* of them in a session line */

/*
 * Keys of `session`:
 *   version        TRACE_VERSION
 *   command        the command line, shell-quoted
 *   hostname, kernel, cpu, ncpu, kron      what ran it
 *   node           which node of a parallel machine it is: in every source address; node_from: who says so,
 *                  "--node", "the board", "the host's name" or a variable of the environment; absent: nobody
 *   boot_id        random, of the kernel's start: traces with the same one have one clock
 *   clocksource    that the kernel trusts: /sys/devices/system/clocksource
 *   segment        name of the shared memory object, for `kron recover`
 *   recording      random, hex: which of the recordings that were on this segment
 *   collector_pid
 *   bus            lane | exact | device; absent: lane
 *   device         its path
 *   clock_every    so many samples of a lane share a reading of the clock, a power of two: those whose time is odd
 *                  copy the last one that was read (trace/sparse.h); absent: each sample has its own
 *   timed          globs, with a newline between two: functions of these names have read it all the same
 *   constant_time  1: a closed gate costs as much as an open one; else absent
 *   when_full      discard | wait | wrap
 *   trigger        of --trigger; trigger_ns: when it fired, from the start, 0 = never;
 *                  outside: samples that were let go because they were not near it; unsure: how
 *                  often it could not tell that something did not come, for samples were lost
 *   buffer         bytes of pool
 *   filter         Filter Register at start, hex
 *   counter.J      what resource counter J stood at, if not at 0
 *   counters.K     "NUMBER:COUNT," for each of TRACE_COUNTERS_LINE virtual counters, from
 *                  K * TRACE_COUNTERS_LINE on, that is not 0
 *   start_tsc, start_mono_ns, start_real_ns      first calibration point; "tsc" is the clock
 *                  of the samples: the processor's counter, on bus exact the board's timestamp
 *   end_tsc, end_mono_ns                         last one; absent = the collector was killed
 *   copied_tsc     of a snapshot: the last of its samples that share a reading may be as late as this
 *   closed_tsc     of older traces, which have no groups in `sleeps`: from here on gates were closed that had
 *                  been open, and there may be no samples of what runs on
 *   tsc_hz         from the two points, or estimated at start
 *   switches       "yes", or why no context switches were recorded
 *   switches_lost  records of them that the kernel had no room for
 *   exit           "exited N" | "signal N" | "running" (detached)
 *   samples, lost, cut_off, overwritten, probes, refused, processes, threads
 *                  totals at the end; a reader counts itself when they are absent
 *   ring_samples   of a flight recorder, whose samples are in its snapshots: those that are not among the
 *                  lost ones, each once
 *   left_out       lines that tasks does not have: of processes that asked, or executed programs that
 *                  have no samples, again and again (a thousand times, and more than once a second)
 *   board_overruns, board_waits, board_samples
 *                  exact, device: what the board counted: triggers that found its FIFO full,
 *                  NODECLKs it made its users wait; samples that are still in its memory
 *   cpu_ns         processor time of the program and of the processes that it waited for;
 *                  absent or 0: not known
 *   probe_ns       measured cost of a probe (the mean of all programs'), of the rdtsc + store limit, of a closed gate:
 *   probe_ns_limit, probe_ns_off
 *   monitor        of `kron monitor`, what was watched: program | processes | board; every_ns: how long an
 *                  interval was to be; freezes: 1 if threads were stopped at its end, else absent
 *   error          what went wrong while recording, one sentence
 */

#endif
