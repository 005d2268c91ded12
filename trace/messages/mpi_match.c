/* SPDX-License-Identifier: MIT */
/*
 * mpi_match.c - which receive got which send.
 *
 * Each communicator, sender and receiver has a queue. A send takes the first receive in it whose tag fits, a receive
 * the first send, as the library does. In which order the two sides come is all the same: only that of each side counts.
 *
 * A message is given out once both are matched and the receiver has it.
 */
#include "trace/messages/mpi.h"

#include "trace/messages/mpi_impl.h"

#define NOBODY MPI_NOBODY

struct half { /* of a message */
	uint32_t lane;
	uint32_t queue; /* or NOBODY: it is not known from whom it receives */
	uint32_t comm;
	uint32_t mate, next;   /* halves, or NOBODY */
	uint32_t wait;         /* where its receiver waited for it, or NOBODY */
	int32_t from, to, tag; /* of a receive: its own rank; the others may be any */
	uint64_t begin, end;
	uint64_t bytes;
	bool is_done; /* the program has it back */
	bool is_receive;
	bool is_there; /* else this place is free */
};

struct fifo {
	uint32_t first, last;
};
struct queue {
	struct fifo sends, receives;
	uint32_t comm;
	int32_t from, to;
};

struct last { /* send of a queue and a tag */
	uint32_t lane;
	uint64_t end;
};

struct wait { /* a call that waits for receives */
	uint32_t lane, by;
	uint64_t begin, end;
	uint64_t late; /* the latest send: when it began */
	uint32_t left; /* receives that are not matched yet */
};

/* What a process knows a request by. */
struct request {
	uint32_t half;   /* a receive that runs, or NOBODY */
	uint64_t tested; /* when the last call ended that asked for it */
	bool persists;
	bool picked; /* by a call that may have returned it: a persistent one has its handle still */
	struct mpi_call again; /* MPI_Start makes this call */
};

struct match {
	const struct trace *t;
	const struct message_sink *sink;
	struct mpi_counts *counts;
	struct mpi_comms comms;
	struct mpi_collectives collectives;
	struct mpi_arrivals arrivals;
	struct index keys[2]; /* communicator and sender; and receiver */
	VEC(struct queue) queues;
	struct index tags;      /* queue and tag */
	VEC(struct last) lasts; /* by index of that */
	VEC(struct half) halves;
	uint32_t unused; /* halves */
	struct index handles[2];
	VEC(struct request) requests; /* by index of the second */
	VEC(struct wait) waits;
	VEC(uint32_t) unused_waits;
	/* What receives from any rank may have taken: communicator and receiver; with the tag, or SOME_TAG. */
	struct index doubtful[2];
	struct index probed; /* processes that have asked by a matched probe */
};
#define SOME_TAG UINT32_MAX

/* ---- halves ---- */

static uint32_t half_new(struct match *m, const struct half *h)
{
	uint32_t at = m->unused;

	if (at == NOBODY) {
		at = (uint32_t)m->halves.n;
		(void)vec_push(&m->halves);
	} else {
		m->unused = m->halves.v[at].next;
	}
	m->halves.v[at] = *h;
	m->halves.v[at].mate = m->halves.v[at].next = NOBODY;
	m->halves.v[at].wait = NOBODY;
	m->halves.v[at].is_there = true;
	return at;
}

static void half_free(struct match *m, uint32_t at)
{
	m->halves.v[at].is_there = false;
	m->halves.v[at].next = m->unused;
	m->unused = at;
}

/* The first that fits, which leaves the queue. */
static uint32_t take(struct match *m, struct fifo *q, int32_t tag, bool of_sends)
{
	uint32_t before = NOBODY;

	for (uint32_t at = q->first; at != NOBODY; before = at, at = m->halves.v[at].next) {
		struct half *h = &m->halves.v[at];

		if (!(of_sends ? mpi_tag_fits(tag, h->tag) : mpi_tag_fits(h->tag, tag)))
			continue;
		if (before == NOBODY)
			q->first = h->next;
		else
			m->halves.v[before].next = h->next;
		if (q->last == at)
			q->last = before;
		h->next = NOBODY;
		return at;
	}
	return NOBODY;
}

