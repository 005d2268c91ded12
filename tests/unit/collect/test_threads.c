/* SPDX-License-Identifier: MIT */
/*
 * test_threads.c - a whole collector while others write its segment and ask it questions, all in
 * one process, so that a build with TSan (scripts/check-builds) sees both sides of what threads
 * and processes share: drain, grow, serve, journal, tasks; the board's chunks and counters.
 *
 * The writers keep the rules of kron/segment.h as the runtime does, in plain C.  What each of
 * them has triggered is the truth: samples in the trace + losses.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/vec.h"
#include "collect/collector.h"
#include "tests/unit/collect/base_folder.h"
#include "trace/reader.h"

#define WRITERS 3u
#define CLIENTS 3u
#define TRIGGERS (12u * KRON_CHUNK_SAMPLES + 100u)
#define UID 7u

/* ---- writers: the runtime's part ---- */

struct writer {
	struct segment *seg;
	uint64_t lost;
	uint32_t tid, left;
	struct kron_chunk *chunk;
	uint64_t *state;
};

static uint64_t word_of(const struct writer *w, enum kron_chunk_state state)
{
	return kron_chunk_word(state, w->tid, 0, UID);
}

static void put(struct writer *w, uint32_t event)
{
	struct kron_sample *s = (struct kron_sample *)(w->chunk + 1);

	s += KRON_CHUNK_SAMPLES - w->left--;
	s->time_lo = 1;
	s->source = w->tid;
	s->payload = event;
	s->event = event;
	__atomic_store_n(&s->head, KRON_HEAD_TRACE(0), __ATOMIC_RELEASE);
}

static void hand_over(struct writer *w)
{
	if (w->chunk)
		__atomic_store_n(w->state, word_of(w, KRON_CHUNK_FULL), __ATOMIC_RELEASE);
	w->chunk = NULL;
}

static bool take_chunk(struct writer *w)
{
	struct kron_ctl *ctl = w->seg->ctl;
	uint32_t ready = __atomic_load_n(&ctl->chunks_ready, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < ready; i++) {
		uint64_t word = __atomic_load_n(&w->seg->states[i], __ATOMIC_RELAXED);

		if (kron_chunk_word_state(word) != KRON_CHUNK_FREE ||
		    !__atomic_compare_exchange_n(&w->seg->states[i], &word,
						 word_of(w, KRON_CHUNK_OWNED), false,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		__atomic_sub_fetch(&ctl->free_count, 1, __ATOMIC_RELAXED);
		segment_wake_collector(w->seg);
		w->chunk = segment_chunk(w->seg, i);
		w->state = &w->seg->states[i];
		w->chunk->source = w->tid;
		__atomic_store_n(&w->chunk->seq,
				 __atomic_add_fetch(&ctl->next_seq, 1, __ATOMIC_RELAXED),
				 __ATOMIC_RELEASE);
		w->left = KRON_CHUNK_SAMPLES;
		put(w, KRON_EVENT_CPU);
		return true;
	}
	return false;
}

static void *writer_thread(void *arg)
{
	struct writer *w = arg;

	w->tid = (uint32_t)gettid();
	for (uint32_t i = 0; i < TRIGGERS; i++) {
		if (!w->chunk && !take_chunk(w)) {
			__atomic_add_fetch(&w->seg->procs[0].lost, 1, __ATOMIC_RELAXED);
			w->lost++;
			continue;
		}
		put(w, 2 * i);
		if (!w->left)
			hand_over(w);
	}
	return NULL; /* what is left is in a chunk whose owner is dead */
}

/* ---- clients: they have the token, and say so ---- */

struct client {
	const struct server *server;
	int answers;
};

static int ask(const struct server *s, uint32_t kind)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct kron_hello h = {
		.magic = KRON_WIRE_MAGIC,
		.version = KRON_WIRE_VERSION,
		.kind = kind,
		.thunk = {[KRON_THUNK_LANE] = (uintptr_t)
				  ask}, /* so the executable is the runtime: not to be planned */
		.hook_thunk = (uintptr_t)ask,
		.proc_uid = UID,
	};
	struct kron_result result = {
		.magic = KRON_WIRE_MAGIC, .kind = KRON_RESULT_END, .groups_refused = 1};
	struct kron_reply reply = {0};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ssize_t n = 0;

	memcpy(h.session, s->session, sizeof(h.session));
	memcpy(addr.sun_path + 1, s->name, strlen(s->name));
	if (!connect(fd, (struct sockaddr *)&addr,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(s->name))) &&
	    send(fd, &h, sizeof(h), MSG_NOSIGNAL) == sizeof(h)) {
		do /* descriptors that come with it are closed unseen */
			n = recv(fd, &reply, sizeof(reply), 0);
		while (n == sizeof(reply) && reply.kind == KRON_MSG_WORKING);
		send(fd, &result, sizeof(result), MSG_NOSIGNAL);
	}
	close(fd);
	return n == sizeof(reply) && reply.kind == KRON_MSG_REPLY;
}

