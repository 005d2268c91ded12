/* SPDX-License-Identifier: MIT */
/*
 * wire.h - what the runtime and the collector say to each other.
 *
 * Transport: a SOCK_SEQPACKET Unix socket with an abstract name, which survives chroot and
 * leaves no file.  A connection serves one question and is closed: nothing of kron's stays in
 * the process's descriptor table.
 *
 *   runtime                                   collector
 *   HELLO(kind) ------------------------------->
 *            <------------------------ WORKING   (any number: "still planning, wait on")
 *            <------------------------ REPLY + fds
 *   [maps the segment, applies the commands]
 *   RESULT(GROUP) ------------------------------> (for each group that was refused)
 *   RESULT(END) --------------------------------> (nothing comes back)
 *
 * Other threads map memory meanwhile, and may do so where a block was to go.  Then END says
 * KRON_RESULT_AGAIN, and the runtime asks once more, before anything of the new modules runs:
 * HELLO says how many times it has asked in vain.
 *
 * Each probe that was added while the recording runs has a command file of its own, so that it can be taken
 * out again: REPLY says that there is more, and the runtime asks for that, too.
 *
 * Before HELLO the runtime makes sure that it is the collector who listens
 * (runtime/collector/trust.c).  One that hangs up without a word did not believe it; one that only wants
 * to know says the magic number.
 *
 * At START the first fd of REPLY is the board segment; then, with KRON_REPLY_HARDWARE, what bus
 * device stores to; then, if ncommands > 0, the command file (a memfd).  Later only the command
 * file comes.
 *
 * Command file:  struct kron_commands, then ncommands x struct kron_command, then whatever
 * their file offsets point to: page-aligned trampoline blocks and tables, and patch arrays.
 */
#ifndef KRON_WIRE_H
#define KRON_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <kron/tables.h>

#define KRON_WIRE_MAGIC 0x4b524f4eu
#define KRON_WIRE_VERSION 11u

/*
 * Environment that `kron record` sets.  The runtime takes both out again, an even number of
 * entries in all, so that the traced program sees its own environment; the exec hook puts
 * them back for the programs that it starts.
 *
 *   LD_PRELOAD=<path of libkron-rt.so>[:what was there before]
 *   KRON_RT=<abstract socket name without the leading NUL>,<32 hex digits of session>,<path of libkron-rt.so>
 *   The name is kron-<16 hex digits>-<8 hex digits><8 hex digits>: the inode number of the collector's
 *   pidfd, which no other process ever has (0 before Linux 6.9), a random number, and its pid.
 *   KRON_RT_PAD=  only when there was an LD_PRELOAD before: that one stays, so this entry
 *                 makes the number of entries that go even
 *
 * Even, because the auxiliary vector must stay where it is: the end of envp moves up and the
 * pairs of words that this frees become AT_IGNORE entries, which walkers skip.
 */
#define KRON_ENV_RT "KRON_RT"
#define KRON_ENV_PAD "KRON_RT_PAD"
#define KRON_SOCKET_PREFIX "kron-"

enum kron_hello_kind {
	KRON_HELLO_START = 1,   /* first instructions of a program after exec */
	KRON_HELLO_MODULES = 2, /* the list of loaded modules changed (dlopen, dlclose) */
	/* The program has mapped code of a file once more, which it is known to do (KRON_CMD_COPIES);
	 * nothing has run there yet. */
	KRON_HELLO_MAPPED = 3,
	/* The program is about to make code writable that has probes. */
	KRON_HELLO_WRITES = 4,
	/* The thread `range` is about to execute a static program, in which nobody would ask for a plan: it
	 * is to be attached to in front of its first instruction.  REPLY: KRON_REPLY_AWAITED, or not.  So is a
	 * dynamic one, where it is to be left again, which `again` says: KRON_AGAIN_LOADS. */
	KRON_HELLO_EXECUTES = 5,
	/* That has failed, and nobody traces the thread any more when REPLY comes. */
	KRON_HELLO_STAYS = 6
};

