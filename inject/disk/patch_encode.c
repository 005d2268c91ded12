/* SPDX-License-Identifier: MIT */
/* patch_encode.c - the plan of a file from `kron patch`, written.  See patch_info_impl.h. */
#include <string.h>

#include "base/vec.h"
#include "inject/disk/patch_info_impl.h"

#define NONE UINT32_MAX

struct writer {
	VEC(uint8_t) out;
	uint64_t last; /* what the next address is counted from */
	struct patch_foresight next;
	bool has_jumps;
};

static void put_bytes(struct writer *w, const void *v, size_t n)
{
	vec_reserve(&w->out, w->out.n + n);
	memcpy(w->out.v + w->out.n, v, n);
	w->out.n += n;
}

static void put(struct writer *w, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*vec_push(&w->out) = (uint8_t)v | 0x80;
	*vec_push(&w->out) = (uint8_t)v;
}

/* A difference, small either way. */
static void put_from(struct writer *w, uint64_t v, uint64_t from)
{
	int64_t d = (int64_t)(v - from);

	put(w, (uint64_t)d << 1 ^ (d < 0 ? UINT64_MAX : 0));
}

static void put_string(struct writer *w, const char *s)
{
	size_t n = strnlen(s, NAME_MAX_LEN - 1);

	put(w, n);
	put_bytes(w, s, n);
}

static void put_function(struct writer *w, const struct plan *p, size_t i, uint8_t level)
{
	const struct plan_function *f = &p->functions[i];
	const char *name = p->strings + f->raw_name;

	put_from(w, f->vaddr, w->last);
	w->last = f->vaddr;
	put(w, f->size);
	put(w, f->sources);
	put(w, f->nprobes);
	put(w, level);
	put_string(w, name);
}

static void put_probe_rest(struct writer *w, const struct plan_probe *p)
{
	put(w, p->kind);
	if (p->kind == PROBE_HOOK)
		put(w, p->hook);
	if (p->kind != PROBE_PLACE)
		return;
	put(w, p->where);
	put(w, p->action);
	put_from(w, p->event, w->next.probe.event);
}

static void put_probe(struct writer *w, const struct plan_probe *p)
{
	struct patch_foresight *next = &w->next;
	unsigned way = p->site == NONE                   ? PROBE_SITE_NONE
		       : p->site == next->probe.site     ? PROBE_SITE_SAME
		       : p->site == next->probe.site + 1 ? PROBE_SITE_NEXT
							 : PROBE_SITE_OTHER;
	uint64_t distance = p->vaddr - next->probe.vaddr;
	uint8_t what = p->site == NONE ? p->refusal : p->tactic;
	bool as_seen = what == next->what[way], rest = patch_is_foreseen(next, p);

	if (distance >= PROBE_FAR)
		distance = PROBE_FAR;
	put(w, distance | way << PROBE_SITE_BIT | (as_seen ? PROBE_SAME_WHAT : 0) |
		       (rest ? PROBE_SAME_REST : 0));
	if (distance == PROBE_FAR)
		put_from(w, p->vaddr, next->probe.vaddr);
	if (way == PROBE_SITE_OTHER)
		put_from(w, p->site, next->probe.site);
	if (!as_seen)
		put(w, what);
	if (!rest)
		put_probe_rest(w, p);
	patch_foresee_probe(next, p, way, what);
}

static void put_fixup(struct writer *w, const struct plan_fixup *f)
{
	struct patch_foresight *next = &w->next;
	uint64_t key = patch_fixup_key(f);
	unsigned i = patch_find_key(next, key);

	put(w, i);
	if (i == next->nkeys)
		put(w, key);
	patch_note_key(next, key);
	put_from(w, (uint32_t)f->value, next->fixup_probe);
	next->fixup_probe = (uint32_t)f->value;
	if (f->kind != FIXUP_PLACE)
		return;
	put_from(w, patch_cold_of(f), next->cold);
	next->cold = patch_cold_of(f);
}

static void put_fixups(struct writer *w, const struct plan *p, const struct plan_site *s)
{
	uint32_t n = 0;
	unsigned off = 0;

	for (uint32_t i = 0; i < s->nfixups; i++)
		n += patch_is_kept(&p->fixups[s->first_fixup + i]);
	put(w, n);
	w->next.cold = 0;
	for (uint32_t i = 0; i < s->nfixups; i++) {
		const struct plan_fixup *f = &p->fixups[s->first_fixup + i];

		if (!patch_is_kept(f))
			continue;
		put(w, f->off - off);
		off = f->off;
		put_fixup(w, f);
	}
}

static void put_relay(struct writer *w, struct plan_relay r)
{
	put_from(w, (uint64_t)(int64_t)r.from_site, 0);
	if (w->has_jumps)
		put_bytes(w, r.bytes, PLAN_RELAY);
}

