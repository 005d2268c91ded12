/* SPDX-License-Identifier: MIT */
/*
 * switches.c - see switches.h.
 *
 * The kernel stamps records with CLOCK_MONOTONIC, samples have the time stamp counter.  Both are
 * read together in each round, and records are interpolated between two rounds: within what
 * such a reading is off by, some 20 ns, whatever the clock is slewed by in the long run.
 *
 * Rings are read one after the other.  So that a thread that moves between CPUs meanwhile does
 * not come out in the wrong order, a round ends at the moment when it began: what is younger
 * stays in its ring for the next one.
 */
#define _GNU_SOURCE
#include "collect/switches.h"

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/vec.h"

#define EVENTS_MAX 256u       /* of a process: some 10 us each */
#define ROUND_MIN_NS 1000000u /* closer readings of the clocks are not used to interpolate */

struct ring {
	int fd;
	struct perf_event_mmap_page *head;
	const uint8_t *data;
	size_t size; /* of data, a power of two */
	uint16_t cpu;
};

struct exited { /* a thread of this process */
	uint64_t ns;
	pid_t pid, tid;
};

struct switches {
	VEC(struct ring) rings;
	VEC(int) threads; /* events of threads that ran before */
	size_t page;
	switches_clock_fn clock;
	void *ctx;
	struct time_point earlier, before, now; /* of the last two rounds and this one */
	VEC(struct trace_switch) batch;
	VEC(struct exited) exits;
	switches_exit_fn on_exit;
	void *on_exit_ctx;
	struct switches_count count;
};

/* What the kernel writes with sample_id_all and the sample_type below. */
struct sample_id {
	uint32_t pid, tid;
	uint64_t time;
};
struct switch_record {
	struct perf_event_header head;
	struct sample_id id;
};
struct exit_record {
	struct perf_event_header head;
	uint32_t pid, ppid, tid, ptid;
	uint64_t time;
	struct sample_id id;
};
struct lost_record {
	struct perf_event_header head;
	uint64_t event, lost;
	struct sample_id id;
};

/* ---- the events ---- */

/* tid 0: what this thread starts. */
static int open_event(int cpu, pid_t tid)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.disabled = !tid,
		.enable_on_exec = !tid,
		.inherit = 1,
		.exclude_kernel = 1, /* or perf_event_paranoid 2 would forbid it */
		.exclude_hv = 1,
		.context_switch = 1,
		.task = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	long fd = syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

/*
 * Sixteen pages are 2,700 records; more would cost more at each start.  Unprivileged users may
 * lock 516 KiB for each CPU, all their perf events together.
 */
static int map_ring(struct switches *s, struct ring *r)
{
	static const unsigned pages[] = {16, 4};
	int code = 0;

	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		size_t size = pages[i] * s->page;
		void *p = mmap(NULL, s->page + size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);

		if (p != MAP_FAILED) {
			r->head = p;
			r->data = (const uint8_t *)p + s->page;
			r->size = size;
			return 0;
		}
		code = -errno;
	}
	return code;
}

static int refuse(struct err *err, int code)
{
	if (code == -EACCES || code == -EPERM)
		return err_set(err, -code,
			       "perf_event_open(2) is not allowed here: %s "
			       "(kernel.perf_event_paranoid, or a container's seccomp filter)",
			       strerror(-code));
	if (code == -EINVAL || code == -ENOSYS)
		return err_set(err, -code, "this kernel has no records of context switches: %s",
			       strerror(-code));
	return err_set(err, -code, "cannot have the kernel's context switches: %s",
		       strerror(-code));
}

static int open_ring(struct switches *s, int cpu)
{
	struct ring r = {.fd = open_event(cpu, 0), .cpu = (uint16_t)cpu};
	int code;

	if (r.fd == -ENODEV) /* offline */
		return 0;
	if (r.fd < 0)
		return r.fd;
	code = map_ring(s, &r);
	if (code)
		close(r.fd);
	else
		*vec_push(&s->rings) = r;
	return code;
}

