/* SPDX-License-Identifier: MIT */
/*
 * first_probes.h - `kron ctl probe` on what the recording began with: -p and -P.
 *
 * They are planned together with the functions, and share windows with them.  So one that is removed sleeps, and
 * wakes when the same SPEC is added.  What starts later begins with it asleep.
 */
#ifndef COLLECT_FIRST_PROBES_H
#define COLLECT_FIRST_PROBES_H

#include "base/json.h"
#include "collect/changes/changes.h"

#define FIRST_PROBES_NONE 1

/* One of this name, or SPEC, is awake. */
bool first_probes_has(const struct changes *all, const char *name);
/* -ENOTSUP: it is of a kind that stays. */
int first_probes_remove(struct changes *all, const char *name, struct err *err);
/* The one that was asked for by the same words; FIRST_PROBES_NONE: none like it sleeps. */
int first_probes_wake(struct changes *all, const struct probe_spec *like, struct err *err);
void first_probes_list(struct changes *all, FILE *out, struct json *j);

#endif
