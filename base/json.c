/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void before_value(struct json *j)
{
	if (j->need_comma && !j->after_key)
		fputc(',', j->f);
	j->after_key = 0;
	j->need_comma = 1;
}

void json_open(struct json *j, char bracket)
{
	before_value(j);
	fputc(bracket, j->f);
	j->depth++;
	j->need_comma = 0;
}

void json_close(struct json *j, char bracket)
{
	fputc(bracket, j->f);
	j->depth--;
	j->need_comma = 1;
	if (!j->depth) {
		fputc('\n', j->f);
		j->need_comma = 0;
	}
}

/*
 * Length of the well-formed UTF-8 sequence at s, 0 if it is none (Unicode, table 3-7: no
 * overlong forms, no surrogates, nothing above U+10FFFF).
 */
static size_t utf8_length(const unsigned char *s)
{
	unsigned char lo = 0x80, hi = 0xbf;
	size_t n;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		n = 2;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		n = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if (s[0] == 0xe0)
		lo = 0xa0;
	else if (s[0] == 0xed)
		hi = 0x9f;
	else if (s[0] == 0xf0)
		lo = 0x90;
	else if (s[0] == 0xf4)
		hi = 0x8f;
	if (s[1] < lo || s[1] > hi)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

/* Line separators, and marks that turn the direction of the text that follows; 0: none of them. */
static unsigned turning_mark(const unsigned char *s)
{
	unsigned code = s[0] == 0xe2 ? 0x2000u | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu) : 0;

	return (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ? code : 0;
}

static size_t put_char(FILE *f, const unsigned char *s)
{
	size_t n = utf8_length(s);

	if (n == 0) {
		fputs("\\ufffd", f);
		return 1;
	}
	if (*s == '"' || *s == '\\')
		fprintf(f, "\\%c", *s);
	else if (*s == '\n')
		fputs("\\n", f);
	else if (*s == '\t')
		fputs("\\t", f);
	else if (*s < 0x20 || *s == 0x7f)
		fprintf(f, "\\u%04x", *s);
	else if (s[0] == 0xc2 && s[1] < 0xa0) /* C1 controls, which terminals obey */
		fprintf(f, "\\u%04x", s[1]);
	else if (n == 3 && turning_mark(s))
		fprintf(f, "\\u%04x", turning_mark(s));
	else
		fwrite(s, 1, n, f);
	return n;
}

static void put_string(FILE *f, const char *s)
{
	const unsigned char *p = (const unsigned char *)s;

	fputc('"', f);
	while (*p)
		p += put_char(f, p);
	fputc('"', f);
}

void json_key(struct json *j, const char *key)
{
	before_value(j);
	put_string(j->f, key);
	fputc(':', j->f);
	j->after_key = 1;
}

void json_str(struct json *j, const char *s)
{
	before_value(j);
	if (s)
		put_string(j->f, s);
	else
		fputs("null", j->f);
}

void json_u64(struct json *j, uint64_t v)
{
	before_value(j);
	fprintf(j->f, "%" PRIu64, v);
}

void json_i64(struct json *j, int64_t v)
{
	before_value(j);
	fprintf(j->f, "%" PRId64, v);
}

static void put_double(struct json *j, double v, int digits)
{
	before_value(j);
	if (isfinite(v))
		fprintf(j->f, "%.*g", digits, v);
	else
		fputs("null", j->f);
}

void json_f64(struct json *j, double v)
{
	put_double(j, v, 15);
}

void json_f64_exact(struct json *j, double v)
{
	put_double(j, v, 17);
}

void json_bool(struct json *j, int v)
{
	before_value(j);
	fputs(v ? "true" : "false", j->f);
}

void json_kstr(struct json *j, const char *key, const char *s)
{
	json_key(j, key);
	json_str(j, s);
}

void json_ku64(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_u64(j, v);
}
