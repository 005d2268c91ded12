/* SPDX-License-Identifier: MIT */
/*
 * reader.c - opens a trace directory: session, tables, chunk index, clock.
 *
 * Everything in the directory may be garbage.  Only a missing or foreign session makes it no
 * trace; the rest is taken as far as it makes sense.
 */
#define _GNU_SOURCE
#include "trace/reader.h"
#include "base/search.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/pages.h"
#include "trace/reader_impl.h"

const char *trace_session(const struct trace *t, const char *key)
{
	struct trace_priv *p = priv_of(t);

	vec_for(&p->session, e)
		if (!strcmp(e->key, key))
			return e->value;
	return NULL;
}

bool trace_session_is(const struct trace *t, const char *key, const char *value)
{
	const char *s = trace_session(t, key);

	return s && !strcmp(s, value);
}

static bool session_u64(const struct trace *t, const char *key, uint64_t *out)
{
	const char *s = trace_session(t, key);
	char *end;

	if (!s || *s < '0' || *s > '9')
		return false;
	errno = 0;
	*out = strtoull(s, &end, 10);
	return !errno && !*end;
}

uint64_t trace_session_number(const struct trace *t, const char *key, uint64_t fallback)
{
	uint64_t number;

	return session_u64(t, key, &number) ? number : fallback;
}

static unsigned clock_every(const struct trace *t)
{
	uint64_t n = trace_session_number(t, "clock_every", 1);

	return n > 1 && n <= UINT16_MAX ? (unsigned)n : 1;
}

unsigned trace_node_clock_every(const struct trace *t, uint32_t node)
{
	const struct trace_priv *p = priv_of(t);

	return clock_every(p->joined ? p->joined[node].t : t);
}

unsigned trace_clock_every(const struct trace *t)
{
	const struct trace_priv *p = priv_of(t);
	unsigned most = clock_every(t);

	for (size_t i = 0; i < p->njoined; i++)
		most = clock_every(p->joined[i].t) > most ? clock_every(p->joined[i].t) : most;
	return most;
}

/* ---- clock ---- */

#define HZ_MIN 1e6
#define HZ_MAX 1e11

/*
 * ns = ticks x num / den, as one multiplication: mult = num << shift / den with shift as large
 * as mult < 2^64 allows.  A clock of 1 GHz or more gets shift 64, so 2^56 ticks are wrong by
 * less than 2^-8 ns.
 */
static void set_ratio(struct trace_priv *p, uint64_t num, uint64_t den)
{
	unsigned shift = 64;

	while (shift > 40 && ((unsigned __int128)num << shift) / den > UINT64_MAX)
		shift--;
	p->ns_mult = (uint64_t)(((unsigned __int128)num << shift) / den);
	p->ns_shift = shift;
}

static bool is_plausible(double hz)
{
	return hz >= HZ_MIN && hz <= HZ_MAX;
}

static void calibrate(struct trace *t)
{
	struct trace_priv *p = priv_of(t);
	uint64_t tsc0 = 0, ns0 = 0, tsc1, ns1;
	const char *hz = trace_session(t, "tsc_hz");
	bool has_tsc = session_u64(t, "start_tsc", &tsc0);
	bool start = session_u64(t, "start_mono_ns", &ns0) && has_tsc;

	t->start_tsc = tsc0;
	t->tsc_hz = hz ? strtod(hz, NULL) : 0;
	if (start && session_u64(t, "end_tsc", &tsc1) && session_u64(t, "end_mono_ns", &ns1) &&
	    tsc1 > tsc0 && ns1 > ns0 && ns1 - ns0 < (uint64_t)1 << 62) {
		double measured = (double)(tsc1 - tsc0) * 1e9 / (double)(ns1 - ns0);

		if (is_plausible(measured)) {
			t->complete = true;
			t->end_tsc = tsc1;
			/* Over a few microseconds the estimate at start is the better one. */
			if (ns1 - ns0 >= 1000000 || !is_plausible(t->tsc_hz)) {
				t->tsc_hz = measured;
				set_ratio(p, ns1 - ns0, tsc1 - tsc0);
				return;
			}
		}
	}
	if (!is_plausible(t->tsc_hz)) {
		t->damaged++;
		t->tsc_hz = 1e9;
	}
	set_ratio(p, 1000000000ull << 16, (uint64_t)(t->tsc_hz * 65536));
}

uint64_t trace_ns(const struct trace *t, uint64_t ticks)
{
	const struct trace_priv *p = priv_of(t);

	return (uint64_t)((unsigned __int128)ticks * p->ns_mult >> p->ns_shift);
}

uint64_t trace_time(const struct trace *t, uint64_t tsc)
{
	return (int64_t)(tsc - t->start_tsc) > 0 ? trace_ns(t, tsc - t->start_tsc) : 0;
}

/* ---- look-up ---- */

const struct trace_function *trace_function_of(const struct trace *t, uint32_t event)
{
	const struct trace_priv *p = priv_of(t);
	uint32_t n = event / 2;
	size_t lo;

	if (event >= KRON_EVENT_SPECIAL)
		return NULL;
	if (p->function_at) {
		if (n >= p->function_limit || !p->function_at[n])
			return NULL;
		return &t->functions[p->function_at[n] - 1];
	}
	lo = partition_point(i, t->nfunctions, t->functions[i].n < n);
	return lo < t->nfunctions && t->functions[lo].n == n ? &t->functions[lo] : NULL;
}

