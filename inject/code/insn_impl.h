/* SPDX-License-Identifier: MIT */
/*
 * insn_impl.h - the two implementations of insn_scan(); private to it and to the test that
 * compares them.
 */
#ifndef INJECT_INSN_IMPL_H
#define INJECT_INSN_IMPL_H

#include "inject/code/insn.h"

/* insn.c: by Zydis. */
bool insn_scan_all(struct insn *out, const uint8_t *code, size_t avail, uint64_t addr);
/* insn_quick.c: by its own tables.  False: it is none of those that they have, or none at all. */
bool insn_scan_quick(struct insn *out, const uint8_t *code, size_t avail, uint64_t addr);

#endif
