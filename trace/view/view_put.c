/* SPDX-License-Identifier: MIT */
/*
 * view_put.c - how words and numbers of a trace get into a page.
 *
 *   names ─► text_put (no control characters, valid UTF-8) ─► json_str ─┐
 *   numbers ─► LEB128 ─► base64 ────────────────────────────────────────┴─► escape ─► page
 *
 * The data stand in a <script type="application/json">, which a browser does not run.  Such an
 * element ends at "</script", and "<!--" changes how its end is found; so `<`, `>` and `&`, which
 * occur in JSON in strings only, are written as \u003c and so on.  This is the only place that
 * has to be right for that: view_put_open's FILE is all that the other files write to.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/varint.h"
#include "trace/text.h"
#include "trace/view/view_impl.h"

/* ---- the one way into the page ---- */

static bool is_plain(char c)
{
	return c != '<' && c != '>' && c != '&' && c != 0x7f && c;
}

static ssize_t escape(void *cookie, const char *buf, size_t size)
{
	FILE *out = cookie;
	size_t from = 0;

	for (size_t i = 0; i < size; i++) {
		if (is_plain(buf[i]))
			continue;
		fwrite(buf + from, 1, i - from, out);
		fprintf(out, "\\u%04x", (unsigned char)buf[i]);
		from = i + 1;
	}
	fwrite(buf + from, 1, size - from, out);
	return ferror(out) ? -1 : (ssize_t)size;
}

FILE *view_put_open(FILE *out)
{
	FILE *f = fopencookie(out, "w", (cookie_io_functions_t){.write = escape});

	if (f)
		setvbuf(f, NULL, _IOFBF, 64 * 1024);
	return f;
}

/* ---- names ---- */

#define NAME_MOST 400u /* bytes; C++ knows names of many thousands */

void view_put_name(struct json *j, const char *s)
{
	size_t length = strlen(s), size;
	char *text = NULL, *cut = NULL;
	FILE *f = open_memstream(&text, &size);

	if (length > NAME_MOST) {
		length = NAME_MOST;
		while (length && ((unsigned char)s[length] & 0xc0) == 0x80)
			length--;
		cut = xasprintf("%.*s...", (int)length, s);
	}
	if (f) {
		text_put(f, cut ? cut : s);
		fclose(f);
	}
	json_str(j, text ? text : "?");
	free(text);
	xfree(cut);
}

void view_put_key_name(struct json *j, const char *key, const char *s)
{
	json_key(j, key);
	view_put_name(j, s);
}

/* ---- numbers ---- */

static uint8_t *room(struct view_bytes *b, size_t n)
{
	if (b->n + n > b->cap) {
		b->cap = b->cap ? 2 * b->cap : 256;
		b->v = xrealloc(b->v, b->cap);
	}
	return b->v + b->n;
}

void view_put_number(struct view_bytes *b, uint64_t v)
{
	b->n += varint_put(room(b, VARINT_MAX), v);
}

void view_put_signed(struct view_bytes *b, int64_t v)
{
	view_put_number(b, varint_zigzag(v));
}

void view_bytes_free(struct view_bytes *b)
{
	xfree(b->v);
	memset(b, 0, sizeof(*b));
}

static char *base64(const struct view_bytes *b)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *text = xmalloc(b->n / 3 * 4 + 5), *p = text;

	for (size_t i = 0; i < b->n; i += 3) {
		size_t left = b->n - i;
		uint32_t v = (uint32_t)b->v[i] << 16;

		v |= left > 1 ? (uint32_t)b->v[i + 1] << 8 : 0;
		v |= left > 2 ? b->v[i + 2] : 0;
		*p++ = digits[v >> 18];
		*p++ = digits[v >> 12 & 63];
		*p++ = left > 1 ? digits[v >> 6 & 63] : '=';
		*p++ = left > 2 ? digits[v & 63] : '=';
	}
	*p = 0;
	return text;
}

void view_put_base64(FILE *out, const struct view_bytes *b)
{
	char *text = base64(b);

	fputs(text, out);
	xfree(text);
}

void view_put_bytes(struct json *j, const struct view_bytes *b)
{
	char *text = base64(b);

	json_str(j, text);
	xfree(text);
}
