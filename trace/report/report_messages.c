/* SPDX-License-Identifier: MIT */
/* report_messages.c - kron report --messages: which process has sent how many messages to which, and how long they took. */
#include "trace/report/report_messages.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/str.h"
#include "trace/analysis/interval_names.h"
#include "trace/messages/mpi.h"
#include "trace/report/report.h"
#include "trace/report/report_slack.h"
#include "trace/text.h"

/* ---- the matrix ---- */

struct message_row *message_row_of(struct message_matrix *m, uint32_t def, uint32_t from_lane,
				   uint32_t to_lane)
{
	const uint32_t from = m->t->lanes[from_lane].proc_uid, to = m->t->lanes[to_lane].proc_uid;
	uint32_t at = index_of(&m->keys[0], (uint64_t)from << 32 | to);

	at = index_of(&m->keys[1], (uint64_t)def << 32 | at);
	if (at == m->v.n)
		*vec_push(&m->v) =
			(struct message_row){.def = def, .from = from, .to = to, .min = UINT64_MAX};
	m->v.v[at].count++;
	return &m->v.v[at];
}

void message_row_add(struct message_row *p, int64_t signed_ticks)
{
	const uint64_t ticks = signed_ticks > 0 ? (uint64_t)signed_ticks : 0;

	p->timed++;
	p->sum += ticks;
	p->min = ticks < p->min ? ticks : p->min;
	p->max = ticks > p->max ? ticks : p->max;
	p->negative += signed_ticks < 0;
}

void message_row_add_between(struct message_row *p, const struct interval *i)
{
	message_row_add(p, i->ticks);
	slack_add_interval(slack_at(&p->slack), i);
}

