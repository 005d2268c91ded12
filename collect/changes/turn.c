/* SPDX-License-Identifier: MIT */
/* turn.c - see turn.h. */
#include "collect/changes/turn.h"

#include <errno.h>

#include "collect/changes/visit.h"

#define ANSWERED_S 30u

int turn_settle(struct changes *all, struct err *err)
{
	return server_wait_answered(all->server, ANSWERED_S)
		       ? 0
		       : err_set(err, EAGAIN,
				 "a process that starts has not taken its probes for %u s: try again",
				 ANSWERED_S);
}

int turn_all(struct changes *all, struct err *err)
{
	unsigned met;
	int code = changes_start_surgeon(all, err);

	if (!code)
		code = turn_settle(all, err);
	return code ? code : visit_all(all, NULL, change_process_sleep, false, &met, err);
}

void turn_back(struct changes *all)
{
	struct err ignored;
	unsigned met;

	turn_settle(all, &ignored);
	visit_all(all, NULL, change_process_sleep, true, &met, &ignored);
}

int turn_one(struct changes *all, pid_t pid, struct err *err)
{
	const int code = visit_one(all, NULL, pid, change_process_sleep, err);

	return code < 0 ? code : 0;
}
