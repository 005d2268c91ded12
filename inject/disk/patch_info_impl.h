/* SPDX-License-Identifier: MIT */
/*
 * patch_info_impl.h - what writer and reader of a plan's description have in common.
 *
 *   description   functions | probes | actions | sites, each with its probe sequences | checksum
 *                 of the old text | events          each list with its length in front
 *
 * It is a run of numbers, seven bits a byte.  What comes next is mostly foreseen: a probe is one
 * byte when it differs from the one before as that did from its own predecessor; a sequence is
 * named by the number of the first one that looked like it; an event mostly has its function's
 * name.  Not in it is what the file says
 * elsewhere: old bytes stand in the text, unless jumps were written over them; the instruction
 * map is in the block's tables; and the first bytes of a sequence awake are known by its kind.
 *
 * Private to patch_*.c.
 */
#ifndef INJECT_PATCH_INFO_IMPL_H
#define INJECT_PATCH_INFO_IMPL_H

#include "inject/disk/patch_info.h"
#include "inject/plan/window.h"

/* A probe's first byte: how far its address is from the last one's, and these. */
#define PROBE_FAR 15u /* farther */
#define PROBE_SITE_BIT 4u
enum { PROBE_SITE_SAME, PROBE_SITE_NEXT, PROBE_SITE_OTHER, PROBE_SITE_NONE, PROBE_SITES };
#define PROBE_SAME_WHAT 0x40u /* tactic or refusal: as of the last one with the same of those */
#define PROBE_SAME_REST 0x80u

#define PATCH_KEYS 4096u
#define NAME_MAX_LEN (64u << 10)

struct patch_foresight {
	struct plan_probe probe; /* the last one; site: of the last one that has one */
	uint32_t event_step;
	uint8_t what[PROBE_SITES];
	uint32_t function; /* of the last site */
	uint32_t fixup_probe;
	uint16_t cold;
	/* looks of sequences, in the order in which they came */
	unsigned nkeys;
	uint64_t keys[PATCH_KEYS];
};

bool patch_is_foreseen(const struct patch_foresight *next, const struct plan_probe *p);
void patch_foresee_probe(struct patch_foresight *next, const struct plan_probe *p, unsigned way,
			 uint8_t what);

/* What fixups that look alike have in common. */
uint64_t patch_fixup_key(const struct plan_fixup *f);
/* nkeys: it is new, or there was no room for it. */
unsigned patch_find_key(const struct patch_foresight *next, uint64_t key);
void patch_note_key(struct patch_foresight *next, uint64_t key);

static inline uint16_t patch_cold_of(const struct plan_fixup *f)
{
	return (uint16_t)(f->value >> 32);
}

/* Which fixups still mean something once the file is written: those that wake up. */
static inline bool patch_is_kept(const struct plan_fixup *f)
{
	return f->kind == FIXUP_PROBE || f->kind == FIXUP_HOOK || f->kind == FIXUP_PLACE ||
	       f->kind == FIXUP_EVENT;
}

/*
 * What the name of the event at vaddr may begin with: its function's name, or, where that has none,
 * the last event's.  All such beginnings together have no more than PATCH_SHARED_MAX times the bytes
 * of the block: a hostile file could ask for much memory.
 */
#define PATCH_SHARED_MAX 8u
const char *patch_name_like(const struct plan_function *v, size_t n, const char *strings,
			    uint64_t vaddr, const char *last);

/* FNV-1a; it finds damage, not malice. */
#define PATCH_SUM_START 0xcbf29ce484222325
uint64_t patch_sum(const uint8_t *p, size_t n, uint64_t sum);
/* Of the text that the sites displace. */
uint64_t patch_old_sum(const struct plan *p);

#endif
