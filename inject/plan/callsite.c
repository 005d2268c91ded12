/* SPDX-License-Identifier: MIT */
/* callsite.c - see callsite.h */
#define _GNU_SOURCE
#include "inject/plan/callsite.h"

#include <stdlib.h>
#include <string.h>

#include "inject/code/code_map.h"
#include "inject/elf/eh_frame.h"
#include "inject/plan/tactics.h"

static int compare_places(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Where the CFA is at a jump. */
struct looking {
	uint64_t jump;
	struct eh_row row;
};

static bool look(uint64_t start, uint64_t end, const struct eh_row *row, void *ctx)
{
	struct looking *l = ctx;

	if (l->jump < start || l->jump >= end)
		return true;
	l->row = *row;
	return false;
}

/*
 * Linkers describe all entries of a table by one expression: after byte N of an entry, where
 * the number of the slot has been pushed, the CFA is 16 bytes away, before that 8.
 */
static bool is_linkers(const struct eh_fde *fde, uint64_t jump)
{
	/* def_cfa_expression: rsp + 8 + ((rip & 15) >= N) << 3 */
	static const uint8_t head[] = {0x0f, 0x0b, 0x77, 8, 0x80, 0, 0x3f, 0x1a};
	static const uint8_t tail[] = {0x2a, 0x33, 0x24, 0x22};
	const uint8_t *p = memmem(fde->insns, fde->ninsns, head, sizeof(head));

	if (!p || fde->insns + fde->ninsns - p < 13 || memcmp(p + 9, tail, sizeof(tail)))
		return false;
	return p[8] >= 0x30 && p[8] <= 0x3f && (jump & 15) + 6 < (uint64_t)p[8] - 0x30;
}

/* Nothing but the return address is on the stack, and .eh_frame says so. */
static bool is_framed(const struct eh_frame *frame, uint64_t jump)
{
	const struct eh_fde *fde = eh_frame_at(frame, jump);
	struct looking l = {.jump = jump, .row = {.reg = EH_REG_UNKNOWN}};

	if (!fde)
		return false;
	eh_frame_rows(frame, fde, look, &l);
	return (l.row.reg == EH_REG_RSP && l.row.offset == 8) ||
	       (l.row.reg == EH_REG_UNKNOWN && is_linkers(fde, jump));
}

/* To the planner each jump is a function: what stands around it is not its business. */
static void add_jumps(struct functions *out, const struct elf_image *img, const uint64_t *at,
		      size_t n)
{
	struct eh_frame frame;

	eh_frame_read(&frame, img);
	out->v = xrealloc(out->v, (out->n + n + 1) * sizeof(*out->v));
	for (size_t i = 0; i < n; i++) {
		uint64_t room = elf_image_room(img, at[i]);
		const uint8_t *p = room ? elf_image_at(img, at[i], room < 15 ? room : 15) : NULL;
		struct insn in;

		if ((i && at[i] == at[i - 1]) || !p ||
		    !insn_decode(&in, p, room < 15 ? room : 15, at[i]) ||
		    (in.kind != INSN_JMP_INDIRECT && in.kind != INSN_CALL_INDIRECT))
			continue;
		out->v[out->n] = (struct function){.start = at[i],
						   .end = at[i] + in.len,
						   .has_size = true,
						   .has_fde = is_framed(&frame, at[i]),
						   .is_stub = true,
						   .parent = (uint32_t)out->n,
						   .fde_rank = FUNCTION_NONE};
		out->n++;
	}
	eh_frame_free(&frame);
}

static void list_jumps(struct functions *out, const struct elf_image *img,
		       const struct plan_request *request)
{
	uint64_t *at = xmalloc((request->nplaces + 1) * sizeof(*at));

	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < request->nplaces; i++)
		at[i] = request->places[i].vaddr;
	qsort(at, request->nplaces, sizeof(*at), compare_places);
	add_jumps(out, img, at, request->nplaces);
	xfree(at);
}

