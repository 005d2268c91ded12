/* SPDX-License-Identifier: MIT */
/*
 * nite_samples.c - takes samples while others do, and finds its own among theirs.
 *
 *   memory   ... |theirs|theirs|OURS 0|theirs|OURS 1|OURS 2|theirs| ...
 *                    ^at: pointer before the first trigger (perhaps inside a sample)
 *
 * Up to our first sample we look at every word; from there on the length of each sample says
 * where the next one begins.  So all that is in between gets checked, too: whose sample it ever
 * is, its header must be one, its source the common one, its time not before the last one's.
 */
#include <inttypes.h>

#include "board/toolkit/nite.h"

#define CHUNK 1024u /* words looked at at a time */
/* By the machine's clock, for the board's own may stand: far longer than NITE_SAFE. */
#define PATIENCE_NS 10000000000u

static unsigned words_of(bool resource)
{
	return (resource ? KRON_RESOURCE_SIZE : KRON_SAMPLE_SIZE) / 4;
}

static void trigger(struct nite *n, struct nite_batch *b)
{
	struct tester *t = &n->t;
	bool tight = nite_random(n, 2); /* one after the other, so that the FIFO fills */
	uint64_t now;

	b->n = 1 + nite_random(n, NITE_BATCH);
	b->seq = n->seq;
	b->at = b->pointer = tester_pointer(t);
	b->began = now = tester_timestamp(t);
	for (unsigned i = 0; i < b->n; i++) {
		uint32_t level = nite_random(n, KRON_LEVELS);

		b->resource[i] = !nite_random(n, 4);
		b->after[i] = now;
		chip_write64(t, (b->resource[i] ? KRON_WORD_RESOURCE : KRON_WORD_TRACE) + level,
			     (uint64_t)n->own << 32 | n->seq++);
		if (!tight)
			b->before[i] = now = tester_timestamp(t);
	}
	now = tester_timestamp(t);
	for (unsigned i = 0; tight && i < b->n; i++)
		b->before[i] = now;
	n->kind[NITE_SAMPLES].done += b->n;
}

/* Our sample number b->found at w. */
static void check_own(struct nite *n, struct nite_batch *b, const uint32_t *w)
{
	unsigned i = b->found++;
	struct tester_expected want = {
		.resource = b->resource[i],
		.source = NITE_SOURCE,
		.data = (uint64_t)n->own << 32 | (b->seq + i),
		.after = b->after[i],
		.before = b->before[i],
	};
	struct tester_sample s = {.words = words_of(want.resource)};

	for (unsigned k = 0; k < s.words; k++)
		s.word[k] = w[k];
	if (!tester_check_sample(&n->t, &s, &want) || !want.resource)
		return;
	tester_expect(&n->t, "own Resource Counter in a sample", s.word[5 + nite_counter(n)],
		      n->value[0]);
	tester_expect(&n->t, "own Resource Counter in a sample", s.word[6 + nite_counter(n)],
		      n->value[1]);
}

/* A sample of anybody begins at w.  Its length, or 0: that is none. */
static unsigned check_any(struct nite *n, struct nite_batch *b, const uint32_t *w)
{
	uint32_t type = w[0] >> KRON_HEAD_TYPE_SHIFT & KRON_HEAD_TYPE_MASK;
	uint64_t time = (uint64_t)(w[0] & KRON_HEAD_TIME_MASK) << 32 | w[1];

	if (type != KRON_HEAD_TYPE_TRACE && type != KRON_HEAD_TYPE_RESOURCE) {
		tester_error(&n->t,
			     "at pointer %06" PRIx32 ": %08" PRIx32 " is not a sample's header",
			     b->at, w[0]);
		return 0;
	}
	tester_expect(&n->t, "header of a sample in between", w[0] >> 24, type << 3);
	tester_expect(&n->t, "source address of a sample in between", w[2], NITE_SOURCE);
	if (((time - b->last) & TESTER_TIME_MASK) > TESTER_TIME_MASK / 2)
		tester_error(&n->t, "time runs backwards: %014" PRIx64 " and then %014" PRIx64,
			     b->last, time);
	b->last = time;
	return words_of(type == KRON_HEAD_TYPE_RESOURCE);
}