int switches_open(struct switches **out, switches_clock_fn clock, void *ctx, struct err *err)
{
	struct switches *s = xcalloc(1, sizeof(*s));
	long ncpu = sysconf(_SC_NPROCESSORS_CONF);
	int code = 0;

	s->page = (size_t)sysconf(_SC_PAGESIZE);
	s->clock = clock;
	s->ctx = ctx;
	clock(ctx, &s->before);
	s->earlier = s->before;
	for (int cpu = 0; cpu < ncpu && cpu <= UINT16_MAX && !code; cpu++)
		code = open_ring(s, cpu);
	*out = s;
	if (!code)
		return 0;
	switches_close(s);
	*out = NULL;
	return refuse(err, code);
}

/* Into the rings that are there. */
static int add_thread(struct switches *s, pid_t tid)
{
	vec_for(&s->rings, r) {
		const int fd = open_event(r->cpu, tid);

		if (fd == -ESRCH)
			return 0;
		if (fd < 0)
			return fd;
		*vec_push(&s->threads) = fd;
		if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, r->fd))
			return -errno;
	}
	return 0;
}

static void drop_threads(struct switches *s, size_t from)
{
	while (s->threads.n > from)
		close(s->threads.v[--s->threads.n]);
}

int switches_add_process(struct switches *s, pid_t pid, struct err *err)
{
	const size_t before = s->threads.n;
	char path[64];
	struct dirent *e;
	int code = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	if (!d)
		code = -errno;
	while (d && !code && (e = readdir(d))) {
		if (s->threads.n - before > EVENTS_MAX)
			code = -E2BIG;
		else if (atoi(e->d_name) > 0)
			code = add_thread(s, atoi(e->d_name));
	}
	if (d)
		closedir(d);
	if (!code)
		return 0;
	drop_threads(s, before);
	return code == -E2BIG ? err_set(err, E2BIG,
					"process %d has so many threads that it would stand still "
					"for too long meanwhile",
					pid)
			      : refuse(err, code);
}

void switches_close(struct switches *s)
{
	if (!s)
		return;
	drop_threads(s, 0);
	vec_free(&s->threads);
	vec_for(&s->rings, r) {
		munmap(r->head, s->page + r->size);
		close(r->fd);
	}
	vec_free(&s->rings);
	vec_free(&s->batch);
	vec_free(&s->exits);
	xfree(s);
}

void switches_on_exit(struct switches *s, switches_exit_fn fn, void *ctx)
{
	s->on_exit = fn;
	s->on_exit_ctx = ctx;
}

void switches_count(const struct switches *s, struct switches_count *out)
{
	*out = s->count;
}

/* ---- records ---- */

static void copy_out(const struct ring *r, uint64_t at, void *to, size_t n)
{
	size_t from = at & (r->size - 1), first = r->size - from < n ? r->size - from : n;

	memcpy(to, r->data + from, first);
	memcpy((uint8_t *)to + first, r->data, n - first);
}

static void add(struct switches *s, const struct ring *r, const struct sample_id *id, uint16_t kind,
		uint32_t tid)
{
	*vec_push(&s->batch) =
		(struct trace_switch){.tsc = id->time, .tid = tid, .cpu = r->cpu, .kind = kind};
}

/* false: younger than this round. */
static bool take_switch(struct switches *s, const struct ring *r, const struct switch_record *v)
{
	if (v->id.time > s->now.mono_ns)
		return false;
	if ((int32_t)v->id.tid <= 0) /* of no process that we can see */
		return true;
	s->count.records++;
	add(s, r, &v->id,
	    !(v->head.misc & PERF_RECORD_MISC_SWITCH_OUT)        ? TRACE_SWITCH_IN
	    : v->head.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ? TRACE_SWITCH_PREEMPTED
								 : TRACE_SWITCH_OUT,
	    v->id.tid);
	return true;
}

