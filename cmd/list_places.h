/* SPDX-License-Identifier: MIT */
/* list_places.h - the plan of a request for every place of a class (classes.h). */
#ifndef CMD_LIST_PLACES_H
#define CMD_LIST_PLACES_H

#include "inject/code/classes.h"
#include "inject/plan/plan.h"

/* *filler: instructions left out because no control reaches them. */
int list_plan_places(struct plan **out, uint64_t *filler, const struct elf_image *img,
		     enum place_class c, struct plan_options *opt, struct err *err);

#endif
