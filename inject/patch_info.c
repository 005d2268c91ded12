/* SPDX-License-Identifier: MIT */
/*
 * patch_info.c - the plan of a file from `kron patch`, written and read.  See patch_info.h.
 *
 *   description   functions | probes | sites, each with its probe sequences and instruction
 *                 map | actions                      each list with its length in front
 *
 * What is read is put together to a plan, and then nothing of it is believed: the plan must be
 * sound, and bound again it must give the file's block and the file's text, byte by byte.
 */
#include "inject/patch_info.h"

#include <errno.h>
#include <string.h>

#include <kron/segment.h>

#include "base/vec.h"
#include "inject/bind.h"
#include "inject/demangle.h"
#include "inject/elf_image_impl.h"
#include "inject/window.h"

#define NONE UINT32_MAX
#define PAGE 4096ull
#define NAME_MAX_LEN (64u << 10)

/* Which fixups still mean something once the file is written: those that wake up. */
static bool is_kept(const struct plan_fixup *f)
{
	return f->kind == FIXUP_PROBE || f->kind == FIXUP_HOOK || f->kind == FIXUP_PLACE ||
	       f->kind == FIXUP_EVENT;
}

/* Where it is, a sequence begins whose first two bytes are a jump while it sleeps. */
static bool is_sequence(const struct plan_fixup *f)
{
	return f->kind != FIXUP_EVENT;
}

/* FNV-1a; it finds damage, not malice. */
static uint64_t sum_of(const uint8_t *p, size_t n, uint64_t sum)
{
	for (size_t i = 0; i < n; i++)
		sum = (sum ^ p[i]) * 0x100000001b3;
	return sum;
}
#define SUM_START 0xcbf29ce484222325

uint64_t patch_block_sum(const uint8_t *block, uint64_t len)
{
	return sum_of(block + KRON_BLOCK_HEAD, len - KRON_BLOCK_HEAD, SUM_START);
}

/* ---- writing ---- */

struct writer {
	VEC(uint8_t) out;
	uint64_t last; /* what the next address is counted from */
	uint64_t last_probe;
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

static void put_probe(struct writer *w, const struct plan_probe *p)
{
	bool refused = p->site == NONE;

	put(w, (uint64_t)p->kind << 1 | refused);
	put_from(w, p->vaddr, w->last);
	w->last = p->vaddr;
	put(w, refused ? p->refusal : p->tactic);
	if (!refused)
		put(w, p->site);
	if (p->kind == PROBE_HOOK)
		put(w, p->hook);
	if (p->kind != PROBE_PLACE)
		return;
	put(w, p->where);
	put(w, p->action);
	put(w, p->event);
}

static void put_fixup(struct writer *w, const uint8_t *code, const struct plan_fixup *f)
{
	put(w, f->kind);
	put_from(w, (uint32_t)f->value, w->last_probe);
	w->last_probe = (uint32_t)f->value;
	if (f->kind == FIXUP_PLACE) {
		put(w, f->value >> 32);
		put(w, f->addend);
		put(w, f->aux);
	}
	if (is_sequence(f))
		put_bytes(w, code + f->off, 2);
}

static void put_fixups(struct writer *w, const struct plan *p, const struct plan_site *s)
{
	uint32_t n = 0;
	unsigned off = 0;

	for (uint32_t i = 0; i < s->nfixups; i++)
		n += is_kept(&p->fixups[s->first_fixup + i]);
	put(w, n);
	for (uint32_t i = 0; i < s->nfixups; i++) {
		const struct plan_fixup *f = &p->fixups[s->first_fixup + i];

		if (!is_kept(f))
			continue;
		put_from(w, f->off, off);
		off = f->off;
		put_fixup(w, p->code + s->code, f);
	}
}

static void put_map(struct writer *w, const struct plan *p, const struct plan_site *s)
{
	unsigned stub = 0, window = 0;

	put(w, s->nmaps);
	for (uint32_t i = 0; i < s->nmaps; i++) {
		const struct plan_map *m = &p->maps[s->first_map + i];

		put_from(w, m->stub_off, stub);
		put_from(w, m->window_off, window);
		put(w, m->shape);
		stub = m->stub_off;
		window = m->window_off;
	}
}

static void put_site(struct writer *w, const struct plan *p, const struct plan_site *s)
{
	put_from(w, s->vaddr, w->last);
	w->last = s->vaddr;
	put(w, s->function);
	put(w, s->code_len);
	put(w, (uint64_t)s->window << 3 | (s->landing != 0) << 2 | s->has_place << 1 | s->has_hook);
	put(w, s->patch_len);
	put(w, s->prefix);
	put_bytes(w, plan_old_bytes(p, s), s->window);
	if (s->landing) {
		put_from(w, s->landing, s->vaddr);
		put_bytes(w, s->landing_bytes, PLAN_LANDING);
	}
	put_fixups(w, p, s);
	put_map(w, p, s);
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
		put(w, a->value);
	}
}

