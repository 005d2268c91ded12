/* SPDX-License-Identifier: MIT */
/*
 * server.h - shows pages and one stream of events to the user's own browser, and to nobody else.
 *
 *   http_open ─► (URL) ─► http_start ─► http_wake as often as there is more ─► http_end
 *
 * Who may ask: this machine (sockets.h) with the URL's token, 128 bits at random, which other users do not know; and
 * no page of another site, whose name leads here: the Host has to be ours.
 *
 * A thread of its own, the least favoured of all, does everything.  Whoever feeds it never waits for it, nor for a
 * client: http_wake() does not block.  The number of clients is bounded, and so are the time and the memory of each.
 */
#ifndef COLLECT_HTTP_SERVER_H
#define COLLECT_HTTP_SERVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"
#include "collect/http/request.h"
#include "collect/http/sockets.h"

#define HTTP_CLIENTS 32u /* at once; who has not asked for anything yet goes first */
#define HTTP_STREAMS 16u /* of which are streams */
#define HTTP_TOKEN 33    /* characters with the zero byte */

typedef VEC(char) http_bytes;

/* A page: what follows the token in its path, and its bytes. */
struct http_page {
	const char *name, *type;
	const char *policy; /* Content-Security-Policy */
	const unsigned char *bytes;
	size_t size;
};

/*
 * A stream: by the server's thread, with a place that is 0 at the beginning.  Appends what follows it, some 64 KiB at
 * the most, and moves it on; nothing: there is no more yet.  True: that was the end.
 */
typedef bool (*http_next)(void *ctx, uint64_t *place, http_bytes *out);

struct http_client;

struct http_server {
	const struct http_page *page;
	const char *stream; /* its name */
	http_next next;
	void (*gather)(
		void *ctx); /* by the server's thread after http_wake(), also without clients */
	void *ctx;
	/* private */
	struct http_sockets sockets;
	char token[HTTP_TOKEN];
	VEC(struct http_client *) clients;
	uint64_t deaf_until_ns; /* nobody is let in: there are no descriptors */
	pthread_t thread;
	int wake;
	bool is_running;
	bool ends; /* atomic */
};

/* Takes the port, so that nothing is begun where it is in use.  -errno with a sentence. */
int http_open(struct http_server *s, unsigned port, struct err *err);
/* Room for 96 characters. */
const char *http_url(const struct http_server *s, char *text, size_t size);
int http_start(struct http_server *s, struct err *err);
/* There is more. */
void http_wake(struct http_server *s);
/* What there is goes to those who listen and take it: within a fifth of a second, however they are. */
void http_end(struct http_server *s);

#endif
