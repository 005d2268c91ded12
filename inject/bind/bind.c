/* SPDX-License-Identifier: MIT */
/*
 * bind.c - lays the stubs of the selected functions into a block and fills in addresses.
 *
 *   block   head (128 bytes) | commons (action.h) | stub | stub | ... | tables (kron/tables.h)
 *
 * A stub serves entry, exits and hooks of one function at once.  Where the function is not
 * selected but its hook is wanted, or the reverse, the unwanted sequences become a short jump
 * over themselves.
 */
#include "inject/bind/bind.h"

#include <errno.h>
#include <string.h>

#include <kron/board.h>
#include <kron/segment.h>

#include "base/vec.h"
#include "base/search.h"
#include "inject/plan/action.h"
#include "inject/plan/action_pages.h"
#include "inject/plan/stub.h"
#include "inject/bind/bind_layout.h"
#include "inject/plan/window.h"

#define PAGE 4096ull

bool bind_is_selected(const struct binding *b, uint32_t function)
{
	return b->selected && b->selected[function] && b->selected[function] != SELECTED_CALLSITES;
}

/* It can be woken: but for the jump over it all is as it would be. */
bool bind_sleeps(const struct binding *b, const struct plan_probe *p)
{
	return b->sleeps && b->sleeps(b->sleeps_ctx, p);
}

/* ---- filling in ---- */

static void put32(uint8_t *at, uint32_t v)
{
	memcpy(at, &v, sizeof(v));
}

/* A part of the block that is being filled in. */
struct placing {
	const struct binding *b;
	const uint32_t *stub_at; /* by site: offset in the block */
	uint32_t *common_at;     /* by action: likewise, of the first of its two */
	uint8_t *bytes;
	uint32_t from; /* what of the block they are */
	uint64_t probes;
};

static uint8_t *at(const struct placing *pl, uint32_t off)
{
	return pl->bytes + (off - pl->from);
}

/* rel32 at block offset off; its instruction ends addend bytes after it */
static bool put_rel32(const struct placing *pl, uint32_t off, int addend, uint64_t target)
{
	int64_t distance = (int64_t)(target - (pl->b->block + off + (uint64_t)(int64_t)addend));

	if (distance != (int32_t)distance)
		return false;
	put32(at(pl, off), (uint32_t)distance);
	return true;
}

static void skip_over(uint8_t *sequence, unsigned len)
{
	if (len - 2 > INT8_MAX) {
		sequence[0] = 0xe9; /* jmp rel32 */
		put32(sequence + 1, len - 5);
		return;
	}
	sequence[0] = 0xeb; /* jmp rel8 */
	sequence[1] = len - 2;
}

static uint32_t event_of(const struct binding *b, const struct plan_probe *p)
{
	uint32_t number = b->event_base + p->function;

	if (p->kind != PROBE_EXIT)
		return KRON_EVENT_ENTRY(number);
	if (b->has_jumps && p->action)
		return KRON_EVENT_JUMP(b->jump_base + p->action - 1);
	return KRON_EVENT_EXIT(number);
}

static bool place_probe(struct placing *pl, uint32_t off, const struct plan_probe *p)
{
	const struct binding *b = pl->b;
	uint8_t level = b->levels ? b->levels[p->function] : b->level;

	if (b->dormant || !bind_is_selected(b, p->function)) {
		skip_over(at(pl, off), STUB_PROBE_LEN);
		return true;
	}
	pl->probes++;
	put32(at(pl, off + STUB_PROBE_GATE), KRON_GATE_ADDR(level));
	put32(at(pl, off + STUB_PROBE_EVENT), event_of(b, p));
	if (!put_rel32(pl, off + STUB_PROBE_CALL, 4,
		       b->block + (b->timed && b->timed[p->function] ? KRON_BLOCK_TIMED
								     : KRON_BLOCK_THUNK)))
		return false;
	if (bind_sleeps(b, p))
		skip_over(at(pl, off), STUB_PROBE_LEN);
	return true;
}

static bool wraps_handlers(const struct plan_probe *p)
{
	return p->hook == KRON_HOOK_SYSTEM_CALL || p->hook == KRON_HOOK_HANDLERS ||
	       p->hook == KRON_HOOK_SIGACTION;
}