static bool take_lost(struct switches *s, const struct ring *r, const struct lost_record *v)
{
	if (v->id.time > s->now.mono_ns)
		return false;
	s->count.lost += v->lost;
	add(s, r, &v->id, TRACE_SWITCH_LOST, v->lost < UINT32_MAX ? (uint32_t)v->lost : UINT32_MAX);
	return true;
}

static bool take_exit(struct switches *s, const struct exit_record *v)
{
	if (v->time > s->now.mono_ns)
		return false;
	if (s->on_exit && (int32_t)v->pid > 0 && (int32_t)v->tid > 0)
		*vec_push(&s->exits) = (struct exited){v->time, (pid_t)v->pid, (pid_t)v->tid};
	return true;
}

static bool take_record(struct switches *s, const struct ring *r, uint64_t at, size_t size)
{
	union {
		struct perf_event_header head;
		struct switch_record change;
		struct exit_record exit;
		struct lost_record lost;
	} v;

	copy_out(r, at, &v, size < sizeof(v) ? size : sizeof(v));
	if (v.head.type == PERF_RECORD_SWITCH && size >= sizeof(v.change))
		return take_switch(s, r, &v.change);
	if (v.head.type == PERF_RECORD_EXIT && size >= sizeof(v.exit))
		return take_exit(s, &v.exit);
	if (v.head.type == PERF_RECORD_LOST && size >= sizeof(v.lost))
		return take_lost(s, r, &v.lost);
	return true;
}

/* How full it was, in bytes. */
static uint64_t read_ring(struct switches *s, struct ring *r)
{
	/* Acquire: the records below it are whole; partner: the kernel's store of data_head. */
	uint64_t head = __atomic_load_n(&r->head->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = r->head->data_tail, before = tail;
	struct perf_event_header h;

	while (tail < head) {
		copy_out(r, tail, &h, sizeof(h));
		if (h.size < sizeof(h) || h.size > head - tail || !take_record(s, r, tail, h.size))
			break;
		tail += h.size;
	}
	/* Release: we have read what the kernel may write over now. */
	__atomic_store_n(&r->head->data_tail, tail, __ATOMIC_RELEASE);
	return head - before;
}

/* ---- a round ---- */

/* From nanoseconds of CLOCK_MONOTONIC to the samples' clock. */
static uint64_t to_tsc(const struct switches *s, uint64_t ns)
{
	long double ticks = (long double)(int64_t)(s->now.tsc - s->before.tsc);
	long double span = (long double)(int64_t)(s->now.mono_ns - s->before.mono_ns);
	long double since = (long double)(int64_t)(ns - s->before.mono_ns);

	return s->before.tsc + (uint64_t)(int64_t)(since * ticks / span);
}

static int by_time(const void *a, const void *b)
{
	const struct trace_switch *x = a, *y = b;

	return x->tsc < y->tsc ? -1 : x->tsc > y->tsc;
}

bool switches_round(struct switches *s, struct journal *j, bool last)
{
	bool soon = false, near;

	s->clock(s->ctx, &s->now);
	near = s->now.mono_ns < s->before.mono_ns + ROUND_MIN_NS;
	if (near && !last)
		return false;
	if (near)
		s->before = s->earlier;
	vec_for(&s->rings, r)
		soon |= read_ring(s, r) > r->size / 4;
	vec_for(&s->batch, v)
		v->tsc = to_tsc(s, v->tsc);
	vec_for(&s->exits, x)
		s->on_exit(s->on_exit_ctx, x->pid, x->tid, to_tsc(s, x->ns));
	s->exits.n = 0;
	if (s->batch.n) {
		qsort(s->batch.v, s->batch.n, sizeof(*s->batch.v), by_time);
		journal_switches(j, s->batch.v, s->batch.n);
	}
	s->batch.n = 0;
	s->earlier = s->before;
	s->before = s->now;
	return soon;
}