static void put(struct match *m, struct fifo *q, uint32_t at)
{
	if (q->first == NOBODY)
		q->first = at;
	else
		m->halves.v[q->last].next = at;
	q->last = at;
}

/* A receive is in its queue no more. */
static bool leave(struct match *m, uint32_t half)
{
	struct fifo *q = &m->queues.v[m->halves.v[half].queue].receives;
	uint32_t before = NOBODY;

	for (uint32_t at = q->first; at != NOBODY; before = at, at = m->halves.v[at].next) {
		if (at != half)
			continue;
		if (before == NOBODY)
			q->first = m->halves.v[at].next;
		else
			m->halves.v[before].next = m->halves.v[at].next;
		if (q->last == at)
			q->last = before;
		return true;
	}
	return false;
}

static uint32_t queue_of(struct match *m, uint32_t comm, int32_t from, int32_t to)
{
	const uint32_t a = index_of(&m->keys[0], (uint64_t)comm << 32 | (uint32_t)from);
	const uint32_t at = index_of(&m->keys[1], (uint64_t)a << 32 | (uint32_t)to);

	if (at == m->queues.n)
		*vec_push(&m->queues) =
			(struct queue){{NOBODY, NOBODY}, {NOBODY, NOBODY}, comm, from, to};
	return at;
}

/* ---- who waits for whom ---- */

static void tell_wait(struct match *m, const struct wait *w)
{
	message_tell_wait(m->sink,
			  &(struct message_wait){.who = w->lane,
						 .by = w->by,
						 .since = w->begin,
						 .until = w->late < w->end ? w->late : w->end,
						 .why = MESSAGE_LATE_SENDER});
}

/* One of the receives that it waits for is matched. */
static void settle_wait(struct match *m, uint32_t at, const struct half *send)
{
	struct wait *w = &m->waits.v[at];

	if (send->begin >= w->late) {
		w->late = send->begin;
		w->by = send->lane;
	}
	if (!--w->left) {
		tell_wait(m, w);
		*vec_push(&m->unused_waits) = at;
	}
}

static void tell_late_receiver(struct match *m, const struct half *send, const struct half *receive)
{
	/* It has blocked until there was someone to receive; one that was sent at once has not. */
	if (send->end > receive->begin)
		message_tell_wait(m->sink, &(struct message_wait){.who = send->lane,
								  .by = receive->lane,
								  .since = send->begin,
								  .until = receive->begin,
								  .why = MESSAGE_LATE_RECEIVER});
}

/* A receive that has its send, and the program has it. */
static void give_out(struct match *m, uint32_t at)
{
	const struct half *r = &m->halves.v[at], *s = &m->halves.v[r->mate];
	const struct queue *q = &m->queues.v[r->queue];

	m->counts->messages++;
	m->counts->differing +=
		r->bytes != UINT64_MAX && s->bytes != UINT64_MAX && r->bytes != s->bytes;
	m->sink->message(m->sink->arg, &(struct message){.kind = MESSAGE_MPI,
							 .from = s->lane,
							 .to = r->lane,
							 .from_rank = q->from,
							 .to_rank = q->to,
							 .tag = s->tag,
							 .comm = q->comm,
							 .bytes = s->bytes,
							 .sent = s->begin,
							 .posted = r->begin,
							 .received = r->end});
	tell_late_receiver(m, s, r);
	if (r->wait != NOBODY)
		settle_wait(m, r->wait, s);
	half_free(m, r->mate);
	half_free(m, at);
}

/* ---- the two sides ---- */

static void join(struct match *m, uint32_t send, uint32_t receive)
{
	m->halves.v[send].mate = receive;
	m->halves.v[receive].mate = send;
	if (m->halves.v[receive].is_done)
		give_out(m, receive);
}

