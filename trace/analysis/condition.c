/* SPDX-License-Identifier: MIT */
/* condition.c - see condition.h.  A recursive descent; the tree is an array of nodes. */
#define _GNU_SOURCE
#include "trace/analysis/condition.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/name_forms.h"
#include "trace/analysis/condition_data.h"
#include "trace/text.h"
#include "trace/value.h"

enum op { OP_AND, OP_OR, OP_NOT, OP_TEST };
enum compare { CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_GT, CMP_GE };
enum field {
	FIELD_NAME,
	FIELD_ENTRY,
	FIELD_EXIT,
	FIELD_EVENT,
	FIELD_DATA,
	FIELD_CPU,
	FIELD_THREAD,
	FIELD_PROCESS,
	FIELD_MODULE,
	FIELD_SOURCE,
	FIELDS
};
/* May the value be a name, a number? */
static const struct {
	const char *name;
	bool by_name, by_number;
} fields[FIELDS] = {
	[FIELD_NAME] = {"name", true, false},     [FIELD_ENTRY] = {"entry", true, false},
	[FIELD_EXIT] = {"exit", true, false},     [FIELD_EVENT] = {"event", false, true},
	[FIELD_DATA] = {"data", false, true},     [FIELD_CPU] = {"cpu", false, true},
	[FIELD_THREAD] = {"thread", true, true},  [FIELD_PROCESS] = {"process", true, true},
	[FIELD_MODULE] = {"module", true, false}, [FIELD_SOURCE] = {"source", false, true},
};

struct node {
	uint8_t op, field, compare;
	bool is_number;
	uint32_t left, right;
	uint64_t value, mask;
	char *glob;
	uint8_t *marks; /* bound: by function number (MEANT ...), by lane */
	uint32_t nmarks;
	struct data_number number; /* data, without a mask */
	struct data_types types;   /* bound */
};

/* Of a number's modules: events lie in several. */
enum { MEANT = 1, NOT_MEANT = 2, BOTH = MEANT | NOT_MEANT };

struct condition {
	const struct trace *t; /* bound to it, or NULL: what is being recorded */
	VEC(struct node) nodes;
	uint32_t root;
};

#define DEPTH_MAX 64u  /* of parentheses and nots */
#define NODES_MAX 500u /* the tree of a chain is as deep as the chain is long */

struct parser {
	const char *label, *text;
	size_t at;
	unsigned depth;
	struct condition *c;
	struct err *err;
};

/* ---- text ---- */

