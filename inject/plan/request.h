/* SPDX-License-Identifier: MIT */
/*
 * request.h - the places that a user wants probes at, as data: what the probe language and
 * the options become before the planner sees them.
 *
 *   -p SPEC --probes/--> specs --resolve--> struct plan_request --plan_make--> plan
 *
 * Vaddrs are those of the module's file.  The caller owns all arrays; the plan keeps copies of
 * what it needs.  A place in no function, or not at the start of an instruction, is refused
 * like any other place: it stays in the plan with its reason.
 *
 * What an action does is the board's business (MultiKron, NISTIR 5993): a TRACE is a store to
 * word 96+level, a RESOURCE one to 112+level, a COUNT one to 80+j.
 */
#ifndef INJECT_REQUEST_H
#define INJECT_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum action_kind {
	ACTION_TRACE,    /* a sample of 20 bytes */
	ACTION_RESOURCE, /* a sample of 84 bytes: with the 16 counters */
	ACTION_COUNT,    /* counter += 1 */
	ACTION_STORE,    /* a store of `value` to a chip word */
	/* Lane bus: a counter += 1 (segment.h: struct kron_calls): of a function where it stands at an
	 * entry, the one of number `value` at a place. */
	ACTION_CALLS,
	ACTION_PAGES, /* what the instruction reads and writes is counted for its pages */
	ACTION_KINDS
};

/* What a sample's high data word carries: the low 32 bits of it, all 64 where the action is wide. */
enum payload_kind {
	PAYLOAD_SP, /* the stack pointer, as functions' probes have it, + place_action.value */
	PAYLOAD_ZERO,
	PAYLOAD_IMM,     /* place_action.value */
	PAYLOAD_REG,     /* place_action.reg, as the program has it there */
	PAYLOAD_ADDRESS, /* effective address, with segment base, of the instruction's memory
			  * operand; also with PLACE_AFTER it is taken before the instruction */
	PAYLOAD_VADDR, /* place_action.value, an address of the module's file, as it is in the process */
	PAYLOAD_KINDS
};

/* A sample is taken when all conditions hold. */
enum condition_what {
	CONDITION_REG,     /* a register, as the program has it there; not the stack pointer */
	CONDITION_PAYLOAD, /* what the sample would take along */
	CONDITION_CPU,     /* the number of the processor */
	CONDITION_WHATS
};
enum condition_compare {
	CONDITION_EQ,
	CONDITION_NE,
	CONDITION_LE,
	CONDITION_GE,
	CONDITION_LT,
	CONDITION_GT,
	CONDITION_COMPARES
};
/* (what & mask) compare number, both of `bits` bits. */
struct place_condition {
	uint8_t what, reg, compare;
	uint8_t bits; /* 8, 16, 32, 64 */
	uint8_t is_signed, has_mask;
	uint8_t pad[2];
	uint64_t mask, number; /* with a mask of 64 bits the number is one of 32 with sign */
};
#define PLACE_CONDITIONS 4u
#define PLACE_DEPTH 4u

struct place_action {
	uint8_t kind;        /* enum action_kind */
	uint8_t level;       /* filter level 0..15: the gate of every kind */
	uint8_t word;        /* COUNT: counter J, 0..15; STORE: chip word, 0..127 */
	uint8_t payload;     /* enum payload_kind; TRACE and RESOURCE */
	uint8_t reg;         /* PAYLOAD_REG: 0..15 as the hardware numbers them: rax rcx rdx rbx rsp
			  * rbp rsi rdi r8..r15 */
	uint8_t ungated;     /* STORE, COUNT: always, whatever the filter says */
	uint8_t is_wide;     /* TRACE: its payload has 64 bits where the bus has room for them */
	uint8_t nconditions; /* TRACE and RESOURCE */
	/* STORE: data, sign-extended from 32 bits; PAYLOAD_IMM, PAYLOAD_SP; PAGES: bits, PAGES_CALL_TOO and
	 * others of action_pages.h */
	uint64_t value;
	struct place_condition conditions[PLACE_CONDITIONS];
	/* TRACE: 0: the payload itself is taken.  Else it is an address, and the value is in memory: at it +
	 * place[0] stands the value, or another address, to which place[1] is added ... */
	uint8_t nplaces;
	uint8_t bits; /* of the value there; 0: it is a text */
	uint8_t count; /* an array of so many; of a text, how many bytes it has at most: 0, as many as there are */
	uint8_t unused[5];
	int32_t place[PLACE_DEPTH];
};

enum place_where {
	PLACE_BEFORE, /* before the instruction is executed, each time that it is */
	PLACE_AFTER,  /* when it has been executed and control has passed it; after a call: when
		       * it has returned.  A branch that is taken does not pass there. */
	PLACE_TAKEN,  /* of a conditional jump: each time that it is taken */
	PLACE_WHERES
};

struct place_request {
	uint64_t vaddr;       /* an instruction of the module */
	uint32_t where : 2;   /* enum place_where */
	uint32_t action : 30; /* index into plan_request.actions */
	uint32_t event;       /* index into the session's list of user events */
};

/*
 * Several places may share an instruction; their probes run in the order of the array.  The
 * array need not be sorted.
 */
struct plan_request {
	const struct place_request *places;
	size_t nplaces;
	const struct place_action *actions;
	size_t nactions;
	bool functions; /* the entries and exits of functions too */
	bool calls;     /* likewise, but of each function its entry alone, with actions[0], which
			 * is an ACTION_CALLS; no places */
};

/* NULL is a request for nothing. */
bool request_is_sound(const struct plan_request *r);
static inline bool request_has_places(const struct plan_request *r)
{
	return r && !r->calls;
}
bool request_is_action_sound(const struct place_action *a);
bool request_are_actions_alike(const struct place_action *a, const struct place_action *b);
/* Has it counts, of pages too, or stores? */
bool request_is_counting(const struct plan_request *r);
/* Has it references to memory? */
bool request_counts_pages(const struct plan_request *r);
/* The registers that its samples show as payload, which nothing else may lose: bits. */
uint16_t request_shown_registers(const struct plan_request *r);

#endif