static int most_first(const void *a, const void *b)
{
	const struct message_row *x = a, *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	if (x->def != y->def)
		return x->def < y->def ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

void message_matrix_sort(struct message_matrix *m)
{
	if (m->v.n)
		qsort(m->v.v, m->v.n, sizeof(*m->v.v), most_first);
}

void message_matrix_free(struct message_matrix *m)
{
	vec_for(&m->v, p)
		slack_free(p->slack);
	vec_free(&m->v);
	index_free(&m->keys[0]);
	index_free(&m->keys[1]);
}

/* ---- output ---- */

static const char *exe_of(const struct trace_proc *p)
{
	return p && p->exe && *p->exe ? text_base(p->exe) : "?";
}

int32_t message_rank(const struct message_matrix *m, uint32_t uid)
{
	const struct trace_proc *p = trace_proc_of(m->t, uid);

	return m->ranks && p ? m->ranks[p - m->t->procs] : MESSAGE_NO_RANK;
}

void message_put_process(const struct message_matrix *m, uint32_t uid, FILE *out)
{
	const struct trace_proc *p = trace_proc_of(m->t, uid);
	const int32_t rank = message_rank(m, uid);
	char pid[TRACE_PID_TEXT];

	if (rank != MESSAGE_NO_RANK)
		fprintf(out, "rank %d, ", rank);
	text_put(out, p ? trace_pid_text(m->t, p, pid, sizeof(pid)) : "?");
	fputc(' ', out);
	text_put(out, exe_of(p));
}

static uint64_t average_ns(const struct message_matrix *m, const struct message_row *p)
{
	return p->timed ? trace_ns(m->t, p->sum) / p->timed : 0;
}

static struct trace_bounds average_in(const struct message_matrix *m, const struct message_row *p)
{
	return slack_around_average(p->slack, average_ns(m, p),
				    p->slack ? trace_ns(m->t, p->slack->sum) : 0, p->timed);
}

static void put_times(const struct message_matrix *m, const struct message_row *p, FILE *out)
{
	const struct trace_bounds average = average_in(m, p);

	if (!p->timed) {
		fprintf(out, "%10s  %10s  %10s  %10s  ", "?", "?", "?", "?");
		return;
	}
	text_put_duration(out, trace_ns(m->t, p->sum));
	fputs("  ", out);
	text_put_bounded(out, average_ns(m, p), average.lo, average.hi);
	fputs("  ", out);
	report_slack_put_shortest(m->t, p->slack, p->min, out);
	fputs("  ", out);
	report_slack_put_longest(m->t, p->slack, p->max, out);
	fputs("  ", out);
}

static void print_row(const struct message_matrix *m, const struct message_row *p, FILE *out)
{
	char count[STR_NUMBER], bytes[STR_NUMBER];

	fprintf(out, "%12s  ", str_thousands(count, sizeof(count), p->count));
	if (m->ranks)
		fprintf(out, "%15s  ", str_thousands(bytes, sizeof(bytes), p->bytes));
	put_times(m, p, out);
	text_put(out, m->name(m, p->def));
	fputs(", ", out);
	message_put_process(m, p->from, out);
	fputs(" -> ", out);
	message_put_process(m, p->to, out);
	if (p->negative)
		fprintf(out, "  (%" PRIu64 " end before they begin)", p->negative);
	if (p->timed < p->count && p->timed)
		fprintf(out, "  (times of %" PRIu64 ")", p->timed);
	report_slack_put_sum(m->t, p->slack, p->sum, out);
	fputc('\n', out);
}

void message_matrix_print(const struct message_matrix *m, FILE *out)
{
	fprintf(out, "%12s  ", "Count");
	if (m->ranks)
		fprintf(out, "%15s  ", "Bytes");
	fprintf(out, "%10s  %10s  %10s  %10s  %s\n", "Total time", "Avg time", "Min time",
		"Max time", "Message, from -> to");
	for (size_t i = 0; i < m->v.n; i++)
		print_row(m, &m->v.v[i], out);
}

void message_json_process(const struct message_matrix *m, struct json *j, uint32_t uid)
{
	const struct trace_proc *p = trace_proc_of(m->t, uid);
	const int32_t rank = message_rank(m, uid);
	char pid[TRACE_PID_TEXT];

	if (rank != MESSAGE_NO_RANK)
		json_ku64(j, "rank", (uint64_t)rank);
	json_kstr(j, "process", p ? trace_pid_text(m->t, p, pid, sizeof(pid)) : NULL);
	json_ku64(j, "process_uid", uid);
	json_ku64(j, "pid", p ? (uint64_t)p->pid : 0);
	json_kstr(j, "exe", exe_of(p));
}

static void json_end(const struct message_matrix *m, struct json *j, const char *key, uint32_t uid)
{
	json_key(j, key);
	json_open(j, '{');
	message_json_process(m, j, uid);
	json_close(j, '}');
}

static void json_time(struct json *j, const char *key, const struct message_row *p, uint64_t ns)
{
	if (p->timed) {
		json_ku64(j, key, ns);
	} else {
		json_key(j, key);
		json_str(j, NULL);
	}
}

static void json_slack(const struct message_matrix *m, struct json *j, const struct message_row *p)
{
	report_slack_json(j, m->t, "total_low_ns", "total_high_ns",
			  slack_around(p->slack, p->sum, p->slack->sum));
	report_slack_json_ns(j, "avg_low_ns", "avg_high_ns", average_in(m, p));
	report_slack_json_extremes(j, m->t, p->slack);
}

void message_matrix_json(const struct message_matrix *m, struct json *j)
{
	json_open(j, '[');
	for (size_t i = 0; i < m->v.n; i++) {
		const struct message_row *p = &m->v.v[i];

		fputc('\n', j->f);
		json_open(j, '{');
		json_kstr(j, "message", m->name(m, p->def));
		json_end(m, j, "from", p->from);
		json_end(m, j, "to", p->to);
		json_ku64(j, "count", p->count);
		if (m->ranks)
			json_ku64(j, "bytes", p->bytes);
		json_time(j, "total_ns", p, trace_ns(m->t, p->sum));
		json_time(j, "avg_ns", p, average_ns(m, p));
		json_time(j, "min_ns", p, trace_ns(m->t, p->min));
		json_time(j, "max_ns", p, trace_ns(m->t, p->max));
		if (p->slack)
			json_slack(m, j, p);
		json_ku64(j, "negative", p->negative);
		json_close(j, '}');
	}
	json_close(j, ']');
}

/* ---- of an interval.info ---- */

static void on_interval(void *arg, size_t def, int row, const struct interval *i)
{
	struct message_matrix *m = arg;
	const struct interval_info *info = m->arg;

	struct message_row *to;

	(void)row;
	if (info->defs.v[def].class != 4)
		return;
	to = message_row_of(m, (uint32_t)def, i->source, i->end_source);
	if (m->is_sparse)
		message_row_add_between(to, i);
	else
		message_row_add(to, i->ticks);
	m->guessed_order |= m->is_sparse && interval_is_between(i);
}

static const char *name_of(const struct message_matrix *m, uint32_t def)
{
	const struct interval_info *info = m->arg;

	return info->defs.v[def].name[0];
}

static void print_foot(const struct message_matrix *m, FILE *out)
{
	fputc('\n', out);
	report_slack_foot(m->t, out);
	fputs(REPORT_SLACK_ORDER, out);
}

int report_messages(const struct trace *t, const struct intervals_options *o, FILE *out,
		    struct err *err)
{
	struct interval_info info = {0};
	struct message_matrix m = {
		.t = t, .name = name_of, .arg = &info, .is_sparse = trace_clock_every(t) > 1};
	int ret = interval_info_open(&info, t, o->file, err);

	if (!ret)
		ret = interval_info_check_messages(&info, o->file, err);
	if (!ret) {
		struct json j = JSON_INIT(out);

		intervals_of_trace(&info, t, on_interval, &m);
		message_matrix_sort(&m);
		if (o->json)
			message_matrix_json(&m, &j);
		else
			message_matrix_print(&m, out);
		if (!o->json && m.guessed_order)
			print_foot(&m, out);
	}
	interval_info_free(&info);
	message_matrix_free(&m);
	return ret;
}
