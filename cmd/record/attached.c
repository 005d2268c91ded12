/* SPDX-License-Identifier: MIT */
/* attached.c - see attached.h. */
#define _GNU_SOURCE
#include "cmd/record/attached.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/str.h"
#include "cmd/record/pids.h"
#include "collect/kernel/process_maps.h"

#define WATCH_MS 20 /* how often it is asked whether the trigger has fired */

/* ---- the command line ---- */

int attached_take(struct attached *a, const struct opt_list *pids, struct err *err)
{
	struct pids p;
	int code = pids_take(&p, pids, err);

	for (size_t i = 0; i < p.v.n && !code; i++) {
		code = live_process_check(p.v.v[i], err);
		if (code == -EUCLEAN) /* the surgeon takes out what is there */
			code = 0;
		if (!code)
			*vec_push(&a->v) = (struct live_process){.pid = p.v.v[i], .pidfd = -1};
	}
	vec_free(&p.v);
	return code;
}

int attached_take_time(struct attached *a, const char *text, struct err *err)
{
	if (!duration_parse(text, &a->for_ns) || !a->for_ns)
		return err_set(err, EINVAL, "--for: '%s' is not a time like 5s, 500ms or 2m", text);
	return 0;
}

/* ---- the recording ---- */

int attached_prepare(struct attached *a, struct err *err)
{
	return surgeon_start(&a->surgeon, err);
}

/* Its threads run on all at once, and each wants a chunk. */
static void make_room(struct collector *c, pid_t pid)
{
	struct process_stat stat;

	if (process_read_stat(pid, 0, &stat) && stat.threads > 1)
		grow_make_room(&c->grow, (uint64_t)stat.threads);
}

static int start_all(struct attached *a, struct collector *c, const char *entry, struct err *err)
{
	int code = 0;

	vec_for(&a->v, l) {
		if (code)
			break;
		make_room(c, l->pid);
		code = live_process_attach(l, &a->surgeon, &c->server, entry, err);
	}
	return code;
}

int attached_start(struct attached *a, struct collector *c, const char *runtime, struct err *err)
{
	char *value = collector_environment(c, runtime);
	char *entry = xasprintf(KRON_ENV_RT "=%s", value);
	int code;

	c->answerer.file_made = surgeon_take_file;
	c->answerer.file_ctx = &a->surgeon;
	for (size_t i = 0; i < a->v.n; i++) {
		a->v.v[i].children |= a->children;
		a->v.v[i].leaves = a->children;
		a->v.v[i].place = (unsigned)i;
		a->v.v[i].switches = a->switches;
	}
	if (!a->v.v[0].starts) /* a signal for the program that starts is the program's */
		a->surgeon.interrupt = child_open_signals_of_end();
	code = start_all(a, c, entry, err);
	if (a->surgeon.interrupt >= 0)
		close(a->surgeon.interrupt);
	a->surgeon.interrupt = -1;
	xfree(entry);
	xfree(value);
	return code;
}

struct launch {
	struct surgeon *surgeon;
	struct err *err;
	int code;
};

static void seize(void *ctx, pid_t pid)
{
	struct launch *l = ctx;

	l->code = surgeon_seize(l->surgeon, pid, l->err);
}

int attached_launch(struct attached *a, struct collector *c, const char *runtime,
		    struct child *child, const char *path, char *const *argv, struct err *err)
{
	struct launch l = {.surgeon = &a->surgeon, .err = err};
	int code;

	err->msg[0] = 0;
	code = child_start_seized(child, path, argv, environ, seize, &l);
	if (!l.code)
		l.code = surgeon_await_exec(&a->surgeon, err);
	if (code || l.code)
		return code;
	*vec_push(&a->v) = (struct live_process){
		.pid = child->pid, .pidfd = -1, .starts = true, .children = true};
	if (!attached_start(a, c, runtime, err))
		err->msg[0] = 0;
	else
		surgeon_release(&a->surgeon);
	return 0;
}

static bool is_over(const struct live_process *l)
{
	struct pollfd p = {.fd = l->pidfd, .events = POLLIN};

	return poll(&p, 1, 0) != 0;
}

static bool are_all_over(const struct attached *a)
{
	for (size_t i = 0; i < a->v.n; i++)
		if (!is_over(&a->v.v[i]))
			return false;
	return true;
}

/* Until the time is over, -1: it has no end; with a watch not longer than until that is to be asked again. */
static int left_ms(const struct attached *a, uint64_t start, const struct watch *watch)
{
	const uint64_t most = watch ? WATCH_MS : INT_MAX;
	uint64_t gone = clock_ns(CLOCK_MONOTONIC) - start;
	uint64_t left = a->for_ns > gone ? (a->for_ns - gone + 999999) / 1000000 : 0;

	if (!a->for_ns)
		return watch ? WATCH_MS : -1;
	return (int)(left < most ? left : most);
}

