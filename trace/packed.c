/* SPDX-License-Identifier: MIT */
/* packed.c - see packed.h. */
#include "trace/packed.h"

#include <string.h>

enum { GUESSED_FAR = 0xf0, NEAR = 0xf8, MIDDLE, FAR, NOTHING = 0xfe, WHOLE };
#define GUESSED_TICKS ((uint64_t)(NEAR - GUESSED_FAR) << 8)
#define NEAR_SIZE 5u
#define MIDDLE_SIZE 9u
#define FAR_SIZE 13u
#define WHOLE_SIZE (1u + KRON_SAMPLE_SIZE)
#define TIME_BITS 56
#define GUESSES (1u << PACKED_HISTORY_BITS)

static uint32_t type_of(uint32_t head)
{
	return head >> KRON_HEAD_TYPE_SHIFT & KRON_HEAD_TYPE_MASK;
}

static bool is_resource(uint32_t head)
{
	return type_of(head) == KRON_HEAD_TYPE_RESOURCE;
}

/* ---- guesses ---- */

static uint64_t what_of(uint32_t event, uint32_t step)
{
	return (uint64_t)event << 32 | step;
}

static uint32_t history_behind(uint32_t history, uint32_t event)
{
	uint32_t mixed = event * 0x9e3779b1u >> (32 - PACKED_HISTORY_BITS);

	return (history << 3 ^ mixed) & ((1u << PACKED_HISTORY_BITS) - 1);
}

/* ---- make ---- */

static uint8_t *put_guessed(uint8_t *at, uint64_t ticks)
{
	if (ticks >= GUESSED_FAR)
		*at++ = (uint8_t)(GUESSED_FAR | ticks >> 8);
	*at++ = (uint8_t)ticks;
	return at;
}

static uint8_t *put_near(uint8_t *at, uint64_t ticks, uint32_t event, int32_t step)
{
	uint64_t word =
		NEAR | ticks << 8 | (uint64_t)event << 16 | (uint64_t)(uint8_t)(step / 8) << 32;

	memcpy(at, &word, NEAR_SIZE);
	return at + NEAR_SIZE;
}

static uint8_t *put_middle(uint8_t *at, uint64_t ticks, uint32_t event, int32_t step)
{
	uint64_t word = ticks | (uint64_t)event << 16 | (uint64_t)(uint32_t)step << 32;

	*at = MIDDLE;
	memcpy(at + 1, &word, MIDDLE_SIZE - 1);
	return at + MIDDLE_SIZE;
}

static uint8_t *put_far(uint8_t *at, uint32_t ticks, uint64_t what)
{
	*at = FAR;
	memcpy(at + 1, &ticks, sizeof(ticks));
	memcpy(at + 1 + sizeof(ticks), &what, sizeof(what));
	return at + FAR_SIZE;
}

static uint8_t *put_whole(uint8_t *at, const struct kron_sample *s)
{
	*at = WHOLE;
	memcpy(at + 1, s, KRON_SAMPLE_SIZE);
	return at + WHOLE_SIZE;
}

static uint8_t *put_like(uint8_t *at, uint64_t ticks, uint64_t what, uint64_t *guessed)
{
	uint32_t event = (uint32_t)(what >> 32);
	int32_t step = (int32_t)what;

	if (what == *guessed && ticks < GUESSED_TICKS)
		return put_guessed(at, ticks);
	*guessed = what;
	if (ticks <= UINT8_MAX && event <= UINT16_MAX && step % 8 == 0 && step / 8 >= INT8_MIN &&
	    step / 8 <= INT8_MAX)
		return put_near(at, ticks, event, step);
	if (ticks <= UINT16_MAX && event <= UINT16_MAX)
		return put_middle(at, ticks, event, step);
	return put_far(at, (uint32_t)ticks, what);
}

static bool is_wide(uint32_t event)
{
	return event == KRON_EVENT_WIDE;
}

/* What follows in the file is as aligned as it was; 0: no room. */
static size_t fill_up(uint8_t *out, size_t used, size_t room)
{
	size_t size = (used + PACKED_ALIGN - 1) / PACKED_ALIGN * PACKED_ALIGN;

	if (size > room)
		return 0;
	memset(out + used, NOTHING, size - used);
	return size;
}

/*
 * A thread may be storing samples just now.  The head comes last: without it this is a hole,
 * whatever else is there, and with it nothing changes any more.
 */
