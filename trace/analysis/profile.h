/* SPDX-License-Identifier: MIT */
/*
 * profile.h - adds up the calls of a trace by function, and by thread, process or CPU within
 * it, for the reports that show such sums.  Times are TSC ticks; profile.c says how.
 *
 * Virtual time is what a call would have taken without the probes inside it.  A probe costs
 * some of its time before it reads the clock and the rest after it, so a call with n samples
 * between its entry and its exit holds n whole probes, the end of its entry's and the
 * beginning of its exit's: n + 1.
 */
#ifndef TRACE_PROFILE_H
#define TRACE_PROFILE_H

#include "base/vec.h"
#include "trace/analysis/loghist.h"
#include "trace/analysis/offcpu.h"
#include "trace/analysis/pairs.h"
#include "trace/analysis/slack.h"
#include "trace/reader.h"

/* What rows are sorted by: the words of `kron report -s`, in this order. */
#define PROFILE_KEYS "total|self|calls|avg|min|max|name|module|p50|p90|p99|on-cpu|self-on-cpu"
enum profile_key {
	PROFILE_TOTAL,
	PROFILE_SELF,
	PROFILE_CALLS,
	PROFILE_AVG,
	PROFILE_MIN,
	PROFILE_MAX,
	PROFILE_NAME,
	PROFILE_MODULE,
	PROFILE_KEY_P50,
	PROFILE_KEY_P90,
	PROFILE_KEY_P99,
	PROFILE_ON_CPU,
	PROFILE_SELF_ON_CPU
};
enum profile_by {
	PROFILE_BY_FUNCTION,
	PROFILE_BY_THREAD,
	PROFILE_BY_PROCESS,
	PROFILE_BY_CPU,
	PROFILE_BY_GROUP
};

/* Percentiles that reports show, in this order. */
enum { PROFILE_P50, PROFILE_P90, PROFILE_P99, PROFILE_NPERCENTILES };

/*
 * The least of lengths.  A call that still ran when nothing more was seen of it lasted longer than is
 * known: its length counts only where there is no other.
 */
struct profile_least {
	uint64_t inverse; /* UINT64_MAX - least: zero is the right start */
	bool is_open;     /* of calls that still ran */
};

static inline void profile_least_add(struct profile_least *l, uint64_t length, bool is_open)
{
	if (__builtin_expect(is_open != l->is_open, 0)) {
		if (is_open && l->inverse)
			return;
		*l = (struct profile_least){.is_open = is_open};
	}
	if (~length > l->inverse)
		l->inverse = ~length;
}

struct profile_more {                 /* of virtual and processor times, if they are wanted */
	uint64_t total_off, self_off; /* ticks off a processor within total and self */
	struct loghist lengths;
	uint64_t total_probes, self_probes, sum_probes; /* within total, self and sum */
	uint64_t virtual_max;
	struct profile_least virtual_least;
	/* NULL: each sample has read the clock */
	struct slack *on_cpu;        /* of the times on a processor */
	struct slack *virtual_slack; /* of the virtual lengths */
};

__extension__ typedef unsigned __int128 profile_square;

struct profile_stat {
	uint64_t calls, inferred;
	uint64_t at_least; /* of inferred: pair_call.at_least */
	uint64_t total, self;
	uint64_t measured, sum, max; /* measured: those that sum, least and max are of */
	struct profile_least least;  /* likewise */
	profile_square squares;      /* sum of */
	struct loghist lengths;      /* of the measured calls, if wanted */
	struct profile_more *more;
	struct slack *slack; /* NULL: each sample has read the clock */
	bool rough;          /* all calls that it has measured span a loss: it had no others */
};

struct profile_row {
	uint32_t function;
	uint32_t group; /* lane (also for a process: its last one), CPU, filter level, or 0 */
	struct profile_stat s;
	uint64_t percentile[PROFILE_NPERCENTILES];
	struct trace_bounds percentile_in[PROFILE_NPERCENTILES]; /* where s.slack->has_calls */
	uint64_t virtual_percentile[PROFILE_NPERCENTILES];
	struct trace_bounds virtual_percentile_in[PROFILE_NPERCENTILES]; /* likewise */
};

/* What the whole trace says. */
struct profile_totals {
	struct pair_counts calls;
	uint64_t samples;           /* entries and exits */
	uint64_t lost, loss_places; /* LOST records */
	uint64_t migrations;        /* a thread's next sample is on another CPU */
	uint64_t moved;             /* --by-cpu: calls that ended on another CPU */
	uint64_t thread_ticks;      /* from each thread's first sample to its last */
	uint64_t off_ticks;         /* of these, off a processor, if wanted */
};

struct profile_want {
	enum profile_by by;
	bool percentiles, virtual, histograms;
	const struct offcpu *offcpu; /* NULL: time off a processor is not wanted */
};

struct profile {
	const struct trace *t;
	VEC(struct profile_row) rows; /* groups in order, functions in none */
	VEC(uint32_t) left_by;        /* jumps of calls that are at_least, each once */
	struct profile_totals totals;
	double probe_ticks; /* what a probe costs; 0: not known */
	double probe_error; /* how far that may be off */
};

void profile_gather(struct profile *p, const struct trace *t, const struct profile_want *want);
void profile_free(struct profile *p);

/* Minimum and maximum of all calls.  Where all of them span losses, what they took on average is all there is. */
uint64_t profile_minimum(const struct profile_stat *s);
uint64_t profile_maximum(const struct profile_stat *s);
/* The average in ns: of the sum in ns, for a whole number of ticks is too rough for short calls. */
uint64_t profile_average_ns(const struct trace *t, const struct profile_stat *s);
/* Between which it is, in ns. */
struct trace_bounds profile_average_in(const struct trace *t, const struct profile_stat *s);

/* What a row is sorted by: enum profile_key, not a name or a module; other keys give the total. */
uint64_t profile_value(const struct profile_row *r, int key);

/* ticks without the cost of this many probes, not below zero */
uint64_t profile_without(const struct profile *p, uint64_t ticks, uint64_t probes);
/* virtual total, self and so on of a row that has more */
struct profile_virtual {
	uint64_t total, self, minimum, maximum;
	uint64_t average_ns;
	uint64_t total_error, self_error; /* either may be off by this */
	struct trace_bounds average_in;   /* ns */
};
struct profile_virtual profile_virtual_of(const struct profile *p, const struct profile_row *r);

/* Ticks on a processor of a row that has more: total and self. */
uint64_t profile_on_cpu_total(const struct profile_row *r);
uint64_t profile_on_cpu_self(const struct profile_row *r);

/* What a probe costs by the session, 0 if it does not say, and how far that may be off. */
void profile_know_probe(const struct trace *t, double *ticks, double *error);
/* Whether virtual times can be told: 0, or -ENODATA and why not. */
int profile_check_virtual(const struct trace *t, struct err *err);
/* A positive number from the session, or 0 when it is missing or makes no sense. */
double profile_session_real(const struct trace *t, const char *key);

#endif
