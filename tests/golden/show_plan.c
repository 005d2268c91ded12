/* SPDX-License-Identifier: MIT */
/*
 * show_plan.c - prints the plan of an ELF file for golden.sh: every probe in words, and for
 * each of two pairs of addresses (module, trampolines) where the stubs and patched windows
 * are, in two files of raw bytes that golden.sh gives to objdump.
 *
 *   show_plan ELF DIR
 *     entry plain+0: jump, window 0x1000 of 5 bytes
 *     @ text0 0x555555555000 0x555555555000 0x555555555005 5    file, its address, start, end,
 *                                                             bytes that were written
 *
 * For windows.py it prints where every displaced instruction went, bound at bias 0:
 *
 *   show_plan --insns TACTICS ELF DIR        a place at every instruction, with these tactics
 * With a third argument the plan is that of a request:
 *
 *   show_plan ELF DIR PLACES     lines of PLACES: WAY, then of each place VADDR WHERE KIND LEVEL
 *                                WORD PAYLOAD REG UNGATED VALUE, the enums of request.h
 *
 *   show_plan --map ELF DIR
 *     block ADDRESS                            of DIR/block0
 *     site ADDRESS LENGTH STUB STUB_LENGTH FUNCTION PATCH_LENGTH LANDING
 *     insn STUB_ADDRESS ADDRESS                those of the site before
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "inject/bind/bind.h"
#include "inject/code/classes.h"
#include "inject/plan/plan.h"
#include "inject/plan/tactics.h"

static const struct {
	uint64_t bias, block;
} places[] = {
	{0x555555554000, 0x555555500000}, /* trampolines below a PIE */
	{0x7ffff7d00000, 0x7ffff8000000}, /* above a library */
};

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "show_plan: %s\n", what);
	exit(99);
}

static void write_file(const char *dir, const char *kind, int place, const void *bytes, size_t n)
{
	char *path = xasprintf("%s/%s%d", dir, kind, place);
	FILE *f = fopen(path, "w");

	if (!f || fwrite(bytes, 1, n, f) != n || fclose(f))
		die("cannot write");
	xfree(path);
}

#define PLACES_MAX 64
static struct place_request wanted[PLACES_MAX];
static struct place_action actions[PLACES_MAX];
static struct plan_request request = {.places = wanted, .actions = actions};
static enum kron_thunk way = KRON_THUNK_HARDWARE;

static void read_places(const char *path)
{
	FILE *f = fopen(path, "r");
	unsigned v[8];
	long value;

	if (!f || fscanf(f, "%u", &v[0]) != 1)
		die("no places");
	way = v[0];
	while (fscanf(f, "%x %u %u %u %u %u %u %u %ld", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5],
		      &v[6], &v[7], &value) == 9) {
		size_t i = request.nplaces++;

		wanted[i] = (struct place_request){
			.vaddr = v[0], .where = v[1], .action = i, .event = i};
		actions[i] = (struct place_action){.kind = v[2],
						   .level = v[3],
						   .word = v[4],
						   .payload = v[5],
						   .reg = v[6],
						   .ungated = v[7],
						   .value = value};
	}
	request.nactions = request.nplaces;
	fclose(f);
}

static const char *kind_word(const struct plan_probe *p)
{
	static const char *const words[PROBE_KINDS] = {"entry", "exit", "hook", "place"};

	return p->kind == PROBE_PLACE && p->where == PLACE_AFTER ? "after" : words[p->kind];
}

static void show_probes(const struct plan *plan)
{
	for (size_t i = 0; i < plan->nprobes; i++) {
		const struct plan_probe *p = &plan->probes[i];
		const struct plan_function *f = &plan->functions[p->function];

		if (p->function == PLAN_NO_FUNCTION) {
			printf("place %#" PRIx64 ": refused, %s\n", p->vaddr,
			       refusal_text(p->refusal));
			continue;
		}
		printf("%s %s%+" PRId64 ": ", kind_word(p), plan->strings + f->name,
		       (int64_t)(p->vaddr - f->vaddr));
		if (p->site == UINT32_MAX)
			printf("refused, %s\n", refusal_text(p->refusal));
		else
			printf("%s, window %#" PRIx64 " of %d bytes\n", tactic_key(p->tactic),
			       plan->sites[p->site].vaddr, plan->sites[p->site].window);
	}
}

