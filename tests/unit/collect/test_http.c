/* SPDX-License-Identifier: MIT */
/* test_http.c - requests from anybody on this machine: what is one, what is not yet, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collect/http/request.h"

/* In memory that ends with it, so that a sanitizer sees who reads on. */
static int parse(const char *text, size_t n, struct http_request *out)
{
	static char *bytes;

	free(bytes);
	bytes = malloc(n + 1);
	assert_non_null(bytes);
	bytes = realloc(bytes, n ? n : 1);
	memcpy(bytes, text, n);
	return http_request_parse(bytes, n, out);
}

static int status_of(const char *text)
{
	struct http_request r;

	return parse(text, strlen(text), &r);
}

#define HOST "Host: localhost:1\r\n"

static void whole_requests(void **state)
{
	static const char *const all[] = {
		"GET /a/ HTTP/1.1\r\n" HOST "\r\n",
		"GET / HTTP/1.0\r\nhOST:localhost:1\r\n\r\n",
		"GET /a/events?x HTTP/1.1\r\nAccept: */*\r\nHost: \t localhost:1 \t\r\nX:\r\nX: \xff\t\r\n\r\n",
		"GET /a/ HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\nand more",
	};
	struct http_request r;

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		assert_int_equal(parse(all[i], strlen(all[i]), &r), HTTP_OK);
		assert_true(http_text_is(r.host, "localhost:1"));
		assert_true(http_text_is_name(r.host, "LocalHost:1"));
		assert_int_equal(r.path.s[0], '/');
		/* by every shorter piece it is not whole */
		for (size_t n = 0; n < (size_t)(strstr(all[i], "\r\n\r\n") - all[i]) + 4; n++)
			assert_int_equal(parse(all[i], n, &r), HTTP_MORE);
	}
}

static void refusals(void **state)
{
	static const char *const bad[] = {
		"\r\n\r\n",
		"GET / HTTP/1.1\r\n\r\n", /* no Host */
		"GET / HTTP/1.1\r\nHost:\r\n\r\n",
		"GET / HTTP/1.1\r\n" HOST HOST "\r\n", /* which one? */
		"GET / HTTP/1.1\r\n" HOST " goes on\r\n\r\n",
		"GET / HTTP/1.1\r\nHost : localhost:1\r\n\r\n",
		"GET / HTTP/1.1\r\n" HOST "no colon\r\n\r\n",
		"GET / HTTP/1.1\r\n" HOST "X: a\nY: b\r\n\r\n", /* a line that ends otherwise */
		"GET / HTTP/1.1\r\n" HOST "X: a\rb\r\n\r\n",
		"GET / HTTP/1.1\r\n" HOST "X: \x7f\r\n\r\n",
		"GET / HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nbody",
		"GET / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n",
		"GET / HTTP/2.0\r\n" HOST "\r\n",
		"GET / HTTP/1.1 \r\n" HOST "\r\n",
		"GET  / HTTP/1.1\r\n" HOST "\r\n",
		"GET http://localhost:1/ HTTP/1.1\r\n" HOST "\r\n",
		"GET x HTTP/1.1\r\n" HOST "\r\n",
		"GET /\x01 HTTP/1.1\r\n" HOST "\r\n",
		"GET /\xc3\xa4 HTTP/1.1\r\n" HOST "\r\n",
		"G(T / HTTP/1.1\r\n" HOST "\r\n",
		" GET / HTTP/1.1\r\n" HOST "\r\n",
		"GET /\r\n" HOST "\r\n",
	};
	static const char *const others[] = {"POST", "HEAD", "OPTIONS", "get", "CONNECT"};
	static const char zero[] = "GET / HTTP/1.1\r\n" HOST "X: a\0b\r\n\r\n";
	struct http_request r;
	char text[128];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(status_of(bad[i]), HTTP_BAD_REQUEST);
	assert_int_equal(parse(zero, sizeof(zero) - 1, &r), HTTP_BAD_REQUEST);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		snprintf(text, sizeof(text), "%s / HTTP/1.1\r\n" HOST "\r\n", others[i]);
		assert_int_equal(status_of(text), HTTP_NOT_ALLOWED);
	}
}

static void too_long(void **state)
{
	static char text[HTTP_REQUEST_MAX + 1];
	struct http_request r;

	(void)state;
	memset(text, 'a', sizeof(text));
	assert_int_equal(parse(text, HTTP_REQUEST_MAX - 1, &r), HTTP_MORE);
	assert_int_equal(parse(text, HTTP_REQUEST_MAX, &r), HTTP_TOO_LARGE);
}

/* Whatever comes, it reads nothing but that, and says what it may say. */
static void any_bytes(void **state)
{
	static const char words[][24] = {"GET ", "/",     " HTTP/1.1", "\r\n",
					 "\n",   "Host:", "a",         "\r\n\r\n",
					 ":",    " ",     "POST",      "Content-Length: 1"};
	struct http_request r;
	unsigned seed = 1;

	(void)state;
	for (unsigned turn = 0; turn < 50000; turn++) {
		char text[256];
		size_t n = 0;
		int status;

		for (unsigned k = seed % 12; k; k--) {
			const char *w;

			seed = seed * 1103515245u + 12345u;
			w = words[(seed >> 16) % (sizeof(words) / sizeof(words[0]))];
			memcpy(text + n, w, strlen(w));
			n += strlen(w);
			if (!(seed >> 16 & 15))
				text[n++] = (char)(seed >> 8);
		}
		seed = seed * 1103515245u + 12345u;
		status = parse(text, n, &r);
		assert_true(status == HTTP_MORE || status == HTTP_OK ||
			    status == HTTP_BAD_REQUEST || status == HTTP_NOT_ALLOWED);
		assert_true(status != HTTP_OK || (r.host.n && r.path.n));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_requests),
		cmocka_unit_test(refusals),
		cmocka_unit_test(too_long),
		cmocka_unit_test(any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
