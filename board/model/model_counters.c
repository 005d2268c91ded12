/* SPDX-License-Identifier: MIT */
/*
 * model_counters.c - Resource Counters, their control registers and shadow registers: the MultiKron
 * II's, and the page that is in the MultiKron_vc.
 *
 * The counters are not touched while time goes by.  What they counted since counted_node and
 * counted_ts is added when somebody looks at them or changes what they count ("settled").
 *
 * Readings (NISTIR 5571, Tables B5 to B7 and "Resource Counter Control Registers"):
 *   - A field keeps and returns what was last written into it, unless that was a NOP (Enable
 *     xx00, Mode 0000, Clock Select x000).  But "Reset & Enable" is an action: the field then
 *     says "Enable", so that saved settings can be written back without losing the count.
 *   - Mode 1000 is double precision and leaves the counting source as it is.
 *   - The precision bit of an odd counter reads as its even pair's.
 *   - In a 64-bit pair the even counter is the low half.  Reads and writes of the even one
 *     move 64 bits, of the odd one the high half; the even one's fields control the pair, the
 *     odd one's have no effect.
 *   - A software increment needs mode Software and an enabled counter.  In test mode, which
 *     stops all counters and makes them incrementable, it needs neither.
 */
#include "board/model/model_parts.h"

#define EACH_FIELD 0x1111111111111111ull

static unsigned field(uint64_t reg, unsigned i)
{
	return reg >> (4 * i) & 15;
}

static uint64_t with_field(uint64_t reg, unsigned i, unsigned value)
{
	return (reg & ~(15ull << (4 * i))) | (uint64_t)value << (4 * i);
}

static bool is_double(const struct model_counters *k, unsigned i)
{
	return field(k->mode, i & ~1u) & KRON_MODE_DOUBLE;
}

static bool is_enabled(const struct model_counters *k, unsigned i)
{
	return (field(k->enable, i) & 3) == KRON_ENABLE_ON;
}

static unsigned source(const struct model_counters *k, unsigned i)
{
	unsigned mode = field(k->mode, i) & 7;

	return mode > KRON_MODE_EXTERNAL ? mode - KRON_MODE_EXTERNAL : mode;
}

/* Edges of NODECLK / divisor that have not been counted; it began at a chip reset. */
static uint64_t divided(const struct model_state *s, const struct model_counters *k,
			unsigned divisor)
{
	return (s->node - k->prescaler) / divisor - (k->counted_node - k->prescaler) / divisor;
}

static uint64_t internal_clocks(const struct model_state *s, const struct model_counters *k,
				unsigned i)
{
	switch (field(k->clock, i) & 7) {
	case 1:
	case 5:
		return s->node - k->counted_node;
	case 2:
	case 6:
		return divided(s, k, 10);
	case 3:
	case 7:
		return divided(s, k, 100);
	default:
		return s->ts - k->counted_ts;
	}
}

/* What counter i has to count since it was settled. */
static uint64_t pending(const struct model_state *s, const struct model_counters *k, unsigned i)
{
	if (model_is_test_mode(s) || !is_enabled(k, i))
		return 0;
	switch (source(k, i)) {
	case KRON_MODE_CLOCK:
		return internal_clocks(s, k, i);
	case KRON_MODE_GATED:
		return s->external >> i & 1 ? internal_clocks(s, k, i) : 0;
	default:
		return 0;
	}
}

/* i even in a pair */
static uint64_t get(const struct model_counters *k, unsigned i)
{
	if (is_double(k, i))
		return (uint64_t)k->counter[i | 1] << 32 | k->counter[i & ~1u];
	return k->counter[i];
}

static void set(struct model_counters *k, unsigned i, uint64_t value)
{
	k->counter[i] = (uint32_t)value;
	if (is_double(k, i))
		k->counter[i | 1] = (uint32_t)(value >> 32);
}

/* Counters do not wrap, they stick. */
static uint64_t sum(const struct model_counters *k, unsigned i, uint64_t n)
{
	uint64_t max = is_double(k, i) ? MODEL_ONES64 : MODEL_ONES;
	uint64_t value = get(k, i);

	return n > max - value ? max : value + n;
}

/* The odd half of a pair is counted with the even one. */
static bool is_high_half(const struct model_counters *k, unsigned i)
{
	return (i & 1) && is_double(k, i);
}

void model_counters_settle(const struct model_state *s, struct model_counters *k)
{
	unsigned i;

	if (k->enable & 2 * EACH_FIELD) {
		for (i = 0; i < KRON_COUNTERS; i++) {
			if (!is_high_half(k, i))
				set(k, i, sum(k, i, pending(s, k, i)));
		}
	}
	k->counted_node = s->node;
	k->counted_ts = s->ts;
}

