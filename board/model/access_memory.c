/* SPDX-License-Identifier: MIT */
/*
 * access_memory.c - local memory, the MultiKron_vc's SRAM and the far end of the cable in shared memory:
 * who carries out the model's stores.
 *
 * Problem.  A state says "these words went to local memory", and whoever comes next does it.
 * Several may do it at once, one of them may be stopped half-way for an hour, and when it goes
 * on the words may hold what much later states have put there.
 *
 * Each word has 64 bits: value | low half of the writer's generation << 32.  For each store of
 * the active state, which is generation g:
 *
 *     1. read the store from the slot       (garbage if the slot is no longer the active one)
 *     2. old = the word                     already {value, g}: done by somebody else
 *     3. is g still active?                 no: stop, all is done
 *     4. compare-and-swap old -> {value, g}     failed: from 2 again
 *
 * Rule: nobody publishes g + 1 before all stores of g are carried out (access.c).  So
 *   - step 3 says no: somebody has carried them out, and what step 1 read is not looked at;
 *   - step 3 says yes: store and word were read while g was active, so nobody newer had
 *     written; if anybody writes the word between 2 and 4 - a helper for g, or a newer state -
 *     it changes and the swap fails.  A late writer changes nothing.
 *
 * The tag is what makes the word change even when the same value is stored again.  That it
 * has half of the bits matters only to who sleeps between 2 and 4 for exactly a multiple of
 * 2^32 generations.
 *
 * One state never stores to one word twice with different values (access.c sees to that), or
 * two helpers could undo each other.
 */
#include "board/model/access_layout.h"

#define NO_TSAN __attribute__((no_sanitize("thread"), noinline))

/*
 * Store i of a slot that may be overwritten meanwhile: then the result is thrown away.  The
 * slots's words are the model's plain variables, hence nothing for a race detector.
 */
NO_TSAN static struct model_store peek_store(const struct access_slot *slot, uint32_t nstores,
					     uint32_t i)
{
	const volatile struct model_state *s = &slot->state;
	struct model_store w;

	if (i < nstores) {
		w.word = (s->store_first + i) & KRON_MAP_WORD;
		w.value = s->store[i];
	} else {
		w.word = (s->cpu_word + (i - nstores)) & KRON_MAP_WORD;
		w.value = s->cpu_value[(i - nstores) & 1];
	}
	return w;
}

#define TRIES_MAX 10000u

/* False: another state is active. */
static bool carry_out_one(const struct board *b, uint64_t active, uint64_t *word, uint32_t value)
{
	uint64_t wanted = value | access_generation(active) << 32;
	uint64_t old = __atomic_load_n(word, __ATOMIC_ACQUIRE);
	unsigned tries = 0;

	while (old != wanted) {
		/* Nobody changes it so often who obeys the rule. */
		if (access_active(b) != active || ++tries > TRIES_MAX)
			return false;
		/* The release is for readers of the memory; they pair with the acquire above and
		 * in access_load_memory(). */
		if (__atomic_compare_exchange_n(word, &old, wanted, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE))
			break;
	}
	return true;
}

/* The page of the MultiKron_vc that this state has stored; its words are of one state, too. */
NO_TSAN static enum access_carry carry_out_page(const struct board *b, uint64_t active,
						const struct access_slot *slot)
{
	const volatile struct model_vc *v = &slot->state.vc;
	uint64_t *word = access_sram(b) + v->page_out % KRON_VC_PAGES * KRON_COUNTERS;
	uint32_t i;

	if (ACCESS_READ(&slot->nvc) > KRON_COUNTERS)
		return access_active(b) == active ? ACCESS_DAMAGED : ACCESS_MOVED_ON;
	for (i = 0; i < KRON_COUNTERS; i++)
		if (!carry_out_one(b, active, &word[i], v->out[i]))
			return ACCESS_MOVED_ON;
	return ACCESS_CARRIED;
}

/* What this state has sent over the cable.  It waits in its words until the far end has taken it, and the model
 * sends no more than find room. */
NO_TSAN static enum access_carry carry_out_cable(const struct board *b, uint64_t active,
						 const struct access_slot *slot, uint32_t nstores)
{
	const volatile struct model_state *s = &slot->state;
	const volatile uint8_t *p = (const volatile uint8_t *)s->store + 4u * nstores;
	uint32_t n = ACCESS_READ(&slot->ncable);
	uint32_t first = s->cable_sent - n;
	uint32_t i;

	if (nstores > MODEL_STORES_MAX || 4u * nstores + 2u * (uint64_t)n > MODEL_ARENA_BYTES + 2u)
		return access_active(b) == active ? ACCESS_DAMAGED : ACCESS_MOVED_ON;
	for (i = 0; i < n; i++, p += 2) {
		uint32_t value = i ? (uint32_t)p[-2] << 8 | p[-1] : s->cable_first;

		if (!carry_out_one(b, active, &access_cable(b)[(first + i) % MODEL_CABLE_MAX],
				   value))
			return ACCESS_MOVED_ON;
	}
	return ACCESS_CARRIED;
}

enum access_carry access_carry_out(const struct board *b, uint64_t active)
{
	const struct access_slot *slot = access_slot(b, access_slot_number(active));
	uint32_t nstores = ACCESS_READ(&slot->nstores);
	uint32_t n = nstores + ACCESS_READ(&slot->ncpu);
	uint32_t i;

	if (ACCESS_READ(&slot->nvc)) {
		enum access_carry code = carry_out_page(b, active, slot);

		if (code != ACCESS_CARRIED)
			return code;
	}
	if (ACCESS_READ(&slot->ncable)) {
		enum access_carry code = carry_out_cable(b, active, slot, nstores);

		if (code != ACCESS_CARRIED)
			return code;
	}
	if (!n)
		return ACCESS_CARRIED;
	if (nstores > MODEL_STORES_MAX || n > nstores + 2)
		return access_active(b) == active ? ACCESS_DAMAGED : ACCESS_MOVED_ON;
	for (i = 0; i < n; i++) {
		struct model_store s = peek_store(slot, nstores, i);

		if (!carry_out_one(b, active, (uint64_t *)b->memory + s.word, s.value))
			return ACCESS_MOVED_ON;
	}
	return ACCESS_CARRIED;
}

void access_load_memory(const struct board *b, uint32_t first, uint32_t n, uint32_t *out)
{
	const uint64_t *memory = b->memory;
	uint32_t i;

	for (i = 0; i < n; i++)
		out[i] = (uint32_t)__atomic_load_n(&memory[(first + i) & KRON_MAP_WORD],
						   __ATOMIC_ACQUIRE);
}

void access_load_sram(const struct board *b, uint32_t first, uint32_t n, uint32_t *out)
{
	const uint64_t *sram = access_sram(b);
	uint32_t i;

	for (i = 0; i < n; i++)
		out[i] = (uint32_t)__atomic_load_n(&sram[(first + i) % KRON_VC_COUNTERS],
						   __ATOMIC_ACQUIRE);
}

void access_load_cable(const struct board *b, uint32_t first, uint32_t n, uint16_t *out)
{
	const uint64_t *cable = access_cable(b);
	uint32_t i;

	for (i = 0; i < n; i++)
		out[i] = (uint16_t)__atomic_load_n(&cable[(first + i) % MODEL_CABLE_MAX],
						   __ATOMIC_ACQUIRE);
}
