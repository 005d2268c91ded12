/* SPDX-License-Identifier: MIT */
/* counters.c - see counters.h */
#define _GNU_SOURCE
#include "collect/monitor/counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A clock counts the same time whether the kernel's part is left out or not. */
static const struct counter known[] = {
	{"page-faults", READING_COUNT, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, false},
	{"minor-faults", READING_COUNT, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN, false},
	{"major-faults", READING_COUNT, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, false},
	{"context-switches", READING_COUNT, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES,
	 false},
	{"migrations", READING_COUNT, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, false},
	{"task-clock", READING_NS, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, true},
	{"cpu-clock", READING_NS, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, true},
	{"cycles", READING_COUNT, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false},
	{"instructions", READING_COUNT, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, false},
	{"branches", READING_COUNT, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, false},
	{"branch-misses", READING_COUNT, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, false},
	{"cache-references", READING_COUNT, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES,
	 false},
	{"cache-misses", READING_COUNT, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, false},
};
#define NKNOWN (sizeof(known) / sizeof(known[0]))

const struct counter *counter_find(const char *name)
{
	for (size_t i = 0; i < NKNOWN; i++)
		if (!strcmp(known[i].name, name))
			return &known[i];
	return NULL;
}

char *counter_names(void)
{
	char *all = xstrdup("");

	for (size_t i = 0; i < NKNOWN; i++) {
		char *more = xasprintf("%s%s%s", all, i ? ", " : "", known[i].name);

		xfree(all);
		all = more;
	}
	return all;
}

static int refuse(const struct counter *what, int code, struct err *err)
{
	if (code == EACCES || code == EPERM)
		return err_set(
			err, code,
			"%s: perf_event_open(2) is not allowed here: %s "
			"(kernel.perf_event_paranoid above 1, or a container's seccomp filter)",
			what->name, strerror(code));
	if (what->type == PERF_TYPE_HARDWARE && (code == ENOENT || code == EOPNOTSUPP))
		return err_set(
			err, code,
			"%s: this machine shows no performance monitoring unit that counts it, "
			"as most virtual machines do not",
			what->name);
	return err_set(err, code, "%s: the kernel does not count it here: %s", what->name,
		       strerror(code));
}

static struct open_counter *counter_of(struct counters *c, const struct counter *what)
{
	vec_for(&c->v, o)
		if (o->what == what)
			return o;
	*vec_push(&c->v) = (struct open_counter){.what = what};
	return &c->v.v[c->v.n - 1];
}

int counters_open(struct counters *c, const struct counter *what, pid_t tid, struct err *err)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = what->type,
		.config = what->config,
		.inherit = 1,
		.disabled = !tid,
		.enable_on_exec = !tid,
		.exclude_kernel = what->of_user_only,
		.exclude_hv = 1,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	long fd = syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return refuse(what, errno, err);
	*vec_push(&counter_of(c, what)->fds) = (int)fd;
	return 0;
}

void counters_read(const struct open_counter *c, struct reading *out)
{
	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < c->fds.n; i++) {
		struct {
			uint64_t value, enabled, running;
		} r;

		if (read(c->fds.v[i], &r, sizeof(r)) != sizeof(r))
			continue;
		out->known = true;
		/* hardware counters are few: with others it had its turn */
		if (c->what->type == PERF_TYPE_HARDWARE && r.running < r.enabled) {
			out->is_estimate = true;
			r.value = r.running ? (uint64_t)((double)r.value * (double)r.enabled /
							 (double)r.running)
					    : 0;
		}
		out->n += r.value;
	}
}

void counters_close(struct counters *c)
{
	vec_for(&c->v, o) {
		vec_for(&o->fds, fd)
			close(*fd);
		vec_free(&o->fds);
	}
	vec_free(&c->v);
}
