/* SPDX-License-Identifier: MIT */
/*
 * memory.c - a sample whose value is in memory: follows the way to it, reads it, and takes the sample if
 * the probe's conditions hold.
 */
#include "runtime/core/rt.h"
#include "runtime/memory/peek.h"
#include "runtime/memory/socket.h"
#include "runtime/sys/mini.h"

struct text {
	uint32_t flags, length; /* KRON_MEMORY_* */
	uint32_t word[KRON_TEXT_MAX / 4 + 1];
};

void kron_rt_take_memory(uint32_t event, uint64_t base, const uint8_t *back)
	__attribute__((visibility("hidden")));

/* The kernel is asked, instead of memory. */
static bool is_of_socket(const struct kron_memory *m)
{
	return m->place[m->nplaces - 1] == KRON_PLACE_SOCKET;
}

/* Where the value is, or the descriptor that is asked for.  False: nobody knows. */
static bool follow(const struct kron_memory *m, uint64_t *at)
{
	for (unsigned i = 0; i < m->nplaces; i++) {
		if (i && !rt_peek(at, *at, sizeof(*at)))
			return false;
		if (i + 1u < m->nplaces || !is_of_socket(m))
			*at += (uint64_t)(int64_t)m->place[i];
	}
	return true;
}

/* ---- numbers ---- */

static uint64_t narrowed(uint64_t v, unsigned bits, bool is_signed)
{
	unsigned shift = 64 - bits;

	return is_signed ? (uint64_t)((int64_t)(v << shift) >> shift) : v << shift >> shift;
}

static bool holds(const struct kron_memory_condition *c, uint64_t value)
{
	uint64_t v = narrowed(value & c->mask, c->bits, c->is_signed);
	uint64_t n = narrowed(c->number, c->bits, c->is_signed);
	bool is_less = c->is_signed ? (int64_t)v < (int64_t)n : v < n;

	switch ((enum kron_compare)c->compare) {
	case KRON_COMPARE_EQ:
		return v == n;
	case KRON_COMPARE_NE:
		return v != n;
	case KRON_COMPARE_LE:
		return is_less || v == n;
	case KRON_COMPARE_GE:
		return !is_less;
	case KRON_COMPARE_LT:
		return is_less;
	case KRON_COMPARE_GT:
		return !is_less && v != n;
	}
	return false;
}

static bool are_met(const struct kron_memory *m, uint64_t value)
{
	for (unsigned i = 0; i < m->nconditions; i++) {
		struct kron_memory_condition c;

		mini_copy(&c, &m->condition[i], sizeof(c));
		if (!holds(&c, value))
			return false;
	}
	return true;
}

static void take_number(uint32_t event, const struct kron_memory *m, uint64_t at, bool is_there)
{
	uint64_t value = 0;
	struct rt_part part;
	struct rt_trigger t = {.event = event, .parts = &part};

	if (is_there)
		is_there = is_of_socket(m) ? rt_socket_number((int)at, &value)
					   : rt_peek(&value, at, m->bits / 8u);
	if (!is_there) {
		if (m->nconditions)
			return;
		part = (struct rt_part){KRON_EVENT_MEMORY, KRON_MEMORY_UNREADABLE};
		t.nparts = 1;
	} else if (!are_met(m, value)) {
		return;
	} else if (m->bits == 64) {
		part = (struct rt_part){KRON_EVENT_WIDE, (uint32_t)(value >> 32)};
		t.nparts = 1;
	}
	t.payload = (uint32_t)value;
	rt_trigger_take(&t);
}

/* ---- texts and arrays ---- */

static uint32_t length_of(const uint8_t *s, uint32_t n)
{
	uint32_t i = 0;

	while (i < n && s[i])
		i++;
	return i;
}

/* What has no zero as far as it can be read is not a text; one byte more shows whether it is whole.  Where there are
 * only so many bytes it ends with them. */
static void read_text(struct text *t, uint64_t at, uint32_t most)
{
	uint8_t *bytes = (uint8_t *)t->word;
	uint32_t there = (uint32_t)rt_peek_some(bytes, at, most);

	t->flags = KRON_MEMORY_IS_TEXT;
	t->length = length_of(bytes, there);
	if (t->length >= KRON_TEXT_MAX && most > KRON_TEXT_MAX) {
		t->flags |= t->length == there ? KRON_MEMORY_CUT : 0;
		t->length = KRON_TEXT_MAX;
	} else if (t->length == there && there < most) {
		t->flags |= KRON_MEMORY_UNREADABLE;
		t->length = 0;
	}
}

/* All of it or nothing. */
static void read_array(struct text *t, uint64_t at, uint32_t n)
{
	bool is_read = n <= KRON_TEXT_MAX && rt_peek(t->word, at, n);

	t->flags = is_read ? 0 : KRON_MEMORY_UNREADABLE;
	t->length = is_read ? n : 0;
}

static void read_bytes(struct text *t, const struct kron_memory *m, uint64_t at, bool is_there)
{
	uint32_t most = m->count && m->count <= KRON_TEXT_MAX ? m->count : KRON_TEXT_MAX + 1;

	if (!is_there)
		t->flags = KRON_MEMORY_UNREADABLE | (m->bits ? 0 : KRON_MEMORY_IS_TEXT),
		t->length = 0;
	else if (m->bits)
		read_array(t, at, m->count * (m->bits / 8u));
	else
		read_text(t, at, most);
	mini_zero((uint8_t *)t->word + t->length, sizeof(t->word) - t->length);
}

/* False: they are not to be told now. */
static bool read_endpoints(struct text *t, int fd)
{
	struct kron_endpoints ends;

	if (!rt_socket_endpoints(fd, &ends))
		return false;
	mini_copy(t->word, &ends, sizeof(ends));
	t->flags = 0;
	t->length = sizeof(ends);
	return true;
}

static __attribute__((noinline)) uint32_t put_text(struct rt_part parts[KRON_MEMORY_PARTS],
						   const struct kron_memory *m, uint64_t at,
						   bool is_there)
{
	struct text t;
	uint32_t n = 0;

	if (!is_of_socket(m))
		read_bytes(&t, m, at, is_there);
	else if (!is_there || !read_endpoints(&t, (int)at))
		return 0;
	for (; n < (t.length + 3) / 4; n++)
		parts[n] = (struct rt_part){KRON_EVENT_TEXT + n, t.word[n]};
	parts[n++] = (struct rt_part){KRON_EVENT_MEMORY, t.flags | t.length};
	return n;
}

static void take_text(uint32_t event, const struct kron_memory *m, uint64_t at, bool is_there)
{
	struct rt_part parts[KRON_MEMORY_PARTS];
	struct rt_trigger t = {.event = event, .parts = parts};

	t.nparts = (uint8_t)put_text(parts, m, at, is_there);
	if (t.nparts)
		rt_trigger_take(&t);
}

void kron_rt_take_memory(uint32_t event, uint64_t base, const uint8_t *back)
{
	const struct kron_memory *m = (const void *)(back + KRON_MEMORY_AT);
	uint64_t at = base;
	bool is_there;

	if (!kron_rt.live)
		return;
	if (rt_bus() !=
	    KRON_BUS_LANE) { /* a patched file that woke on a board, which has no room for it */
		rt_proc_count_lost(1);
		return;
	}
	is_there = follow(m, &at);
	if (m->bits && !m->count)
		take_number(event, m, at, is_there);
	else
		take_text(event, m, at, is_there);
}
