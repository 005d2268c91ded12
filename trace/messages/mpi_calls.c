/* SPDX-License-Identifier: MIT */
/*
 * mpi_calls.c - puts the samples of a call together again.
 *
 *   MPI_Send comm=0x55..  MPI_to rank=1  MPI_tag tag=7  MPI_count n=10  MPI_type_size bytes=8  ...  MPI_Send_end
 *
 * A call within another one, which Open MPI's Fortran and file interfaces make, is there before the outer one ends.
 * MPI_Sendrecv_replace of nothing, or with MPI_PROC_NULL, is such a one: it calls MPI_Sendrecv with all that it has got
 * itself, which is not taken for another one.
 */
#include "trace/messages/mpi_calls.h"

#include <string.h>

#include "trace/index.h"
#include "trace/messages/mpi.h"
#include "trace/value.h"

/* The names of probes/packs/mpi.probe; at the end of a call stands its name and _end. */
static const struct kind {
	const char *name;
	unsigned does;
} kinds[] = {
	{"MPI_comm_made", MPI_MAKES},
	{"MPI_Send", MPI_SENDS},
	{"MPI_Bsend", MPI_SENDS},
	{"MPI_Ssend", MPI_SENDS},
	{"MPI_Rsend", MPI_SENDS},
	{"MPI_Isend", MPI_SENDS | MPI_REQUESTS},
	{"MPI_Ibsend", MPI_SENDS | MPI_REQUESTS},
	{"MPI_Issend", MPI_SENDS | MPI_REQUESTS},
	{"MPI_Irsend", MPI_SENDS | MPI_REQUESTS},
	{"MPI_Send_init", MPI_SENDS | MPI_REQUESTS | MPI_PERSISTS},
	{"MPI_Bsend_init", MPI_SENDS | MPI_REQUESTS | MPI_PERSISTS},
	{"MPI_Ssend_init", MPI_SENDS | MPI_REQUESTS | MPI_PERSISTS},
	{"MPI_Rsend_init", MPI_SENDS | MPI_REQUESTS | MPI_PERSISTS},
	{"MPI_Recv", MPI_RECEIVES},
	{"MPI_Irecv", MPI_RECEIVES | MPI_REQUESTS},
	{"MPI_Recv_init", MPI_RECEIVES | MPI_REQUESTS | MPI_PERSISTS},
	{"MPI_Sendrecv", MPI_SENDS | MPI_RECEIVES},
	{"MPI_Sendrecv_replace", MPI_SENDS | MPI_RECEIVES | MPI_PASSES},
	{"MPI_Mprobe", MPI_PROBES},
	{"MPI_Improbe", MPI_PROBES},
	{"MPI_Mrecv", MPI_PROBED},
	{"MPI_Imrecv", MPI_PROBED},
	{"MPI_Start", MPI_STARTS},
	{"MPI_Startall", MPI_STARTS},
	{"MPI_Wait", MPI_WAITS},
	{"MPI_Waitall", MPI_WAITS},
	{"MPI_Waitany", MPI_TESTS | MPI_PICKS},
	{"MPI_Waitsome", MPI_TESTS | MPI_PICKS},
	{"MPI_Test", MPI_TESTS},
	{"MPI_Testall", MPI_TESTS},
	{"MPI_Testany", MPI_TESTS | MPI_PICKS},
	{"MPI_Testsome", MPI_TESTS | MPI_PICKS},
	{"MPI_Request_free", MPI_FREES},
	{"MPI_Cancel", MPI_CANCELS},
	{"MPI_Barrier", MPI_COLLECTS | MPI_NO_DATA},
	{"MPI_Bcast", MPI_COLLECTS | MPI_FROM_ROOT},
	{"MPI_Gather", MPI_COLLECTS | MPI_TO_ROOT},
	{"MPI_Gatherv", MPI_COLLECTS | MPI_TO_ROOT},
	{"MPI_Scatter", MPI_COLLECTS | MPI_FROM_ROOT},
	{"MPI_Scatterv", MPI_COLLECTS | MPI_FROM_ROOT},
	{"MPI_Allgather", MPI_COLLECTS},
	{"MPI_Allgatherv", MPI_COLLECTS},
	{"MPI_Alltoall", MPI_COLLECTS},
	{"MPI_Alltoallv", MPI_COLLECTS | MPI_COUNTS},
	{"MPI_Alltoallw", MPI_COLLECTS | MPI_COUNTS},
	{"MPI_Reduce", MPI_COLLECTS | MPI_TO_ROOT},
	{"MPI_Allreduce", MPI_COLLECTS},
	{"MPI_Reduce_scatter", MPI_COLLECTS | MPI_COUNTS},
	{"MPI_Reduce_scatter_block", MPI_COLLECTS},
	{"MPI_Scan", MPI_COLLECTS | MPI_IN_ORDER},
	{"MPI_Exscan", MPI_COLLECTS | MPI_IN_ORDER | MPI_OF_OTHERS},
};
enum { NKINDS = sizeof(kinds) / sizeof(*kinds) };

