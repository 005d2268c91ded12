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
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "base/vec.h"
#include "board/bus/lanes.h"
#include "collect/counts.h"
#include "collect/pages/pages.h"
#include "collect/kernel/newcomers.h"
#include "collect/kernel/process_maps.h"
#include "collect/limits.h"
#include "collect/session.h"
#include "collect/switches.h"

static enum kron_thunk thunk_of(const struct collector_options *o)
{
	if (o->bus == KRON_BUS_EXACT)
		return KRON_THUNK_EXACT;
	if (o->bus == KRON_BUS_HARDWARE)
		return KRON_THUNK_HARDWARE;
	if (o->clock_every > 1)
		return KRON_THUNK_LANE_SPARSE;
	return o->constant_time ? KRON_THUNK_LANE_CONSTANT : KRON_THUNK_LANE;
}

/* What the segment has no pages of when there are only lanes. */
static int get_source_table(struct segment *seg, struct err *err)
{
	int code = object_get_pages(seg->fd, KRON_SOURCES_OFFSET,
				    KRON_SOURCES_MAX * sizeof(struct kron_source));

	return code ? err_set(err, -code, "no room for the board's tables: %s", strerror(-code))
		    : 0;
}

/* The counters that the user's probes count with. */
static uint16_t counters_of(const struct probe_set *set)
{
	uint16_t counters = 0;

	for (size_t i = 0; set && i < set->specs.n; i++)
		if (set->specs.v[i].kind == SPEC_COUNT && !probe_spec_is_virtual(&set->specs.v[i]))
			counters |= (uint16_t)(1u << set->specs.v[i].word);
	return counters;
}

enum { NO_PAGES = -1, SEVERAL = -2 };

/* How pages are counted: enum spec_pages, or-ed; SEVERAL: some are counted one way, and some another. */
static int way_counted(const struct probe_set *set)
{
	int way = NO_PAGES;

	for (size_t i = 0; set && i < set->specs.n; i++) {
		const struct probe_spec *s = &set->specs.v[i];

		if (s->kind == SPEC_PAGES)
			way = way != NO_PAGES && way != s->word ? SEVERAL : s->word;
	}
	return way;
}

static struct bus *bus_of(struct collector *c)
{
	return c->opt.bus == KRON_BUS_HARDWARE ? &c->hardware.bus : &c->fetch.bus;
}

static int open_bus(struct collector *c, struct err *err)
{
	const struct board_setup setup = {.when_full = c->opt.when_full, .filter = c->opt.filter};
	const int way = way_counted(c->opt.selection.probes);
	int code;

	c->clock_start = c->start;
	if (c->opt.bus == KRON_BUS_LANE) {
		counts_start(&c->seg);
		if (way == NO_PAGES)
			return 0;
		if (way == SEVERAL)
			return err_set(
				err, EINVAL,
				"pages and lines, by function or not, cannot be counted in one "
				"recording");
		c->opt.pages.unit = way & SPEC_PAGES_LINES ? TRACE_LINE_SIZE : TRACE_PAGE_SIZE;
		c->opt.pages.start_ns = c->start.mono_ns;
		code = pages_open(&c->drain.pages, &c->opt.pages, c->seg.window.base, c->seg.fd,
				  err);
		c->server.pages = c->drain.pages;
		return code;
	}
	if (way != NO_PAGES)
		return err_set(err, EINVAL, "pages are counted on the lane bus only");
	code = probe_set_check_board(c->opt.selection.probes, err);
	if (!code)
		code = get_source_table(&c->seg, err);
	if (code)
		return code;
	if (c->opt.bus == KRON_BUS_EXACT) {
		fetch_start(&c->fetch, &c->drain, &setup);
		counts_set_up(bus_of(c), counters_of(c->opt.selection.probes));
		board_time_point(&c->seg.window.board, &c->clock_start);
		return 0;
	}
	code = hardware_board_open(&c->hardware, c->opt.hardware, &c->seg, &setup, err);
	if (code)
		return code;
	counts_set_up(bus_of(c), counters_of(c->opt.selection.probes));
	c->server.hardware_fd = c->hardware.bus.fd;
	fetch_start_hardware(&c->fetch, &c->drain);
	return 0;
}

