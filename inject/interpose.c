/* SPDX-License-Identifier: MIT */
/* interpose.c - see interpose.h */
#define _GNU_SOURCE
#include "inject/interpose.h"

#include <stdlib.h>
#include <string.h>

#include "inject/code_map.h"
#include "inject/eh_frame.h"
#include "inject/tactics.h"

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
 * Linkers describe all entries of a table by one expression: behind byte N of an entry, where
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

/* To the planner each jump is a function: what stands around it is the linker's business. */
static void list_jumps(struct functions *out, const struct elf_image *img,
		       const struct plan_request *request)
{
	uint64_t *at = xmalloc((request->nplaces + 1) * sizeof(*at));
	struct eh_frame frame;

	eh_frame_read(&frame, img);
	memset(out, 0, sizeof(*out));
	out->v = xcalloc(request->nplaces + 1, sizeof(*out->v));
	for (size_t i = 0; i < request->nplaces; i++)
		at[i] = request->places[i].vaddr;
	qsort(at, request->nplaces, sizeof(*at), compare_places);
	for (size_t i = 0; i < request->nplaces; i++) {
		uint64_t room = elf_image_room(img, at[i]);
		const uint8_t *p = room ? elf_image_at(img, at[i], room < 15 ? room : 15) : NULL;
		struct insn in;

		if ((i && at[i] == at[i - 1]) || !p ||
		    !insn_decode(&in, p, room < 15 ? room : 15, at[i]) ||
		    in.kind != INSN_JMP_INDIRECT)
			continue;
		out->v[out->n] = (struct function){.start = at[i],
						   .end = at[i] + in.len,
						   .has_size = true,
						   .has_fde = is_framed(&frame, at[i]),
						   .parent = (uint32_t)out->n,
						   .fde_rank = FUNCTION_NONE};
		out->n++;
	}
	eh_frame_free(&frame);
	xfree(at);
}

int interpose_plan(struct plan **out, const struct elf_image *img,
		   const struct plan_request *request, struct err *err)
{
	struct plan_options opt = {.request = request, .tactics = USE_JUMP, .results = true};
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

bool interpose_knows(const char *name)
{
	size_t len = strcspn(name, "@");

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strncmp(known[i], name, len) && !known[i][len])
			return true;
	return false;
}

bool interpose_is_on(uint32_t tactics)
{
	return !tactics || tactics & USE_IMPORT;
}

void interpose_mark(struct plan *plan, const struct elf_image *img, uint32_t tactics)
{
	struct links *l = interpose_is_on(tactics) ? links_make(img) : NULL;

	for (size_t i = 0; l && i < plan->nprobes; i++) {
		struct plan_probe *p = &plan->probes[i];

		if (p->kind != PROBE_ENTRY || p->site != UINT32_MAX)
			continue;
		vec_for(&l->exports, e)
			if (e->value == p->vaddr)
				p->tactic = TACTIC_IMPORT;
	}
	links_free(l);
}
