/* SPDX-License-Identifier: MIT */
/*
 * vector.h - the vector registers of a thread that a signal stopped: XMM, YMM, ZMM 0-31.
 */
#ifndef LIBMK_VECTOR_H
#define LIBMK_VECTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#define VECTOR_BYTES 64u

/* Learn where the processor keeps what.  Once, before the other two. */
void vector_init(void);
/* The register's low `bytes` (16, 32 or 64). */
void vector_read(const ucontext_t *uc, unsigned reg, void *out, unsigned bytes);
/* Store its low `bytes`; with `zero_rest` everything above becomes zero, else it stays. */
void vector_write(ucontext_t *uc, unsigned reg, const void *in, unsigned bytes, bool zero_rest);

#endif