/* Sends come here as they end: in another order than the library has had them where two threads are in one. */
static void count_unordered(struct match *m, uint32_t queue, const struct mpi_call *c)
{
	const uint32_t at = index_of(&m->tags, (uint64_t)queue << 32 | (uint32_t)c->tag);

	if (at == m->lasts.n)
		(void)vec_push(&m->lasts);
	else
		m->counts->unordered +=
			m->lasts.v[at].lane != c->lane && c->begin < m->lasts.v[at].end;
	m->lasts.v[at] = (struct last){c->lane, c->end ? c->end : UINT64_MAX};
}

static void send(struct match *m, const struct mpi_comm *comm, const struct mpi_call *c)
{
	const uint32_t q = queue_of(m, comm->number, comm->rank, c->to);
	const bool knows_size = (~c->has & (MPI_HAS_COUNT | MPI_HAS_SIZE)) == 0 && c->count >= 0;
	const uint32_t at =
		half_new(m, &(struct half){.lane = c->lane,
					   .queue = q,
					   .tag = c->tag,
					   .begin = c->begin,
					   /* of others nobody knows how long the send has taken */
					   .end = c->does == MPI_SENDS ? c->end : 0,
					   .bytes = knows_size ? (uint64_t)c->count * c->type_size
							       : UINT64_MAX});
	uint32_t mate;

	m->counts->sends++;
	count_unordered(m, q, c);
	mate = take(m, &m->queues.v[q].receives, c->tag, false);
	if (mate == NOBODY)
		put(m, &m->queues.v[q].sends, at);
	else
		join(m, at, mate);
}

static uint32_t doubt_key(struct match *m, uint32_t comm, int32_t to)
{
	return index_of(&m->doubtful[0], (uint64_t)comm << 32 | (uint32_t)to);
}

static void doubt(struct match *m, const struct mpi_comm *comm, int32_t tag)
{
	const uint64_t key = (uint64_t)doubt_key(m, comm->number, comm->rank) << 32;

	m->counts->any++;
	index_of(&m->doubtful[1], key | (uint32_t)(tag + 1));
	index_of(&m->doubtful[1], key | SOME_TAG);
}

static bool is_doubtful(struct match *m, const struct mpi_comm *comm, int32_t tag, uint32_t process)
{
	uint64_t key;

	if (index_find(&m->probed, process) != INDEX_NONE)
		return true;
	if (!m->doubtful[1].n)
		return false;
	key = (uint64_t)doubt_key(m, comm->number, comm->rank) << 32;
	return index_find(&m->doubtful[1], key | (uint32_t)(MPI_ANY_TAG + 1)) != INDEX_NONE ||
	       index_find(&m->doubtful[1],
			  key | (tag == MPI_ANY_TAG ? SOME_TAG : (uint32_t)(tag + 1))) !=
		       INDEX_NONE;
}

/* The receive takes what this rank has sent under this tag: the first that is left. */
static void receive_from(struct match *m, uint32_t at, int32_t from, int32_t tag, int32_t to)
{
	struct half *h = &m->halves.v[at];
	const uint32_t q = queue_of(m, h->comm, from, to);
	uint32_t mate;

	h->queue = q;
	h->tag = tag;
	mate = take(m, &m->queues.v[q].sends, tag, true);
	if (mate == NOBODY)
		put(m, &m->queues.v[q].receives, at);
	else
		join(m, mate, at);
}

static void found(void *arg, uint32_t half, int32_t from, int32_t tag)
{
	struct match *m = arg;

	receive_from(m, half, from, tag, m->halves.v[half].to);
}

