/* SPDX-License-Identifier: MIT */
/* paths.h - where kron's own files are. */
#ifndef BASE_PATHS_H
#define BASE_PATHS_H

#include <stddef.h>

#include "base/err.h"

/*
 * Absolute path of libkron-rt.so: $KRON_RUNTIME, else beside this executable in the build tree
 * (DIR/runtime/), else as installed (DIR/../lib/kron/), else where `make install` put it.
 * -ENOENT with a sentence when it is at none of them; LD_PRELOAD can take neither a blank nor
 * a colon, so a path with one is -EINVAL.
 */
int paths_runtime(char *out, size_t size, struct err *err);

/*
 * Path of a pack of probes, NAME.probe: in $KRON_PACKS, else beside this executable in the build
 * tree (DIR/probes/packs/), else as installed.  -ENOENT when it is in none of them.
 */
int paths_pack(char *out, size_t size, const char *name);
/* Where packs are looked for, for messages. */
const char *paths_packs(void);

#endif
