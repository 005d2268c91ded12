/* SPDX-License-Identifier: MIT */
/* ends.c - see ends.h. */
#define _GNU_SOURCE
#include "collect/kernel/ends.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

#define AT_ONCE 64
#define OTHERS 256u /* descriptors that the collector needs for its work */
#define LIMIT (1u << 20)
#define EXITS 16384u

void ends_init(struct ends *e)
{
	struct rlimit files;

	memset(e, 0, sizeof(*e));
	e->fd = epoll_create1(EPOLL_CLOEXEC);
	if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur > OTHERS)
		e->limit =
			(uint32_t)((files.rlim_cur < LIMIT ? files.rlim_cur : LIMIT) - OTHERS) / 2;
}

void ends_free(struct ends *e)
{
	vec_for(&e->v, p)
		if (p->fd >= 0)
			close(p->fd);
	vec_free(&e->v);
	xfree(e->exits);
	e->exits = NULL;
	if (e->fd >= 0)
		close(e->fd);
	e->fd = -1;
}

static uint32_t take_place(struct ends *e)
{
	uint32_t id = e->unused;

	if (id) {
		e->unused = e->v.v[id - 1].next;
		return id;
	}
	vec_push(&e->v);
	return (uint32_t)e->v.n;
}

/* Out of the epoll by hand: a process that we forked may have the descriptor, too. */
static void close_it(struct ends *e, struct ends_process *p)
{
	if (p->fd < 0)
		return;
	epoll_ctl(e->fd, EPOLL_CTL_DEL, p->fd, NULL);
	close(p->fd);
	p->fd = -1;
	e->open--;
}

void ends_forget(struct ends *e, uint32_t id)
{
	struct ends_process *p;

	if (!id)
		return;
	p = &e->v.v[id - 1];
	close_it(e, p);
	p->next = e->unused;
	e->unused = id;
}

uint32_t ends_watch(struct ends *e, pid_t pid)
{
	struct epoll_event event = {.events = EPOLLIN};
	uint32_t id;
	long fd;

	if (e->fd < 0 || e->open >= e->limit)
		return 0;
	fd = syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return 0;
	id = take_place(e);
	e->v.v[id - 1] = (struct ends_process){.fd = (int)fd};
	e->open++;
	event.data.u32 = id;
	if (epoll_ctl(e->fd, EPOLL_CTL_ADD, (int)fd, &event)) {
		ends_forget(e, id);
		return 0;
	}
	return id;
}

void ends_look(struct ends *e)
{
	struct epoll_event events[AT_ONCE];
	int n;

	do {
		uint64_t now;

		n = e->fd < 0 ? 0 : epoll_wait(e->fd, events, AT_ONCE, 0);
		now = clock_tsc();
		for (int i = 0; i < n; i++) {
			struct ends_process *p = &e->v.v[events[i].data.u32 - 1];

			p->tsc = now;
			close_it(e, p);
		}
	} while (n == AT_ONCE);
}

uint64_t ends_when(const struct ends *e, uint32_t id)
{
	return e->v.v[id - 1].tsc;
}

void ends_expect_exits(struct ends *e)
{
	if (!e->exits)
		e->exits = xcalloc(EXITS, sizeof(*e->exits));
}

static void note_exit(struct ends_exit *x, pid_t pid, uint64_t ticks)
{
	if (x->pid != pid || x->ticks < ticks)
		*x = (struct ends_exit){pid, ticks};
}

void ends_note_exit(struct ends *e, pid_t pid, pid_t tid, uint64_t ticks)
{
	note_exit(&e->exits[(uint32_t)pid % EXITS].process, pid, ticks);
	note_exit(&e->exits[(uint32_t)tid % EXITS].thread, tid, ticks);
}

uint64_t ends_exit_of(const struct ends *e, pid_t pid, uint64_t since)
{
	const struct ends_exit *x = e->exits ? &e->exits[(uint32_t)pid % EXITS].process : NULL;

	return x && x->pid == pid && x->ticks > since ? x->ticks : 0;
}

uint64_t ends_thread_exit_of(const struct ends *e, pid_t tid)
{
	const struct ends_exit *x = e->exits ? &e->exits[(uint32_t)tid % EXITS].thread : NULL;

	return x && x->pid == tid ? x->ticks : 0;
}
