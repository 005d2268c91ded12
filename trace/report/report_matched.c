/* SPDX-License-Identifier: MIT */
/*
 * report_matched.c - kron report --messages of a trace of MPI programs, or of TCP connections: who sends how much to whom, what
 * is under way, and which process the others wait for.
 *
 * A process that is slow makes its neighbours wait, and these theirs. So the processes are in the order of whose fault it is in the
 * end: who only passes a delay on has caused none.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/str.h"
#include "trace/messages/mpi.h"
#include "trace/messages/net.h"
#include "trace/report/report.h"
#include "trace/report/report_messages.h"
#include "trace/text.h"

enum { PARTS = 100 }; /* of the time, for what is under way */

struct rank {
	uint32_t process;
	uint64_t caused;               /* ticks: waits of others that are its fault */
	uint64_t delays[MESSAGE_WHYS]; /* that others have waited for it */
	uint64_t waited;               /* itself */
	uint64_t sent, received, sent_bytes, received_bytes;
};

struct matched {
	const struct trace *t;
	struct message_matrix matrix;
	struct index processes;
	VEC(struct rank) ranks; /* by index */
	VEC(struct message_wait) waits;
	struct mpi_counts mpi;
	struct net_counts net;
	uint64_t start, part; /* ticks: of the first part, and how long each is */
	double flying[PARTS], flying_bytes[PARTS]; /* on average */
};

static const char *name_of(const struct message_matrix *m, uint32_t def)
{
	(void)m;
	return message_kinds[def];
}

static struct rank *rank_of(struct matched *x, uint32_t lane)
{
	const uint32_t process = x->t->lanes[lane].proc_uid;
	const uint32_t at = index_of(&x->processes, process);

	if (at == x->ranks.n)
		*vec_push(&x->ranks) = (struct rank){.process = process};
	return &x->ranks.v[at];
}

static void add_flight(struct matched *x, uint64_t since, uint64_t until, double bytes)
{
	uint64_t at = since > x->start ? (since - x->start) / x->part : 0;

	for (; at < PARTS; at++) {
		const uint64_t first = x->start + at * x->part, last = first + x->part;
		const uint64_t from = since > first ? since : first;
		const uint64_t to = until < last ? until : last;

		if (from >= until)
			break;
		if (to <= from)
			continue;
		x->flying[at] += (double)(to - from) / (double)x->part;
		x->flying_bytes[at] += bytes * (double)(to - from) / (double)x->part;
	}
}

static void on_message(void *arg, const struct message *m)
{
	struct matched *x = arg;
	struct message_row *row = message_row_of(&x->matrix, m->kind, m->from, m->to);
	const uint64_t bytes = m->bytes == UINT64_MAX ? 0 : m->bytes;
	struct rank *r = rank_of(x, m->from);

	row->bytes += bytes;
	r->sent++;
	r->sent_bytes += bytes;
	r = rank_of(x, m->to);
	r->received++;
	r->received_bytes += bytes;
	if (!m->received)
		return;
	message_row_add(row, (int64_t)(m->received - m->sent));
	add_flight(x, m->sent, m->received, (double)bytes);
}

static void on_wait(void *arg, const struct message_wait *w)
{
	struct matched *x = arg;

	rank_of(x, w->by)->delays[w->why] += w->until - w->since;
	rank_of(x, w->who)->waited += w->until - w->since;
	*vec_push(&x->waits) = *w;
}

static void blame(struct matched *x)
{
	uint64_t *caused = xcalloc(x->t->nlanes + 1, sizeof(*caused));

	message_blame(x->waits.v, x->waits.n, caused, x->t->nlanes);
	for (uint32_t i = 0; i < x->t->nlanes; i++)
		if (caused[i])
			rank_of(x, i)->caused += caused[i];
	xfree(caused);
}

static uint64_t sum(const uint64_t v[MESSAGE_WHYS])
{
	return v[MESSAGE_LATE_SENDER] + v[MESSAGE_LATE_RECEIVER] + v[MESSAGE_LATE_AT_COLLECTIVE];
}

static int guiltiest_first(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;

	if (x->caused != y->caused)
		return x->caused > y->caused ? -1 : 1;
	return (x->process > y->process) - (x->process < y->process);
}

/* ---- text ---- */

static void print_ranks(struct matched *x, FILE *out)
{
	fprintf(out, "\n%10s  %10s  %10s  %10s  %10s  %10s  %s\n", "Caused", "Waited", "Waited for",
		"Late sends", "Late recvs", "Late colls", "Process");
	vec_for(&x->ranks, r) {
		const uint64_t times[] = {r->caused,
					  r->waited,
					  sum(r->delays),
					  r->delays[MESSAGE_LATE_SENDER],
					  r->delays[MESSAGE_LATE_RECEIVER],
					  r->delays[MESSAGE_LATE_AT_COLLECTIVE]};

		for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
			text_put_duration(out, trace_ns(x->t, times[i]));
			fputs("  ", out);
		}
		message_put_process(&x->matrix, r->process, out);
		fputc('\n', out);
	}
}

