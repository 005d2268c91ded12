/* SPDX-License-Identifier: MIT */
/*
 * ask.c - which recording counts a process, and what it says.
 *
 *   /proc/PID/maps ─► the board's memory, which a traced process maps ─► its name ─► recorder, by what
 *   the kernel says ─► its socket ─► counts
 *
 * The number of the recording stands in memory that traced processes may write to.  It only leads to the
 * socket: who listens there must be the recorder.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "board/bus/asking.h"
#include "board/bus/object.h"
#include "board/librefcnt/impl.h"

#define LIMIT_S 30
#define LINE 512

/* ---- the board ---- */

/* What a line of /proc/PID/maps names, as object_open() takes it. */
static bool object_in_line(char *line, char object[OBJECT_NAME])
{
	static const char memory[] = "/memfd:", deleted[] = " (deleted)\n";
	uint64_t offset;
	char *name = strchr(line, '/');

	if (!name || sscanf(line, "%*x-%*x %*s %" SCNx64, &offset) != 1 || offset < KRON_CTL_OFFSET)
		return false;
	if (!strncmp(name, memory, strlen(memory))) {
		name += strlen(memory) - 1;
		*name = '/';
		if (strlen(name) > strlen(deleted) &&
		    !strcmp(name + strlen(name) - strlen(deleted), deleted))
			name[strlen(name) - strlen(deleted)] = 0;
		return strlen(name) < OBJECT_NAME && object_is_recorders_own(name) &&
		       strcpy(object, name);
	}
	name[strcspn(name, "\n")] = 0;
	if (strncmp(name, OBJECT_DIR "/kron-board.", strlen(OBJECT_DIR "/kron-board.")) ||
	    strlen(name + strlen(OBJECT_DIR)) >= OBJECT_NAME)
		return false;
	strcpy(object, name + strlen(OBJECT_DIR));
	return true;
}

static int find_object(pid_t pid, char object[OBJECT_NAME])
{
	char path[64], line[LINE];
	bool found = false;
	FILE *f;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	else
		strcpy(path, "/proc/self/maps");
	f = fopen(path, "re");
	if (!f)
		return rc_fail(errno == ENOENT ? ESRCH : errno, "cannot read %s: %s", path,
			       strerror(errno));
	while (!found && fgets(line, sizeof(line), f))
		found = object_in_line(line, object);
	fclose(f);
	return found ? 0 : rc_fail(ESRCH, "kron does not trace the process");
}

struct recorder {
	uint64_t recording;
	pid_t pid;
};

static int find_recorder(pid_t pid, struct recorder *out)
{
	char name[OBJECT_NAME];
	struct object_recorder r;
	struct object o;
	struct window w;
	struct err err;
	int code = find_object(pid, name);

	if (code)
		return code;
	code = object_open(name, name + 1, &o, &err);
	if (code)
		return rc_fail(-code, "%s", err.msg);
	code = object_map_checked(o.fd, name + 1, &w, &err);
	if (code) {
		object_close(&o);
		return rc_fail(-code, "%s", err.msg);
	}
	object_find_recorder(&o, w.board.ctl, &r);
	out->recording = __atomic_load_n(&object_note(w.board.ctl)->recording, __ATOMIC_RELAXED);
	out->pid = r.killed ? 0 : r.pid;
	object_unmap(&w);
	object_close(&o);
	return out->pid ? 0 : rc_fail(ECONNREFUSED, "the recording of the process has ended");
}