static uint64_t let_go(const void *watch)
{
	return watch_outside(watch);
}

/* --snapshot-on, --worst */
static void look_for_moments(struct collector *c)
{
	struct watch_options wo = {.label = "--snapshot-on",
				   .trigger = c->opt.flight.on,
				   .fired = flight_fired,
				   .fired_ctx = c->flight};
	struct flight_looks looks = {.gone = let_go,
				     .lets_go_before = watch_lets_go_before,
				     .set_limit = watch_set_limit};

	if (c->opt.flight.worst) {
		c->worst_trigger = flight_worst_trigger(&c->opt.flight);
		wo.label = "--worst";
		wo.trigger = c->worst_trigger;
		wo.at_end = true;
	}
	c->watch = watch_open(&wo, &c->drain);
	looks.sink = watch_sink(c->watch);
	looks.ctx = c->watch;
	flight_look_with(c->flight, &looks);
}

static int open_parts(struct collector *c, struct err *err)
{
	struct segment_options so = {
		.buffer = c->opt.buffer,
		.ages = c->opt.flight.ns,
		.watched = c->opt.watch.trigger != NULL,
		.when_full = c->opt.when_full,
		.filter = c->opt.filter,
		.keep_filter = c->opt.keep_filter,
		.node = c->opt.node,
		.bus = c->opt.bus,
		.constant_time = c->opt.constant_time,
		.clock_every = c->opt.clock_every,
		.board = c->opt.board,
		.dir = c->opt.dir,
		.is_scratch = c->opt.is_scratch,
		.kron = c->opt.kron,
		.start = c->start,
	};
	int code = segment_create(&c->seg, &so, err);

	if (code)
		return code;
	tasks_init(&c->tasks, &c->seg, &c->journal);
	modules_init(&c->modules, &c->opt.selection, &c->journal);
	answerer_init(&c->answerer, &c->modules, &c->opt.selection, c->seg.ctl->session);
	c->server = (struct server){
		.seg = &c->seg,
		.journal = &c->journal,
		.tasks = &c->tasks,
		.answerer = &c->answerer,
		.no_children = c->opt.no_children,
		.on_first = c->opt.on_first,
		.on_first_ctx = c->opt.on_first_ctx,
		.on_exec = c->opt.on_exec,
		.on_exec_ctx = c->opt.on_exec_ctx,
		.thunk = thunk_of(&c->opt),
		.hardware_fd = -1,
		.fd = -1,
		.wake_fd = -1,
		.epoll_fd = -1,
	};
	drain_init(&c->drain, &c->seg, &c->journal, &c->tasks);
	code = open_bus(c, err);
	if (!code && c->opt.watch.trigger) {
		c->watch = watch_open(&c->opt.watch, &c->drain);
		c->drain.sink = watch_sink(c->watch);
	}
	if (!code && c->opt.budget) {
		c->meter = meter_open(&c->drain, c->drain.sink);
		c->drain.sink = meter_sink(c->meter);
	}
	if (!code && c->opt.flight.text) {
		c->opt.flight.measure = c->opt.measure;
		c->opt.flight.clock_every = c->opt.clock_every;
		c->flight = flight_open(&c->opt.flight, &c->drain, c->opt.dir, &c->start);
		c->drain.sink = flight_sink(c->flight);
		if (c->opt.flight.on || c->opt.flight.worst)
			look_for_moments(c);
	}
	c->drain.start = c->clock_start;
	return code;
}

