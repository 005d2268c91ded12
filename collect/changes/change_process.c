/* SPDX-License-Identifier: MIT */
/*
 * change_process.c - see change_process.h.
 *
 *   maps ─► plan, bind (it runs) ─► stop ─► its runtime applies ─► threads into stubs ─► go
 *
 * A stopped thread hands the commands to the runtime, as if the process had asked for them.  The question that
 * it once asked says where its runtime is called and which thunks its probes use; the blocks of this session
 * in its memory say which question that was.  That holds for forked children as well.
 */
#define _GNU_SOURCE
#include "collect/changes/change_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collect/attach/semaphores.h"
#include "collect/attach/serve_change.h"
#include "collect/kernel/memory_sharing.h"
#include "collect/live/live.h"

#define TRIES 200u
#define TRIES_REFUSED 3u
#define PAUSE_NS 5000000

/* ---- may we? ---- */

/* A child of vfork runs in its parent's memory, where all is done by way of the parent. */
static bool has_own_memory(pid_t pid)
{
	struct process_stat st;

	return !process_read_stat(pid, 0, &st) || !memory_is_same(pid, st.ppid);
}

static bool find_question(const struct change_process *p, struct question *q)
{
	struct process_maps maps;
	bool found;

	if (process_maps_read(&maps, p->pid, NULL))
		return false;
	found = answer_find_question(p->server->answerer, &maps, q);
	process_maps_free(&maps);
	return found;
}

bool change_process_is_ours(const struct change_process *p)
{
	struct question q;

	return p->pid != getpid() && find_question(p, &q) && has_own_memory(p->pid);
}

uint64_t change_process_places(const struct change_process *p)
{
	struct process_maps maps;
	uint64_t n;

	if (process_maps_read(&maps, p->pid, NULL))
		return 0;
	n = answer_count_probes(p->of, &maps);
	process_maps_free(&maps);
	return n;
}

/* ---- one stop ---- */

struct step {
	const struct answer *answer;
	int sock;
	uint32_t applied;
};

static int give_answer(void *ctx, int sock, struct err *err)
{
	struct step *s = ctx;

	s->sock = sock;
	return serve_change_reply(s->answer, sock, err);
}

static int settle(void *ctx, struct err *err)
{
	struct step *s = ctx;

	return serve_change_settle(s->answer, s->sock, &s->applied, err);
}

static int stop_and_apply(struct change_process *p, const struct question *q,
			  const struct answer *a, uint32_t *applied, struct err *err)
{
	struct surgeon_job job = {
		.pid = p->pid, .session = p->of->session, .implant = {.entry = q->entry}};
	struct step s = {.answer = a, .sock = -1};
	const struct operation_steps steps = {&s, give_answer, settle};
	struct process_stat st;
	int code;

	if (!answer_find_preempt(a, &job.go_lo, &job.go_hi))
		return err_set(err, ENOTSUP,
			       "process %d is a Go program without the names of its functions: its "
			       "probes can be given at the start only",
			       p->pid);
	job.started = process_read_stat(p->pid, 0, &st) ? st.starttime : 0;
	code = surgeon_change(p->surgeon, &job, &steps, &p->stood_ns, err);
	if (s.sock >= 0)
		close(s.sock);
	*applied = s.applied;
	return code;
}

/*
 * What was refused may have been planned for a library that came, or went, before it was stopped.  One that
 * executes another program has no memory of ours for a moment (-ESRCH), and then what it asked for at its start.
 */
static bool is_to_be_tried(const struct change_process *p, unsigned i, int code)
{
	return (i < TRIES && code == -EAGAIN) || (i < TRIES_REFUSED && code == -EBUSY) ||
	       (i < TRIES && code == -ESRCH && change_process_is_ours(p));
}

static void wait_a_little(void)
{
	const struct timespec ts = {.tv_nsec = PAUSE_NS};

	nanosleep(&ts, NULL);
}