/* A receive that begins. */
static uint32_t post(struct match *m, const struct mpi_comm *comm, const struct mpi_call *c)
{
	const uint32_t at = half_new(m, &(struct half){.lane = c->lane,
						       .queue = NOBODY,
						       .comm = comm->number,
						       .from = c->from,
						       .to = comm->rank,
						       .tag = c->rtag,
						       .begin = c->begin,
						       .bytes = UINT64_MAX,
						       .is_receive = true});
	const struct mpi_posted p = {.from = c->from, .tag = c->rtag, .half = at};

	m->counts->receives++;
	mpi_arrivals_post(&m->arrivals, m->t->lanes[c->lane].proc_uid, comm->number, &p);
	return at;
}

/*
 * Where the library was not seen: a receive that has begun, or has ended, and may say what it got. NOBODY: it is not
 * known from whom.
 */
static uint32_t receive(struct match *m, const struct mpi_comm *comm, const struct mpi_call *c)
{
	int32_t from = c->from, tag = c->rtag;
	uint32_t at;

	m->counts->receives++;
	if (c->has & MPI_HAS_STATUS) {
		from = from == MPI_ANY_RANK ? c->status[0] : from;
		tag = tag == MPI_ANY_TAG ? c->status[1] : tag;
	}
	if (from == MPI_ANY_RANK) {
		doubt(m, comm, tag);
		return NOBODY;
	}
	if (is_doubtful(m, comm, tag, m->t->lanes[c->lane].proc_uid)) {
		m->counts->in_doubt++;
		return NOBODY;
	}
	at = half_new(m, &(struct half){.lane = c->lane,
					.comm = comm->number,
					.from = from,
					.begin = c->begin,
					.bytes = UINT64_MAX,
					.is_receive = true});
	receive_from(m, at, from, tag, comm->rank);
	return at;
}

/* ---- requests ---- */

static struct request *request_of(struct match *m, const struct mpi_call *c, uint64_t handle)
{
	const uint32_t a = index_of(&m->handles[0], handle);
	const uint32_t at =
		index_of(&m->handles[1], (uint64_t)m->t->lanes[c->lane].proc_uid << 32 | a);

	if (at == m->requests.n)
		*vec_push(&m->requests) = (struct request){.half = NOBODY};
	return &m->requests.v[at];
}

/* The program has the message, since then; 0: nobody knows when. */
static void done(struct match *m, uint32_t at, uint64_t end, uint32_t wait)
{
	struct half *h = &m->halves.v[at];

	h->end = end;
	h->is_done = true;
	h->wait = wait;
	if (h->mate != NOBODY)
		give_out(m, at);
}

static void forget(struct match *m, struct request *r)
{
	const uint32_t half = r->half;

	r->half = NOBODY;
	if (half != NOBODY)
		done(m, half, r->tested, NOBODY);
	r->tested = 0;
	r->picked = false;
}

/* The call waits for n receives. */
static uint32_t wait_new(struct match *m, const struct mpi_call *c, uint32_t n)
{
	uint32_t at = (uint32_t)m->waits.n;

	if (m->unused_waits.n)
		at = m->unused_waits.v[--m->unused_waits.n];
	else
		(void)vec_push(&m->waits);
	m->waits.v[at] = (struct wait){
		.lane = c->lane, .by = NOBODY, .begin = c->begin, .end = c->end, .left = n};
	return at;
}

static void wait_for(struct match *m, const struct mpi_call *c)
{
	uint32_t at, n = 0;

	if (!c->end)
		return;
	for (size_t i = 0; i < c->requests.n; i++) {
		struct request *r = request_of(m, c, c->requests.v[i]);

		if (r->persists && r->picked) {
			r->tested = 0; /* here, or before */
			forget(m, r);
		}
		n += r->half != NOBODY;
	}
	if (!n)
		return;
	at = wait_new(m, c, n);
	for (size_t i = 0; i < c->requests.n; i++) {
		struct request *r = request_of(m, c, c->requests.v[i]);
		const uint32_t half = r->half;

		r->half = NOBODY;
		r->tested = 0;
		if (half != NOBODY)
			done(m, half, c->end, at);
	}
}