static bool is_awake(const struct binding *b, const struct plan_probe *p)
{
	if (kron_hook_is_unwind(p->hook) && !b->unwinds)
		return false;
	if (b->dormant)
		return b->own_hook && p->hook != KRON_HOOK_SIGACTION && wraps_handlers(p);
	if (b->alone)
		return !b->handlers_only || wraps_handlers(p);
	return b->hooks && p->hook != KRON_HOOK_HANDLERS;
}

static bool place_hook(struct placing *pl, uint32_t off, const struct plan_probe *p)
{
	if (!is_awake(pl->b, p)) {
		skip_over(at(pl, off), STUB_HOOK_LEN);
		return true;
	}
	put32(at(pl, off + STUB_HOOK_NUMBER), p->hook);
	return put_rel32(pl, off + STUB_HOOK_CALL, 4, pl->b->block + KRON_BLOCK_HOOK);
}

static bool fill_action(struct placing *pl, uint32_t stub, const struct plan_fixup *f,
			const struct place_action *a, const struct action_ground *ground)
{
	unsigned common = 0, call = action_fill(at(pl, stub), f, a, ground, &common);

	common += pl->common_at[a - pl->b->plan->actions];
	return !call || put_rel32(pl, stub + call, 4, pl->b->block + common);
}

/*
 * Of a place: its count or store.  Samples have nothing that is not filled in elsewhere.  Asleep
 * it looks as on the exact bus, but for the jump: little is to be said then about how to wake it
 * without a collector (start_code.h).
 */
static bool place_action(struct placing *pl, uint32_t stub, const struct plan_fixup *f)
{
	const struct binding *b = pl->b;
	struct action_ground ground = {.way = b->way, .counts = b->counts};
	const struct place_action *a;
	const struct plan_probe *p;
	struct action_room room;
	bool filled = true;

	action_room_get(&room, f);
	p = &b->plan->probes[room.probe];
	a = &b->plan->actions[p->action];
	if (a->kind == ACTION_CALLS)
		ground.number =
			p->kind == PROBE_PLACE ? (uint32_t)a->value : b->event_base + p->function;
	if (b->dormant || b->no_places ||
	    (p->kind == PROBE_ENTRY && !bind_is_selected(b, p->function))) {
		ground = (struct action_ground){.way = KRON_THUNK_EXACT};
		if (room.cold)
			filled = fill_action(pl, stub, f, a, &ground);
		skip_over(at(pl, stub + f->off), room.hot);
		return filled;
	}
	pl->probes += room.times ? room.times : 1;
	filled = !room.cold || fill_action(pl, stub, f, a, &ground);
	if (bind_sleeps(b, p))
		skip_over(at(pl, stub + f->off), room.hot);
	return filled;
}

static bool place_event(struct placing *pl, uint32_t off, const struct plan_probe *p)
{
	const struct binding *b = pl->b;
	uint32_t number;

	if (b->dormant || b->no_places)
		return true;
	if (p->event >= b->nevents)
		return false;
	number = b->events[p->event];
	put32(at(pl, off),
	      number & BIND_EXIT ? KRON_EVENT_EXIT(number & ~BIND_EXIT) : KRON_EVENT_ENTRY(number));
	return true;
}

/* An entry that is not bound has its function's own first instruction. */
static uint64_t way_into(const struct placing *pl, uint64_t site, uint64_t stub_off)
{
	return pl->stub_at[site] ? pl->b->block + pl->stub_at[site] + stub_off
				 : pl->b->bias + pl->b->plan->sites[site].vaddr;
}