int condition_error(struct err *err, const char *label, const char *text, size_t at,
		    const char *fmt, ...)
{
	char what[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (strlen(text) > 200) /* a caret under a line that wraps points nowhere */
		return err_set(err, EINVAL, "%s:%zu: %s", label, at + 1, what);
	return err_set(err, EINVAL, "%s:%zu: %s\n    %s\n    %*s^", label, at + 1, what, text,
		       (int)at, "");
}

static size_t skip_blanks(const char *text, size_t at)
{
	while (isspace((unsigned char)text[at]))
		at++;
	return at;
}

static bool is_word_char(char c)
{
	return c && (isalnum((unsigned char)c) || (c & 0x80) || strchr("_:*?.~+-/[],@$%#", c));
}

static size_t word_end(const char *text, size_t at)
{
	while (is_word_char(text[at]))
		at++;
	return at;
}

bool condition_word(const char *text, size_t *at, const char *word)
{
	size_t from = skip_blanks(text, *at), end = word_end(text, from);

	if (end - from != strlen(word) || strncmp(text + from, word, end - from))
		return false;
	*at = end;
	return true;
}

static int fail(struct parser *p, size_t at, const char *sentence)
{
	return condition_error(p->err, p->label, p->text, at, "%s", sentence);
}

char *condition_name(const char *text, size_t *at, bool *quoted)
{
	size_t from = skip_blanks(text, *at), end;

	*quoted = text[from] == '"';
	if (*quoted) {
		const char *close = strchr(text + from + 1, '"');

		if (!close)
			return NULL;
		*at = (size_t)(close - text) + 1;
		return xstrndup(text + from + 1, (size_t)(close - text) - from - 1);
	}
	end = word_end(text, from);
	if (end == from)
		return NULL;
	*at = end;
	return xstrndup(text + from, end - from);
}

static char *take_string(struct parser *p)
{
	bool quoted;

	return condition_name(p->text, &p->at, &quoted);
}

static bool parse_number(const char *s, uint64_t *out)
{
	char *end;

	if (!isdigit((unsigned char)s[0]))
		return false;
	errno = 0;
	*out = strtoull(s, &end, strncasecmp(s, "0x", 2) ? 10 : 16);
	return !*end && !errno;
}

/* ---- the grammar ---- */

static uint32_t add_node(struct parser *p, struct node n)
{
	*vec_push(&p->c->nodes) = n;
	return (uint32_t)p->c->nodes.n - 1;
}

static int parse_or(struct parser *p, uint32_t *out);

static bool take_compare(struct parser *p, uint8_t *out)
{
	static const struct {
		const char *sign;
		uint8_t compare;
	} signs[] = {{"==", CMP_EQ}, {"!=", CMP_NE}, {"<=", CMP_LE}, {">=", CMP_GE},
		     {"=", CMP_EQ},  {"<", CMP_LT},  {">", CMP_GT}};
	size_t at = skip_blanks(p->text, p->at);

	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
		size_t n = strlen(signs[i].sign);

		if (strncmp(p->text + at, signs[i].sign, n))
			continue;
		p->at = at + n;
		*out = signs[i].compare;
		return true;
	}
	return false;
}

static int take_number(struct parser *p, uint64_t *out, const char *sentence)
{
	size_t from = skip_blanks(p->text, p->at);
	char *s = take_string(p);
	bool good = s && parse_number(s, out);

	xfree(s);
	return good ? 0 : fail(p, from, sentence);
}

/* Of the most nodes that there are, each with the most processors that Linux numbers on x86-64. */
#define CPU_LAST (1024u * 8192u - 1)

static int take_cpu(struct parser *p, struct node *n)
{
	size_t from = skip_blanks(p->text, p->at);
	int ret = take_number(p, &n->value, "a number is wanted here");

	return ret || n->value <= CPU_LAST
		       ? ret
		       : fail(p, from, "no processor has such a number: 8388607 is the highest");
}

static int take_data(struct parser *p, struct node *n)
{
	size_t from = skip_blanks(p->text, p->at);
	char *s = take_string(p);
	bool good = s && data_number_parse(s, &n->number);

	xfree(s);
	return good ? 0 : fail(p, from, "a number is wanted here");
}

static int take_value(struct parser *p, struct node *n)
{
	size_t from = skip_blanks(p->text, p->at);
	bool by_name = fields[n->field].by_name, by_number = fields[n->field].by_number;

	if (n->field == FIELD_DATA && n->mask == UINT64_MAX)
		return take_data(p, n);
	if (n->field == FIELD_CPU)
		return take_cpu(p, n);
	if (!by_name)
		return take_number(p, &n->value, "a number is wanted here");
	n->glob = take_string(p);
	if (!n->glob || !n->glob[0])
		return fail(p, from,
			    by_number ? "a name or a number is wanted here"
				      : "a name is wanted here");
	n->is_number = by_number && parse_number(n->glob, &n->value);
	if (n->compare != CMP_EQ && n->compare != CMP_NE)
		return fail(p, from, "names and identities are compared with = and != only");
	return 0;
}

static int find_field(const char *word)
{
	for (int i = 0; i < FIELDS; i++)
		if (!strcmp(fields[i].name, word))
			return i;
	return -1;
}

bool condition_is_field(const char *word)
{
	return find_field(word) >= 0;
}

