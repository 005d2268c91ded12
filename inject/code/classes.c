/* SPDX-License-Identifier: MIT */
/* classes.c - walks the instructions of functions once and picks those of a class. */
#include "inject/code/classes.h"

static const char *const keys[CLASS_COUNT] = {
#define X(id, key, text) key,
	PLACE_CLASSES(X)
#undef X
};

const char *class_key(enum place_class c)
{
	return keys[c];
}

static bool is_branch(const struct insn *in)
{
	return in->kind == INSN_JMP || in->kind == INSN_JCC || in->kind == INSN_JMP_INDIRECT;
}

static bool touches_memory(const struct insn *in, const uint8_t *code)
{
	struct insn_accesses a;

	return insn_accesses(&a, code, in->len, in->addr) && (a.n || a.is_unknown);
}

/* Of CLASS_BLOCKS only class_list() can tell. */
static bool class_has(enum place_class c, const struct insn *in, const uint8_t *code)
{
	switch (c) {
	case CLASS_INSNS:
		return true;
	case CLASS_BRANCHES:
		return is_branch(in);
	case CLASS_LOADS:
		return in->loads;
	case CLASS_STORES:
		return in->stores;
	case CLASS_ACCESSES:
		return touches_memory(in, code);
	case CLASS_CALLS:
		return in->kind == INSN_CALL || in->kind == INSN_CALL_INDIRECT;
	case CLASS_BLOCKS:
	case CLASS_COUNT:
		break;
	}
	return false;
}

struct walk {
	struct class_places *out;
	const struct code_map *map;
	enum place_class c;
	bool starts_block; /* the instruction before was a branch, or a ret */
};

/* Operands are looked at only where the class is about them. */
static bool decode(const struct walk *w, const uint8_t *code, uint64_t room, uint64_t at,
		   struct insn *in)
{
	if (w->c == CLASS_LOADS || w->c == CLASS_STORES)
		return insn_decode(in, code, room, at);
	return insn_scan(in, code, room, at);
}

static void visit(struct walk *w, const struct insn *in, const uint8_t *code)
{
	bool starts =
		w->starts_block || code_map_flags(w->map, in->addr) & (CODE_TARGET | CODE_CONSTANT);

	w->starts_block = is_branch(in) || in->kind == INSN_RET || in->kind == INSN_TRAP;
	if (code_map_flags(w->map, in->addr) & (CODE_PADDING | CODE_DATA)) {
		w->out->filler += w->c == CLASS_INSNS;
		return;
	}
	if (w->c == CLASS_BLOCKS ? starts : class_has(w->c, in, code))
		*vec_push(&w->out->v) = in->addr;
}

static void walk_function(struct walk *w, const struct function *f, uint64_t lo, uint64_t hi)
{
	const uint8_t *code = elf_image_at(w->map->img, f->start, f->end - f->start);
	struct insn in;

	w->starts_block = true;
	for (uint64_t at = f->start; code && at < f->end; at += in.len) {
		in.len = 1;
		if (!(code_map_flags(w->map, at) & CODE_INSN) ||
		    !decode(w, code + (at - f->start), f->end - at, at, &in))
			continue;
		if (at >= lo && at < hi)
			visit(w, &in, code + (at - f->start));
	}
}

void class_list(struct class_places *out, const struct code_map *map, enum place_class c,
		uint64_t lo, uint64_t hi)
{
	struct walk w = {.out = out, .map = map, .c = c};

	for (size_t i = 0; i < map->functions->n; i++) {
		const struct function *f = &map->functions->v[i];

		if (f->start < hi && f->end > lo)
			walk_function(&w, f, lo, hi);
	}
}

void class_list_function(struct class_places *out, const struct code_map *map, enum place_class c,
			 const struct function *f)
{
	struct walk w = {.out = out, .map = map, .c = c};

	walk_function(&w, f, 0, UINT64_MAX);
}