static int try_again_and_again(struct change_process *p,
			       int (*try)(struct change_process *p, uint32_t again,
					  struct err *err),
			       struct err *err)
{
	int code = -EAGAIN;

	for (uint32_t i = 0; is_to_be_tried(p, i, code); i++) {
		if (i)
			wait_a_little();
		code = try(p, i < KRON_AGAIN_MAX ? i : KRON_AGAIN_MAX, err);
	}
	return code;
}

static int take_question(struct change_process *p, struct question *q, struct err *err)
{
	if (!find_question(p, q))
		return err_set(err, ESRCH, "process %d is not of this recording any more", p->pid);
	if (!q->entry)
		return err_set(
			err, ENOTSUP,
			"process %d has the runtime of `kron patch`: its probes are in its file",
			p->pid);
	return live_process_check_stop(p->pid, err);
}

/* ---- out ---- */

/* Blocks of probes that were removed earlier may still be mapped: they are not this change's. */
static bool is_of_files(const struct change_process *p, uint64_t number)
{
	bool found = false;

	pthread_mutex_lock(&p->files->lock);
	for (size_t i = 0; i < p->files->v.n; i++)
		found = found || p->files->v.v[i].number == number;
	pthread_mutex_unlock(&p->files->lock);
	return found;
}

/* Its semaphores, where a block of this change is; file: of this command file, 0: of any. */
static void step_semaphores(struct change_process *p, const struct process_maps *maps, int step,
			    uint64_t file)
{
	int pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	struct answerer *a = p->of;
	uint64_t number;

	for (size_t i = 0; i < maps->n; i++) {
		if (!process_mapping_is_block(&maps->v[i], a->session, &number) ||
		    !is_of_files(p, number) || (file && number != file))
			continue;
		vec_for(&a->blocks, b) {
			if (b->number != number || b->off != maps->v[i].off || b->is_table)
				continue;
			vec_for(&a->modules->all, m) {
				const struct resolution *found = &(*m)->probes.found;

				if ((*m)->maps_dev == b->dev && (*m)->file.ino == b->ino)
					semaphores_change(p->pid, pidfd, b->bias,
							  found->semaphores.v, found->semaphores.n,
							  step, NULL);
			}
		}
	}
	if (pidfd >= 0)
		close(pidfd);
}

/* What a change of running code starts from. */
struct ground {
	struct question q;
	struct process_maps maps;
	int mem; /* /proc/PID/mem */
};

static int open_memory(pid_t pid, struct err *err)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", process_memory_thread(pid));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, errno, "cannot reach the memory of process %d: %s", pid,
			       strerror(errno));
	return fd;
}

static int open_ground(struct ground *g, struct change_process *p, struct err *err)
{
	int code = take_question(p, &g->q, err);

	if (code)
		return code;
	g->mem = open_memory(p->pid, err);
	if (g->mem < 0)
		return g->mem;
	code = process_maps_read(&g->maps, p->pid, err);
	if (code)
		close(g->mem);
	return code;
}

static void close_ground(struct ground *g)
{
	process_maps_free(&g->maps);
	close(g->mem);
}

/* 1: the process has none of these probes. */
static int try_to_remove(struct change_process *p, uint32_t again, struct err *err)
{
	struct answer a = {.fd = -1};
	struct ground g;
	uint32_t applied = 0;
	int code = open_ground(&g, p, err);

	(void)again;
	if (code)
		return code;
	code = retire_make(&a, &g.maps, p->of->session, g.mem, p->files->v.v, p->files->v.n, err);
	a.pid = p->pid;
	if (!code)
		code = a.fd < 0 ? 1 : stop_and_apply(p, &g.q, &a, &applied, err);
	if (!code && !p->takes_back)
		step_semaphores(p, &g.maps, -1, 0);
	close_ground(&g);
	answer_free(&a);
	return code;
}