static const struct part {
	const char *name;
	unsigned has;
} parts[] = {
	{"MPI_to", MPI_HAS_TO},
	{"MPI_tag", MPI_HAS_TAG},
	{"MPI_count", MPI_HAS_COUNT},
	{"MPI_type_size", MPI_HAS_SIZE},
	{"MPI_from", MPI_HAS_FROM},
	{"MPI_receive_tag", MPI_HAS_RTAG},
	{"MPI_status", MPI_HAS_STATUS},
	{"MPI_request_new", MPI_HAS_REQUEST},
	{"MPI_root", MPI_HAS_ROOT},
	{"MPI_comm_id", MPI_HAS_ID},
	{"MPI_comm_size", MPI_HAS_MEMBERS},
	{"MPI_comm_first", MPI_HAS_FIRST},
	{"MPI_in_place", MPI_HAS_IN_PLACE},
	{"MPI_counts", MPI_HAS_COUNTS},
	{"MPI_request", 0},
	{"MPI_requests", 0},
};
enum { NPARTS = sizeof(parts) / sizeof(*parts) };
#define FIRST_NAME "MPI_comm_first_name"
#define ARRIVAL "MPI_arrival"
#define GONE "MPI_comm_gone"

/* What an event of the trace is: a kind, its end, a part. */
enum {
	ROLE_BEGIN,
	ROLE_END = ROLE_BEGIN + NKINDS,
	ROLE_PART = ROLE_END + NKINDS,
	ROLE_FIRST_NAME = ROLE_PART + NPARTS,
	ROLE_ARRIVAL,
	ROLE_GONE,
	ROLE_NONE
};
_Static_assert(ROLE_NONE <= UINT8_MAX, "the type of struct mpi_calls.roles");
enum { DEPTH = 8 };

struct open_calls { /* of a lane */
	struct mpi_call v[DEPTH];
	unsigned n;
};

struct mpi_calls {
	const struct trace *t;
	struct index events; /* numbers of user events */
	VEC(uint8_t) roles;  /* by index */
	struct open_calls **lanes;
	const struct mpi_calls_sink *sink;
};

static uint8_t role_of(const char *name)
{
	for (unsigned i = 0; i < NKINDS; i++) {
		const size_t n = strlen(kinds[i].name);

		if (!strcmp(name, kinds[i].name))
			return (uint8_t)(ROLE_BEGIN + i);
		if (!strncmp(name, kinds[i].name, n) && !strcmp(name + n, "_end"))
			return (uint8_t)(ROLE_END + i);
	}
	for (unsigned i = 0; i < NPARTS; i++)
		if (!strcmp(name, parts[i].name))
			return (uint8_t)(ROLE_PART + i);
	if (!strcmp(name, ARRIVAL))
		return ROLE_ARRIVAL;
	if (!strcmp(name, GONE))
		return ROLE_GONE;
	return strcmp(name, FIRST_NAME) ? ROLE_NONE : ROLE_FIRST_NAME;
}

bool mpi_has(const struct trace *t)
{
	for (size_t i = 0; i < t->nuser_events; i++)
		if (role_of(t->user_events[i].name) != ROLE_NONE)
			return true;
	return false;
}

struct mpi_calls *mpi_calls_new(const struct trace *t, const struct mpi_calls_sink *sink)
{
	struct mpi_calls *x;

	if (!mpi_has(t))
		return NULL;
	x = xcalloc(1, sizeof(*x));
	x->t = t;
	x->sink = sink;
	x->lanes = xcalloc(t->nlanes + 1, sizeof(struct open_calls *));
	for (size_t i = 0; i < t->nuser_events; i++) {
		const uint8_t role = role_of(t->user_events[i].name);

		if (role == ROLE_NONE)
			continue;
		index_of(&x->events, t->user_events[i].n);
		*vec_push(&x->roles) = role;
	}
	return x;
}

