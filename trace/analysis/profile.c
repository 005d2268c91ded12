/* SPDX-License-Identifier: MIT */
/*
 * profile.c - see profile.h.
 *
 * Lanes are read one after another: their order does not matter to a sum, and so neither a
 * merge nor the state of more than one thread is needed.
 *
 *   calls   entry samples
 *   total   time between entry and exit, of outermost calls only: recursion counts once
 *   self    total without the time in probed callees, of all calls
 *   avg, min, max    of all calls; a call that spans a loss counts for none of the three, for
 *                    its entry and exit may belong to different calls
 *   inferred  calls closed by inference: by an exception, or because the exit has no probe.
 *             They are taken to last until their caller is seen again, so their times are
 *             upper limits; but at least what is shown where they left by a jump to what was
 *             not recorded, and no caller was
 *   CPU     a call counts for the CPU that it was entered on
 *
 * Functions below nstats have an array; other numbers, and everything by CPU, a hash table.
 * What must be known of a call that is still open (where and after how many samples it began)
 * is kept in a pool whose index pairs.c carries as the frame's node.
 */
#define _GNU_SOURCE
#include "trace/analysis/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "trace/analysis/cost.h"

struct open_call {
	uint64_t samples;  /* of the thread up to its entry */
	uint64_t children; /* probes enclosed by its callees */
	uint64_t off;      /* ticks that the thread was off a processor before its entry */
	uint64_t off_children;
	uint32_t cpu;
};

struct gather {
	struct profile *p;
	struct profile_want want;
	bool is_sparse;
	bool has_open;              /* something is known of the calls that are open */
	struct profile_stat *stats; /* by function number, below nstats */
	uint32_t nstats;
	VEC(struct profile_row) others; /* found by function and group in `slots` */
	uint32_t *slots;
	size_t nslots;
	VEC(uint32_t) touched; /* functions below nstats that were called in this group */
	VEC(struct open_call) open;
	VEC(uint32_t) unused;    /* places in open */
	uint64_t samples;        /* of this thread so far */
	uint32_t cpu;            /* of this sample */
	uint64_t tsc;            /* likewise */
	struct offcpu_walk walk; /* of this thread */
};

/* ---- where sums are ---- */

static size_t hash(uint32_t function, uint32_t group)
{
	return (size_t)((((uint64_t)group << 32 | function) * 0x9e3779b97f4a7c15ull) >> 24);
}

static void grow_slots(struct gather *g)
{
	size_t n = g->nslots ? g->nslots * 2 : 64;

	xfree(g->slots);
	g->slots = xcalloc(n, sizeof(*g->slots));
	g->nslots = n;
	for (size_t i = 0; i < g->others.n; i++) {
		size_t at = hash(g->others.v[i].function, g->others.v[i].group) & (n - 1);

		while (g->slots[at])
			at = (at + 1) & (n - 1);
		g->slots[at] = (uint32_t)i + 1;
	}
}

static struct profile_stat *other_stat(struct gather *g, uint32_t function, uint32_t group)
{
	struct profile_row *r;
	size_t at;

	if (g->others.n * 2 >= g->nslots)
		grow_slots(g);
	at = hash(function, group) & (g->nslots - 1);
	for (; g->slots[at]; at = (at + 1) & (g->nslots - 1)) {
		r = &g->others.v[g->slots[at] - 1];
		if (r->function == function && r->group == group)
			return &r->s;
	}
	r = vec_push(&g->others);
	r->function = function;
	r->group = group;
	g->slots[at] = (uint32_t)g->others.n;
	return &r->s;
}

static inline bool has_array(const struct gather *g, uint32_t function)
{
	return function < g->nstats && g->want.by != PROFILE_BY_CPU;
}

static inline struct profile_stat *stat_of(struct gather *g, uint32_t function, uint32_t cpu)
{
	if (has_array(g, function))
		return &g->stats[function];
	return other_stat(g, function, g->want.by == PROFILE_BY_CPU ? cpu : 0);
}

