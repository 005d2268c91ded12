/* SPDX-License-Identifier: MIT */
/*
 * export_otf2_messages.c - MPI's messages as records of an OTF2 archive: MpiSend where the sending call began, MpiRecv where
 * the call ended that returned the message; MpiCollectiveBegin and MpiCollectiveEnd of collectives in which all ranks were.
 * Ranks of a communicator are found by its group: numbers into the group of all MPI locations, one for each process.
 */
#include "config.h"

#ifdef HAVE_OTF2
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "trace/export/export_otf2_messages.h"
#include "trace/messages/mpi.h"

enum what { SENDS, RECEIVES, BEGINS, ENDS };
struct record {
	uint64_t tsc;
	size_t n; /* in its lane, in the order in which they were told */
	enum what what;
	uint32_t comm;
	uint32_t peer; /* or the root; or OTF2_UNDEFINED_UINT32 */
	int32_t tag;
	OTF2_CollectiveOp op;
	uint64_t bytes, received; /* of a message both are in the first */
};

static const struct {
	const char *call;
	OTF2_CollectiveOp op;
} ops[] = {
	{"MPI_Barrier", OTF2_COLLECTIVE_OP_BARRIER},
	{"MPI_Bcast", OTF2_COLLECTIVE_OP_BCAST},
	{"MPI_Gather", OTF2_COLLECTIVE_OP_GATHER},
	{"MPI_Gatherv", OTF2_COLLECTIVE_OP_GATHERV},
	{"MPI_Scatter", OTF2_COLLECTIVE_OP_SCATTER},
	{"MPI_Scatterv", OTF2_COLLECTIVE_OP_SCATTERV},
	{"MPI_Allgather", OTF2_COLLECTIVE_OP_ALLGATHER},
	{"MPI_Allgatherv", OTF2_COLLECTIVE_OP_ALLGATHERV},
	{"MPI_Alltoall", OTF2_COLLECTIVE_OP_ALLTOALL},
	{"MPI_Alltoallv", OTF2_COLLECTIVE_OP_ALLTOALLV},
	{"MPI_Alltoallw", OTF2_COLLECTIVE_OP_ALLTOALLW},
	{"MPI_Reduce", OTF2_COLLECTIVE_OP_REDUCE},
	{"MPI_Allreduce", OTF2_COLLECTIVE_OP_ALLREDUCE},
	{"MPI_Reduce_scatter", OTF2_COLLECTIVE_OP_REDUCE_SCATTER},
	{"MPI_Reduce_scatter_block", OTF2_COLLECTIVE_OP_REDUCE_SCATTER_BLOCK},
	{"MPI_Scan", OTF2_COLLECTIVE_OP_SCAN},
	{"MPI_Exscan", OTF2_COLLECTIVE_OP_EXSCAN},
};

struct lane {
	VEC(struct record) v;
	size_t at; /* the first that is not written */
};

struct comm {
	uint64_t *members; /* by rank: a lane; UINT64_MAX: not seen */
	int32_t size;
};

struct otf2_messages {
	const struct trace *t;
	struct lane *lanes;
	VEC(struct comm) comms;
	VEC(uint64_t) locations; /* lanes, a process each */
};

static void put(struct otf2_messages *m, uint32_t lane, struct record r)
{
	r.n = m->lanes[lane].v.n;
	*vec_push(&m->lanes[lane].v) = r;
}

static void on_message(void *arg, const struct message *x)
{
	struct otf2_messages *m = arg;
	struct record r = {.tsc = x->sent,
			   .peer = (uint32_t)x->to_rank,
			   .comm = x->comm,
			   .tag = x->tag,
			   .what = SENDS,
			   .bytes = x->bytes == UINT64_MAX ? 0 : x->bytes};

	if (!x->received) /* one that nobody has got would be half a message */
		return;
	put(m, x->from, r);
	r.tsc = x->received;
	r.peer = (uint32_t)x->from_rank;
	r.what = RECEIVES;
	put(m, x->to, r);
}

static void on_collective(void *arg, const struct message_collective *x)
{
	struct record r = {
		.tsc = x->begin,
		.what = BEGINS,
		.peer = x->root == MESSAGE_NO_RANK ? OTF2_UNDEFINED_UINT32 : (uint32_t)x->root,
		.comm = x->comm,
		/* the format has no word for what is not known */
		.bytes = x->sent == UINT64_MAX ? 0 : x->sent,
		.received = x->received == UINT64_MAX ? 0 : x->received,
	};
	size_t i = 0;

	while (i < sizeof(ops) / sizeof(*ops) && strcmp(ops[i].call, x->call))
		i++;
	if (i == sizeof(ops) / sizeof(*ops))
		return;
	r.op = ops[i].op;
	put(arg, x->lane, r);
	r.tsc = x->end;
	r.what = ENDS;
	put(arg, x->lane, r);
}

static void on_member(void *arg, uint32_t comm, int32_t rank, int32_t size, uint32_t lane)
{
	struct otf2_messages *m = arg;
	struct comm *c;
	size_t i = 0;

	while (i < m->locations.n &&
	       m->t->lanes[m->locations.v[i]].proc_uid != m->t->lanes[lane].proc_uid)
		i++;
	if (i == m->locations.n)
		*vec_push(&m->locations) = lane;
	while (m->comms.n <= comm)
		(void)vec_push(&m->comms);
	c = &m->comms.v[comm];
	if (!c->members) {
		c->size = size;
		c->members = xmalloc((size_t)size * sizeof(*c->members));
		for (int32_t k = 0; k < size; k++)
			c->members[k] = UINT64_MAX;
	}
	if (rank < c->size)
		c->members[rank] = m->locations.v[i];
}

