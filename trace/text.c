/* SPDX-License-Identifier: MIT */
/* text.c - see text.h. */
#define _GNU_SOURCE
#include "trace/text.h"

#include <string.h>

#include "base/str.h"
#include "base/vec.h"

#define MEANINGLESS 2 /* an estimate that may be more than so many times too long or too short */

/* Length of the UTF-8 sequence at s, 0 if it is none or a control character. */
static size_t printable(const unsigned char *s)
{
	unsigned code;
	size_t n;

	if (s[0] < 0x80)
		return s[0] >= 0x20 && s[0] != 0x7f;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		n = 2, code = s[0] & 0x1f;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		n = 3, code = s[0] & 0x0f;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		n = 4, code = s[0] & 0x07;
	else
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3f);
	}
	if (code < 0xa0 || (n == 3 && code < 0x800) || (n == 4 && code < 0x10000))
		return 0;
	/* surrogates; line separators and marks that turn the direction of text */
	if ((code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff ||
	    (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069))
		return 0;
	return n;
}

void text_put(FILE *f, const char *s)
{
	const unsigned char *p = (const unsigned char *)s, *from = p;
	size_t n;

	while (*p) {
		n = printable(p);
		if (n) {
			p += n;
			continue;
		}
		fwrite(from, 1, (size_t)(p - from), f);
		fprintf(f, "\\x%02x", *p);
		from = ++p;
	}
	fwrite(from, 1, (size_t)(p - from), f);
}

char *text_shown(const char *s)
{
	char *shown = NULL;
	size_t size;
	FILE *f = open_memstream(&shown, &size);

	if (!f)
		return xstrdup("?");
	text_put(f, s);
	fclose(f);
	return shown;
}

char *text_escaped(const char *s)
{
	char *twice = xmalloc(2 * strlen(s) + 1), *to = twice, *shown;

	for (; *s; s++) {
		if (*s == '\\')
			*to++ = '\\';
		*to++ = *s;
	}
	*to = 0;
	shown = text_shown(twice);
	xfree(twice);
	return shown;
}

const char *text_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

const char *text_function(const struct trace *t, uint32_t n, char *buf, size_t size)
{
	const struct trace_function *f = trace_function_of(t, KRON_EVENT_ENTRY(n));

	if (f)
		return f->name;
	snprintf(buf, size, "event %u", KRON_EVENT_ENTRY(n));
	return buf;
}

const char *text_module(const struct trace *t, uint32_t n)
{
	const struct trace_function *f = trace_function_of(t, KRON_EVENT_ENTRY(n));

	return f ? t->modules[f->module].path : "?";
}

char *text_event_modules(const struct trace *t, const struct trace_user_event *u, bool base)
{
	const char *path = t->modules[u->places->module].path;

	path = base ? text_base(path) : path;
	return u->nplaces == 1 ? xstrdup(path) : xasprintf("%s and %zu more", path, u->nplaces - 1);
}

void text_put_function(FILE *f, const struct trace *t, uint32_t n)
{
	char buf[32];

	text_put(f, text_function(t, n, buf, sizeof(buf)));
}

void text_put_bounded(FILE *f, uint64_t ns, uint64_t low, uint64_t high)
{
	char buf[STR_NUMBER], bound[STR_NUMBER + 2];

	if (high == UINT64_MAX)
		snprintf(bound, sizeof(bound), "%c%s", low ? '>' : '<',
			 low ? str_duration(buf, sizeof(buf), low) : "?");
	else if (high && (low < ns / MEANINGLESS || !low || high / MEANINGLESS > ns))
		snprintf(bound, sizeof(bound), "<%s", str_duration(buf, sizeof(buf), high));
	else
		str_duration_column(bound, sizeof(bound), ns);
	fprintf(f, "%10s", bound);
}

void text_put_duration(FILE *f, uint64_t ns)
{
	char buf[STR_NUMBER];

	fprintf(f, "%10s", str_duration_column(buf, sizeof(buf), ns));
}

const char *text_groups(char *buf, size_t size, uint32_t groups)
{
	size_t n = 0;

	buf[0] = 0;
	for (unsigned first = 0, end; first < KRON_LEVELS; first = end) {
		for (end = first; end < KRON_LEVELS && groups >> end & 1; end++)
			;
		if (end > first && n < size)
			n += (size_t)snprintf(buf + n, size - n,
					      end > first + 1 ? "%s%u-%u" : "%s%u", n ? ", " : "",
					      first, end - 1);
		end += end == first;
	}
	return buf;
}
