/* SPDX-License-Identifier: MIT */
/*
 * samples_of.c - what is in a trace's file of samples, for truth.py.
 *
 *   samples_of FILE [all]
 *
 * Reads the bytes as trace/format.h and trace/packed.h say, and shares no code with kron.  A line
 * each, fields separated by blanks:
 *
 *   chunk SEQ UID TID SOURCE HOLES SOURCES   SOURCES: 0 if a sample of a function has another one
 *   sample UID TID SEQ HEAD SOURCE PAYLOAD EVENT      with `all`; holes left out
 *   event EVENT COUNT                        over all chunks
 *   lost N                                   what the records of losses add up to
 *   bad OFFSET                               here is not a whole chunk; nothing after it is read
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLAIN_MAGIC = 0x4b43484b, PACKED_MAGIC = 0x4b434750, PAD_MAGIC = 0x4b504144 };
#define JUMPS 0x80000000u
#define SPECIAL 0xffffff00u
#define LOST 0xffffff01u
#define MOST_EVENTS (1u << 26)

struct chunk {
	uint32_t magic, nbytes;
	uint64_t seq;
	uint32_t uid, tid, source, holes;
};

struct sample {
	uint32_t head, low, source, payload, event;
};

static struct {
	const struct chunk *chunk;
	bool all, one_source;
	uint64_t lost;
	struct count {
		uint64_t *of;
		uint32_t n;
	} low, jumps;
} now;

static bool count(struct count *c, uint32_t event)
{
	if (event >= MOST_EVENTS)
		return false;
	if (event >= c->n) {
		uint32_t n = event * 2 + 64;

		c->of = realloc(c->of, n * sizeof(*c->of));
		if (!c->of)
			exit(1);
		memset(c->of + c->n, 0, (n - c->n) * sizeof(*c->of));
		c->n = n;
	}
	c->of[event]++;
	return true;
}

static bool take(const struct sample *s)
{
	if (now.all)
		printf("sample %u %u %" PRIu64 " %u %u %u %u\n", now.chunk->uid, now.chunk->tid,
		       now.chunk->seq, s->head, s->source, s->payload, s->event);
	if (s->event == LOST)
		now.lost += s->payload;
	if (s->event >= SPECIAL)
		return true;
	now.one_source = now.one_source && s->source == now.chunk->source;
	return s->event < JUMPS ? count(&now.low, s->event) : count(&now.jumps, s->event - JUMPS);
}

static uint32_t word(const uint8_t *at, int nbytes)
{
	uint32_t v = 0;

	for (int i = 0; i < nbytes; i++)
		v |= (uint32_t)at[i] << 8 * i;
	return v;
}

static struct sample sample_at(const uint8_t *at)
{
	return (struct sample){word(at, 4), word(at + 4, 4), word(at + 8, 4), word(at + 12, 4),
			       word(at + 16, 4)};
}

static bool plain(const uint8_t *at, uint32_t nbytes)
{
	if (nbytes % 20)
		return false;
	for (const uint8_t *end = at + nbytes; at < end; at += 20) {
		struct sample s = sample_at(at);

		if (s.head && !take(&s))
			return false;
	}
	return true;
}

static uint32_t history_behind(uint32_t history, uint32_t event)
{
	return (history << 3 ^ event * 0x9e3779b1u >> 22) % 1024;
}

/* How long the piece is that begins with this byte; 0: none does. */
static uint32_t length(uint8_t first)
{
	if (first < 0xf8)
		return first < 0xf0 ? 1 : 2;
	return first == 0xf8 ? 5 : first == 0xf9 ? 9 : first == 0xfa ? 13 : first == 0xff ? 21 : 0;
}

static bool packed(const uint8_t *at, uint32_t nbytes)
{
	static struct {
		uint32_t event, step;
	} guess[1024], *g;
	const uint8_t *end = at + nbytes;
	struct sample s = {0};
	uint32_t history = 0;

	memset(guess, 0, sizeof(guess));
	for (uint32_t len; at < end; at += len) {
		uint64_t time = (uint64_t)(s.head & 0xffffff) << 32 | s.low;

		len = length(*at);
		if (*at == 0xfe && end - at < 4)
			return true;
		if (!len || len > end - at || (*at != 0xff && !s.head))
			return false;
		g = &guess[history];
		if (*at == 0xff) {
			struct sample whole = sample_at(at + 1);

			if (!whole.head)
				continue;
			s = whole;
		} else {
			if (*at == 0xf8) {
				g->event = word(at + 2, 2);
				g->step = (uint32_t)((int8_t)at[4] * 8);
			} else if (*at == 0xf9) {
				g->event = word(at + 3, 2);
				g->step = word(at + 5, 4);
			} else if (*at == 0xfa) {
				g->event = word(at + 9, 4);
				g->step = word(at + 5, 4);
			}
			time += len == 1   ? at[0]
				: len == 2 ? (at[0] & 7u) << 8 | at[1]
				: len == 5 ? at[1]
				: len == 9 ? word(at + 1, 2)
					   : word(at + 1, 4);
			s.head = (s.head & 0xff000000) | (time >> 32 & 0xffffff);
			s.low = (uint32_t)time;
			s.event = g->event;
			s.payload += g->step;
		}
		history = history_behind(history, s.event);
		if (!take(&s))
			return false;
	}
	return true;
}

static uint8_t *contents(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = NULL;
	size_t room = 0;

	*size = 0;
	while (f && !feof(f) && !ferror(f)) {
		if (*size == room)
			data = realloc(data, room = room * 2 + (1 << 20));
		if (!data)
			exit(1);
		*size += fread(data + *size, 1, room - *size, f);
	}
	if (!f || ferror(f)) {
		perror(path);
		exit(1);
	}
	fclose(f);
	return data;
}

int main(int argc, char **argv)
{
	struct chunk c;
	uint8_t *data;
	size_t size, at = 0;

	if (argc < 2)
		return 2;
	data = contents(argv[1], &size);
	now.chunk = &c;
	now.all = argc > 2;
	for (bool good = true; good && at < size; at += sizeof(c) + c.nbytes) {
		const uint8_t *body = data + at + sizeof(c);

		c = (struct chunk){0};
		if (size - at >= sizeof(c))
			memcpy(&c, data + at, sizeof(c));
		good = size - at >= sizeof(c) && c.nbytes <= size - at - sizeof(c);
		if (good && c.magic == PAD_MAGIC)
			continue;
		now.one_source = true;
		good = good && ((c.magic == PLAIN_MAGIC && plain(body, c.nbytes)) ||
				(c.magic == PACKED_MAGIC && packed(body, c.nbytes)));
		if (!good)
			printf("bad %zu\n", at);
		else
			printf("chunk %" PRIu64 " %u %u %u %u %d\n", c.seq, c.uid, c.tid, c.source,
			       c.holes, now.one_source);
	}
	for (uint32_t i = 0; i < now.low.n; i++)
		if (now.low.of[i])
			printf("event %u %" PRIu64 "\n", i, now.low.of[i]);
	for (uint32_t i = 0; i < now.jumps.n; i++)
		if (now.jumps.of[i])
			printf("event %u %" PRIu64 "\n", JUMPS + i, now.jumps.of[i]);
	printf("lost %" PRIu64 "\n", now.lost);
	free(data);
	free(now.low.of);
	free(now.jumps.of);
	return 0;
}