static int start_parts(struct collector *c, struct err *err)
{
	int code = server_start(&c->server, err);

	if (!code)
		code = drain_start(&c->drain, err);
	if (!code && c->flight)
		code = flight_watch_signal(c->flight, err);
	if (!code && c->opt.bus == KRON_BUS_LANE)
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
	limits_set_stacks();
	code = limits_check(opt->buffer, err);
	if (code)
		return code;
	time_point_take(&c->start);
	code = trace_writer_create(&w, opt->dir, err);
	if (code)
		return code;
	trace_writer_set_gate(w, opt->gate, opt->gate_ctx);
	journal_init(&c->journal, w);
	c->journal.unread = opt->selection.calls; /* they are counted in the segment */
	code = open_parts(c, err);
	if (code) {
		hardware_board_close(&c->hardware);
		segment_unlink(&c->seg);
		segment_close(&c->seg);
		trace_writer_undo(w);
		return code;
	}
	if (c->hardware.open)
		board_setup_sampling(&c->hardware.bus, true);
	segment_set_sampling(&c->seg, true); /* before anybody else may write the gates */
	session_write_start(&c->journal, &c->seg, &c->opt, &c->clock_start);
	code = journal_flush(&c->journal);
	if (code)
		code = err_set(err, -code, "cannot write to %s: %s", opt->dir, strerror(-code));
	else
		code = start_parts(c, err);
	if (code) {
		collector_abandon(c);
		return code;
	}
	return 0;
}

static void end_hardware(struct collector *c, struct collector_summary *out)
{
	struct hardware_end end;

	if (!c->hardware.open)
		return;
	hardware_board_end(&c->hardware, &end);
	if (!out)
		return;
	out->hardware = end;
	out->hardware_answers = c->hardware.answers;
	out->waited = end.waited;
}

/* ---- context switches ---- */

/* An event costs some 25 us at the start, and a microsecond in each fork. */
#define SWITCHES_AUTO_CPUS 32

static void clock_of_samples(void *ctx, struct time_point *t)
{
	struct collector *c = ctx;

	if (c->opt.bus == KRON_BUS_EXACT)
		board_time_point(&c->seg.window.board, t);
	else
		time_point_take(t);
}

uint64_t collector_now(struct collector *c)
{
	struct time_point t;

	clock_of_samples(c, &t);
	return t.tsc;
}

static void note_exit(void *ctx, pid_t pid, pid_t tid, uint64_t ticks)
{
	tasks_note_exit(ctx, pid, tid, ticks);
}

static void note_unwanted(struct collector *c)
{
	journal_session(&c->journal, "switches",
			c->flight ? "not in a flight recorder" : "not wanted (--switches no)");
}

static int open_switches(struct collector *c, enum collector_switches want, struct switches **s,
			 struct err *err)
{
	const long cpus = sysconf(_SC_NPROCESSORS_CONF);

	if (want == SWITCHES_AUTO && cpus > SWITCHES_AUTO_CPUS)
		return err_set(err, E2BIG,
			       "each process would carry an event for each of the %ld CPUs; "
			       "--switches yes does so",
			       cpus);
	return switches_open(s, clock_of_samples, c, err);
}

int collector_watch_switches(struct collector *c, enum collector_switches want, struct err *err)
{
	struct switches *s = NULL;
	int code;

	if (want == SWITCHES_NO) {
		note_unwanted(c);
		return 0;
	}
	code = open_switches(c, want, &s, err);
	journal_session(&c->journal, "switches", "%s", code ? err->msg : "yes");
	if (!code) {
		tasks_expect_exits(&c->tasks);
		switches_on_exit(s, note_exit, &c->tasks);
	}
	/* Release: partner: drain_switches() */
	__atomic_store_n(&c->drain.switches, s, __ATOMIC_RELEASE);
	return want == SWITCHES_YES ? code : 0;
}

int collector_watch_running(struct collector *c, enum collector_switches want,
			    struct switches **out, struct err *err)
{
	int code = 0;

