/* SPDX-License-Identifier: MIT */
/*
 * request.h - the head of an HTTP/1.x request (RFC 9112), as far as a server needs it that only shows.
 *
 *   GET SP /path SP HTTP/1.1 CRLF    Host: 127.0.0.1:8080 CRLF    ... CRLF CRLF
 *
 * What is not exactly so is refused, not guessed at.  It may come from anybody on this machine.
 */
#ifndef COLLECT_HTTP_REQUEST_H
#define COLLECT_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#define HTTP_REQUEST_MAX 8192u /* bytes of a head */

struct http_text {
	const char *s; /* not ended by a zero byte */
	size_t n;
};
struct http_request {
	struct http_text path, host;
};

enum {
	HTTP_MORE = 0, /* the head is not whole yet */
	HTTP_OK = 200,
	HTTP_BAD_REQUEST = 400,
	HTTP_FORBIDDEN = 403,
	HTTP_NOT_FOUND = 404,
	HTTP_NOT_ALLOWED = 405, /* not GET */
	HTTP_TOO_LARGE = 431,
	HTTP_BUSY = 503,
};

/* HTTP_OK: out points into bytes.  Else HTTP_MORE, or why it is refused. */
int http_request_parse(const char *bytes, size_t n, struct http_request *out);
bool http_text_is(struct http_text t, const char *word);
/* As names of hosts are compared: whatever the case of letters. */
bool http_text_is_name(struct http_text t, const char *word);

#endif