static bool place_fixup(struct placing *pl, uint32_t stub, const struct plan_fixup *f)
{
	const struct binding *b = pl->b;
	uint32_t off = stub + f->off;

	switch ((enum fixup_kind)f->kind) {
	case FIXUP_PROBE:
		return place_probe(pl, off, &b->plan->probes[f->value]);
	case FIXUP_HOOK:
		return place_hook(pl, off, &b->plan->probes[f->value]);
	case FIXUP_MODULE_REL32:
		return put_rel32(pl, off, (int8_t)f->addend, b->bias + f->value);
	case FIXUP_MODULE_LO32:
		put32(at(pl, off), (uint32_t)(b->bias + f->value));
		return true;
	case FIXUP_MODULE_HI32:
		put32(at(pl, off), (uint32_t)((b->bias + f->value) >> 32));
		return true;
	case FIXUP_SITE_REL32:
		return put_rel32(pl, off, f->addend,
				 way_into(pl, f->value >> 16, f->value & 0xffff));
	case FIXUP_CHAIN_REL32:
		return put_rel32(pl, off, f->addend, way_into(pl, f->value, 0));
	case FIXUP_PLACE:
		return place_action(pl, stub, f);
	case FIXUP_EVENT:
		return place_event(pl, off, &b->plan->probes[f->value]);
	case FIXUP_BLOCK_REL32:
		return put_rel32(pl, off, f->addend, b->block + f->value);
	case FIXUP_PAGES:
		action_pages_fill(at(pl, off), b->counts, action_pages_function(b->event_base, f));
		return true;
	case FIXUP_FUNCTION:
		put32(at(pl, off), action_pages_function(b->event_base, f));
		return true;
	case FIXUP_COUNT:
		break;
	}
	return false;
}

static bool place_stub(struct placing *pl, const struct plan_site *site, uint32_t stub)
{
	const struct plan *plan = pl->b->plan;

	plan_code_give(at(pl, stub), plan, site);
	for (uint32_t i = 0; i < site->nfixups; i++)
		if (!place_fixup(pl, stub, &plan->fixups[site->first_fixup + i]))
			return false;
	return true;
}

static void place_head(const struct binding *b, uint8_t *head, uint32_t tables)
{
	static const uint8_t jump[] = {0xff, 0x25, 0x0a, 0x00, 0x00, 0x00}; /* jmp *10(%rip) */
	static const uint8_t far[] = {0xff, 0x25, 0x12, 0x00, 0x00, 0x00};  /* jmp *18(%rip) */

	memcpy(head + KRON_BLOCK_THUNK, jump, sizeof(jump));
	memcpy(head + KRON_BLOCK_HOOK, jump, sizeof(jump));
	memcpy(head + KRON_BLOCK_PAYLOAD, jump, sizeof(jump));
	memcpy(head + KRON_BLOCK_ACTION, jump, sizeof(jump));
	memcpy(head + KRON_BLOCK_WIDE, jump, sizeof(jump));
	memcpy(head + KRON_BLOCK_MEMORY, jump, sizeof(jump));
	memcpy(head + KRON_BLOCK_TIMED, far, sizeof(far));
	memcpy(head + KRON_BLOCK_THUNK + 16, &b->thunk, 8);
	memcpy(head + KRON_BLOCK_HOOK + 16, &b->hook_thunk, 8);
	if (b->id)
		memcpy(head + KRON_BLOCK_ID, b->id, KRON_BLOCK_ID_LEN);
	memcpy(head + KRON_BLOCK_PAYLOAD + 16, &b->payload_thunk, 8);
	memcpy(head + KRON_BLOCK_ACTION + 16, &b->action_thunk, 8);
	memcpy(head + KRON_BLOCK_WIDE + 16, b->wide_thunk ? &b->wide_thunk : &b->payload_thunk, 8);
	memcpy(head + KRON_BLOCK_MEMORY + 16, &b->memory_thunk, 8);
	memcpy(head + KRON_BLOCK_TIMED + 24, b->timed_thunk ? &b->timed_thunk : &b->thunk, 8);
	put32(head + KRON_BLOCK_TABLES, tables);
}

/* A file's own code follows its block, wherever they are loaded. */
static bool place_own_hook(const struct placing *pl)
{
	if (!pl->b->dormant || !pl->b->own_hook)
		return true;
	*at(pl, KRON_BLOCK_HOOK) = 0xe9; /* jmp rel32 */
	return put_rel32(pl, KRON_BLOCK_HOOK + 1, 4, pl->b->own_hook);
}

static void place_commons(struct placing *pl)
{
	const struct plan *plan = pl->b->plan;
	uint32_t to = KRON_BLOCK_HEAD;

	for (size_t i = 0; i < plan->nactions; i++) {
		if (!action_has_common(&plan->actions[i]))
			continue;
		action_fill_common(at(pl, to), &plan->actions[i]);
		pl->common_at[i] = to;
		for (unsigned k = 0; k < 2; k++, to += ACTION_COMMON_LEN)
			put_rel32(pl, to + ACTION_COMMON_CALL, 4, pl->b->block + KRON_BLOCK_ACTION);
	}
}

