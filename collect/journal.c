/* SPDX-License-Identifier: MIT */
/* journal.c - see journal.h */
#include "collect/journal.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

void journal_init(struct journal *j, struct trace_writer *w)
{
	j->w = w;
	j->error = 0;
	j->unread = false;
	memset(&j->quota, 0, sizeof(j->quota));
	pthread_mutex_init(&j->lock, NULL);
}

int journal_note(struct journal *j, int code)
{
	if (j->unread)
		return 0;
	if (code < 0 && !j->error)
		__atomic_store_n(&j->error, code, __ATOMIC_RELEASE);
	return code;
}

void journal_lock(struct journal *j)
{
	pthread_mutex_lock(&j->lock);
}

void journal_unlock(struct journal *j)
{
	pthread_mutex_unlock(&j->lock);
}

int journal_unlock_with(struct journal *j, int code)
{
	journal_unlock(j);
	return code;
}

int journal_chunk(struct journal *j, const struct trace_chunk *head, const void *samples)
{
	int code;

	journal_lock(j);
	code = j->error ? j->error : journal_note(j, trace_writer_chunk(j->w, head, samples));
	journal_unlock(j);
	return code;
}

bool journal_stage(struct journal *j, const struct trace_chunk *head, const void *samples)
{
	return trace_writer_stage(j->w, head, samples);
}

int journal_commit(struct journal *j, bool may_fail)
{
	int code;

	journal_lock(j);
	code = j->error ? j->error : trace_writer_commit(j->w);
	if (!may_fail)
		journal_note(j, code);
	journal_unlock(j);
	return code;
}

/* Without them a trace is whole: their failure is nobody else's. */
int journal_switches(struct journal *j, const struct trace_switch *v, size_t n)
{
	int code;

	journal_lock(j);
	code = j->error ? j->error : trace_writer_switches(j->w, v, n);
	journal_unlock(j);
	return code;
}

int journal_flush(struct journal *j)
{
	int code;

	journal_lock(j);
	code = j->error ? j->error : journal_note(j, trace_writer_flush(j->w));
	journal_unlock(j);
	return code;
}

bool journal_has_room(struct journal *j, pid_t pid)
{
	uint32_t second = (uint32_t)(clock_ms(CLOCK_MONOTONIC_COARSE) / 1000);
	bool has;

	journal_lock(j);
	has = quota_take(&j->quota, pid, second);
	journal_unlock(j);
	return has;
}

void journal_make_room(struct journal *j)
{
	journal_lock(j);
	quota_undo(&j->quota);
	journal_unlock(j);
}

uint64_t journal_left_out(struct journal *j)
{
	uint64_t n;

	journal_lock(j);
	n = j->quota.left_out;
	journal_unlock(j);
	return n;
}

int journal_session(struct journal *j, const char *key, const char *fmt, ...)
{
	char text[4096];
	va_list ap;
	int code;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	journal_lock(j);
	code = trace_writer_session(j->w, key, "%s", text);
	if (!j->error)
		journal_note(j, code);
	journal_unlock(j);
	return code;
}

void journal_probe_cost(struct journal *j, const struct probe_cost *c)
{
	journal_session(j, "probe_ns", "%.2f", c->on);
	journal_session(j, "probe_ns_limit", "%.2f", c->limit);
	journal_session(j, "probe_ns_off", "%.2f", c->off);
}