uint64_t model_counter_now(const struct model_state *s, const struct model_counters *k,
			   unsigned counter)
{
	unsigned i = counter % KRON_COUNTERS;

	if (is_high_half(k, i))
		return sum(k, i & ~1u, pending(s, k, i & ~1u)) >> 32;
	return sum(k, i, pending(s, k, i));
}

uint64_t model_counter(const struct model_state *s, unsigned counter)
{
	return model_counter_now(s, &s->counters, counter);
}

static void add_one(struct model_counters *k, unsigned i)
{
	if (!is_high_half(k, i))
		set(k, i, sum(k, i, 1));
}

void model_counter_edge(const struct model_state *s, struct model_counters *k, unsigned i)
{
	if (!model_is_test_mode(s) && model_has_node_clock(s) && is_enabled(k, i) &&
	    source(k, i) == KRON_MODE_EXTERNAL)
		add_one(k, i);
}

void model_counter_increment(const struct model_state *s, struct model_counters *k, unsigned i)
{
	if (!model_is_test_mode(s) && !(is_enabled(k, i) && source(k, i) == KRON_MODE_SOFTWARE))
		return; /* else nothing else counts it, so it is settled */
	add_one(k, i);
}

void model_counter_write(const struct model_state *s, struct model_counters *k, unsigned i,
			 uint64_t data)
{
	model_counters_settle(s, k);
	k->counter[i] = (uint32_t)data;
	if (is_double(k, i) && !(i & 1))
		k->counter[i | 1] = (uint32_t)(data >> 32);
}

void model_counters_copy(const struct model_state *s, struct model_counters *k)
{
	unsigned i;

	model_counters_settle(s, k);
	for (i = 0; i < KRON_COUNTERS; i++) {
		k->shadow[i] = k->counter[i];
		MODEL_PLAIN_LOOP();
	}
}

uint64_t model_counter_shadow(const struct model_counters *k, unsigned i)
{
	if (is_double(k, i) && !(i & 1))
		return (uint64_t)k->shadow[i | 1] << 32 | k->shadow[i];
	return MODEL_UNUSED_HIGH | k->shadow[i];
}

/* ---- control registers ---- */

void model_counters_enable(const struct model_state *s, struct model_counters *k, uint64_t fields)
{
	unsigned i, f;

	model_counters_settle(s, k);
	for (i = 0; i < KRON_COUNTERS; i++) {
		f = field(fields, i);
		if ((f & 3) == 0)
			continue;
		if ((f & 3) == KRON_ENABLE_RESET) {
			if (!is_high_half(k, i))
				set(k, i, 0);
			f = (f & 12) | KRON_ENABLE_ON;
		}
		k->enable = with_field(k->enable, i, f);
	}
}

void model_counters_mode(const struct model_state *s, struct model_counters *k, uint64_t fields)
{
	unsigned i, f;

	model_counters_settle(s, k);
	for (i = 0; i < KRON_COUNTERS; i++) {
		f = field(fields, i);
		if (f == 0)
			continue;
		if ((f & 7) == 0)
			f |= field(k->mode, i) & 7;
		k->mode = with_field(k->mode, i, f);
	}
}

void model_counters_clock(const struct model_state *s, struct model_counters *k, uint64_t fields)
{
	unsigned i, f;

	model_counters_settle(s, k);
	for (i = 0; i < KRON_COUNTERS; i++) {
		f = field(fields, i);
		if (f & 7)
			k->clock = with_field(k->clock, i, f);
	}
}

uint64_t model_counters_mode_read(const struct model_counters *k)
{
	const uint64_t precision = KRON_MODE_DOUBLE * EACH_FIELD;
	uint64_t even = k->mode & precision & 0x0f0f0f0f0f0f0f0full;

	return (k->mode & ~precision) | even | even << 4;
}

void model_counters_reset(const struct model_state *s, struct model_counters *k)
{
	unsigned i;

	k->enable = KRON_ENABLE_OFF * EACH_FIELD;
	k->mode = KRON_MODE_EXTERNAL * EACH_FIELD;
	k->clock = KRON_CLOCK_TIMESTAMP * EACH_FIELD;
	k->prescaler = s->node;
	k->counted_node = s->node;
	k->counted_ts = s->ts;
	for (i = 0; i < KRON_COUNTERS; i++) {
		k->counter[i] = 0;
		k->shadow[i] = 0;
		MODEL_PLAIN_LOOP();
	}
}

bool model_counters_are_sane(const struct model_state *s, const struct model_counters *k)
{
	return k->prescaler <= k->counted_node && k->counted_node <= s->node &&
	       k->counted_ts <= s->ts;
}
