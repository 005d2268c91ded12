/* SPDX-License-Identifier: MIT */
/* rows.c - see rows.h */
#include "trace/rows.h"

#include <string.h>

#include "base/vec.h"
#include "trace/jumps.h"
#include "trace/reader.h"

#define FUNCTION_MAX (KRON_EVENT_SPECIAL / 2 - 1)
#define JUMPER_MAX (KRON_EVENT_JUMPS / 2 - 1)
#define JUMP_MAX ((KRON_EVENT_SPECIAL - KRON_EVENT_JUMPS) / 2 - 1)
#define LEVEL_MAX 15

struct row {
	const struct table_lines *from; /* NULL: it is written */
	table_text *to;
	size_t n; /* fields so far */
};

/* ---- fields ---- */

static const char *next_read(struct row *r)
{
	return r->from->field[r->n++];
}

static void next_written(struct row *r)
{
	if (r->n++)
		table_put_char(r->to, '\t');
}

static bool text(struct row *r, const char **s)
{
	if (r->from) {
		*s = next_read(r);
	} else {
		next_written(r);
		table_put_text(r->to, *s);
	}
	return true;
}

static bool number(struct row *r, int base, uint64_t max, uint64_t *v)
{
	if (r->from)
		return table_number(next_read(r), base, max, v);
	next_written(r);
	table_put_number(r->to, base, *v);
	return true;
}

static bool u64(struct row *r, uint64_t *v)
{
	return number(r, 10, UINT64_MAX, v);
}

static bool address(struct row *r, uint64_t *v)
{
	return number(r, 16, UINT64_MAX, v);
}

static bool number_to(struct row *r, uint32_t max, uint32_t *v)
{
	uint64_t x = *v;

	if (!number(r, 10, max, &x))
		return false;
	*v = (uint32_t)x;
	return true;
}

static bool u32(struct row *r, uint32_t *v)
{
	return number_to(r, UINT32_MAX, v);
}

static bool level_of(struct row *r, uint8_t *level)
{
	uint32_t x = *level;

	if (!number_to(r, LEVEL_MAX, &x))
		return false;
	*level = (uint8_t)x;
	return true;
}

/* 0 when it is none. */
static bool pid_of(struct row *r, int32_t *pid)
{
	uint64_t x;

	if (r->from) {
		*pid = table_number(next_read(r), 10, INT32_MAX, &x) ? (int32_t)x : 0;
		return true;
	}
	next_written(r);
	if (*pid < 0)
		table_put_char(r->to, '-');
	table_put_number(r->to, 10, *pid < 0 ? -(uint64_t)*pid : (uint64_t)*pid);
	return true;
}

/* One of n words; another one counts as the first, and is false. */
static bool word(struct row *r, const char *const *words, size_t n, uint8_t *v)
{
	const char *s;

	if (!r->from)
		return text(r, (const char *[]){words[*v]});
	s = next_read(r);
	for (*v = 0; *v < n; ++*v)
		if (!strcmp(s, words[*v]))
			return true;
	*v = 0;
	return false;
}

static bool flag(struct row *r, const char *no, const char *yes, bool *v)
{
	const char *const words[] = {no, yes};
	uint8_t is = *v;
	bool known = word(r, words, 2, &is);

	*v = is;
	return known;
}

/* The last of a line. */
static bool text_if_any(struct row *r, const char **s)
{
	return !r->from && (!*s || !**s) ? true : text(r, s);
}

static bool u64_if_any(struct row *r, uint64_t *v)
{
	return (r->from ? r->n >= r->from->nfields : !*v) ? true : u64(r, v);
}

static bool ways_of(struct row *r, uint16_t *ways)
{
	static const struct {
		char letter;
		uint16_t way;
	} all[] = {{'r', TRACE_RETURNS}, {'j', TRACE_JUMPS},   {'c', TRACE_CALLS},
		   {'u', TRACE_UNSEEN},  {'g', TRACE_GUESSED}, {'i', TRACE_RESOLVES},
		   {'t', TRACE_TIMED},   {'h', TRACE_CHOOSES}, {'d', TRACE_UNTAKEN}};
	const char *s = r->from ? next_read(r) : "";

	if (!r->from)
		next_written(r);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (r->from && strchr(s, all[i].letter))
			*ways |= all[i].way;
		else if (!r->from && *ways & all[i].way)
			table_put_char(r->to, all[i].letter);
	return true;
}

