/* SPDX-License-Identifier: MIT */
/* live.h - the parts of the runtime in a process that ran before we came: kron/live.h. */
#ifndef RUNTIME_LIVE_H
#define RUNTIME_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include <kron/live.h>

#endif
