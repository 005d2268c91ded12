/* SPDX-License-Identifier: MIT */
/* packed.c - see packed.h. */
#include "trace/packed.h"

#include <string.h>

#define SHORT 8u
#define WHOLE (4u + KRON_SAMPLE_SIZE)
#define WHOLE_MARK 0xffffu
#define TIME_BITS 56

static uint32_t type_of(uint32_t head)
{
	return head >> KRON_HEAD_TYPE_SHIFT & KRON_HEAD_TYPE_MASK;
}

static bool is_resource(uint32_t head)
{
	return type_of(head) == KRON_HEAD_TYPE_RESOURCE;
}

/* ---- make ---- */

/* May this sample be told by what differs from the one before? */
static bool is_short(const struct kron_sample *before, const struct kron_sample *s, uint64_t ticks)
{
	return !((before->head ^ s->head) & ~KRON_HEAD_TIME_MASK) && before->source == s->source &&
	       ticks < WHOLE_MARK && s->event <= UINT16_MAX;
}

static uint64_t ticks_between(const struct kron_sample *before, const struct kron_sample *s)
{
	return (kron_sample_time(s) - kron_sample_time(before)) & ((1ull << TIME_BITS) - 1);
}

/* Its thread may be storing it just now: what we saw at one moment.  A hole is all zero. */
static struct kron_sample load(const struct kron_sample *s)
{
	/* Acquire: the head is stored last; partner: the thunk's store of it. */
	uint32_t head = __atomic_load_n(&s->head, __ATOMIC_ACQUIRE);

	if (!head)
		return (struct kron_sample){0};
	return (struct kron_sample){head, s->time_lo, s->source, s->payload, s->event};
}

static uint8_t *put_short(uint8_t *at, const struct kron_sample *s, uint64_t ticks)
{
	uint64_t word = ticks | (uint64_t)s->event << 16 | (uint64_t)s->payload << 32;

	memcpy(at, &word, SHORT);
	return at + SHORT;
}

static uint8_t *put_whole(uint8_t *at, const struct kron_sample *s)
{
	const uint32_t mark = WHOLE_MARK;

	memcpy(at, &mark, sizeof(mark));
	memcpy(at + sizeof(mark), s, KRON_SAMPLE_SIZE);
	return at + WHOLE;
}

size_t packed_make(uint8_t *out, size_t room, const void *samples, size_t nbytes)
{
	const struct kron_sample *s = samples, *end = s + nbytes / KRON_SAMPLE_SIZE;
	struct kron_sample before = {0}; /* no sample has its header byte */
	uint8_t *at = out;

	if (nbytes % KRON_SAMPLE_SIZE)
		return 0;
	for (; s < end; s++) {
		struct kron_sample now = load(s);
		uint64_t ticks = ticks_between(&before, &now);

		if (room - (size_t)(at - out) < WHOLE || is_resource(now.head))
			return 0;
		if (now.head && is_short(&before, &now, ticks))
			at = put_short(at, &now, ticks);
		else
			at = put_whole(at, &now);
		if (now.head)
			before = now;
	}
	return (size_t)(at - out);
}

/* ---- walk ---- */

void sample_walk_start(struct sample_walk *w, const uint8_t *data, size_t nbytes, bool packed)
{
	*w = (struct sample_walk){.at = data, .end = data + nbytes, .packed = packed};
}

static const struct kron_sample *next_plain(struct sample_walk *w, uint64_t *damaged)
{
	const uint8_t *at = w->at;

	while ((size_t)(w->end - at) >= KRON_SAMPLE_SIZE) {
		const struct kron_sample *s = (const void *)at;

		if (type_of(s->head) == KRON_HEAD_TYPE_TRACE) {
			w->at = at + KRON_SAMPLE_SIZE;
			return s;
		}
		if (is_resource(s->head) && (size_t)(w->end - at) >= KRON_RESOURCE_SIZE) {
			w->at = at + KRON_RESOURCE_SIZE;
			return s;
		}
		if (s->head && damaged)
			*damaged += KRON_SAMPLE_SIZE;
		at += KRON_SAMPLE_SIZE;
	}
	w->at = w->end;
	return NULL;
}

static void take_short(struct kron_sample *s, uint64_t word)
{
	uint64_t time = kron_sample_time(s) + (word & 0xffff);

	s->head = (s->head & ~KRON_HEAD_TIME_MASK) | ((uint32_t)(time >> 32) & KRON_HEAD_TIME_MASK);
	s->time_lo = (uint32_t)time;
	s->event = (uint32_t)word >> 16;
	s->payload = (uint32_t)(word >> 32);
}

/* false: a hole. */
static bool take_whole(struct kron_sample *s, const uint8_t *at)
{
	struct kron_sample whole;

	memcpy(&whole, at, sizeof(whole));
	if (!whole.head)
		return false;
	*s = whole;
	return true;
}

static const struct kron_sample *next_packed(struct sample_walk *w, uint64_t *damaged)
{
	size_t left;

	while ((left = (size_t)(w->end - w->at)) >= SHORT) {
		size_t size = SHORT;
		uint64_t word;

		memcpy(&word, w->at, sizeof(word));
		if ((word & 0xffff) == WHOLE_MARK)
			size = WHOLE;
		if (left < size)
			break;
		w->at += size;
		if (size == SHORT)
			take_short(&w->s, word);
		else if (!take_whole(&w->s, w->at - KRON_SAMPLE_SIZE))
			continue;
		if (type_of(w->s.head) == KRON_HEAD_TYPE_TRACE)
			return &w->s;
		if (damaged)
			*damaged += size;
	}
	if (damaged)
		*damaged += (uint64_t)(w->end - w->at);
	w->at = w->end;
	return NULL;
}

const struct kron_sample *sample_walk_next(struct sample_walk *w, uint64_t *damaged)
{
	return w->packed ? next_packed(w, damaged) : next_plain(w, damaged);
}