static double highest(const double v[PARTS])
{
	double most = 0;

	for (int i = 0; i < PARTS; i++)
		most = v[i] > most ? v[i] : most;
	return most;
}

static void print_line(FILE *out, uint64_t n, const char *what)
{
	char buf[STR_NUMBER];

	if (n)
		fprintf(out, "%s %s\n", str_thousands(buf, sizeof(buf), n), what);
}

static void print_mpi(struct matched *x, FILE *out)
{
	const struct mpi_counts *c = &x->mpi;

	print_line(out, c->differing,
		   "messages of which another size came than was sent: these times are wrong");
	print_line(out, c->sent_only, "sends that no receive is known of");
	print_line(out, c->received_only, "receives that no send is known of");
	print_line(out, c->any,
		   "receives from any rank that do not say what they have received: not matched");
	print_line(out, c->in_doubt,
		   "receives that may have been meant for what those have received: not matched");
	print_line(
		out, c->unordered,
		"sends while another thread of the rank was sending to the same one under the same "
		"tag: which of them a receive has got is not known");
	print_line(out, c->strange,
		   "calls on communicators that are not known (between groups, or made before the "
		   "recording): not matched");
	print_line(out, c->broken, "calls of which samples are missing: not matched");
	print_line(
		out, c->collectives_cut,
		"collectives in which not all ranks were seen, or not in the same call, or that came after "
		"such ones on their communicator");
	print_line(out, x->t->lost,
		   "samples were lost: messages may be taken for others of the same rank and tag");
}

/* Of the sends and receives of a connection: what has become of those that are in no message, for people and for JSON. */
static const struct fate {
	const char *key, *text;
} fates[NET_FATES] = {
	[NET_MATCHED] = {"matched", NULL},
	[NET_UNREAD] = {"unread", "were not received, or not wholly"},
	[NET_ALONE] = {"alone", "have the other end of their connection in no trace"},
	[NET_BEFORE] = {"before", "are of connections that were there before the recording"},
	[NET_REUSED] = {"reused", "have the addresses of more than one connection"},
	[NET_LOST] = {"lost", "are of connections of which samples are missing"},
	[NET_DIFFERING] =
		{"differing",
		 "are of connections on which not as much has come as was sent: not all calls were seen"},
	[NET_UNORDERED] =
		{"unordered",
		 "while another thread was in one on the same connection: their order is not known"},
	[NET_UNTOLD] = {"untold",
			"after a call that does not say how many bytes it has transferred"},
	[NET_NO_ADDRESS] = {"no_address", "on sockets whose addresses are not known"},
};

static void print_net(struct matched *x, FILE *out)
{
	const struct net_counts *c = &x->net;
	char buf[STR_NUMBER];

	print_line(out, c->connections, "TCP connections of which both ends were seen");
	for (int i = NET_MATCHED + 1; i < NET_FATES; i++) {
		if (!c->sends[i] && !c->receives[i])
			continue;
		fprintf(out, "%s TCP sends and ", str_thousands(buf, sizeof(buf), c->sends[i]));
		fprintf(out, "%s receives %s: not matched\n",
			str_thousands(buf, sizeof(buf), c->receives[i]), fates[i].text);
	}
	print_line(out, c->unfinished,
		   "TCP calls that have not said how many bytes they have transferred");
	print_line(
		out, c->peeks,
		"TCP calls that have left the bytes where they were (MSG_PEEK), or got others (MSG_OOB, "
		"MSG_ERRQUEUE)");
	print_line(out, c->other, "calls on sockets that are not TCP's");
	print_line(
		out, c->unasked,
		"calls of which the kernel could not be asked on which socket (seccomp): not matched");
	print_line(out, c->unstarted, "ends of TCP calls whose beginning is missing");
	print_line(
		out, x->t->nuntraced,
		"processes were not traced: what they have sent on inherited connections is not known");
}

static void print_text(struct matched *x, FILE *out)
{
	char a[STR_NUMBER], b[STR_NUMBER];

	message_matrix_print(&x->matrix, out);
	print_ranks(x, out);
	fprintf(out, "\n%s messages",
		str_thousands(a, sizeof(a), x->mpi.messages + x->net.messages));
	if (mpi_has(x->t))
		fprintf(out, ", %s collectives", str_thousands(b, sizeof(b), x->mpi.collectives));
	fprintf(out,
		"\nunder way in the busiest hundredth of the time: %.1f messages, %.1f bytes on "
		"average\n",
		highest(x->flying), highest(x->flying_bytes));
	if (mpi_has(x->t))
		print_mpi(x, out);
	if (net_has(x->t))
		print_net(x, out);
}

/* ---- JSON ---- */

static void json_time(const struct matched *x, struct json *j, const char *key, uint64_t ticks)
{
	json_ku64(j, key, trace_ns(x->t, ticks));
}

