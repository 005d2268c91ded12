/* SPDX-License-Identifier: MIT */
/*
 * report_pages_nodes.c - page reference counters of a machine with several nodes: how much each node uses,
 * where that lies, and what should lie elsewhere.
 *
 * A stretch is pages next to each other in one mapping that are at home on one node and that one node uses
 * most, or several alike.  Advice is given for what is used from another node than its home more than from there.
 */
#include "trace/report/report_pages_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "trace/text.h"

#define ADVICE_LEAST 1000u /* a stretch has one of so many references, or there is no advice */
#define SHARED (-2)        /* no node has two thirds of the references */
#define UNKNOWN TRACE_NODES_MAX

struct stretch {
	struct range r;
	int home, user; /* user: a node, or SHARED */
	uint64_t local, remote;
	struct node_use use;
};

void report_pages_by_node(const struct report *rep, const struct range *page, struct node_use *out)
{
	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < page->n; i++) {
		const struct trace_page *p = &rep->p->v.v[page->first + i];
		size_t node =
			p->node >= 0 && p->node < (int)TRACE_NODES_MAX ? (size_t)p->node : UNKNOWN;

		out->reads[node] += p->reads;
		out->writes[node] += p->writes;
	}
}

static void add_use(struct node_use *to, const struct node_use *use)
{
	for (size_t k = 0; k <= TRACE_NODES_MAX; k++) {
		to->reads[k] += use->reads[k];
		to->writes[k] += use->writes[k];
	}
}

static uint64_t references(const struct node_use *use, size_t k)
{
	return use->reads[k] + use->writes[k];
}

static int user_of(const struct node_use *use)
{
	uint64_t all = 0, most = 0;
	int user = SHARED;

	for (size_t k = 0; k < TRACE_NODES_MAX; k++) {
		uint64_t n = references(use, k);

		all += n;
		if (n > most) {
			most = n;
			user = (int)k;
		}
	}
	return 3 * most >= 2 * all ? user : SHARED;
}

static struct stretch stretch_of(const struct report *rep, const struct range *page)
{
	struct stretch s = {.r = *page, .home = trace_pages_home(rep->p, page->uid, page->start)};
	uint64_t all = page->reads + page->writes;

	report_pages_by_node(rep, page, &s.use);
	s.user = user_of(&s.use);
	if (s.home >= 0 && s.home < (int)TRACE_NODES_MAX)
		s.local = references(&s.use, (size_t)s.home);
	s.remote = s.home < 0 ? 0 : all - s.local - references(&s.use, UNKNOWN);
	return s;
}

static int by_address(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->uid != y->uid)
		return x->uid < y->uid ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

static int most_remote_first(const void *a, const void *b)
{
	const struct stretch *x = a, *y = b;

	if (x->remote != y->remote)
		return x->remote > y->remote ? -1 : 1;
	return by_address(&x->r, &y->r);
}

typedef VEC(struct stretch) stretches;

static void take_stretches(const struct report *rep, stretches *out)
{
	size_t bytes = rep->pages.n * sizeof(struct range);
	struct range *v = xmalloc(bytes + 1);

	if (bytes)
		memcpy(v, rep->pages.v, bytes);
	qsort(v, rep->pages.n, sizeof(*v), by_address);
	for (size_t i = 0; i < rep->pages.n; i++) {
		struct stretch s = stretch_of(rep, &v[i]),
			       *last = out->n ? &out->v[out->n - 1] : NULL;

		if (!last || last->r.uid != s.r.uid || last->r.mapping != s.r.mapping ||
		    last->r.end != s.r.start || last->home != s.home || last->user != s.user) {
			*vec_push(out) = s;
			continue;
		}
		last->r.end = s.r.end;
		last->r.pages++;
		last->local += s.local;
		last->remote += s.remote;
		add_use(&last->use, &s.use);
	}
	xfree(v);
}

/* ---- tables ---- */

static void put_nodes(const struct report *rep, FILE *f, const stretches *v)
{
	struct node_use all = {0};
	uint64_t sum = rep->sum.reads + rep->sum.writes;
	char n[STR_NUMBER];

	for (size_t i = 0; i < v->n; i++)
		add_use(&all, &v->v[i].use);
	fputs("\nNodes\n", f);
	fprintf(f, "%15s %15s %7s  From\n", "Reads", "Writes", "Share");
	for (size_t k = 0; k <= TRACE_NODES_MAX; k++) {
		if (!references(&all, k) && k >= rep->p->nodes)
			continue;
		report_pages_reads_writes(f, all.reads[k], all.writes[k]);
		fprintf(f, " %6.2f%%  ",
			sum ? 100.0 * (double)references(&all, k) / (double)sum : 0.0);
		if (k == UNKNOWN)
			fputs("(not known)\n", f);
		else
			fprintf(f, "node %zu\n", k);
	}
	if (rep->p->unsure)
		fprintf(f,
			"%s of the references are of threads that changed their node between two "
			"looks: any of them may belong to the node before.\n",
			str_thousands(n, sizeof(n), rep->p->unsure));
	if (rep->p->is_test)
		fputs("The nodes of processors are made up (KRON_TEST_NODES); homes are the "
		      "machine's.\n",
		      f);
}

static void put_where(FILE *f, int node)
{
	if (node == SHARED)
		fprintf(f, " %6s", "several");
	else if (node < 0)
		fprintf(f, " %7s", "?");
	else
		fprintf(f, " %7d", node);
}