static void put_events(struct writer *w, const struct patch_info *info)
{
	put(w, info->nevents);
	for (size_t i = 0; i < info->nevents; i++) {
		const struct patch_event *e = &info->events[i];

		put(w, (uint64_t)e->level << 3 | e->is_resource << 2 | e->is_named << 1 |
			       e->has_number);
		put(w, e->number);
		put(w, e->vaddr);
		put_string(w, e->name);
		put_string(w, e->payload ? e->payload : "");
	}
	put(w, info->nsemaphores);
	for (size_t i = 0; i < info->nsemaphores; i++)
		put(w, info->semaphores[i]);
}

static void make_id(struct patch_note *note, const struct plan *p)
{
	uint64_t sum = sum_of(p->build_id, p->build_id_len, note->info_sum ^ note->block_vaddr);

	memcpy(note->id, &sum, sizeof(note->id));
}

uint8_t *patch_info_encode(const struct patch_info *info, struct patch_note *note)
{
	const struct plan *p = info->plan;
	struct writer w = {0};

	put(&w, p->nfunctions);
	for (size_t i = 0; i < p->nfunctions; i++)
		put_function(&w, p, i, info->levels[i]);
	put(&w, p->nprobes);
	w.last = 0;
	for (size_t i = 0; i < p->nprobes; i++)
		put_probe(&w, &p->probes[i]);
	put(&w, p->nsites);
	w.last = 0;
	for (size_t i = 0; i < p->nsites; i++)
		put_site(&w, p, &p->sites[i]);
	put_actions(&w, p);
	put_events(&w, info);
	note->info_len = w.out.n;
	note->info_sum = sum_of(w.out.v, w.out.n, SUM_START);
	make_id(note, p);
	return w.out.v;
}

/* ---- reading ---- */

struct reader {
	const uint8_t *at, *end;
	bool bad;            /* it ended too soon, or a number is too large for its field */
	uint64_t block_room; /* for stubs in the block */
	uint64_t last, last_probe;
	VEC(struct plan_function) functions;
	VEC(struct plan_probe) probes;
	VEC(struct plan_site) sites;
	VEC(struct plan_fixup) fixups;
	VEC(struct plan_map) maps;
	VEC(struct place_action) actions;
	VEC(struct patch_event) events;
	VEC(uint64_t) semaphores;
	VEC(char) strings;
	VEC(uint8_t) levels;
	uint64_t code_len; /* of all stubs */
	VEC(uint8_t) code; /* zeros where the stubs will be, each followed by its old bytes */
	/* the first two bytes of each sequence, awake: by fixup */
	VEC(uint16_t) awake;
};

static uint64_t get(struct reader *r)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		if (r->at == r->end)
			break;
		v |= (uint64_t)(*r->at & 0x7f) << shift;
		if (!(*r->at++ & 0x80))
			return v;
	}
	r->bad = true;
	return 0;
}

static uint64_t get_from(struct reader *r, uint64_t from)
{
	uint64_t v = get(r);

	return from + (v >> 1 ^ -(v & 1));
}

static uint64_t get_most(struct reader *r, uint64_t most)
{
	uint64_t v = get(r);

	if (v <= most)
		return v;
	r->bad = true;
	return 0;
}

/* The length of a list, each element of which takes a byte at least. */
static uint64_t get_count(struct reader *r)
{
	return get_most(r, (uint64_t)(r->end - r->at));
}