/* The bytes of the module as they are in memory once patched. */
static uint8_t *patched_text(const struct elf_image *img, const struct bound *b, uint64_t bias)
{
	const uint8_t *old = elf_image_at(img, b->patch_addr - bias, 1);
	uint8_t *text = xcalloc(b->patch_len, 1);
	uint64_t room = elf_image_room(img, b->patch_addr - bias);

	if (!old)
		die("no text");
	memcpy(text, old, room < b->patch_len ? room : b->patch_len);
	for (size_t i = 0; i < b->npatches; i++)
		if (memcmp(text + b->patches[i].off, b->patches[i].old_bytes,
			   b->patches[i].old_len))
			die("the old bytes are not those of the file");
	for (size_t i = 0; i < b->npatches; i++)
		memcpy(text + b->patches[i].off, b->patches[i].new_bytes, b->patches[i].new_len);
	return text;
}

static void show_place(const struct plan *plan, const struct elf_image *img, int place,
		       const char *dir)
{
	uint8_t *selected = xmalloc(plan->nfunctions + 1), *text;
	uint32_t events[PLACES_MAX];
	struct binding b = {
		.plan = plan,
		.selected = selected,
		.event_base = 0x100,
		.level = 3,
		.bias = places[place].bias,
		.block = places[place].block,
		.table = 0x6afff000,
		.thunk = 0x1111111111111111,
		.hook_thunk = 0x2222222222222222,
		.payload_thunk = 0x3333333333333333,
		.action_thunk = 0x4444444444444444,
		.way = way,
		.counts = -0x40,
		.events = events,
		.nevents = PLACES_MAX,
	};
	struct bound bound;
	struct err err;

	memset(selected, 1, plan->nfunctions);
	for (unsigned i = 0; i < PLACES_MAX; i++)
		events[i] = 0x500 + i;
	if (bind_make(&bound, &b, &err))
		die(err.msg);
	printf("\nmodule at %#" PRIx64 ", trampolines at %#" PRIx64 "\n", b.bias, b.block);
	text = patched_text(img, &bound, b.bias);
	write_file(dir, "text", place, text, bound.patch_len);
	write_file(dir, "block", place, bound.block, bound.block_len);
	for (size_t i = 0; i < plan->nsites; i++) {
		const struct plan_site *s = &plan->sites[i];
		uint64_t window = b.bias + s->vaddr, at = b.block + bound.stub_at[i];

		printf("@ text%d %#" PRIx64 " %#" PRIx64 " %#" PRIx64 " %d\n", place,
		       bound.patch_addr, window, window + s->window, s->patch_len);
		if (s->landing)
			printf("@ text%d %#" PRIx64 " %#" PRIx64 " %#" PRIx64 " %d\n", place,
			       bound.patch_addr, b.bias + s->landing,
			       b.bias + s->landing + PLAN_LANDING, (int)PLAN_LANDING);
		for (unsigned k = 0; k < s->nrelays; k++) {
			uint64_t relay = b.bias + plan_relay_vaddr(plan, s, k);

			printf("@ text%d %#" PRIx64 " %#" PRIx64 " %#" PRIx64 " %d\n", place,
			       bound.patch_addr, relay, relay + PLAN_RELAY, (int)PLAN_RELAY);
		}
		printf("@ block%d %#" PRIx64 " %#" PRIx64 " %#" PRIx64 "\n", place, b.block, at,
		       at + s->code_len);
	}
	xfree(text);
	xfree(selected);
	bound_free(&bound);
}