static void put_site(struct writer *w, const struct plan *p, const struct plan_site *s)
{
	bool plain = s->patch_len == WINDOW_JUMP && !s->prefix;

	put_from(w, s->vaddr, w->last);
	w->last = s->vaddr;
	put_from(w, s->function, w->next.function);
	w->next.function = s->function;
	put(w, s->code_len);
	put(w, (uint64_t)s->window << 4 | (s->landing != 0) << 3 | plain << 2 | s->has_place << 1 |
		       s->has_hook);
	if (!plain) {
		put(w, s->patch_len | (unsigned)s->nrelays << 4);
		put(w, s->prefix);
	}
	if (s->landing)
		put_from(w, s->landing, s->vaddr);
	put_fixups(w, p, s);
	if (w->has_jumps) { /* else the text has them */
		put_bytes(w, plan_old_bytes(p, s), s->window);
		put_bytes(w, s->landing_bytes, s->landing ? PLAN_LANDING : 0);
	}
	for (unsigned i = 0; i < s->nrelays; i++)
		put_relay(w, plan_relay(p, s, i));
}

static void put_condition(struct writer *w, const struct place_condition *c)
{
	put(w, c->what);
	put(w, c->reg);
	put(w, c->compare);
	put(w, c->bits);
	put(w, c->is_signed);
	put(w, c->has_mask);
	put(w, c->mask);
	put(w, c->number);
}

static void put_actions(struct writer *w, const struct plan *p)
{
	put(w, p->nactions);
	for (size_t i = 0; i < p->nactions; i++) {
		const struct place_action *a = &p->actions[i];

		put(w, a->kind);
		put(w, a->level);
		put(w, a->word);
		put(w, a->payload);
		put(w, a->reg);
		put(w, a->ungated);
		put(w, a->is_wide);
		put(w, a->nplaces);
		put(w, a->bits);
		put(w, a->count);
		put(w, a->value);
		put(w, a->nconditions);
		for (unsigned k = 0; k < a->nconditions; k++)
			put_condition(w, &a->conditions[k]);
		for (unsigned k = 0; k < a->nplaces; k++)
			put(w, (uint32_t)a->place[k]);
	}
}

/* most: how much of it may be shared. */
static uint64_t put_name(struct writer *w, const char *name, const char *like, uint64_t most)
{
	uint64_t n = 0;

	while (n < most && like[n] && like[n] == name[n])
		n++;
	put(w, n);
	put_string(w, name + n);
	return n;
}

static void put_events(struct writer *w, const struct patch_info *info, uint64_t shared)
{
	const struct plan *p = info->plan;
	const char *last = "";

	w->last = 0;
	put(w, info->nevents);
	for (size_t i = 0; i < info->nevents; i++) {
		const struct patch_event *e = &info->events[i];

		put(w, (uint64_t)e->level << 3 | e->is_resource << 2 | e->is_named << 1 |
			       e->has_number);
		put(w, e->number);
		put_from(w, e->vaddr, w->last);
		shared -= put_name(w, e->name,
				   patch_name_like(p->functions, p->nfunctions, p->strings,
						   e->vaddr, last),
				   shared);
		w->last = e->vaddr;
		last = e->name;
		put_string(w, e->payload ? e->payload : "");
	}
	put(w, info->first_number);
	put(w, info->nsemaphores);
	for (size_t i = 0; i < info->nsemaphores; i++)
		put(w, info->semaphores[i]);
}

static void make_id(struct patch_note *note, const struct plan *p)
{
	uint64_t sum = patch_sum(p->build_id, p->build_id_len, note->info_sum ^ note->block_vaddr);

	memcpy(note->id, &sum, sizeof(note->id));
}

uint8_t *patch_info_encode(const struct patch_info *info, struct patch_note *note)
{
	const struct plan *p = info->plan;
	struct writer w = {.has_jumps = info->has_jumps};

	put(&w, p->nfunctions);
	for (size_t i = 0; i < p->nfunctions; i++)
		put_function(&w, p, i, info->levels[i]);
	put(&w, p->nprobes);
	for (size_t i = 0; i < p->nprobes; i++)
		put_probe(&w, &p->probes[i]);
	put_actions(&w, p);
	put(&w, p->nsites);
	w.last = 0;
	for (size_t i = 0; i < p->nsites; i++)
		put_site(&w, p, &p->sites[i]);
	put(&w, patch_old_sum(p));
	put_events(&w, info, PATCH_SHARED_MAX * note->block_len);
	note->info_len = w.out.n;
	note->info_sum = patch_sum(w.out.v, w.out.n, PATCH_SUM_START);
	make_id(note, p);
	return w.out.v;
}
