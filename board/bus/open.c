/* SPDX-License-Identifier: MIT */
/*
 * open.c - which board is meant, and is it one?  See bus.h.
 *
 *   name ─► $KRON_BOARD ─► "default" ─► the only one
 *     └── with a slash: a device or file, used as it is
 */
#define _GNU_SOURCE
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

#define HOW_TO_MAKE "`kron board create` makes one"

/* ---- hardware ---- */

static int check_hardware(const char *path, int fd, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st))
		return err_set(err, errno, "cannot use %s as a board: %s", path, strerror(errno));
	if (S_ISCHR(st.st_mode)) /* /dev/mk0: its driver knows how long it is */
		return 0;
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "%s is neither a device nor a file: no board", path);
	if (st.st_size < (off_t)KRON_BOARD_SIZE)
		return err_set(err, EINVAL,
			       "%s has %" PRId64
			       " bytes; a board's address space has %u (32 MiB): no board",
			       path, (int64_t)st.st_size, KRON_BOARD_SIZE);
	return 0;
}

static int open_hardware(struct bus *b, const char *path, struct err *err)
{
	int code;

	/* O_SYNC: no cache between the program and the board. */
	b->fd = open(path, O_RDWR | O_SYNC | O_CLOEXEC | O_NONBLOCK);
	if (b->fd < 0)
		return err_set(err, errno, "cannot open %s: %s", path, strerror(errno));
	code = check_hardware(path, b->fd, err);
	if (code)
		return code;
	b->mapped = KRON_BOARD_SIZE;
	b->base = mmap(NULL, b->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
	if (b->base == MAP_FAILED) {
		b->base = NULL;
		return err_set(err, errno, "cannot map %s as a board: %s", path, strerror(errno));
	}
	b->window = b->base;
	b->ops = &bus_hardware_ops;
	snprintf(b->name, sizeof(b->name), "%s", path);
	return 0;
}

/* ---- exact ---- */

static int open_object(struct bus *b, const char *object, const char *name, struct err *err)
{
	struct object o;
	struct window w;
	int code = object_open(object, name, &o, err);

	if (!code)
		code = object_map_checked(o.fd, name, &w, err);
	b->fd = o.fd;
	b->keeper = o.held.keeper;
	b->keeper_fd = o.held.fd;
	if (code)
		return code;
	b->board = w.board;
	b->base = w.base;
	b->mapped = KRON_WINDOW_SIZE;
	b->ops = &bus_exact_ops;
	if (!object_shown_name(object, b->name, sizeof(b->name)))
		snprintf(b->name, sizeof(b->name), "%s", name);
	return 0;
}

/* "default, test, kron-0123456789abcdef (process 4711)" */
static void name_all(char *out, size_t size, const struct boards_entry *all, size_t n)
{
	size_t len = 0;

	*out = 0;
	for (size_t i = 0; i < n && len + 100 < size; i++) {
		if (all[i].damaged || all[i].orphaned)
			continue;
		len += (size_t)snprintf(out + len, size - len, "%s%s", len ? ", " : "",
					all[i].name);
		if (all[i].recorder_pid)
			len += (size_t)snprintf(out + len, size - len, " (kron record, pid %d)",
						all[i].recorder_pid);
	}
}

static bool is_process_number(const char *name)
{
	return *name && strspn(name, "0123456789") == strlen(name);
}

static int explain_none(const char *name, struct err *err)
{
	struct boards_entry *all;
	char names[400];
	size_t n;

	if (boards_list(&all, &n, err))
		return -ENOENT;
	name_all(names, sizeof(names), all, n);
	xfree(all);
	if (name && is_process_number(name))
		return err_set(
			err, ENOENT,
			"there is no board %s: no kron record of yours runs as process %s; it has "
			"ended, or is another user's",
			name, name);
	if (name && *names)
		return err_set(err, ENOENT, "there is no board %s; there are: %s", name, names);
	if (name)
		return err_set(err, ENOENT, "there is no board %s: `kron board create %s` makes it",
			       name, name);
	if (*names)
		return err_set(err, ENOENT,
			       "which board? --board or " BOARDS_ENV " names one of: %s", names);
	return err_set(err, ENOENT, "there is no board: " HOW_TO_MAKE);
}

static int open_name(struct bus *b, const char *name, struct err *err)
{
	char object[OBJECT_NAME];
	int code;

	if (!boards_name_is_valid(name))
		return err_set(
			err, EINVAL,
			"\"%.80s\" is not a name of a board, and without a slash no path of a "
			"device",
			name);
	boards_object_of(name, object, sizeof(object));
	code = open_object(b, object, name, err);
	return code == -ENOENT ? explain_none(name, err) : code;
}

static bool is_usable(const struct boards_entry *e)
{
	return !e->damaged && !e->orphaned && (e->permanent || e->recorder_pid);
}

static int open_the_only_one(struct bus *b, struct err *err)
{
	const struct boards_entry *found = NULL;
	char object[OBJECT_NAME];
	struct boards_entry *all;
	size_t n, usable = 0;
	int code = boards_list(&all, &n, err);

	if (code)
		return code;
	for (size_t i = 0; i < n; i++) {
		if (!is_usable(&all[i]))
			continue;
		found = &all[i];
		usable++;
	}
	if (usable == 1) {
		boards_object_of(found->name, object, sizeof(object));
		code = open_object(b, object, found->name, err);
	} else {
		code = explain_none(NULL, err);
	}
	xfree(all);
	return code;
}

int bus_open(struct bus *b, const char *name, struct err *err)
{
	char object[OBJECT_NAME];
	struct stat st;
	int code;

	memset(b, 0, sizeof(*b));
	b->fd = -1;
	if (!name) {
		name = getenv(BOARDS_ENV);
		if (name && !*name)
			name = NULL;
	}
	object_name_of_board(object, sizeof(object), BOARDS_DEFAULT);
	if (name && strchr(name, '/'))
		code = open_hardware(b, name, err);
	else if (name)
		code = open_name(b, name, err);
	else if (!object_stat(object, &st))
		code = open_object(b, object, BOARDS_DEFAULT, err);
	else
		code = open_the_only_one(b, err);
	if (code)
		bus_close(b);
	return code;
}