static void *client_thread(void *arg)
{
	struct client *c = arg;

	c->answers += ask(c->server, KRON_HELLO_START);
	c->answers += ask(c->server, KRON_HELLO_MODULES);
	return NULL;
}

/* ---- together ---- */

static void slot_claim(struct segment *seg)
{
	struct kron_proc *p = &seg->procs[0];

	p->pid = getpid();
	p->origin = KRON_PROC_EXEC;
	p->start_tsc = 1;
	__atomic_store_n(&seg->ctl->next_uid, UID + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&p->state, (uint64_t)UID << 8 | KRON_PROC_LIVE, __ATOMIC_RELEASE);
}

static void record(enum kron_when_full when_full, const char *name)
{
	struct collector_options opt = {.dir = xasprintf("%s/%s", base, name),
					.command = "nothing",
					.version = "0",
					.buffer = 2 << 20,
					.when_full = when_full,
					.filter = 0xffff};
	static struct collector collector;
	struct collector_summary sum;
	struct writer writers[WRITERS] = {0};
	struct client clients[CLIENTS] = {0};
	pthread_t wt[WRITERS], ct[CLIENTS];
	uint64_t lost = 0;
	struct trace *t;
	struct err err = {{0}};

	if (collector_open(&collector, &opt, &err))
		fail_msg("%s", err.msg);
	slot_claim(&collector.seg);
	for (uint32_t i = 0; i < CLIENTS; i++) {
		clients[i].server = &collector.server;
		pthread_create(&ct[i], NULL, client_thread, &clients[i]);
	}
	for (uint32_t i = 0; i < WRITERS; i++) {
		writers[i].seg = &collector.seg;
		pthread_create(&wt[i], NULL, writer_thread, &writers[i]);
	}
	for (int i = 0; i < 20; i++) { /* as `kron ctl` would */
		segment_set_sampling(&collector.seg, i & 1);
		usleep(500);
	}
	for (uint32_t i = 0; i < WRITERS; i++) {
		pthread_join(wt[i], NULL);
		lost += writers[i].lost;
	}
	for (uint32_t i = 0; i < CLIENTS; i++)
		pthread_join(ct[i], NULL);
	collector_finish(&collector, &(struct collector_end){.how = "exited 0"}, &sum);
	assert_string_equal(sum.error.msg, "");
	assert_int_equal(sum.lost, lost);
	assert_int_equal(sum.samples + lost, (uint64_t)WRITERS * TRIGGERS);
	for (uint32_t i = 0; i < CLIENTS; i++)
		assert_int_equal(clients[i].answers, 2);
	collector_free(&collector);

	assert_int_equal(trace_open(&t, opt.dir, &err), 0);
	trace_count(t);
	assert_int_equal(t->samples, sum.samples);
	trace_close(t);
	xfree((char *)opt.dir);
}

static void all_is_recorded_or_counted(void **state)
{
	(void)state;
	record(KRON_WHEN_FULL_DISCARD, "discard");
}

/* Cut short: whoever asks when the recording ends gets no answer, and nothing hangs. */
static void the_end_comes_in_between(void **state)
{
	struct collector_options opt = {.dir = xasprintf("%s/short", base),
					.command = "nothing",
					.version = "0",
					.buffer = 2 << 20,
					.filter = 0xffff};
	static struct collector collector;
	struct client clients[CLIENTS] = {0};
	struct collector_summary sum;
	pthread_t ct[CLIENTS];
	struct err err = {{0}};

	(void)state;
	if (collector_open(&collector, &opt, &err))
		fail_msg("%s", err.msg);
	for (uint32_t i = 0; i < CLIENTS; i++) {
		clients[i].server = &collector.server;
		pthread_create(&ct[i], NULL, client_thread, &clients[i]);
	}
	collector_finish(&collector, &(struct collector_end){.how = "exited 0"}, &sum);
	for (uint32_t i = 0; i < CLIENTS; i++)
		pthread_join(ct[i], NULL);
	assert_string_equal(sum.error.msg, "");
	collector_free(&collector);
	xfree((char *)opt.dir);
}

static int make_base_and_cache(void **state)
{
	char *cache;

	if (make_base(state))
		return -1;
	cache = xasprintf("%s/cache", base);
	setenv("XDG_CACHE_HOME", cache, 1);
	xfree(cache);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_is_recorded_or_counted),
		cmocka_unit_test(the_end_comes_in_between),
	};

	return cmocka_run_group_tests(tests, make_base_and_cache, remove_base);
}
