/* SPDX-License-Identifier: MIT */
/*
 * scheduler.c - see scheduler.h.
 *
 * The threads that read allocate nothing: malloc() would make an arena for each.
 */
#define _GNU_SOURCE
#include "collect/kernel/scheduler.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/vec.h"

#define TEXT_SIZE 4096
#define STACK_SIZE 65536
#define CLOCKS_MS 100
#define LOOK_NS 2000000 /* a look takes 50 us where nothing comes between */
#define LOOKS_MAX 20

static void read_text(pid_t pid, pid_t tid, const char *name, char text[TEXT_SIZE])
{
	char path[64];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, TEXT_SIZE - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = 0;
}

/* The value after a line's key; NULL: there is no such line. */
static const char *value_of(const char *text, const char *key)
{
	const char *line = strstr(text, key);
	const char *value = line ? strchr(line, ':') : NULL;

	return value ? value + 1 : NULL;
}

static int last_processor(pid_t pid, pid_t tid)
{
	char text[TEXT_SIZE];
	const char *at;
	int cpu = -1;

	read_text(pid, tid, "stat", text);
	at = strrchr(text, ')');
	for (int field = 2; at && field < 39; field++)
		at = strchr(at + 1, ' ');
	return at && sscanf(at, "%d", &cpu) == 1 ? cpu : -1;
}

static uint64_t switches_in(const char *text)
{
	const char *value = value_of(text, "\nnr_voluntary_switches");

	return value ? strtoull(value, NULL, 10) : 0;
}

uint64_t thread_switches_read(pid_t pid, pid_t tid)
{
	char text[TEXT_SIZE];

	read_text(pid, tid, "sched", text);
	return switches_in(text);
}

struct thread_run thread_run_read(pid_t pid, pid_t tid)
{
	struct thread_run r = {.cpu = last_processor(pid, tid)};
	char text[TEXT_SIZE];
	const char *at;

	read_text(pid, tid, "sched", text);
	at = value_of(text, "\nse.exec_start");
	if (at && last_processor(pid, tid) == r.cpu)
		r.at = (uint64_t)(strtod(at, NULL) * 1e6);
	r.switches = switches_in(text);
	return r;
}

/* ---- the clocks of the processors ---- */

struct readers {
	pthread_mutex_t lock;
	pthread_cond_t more; /* done has grown */
	size_t done;
};

struct reader {
	struct readers *all;
	pthread_t thread;
	int cpu;
	int started;                 /* 0: it has; an error number otherwise */
	struct processor_clock read; /* under the lock; now is 0 until it is known */
};

/*
 * It is put on the processor anew, and looks at once.  Who was interrupted between the two clocks read them at
 * different moments, and tries again.
 */
static bool look_at_clock(struct processor_clock *c)
{
	const struct timespec ts = {.tv_nsec = 1000};
	struct thread_run run;

	nanosleep(&ts, NULL);
	c->mono = clock_ns(CLOCK_MONOTONIC);
	run = thread_run_read(getpid(), gettid());
	if (run.cpu != c->cpu)
		return false;
	c->now = run.at;
	return clock_ns(CLOCK_MONOTONIC) - c->mono < LOOK_NS;
}

static void *read_clock(void *arg)
{
	struct reader *r = arg;
	struct processor_clock c = {.cpu = r->cpu};
	bool known = false;

	for (int i = 0; i < LOOKS_MAX && !known; i++)
		known = look_at_clock(&c);
	pthread_mutex_lock(&r->all->lock);
	if (known)
		r->read = c;
	r->all->done++;
	pthread_cond_signal(&r->all->more);
	pthread_mutex_unlock(&r->all->lock);
	return NULL;
}

/* pthread_create() lets it begin only when it has its processor. */
static void start_reader(struct reader *r, struct readers *all, int cpu)
{
	pthread_attr_t attr;
	cpu_set_t set;

	*r = (struct reader){.all = all, .cpu = cpu, .started = EINVAL, .read.cpu = cpu};
	if (cpu < 0 || cpu >= CPU_SETSIZE)
		return;
	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	r->started = pthread_create(&r->thread, &attr, read_clock, r);
	pthread_attr_destroy(&attr);
}

/* Until all that have started are done, or the time is over. */
static void await_readers(struct readers *all, size_t started, struct processor_clock *v,
			  const struct reader *r, size_t n)
{
	const uint64_t until = clock_ns(CLOCK_MONOTONIC) + CLOCKS_MS * UINT64_C(1000000);
	const struct timespec ts = {.tv_sec = (time_t)(until / 1000000000),
				    .tv_nsec = (long)(until % 1000000000)};

	pthread_mutex_lock(&all->lock);
	while (all->done < started &&
	       !pthread_cond_clockwait(&all->more, &all->lock, CLOCK_MONOTONIC, &ts))
		;
	for (size_t i = 0; i < n; i++)
		v[i] = r[i].read;
	pthread_mutex_unlock(&all->lock);
}

void processor_clocks_read(struct processor_clock *v, size_t n)
{
	struct readers all = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
	struct reader *r = xcalloc(n ? n : 1, sizeof(*r));
	size_t started = 0;
	cpu_set_t ours;

	if (sched_getaffinity(0, sizeof(ours), &ours))
		n = 0;
	for (size_t i = 0; i < n; i++) {
		start_reader(&r[i], &all, v[i].cpu);
		started += !r[i].started;
	}
	await_readers(&all, started, v, r, n);
	for (size_t i = 0; i < n; i++)
		if (!r[i].started) { /* where we run, who is late ends, too */
			pthread_setaffinity_np(r[i].thread, sizeof(ours), &ours);
			pthread_join(r[i].thread, NULL);
		}
	xfree(r);
}

/* ---- who comes first ---- */

void scheduler_come_first(void)
{
	static const char highest[] = "-20";
	int fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);

	setpriority(PRIO_PROCESS, 0, -20);
	if (fd < 0)
		return;
	(void)!write(fd, highest, sizeof(highest) - 1);
	close(fd);
}
