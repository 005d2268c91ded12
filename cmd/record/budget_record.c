/* SPDX-License-Identifier: MIT */
/* budget_record.c - see budget_record.h. */
#include "cmd/record/budget_record.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/record/control_record.h"
#include "cmd/record/say.h"
#include "collect/budget/budget.h"

#define LEAST_PERCENT 0.01
#define MOST_PERCENT 100.0

static struct budget *budget;
static double share;

static int take_share(const char *text, struct err *err)
{
	char *end;
	double percent = strtod(text, &end);

	if (end == text || strcmp(end, "%") != 0 || !isfinite(percent) || percent < LEAST_PERCENT ||
	    percent > MOST_PERCENT)
		return err_set(
			err, EINVAL,
			"--budget: '%s' is no share of processor time; write 1%%, or anything from "
			"0.01%% to 100%%",
			text);
	share = percent / 100;
	return 0;
}

const char *budget_record_check(const struct collector_options *o, struct err *err)
{
	if (!o->budget)
		return o->selection.keep.n ? "--keep belongs to --budget" : NULL;
	if (take_share(o->budget, err))
		return err->msg;
	if (o->selection.probes_only)
		return "--budget takes functions out, and -p alone records none";
	if (o->bus != KRON_BUS_LANE)
		return "--budget is for lanes: what a board's probes cost depends on the board, not on us";
	if (o->constant_time)
		return "--budget and --constant-time exclude each other: what is taken out takes no time";
	if (o->clock_every > 1)
		return "--budget measures calls by each sample's own time: not with --clock every:N";
	if (o->watch.trigger || o->flight.text || o->when_full == KRON_WHEN_FULL_WRAP)
		return "--budget counts samples as they are written: not with --trigger, --flight or "
		       "--when-full wrap";
	return NULL;
}

void budget_record_begin(struct collector *c)
{
	const struct budget_options o = {.share = share,
					 .changes = control_record_changes(),
					 .modules = &c->modules,
					 .meter = c->meter,
					 .tasks = &c->tasks,
					 .start = &c->start,
					 .measure = c->opt.measure};
	struct err err;

	if (!c->opt.budget)
		return;
	budget = budget_start(&o, &err);
	if (!budget)
		say("kron: --budget: %s", err.msg);
}

void budget_record_stop(void)
{
	struct budget_end end;
	char took[96];

	if (!budget)
		return;
	budget_stop(budget, &end);
	budget = NULL;
	snprintf(took, sizeof(took),
		 "; the probes of the others took %.2f%% of processor time at last",
		 100 * end.cost);
	if (end.err.msg[0])
		say("kron: --budget: the last change was not to be had: %s", end.err.msg);
	if (end.asleep)
		say("kron: --budget: %u function%s %s been taken out (`kron info` lists them)%s",
		    end.asleep, end.asleep == 1 ? "" : "s", end.asleep == 1 ? "has" : "have",
		    end.is_known ? took : "");
	if (end.may_be_more)
		say("kron: --budget: the recording ended before it was known what the probes took; it may be more than "
		    "%g%%",
		    100 * share);
	if (end.cost <= share || (end.err.msg[0] && end.unmovable <= share))
		return;
	if (end.unmovable > share)
		say("kron: --budget: probes that cannot be taken out, or are kept, took %.2f%% of processor time at "
		    "last: more than %g%%",
		    100 * end.unmovable, 100 * share);
	else
		say("kron: --budget: probes took %.2f%% of processor time at last, more than %g%%: there was no time "
		    "for another change",
		    100 * end.cost, 100 * share);
}
