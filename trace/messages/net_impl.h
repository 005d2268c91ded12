/* SPDX-License-Identifier: MIT */
/* net_impl.h - what the files of net.h share. Nobody else includes it. */
#ifndef TRACE_MESSAGES_NET_IMPL_H
#define TRACE_MESSAGES_NET_IMPL_H

#include "base/vec.h"
#include "trace/index.h"
#include "trace/messages/net.h"

#include <kron/wire.h>

/* ---- net_calls.c: puts the samples of a call together ---- */
struct net_call {
	uint64_t socket; /* the kernel's number; 0: it is none */
	uint32_t lane;
	bool is_receive;
	bool is_asked;             /* else the kernel has not said the socket */
	bool is_aside;             /* its bytes are not those of the stream */
	bool is_empty;             /* it asked for nothing */
	bool is_nested;            /* another call of the lane was in progress */
	bool is_shown;             /* the trace's filter lets it pass */
	int64_t n;                 /* what it has returned */
	uint64_t begin, end;       /* ticks; end UINT64_MAX: it was not seen */
	uint64_t earliest, latest; /* between them */
	/* Its lane waited for any socket before; 0: it did not. */
	uint64_t wait_begin, wait_end;
};

struct net_calls_sink {
	void *arg;
	void (*on_call)(void *arg, const struct net_call *c); /* as they end */
	void (*on_endpoints)(void *arg, uint32_t lane, const struct kron_endpoints *ends);
	/* The connection begins here. */
	void (*on_begin)(void *arg, uint32_t lane, uint64_t socket);
	/* From here on the socket's bytes are not known. */
	void (*on_untold)(void *arg, uint32_t lane, uint64_t since, uint64_t socket);
	void (*on_unstarted)(void *arg);
};
/* Reads the trace's events. */
void net_calls_read(const struct trace *t, const struct net_calls_sink *sink);

/* ---- net_streams.c: which bytes each call has transferred ---- */
#define NET_UNKNOWN UINT64_MAX
/* A call, and its place in the stream. */
struct net_part {
	uint64_t n; /* NET_UNKNOWN: it has not said */
	/* Of those that it is one of, where their order is not known; NET_UNKNOWN. */
	uint64_t offset, span;
	uint64_t begin, end, earliest, latest;
	uint64_t wait_begin, wait_end;
	uint32_t lane, sequence;
	bool is_nested, is_unordered, is_shown;
	enum net_fate fate;
};
/* Of a socket, in one direction. */
struct net_stream {
	VEC(struct net_part) parts; /* settled: by offset */
	uint64_t total;             /* as far as it is known */
	bool is_untold;             /* there may have been more */
	bool has_ended;             /* a receive: the end of the stream has come */
};
void net_stream_add(struct net_stream *s, const struct net_call *c);
/* All calls are there: their places. */
void net_stream_settle(struct net_stream *s);

enum { NET_SENDS, NET_RECEIVES };
struct net_socket {
	uint32_t host; /* the first node of it */
	uint64_t number;
	struct kron_endpoints ends;
	bool has_ends, is_begun;
	bool is_doubtful; /* has had two pairs of addresses */
	bool has_lost;    /* samples of a process that used it are missing */
	uint64_t ncalls;
	/* Of those that are shown: all, and those that got no bytes of the stream. */
	uint64_t nshown, naside;
	struct net_stream ways[2]; /* NET_SENDS ... */
};

/* ---- net_match.c ---- */
struct net_match {
	const struct trace *t;
	const struct message_sink *sink;
	struct net_counts *counts;
};
/* Pairs the sockets, and gives out their messages. */
void net_match(struct net_match *m, struct net_socket *sockets, size_t n);

#endif
