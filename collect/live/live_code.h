/* SPDX-License-Identifier: MIT */
/* live_code.h - the runtime for running processes, as bytes: kron/live.h has its layout. */
#ifndef COLLECT_LIVE_CODE_H
#define COLLECT_LIVE_CODE_H

#include <stddef.h>

/* Made by scripts/embed-start of runtime/kron-live. */
extern const unsigned char live_code[];
extern const size_t live_code_size;

#endif