static void get_bytes(struct reader *r, void *out, size_t n)
{
	if ((size_t)(r->end - r->at) < n) {
		r->bad = true;
		return;
	}
	memcpy(out, r->at, n);
	r->at += n;
}

static uint32_t add_string(struct reader *r, const char *s, size_t n)
{
	uint32_t at = (uint32_t)r->strings.n;

	if (!n)
		return 0;
	if (r->strings.n + n + 1 > UINT32_MAX) {
		r->bad = true;
		return 0;
	}
	vec_reserve(&r->strings, r->strings.n + n + 1);
	memcpy(r->strings.v + at, s, n);
	r->strings.v[at + n] = 0;
	r->strings.n += n + 1;
	return at;
}

/* Allocated; never NULL. */
static char *get_string(struct reader *r)
{
	size_t n = get_most(r, NAME_MAX_LEN - 1);
	char *s;

	if (r->bad || (size_t)(r->end - r->at) < n) {
		r->bad = true;
		n = 0;
	}
	s = xstrndup((const char *)r->at, n);
	r->at += n;
	return s;
}

static void get_names(struct reader *r, struct plan_function *f)
{
	char *raw = get_string(r), *readable = *raw ? symbol_demangle(raw) : NULL;

	f->raw_name = add_string(r, raw, strlen(raw));
	f->name = readable ? add_string(r, readable, strlen(readable)) : f->raw_name;
	xfree(readable);
	xfree(raw);
}

static void get_functions(struct reader *r)
{
	uint64_t n = get_count(r), probes = 0;

	r->last = 0;
	for (uint64_t i = 0; i < n && !r->bad; i++) {
		struct plan_function *f = vec_push(&r->functions);

		f->vaddr = r->last = get_from(r, r->last);
		f->size = get(r);
		f->sources = (uint32_t)get_most(r, UINT32_MAX);
		f->first_probe = (uint32_t)probes;
		f->nprobes = (uint32_t)get_most(r, (uint64_t)(r->end - r->at));
		*vec_push(&r->levels) = (uint8_t)get_most(r, 15);
		get_names(r, f);
		probes += f->nprobes;
		r->bad |= probes >= NONE;
	}
}

static void get_probe(struct reader *r, struct plan_probe *p)
{
	uint64_t kind = get_most(r, (PROBE_KINDS << 1) - 1);

	p->kind = (uint8_t)(kind >> 1);
	p->vaddr = r->last = get_from(r, r->last);
	if (kind & 1) {
		p->refusal = (uint8_t)get_most(r, REFUSAL_COUNT - 1);
		p->site = NONE;
	} else {
		p->tactic = (uint8_t)get_most(r, TACTIC_COUNT - 1);
		p->site = (uint32_t)get_most(r, NONE - 1);
	}
	if (p->kind == PROBE_HOOK)
		p->hook = (uint8_t)get_most(r, KRON_HOOK_COUNT - 1);
	if (p->kind != PROBE_PLACE)
		return;
	p->where = (uint8_t)get_most(r, PLACE_AFTER);
	p->action = (uint32_t)get_most(r, UINT32_MAX);
	p->event = (uint32_t)get_most(r, UINT32_MAX);
}

static void get_probes(struct reader *r)
{
	uint64_t n = get_count(r);
	size_t function = 0, left = 0;

	r->last = 0;
	for (uint64_t i = 0; i < n && !r->bad; i++) {
		struct plan_probe *p = vec_push(&r->probes);

		while (!left && function < r->functions.n)
			left = r->functions.v[function++].nprobes;
		get_probe(r, p);
		p->function = left ? (uint32_t)function - 1 : PLAN_NO_FUNCTION;
		left -= left > 0;
	}
}

static void get_fixup(struct reader *r, struct plan_fixup *f)
{
	uint16_t *awake = vec_push(&r->awake);

	f->kind = (uint8_t)get_most(r, FIXUP_COUNT - 1);
	f->value = r->last_probe = get_from(r, r->last_probe);
	r->bad |= f->value > UINT32_MAX || !is_kept(f);
	if (f->kind == FIXUP_PLACE) {
		f->value |= get_most(r, UINT32_MAX) << 32;
		f->addend = (uint8_t)get_most(r, UINT8_MAX);
		f->aux = (uint32_t)get_most(r, UINT32_MAX);
	}
	if (is_sequence(f))
		get_bytes(r, awake, 2);
}