/* ---- patches ---- */

/* Old bytes to be checked, at most KRON_PATCH_OLD_MAX of them. */
static struct kron_patch *add_patch(struct bound *out, uint32_t off, const uint8_t *old,
				    unsigned old_len)
{
	struct kron_patch *p = &out->patches[out->npatches++];

	memset(p, 0, sizeof(*p));
	p->off = off;
	p->old_len = old_len < KRON_PATCH_OLD_MAX ? old_len : KRON_PATCH_OLD_MAX;
	memcpy(p->old_bytes, old, p->old_len);
	return p;
}

/* Old bytes to be checked, as many as there are; the first record is returned. */
static struct kron_patch *add_window(struct bound *out, uint32_t off, const uint8_t *old,
				     unsigned len)
{
	struct kron_patch *p = add_patch(out, off, old, len);

	for (unsigned at = KRON_PATCH_OLD_MAX; at < len; at += KRON_PATCH_OLD_MAX)
		add_patch(out, off + at, old + at, len - at);
	return p;
}

/* The table of far jumps, as far as it is filled. */
struct far_words {
	uint64_t addr, *v;
	size_t n;
};

/* jmp rel32, after a prefix if there is one. */
static bool put_jump(struct kron_patch *p, uint8_t prefix, int64_t to)
{
	unsigned at = prefix != 0;
	int64_t distance = to - (int64_t)(p->off + at + WINDOW_JUMP);

	p->new_len = at + WINDOW_JUMP;
	p->new_bytes[0] = prefix;
	p->new_bytes[at] = 0xe9;
	put32(p->new_bytes + at + 1, (uint32_t)distance);
	return distance == (int32_t)distance;
}

/* jmp *word, the next one of the table. */
static bool put_far(struct kron_patch *p, struct far_words *words, uint64_t to)
{
	uint64_t at = words->addr + words->n * sizeof(uint64_t);

	words->v[words->n++] = to;
	p->new_len = WINDOW_FAR;
	memcpy(p->new_bytes, "\xff\x24\x25", 3);
	put32(p->new_bytes + 3, (uint32_t)at);
	return at <= INT32_MAX;
}

/* jmp rel8, or no more of it than its first byte. */
static bool put_short(struct kron_patch *p, uint8_t prefix, unsigned len, int64_t to)
{
	unsigned at = prefix != 0;
	int64_t distance = to - (int64_t)(p->off + at + WINDOW_SHORT);

	p->new_len = len;
	p->new_bytes[0] = prefix;
	p->new_bytes[at] = 0xeb;
	if (len > 1)
		p->new_bytes[at + 1] = (uint8_t)distance;
	return distance == (int8_t)distance;
}

/* From each relay on to the next one, from the last one to the landing. */
static bool put_relays(struct bound *out, const struct binding *b, const struct plan_site *site,
		       uint64_t text)
{
	bool reaches = true;

	for (unsigned i = 0; i < site->nrelays; i++) {
		bool is_last = i + 1u == site->nrelays;
		struct plan_relay r = plan_relay(b->plan, site, i);
		uint64_t next = is_last ? site->landing : plan_relay_vaddr(b->plan, site, i + 1);
		struct kron_patch *p =
			add_patch(out, (uint32_t)(plan_relay_vaddr(b->plan, site, i) - text),
				  r.bytes, PLAN_RELAY);

		reaches &= put_short(p, 0, PLAN_RELAY, (int64_t)(next - text));
	}
	return reaches;
}