/* ---- lines ---- */

bool row_module(struct row *r, void *line)
{
	struct trace_module_line *m = line;

	return u32(r, &m->id) && u32(r, &m->event_base) && u32(r, &m->nfunctions) &&
	       u64(r, &m->patched_entries) && u64(r, &m->patched_exits) &&
	       u64(r, &m->refused_entries) && u64(r, &m->refused_exits) && text(r, &m->build_id) &&
	       text(r, &m->path);
}

/* From the level on older traces do not say it. */
bool row_function(struct row *r, void *line)
{
	struct trace_function_line *f = line;

	if (!number_to(r, FUNCTION_MAX, &f->n) || !u32(r, &f->module_id) ||
	    !address(r, &f->vaddr) || !u64(r, &f->size) || !text(r, &f->name))
		return false;
	if (!level_of(r, &f->level))
		f->level = 0;
	return ways_of(r, &f->ways) && text_if_any(r, &f->aliases);
}

bool row_jump(struct row *r, void *line)
{
	static const char *const words[] = {[JUMP_TO_ANYTHING] = "unknown",
					    [JUMP_TO_FUNCTION] = "function",
					    [JUMP_TO_INSIDE] = "inside",
					    [JUMP_TO_NAME] = "import"};
	struct trace_jump_line *j = line;

	if (!number_to(r, JUMP_MAX, &j->j) || !number_to(r, JUMPER_MAX, &j->function) ||
	    !word(r, words, sizeof(words) / sizeof(words[0]), &j->to))
		return false;
	if (j->to == JUMP_TO_FUNCTION || j->to == JUMP_TO_INSIDE)
		return u32(r, &j->target) && text_if_any(r, &j->name);
	return text(r, &j->name) && (j->to != JUMP_TO_NAME || *j->name);
}

bool row_event(struct row *r, void *line)
{
	struct trace_event_line *e = line;

	return number_to(r, FUNCTION_MAX, &e->n) && level_of(r, &e->level) &&
	       flag(r, "trace", "resource", &e->resource) && text(r, &e->payload) &&
	       u32(r, &e->module_id) && address(r, &e->vaddr) && text(r, &e->name) &&
	       text_if_any(r, &e->refused);
}

bool row_refusal(struct row *r, void *line)
{
	static const char *const words[] = {[TRACE_REFUSED_ENTRY] = "entry",
					    [TRACE_REFUSED_EXIT] = "exit",
					    [TRACE_REFUSED_PLACE] = "place"};
	struct trace_refusal_line *x = line;

	return u32(r, &x->module_id) &&
	       word(r, words, sizeof(words) / sizeof(words[0]), &x->what) && text(r, &x->key) &&
	       u64(r, &x->count) && text_if_any(r, &x->text);
}

bool row_import(struct row *r, void *line)
{
	struct trace_import_line *i = line;

	return u32(r, &i->module_id) && address(r, &i->vaddr) && text(r, &i->name) &&
	       text(r, &i->why) && text(r, &i->caller);
}

bool row_change(struct row *r, void *line)
{
	struct trace_change_line *c = line;

	return u64(r, &c->tsc) && flag(r, "remove", "add", &c->comes) && u64(r, &c->places) &&
	       text(r, &c->name) && text(r, &c->spec);
}

bool row_sleep(struct row *r, void *line)
{
	static const char *const by[] = {"asked", "budget", "groups"};
	struct trace_sleep_line *s = line;

	return u64(r, &s->since) && u64(r, &s->until) && flag(r, "sleep", "wake", &s->wakes) &&
	       word(r, by, sizeof(by) / sizeof(by[0]), &s->by) && text(r, &s->numbers);
}