static void put_placement(const struct report *rep, FILE *f, const stretches *v)
{
	uint64_t limit = rep->o->limit ? rep->o->limit : LIMIT;
	char local[STR_NUMBER], remote[STR_NUMBER];

	fputs("\nPlacement against use\n", f);
	fprintf(f, "%15s %15s %7s %7s %7s  %-16s%s Mapping\n", "Local", "Remote", "Home", "User",
		rep->p->unit == TRACE_LINE_SIZE ? "Lines" : "Pages", "Address",
		rep->many ? "     Pid" : "");
	for (size_t i = 0; i < v->n && i < limit; i++) {
		const struct stretch *s = &v->v[i];

		fprintf(f, "%15s %15s", str_thousands(local, sizeof(local), s->local),
			str_thousands(remote, sizeof(remote), s->remote));
		put_where(f, s->home);
		put_where(f, s->user);
		fprintf(f, " %7" PRIu64 "  0x%-14" PRIx64, s->r.pages, s->r.start);
		if (rep->many)
			fprintf(f, " %7" PRIu32, s->r.pid);
		fputc(' ', f);
		text_put(f, trace_mapping_name(s->r.mapping));
		fputc('\n', f);
	}
	if (v->n > limit)
		fprintf(f, "and %zu more (-n)\n", v->n - (size_t)limit);
}

/* ---- advice ---- */

/* All of a process from one node: then numactl does it. */
static int only_user(const stretches *v, uint32_t uid)
{
	struct node_use all = {0};
	int user = SHARED;

	for (size_t i = 0; i < v->n; i++)
		if (v->v[i].r.uid == uid)
			add_use(&all, &v->v[i].use);
	for (size_t k = 0; k <= TRACE_NODES_MAX; k++) {
		if (!references(&all, k))
			continue;
		if (user != SHARED || k == UNKNOWN)
			return SHARED;
		user = (int)k;
	}
	return user;
}

/* What is hardly used is not worth it. */
static bool wants_advice(const struct report *rep, const struct stretch *s)
{
	if (s->remote < (rep->sum.reads + rep->sum.writes) / ADVICE_LEAST)
		return false;
	return s->home >= 0 && s->remote > s->local && s->user != s->home;
}

static void put_interleave(const struct stretch *s, FILE *f)
{
	uint64_t mask = 0;

	for (size_t k = 0; k < TRACE_NODES_MAX; k++)
		if (references(&s->use, k))
			mask |= 1ull << k;
	fprintf(f, "MPOL_INTERLEAVE, nodes 0x%" PRIx64 "\n", mask);
}

static void put_advice(const struct report *rep, FILE *f, const stretches *v)
{
	uint64_t limit = rep->o->limit ? rep->o->limit : LIMIT, n = 0;
	uint32_t told = 0;

	fputs("\nAdvice\n", f);
	for (size_t i = 0; i < v->n && n < limit; i++) {
		const struct stretch *s = &v->v[i];
		const uint64_t start = s->r.start - s->r.start % TRACE_PAGE_SIZE;
		int only = only_user(v, s->r.uid);

		if (!wants_advice(rep, s) || (only != SHARED && told == s->r.uid + 1))
			continue;
		n++;
		fprintf(f, "process %" PRIu32 ": ", s->r.pid);
		if (only != SHARED) {
			told = s->r.uid + 1;
			fprintf(f, "numactl --cpunodebind=%d --membind=%d\n", only, only);
			continue;
		}
		fprintf(f, "mbind 0x%" PRIx64 ", %" PRIu64 " bytes, at home on node %d: ", start,
			(s->r.end - start + TRACE_PAGE_SIZE - 1) / TRACE_PAGE_SIZE *
				TRACE_PAGE_SIZE,
			s->home);
		if (s->user == SHARED)
			put_interleave(s, f);
		else
			fprintf(f, "MPOL_BIND, node %d\n", s->user);
	}
	if (!n)
		fputs("none: what is known to be used from afar is used from its home as much\n",
		      f);
}

void report_pages_nodes(const struct report *rep, FILE *f)
{
	stretches v = {0};

	take_stretches(rep, &v);
	if (v.n)
		qsort(v.v, v.n, sizeof(v.v[0]), most_remote_first);
	put_nodes(rep, f, &v);
	put_placement(rep, f, &v);
	put_advice(rep, f, &v);
	vec_free(&v);
}

/* ---- migration ---- */

void report_pages_moves(const struct report *rep, FILE *f)
{
	fputs("\nMigration\n", f);
	if (rep->p->nodes <= 1)
		fputs("a rehearsal: the machine has one node, and nothing can be moved\n", f);
	else if (!rep->p->moves.n)
		fputs("no page came to the thresholds\n", f);
	for (size_t i = 0; i < rep->p->moves.n; i++) {
		const struct trace_page_move *m = &rep->p->moves.v[i];

		fprintf(f,
			"%9.3fs process %" PRIu32 ": 0x%" PRIx64 " %s node %d to node %d: %" PRIu64
			" references from there, %" PRIu64 " from its home",
			(double)m->ns / 1e9, report_pages_pid(rep, m->uid), m->address,
			m->code > 0   ? "would move from"
			: m->code < 0 ? "did not move from"
				      : "moved from",
			m->from, m->to, m->remote, m->local);
		if (m->code < 0)
			fprintf(f, ": %s", strerror(-m->code));
		fputc('\n', f);
	}
}
