/* SPDX-License-Identifier: MIT */
/*
 * answer_callsites.c - functions that cannot carry their probes in their own code get them in the
 * stubs of the modules that call them (callsite_process.h): blocks and patches like all others.
 *
 * Only stubs in which nothing can be running are patched: those of modules that the process has
 * for the first time at a question.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "collect/attach/answer_impl.h"
#include "collect/modules/callsite_process.h"
#include "inject/plan/callsite.h"

#define MET_LIMIT 256u

/* ---- what is new in the process? ---- */

static const struct met_module *has_met(const struct met_process *p,
					const struct process_mapping *m)
{
	for (size_t i = 0; i < p->modules.n; i++)
		if (p->modules.v[i].ino == m->ino && p->modules.v[i].dev == m->dev)
			return &p->modules.v[i];
	return NULL;
}

/* Numbers of processes are used again: without its uid it is that of a start just now. */
static bool is_own(const struct met_process *p, const struct question *q)
{
	return p->pid == q->pid && (!p->uid || p->uid == *q->lineage);
}

static void forget(struct answerer *a, size_t i)
{
	vec_free(&a->met.v[i].modules);
	a->met.v[i] = a->met.v[--a->met.n];
}

/* Forgets processes that have ended.  Their forked children are then unknown and are left alone. */
static void forget_ended(struct answerer *a)
{
	if (a->met.n < MET_LIMIT || a->met.n < a->met_limit)
		return;
	for (size_t i = a->met.n; i-- > 0;)
		if (kill(a->met.v[i].pid, 0) && errno == ESRCH)
			forget(a, i);
	a->met_limit = 2 * a->met.n;
}

static bool is_in_fresh(const struct work *w, uint64_t dev, uint64_t ino)
{
	for (size_t i = 0; i < w->fresh.n; i++)
		if (w->fresh.v[i]->dev == dev && w->fresh.v[i]->ino == ino)
			return true;
	return false;
}

/* Notes which modules the process has now, for its next question. */
static void remember(struct work *w)
{
	struct answerer *a = w->a;
	struct met_process *p;

	for (size_t i = a->met.n; i-- > 0;)
		if (a->met.v[i].pid == w->q->pid)
			forget(a, i);
	forget_ended(a);
	p = vec_push(&a->met);
	p->pid = w->q->pid;
	p->uid = w->q->lineage ? *w->q->lineage : 0;
	for (size_t i = 0; i < w->maps.n; i++) {
		const struct process_mapping *m = &w->maps.v[i];

		if (!answer_is_module(m) || has_met(p, m))
			continue;
		*vec_push(&p->modules) =
			(struct met_module){m->dev, m->ino, is_in_fresh(w, m->dev, m->ino)};
	}
}

/* Its own last list says what it had; a forked child's first question goes by its parents'. */
static bool is_fresh(const struct work *w, const struct process_mapping *m)
{
	const struct question *q = w->q;
	const struct met_module *met;
	bool known = !q->lineage;

	for (size_t i = 0; q->lineage && i < w->a->met.n; i++) {
		if (!is_own(&w->a->met.v[i], q))
			continue;
		met = has_met(&w->a->met.v[i], m);
		return !met || (q->again && met->was_new);
	}
	for (size_t i = 0; q->lineage && i < w->a->met.n; i++) {
		if (!w->a->met.v[i].uid || !answer_is_in_lineage(q, w->a->met.v[i].uid))
			continue;
		known = true;
		if (has_met(&w->a->met.v[i], m))
			return false;
	}
	return known;
}

/* The texts that this process is seen with for the first time: nothing runs in them yet. */
void answer_meet(struct work *w)
{
	pthread_mutex_lock(&w->a->lock);
	for (size_t i = 0; i < w->maps.n; i++) {
		const struct process_mapping *m = &w->maps.v[i];

		if (answer_is_module(m) && !answer_is_runtime(w, m) && is_fresh(w, m))
			*vec_push(&w->fresh) = m;
	}
	remember(w);
	pthread_mutex_unlock(&w->a->lock);
}

bool answer_is_fresh(const struct work *w, const struct loaded *l)
{
	return is_in_fresh(w, l->dev, l->ino);
}