static int parse_field(struct parser *p, struct node *n, size_t from)
{
	size_t at = skip_blanks(p->text, p->at);
	int ret;

	if (n->field == FIELD_DATA && p->text[at] == '&') {
		p->at = at + 1;
		ret = take_number(p, &n->mask, "a mask is wanted here: data&0xff00=0x1200");
		if (ret)
			return ret;
	}
	if (!take_compare(p, &n->compare))
		return fail(p, from, "= or another comparison is missing after this");
	return take_value(p, n);
}

/* A comparison follows here: the word before was a field. */
static bool is_compared(const struct parser *p)
{
	size_t at = skip_blanks(p->text, p->at);

	return p->text[at] && strchr("=!<>&", p->text[at]);
}

static int fail_field(struct parser *p, size_t from)
{
	if (p->text[skip_blanks(p->text, p->at)] == '>')
		return fail(p, from,
			    "no such field (a call that takes longer, NAME>20ms, is a step of a "
			    "--trigger)");
	return fail(p, from,
		    "no such field: name, entry, exit, event, data, cpu, thread, process, module "
		    "or source");
}

static int parse_test(struct parser *p, uint32_t *out)
{
	struct node n = {.op = OP_TEST, .mask = UINT64_MAX};
	size_t from = skip_blanks(p->text, p->at);
	bool quoted = p->text[from] == '"';
	char *word = take_string(p);
	int ret = 0, field;

	if (!word || !word[0]) {
		xfree(word);
		return fail(p, from,
			    quoted ? "the quote is not closed, or empty"
				   : "a condition is wanted here: NAME, entry=NAME, cpu=N ...");
	}
	if (quoted || !is_compared(p)) {
		n.glob = word;
	} else {
		field = find_field(word);
		n.field = (uint8_t)field;
		ret = field < 0 ? fail_field(p, from) : parse_field(p, &n, from);
		xfree(word);
	}
	if (ret)
		xfree(n.glob);
	else
		*out = add_node(p, n);
	return ret;
}

static int parse_unary(struct parser *p, uint32_t *out)
{
	struct node n = {.op = OP_NOT};
	size_t at = skip_blanks(p->text, p->at);
	int ret;

	if (p->depth >= DEPTH_MAX || p->c->nodes.n >= NODES_MAX)
		return fail(p, at, "the condition is too long");
	p->depth++;
	if (condition_word(p->text, &p->at, "not")) {
		ret = parse_unary(p, &n.left);
		if (!ret)
			*out = add_node(p, n);
	} else if (p->text[at] == '(') {
		p->at = at + 1;
		ret = parse_or(p, out);
		at = skip_blanks(p->text, p->at);
		if (!ret && p->text[at] != ')')
			ret = fail(p, at, "a closing parenthesis is missing here");
		p->at = at + 1;
	} else {
		ret = parse_test(p, out);
	}
	p->depth--;
	return ret;
}

static int parse_chain(struct parser *p, uint32_t *out, enum op op)
{
	int ret = op == OP_OR ? parse_chain(p, out, OP_AND) : parse_unary(p, out);

	while (!ret && condition_word(p->text, &p->at, op == OP_OR ? "or" : "and")) {
		struct node n = {.op = (uint8_t)op, .left = *out};

		ret = op == OP_OR ? parse_chain(p, &n.right, OP_AND) : parse_unary(p, &n.right);
		if (!ret)
			*out = add_node(p, n);
	}
	return ret;
}

static int parse_or(struct parser *p, uint32_t *out)
{
	return parse_chain(p, out, OP_OR);
}

static bool is_word_of_triggers(const char *text, size_t at)
{
	return condition_word(text, &at, "then") || condition_word(text, &at, "within") ||
	       condition_word(text, &at, "without") || condition_word(text, &at, "across");
}

int condition_parse(struct condition **out, const char *label, const char *text, size_t *at,
		    struct err *err)
{
	struct parser p = {.label = label, .text = text, .at = *at, .err = err};
	size_t end;
	int ret;

