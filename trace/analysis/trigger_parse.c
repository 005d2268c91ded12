/* SPDX-License-Identifier: MIT */
/* trigger_parse.c - the words of a trigger (trigger.h has the grammar), and of --pre and --post. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "trace/analysis/trigger_impl.h"

struct parser {
	struct trigger *g;
	const char *label, *text;
	size_t at;
	struct err *err;
};

static int fail(const struct parser *p, size_t at, const char *sentence)
{
	return condition_error(p->err, p->label, p->text, at, "%s", sentence);
}

static size_t skip_blanks(const struct parser *p, size_t at)
{
	return at + strspn(p->text + at, " \t\n");
}

/* ---- times ---- */

static int take_time(struct parser *p, uint64_t *ns)
{
	bool has_unit = false;
	size_t n;

	p->at = skip_blanks(p, p->at);
	n = duration_take(p->text + p->at, ns, &has_unit);
	if (!n || !has_unit || !*ns)
		return fail(p, p->at, "a time is wanted here: 500ns, 20us, 1.5ms, 2s");
	p->at += n;
	return 0;
}

/* ---- steps ---- */

static int parse_condition(struct parser *p, struct condition **out)
{
	return condition_parse(out, p->label, p->text, &p->at, p->err);
}

/* NAME > ...: not a field, and a single >.  Then the name, for xfree(), and p->at after the >. */
static char *take_call(struct parser *p)
{
	size_t at = p->at;
	bool quoted;
	char *name = condition_name(p->text, &at, &quoted);

	at = skip_blanks(p, at);
	if (name && *name && (quoted || !condition_is_field(name)) && p->text[at] == '>' &&
	    p->text[at + 1] != '=') {
		p->at = at + 1;
		return name;
	}
	xfree(name);
	return NULL;
}

static struct condition *make_condition(const char *field, const char *name)
{
	char *text = xasprintf("%s=\"%s\"", field, name);
	struct condition *c = NULL;
	struct err err;
	size_t at = 0;

	if (condition_parse(&c, "", text, &at, &err))
		abort(); /* a quoted name is always one */
	xfree(text);
	return c;
}

static int parse_call(struct parser *p, struct trigger_step *step, const char *name)
{
	struct trigger *g = p->g;
	int ret;

	g->kind = TRIGGER_CALL;
	step->condition = make_condition("entry", name);
	g->ends = make_condition("exit", name);
	ret = take_time(p, &g->limit_ns);
	if (!ret && condition_word(p->text, &p->at, "and"))
		ret = parse_condition(p, &step->also);
	return ret;
}

static int parse_without(struct parser *p)
{
	struct trigger *g = p->g;
	int ret = parse_condition(p, &g->ends);

	if (ret)
		return ret;
	g->kind = TRIGGER_WITHOUT;
	if (!condition_word(p->text, &p->at, "within"))
		return fail(p, p->at, "how long to wait is wanted here: A without B within 20ms");
	return take_time(p, &g->limit_ns);
}

/* "A then not B": the next sample of anything is one, so nobody means that. */
static int check_not(const struct parser *p, const struct condition *c, size_t at)
{
	if (p->g->nsteps < 2 || !condition_is_anything_else(c) || p->text[at] == '(')
		return 0;
	return fail(p, at,
		    "the next sample of anything else would do; if B must not come, write "
		    "A without B within 20ms (and if you mean it: then (not B))");
}

static int parse_step(struct parser *p, struct trigger_step *step)
{
	size_t from = skip_blanks(p, p->at), within;
	char *name = take_call(p);
	int ret;

	p->g->nsteps++;
	if (name) {
		ret = parse_call(p, step, name);
		xfree(name);
		return ret;
	}
	ret = parse_condition(p, &step->condition);
	if (ret)
		return ret;
	within = p->at;
	if (condition_word(p->text, &p->at, "within")) {
		if (p->g->nsteps == 1)
			return fail(p, within,
				    "the first step has none before it to be within a time of");
		ret = take_time(p, &step->within_ns);
	}
	if (!ret)
		ret = check_not(p, step->condition, from);
	if (!ret && condition_word(p->text, &p->at, "without"))
		ret = parse_without(p);
	return ret;
}

static int parse_across(struct parser *p, size_t at)
{
	struct trigger *g = p->g;

	p->at = skip_blanks(p, p->at);
	if (!condition_word(p->text, &p->at, "threads"))
		return fail(p, p->at, "threads is wanted here: across threads");
	if (g->kind == TRIGGER_CALL)
		return fail(p, at,
			    "a call is within a thread; for an exit in another one: "
			    "entry=F without exit=F within 20ms across threads");
	if (g->nsteps == 1 && g->kind == TRIGGER_SAMPLE)
		return fail(p, at, "a single sample is in one thread: this means nothing");
	g->across = true;
	p->at = skip_blanks(p, p->at);
	return p->text[p->at] ? fail(p, p->at, "the end is wanted here") : 0;
}

static int parse_steps(struct parser *p)
{
	struct trigger *g = p->g;
	int ret;

	for (;;) {
		if (g->nsteps == TRIGGER_STEPS)
			return condition_error(p->err, p->label, p->text, p->at,
					       "more than %u steps: a trigger has no more",
					       TRIGGER_STEPS);
		ret = parse_step(p, &g->steps[g->nsteps]);
		if (ret)
			return ret;
		p->at = skip_blanks(p, p->at);
		if (!p->text[p->at])
			return 0;
		if (condition_word(p->text, &p->at, "across"))
			return parse_across(p, p->at - strlen("across"));
		if (!condition_word(p->text, &p->at, "then"))
			return fail(p, p->at,
				    g->kind == TRIGGER_CALL ? "and, or the end is wanted here"
							    : "then, or the end is wanted here");
		if (g->kind != TRIGGER_SAMPLE)
			return fail(p, p->at - strlen("then"),
				    "what does not come, and what takes longer, is the last step: "
				    "nothing can follow it");
		p->at = skip_blanks(p, p->at);
	}
}

int trigger_parse(struct trigger **out, const char *label, const char *text, struct err *err)
{
	struct trigger *g = xcalloc(1, sizeof(*g));
	struct parser p = {.g = g, .label = label, .text = text, .err = err};
	int ret = parse_steps(&p);

	if (ret)
		trigger_free(g);
	else
		*out = g;
	return ret;
}

int trigger_parse_span(struct trigger_span *out, const char *label, const char *text,
		       struct err *err)
{
	size_t n = strspn(text, "0123456789");
	bool has_unit = false;

	memset(out, 0, sizeof(*out));
	if (n && n < 19 && !text[n]) {
		out->samples = strtoull(text, NULL, 10);
		return 0;
	}
	n = duration_take(text, &out->ns, &has_unit);
	if (n && !text[n] && has_unit && out->ns)
		return 0;
	return err_set(err, EINVAL, "%s wants a number of samples or a time like 20us, not '%s'",
		       label, text);
}