/* Is it in our pid namespace, so that a number means the same process there? */
static bool has_our_pids(pid_t pid)
{
	struct stat ours, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	return !stat("/proc/self/ns/pid", &ours) && !stat(path, &theirs) &&
	       ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

/* ---- the socket ---- */

static int connect_to(const struct recorder *to)
{
	const struct timeval limit = {.tv_sec = LIMIT_S};
	const int fd = asking_connect(to->recording, to->pid);

	if (fd == -ECONNREFUSED)
		return rc_fail(
			ECONNREFUSED,
			"kron does not answer: it still starts, or ends, or lives in another "
			"network namespace");
	if (fd < 0)
		return rc_fail(-fd, "cannot ask the kron record: %s", strerror(-fd));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (object_is_recorder(fd, to->pid))
		return fd;
	close(fd);
	return rc_fail(EACCES, "another process has taken the recorder's place");
}

static int fail_as(int code)
{
	switch (code) {
	case -ENOTSUP:
		return rc_fail(ENOTSUP, "the recording counts no pages: `kron pages` does");
	case -ESRCH:
		return rc_fail(ESRCH, "the recording does not know the process");
	default:
		return rc_fail(-code, "the recorder cannot tell: %s", strerror(-code));
	}
}

/* A message that makes sense: the pages lie in the range and ascend. */
static bool is_whole(const struct kron_control_counts *m, ssize_t n, uint64_t start, uint64_t end)
{
	const ssize_t head = offsetof(struct kron_control_counts, v);

	if (n < head || m->code > 0 || m->n > KRON_CONTROL_COUNTS ||
	    n != head + (ssize_t)(m->n * sizeof(m->v[0])))
		return false;
	for (uint32_t i = 0; i < m->n; i++) {
		const int node = m->v[i].node;

		if (m->v[i].address < start || m->v[i].address >= end || node < -1 ||
		    node >= SN0_REFCNT_MAX_COUNTERS)
			return false;
		start = m->v[i].address; /* once for each node */
	}
	return m->nodes >= 1 && m->nodes <= SN0_REFCNT_MAX_COUNTERS;
}

static int receive(int fd, uint64_t start, uint64_t end, struct rc_counts *out)
{
	struct kron_control_counts *m = malloc(sizeof(*m));
	int code = m ? 0 : rc_fail(ENOMEM, "no memory");

	for (bool more = true; !code && more;) {
		ssize_t n = recv(fd, m, sizeof(*m), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || !is_whole(m, n, start, end))
			code = rc_fail(EPIPE, "the recorder has ended meanwhile");
		else if (m->code)
			code = fail_as(m->code);
		for (uint32_t i = 0; !code && i < m->n; i++)
			code = rc_push(out, &m->v[i]);
		if (!code && m->n)
			start = m->v[m->n - 1].address;
		if (!code) {
			out->nodes = m->nodes;
			out->absolute = m->absolute;
			out->differential = m->differential;
		}
		more = !code && m->more;
	}
	free(m);
	return code;
}

static int fail_numbers(void)
{
	return rc_fail(ENOTSUP,
		       "the recorder may know the process by another number: it lives in another "
		       "pid namespace, or is not to be looked at");
}

int rc_ask(pid_t pid, uint64_t start, uint64_t end, struct rc_counts *out)
{
	struct kron_control_question q = {
		.version = KRON_CONTROL_VERSION,
		.verb = KRON_CONTROL_PAGES,
		.range = {.pid = pid, .start = start, .end = end},
	};
	struct recorder recorder = {0};
	int code, fd;

	*out = (struct rc_counts){0};
	if (pid && kill(pid, 0) && errno == ESRCH)
		return rc_fail(ESRCH, "there is no process %d", pid);
	if (pid && !has_our_pids(pid))
		return fail_numbers();
	code = find_recorder(pid, &recorder);
	if (code)
		return code;
	if (pid && !has_our_pids(recorder.pid))
		return fail_numbers();
	fd = connect_to(&recorder);
	if (fd < 0)
		return fd;
	if (send(fd, &q, sizeof(q), MSG_NOSIGNAL) != sizeof(q))
		code = rc_fail(EPIPE, "the recorder has ended meanwhile");
	else
		code = receive(fd, start, end, out);
	close(fd);
	if (code) {
		free(out->v);
		*out = (struct rc_counts){0};
	}
	return code;
}
