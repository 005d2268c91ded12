/* SPDX-License-Identifier: MIT */
/*
 * control.h - who may write the registers of a recorder's board may also change its probes: a socket, by
 * which `kron ctl probe` asks.
 *
 * Abstract, named after the number of the recording, which stands in the board: who can read that may connect.  A
 * message is a question, and the next one its answer.
 */
#ifndef COLLECT_CONTROL_H
#define COLLECT_CONTROL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "collect/live/changes.h"

#define CONTROL_TEXT 4096u        /* bytes of a question's text, with its 0 */
#define CONTROL_ANSWER (1u << 16) /* of an answer's */

enum control_verb { CONTROL_ADD = 1, CONTROL_REMOVE, CONTROL_LIST, CONTROL_LIST_JSON };

struct control_question {
	uint32_t version, verb;
	char text[CONTROL_TEXT]; /* SPEC, or NAME */
};
#define CONTROL_VERSION 1u

struct control_answer {
	int32_t code; /* 0, or -errno: then the text is a sentence */
	char text[CONTROL_ANSWER];
};

struct control {
	struct changes changes;
	int fd, wake_fd;
	pthread_t thread;
	bool running;
};

int control_start(struct control *c, uint64_t recording, struct err *err);
/* Nobody changes anything after this; what was added is as it is. */
void control_stop(struct control *c);

/* The other end.  pid: of the recorder, as the board has it. */
int control_ask(uint64_t recording, pid_t pid, enum control_verb verb, const char *text,
		struct control_answer *out, struct err *err);

#endif