/* ---- tasks ---- */

static bool kind(struct row *r, const char *letter)
{
	const char *s = letter;

	return text(r, &s) && !strcmp(s, letter);
}

bool row_proc(struct row *r, void *line)
{
	struct trace_proc_line *p = line;

	if (!kind(r, "P") || !u32(r, &p->uid) || !pid_of(r, &p->pid) || !u32(r, &p->parent_uid))
		return false;
	flag(r, "exec", "fork", &p->by_fork);
	return u64(r, &p->start_tsc) && text(r, &p->note) && text(r, &p->exe) &&
	       text(r, &p->cmdline);
}

bool row_proc_end(struct row *r, void *line)
{
	struct trace_proc_end_line *e = line;

	return kind(r, "E") && u32(r, &e->uid) && u64(r, &e->end_tsc) && u64(r, &e->lost) &&
	       u64(r, &e->cut_off);
}

bool row_thread(struct row *r, void *line)
{
	struct trace_thread_line *t = line;

	return kind(r, "T") && u32(r, &t->uid) && u32(r, &t->tid) && text(r, &t->name) &&
	       u64_if_any(r, &t->end_tsc);
}

bool row_untraced(struct row *r, void *line)
{
	struct trace_untraced_line *u = line;

	return kind(r, "U") && pid_of(r, &u->pid) && text(r, &u->reason);
}

/* ---- monitor ---- */

bool row_column(struct row *r, void *line)
{
	static const char *const kinds[] = {"count", "ns", "bytes", "percent", "value"};
	static const char *const types[] = {"u", "s", "x", "d"};
	struct trace_column_line *c = line;

	return kind(r, "C") && word(r, kinds, sizeof(kinds) / sizeof(kinds[0]), &c->kind) &&
	       word(r, types, sizeof(types) / sizeof(types[0]), &c->type) && text(r, &c->name);
}

bool row_interval(struct row *r, void *line)
{
	struct trace_interval_line *i = line;

	return kind(r, "I") && u64(r, &i->from_ns) && u64(r, &i->to_ns) && u64(r, &i->stood_ns) &&
	       u64(r, &i->skew_ns) && u32(r, &i->threads) &&
	       flag(r, "ran", "stood", &i->was_frozen) && text(r, &i->values);
}

bool row_monitored(struct row *r, void *line)
{
	struct trace_monitored_line *m = line;

	return kind(r, "E") && u64(r, &m->real_ns) && u64(r, &m->virtual_ns) &&
	       u64(r, &m->stood_ns) && u64(r, &m->probes_ns) && u64(r, &m->all_stood_ns) &&
	       u64(r, &m->stops) && u64(r, &m->failed_stops);
}

/* ---- whole lines ---- */

void row_write(table_text *out, row_layout *layout, const void *line, size_t size)
{
	struct row r = {.to = out};
	union {
		struct trace_module_line module;
		struct trace_function_line function;
		struct trace_jump_line jump;
		struct trace_event_line event;
		struct trace_refusal_line refusal;
		struct trace_import_line import;
		struct trace_change_line change;
		struct trace_sleep_line sleep;
		struct trace_proc_line proc;
		struct trace_proc_end_line proc_end;
		struct trace_thread_line thread;
		struct trace_untraced_line untraced;
		struct trace_column_line column;
		struct trace_interval_line interval;
		struct trace_monitored_line monitored;
	} copy; /* a layout may store into what it is given */

	memcpy(&copy, line, size);
	layout(&r, &copy);
	table_put_char(out, '\n');
}

bool row_read(const struct table_lines *from, row_layout *layout, void *line, size_t size)
{
	struct row r = {.from = from};

	memset(line, 0, size);
	return layout(&r, line);
}

bool row_next(struct table_lines *from, row_layout *layout, void *line, size_t size,
	      uint64_t *damaged)
{
	while (table_next_fields(from)) {
		if (row_read(from, layout, line, size))
			return true;
		++*damaged;
	}
	return false;
}
