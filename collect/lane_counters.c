/* SPDX-License-Identifier: MIT */
/* lane_counters.c - see lane_counters.h */
#include "collect/lane_counters.h"

#include <string.h>

#include <kron/board.h>

static bool is_counters(const struct kron_sample *s)
{
	return s->head && lane_counters_is(s->event);
}

bool lane_counters_are_there(const void *samples, size_t nbytes)
{
	const struct kron_sample *s = samples;

	for (size_t i = 0; i < nbytes / KRON_SAMPLE_SIZE; i++)
		if (is_counters(&s[i]))
			return true;
	return false;
}

/* A trigger's sample, followed by all of its counters. */
static bool has_counters(const struct kron_sample *s, size_t n)
{
	if (n < KRON_RESOURCE_SLOTS || !s->head || s->event >= KRON_EVENT_SPECIAL)
		return false;
	for (uint32_t k = 0; k < KRON_COUNTERS / 2; k++)
		if (!s[k + 1].head || s[k + 1].event != KRON_EVENT_COUNTERS + k ||
		    kron_sample_time(&s[k + 1]) != kron_sample_time(s))
			return false;
	return true;
}

static struct kron_resource_sample make_resource(const struct kron_sample *s)
{
	struct kron_resource_sample r = {.sample = *s};

	r.sample.head &= ~(KRON_HEAD_TYPE_MASK << KRON_HEAD_TYPE_SHIFT);
	r.sample.head |= KRON_HEAD_TYPE_RESOURCE << KRON_HEAD_TYPE_SHIFT;
	for (uint32_t k = 0; k < KRON_COUNTERS / 2; k++) {
		r.counter[2 * k] = s[k + 1].source;
		r.counter[2 * k + 1] = s[k + 1].payload;
	}
	return r;
}

size_t lane_counters_fold(void *out, const void *samples, size_t nbytes)
{
	const struct kron_sample *s = samples, *end = s + nbytes / KRON_SAMPLE_SIZE;
	uint8_t *at = out;

	while (s < end) {
		if (has_counters(s, (size_t)(end - s))) {
			const struct kron_resource_sample r = make_resource(s);

			memcpy(at, &r, sizeof(r));
			at += sizeof(r);
			s += KRON_RESOURCE_SLOTS;
			continue;
		}
		if (!is_counters(s)) {
			memcpy(at, s, KRON_SAMPLE_SIZE);
			at += KRON_SAMPLE_SIZE;
		}
		s++;
	}
	return (size_t)(at - (uint8_t *)out);
}
