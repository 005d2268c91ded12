/* SPDX-License-Identifier: MIT */
/*
 * view_intervals.c - how long the intervals of an interval.info lasted, and the messages of
 * class 4, of MPI and of TCP, each with both of its ends, for the causality diagram.
 *
 * An interval counts if it overlaps the view.  Ends of classes 1 to 3 belong to begins of the
 * same thread; class 4 is matched over all threads, as kron report --intervals does.
 */
#include "trace/analysis/interval_names.h"
#include "trace/index.h"
#include "trace/messages/messages.h"
#include "trace/text.h"
#include "trace/view/view_impl.h"

struct row {
	uint64_t count, sum, min, max, negative;
	struct loghist lengths;
};
struct drawn {
	uint64_t sent, received;
	uint32_t def, from, to; /* lanes */
};
/* All messages from one process to another. */
struct pair {
	uint32_t def, from, to;          /* uids */
	uint64_t count, bytes, sum, max; /* ticks */
};
struct view_intervals {
	struct view *v;
	struct interval_info info;
	struct intervals *m;
	struct row *rows; /* INTERVAL_ROWS of each definition */
	VEC(struct drawn) messages;
	uint64_t nmessages;
	struct index keys[2]; /* of pairs: from and to; that, and the definition */
	VEC(struct pair) pairs;
	uint32_t def_of[MESSAGE_KINDS]; /* numbers after those of the definitions */
	int32_t *ranks; /* MPI's, by index of the process; NULL: there are no such messages */
};

static void note_pair(struct view_intervals *x, const struct drawn *m, uint64_t bytes)
{
	const uint32_t from = x->v->t->lanes[m->from].proc_uid, to = x->v->t->lanes[m->to].proc_uid;
	const uint64_t ticks = m->received > m->sent ? m->received - m->sent : 0;
	uint32_t at = index_of(&x->keys[0], (uint64_t)from << 32 | to);
	struct pair *p;

	at = index_of(&x->keys[1], (uint64_t)m->def << 32 | at);
	if (at == x->pairs.n)
		*vec_push(&x->pairs) = (struct pair){.def = m->def, .from = from, .to = to};
	p = &x->pairs.v[at];
	p->count++;
	p->bytes += bytes;
	p->sum += ticks;
	p->max = ticks > p->max ? ticks : p->max;
}

static void note_message(struct view_intervals *x, const struct drawn *m, uint64_t bytes)
{
	note_pair(x, m, bytes);
	x->nmessages++;
	if (x->messages.n < x->v->budget.messages)
		*vec_push(&x->messages) = *m;
}

static void on_interval(void *arg, size_t def, int part, const struct interval *i)
{
	struct view_intervals *x = arg;
	struct row *r = &x->rows[def * INTERVAL_ROWS + (size_t)part];
	uint64_t time = i->ticks > 0 ? (uint64_t)i->ticks : 0;

	if ((uint64_t)i->begin > x->v->to || (uint64_t)i->begin + time < x->v->from)
		return;
	if (!r->count++ || time < r->min)
		r->min = time;
	r->sum += time;
	r->negative += i->ticks < 0;
	r->max = time > r->max ? time : r->max;
	loghist_add(&r->lengths, time);
	if (x->info.defs.v[def].class == 4)
		note_message(x,
			     &(struct drawn){.sent = (uint64_t)i->begin,
					     .received = (uint64_t)(i->begin + i->ticks),
					     .def = (uint32_t)def,
					     .from = i->source,
					     .to = i->end_source},
			     0);
}

static void on_message(void *arg, const struct message *m)
{
	struct view_intervals *x = arg;
	const uint64_t last = m->received > m->sent ? m->received : m->sent;

	if (m->received && m->sent <= x->v->to && last >= x->v->from)
		note_message(x,
			     &(struct drawn){.sent = m->sent,
					     .received = m->received,
					     .def = x->def_of[m->kind],
					     .from = m->from,
					     .to = m->to},
			     m->bytes == UINT64_MAX ? 0 : m->bytes);
}

static void take_messages(struct view_intervals *x)
{
	uint32_t def = (uint32_t)x->info.defs.n;

	for (int kind = 0; kind < MESSAGE_KINDS; kind++) {
		x->def_of[kind] = def;
		def += messages_has_kind(x->v->t, kind);
	}
	x->ranks = xcalloc(x->v->t->nprocs + 1, sizeof(*x->ranks));
	messages_read(x->v->t, &(struct message_sink){.arg = x, .message = on_message}, NULL, NULL,
		      x->ranks);
}

int view_intervals_open(struct view_intervals **out, struct view *v, struct err *err)
{
	struct view_intervals *x = xcalloc(1, sizeof(*x));
	int ret = 0;

	x->v = v;
	*out = x;
	if (v->o->intervals)
		ret = interval_info_open(&x->info, v->t, v->o->intervals, err);
	if (ret || !x->info.defs.n)
		return ret;
	x->rows = xcalloc(x->info.defs.n * INTERVAL_ROWS, sizeof(*x->rows));
	x->m = interval_matcher(&x->info, v->t, MATCH_SOURCE, on_interval, x);
	return 0;
}

void view_intervals_feed(struct view_intervals *x, const struct trace_event *e)
{
	if (x->m)
		interval_feed(x->m, x->v->t, e, 0);
}

