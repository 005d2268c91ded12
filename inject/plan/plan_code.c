/* SPDX-License-Identifier: MIT */
/*
 * plan_code.c - the bytes of a stub as the plan keeps them: without those of counts and stores.
 *
 *   stub   insn | hot part | insn | hot part | insn | jmp back | cold part | cold part
 *   kept   insn            | insn            | insn | jmp back
 *
 * bind.c writes the parts that are left out, whatever the bus is.  Of a program with a count at
 * every instruction they are two thirds.
 */
#include <string.h>

#include "inject/plan/action.h"
#include "inject/plan/plan.h"

/* From one part that is left out to the next. */
struct kept_walk {
	const struct plan_fixup *f, *end;
	unsigned at, stop; /* in the stub: where it is; where nothing is kept any more */
	bool bad;
};

static struct kept_walk walk_begin(const struct plan_fixup *f, size_t n, unsigned code_len)
{
	return (struct kept_walk){.f = f, .end = f + n, .stop = code_len};
}

unsigned plan_code_left_out(const struct plan_fixup *f)
{
	struct action_room room;

	if (f->kind != FIXUP_PLACE)
		return 0;
	action_room_get(&room, f);
	return room.cold ? room.hot : 0;
}

/* The cold parts are the last, in the order of their hot parts. */
static void walk_stop_at_cold(struct kept_walk *w)
{
	struct action_room room;

	action_room_get(&room, w->f);
	if (room.cold < w->stop)
		w->stop = room.cold;
}

/* The next bytes that are kept: their number; they begin at *from. */
static unsigned walk_next(struct kept_walk *w, unsigned *from)
{
	*from = w->at;
	for (; w->f < w->end; w->f++) {
		unsigned len = w->f->off - *from, left_out = plan_code_left_out(w->f);

		if (w->f->off < w->at || w->f->off > w->stop) {
			w->bad = true;
			return 0;
		}
		if (!left_out)
			continue;
		walk_stop_at_cold(w);
		w->at = w->f++->off + left_out;
		w->bad = w->at > w->stop;
		return len;
	}
	w->at = w->stop;
	return w->stop - *from;
}

static bool walk_is_over(const struct kept_walk *w)
{
	return w->bad || (w->f == w->end && w->at == w->stop);
}

unsigned plan_code_kept(const struct plan_fixup *f, size_t n, unsigned code_len)
{
	struct kept_walk w = walk_begin(f, n, code_len);
	unsigned kept = 0, from;

	while (!walk_is_over(&w))
		kept += walk_next(&w, &from);
	return w.bad ? 0 : kept;
}

void plan_code_take(uint8_t *kept, const uint8_t *stub, const struct plan_fixup *f, size_t n,
		    unsigned code_len)
{
	struct kept_walk w = walk_begin(f, n, code_len);

	while (!walk_is_over(&w)) {
		unsigned from, len = walk_next(&w, &from);

		memcpy(kept, stub + from, len);
		kept += len;
	}
}

void plan_code_give(uint8_t *stub, const struct plan *p, const struct plan_site *s)
{
	struct kept_walk w = walk_begin(p->fixups + s->first_fixup, s->nfixups, s->code_len);
	const uint8_t *kept = p->code + s->code;

	while (!walk_is_over(&w)) {
		unsigned from, len = walk_next(&w, &from);

		memcpy(stub + from, kept, len);
		kept += len;
	}
}
