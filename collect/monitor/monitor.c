/* SPDX-License-Identifier: MIT */
/* monitor.c - see monitor.h */
#define _GNU_SOURCE
#include "collect/monitor/monitor.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"

/* ---- what is asked for ---- */

static int add_calls(struct monitor *m, const char *glob, struct err *err)
{
	if (m->calls.nglobs == CALLS_GLOBS)
		return err_set(err, EINVAL, "-e calls: %d of them are the most", CALLS_GLOBS);
	if (!*glob)
		return err_set(err, EINVAL, "-e calls: there is no name after the colon");
	m->calls.globs[m->calls.nglobs++] = glob;
	return 0;
}

int monitor_add_event(struct monitor *m, const char *name, struct err *err)
{
	const struct counter *c = counter_find(name);
	char *names;
	int code;

	if (c) {
		vec_for(&m->wanted, w)
			if (*w == c)
				return 0;
		*vec_push(&m->wanted) = c;
		return 0;
	}
	if (!strcmp(name, "idle"))
		return m->idle = true, 0;
	if (!strcmp(name, "block"))
		return m->io = true, 0;
	if (!strcmp(name, "net"))
		return m->net = true, 0;
	if (!strcmp(name, "calls"))
		return add_calls(m, "*", err);
	if (!strncmp(name, "calls:", 6))
		return add_calls(m, name + 6, err);
	code = probed_add(&m->probed, name, err);
	if (code <= 0)
		return code;
	names = counter_names();
	err_set(err, EINVAL,
		"-e: there is no event '%s'; there are %s, idle, block, net, calls[:GLOB], addr:PLACE, "
		"returns[:FUNC], instructions:FUNC, branches:FUNC, loads[:FUNC], stores[:FUNC]",
		name, names);
	xfree(names);
	return -EINVAL;
}

int monitor_add_variable(struct monitor *m, const char *text, struct err *err)
{
	return monitor_variables_add(&m->variables, text, true, err);
}

int monitor_add_lock(struct monitor *m, const char *text, struct err *err)
{
	return monitor_locks_add(&m->locks, text, err);
}

int monitor_add_range(struct monitor *m, const char *text, struct err *err)
{
	return monitor_ranges_add(&m->ranges, text, err);
}

int monitor_check(const struct monitor *m, struct err *err)
{
	struct counters tried = {0};
	int code = m->io ? system_io_check(getpid(), err) : 0;

	for (size_t i = 0; i < m->wanted.n && !code; i++)
		code = counters_open(&tried, m->wanted.v[i], 0, err);
	counters_close(&tried);
	return code;
}

const char *monitor_wants_signals(const struct monitor *m)
{
	for (size_t i = 0; i < m->wanted.n; i++)
		if (m->wanted.v[i]->tracepoint)
			return m->wanted.v[i]->name;
	return NULL;
}

bool monitor_wants_calls(const struct monitor *m)
{
	return m->calls.nglobs;
}

bool monitor_wants_probes(const struct monitor *m)
{
	return m->calls.nglobs || m->probed.v.n || m->ranges.v.n;
}

int monitor_settle_calls(struct monitor *m, struct err *err)
{
	int code = 0;

	if (!m->probed.v.n && !m->ranges.v.n)
		return 0;
	for (size_t i = 0; i < m->calls.nglobs && !code; i++)
		code = probed_add_calls(&m->probed, m->calls.globs[i], err);
	m->calls.nglobs = 0;
	return code;
}

/* ---- columns: the order is that of read_all() ---- */

static void add_column(struct monitor *m, const char *name, enum reading_kind kind,
		       enum value_type type)
{
	*vec_push(&m->columns.v) =
		(struct column){.name = xstrdup(name), .kind = kind, .type = type};
}

/* What the program names may be called as another column: an object of JSON has one member of a name. */
static void add_named_column(struct monitor *m, const char *name, const char *what,
			     enum reading_kind kind, enum value_type type)
{
	char *other = NULL;

	vec_for(&m->columns.v, c)
		if (!other && !strcmp(c->name, name))
			other = xasprintf("%s:%s", what, name);
	add_column(m, other ? other : name, kind, type);
	xfree(other);
}

static void add_lock_columns(struct monitor *m, const struct lock *k)
{
	const char *names[LOCK_COLUMNS];

	monitor_lock_columns(k, names);
	for (size_t i = 0; i < LOCK_COLUMNS && names[i]; i++) {
		char *name = xasprintf("%s.%s", k->text, names[i]);

		add_named_column(m, name, "lock", READING_VALUE, VALUE_UNSIGNED);
		xfree(name);
	}
}

