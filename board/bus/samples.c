/* SPDX-License-Identifier: MIT */
/* samples.c - see samples.h */
#include "board/bus/samples.h"

#include "board/bus/find_sample.h"
#include "board/bus/local_memory.h"
#include "board/bus/view.h"

#define ENOUGH 32u /* samples in a row that fit together by no accident */

static void walk(const struct local_memory *m,
		 int (*put)(void *to, const uint32_t *words, unsigned n), void *to)
{
	size_t at = 0;

	while (at < m->n) {
		const uint8_t *p = (const uint8_t *)(m->words + at);
		size_t left = 4 * (m->n - at), size = sample_size(p);

		if (size > left || (size && put(to, m->words + at, (unsigned)(size / 4))))
			return;
		if (!size) /* not written by the board */
			size = sample_find(p, left, left, 4, ENOUGH, true);
		at += size / 4;
	}
}

int bus_samples(struct bus *b, int (*put)(void *to, const uint32_t *words, unsigned n), void *to,
		struct err *err)
{
	const struct local_range all = {0};
	struct local_memory m;
	struct bus_view v;
	int code = bus_look(b, &v, err); /* it says so when the board is damaged */

	if (!code)
		code = local_memory_read(&m, b, &all, err);
	if (code)
		return code;
	walk(&m, put, to);
	local_memory_free(&m);
	return 0;
}