	*out = NULL;
	if (want == SWITCHES_NO)
		note_unwanted(c);
	else if (want == SWITCHES_AUTO && c->opt.clock_every <= 1)
		journal_session(&c->journal, "switches",
				"those of a process that ran already are not recorded without "
				"--switches yes");
	else
		code = open_switches(c, want, out, err);
	if (code)
		journal_session(&c->journal, "switches", "%s", err->msg);
	/* Release: partner: drain_switches() */
	__atomic_store_n(&c->drain.switches, *out, __ATOMIC_RELEASE);
	return want == SWITCHES_YES ? code : 0;
}

void collector_note_running(struct collector *c, const char *why_not)
{
	if (c->drain.switches)
		journal_session(&c->journal, "switches", "%s", why_not ? why_not : "yes");
}

void collector_program_starts(struct collector *c)
{
	segment_settle_clock(&c->seg);
}

static void end_switches(struct collector *c)
{
	struct switches_count n;

	if (!c->drain.switches)
		return;
	switches_count(c->drain.switches, &n);
	if (n.lost)
		journal_session(&c->journal, "switches_lost", "%" PRIu64, n.lost);
	switches_close(c->drain.switches);
	c->drain.switches = NULL;
}

void collector_abandon(struct collector *c)
{
	c->all_ended = server_stop(&c->server);
	grow_stop(&c->grow);
	flight_stop(c->flight);
	drain_stop(&c->drain);
	end_switches(c);
	trace_writer_undo(c->journal.w);
	end_hardware(c, NULL);
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
	drain_notice_gates(&c->drain, true);
	segment_set_sampling(&c->seg, false);
	__atomic_store_n(&c->seg.ctl->closing, 1, __ATOMIC_RELEASE);
	segment_wake_waiters(&c->seg);
}

/* Processes that go on may be between a gate and the store after it. */
static bool let_stores_finish(struct collector *c)
{
	struct timespec ts = {.tv_nsec = 2000000};
	struct task_totals t;

	tasks_look(&c->tasks, true, true);
	tasks_totals(&c->tasks, &t);
	if (t.living)
		nanosleep(&ts, NULL);
	return !t.living;
}

/* ---- processes that nobody has heard of ---- */

struct unheard {
	struct collector *c;
	uint64_t dev, ino; /* of the segment */
	uint64_t n;
};

/* Who has a part in a recording has its segment and code of kron's; kron itself, and others who look at a
 * board, have the first alone. */
static bool has_part(const struct unheard *u, const struct process_maps *maps)
{
	bool segment = false, code = false;

	for (size_t i = 0; i < maps->n; i++) {
		const struct process_mapping *m = &maps->v[i];
		uint64_t number;

		segment = segment || (m->ino == u->ino && m->dev == u->dev);
		code = code || process_mapping_is_block(m, u->c->answerer.session, &number) ||
		       !strcmp(str_base_name(m->path), "libkron-rt.so");
	}
	return segment && code;
}

static void list_unheard(struct unheard *u, pid_t pid)
{
	char *exe = process_exe(pid), *cmdline = process_cmdline(pid);
	const struct trace_proc_line line = {
		.uid = tasks_new_uid(&u->c->tasks),
		.pid = pid,
		.by_fork = true,
		.start_tsc = board_clock_ticks(u->c->tasks.clock, clock_tsc()),
		.note = "",
		.exe = exe ? exe : "",
		.cmdline = cmdline,
	};

	journal_put(&u->c->journal, trace_writer_proc, &line);
	u->n++;
	xfree(exe);
	xfree(cmdline);
}

static void look_for_part(void *ctx, pid_t pid)
{
	struct process_maps maps;
	struct unheard *u = ctx;
	struct err err;

	if (tasks_has_process(&u->c->tasks, pid) || process_maps_read(&maps, pid, &err))
		return;
	if (has_part(u, &maps))
		list_unheard(u, pid);
	process_maps_free(&maps);
}

/*
 * A forked process says that it is there with its first probe.  One that has passed none yet, as the program
 * ends, goes on untraced like others: its segment tells.  It is listed from now on, with no samples.
 */