static bool is_own(const struct nite *n, const struct nite_batch *b, const uint32_t *w)
{
	return w[3] == n->own && w[4] == b->seq + b->found;
}

/*
 * Look at `have` words from b->at on.  Moves b->at past what has been dealt with.  False:
 * no use going on.
 */
static bool look(struct nite *n, struct nite_batch *b, const uint32_t *w, uint32_t have)
{
	uint32_t i = 0;

	while (b->found < b->n && i + 5 <= have) {
		bool own = is_own(n, b, w + i);
		uint32_t type = w[i] >> KRON_HEAD_TYPE_SHIFT & KRON_HEAD_TYPE_MASK;
		unsigned len;

		if (!b->framed && !own) {
			i++;
			continue;
		}
		len = own ? words_of(b->resource[b->found])
			  : words_of(type == KRON_HEAD_TYPE_RESOURCE);
		if (i + len > have)
			break; /* the rest has not come yet */
		if (!b->framed)
			b->last = b->began;
		b->framed = true;
		if (!check_any(n, b, w + i))
			return false;
		if (!own && w[i + 3] == n->own) {
			tester_error(&n->t, "own sample %" PRIu32 " where %u should be",
				     w[i + 4] - b->seq, b->found);
			return false;
		}
		if (own)
			check_own(n, b, w + i);
		i += len;
		b->at = (b->at + i) & KRON_MAP_MASK;
		w += i;
		have -= i;
		i = 0;
	}
	b->at = (b->at + i) & KRON_MAP_MASK;
	return true;
}

static uint64_t elapsed(struct nite *n, const struct nite_batch *b)
{
	return (tester_timestamp(&n->t) - b->began) & TESTER_TIME_MASK;
}

/* A block where our samples lie may have been somebody's to test. */
static bool is_too_late(struct nite *n, const struct nite_batch *b)
{
	uint32_t moved = (tester_pointer(&n->t) - b->pointer) & KRON_MAP_MASK;

	return moved >= NITE_BEHIND || elapsed(n, b) >= NITE_SAFE;
}

/* Round the end of the memory. */
static void read_words(struct nite *n, uint32_t at, uint32_t count, uint32_t *words)
{
	while (count) {
		uint32_t first = at & KRON_MAP_WORD, part = KRON_BOARD_MEMORY_WORDS - first;

		if (part > count)
			part = count;
		bus_read_memory(&n->t.bus, first, part, words);
		words += part;
		at += part;
		count -= part;
	}
}

/*
 * Whether it is time to give up is asked before the last look, not after it: whoever is stopped
 * in between finds the samples all the same, or that it is too late to say.
 */
void nite_samples(struct nite *n)
{
	uint64_t errors = n->t.errors, end = tester_now() + PATIENCE_NS;
	struct nite_batch b = {0};
	uint32_t words[CHUNK];
	bool last = false;

	if (tester_is_memory_locked(&n->t, tester_pointer(&n->t), NITE_FREE))
		return; /* a memory test is ahead; others do their tests meanwhile, and so do we */
	trigger(n, &b);
	while (b.found < b.n && n->t.errors == errors && !last) {
		bool late = elapsed(n, &b) > NITE_SAFE / 2, no_more = tester_now() > end;
		uint32_t have = (tester_pointer(&n->t) - b.at) & KRON_MAP_MASK;

		last = no_more || (late && have <= CHUNK);
		if (have > CHUNK)
			have = CHUNK;
		read_words(n, b.at, have, words);
		if (is_too_late(n, &b)) {
			n->kind[NITE_SAMPLES].skipped += b.n - b.found;
			return;
		}
		if (!look(n, &b, words, have))
			return;
	}
	if (b.found < b.n && n->t.errors == errors)
		tester_error(&n->t, "%u of %u samples are not in memory, the first is number %u",
			     b.n - b.found, b.n, b.found);
}