static void give_call_out(struct mpi_calls *x, struct mpi_call *c)
{
	x->sink->on_end(x->sink->arg, c);
	vec_free(&c->requests);
	vec_free(&c->counts);
}

static void give_out(struct mpi_calls *x, struct open_calls *o)
{
	give_call_out(x, &o->v[--o->n]);
}

/* Does the innermost call make this one, and so nothing itself? */
static bool passes(struct open_calls *o, unsigned does)
{
	struct mpi_call *outer = o->n ? &o->v[o->n - 1] : NULL;

	/* once: the end of one may have been lost */
	if (!outer || outer->passed || !(outer->does & MPI_PASSES) ||
	    does != (MPI_SENDS | MPI_RECEIVES))
		return false;
	return outer->passed = true;
}

static void begin(struct mpi_calls *x, const struct trace_event *e, unsigned kind, struct value v)
{
	struct open_calls *o = x->lanes[e->lane];
	unsigned does = kinds[kind].does;

	if (!o)
		o = x->lanes[e->lane] = xcalloc(1, sizeof(*o));
	if (o->n == DEPTH) { /* what lost samples have left open */
		struct mpi_call first = o->v[0];

		memmove(o->v, o->v + 1, (DEPTH - 1) * sizeof(*o->v));
		o->v[DEPTH - 1] = first;
		give_out(x, o);
	}
	if (passes(o, does))
		does = 0;
	o->v[o->n++] = (struct mpi_call){
		.does = does,
		.has = v.type.bits == 64 && value_is_number(v) ? MPI_HAS_COMM : 0,
		.kind = kind,
		.lane = e->lane,
		.begin = e->tsc,
		.comm = v.number,
		.count = (int32_t)v.number, /* of requests, where it is no handle */
	};
	if (does & (MPI_PROBED | MPI_PROBES)) /* all that is known of it */
		give_out(x, o);
}

static void end(struct mpi_calls *x, const struct trace_event *e, unsigned kind)
{
	struct open_calls *o = x->lanes[e->lane];
	unsigned i = o ? o->n : 0;

	while (i && o->v[i - 1].kind != kind)
		i--;
	if (!i)
		return;
	while (o->n > i)
		give_out(x, o);
	o->v[i - 1].end = e->tsc;
	give_out(x, o);
}

/* Numbers of an array in memory, little-endian as the machine. */
static bool numbers(struct value v, void *to, size_t size)
{
	if (!v.memory || v.memory->is_unreadable || v.memory->length < size)
		return false;
	memcpy(to, v.memory->text, size);
	return true;
}

static void take_requests(struct mpi_call *c, struct value v)
{
	uint64_t all[8];

	if (value_is_number(v)) /* of one */
		*vec_push(&c->requests) = v.number;
	else if (numbers(v, all, sizeof(all)))
		for (int i = 0; i < 8 && c->requests.n < (size_t)c->count; i++)
			*vec_push(&c->requests) = all[i];
}

static bool take_counts(struct mpi_call *c, struct value v)
{
	int32_t some[16];

	c->counts_torn = c->counts_torn || !numbers(v, some, sizeof(some));
	if (!c->counts_torn)
		vec_add(&c->counts, some, 16);
	return !c->counts_torn;
}

/*
 * A process that nobody has talked to yet stands there as its name, which is folded so that bit 0 is set, as it is in no
 * pointer (ompi/proc/proc.h: ompi_proc_sentinel_to_name).
 */
static uint64_t name_of_sentinel(uint64_t v)
{
	return (v & ~(uint64_t)0xffff) | (v & 0xffff) >> 1;
}

static bool take_part(struct mpi_call *c, unsigned has, struct value v)
{
	const bool is_number = value_is_number(v);

	switch (has) {
	case MPI_HAS_TO:
		c->to = (int32_t)v.number;
		return is_number;
	case MPI_HAS_TAG:
		c->tag = (int32_t)v.number;
		return is_number;
	case MPI_HAS_COUNT:
		c->count = (int32_t)v.number;
		return is_number;
	case MPI_HAS_SIZE:
		c->type_size = v.number;
		return is_number;
	case MPI_HAS_FROM:
		c->from = (int32_t)v.number;
		return is_number;
	case MPI_HAS_RTAG:
		c->rtag = (int32_t)v.number;
		return is_number;
	case MPI_HAS_STATUS:
		return numbers(v, c->status, sizeof(c->status));
	case MPI_HAS_REQUEST:
		c->request = v.number;
		return is_number;
	case MPI_HAS_ROOT:
		c->root = (int32_t)v.number;
		return is_number;
	case MPI_HAS_ID:
		return numbers(v, c->id, sizeof(c->id));
	case MPI_HAS_MEMBERS:
		c->size = (int32_t)v.number;
		return is_number;
	case MPI_HAS_COUNTS:
		return take_counts(c, v);
	case MPI_HAS_IN_PLACE:
		return is_number;
	case MPI_HAS_FIRST:
		c->first = name_of_sentinel(v.number);
		return is_number && v.number & 1;
	default:
		return false;
	}
}

