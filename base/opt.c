/* SPDX-License-Identifier: MIT */
#include "base/opt.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/near.h"
#include "base/vec.h"

enum {
	LONG_ONLY = 256,   /* getopt value of options[i] without a letter: LONG_ONLY + i */
	HELP_VALUE = 1024, /* of --help */
	OPTIONS_MAX = 64,
	HELP_COLUMN = 28,
	HELP_WIDTH = 80,
};

static const struct opt help_option = {'h', "help", OPT_FLAG, NULL, NULL, "Show this help.", 0, 0};

static bool takes_argument(const struct opt *o)
{
	return o->type != OPT_FLAG && o->type != OPT_COUNT;
}

static size_t count_options(const struct opt_command *c)
{
	size_t n = 0;

	while (c->opts && c->opts[n].name)
		n++;
	return n;
}

static const char *program_prefix(const struct opt_command *c)
{
	return c->alone ? "" : "kron ";
}

/* -h means --help unless the command uses the letter itself. */
static bool has_letter(const struct opt_command *c, char letter)
{
	for (size_t i = 0; i < count_options(c); i++)
		if (c->opts[i].letter == letter)
			return true;
	return false;
}

static int parse_number(const char *text, int base, uint64_t *out, const char **end)
{
	char *stop;

	/* strtoull takes spaces and signs, people who write numbers do not mean them */
	if (!isxdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	*out = strtoull(text, &stop, base);
	if (errno || stop == text)
		return -EINVAL;
	*end = stop;
	return 0;
}

int opt_size(const char *text, uint64_t *out)
{
	static const char units[] = "KMGT";
	const char *end, *unit;
	uint64_t v;

	if (parse_number(text, 10, &v, &end))
		return -EINVAL;
	if (*end) {
		unit = strchr(units, toupper((unsigned char)*end));
		if (!unit)
			return -EINVAL;
		for (end++; unit >= units; unit--) {
			if (v > UINT64_MAX / 1024)
				return -EINVAL;
			v *= 1024;
		}
		/* 64M, 64MB and 64MiB are the same here */
		if (end[0] == 'i' && end[1] == 'B')
			end += 2;
		else if (end[0] == 'B')
			end++;
	}
	if (*end)
		return -EINVAL;
	*out = v;
	return 0;
}

static int choice_index(const char *choices, const char *word)
{
	size_t len = strlen(word);
	int index = 0;

	for (const char *p = choices;; index++) {
		size_t n = strcspn(p, "|");

		if (n == len && !strncmp(p, word, n))
			return index;
		if (!p[n])
			return -1;
		p += n + 1;
	}
}

static int bad_value(const struct opt *o, const char *text, const char *what, struct err *err)
{
	return err_set(err, EINVAL, "--%s: '%s' is not %s", o->name, text, what);
}

static int set_number(const struct opt *o, const char *text, struct err *err)
{
	const char *end = "";
	uint64_t v;
	int r;

	if (o->type == OPT_SIZE)
		r = opt_size(text, &v);
	else
		r = parse_number(text, o->type == OPT_HEX ? 16 : 10, &v, &end);
	if (r || *end)
		return bad_value(o, text,
				 o->type == OPT_SIZE  ? "a size such as 512K, 64M or 2G"
				 : o->type == OPT_HEX ? "a hexadecimal number"
						      : "a number",
				 err);
	if (v < o->min || (o->max && v > o->max))
		return err_set(err, EINVAL, "--%s: %s is out of range (%llu to %llu)", o->name,
			       text, (unsigned long long)o->min,
			       (unsigned long long)(o->max ? o->max : UINT64_MAX));
	*(uint64_t *)o->value = v;
	return 0;
}

static int set_value(const struct opt *o, const char *text, struct err *err)
{
	struct opt_list *list;
	int index;

	switch (o->type) {
	case OPT_FLAG:
		*(bool *)o->value = true;
		return 0;
	case OPT_COUNT:
		++*(int *)o->value;
		return 0;
	case OPT_STR:
		*(const char **)o->value = text;
		return 0;
	case OPT_LIST:
		list = o->value;
		*vec_push(list) = text;
		return 0;
	case OPT_UINT:
	case OPT_HEX:
	case OPT_SIZE:
		return set_number(o, text, err);
	case OPT_CHOICE:
		index = choice_index(o->arg, text);
		if (index < 0)
			return err_set(err, EINVAL, "--%s: unknown value '%s'; choose one of %s",
				       o->name, text, o->arg);
		if (o->max && *(int *)o->value >= 0 && *(int *)o->value != index)
			return err_set(err, EINVAL, "--%s is one of %s", o->name, o->arg);
		*(int *)o->value = index;
		return 0;
	}
	return err_set(err, EINVAL, "--%s: no such type of option", o->name);
}

/* The two forms of the table that getopt_long reads. */
struct getopt_tables {
	char letters[2 * OPTIONS_MAX + 8];
	struct option longs[OPTIONS_MAX + 2];
};

static void make_tables(const struct opt_command *c, struct getopt_tables *t)
{
	size_t n = count_options(c), i;
	char *p = t->letters;

	if (n > OPTIONS_MAX)
		abort();
	/* '+': stop at the first operand; ':': tell a missing argument from an unknown option */
	if (c->stop_at_operand)
		*p++ = '+';
	*p++ = ':';
	for (i = 0; i < n; i++) {
		const struct opt *o = &c->opts[i];

		t->longs[i] = (struct option){o->name, takes_argument(o), NULL, LONG_ONLY + (int)i};
		if (!o->letter)
			continue;
		*p++ = o->letter;
		if (takes_argument(o))
			*p++ = ':';
	}
	if (!has_letter(c, 'h'))
		*p++ = 'h';
	*p = 0;
	t->longs[n] = (struct option){"help", 0, NULL, HELP_VALUE};
	t->longs[n + 1] = (struct option){0};
}

static const struct opt *find_option(const struct opt_command *c, int value)
{
	size_t n = count_options(c);

	for (size_t i = 0; i < n; i++)
		if (value == LONG_ONLY + (int)i ||
		    (c->opts[i].letter && value == c->opts[i].letter))
			return &c->opts[i];
	return NULL;
}

/* "--outptu": a word that no option begins with; "" if it is near none. */
static const char *meant_option(const struct opt_command *c, const char *word)
{
	struct near near = {.n = 0};
	char *name = xstrndup(word + 2, strcspn(word + 2, "="));

	for (size_t i = 0; i < count_options(c); i++)
		near_consider(&near, name, c->opts[i].name);
	xfree(name);
	return near.n ? near.v[0] : "";
}

static int explain_unknown(const struct opt_command *c, const char *word, struct err *err)
{
	size_t n = 0, len = strcspn(word + 2, "=");
	const char *meant;

	for (size_t i = 0; i < count_options(c); i++)
		n += !strncmp(c->opts[i].name, word + 2, len);
	if (n > 1)
		return err_set(err, EINVAL, "ambiguous option '%s'", word);
	meant = meant_option(c, word);
	return err_set(err, EINVAL,
		       *meant ? "unknown option '%s'; did you mean --%s?" : "unknown option '%s'",
		       word, meant);
}

static int explain(const struct opt_command *c, int what, char **argv, struct err *err)
{
	const char *word = argv[optind - 1];

	if (what == ':')
		return err_set(err, EINVAL, "option '%s' needs an argument", word);
	if (optopt >= LONG_ONLY)
		return err_set(err, EINVAL, "option '%s' takes no argument", word);
	if (optopt)
		return err_set(err, EINVAL, "unknown option '-%c'", optopt);
	return explain_unknown(c, word, err);
}

static int check_operands(const struct opt_command *c, int argc, char **argv, int first,
			  struct err *err)
{
	int given = argc - first;
	int max = c->operands ? c->max_operands : 0;

	if (given < c->min_operands)
		return err_set(err, EINVAL, "missing argument; usage: %s%s [OPTION]... %s",
			       program_prefix(c), c->name, c->operands);
	if (given > max && (max || !c->operands))
		return err_set(err, EINVAL, "one argument too many: '%s'", argv[first + max]);
	return first;
}

int opt_parse(const struct opt_command *c, int argc, char **argv, struct err *err)
{
	struct getopt_tables t;
	int value, r;

	make_tables(c, &t);
	optind = 0; /* glibc: start afresh */
	opterr = 0;
	while ((value = getopt_long(argc, argv, t.letters, t.longs, NULL)) != -1) {
		const struct opt *o = find_option(c, value);

		if (o) {
			r = set_value(o, optarg, err);
			if (r)
				return r;
		} else if (value == 'h' || value == HELP_VALUE) {
			return 0;
		} else {
			return explain(c, value, argv, err);
		}
	}
	return check_operands(c, argc, argv, optind, err);
}

/* ---- what people read ---- */

/* Print text from column on, broken at blanks before HELP_WIDTH. */
static void print_wrapped(FILE *out, const char *text, int column)
{
	int at = column;

	while (*text) {
		int n = (int)strcspn(text, " ");

		if (at > column && at + n >= HELP_WIDTH) {
			fprintf(out, "\n%*s", column, "");
			at = column;
		}
		fprintf(out, "%.*s", n, text);
		at += n;
		text += n;
		if (*text) {
			text++;
			if (at + 1 + (int)strcspn(text, " ") < HELP_WIDTH) {
				fputc(' ', out);
				at++;
			} else if (*text) {
				fprintf(out, "\n%*s", column, "");
				at = column;
			}
		}
	}
	fputc('\n', out);
}

#define CHOICE_SHOWN 48

/* " ARG": a choice of many words by the option's name in capitals; its help has the words. */
static const char *shown_argument(const struct opt *o, char *buf, size_t size)
{
	size_t n = 1;

	buf[0] = 0;
	if (!o->arg)
		return buf;
	if (o->type != OPT_CHOICE || strlen(o->arg) <= CHOICE_SHOWN) {
		snprintf(buf, size, " %s", o->arg);
		return buf;
	}
	buf[0] = ' ';
	for (const char *p = o->name; *p && n + 1 < size; p++)
		buf[n++] = (char)toupper((unsigned char)*p);
	buf[n] = 0;
	return buf;
}

static void print_option(FILE *out, const struct opt *o, bool letter)
{
	char left[128], arg[64];
	int n;

	n = snprintf(left, sizeof(left), "  %c%c%s --%s%s", letter ? '-' : ' ',
		     letter ? o->letter : ' ', letter ? "," : " ", o->name,
		     shown_argument(o, arg, sizeof(arg)));
	if (n >= HELP_COLUMN)
		fprintf(out, "%s\n%*s", left, HELP_COLUMN, "");
	else
		fprintf(out, "%-*s", HELP_COLUMN, left);
	print_wrapped(out, o->help, HELP_COLUMN);
}

void opt_help(const struct opt_command *c, FILE *out)
{
	fprintf(out, "Usage: %s%s [OPTION]...%s%s\n", program_prefix(c), c->name,
		c->operands ? " " : "", c->operands ? c->operands : "");
	print_wrapped(out, c->summary, 0);
	fputc('\n', out);
	for (size_t i = 0; i < count_options(c); i++)
		print_option(out, &c->opts[i], c->opts[i].letter != 0);
	print_option(out, &help_option, !has_letter(c, 'h'));
}

/* Where the first sentence of text ends. */
static size_t first_sentence(const char *text)
{
	const char *end = text;

	while (*end && !(*end == '.' && (end[1] == ' ' || !end[1])))
		end++;
	return (size_t)(end - text);
}

void opt_word(FILE *out, const char *word, const char *arg, const char *help)
{
	fprintf(out, "%s\t%s\t%.*s\n", word, arg ? arg : "", (int)first_sentence(help), help);
}

static void option_words(FILE *out, const struct opt *o, bool letter)
{
	char word[64];

	if (letter) {
		snprintf(word, sizeof(word), "-%c", o->letter);
		opt_word(out, word, o->arg, o->help);
	}
	snprintf(word, sizeof(word), "--%s", o->name);
	opt_word(out, word, o->arg, o->help);
}

void opt_words(const struct opt_command *c, FILE *out)
{
	for (size_t i = 0; i < count_options(c); i++)
		option_words(out, &c->opts[i], c->opts[i].letter != 0);
	option_words(out, &help_option, !has_letter(c, 'h'));
}

/* ---- mdoc ---- */

/* One text line of mdoc: backslashes and a leading dot or quote mean something to it. */
static void man_char(FILE *out, char ch, bool first)
{
	if (first && (ch == '.' || ch == '\''))
		fputs("\\&", out);
	if (ch == '\\')
		fputs("\\e", out);
	else
		fputc(ch, out);
}

/* A new sentence starts a new line there. */
static void man_text(FILE *out, const char *text)
{
	bool first = true;

	for (const char *p = text; *p; p++) {
		if (*p == ' ' && p > text && strchr(".?!", p[-1]) && isupper((unsigned char)p[1])) {
			fputc('\n', out);
			first = true;
			continue;
		}
		man_char(out, *p, first);
		first = false;
	}
	fputc('\n', out);
}

static void man_option(FILE *out, const struct opt *o, bool letter)
{
	char arg[64];

	shown_argument(o, arg, sizeof(arg));
	fputs(".It ", out);
	if (letter) {
		fprintf(out, "Fl %c", o->letter);
		if (o->arg)
			fprintf(out, " Ar%s", arg);
		fputs(" , ", out);
	}
	fprintf(out, "Fl -%s", o->name);
	if (o->arg)
		fprintf(out, " Ar%s", arg);
	fputc('\n', out);
	man_text(out, o->help);
}

void opt_man(const struct opt_command *c, FILE *out)
{
	fputs(".Bl -tag -width Ds\n", out);
	for (size_t i = 0; i < count_options(c); i++)
		man_option(out, &c->opts[i], c->opts[i].letter != 0);
	man_option(out, &help_option, !has_letter(c, 'h'));
	fputs(".El\n", out);
}