/* The ways of a probe; the collector binds all probes of a session to one of them. */
enum kron_thunk {
	KRON_THUNK_LANE = 0,          /* into the thread's lane */
	KRON_THUNK_LANE_CONSTANT = 1, /* the same work whether the sample is taken or not */
	KRON_THUNK_EXACT = 2,         /* a bus cycle of the model */
	KRON_THUNK_HARDWARE = 3,      /* a store to the hardware in the window */
	KRON_THUNK_LANE_SPARSE = 4,   /* into the lane; most copy the time of the last reading */
	KRON_THUNKS
};

static inline bool kron_thunk_is_lane(enum kron_thunk way)
{
	return way == KRON_THUNK_LANE || way == KRON_THUNK_LANE_CONSTANT ||
	       way == KRON_THUNK_LANE_SPARSE;
}

/* A sample's records of its value, and what is above 32 bits of it (board.h: KRON_EVENT_WIDE ...). */
static inline bool kron_thunk_has_parts(enum kron_thunk way)
{
	return way == KRON_THUNK_LANE || way == KRON_THUNK_LANE_SPARSE;
}

#define KRON_AGAIN_LOADS 2u /* EXECUTES: besides 1, asked again */
struct kron_hello {
	uint32_t magic;
	uint32_t version;
	uint32_t kind;
	uint32_t flags; /* KRON_HELLO_* */
	uint8_t session[16];
	uint32_t proc_uid;                   /* of this process, or nobody answers; START: 0 */
	uint32_t proc_slot;                  /* likewise */
	uint64_t thunk[KRON_THUNKS];         /* addresses of the probe thunks in libkron-rt.so */
	uint64_t hook_thunk;                 /* address of the hook thunk */
	uint64_t payload_thunk[KRON_THUNKS]; /* likewise for probes with a payload of their own */
	/* The lanes' one for blocks with Resource samples, which look at KRON_GATE_RESOURCE. */
	uint64_t resource_thunk;
	uint64_t wide_thunk; /* the lanes' one for samples with payloads of 64 bits */
	uint64_t action_thunk;
	uint64_t memory_thunk; /* the lanes' one for samples with values from memory */
	uint64_t timed_thunk;  /* the sparse lanes' one for probes that read the clock each time */
	int64_t counts;        /* %fs offset of the word that leads to a thread's counters */
	/* How many times gaps were taken before the blocks came, and nothing has run since; EXECUTES: how
	 * many times it was to allow it. */
	uint32_t again;
	uint32_t more;             /* MODULES: of the last REPLY; 0: a question of its own */
	uint64_t range, range_len; /* MAPPED, WRITES: of the code; EXECUTES: a thread */
	/* Where a thread that was stopped is to call it (kron/live.h); 0: it cannot be called. */
	uint64_t live_entry;
};
#define KRON_AGAIN_MAX 100u
/* The runtime was put into a process that ran: it is of no module, and has no thread data. */
#define KRON_HELLO_LIVE 1u

enum kron_msg_kind { KRON_MSG_WORKING = 1, KRON_MSG_REPLY = 2 };

struct kron_reply {
	uint32_t magic;
	uint32_t version;
	uint32_t kind;         /* enum kron_msg_kind */
	uint32_t ncommands;    /* REPLY: 0 = nothing to patch */
	uint64_t segment_size; /* START */
	uint64_t commands_size;
	uint32_t flags; /* START: KRON_REPLY_* */
	/* START: as the recording was begun.  The control block says so, too, but others write to it. */
	uint8_t bus;       /* enum kron_bus */
	uint8_t when_full; /* enum kron_when_full */
	/* Not 0: other probes were added to the recording.  Ask once more, MODULES with this number, before
	 * anything runs that is new. */
	uint16_t more;
	/* START, with KRON_THUNK_LANE_SPARSE: so many samples share a reading of the clock, a power of two. */
	uint32_t clock_every;
	uint32_t ticket; /* START: for its slot, which says by it whose question it came of */
};

/* Children are not to be traced: hide the environment although no exec hook puts it back. */
#define KRON_REPLY_NO_CHILDREN 1u
/* A descriptor of the hardware comes with it. */
#define KRON_REPLY_HARDWARE 2u
/* Goroutines: stacks that are too small for C, and handlers that have one of their own. */
#define KRON_REPLY_SMALL_STACKS 4u
/* The segment is a file, which its owner can cut off: be ready for SIGBUS. */
#define KRON_REPLY_CUTTABLE 8u
/* EXECUTES: the program is awaited. */
#define KRON_REPLY_AWAITED 16u
/* EXECUTES: not so, because Yama lets only those be traced that have said by whom. */
#define KRON_REPLY_ALLOW 32u
/* EXECUTES: not so, its dynamic linker is to bring the runtime, for probes were added that it has from its first
 * instruction only in that way. */