static void show_map(const struct plan *plan, const char *dir)
{
	uint8_t *selected = xmalloc(plan->nfunctions + 1);
	struct binding b = {
		.plan = plan,
		.selected = selected,
		.block = (plan->reach_hi + 0xfffff) & ~0xfffffull,
	};
	struct bound bound;
	struct err err;

	memset(selected, 1, plan->nfunctions);
	if (bind_make(&bound, &b, &err))
		die(err.msg);
	write_file(dir, "block", 0, bound.block, bound.block_len);
	printf("block %#" PRIx64 "\n", b.block);
	for (size_t i = 0; i < plan->nsites; i++) {
		const struct plan_site *s = &plan->sites[i];
		uint64_t at = b.block + bound.stub_at[i];

		printf("site %#" PRIx64 " %d %#" PRIx64 " %u %#" PRIx64 " %d %#" PRIx64, s->vaddr,
		       s->window, at, s->code_len, plan->functions[s->function].vaddr, s->patch_len,
		       s->landing);
		for (unsigned k = 0; k < s->nrelays; k++)
			printf(" %#" PRIx64, plan_relay_vaddr(plan, s, k));
		printf("\n");
		for (uint32_t k = 0; k < s->nmaps; k++) {
			const struct plan_map *m = &plan->maps[s->first_map + k];

			if (m->shape == KRON_SHAPE_INSN || m->shape == KRON_SHAPE_CALL)
				printf("insn %#" PRIx64 " %#" PRIx64 "\n", at + m->stub_off,
				       s->vaddr + m->window_off);
		}
	}
	xfree(selected);
	bound_free(&bound);
}

/* A place at every instruction that is not filler: `movq $7,word`, twelve bytes each. */
static int plan_insns(struct plan **out, const struct elf_image *img, const char *tactics,
		      struct err *err)
{
	static const struct place_action store = {
		.kind = ACTION_STORE, .word = 4, .ungated = 1, .value = 7};
	struct plan_request request = {.actions = &store, .nactions = 1};
	struct plan_options opt = {.request = &request};
	struct class_places found = {0};
	struct functions fns = {0};
	struct place_request *v;
	struct code_map *map;
	int r;

	if (tactics_parse(&opt.tactics, tactics, err) || functions_find(&fns, img, err) ||
	    code_map_build(&map, img, &fns, err))
		return -1;
	class_list(&found, map, CLASS_INSNS, 0, UINT64_MAX);
	v = xcalloc(found.v.n, sizeof(*v));
	for (size_t i = 0; i < found.v.n; i++)
		v[i].vaddr = found.v.v[i];
	request.places = v;
	request.nplaces = found.v.n;
	r = plan_make_from(out, map, &opt, err);
	xfree(v);
	vec_free(&found.v);
	code_map_free(map);
	functions_free(&fns);
	return r;
}

int main(int argc, char **argv)
{
	bool map = argc > 1 && !strcmp(argv[1], "--map");
	const char *tactics = argc > 2 && !strcmp(argv[1], "--insns") ? argv[2] : NULL;
	struct plan_options opt = {.request = NULL};
	struct elf_image *img;
	struct plan *plan;
	struct err err;
	int r;

	argc -= map + 2 * (tactics != NULL);
	argv += map + 2 * (tactics != NULL);
	if (argc != 3 && argc != 4)
		die("[--map | --insns TACTICS] ELF DIR [PLACES]");
	if (argc == 4)
		read_places(argv[3]);
	opt.request = argc == 4 ? &request : NULL;
	if (elf_image_open(&img, argv[1], &err))
		die(err.msg);
	r = tactics ? plan_insns(&plan, img, tactics, &err) : plan_make(&plan, img, &opt, &err);
	if (r)
		die(err.msg);
	if (map)
		show_map(plan, argv[2]);
	else
		show_probes(plan);
	for (int i = 0; !map && plan->nsites && i < 2; i++)
		show_place(plan, img, i, argv[2]);
	plan_free(plan);
	elf_image_close(img);
	return 0;
}
