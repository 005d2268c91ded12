/* SPDX-License-Identifier: MIT */
/*
 * access.c - bus cycles on the shared model, without a lock.  See access.h for the picture.
 *
 *   1. a = active: {generation g, slot x}
 *   2. carry out the words that state g has for local memory      access_memory.c
 *   3. claim a free slot y                                        access_slots.c
 *   4. copy x to a place of our own (access_places.c), unless a was made there; is a still active?
 *      no: from 1 again
 *   5. run the model there, and copy what it has made to y
 *   6. swap active from {g, x} to {g + 1, y}; failed: from 1 again
 *   7. bring the gates up to date; wait until the board acknowledges
 *
 * Why nothing that happens to a process or thread T can harm another, or T itself:
 *
 *   Copies are whole.  Nobody writes a slot while it is active or while another owns it, and a
 *   generation never comes back.  If a is active before and after the copy, it was in between.
 *   The model never runs on anything else, so no torn state ever reaches it.  Nor on anything that
 *   others can write: they may be of another user, and an index that was looked at must stay what it
 *   was.
 *   Cycles are one after the other.  The swap succeeds only from the very state that y was made
 *   from; it is the moment at which the cycle happens, for everybody.
 *   Local memory follows.  Who publishes g + 1 has carried out the words of g (2 before 6).
 *
 *   T is killed before 6: an owned slot stays behind (access_slots.c fetches it); the board has
 *   not seen the cycle.  After 6: it has.  There is nothing between.  Words that T did not
 *   carry out are carried out by the next.
 *   T is stopped: likewise, and when it goes on it finds its swap fail, its late store to local
 *   memory fail (access_memory.c) and its late gates set right again by itself (7).
 *   A signal handler interrupts T and does cycles: it is another user with a slot of its own; T
 *   finds a changed and does it again.  Between 4 and 6 nothing can be torn by that, for y is
 *   T's and the handler takes another.
 *   siglongjmp out of that handler: as a kill, but that T goes on; it finds the slot itself.  (Its
 *   place for the model stays taken until that is noticed, access_places.c.)
 *   fork in that handler: access_slots.c.
 *
 * No loop is without end, whatever others write: after two seconds of races the board counts as
 * damaged.
 *
 * Somebody always gets on: a swap fails only because another succeeded.  But a state that lies in
 * the other CPU's cache takes longer to copy than a cycle takes there, so that one who triggers
 * without pause could keep all others out for ever.  Who has lost some times says so in
 * `urgent`, and the others give way, for a few microseconds at most: it is a request, not a lock,
 * and dies with its time.
 */
#include "board/model/access_layout.h"
#include "board/model/gate.h"

#define EIO_ 5
#define EAGAIN_ 11
#define ETIME_ 62
#define URGENT_AFTER 3u     /* lost races */
#define GIVE_WAY_TSC 20000u /* 5 to 10 us */
#define RACES_LOOK 1024u    /* so often we look how long it has been */
#define RACES_TSC (1ull << 33)

enum op_kind { OP_CYCLE, OP_ADVANCE, OP_EXTERNAL, OP_RESET, OP_CABLE };

struct reset {
	uint64_t at;     /* its TSC; 0: now */
	uint32_t config; /* what the register is then */
};

struct op {
	enum op_kind kind;
	union {                            /* little: the stack may be small */
		struct model_cycle *cycle; /* what is asked; what came out, once it is done */
		const struct reset *reset;
		struct access_cable *cable;
		struct {
			enum access_level level;
			unsigned counter;
		};
	};
	/* out */
	uint64_t active; /* the state that it made */
	uint64_t gates;
	struct access_clock_point anchor;
	uint64_t now;  /* by the clock */
	uint64_t tick; /* by the model, which may be ahead: somebody waits */
	uint64_t done;
};

enum attempt { DONE = 0, AGAIN = 1, DAMAGED = -EIO_, NO_PLACE = -EAGAIN_, TOO_LATE = -ETIME_ };

/* x to y, state and all.  Whether it is whole has to be checked. */
static bool copy_state(struct access_slot *y, const struct access_slot *x)
{
	uint32_t used = (ACCESS_READ(&x->used) + 7u) & ~7u;

	if (used > sizeof(struct model_state))
		return false;
	y->gates = ACCESS_READ(&x->gates);
	y->anchor_tsc = ACCESS_READ(&x->anchor_tsc);
	y->anchor_tick = ACCESS_READ(&x->anchor_tick);
	y->time = ACCESS_READ(&x->time);
	access_copy_words(&y->state, &x->state, used);
	return true;
}

