/* SPDX-License-Identifier: MIT */
/* list_places.c - `kron list --places`: a class of places as a request, and its plan. */
#include "cmd/list_places.h"

/* One action for all: a count. */
static const struct place_action count = {.kind = ACTION_COUNT, .ungated = 1};

static struct place_request *make_request(struct class_places *found)
{
	struct place_request *v = xcalloc(found->v.n, sizeof(*v));

	for (size_t i = 0; i < found->v.n; i++)
		v[i].vaddr = found->v.v[i];
	vec_free(&found->v);
	return v;
}

static int plan_class(struct plan **out, uint64_t *filler, const struct code_map *map,
		      enum place_class c, struct plan_options *opt, struct err *err)
{
	struct class_places found = {0};
	struct plan_request request = {.actions = &count, .nactions = 1};
	int r;

	class_list(&found, map, c, 0, UINT64_MAX);
	*filler = found.filler;
	request.nplaces = found.v.n;
	request.places = make_request(&found);
	opt->request = &request;
	r = plan_make_from(out, map, opt, err);
	opt->request = NULL;
	xfree((void *)request.places);
	return r;
}

int list_plan_places(struct plan **out, uint64_t *filler, const struct elf_image *img,
		     enum place_class c, struct plan_options *opt, struct err *err)
{
	struct functions fns = {0};
	struct code_map *map;
	int r = functions_find(&fns, img, err);

	if (r)
		return r;
	r = code_map_build(&map, img, &fns, err);
	if (r == 0) {
		r = plan_class(out, filler, map, c, opt, err);
		code_map_free(map);
	}
	functions_free(&fns);
	return r;
}
