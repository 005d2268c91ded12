/* SPDX-License-Identifier: MIT */
/*
 * keep.c - a keeper whose recorder has gone, killed or with a full disk: see keeper.h.
 *
 * It holds what was not fetched, as long as somebody may want it:
 *   no trace names it   the recorder was killed before it had begun: end
 *   the name is gone    `kron recover` or `kron board rm` was here: end
 *   traced processes    may still store: wait
 *   none for a while    whoever would have run `kron recover` has not: do it, and end
 *   SIGTERM             the machine stops: do it now
 *   --drop              nobody will want it: its folder goes, and so do we
 * What cannot be written (a full disk) is held on, and tried again.  It writes into the folder
 * that the recorder had open, wherever that is by now, and nowhere else.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "collect/keeper.h"
#include "base/clock.h"
#include "base/temp.h"
#include "collect/recover/recover.h"

#define LOOK_S 2
#define PATIENCE_S 30 /* without traced processes */
#define DROP_TRIES 5

static uint64_t now_s(void)
{
	return clock_ms(CLOCK_MONOTONIC) / 1000;
}

/* True: we are asked to come to an end. */
static bool nap(void)
{
	const struct timespec look = {.tv_sec = LOOK_S};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	return sigtimedwait(&set, NULL, &look) == SIGTERM;
}

static bool is_still_ours(const char *object)
{
	struct object o;
	bool ours;

	if (object_open(object, object, &o, NULL))
		return false;
	ours = o.held.keeper == getpid();
	object_close(&o);
	return ours;
}

static void path_of_folder(char *path, size_t size, int folder)
{
	snprintf(path, size, "/proc/self/fd/%d/.", folder);
}

/* Not when the trace was removed, or the recorder killed before it named its memory there. */
static bool can_be_asked_for(const char *object, int memory)
{
	char folder[32];

	path_of_folder(folder, sizeof(folder), memory + HELD_TRACE);
	return recover_is_for(folder, object);
}

/* True: nothing is left to be held. */
static bool fetch(const char *object, int memory)
{
	char folder[32];
	struct recovery r;
	struct err err;
	int code;

	if (!can_be_asked_for(object, memory))
		return true;
	path_of_folder(folder, sizeof(folder), memory + HELD_TRACE);
	code = recover_held(folder, object, memory, &r, &err);
	return !code || code == -EALREADY;
}

/* Nothing of what the recorder had is open, and nothing shall be in its place. */
static void settle(void)
{
	while (open("/dev/null", O_RDWR) >= 0 && fcntl(STDERR_FILENO, F_GETFD) < 0)
		;
	if (chdir("/")) /* then the folder where the recorder was stays in use */
		errno = 0;
	prctl(PR_SET_NAME, "kron-keeper");
}

/*
 * The folder is in one that temp_make() has made for it.  Its lock is free when all that had it open have
 * ended, as a surgeon does.
 */
static void drop_folder(int memory)
{
	char link[32], path[PATH_MAX];
	bool gone = false;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", memory + HELD_TRACE);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = 0;
	if (!strrchr(path, '/'))
		return;
	*strrchr(path, '/') = 0;
	for (int i = 0; i < DROP_TRIES && !gone; i++) {
		if (i)
			nap();
		gone = temp_clean_path(path);
	}
}

int keeper_main(const char *object, const char *fd, bool is_scratch)
{
	int memory = (int)strtol(fd, NULL, 10);
	uint64_t alone_since = now_s();
	bool asked, named;
	pid_t who;

	if (!object_is_recorders_own(object) || fcntl(memory, F_GET_SEALS) < 0)
		return 2; /* somebody has called us by hand */
	settle();
	if (is_scratch)
		drop_folder(memory);
	asked = !can_be_asked_for(object, memory);
	named = is_still_ours(object); /* not where there is no /dev/shm */
	while (is_still_ours(object) == named) {
		if (object_has_lanes(memory, &who))
			alone_since = now_s();
		if (asked || now_s() - alone_since >= PATIENCE_S) {
			if (fetch(object, memory))
				break;
			alone_since = now_s();
		}
		asked = nap();
	}
	if (is_still_ours(object))
		object_remove(object);
	return 0;
}