/* What time is it for the model in y?  Never before its own. */
static void set_time(const struct board *b, struct op *op, struct access_slot *y, uint64_t tsc)
{
	op->anchor.tsc = y->anchor_tsc;
	op->anchor.tick = y->anchor_tick;
	if (b->model->clock == ACCESS_CLOCK_VIRTUAL) {
		op->now = ACCESS_READ(&b->model->virtual_now);
	} else {
		op->now = access_tick(b->model->tsc_mult, &op->anchor, tsc);
		if (op->now + ACCESS_WAIT_MAX < y->time || tsc + ACCESS_SKEW_MAX < op->anchor.tsc) {
			op->now = y->time;
			op->anchor.tsc = tsc;
			op->anchor.tick = y->time;
			y->anchor_tsc = tsc;
			y->anchor_tick = y->time;
		}
	}
	op->tick = op->now > y->time ? op->now : y->time;
}

/* Time is counted from the instant at which it happens.  false: the board has seen a later one. */
static bool anchor_there(struct op *op, struct access_slot *y)
{
	if (op->tick > op->now)
		return false;
	op->anchor.tsc = y->anchor_tsc = op->reset->at;
	op->anchor.tick = y->anchor_tick = op->tick;
	return true;
}

/* Two helpers must not undo each other: one word, one value (access_memory.c). */
static void merge_stores(struct model_state *s)
{
	uint32_t i;

	for (i = 0; i < s->ncpu && i < 2; i++) {
		uint32_t at = (s->cpu_word + i - s->store_first) & KRON_MAP_WORD;

		if (at < s->nstores)
			s->store[at] = s->cpu_value[i];
	}
}

static bool is_to_be_high(const struct op *op, const struct model_state *s)
{
	if (op->level == ACCESS_TOGGLE)
		return !(s->external >> op->counter % KRON_COUNTERS & 1);
	return op->level == ACCESS_HIGH;
}

/* Again and again on the same cycle, if need be: it changes nothing there that it asks for. */
static void run_model(struct op *op, struct access_slot *y)
{
	struct model_cycle *c = op->cycle;
	bool gates_changed = false;

	op->done = op->tick;
	switch (op->kind) {
	case OP_CYCLE:
		model_cycle(&y->state, op->tick, c);
		gates_changed = c->gates_changed;
		if (c->done > op->done)
			op->done = c->done;
		break;
	case OP_RESET:
		model_reset(&y->state, op->tick, op->reset->config);
		gates_changed = true;
		break;
	case OP_ADVANCE:
		model_advance(&y->state, op->tick);
		break;
	case OP_CABLE:
		model_cable_take(&y->state, op->tick, op->cable->took);
		op->cable->first = y->state.cable_taken;
		op->cable->waiting = model_cable_waiting(&y->state);
		break;
	case OP_EXTERNAL:
		model_set_external(&y->state, op->tick, op->counter, is_to_be_high(op, &y->state));
		break;
	}
	if (y->state.ncpu)
		merge_stores(&y->state);
	if (gates_changed)
		y->gates = access_gates(&y->state);
}

static void describe(struct access_slot *y, uint64_t done, unsigned prev)
{
	y->time = done;
	y->used = model_used_bytes(&y->state);
	y->nstores = y->state.nstores;
	y->ncpu = y->state.ncpu;
	y->ncable = y->state.ncable;
	y->nvc = model_vc_stores(&y->state);
	y->prev = prev;
}

/* Where everybody sees it, once it is published: what the next cycle needs, and the words for local
 * memory. */
static void hand_over(struct access_slot *y, const struct access_slot *work)
{
	ACCESS_WRITE(&y->gates, work->gates);
	ACCESS_WRITE(&y->anchor_tsc, work->anchor_tsc);
	ACCESS_WRITE(&y->anchor_tick, work->anchor_tick);
	ACCESS_WRITE(&y->time, work->time);
	ACCESS_WRITE(&y->used, work->used);
	ACCESS_WRITE(&y->nstores, work->nstores);
	ACCESS_WRITE(&y->ncpu, work->ncpu);
	ACCESS_WRITE(&y->ncable, work->ncable);
	ACCESS_WRITE(&y->nvc, work->nvc);
	ACCESS_WRITE(&y->prev, work->prev);
	access_copy_words(&y->state, &work->state, model_head_bytes(&work->state));
	access_copy_words(&y->state.store, &work->state.store, model_arena_bytes(&work->state));
}

