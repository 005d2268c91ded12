/* SPDX-License-Identifier: MIT */
/*
 * journal.h - the trace writer, shared by the collector's threads, with a memory for the first
 * failure: after it (disk full) nothing more is appended, so that what is in the directory
 * stays consistent and what is not stays in the segment.
 */
#ifndef COLLECT_JOURNAL_H
#define COLLECT_JOURNAL_H

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "collect/calibrate.h"
#include "collect/quota.h"
#include "trace/writer.h"

struct journal {
	struct trace_writer *w;
	pthread_mutex_t lock;
	int error;   /* first failure, -errno, 0 = none; atomic */
	bool unread; /* nobody will read the trace: no table is written, and nothing fails */
	struct quota quota;
};

void journal_init(struct journal *j, struct trace_writer *w);
static inline int journal_error(struct journal *j)
{
	return __atomic_load_n(&j->error, __ATOMIC_ACQUIRE);
}

/*
 * A line of a table: journal_put(j, trace_writer_module, &line).  With journal_put_locked() many of
 * them, of one table or more, come without another thread's between them.
 * Each, and each of the following: 0 or -errno, also when an earlier call failed.
 */
#define journal_put_locked(j, call, line) \
	((j)->error || (j)->unread ? (j)->error : journal_note((j), call((j)->w, (line))))
#define journal_put(j, call, line) \
	(journal_lock(j), journal_unlock_with((j), journal_put_locked(j, call, line)))
void journal_lock(struct journal *j);
void journal_unlock(struct journal *j);
int journal_unlock_with(struct journal *j, int code); /* code */
int journal_note(struct journal *j, int code);        /* code; < 0: a failure */
int journal_chunk(struct journal *j, const struct trace_chunk *head, const void *samples);
/* Of the drain thread only: trace_writer_stage(), trace_writer_commit().  A commit that may fail
 * leaves no failure behind: the chunks come again, one by one. */
bool journal_stage(struct journal *j, const struct trace_chunk *head, const void *samples);
int journal_commit(struct journal *j, bool may_fail);
int journal_switches(struct journal *j, const struct trace_switch *v, size_t n);
int journal_flush(struct journal *j);
/* May a line be written that this process (0: several) could have had made without end? */
bool journal_has_room(struct journal *j, pid_t pid);
/* There was none, and it is written all the same. */
void journal_make_room(struct journal *j);
/* Lines that there was no room for. */
uint64_t journal_left_out(struct journal *j);
/* Tried even after a failure: a short line may still fit on a full disk. */
int journal_session(struct journal *j, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void journal_probe_cost(struct journal *j, const struct probe_cost *c);

#endif