bool answer_was_new(const struct work *w, const struct loaded *l)
{
	struct answerer *whole = w->a->whole;
	bool was_new = false;

	pthread_mutex_lock(&whole->lock);
	for (size_t i = 0; i < whole->met.n; i++) {
		const struct met_process *p = &whole->met.v[i];

		for (size_t k = 0; p->pid == w->q->pid && k < p->modules.n; k++)
			if (p->modules.v[k].ino == l->ino && p->modules.v[k].dev == l->dev)
				was_new = p->modules.v[k].was_new;
	}
	pthread_mutex_unlock(&whole->lock);
	return was_new;
}

/* And not patched when it asked a moment ago. */
static bool is_new(const struct work *w, const struct loaded *l)
{
	for (size_t i = 0; i < w->stubs.n; i++)
		if (w->stubs.v[i].dev == l->dev && w->stubs.v[i].ino == l->ino &&
		    w->stubs.v[i].bias == l->bias)
			return false;
	return is_in_fresh(w, l->dev, l->ino);
}

/* ---- all its modules ---- */

static bool add_texts(const struct work *w, struct callsite_process *in)
{
	struct module **all = xcalloc(w->texts.n + 1, sizeof(*all));
	bool added = true;

	for (size_t i = 0; i < w->texts.n; i++)
		all[i] = w->texts.v[i].module;
	callsite_process_read(all, w->texts.n);
	for (size_t i = 0; i < w->texts.n && added; i++)
		added = callsite_process_add_module(in, all[i]);
	xfree(all);
	return added;
}

/* False: one cannot be read, so what it offers is not known, and who calls whom is not. */
static bool list_texts(struct work *w, struct callsite_process *in)
{
	for (size_t i = 0; i < w->maps.n; i++) {
		const struct process_mapping *m = &w->maps.v[i];
		struct loaded l = {.dev = m->dev, .ino = m->ino, .is_caller = true};
		bool is_exe = w->exe && !strcmp(m->path, w->exe), known = false;
		struct err err;

		if (!answer_is_module(m) || answer_is_runtime(w, m))
			continue;
		if (modules_get(w->a->modules, &l.module, w->q->pid, m, is_exe, &err)) {
			err_prefix(&err, -1, "functions are not probed where they are called");
			answer_note(w, m->path, &err);
			return false;
		}
		if (!module_bias(l.module, m, &l.bias))
			continue;
		vec_for(&w->texts, other)
			known = known || (other->module == l.module && other->bias == l.bias);
		if (known)
			continue;
		*vec_push(&w->texts) = l;
	}
	return add_texts(w, in);
}

/* At a program's start: in which order does the dynamic linker look through them? */
static void order_texts(struct work *w, struct callsite_process *in)
{
	uint64_t *bias = xcalloc(w->texts.n + 1, sizeof(*bias));

	for (size_t i = 0; i < w->texts.n; i++)
		bias[i] = w->texts.v[i].bias;
	callsite_process_order(in, w->q->pid, bias, w->texts.n);
	xfree(bias);
}

/* What of the module itself is bound; false: nothing. */
static bool own_binding(const struct work *w, const struct loaded *l, struct binding *out)
{
	for (size_t i = 0; i < w->loaded.n; i++) {
		if (w->loaded.v[i].module != l->module)
			continue;
		*out = answer_module_binding(w, &w->loaded.v[i]);
		return out->plan;
	}
	return false;
}

static void probe_module(struct work *w, struct callsite_process *in, const struct loaded *l)
{
	struct binding b = answer_binding(w, l), own;
	const struct callsite_plan *p;
	struct err err;
	int code = callsite_process_plan(in, l->module, own_binding(w, l, &own) ? &own : NULL, &p,
					 &err);

	if (!code && p) {
		b.plan = p->plan;
		b.events = p->events;
		b.nevents = p->nevents;
		code = answer_add_block(w, l, &b, &err);
	}
	if (code)
		answer_note(w, l->module->path, &err);
}

void answer_callsites(struct work *w)
{
	struct callsite_process in;

	if (!selection_has_callsites(w->a->selection) || !w->q->payload_thunk)
		return;
	callsite_process_init(&in, w->a->modules);
	vec_for(&w->loaded, l)
		if (l->full)
			callsite_process_add_callee(&in, l->module);
	if (callsite_process_is_needed(&in) && list_texts(w, &in)) {
		if (!w->q->lineage)
			order_texts(w, &in);
		vec_for(&w->texts, l)
			if (is_new(w, l))
				probe_module(w, &in, l);
		for (size_t i = 0; i < in.notes.n; i++)
			answer_note(w, NULL, &in.notes.v[i]);
	}
	callsite_process_free(&in);
}
