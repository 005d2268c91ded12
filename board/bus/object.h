/* SPDX-License-Identifier: MIT */
/*
 * object.h - the shared memory object that a board lives in: named, made, opened, checked.
 *
 *   /dev/shm/kron-board.<uid>.<NAME>   a named board: a file
 *   /dev/shm/kron-<16 hex>             the board that a kron record has for itself: a link to
 *                                      /proc/<pid>/fd/<n>, sealed memory that a process holds (held.c)
 *
 *   object_begin ─► size, pages, contents ─► object_publish     it appears finished, or not
 *   object_open  ─► owner, mode, size ─► object_map ─► magic, version, model
 *
 * Pages are had by object_get_pages() before anybody touches them: a full /dev/shm is then an
 * error with a sentence and never a SIGBUS.  Below collect/segment.c and board/bus/bus.c; knows
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
#include "board/model/access.h"

#define OBJECT_DIR "/dev/shm"
#define OBJECT_NAME 128 /* room for any object's name: "/kron-..." as shm_open() takes it */

/* ---- names ---- */

/* "/kron-board.<uid>.<board>" of this user. */
void object_name_of_board(char *out, size_t size, const char *board);
/* "default", or "kron-<16 hex>": what a user calls it.  false: no object of kron's. */
bool object_shown_name(const char *object, char *out, size_t size);
bool object_is_recorders_own(const char *object); /* "/kron-<16 hex>" */

/* ---- making one ---- */

/* An object without a name, mode 0600, `size` bytes.  Gone again if it is never published.  A
 * recorder's own: held_begin(). */
int object_begin(int *fd, uint64_t size, struct err *err);
/* Give it its name.  -EEXIST: somebody else has.  *again: another descriptor of it. */
int object_publish(int fd, const char *object, int *again, struct err *err);
/* ftruncate() without the limit on file sizes, which is about files on disk. */
int object_set_size(int fd, uint64_t size);
/* Allocates these bytes.  Pages that exist already keep their contents. */
int object_get_pages(int fd, uint64_t off, uint64_t len);
uint64_t object_room(void);                           /* bytes free in /dev/shm */
int object_remove(const char *object);                /* its name: who has it open goes on */
int object_stat(const char *object, struct stat *st); /* lstat() of it: errno */

/* ---- opening one ---- */

/* Who holds a recorder's own, and as which descriptor. */
struct holder {
	pid_t keeper; /* 0: a board with a name */
	int fd;
};

struct object {
	int fd; /* -1: none */
	uint64_t size;
	uint64_t bytes; /* that it has pages for */
	struct holder held;
};

/*
 * -ENOENT: there is none.  -EACCES: it is another user's, or open to others.  -EINVAL: too
 * short for a board.  -ESRCH: who held it is gone.  -EXDEV: that cannot be told from here.  `shown` is its
 * name in the sentences.
 */
int object_open(const char *object, const char *shown, struct object *o, struct err *err);
void object_close(struct object *o);
/* Somebody else has put something under this name, which is ours.  -EACCES, and what to do. */
int object_refuse_foreign(const char *object, const char *shown, uid_t owner, struct err *err);

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

/* All pages that the board of a fresh window touches; memory: and those of its local memory. */
int object_get_board(int fd, const struct model_geometry *g, bool memory, struct err *err);
/* A fresh window becomes a board: power-on.  Not yet: the magic. */
void object_fill(struct window *w, const struct model_geometry *g, enum access_clock clock,
		 uint64_t tsc_hz);
/* Last of all: who finds the magic number finds the rest. */
void object_seal(struct window *w, uint64_t size);

/* ---- its recorder ---- */

struct object_recorder {
	pid_t pid;      /* 0: there is none, and was none */
	bool killed;    /* it is gone, and what it had not fetched is there still */
	char dir[1024]; /* of its trace, absolute; "" unknown */
};
/* Finds who records on the board.  What a traced process could have written is believed of named boards only,
 * which are one user's. */
void object_find_recorder(const struct object *o, const struct kron_ctl *ctl,
			  struct object_recorder *out);

/* Is the process at the other end of a connection that recorder?  Its number may have come from memory that traced
 * processes write to, and one of them may have become another user: so it must be ours, or root's. */
bool object_is_recorder(int sock, pid_t pid);

/* Of a named board: the recorder's lock.  It goes with the last descriptor of the open file, so the lock's must be
 * no one's but the recorder's.  -EBUSY: another has it. */
int object_lock(int fd);
bool object_is_locked(int fd); /* by somebody who did not open it through fd */
/* Likewise, of who takes what a board sends over its cable. */
int object_lock_cable(int fd);
/* Between people who change a register by reading and writing it: waits, for two seconds at most.
 * Held until unlock or close.  False: another process holds it. */
bool object_lock_change(int fd);
void object_unlock_change(int fd);
/* Is this still the object of that name?  It may have been removed, and made again. */
bool object_is_named(int fd, const char *object);

/* What a recorder leaves on a board for those who find it without one. */
#define OBJECT_NOTE_OFFSET 2048u /* in the page of the control block */
struct object_note {
	uint64_t recording; /* random: tells whose samples these are */
	char dir[1024];     /* of the trace, absolute; "" unknown */
	uint32_t node;      /* the board's, when its recorder is gone */
};
_Static_assert(sizeof(struct kron_ctl) <= OBJECT_NOTE_OFFSET, "room for the note");
_Static_assert(OBJECT_NOTE_OFFSET + sizeof(struct object_note) <= 4096, "the note fits");
static inline struct object_note *object_note(const struct kron_ctl *ctl)
{
	return (struct object_note *)((uintptr_t)ctl + OBJECT_NOTE_OFFSET);
}

/* Do traced processes still have lanes of this object, so that they may store there? */
bool object_has_lanes(int fd, pid_t *who);

/* ---- held.c: a recorder's own ---- */

/* What the keeper has open besides, from held.fd on (collect/keeper.h). */
enum held_fd {
	HELD_RECORDER = 1, /* a pidfd, as long as the recorder is there */
	HELD_LIFELINE = 2, /* ends with it */
	HELD_TRACE = 3,    /* the folder */
	HELD_FDS = 4
};

/* Sealed memory of this size, called so in /proc/PID/maps: nobody can cut it off. */
int held_begin(const char *object, int *fd, uint64_t size, struct err *err);
/*
 * May its pages be left to come when they are touched?  There is no limit on such memory but that on all memory, so a
 * first touch fails as one of any memory does.  Not where the kernel keeps strict account (vm.overcommit_memory = 2):
 * there it would be a SIGBUS.
 */
bool held_pages_may_come_late(void);
/* Give it its name, or let the name lead to another holder.  -EEXIST, -ENOENT, ...: errors of
 * symlink(2) and rename(2). */
int held_publish(const char *object, const struct holder *h);
int held_republish(const char *object, const struct holder *h);
/* See object_open(). */
int held_open(const char *object, const char *shown, struct object *o, struct err *err);
/* The recorder, from what the kernel says of the keeper. */
void held_find_recorder(const struct holder *h, struct object_recorder *out);
/* Nobody needs what it holds any more.  Not if it is the calling process. */
void held_let_go(const struct object *o);

#endif