static int by_time(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	if (x->tsc != y->tsc)
		return x->tsc > y->tsc ? 1 : -1;
	return (x->n > y->n) - (x->n < y->n);
}

struct otf2_messages *otf2_messages_new(const struct trace *t)
{
	struct otf2_messages *m;

	if (!mpi_has(t))
		return NULL;
	m = xcalloc(1, sizeof(*m));
	m->t = t;
	m->lanes = xcalloc(t->nlanes + 1, sizeof(*m->lanes));
	mpi_read(t,
		 &(struct message_sink){.arg = m,
					.message = on_message,
					.collective = on_collective,
					.member = on_member},
		 NULL, NULL);
	for (size_t i = 0; i < t->nlanes; i++)
		if (m->lanes[i].v.n)
			qsort(m->lanes[i].v.v, m->lanes[i].v.n, sizeof(struct record), by_time);
	return m;
}

static OTF2_ErrorCode put_record(OTF2_EvtWriter *w, const struct record *r, uint64_t ns)
{
	switch (r->what) {
	case SENDS:
		return OTF2_EvtWriter_MpiSend(w, NULL, ns, r->peer, r->comm, (uint32_t)r->tag,
					      r->bytes);
	case RECEIVES:
		return OTF2_EvtWriter_MpiRecv(w, NULL, ns, r->peer, r->comm, (uint32_t)r->tag,
					      r->bytes);
	case BEGINS:
		return OTF2_EvtWriter_MpiCollectiveBegin(w, NULL, ns);
	default:
		return OTF2_EvtWriter_MpiCollectiveEnd(w, NULL, ns, r->op, r->comm, r->peer,
						       r->bytes, r->received);
	}
}

OTF2_ErrorCode otf2_messages_put(struct otf2_messages *m, uint32_t lane, uint64_t until,
				 OTF2_EvtWriter *events)
{
	struct lane *l = &m->lanes[lane];
	OTF2_ErrorCode code = OTF2_SUCCESS;

	for (; code == OTF2_SUCCESS && l->at < l->v.n && l->v.v[l->at].tsc <= until; l->at++) {
		const struct record *r = &l->v.v[l->at];

		code = put_record(events, r, trace_time(m->t, r->tsc));
	}
	return code;
}

static int by_number(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Of a lane among the locations, which are sorted. */
static uint64_t place_of(const struct otf2_messages *m, uint64_t lane)
{
	const uint64_t *found =
		bsearch(&lane, m->locations.v, m->locations.n, sizeof(lane), by_number);

	return found ? (uint64_t)(found - m->locations.v) : 0;
}

static OTF2_ErrorCode define_comm(struct otf2_messages *m, uint32_t number, OTF2_GlobalDefWriter *w,
				  OTF2_GroupRef group,
				  OTF2_StringRef (*string)(void *arg, const char *s), void *arg)
{
	struct comm *c = &m->comms.v[number];
	char *name = xasprintf("communicator %u", number);
	const OTF2_StringRef ref = string(arg, name);
	OTF2_ErrorCode code;

	for (int32_t i = 0; i < c->size; i++)
		c->members[i] = c->members[i] == UINT64_MAX ? OTF2_UNDEFINED_UINT64
							    : place_of(m, c->members[i]);
	code = OTF2_GlobalDefWriter_WriteGroup(w, group, ref, OTF2_GROUP_TYPE_COMM_GROUP,
					       OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE,
					       (uint32_t)c->size, c->members);
#if OTF2_VERSION_MAJOR >= 3
	if (code == OTF2_SUCCESS)
		code = OTF2_GlobalDefWriter_WriteComm(w, number, ref, group, OTF2_UNDEFINED_COMM,
						      OTF2_COMM_FLAG_NONE);
#else
	if (code == OTF2_SUCCESS)
		code = OTF2_GlobalDefWriter_WriteComm(w, number, ref, group, OTF2_UNDEFINED_COMM);
#endif
	xfree(name);
	return code;
}

OTF2_ErrorCode otf2_messages_define(struct otf2_messages *m, OTF2_GlobalDefWriter *w,
				    OTF2_GroupRef *groups,
				    OTF2_StringRef (*string)(void *arg, const char *s), void *arg)
{
	OTF2_ErrorCode code;

	if (!m->locations.n)
		return OTF2_SUCCESS;
	qsort(m->locations.v, m->locations.n, sizeof(uint64_t), by_number);
	code = OTF2_GlobalDefWriter_WriteGroup(w, (*groups)++, string(arg, "MPI locations"),
					       OTF2_GROUP_TYPE_COMM_LOCATIONS, OTF2_PARADIGM_MPI,
					       OTF2_GROUP_FLAG_NONE, (uint32_t)m->locations.n,
					       m->locations.v);
	for (uint32_t i = 0; code == OTF2_SUCCESS && i < m->comms.n; i++)
		if (m->comms.v[i].members)
			code = define_comm(m, i, w, (*groups)++, string, arg);
	return code;
}

void otf2_messages_free(struct otf2_messages *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->t->nlanes; i++)
		vec_free(&m->lanes[i].v);
	vec_for(&m->comms, c)
		xfree(c->members);
	vec_free(&m->comms);
	vec_free(&m->locations);
	xfree(m->lanes);
	xfree(m);
}
#endif
