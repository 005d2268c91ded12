/* SPDX-License-Identifier: MIT */
/* report_messages.c - kron report --messages: which process has sent how many messages to which, and how long they took. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/str.h"
#include "base/vec.h"
#include "trace/analysis/interval_names.h"
#include "trace/index.h"
#include "trace/report/report.h"
#include "trace/text.h"

struct pair {                   /* times in ticks */
	uint32_t def, from, to; /* processes */
	uint64_t count, sum, min, max, negative;
};

struct messages {
	const struct trace *t;
	struct interval_info info;
	struct index keys[2]; /* from and to; that, and the definition */
	VEC(struct pair) v;   /* by index of the second */
};

static void on_interval(void *arg, size_t def, int row, const struct interval *i)
{
	struct messages *m = arg;
	const uint32_t from = m->t->lanes[i->source].proc_uid,
		       to = m->t->lanes[i->end_source].proc_uid;
	const uint64_t ticks = i->ticks > 0 ? (uint64_t)i->ticks : 0;
	uint32_t at;
	struct pair *p;

	(void)row;
	if (m->info.defs.v[def].class != 4)
		return;
	at = index_of(&m->keys[0], (uint64_t)from << 32 | to);
	at = index_of(&m->keys[1], (uint64_t)def << 32 | at);
	if (at == m->v.n)
		*vec_push(&m->v) = (struct pair){
			.def = (uint32_t)def, .from = from, .to = to, .min = UINT64_MAX};
	p = &m->v.v[at];
	p->count++;
	p->sum += ticks;
	p->min = ticks < p->min ? ticks : p->min;
	p->max = ticks > p->max ? ticks : p->max;
	p->negative += i->ticks < 0;
}

static int most_first(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	if (x->def != y->def)
		return x->def < y->def ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

static const char *exe_of(const struct trace_proc *p)
{
	return p && p->exe && *p->exe ? text_base(p->exe) : "?";
}

/* ---- output ---- */

static void put_process(const struct messages *m, uint32_t uid, FILE *out)
{
	const struct trace_proc *p = trace_proc_of(m->t, uid);
	char pid[TRACE_PID_TEXT];

	text_put(out, p ? trace_pid_text(m->t, p, pid, sizeof(pid)) : "?");
	fputc(' ', out);
	text_put(out, exe_of(p));
}

static void print_text(const struct messages *m, FILE *out)
{
	char count[STR_NUMBER];

	fprintf(out, "%12s  %10s  %10s  %10s  %10s  %s\n", "Count", "Total time", "Avg time",
		"Min time", "Max time", "Message, from -> to");
	for (size_t k = 0; k < m->v.n; k++) {
		const struct pair *p = &m->v.v[k];
		const uint64_t times[] = {p->sum, p->sum / p->count, p->min, p->max};

		fprintf(out, "%12s  ", str_thousands(count, sizeof(count), p->count));
		for (int i = 0; i < 4; i++) {
			text_put_duration(out, trace_ns(m->t, times[i]));
			fputs("  ", out);
		}
		text_put(out, m->info.defs.v[p->def].name[0]);
		fputs(", ", out);
		put_process(m, p->from, out);
		fputs(" -> ", out);
		put_process(m, p->to, out);
		if (p->negative)
			fprintf(out, "  (%" PRIu64 " end before they begin)", p->negative);
		fputc('\n', out);
	}
}

static void json_process(const struct messages *m, struct json *j, const char *key, uint32_t uid)
{
	const struct trace_proc *p = trace_proc_of(m->t, uid);
	char pid[TRACE_PID_TEXT];

	json_key(j, key);
	json_open(j, '{');
	json_kstr(j, "process", p ? trace_pid_text(m->t, p, pid, sizeof(pid)) : NULL);
	json_ku64(j, "process_uid", uid);
	json_ku64(j, "pid", p ? (uint64_t)p->pid : 0);
	json_kstr(j, "exe", exe_of(p));
	json_close(j, '}');
}

static void print_json(const struct messages *m, FILE *out)
{
	struct json j = JSON_INIT(out);

	json_open(&j, '[');
	for (size_t k = 0; k < m->v.n; k++) {
		const struct pair *p = &m->v.v[k];

		fputc('\n', out);
		json_open(&j, '{');
		json_kstr(&j, "message", m->info.defs.v[p->def].name[0]);
		json_process(m, &j, "from", p->from);
		json_process(m, &j, "to", p->to);
		json_ku64(&j, "count", p->count);
		json_ku64(&j, "total_ns", trace_ns(m->t, p->sum));
		json_ku64(&j, "avg_ns", trace_ns(m->t, p->sum) / p->count);
		json_ku64(&j, "min_ns", trace_ns(m->t, p->min));
		json_ku64(&j, "max_ns", trace_ns(m->t, p->max));
		json_ku64(&j, "negative", p->negative);
		json_close(&j, '}');
	}
	json_close(&j, ']');
}

int report_messages(const struct trace *t, const struct intervals_options *o, FILE *out,
		    struct err *err)
{
	struct messages m = {.t = t};
	int ret = interval_info_open(&m.info, t, o->file, err);

	if (!ret)
		ret = interval_info_check_messages(&m.info, o->file, err);
	if (!ret) {
		intervals_of_trace(&m.info, t, on_interval, &m);
		if (m.v.n)
			qsort(m.v.v, m.v.n, sizeof(*m.v.v), most_first);
		(o->json ? print_json : print_text)(&m, out);
	}
	interval_info_free(&m.info);
	vec_free(&m.v);
	index_free(&m.keys[0]);
	index_free(&m.keys[1]);
	return ret;
}
