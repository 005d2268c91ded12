/* SPDX-License-Identifier: MIT */
/* parse.c - one line of the probe language, and a text of many. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/regex.h"
#include "probes/load.h"
#include "probes/parse.h"

static void free_name(struct spec_name *n)
{
	regex_free(n->regex);
	xfree(n->text);
}

void probe_spec_free(struct probe_spec *s)
{
	xfree(s->where);
	xfree(s->text);
	xfree(s->words);
	xfree(s->event);
	free_name(&s->object);
	free_name(&s->function);
	xfree(s->source);
	xfree(s->provider);
	xfree(s->marker);
	xfree(s->payload_name);
	xfree(s->variable);
}

void probe_set_free(struct probe_set *set)
{
	vec_for(&set->specs, s)
		probe_spec_free(s);
	vec_for(&set->levels, l)
		xfree(l->name);
	vec_free(&set->specs);
	vec_free(&set->objects);
	vec_free(&set->levels);
}

/* ---- levels ---- */

static const struct probe_level *find_level(const struct probe_set *set, struct span name)
{
	for (size_t i = 0; i < set->levels.n; i++)
		if (span_is(name, set->levels.v[i].name))
			return &set->levels.v[i];
	return NULL;
}

static int level_number(const struct lex *lx, struct span sp, uint8_t *out)
{
	uint64_t n;

	if (!span_number(sp, &n) || n >= PROBE_LEVELS)
		return lex_error(lx, sp.s, "a filter level is a number from 0 to %u",
				 PROBE_LEVELS - 1);
	*out = (uint8_t)n;
	return 0;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* level NAME = N */
static int declare_level(struct probe_set *set, struct lex *lx)
{
	struct span name = lex_word(lx), number;
	const struct probe_level *other = find_level(set, name);
	struct probe_level *l;
	uint8_t level = 0;
	int code;

	if (is_digit(name.s[0]))
		return lex_error(lx, name.s, "the name of a level begins with a letter");
	lex_blanks(lx);
	lex_sign(lx, '=');
	lex_blanks(lx);
	number = lex_token(lx);
	code = level_number(lx, number, &level);
	lex_blanks(lx);
	if (!code && !lex_at_end(lx))
		code = lex_error(lx, lx->at, "level NAME = N is all that may stand here");
	if (!code && other && other->level != level)
		code = lex_error(lx, name.s, "level %s is %u already", other->name, other->level);
	if (code || other)
		return code;
	l = vec_push(&set->levels);
	l->name = span_dup(name);
	l->level = level;
	return 0;
}

/* "level NAME =": a probe on a function called level has no = with blanks around. */
static bool is_declaration(struct lex *lx)
{
	struct lex ahead = *lx;
	const char *end;

	if (!span_is(lex_word(&ahead), "level"))
		return false;
	if (ahead.at == ahead.end || !lex_is_blank(*ahead.at))
		return false;
	lex_blanks(&ahead);
	lx->at = ahead.at; /* on success the caller goes on here */
	if (!lex_word(&ahead).n)
		return false;
	end = ahead.at;
	lex_blanks(&ahead);
	if (!lex_sign(&ahead, '='))
		return false;
	return end + 1 < ahead.at || ahead.at == ahead.end || lex_is_blank(*ahead.at) ||
	       is_digit(*ahead.at);
}

/* ---- group and event ---- */

static int take_group(const struct probe_set *set, const struct lex *lx, struct probe_spec *s,
		      struct span group)
{
	const struct probe_level *l;

	if (!group.n)
		return 0;
	s->gated = true;
	if (is_digit(group.s[0]))
		return level_number(lx, group, &s->level);
	l = find_level(set, group);
	if (!l)
		return lex_error(lx, group.s,
				 "no level has this name; `level %.*s = N` gives it one",
				 (int)(group.n < 40 ? group.n : 40), group.s);
	s->level = l->level;
	return 0;
}

static int take_event(const struct lex *lx, struct probe_spec *s, struct span event)
{
	uint64_t n;

	if (!event.n)
		return 0;
	if (!is_digit(event.s[0])) {
		s->event = span_dup(event);
		return 0;
	}
	if (!span_number(event, &n) || n > PROBE_NUMBER_MAX)
		return lex_error(lx, event.s, "an event is a name, or a number up to %u",
				 PROBE_NUMBER_MAX);
	s->number = (uint32_t)n;
	s->has_number = true;
	return 0;
}

/* [GROUP:][EVENT]=, if it is there: one = that no other one follows ("operator==" is a name). */
static bool find_head(struct lex *lx, struct span *group, struct span *event)
{
	struct lex ahead = *lx;

	*group = (struct span){.s = lx->at};
	*event = lex_word(&ahead);
	if (ahead.at < ahead.end && *ahead.at == ':') {
		*group = *event;
		ahead.at++;
		*event = lex_word(&ahead);
	}
	if (!lex_sign(&ahead, '=') || (ahead.at < ahead.end && *ahead.at == '='))
		return false;
	if (span_is(*event, "operator") || (!group->n && !event->n))
		return false;
	*lx = ahead;
	return true;
}

/* Without the blanks at the end. */
static char *words_of(const char *from, const char *to)
{
	while (to > from && lex_is_blank(to[-1]))
		to--;
	return xstrndup(from, (size_t)(to - from));
}

static int parse_probe(struct probe_set *set, struct lex *lx, struct probe_spec *s)
{
	struct spec_marks marks = {.start = lx->at};
	struct span group, event;
	int code = 0;

	s->level = set->default_level;
	s->where = xasprintf("%s:%u", lx->file, lx->line);
	if (find_head(lx, &group, &event)) {
		marks.event = event.n ? event.s : NULL;
		code = take_group(set, lx, s, group);
		if (!code)
			code = take_event(lx, s, event);
	}
	marks.place = lx->at;
	if (!code)
		code = parse_place(lx, s);
	if (!code)
		s->text = xstrndup(marks.place, (size_t)(lx->at - marks.place));
	if (!code)
		code = parse_what(lx, s, &marks);
	if (!code)
		s->words = words_of(marks.place, lx->at);
	if (!code && s->kind < SPEC_COUNT)
		s->gated = true;
	return code ? code : check_spec(lx, s, &marks);
}

/* ---- lines ---- */

static bool is_include(const struct lex *lx)
{
	static const char word[] = "include";
	size_t n = sizeof(word) - 1;

	return (size_t)(lx->end - lx->at) > n && !memcmp(lx->at, word, n) &&
	       lex_is_blank(lx->at[n]);
}

static int include(struct probe_set *set, struct lex *lx)
{
	const char *at;
	struct span sp;
	char *name;
	int code;

	lex_token(lx);
	lex_blanks(lx);
	at = lx->at;
	sp = lex_token(lx);
	lex_blanks(lx);
	if (!sp.n || !lex_at_end(lx))
		return lex_error(lx, at, "one file or pack is needed here: include NAME");
	name = span_dup(sp);
	code = load_include(set, lx, at, name);
	xfree(name);
	return code;
}

/* Untyped values of 32 bits go with any of these. */
static bool may_share_event(const struct probe_spec *a, const struct probe_spec *b)
{
	const char *x = probe_payload_type(a->payload_name),
		   *y = probe_payload_type(b->payload_name);

	if (a->variable || b->variable) /* their types are known where they are found */
		return true;
	return a->is_wide == b->is_wide && a->is_text == b->is_text &&
	       (!*x || !*y || !strcmp(x, y));
}

/* The samples of an event are all read alike. */
static int check_event(const struct probe_set *set, const struct lex *lx, const char *at)
{
	const struct probe_spec *s = &set->specs.v[set->specs.n - 1];

	for (size_t i = 0; s->event && s->payload_name && i + 1 < set->specs.n; i++) {
		const struct probe_spec *o = &set->specs.v[i];

		if (o->event && o->payload_name && !strcmp(o->event, s->event) &&
		    o->level == s->level && !may_share_event(o, s))
			return lex_error(lx, at,
					 "the value of %s has another type at %s: an event has one "
					 "type",
					 s->event, o->where);
	}
	return 0;
}

/* Do both mean the same modules, whichever there are? */
static bool is_same_object(const struct probe_spec *a, const struct probe_spec *b)
{
	if (!a->object.text || !b->object.text)
		return a->object.text == b->object.text &&
		       (a->place == SPEC_USDT) == (b->place == SPEC_USDT);
	return a->object.match == b->object.match && !strcmp(a->object.text, b->object.text);
}

/* The newest spec's object: one that others have, too, is asked once for all of them. */
static void note_object(struct probe_set *set)
{
	uint32_t last = (uint32_t)set->specs.n - 1;
	struct probe_spec *s = &set->specs.v[last];

	vec_for(&set->objects, first) {
		const struct probe_spec *o = &set->specs.v[*first];

		if (!is_same_object(o, s))
			continue;
		regex_free(s->object.regex);
		s->object.regex = regex_share(o->object.regex);
		return;
	}
	*vec_push(&set->objects) = last;
}

int parse_line(struct probe_set *set, struct lex *lx)
{
	struct lex start;
	int code;

	lex_blanks(lx);
	start = *lx;
	if (lex_at_end(lx))
		return 0;
	if (is_include(lx))
		return include(set, lx);
	if (is_declaration(lx))
		return declare_level(set, lx);
	*lx = start;
	code = parse_probe(set, lx, vec_push(&set->specs));
	if (!code)
		code = check_event(set, lx, start.at);
	if (code)
		probe_spec_free(&set->specs.v[--set->specs.n]);
	else
		note_object(set);
	return code;
}

int probe_set_add_text(struct probe_set *set, const char *name, const char *text, size_t n,
		       struct err *err)
{
	struct lex lx = {.file = name, .err = err, .end = text};
	const char *end = text + n;
	int code = 0;

	while (!code && text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));

		lx.line++;
		lx.text = lx.at = text;
		lx.end = newline ? newline : end;
		if (memchr(text, 0, (size_t)(lx.end - text)))
			return lex_error(&lx, memchr(text, 0, (size_t)(lx.end - text)),
					 "a zero byte: this is not text");
		code = parse_line(set, &lx);
		text = newline ? newline + 1 : end;
	}
	return code;
}

int probe_set_add(struct probe_set *set, const char *spec, unsigned number, struct err *err)
{
	size_t before = set->specs.n, levels = set->levels.n;
	struct lex lx = {
		.line = 1, .text = spec, .at = spec, .end = spec + strlen(spec), .err = err};
	char name[32];
	int code;

	snprintf(name, sizeof(name), number ? "<-p %u>" : "SPEC", number);
	lx.file = name;
	code = probe_set_add_text(set, name, spec, strlen(spec), err);
	if (!code && before == set->specs.n && levels == set->levels.n)
		return lex_error(&lx, spec, "a probe is missing here");
	return code;
}
