/* SPDX-License-Identifier: MIT */
/*
 * net.h - the messages of a trace that has the events of the probe pack net: what each send on a TCP connection has
 * transferred, and the receives that got it.
 *
 *   events ─► net_calls.c ─► calls, each of a socket ─► net_streams.c ─► the bytes of each call ─► net_match.c ─► messages
 *                                                                              waits ─►
 *
 * The kernel numbers the sockets of a host (SO_COOKIE), and each call says the number of its own: descriptors that are
 * duplicated, inherited or used again need no care.  Two sockets are a connection by their pair of addresses and ports; of
 * loopback addresses also by host and network namespace.  A byte is known by its place in the stream: the sum of what the
 * calls before have transferred.
 *
 * Calls that overlap in time on one socket have their bytes in an order that nobody knows: these are left out, and those
 * that follow are known again.  Where a stream cannot be known as a whole it is given up as a whole, and its calls are counted
 * by the reason.
 *
 * Allocates; keeps each call until the end.
 */
#ifndef TRACE_MESSAGES_NET_H
#define TRACE_MESSAGES_NET_H

#include "trace/messages/messages.h"

/* What became of a call that has transferred bytes of TCP. */
enum net_fate {
	NET_MATCHED,
	NET_UNREAD,     /* a send: not received, or not all of it */
	NET_ALONE,      /* the connection's other end was not recorded */
	NET_BEFORE,     /* the connection was there before the recording */
	NET_REUSED,     /* several connections had these addresses */
	NET_LOST,       /* samples of a process that used the connection are missing */
	NET_DIFFERING,  /* more came than was sent, or less: not all calls were seen */
	NET_UNORDERED,  /* another thread was in such a call on the same connection */
	NET_UNTOLD,     /* a call before has not said how many bytes it has transferred */
	NET_NO_ADDRESS, /* the socket's addresses are not known */
	NET_FATES
};

struct net_counts {
	uint64_t messages;
	uint64_t connections; /* of which both ends are known */
	uint64_t sends[NET_FATES], receives[NET_FATES];
	/* Calls that have not said what they have transferred, in each direction. */
	uint64_t unfinished;
	/* Receives that left the bytes where they were, or got others than the stream's. */
	uint64_t peeks;
	uint64_t other;     /* calls on sockets that are not TCP's */
	uint64_t unasked;   /* calls of which the kernel could not be asked on which socket */
	uint64_t unstarted; /* ends of calls whose begin is missing */
};

bool net_has(const struct trace *t);
/* counts may be NULL. */
void net_read(const struct trace *t, const struct message_sink *sink, struct net_counts *counts);

#endif