#define KRON_REPLY_LOADS 128u
/* Later: the code runs already, and others of ours have patched it: no window may touch theirs. */
#define KRON_REPLY_CHANGE 64u

enum kron_command_kind {
	KRON_CMD_MAP = 1,   /* map [file_off, +len) of the command file at addr, read and execute */
	KRON_CMD_PATCH = 2, /* apply count patches at file_off to the text [addr, addr+len) */
	KRON_CMD_UNMAP = 3, /* unmap [addr, addr+len): the trampolines of a module that is gone */
	/* MAP over the block that a file from `kron patch` brought along: only where every page
	 * of [addr, addr+len) is there and the head's KRON_BLOCK_ID bytes are the same. */
	KRON_CMD_REPLACE = 4,
	KRON_CMD_TABLE = 5, /* map [file_off, +len) of the command file at addr, to be read only */
	/* The program copies the text [addr, addr+len): tell when it is mapped once more, and keep
	 * its patches where mremap would take them away.  Nothing is mapped or written. */
	KRON_CMD_COPIES = 6,
	/* REPLACE, over a block that was mapped before: its stubs lead back to the module. */
	KRON_CMD_RELEASE = 7,
	/* The block [addr, addr+len) is not entered any more: the group's patches bring its text back. */
	KRON_CMD_RETIRE = 8
};
struct kron_command {
	uint32_t kind;
	uint32_t count; /* PATCH: number of patches */
	uint64_t addr;  /* page-aligned */
	uint64_t len;   /* page-aligned */
	uint64_t file_off;
	uint32_t group; /* commands of one module share it and stand together in the file:
			 * all of a group apply or none */
	uint32_t flags; /* KRON_CMD_HAS_*, KRON_CMD_OWN */
};

/*
 * On a PATCH or REPLACE: the hook KRON_HOOK_EXECVE is among these patches.  The runtime hides kron's
 * environment only when a group with this flag was applied: with no hook to put it back,
 * children find it in the environment that they inherit.
 */
#define KRON_CMD_HAS_EXEC_HOOK 1u
/* On a PATCH: it changes windows of a block that is there already, and knows what they are. */
#define KRON_CMD_OWN 2u

struct kron_commands {
	uint32_t magic;
	uint32_t ncommands;
	uint64_t size; /* of the whole file */
};

#define KRON_PATCH_OLD_MAX 24
#define KRON_PATCH_NEW_MAX 8
struct kron_patch {
	uint32_t off;    /* from the command's addr */
	uint8_t old_len; /* bytes that must be there: the whole window */
	uint8_t new_len; /* bytes to write, <= old_len */
	uint8_t pad[2];
	uint8_t old_bytes[KRON_PATCH_OLD_MAX];
	uint8_t new_bytes[KRON_PATCH_NEW_MAX];
};
_Static_assert(sizeof(struct kron_patch) == 40, "patch record");

enum kron_result_code {
	KRON_RESULT_OK = 0,
	KRON_RESULT_WINDOW_TAKEN = 1,   /* detail: errno of mmap */
	KRON_RESULT_MAP_FAILED = 2,     /* detail: errno; in group */
	KRON_RESULT_OLD_BYTES = 3,      /* detail: offset of the first mismatch; in group */
	KRON_RESULT_PROTECT_FAILED = 4, /* detail: errno; in group */
	KRON_RESULT_NO_SLOT = 5,        /* process table full */
	KRON_RESULT_VERSION = 6,        /* runtime and collector are of different versions */
	KRON_RESULT_NO_RSEQ = 7,        /* bus device: the C library registers no rseq area */
	KRON_RESULT_BOARD = 8,          /* bus exact: the model in the segment makes no sense */
	KRON_RESULT_SHARED = 9, /* detail: offset of an instruction that is in another window */
	KRON_RESULT_BUSY =
		10 /* it is being answered something else; in group: a goroutine is inside
				 a window.  Nothing was done */
};
enum kron_result_kind { KRON_RESULT_GROUP = 1, KRON_RESULT_END = 2 };
/* END: KRON_RESULT_MAP_FAILED with EEXIST is not a refusal this time, the runtime asks again. */
#define KRON_RESULT_AGAIN 1u
struct kron_result {
	uint32_t magic;
	uint32_t kind;
	uint32_t code; /* GROUP: why; END: why nothing at all could be applied, or OK */
	uint32_t flags;
	uint64_t detail;
	uint32_t group;
	uint32_t groups_applied;
	uint32_t groups_refused;
	int32_t pid;
	uint32_t proc_uid; /* START: the slot that the runtime claimed */
	uint32_t proc_slot;
};

