/* SPDX-License-Identifier: MIT */
/*
 * window.h - which instructions may be displaced together.
 *
 *   addr                 addr + code_len   addr + len
 *   | insn 0 | insn 1 | ... | last insn |  padding  |
 *   |--- 5 or 2 bytes: the jump ---|
 *
 * A window is sound when control can enter it only through its first byte: whoever else comes
 * there (another branch, an address constant, a return, a landing pad) would land in the
 * middle of the jump.  Bytes after the jump keep their values, but the instructions that
 * start before them are gone, so every instruction but the first has to be unreachable from
 * elsewhere.
 *
 * The instructions are not kept: whoever wants them decodes them again (window_decode), which
 * is cheaper than carrying them about.
 *
 * Nothing here writes anything or knows about probes.
 */
#ifndef INJECT_WINDOW_H
#define INJECT_WINDOW_H

#include "inject/code/code_map.h"
#include <kron/tables.h>
#include <kron/wire.h>

#define WINDOW_JUMP 5u  /* bytes of jmp rel32 */
#define WINDOW_SHORT 2u /* bytes of jmp rel8 */
#define WINDOW_FAR 7u   /* bytes of jmp *abs32 */
/* Windows for entries and exits, and long ones: straight runs with a probe anywhere. */
#define WINDOW_MAX 24u
#define WINDOW_INSNS 16u
#define WINDOW_LONG_MAX KRON_WINDOW_MAX
#define WINDOW_LONG_INSNS 128u

/* State of a byte of code. */
enum planner_byte {
	BYTE_TAKEN, /* by a draft; or another chunk's (plan_rounds.c) */
	BYTE_FREE,
	BYTE_DEAD,  /* taken, but its value is nobody's: a landing may stand there (is_long) */
	BYTE_LOCKED /* of code that is copied (copied.h): free, but only while it is at work */
};

struct window {
	uint64_t addr;
	uint16_t len;      /* all that is displaced, <= WINDOW_LONG_MAX */
	uint16_t code_len; /* without the padding */
	uint16_t dead;     /* bytes [jump, dead) are nobody's any more: a jump may stand there */
	uint8_t n;         /* instructions */
	bool ends;         /* the last one does not fall through; a call counts */
};

struct window_scope {
	const struct code_map *map;
	const uint8_t *bytes; /* enum planner_byte, from map->lo */
	uint64_t lo, hi;      /* the function, or the part of it, that the window must lie in */
	uint8_t jump;         /* bytes that are written: WINDOW_JUMP, WINDOW_SHORT or WINDOW_FAR */
	bool one_only;        /* an unresolved indirect jump: every other address stays alive */
	bool is_long;         /* up to WINDOW_LONG_MAX bytes instead of WINDOW_MAX */
};

/*
 * Make the window that starts at addr, reaches over the instruction at `through` (addr or
 * later) and is at least as long as the jump.  REFUSAL_NONE, or the first reason against it.
 */
enum refusal window_make(struct window *w, const struct window_scope *scope, uint64_t addr,
			 uint64_t through);

/*
 * Make the window that starts at addr and goes on, towards `through`, as far as windows may:
 * what cannot be displaced ends it, as long as there is room for the jump.
 */
enum refusal window_reach(struct window *w, const struct window_scope *scope, uint64_t addr,
			  uint64_t through);

/* The instruction at vaddr, as insn_scan() sees it. */
bool window_decode(const struct code_map *map, uint64_t vaddr, struct insn *out);

/*
 * How much padding that nobody holds follows the instruction, scope->jump at most.  After a trap
 * only that outside the function counts: a handler may step over the trap.
 */
unsigned window_padding(const struct window_scope *scope, const struct insn *in);

/* Does control never reach what follows this instruction, but through its target? */
bool window_insn_ends(const struct insn *in);

/* Why nobody but the instruction before may lead to vaddr: REFUSAL_NONE if that is so. */
enum refusal window_entered_at(const struct code_map *map, uint64_t vaddr);

/* Does one of its instructions start at vaddr? */
bool window_has(const struct window *w, const struct code_map *map, uint64_t vaddr);

#endif
