/* SPDX-License-Identifier: MIT */
/*
 * group.h - `kron record --trigger-group`: recordings that stop together.
 *
 *   member A                                member B
 *     HELLO  from A, to nobody ───────────────►          each second, to all addresses of the group
 *     ◄─────────────── HELLO  from B, to A               A knows B: it has named A's number
 *     HELLO  from A, to B ────────────────────►          B knows A
 *     FIRED  from A, to B, so long ago ───────►          B fires then, and tells those it knows
 *     ◄─────────────── HEARD  from B, to A               until then A says it again
 *
 * A number is random and of this recording.  FIRED counts only with the receiver's own in it, and every datagram has
 * an HMAC by the token: so a stranger's has no effect, and neither has one that was recorded earlier.
 *
 * On one host the members are sockets in a directory of their user's alone; across hosts it is UDP, and a token.
 * When it fired goes over as its age, so no clock needs to be right: B is late by the way there, no more.
 */
#ifndef COLLECT_CABLE_GROUP_H
#define COLLECT_CABLE_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include "collect/cable/frames.h"

struct group;

/*
 * text: NAME, or NAME@HOST[:PORT][,HOST[:PORT]]...  node: who this is, for the others' words.  Is in the group from then
 * on.  0, or -errno with a sentence.
 */
int group_open(struct group **out, const char *text, const char *token_file, const char *node,
	       struct err *err);
struct group_end {
	size_t met;    /* others that there were */
	size_t untold; /* it fired, and these have not said that they heard it */
};

/* Those that can be told are told.  NULL is none. */
struct group_end group_close(struct group *g);

/* So long ago may it be and all from before it is still there, wherever there were more samples than --pre asks for. */
#define GROUP_HOLD_NS 250000000ull

/* The trigger has fired here, at this CLOCK_MONOTONIC. */
void group_tell(struct group *g, uint64_t at_ns);
/* When one of the others' has; 0: none yet. */
uint64_t group_heard(struct group *g);
/* Whose it was, after group_heard(). */
const char *group_who(const struct group *g);

#endif