static struct profile_more *more_of(struct profile_stat *s)
{
	if (!s->more)
		s->more = xcalloc(1, sizeof(*s->more));
	return s->more;
}

static void free_more(struct profile_more *m)
{
	if (!m)
		return;
	loghist_free(&m->lengths);
	slack_free(m->on_cpu);
	slack_free(m->virtual_slack);
	xfree(m);
}

static void free_stat(struct profile_stat *s)
{
	loghist_free(&s->lengths);
	free_more(s->more);
	slack_free(s->slack);
	s->more = NULL;
	s->slack = NULL;
}

/* ---- calls ---- */

/* A call begins: note what its end will be compared with. */
static uint32_t on_node(void *ctx, uint32_t caller, uint32_t function)
{
	struct gather *g = ctx;
	struct open_call *o;
	uint32_t at;

	(void)caller;
	(void)function;
	if (g->unused.n) {
		at = g->unused.v[--g->unused.n];
	} else {
		at = (uint32_t)g->open.n;
		vec_push(&g->open);
	}
	o = &g->open.v[at];
	*o = (struct open_call){.samples = g->samples, .cpu = g->cpu};
	if (g->want.offcpu)
		o->off = offcpu_before(&g->walk, g->tsc);
	return at;
}

static void on_enter(void *ctx, const struct trace_event *e, uint32_t function, uint32_t depth)
{
	struct gather *g = ctx;

	(void)depth;
	if (!stat_of(g, function, e->cpu)->calls++ && has_array(g, function))
		*vec_push(&g->touched) = function;
}

static inline void add_length(struct profile_stat *s, uint64_t time, bool is_open)
{
	s->measured++;
	s->sum += time;
	s->squares += (profile_square)time * time;
	profile_least_add(&s->least, time, is_open);
	if (time > s->max)
		s->max = time;
}

static void add_off(struct gather *g, struct profile_more *m, const struct pair_call *c,
		    const struct open_call *o)
{
	uint64_t until = offcpu_before(&g->walk, c->exit_tsc);
	uint64_t off = until > o->off ? until - o->off : 0;

	if (c->payer != PAIR_NO_NODE)
		g->open.v[c->payer].off_children += off;
	m->self_off += off > o->off_children ? off - o->off_children : 0;
	if (!c->recursive)
		m->total_off += off;
}

static void add_virtual(struct gather *g, struct profile_more *m, const struct pair_call *c,
			struct open_call *o, bool is_measured)
{
	uint64_t probes = g->samples - o->samples, time = c->exit_tsc - c->entry_tsc;
	uint64_t length = profile_without(g->p, time, probes);

	if (c->payer != PAIR_NO_NODE)
		g->open.v[c->payer].children += probes;
	m->self_probes += probes > o->children ? probes - o->children : 0;
	if (!c->recursive)
		m->total_probes += probes;
	if (!is_measured)
		return;
	m->sum_probes += probes;
	profile_least_add(&m->virtual_least, length, c->open);
	if (length > m->virtual_max)
		m->virtual_max = length;
	if (g->want.percentiles)
		loghist_add(&m->lengths, length);
}

static void forget_rough(struct profile_stat *s)
{
	s->measured = s->sum = s->max = 0;
	s->least = (struct profile_least){0};
	s->squares = 0;
	loghist_free(&s->lengths);
	if (s->more) {
		s->more->sum_probes = s->more->virtual_max = 0;
		s->more->virtual_least = (struct profile_least){0};
		loghist_free(&s->more->lengths);
	}
	s->rough = false;
}

/* A call that spans a loss may be two: it is measured as long as there is no other. */
static inline bool is_measured(struct profile_stat *s, const struct pair_call *c)
{
	if (c->spans_loss) {
		s->rough |= !s->measured;
		return s->rough;
	}
	if (s->rough)
		forget_rough(s);
	return true;
}

static void note_at_least(struct gather *g, struct profile_stat *s, const struct pair_call *c)
{
	s->at_least++;
	vec_for(&g->p->left_by, jump)
		if (*jump == c->jump)
			return;
	*vec_push(&g->p->left_by) = c->jump;
}

