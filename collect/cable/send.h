/* SPDX-License-Identifier: MIT */
/*
 * send.h - the recorder's end of the cable.
 *
 *   trace writer ─► files in a spool (memory) ─► this thread ─► cable ─► kron collect
 *        ▲                    │
 *        └── waits while ─────┘ more than CABLE_SPOOL is there that the collector has not acknowledged
 *
 * The spool is a trace directory as any other.  Of its samples, what has been acknowledged is given back to the
 * kernel; so when the link breaks, nothing is lost as far as the spool reaches, and a recorder that is killed leaves in
 * it what had not been sent, for cable_resend().
 */
#ifndef COLLECT_CABLE_SEND_H
#define COLLECT_CABLE_SEND_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "collect/cable/address.h"
#include "collect/cable/frames.h"

#define CABLE_SPOOL (64u << 20)
/* How long the collector may take nothing more at the end of a recording. */
#define CABLE_PATIENCE_S 30u

struct cable_sender {
	struct cable_address to;
	uint64_t room,
		patience_ns; /* CABLE_SPOOL, CABLE_PATIENCE_S, or what the environment says */
	struct cable_token token;
	char spool[256];
	uint8_t id[CABLE_ID];
	char name[CABLE_NAME];
	pthread_t thread;
	bool started, resends;
	char boot[CABLE_BOOT]; /* of the collector's host */

	/* of the thread, and before it begins */
	int fd; /* -1: the link is broken */
	int files[CABLE_FILES];
	struct cable_sizes sent, punched, whole;
	uint8_t in[sizeof(struct cable_head) + sizeof(struct cable_welcome) + CABLE_TEXT_MAX];
	size_t nin;
	bool has_done;     /* the collector has all */
	bool said_done;    /* and was told so, over this link */
	uint64_t heard_ns; /* something came last */
	uint64_t moved_ns; /* the collector had more last */
	unsigned retry_ms; /* before the next link is tried */
	unsigned breaks;
	struct { /* exchanges of clock readings */
		uint64_t number, tsc, mono_ns, next_ns;
		unsigned left; /* of this round */
		uint64_t best_tsc, best_ns, best_error_ns, best_mono_ns;
	} ping;

	/* of both sides */
	pthread_mutex_t lock;
	pthread_cond_t moved;
	struct cable_sizes acked;
	uint64_t
		hurry_ns; /* the recording ends since then: nothing is waited for without end; 0: it does not */
	bool ending;    /* nothing more will be written */
	bool failed;    /* it cannot go on */
	struct err why; /* ... because */
};

/*
 * Makes the link and the spool; starts nothing.  0, or -errno with a sentence: nobody listens, no token ...
 * resend: of a spool that was left.
 */
int cable_open(struct cable_sender *s, const char *address, const char *token_file,
	       const char *name, const char *resend, struct err *err);
/* The thread. */
int cable_start(struct cable_sender *s, struct err *err);
/* Before samples are written: waits until there is room.  0, or -ECONNABORTED: there will be none. */
int cable_gate(void *sender);
/* What is written from now on is the last of it. */
void cable_hurry(struct cable_sender *s);
/* All is written: until the collector has it, or the link has been dead for long; then the spool stays. */
int cable_finish(struct cable_sender *s, struct err *err);
/* Nothing was recorded. */
void cable_abandon(struct cable_sender *s);

#endif