static uint64_t list_unheard_processes(struct collector *c)
{
	struct unheard u = {.c = c};
	struct stat st;

	if (fstat(c->seg.fd, &st))
		return 0;
	u.dev = st.st_dev;
	u.ino = st.st_ino;
	newcomers_for_each(look_for_part, &u);
	return u.n;
}

static void read_counts(struct collector *c, uint64_t out[KRON_COUNTERS])
{
	if (c->opt.bus == KRON_BUS_LANE)
		lanes_count(c->seg.ctl, out);
	else if (counters_of(c->opt.selection.probes))
		counts_read_board(bus_of(c), out);
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
	out->ring_samples = c->flight ? flight_passed(c->flight) : 0;
	out->overruns = c->fetch.overruns;
	out->overwritten = c->opt.bus == KRON_BUS_LANE && c->opt.when_full == KRON_WHEN_FULL_WRAP
				   ? tasks.lost
				   : c->fetch.overwritten;
	if (c->opt.bus == KRON_BUS_EXACT)
		out->waited = c->fetch.waited;
	out->lost = tasks.lost + c->fetch.overruns + c->fetch.overwritten;
	out->processes = tasks.processes;
	out->threads = tasks.threads;
	out->living = tasks.living;
	out->probes = modules.probes;
	out->refused = modules.refused;
	out->modules = modules.modules;
	out->starts = c->server.starts;
	out->left_out = journal_left_out(&c->journal);
	read_counts(c, out->counts);
}

static void measure(struct collector *c, double hz, struct probe_cost *out)
{
	struct task_totals tasks;

	if (c->opt.bus == KRON_BUS_HARDWARE)
		return; /* what a store takes to get there, it cannot be told */
	tasks_totals(&c->tasks, &tasks);
	if (c->opt.measure)
		c->opt.measure(out, hz, c->opt.clock_every, tasks.samples_static);
	out->on = probe_cost_mean(out, tasks.samples, tasks.samples_static);
	if (c->opt.bus == KRON_BUS_EXACT)
		out->on = fetch_trigger_ns(&c->fetch, hz);
}

static void end_watch(struct collector *c, double hz, struct collector_summary *out)
{
	const struct watch *w = c->watch;
	uint64_t tsc;

	if (!w)
		return;
	tsc = watch_fired_tsc(w);
	if (tsc > c->clock_start.tsc)
		out->fired_ns = (uint64_t)((double)(tsc - c->clock_start.tsc) / hz * 1e9);
	if (tsc && watch_fired_by(w))
		snprintf(out->fired_by, sizeof(out->fired_by), "%s", watch_fired_by(w));
	if (!c->flight)
		out->outside = watch_outside(w);
	out->unsure = watch_unsure(w);
	if (watch_unknown_name(w))
		snprintf(out->unknown, sizeof(out->unknown), "%s", watch_unknown_name(w));
}

static void sum_up_cost(const struct collector *c, uint64_t cpu_ns, struct collector_summary *out)
{
	uint64_t waits = c->opt.bus == KRON_BUS_LANE ? 0 : out->waited;
	uint64_t probes = out->samples + out->lost + out->stranded;

	/* what goes outside has passed the flight recorder's ring before */
	probes += c->flight ? out->ring_samples : out->outside;
	/* to the digits that the session has, so that readers come to the same figures */
	out->cost.on = (double)(uint64_t)(out->cost.on * 100 + 0.5) / 100;
	out->cost.limit = (double)(uint64_t)(out->cost.limit * 100 + 0.5) / 100;
	cost_take(&out->probes_cost, probes, out->cost.on,
		  cost_probe_error(out->cost.on, out->cost.limit), waits, cpu_ns);
}

static void write_end(struct collector *c, const struct collector_end *e,
		      struct collector_summary *out)
{
	struct time_point end;
	double hz;

