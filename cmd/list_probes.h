/* SPDX-License-Identifier: MIT */
/* list_probes.h - `kron list -p`: where a user's probes are in a file, and how each is taken. */
#ifndef CMD_LIST_PROBES_H
#define CMD_LIST_PROBES_H

#include "base/json.h"
#include "inject/elf/elf_image.h"
#include "inject/plan/plan.h"
#include "inject/resolve/resolve.h"

struct probe_list {
	struct resolution found;
	struct plan *plan;
	uint32_t *probe; /* by place: its number in the plan */
};

/* The file is taken as the main executable, and as every OBJ: that its name fits. */
int probe_list_make(struct probe_list *out, const struct elf_image *img, struct probe_set *set,
		    const char *path, struct plan_options *opt, struct err *err);
void probe_list_free(struct probe_list *l);
void probe_list_print(const struct probe_list *l, const struct probe_set *set);
void probe_list_json(struct json *j, const struct probe_list *l, const struct probe_set *set,
		     const char *path);
/* How many probes found no place. */
size_t probe_list_missing(const struct probe_list *l);

#endif