static void get_fixups(struct reader *r, struct plan_site *s)
{
	uint64_t n = get_count(r), off = 0;

	s->first_fixup = (uint32_t)r->fixups.n;
	for (uint64_t i = 0; i < n && !r->bad; i++) {
		struct plan_fixup *f = vec_push(&r->fixups);

		off = get_from(r, off);
		r->bad |= off > UINT16_MAX;
		f->off = (uint16_t)off;
		get_fixup(r, f);
	}
	s->nfixups = (uint32_t)r->fixups.n - s->first_fixup;
}

static void get_map(struct reader *r, struct plan_site *s)
{
	uint64_t n = get_count(r), stub = 0, window = 0;

	s->first_map = (uint32_t)r->maps.n;
	for (uint64_t i = 0; i < n && !r->bad; i++) {
		struct plan_map *m = vec_push(&r->maps);

		stub = get_from(r, stub);
		window = get_from(r, window);
		r->bad |= stub > UINT16_MAX || window > WINDOW_LONG_MAX;
		m->stub_off = (uint16_t)stub;
		m->window_off = window & 0x7ff;
		m->shape = get_most(r, KRON_SHAPES - 1) & 0x1f;
	}
	s->nmaps = (uint32_t)r->maps.n - s->first_map;
}

static void get_site(struct reader *r, struct plan_site *s)
{
	uint64_t window;

	s->vaddr = r->last = get_from(r, r->last);
	s->function = (uint32_t)get_most(r, UINT32_MAX);
	s->code = (uint32_t)r->code.n;
	s->code_len = (uint32_t)get_most(r, UINT16_MAX);
	r->code_len += s->code_len;
	window = get_most(r, WINDOW_LONG_MAX << 3 | 7);
	s->window = (uint16_t)(window >> 3);
	s->has_place = window >> 1 & 1;
	s->has_hook = window & 1;
	s->patch_len = get_most(r, KRON_PATCH_NEW_MAX) & 0xf;
	s->prefix = (uint8_t)get_most(r, UINT8_MAX);
	r->bad |= r->code_len > r->block_room;
	if (r->bad)
		return;
	vec_reserve(&r->code, r->code.n + s->code_len + s->window);
	r->code.n += s->code_len;
	get_bytes(r, r->code.v + r->code.n, s->window);
	r->code.n += s->window;
	if (window >> 2 & 1) {
		s->landing = get_from(r, s->vaddr);
		get_bytes(r, s->landing_bytes, PLAN_LANDING);
	}
	get_fixups(r, s);
	get_map(r, s);
}

static void get_sites(struct reader *r)
{
	uint64_t n = get_count(r);

	r->last = 0;
	for (uint64_t i = 0; i < n && !r->bad; i++)
		get_site(r, vec_push(&r->sites));
}

static void get_actions(struct reader *r)
{
	uint64_t n = get_count(r);

	for (uint64_t i = 0; i < n && !r->bad; i++) {
		struct place_action *a = vec_push(&r->actions);

		a->kind = (uint8_t)get_most(r, ACTION_KINDS - 1);
		a->level = (uint8_t)get_most(r, 15);
		a->word = (uint8_t)get_most(r, 127);
		a->payload = (uint8_t)get_most(r, PAYLOAD_KINDS - 1);
		a->reg = (uint8_t)get_most(r, 15);
		a->ungated = (uint8_t)get_most(r, 1);
		a->value = get(r);
	}
}