/*
 * ---- contract between trampolines and runtime ----
 *
 * A block starts with a head of KRON_BLOCK_HEAD bytes; probe sites call the entries in it
 * by rel32, whatever the distance to libkron-rt.so:
 *
 *   +0   ff 25 0a 00 00 00     jmp *16(%rip base)   -> probe thunk, through the word at +16
 *   +8   ff 25 0a 00 00 00     jmp *24(...)         -> hook thunk, through the word at +24
 *   +16  .quad thunk
 *   +24  .quad hook_thunk
 *   +32  ff 25 0a 00 00 00     jmp *48(...)         -> payload thunk
 *   +40  ff 25 0a 00 00 00     jmp *56(...)         -> action thunk
 *   +48  .quad payload_thunk
 *   +56  .quad action_thunk
 *   +64  .long offset of struct kron_tables (tables.h), 0 = none
 *   +72  KRON_BLOCK_ID
 *   +80  ff 25 0a 00 00 00     jmp *96(...)         -> wide thunk
 *   +88  ff 25 12 00 00 00     jmp *112(...)        -> timed thunk
 *   +96  .quad wide_thunk
 *   +104 ff 25 0a 00 00 00     jmp *120(...)        -> memory thunk
 *   +112 .quad timed_thunk
 *   +120 .quad memory_thunk
 *
 * A probe in a trampoline, wherever the program's own instruction stood with stack pointer S:
 *
 *   48 8d 64 24 80              lea  -128(%rsp),%rsp      red zone
 *   51                          push %rcx
 *   0f b6 0c 25 gate32          movzbl gate(level),%ecx   absolute
 *   e3 0c                       jrcxz 1f                  flags stay
 *   50                          push %rax
 *   b8 event32                  mov  $event,%eax
 *   e8 rel32                    call block+0, or +88
 *   58                          pop  %rax
 *   59                       1: pop  %rcx
 *   48 8d a4 24 80 00 00 00     lea  128(%rsp),%rsp
 *
 * The thunk finds S at KRON_THUNK_SP + %rsp on entry, the gate's value (KRON_GATE_*: take or
 * drop, and the level) in %ecx, the event in %eax.  It changes no register but %rcx and %rax
 * (which the trampoline restores) and no flag.
 *
 * A hook is the same without gate and jrcxz (always on), with the hook number for the event
 * and `call block+8`:
 *
 *   48 8d 64 24 80 51 50 b8 hook32 e8 rel32 58 59 48 8d a4 24 80 00 00 00
 *
 * A place of the user's (inject/plan/action.h has the sequences) calls
 *
 *   block+32   with the event in %eax, the gate's value in %ecx, KRON_GATE_RESOURCE added for a
 *              Resource sample, and the payload in the 8 bytes above the return address; low 32
 *              bits of it count
 *   block+80   like block+32; all 64 bits of the payload count where the bus has room for them
 *   block+104  like block+32; the payload is the address that struct kron_memory counts from, which stands
 *              KRON_MEMORY_AT bytes after the return address, with a jump over it in front
 *   block+40   with KRON_ACTION in %eax and 8 bytes of data above the return address: a store
 *              to the board as the session's bus understands it.  It tests the gate itself.
 *
 * They change no register but %rax (and the first %rcx), and no flag.
 *
 * Counters on the lane bus: %fs:counts holds the address of a word, which holds the address of
 * the calling thread's counters (KRON_COUNT_BANK of them); the word is 0 when the thread has none yet,
 * and in a forked child (it lies in memory that is wiped).  Then block+40 makes them.  Words
 * KRON_CALLS_WORD and later after that one are the same for the counters of calls (segment.h).
 *
 * Page counters: the word after that one, %fs:counts + 8, holds the address of the calling thread's
 * table of pages, KRON_PAGE_TABLE_SIZE bytes that are wiped in a forked child; a thread without any
 * has one that is all zero.  An entry is a record's address (struct kron_page) less KRON_NO_PAGE_ADDR,
 * so zero leads to the record of no page.  By function a table has KRON_FUNCTION_TABLE_SIZE bytes.
 */
