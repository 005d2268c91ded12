/* SPDX-License-Identifier: MIT */
/*
 * plan_jumps.h - where the exits of a plan that are jumps lead to, and by which names other modules
 * import its functions.  It follows from the plan and the image: a file's plan that a patched file
 * brings along (patch_info.h) need not say it.
 */
#ifndef INJECT_PLAN_JUMPS_H
#define INJECT_PLAN_JUMPS_H

#include "inject/plan/plan.h"

/* Fills in the plan's jumps, the exits' plan_probe.action, and the functions' aliases. */
void plan_add_jumps(struct plan *p, const struct elf_image *img);
/* Removes those jumps. */
void plan_drop_jumps(struct plan *p);

#endif