static void part(struct mpi_calls *x, const struct trace_event *e, unsigned which, struct value v)
{
	struct open_calls *o = x->lanes[e->lane];
	struct mpi_call *c = o && o->n ? &o->v[o->n - 1] : NULL;

	if (!c)
		return;
	if (!parts[which].has)
		take_requests(c, v);
	else if (take_part(c, parts[which].has, v))
		c->has |= parts[which].has;
	/* the last of what it wants to receive */
	if (parts[which].has == MPI_HAS_RTAG && c->does & MPI_RECEIVES && !(c->does & MPI_REQUESTS))
		x->sink->on_posted(x->sink->arg, c);
}

static void arrival(struct mpi_calls *x, const struct trace_event *e, struct value v)
{
	/* ompi/mca/pml/ob1/pml_ob1_hdr.h: type, flags and communicator share the first word */
	uint32_t header[4];

	if (numbers(v, header, sizeof(header)))
		x->sink->on_arrival(x->sink->arg,
				    &(struct mpi_arrival){.lane = e->lane,
							  .comm = header[0] >> 16,
							  .from = (int32_t)header[1],
							  .tag = (int32_t)header[2],
							  .number = (uint16_t)header[3]});
}

/* The last sample of a communicator that was made. */
static void first_name(struct mpi_calls *x, const struct trace_event *e, struct value v)
{
	struct open_calls *o = x->lanes[e->lane];
	struct mpi_call *c = o && o->n ? &o->v[o->n - 1] : NULL;

	if (!c || !(c->does & MPI_MAKES))
		return;
	if (!(c->has & MPI_HAS_FIRST) && value_is_number(v)) {
		c->first = v.number;
		c->has |= MPI_HAS_FIRST;
	}
	c->end = e->tsc;
	give_out(x, o);
}

static void gone(struct mpi_calls *x, const struct trace_event *e, struct value v)
{
	uint32_t id[3];

	if (numbers(v, id, sizeof(id)))
		x->sink->on_gone(x->sink->arg, e->lane, id[0]);
}

static uint8_t role_of_event(const struct mpi_calls *x, const struct trace_event *e)
{
	const struct trace_user_event *u =
		e->s.event < KRON_EVENT_SPECIAL ? trace_user_event_of(x->t, e->s.event) : NULL;
	const uint32_t at = u ? index_find(&x->events, u->n) : INDEX_NONE;

	return at == INDEX_NONE ? ROLE_NONE : x->roles.v[at];
}

const char *mpi_call_name(unsigned kind)
{
	return kinds[kind].name;
}

bool mpi_calls_is_arrival(const struct mpi_calls *x, const struct trace_event *e)
{
	return role_of_event(x, e) == ROLE_ARRIVAL;
}

void mpi_calls_feed(struct mpi_calls *x, const struct trace_event *e)
{
	const uint8_t role = role_of_event(x, e);
	struct value v;

	if (role == ROLE_NONE)
		return;
	v = value_of(trace_user_event_of(x->t, e->s.event), e);
	if (role < ROLE_END)
		begin(x, e, role - ROLE_BEGIN, v);
	else if (role < ROLE_PART)
		end(x, e, role - ROLE_END);
	else if (role < ROLE_FIRST_NAME)
		part(x, e, role - ROLE_PART, v);
	else if (role == ROLE_FIRST_NAME)
		first_name(x, e, v);
	else if (role == ROLE_ARRIVAL)
		arrival(x, e, v);
	else
		gone(x, e, v);
}

void mpi_calls_finish(struct mpi_calls *x)
{
	for (size_t i = 0; i < x->t->nlanes; i++) {
		struct open_calls *o = x->lanes[i];

		/* the outermost was the first */
		for (unsigned k = 0; o && k < o->n; k++)
			give_call_out(x, &o->v[k]);
		xfree(o);
	}
	xfree(x->lanes);
	vec_free(&x->roles);
	index_free(&x->events);
	xfree(x);
}