#define KRON_BLOCK_ID 72u    /* in a file from `kron patch`: which plan the block is of */
#define KRON_BLOCK_ID_LEN 8u /* else int3 */
#define KRON_BLOCK_HEAD 128u
#define KRON_BLOCK_THUNK 0u
#define KRON_BLOCK_HOOK 8u
#define KRON_BLOCK_PAYLOAD 32u
#define KRON_BLOCK_ACTION 40u
#define KRON_BLOCK_WIDE 80u
#define KRON_BLOCK_TIMED 88u
#define KRON_BLOCK_MEMORY 104u
/*
 * A value from memory: at the address + place[0] stands it, or another address, to which place[1] is added ...
 * A sample is taken when all conditions hold; what cannot be read meets none.
 */
#define KRON_MEMORY_AT 2u
#define KRON_MEMORY_PLACES 4u
#define KRON_MEMORY_CONDITIONS 4u
/*
 * Instead of the last place, where no distance can be: what stands before it is a descriptor, and the value is what the
 * kernel says of it.  A number: the socket's, 64 bits; 0: it is no socket.  An array: struct kron_endpoints, about once
 * for a socket.
 */
#define KRON_PLACE_SOCKET INT32_MIN
/* Both ends of a socket. Addresses of IPv4 are written as ::ffff:a.b.c.d, bytes and ports in the network's order. */
struct kron_endpoints {
	uint32_t protocol; /* of IP; 0: it is a socket of another family */
	uint16_t local_port, peer_port;
	uint32_t socket[2]; /* its number, low half first; of no other until the host boots again */
	uint32_t network[2]; /* that of its network namespace; 0: the kernel does not say */
	uint8_t local[16], peer[16];
};
_Static_assert(sizeof(struct kron_endpoints) == 56, "a value of 14 words");
enum kron_compare {
	KRON_COMPARE_EQ,
	KRON_COMPARE_NE,
	KRON_COMPARE_LE,
	KRON_COMPARE_GE,
	KRON_COMPARE_LT,
	KRON_COMPARE_GT
};
struct kron_memory_condition { /* (value & mask) compare number, both of `bits` bits */
	uint8_t compare, bits, is_signed, pad[5];
	uint64_t mask, number;
};
struct kron_memory {
	uint8_t bits; /* of the value: 8, 16, 32, 64; 0: it is a text, which a zero ends */
	uint8_t nplaces, nconditions;
	uint8_t count; /* a text: so many bytes belong to it at most, 0: no matter how many; else an array of so
			* many, of KRON_TEXT_MAX bytes at most; 0: it is one number */
	int32_t place[KRON_MEMORY_PLACES]; /* the last one may be KRON_PLACE_SOCKET */
	struct kron_memory_condition
		condition[KRON_MEMORY_CONDITIONS]; /* only so many stand there */
} __attribute__((packed));
#define KRON_GATE_RESOURCE 0x100u
/* A store to a chip word: what the action thunk is told. */
#define KRON_ACTION(word, level) ((uint32_t)(word) | (uint32_t)(level) << 8)
#define KRON_ACTION_GATED 0x1000u /* only while the level is on */
#define KRON_ACTION_COUNT 0x2000u /* the data is how many times to store */
#define KRON_ACTION_CALLS 0x4000u /* one more call of the function whose number, 32 bits, ... */
#define KRON_ACTION_NUMBER 5u     /* ... stands so far after the address that the data is */
/*
 * References to memory, instead of a chip word: a size in bytes, how many reads and writes there are of
 * that many, and the data is the first one's address.  With KRON_ACTION_REPEATED it is a string
 * instruction with a rep prefix: the size of an element, once for what %rsi and once for what %rdi
 * points to, and the data is its own address and 8: the return address lies 16 below that.
 */