/* Is it measured? */
static inline bool add_call(struct gather *g, struct profile_stat *s, const struct pair_call *c)
{
	uint64_t time = c->exit_tsc - c->entry_tsc;

	s->inferred += c->inferred;
	if (__builtin_expect(c->at_least, 0))
		note_at_least(g, s, c);
	if (!c->recursive)
		s->total += time;
	s->self += time - c->children_tsc;
	if (!is_measured(s, c))
		return false;
	add_length(s, time, c->open);
	if (g->want.percentiles)
		loghist_add(&s->lengths, time);
	return true;
}

/* The same bounds on a clock that stands still while the thread is off its processor. */
static struct trace_bounds on_cpu_clock(struct offcpu_walk w, struct trace_bounds b)
{
	b.lo -= offcpu_before(&w, b.lo);
	if (b.hi != UINT64_MAX)
		b.hi -= offcpu_before(&w, b.hi);
	return b;
}

static struct pair_call on_cpu(struct gather *g, const struct pair_call *c)
{
	struct pair_call on = *c;

	on.entry = on_cpu_clock(g->walk, c->entry);
	on.exit = on_cpu_clock(g->walk, c->exit);
	on.entry_tsc -= offcpu_before(&g->walk, c->entry_tsc);
	on.exit_tsc -= offcpu_before(&g->walk, c->exit_tsc);
	return on;
}

/* What probes cost is an average, whose error goes into the bounds as well. */
static void add_virtual_slack(struct gather *g, struct profile_more *m, const struct pair_call *c,
			      const struct open_call *o)
{
	struct slack *s = slack_at(&m->virtual_slack);
	const uint64_t probes = g->samples - o->samples;
	const uint64_t off = number_u64((double)probes * g->p->probe_error + 0.5);
	struct trace_bounds d = slack_between(c->entry, c->exit);

	if (c->spans_loss)
		return;
	d.lo = profile_without(g->p, d.lo, probes);
	d.lo = d.lo > off ? d.lo - off : 0;
	if (d.hi != UINT64_MAX)
		d.hi = profile_without(g->p, d.hi + off, probes);
	slack_add_length(s, d, c->open);
	if (g->want.percentiles)
		slack_add_spread(s, d);
}

/* Its payer's self time is as uncertain as the call's ends are. */
static void add_callee_slack(struct gather *g, const struct pair_call *c)
{
	struct profile_stat *payer;

	if (c->payer_function == UINT32_MAX)
		return;
	payer = stat_of(g, c->payer_function, g->has_open ? g->open.v[c->payer].cpu : 0);
	slack_add_callee(slack_at(&payer->slack), c);
	if (g->want.offcpu) {
		const struct pair_call on = on_cpu(g, c);

		slack_add_callee(slack_at(&more_of(payer)->on_cpu), &on);
	}
}

static void add_slack(struct gather *g, const struct pair_call *c, uint32_t cpu)
{
	struct slack *s = slack_at(&stat_of(g, c->function, cpu)->slack);

	slack_add(s, c);
	if (g->want.percentiles && !c->spans_loss)
		slack_add_spread(s, slack_between(c->entry, c->exit));
	add_callee_slack(g, c);
}

static void on_leave(void *ctx, const struct trace_event *e, const struct pair_call *c)
{
	struct gather *g = ctx;

	(void)e;
	add_call(g, stat_of(g, c->function, 0), c);
	if (g->is_sparse)
		add_slack(g, c, 0);
}

static void add_open_slack(struct gather *g, const struct pair_call *c, const struct open_call *o)
{
	struct profile_stat *s = stat_of(g, c->function, o->cpu);

	add_slack(g, c, o->cpu);
	if (g->want.virtual)
		add_virtual_slack(g, more_of(s), c, o);
	if (g->want.offcpu) {
		const struct pair_call on = on_cpu(g, c);

		slack_add(slack_at(&more_of(s)->on_cpu), &on);
	}
}

