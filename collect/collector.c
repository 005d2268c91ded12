/* SPDX-License-Identifier: MIT */
/*
 * collector.c - see collector.h.
 *
 * The order at the end matters: gates closed, so that nothing new comes; server stopped, so
 * that nobody waits for us; drain stopped; then one last round over every chunk.
 */
#define _GNU_SOURCE
#include "collect/collector.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/vec.h"
#include "collect/session.h"

static int open_parts(struct collector *c, struct err *err)
{
	struct segment_options so = {
		.buffer = c->opt.buffer,
		.when_full = c->opt.when_full,
		.filter = c->opt.filter,
		.keep_filter = c->opt.keep_filter,
		.constant_time = c->opt.constant_time,
		.board = c->opt.board,
		.dir = c->opt.dir,
		.start = c->start,
	};
	int code = segment_create(&c->seg, &so, err);

	if (code)
		return code;
	tasks_init(&c->tasks, &c->seg, &c->journal);
	modules_init(&c->modules, &c->opt.selection, &c->journal);
	answerer_init(&c->answerer, &c->modules, &c->opt.selection, c->seg.ctl->session,
		      c->opt.level);
	c->server = (struct server){
		.seg = &c->seg,
		.journal = &c->journal,
		.tasks = &c->tasks,
		.answerer = &c->answerer,
		.no_children = c->opt.no_children,
		.thunk = c->opt.constant_time ? KRON_THUNK_LANE_CONSTANT : KRON_THUNK_LANE,
		.device_fd = -1,
		.fd = -1,
		.wake_fd = -1,
	};
	drain_init(&c->drain, &c->seg, &c->journal, &c->tasks);
	c->drain.start = c->start;
	return 0;
}

static int start_parts(struct collector *c, struct err *err)
{
	int code = server_start(&c->server, err);

	if (!code)
		code = drain_start(&c->drain, err);
	if (!code)
		code = grow_start(&c->grow, &c->seg, err);
	return code;
}

int collector_open(struct collector *c, const struct collector_options *opt, struct err *err)
{
	struct trace_writer *w;
	int code;

	memset(c, 0, sizeof(*c));
	c->opt = *opt;
	mallopt(M_ARENA_MAX, 1); /* our threads are short-lived, an arena costs 0.1 ms each */
	time_point_take(&c->start);
	code = trace_writer_create(&w, opt->dir, err);
	if (code)
		return code;
	journal_init(&c->journal, w);
	code = open_parts(c, err);
	if (code) {
		trace_writer_close(w);
		return code;
	}
	segment_set_sampling(&c->seg, true); /* before anybody else may write the gates */
	session_write_start(&c->journal, &c->seg, &c->opt, &c->start);
	code = journal_flush(&c->journal);
	if (code)
		code = err_set(err, -code, "cannot write to %s: %s", opt->dir, strerror(-code));
	else
		code = start_parts(c, err);
	if (code) {
		collector_abandon(c, err->msg);
		return code;
	}
	return 0;
}

void collector_abandon(struct collector *c, const char *why)
{
	c->all_ended = server_stop(&c->server);
	grow_stop(&c->grow);
	drain_stop(&c->drain);
	journal_session(&c->journal, "error", "%s", why);
	trace_writer_close(c->journal.w);
	segment_unlink(&c->seg);
	collector_free(c);
}

char *collector_environment(const struct collector *c, const char *runtime_path)
{
	char token[2 * sizeof(c->server.session) + 1];

	for (size_t i = 0; i < sizeof(c->server.session); i++)
		sprintf(token + 2 * i, "%02x", c->server.session[i]);
	return xasprintf("%s,%s,%s", c->server.name, token, runtime_path);
}

/* ---- the end ---- */

static void close_board(struct collector *c)
{
	segment_set_sampling(&c->seg, false);
	__atomic_store_n(&c->seg.ctl->closing, 1, __ATOMIC_RELEASE);
	segment_wake_waiters(&c->seg);
}

/* Processes that go on may be between a gate and the store behind it. */
static void let_stores_finish(struct collector *c)
{
	struct timespec ts = {.tv_nsec = 2000000};
	struct task_totals t;

	tasks_look(&c->tasks, true, true);
	tasks_totals(&c->tasks, &t);
	if (t.living)
		nanosleep(&ts, NULL);
}

static void sum_up(struct collector *c, struct collector_summary *out)
{
	struct task_totals tasks;
	struct modules_totals modules;

	tasks_totals(&c->tasks, &tasks);
	modules_get_totals(&c->modules, &modules);
	out->samples = c->drain.totals.samples;
	out->cut_off = c->drain.totals.cut_off;
	out->stranded = c->drain.totals.stranded;
	out->lost = tasks.lost;
	out->processes = tasks.processes;
	out->threads = tasks.threads;
	out->living = tasks.living;
	out->probes = modules.probes;
	out->refused = modules.refused;
	out->modules = modules.modules;
	out->starts = c->server.starts;
}

static void write_end(struct collector *c, const char *how, struct collector_summary *out)
{
	struct time_point end;
	double hz;

	time_point_take(&end);
	hz = tsc_hz(&c->start, &end);
	out->seconds = (double)(end.mono_ns - c->start.mono_ns) / 1e9;
	if (c->opt.measure)
		c->opt.measure(&out->cost, hz);
	if (journal_error(&c->journal))
		return; /* `kron recover` writes the end */
	session_write_end(&c->journal, how, &end, hz, out, c->opt.when_full);
}

void collector_finish(struct collector *c, const char *how, struct collector_summary *out)
{
	int code;

	memset(out, 0, sizeof(*out));
	close_board(c);
	grow_ask_to_stop(&c->grow);
	drain_ask_to_stop(&c->drain);
	c->all_ended = server_stop(&c->server);
	grow_stop(&c->grow);
	drain_stop(&c->drain);
	let_stores_finish(c);
	drain_all(&c->drain);
	sum_up(c, out);
	write_end(c, how, out);
	code = journal_error(&c->journal);
	if (code)
		trace_writer_close(c->journal.w);
	else
		code = trace_writer_close(c->journal.w);
	if (code) {
		err_set(&out->error, -code, "the trace could not be written: %s", strerror(-code));
		snprintf(out->segment, sizeof(out->segment), "%s", c->seg.name);
	} else {
		segment_unlink(&c->seg);
	}
}

void collector_free(struct collector *c)
{
	if (!c->all_ended) /* a thread still plans with what is here; the process ends soon */
		return;
	server_free(&c->server);
	answerer_free(&c->answerer);
	modules_free(&c->modules);
	tasks_free(&c->tasks);
	segment_close(&c->seg);
}