#define KRON_ACTION_PAGES 0x80000000u
#define KRON_ACTION_REPEATED 0x40000000u
#define KRON_ACTION_LINES 0x20000000u /* of 64 bytes, not pages */
/* By function: struct kron_page's number of it stands in the upper half of %rax. */
#define KRON_ACTION_BY_FUNCTION 0x10000000u
#define KRON_ACTION_REFERENCES(size, reads, writes) \
	(KRON_ACTION_PAGES | (uint32_t)(size) | (uint32_t)(reads) << 16 | (uint32_t)(writes) << 20)
#define KRON_THUNK_SP (128 + 8 + 8 + 8) /* red zone, rcx, rax, return address */

/* Hooks: places where the runtime itself must act.  X(id, symbol, in which module) */
enum kron_hook {
	KRON_HOOK_EXECVE = 0,    /* libc execve: put the environment back */
	KRON_HOOK_EXECVEAT = 1,  /* libc execveat */
	KRON_HOOK_DL_STATE = 2,  /* ld.so _dl_debug_state: modules came or went */
	KRON_HOOK_PRCTL = 3,     /* libc prctl: a seccomp filter is coming */
	KRON_HOOK_SYSCALL = 4,   /* libc syscall(): likewise, and raw exec */
	KRON_HOOK_FEXECVE = 5,   /* libc fexecve, which makes the system call itself */
	KRON_HOOK_SIGACTION = 6, /* libc sigaction: a handler of faults is installed */
	/* After the `syscall` of libc mmap and mremap: code may have been mapped once more. */
	KRON_HOOK_MMAP = 7,
	KRON_HOOK_MREMAP = 8,
	KRON_HOOK_MPROTECT = 9, /* libc mprotect: code may become writable */
	KRON_HOOK_EXIT = 10,    /* libc _exit: a child with borrowed memory gives it back */
	KRON_HOOK_VFORK = 11,   /* libc vfork: such a child begins */
	/* libc clone: likewise, by its flags; and threads that share their thread data, or bring some */
	KRON_HOOK_CLONE = 12,
	KRON_HOOK_SPAWN = 13, /* libc posix_spawn: such a child; it has two, for older programs */
	KRON_HOOK_SPAWN_OLD = 14,
	KRON_HOOK_SPAWNP = 15, /* libc posix_spawnp */
	KRON_HOOK_SPAWNP_OLD = 16,
	KRON_HOOK_ARCH_PRCTL = 17, /* libc arch_prctl: %fs is to lead elsewhere */
	/* A file from kron patch that has no libkron-rt.so: where it calls sigaction. */
	KRON_HOOK_HANDLERS = 18,
	KRON_HOOK_MLOCKALL = 19, /* the `syscall` in libc mlockall: ours is not to be locked */
	KRON_HOOK_SYMBOLS = 20,  /* this many are found by their names */
	/* In front of a `syscall` whose number is one of these, or that may be for any:
	 * rt_sigaction, prctl, seccomp, mlockall, execve, execveat, arch_prctl, clone, clone3.  Not
	 * in libc. */
	KRON_HOOK_SYSTEM_CALL = KRON_HOOK_SYMBOLS,
	/* In front of an instruction that changes %fs or its base. */
	KRON_HOOK_FS,
	/* In front of the instruction that takes the stack pointer back to a frame that goes on, when frames below
	 * it are left for good: an unwinder's last steps, of libgcc's functions and LLVM's, and longjmp's, of glibc
	 * and musl.  Each has the new stack pointer somewhere else. */
	KRON_HOOK_UNWIND,
	KRON_HOOK_UNWIND_LLVM,
	KRON_HOOK_LONGJMP,
	KRON_HOOK_LONGJMP_MUSL,
	KRON_HOOK_COUNT
};
static inline int kron_hook_is_unwind(uint32_t hook)
{
	return hook - KRON_HOOK_UNWIND <= KRON_HOOK_LONGJMP_MUSL - KRON_HOOK_UNWIND;
}

#endif
