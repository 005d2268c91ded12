/* SPDX-License-Identifier: MIT */
/* budget_record.h - kron record --budget and --keep. */
#ifndef CMD_RECORD_BUDGET_RECORD_H
#define CMD_RECORD_BUDGET_RECORD_H

#include "base/err.h"
#include "collect/collector.h"

/* What is wrong with it here; NULL: nothing. */
const char *budget_record_check(const struct collector_options *o, struct err *err);
/* After control_record_begin(). */
void budget_record_begin(struct collector *c);
/* Before control_record_stop(): says what it came to. */
void budget_record_stop(void);

#endif