/* All places as offsets from the first patched page. */
static bool make_patches(struct bound *out, const struct binding *b, const struct plan_site *site,
			 uint32_t stub, struct far_words *words)
{
	uint64_t text = out->patch_addr - b->bias;
	int64_t to = (int64_t)(b->block + stub - out->patch_addr);
	struct kron_patch *p;

	if (site->landing) {
		p = add_patch(out, site->landing - text, site->landing_bytes, PLAN_LANDING);
		if (!put_jump(p, 0, to) || !put_relays(out, b, site, text))
			return false;
	}
	p = add_window(out, site->vaddr - text, plan_old_bytes(b->plan, site), site->window);
	if (site->landing)
		return put_short(p, site->prefix, site->patch_len,
				 (int64_t)(plan_short_target(b->plan, site) - text));
	if (site->patch_len == WINDOW_FAR)
		return put_far(p, words, b->block + stub);
	if (site->patch_len > 1)
		return put_jump(p, site->prefix, to);
	p->new_len = site->patch_len; /* int3, or nothing */
	p->new_bytes[0] = 0xcc;
	return true;
}

static void span(uint64_t *lo, uint64_t *hi, uint64_t vaddr, unsigned len)
{
	if (vaddr < *lo)
		*lo = vaddr;
	if (vaddr + len > *hi)
		*hi = vaddr + len;
}

/* The span of the bound sites. */
static void measure_span(const struct binding *b, struct bound *out)
{
	uint64_t lo = UINT64_MAX, hi = 0;

	for (size_t i = 0; i < b->plan->nsites; i++) {
		const struct plan_site *site = &b->plan->sites[i];

		if (!out->stub_at[i])
			continue;
		span(&lo, &hi, site->vaddr, site->window);
		if (site->landing)
			span(&lo, &hi, site->landing, PLAN_LANDING);
		for (unsigned k = 0; k < site->nrelays; k++)
			span(&lo, &hi, plan_relay_vaddr(b->plan, site, k), PLAN_RELAY);
	}
	if (hi) {
		lo &= -PAGE;
		out->patch_addr = b->bias + lo;
		out->patch_len = ((hi + PAGE - 1) & -PAGE) - lo;
	}
}

/* ---- the block, or one part after the other ---- */

/* Bytes of stubs in a part, but for the last of them. */
#define PART (128u << 10)

struct bind_parts {
	struct placing pl;
	struct bound bound; /* block and patches: of the part at work */
	struct far_words words;
	struct bind_layout layout;
	size_t site;   /* the next one */
	uint32_t from; /* where the next part begins */
};

/* Whoever asked for the size has it already. */
static void take_layout(struct bind_layout *out, const struct binding *b)
{
	if (!b->layout || !b->layout->stub_at) {
		bind_layout_make(out, b);
		return;
	}
	*out = *b->layout;
	b->layout->stub_at = NULL;
}

static void begin(struct bind_parts *p, const struct binding *b)
{
	*p = (struct bind_parts){
		.pl = {.b = b, .common_at = xcalloc(b->plan->nactions + 1, sizeof(uint32_t))}};
	take_layout(&p->layout, b);
	p->pl.stub_at = p->bound.stub_at = p->layout.stub_at;
	p->bound.block_len = p->layout.size;
	p->bound.table_len = b->no_patches ? 0 : bind_far_words(b->plan, p->bound.stub_at);
	p->bound.table = p->bound.table_len ? xcalloc(1, p->bound.table_len) : NULL;
	p->words = (struct far_words){.addr = b->table, .v = p->bound.table};
	measure_span(b, &p->bound);
}

/* For n bytes: what is there, or another one instead. */
static void *fit(void *p, size_t *room, size_t n)
{
	if (n <= *room)
		return p;
	xfree_full(p, *room);
	return xmalloc_full(*room = n);
}

/* What the sites up to `end` need. */
static void take_room(struct bind_parts *p, size_t end, size_t len)
{
	size_t n = 0;

	for (size_t i = p->site; i < end && !p->pl.b->no_patches; i++)
		if (p->bound.stub_at[i])
			n += bind_count_patches(&p->pl.b->plan->sites[i]);
	p->bound.block = fit(p->bound.block, &p->bound.block_room, len);
	p->bound.patches =
		fit(p->bound.patches, &p->bound.patch_room, n * sizeof(p->bound.patches[0]));
	p->pl.bytes = p->bound.block;
	p->pl.from = p->from;
	p->bound.npatches = 0;
	memset(p->bound.block, 0xcc, len);
}

