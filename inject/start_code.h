/* SPDX-License-Identifier: MIT */
/*
 * start_code.h - the start-up code that goes into a static program: kron/start.h, bytes and place.
 */
#ifndef INJECT_START_CODE_H
#define INJECT_START_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Made by scripts/embed-start of runtime/kron-start: what of it is in the file. */
extern const unsigned char start_code[];
extern const size_t start_code_size;

/* What it takes in memory, and in the file: multiple of the page size. */
uint64_t start_code_len(void);
/*
 * It, for the address vaddr, in front of the program's entry: allocated, start_code_size bytes,
 * what follows up to start_code_len() is zero.  *entry becomes its own one.  -ERANGE when the
 * program's is too far away.
 */
int start_code_make(uint8_t **out, uint64_t vaddr, uint64_t *entry, struct err *err);

#endif
