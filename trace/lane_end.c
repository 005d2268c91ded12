/* SPDX-License-Identifier: MIT */
/*
 * lane_end.c - when the calls end that a lane has open after its last event.
 *
 *   last event ──────────────────────────► thread's end ─► process' end ─► recording's end
 *                 nothing came, so nothing has ended: the first of these that is known
 *
 * That nothing came says so only if it would have come: not if it may have been lost, gates were closed,
 * or a filter or the recorder's trigger left it out.  Then the calls end where that began.
 */
#include "trace/reader_impl.h"

#define NOT_COUNTED UINT64_MAX

/* 0: unknown */
static uint64_t earlier(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

/* ---- losses ---- */

/* Of the losses of a lane's process: so many have a record, and so lie before a sample. */
static uint64_t count_told(const struct trace *t, uint32_t lane)
{
	const struct trace_priv *p = priv_of(t);
	uint32_t uid = t->lanes[lane].proc_uid;
	uint64_t told = 0;

	while (lane && t->lanes[lane - 1].proc_uid == uid)
		lane--;
	for (; lane < t->nlanes && t->lanes[lane].proc_uid == uid; lane++) {
		for (uint32_t i = p->lane_first[lane]; i < p->lane_first[lane + 1]; i++) {
			const struct chunk_ref *c = &p->chunks.v[i];
			const struct kron_sample *s;
			struct sample_walk w;

			lanes_walk(t, c, &w);
			while ((s = sample_walk_next(&w, NULL)))
				told += s->event == KRON_EVENT_LOST ? s->payload : 0;
			lanes_have_read(t, c);
		}
	}
	return told;
}

static uint64_t told_of(const struct trace *t, const struct trace_proc *proc, uint32_t lane)
{
	struct trace_priv *p = priv_of(t);
	uint64_t *told;

	if (!p->told) {
		p->told = xmalloc(t->nprocs * sizeof(*p->told));
		for (size_t i = 0; i < t->nprocs; i++)
			p->told[i] = NOT_COUNTED;
	}
	told = &p->told[proc - t->procs];
	if (*told == NOT_COUNTED)
		*told = count_told(t, lane);
	return *told;
}

/* What processes have lost whose own count is not in the trace, because they have not ended. */
static uint64_t lost_by_others(const struct trace *t)
{
	uint64_t known = 0;

	for (size_t i = 0; i < t->nprocs; i++)
		known += t->procs[i].lost;
	return t->lost > known ? t->lost - known : 0;
}

/* Samples may be lost after the last one of any of its threads. */
static bool has_lost_more(const struct trace *t, const struct trace_proc *proc, uint32_t lane)
{
	uint64_t lost;

	if (!t->lost)
		return false;
	if (trace_session(t, "bus") && !trace_session_is(t, "bus", "lane"))
		return true; /* the board does not say whose */
	if (trace_session_is(t, "when_full", "wrap"))
		return false; /* what was overwritten is older than what there is */
	if (!proc)
		return true;
	lost = proc->end_tsc ? proc->lost : lost_by_others(t);
	return lost && lost > told_of(t, proc, lane);
}

/* ---- the end ---- */

/* 0: unknown */
static uint64_t end_of_recording(const struct trace *t)
{
	uint64_t end = earlier(t->end_tsc, trace_session_number(t, "closed_tsc", 0));
	uint64_t fired = trace_session_number(t, "trigger_ns", 0);

	if (!trace_session(t, "trigger"))
		return end;
	/* the samples after it are in the trace up to somewhere */
	return fired ? earlier(end, t->start_tsc + (uint64_t)((double)fired * t->tsc_hz / 1e9)) : 0;
}

static uint64_t end_alone(const struct trace *t, uint32_t lane, uint64_t last)
{
	const struct trace_lane *l = &t->lanes[lane];
	const struct trace_proc *proc = trace_proc_of(t, l->proc_uid);
	uint64_t end = end_of_recording(t);

	if (has_lost_more(t, proc, lane) || (!end && trace_session(t, "trigger")))
		return last;
	end = earlier(end, proc ? proc->end_tsc : 0);
	if (l->end_tsc > last) /* else a later thread of this number has gone on */
		end = earlier(end, l->end_tsc);
	if (t->filter)
		end = earlier(end, t->filter->until(t->filter, last));
	return end > last ? end : last;
}

/* Of one of several traces: by itself, for each has its own losses, trigger and end. */
static uint64_t end_in_node(const struct trace *t, uint32_t lane, uint64_t last)
{
	const struct joined *j = &priv_of(t)->joined[t->lanes[lane].node];
	uint64_t own = timeline_from(&j->clock, last), end;

	end = timeline_to(&j->clock, trace_lane_end(j->t, lane - j->first_lane, own));
	if (t->filter)
		end = earlier(end, t->filter->until(t->filter, last));
	return end > last ? end : last;
}

bool trace_lane_has_end(const struct trace *t, uint32_t lane)
{
	const struct trace *own = trace_nodes(t) ? priv_of(t)->joined[t->lanes[lane].node].t : t;

	/* what `kron recover` ends a trace with is its last sample */
	return own->complete && !trace_session(own, "recovered");
}

uint64_t trace_lane_end(const struct trace *t, uint32_t lane, uint64_t last)
{
	if (trace_nodes(t))
		return end_in_node(t, lane, last);
	return end_alone(t, lane, last);
}