/* Sites up to `end`, and what stands before the first one. */
static bool place_sites(struct bind_parts *p, size_t end)
{
	const struct binding *b = p->pl.b;

	if (!p->from) {
		place_head(b, p->pl.bytes, (uint32_t)bind_tables_at(p->layout.stubs_end));
		place_commons(&p->pl);
		if (!place_own_hook(&p->pl))
			return false;
	}
	for (; p->site < end; p->site++) {
		const struct plan_site *site = &b->plan->sites[p->site];
		uint32_t stub = p->bound.stub_at[p->site];

		if (stub && !(place_stub(&p->pl, site, stub) &&
			      (b->no_patches || make_patches(&p->bound, b, site, stub, &p->words))))
			return false;
	}
	return true;
}

static void place_tables(const struct bind_parts *p, uint8_t *out)
{
	const struct binding *b = p->pl.b;
	const struct bound *bound = &p->bound;
	struct unwind_block in = {.plan = b->plan,
				  .stub_at = bound->stub_at,
				  .bias = b->bias,
				  .block = b->block,
				  .stubs_at = bind_stubs_at(b->plan),
				  .stubs_end = p->layout.stubs_end,
				  .lo = bound->patch_addr,
				  .hi = bound->patch_addr + bound->patch_len,
				  .nspots = p->layout.nspots,
				  .ntraps = p->layout.ntraps,
				  .names = p->layout.names};
	size_t from = bind_tables_at(p->layout.stubs_end);

	memset(out, 0, bound->block_len - from);
	unwind_make(out, b->block + from, &in);
}

static int too_far(const struct binding *b, struct err *err)
{
	return err_set(err, ERANGE,
		       "the trampolines at %#lx do not reach the code at %#lx (2 GiB at most)",
		       (unsigned long)b->block, (unsigned long)(b->bias + b->plan->text_lo));
}

int bind_make(struct bound *out, const struct binding *b, struct err *err)
{
	struct bind_parts p;
	bool reaches = true;

	begin(&p, b);
	if (p.layout.stubs_end) {
		take_room(&p, b->plan->nsites, p.bound.block_len);
		reaches = place_sites(&p, b->plan->nsites);
		place_tables(&p, p.bound.block + bind_tables_at(p.layout.stubs_end));
	}
	xfree(p.pl.common_at);
	*out = p.bound;
	out->probes_bound = p.pl.probes;
	if (reaches)
		return 0;
	bound_free(out);
	return too_far(b, err);
}

struct bind_parts *bind_open(const struct binding *b)
{
	struct bind_parts *p = xmalloc(sizeof(*p));

	begin(p, b);
	return p;
}

/* The first site that is not in the part; *end: where it begins, or the tables do. */
static size_t find_end(const struct bind_parts *p, uint32_t *end)
{
	const struct plan *plan = p->pl.b->plan;
	size_t i = p->site;

	*end = (uint32_t)bind_tables_at(p->layout.stubs_end);
	for (; i < plan->nsites; i++) {
		if (p->bound.stub_at[i] < p->from + PART)
			continue;
		*end = p->bound.stub_at[i];
		break;
	}
	return i;
}

int bind_next(struct bind_parts *p, struct bind_part *out, struct err *err)
{
	bool reaches = true;
	uint32_t end;

	if (p->from == p->bound.block_len)
		return 0;
	if (p->from < bind_tables_at(p->layout.stubs_end)) {
		size_t site = find_end(p, &end);

		take_room(p, site, end - p->from);
		reaches = place_sites(p, site);
	} else {
		end = (uint32_t)p->bound.block_len;
		take_room(p, p->site, end - p->from);
		place_tables(p, p->bound.block);
	}
	*out = (struct bind_part){
		.bytes = p->bound.block,
		.at = p->from,
		.len = end - p->from,
		.patches = p->bound.patches,
		.npatches = p->bound.npatches,
		.patch_addr = p->bound.patch_addr,
	};
	p->from = end;
	return reaches ? 1 : too_far(p->pl.b, err);
}

void bind_close(struct bind_parts *p)
{
	bound_free(&p->bound);
	xfree(p->pl.common_at);
	xfree(p);
}

void bound_free(struct bound *b)
{
	xfree_full(b->block, b->block_room);
	xfree_full(b->patches, b->patch_room);
	xfree(b->stub_at);
	xfree(b->table);
	memset(b, 0, sizeof(*b));
}
