/* SPDX-License-Identifier: MIT */
/*
 * access_state.c - making a board, judging one, and looking at its state without a cycle.
 *
 * A look takes what it needs from the active slot and then asks whether that slot is still the
 * active one: nobody writes it while it is (access.c).  It is a sequence lock's reader, and needs no
 * fence instruction on x86.  Who writes a slot has seen before that it is not active any more, and all
 * see stores in one order; so who has read a word of the new content would see the change of `active`,
 * too, if it read that later.  It does: loads are made in program order.  Generations are never used
 * again, so what looks unchanged is.
 */
#include "board/model/access_layout.h"
#include "board/model/gate.h"

/* Who looks takes microseconds from another CPU's cache; who publishes without pause could make
 * every look void.  After this many looks the looker makes the state itself, by an access. */
#define LOOKS_MAX 64u
#define TICKS_MAX 64u /* and that so often */

static void fill_zero(void *to, uint64_t bytes)
{
	uint64_t n = bytes / 8;

	__asm__ volatile("rep stosq" : "+D"(to), "+c"(n) : "a"(0ull) : "memory");
}

/* ---- making ---- */

void board_init(const struct board *b, const struct model_geometry *g, enum access_clock clock,
		uint64_t tsc_hz)
{
	struct model *d = b->model;
	struct access_slot *first = access_slot(b, 0);

	access_places_forget();
	d->version = ACCESS_VERSION;
	d->clock = clock;
	d->tsc_mult = clock == ACCESS_CLOCK_REAL ? access_tsc_mult(tsc_hz) : ACCESS_MULT_MIN;
	d->stride = ACCESS_STRIDE;
	d->slots = ACCESS_SLOTS;
	d->state_bytes = sizeof(struct model_state);
	d->home = access_namespace();

	model_power_on(&first->state, g);
	first->owner = 1;
	first->gates = access_gates(&first->state);
	first->anchor_tsc = clock == ACCESS_CLOCK_REAL ? access_tsc() : 0;
	first->used = model_used_bytes(&first->state);
	first->prev = 1;
	__atomic_store_n(&d->active, 1ull << ACCESS_SLOT_BITS, __ATOMIC_RELEASE);
	__atomic_store_n(&d->magic, ACCESS_MAGIC, __ATOMIC_RELEASE);
	board_repair_gates(b);
}

/* ---- looking ---- */

enum look { LOOK_OK, LOOK_AGAIN, LOOK_DAMAGED };

struct view {
	uint64_t gates;
	uint64_t time;
	struct access_clock_point anchor;
};

/* state may be NULL */
static enum look look(const struct board *b, struct view *v, struct model_state *state)
{
	uint64_t active = access_active(b);
	const struct access_slot *x;
	uint32_t used;

	if (!access_active_is_sane(active))
		return LOOK_DAMAGED;
	x = access_slot(b, access_slot_number(active));
	v->gates = ACCESS_READ(&x->gates);
	v->time = ACCESS_READ(&x->time);
	v->anchor.tsc = ACCESS_READ(&x->anchor_tsc);
	v->anchor.tick = ACCESS_READ(&x->anchor_tick);
	used = (ACCESS_READ(&x->used) + 7u) & ~7u;
	if (state && used <= sizeof(*state))
		access_copy_words(state, &x->state, used);
	__atomic_signal_fence(__ATOMIC_ACQUIRE); /* for the compiler */
	if (access_active(b) != active)
		return LOOK_AGAIN;
	return used <= sizeof(struct model_state) ? LOOK_OK : LOOK_DAMAGED;
}

static bool look_until_whole(const struct board *b, struct view *v, struct model_state *state)
{
	unsigned looks = 0;
	enum look code;

	while ((code = look(b, v, state)) == LOOK_AGAIN && looks < LOOKS_MAX * TICKS_MAX)
		if (++looks % LOOKS_MAX == 0)
			board_tick(b, 0);
	return code == LOOK_OK;
}