static void json_ranks(struct matched *x, struct json *j)
{
	json_key(j, "processes");
	json_open(j, '[');
	vec_for(&x->ranks, r) {
		fputc('\n', j->f);
		json_open(j, '{');
		message_json_process(&x->matrix, j, r->process);
		json_time(x, j, "caused_ns", r->caused);
		json_time(x, j, "waited_ns", r->waited);
		json_time(x, j, "waited_for_ns", sum(r->delays));
		json_time(x, j, "late_sender_ns", r->delays[MESSAGE_LATE_SENDER]);
		json_time(x, j, "late_receiver_ns", r->delays[MESSAGE_LATE_RECEIVER]);
		json_time(x, j, "late_at_collective_ns", r->delays[MESSAGE_LATE_AT_COLLECTIVE]);
		json_ku64(j, "sent", r->sent);
		json_ku64(j, "sent_bytes", r->sent_bytes);
		json_ku64(j, "received", r->received);
		json_ku64(j, "received_bytes", r->received_bytes);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void json_flight(const struct matched *x, struct json *j)
{
	json_key(j, "under_way");
	json_open(j, '[');
	for (int i = 0; i < PARTS; i++) {
		json_open(j, '{');
		json_ku64(j, "from_ns", trace_time(x->t, x->start + (uint64_t)i * x->part));
		json_key(j, "messages");
		json_f64(j, x->flying[i]);
		json_key(j, "bytes");
		json_f64(j, x->flying_bytes[i]);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void json_mpi(const struct matched *x, struct json *j)
{
	const struct mpi_counts *c = &x->mpi;

	json_ku64(j, "sends", c->sends);
	json_ku64(j, "receives", c->receives);
	json_ku64(j, "differing", c->differing);
	json_ku64(j, "sent_only", c->sent_only);
	json_ku64(j, "received_only", c->received_only);
	json_ku64(j, "from_any", c->any);
	json_ku64(j, "in_doubt", c->in_doubt);
	json_ku64(j, "cancelled", c->cancelled);
	json_ku64(j, "unordered", c->unordered);
	json_ku64(j, "unknown_communicator", c->strange);
	json_ku64(j, "broken", c->broken);
	json_ku64(j, "collectives", c->collectives);
	json_ku64(j, "collectives_cut", c->collectives_cut);
}

static void json_fates(struct json *j, const char *key, const uint64_t v[NET_FATES])
{
	json_key(j, key);
	json_open(j, '{');
	for (int i = 0; i < NET_FATES; i++)
		json_ku64(j, fates[i].key, v[i]);
	json_close(j, '}');
}

static void json_net(const struct matched *x, struct json *j)
{
	const struct net_counts *c = &x->net;

	json_key(j, "tcp");
	json_open(j, '{');
	json_ku64(j, "connections", c->connections);
	json_fates(j, "sends", c->sends);
	json_fates(j, "receives", c->receives);
	json_ku64(j, "unfinished", c->unfinished);
	json_ku64(j, "peeks", c->peeks);
	json_ku64(j, "other", c->other);
	json_ku64(j, "unasked", c->unasked);
	json_ku64(j, "unstarted", c->unstarted);
	json_close(j, '}');
}

static void print_json(struct matched *x, FILE *out)
{
	struct json j = JSON_INIT(out);

	json_open(&j, '{');
	json_key(&j, "messages");
	message_matrix_json(&x->matrix, &j);
	json_ranks(x, &j);
	json_flight(x, &j);
	json_ku64(&j, "matched", x->mpi.messages + x->net.messages);
	if (mpi_has(x->t))
		json_mpi(x, &j);
	if (net_has(x->t))
		json_net(x, &j);
	json_ku64(&j, "lost", x->t->lost);
	json_close(&j, '}');
}

int report_matched(const struct trace *t, bool json, FILE *out, struct err *err)
{
	int32_t *ranks = xcalloc(t->nprocs + 1, sizeof(*ranks));
	struct matched x = {.t = t, .matrix = {.t = t, .name = name_of, .ranks = ranks}};
	const struct message_sink sink = {.arg = &x, .message = on_message, .wait = on_wait};

	if (!messages_has(t)) {
		xfree(ranks);
		return err_set(
			err, ENODATA,
			"%s has no messages of MPI or TCP (record -P mpi, with Open MPI 4, or -P net); "
			"-i FILE says which other events are messages",
			t->dir);
	}
	x.start = t->start_tsc;
	x.part = t->end_tsc > t->start_tsc ? (t->end_tsc - t->start_tsc) / PARTS + 1 : 1;
	messages_read(t, &sink, &x.mpi, &x.net, ranks);
	blame(&x);
	message_matrix_sort(&x.matrix);
	if (x.ranks.n)
		qsort(x.ranks.v, x.ranks.n, sizeof(*x.ranks.v), guiltiest_first);
	(json ? print_json : print_text)(&x, out);
	message_matrix_free(&x.matrix);
	vec_free(&x.ranks);
	vec_free(&x.waits);
	index_free(&x.processes);
	xfree(ranks);
	return 0;
}