int change_process_remove(struct change_process *p, struct err *err)
{
	int code = try_again_and_again(p, try_to_remove, err);

	if (code == -EAGAIN)
		return err_set(err, EAGAIN, "process %d loads libraries all the time", p->pid);
	if (code == 1 || !change_process_is_ours(p)) /* it has ended, or executed another program */
		return 0;
	return code;
}

/* ---- asleep, and awake ---- */

static int try_to_sleep(struct change_process *p, uint32_t again, struct err *err)
{
	struct answer a = {.fd = -1};
	struct ground g;
	uint32_t applied = 0;
	int code = open_ground(&g, p, err);

	(void)again;
	if (code)
		return code;
	code = asleep_make(&a, p->of, &g.maps, g.mem, err);
	a.pid = p->pid;
	if (!code && a.fd >= 0)
		code = stop_and_apply(p, &g.q, &a, &applied, err);
	close_ground(&g);
	answer_free(&a);
	return code;
}

int change_process_sleep(struct change_process *p, struct err *err)
{
	int code = try_again_and_again(p, try_to_sleep, err);

	return code && !change_process_is_ours(p) ? 0 : code;
}

/* ---- in ---- */

static void raise_semaphores(struct change_process *p, uint64_t file)
{
	struct process_maps maps;

	if (process_maps_read(&maps, p->pid, NULL))
		return;
	step_semaphores(p, &maps, 1, file);
	process_maps_free(&maps);
}

/* What this process is to be given: answer_free() is due if that is 0. */
static int make_answer(struct change_process *p, struct question *q, uint32_t again,
		       struct answer *out, struct err *err)
{
	int code = take_question(p, q, err);

	return code ? code : serve_change_make(out, p->server, p->of, p->pid, q, again, err);
}

/* A probe comes as a whole or not at all; of functions, those of other modules come. */
static int check_notes(struct change_process *p, const struct answer *a, struct err *err)
{
	if (!a->notes.n)
		return 0;
	if (p->of->selection->probes_only || a->fd < 0)
		return err_set(err, ENOTSUP, "%s", a->notes.v[0].err.msg);
	for (size_t i = 0; i < a->notes.n; i++)
		server_note_untraced(p->server, p->pid, a->notes.v[i].module,
				     a->notes.v[i].err.msg);
	return 0;
}

static int try_to_add(struct change_process *p, uint32_t again, struct err *err)
{
	uint32_t applied = 0;
	struct question q;
	struct answer a;
	int code = make_answer(p, &q, again, &a, err);

	if (code)
		return code;
	code = check_notes(p, &a, err);
	if (!code && a.fd >= 0)
		code = stop_and_apply(p, &q, &a, &applied, err);
	if (!code && a.fd >= 0) {
		p->probes += a.probes;
		raise_semaphores(p, a.number);
	}
	answer_free(&a);
	if (code && applied) { /* some of its modules have them */
		struct err other;

		p->takes_back = true;
		change_process_remove(p, &other);
		p->takes_back = false;
	}
	return code;
}

int change_process_add(struct change_process *p, struct err *err)
{
	int code = try_again_and_again(p, try_to_add, err);

	if (code && !change_process_is_ours(p))
		return 0;
	return code;
}

/* ---- what was left out at first ---- */

/* What is refused is noted, and no reason to be without the rest. */
static int try_to_catch_up(struct change_process *p, uint32_t again, struct err *err)
{
	uint32_t applied = 0;
	struct question q;
	struct answer a;
	int code = make_answer(p, &q, again, &a, err);

	if (code)
		return code;
	vec_for(&a.notes, n)
		server_note_untraced(p->server, p->pid, n->module, n->err.msg);
	if (a.fd >= 0)
		code = stop_and_apply(p, &q, &a, &applied, err);
	if (!code || applied)
		p->probes += a.probes;
	answer_free(&a);
	return code;
}

int change_process_catch_up(struct change_process *p, struct err *err)
{
	int code = try_again_and_again(p, try_to_catch_up, err);

	if (code && change_process_is_ours(p))
		server_note_untraced(p->server, p->pid, NULL, err->msg);
	return 0;
}
