/* SPDX-License-Identifier: MIT */
/* boards.c - boards by name: made, removed, listed.  See bus.h. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/vec.h"
#include "board/bus/bus_impl.h"
#include "board/bus/clock.h"
#include "board/bus/node.h"

#define CALIBRATE_MS 20 /* the clock of a board that stays: right to some 2 in a million */

bool boards_name_is_valid(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";
	size_t n = strlen(name);

	return n > 0 && n < sizeof(((struct boards_entry *)0)->name) && name[0] != '.' &&
	       strspn(name, letters) == n;
}

static int check_name(const char *name, struct err *err)
{
	if (boards_name_is_valid(name))
		return 0;
	return err_set(
		err, EINVAL,
		"\"%.80s\" is not a name for a board: up to 63 letters, digits and . _ -, not "
		"with a dot first",
		name);
}

/* ---- create ---- */

static uint32_t number_of_node(int node)
{
	struct node n;

	if (node != NODE_DEFAULT)
		return (uint32_t)node & NODE_MAX;
	node_default(&n);
	return n.n;
}

static int make_board(int fd, const struct model_geometry *g, enum access_clock clock, int node,
		      struct err *err)
{
	struct bus bus;
	struct time_point start;
	struct window w;
	int code = object_map(fd, &w, err);

	if (code)
		return code;
	time_point_take(&start);
	code = object_get_board(fd, g, true, err);
	if (!code) {
		object_fill(&w, g, clock, tsc_hz_since(&start, CALIBRATE_MS));
		w.board.ctl->permanent = 1;
		w.board.ctl->node = number_of_node(node);
		bus_use_board(&bus, &w.board);
		bus_init_default(&bus, KRON_SOURCE(w.board.ctl->node, 0));
		if (g->cable)
			bus_write32(&bus, KRON_BOARD_CONFIG,
				    KRON_CONFIG_DEFAULT & ~KRON_CONFIG_LOCAL);
		object_seal(&w, KRON_WINDOW_SIZE);
	}
	object_unmap(&w);
	return code;
}

static int check_geometry(const struct model_geometry *g, struct err *err)
{
	if (g->chip_fifo < 1 || g->chip_fifo > MODEL_CHIP_FIFO_MAX)
		return err_set(err, EINVAL, "a chip's FIFO holds 1 to %u samples",
			       MODEL_CHIP_FIFO_MAX);
	if (g->board_fifo < 4 || g->board_fifo > MODEL_BOARD_FIFO_MAX)
		return err_set(err, EINVAL, "a board's FIFO holds 4 to %u bytes",
			       MODEL_BOARD_FIFO_MAX);
	if (g->drain_memory < 1 || g->drain_memory > MODEL_DRAIN_MAX || g->drain_cable < 1 ||
	    g->drain_cable > MODEL_DRAIN_MAX)
		return err_set(err, EINVAL,
			       "the FIFO's state machine takes 1 to %u clocks for a transfer",
			       MODEL_DRAIN_MAX);
	return 0;
}

static int refuse_taken_name(const char *object, const char *name, struct err *err)
{
	struct stat st;

	if (!object_stat(object, &st) && st.st_uid != geteuid())
		object_refuse_foreign(object, name, st.st_uid, err);
	else
		err_set(err, EEXIST, "there is a board %s already: `kron board rm %s` removes it",
			name, name);
	return -EEXIST;
}

int boards_create(const char *name, const struct model_geometry *g, enum access_clock clock,
		  int node, struct err *err)
{
	const struct model_geometry standard = MODEL_GEOMETRY_DEFAULT;
	char object[OBJECT_NAME];
	int fd, named, code = check_name(name, err);
	struct stat st;

	if (!g)
		g = &standard;
	if (!code)
		code = check_geometry(g, err);
	if (code)
		return code;
	object_name_of_board(object, sizeof(object), name);
	if (!object_stat(object, &st)) /* before the work; object_publish() decides */
		return refuse_taken_name(object, name, err);
	code = object_begin(&fd, KRON_WINDOW_SIZE, err);
	if (code)
		return code;
	code = make_board(fd, g, clock, node, err);
	if (!code)
		code = object_publish(fd, object, &named, err);
	if (code == -EEXIST)
		refuse_taken_name(object, name, err);
	if (!code)
		close(named);
	close(fd);
	return code;
}

int boards_open_own(struct bus *b, struct err *err)
{
	const struct model_geometry standard = MODEL_GEOMETRY_DEFAULT;
	struct window w;
	int fd, code = object_begin(&fd, KRON_WINDOW_SIZE, err);

	if (code)
		return code;
	code = make_board(fd, &standard, ACCESS_CLOCK_REAL, NODE_DEFAULT, err);
	if (!code)
		code = object_map(fd, &w, err);
	if (code) {
		close(fd);
		return code;
	}
	bus_use_board(b, &w.board);
	b->fd = fd;
	b->base = w.base;
	b->mapped = KRON_WINDOW_SIZE;
	snprintf(b->name, sizeof(b->name), "of its own");
	return 0;
}

/* ---- which object ---- */

/* The board of the kron record with this process id. */
static bool find_recorder(const char *digits, char *object, size_t size)
{
	long pid = strtol(digits, NULL, 10);
	struct boards_entry *all;
	bool found = false;
	size_t n;

	if (boards_list(&all, &n, NULL))
		return false;
	for (size_t i = 0; i < n && !found; i++) {
		found = all[i].recorder_pid && all[i].recorder_pid == pid;
		if (found && !strncmp(all[i].name, "kron-", 5))
			snprintf(object, size, "/%s", all[i].name);
		else if (found)
			object_name_of_board(object, size, all[i].name);
	}
	xfree(all);
	return found;
}

