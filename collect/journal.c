/* SPDX-License-Identifier: MIT */
/* journal.c - see journal.h */
#include "collect/journal.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

void journal_init(struct journal *j, struct trace_writer *w)
{
	j->w = w;
	j->error = 0;
	j->tables = 0;
	memset(&j->quota, 0, sizeof(j->quota));
	pthread_mutex_init(&j->lock, NULL);
}

static int note_result(struct journal *j, int code)
{
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

int journal_line_locked(struct journal *j, const char *file, const char *const *fields, size_t n)
{
	if (j->error)
		return j->error;
	if (!strcmp(file, "functions") || !strcmp(file, "events") || !strcmp(file, "modules") ||
	    !strcmp(file, "jumps"))
		__atomic_fetch_add(&j->tables, 1, __ATOMIC_RELEASE);
	return note_result(j, trace_writer_line(j->w, file, fields, n));
}

int journal_line(struct journal *j, const char *file, const char *const *fields, size_t n)
{
	int code;

	journal_lock(j);
	code = journal_line_locked(j, file, fields, n);
	journal_unlock(j);
	return code;
}

int journal_chunk(struct journal *j, const struct trace_chunk *head, const void *samples)
{
	int code;

	journal_lock(j);
	code = j->error ? j->error : note_result(j, trace_writer_chunk(j->w, head, samples));
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
		note_result(j, code);
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
	code = j->error ? j->error : note_result(j, trace_writer_flush(j->w));
	journal_unlock(j);
	return code;
}

bool journal_has_room(struct journal *j, pid_t pid)
{
	struct timespec ts;
	bool has;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	journal_lock(j);
	has = quota_take(&j->quota, pid, (uint32_t)ts.tv_sec);
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
		note_result(j, code);
	journal_unlock(j);
	return code;
}