static void add_idle_columns(struct monitor *m)
{
	char name[32];

	add_column(m, "idle", READING_PERCENT, 0);
	for (size_t i = 0; i < system_processors(); i++) {
		snprintf(name, sizeof(name), "idle%zu", i);
		add_column(m, name, READING_PERCENT, 0);
	}
}

static void add_columns(struct monitor *m)
{
	for (unsigned i = 0; m->board && i < m->board->ncolumns; i++)
		add_column(m, m->board->column[i].name, READING_COUNT, 0);
	vec_for(&m->wanted, c)
		add_column(m, (*c)->name, (*c)->kind, 0);
	if (m->idle)
		add_idle_columns(m);
	if (m->io) {
		add_column(m, "block-read", READING_BYTES, 0);
		add_column(m, "block-written", READING_BYTES, 0);
	}
	if (m->net) {
		add_column(m, "net-received", READING_BYTES, 0);
		add_column(m, "net-sent", READING_BYTES, 0);
	}
	for (size_t i = 0; i < m->calls.nglobs; i++) {
		const bool all = !strcmp(m->calls.globs[i], "*");
		char *name = all ? xstrdup("calls") : xasprintf("calls:%s", m->calls.globs[i]);

		add_column(m, name, READING_COUNT, 0);
		xfree(name);
	}
	vec_for(&m->probed.v, e)
		add_column(m, e->name, READING_COUNT, 0);
	vec_for(&m->ranges.v, r)
		add_named_column(m, r->text, "range", READING_COUNT, 0);
	vec_for(&m->locks.v, k)
		add_lock_columns(m, k);
	vec_for(&m->variables.v, v)
		add_named_column(m, v->name, "var", READING_VALUE, v->type);
}

void monitor_prepare(struct monitor *m)
{
	size_t n;

	add_columns(m);
	n = m->columns.v.n + 1;
	m->before = xcalloc(n, sizeof(struct reading));
	m->now = xcalloc(n, sizeof(struct reading));
	m->row = xcalloc(n, sizeof(struct reading));
	m->totals = xcalloc(n, sizeof(struct reading));
	m->clock = counter_find("task-clock");
	m->wake = m->plan.fd = -1;
	pthread_mutex_init(&m->plan.lock, NULL);
	if (monitor_wants_calls(m) || m->probed.v.n)
		m->call_ns = calls_cost();
}

/* ---- reading ---- */

static const struct open_counter *open_counter_of(const struct monitor *m, const struct counter *c)
{
	for (size_t i = 0; i < m->counters.v.n; i++)
		if (m->counters.v.v[i].what == c)
			return &m->counters.v.v[i];
	return NULL;
}

static void read_counter(const struct monitor *m, const struct counter *c, struct reading *out)
{
	const struct open_counter *o = open_counter_of(m, c);

	*out = (struct reading){0};
	if (o)
		counters_read(o, out);
}

/* What is the whole machine's, and not the program's. */
static struct reading *read_machine(struct monitor *m, struct reading *at, bool io)
{
	if (m->idle) {
		system_read_idle(at, system_processors() + 1);
		at += system_processors() + 1;
	}
	if (m->io) {
		if (io) {
			tree_look(&m->tree);
			system_read_io(&m->io_state, &m->tree, at, at + 1);
		}
		at += 2;
	}
	if (m->net) {
		system_read_net(m->net_file, at, at + 1);
		at += 2;
	}
	return at;
}

static void read_all(struct monitor *m)
{
	struct reading *at = m->now, clock;
	uint64_t nprobed;

	if (m->board) {
		monitor_board_read(m->board, at);
		return;
	}
	vec_for(&m->wanted, c)
		read_counter(m, *c, at++);
	at = read_machine(m, at, true);
	calls_take(&m->calls, at, &m->ncalls);
	at += m->calls.nglobs;
	probed_read(&m->probed, at, &nprobed);
	m->ncalls += nprobed;
	at += m->probed.v.n;
	monitor_ranges_read(&m->ranges, at);
	at += m->ranges.v.n;
	monitor_locks_read(&m->locks, m->pid, at);
	at += monitor_locks_columns(&m->locks);
	monitor_variables_read(&m->variables, m->pid, at);
	read_counter(m, m->clock, &clock);
	m->cpu_ns = clock.n > m->cpu_before_ns ? clock.n - m->cpu_before_ns : 0;
}