	p.c = xcalloc(1, sizeof(*p.c));
	ret = parse_or(&p, &p.c->root);
	/* after an error p.at may lie beyond the end of a text that was cut off */
	end = ret ? *at : skip_blanks(text, p.at);
	if (!ret && text[end] && !is_word_of_triggers(text, end))
		ret = fail(&p, end, "and, or, or the end is wanted here");
	if (ret) {
		condition_free(p.c);
		return ret;
	}
	*at = end;
	*out = p.c;
	return 0;
}

void condition_free(struct condition *c)
{
	if (!c)
		return;
	vec_for(&c->nodes, n) {
		xfree(n->glob);
		xfree(n->marks);
		data_types_free(&n->types);
	}
	vec_free(&c->nodes);
	xfree(c);
}

/* ---- names ---- */

static void mark(struct node *n, uint32_t i, uint8_t bits)
{
	if (i < n->nmarks)
		n->marks[i] |= bits;
}

static bool is_module_meant(const struct node *n, const char *module)
{
	return !fnmatch(n->glob, text_base(module), 0) || !fnmatch(n->glob, module, 0);
}

static bool is_name_meant(const struct node *n, const struct trace_name *x)
{
	if (n->field == FIELD_MODULE)
		return is_module_meant(n, x->module);
	if (x->is_event)
		return n->field == FIELD_NAME && !fnmatch(n->glob, x->name, 0);
	return name_forms_match_any(x->name, x->aliases, n->glob);
}

static void bind_names(struct node *n, const struct trace_names *names)
{
	n->nmarks = names->limit;
	n->marks = xcalloc(n->nmarks + 1, 1);
	for (size_t i = 0; i < names->n; i++)
		if (is_name_meant(n, &names->v[i]))
			mark(n, names->v[i].n, MEANT);
		else if (n->field == FIELD_MODULE)
			mark(n, names->v[i].n, NOT_MEANT);
}

static bool is_lane_meant(const struct node *n, const struct trace_lane *l,
			  const struct trace_proc *proc)
{
	if (n->field == FIELD_THREAD)
		return n->is_number ? l->tid == n->value : !fnmatch(n->glob, l->name, 0);
	if (!proc)
		return false;
	return n->is_number ? proc->pid >= 0 && (uint64_t)proc->pid == n->value
			    : !fnmatch(n->glob, text_base(proc->exe), 0) ||
				      !fnmatch(n->glob, proc->exe, 0);
}

static bool is_about_lanes(const struct node *n)
{
	return n->op == OP_TEST && (n->field == FIELD_THREAD || n->field == FIELD_PROCESS);
}

static void make_room(struct node *n, uint32_t marks)
{
	uint32_t more = n->nmarks ? n->nmarks : 64;

	if (n->marks && marks <= n->nmarks)
		return;
	while (more < marks)
		more *= 2;
	n->marks = xrealloc(n->marks, more);
	memset(n->marks + n->nmarks, 0, more - n->nmarks);
	n->nmarks = more;
}

void condition_bind_lane(struct condition *c, uint32_t lane, const struct trace_lane *l,
			 const struct trace_proc *p)
{
	vec_for(&c->nodes, n) {
		if (!is_about_lanes(n))
			continue;
		make_room(n, lane + 1);
		n->marks[lane] = is_lane_meant(n, l, p);
	}
}

void condition_bind_names(struct condition *c, const struct trace_names *names)
{
	vec_for(&c->nodes, n) {
		if (n->op == OP_TEST && n->field == FIELD_DATA)
			data_types_bind(&n->types, names);
		if (n->op != OP_TEST || is_about_lanes(n) || !n->glob)
			continue;
		xfree(n->marks);
		bind_names(n, names);
	}
}

void condition_bind_lanes(struct condition *c, const struct trace *t)
{
	c->t = t;
	vec_for(&c->nodes, n)
		if (is_about_lanes(n))
			make_room(n, (uint32_t)t->nlanes);
	for (uint32_t i = 0; i < t->nlanes; i++)
		condition_bind_lane(c, i, &t->lanes[i], trace_proc_of(t, t->lanes[i].proc_uid));
}

