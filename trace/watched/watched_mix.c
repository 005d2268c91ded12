/* SPDX-License-Identifier: MIT */
/*
 * watched_mix.c - of which functions the beats are, in windows and outside.
 *
 * A program whose phases are longer than windows may be in the same one in each of them; then they agree, and are wrong
 * together.  What is called of the functions that are awake all the time says whether it was.  p and q are a function's
 * shares of the beats in windows and outside.  If all calls came from it, the estimate would be wrong by the factor q / p: so
 *
 *     factor = max |q / p - 1|        of functions that are more than a few of the beats
 *     other  = sum |p - q| / 2        which many with small shares add up to; 1: windows have seen nothing that is outside
 */
#include "trace/watched/watched_impl.h"

#include <math.h>

#include "base/vec.h"

#define LEAST_SHARE 0.05

/* Beats of one function, in one thread, between two moments. */
struct entry {
	uint32_t node, program, interval, function, count;
};
struct mix {
	VEC(struct entry) entries;
	uint32_t *counts; /* by function, of the thread and interval that are being read */
	VEC(uint32_t) touched;
	double *in, *out; /* by function */
	uint32_t node, program, interval;
};

struct mix *mix_new(uint32_t nfunctions)
{
	struct mix *m = xcalloc(1, sizeof(*m));

	m->counts = xcalloc(nfunctions + 1, sizeof(*m->counts));
	m->in = xcalloc(nfunctions + 1, sizeof(*m->in));
	m->out = xcalloc(nfunctions + 1, sizeof(*m->out));
	return m;
}

void mix_end(struct mix *m)
{
	vec_for(&m->touched, f) {
		*vec_push(&m->entries) =
			(struct entry){m->node, m->program, m->interval, *f, m->counts[*f]};
		m->counts[*f] = 0;
	}
	m->touched.n = 0;
}

void mix_begin(struct mix *m, uint32_t node, uint32_t program)
{
	m->node = node;
	m->program = program;
}

void mix_take(struct mix *m, uint32_t interval, uint32_t function)
{
	if (interval != m->interval)
		mix_end(m);
	m->interval = interval;
	if (!m->counts[function]++)
		*vec_push(&m->touched) = function;
}

/* Too few, or no more apart than chance has them. */
static bool is_little(double p, double q, double in)
{
	const double most = p > q ? p : q;

	return most < LEAST_SHARE || fabs(p - q) <= 2 * sqrt(most / in);
}

struct mix_apart mix_apart(struct mix *m, uint32_t node, const bool *programs, const uint8_t *kinds)
{
	struct mix_apart apart = {0};
	double in = 0, out = 0;

	vec_for(&m->entries, e) {
		if (e->node != node || !programs[e->program])
			continue;
		if (kinds[e->interval] == MIX_IN) {
			in += e->count;
			m->in[e->function] += e->count;
		} else if (kinds[e->interval] == MIX_OUT) {
			out += e->count;
			m->out[e->function] += e->count;
		}
	}
	vec_for(&m->entries, e) { /* each function counts once */
		const double p = m->in[e->function] / in, q = m->out[e->function] / out;

		if (in > 0 && out > 0)
			apart.other += fabs(p - q) / 2;
		if (in > 0 && out > 0 && !is_little(p, q, in))
			apart.factor = fmax(apart.factor, p > 0 ? fabs(q / p - 1) : INFINITY);
		m->in[e->function] = m->out[e->function] = 0;
	}
	return apart;
}

void mix_free(struct mix *m)
{
	vec_free(&m->entries);
	vec_free(&m->touched);
	xfree(m->counts);
	xfree(m->in);
	xfree(m->out);
	xfree(m);
}