/* Step 4: the place has state a, that of slot x, whole and sane. */
static enum attempt fetch(const struct board *b, uint64_t a, struct access_place *p)
{
	if (p->active == a && ACCESS_READ(&p->board) == b->model &&
	    p->era == ACCESS_READ(&access_places_era))
		return DONE;
	ACCESS_WRITE(&p->board, NULL);
	if (!copy_state(&p->work, access_slot(b, access_slot_number(a))))
		return access_active(b) == a ? DAMAGED : AGAIN;
	if (access_active(b) != a)
		return AGAIN;
	return model_is_sane(&p->work.state) ? DONE : DAMAGED;
}

/* The page that the cycle retrieves.  All that earlier states have stored is there (step 2), and if
 * anybody stores more, active has changed. */
static void retrieve_page(const struct board *b, struct model_cycle *c, struct access_place *p)
{
	int page = model_vc_page(&p->work.state, c);

	c->page = NULL;
	if (page < 0)
		return;
	access_load_sram(b, (uint32_t)page * KRON_COUNTERS, KRON_COUNTERS, p->page);
	c->page = p->page;
}

/* Steps 1 to 6, once.  The place is ours alone. */
static enum attempt attempt(const struct board *b, struct op *op, struct access_hold *h,
			    struct access_place *p)
{
	uint64_t at = op->kind == OP_RESET ? op->reset->at : 0;
	uint64_t tsc = at ? at : b->model->clock == ACCESS_CLOCK_REAL ? access_tsc() : 0;
	uint64_t a = access_active(b);
	struct access_slot *work = &p->work;
	enum access_carry carry;
	enum attempt code;

	if (!access_active_is_sane(a))
		return DAMAGED;
	carry = access_carry_out(b, a);
	if (carry != ACCESS_CARRIED)
		return carry == ACCESS_MOVED_ON ? AGAIN : DAMAGED;
	if (!h->owner && !access_claim(b, h, a))
		return DAMAGED;
	if (access_slot_number(a) == h->slot)
		return AGAIN;
	code = fetch(b, a, p);
	if (code != DONE)
		return code;
	/* Until it is published it is nobody's state; who jumps out of the cycle leaves it so. */
	ACCESS_WRITE(&p->board, NULL);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	set_time(b, op, work, tsc);
	if (at && !anchor_there(op, work))
		return TOO_LATE;
	if (op->kind == OP_CYCLE && work->state.geometry.vc)
		retrieve_page(b, op->cycle, p);
	run_model(op, work);
	describe(work, op->done, access_slot_number(a));
	hand_over(access_slot(b, h->slot), work);
	op->gates = work->gates;
	op->active = (access_generation(a) + 1) << ACCESS_SLOT_BITS | h->slot;
	if (!access_publish(b, h, a))
		return AGAIN;
	p->active = op->active;
	p->era = ACCESS_READ(&access_places_era);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	ACCESS_WRITE(&p->board, b->model);
	return DONE;
}

/* ---- giving way ---- */

