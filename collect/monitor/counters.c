/* SPDX-License-Identifier: MIT */
/* counters.c - see counters.h */
#define _GNU_SOURCE
#include "collect/monitor/counters.h"
#include "collect/monitor/tracepoints.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * A signal passes it when a thread takes it, whatever becomes of it.  So does SIGKILL at the end of each thread that an
 * exit_group(2) ends, which nobody has sent, and so do those that are ignored, if they were blocked, or a tracer saw them:
 * SIGCHLD, SIGCONT, SIGURG and SIGWINCH by default.  Exceptions of the processor arrive as one of five signals, whose
 * code (sigaction(2)) says that the kernel itself sends them.
 */
#define DELIVERED "signal/signal_deliver"
#define TAKEN          \
	"sig != 9 && " \
	"(sa_handler > 1 || (sa_handler == 0 && sig != 17 && sig != 18 && sig != 23 && sig != 28))"

/* A clock counts the same time whether the kernel's part is left out or not. */
static const struct counter known[] = {
	{"page-faults", READING_COUNT, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, false, NULL,
	 NULL},
	{"minor-faults", READING_COUNT, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN, false,
	 NULL, NULL},
	{"major-faults", READING_COUNT, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, false,
	 NULL, NULL},
	{"context-switches", READING_COUNT, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES,
	 false, NULL, NULL},
	{"migrations", READING_COUNT, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, false, NULL,
	 NULL},
	{"task-clock", READING_NS, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, true, NULL, NULL},
	{"cpu-clock", READING_NS, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, true, NULL, NULL},
	{"cycles", READING_COUNT, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false, NULL, NULL},
	{"instructions", READING_COUNT, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, false, NULL,
	 NULL},
	{"branches", READING_COUNT, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, false,
	 NULL, NULL},
	{"branch-misses", READING_COUNT, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, false,
	 NULL, NULL},
	{"cache-references", READING_COUNT, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES,
	 false, NULL, NULL},
	{"cache-misses", READING_COUNT, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, false, NULL,
	 NULL},
	{"signals", READING_COUNT, PERF_TYPE_TRACEPOINT, 0, false, DELIVERED, TAKEN},
	{"traps", READING_COUNT, PERF_TYPE_TRACEPOINT, 0, false, DELIVERED,
	 "code > 0 && (sig == 4 || sig == 5 || sig == 7 || sig == 8 || sig == 11)"},
};
#define NKNOWN (sizeof(known) / sizeof(known[0]))

/* As perf calls them. */
static const char *const aliases[][2] = {
	{"cs", "context-switches"},
	{"faults", "page-faults"},
	{"cpu-migrations", "migrations"},
};

const struct counter *counter_find(const char *name)
{
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (!strcmp(aliases[i][0], name))
			name = aliases[i][1];
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

/* What probes can count. */
static const char *instead_of(const struct counter *what)
{
	switch (what->config) {
	case PERF_COUNT_HW_INSTRUCTIONS:
		return "; probes count the program's: -e 'instructions:*'";
	case PERF_COUNT_HW_BRANCH_INSTRUCTIONS:
		return "; probes count the program's: -e 'branches:*'";
	default:
		return "";
	}
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
			"as most virtual machines do not%s",
			what->name, instead_of(what));
	return err_set(err, code, "%s: the kernel does not count it here: %s", what->name,
		       strerror(code));
}

static int refuse_tracepoint(const struct counter *what, int code, struct err *err)
{
	return err_set(
		err, code,
		"%s: the kernel's tracepoint %s cannot be found: %s (tracefs is for root, and who may read "
		"/sys/kernel/tracing)",
		what->name, what->tracepoint, strerror(code));
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
		.inherit = 1,
		.disabled = !tid,
		.enable_on_exec = !tid,
		.exclude_kernel = what->of_user_only,
		.exclude_hv = 1,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	uint64_t number = what->config;
	int code = 0;
	long fd;

	if (what->tracepoint)
		code = tracepoint_number(what->tracepoint, &number);
	if (code)
		return refuse_tracepoint(what, -code, err);
	attr.config = number;
	fd = syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return refuse(what, errno, err);
	/* before anything passes it: a thread stands, and of a program it is disabled until the exec */
	if (what->filter && ioctl((int)fd, PERF_EVENT_IOC_SET_FILTER, what->filter)) {
		code = errno;
		close((int)fd);
		return refuse(what, code, err);
	}
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
