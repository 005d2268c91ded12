/* SPDX-License-Identifier: MIT */
/*
 * control.h - what `kron ctl probe`, `kron snapshot` and librefcnt ask a running kron record, and what it
 * answers.
 *
 * A SOCK_SEQPACKET socket with an abstract name, after the number of the recording, which stands in the
 * board: who can read that may connect.  A message is a question, and the next one its answer; the
 * answer to KRON_CONTROL_PAGES is as many messages as it takes.  A recorder answers its own user and
 * root.
 */
#ifndef KRON_CONTROL_H
#define KRON_CONTROL_H

#include <stdint.h>

#define KRON_CONTROL_SOCKET "kron-ctl-%016" PRIx64
#define KRON_CONTROL_VERSION 5u
#define KRON_CONTROL_TEXT 4096u        /* bytes of a question's text, with its 0 */
#define KRON_CONTROL_ANSWER (1u << 16) /* of an answer's */

enum kron_control_verb {
	KRON_CONTROL_ADD = 1, /* text: SPEC */
	KRON_CONTROL_REMOVE,  /* text: NAME */
	KRON_CONTROL_LIST,
	KRON_CONTROL_LIST_JSON,
	KRON_CONTROL_PAGES,    /* range */
	KRON_CONTROL_SNAPSHOT, /* text: why, or nothing; the answer: its directory */
	KRON_CONTROL_WAKE,     /* text: GLOB of functions, then GLOBs of libraries, a line each */
	KRON_CONTROL_SLEEP,    /* text: GLOB of functions */
	KRON_CONTROL_FLIGHT    /* 0: it takes snapshots */
};

/* Which counters of pages: those of a process whose first byte lies in [start, end). */
struct kron_control_range {
	int32_t pid; /* in the recorder's pid namespace; 0: whoever asks */
	uint32_t reserved;
	uint64_t start, end;
};

struct kron_control_question {
	uint32_t version, verb; /* enum kron_control_verb */
	union {
		char text[KRON_CONTROL_TEXT];
		struct kron_control_range range;
	};
};
_Static_assert(sizeof(struct kron_control_question) == 8 + KRON_CONTROL_TEXT, "no padding");

struct kron_control_answer {
	int32_t code; /* 0, or -errno: then the text is a sentence */
	char text[KRON_CONTROL_ANSWER];
};

/* One of the messages: pages in ascending order, each once for each node that it was used from. */
#define KRON_CONTROL_COUNTS 1024u
struct kron_control_count {
	uint64_t address, reads, writes;
	int32_t node; /* -1: not known */
	uint32_t reserved;
};
struct kron_control_counts {
	int32_t code;  /* 0, or -errno: -ESRCH no such process is counted, -ENOTSUP no pages are */
	uint32_t more; /* 1: another message comes */
	uint32_t n;
	uint32_t nodes; /* of the machine */
	uint64_t absolute,
		differential; /* thresholds of `kron pages --migrate`; 0: it moves nothing */
	struct kron_control_count v[KRON_CONTROL_COUNTS]; /* only n are sent */
};

#endif
