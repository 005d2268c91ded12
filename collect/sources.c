/* SPDX-License-Identifier: MIT */
/* sources.c - see sources.h */
#include "collect/sources.h"

#include <string.h>

#define SLACK 64u /* free entries after the last used one that are looked at */
/* More samples than the memory has room for cannot wait in it. */
#define KEPT_MAX (KRON_BOARD_MEMORY_WORDS / (KRON_SAMPLE_SIZE / 4u))
#define ROUNDS_GONE 3u /* a dead thread's last samples may be on their way through the FIFOs */

void sources_init(struct sources *s, struct segment *seg, struct tasks *t,
		  struct kron_source *table, const struct board_clock *clock)
{
	memset(s, 0, sizeof(*s));
	s->seg = seg;
	s->tasks = t;
	s->table = table;
	s->clock = clock;
	s->at = xcalloc(KRON_SOURCES_MAX, sizeof(*s->at));
}

void sources_free(struct sources *s)
{
	vec_free(&s->all);
	xfree(s->at);
	s->at = NULL;
}

static uint32_t hash_of(uint32_t source)
{
	return source * 2654435761u >> 20; /* 12 bits */
}
_Static_assert(SOURCES_HASH == 1u << 12, "hash_of()");

/* ---- known sources ---- */

static void add(struct sources *s, uint32_t entry, uint64_t word, uint64_t tsc)
{
	uint32_t source = KRON_SOURCE(s->seg->ctl->node, kron_chunk_word_tid(word));
	uint32_t *head = &s->hash[hash_of(source)];
	uint32_t i = s->unused;
	struct source *k;

	if (i) {
		k = &s->all.v[i - 1];
		s->unused = k->next;
	} else {
		k = vec_push(&s->all);
		i = (uint32_t)s->all.n;
	}
	*k = (struct source){
		.word = word,
		.since = board_clock_ticks(s->clock, tsc),
		.source = source,
		.next = *head,
		.entry = entry,
	};
	*head = i;
	s->at[entry] = i;
}

static void forget(struct sources *s, uint32_t i)
{
	struct source *k = &s->all.v[i - 1];
	uint32_t *p = &s->hash[hash_of(k->source)];

	while (*p != i)
		p = &s->all.v[*p - 1].next;
	*p = k->next;
	s->at[k->entry] = 0;
	memset(k, 0, sizeof(*k));
	k->next = s->unused;
	s->unused = i;
}

const struct source *sources_find(const struct sources *s, uint32_t source, uint64_t ticks)
{
	const struct source *best = NULL, *any = NULL;

	for (uint32_t i = s->hash[hash_of(source)]; i; i = s->all.v[i - 1].next) {
		const struct source *k = &s->all.v[i - 1];

		if (k->source != source)
			continue;
		if (!any || k->since < any->since)
			any = k;
		if (k->since <= ticks && (!best || k->since > best->since))
			best = k;
	}
	/* Earlier than all: clocks that are read one after the other may differ by a tick. */
	return best ? best : any;
}

/* ---- the table ---- */

static void free_entry(struct sources *s, uint32_t entry)
{
	/* Release: whoever takes it finds it read; partner: the runtime's claim. */
	__atomic_store_n(&s->table[entry].word, (uint64_t)KRON_CHUNK_ABSENT, __ATOMIC_RELEASE);
}

static void look_at_known(struct sources *s, uint32_t entry, const struct chunk_owner *o,
			  bool crowded)
{
	uint32_t i = s->at[entry];

	if (!o->dead) {
		if (o->task)
			o->task->left = true;
		return;
	}
	if (++s->all.v[i - 1].gone < ROUNDS_GONE || (s->keep && !crowded)) {
		if (o->task)
			o->task->left = true;
		return;
	}
	free_entry(s, entry);
	if (s->keep && s->all.n < KEPT_MAX) /* its samples are still to be fetched */
		s->at[entry] = 0;
	else
		forget(s, i);
}

uint32_t sources_look(struct sources *s, bool deaths, bool thorough)
{
	bool crowded = s->used > KRON_SOURCES_MAX / 2;
	uint32_t found = 0, used = 0;

	for (uint32_t i = 0; i < KRON_SOURCES_MAX && i < used + SLACK + s->used; i++) {
		/* Acquire: a FULL entry has its time; partner: the runtime's release. */
		uint64_t word = __atomic_load_n(&s->table[i].word, __ATOMIC_ACQUIRE);
		unsigned state = kron_chunk_word_state(word);
		uint32_t known = s->at[i];
		struct chunk_owner o;

		if (state == KRON_CHUNK_ABSENT)
			continue;
		used = i + 1;
		if (state == KRON_CHUNK_FULL && (!known || s->all.v[known - 1].word != word)) {
			if (known)
				forget(s, known);
			add(s, i, word, s->table[i].start_tsc);
			found++;
		}
		if (!deaths && known)
			continue;
		tasks_of_chunk(s->tasks, word, thorough, &o);
		if (state == KRON_CHUNK_FULL && !known)
			tasks_name_thread(s->tasks, &o);
		if (!deaths)
			continue;
		if (state == KRON_CHUNK_FULL)
			look_at_known(s, i, &o, crowded);
		else if (o.dead) /* killed while it wrote the entry: it has no samples */
			free_entry(s, i);
	}
	if (used > s->used || deaths)
		s->used = used;
	return found;
}