static void get_events(struct reader *r)
{
	uint64_t n = get_count(r);

	for (uint64_t i = 0; i < n && !r->bad; i++) {
		struct patch_event *e = vec_push(&r->events);
		uint64_t bits = get_most(r, 15 << 3 | 7);

		e->level = (uint8_t)(bits >> 3);
		e->is_resource = bits >> 2 & 1;
		e->is_named = bits >> 1 & 1;
		e->has_number = bits & 1;
		e->number = (uint32_t)get_most(r, KRON_EVENT_SPECIAL / 2 - 1);
		e->vaddr = get(r);
		e->name = get_string(r);
		e->payload = get_string(r);
		if (!*e->payload) {
			xfree(e->payload);
			e->payload = NULL;
		}
	}
	n = get_count(r);
	for (uint64_t i = 0; i < n && !r->bad; i++)
		*vec_push(&r->semaphores) = get(r);
}

/* ---- the plan, and whether it is true ---- */

static void span_sites(struct plan *p)
{
	uint64_t lo = UINT64_MAX, hi = 0;

	for (size_t i = 0; i < p->nsites; i++) {
		const struct plan_site *s = &p->sites[i];

		lo = s->vaddr < lo ? s->vaddr : lo;
		hi = s->vaddr + s->window > hi ? s->vaddr + s->window : hi;
		if (!s->landing)
			continue;
		lo = s->landing < lo ? s->landing : lo;
		hi = s->landing + PLAN_LANDING > hi ? s->landing + PLAN_LANDING : hi;
	}
	if (lo < hi) {
		p->text_lo = p->reach_lo = lo & -PAGE;
		p->text_hi = p->reach_hi = (hi + PAGE - 1) & -PAGE;
	}
}

/* The vectors become the plan's.  block: what the file has, head and all. */
static struct plan *make_plan(struct reader *r, const struct elf_image *img, const uint8_t *block)
{
	struct plan *p = xcalloc(1, sizeof(*p));

	memcpy(p->build_id, img->build_id, sizeof(p->build_id));
	p->build_id_len = (uint32_t)img->build_id_len;
	p->functions = r->functions.v, p->nfunctions = r->functions.n;
	p->probes = r->probes.v, p->nprobes = r->probes.n;
	p->sites = r->sites.v, p->nsites = r->sites.n;
	p->fixups = r->fixups.v, p->nfixups = r->fixups.n;
	p->maps = r->maps.v, p->nmaps = r->maps.n;
	p->actions = r->actions.v, p->nactions = r->actions.n;
	p->strings = r->strings.v, p->strings_len = r->strings.n;
	p->code = r->code.v, p->code_len = r->code.n;
	block += KRON_BLOCK_HEAD;
	for (size_t i = 0; i < p->nsites && !r->bad; i++) {
		const struct plan_site *s = &p->sites[i];

		memcpy(p->code + s->code, block, s->code_len);
		block += s->code_len;
		for (uint32_t k = 0; k < s->nfixups; k++) {
			uint32_t f = s->first_fixup + k;

			if (is_sequence(&p->fixups[f]) && p->fixups[f].off + 2u <= s->code_len)
				memcpy(p->code + s->code + p->fixups[f].off, &r->awake.v[f], 2);
		}
	}
	span_sites(p);
	return p;
}

/* Text is as before the jumps were written, or as after it. */
static bool is_text(const struct elf_image *img, const struct bound *bound, bool has_jumps)
{
	for (size_t i = 0; i < bound->npatches; i++) {
		const struct kron_patch *p = &bound->patches[i];
		unsigned len = has_jumps ? p->new_len : p->old_len;
		const uint8_t *text = elf_image_at(img, bound->patch_addr + p->off, len);

		if (!text || memcmp(text, has_jumps ? p->new_bytes : p->old_bytes, len))
			return false;
	}
	return true;
}

/* Bound again, the plan gives the block that is in the file, and its text. */
static bool is_true(const struct patch_info *info, const struct elf_image *img,
		    const uint8_t *block)
{
	const struct binding b = {
		.plan = info->plan,
		.block = info->block_vaddr,
		.whole = true,
		.dormant = true,
		.id = info->id,
	};
	struct bound bound;
	bool same;

	if (bind_size(&b) != info->block_len || bind_make(&bound, &b, NULL))
		return false;
	same = !memcmp(bound.block, block, info->block_len) &&
	       is_text(img, &bound, info->has_jumps);
	bound_free(&bound);
	return same;
}