static void transfer(struct match *m, const struct mpi_call *c);

static void start(struct match *m, const struct mpi_call *c)
{
	for (size_t i = 0; i < c->requests.n; i++) {
		struct request *r = request_of(m, c, c->requests.v[i]);
		struct mpi_call again = r->again;

		if (!r->persists) {
			m->counts->broken++;
			continue;
		}
		forget(m, r);
		again.lane = c->lane;
		again.begin = c->begin;
		again.end = c->end;
		again.request = c->requests.v[i];
		transfer(m, &again);
	}
}

/* ---- calls ---- */

static bool sees_arrivals(const struct match *m, const struct mpi_call *c)
{
	const uint32_t process = m->t->lanes[c->lane].proc_uid;

	/* what a matched probe finds is no longer there */
	return mpi_arrivals_seen(&m->arrivals, process) &&
	       index_find(&m->probed, process) == INDEX_NONE;
}

static bool is_whole(const struct mpi_call *c)
{
	const unsigned need = (c->does & MPI_SENDS ? MPI_HAS_TO | MPI_HAS_TAG : 0) |
			      (c->does & MPI_RECEIVES ? MPI_HAS_FROM | MPI_HAS_RTAG : 0);

	return !(~c->has & need);
}

static bool is_rank(const struct mpi_comm *comm, int32_t rank)
{
	return rank == MPI_NULL_RANK || (rank >= 0 && rank < comm->size);
}

/* The library returns an error at once, and sends or receives nothing. */
static bool is_refused(const struct mpi_comm *comm, const struct mpi_call *c)
{
	if (c->does & MPI_SENDS &&
	    (!is_rank(comm, c->to) || c->tag < 0 || (c->has & MPI_HAS_COUNT && c->count < 0)))
		return true;
	return c->does & MPI_RECEIVES &&
	       ((c->from != MPI_ANY_RANK && !is_rank(comm, c->from)) || c->rtag < MPI_ANY_TAG);
}

/* A receive that has blocked: it has waited for its send alone. */
static void block(struct match *m, const struct mpi_call *c, uint32_t at)
{
	struct half *h = &m->halves.v[at];

	if (c->has & MPI_HAS_STATUS)
		h->bytes = (uint64_t)(uint32_t)c->status[5] << 32 | (uint32_t)c->status[4];
	done(m, at, c->end, wait_new(m, c, 1));
}

/* Sends, receives, or both. */
static void transfer(struct match *m, const struct mpi_call *c)
{
	const struct mpi_comm *comm = mpi_comm_of(&m->comms, c);
	uint32_t half = c->own ? c->own - 1 : NOBODY;

	if (!comm || comm->is_inter) {
		m->counts->strange++;
		return;
	}
	if (!is_whole(c)) {
		m->counts->broken++;
		return;
	}
	if (is_refused(comm, c))
		return;
	if (c->does & MPI_SENDS && c->to != MPI_NULL_RANK)
		send(m, comm, c);
	if (!(c->does & MPI_RECEIVES) || c->from == MPI_NULL_RANK)
		return;
	if (half == NOBODY)
		half = sees_arrivals(m, c) ? post(m, comm, c) : receive(m, comm, c);
	if (half == NOBODY)
		return;
	if (c->does & MPI_REQUESTS)
		request_of(m, c, c->request)->half = half;
	else if (c->end)
		block(m, c, half);
}

static void on_posted(void *arg, struct mpi_call *c)
{
	struct match *m = arg;
	const struct mpi_comm *comm = mpi_comm_of(&m->comms, c);

	if (comm && !comm->is_inter && is_whole(c) && !is_refused(comm, c) &&
	    c->from != MPI_NULL_RANK && sees_arrivals(m, c))
		c->own = post(m, comm, c) + 1;
}