static int compare_starts(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Parents are known by numbers: each begins as its own, and the code map tells them anew. */
static void add_stubs(struct functions *fns, const struct elf_image *img, const uint64_t *at,
		      size_t n)
{
	add_jumps(fns, img, at, n);
	if (fns->n)
		qsort(fns->v, fns->n, sizeof(*fns->v), compare_starts);
	for (uint32_t i = 0; i < fns->n; i++) {
		fns->v[i].is_part = false;
		fns->v[i].parent = i;
	}
}

void callsite_add_stubs(struct functions *fns, const struct elf_image *img,
			const struct callsite_links *l)
{
	uint64_t *at = xmalloc((l->imports.n + 1) * sizeof(*at));
	size_t n = 0;

	for (size_t i = 0; i < l->imports.n; i++)
		if (l->imports.v[i].jump && !functions_at(fns, l->imports.v[i].jump))
			at[n++] = l->imports.v[i].jump;
	if (n)
		qsort(at, n, sizeof(*at), compare_places);
	add_stubs(fns, img, at, n);
	xfree(at);
}

uint64_t callsite_add_stub(struct functions *fns, const struct elf_image *img,
			   const struct callsite_links *l, const char *name)
{
	for (size_t i = 0; i < l->imports.n; i++) {
		const struct callsite_import *im = &l->imports.v[i];

		if (!im->jump || strcmp(im->name, name))
			continue;
		if (!functions_at(fns, im->jump))
			add_stubs(fns, img, &im->jump, 1);
		return im->jump;
	}
	return 0;
}

/* ---- calls without a stub ---- */

/* Prefixes stand before the bytes that were found. */
#define PREFIXES_MAX 3u

static void check_call(struct callsite_links *l, struct callsite_call *c,
		       const struct code_map *map)
{
	uint64_t found = c->vaddr, slot = l->imports.v[c->import].slot;
	struct insn in;

	c->state = CALLSITE_NO;
	for (unsigned k = 0; k <= PREFIXES_MAX && c->state == CALLSITE_NO; k++) {
		if (!(code_map_flags(map, found - k) & CODE_INSN) ||
		    code_map_flags(map, found - k) & (CODE_PADDING | CODE_DATA) ||
		    !code_map_insn(map, found - k, &in) || in.len != k + 6 || !in.rip_relative ||
		    in.target != slot ||
		    in.kind != (c->jumps ? INSN_JMP_INDIRECT : INSN_CALL_INDIRECT))
			continue;
		c->state = CALLSITE_YES;
		c->vaddr = found - k;
	}
}

void callsite_check_calls(struct callsite_links *l, const struct code_map *map)
{
	vec_for(&l->calls, c)
		if (c->state == CALLSITE_UNKNOWN && functions_at(map->functions, c->vaddr))
			check_call(l, c, map);
}

/* Those functions stay that hold a call whose wanted[] is set. */
static void keep_callers(struct functions *fns, const struct callsite_links *l,
			 const uint8_t *wanted)
{
	uint8_t *keep = xcalloc(fns->n + 1, 1);
	size_t n = 0;

	for (size_t i = 0; i < l->calls.n; i++) {
		const struct function *f = functions_at(fns, l->calls.v[i].vaddr);

		if (f && wanted[i])
			keep[f - fns->v] = true;
	}
	for (size_t i = 0; i < fns->n; i++)
		if (keep[i])
			fns->v[n++] = fns->v[i];
	fns->n = n;
	xfree(keep);
}

int callsite_find_calls(struct callsite_links *l, const struct elf_image *img,
			const uint8_t *wanted, struct err *err)
{
	struct functions fns = {0};
	struct code_map *map;
	int code = functions_find(&fns, img, err);

	if (code)
		return code;
	keep_callers(&fns, l, wanted);
	code = code_map_build(&map, img, &fns, err);
	if (!code) {
		callsite_check_calls(l, map);
		for (size_t i = 0; i < l->calls.n; i++) /* in no function */
			if (wanted[i] && l->calls.v[i].state == CALLSITE_UNKNOWN)
				l->calls.v[i].state = CALLSITE_NO;
		code_map_free(map);
	}
	functions_free(&fns);
	return code;
}

/* ---- plans of stubs ---- */

int callsite_make_plan(struct plan **out, const struct elf_image *img,
		       const struct plan_request *request, struct err *err)
{
	struct plan_options opt = {.request = request};
	struct functions fns;
	struct code_map *map;
	int code;

	list_jumps(&fns, img, request);
	code = code_map_build(&map, img, &fns, err);
	if (!code) {
		code = plan_make_from(out, map, &opt, err);
		code_map_free(map);
	}
	functions_free(&fns);
	return code;
}

static const char *const known[] = {
	"_Znam",
	"_ZnamRKSt9nothrow_t",
	"_ZnamSt11align_val_t",
	"_ZnamSt11align_val_tRKSt9nothrow_t",
	"_Znwm",
	"_ZnwmRKSt9nothrow_t",
	"_ZnwmSt11align_val_t",
	"_ZnwmSt11align_val_tRKSt9nothrow_t",
	"accept",
	"accept4",
	"aligned_alloc",
	"calloc",
	"clock_nanosleep",
	"close",
	"connect",
	"epoll_wait",
	"fdatasync",
	"fsync",
	"malloc",
	"malloc_usable_size",
	"memalign",
	"memchr",
	"memcmp",
	"memcpy",
	"memmove",
	"memset",
	"mmap",
	"mprotect",
	"munmap",
	"nanosleep",
	"open",
	"open64",
	"openat",
	"poll",
	"posix_memalign",
	"pread",
	"pread64",
	"pthread_barrier_wait",
	"pthread_cond_broadcast",
	"pthread_cond_clockwait",
	"pthread_cond_signal",
	"pthread_cond_timedwait",
	"pthread_cond_wait",
	"pthread_create",
	"pthread_detach",
	"pthread_join",
	"pthread_mutex_clocklock",
	"pthread_mutex_lock",
	"pthread_mutex_timedlock",
	"pthread_mutex_trylock",
	"pthread_mutex_unlock",
	"pthread_rwlock_clockrdlock",
	"pthread_rwlock_clockwrlock",
	"pthread_rwlock_rdlock",
	"pthread_rwlock_timedrdlock",
	"pthread_rwlock_timedwrlock",
	"pthread_rwlock_tryrdlock",
	"pthread_rwlock_trywrlock",
	"pthread_rwlock_unlock",
	"pthread_rwlock_wrlock",
	"pthread_spin_lock",
	"pthread_spin_trylock",
	"pthread_spin_unlock",
	"pvalloc",
	"pwrite",
	"pwrite64",
	"read",
	"readv",
	"realloc",
	"reallocarray",
	"recv",
	"recvfrom",
	"recvmsg",
	"select",
	"sem_clockwait",
	"sem_post",
	"sem_timedwait",
	"sem_trywait",
	"sem_wait",
	"send",
	"sendmsg",
	"sendto",
	"strcasecmp",
	"strchr",
	"strcmp",
	"strcpy",
	"strdup",
	"strlen",
	"strncmp",
	"strncpy",
	"strndup",
	"strrchr",
	"strstr",
	"valloc",
	"waitpid",
	"write",
	"writev",
};

bool callsite_knows(const char *name)
{
	size_t len = strcspn(name, "@");

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strncmp(known[i], name, len) && !known[i][len])
			return true;
	return false;
}

bool callsite_is_on(uint32_t tactics)
{
	return !tactics || tactics & USE_CALLSITE;
}

bool callsite_is_entry(const struct plan *plan, const struct plan_probe *p)
{
	return p->kind == PROBE_PLACE && p->where == PLACE_BEFORE &&
	       p->function < plan->nfunctions && p->vaddr == plan->functions[p->function].vaddr &&
	       plan->actions[p->action].payload != PAYLOAD_ADDRESS;
}

void callsite_mark(struct plan *plan, const struct elf_image *img, uint32_t tactics)
{
	struct callsite_links *l = NULL;

	for (size_t i = 0; callsite_is_on(tactics) && i < plan->nprobes; i++) {
		struct plan_probe *p = &plan->probes[i];

		if ((p->kind != PROBE_ENTRY && !callsite_is_entry(plan, p)) ||
		    p->site != UINT32_MAX)
			continue;
		if (!l)
			l = callsite_links_make(img);
		vec_for(&l->exports, e)
			if (e->value == p->vaddr)
				p->tactic = TACTIC_CALLSITE;
	}
	callsite_links_free(l);
}
