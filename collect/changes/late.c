/* SPDX-License-Identifier: MIT */
/* late.c - see late.h. */
#define _GNU_SOURCE
#include "collect/changes/late.h"

#include <pthread.h>
#include <stdlib.h>

#include "collect/changes/visit.h"

/* So many are planned side by side, and come at one stop. */
#define LATE_AT_ONCE 8u

typedef VEC(struct module_wish) late_modules;

static int smallest_first(const void *a, const void *b)
{
	const struct module_wish *x = a, *y = b;
	uint64_t n = x->module->file.size, k = y->module->file.size;

	return n < k ? -1 : n > k;
}

static void list_late(struct changes *all, late_modules *out)
{
	pthread_mutex_lock(&all->modules->lock);
	vec_for(&all->modules->all, m)
		if ((*m)->is_late && !(*m)->has_come)
			*vec_push(out) = (struct module_wish){*m, true};
	pthread_mutex_unlock(&all->modules->lock);
}

/* Not all at once: the largest would make the others wait. */
static void choose_late(struct changes *all, late_modules *out)
{
	list_late(all, out);
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), smallest_first);
	out->n = out->n > LATE_AT_ONCE ? LATE_AT_ONCE : out->n;
}

/* Side by side, where that is worth it. */
static void plan_late(struct changes *all, const late_modules *late)
{
	struct err err;

	modules_prepare(all->modules, late->v, late->n);
	for (size_t i = 0; i < late->n; i++) {
		struct module *m = late->v[i].module;

		if (modules_plan(all->modules, m, true, &err))
			server_note_untraced(all->server, 0, m->path, err.msg);
	}
}

/*
 * From now on they are traced; those that have no plan are noted already.  A module that was asked for after
 * list_late() has come as well if a process got it in this round.
 */
static void note_come(struct changes *all)
{
	late_modules late = {0};

	list_late(all, &late);
	vec_for(&late, w) {
		struct module *m = w->module;
		bool tried, planned;

		pthread_mutex_lock(&m->lock);
		planned = m->full && !m->full_code;
		tried = m->full || m->full_code;
		pthread_mutex_unlock(&m->lock);
		pthread_mutex_lock(&all->modules->lock);
		m->has_come = tried;
		pthread_mutex_unlock(&all->modules->lock);
		if (planned)
			all->note_module(all->note_ctx, m->path);
	}
	vec_free(&late);
}

/* False: nothing was left to be planned. */
static bool catch_up(struct changes *all)
{
	late_modules late = {0};
	unsigned met;
	struct err err;
	bool more;

	choose_late(all, &late);
	plan_late(all, &late);
	pthread_mutex_lock(&all->turn);
	if (changes_start_surgeon(all, &err))
		server_note_untraced(all->server, 0, NULL, err.msg);
	else
		visit_all(all, NULL, change_process_catch_up, true, &met, &err);
	note_come(all);
	pthread_mutex_unlock(&all->turn);
	more = late.n;
	vec_free(&late);
	return more;
}

static bool is_over(struct changes *all)
{
	pthread_mutex_lock(&all->lock);
	const bool over = all->is_over;
	pthread_mutex_unlock(&all->lock);
	return over;
}

static void *late_thread(void *arg)
{
	struct changes *all = arg;

	pthread_setname_np(pthread_self(), "kron-late");
	pthread_mutex_lock(&all->lock);
	while (!all->is_over) {
		if (!all->is_late) {
			pthread_cond_wait(&all->late, &all->lock);
			continue;
		}
		all->is_late = false;
		pthread_mutex_unlock(&all->lock);
		while (catch_up(all) && !is_over(all))
			;
		pthread_mutex_lock(&all->lock);
	}
	pthread_mutex_unlock(&all->lock);
	return NULL;
}

void late_tell(void *ctx)
{
	struct changes *all = ctx;

	pthread_mutex_lock(&all->lock);
	all->is_late = true;
	pthread_cond_signal(&all->late);
	pthread_mutex_unlock(&all->lock);
}

/* What asked before somebody listened is late, too. */
void late_begin(struct changes *all)
{
	all->is_late = true;
	all->has_thread = !pthread_create(&all->late_thread, NULL, late_thread, all);
	if (!all->has_thread)
		server_note_untraced(all->server, 0, NULL,
				     "kron could not make a thread to plan what is late");
}

void late_stop(struct changes *all)
{
	char *why;

	if (!all->has_thread)
		return;
	pthread_mutex_lock(&all->lock);
	all->is_over = true;
	pthread_cond_signal(&all->late);
	pthread_mutex_unlock(&all->lock);
	pthread_join(all->late_thread, NULL);
	all->has_thread = false;
	vec_for(&all->modules->all, m) {
		if (!(*m)->is_late || (*m)->has_come)
			continue;
		why = xasprintf("%s: the recording ended before its plan was ready (--no-wait)",
				(*m)->path);
		server_note_untraced(all->server, 0, (*m)->path, why);
		xfree(why);
	}
}
