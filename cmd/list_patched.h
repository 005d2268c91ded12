/* SPDX-License-Identifier: MIT */
/* list_patched.h - `kron list OUT`: the places of -p and -P in a file from kron patch. */
#ifndef CMD_LIST_PATCHED_H
#define CMD_LIST_PATCHED_H

#include "base/json.h"
#include "inject/disk/patch_info.h"

bool patched_has_places(const struct patch_info *info);
void patched_print_places(const struct patch_info *info);
/* The key "places" of the object that is open. */
void patched_json_places(struct json *j, const struct patch_info *info);

#endif