/* ---- one interval ---- */

static struct reading less(const struct column *c, const struct reading *now,
			   const struct reading *before)
{
	struct reading r = *now;

	if (c->kind == READING_VALUE)
		return r;
	/* what a process has done goes with it where nobody waited for it (system.h) */
	r.n = now->known && now->n > before->n ? now->n - before->n : 0;
	r.of = now->of > before->of ? now->of - before->of : 0;
	return r;
}

static void take_differences(struct monitor *m)
{
	bool overrun = false;

	for (size_t i = 0; i < m->columns.v.n; i++) {
		m->row[i] = less(&m->columns.v.v[i], &m->now[i], &m->before[i]);
		overrun |= m->row[i].has_overrun;
		if (m->now[i].known)
			m->before[i] = m->now[i];
	}
	monitored_add(m->totals, &m->columns, m->row);
	m->sum.overruns += overrun;
}

static void note_freeze(struct monitor *m, const struct freeze *z)
{
	const uint64_t skew = z->last_ns - z->first_ns;

	m->sum.freezes++;
	m->sum.all_stood_ns += z->stood_ns;
	m->sum.stood_ns += z->waited ? 0 : z->stood_ns;
	m->sum.longest_skew_ns = skew > m->sum.longest_skew_ns ? skew : m->sum.longest_skew_ns;
}

static void take(struct monitor *m, bool freezes)
{
	struct freeze z = {0};
	struct monitor_row row = {.v = m->row};
	struct err err;
	uint64_t now;
	int code = -ESRCH;

	if (freezes)
		code = freezer_stop(m->freezer, &z, &err);
	now = code || !z.first_ns ? clock_ns(CLOCK_MONOTONIC) : z.first_ns;
	read_all(m);
	if (!code) {
		freezer_go(m->freezer, &z);
		note_freeze(m, &z);
		if (z.ran && !m->sum.failed_freezes++)
			err_set(&m->sum.why_not, EBUSY,
				"a thread that had slept in a system call ran before the others went "
				"on");
	} else if (code != -ESRCH) {
		if (!m->sum.failed_freezes++)
			m->sum.why_not = err;
	}
	take_differences(m);
	row.from_ns = m->last_ns - m->start_ns;
	row.to_ns = now - m->start_ns;
	row.stood_ns = z.stood_ns;
	row.skew_ns = z.last_ns - z.first_ns;
	row.threads = z.threads;
	row.was_frozen = !code && !z.ran;
	m->sum.intervals++;
	m->on_row(m->ctx, &row);
	m->last_ns = now + z.stood_ns;
	m->sum.real_ns = m->last_ns - m->start_ns;
}

/* ---- when the program begins ---- */

#define ASKS_MS 3000 /* one that has not asked by then gets no probes: it is watched as it is */
#define TOLD_MS 1000 /* what an ended program has said of its plan is on its way */

static void begin(struct monitor *m)
{
	m->start_ns = m->last_ns = clock_ns(CLOCK_MONOTONIC);
}

/* Clocks, and what is the whole machine's: the time that kron took is in no interval.  Events count from the exec on. */
static void begin_anew(struct monitor *m)
{
	struct reading *at = m->before, clock;

	vec_for(&m->wanted, c) {
		if ((*c)->kind == READING_NS)
			read_counter(m, *c, at);
		at++;
	}
	read_machine(m, at, false);
	read_counter(m, m->clock, &clock);
	m->cpu_before_ns = clock.n;
	begin(m);
}

void monitor_plan_tell(void *ctx, pid_t pid, bool goes_on)
{
	const uint64_t one = 1;
	struct monitor *m = ctx;

	pthread_mutex_lock(&m->plan.lock);
	if (!goes_on && m->plan.state == MONITOR_NO_PLAN) {
		m->plan.state = MONITOR_PLAN_MADE;
		m->plan.pid = pid;
	} else if (goes_on && m->plan.state == MONITOR_PLAN_MADE && pid == m->plan.pid) {
		begin_anew(m);
		m->plan.state = MONITOR_BEGUN;
		(void)!write(m->plan.fd, &one, sizeof(one));
	}
	pthread_mutex_unlock(&m->plan.lock);
}

