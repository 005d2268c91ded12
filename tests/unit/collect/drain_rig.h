/* SPDX-License-Identifier: MIT */
/* drain_rig.h - a segment with its collector's parts, and chunks and processes made by hand. */
#ifndef TESTS_DRAIN_RIG_H
#define TESTS_DRAIN_RIG_H

#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/vec.h"
#include "collect/drain.h"
#include "tests/unit/collect/base_folder.h"
#include "trace/reader.h"

struct recording { /* everything that a test needs */
	char *dir;
	/* Half a second ago.  Not near 0: the counter need not have begun with the machine. */
	uint64_t start_tsc;
	struct trace_writer *w;
	struct segment seg;
	struct journal journal;
	struct tasks tasks;
	struct drain drain;
};

static inline void board_open(struct recording *b, const char *name, enum kron_when_full when_full)
{
	struct segment_options o = {.buffer = 4 << 20, .when_full = when_full, .filter = 0xffff};
	struct err err = {{0}};
	struct time_point start;

	memset(b, 0, sizeof(*b));
	b->dir = xasprintf("%s/%s", base, name);
	if (trace_writer_create(&b->w, b->dir, &err) || segment_create(&b->seg, &o, &err))
		fail_msg("%s", err.msg);
	journal_init(&b->journal, b->w);
	journal_session(&b->journal, "segment", "%s", b->seg.name);
	time_point_take(&start);
	b->start_tsc = start.tsc - 1000000000;
	journal_session(&b->journal, "start_tsc", "%" PRIu64, b->start_tsc);
	journal_session(&b->journal, "start_mono_ns", "%" PRIu64, start.mono_ns - 500000000);
	tasks_init(&b->tasks, &b->seg, &b->journal);
	drain_init(&b->drain, &b->seg, &b->journal, &b->tasks);
	segment_set_sampling(&b->seg, true);
}

/* End of the collector; the segment stays if keep, as when it was killed. */
static inline void board_close(struct recording *b, bool keep)
{
	tasks_free(&b->tasks);
	trace_writer_close(b->w);
	if (!keep)
		segment_unlink(&b->seg);
	segment_close(&b->seg);
	xfree(b->dir);
}

static inline void slot_claim(struct recording *b, uint32_t slot, uint32_t uid, pid_t pid,
			      uint32_t flags)
{
	struct kron_proc *p = &b->seg.procs[slot];

	p->pid = pid;
	p->origin = KRON_PROC_EXEC;
	p->start_tsc = b->start_tsc + 2000;
	p->flags = flags;
	p->lost = 0;
	p->state = (uint64_t)uid << 8 | KRON_PROC_LIVE;
	b->seg.ctl->next_uid = uid + 1;
}

static inline struct kron_sample *samples_of(struct recording *b, uint32_t i)
{
	return (struct kron_sample *)(segment_chunk(&b->seg, i) + 1);
}

static inline void set_time(struct kron_sample *s, uint64_t tsc)
{
	s->head = KRON_HEAD_TRACE(0) | ((uint32_t)(tsc >> 32) & KRON_HEAD_TIME_MASK);
	s->time_lo = (uint32_t)tsc;
}

static inline void fill(struct recording *b, uint32_t i, uint32_t n)
{
	struct kron_chunk *c = segment_chunk(&b->seg, i);

	c->seq = b->seg.ctl->next_seq++;
	c->source = 77;
	for (uint32_t k = 0; k < n; k++) {
		samples_of(b, i)[k] = (struct kron_sample){.source = 77, .event = k};
		set_time(&samples_of(b, i)[k], b->start_tsc + 3000 + k);
	}
}

static inline void claim(struct recording *b, uint32_t i, unsigned state, uint32_t slot,
			 uint32_t uid, pid_t tid)
{
	assert_int_equal(b->seg.states[i], KRON_CHUNK_FREE);
	b->seg.states[i] = kron_chunk_word(state, (uint32_t)tid, slot, uid);
	b->seg.ctl->free_count--;
}

static inline unsigned state_of(const struct recording *b, uint32_t i)
{
	return kron_chunk_word_state(b->seg.states[i]);
}

static inline bool is_zero(struct recording *b, uint32_t i)
{
	const uint64_t *p = (const uint64_t *)segment_chunk(&b->seg, i);

	for (size_t k = 0; k < KRON_CHUNK_SIZE / 8; k++)
		if (p[k])
			return false;
	return true;
}

static inline pid_t start_sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	return pid;
}

static inline void end_sleeper(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static inline uint64_t samples_in(const char *dir)
{
	struct trace *t;
	struct err err;
	uint64_t n;

	assert_int_equal(trace_open(&t, dir, &err), 0);
	trace_count(t);
	n = t->samples;
	trace_close(t);
	return n;
}

#endif