size_t packed_make(uint8_t *out, size_t room, const void *samples, size_t nbytes)
{
	static const struct kron_sample hole;
	const struct kron_sample *s = samples, *end = s + nbytes / KRON_SAMPLE_SIZE;
	uint64_t guesses[GUESSES] = {0}, time = 0;
	uint32_t history = 0, source = 0, rest = 0; /* of the head; no sample has 0 */
	uint32_t payload[2] = {0};
	uint8_t *at = out;

	if (nbytes % KRON_SAMPLE_SIZE)
		return 0;
	for (; s < end; s++) {
		/* Acquire: the head is stored last; partner: the thunk's store of it. */
		uint32_t head = __atomic_load_n(&s->head, __ATOMIC_ACQUIRE);
		uint64_t now = (uint64_t)(head & KRON_HEAD_TIME_MASK) << 32 | s->time_lo;
		uint64_t ticks = (now - time) & ((1ull << TIME_BITS) - 1);

		if (room - (size_t)(at - out) < WHOLE_SIZE)
			return 0;
		if (!head) {
			at = put_whole(at, &hole);
			continue;
		}
		if (rest == (head & ~KRON_HEAD_TIME_MASK) && source == s->source &&
		    ticks <= UINT32_MAX)
			at = put_like(at, ticks,
				      what_of(s->event, s->payload - payload[is_wide(s->event)]),
				      &guesses[history]);
		else if (is_resource(head))
			return 0;
		else
			at = put_whole(at, s);
		rest = head & ~KRON_HEAD_TIME_MASK;
		source = s->source;
		payload[is_wide(s->event)] = s->payload;
		time = now;
		history = history_behind(history, s->event);
	}
	return fill_up(out, (size_t)(at - out), room);
}

/* ---- walk ---- */

void sample_walk_start(struct sample_walk *w, const uint8_t *data, size_t nbytes, bool packed)
{
	w->at = data;
	w->end = data + nbytes;
	w->packed = packed;
	w->s = (struct kron_sample){0};
	w->history = 0;
	w->payload[0] = w->payload[1] = 0;
	if (packed)
		memset(w->guesses, 0, sizeof(w->guesses));
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

/* How many bytes the piece has that begins with this one; 0: no piece does. */
static size_t piece_size(uint8_t first)
{
	if (first < NEAR)
		return first < GUESSED_FAR ? 1 : 2;
	return first == NOTHING  ? 1
	       : first == NEAR   ? NEAR_SIZE
	       : first == MIDDLE ? MIDDLE_SIZE
	       : first == FAR    ? FAR_SIZE
	       : first == WHOLE  ? WHOLE_SIZE
				 : 0;
}

/* The ticks of a piece that is not whole; *guessed becomes what it says. */
static uint32_t take_like(const uint8_t *at, uint64_t *guessed)
{
	uint64_t word = 0;
	uint32_t ticks;

	switch (*at) {
	case NEAR:
		*guessed = what_of(at[2] | (uint32_t)at[3] << 8, (uint32_t)(8 * (int8_t)at[4]));
		return at[1];
	case MIDDLE:
		memcpy(&word, at + 1, sizeof(word));
		*guessed = what_of((uint32_t)word >> 16, (uint32_t)(word >> 32));
		return word & UINT16_MAX;
	case FAR:
		memcpy(&ticks, at + 1, sizeof(ticks));
		memcpy(guessed, at + 1 + sizeof(ticks), sizeof(*guessed));
		return ticks;
	default:
		return *at < GUESSED_FAR ? *at : (*at & 7u) << 8 | at[1];
	}
}

static void step_on(struct sample_walk *w, uint32_t ticks, uint64_t what)
{
	struct kron_sample *s = &w->s;
	uint64_t time = kron_sample_time(s) + ticks;

	s->head = (s->head & ~KRON_HEAD_TIME_MASK) | ((uint32_t)(time >> 32) & KRON_HEAD_TIME_MASK);
	s->time_lo = (uint32_t)time;
	s->event = (uint32_t)(what >> 32);
	s->payload = w->payload[is_wide(s->event)] += (uint32_t)what;
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

/* A piece of this size, which is not NOTHING.  false: a hole. */
static inline bool take_piece(struct sample_walk *w, size_t size)
{
	const uint8_t *at = w->at;

	w->at += size;
	if (*at == WHOLE) {
		if (!take_whole(&w->s, at + 1))
			return false;
		w->payload[is_wide(w->s.event)] = w->s.payload;
	} else {
		uint64_t *guessed = &w->guesses[w->history];
		uint32_t ticks = take_like(at, guessed);

		step_on(w, ticks, *guessed);
	}
	w->history = history_behind(w->history, w->s.event);
	return true;
}

static const struct kron_sample *next_packed(struct sample_walk *w, uint64_t *damaged)
{
	size_t left;

	while ((left = (size_t)(w->end - w->at))) {
		size_t size = piece_size(*w->at);

		if (!size || left < size)
			break;
		if (*w->at == NOTHING) {
			w->at++;
			continue;
		}
		if (!take_piece(w, size))
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

size_t packed_restore(void *out, size_t room, const uint8_t *data, size_t nbytes)
{
	static const struct kron_sample hole;
	struct kron_sample *to = out;
	struct sample_walk w;
	size_t n = 0;

	sample_walk_start(&w, data, nbytes, true);
	while (w.at < w.end && (n + 1) * KRON_SAMPLE_SIZE <= room) {
		size_t size = piece_size(*w.at);

		if (!size || (size_t)(w.end - w.at) < size)
			break;
		if (*w.at == NOTHING)
			w.at++;
		else if (take_piece(&w, size))
			to[n++] = w.s;
		else
			to[n++] = hole;
	}
	return n * KRON_SAMPLE_SIZE;
}

const struct kron_sample *sample_walk_next(struct sample_walk *w, uint64_t *damaged)
{
	return w->packed ? next_packed(w, damaged) : next_plain(w, damaged);
}
