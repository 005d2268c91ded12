/* SPDX-License-Identifier: MIT */
/* interval_info.c - parses interval.info, line by line; see interval_info.h for the grammar. */
#define _GNU_SOURCE
#include "trace/analysis/interval_info.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 40 }; /* characters of a wrong word that a sentence repeats */

struct line {
	struct interval_info *info;
	unsigned number;
	unsigned event_bits;
	const char *at;
	const struct interval_names *names;
};

/* ---- sentences ---- */

static bool wrong(struct line *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Note a sentence about this line; false, for the caller to return. */
static bool wrong(struct line *l, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	if (l->info->nerrors++ >= INTERVAL_ERRORS)
		return false;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	*vec_push(&l->info->errors) = xasprintf("%u: %s", l->number, text);
	return false;
}

/* What stands at l->at, as far as a sentence needs it, without control characters. */
static const char *word_here(const struct line *l, char *out)
{
	int n = 0;

	for (const char *p = l->at; *p && !isspace((unsigned char)*p) && n < SHOWN; p++)
		out[n++] = isprint((unsigned char)*p) ? *p : '?';
	out[n] = 0;
	return out;
}

/* ---- fields ---- */

/* Go to the next field; false: there is none. */
static bool next_field(struct line *l)
{
	while (isspace((unsigned char)*l->at))
		l->at++;
	return *l->at && *l->at != '#';
}

static bool read_number(struct line *l, const char *what, uint64_t *out)
{
	char word[SHOWN + 1];
	const char *digits = l->at;
	char *end;
	int base = 10;

	if (!next_field(l))
		return wrong(l, "%s is missing", what);
	digits = l->at;
	if (digits[0] == '0' && (digits[1] | 0x20) == 'x') {
		base = 16;
		digits += 2;
	}
	errno = 0;
	*out = strtoull(digits, &end, base);
	if (!isxdigit((unsigned char)*digits) || end == digits ||
	    (*end && !isspace((unsigned char)*end) && *end != '"' && *end != '#'))
		return wrong(l, "%s should be a number, not '%s'", what, word_here(l, word));
	if (errno)
		return wrong(l, "%s, '%s', is too large", what, word_here(l, word));
	l->at = end;
	return true;
}

/* NAME, 'NAME', and %return after it. */
static bool read_function(struct line *l, uint64_t *out)
{
	char word[SHOWN + 1], *name, *suffix;
	const char *end = l->at, *why = NULL;
	bool is_quoted = *end == '\'', is_exit = false;

	if (is_quoted) {
		end = strchr(end + 1, '\'');
		if (!end)
			return wrong(l, "the name has no closing quote: %s", word_here(l, word));
		end++;
	}
	while (*end && !isspace((unsigned char)*end))
		end++;
	name = xstrndup(l->at + is_quoted, (size_t)(end - l->at) - is_quoted);
	suffix = is_quoted ? strchr(name, '\'') : strstr(name, "%return");
	if (is_quoted)
		*suffix++ = 0;
	if (suffix && !strcmp(suffix, "%return")) {
		is_exit = true;
		*suffix = 0;
	} else if (suffix && *suffix) {
		why = "is followed by something other than %return";
	}
	if (!why)
		why = l->names->find(l->names->ctx, name, is_exit, out);
	xfree(name);
	if (why)
		return wrong(l, "%s %s", word_here(l, word), why);
	l->at = end;
	return true;
}

static bool read_event(struct line *l, const char *what, uint64_t *out)
{
	if (!l->names || !next_field(l) || isdigit((unsigned char)*l->at) || *l->at == '"')
		return read_number(l, what, out);
	return read_function(l, out);
}

static bool read_name(struct line *l, char **out)
{
	char word[SHOWN + 1], *name, *to;
	const char *p;

	if (!next_field(l))
		return wrong(l, "a description in double quotes is missing");
	if (*l->at != '"')
		return wrong(l, "a description should stand here in double quotes, not '%s'",
			     word_here(l, word));
	name = to = xmalloc(strlen(l->at));
	for (p = l->at + 1; *p && *p != '"'; p++) {
		if (*p == '\\' && (p[1] == '"' || p[1] == '\\'))
			p++;
		*to++ = *p;
	}
	*to = 0;
	*out = name;
	if (!*p)
		return wrong(l, "the description has no closing quote");
	l->at = p + 1;
	return true;
}

/* ---- lines ---- */

static bool read_class(struct line *l, struct interval_def *d)
{
	char word[SHOWN + 1];
	uint64_t class;

	if (!isdigit((unsigned char)*l->at))
		return wrong(l, "the class, 1 to 4, should stand first, not '%s'",
			     word_here(l, word));
	if (!read_number(l, "the class", &class))
		return false;
	if (class < 1 || class > 4)
		return wrong(l, "%" PRIu64 " is not a class: there are 1, 2, 3 and 4", class);
	d->class = (int)class;
	d->nevents = class == 2 || class == 3 ? 3 : 2;
	return true;
}

static bool read_events(struct line *l, struct interval_def *d)
{
	static const char *const names[] = {"event 1", "event 2", "event 3"};

	for (int i = 0; i < d->nevents; i++) {
		if (!read_event(l, names[i], &d->event[i]))
			return false;
		if (l->event_bits < 64 && d->event[i] >> l->event_bits)
			return wrong(l, "%s, %" PRIu64 ", does not fit into %u bits", names[i],
				     d->event[i], l->event_bits);
	}
	return true;
}

/*
 * An event may end an interval and begin the next one, of class 1 too ("1 10 10" is the time
 * from one to the next).  What cannot be told apart is refused.
 */
static bool are_distinct(struct line *l, const struct interval_def *d)
{
	if (d->class == 4 && d->event[0] == d->event[1])
		return wrong(l, "in class 4 the two events have to differ");
	if (d->class == 2 && d->event[1] == d->event[2])
		return wrong(l, "in class 2 the two ends, events 2 and 3, have to differ");
	if (d->class == 3 && (d->event[1] == d->event[0] || d->event[1] == d->event[2]))
		return wrong(l, "in class 3 event 2 has to differ from the other two");
	return true;
}

static bool read_names(struct line *l, struct interval_def *d)
{
	char word[SHOWN + 1];

	d->nrows = d->nevents - 1;
	for (int i = 0; i < d->nrows; i++)
		if (!read_name(l, &d->name[i]))
			return false;
	if (next_field(l))
		return wrong(l, "class %d has %s, and then there is '%s'", d->class,
			     d->nrows == 1 ? "one description" : "two descriptions",
			     word_here(l, word));
	if (d->class == 3)
		d->name[d->nrows++] = xasprintf("%s %s", d->name[0], d->name[1]);
	return true;
}

static void free_def(struct interval_def *d)
{
	for (int i = 0; i < INTERVAL_ROWS; i++)
		xfree(d->name[i]);
}

static void read_line(struct line *l)
{
	struct interval_def d = {.line = l->number};

	if (!next_field(l))
		return;
	if (read_class(l, &d) && read_events(l, &d) && are_distinct(l, &d) && read_names(l, &d))
		*vec_push(&l->info->defs) = d;
	else
		free_def(&d);
}

int interval_info_read(struct interval_info *info, FILE *f, unsigned event_bits,
		       const struct interval_names *names, struct err *err)
{
	struct line l = {.info = info, .event_bits = event_bits, .names = names};
	char *text = NULL;
	size_t size = 0;
	ssize_t len;
	int code;

	errno = 0;
	while ((len = getline(&text, &size, f)) > 0) {
		l.number++;
		l.at = text;
		if (strlen(text) != (size_t)len)
			wrong(&l, "a NUL byte: this is not text");
		else
			read_line(&l);
		errno = 0;
	}
	code = ferror(f) ? errno : 0;
	free(text);
	if (code)
		return err_set(err, code, "cannot be read: %s", strerror(code));
	return info->nerrors ? -EINVAL : 0;
}

void interval_info_free(struct interval_info *info)
{
	vec_for(&info->defs, d)
		free_def(d);
	vec_for(&info->errors, e)
		xfree(*e);
	vec_free(&info->defs);
	vec_free(&info->errors);
}