	time_point_take(&end);
	hz = tsc_hz(&c->start, &end);
	out->seconds = (double)(end.mono_ns - c->start.mono_ns) / 1e9;
	measure(c, hz, &out->cost);
	if (c->opt.bus == KRON_BUS_EXACT) {
		board_time_point(&c->seg.window.board, &end);
		hz = tsc_hz(&c->clock_start, &end);
	}
	end_watch(c, hz, out);
	sum_up_cost(c, e->cpu_ns, out);
	if (journal_error(&c->journal))
		return; /* `kron recover` writes the end */
	if (c->seg.is_bounded)
		journal_session(&c->journal, "buffer", "%" PRIu64,
				(uint64_t)segment_limit(&c->seg) * KRON_CHUNK_SIZE);
	if (!c->opt.selection.calls)
		counts_write_virtual(&c->journal, &c->seg);
	session_write_end(&c->journal, e->how, &end, hz, out, &c->opt);
}

static int close_trace(struct collector *c, bool undo)
{
	int code = journal_error(&c->journal), closed = 0;

	if (undo)
		trace_writer_undo(c->journal.w);
	else
		closed = trace_writer_close(c->journal.w);
	return code || c->journal.unread ? code : closed;
}

static void let_segment_go(struct collector *c, bool failed, struct collector_summary *out)
{
	if (failed && !c->opt.is_scratch) {
		snprintf(out->segment, sizeof(out->segment), "%s", c->seg.name);
		return;
	}
	if (c->opt.bus == KRON_BUS_EXACT)
		fetch_restore(&c->fetch);
	segment_unlink(&c->seg);
}

static void end_flight(struct collector *c, const char *why, struct collector_summary *out)
{
	if (!c->flight)
		return;
	flight_end(c->flight, why);
	if (c->watch)
		out->outside = watch_outside(c->watch);
	out->snapshots = flight_count(c->flight);
	out->last_snapshot = flight_last(c->flight);
	out->unkept = *flight_error(c->flight);
}

/* Nothing was heard of the program, and no reason has been given. */
static void note_silence(struct collector *c, pid_t program)
{
	if (program && !c->server.starts && !c->server.untraced.v.n)
		server_note_untraced(
			&c->server, program, NULL,
			c->all_ended ? "it never loaded libkron-rt.so, or ended before it was ready"
				     : "its plan was still being made when the recording ended");
}

void collector_finish(struct collector *c, const struct collector_end *end,
		      struct collector_summary *out)
{
	uint64_t unheard;
	int code;

	memset(out, 0, sizeof(*out));
	flight_stop(c->flight);
	close_board(c);
	drain_ask_to_stop(&c->drain);
	c->all_ended = server_stop(&c->server);
	note_silence(c, end->program);
	drain_stop(&c->drain);
	grow_ask_to_stop(&c->grow, let_stores_finish(c) && !c->flight);
	end_flight(c, end->how, out);
	drain_all(&c->drain);
	if (c->drain.pages) {
		out->unnoted_maps = pages_unnoted_maps(c->drain.pages);
		journal_note(&c->journal, pages_write(c->drain.pages, c->opt.dir));
	}
	end_switches(c);
	end_hardware(c, out);
	out->cut = c->drain.cut;
	unheard = end->program && c->server.starts ? list_unheard_processes(c) : 0;
	sum_up(c, out);
	out->processes += unheard;
	out->living += (uint32_t)unheard;
	write_end(c, end, out);
	code = close_trace(c, end->undo);
	grow_stop(&c->grow);
	if (code)
		err_set(&out->error, -code, "the trace could not be written: %s", strerror(-code));
	let_segment_go(c, code, out);
}

void collector_free(struct collector *c)
{
	if (c->all_ended)
		pages_free(c->drain.pages);
	if (!c->all_ended) /* a thread still plans with what is here; the process ends soon */
		return;
	plan_cache_trim(&c->modules.cache);
	server_free(&c->server);
	answerer_free(&c->answerer);
	modules_free(&c->modules);
	fetch_free(&c->fetch);
	watch_close(c->watch);
	meter_close(c->meter);
	xfree(c->worst_trigger);
	flight_close(c->flight);
	tasks_free(&c->tasks);
	hardware_board_close(&c->hardware);
	segment_close(&c->seg);
}
