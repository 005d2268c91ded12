/* SPDX-License-Identifier: MIT */
/*
 * object.h - the shared memory object that a board lives in: named, made, opened, checked.
 *
 *   /dev/shm/kron-board.<uid>.<NAME>   a named board
 *   /dev/shm/kron-<16 hex>             the board that a kron record has for itself
 *
 *   object_begin ─► size, pages, contents ─► object_publish     it appears finished, or not
 *   object_open  ─► owner, mode, size ─► object_map ─► magic, version, machine
 *
 * Pages are had by object_get_pages() before anybody touches them: a full /dev/shm is then an
 * error with a sentence and never a SIGBUS.  Below collect/segment.c and bus/bus.c; knows
 * nothing of lanes.
 *
 * What lies in an object was written by other processes: nothing read from it is trusted.
 */
#ifndef BUS_OBJECT_H
#define BUS_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <kron/segment.h>
#include "base/err.h"
#include "board/access.h"

#define OBJECT_DIR "/dev/shm"
#define OBJECT_NAME 128 /* room for any object's name: "/kron-..." as shm_open() takes it */

/* ---- names ---- */

/* "/kron-board.<uid>.<board>" of this user. */
void object_name_of_board(char *out, size_t size, const char *board);
/* "default", or "kron-<16 hex>": what a user calls it.  false: no object of kron's. */
bool object_shown_name(const char *object, char *out, size_t size);
bool object_is_recorders_own(const char *object); /* "/kron-<16 hex>" */

/* ---- making one ---- */

/* An object without a name, mode 0600, `size` bytes.  Gone again if it is never published. */
int object_begin(int *fd, uint64_t size, struct err *err);
/* Give it its name.  -EEXIST: somebody else has.  *again: another descriptor of it. */
int object_publish(int fd, const char *object, int *again, struct err *err);
/* ftruncate() without the limit on file sizes, which is about files on disk. */
int object_set_size(int fd, uint64_t size);
/* Have these bytes ready.  Those that are there stay as they are. */
int object_get_pages(int fd, uint64_t off, uint64_t len);
uint64_t object_room(void); /* bytes free in /dev/shm */
int object_remove(const char *object);
int object_stat(const char *object, struct stat *st); /* lstat() of it: errno */

/* ---- opening one ---- */

/*
 * -ENOENT: there is none.  -EACCES: it is another user's, or open to others.  -EINVAL: too
 * short for a board.  `shown` is its name in the sentences.
 */
int object_open(const char *object, const char *shown, int *fd, struct stat *st, struct err *err);

/* The window of a board, mapped: all but the chunk pool. */
struct window {
	uint8_t *base; /* KRON_WINDOW_SIZE */
	struct board board;
};
int object_map(int fd, struct window *w, struct err *err); /* fresh: not looked at */
/* Magic number and version only.  -EINVAL. */
int object_check_format(const char *shown, const struct window *w, struct err *err);
/* object_map(), and what lies in it is a board of this version.  -EINVAL: it is not. */
int object_map_checked(int fd, const char *shown, struct window *w, struct err *err);
void object_unmap(struct window *w);

/* A fresh window becomes a board: power-on, and its pages are had.  Not yet: the magic. */
int object_fill(int fd, struct window *w, const struct device_geometry *g, enum access_clock clock,
		uint64_t tsc_hz, bool memory, struct err *err);
/* Last of all: who finds the magic number finds the rest. */
void object_seal(struct window *w, uint64_t size);

/* ---- its recorder ---- */

/* The recorder's lock.  It goes with the last descriptor of the open file, so the lock's must be
 * no one's but the recorder's.  -EBUSY: another has it. */
int object_lock(int fd);
bool object_is_locked(int fd); /* by somebody who did not open it through fd */
/* Between people who change a register by reading and writing it: waits.  Until unlock or close. */
void object_lock_change(int fd);
void object_unlock_change(int fd);
/* Is this still the object of that name?  It may have been removed, and made again. */
bool object_is_named(int fd, const char *object);

/* What a recorder leaves on a board for those who find it without one. */
#define OBJECT_NOTE_OFFSET 2048u /* in the page of the control block */
struct object_note {
	uint64_t recording; /* random: tells whose samples these are */
	char dir[1024];     /* of the trace, absolute; "" unknown */
};
_Static_assert(sizeof(struct kron_ctl) <= OBJECT_NOTE_OFFSET, "room for the note");
_Static_assert(OBJECT_NOTE_OFFSET + sizeof(struct object_note) <= 4096, "the note fits");
static inline struct object_note *object_note(const struct kron_ctl *ctl)
{
	return (struct object_note *)((uintptr_t)ctl + OBJECT_NOTE_OFFSET);
}

/* Do traced processes still have lanes of this object, so that they may store there? */
bool object_has_lanes(int fd, pid_t *who);

#endif