static uint64_t percentile(const struct row *r, unsigned percent)
{
	uint64_t p = loghist_percentile(&r->lengths, percent);

	return p > r->max ? r->max : p < r->min ? r->min : p;
}

static void put_row(struct view_intervals *x, size_t d, int part)
{
	const struct interval_def *def = &x->info.defs.v[d];
	const struct row *r = &x->rows[d * INTERVAL_ROWS + (size_t)part];
	const struct trace *t = x->v->t;
	struct json *j = &x->v->j;

	fputc('\n', j->f);
	json_open(j, '{');
	view_put_key_name(j, "name", def->name[part]);
	json_ku64(j, "class", (uint64_t)def->class);
	json_ku64(j, "line", def->line);
	json_ku64(j, "count", r->count);
	json_ku64(j, "sum_ns", trace_ns(t, r->sum));
	json_ku64(j, "min_ns", trace_ns(t, r->min));
	json_ku64(j, "max_ns", trace_ns(t, r->max));
	json_ku64(j, "avg_ns", r->count ? trace_ns(t, r->sum / r->count) : 0);
	json_ku64(j, "p50_ns", r->count ? trace_ns(t, percentile(r, 50)) : 0);
	json_ku64(j, "p90_ns", r->count ? trace_ns(t, percentile(r, 90)) : 0);
	json_ku64(j, "p99_ns", r->count ? trace_ns(t, percentile(r, 99)) : 0);
	json_ku64(j, "negative", r->negative);
	json_ku64(j, "begun", intervals_left(x->m, d)->begun);
	json_ku64(j, "ended", intervals_left(x->m, d)->ended);
	json_key(j, "histogram");
	loghist_json(&r->lengths, t, j);
	json_close(j, '}');
}

static void put_messages(struct view_intervals *x)
{
	struct json *j = &x->v->j;

	json_ku64(j, "all_messages", x->nmessages);
	json_key(j, "messages");
	json_open(j, '[');
	vec_for(&x->messages, m) {
		json_open(j, '[');
		json_u64(j, m->def);
		json_i64(j, view_ns(x->v, m->sent));
		json_u64(j, m->from);
		json_i64(j, view_ns(x->v, m->received));
		json_u64(j, m->to);
		json_close(j, ']');
	}
	json_close(j, ']');
	json_key(j, "message_names");
	json_open(j, '[');
	for (size_t d = 0; d < x->info.defs.n; d++)
		view_put_name(j, x->info.defs.v[d].name[0]);
	for (int kind = 0; kind < MESSAGE_KINDS; kind++)
		if (messages_has_kind(x->v->t, kind))
			view_put_name(j, message_kinds[kind]);
	json_close(j, ']');
}

static void put_process_name(struct view_intervals *x, uint32_t uid)
{
	const struct trace_proc *p = trace_proc_of(x->v->t, uid);
	const int32_t rank = p && x->ranks ? x->ranks[p - x->v->t->procs] : MESSAGE_NO_RANK;
	char pid[TRACE_PID_TEXT];
	char *name =
		rank == MESSAGE_NO_RANK
			? xasprintf("%s %s", p ? trace_pid_text(x->v->t, p, pid, sizeof(pid)) : "?",
				    p ? text_base(p->exe) : "?")
			: xasprintf("rank %d, %s %s", rank,
				    trace_pid_text(x->v->t, p, pid, sizeof(pid)),
				    text_base(p->exe));

	view_put_name(&x->v->j, name);
	xfree(name);
}

/* "matrix": of all messages, by process; "matrix_names": who they are */
static void put_matrix(struct view_intervals *x)
{
	struct json *j = &x->v->j;
	struct index uids = {0};

	json_key(j, "matrix");
	json_open(j, '[');
	vec_for(&x->pairs, p) {
		const uint64_t v[] = {
			p->def,   index_of(&uids, p->from),  index_of(&uids, p->to),   p->count,
			p->bytes, trace_ns(x->v->t, p->sum), trace_ns(x->v->t, p->max)};

		json_open(j, '[');
		for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++)
			json_u64(j, v[i]);
		json_close(j, ']');
	}
	json_close(j, ']');
	json_key(j, "matrix_names");
	json_open(j, '[');
	for (size_t i = 0; i < uids.n; i++)
		put_process_name(x, (uint32_t)uids.keys[i]);
	json_close(j, ']');
	index_free(&uids);
}

void view_intervals_put(struct view_intervals *x)
{
	struct json *j = &x->v->j;

	if (x->m)
		intervals_finish(x->m);
	if (messages_has(x->v->t))
		take_messages(x);
	json_key(j, "intervals");
	json_open(j, '[');
	for (size_t d = 0; x->m && d < x->info.defs.n; d++)
		for (int part = 0; part < x->info.defs.v[d].nrows; part++)
			put_row(x, d, part);
	json_close(j, ']');
	put_messages(x);
	put_matrix(x);
}

void view_intervals_free(struct view_intervals *x)
{
	if (!x)
		return;
	for (size_t i = 0; x->rows && i < x->info.defs.n * INTERVAL_ROWS; i++)
		loghist_free(&x->rows[i].lengths);
	vec_free(&x->messages);
	vec_free(&x->pairs);
	index_free(&x->keys[0]);
	index_free(&x->keys[1]);
	xfree(x->ranks);
	if (x->m)
		intervals_free(x->m);
	interval_info_free(&x->info);
	xfree(x->rows);
	xfree(x);
}