void condition_bind(struct condition *c, const struct trace *t)
{
	struct trace_names names;

	trace_names_of(&names, t);
	condition_bind_names(c, &names);
	trace_names_free(&names);
	condition_bind_lanes(c, t);
}

static bool is_any_meant(const struct node *n)
{
	for (uint32_t i = 0; i < n->nmarks; i++)
		if (n->marks[i] & MEANT)
			return true;
	return false;
}

static bool is_about_modules(const struct node *n)
{
	return n->op == OP_TEST && n->field == FIELD_MODULE;
}

static inline uint8_t marks_of(const struct node *n, uint32_t event)
{
	return event / 2 < n->nmarks ? n->marks[event / 2] : 0;
}

const char *condition_unknown_name(const struct condition *c, bool lanes)
{
	for (size_t i = 0; i < c->nodes.n; i++) {
		const struct node *n = &c->nodes.v[i];

		if (n->op != OP_TEST || !n->glob || !n->nmarks || (!lanes && is_about_lanes(n)))
			continue;
		if (!is_any_meant(n))
			return n->glob;
	}
	return NULL;
}

const char *condition_unsure_event(const struct condition *c)
{
	for (size_t i = 0; c->t && i < c->nodes.n; i++) {
		const struct node *n = &c->nodes.v[i];

		for (size_t k = 0; is_about_modules(n) && k < c->t->nuser_events; k++) {
			const struct trace_user_event *u = &c->t->user_events[k];

			if (marks_of(n, KRON_EVENT_ENTRY(u->n)) == BOTH && !u->in_programs)
				return u->name;
		}
	}
	return NULL;
}

bool condition_names_threads(const struct condition *c)
{
	for (size_t i = 0; i < c->nodes.n; i++)
		if (c->nodes.v[i].op == OP_TEST && c->nodes.v[i].field == FIELD_THREAD &&
		    !c->nodes.v[i].is_number)
			return true;
	return false;
}

/* ---- asking ---- */

static inline bool compare(uint64_t a, enum compare how, uint64_t b)
{
	switch (how) {
	case CMP_EQ:
		return a == b;
	case CMP_NE:
		return a != b;
	case CMP_LT:
		return a < b;
	case CMP_LE:
		return a <= b;
	case CMP_GT:
		return a > b;
	case CMP_GE:
		return a >= b;
	}
	return false;
}

static inline uint64_t number_of(const struct node *n, const struct trace_event *e)
{
	switch (n->field) {
	case FIELD_EVENT:
		return e->s.event;
	case FIELD_CPU:
		return e->cpu;
	default:
		return e->s.source;
	}
}

static inline bool is_event_meant(const struct node *n, uint32_t event)
{
	bool is = marks_of(n, event) & MEANT;

	if (n->field == FIELD_ENTRY || n->field == FIELD_EXIT)
		is = is && (event & 1) == (n->field == FIELD_EXIT);
	return is == (n->compare == CMP_EQ);
}

/* An event that lies in several modules: is this sample of one that is meant?  Nobody says it of what is being
 * recorded: then one of them is enough. */
static bool test_modules(const struct condition *c, const struct node *n,
			 const struct trace_event *e)
{
	const struct trace_event_place *at;

	if (!c->t)
		return is_event_meant(n, e->s.event);
	at = trace_event_place(c->t, trace_user_event_of(c->t, e->s.event), e->lane);
	return at && is_module_meant(n, c->t->modules[at->module].path) == (n->compare == CMP_EQ);
}