static void on_arrival(void *arg, const struct mpi_arrival *a)
{
	struct match *m = arg;
	const uint32_t process = m->t->lanes[a->lane].proc_uid;
	const uint32_t comm = mpi_comm_by_id(&m->comms, process, a->comm);

	if (comm != INDEX_NONE)
		mpi_arrivals_take(&m->arrivals, process, comm, a);
	else
		*vec_push(&m->arrivals.homeless) = *a;
}

static void on_gone(void *arg, uint32_t lane, uint32_t comm)
{
	struct match *m = arg;

	mpi_comms_forget(&m->comms, m->t->lanes[lane].proc_uid, comm);
}

/* What has come for it before is its own. */
static void make_comm(struct match *m, const struct mpi_call *c)
{
	const uint32_t process = m->t->lanes[c->lane].proc_uid;
	const struct mpi_comm *made = mpi_comms_take(&m->comms, c);
	uint32_t comm;
	size_t left = 0;

	if (!made)
		return;
	comm = made->number;
	if (m->sink->member)
		m->sink->member(m->sink->arg, comm, made->rank, made->size, c->lane);
	for (size_t i = 0; i < m->arrivals.homeless.n; i++) {
		const struct mpi_arrival a = m->arrivals.homeless.v[i];

		if (m->t->lanes[a.lane].proc_uid == process && a.comm == c->id[0])
			mpi_arrivals_take(&m->arrivals, process, comm, &a);
		else
			m->arrivals.homeless.v[left++] = a;
	}
	m->arrivals.homeless.n = left;
}

/* The call has made a request: what had the handle before is over. */
static void make_request(struct match *m, const struct mpi_call *c)
{
	struct request *r = request_of(m, c, c->request);

	forget(m, r);
	r->persists = c->does & MPI_PERSISTS;
	if (r->persists) {
		r->again = *c;
		r->again.does &= ~(unsigned)MPI_PERSISTS;
	}
}

/* It may have the message from here on: the last call that asks is the one that returned it. */
static void ask(struct match *m, const struct mpi_call *c)
{
	for (size_t i = 0; i < c->requests.n; i++) {
		struct request *r = request_of(m, c, c->requests.v[i]);

		/* a persistent one may be asked for after that, too: then nobody knows */
		r->tested = r->persists && r->picked ? 0 : c->end;
		r->picked = r->picked || c->does & MPI_PICKS;
	}
}

/* Nobody asks for it any more: when it has the message is not known, unless it was told before. */
static void free_request(struct match *m, const struct mpi_call *c)
{
	for (size_t i = 0; i < c->requests.n; i++)
		request_of(m, c, c->requests.v[i])->persists = false;
}

/* The receive takes nothing any more. */
static void cancel(struct match *m, const struct mpi_call *c)
{
	for (size_t i = 0; i < c->requests.n; i++) {
		struct request *r = request_of(m, c, c->requests.v[i]);
		const uint32_t at = r->half;
		struct half *h = at == NOBODY ? NULL : &m->halves.v[at];

		if (!h || h->mate != NOBODY)
			continue;
		if (h->queue == NOBODY) {
			if (!mpi_arrivals_cancel(&m->arrivals, m->t->lanes[c->lane].proc_uid,
						 h->comm, at))
				continue;
		} else if (sees_arrivals(m, c) || !leave(m, at)) {
			continue; /* it has arrived */
		}
		r->half = NOBODY;
		half_free(m, at);
		m->counts->receives--;
		m->counts->cancelled++;
	}
}