/* Let the urgent one go first, unless that is we (`ours`). */
static void give_way(const struct board *b, uint64_t ours)
{
	uint64_t *word = &b->model->urgent;
	uint64_t urgent = ACCESS_READ(word);
	uint64_t start;

	if (!urgent || urgent == ours)
		return;
	start = access_tsc();
	while (access_tsc() - start < GIVE_WAY_TSC) {
		__builtin_ia32_pause();
		if (ACCESS_READ(word) != urgent)
			return;
	}
	/* It was killed or stopped, or simply is not running. */
	__atomic_compare_exchange_n(word, &urgent, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* A number that nobody else has; 0: another is urgent already. */
static uint64_t say_urgent(const struct board *b)
{
	uint64_t none = 0;
	uint64_t ours = access_tsc() << 8 ^ (uintptr_t)&none >> 4;

	if (!ours || !__atomic_compare_exchange_n(&b->model->urgent, &none, ours, false,
						  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return 0;
	return ours;
}

static void say_done(const struct board *b, uint64_t ours)
{
	__atomic_compare_exchange_n(&b->model->urgent, &ours, 0, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
}

/* ---- one operation ---- */

static void follow_up(const struct board *b, const struct op *op)
{
	if (b->ctl && access_gates_differ(b->ctl, op->gates))
		board_repair_gates(b);
	if (op->done > op->now)
		access_wait(b, &op->anchor, op->done);
}

/* Has it lasted too long?  The clock is read now and then only; *since: 0 at first. */
static bool is_endless(unsigned lost, uint64_t *since)
{
	uint64_t now;

	if (lost % RACES_LOOK)
		return false;
	now = access_tsc();
	if (!*since)
		*since = now;
	return now - *since > RACES_TSC;
}

static int operate(const struct board *b, struct op *op)
{
	struct access_hold h;
	struct access_place *place;
	uint64_t ours = 0, since = 0;
	unsigned lost = 0;
	int code;

	access_hold_init(b, &h);
	place = access_place_take(b, &h);
	if (!place)
		return NO_PLACE;
	give_way(b, 0);
	while ((code = attempt(b, op, &h, place)) == AGAIN) {
		if (++lost >= URGENT_AFTER && !ours)
			ours = say_urgent(b);
		give_way(b, ours);
		if (is_endless(lost, &since)) {
			code = DAMAGED;
			break;
		}
	}
	if (ours)
		say_done(b, ours);
	if (h.owner)
		access_release(b, &h);
	access_place_give(place);
	if (code == DONE)
		follow_up(b, op);
	/* The marks have to stand on the stack until here. */
	__asm__ volatile("" : : "m"(h.mark), "m"(h.place_mark));
	return code;
}

/* ---- the interface ---- */

static bool is_memory_read(const struct model_cycle *c)
{
	return !c->write && c->offset >= KRON_BOARD_MEMORY && c->offset < KRON_BOARD_SIZE;
}

static void read_memory(const struct board *b, const struct op *op, struct model_cycle *c)
{
	uint32_t word[2] = {0, 0};

	/* Words that this very cycle's state has moved there count. */
	access_carry_out(b, op->active);
	access_load_memory(b, (c->offset - KRON_BOARD_MEMORY) / 4, c->bytes == 8 ? 2 : 1, word);
	c->data = word[0] | (uint64_t)word[1] << 32;
}

int board_cycle(const struct board *b, struct model_cycle *c)
{
	struct op op = {.kind = OP_CYCLE, .cycle = c};
	int code = operate(b, &op);

	if (code) {
		c->no_answer = true;
		c->taken = false;
		c->gates_changed = false;
		if (!c->write)
			c->data = ~0ull;
		return code;
	}
	if (is_memory_read(c) && !c->no_answer)
		read_memory(b, &op, c);
	return 0;
}

static uint64_t short_read(const struct board *b, uint32_t offset, uint8_t bytes)
{
	struct model_cycle c = {.offset = offset, .bytes = bytes};

	board_cycle(b, &c);
	return c.data;
}

static void short_write(const struct board *b, uint32_t offset, uint8_t bytes, uint64_t value)
{
	struct model_cycle c = {.offset = offset, .bytes = bytes, .write = true, .data = value};

	board_cycle(b, &c);
}

uint32_t board_read32(const struct board *b, uint32_t offset)
{
	return (uint32_t)short_read(b, offset, 4);
}

uint64_t board_read64(const struct board *b, uint32_t offset)
{
	return short_read(b, offset, 8);
}

void board_write32(const struct board *b, uint32_t offset, uint32_t value)
{
	short_write(b, offset, 4, value);
}

void board_write64(const struct board *b, uint32_t offset, uint64_t value)
{
	short_write(b, offset, 8, value);
}

int board_trigger(const struct board *b, uint32_t word, unsigned cpu, uint32_t source,
		  uint64_t data)
{
	struct model_cycle c = {.offset = KRON_CHIP_BYTE(word),
				.bytes = 8,
				.write = true,
				.cpu_lines = (uint8_t)(1u << (cpu & 7)),
				.set_source = true,
				.source = source,
				.data = data};
	int code = board_cycle(b, &c);

	return code ? code : c.taken;
}

int board_reset_at(const struct board *b, uint64_t tsc, uint32_t config)
{
	const struct reset r = {tsc, config};
	struct op op = {.kind = OP_RESET, .reset = &r};

	return operate(b, &op);
}

void board_tick(const struct board *b, uint64_t n)
{
	struct op op = {.kind = OP_ADVANCE};

	if (b->model->clock == ACCESS_CLOCK_VIRTUAL)
		__atomic_add_fetch(&b->model->virtual_now, n, __ATOMIC_RELAXED);
	if (!operate(b, &op))
		access_carry_out(b, op.active);
}

int board_take_cable(const struct board *b, struct access_cable *c, uint16_t *out, uint32_t max)
{
	struct op op = {.kind = OP_CABLE, .cable = c};
	int code = operate(b, &op);

	c->took = 0;
	if (code)
		return code;
	if (access_carry_out(b, op.active) == ACCESS_DAMAGED)
		return DAMAGED;
	c->took = c->waiting < max ? c->waiting : max;
	access_load_cable(b, c->first, c->took, out);
	return 0;
}

int board_set_external(const struct board *b, unsigned counter, enum access_level level)
{
	struct op op = {.kind = OP_EXTERNAL, .counter = counter, .level = level};

	return operate(b, &op);
}

void board_read_memory(const struct board *b, uint32_t first, uint32_t n, uint32_t *out)
{
	board_tick(b, 0);
	access_load_memory(b, first, n, out);
}
