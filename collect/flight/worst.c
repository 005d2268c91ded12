/* SPDX-License-Identifier: MIT */
/* worst.c - see worst.h. */
#include "collect/flight/worst.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int worst_parse(struct worst *w, const char *text, struct err *err)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	*w = (struct worst){0};
	if (*text < '0' || *text > '9' || *end != ':' || !end[1] || !n || n > WORST_MOST)
		return err_set(err, EINVAL,
			       "--worst: '%s' is not N:FUNC, like 10:handle, with an N up to %u",
			       text, WORST_MOST);
	w->most = (uint32_t)n;
	w->function = xstrdup(end + 1);
	return 0;
}

void worst_free(struct worst *w)
{
	xfree(w->function);
	vec_free(&w->calls);
	vec_free(&w->dropped);
}

static uint64_t length(const struct worst_call *c)
{
	return c->at - c->since;
}

static void drop(struct worst *w, const struct worst_call *c)
{
	if (c->snapshot)
		*vec_push(&w->dropped) = c->snapshot;
}

uint64_t worst_limit(const struct worst *w)
{
	return w->calls.n < w->most ? 0 : length(&w->calls.v[w->calls.n - 1]);
}

/* Of two that took as long the earlier one stays. */
void worst_offer(struct worst *w, uint64_t since, uint64_t at)
{
	const struct worst_call c = {.since = since, .at = at};
	size_t i;

	if (at <= since || length(&c) <= worst_limit(w))
		return;
	if (w->calls.n == w->most)
		drop(w, &w->calls.v[--w->calls.n]);
	vec_push(&w->calls);
	for (i = w->calls.n - 1; i && length(&w->calls.v[i - 1]) < length(&c); i--)
		w->calls.v[i] = w->calls.v[i - 1];
	w->calls.v[i] = c;
}

struct worst_call *worst_next(struct worst *w, uint64_t before)
{
	vec_for(&w->calls, c)
		if (!c->snapshot && c->since < before)
			return c;
	return NULL;
}

void worst_forget(struct worst *w, struct worst_call *c)
{
	size_t i = (size_t)(c - w->calls.v);

	memmove(c, c + 1, (w->calls.n - i - 1) * sizeof(*c));
	w->calls.n--;
}
