/* SPDX-License-Identifier: MIT */
/* answer_settle.c - what a process has made of its answer, and what is remembered of it for the next one. */
#include <errno.h>
#include <string.h>

#include "collect/attach/answer_impl.h"

bool answer_take_result(struct answer *answer, const struct kron_result *r)
{
	if (r->group >= answer->groups.n || r->code == KRON_RESULT_OK)
		return false;
	answer->groups.v[r->group].code = r->code;
	answer->groups.v[r->group].detail = r->detail;
	return true;
}

bool answer_group_is_displaced(const struct answer_group *g)
{
	return g->code == KRON_RESULT_MAP_FAILED && g->detail == EEXIST;
}

static void add_refused(struct answerer *a, const struct refused_module *m, uint32_t uid)
{
	struct refused_module *r;

	vec_for(&a->refused, known)
		if (known->ino == m->ino && known->dev == m->dev && known->bias == m->bias &&
		    known->uid == uid)
			return;
	r = vec_push(&a->refused);
	*r = *m;
	r->uid = uid;
}

static bool is_settled(const struct answer_group *g, const struct kron_result *end)
{
	if (!g->module || (g->code == KRON_RESULT_OK && end->code == KRON_RESULT_OK))
		return true;
	return answer_group_is_displaced(g) && end->flags & KRON_RESULT_AGAIN;
}

void answer_settle(struct answerer *a, const struct answer *answer, uint32_t uid,
		   const struct kron_result *end)
{
	pthread_mutex_lock(&a->lock);
	for (size_t i = 0; i < answer->refused.n; i++)
		add_refused(a, &answer->refused.v[i], uid);
	for (size_t i = 0; i < answer->groups.n; i++) {
		const struct answer_group *g = &answer->groups.v[i];
		struct refused_module m;

		if (is_settled(g, end))
			continue;
		m = (struct refused_module){
			.dev = g->module->maps_dev, .ino = g->module->file.ino, .bias = g->bias};
		add_refused(a, &m, uid);
	}
	pthread_mutex_unlock(&a->lock);
}

void answer_known(struct answerer *a, pid_t pid, uint32_t uid)
{
	pthread_mutex_lock(&a->lock);
	vec_for(&a->met, p)
		if (p->pid == pid && !p->uid)
			p->uid = uid;
	pthread_mutex_unlock(&a->lock);
}
