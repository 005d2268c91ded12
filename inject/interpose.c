/* SPDX-License-Identifier: MIT */
/* interpose.c - see interpose.h */
#include "inject/interpose.h"

#include <stdlib.h>
#include <string.h>

#include "inject/code_map.h"
#include "inject/tactics.h"

static int compare_places(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* To the planner each jump is a function: what stands around it is the linker's business. */
static bool list_jumps(struct functions *out, const struct elf_image *img,
		       const struct plan_request *request)
{
	uint64_t *at = xmalloc((request->nplaces + 1) * sizeof(*at));

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
						   .has_fde = true,
						   .parent = (uint32_t)out->n,
						   .fde_rank = FUNCTION_NONE};
		out->n++;
	}
	xfree(at);
	return out->n;
}

int interpose_plan(struct plan **out, const struct elf_image *img,
		   const struct plan_request *request, struct err *err)
{
	struct plan_options opt = {.request = request, .tactics = USE_JUMP};
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