/* The same where something is known of the call from its beginning. */
static void on_leave_open(void *ctx, const struct trace_event *e, const struct pair_call *c)
{
	struct gather *g = ctx;
	struct open_call *o = &g->open.v[c->node];
	struct profile_stat *s = stat_of(g, c->function, o->cpu);
	bool is_in;

	is_in = add_call(g, s, c);
	if (g->want.virtual)
		add_virtual(g, more_of(s), c, o, is_in);
	if (g->want.offcpu)
		add_off(g, more_of(s), c, o);
	if (g->is_sparse)
		add_open_slack(g, c, o);
	if (g->want.by == PROFILE_BY_CPU && e && e->cpu != o->cpu)
		g->p->totals.moved++;
	*vec_push(&g->unused) = c->node;
}

/* A call of which something is known stood still, and other stacks ran. */
static void on_pause(void *ctx, const struct pair_call *c, uint64_t samples)
{
	struct gather *g = ctx;

	if (g->has_open) {
		struct open_call *o = &g->open.v[c->payer];

		o->children += samples;
		if (g->want.offcpu)
			o->off_children += offcpu_before(&g->walk, c->exit_tsc) -
					   offcpu_before(&g->walk, c->entry_tsc);
	}
	if (g->is_sparse)
		add_callee_slack(g, c);
}

static void on_special(void *ctx, const struct trace_event *e)
{
	struct gather *g = ctx;

	if (e->s.event == KRON_EVENT_LOST) {
		g->p->totals.lost += e->s.payload;
		g->p->totals.loss_places++;
	}
}

/* ---- groups ---- */

static const unsigned percents[] = {50, 90, 99};

static void fill_percentiles(uint64_t *out, const struct loghist *h, uint64_t min, uint64_t max)
{
	for (int i = 0; i < PROFILE_NPERCENTILES; i++) {
		out[i] = loghist_percentile(h, percents[i]);
		if (out[i] > max)
			out[i] = max;
		if (out[i] < min)
			out[i] = min;
	}
}

static void bound_percentiles(struct trace_bounds *out, struct slack *s)
{
	for (int i = 0; i < PROFILE_NPERCENTILES; i++)
		out[i] = slack_percentile(s, percents[i]);
	loghist_free(&s->least);
	loghist_free(&s->most);
}

static void take_row(struct gather *g, uint32_t function, uint32_t group, struct profile_stat *s)
{
	struct profile_row *r = vec_push(&g->p->rows);
	const struct trace_function *f = trace_function_of(g->p->t, KRON_EVENT_ENTRY(function));

	r->function = function;
	r->group = g->want.by != PROFILE_BY_GROUP ? group : f ? f->level : 0;
	r->s = *s;
	memset(s, 0, sizeof(*s));
	if (!r->s.measured || !g->want.percentiles)
		return;
	fill_percentiles(r->percentile, &r->s.lengths, ~r->s.least.inverse, r->s.max);
	if (r->s.slack)
		bound_percentiles(r->percentile_in, r->s.slack);
	if (r->s.more) {
		fill_percentiles(r->virtual_percentile, &r->s.more->lengths,
				 ~r->s.more->virtual_least.inverse, r->s.more->virtual_max);
		loghist_free(&r->s.more->lengths);
	}
	if (r->s.more && r->s.more->virtual_slack)
		bound_percentiles(r->virtual_percentile_in, r->s.more->virtual_slack);
	if (!g->want.histograms)
		loghist_free(&r->s.lengths);
}

/* What was gathered since the last time belongs to this thread or process. */
static void end_group(struct gather *g, uint32_t group)
{
	vec_for(&g->touched, f)
		take_row(g, *f, group, &g->stats[*f]);
	g->touched.n = 0;
	vec_for(&g->others, r)
		take_row(g, r->function, g->want.by == PROFILE_BY_CPU ? r->group : group, &r->s);
	g->others.n = 0;
	if (g->slots)
		memset(g->slots, 0, g->nslots * sizeof(*g->slots));
}

static bool ends_group(const struct gather *g, size_t lane)
{
	const struct trace *t = g->p->t;

	if (lane + 1 == t->nlanes || g->want.by == PROFILE_BY_THREAD)
		return true;
	return g->want.by == PROFILE_BY_PROCESS &&
	       t->lanes[lane].proc_uid != t->lanes[lane + 1].proc_uid;
}

