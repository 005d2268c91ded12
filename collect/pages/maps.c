/* SPDX-License-Identifier: MIT */
/*
 * maps.c - what processes have mapped, and had: see pages.h.
 *
 * A process that is traced decides how much there is to note.  So it is found by an index, and there is a limit for one
 * process and for all.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "collect/kernel/process_maps.h"
#include "collect/pages/impl.h"

#define BY_TICKET (UINT64_C(1) << 32) /* in the key of an owner */

static uint64_t owner_of(uint32_t uid, uint32_t ticket)
{
	return uid ? uid : BY_TICKET | ticket;
}

/* What has the same number is compared. */
static uint64_t key_of(uint64_t owner, uint64_t start, const char *name)
{
	const uint64_t numbers[] = {owner, start};

	return str_hash(str_hash(STR_HASH, numbers, sizeof(numbers)), name, strlen(name));
}

static bool is_owners(const struct pages *p, size_t i, uint32_t uid, uint32_t ticket)
{
	const uint32_t of = p->out.maps.v[i].uid;

	return of ? of == uid : p->maps.v.v[i].ticket == ticket;
}

/* The last of a key, or more than one. */
static uint32_t *last_of(struct pages_maps *m, uint64_t key)
{
	const uint32_t at = index_of(&m->keys, key);

	if (at == m->last.n)
		*vec_push(&m->last) = 0;
	return &m->last.v[at];
}

static uint32_t *count_of(struct pages_maps *m, uint64_t owner)
{
	const uint32_t at = index_of(&m->owners, owner);

	if (at == m->of_owner.n)
		*vec_push(&m->of_owner) = 0;
	return &m->of_owner.v[at];
}

static struct trace_mapping *find_mapping(struct pages *p, const struct trace_mapping *like,
					  uint32_t ticket)
{
	const uint32_t at = index_find(&p->maps.keys, key_of(owner_of(like->uid, ticket),
							     like->start, like->name));

	for (uint32_t i = at == INDEX_NONE ? 0 : p->maps.last.v[at]; i;
	     i = p->maps.v.v[i - 1].before) {
		struct trace_mapping *m = &p->out.maps.v[i - 1];

		if (m->start == like->start && is_owners(p, i - 1, like->uid, ticket) &&
		    !strcmp(m->name, like->name))
			return m;
	}
	return NULL;
}

/* It is found by its owner, start and name from here on. */
static void enter(struct pages *p, size_t i)
{
	const struct trace_mapping *m = &p->out.maps.v[i];
	struct pages_note *n = &p->maps.v.v[i];
	uint32_t *last = last_of(&p->maps, key_of(owner_of(m->uid, n->ticket), m->start, m->name));

	n->before = *last;
	*last = (uint32_t)i + 1;
}

void pages_name_owner(struct pages *p, uint32_t ticket, uint32_t uid)
{
	if (!ticket)
		return;
	pthread_mutex_lock(&p->lock);
	for (size_t i = 0; i < p->maps.v.n; i++) {
		if (p->maps.v.v[i].ticket != ticket)
			continue;
		p->out.maps.v[i].uid = uid;
		p->maps.v.v[i].ticket = 0;
		++*count_of(&p->maps, uid);
		enter(p, i);
	}
	pthread_mutex_unlock(&p->lock);
}

/*
 * A process that executes another program has that one's mappings already while it is still taken for the first.  Each
 * program has its [vdso] elsewhere, or none as long as it is made ready, and a forked child has its parent's.  What was
 * noted of this program itself may have no uid yet.
 */
static bool is_next_program(const struct pages *p, const struct process_maps *maps, pid_t pid,
			    uint32_t uid, uint32_t ticket)
{
	bool is_known = ticket, any = false;
	uint64_t vdso = 0;

	for (size_t i = 0; i < maps->n; i++)
		if (!strcmp(maps->v[i].path, "[vdso]"))
			vdso = maps->v[i].start;
	for (size_t i = 0; i < p->maps.vdsos.n; i++) {
		const struct trace_mapping *m = &p->out.maps.v[p->maps.vdsos.v[i]];

		if (is_owners(p, p->maps.vdsos.v[i], uid, ticket))
			return m->start != vdso;
		is_known |= (m->pid != (uint32_t)pid || !m->uid) && m->start == vdso;
		any = true;
	}
	return any && !is_known;
}

static bool has_room(struct pages_maps *m, uint64_t owner, uint64_t bytes)
{
	if (*count_of(m, owner) >= PAGES_MAPS_OF_ONE || m->bytes + bytes > PAGES_MAPS_BYTES) {
		m->unnoted++;
		return false;
	}
	++*count_of(m, owner);
	m->bytes += bytes;
	return true;
}

/* What is not mapped any more keeps its name, unless something else is there. */
static void note_mapping(struct pages *p, const struct trace_mapping *m, uint32_t ticket)
{
	struct trace_mapping *old = find_mapping(p, m, ticket);

	if (!old) {
		if (!has_room(&p->maps, owner_of(m->uid, ticket),
			      sizeof(*m) + sizeof(struct pages_note) + strlen(m->name) + 1))
			return;
		if (!strcmp(m->name, "[vdso]"))
			*vec_push(&p->maps.vdsos) = (uint32_t)p->out.maps.n;
		old = vec_push(&p->out.maps);
		*old = *m;
		old->name = xstrdup(m->name);
		*vec_push(&p->maps.v) = (struct pages_note){.ticket = m->uid ? 0 : ticket};
		enter(p, p->out.maps.n - 1);
	}
	if (m->end > old->end)
		old->end = m->end;
}

void pages_note_maps(struct pages *p, pid_t pid, uint32_t uid, uint32_t ticket)
{
	struct process_maps maps;
	struct err err;

	if (process_maps_read(&maps, pid, &err))
		return;
	pthread_mutex_lock(&p->lock);
	for (size_t i = 0, n = is_next_program(p, &maps, pid, uid, ticket) ? 0 : maps.n; i < n;
	     i++) {
		const struct process_mapping *m = &maps.v[i];

		note_mapping(p,
			     &(struct trace_mapping){.uid = uid,
						     .pid = (uint32_t)pid,
						     .start = m->start,
						     .end = m->end,
						     .offset = m->off,
						     .name = (char *)m->path},
			     ticket);
	}
	pthread_mutex_unlock(&p->lock);
	process_maps_free(&maps);
	if (p->setup.on_maps)
		p->setup.on_maps(p->setup.ctx, pid);
}

uint64_t pages_unnoted_maps(struct pages *p)
{
	uint64_t n;

	pthread_mutex_lock(&p->lock);
	n = p->maps.unnoted;
	pthread_mutex_unlock(&p->lock);
	return n;
}

void pages_maps_end(struct pages *p)
{
	size_t n = 0;

	vec_for(&p->out.maps, m) {
		if (m->uid)
			p->out.maps.v[n++] = *m;
		else
			xfree(m->name);
	}
	p->out.maps.n = n;
	p->maps.v.n = 0;
}

void pages_maps_free(struct pages_maps *m)
{
	vec_free(&m->v);
	vec_free(&m->last);
	vec_free(&m->of_owner);
	vec_free(&m->vdsos);
	index_free(&m->keys);
	index_free(&m->owners);
}
