/* SPDX-License-Identifier: MIT */
/*
 * budget.h - kron record --budget: what probes cost stays within a share of the program's processor time.
 *
 *   meter ─► what each function's probes cost ─► choice ─► some sleep (their bytes are the file's again)
 *               ▲                                                │
 *               └── for a moment all are awake (a window) ◄──────┘  every few seconds
 *
 * One thread.  It stops the program's threads at each change, for as long as `kron ctl probe rm` does, so it changes
 * seldom: four times in the first second, then as the budget allows.
 */
#ifndef COLLECT_BUDGET_H
#define COLLECT_BUDGET_H

#include "base/err.h"
#include "collect/calibrate.h"
#include "collect/changes/changes.h"
#include "collect/modules/selection.h"
#include "collect/tasks.h"
#include "collect/watch/meter.h"

struct budget_options {
	double share; /* 0.01: 1 % */
	struct changes *changes;
	struct modules *modules;
	struct meter *meter;
	struct tasks *tasks;
	const struct time_point *start;
	probe_cost_fn measure;
};

struct budget_end {
	uint32_t asleep; /* functions, now */
	bool is_known; /* the next two: a look was below the budget, or two said that it was not kept */
	bool may_be_more; /* it is not known, and one look says that the budget was not kept */
	double cost;      /* of the probes that are awake: a share of processor time */
	double unmovable; /* of these: probes that cannot be taken out */
	struct err err;   /* why the last change was not to be had; empty: it was */
};

struct budget;
struct budget *budget_start(const struct budget_options *o, struct err *err);
/* No change begins any more. */
void budget_stop(struct budget *b, struct budget_end *out);

#endif
