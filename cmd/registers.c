/* SPDX-License-Identifier: MIT */
/* registers.c - see registers.h */
#include "cmd/registers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <kron/board.h>

static const struct name {
	const char *text;
	uint32_t offset; /* of the first */
	unsigned bits;
	unsigned n; /* numbered 0 to n-1 when there is more than one */
} names[] = {
#define CHIP(text, word, bits, n)                               \
	{                                                       \
		text, KRON_CHIP_BYTE(KRON_WORD_##word), bits, n \
	}
	CHIP("chip-reset", RESET, 32, 1),
	CHIP("csr", CSR, 32, 1),
	CHIP("timestamp", TIMESTAMP, 56, 1),
	CHIP("filter", FILTER, 32, 1),
	CHIP("wait", WAIT, 32, 1),
	CHIP("overrun", OVERRUN, 32, 1),
	CHIP("high", HIGH, 32, 1),
	CHIP("enable", ENABLE, 64, 1),
	CHIP("mode", MODE, 64, 1),
	CHIP("clock", CLOCK, 64, 1),
	CHIP("fifo", FIFO, 32, 5),
	CHIP("source", SOURCE, 32, KRON_SOURCES),
	CHIP("counter", COUNTER, 32, KRON_COUNTERS),
	CHIP("increment", INCREMENT, 32, KRON_COUNTERS),
	CHIP("trace", TRACE, 64, KRON_LEVELS),
	CHIP("resource", RESOURCE, 64, KRON_LEVELS),
#define VC(text, word, bits, n)                   \
	{                                         \
		text, KRON_VC_BYTE(word), bits, n \
	}
	VC("vc-reset", KRON_WORD_RESET, 32, 1),
	VC("vc-csr", KRON_WORD_CSR, 32, 1),
	VC("vc-timestamp", KRON_WORD_TIMESTAMP, 64, 1),
	VC("vc-high", KRON_WORD_HIGH, 32, 1),
	VC("vc-enable", KRON_WORD_ENABLE, 64, 1),
	VC("vc-mode", KRON_WORD_MODE, 64, 1),
	VC("vc-clock", KRON_WORD_CLOCK, 64, 1),
	VC("vc-page", KRON_VC_PAGE, 32, 1),
	VC("vc-count", KRON_VC_COUNT, 32, 1),
	VC("vc-counter", KRON_WORD_COUNTER, 32, KRON_COUNTERS),
	VC("vc-increment", KRON_WORD_INCREMENT, 32, KRON_COUNTERS),
	{"reset", KRON_BOARD_RESET, 32, 1},
	{"config", KRON_BOARD_CONFIG, 32, 1},
	{"map", KRON_BOARD_MAP, 32, 1},
	{"test", KRON_BOARD_TEST, 32, 1},
	{"memory", KRON_BOARD_MEMORY, 32, KRON_BOARD_MEMORY_WORDS},
};

static bool parse(const char *text, int base, uint64_t end, uint64_t *out)
{
	char *rest;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*out = strtoull(text, &rest, base);
	return !errno && !*rest && *out < end;
}

static bool is_named(const char *text, const struct name *n, struct reg *out)
{
	size_t len = strlen(n->text);
	uint64_t i = 0;

	if (strncmp(text, n->text, len))
		return false;
	if (n->n == 1 ? text[len] != 0 : !parse(text + len, 10, n->n, &i))
		return false;
	out->offset = n->offset + 4 * (uint32_t)i;
	out->word = (out->offset - KRON_BOARD_CHIP) / 4;
	out->bits = n->bits;
	return true;
}

bool registers_find(const char *text, struct reg *out)
{
	uint64_t offset;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (is_named(text, &names[i], out))
			return true;
	if (!parse(text, 0, KRON_BOARD_SIZE, &offset) || offset % 4)
		return false;
	*out = (struct reg){.offset = (uint32_t)offset, .bits = 32};
	return true;
}