const struct trace_user_event *trace_user_event_of(const struct trace *t, uint32_t event)
{
	size_t lo;

	if (event >= KRON_EVENT_SPECIAL || event & 1)
		return NULL;
	lo = partition_point(i, t->nuser_events, t->user_events[i].n < event / 2);
	return lo < t->nuser_events && t->user_events[lo].n == event / 2 ? &t->user_events[lo]
									 : NULL;
}

uint32_t trace_function_limit(const struct trace *t)
{
	uint32_t last = t->nfunctions ? t->functions[t->nfunctions - 1].n : 0;

	return t->nfunctions && last >> 24 <= t->nfunctions >> 21 ? last + 1 : 0;
}

/* ---- of a part ---- */

uint64_t trace_part_at(const struct trace *t, uint32_t node, uint64_t ns)
{
	const struct trace *part = trace_part(t, node);
	const double ticks = (double)ns * part->tsc_hz / 1e9;

	return trace_part_time(t, node, part->start_tsc + (uint64_t)(ticks < 9e18 ? ticks : 9e18));
}

uint32_t trace_part_process(const struct trace *t, uint32_t node, uint32_t uid)
{
	const struct trace *part = trace_part(t, node);
	const struct trace_proc *p = trace_proc_of(part, uid);

	if (!p || !trace_nodes(t))
		return p ? uid : 0;
	for (size_t i = 0; i < t->nprocs; i++)
		if (t->procs[i].node == node)
			return t->procs[i].uid + (uint32_t)(p - part->procs);
	return 0;
}

const struct trace_function *trace_part_function(const struct trace *t, uint32_t node, uint32_t n)
{
	const struct trace *part = trace_part(t, node);
	const struct trace_function *f =
		n < KRON_EVENT_SPECIAL / 2 ? trace_function_of(part, KRON_EVENT_ENTRY(n)) : NULL;

	if (!f || !trace_nodes(t))
		return f;
	return trace_function_of(
		t, KRON_EVENT_ENTRY(priv_of(t)->joined[node].functions[f - part->functions]));
}

const struct trace_proc *trace_proc_of(const struct trace *t, uint32_t uid)
{
	size_t lo = partition_point(i, t->nprocs, t->procs[i].uid < uid);

	return lo < t->nprocs && t->procs[lo].uid == uid ? &t->procs[lo] : NULL;
}

/* ---- open and close ---- */

static int check_version(const struct trace *t, struct err *err)
{
	const char *version = trace_session(t, "version");

	if (!version)
		return err_set(err, EINVAL,
			       "%s is not a trace directory: its session says no version", t->dir);
	if (strcmp(version, "1") && strcmp(version, "3") && strcmp(version, "4") &&
	    strcmp(version, "5") && strcmp(version, "6"))
		return err_set(err, EINVAL,
			       "%s is a trace of format %.20s; this kron reads format %d", t->dir,
			       version, TRACE_VERSION);
	return 0;
}

static void sum_losses(struct trace *t)
{
	uint64_t lost = 0, cut_off = 0, total;

	for (size_t i = 0; i < t->nprocs; i++) {
		lost += t->procs[i].lost;
		cut_off += t->procs[i].cut_off;
	}
	t->lost = session_u64(t, "lost", &total) ? total : lost;
	if (session_u64(t, "cut_off", &total))
		t->cut_off = total;
	else if (t->cut_off < cut_off)
		t->cut_off = cut_off;
}

/* A copy that was not finished, say. */
static bool is_cut_short(const struct trace *t)
{
	const struct trace_priv *p = priv_of(t);

	return t->complete &&
	       (p->map.torn || (!p->chunks.n && trace_session_number(t, "samples", 0)));
}

int trace_open(struct trace **out, const char *dir, struct err *err)
{
	struct trace *t;
	int dirfd, ret;

	*out = NULL;
	dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0 && errno == ENOENT)
		return err_set(err, ENOENT, "there is no trace directory %s", dir);
	if (dirfd < 0 && errno == ENOTDIR)
		return err_set(err, ENOTDIR, "%s is not a directory; a trace is one", dir);
	if (dirfd < 0)
		return err_set(err, errno, "cannot open %s: %s", dir, strerror(errno));
	t = xcalloc(1, sizeof(*t));
	t->priv = xcalloc(1, sizeof(struct trace_priv));
	t->dir = xstrdup(dir);
	ret = tables_read_session(t, dirfd, err);
	if (!ret)
		ret = check_version(t, err);
	if (!ret)
		ret = lanes_read(t, dirfd, err);
	if (!ret) {
		calibrate(t);
		t->cut_short = is_cut_short(t);
		tables_read(t, dirfd);
		sum_losses(t);
		t->pages_damaged = trace_pages_are_damaged(dirfd);
		*out = t;
	} else {
		trace_close(t);
	}
	close(dirfd);
	return ret;
}

void trace_close(struct trace *t)
{
	struct trace_priv *p;

	if (!t)
		return;
	p = priv_of(t);
	if (t->filter)
		t->filter->free(t->filter);
	join_free(t);
	tables_free(t);
	chunk_map_close(&p->map);
	vec_free(&p->chunks);
	xfree(p->lane_first);
	xfree(p);
	xfree(t->lanes);
	xfree(t->dir);
	xfree(t);
}

void trace_set_progress(struct trace *t, trace_progress_fn fn)
{
	struct trace_priv *p = priv_of(t);

	p->progress = fn;
	p->pass = 0;
	vec_for(&p->chunks, c)
		p->pass += c->nbytes;
}