static void read_lane(struct gather *g, struct pairs *pairs, size_t lane)
{
	struct trace_cursor *c = trace_cursor_open(g->p->t, (int)lane);
	struct profile_totals *totals = &g->p->totals;
	uint64_t first = UINT64_MAX, last = 0;
	uint32_t cpu = UINT32_MAX;
	struct trace_event e;

	g->samples = 0;
	if (g->want.offcpu)
		offcpu_of(g->want.offcpu, trace_lane_task(&g->p->t->lanes[lane]), &g->walk);
	while (trace_cursor_next(c, &e)) {
		g->tsc = e.tsc;
		if (e.s.event < KRON_EVENT_SPECIAL) {
			g->samples++;
			first = e.tsc < first ? e.tsc : first;
			last = e.tsc > last ? e.tsc : last;
			totals->migrations += e.cpu != cpu && cpu != UINT32_MAX;
			cpu = g->cpu = e.cpu;
		}
		pairs_feed(pairs, &e);
	}
	trace_cursor_close(c);
	if (pairs_strands(pairs, (uint32_t)lane))
		last = pairs_lane_end(pairs, (uint32_t)lane);
	pairs_finish_lane(pairs, (uint32_t)lane);
	totals->samples += g->samples;
	totals->thread_ticks += last > first ? last - first : 0;
	if (g->want.offcpu && last > first)
		totals->off_ticks += offcpu_before(&g->walk, last) - offcpu_before(&g->walk, first);
}

static void read_lanes(struct gather *g)
{
	struct pair_sink sink = {
		.ctx = g,
		.enter = on_enter,
		.leave = g->has_open ? on_leave_open : on_leave,
		.pause = on_pause,
		.node = g->has_open ? on_node : NULL,
		.special = on_special,
		.want_recursive = true,
	};
	struct pairs *pairs = pairs_open(g->p->t, &sink);

	for (size_t lane = 0; lane < g->p->t->nlanes; lane++) {
		read_lane(g, pairs, lane);
		if (ends_group(g, lane))
			end_group(g, (uint32_t)lane);
	}
	g->p->totals.calls = *pairs_counts(pairs);
	pairs_close(pairs);
}

double profile_session_real(const struct trace *t, const char *key)
{
	const char *s = trace_session(t, key);
	double v = s ? strtod(s, NULL) : 0;

	return v > 0 && v < 1e9 ? v : 0;
}

void profile_know_probe(const struct trace *t, double *ticks, double *error)
{
	double ns = profile_session_real(t, "probe_ns");
	double limit = profile_session_real(t, "probe_ns_limit");

	*ticks = ns * t->tsc_hz / 1e9;
	*error = cost_probe_error(ns, limit) * t->tsc_hz / 1e9;
}

int profile_check_virtual(const struct trace *t, struct err *err)
{
	if (profile_session_real(t, "probe_ns") > 0)
		return 0;
	return err_set(err, ENODATA,
		       "this trace has no virtual times: what a probe costs was not measured");
}

void profile_gather(struct profile *p, const struct trace *t, const struct profile_want *want)
{
	struct gather g = {.p = p, .want = *want, .nstats = trace_function_limit(t)};

	memset(p, 0, sizeof(*p));
	p->t = t;
	profile_know_probe(t, &p->probe_ticks, &p->probe_error);
	g.is_sparse = trace_clock_every(t) > 1;
	g.has_open = want->virtual || want->offcpu || want->by == PROFILE_BY_CPU;
	g.stats = xcalloc(g.nstats, sizeof(*g.stats));
	read_lanes(&g);
	vec_free(&g.touched);
	vec_free(&g.others);
	vec_free(&g.open);
	vec_free(&g.unused);
	xfree(g.slots);
	xfree(g.stats);
}

void profile_free(struct profile *p)
{
	vec_for(&p->rows, r)
		free_stat(&r->s);
	vec_free(&p->rows);
	vec_free(&p->left_by);
}