bool access_read_gates(const struct board *b, uint64_t *gates)
{
	struct view v;

	if (!look_until_whole(b, &v, NULL))
		return false;
	*gates = v.gates;
	return true;
}

bool access_read_anchor(const struct board *b, struct access_clock_point *anchor, uint64_t *time)
{
	struct view v;

	if (!look_until_whole(b, &v, NULL))
		return false;
	*anchor = v.anchor;
	*time = v.time;
	return true;
}

bool board_snapshot(const struct board *b, struct model_state *out)
{
	struct view v;

	fill_zero(out, sizeof(*out));
	if (!look_until_whole(b, &v, out) || !model_is_sane(out))
		return false;
	model_advance(out, board_now(b));
	return true;
}

bool board_read_counters(const struct board *b, uint32_t *out)
{
	struct model_state s;
	unsigned i, looks;

	for (looks = 0; looks < LOOKS_MAX; looks++) {
		uint64_t active;

		board_tick(b, 0);
		active = access_active(b);
		if (!board_snapshot(b, &s) || !s.geometry.vc)
			return false;
		if (access_carry_out(b, active) != ACCESS_CARRIED)
			continue;
		access_load_sram(b, 0, KRON_VC_COUNTERS, out);
		if (access_active(b) != active)
			continue;
		for (i = 0; i < KRON_COUNTERS; i++)
			out[s.vc.page * KRON_COUNTERS + i] = (uint32_t)model_vc_counter(&s, i);
		return true;
	}
	return false;
}

/* ---- judging ---- */

static bool is_header_sane(const struct model *d)
{
	return __atomic_load_n(&d->magic, __ATOMIC_ACQUIRE) == ACCESS_MAGIC &&
	       d->version == ACCESS_VERSION && d->clock <= ACCESS_CLOCK_VIRTUAL &&
	       d->tsc_mult >= ACCESS_MULT_MIN && d->stride == ACCESS_STRIDE &&
	       d->slots == ACCESS_SLOTS && d->state_bytes == sizeof(struct model_state);
}

bool board_is_sane(const struct board *b)
{
	struct model_state state;
	struct view v;
	unsigned looks;

	access_places_forget();
	if (!is_header_sane(b->model))
		return false;
	for (looks = 0; looks < 1000 * LOOKS_MAX; looks++) {
		fill_zero(&state, sizeof(state));
		switch (look(b, &v, &state)) {
		case LOOK_OK:
			return model_is_sane(&state);
		case LOOK_DAMAGED:
			return false;
		case LOOK_AGAIN:
			break;
		}
	}
	return false;
}

/* ---- gates ---- */

/*
 * Of two who do this at once, one may hold what the model said before the other came.  So each
 * looks again after its last write, and whoever wrote last finds what it wrote to be true.  If
 * it is killed before, the registers in the control block differ from the model's, which the
 * next cycle notices.
 */
void board_repair_gates(const struct board *b)
{
	struct kron_ctl *ctl = b->ctl;
	uint64_t gates, after;
	unsigned i;

	if (!ctl || !access_read_gates(b, &gates))
		return;
	for (i = 0; i < 10000; i++) {
		ACCESS_WRITE(&ctl->csr, (uint32_t)(gates >> 16 & 1) * KRON_CSR_SAMPLING);
		ACCESS_WRITE(&ctl->filter, (uint32_t)gates & 0xffffu);
		kron_gate_set(ctl, (uint32_t)(gates >> 16 & 1) * KRON_CSR_SAMPLING,
			      (uint32_t)gates & 0xffffu, (uint32_t)(gates >> 32));
		/* The gates are written before the model is read again, which takes more than
		 * release and acquire. */
		__atomic_exchange_n(&ctl->config, (uint32_t)(gates >> 32), __ATOMIC_SEQ_CST);
		if (!access_read_gates(b, &after) || after == gates)
			return;
		gates = after;
	}
}