/* From here on nothing that is told changes when it began; false: it waits still. */
static bool settle_plan(struct monitor *m, bool waits_too)
{
	bool is_settled;

	pthread_mutex_lock(&m->plan.lock);
	if (m->plan.state == MONITOR_NO_PLAN || waits_too)
		m->plan.state = MONITOR_BEGUN;
	is_settled = m->plan.state == MONITOR_BEGUN;
	pthread_mutex_unlock(&m->plan.lock);
	return is_settled;
}

/* False: the monitor is to end. */
static bool await_plan(struct monitor *m)
{
	struct pollfd p[] = {{.fd = m->wake, .events = POLLIN},
			     {.fd = m->plan.fd, .events = POLLIN}};
	int patience = ASKS_MS;

	while (m->plan.is_awaited) {
		const int n = poll(p, 2, patience);

		if (n > 0 && p[0].revents)
			return false;
		if (n > 0 || (!n && settle_plan(m, false)))
			break;
		patience = n ? patience : -1;
	}
	return true;
}

static void end_plan(struct monitor *m)
{
	struct pollfd p = {.fd = m->plan.fd, .events = POLLIN};

	if (!m->plan.is_awaited)
		return;
	if (!settle_plan(m, false))
		poll(&p, 1, TOLD_MS);
	settle_plan(m, true);
}

/* ---- the thread ---- */

/* False: it is to end. */
static bool wait_until(struct monitor *m, uint64_t when)
{
	struct pollfd p = {.fd = m->wake, .events = POLLIN};

	for (;;) {
		const uint64_t now = clock_ns(CLOCK_MONOTONIC), left = when > now ? when - now : 0;
		const struct timespec ts = {(time_t)(left / 1000000000u),
					    (long)(left % 1000000000u)};
		const int n = ppoll(&p, 1, &ts, NULL);

		if (n > 0)
			return false;
		if (n == 0)
			return true;
	}
}

/* With freezes an interval begins when the program goes on, else at fixed times; none is made up for. */
static uint64_t next_after(const struct monitor *m, uint64_t planned)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (m->freezer)
		return now + m->every_ns;
	do
		planned += m->every_ns;
	while (planned <= now);
	return planned;
}

#define LOOK_NS 20000000u

/* Names are looked for early: then a program that ends during its first interval has been asked, and one that ends with
 * it can be read at once.  What it executes first has hardly begun before.  False: the monitor is to end. */
static bool look_early(struct monitor *m, uint64_t end)
{
	const uint64_t half = m->every_ns / 2;
	const uint64_t when = m->start_ns + (half < LOOK_NS ? half : LOOK_NS);

	if (!m->pid || when >= end || (!m->variables.v.n && !m->locks.v.n))
		return true;
	if (!wait_until(m, when))
		return false;
	monitor_variables_find(&m->variables, m->pid);
	monitor_locks_find(&m->locks, m->pid);
	return true;
}

static void *run(void *ctx)
{
	struct monitor *m = ctx;
	uint64_t next, end;

	if (!await_plan(m))
		return NULL;
	next = m->start_ns + m->every_ns;
	end = m->for_ns ? m->start_ns + m->for_ns : UINT64_MAX;
	if (!look_early(m, end))
		return NULL;
	while (wait_until(m, next < end ? next : end)) {
		take(m, m->freezer);
		if (clock_ns(CLOCK_MONOTONIC) >= end) {
			m->is_over = true;
			break;
		}
		next = next_after(m, next);
	}
	return NULL;
}

/* ---- start, stop ---- */

static void begin_probes(struct monitor *m, const struct segment *seg, struct modules *modules)
{
	m->probed.seg = seg;
	if (m->calls.nglobs)
		calls_begin(&m->calls, seg, modules);
}

int monitor_open_program(struct monitor *m, const struct segment *seg, struct modules *modules,
			 struct err *err)
{
	int code = m->io ? system_io_check(getpid(), err) : 0;

	if (code)
		return code;
	begin_probes(m, seg, modules);
	vec_for(&m->wanted, c) {
		code = counters_open(&m->counters, *c, 0, err);
		if (code)
			return code;
	}
	if (!open_counter_of(m, m->clock))
		counters_open(&m->counters, m->clock, 0, NULL);
	m->net_file = m->net ? system_open_net(0) : NULL;
	read_machine(m, m->before + m->wanted.n, false);
	begin(m);
	if (!modules)
		return 0;
	m->plan.fd = eventfd(0, EFD_CLOEXEC);
	m->plan.is_awaited = m->plan.fd >= 0;
	return m->plan.is_awaited ? 0
				  : err_set(err, errno, "cannot make an event descriptor: %s",
					    strerror(errno));
}