static bool is_there(const char *object)
{
	struct stat st;

	return !object_stat(object, &st);
}

void boards_object_of(const char *name, char *object, size_t size)
{
	char own[OBJECT_NAME];

	object_name_of_board(object, size, name);
	if (is_there(object))
		return;
	snprintf(own, sizeof(own), "%s%.64s", strncmp(name, "kron-", 5) ? "/kron-" : "/", name);
	if (object_is_recorders_own(own) && is_there(own))
		snprintf(object, size, "%s", own);
	else if (*name && strspn(name, "0123456789") == strlen(name) &&
		 find_recorder(name, own, sizeof(own)))
		snprintf(object, size, "%s", own);
}

/* ---- look ---- */

static void look_into(const struct object *o, struct boards_entry *e)
{
	struct object_recorder r;
	struct window w;
	struct err err;

	if (object_map_checked(o->fd, e->name, &w, &err)) {
		e->damaged = true;
		snprintf(e->why, sizeof(e->why), "%.255s", err.msg);
		return;
	}
	object_find_recorder(o, w.board.ctl, &r);
	e->permanent = !o->held.keeper && w.board.ctl->permanent;
	e->node = w.board.ctl->node & NODE_MAX;
	e->recording = object_note(w.board.ctl)->recording;
	e->orphaned = r.killed;
	if (r.killed) {
		/* Of a recorder's own this is what the memory says: to be shown, not to be used. */
		e->orphaned_pid = r.pid ? r.pid : w.board.ctl->collector_pid;
		memcpy(e->dir, r.dir, sizeof(e->dir));
	} else {
		e->recorder_pid = r.pid;
	}
	object_unmap(&w);
}

bool boards_look_at(const char *object, struct boards_entry *e)
{
	struct object o;
	struct stat st;
	struct err err;
	int code;

	memset(e, 0, sizeof(*e));
	if (!object_shown_name(object, e->name, sizeof(e->name)) || object_stat(object, &st))
		return false;
	/* Other users' recordings are nothing to us; a board with our name on it is. */
	if (object_is_recorders_own(object) && st.st_uid != geteuid())
		return false;
	code = object_open(object, e->name, &o, &err);
	if (code == -ENOENT)
		return false;
	if (code) {
		e->damaged = true;
		snprintf(e->why, sizeof(e->why), "%.255s", err.msg);
		return true;
	}
	e->bytes = o.bytes;
	look_into(&o, e);
	object_close(&o);
	return true;
}

static int compare_entries(const void *a, const void *b)
{
	return strcmp(((const struct boards_entry *)a)->name,
		      ((const struct boards_entry *)b)->name);
}

int boards_list(struct boards_entry **out, size_t *n, struct err *err)
{
	VEC(struct boards_entry) all = {0};
	char object[NAME_MAX + 2];
	struct boards_entry e;
	struct dirent *d;
	DIR *dir = opendir(OBJECT_DIR);

	*out = NULL;
	*n = 0;
	if (!dir)
		return err_set(err, errno, "cannot read " OBJECT_DIR ": %s", strerror(errno));
	while ((d = readdir(dir))) {
		snprintf(object, sizeof(object), "/%s", d->d_name);
		if (strlen(object) < OBJECT_NAME && boards_look_at(object, &e))
			*vec_push(&all) = e;
	}
	closedir(dir);
	if (all.n)
		qsort(all.v, all.n, sizeof(*all.v), compare_entries);
	*out = all.v;
	*n = all.n;
	return 0;
}

/* ---- remove ---- */

/* A recorder's own can be opened, or what held it is gone, and only the name is left. */
static int check_idle(const char *object, const char *name, struct object *o, struct err *err)
{
	struct object_recorder r = {0};
	bool is_busy;
	int code;

	if (object_is_recorders_own(object)) {
		code = held_open(object, name, o, err);
		if (code == -EXDEV)
			return code;
		if (!code)
			held_find_recorder(&o->held, &r);
		is_busy = r.pid != 0;
	} else {
		o->fd = shm_open(object, O_RDWR | O_CLOEXEC | O_NONBLOCK, 0);
		is_busy = o->fd >= 0 && object_lock(o->fd) == -EBUSY;
	}
	return is_busy ? err_set(err, EBUSY, "a kron record is on board %s: end it first", name)
		       : 0;
}

/*
 * Whatever is in it; but not while somebody records there, and nothing of other users.  *o holds
 * the recorder's lock, so that nobody begins to record on what is being removed; or it cannot be
 * opened.
 */
static int check_removable(const char *object, const char *name, struct object *o, struct err *err)
{
	struct stat st;

	if (object_stat(object, &st))
		return err_set(err, errno, "there is no board %s (`kron board list` shows all)",
			       name);
	if (st.st_uid != geteuid() && geteuid() != 0)
		return object_refuse_foreign(object, name, st.st_uid, err);
	return st.st_uid == geteuid() ? check_idle(object, name, o, err) : 0;
}

int boards_remove(const char *name, struct err *err)
{
	struct object o = {.fd = -1};
	char object[OBJECT_NAME];
	int code = check_name(name, err);

	if (code)
		return code;
	boards_object_of(name, object, sizeof(object));
	code = check_removable(object, name, &o, err);
	if (!code && (code = object_remove(object)))
		err_set(err, -code, "cannot remove board %s: %s", name, strerror(-code));
	if (!code && o.fd >= 0)
		held_let_go(&o);
	object_close(&o);
	return code;
}