static void on_end(void *arg, const struct mpi_call *c)
{
	struct match *m = arg;
	const uint32_t process = m->t->lanes[c->lane].proc_uid;
	const struct mpi_comm *comm;

	if (c->does & MPI_MAKES)
		make_comm(m, c);
	if (c->does & MPI_REQUESTS && c->has & MPI_HAS_REQUEST)
		make_request(m, c);
	if (c->does & (MPI_SENDS | MPI_RECEIVES) && !(c->does & MPI_PERSISTS))
		transfer(m, c);
	if (c->does & MPI_STARTS)
		start(m, c);
	if (c->does & MPI_WAITS)
		wait_for(m, c);
	if (c->does & MPI_TESTS)
		ask(m, c);
	if (c->does & MPI_FREES)
		free_request(m, c);
	if (c->does & MPI_CANCELS)
		cancel(m, c);
	m->counts->any += (c->does & MPI_PROBED) != 0;
	if (c->does & (MPI_PROBED | MPI_PROBES))
		index_of(&m->probed, process);
	if (!(c->does & MPI_COLLECTS))
		return;
	comm = mpi_comm_of(&m->comms, c);
	if (comm && !comm->is_inter)
		mpi_collectives_take(&m->collectives, comm, process, c);
	else
		m->counts->strange++;
}

/* ---- the end ---- */

static void finish(struct match *m)
{
	vec_for(&m->requests, r)
		forget(m, r);
	for (uint32_t i = 0; i < m->halves.n; i++) {
		const struct half *h = &m->halves.v[i];

		if (h->is_there && h->is_receive && h->mate != NOBODY)
			give_out(m, i);
	}
	vec_for(&m->waits, w)
		if (w->left && w->by != NOBODY)
			tell_wait(m, w);
	vec_for(&m->halves, h) {
		m->counts->sent_only += h->is_there && !h->is_receive;
		m->counts->any += h->is_there && h->is_receive && h->queue == NOBODY &&
				  h->from == MPI_ANY_RANK;
		m->counts->received_only += h->is_there && h->is_receive &&
					    !(h->queue == NOBODY && h->from == MPI_ANY_RANK);
	}
	mpi_collectives_finish(&m->collectives);
	mpi_comms_free(&m->comms);
	mpi_arrivals_free(&m->arrivals);
	for (int i = 0; i < 2; i++) {
		index_free(&m->keys[i]);
		index_free(&m->handles[i]);
		index_free(&m->doubtful[i]);
	}
	index_free(&m->tags);
	vec_free(&m->lasts);
	vec_free(&m->queues);
	vec_free(&m->halves);
	vec_free(&m->requests);
	vec_free(&m->waits);
	vec_free(&m->unused_waits);
	index_free(&m->probed);
}

/* Whose library has been seen: what arrives there says what a receive gets. */
static void find_arrivals(struct match *m, const struct mpi_calls *calls)
{
	struct trace_cursor *c = trace_cursor_open(m->t, -1);
	struct trace_event e;

	while (trace_cursor_next(c, &e))
		if (mpi_calls_is_arrival(calls, &e))
			index_of(&m->arrivals.processes, m->t->lanes[e.lane].proc_uid);
	trace_cursor_close(c);
}

void mpi_read(const struct trace *t, const struct message_sink *sink, struct mpi_counts *counts,
	      int32_t *ranks)
{
	struct mpi_counts unwanted = {0};
	struct match m = {.t = t, .sink = sink, .unused = NOBODY};
	const struct mpi_calls_sink on = {&m, on_posted, on_end, on_arrival, on_gone};
	struct mpi_calls *calls = mpi_calls_new(t, &on);
	struct trace_cursor *c;
	struct trace_event e;

	if (!counts)
		counts = &unwanted;
	*counts = (struct mpi_counts){0};
	for (size_t i = 0; ranks && i < t->nprocs; i++)
		ranks[i] = MESSAGE_NO_RANK;
	if (!calls)
		return;
	m.counts = counts;
	m.comms.t = t;
	m.comms.world = ranks;
	m.collectives.sink = sink;
	m.collectives.counts = counts;
	m.arrivals.found = found;
	m.arrivals.arg = &m;
	find_arrivals(&m, calls);
	c = trace_cursor_open(t, -1);
	while (trace_cursor_next(c, &e))
		mpi_calls_feed(calls, &e);
	trace_cursor_close(c);
	mpi_calls_finish(calls);
	finish(&m);
}