/* ---- of one row ---- */

uint64_t profile_average_ns(const struct trace *t, const struct profile_stat *s)
{
	return s->measured ? trace_ns(t, s->sum) / s->measured : 0;
}

struct trace_bounds profile_average_in(const struct trace *t, const struct profile_stat *s)
{
	const struct slack *x = s->measured ? s->slack : NULL;

	return slack_around_average(x, profile_average_ns(t, s),
				    x ? trace_ns(t, s->rough ? x->total : x->sum) : 0, s->measured);
}

uint64_t profile_minimum(const struct profile_stat *s)
{
	return s->measured ? ~s->least.inverse : 0;
}

uint64_t profile_maximum(const struct profile_stat *s)
{
	return s->max;
}

uint64_t profile_without(const struct profile *p, uint64_t ticks, uint64_t probes)
{
	double cost = (double)probes * p->probe_ticks;

	return cost < (double)ticks ? ticks - (uint64_t)(cost + 0.5) : 0;
}

uint64_t profile_on_cpu_total(const struct profile_row *r)
{
	uint64_t off = r->s.more ? r->s.more->total_off : 0;

	return r->s.total > off ? r->s.total - off : 0;
}

uint64_t profile_on_cpu_self(const struct profile_row *r)
{
	uint64_t off = r->s.more ? r->s.more->self_off : 0;

	return r->s.self > off ? r->s.self - off : 0;
}

static struct trace_bounds virtual_average_in(const struct profile *p, const struct profile_stat *s,
					      uint64_t ns)
{
	double off = s->more ? (double)s->more->sum_probes * p->probe_error : 0;

	if (s->slack)
		off += (double)(s->rough ? s->slack->total : s->slack->sum);
	return slack_around_average(s->slack, ns, trace_ns(p->t, number_u64(off)), s->measured);
}

struct profile_virtual profile_virtual_of(const struct profile *p, const struct profile_row *r)
{
	static const struct profile_more none;
	const struct profile_stat *s = &r->s;
	const struct profile_more *m = s->more ? s->more : &none;
	struct profile_virtual v = {
		.total = profile_without(p, s->total, m->total_probes),
		.self = profile_without(p, s->self, m->self_probes),
		.total_error = number_u64((double)m->total_probes * p->probe_error + 0.5),
		.self_error = number_u64((double)m->self_probes * p->probe_error + 0.5),
	};

	if (s->slack) {
		v.total_error += s->slack->total;
		v.self_error += s->slack->self;
	}
	if (s->measured) {
		v.average_ns =
			trace_ns(p->t, profile_without(p, s->sum, m->sum_probes)) / s->measured;
		v.minimum = ~m->virtual_least.inverse;
		v.maximum = m->virtual_max;
		v.average_in = virtual_average_in(p, s, v.average_ns);
	}
	return v;
}

/* In 1024ths of a tick: as fine as profile_average_ns(), which is what people see. */
static uint64_t finer_average(const struct profile_stat *s)
{
	unsigned __int128 sum = s->sum;
	unsigned __int128 average = s->measured ? (sum << 10) / s->measured : 0;

	return average < UINT64_MAX ? (uint64_t)average : UINT64_MAX;
}

uint64_t profile_value(const struct profile_row *r, int key)
{
	switch (key) {
	case PROFILE_SELF:
		return r->s.self;
	case PROFILE_CALLS:
		return r->s.calls;
	case PROFILE_AVG:
		return finer_average(&r->s);
	case PROFILE_MIN:
		return profile_minimum(&r->s);
	case PROFILE_MAX:
		return profile_maximum(&r->s);
	case PROFILE_KEY_P50:
	case PROFILE_KEY_P90:
	case PROFILE_KEY_P99:
		return r->percentile[key - PROFILE_KEY_P50];
	case PROFILE_ON_CPU:
		return profile_on_cpu_total(r);
	case PROFILE_SELF_ON_CPU:
		return profile_on_cpu_self(r);
	default:
		return r->s.total;
	}
}
