/* SPDX-License-Identifier: MIT */
/*
 * patch_info.c - the plan of a file from `kron patch`, read.  See patch_info.h.
 *
 * What is read is put together to a plan, and then nothing of it is believed: the plan must be
 * sound, and bound again it must give the file's block and the file's text, byte by byte.
 */
#include "inject/disk/patch_info_impl.h"

#include <errno.h>
#include <string.h>

#include <kron/start.h>

#include "base/vec.h"
#include "inject/plan/action.h"
#include "inject/bind/bind.h"
#include "inject/elf/demangle.h"
#include "inject/elf/elf_image_impl.h"
#include "inject/plan/plan_jumps.h"
#include "inject/plan/stub.h"

#define NONE UINT32_MAX
#define PAGE 4096ull

uint64_t patch_block_sum(const uint8_t *part, uint64_t at, uint64_t len, uint64_t sum)
{
	if (at)
		return patch_sum(part, len, sum);
	return patch_sum(part + KRON_BLOCK_HEAD, len - KRON_BLOCK_HEAD, PATCH_SUM_START);
}

/* ---- reading ---- */

struct reader {
	const uint8_t *at, *end;
	bool bad;            /* it ended too soon, or a number is too large for its field */
	uint64_t block_room; /* for stubs in the block */
	uint64_t last;
	struct patch_foresight next;
	bool has_jumps;
	const struct elf_image *img;
	VEC(struct plan_function) functions;
	VEC(struct plan_probe) probes;
	VEC(struct plan_site) sites;
	VEC(struct plan_fixup) fixups;
	VEC(struct plan_map) maps;
	VEC(struct place_action) actions;
	VEC(struct patch_event) events;
	VEC(uint64_t) semaphores;
	uint32_t first_number;
	VEC(char) strings;
	VEC(uint8_t) levels;
	uint64_t old_sum;  /* of the text that was displaced */
	uint64_t code_len; /* of all stubs */
	VEC(uint8_t) code; /* zeros where the stubs will be, each followed by its old bytes */
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

/* What is not foreseen; event: the last one's and its step. */
static void get_probe_rest(struct reader *r, struct plan_probe *p)
{
	p->kind = (uint8_t)get_most(r, PROBE_KINDS - 1);
	if (p->kind == PROBE_HOOK)
		p->hook = (uint8_t)get_most(r, KRON_HOOK_COUNT - 1);
	if (p->kind != PROBE_PLACE)
		return;
	p->where = (uint8_t)get_most(r, PLACE_WHERES - 1);
	p->action = (uint32_t)get_most(r, UINT32_MAX);
	p->event = (uint32_t)get_from(r, r->next.probe.event);
}

static uint32_t get_probe_site(struct reader *r, unsigned way)
{
	uint64_t site = r->next.probe.site;

	if (way == PROBE_SITE_NONE)
		return NONE;
	if (way == PROBE_SITE_NEXT)
		site++;
	if (way == PROBE_SITE_OTHER)
		site = get_from(r, site);
	r->bad |= site >= NONE;
	return (uint32_t)site;
}

static void get_probe(struct reader *r, struct plan_probe *p)
{
	const struct plan_probe *last = &r->next.probe;
	uint64_t head = get_most(r, UINT8_MAX), distance = head & PROBE_FAR;
	unsigned way = head >> PROBE_SITE_BIT & 3;
	uint8_t what;

	p->vaddr = distance == PROBE_FAR ? get_from(r, last->vaddr) : last->vaddr + distance;
	p->site = get_probe_site(r, way);
	what = head & PROBE_SAME_WHAT ? r->next.what[way] : (uint8_t)get_most(r, UINT8_MAX);
	r->bad |= what >= (way == PROBE_SITE_NONE ? REFUSAL_COUNT : TACTIC_COUNT);
	*(way == PROBE_SITE_NONE ? &p->refusal : &p->tactic) = what;
	if (head & PROBE_SAME_REST) {
		p->kind = last->kind;
		p->hook = last->hook;
		p->where = last->where;
		p->action = last->action;
		p->event = last->event + r->next.event_step;
	} else {
		get_probe_rest(r, p);
	}
	patch_foresee_probe(&r->next, p, way, what);
}

static void get_probes(struct reader *r)
{
	uint64_t n = get_count(r);
	size_t function = 0, left = 0;

	for (uint64_t i = 0; i < n && !r->bad; i++) {
		struct plan_probe *p = vec_push(&r->probes);

		while (!left && function < r->functions.n)
			left = r->functions.v[function++].nprobes;
		get_probe(r, p);
		p->function = left ? (uint32_t)function - 1 : PLAN_NO_FUNCTION;
		left -= left > 0;
	}
}

/* nth: of the site's counts and stores. */
static void get_fixup(struct reader *r, struct plan_fixup *f, uint64_t site, unsigned *nth)
{
	struct action_room room;
	struct patch_foresight *next = &r->next;
	uint64_t i = get_most(r, next->nkeys), key = i < next->nkeys ? next->keys[i] : get(r);
	uint64_t cold;

	patch_note_key(next, key);
	*f = (struct plan_fixup){.off = f->off, .kind = key & 15};
	f->value = get_from(r, next->fixup_probe);
	r->bad |= f->value > UINT32_MAX || !patch_is_kept(f);
	next->fixup_probe = (uint32_t)f->value;
	if (f->kind != FIXUP_PLACE)
		return;
	cold = get_from(r, next->cold);
	r->bad |= cold > UINT16_MAX || key >> 60;
	next->cold = (uint16_t)cold;
	f->value |= cold << 32 | (key >> 4 & UINT16_MAX) << 48;
	f->addend = (uint8_t)(key >> 20);
	f->aux = (uint32_t)(key >> 28);
	action_room_get(&room, f);
	room.bank = cold ? action_bank(site, (*nth)++) : 0;
	action_room_put(f, &room);
}

static void get_fixups(struct reader *r, struct plan_site *s)
{
	uint64_t n = get_count(r), off = 0;
	unsigned nth = 0;

	s->first_fixup = (uint32_t)r->fixups.n;
	r->next.cold = 0;
	for (uint64_t i = 0; i < n && !r->bad; i++) {
		struct plan_fixup *f = vec_push(&r->fixups);

		off += get_most(r, UINT16_MAX);
		r->bad |= off > UINT16_MAX;
		f->off = (uint16_t)off;
		get_fixup(r, f, s->vaddr, &nth);
	}
	s->nfixups = (uint32_t)r->fixups.n - s->first_fixup;
}

/* Where nothing was written over them, they stand in the text. */
static void get_old_bytes(struct reader *r, uint64_t vaddr, void *out, size_t n)
{
	const uint8_t *text;

	if (r->has_jumps) {
		get_bytes(r, out, n);
		return;
	}
	text = elf_image_at(r->img, vaddr, n);
	r->bad |= !text;
	if (text)
		memcpy(out, text, n);
}

static void get_relay(struct reader *r, const struct plan_site *s)
{
	struct plan_relay relay = {.from_site = (int16_t)get_from(r, 0)};

	get_old_bytes(r, s->vaddr + (uint64_t)(int64_t)relay.from_site, relay.bytes, PLAN_RELAY);
	memcpy(r->code.v + r->code.n, &relay, sizeof(relay));
	r->code.n += sizeof(relay);
}

static void get_text(struct reader *r, struct plan_site *s)
{
	vec_reserve(&r->code, r->code.n + plan_site_bytes(s));
	r->code.n += s->kept;
	get_old_bytes(r, s->vaddr, r->code.v + r->code.n, s->window);
	r->code.n += s->window;
	if (s->landing)
		get_old_bytes(r, s->landing, s->landing_bytes, PLAN_LANDING);
	for (unsigned i = 0; i < s->nrelays; i++)
		get_relay(r, s);
}

static void get_site(struct reader *r, struct plan_site *s)
{
	uint64_t window;

	s->vaddr = r->last = get_from(r, r->last);
	s->function = r->next.function = (uint32_t)get_from(r, r->next.function);
	s->code = (uint32_t)r->code.n;
	s->code_len = (uint16_t)get_most(r, UINT16_MAX);
	r->code_len += s->code_len;
	window = get_most(r, WINDOW_LONG_MAX << 4 | 15);
	s->window = (uint16_t)(window >> 4);
	s->has_place = window >> 1 & 1;
	s->has_hook = window & 1;
	s->patch_len = WINDOW_JUMP;
	if (!(window >> 2 & 1)) {
		uint64_t patch = get_most(r, KRON_RELAYS_MAX << 4 | 15);

		s->patch_len = patch & 15;
		s->nrelays = (uint8_t)(patch >> 4);
		s->prefix = (uint8_t)get_most(r, UINT8_MAX);
	}
	r->bad |= r->code_len > r->block_room;
	if (r->bad)
		return;
	if (window >> 3 & 1)
		s->landing = get_from(r, s->vaddr);
	get_fixups(r, s);
	s->kept = (uint16_t)plan_code_kept(r->fixups.v + s->first_fixup, s->nfixups, s->code_len);
	r->bad |= !s->kept;
	if (!r->bad)
		get_text(r, s);
}

static void get_sites(struct reader *r)
{
	uint64_t n = get_count(r);

	r->last = 0;
	for (uint64_t i = 0; i < n && !r->bad; i++)
		get_site(r, vec_push(&r->sites));
}

/* Bytes whose range request_is_action_sound() knows. */
static void get_small(struct reader *r, uint8_t *const *fields, size_t n)
{
	for (size_t i = 0; i < n; i++)
		*fields[i] = (uint8_t)get_most(r, UINT8_MAX);
}

static void get_condition(struct reader *r, struct place_condition *c)
{
	get_small(r,
		  (uint8_t *const[]){&c->what, &c->reg, &c->compare, &c->bits, &c->is_signed,
				     &c->has_mask},
		  6);
	c->mask = get(r);
	c->number = get(r);
}

static void get_actions(struct reader *r)
{
	for (uint64_t n = get_count(r); n && !r->bad; n--) {
		struct place_action *a = vec_push(&r->actions);
		uint8_t *const small[] = {&a->kind, &a->level,   &a->word,    &a->payload,
					  &a->reg,  &a->ungated, &a->is_wide, &a->nplaces,
					  &a->bits, &a->count};

		get_small(r, small, sizeof(small) / sizeof(small[0]));
		a->value = get(r);
		a->nconditions = (uint8_t)get_most(r, PLACE_CONDITIONS);
		for (unsigned k = 0; k < a->nconditions; k++)
			get_condition(r, &a->conditions[k]);
		for (unsigned k = 0; k < a->nplaces && k < PLACE_DEPTH; k++)
			a->place[k] = (int32_t)get_most(r, UINT32_MAX);
		r->bad |= !request_is_action_sound(a);
	}
}

/* Allocated; *most: how much of it may be shared. */
static char *get_name(struct reader *r, const char *like, uint64_t *most)
{
	uint64_t n = get_most(r, strnlen(like, *most));
	char *rest = get_string(r), *name = xasprintf("%.*s%s", (int)n, like, rest);

	xfree(rest);
	*most -= n;
	return name;
}

static void get_events(struct reader *r, uint64_t shared)
{
	uint64_t n = get_count(r);
	const char *last = "";

	r->last = 0;
	for (uint64_t i = 0; i < n && !r->bad; i++) {
		struct patch_event *e = vec_push(&r->events);
		uint64_t bits = get_most(r, 15 << 3 | 7);

		e->level = (uint8_t)(bits >> 3);
		e->is_resource = bits >> 2 & 1;
		e->is_named = bits >> 1 & 1;
		e->has_number = bits & 1;
		e->number = (uint32_t)get_most(r, KRON_EVENT_SPECIAL / 2 - 1);
		e->vaddr = r->last = get_from(r, r->last);
		last = e->name = get_name(r,
					  patch_name_like(r->functions.v, r->functions.n,
							  r->strings.v, e->vaddr, last),
					  &shared);
		e->payload = get_string(r);
		if (!*e->payload) {
			xfree(e->payload);
			e->payload = NULL;
		}
	}
	r->first_number = (uint32_t)get_most(r, KRON_EVENT_SPECIAL / 2 - 1);
	n = get_count(r);
	for (uint64_t i = 0; i < n && !r->bad; i++)
		*vec_push(&r->semaphores) = get(r);
}

/* ---- the instruction map: it is in the block's tables ---- */

/* Goes through the spots in their order. */
struct spots {
	const uint8_t *at; /* the tables */
	struct kron_tables t;
	uint32_t granule, i; /* the next one */
	struct kron_granule now, after;
	bool is_open; /* now and after are those of granule */
	/* the spot at work: where it begins in the block, what it belongs to */
	uint32_t start, insn;
	unsigned shape;
	bool is_there;
};

static void spots_open(struct spots *s)
{
	const uint8_t *at = s->at + s->t.granule_at + s->granule * sizeof(s->now);

	memcpy(&s->now, at, sizeof(s->now));
	memcpy(&s->after, at + sizeof(s->now), sizeof(s->after));
	s->i = s->now.first;
	s->is_open = true;
}

/* Takes spot i; false: it goes on from the granule before. */
static bool spots_take(struct spots *s)
{
	uint32_t spot, start = s->granule * KRON_GRANULE;
	bool is_first = s->i == s->now.first;

	memcpy(&spot, s->at + s->t.spot_at + s->i++ * sizeof(spot), sizeof(spot));
	s->start = start + KRON_SPOT_OFFSET(spot);
	s->insn = s->now.insn + KRON_SPOT_INSN(spot);
	s->shape = KRON_SPOT_SHAPE(spot);
	return !is_first || s->start == start || start <= s->t.stubs_at;
}

static void spots_next(struct spots *s)
{
	s->is_there = false;
	while (s->granule < s->t.ngranules && !s->is_there) {
		if (!s->is_open)
			spots_open(s);
		if (s->i >= s->after.first) {
			s->granule++;
			s->is_open = false;
		} else if (s->i >= (s->t.size - s->t.spot_at) / sizeof(uint32_t)) {
			return;
		} else {
			s->is_there = spots_take(s);
		}
	}
}

static bool spots_start(struct spots *s, const uint8_t *block, uint64_t len)
{
	uint32_t at;

	memset(s, 0, sizeof(*s));
	memcpy(&at, block + KRON_BLOCK_TABLES, sizeof(at));
	if (at > len || len - at < sizeof(s->t))
		return false;
	s->at = block + at;
	memcpy(&s->t, s->at, sizeof(s->t));
	if (s->t.size > len - at || s->t.granule_at > s->t.size || s->t.spot_at > s->t.size ||
	    s->t.ngranules >= (s->t.size - s->t.granule_at) / sizeof(struct kron_granule))
		return false;
	spots_next(s);
	return true;
}

/* Those of a stub of the block. */
static void get_map(struct reader *r, struct spots *from, struct plan_site *s, uint32_t stub)
{
	s->first_map = (uint32_t)r->maps.n;
	for (; from->is_there && from->start - stub < s->code_len; spots_next(from)) {
		uint64_t window = from->t.lo + from->insn - s->vaddr;

		r->bad |= window > WINDOW_LONG_MAX || from->shape >= KRON_SHAPES;
		*vec_push(&r->maps) = (struct plan_map){
			.stub_off = (uint16_t)(from->start - stub),
			.window_off = window & 0x7ff,
			.shape = from->shape & 0x1f,
		};
	}
	s->nmaps = (uint32_t)r->maps.n - s->first_map;
}

/* ---- the plan, and whether it is true ---- */

static void span(uint64_t *lo, uint64_t *hi, uint64_t vaddr, unsigned len)
{
	*lo = vaddr < *lo ? vaddr : *lo;
	*hi = vaddr + len > *hi ? vaddr + len : *hi;
}

static void span_sites(struct plan *p)
{
	uint64_t lo = UINT64_MAX, hi = 0;

	for (size_t i = 0; i < p->nsites; i++) {
		const struct plan_site *s = &p->sites[i];

		span(&lo, &hi, s->vaddr, s->window);
		if (s->landing)
			span(&lo, &hi, s->landing, PLAN_LANDING);
		for (unsigned k = 0; k < s->nrelays; k++)
			span(&lo, &hi, plan_relay_vaddr(p, s, k), PLAN_RELAY);
	}
	if (lo < hi) {
		p->text_lo = p->reach_lo = lo & -PAGE;
		p->text_hi = p->reach_hi = (hi + PAGE - 1) & -PAGE;
	}
}

/* The stub as it is awake. */
static void get_stub(const struct plan *p, const struct plan_site *s, const uint8_t *stub)
{
	static const uint8_t lea[2] = {0x48, 0x8d}; /* all sequences but counts and stores */
	const struct plan_fixup *f = p->fixups + s->first_fixup, *end = f + s->nfixups;
	unsigned left_out = 0;

	plan_code_take(p->code + s->code, stub, f, s->nfixups, s->code_len);
	for (; f < end; f++) {
		unsigned blank = plan_code_left_out(f), at = f->off - left_out;

		left_out += blank;
		if (f->kind != FIXUP_EVENT && !blank && at + sizeof(lea) <= s->kept)
			memcpy(p->code + s->code + at, lea, sizeof(lea));
	}
}

/* Stubs and their maps, from where bind_make() put them. */
static void get_stubs(struct reader *r, const struct plan *p, const uint8_t *block)
{
	const uint64_t len = r->block_room + KRON_BLOCK_HEAD;
	const struct binding b = {.plan = p, .whole = true};
	uint32_t *stub_at = xmalloc((p->nsites + 1) * sizeof(*stub_at));
	struct spots spots;

	r->bad |= bind_lay_out(&b, stub_at) > len || !spots_start(&spots, block, len);
	for (size_t i = 0; i < p->nsites && !r->bad; i++) {
		get_stub(p, &p->sites[i], block + stub_at[i]);
		get_map(r, &spots, &p->sites[i], stub_at[i]);
	}
	xfree(stub_at);
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
	p->actions = r->actions.v, p->nactions = r->actions.n;
	p->strings = r->strings.v, p->strings_len = r->strings.n;
	p->code = r->code.v, p->code_len = r->code.n;
	if (!r->bad)
		get_stubs(r, p, block);
	p->maps = r->maps.v, p->nmaps = r->maps.n;
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

static uint32_t flags_of(const struct elf_image *img)
{
	struct patch_note note;

	if (!patch_info_is_there(img) || img->kron_note.size != sizeof(note))
		return 0;
	memcpy(&note, img->bytes + img->kron_note.off, sizeof(note));
	return note.version == PATCH_VERSION ? note.flags : 0;
}

/* Where the file's own hooks lead: to its start-up code, after the block. */
static uint64_t own_hook(const struct patch_info *info, const struct elf_image *img)
{
	uint64_t vaddr = info->block_vaddr + info->block_len;
	const uint8_t *at = elf_image_at(img, vaddr, sizeof(struct kron_start));
	struct kron_start h;

	if (!(flags_of(img) & PATCH_OWN_HOOK) || !at)
		return 0;
	memcpy(&h, at, sizeof(h));
	return vaddr + h.hook;
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
		.own_hook = own_hook(info, img),
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
	struct reader r = {.at = img->bytes + note->info_off,
			   .img = img,
			   .has_jumps = note->flags & PATCH_HAS_JUMPS};

	r.end = r.at + note->info_len;
	r.block_room = note->block_len - KRON_BLOCK_HEAD;
	if (!block || note->block_len < KRON_BLOCK_HEAD ||
	    patch_sum(r.at, note->info_len, PATCH_SUM_START) != note->info_sum ||
	    patch_block_sum(block, 0, note->block_len, 0) != note->block_sum)
		return -EINVAL;
	*vec_push(&r.strings) = 0;
	get_functions(&r);
	get_probes(&r);
	get_actions(&r);
	get_sites(&r);
	r.old_sum = get(&r);
	get_events(&r, PATCH_SHARED_MAX * note->block_len);
	r.bad |= r.at != r.end;
	out->plan = make_plan(&r, img, block);
	out->levels = r.levels.v;
	out->events = r.events.v;
	out->nevents = r.events.n;
	out->semaphores = r.semaphores.v;
	out->nsemaphores = r.semaphores.n;
	out->first_number = r.first_number;
	out->block_vaddr = note->block_vaddr;
	out->block_len = note->block_len;
	out->has_jumps = note->flags & PATCH_HAS_JUMPS;
	memcpy(out->id, note->id, sizeof(out->id));
	r.bad = r.bad || patch_old_sum(out->plan) != r.old_sum;
	if (!r.bad && plan_is_sound(out->plan) && are_events_there(out) &&
	    is_true(out, img, block)) {
		plan_add_jumps(out->plan, img);
		return 0;
	}
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
	return flags_of(img) & PATCH_HAS_START;
}

bool patch_info_has_board(const struct elf_image *img)
{
	return flags_of(img) & (PATCH_HAS_START | PATCH_HAS_BOARD);
}

uint32_t patch_info_first_number(const struct patch_info *info)
{
	uint32_t first = info->first_number;

	for (size_t i = 0; i < info->nevents; i++)
		if (info->events[i].has_number && info->events[i].number >= first)
			first = info->events[i].number + 1;
	return first;
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