static inline bool test_data(const struct node *n, const struct trace_event *e)
{
	if (e->memory)
		return false; /* a text, or nothing, is not a number */
	if (n->mask != UINT64_MAX)
		return compare(value_bits(e) & n->mask, n->compare, n->value);
	if (n->number.is_natural && !n->types.n)
		return compare(value_bits(e), n->compare, n->number.bits);
	switch (data_order(&n->types, &n->number, e)) {
	case DATA_LESS:
		return compare(0, n->compare, 1);
	case DATA_MORE:
		return compare(1, n->compare, 0);
	case DATA_SAME:
		return compare(0, n->compare, 0);
	default:
		return n->compare == CMP_NE;
	}
}

static inline bool test(const struct condition *c, const struct node *n,
			const struct trace_event *e)
{
	if (n->field == FIELD_DATA)
		return test_data(n, e);
	if (!n->marks)
		return compare(number_of(n, e), n->compare, n->value);
	if (is_about_lanes(n))
		return (e->lane < n->nmarks && n->marks[e->lane]) == (n->compare == CMP_EQ);
	if (n->field == FIELD_MODULE && marks_of(n, e->s.event) == BOTH)
		return test_modules(c, n, e);
	return is_event_meant(n, e->s.event);
}

static bool holds(const struct condition *c, uint32_t i, const struct trace_event *e)
{
	const struct node *n = &c->nodes.v[i];

	switch (n->op) {
	case OP_AND:
		return holds(c, n->left, e) && holds(c, n->right, e);
	case OP_OR:
		return holds(c, n->left, e) || holds(c, n->right, e);
	case OP_NOT:
		return !holds(c, n->left, e);
	default:
		return test(c, n, e);
	}
}

bool condition_holds(const struct condition *c, const struct trace_event *e)
{
	const struct node *root = &c->nodes.v[c->root];

	if (e->s.event >= KRON_EVENT_SPECIAL)
		return false;
	return root->op == OP_TEST ? test(c, root, e) : holds(c, c->root, e);
}

/* ---- what the event's number alone decides ---- */

static bool is_about_events(const struct node *n)
{
	return n->op == OP_TEST && n->field != FIELD_DATA && n->field != FIELD_CPU &&
	       n->field != FIELD_SOURCE && !is_about_lanes(n);
}

enum { CAN_HOLD = 1, CAN_FAIL = 2 };

static unsigned outcomes(const struct condition *c, uint32_t i, uint32_t event)
{
	const struct node *n = &c->nodes.v[i];
	unsigned a, b;

	if (n->op == OP_TEST) {
		if (!is_about_events(n) || (is_about_modules(n) && marks_of(n, event) == BOTH))
			return CAN_HOLD | CAN_FAIL;
		if (n->marks)
			return is_event_meant(n, event) ? CAN_HOLD : CAN_FAIL;
		return compare(event, n->compare, n->value) ? CAN_HOLD : CAN_FAIL;
	}
	a = outcomes(c, n->left, event);
	if (n->op == OP_NOT)
		return (a & CAN_HOLD ? CAN_FAIL : 0) | (a & CAN_FAIL ? CAN_HOLD : 0);
	b = outcomes(c, n->right, event);
	if (n->op == OP_AND)
		return (a & b & CAN_HOLD) | ((a | b) & CAN_FAIL);
	return ((a | b) & CAN_HOLD) | (a & b & CAN_FAIL);
}

enum condition_answer condition_of_event(const struct condition *c, uint32_t event)
{
	unsigned can = outcomes(c, c->root, event);

	return can == CAN_FAIL   ? CONDITION_FAILS
	       : can == CAN_HOLD ? CONDITION_HOLDS
				 : CONDITION_DEPENDS;
}

bool condition_is_anything_else(const struct condition *c)
{
	if (c->nodes.v[c->root].op != OP_NOT)
		return false;
	for (size_t i = 0; i < c->nodes.n; i++)
		if (c->nodes.v[i].op == OP_TEST &&
		    (!is_about_events(&c->nodes.v[i]) || c->nodes.v[i].field == FIELD_MODULE ||
		     c->nodes.v[i].compare == CMP_NE))
			return false;
	return true;
}
