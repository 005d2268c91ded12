/* SPDX-License-Identifier: MIT */
/* request.c - see request.h */
#define _GNU_SOURCE
#include "collect/http/request.h"

#include <string.h>
#include <strings.h>

bool http_text_is(struct http_text t, const char *word)
{
	return t.n == strlen(word) && !memcmp(t.s, word, t.n);
}

bool http_text_is_name(struct http_text t, const char *word)
{
	return t.n == strlen(word) && !strncasecmp(t.s, word, t.n);
}

/* RFC 9110, 5.6.2 */
static bool is_token_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(struct http_text t)
{
	for (size_t i = 0; i < t.n; i++)
		if (!is_token_char(t.s[i]))
			return false;
	return t.n;
}

/* What stands before c, which goes, too; false: there is no c. */
static bool take_until(struct http_text *rest, char c, struct http_text *out)
{
	const char *at = memchr(rest->s, c, rest->n);

	if (!at)
		return false;
	*out = (struct http_text){rest->s, (size_t)(at - rest->s)};
	rest->n -= out->n + 1;
	rest->s = at + 1;
	return true;
}

static bool is_path(struct http_text t)
{
	for (size_t i = 0; i < t.n; i++)
		if (t.s[i] <= ' ' || t.s[i] > '~')
			return false;
	return t.n && t.s[0] == '/';
}

static int take_first_line(struct http_text line, struct http_request *out)
{
	struct http_text method;

	if (!take_until(&line, ' ', &method) || !is_token(method) ||
	    !take_until(&line, ' ', &out->path) || !is_path(out->path) ||
	    (!http_text_is(line, "HTTP/1.1") && !http_text_is(line, "HTTP/1.0")))
		return HTTP_BAD_REQUEST;
	return http_text_is(method, "GET") ? HTTP_OK : HTTP_NOT_ALLOWED;
}

static struct http_text trimmed(struct http_text t)
{
	while (t.n && (*t.s == ' ' || *t.s == '\t')) {
		t.s++;
		t.n--;
	}
	while (t.n && (t.s[t.n - 1] == ' ' || t.s[t.n - 1] == '\t'))
		t.n--;
	return t;
}

static bool has_control(struct http_text t)
{
	for (size_t i = 0; i < t.n; i++)
		if (((unsigned char)t.s[i] < ' ' && t.s[i] != '\t') || t.s[i] == 127)
			return true;
	return false;
}

static bool has_body(struct http_text name, struct http_text value)
{
	return http_text_is_name(name, "transfer-encoding") ||
	       (http_text_is_name(name, "content-length") && !http_text_is(value, "0"));
}

/* A line that goes on in the next one begins with a space, which is no name of a field. */
static bool take_field(struct http_text line, struct http_request *out)
{
	struct http_text name;

	if (!take_until(&line, ':', &name) || !is_token(name) || has_control(line))
		return false;
	line = trimmed(line);
	if (has_body(name, line))
		return false;
	if (!http_text_is_name(name, "host"))
		return true;
	if (out->host.s || !line.n)
		return false;
	out->host = line;
	return true;
}

static bool take_line(struct http_text *rest, struct http_text *line)
{
	if (!take_until(rest, '\n', line) || !line->n || line->s[line->n - 1] != '\r')
		return false;
	line->n--;
	return true;
}

int http_request_parse(const char *bytes, size_t n, struct http_request *out)
{
	const char *end = memmem(bytes, n, "\r\n\r\n", 4);
	struct http_text rest = {bytes, n}, line;
	int first;

	*out = (struct http_request){0};
	if (!end)
		return n < HTTP_REQUEST_MAX ? HTTP_MORE : HTTP_TOO_LARGE;
	rest.n = (size_t)(end - bytes) + 2;
	if (!take_line(&rest, &line))
		return HTTP_BAD_REQUEST;
	first = take_first_line(line, out);
	if (first == HTTP_BAD_REQUEST)
		return first;
	while (rest.n)
		if (!take_line(&rest, &line) || !take_field(line, out))
			return first == HTTP_OK ? HTTP_BAD_REQUEST : first;
	return first == HTTP_OK && !out->host.s ? HTTP_BAD_REQUEST : first;
}
