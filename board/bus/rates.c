/* SPDX-License-Identifier: MIT */
/* rates.c - see rates.h. */
#include "board/bus/rates.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "board/bus/lanes.h"

struct rates_place {
	uint64_t seq;  /* of what has been read there ... */
	uint32_t at;   /* ... up to here */
	uint64_t word; /* at the last look */
};

/* More than this a look does not read: 4 MiB, a few milliseconds. */
#define CHUNKS_A_LOOK 64u

int rates_open(struct rates *r, struct bus *b, struct err *err)
{
	struct lanes_view l;
	struct stat st;
	void *p;

	memset(r, 0, sizeof(*r));
	r->bus = b;
	lanes_look(b, &l);
	if (!l.recorder_pid)
		return err_set(err, EINVAL, "no recording is running on board %s", b->name);
	if (l.bus != KRON_BUS_LANE)
		return err_set(err, EINVAL,
			       "the samples on board %s go through its registers, not through "
			       "lanes: `kron status --watch 1` shows them",
			       b->name);
	if (fstat(b->fd, &st) || (uint64_t)st.st_size <= KRON_POOL_OFFSET)
		return err_set(err, EINVAL, "board %s has no lanes", b->name);
	r->pool_bytes = (uint64_t)st.st_size - KRON_POOL_OFFSET;
	p = mmap(NULL, r->pool_bytes, PROT_READ, MAP_SHARED, b->fd, KRON_POOL_OFFSET);
	if (p == MAP_FAILED)
		return err_set(err, errno, "cannot map the lanes of board %s: %s", b->name,
			       strerror(errno));
	r->pool = p;
	r->nplaces = (uint32_t)(r->pool_bytes / KRON_CHUNK_SIZE);
	if (r->nplaces > KRON_CHUNKS_MAX)
		r->nplaces = KRON_CHUNKS_MAX;
	r->places = xcalloc(r->nplaces, sizeof(*r->places));
	r->next_seq = __atomic_load_n(&b->board.ctl->next_seq, __ATOMIC_RELAXED);
	r->lost = l.lost;
	return 0;
}

/* The chunk may be emptied, and taken by another thread, while we read: then it does not count. */
static void read_chunk(struct rates *r, uint32_t i)
{
	const struct kron_chunk *c = (const void *)(r->pool + (uint64_t)i * KRON_CHUNK_SIZE);
	const struct kron_sample *s = (const void *)(c + 1);
	uint64_t seq = __atomic_load_n(&c->seq, __ATOMIC_ACQUIRE);
	struct rates_place *p = &r->places[i];
	size_t before = r->numbers.n;
	uint32_t at;

	if (!seq)
		return;
	at = p->seq == seq ? p->at : 0;
	for (; at < KRON_CHUNK_SAMPLES; at++) {
		uint32_t event;

		/* Acquire: the head is stored last; partner: the thunk's store of it. */
		if (!__atomic_load_n(&s[at].head, __ATOMIC_ACQUIRE))
			break;
		/* Acquire: the number of the chunk is read again after it. */
		event = __atomic_load_n(&s[at].event, __ATOMIC_ACQUIRE);
		if (event < KRON_EVENT_SPECIAL)
			*vec_push(&r->numbers) = event;
	}
	if (__atomic_load_n(&c->seq, __ATOMIC_RELAXED) != seq) {
		r->numbers.n = before;
		return;
	}
	p->seq = seq;
	p->at = at;
}

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int by_owner(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/*
 * A thread goes from chunk to chunk while we look: it has several then, or none but the one that it has just filled,
 * which it had at the last look, or has begun since.
 */
static void note_owner(struct rates *r, uint32_t i, const uint64_t *state)
{
	const struct kron_chunk *c = (const void *)(r->pool + (uint64_t)i * KRON_CHUNK_SIZE);
	const uint64_t word = __atomic_load_n(state, __ATOMIC_ACQUIRE), before = r->places[i].word;
	/* Acquire: the word is read again after it. */
	const uint64_t seq = __atomic_load_n(&c->seq, __ATOMIC_ACQUIRE);
	const unsigned how = kron_chunk_word_state(word);
	const bool had_it = kron_chunk_word_state(before) == KRON_CHUNK_OWNED &&
			    kron_chunk_word_owner(before) == kron_chunk_word_owner(word);

	r->places[i].word = word;
	if (how == KRON_CHUNK_OWNED || (how == KRON_CHUNK_FULL && (had_it || seq > r->next_seq) &&
					__atomic_load_n(state, __ATOMIC_RELAXED) == word))
		*vec_push(&r->owners) = kron_chunk_word_owner(word);
}

static void count_threads(struct rates *r)
{
	r->threads = 0;
	if (r->owners.n)
		qsort(r->owners.v, r->owners.n, sizeof(*r->owners.v), by_owner);
	for (size_t i = 0; i < r->owners.n; i++)
		r->threads += !i || r->owners.v[i] != r->owners.v[i - 1];
	r->owners.n = 0;
}

static void count_events(struct rates *r)
{
	r->events.n = 0;
	r->seen = r->numbers.n;
	if (r->numbers.n)
		qsort(r->numbers.v, r->numbers.n, sizeof(*r->numbers.v), by_number);
	for (size_t i = 0; i < r->numbers.n; i++) {
		if (!i || r->numbers.v[i] != r->numbers.v[i - 1])
			vec_push(&r->events)->event = r->numbers.v[i];
		r->events.v[r->events.n - 1].seen++;
	}
}

bool rates_look(struct rates *r)
{
	const struct kron_ctl *ctl = r->bus->board.ctl;
	const uint64_t *states =
		(const void *)((const uint8_t *)ctl + (KRON_STATES_OFFSET - KRON_CTL_OFFSET));
	uint32_t ready = __atomic_load_n(&ctl->chunks_ready, __ATOMIC_ACQUIRE), looked = 0;
	uint64_t next_seq = __atomic_load_n(&ctl->next_seq, __ATOMIC_RELAXED), whole;
	struct lanes_view l;

	lanes_look(r->bus, &l);
	r->numbers.n = 0;
	ready = ready < r->nplaces ? ready : r->nplaces;
	for (uint32_t i = 0; i < ready; i++) /* all at once: what is in them takes longer */
		note_owner(r, i, &states[i]);
	for (uint32_t i = 0; i < ready && looked < CHUNKS_A_LOOK; i++) {
		const unsigned state =
			kron_chunk_word_state(__atomic_load_n(&states[i], __ATOMIC_ACQUIRE));

		if (state != KRON_CHUNK_OWNED && state != KRON_CHUNK_FULL)
			continue;
		looked++;
		read_chunk(r, i);
	}
	count_events(r);
	count_threads(r);
	whole = next_seq > r->next_seq ? (next_seq - r->next_seq) * KRON_CHUNK_SAMPLES : 0;
	r->next_seq = next_seq;
	r->samples = whole > r->seen ? whole : r->seen;
	r->lost_now = l.lost > r->lost ? l.lost - r->lost : 0;
	r->lost = l.lost;
	return l.recorder_pid != 0;
}

void rates_close(struct rates *r)
{
	if (r->pool)
		munmap((void *)(uintptr_t)r->pool, r->pool_bytes);
	xfree(r->places);
	vec_free(&r->events);
	vec_free(&r->numbers);
	vec_free(&r->owners);
}