static int open_thread(struct monitor *m, pid_t tid, struct err *err)
{
	vec_for(&m->wanted, c) {
		int code = counters_open(&m->counters, *c, tid, err);

		if (code && code != -ESRCH)
			return code;
	}
	return 0;
}

static int open_threads(struct monitor *m, pid_t pid, struct err *err)
{
	char path[64];
	struct dirent *e;
	int code = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	while (d && !code && (e = readdir(d)))
		if (atoi(e->d_name) > 0)
			code = open_thread(m, atoi(e->d_name), err);
	if (d)
		closedir(d);
	return code;
}

int monitor_open_processes(struct monitor *m, const pid_t *pids, size_t n,
			   const struct segment *seg, struct modules *modules, struct err *err)
{
	int code = m->io ? system_io_check(pids[0], err) : 0;

	m->tree.kron = getpid();
	for (size_t i = 0; i < n; i++)
		tree_add(&m->tree, pids[i]);
	tree_look(&m->tree);
	for (size_t i = 0; i < m->tree.v.n && !code; i++)
		code = open_threads(m, m->tree.v.v[i].pid, err);
	if (code)
		return code;
	m->net_file = m->net ? system_open_net(pids[0]) : NULL;
	m->pid = pids[0];
	begin_probes(m, seg, modules);
	read_all(m);
	m->ncalls_before = m->ncalls;
	for (size_t i = 0; i < m->columns.v.n; i++)
		m->before[i] = m->now[i];
	begin(m);
	return 0;
}

void monitor_begin_board(struct monitor *m)
{
	begin(m);
}

int monitor_start(struct monitor *m, pid_t pid, struct err *err)
{
	sigset_t all, old;
	int code;

	m->pid = pid;
	if (pid)
		tree_add(&m->tree, pid);
	m->wake = eventfd(0, EFD_CLOEXEC);
	if (m->wake < 0)
		return err_set(err, errno, "cannot make an event descriptor: %s", strerror(errno));
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	code = pthread_create(&m->thread, NULL, run, m);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (code)
		return err_set(err, code, "cannot start a thread: %s", strerror(code));
	m->is_running = true;
	return 0;
}

void monitor_stop(struct monitor *m)
{
	const uint64_t one = 1;

	if (!m->is_running)
		return;
	if (write(m->wake, &one, sizeof(one)) == sizeof(one))
		pthread_join(m->thread, NULL);
	m->is_running = false;
	end_plan(m);
	if (!m->is_over)
		take(m, false);
	m->is_over = true;
}

/* The probes of threads that run side by side take their time side by side. */
void monitor_summary(const struct monitor *m, struct monitor_summary *out)
{
	const double probes = (double)(m->ncalls - m->ncalls_before) * m->call_ns;
	double side_by_side;

	*out = m->sum;
	out->is_whole = true;
	if (m->ranges.v.n || probed_share(&m->probed)) {
		out->virtual_ns = out->real_ns - out->stood_ns;
		out->probes_ns = MONITOR_COST_UNKNOWN;
		return;
	}
	side_by_side = out->real_ns > out->stood_ns
			       ? (double)m->cpu_ns / (double)(out->real_ns - out->stood_ns)
			       : 1;
	out->probes_ns = (uint64_t)(probes / (side_by_side > 1 ? side_by_side : 1));
	out->virtual_ns = out->real_ns - out->stood_ns;
	out->virtual_ns -= out->probes_ns < out->virtual_ns ? out->probes_ns : out->virtual_ns;
}

void monitor_free(struct monitor *m)
{
	counters_close(&m->counters);
	calls_end(&m->calls);
	probed_free(&m->probed);
	monitor_variables_free(&m->variables);
	monitor_ranges_free(&m->ranges);
	monitor_locks_free(&m->locks);
	vec_free(&m->io_state.v);
	vec_free(&m->tree.v);
	vec_free(&m->wanted);
	vec_for(&m->columns.v, c)
		xfree(c->name);
	vec_free(&m->columns.v);
	xfree(m->before);
	xfree(m->now);
	xfree(m->row);
	xfree(m->totals);
	if (m->board)
		monitor_board_close(m->board);
	if (m->net_file)
		fclose(m->net_file);
	if (m->wake >= 0)
		close(m->wake);
	if (m->plan.fd >= 0)
		close(m->plan.fd);
}
