/* SPDX-License-Identifier: MIT */
/*
 * answer_callers.c - functions that cannot carry their probes in their own code get them in the
 * stubs of the modules that call them (interposing.h): blocks and patches like all others.
 *
 * Only stubs in which nothing can be running are patched: those of modules that the process has
 * for the first time at a question.
 */
#define _GNU_SOURCE
#include <string.h>

#include "base/log.h"
#include "collect/answer_impl.h"
#include "collect/interposing.h"
#include "inject/interpose.h"

static bool is_loaded(const struct work *w, const struct met_module *m)
{
	for (size_t i = 0; i < w->maps.n; i++)
		if (w->maps.v[i].ino == m->ino && w->maps.v[i].dev == m->dev)
			return true;
	return false;
}

/* What the process had and has no more may come again; a new program has nothing. */
static void forget_unloaded(struct work *w)
{
	struct answerer *a = w->a;
	size_t out = 0;

	for (size_t i = 0; i < a->met.n; i++)
		if (a->met.v[i].pid != w->q->pid || (w->q->lineage && is_loaded(w, &a->met.v[i])))
			a->met.v[out++] = a->met.v[i];
	a->met.n = out;
}

static bool was_met(const struct work *w, uint64_t dev, uint64_t ino)
{
	vec_for(&w->a->met, m)
		if (m->ino == ino && m->dev == dev &&
		    (m->pid == w->q->pid || (m->uid && answer_is_in_lineage(w->q, m->uid))))
			return true;
	return false;
}

/* The texts that this process is seen with for the first time: nothing runs in them yet. */
static void meet(struct work *w)
{
	uint32_t uid = w->q->lineage ? *w->q->lineage : 0;

	pthread_mutex_lock(&w->a->lock);
	forget_unloaded(w);
	for (size_t i = 0; i < w->maps.n; i++) {
		const struct process_mapping *m = &w->maps.v[i];
		struct met_module met = {w->q->pid, uid, m->dev, m->ino};

		if (!answer_is_module(m) || answer_is_runtime(w, m) || was_met(w, m->dev, m->ino))
			continue;
		*vec_push(&w->fresh) = met;
		*vec_push(&w->a->met) = met;
	}
	pthread_mutex_unlock(&w->a->lock);
}

static bool is_new(const struct work *w, const struct loaded *l)
{
	for (size_t i = 0; i < w->fresh.n; i++)
		if (w->fresh.v[i].dev == l->dev && w->fresh.v[i].ino == l->ino)
			return true;
	return false;
}

static void list_texts(struct work *w, struct interposing *in)
{
	for (size_t i = 0; i < w->maps.n; i++) {
		const struct process_mapping *m = &w->maps.v[i];
		struct loaded l = {.dev = m->dev, .ino = m->ino, .is_caller = true};
		bool is_exe = w->exe && !strcmp(m->path, w->exe), known = false;
		struct err err;

		if (!answer_is_module(m) || answer_is_runtime(w, m))
			continue;
		if (modules_get(w->a->modules, &l.module, w->q->pid, m, is_exe, &err)) {
			log_info("collect", "pid %d: its stubs: %s", w->q->pid, err.msg);
			continue;
		}
		if (!module_bias(l.module, m, &l.bias))
			continue;
		vec_for(&w->texts, other)
			known = known || (other->module == l.module && other->bias == l.bias);
		if (known)
			continue;
		*vec_push(&w->texts) = l;
		interposing_add_module(in, l.module);
	}
}

/* At a program's start: who is looked up first? */
static void order_texts(struct work *w, struct interposing *in)
{
	uint64_t *bias = xcalloc(w->texts.n + 1, sizeof(*bias));

	for (size_t i = 0; i < w->texts.n; i++)
		bias[i] = w->texts.v[i].bias;
	interposing_order(in, w->q->pid, bias, w->texts.n);
	xfree(bias);
}

static void interpose_module(struct work *w, struct interposing *in, const struct loaded *l)
{
	struct binding b = {
		.bias = l->bias,
		.thunk = w->q->thunk,
		.hook_thunk = w->q->hook_thunk,
		.payload_thunk = w->q->payload_thunk,
		.action_thunk = w->q->action_thunk,
		.way = w->q->way,
		.counts = w->q->counts,
	};
	const struct stub_plan *p;
	struct err err;
	int code = interposing_plan(in, l->module, &p, &err);

	if (!code && p) {
		b.plan = p->plan;
		b.events = p->events;
		b.nevents = p->nevents;
		code = answer_add_block(w, l, &b, &err);
	}
	if (code)
		answer_note(w, &err);
}

void answer_callers(struct work *w)
{
	struct interposing in;

	if (!interpose_is_on(w->a->selection->tactics) || !w->q->payload_thunk)
		return;
	meet(w);
	interposing_init(&in, w->a->modules);
	vec_for(&w->loaded, l)
		if (l->full)
			interposing_add_callee(&in, l->module);
	if (interposing_is_needed(&in)) {
		list_texts(w, &in);
		if (!w->q->lineage)
			order_texts(w, &in);
		vec_for(&w->texts, l)
			if (is_new(w, l))
				interpose_module(w, &in, l);
		for (size_t i = 0; i < in.notes.n; i++)
			answer_note(w, &in.notes.v[i]);
	}
	interposing_free(&in);
}