void attached_wait(struct attached *a, const struct watch *watch)
{
	const uint64_t start = clock_ns(CLOCK_MONOTONIC);
	struct signalfd_siginfo info;
	struct pollfd *p = xcalloc(a->v.n + 1, sizeof(*p));

	p[0] = (struct pollfd){.fd = child_open_signals_of_end(), .events = POLLIN};
	while (!a->signal && !are_all_over(a) && !watch_is_over(watch)) {
		const int left = left_ms(a, start, watch);

		for (size_t i = 0; i < a->v.n; i++)
			p[i + 1] = (struct pollfd){.fd = is_over(&a->v.v[i]) ? -1 : a->v.v[i].pidfd,
						   .events = POLLIN};
		if (!left)
			break;
		poll(p, a->v.n + 1, left);
		if (p[0].revents && read(p[0].fd, &info, sizeof(info)) == sizeof(info))
			a->signal = (int)info.ssi_signo;
	}
	close(p[0].fd);
	xfree(p);
}

void attached_stop(struct attached *a)
{
	struct err err;

	vec_for(&a->v, l) {
		if (!l->attached || l->detached || !live_process_detach(l, &a->surgeon, &err))
			continue;
		*vec_push(&a->errors) = err;
		if (!l->detached && !a->kept.msg[0])
			a->kept = err;
	}
}

void attached_free(struct attached *a)
{
	vec_for(&a->v, l)
		live_process_close(l);
	surgeon_end(&a->surgeon);
	vec_free(&a->v);
	vec_free(&a->errors);
}

/* ---- what is said of it ---- */

/* "process 12", "processes 12, 34": those that is_meant says of, by place; NULL: there is none. */
static char *names_of(const struct attached *a, const bool *is_meant)
{
	char *text = NULL;
	size_t n = 0;

	for (size_t i = 0; i < a->v.n; i++)
		n += is_meant[i];
	for (size_t i = 0; i < a->v.n; i++) {
		char *more;

		if (!is_meant[i])
			continue;
		more = text ? xasprintf("%s, %d", text, a->v.v[i].pid)
			    : xasprintf("process%s %d", n == 1 ? "" : "es", a->v.v[i].pid);
		xfree(text);
		text = more;
	}
	return text;
}

char *attached_names(const struct attached *a)
{
	bool *all = xmalloc(a->v.n + 1);
	char *names;

	memset(all, true, a->v.n);
	names = names_of(a, all);
	xfree(all);
	return names;
}

/* NULL: of none of them. */
static char *said_of(const struct attached *a, const bool *is_meant, const char *one,
		     const char *several)
{
	char *names = names_of(a, is_meant), *text;

	if (!names)
		return NULL;
	text = xasprintf("%s %s", names, strchr(names, ',') ? several : one);
	xfree(names);
	return text;
}

char *attached_outcome(const struct attached *a)
{
	bool *lives = xmalloc(a->v.n + 1), *ended = xmalloc(a->v.n + 1);
	char *first, *second, *text;

	for (size_t i = 0; i < a->v.n; i++) {
		ended[i] = is_over(&a->v.v[i]);
		lives[i] = !ended[i];
	}
	first = said_of(a, lives, "runs on as before", "run on as before");
	second = said_of(a, ended, "has ended", "have ended");
	text = first && second ? xasprintf("%s; %s", first, second)
			       : xstrdup(first ? first : second);
	xfree(first);
	xfree(second);
	xfree(lives);
	xfree(ended);
	return text;
}

const char *attached_unwatched(const struct attached *a)
{
	for (size_t i = 0; i < a->v.n; i++)
		if (a->v.v[i].unwatched.msg[0])
			return a->v.v[i].unwatched.msg;
	return NULL;
}

uint64_t attached_longest_stop_ns(const struct attached *a)
{
	uint64_t longest = a->changes_ns;

	for (size_t i = 0; i < a->v.n; i++) {
		const struct live_process *l = &a->v.v[i];

		longest = l->stood_ns > longest ? l->stood_ns : longest;
	}
	return longest;
}

void attached_note(const struct attached *a, struct journal *j)
{
	uint64_t sites = 0;
	bool detached = true;
	char *names = attached_names(a);

	for (size_t i = 0; i < a->v.n; i++) {
		sites += a->v.v[i].sites;
		detached = detached && a->v.v[i].detached;
	}
	journal_session(j, "attach_pids", "%s", strchr(names, ' ') + 1);
	journal_session(j, "attach_longest_stop_us", "%" PRIu64,
			attached_longest_stop_ns(a) / 1000);
	journal_session(j, "attach_sites", "%" PRIu64, sites);
	journal_session(j, "attach_detached", "%s", detached ? "yes" : "no");
	if (a->kept.msg[0])
		journal_session(j, "attach_kept", "%s", a->kept.msg);
	xfree(names);
}
