/* SPDX-License-Identifier: MIT */
/* answer_binding.c - how a plan is bound in this process: by which thunks, with which of its functions. */
#include "collect/attach/answer_impl.h"

#include <errno.h>

bool answer_has_action(const struct plan *p, enum action_kind kind)
{
	for (size_t i = 0; i < p->nactions; i++)
		if (p->actions[i].kind == kind)
			return true;
	return false;
}

static bool has_conditions(const struct plan *p)
{
	for (size_t i = 0; i < p->nactions; i++)
		if (p->actions[i].nconditions)
			return true;
	return false;
}

static bool has_memory(const struct plan *p)
{
	for (size_t i = 0; i < p->nactions; i++)
		if (p->actions[i].nplaces)
			return true;
	return false;
}

struct binding answer_binding(const struct work *w, const struct loaded *l)
{
	return (struct binding){
		.bias = l->bias,
		.thunk = w->q->thunk,
		.hook_thunk = w->q->hook_thunk,
		.payload_thunk = w->q->payload_thunk,
		.wide_thunk = w->q->wide_thunk,
		.action_thunk = w->q->action_thunk,
		.memory_thunk = w->q->memory_thunk,
		.timed_thunk = w->q->timed_thunk,
		.way = w->q->way,
		.counts = w->q->counts,
	};
}

struct binding answer_module_binding(const struct work *w, const struct loaded *l)
{
	bool traced = l->full && l->module->nselected;
	struct binding b = answer_binding(w, l);

	b.plan = l->full ? l->module->full : l->module->hooks;
	b.selected = traced ? l->module->selected : NULL;
	b.hooks = (l->hooks || l->full) && !l->copy_hi && !w->q->changes;
	b.unwinds = answer_wants_unwinds(w);
	b.from = l->copy_lo;
	b.to = l->copy_hi;
	b.event_base = l->module->event_base;
	/* what comes out of a board is read by others, too: there an exit is an exit */
	b.jump_base = l->module->jump_base;
	b.has_jumps = kron_thunk_is_lane(b.way);
	b.levels = traced ? l->module->levels : NULL;
	b.timed = traced ? l->module->timed : NULL;
	b.events = l->module->probes.events;
	b.nevents = l->module->probes.found.events.n;
	b.sleeps = module_probes_sleep;
	b.sleeps_ctx = &l->module->probes.sleepers;
	if (!b.plan)
		b.plan = l->module->full;
	b.whole = l->module->patched;
	return b;
}

int answer_choose_thunk(const struct work *w, const struct loaded *l, struct binding *b,
			struct err *err)
{
	if (!kron_thunk_has_parts(b->way) && has_memory(b->plan))
		return err_set(
			err, ENOTSUP,
			"%s: a board's samples have no room for values from memory, and with "
			"--constant-time none are read: record it on the lanes",
			l->module->path);
	if (b->way == KRON_THUNK_LANE_CONSTANT && has_conditions(b->plan))
		return err_set(err, ENOTSUP,
			       "%s: a sample that is not wanted takes less time: no conditions "
			       "with --constant-time",
			       l->module->path);
	if (!kron_thunk_is_lane(b->way) || !answer_has_action(b->plan, ACTION_RESOURCE))
		return 0;
	if (b->way == KRON_THUNK_LANE_CONSTANT)
		return err_set(err, ENOTSUP,
			       "%s: a Resource sample takes longer than others: not with "
			       "--constant-time",
			       l->module->path);
	b->payload_thunk = w->q->resource_thunk;
	return 0;
}