static bool are_events_there(const struct patch_info *info)
{
	for (size_t i = 0; i < info->plan->nprobes; i++) {
		const struct plan_probe *p = &info->plan->probes[i];
		uint8_t kind = p->kind == PROBE_PLACE ? info->plan->actions[p->action].kind : 0;

		if (p->kind == PROBE_PLACE && (kind == ACTION_TRACE || kind == ACTION_RESOURCE) &&
		    p->site != NONE && p->event >= info->nevents)
			return false;
	}
	return true;
}

static int read_plan(struct patch_info *out, const struct elf_image *img,
		     const struct patch_note *note)
{
	const uint8_t *block = elf_image_at(img, note->block_vaddr, note->block_len);
	struct reader r = {.at = img->bytes + note->info_off, .bad = false};

	r.end = r.at + note->info_len;
	r.block_room = note->block_len - KRON_BLOCK_HEAD;
	if (!block || note->block_len < KRON_BLOCK_HEAD ||
	    sum_of(r.at, note->info_len, SUM_START) != note->info_sum ||
	    patch_block_sum(block, note->block_len) != note->block_sum)
		return -EINVAL;
	*vec_push(&r.strings) = 0;
	get_functions(&r);
	get_probes(&r);
	get_sites(&r);
	get_actions(&r);
	get_events(&r);
	r.bad |= r.at != r.end;
	out->plan = make_plan(&r, img, block);
	out->levels = r.levels.v;
	out->events = r.events.v;
	out->nevents = r.events.n;
	out->semaphores = r.semaphores.v;
	out->nsemaphores = r.semaphores.n;
	out->block_vaddr = note->block_vaddr;
	out->block_len = note->block_len;
	out->has_jumps = note->flags & PATCH_HAS_JUMPS;
	memcpy(out->id, note->id, sizeof(out->id));
	vec_free(&r.awake);
	if (!r.bad && plan_is_sound(out->plan) && are_events_there(out) && is_true(out, img, block))
		return 0;
	patch_info_free(out);
	return -EINVAL;
}

/* ---- the note ---- */

bool patch_info_is_there(const struct elf_image *img)
{
	return img->kron_note.off;
}

bool patch_info_has_start(const struct elf_image *img)
{
	struct patch_note note;

	if (!patch_info_is_there(img) || img->kron_note.size != sizeof(note))
		return false;
	memcpy(&note, img->bytes + img->kron_note.off, sizeof(note));
	return note.version == PATCH_VERSION && note.flags & PATCH_HAS_START;
}

/* A tool that wrote the file anew by its sections may have moved it. */
static void find_description(const struct elf_image *img, struct patch_note *note)
{
	const struct elf_section *s = elf_image_section(img, ".kron.plan");

	if (s && s->size == note->info_len)
		note->info_off = s->off;
}

int patch_info_read(struct patch_info *out, const struct elf_image *img, struct err *err)
{
	struct patch_note note;

	memset(out, 0, sizeof(*out));
	if (!patch_info_is_there(img))
		return err_set(err, ENOENT, "%s is not from kron patch", img->path);
	if (img->kron_note.size >= 4 &&
	    elf_read32(img->bytes + img->kron_note.off) != PATCH_VERSION)
		return err_set(
			err, EINVAL,
			"%s was patched by another version of kron: patch the original again",
			img->path);
	if (img->kron_note.size != sizeof(note))
		return err_set(err, EINVAL, "%s is damaged: its kron note is cut short", img->path);
	memcpy(&note, img->bytes + img->kron_note.off, sizeof(note));
	find_description(img, &note);
	if (!elf_has(img, note.info_off, note.info_len) || read_plan(out, img, &note))
		return err_set(err, EINVAL,
			       "%s is damaged, or was patched by another version of kron: what is "
			       "written about its probes does not fit its code",
			       img->path);
	return 0;
}

void patch_events_free(struct patch_event *events, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		xfree(events[i].name);
		xfree(events[i].payload);
	}
	xfree(events);
}

void patch_info_free(struct patch_info *info)
{
	plan_free(info->plan);
	xfree(info->levels);
	xfree(info->semaphores);
	patch_events_free(info->events, info->nevents);
	memset(info, 0, sizeof(*info));
}
