/* SPDX-License-Identifier: MIT */
/* clock.h - kron record --clock: how many samples share a reading of the clock. */
#ifndef CMD_RECORD_CLOCK_H
#define CMD_RECORD_CLOCK_H

#include <stdint.h>

#include "base/err.h"
#include "collect/collector.h"

#define CLOCK_EVERY_DEFAULT 16
#define CLOCK_EVERY_MAX 256

/* "full", "every" or "every:N"; full is 1.  -EINVAL with a sentence. */
int clock_take(const char *text, uint16_t *every, struct err *err);
/* What is wrong with sharing readings here; NULL: nothing. */
const char *clock_check(const struct collector_options *o);

#endif
