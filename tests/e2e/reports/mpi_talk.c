/* SPDX-License-Identifier: MIT */
/*
 * mpi_talk.c - talks in all ways that MPI has, and says at the end what each rank has sent to which: the truth for mpi.py.
 *
 *   mpi_talk ROUNDS      "FROM TO MESSAGES BYTES" lines of each rank, and "collectives N", to standard output by rank 0
 *   mpi_talk traps       the same of calls that make others, and of communicators whose numbers are used again
 *   mpi_talk untold      receives of which the program does not learn when they are done
 *   mpi_talk probes      a receive between a matched probe and what receives the message that it has found
 *   mpi_talk threads N   two threads of rank 1 send at the same time, under tags of N
 *   mpi_talk wildcard    one receive from any rank that says nothing, among others
 *   mpi_talk slow RANK   that rank computes for longer than the others, in each step
 *   mpi_talk late RANK   rank 0 receives from all, by turns, and that rank sends late
 *   mpi_talk scan RANK   that rank computes for longer than the others before each prefix sum
 *   mpi_talk sizes       each collective with sizes of its own, and "OPERATION RANK SENT RECEIVED" lines
 *   mpi_talk roots       rank 1 makes calls that the library refuses, and then all make six with changing roots
 */
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MANY = 20, ROOM = 4096, KINDS = 9 };

static int me, n, collectives;
static long count[64], bytes[64]; /* what this rank has sent, by rank in MPI_COMM_WORLD */
static char from[MANY][ROOM], to[MANY][ROOM];
static unsigned seed = 1;

static unsigned roll(unsigned below) /* the same in all ranks */
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 16) % below;
}

/* k doubles or bytes, never the same twice in a row. */
static int size_of(int k)
{
	return 1 + (int)(((unsigned)k * 37u + seed) % 200u);
}

static void note(int whom, int size)
{
	count[whom]++;
	bytes[whom] += size;
}

static void spin(double ms)
{
	struct timespec a, b;

	clock_gettime(CLOCK_MONOTONIC, &a);
	do
		clock_gettime(CLOCK_MONOTONIC, &b);
	while ((double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6 < ms);
}

static void requests(MPI_Comm c, int right, int left, int world_right, int k)
{
	MPI_Request q[2 * MANY];

	for (int i = 0; i < k; i++)
		MPI_Irecv(from[i], ROOM, MPI_BYTE, left, i % 3, c, &q[i]);
	for (int i = 0; i < k; i++) {
		MPI_Isend(to[i], size_of(i), MPI_BYTE, right, i % 3, c, &q[k + i]);
		note(world_right, size_of(i));
	}
	MPI_Waitall(2 * k, q, MPI_STATUSES_IGNORE);
}

static void blocking(int right, int left)
{
	MPI_Status s;

	for (int turn = 0; turn < 2; turn++) {
		if ((me & 1) == turn) {
			MPI_Send(to[0], size_of(me), MPI_DOUBLE, right, 5, MPI_COMM_WORLD);
			note(right, 8 * size_of(me));
		}
		/* the left one of a rank may be of the same kind: then it has been sent already, or comes in its turn */
		if ((left & 1) == turn)
			MPI_Recv(from[0], ROOM, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG,
				 MPI_COMM_WORLD, &s);
	}
}

static void both(int right, int left)
{
	MPI_Status s;
	int size = size_of(3);

	MPI_Sendrecv(to[0], size, MPI_INT, right, 6, from[0], ROOM, MPI_BYTE, left, 6,
		     MPI_COMM_WORLD, &s);
	note(right, 4 * size);
	MPI_Sendrecv_replace(to[1], size, MPI_BYTE, right, 7, left, MPI_ANY_TAG, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
	note(right, size);
}

static void persistent(int right, int left)
{
	MPI_Request q[2];

	MPI_Recv_init(from[0], ROOM, MPI_BYTE, left, 8, MPI_COMM_WORLD, &q[0]);
	MPI_Send_init(to[0], size_of(5), MPI_BYTE, right, 8, MPI_COMM_WORLD, &q[1]);
	for (int i = 0; i < 3; i++) {
		if (i) {
			MPI_Startall(2, q);
		} else {
			MPI_Start(&q[0]);
			MPI_Start(&q[1]);
		}
		note(right, size_of(5));
		MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
	}
	MPI_Request_free(&q[0]);
	MPI_Request_free(&q[1]);
}

static void tested(int right, int left)
{
	MPI_Request q;
	int flag = 0;

	MPI_Irecv(from[0], ROOM, MPI_BYTE, left, MPI_ANY_TAG, MPI_COMM_WORLD, &q);
	MPI_Ssend(to[0], size_of(6), MPI_BYTE, right, 9, MPI_COMM_WORLD);
	note(right, size_of(6));
	while (!flag)
		MPI_Test(&q, &flag, MPI_STATUS_IGNORE);
}

static void out_of_order(int right, int left)
{
	static const int order[] = {3, 1, 2};
	MPI_Status s;

	for (int i = 1; i <= 3; i++) {
		MPI_Send(to[i], size_of(i), MPI_BYTE, right, 10 + i, MPI_COMM_WORLD);
		note(right, size_of(i));
	}
	for (int i = 0; i < 3; i++)
		MPI_Recv(from[i], ROOM, MPI_BYTE, left, 10 + order[i], MPI_COMM_WORLD, &s);
}

static void buffered(int right, int left)
{
	static char room[8 * ROOM];
	char *old;
	int size;

	MPI_Buffer_attach(room, sizeof(room));
	MPI_Bsend(to[0], size_of(7), MPI_BYTE, right, 14, MPI_COMM_WORLD);
	note(right, size_of(7));
	MPI_Recv(from[0], ROOM, MPI_BYTE, left, 14, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Buffer_detach(&old, &size);
}

static void some(int right, int left)
{
	MPI_Request q[4];
	int at, got[4], done = 0;

	for (int i = 0; i < 4; i++)
		MPI_Irecv(from[i], ROOM, MPI_BYTE, left, 15 + i, MPI_COMM_WORLD, &q[i]);
	for (int i = 3; i >= 0; i--) {
		MPI_Send(to[i], size_of(i), MPI_BYTE, right, 15 + i, MPI_COMM_WORLD);
		note(right, size_of(i));
	}
	MPI_Waitany(4, q, &at, MPI_STATUS_IGNORE);
	for (int left_over = 3; left_over > 0; left_over -= done)
		MPI_Waitsome(4, q, &done, got, MPI_STATUSES_IGNORE);
}

static void collect(MPI_Comm c, int members)
{
	double a[64] = {0}, b[64];

	MPI_Barrier(c);
	MPI_Bcast(a, 4, MPI_DOUBLE, members - 1, c);
	MPI_Reduce(a, b, 2, MPI_DOUBLE, MPI_SUM, 0, c);
	MPI_Allreduce(a, b, 2, MPI_DOUBLE, MPI_SUM, c);
	MPI_Gather(a, 1, MPI_DOUBLE, b, 1, MPI_DOUBLE, 0, c);
	MPI_Scatter(a, 1, MPI_DOUBLE, b, 1, MPI_DOUBLE, 0, c);
	MPI_Allgather(a, 1, MPI_DOUBLE, b, 1, MPI_DOUBLE, c);
	MPI_Alltoall(a, 1, MPI_DOUBLE, b, 1, MPI_DOUBLE, c);
	MPI_Scan(a, b, 2, MPI_DOUBLE, MPI_SUM, c);
	MPI_Exscan(a, b, 2, MPI_DOUBLE, MPI_SUM, c);
	collectives += 10;
}

static void tell(void)
{
	int all;

	MPI_Allreduce(&collectives, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	for (int r = 0; r < n; r++) {
		for (int k = 0; r == me && k < n; k++)
			if (count[k])
				printf("%d %d %ld %ld\n", me, k, count[k], bytes[k]);
		fflush(stdout);
	}
	if (!me)
		printf("collectives %d\n", all + 1);
}

static void talk(int rounds)
{
	MPI_Comm row, twin;
	int row_rank, row_size;

	MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &row); /* two rows, which have one number */
	MPI_Comm_dup(row, &twin);
	MPI_Comm_rank(row, &row_rank);
	MPI_Comm_size(row, &row_size);
	for (int i = 0; i < rounds; i++) {
		const int shift = 1 + (int)roll((unsigned)n - 1);
		const int right = (me + shift) % n, left = (me + n - shift) % n;
		const int in_row = (row_rank + 1) % row_size,
			  before = (row_rank + row_size - 1) % row_size;

		switch (i % KINDS) {
		case 0:
			requests(MPI_COMM_WORLD, right, left, right, 1 + (int)roll(MANY));
			break;
		case 1:
			MPI_Barrier(MPI_COMM_WORLD);
			blocking(right, left);
			MPI_Barrier(MPI_COMM_WORLD);
			collectives += 2;
			break;
		case 2:
			both(right, left);
			break;
		case 3:
			persistent(right, left);
			break;
		case 4:
			tested(right, left);
			break;
		case 5:
			out_of_order(right, left);
			break;
		case 6:
			buffered(right, left);
			break;
		case 7:
			some(right, left);
			break;
		case 8:
			requests(row, in_row, before, 2 * in_row + me % 2, 3);
			requests(twin, in_row, before, 2 * in_row + me % 2, 2);
			collect(row, row_size);
			break;
		}
		MPI_Send(to[0], 1, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
	}
	collect(MPI_COMM_WORLD, n);
	/* rows count for one each, in the rank that is first there */
	collectives = me < 2 ? collectives - (me ? 10 + 2 * ((rounds + 7) / KINDS) : 0) : 0;
	tell();
	MPI_Comm_free(&twin);
	MPI_Comm_free(&row);
}

/* Rank 0 and each other one by turns: the library gives each pair the number of the one before. */
static void pair(int with, int times)
{
	MPI_Comm c;

	MPI_Comm_split(MPI_COMM_WORLD, me == 0 || me == with ? 0 : MPI_UNDEFINED, me, &c);
	if (c == MPI_COMM_NULL)
		return;
	for (int i = 0; i < times; i++)
		MPI_Barrier(c);
	collectives += me ? 0 : times;
	if (me) {
		MPI_Send(to[0], with, MPI_BYTE, 0, 1, c);
		note(0, with);
	} else {
		MPI_Recv(from[0], ROOM, MPI_BYTE, 1, 1, c, MPI_STATUS_IGNORE);
	}
	MPI_Comm_free(&c);
}

/* The library says no to each, and nothing is sent. */
static void refused(void)
{
	const int right = (me + 1) % n;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Send(to[0], -1, MPI_BYTE, right, 3, MPI_COMM_WORLD);
	MPI_Send(to[0], 1, MPI_BYTE, right, -7, MPI_COMM_WORLD);
	MPI_Send(to[0], 1, MPI_BYTE, n, 3, MPI_COMM_WORLD);
	MPI_Recv(from[0], 1, MPI_BYTE, n, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Sendrecv(to[0], 5, MPI_BYTE, right, 3, from[0], ROOM, MPI_BYTE, (me + n - 1) % n, 3,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	note(right, 5);
}

static void traps(void)
{
	const int up = me + 1 < n ? me + 1 : MPI_PROC_NULL, down = me ? me - 1 : MPI_PROC_NULL;

	for (int i = 0; i < 3; i++) {
		MPI_Sendrecv_replace(to[0], 0, MPI_BYTE, (me + 1) % n, 1, (me + n - 1) % n, 1,
				     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		note((me + 1) % n, 0);
		MPI_Sendrecv_replace(to[0], 10, MPI_BYTE, up, 2, down, 2, MPI_COMM_WORLD,
				     MPI_STATUS_IGNORE);
		if (up != MPI_PROC_NULL)
			note(up, 10);
	}
	refused();
	for (int turn = 0; turn < 2; turn++)
		for (int with = 1; with < n; with++)
			pair(with, with);
	tell();
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void untold(void)
{
	MPI_Request q[3];
	int at;

	if (!me) {
		MPI_Irecv(from[0], ROOM, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &q[0]);
		MPI_Request_free(&q[0]);
		for (int i = 0; i < 3; i++)
			MPI_Recv_init(from[i], ROOM, MPI_BYTE, 1, i, MPI_COMM_WORLD, &q[i]);
		MPI_Startall(3, q);
		MPI_Barrier(MPI_COMM_WORLD);
		for (int i = 0; i < 3; i++)
			MPI_Waitany(3, q, &at, MPI_STATUS_IGNORE);
		for (int i = 0; i < 3; i++)
			MPI_Request_free(&q[i]);
	} else {
		MPI_Barrier(MPI_COMM_WORLD);
		for (int i = 0; i < 3; i++) {
			MPI_Send(to[i], 1, MPI_BYTE, 0, i, MPI_COMM_WORLD);
			pause_ms(200);
		}
		MPI_Send(to[0], 1, MPI_BYTE, 0, 5, MPI_COMM_WORLD);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

static void probes(void)
{
	MPI_Message found;

	if (!me) {
		MPI_Mprobe(1, 1, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
		MPI_Recv(from[0], ROOM, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Mrecv(from[0], ROOM, MPI_BYTE, &found, MPI_STATUS_IGNORE);
	} else {
		MPI_Send(to[0], 1, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
		MPI_Send(to[0], 2, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
	}
}

static void *send_one(void *tag)
{
	MPI_Ssend(to[0], 1, MPI_BYTE, 0, *(int *)tag, MPI_COMM_WORLD);
	return NULL;
}

/* Both are in their call until rank 0 receives. */
static void threads(int tags)
{
	int second = tags - 1, first = 0;
	pthread_t other;

	if (!me) {
		pause_ms(500);
		MPI_Recv(from[0], ROOM, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Recv(from[0], ROOM, MPI_BYTE, 1, second, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else if (me == 1) {
		pthread_create(&other, NULL, send_one, &first);
		send_one(&second);
		pthread_join(other, NULL);
	}
}

static void wildcard(void)
{
	MPI_Request q[3];
	MPI_Status s;

	if (!me) {
		MPI_Recv(from[0], ROOM, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &s);
		MPI_Irecv(from[1], ROOM, MPI_BYTE, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &q[0]);
		MPI_Irecv(from[2], ROOM, MPI_BYTE, 1, 2, MPI_COMM_WORLD,
			  &q[1]); /* the second one, or the first */
		MPI_Irecv(from[3], ROOM, MPI_BYTE, 2, 9, MPI_COMM_WORLD, &q[2]); /* never sent */
		MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
		MPI_Recv(from[0], ROOM, MPI_BYTE, 1, 3, MPI_COMM_WORLD, &s); /* another tag */
		MPI_Cancel(&q[2]);
		MPI_Wait(&q[2], MPI_STATUS_IGNORE);
		MPI_Recv(from[0], ROOM, MPI_BYTE, 2, 4, MPI_COMM_WORLD, &s);
	} else if (me == 1) {
		for (int tag = 1; tag <= 3; tag++)
			for (int i = 0; i < (tag == 2 ? 2 : 1); i++)
				MPI_Send(to[0], tag * 10 + i, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
	} else {
		MPI_Send(to[0], 1, MPI_BYTE, 0, 4, MPI_COMM_WORLD);
	}
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* How long each rank was busy outside of MPI: "busy RANK MS". A machine with other work makes them so, too. */
static void tell_busy(double busy)
{
	double all[64];

	MPI_Gather(&busy, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	for (int k = 0; !me && k < n; k++)
		printf("busy %d %.3f\n", k, all[k]);
}

static void slow(int which)
{
	MPI_Request q;
	double busy = 0;

	for (int i = 0; i < 8; i++) {
		double since = now_ms();

		spin(me == which ? 80 : 2);
		busy += now_ms() - since;
		MPI_Irecv(from[0], ROOM, MPI_BYTE, (me + n - 1) % n, i, MPI_COMM_WORLD, &q);
		MPI_Send(to[0], 8, MPI_BYTE, (me + 1) % n, i, MPI_COMM_WORLD);
		MPI_Wait(&q, MPI_STATUS_IGNORE);
	}
	tell_busy(busy);
}

static void late(int which)
{
	double busy = 0, since = now_ms();

	for (int i = 0; i < 6; i++) {
		if (me) {
			if (me == which)
				spin(80);
			busy += now_ms() - since;
			MPI_Send(to[0], 8, MPI_BYTE, 0, i, MPI_COMM_WORLD);
		}
		for (int k = 1; !me && k < n; k++)
			MPI_Recv(from[0], ROOM, MPI_BYTE, k, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Barrier(MPI_COMM_WORLD);
		since = now_ms();
	}
	tell_busy(busy);
}

static void scan(int which)
{
	double one = 1, sum, busy = 0;

	for (int i = 0; i < 8; i++) {
		double since = now_ms();

		spin(me == which ? 80 : 2);
		busy += now_ms() - since;
		(i % 2 ? MPI_Exscan : MPI_Scan)(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	}
	tell_busy(busy);
}

/*
 * How much rank i gives to rank j, in bytes.  Numbers of elements depend on the rank, where they may.  Rank 1 is the root, and
 * three_ints is a type with gaps.
 */
static long bcast_gives(int i, int j)
{
	(void)j;
	return i == 1 ? 5 * 8 : 0;
}
static long gather_gives(int i, int j)
{
	(void)i;
	return j == 1 ? 2 * 12 : 0;
}
static long gatherv_gives(int i, int j)
{
	return j == 1 ? (i + 1) * 8 : 0;
}
static long scatter_gives(int i, int j)
{
	(void)j;
	return i == 1 ? 3 * 4 : 0;
}
static long scatterv_gives(int i, int j)
{
	return i == 1 ? (j + 2) * 4 : 0;
}
static long all_give(int i, int j)
{
	(void)i, (void)j;
	return 2 * 12;
}
static long allgatherv_gives(int i, int j)
{
	(void)j;
	return (i + 3) * 4;
}
static long alltoallv_gives(int i, int j)
{
	return (i + j + 1) * 8;
}
static long reduce_gives(int i, int j)
{
	(void)i;
	return j == 1 ? 7 * 8 : 0;
}
static long reduce_scatter_gives(int i, int j)
{
	(void)i;
	return (j + 1) * 8;
}
static long scan_gives(int i, int j)
{
	return i <= j ? 9 * 8 : 0;
}
static long exscan_gives(int i, int j)
{
	return i < j ? 9 * 8 : 0;
}

static void say(const char *operation, long (*gives)(int i, int j), bool in_place)
{
	long sent = 0, received = 0, own = in_place ? gives(me, me) : 0;

	for (int k = 0; k < n; k++) {
		sent += gives(me, k);
		received += gives(k, me);
	}
	printf("%s %d %ld %ld\n", operation, me, sent - own, received - own);
}

static long nothing(int i, int j)
{
	(void)i, (void)j;
	return 0;
}

static void sizes(void)
{
	static double a[4096], b[4096];
	static int counts[64], at[64];
	const MPI_Comm c = MPI_COMM_WORLD;
	MPI_Datatype three_ints;

	MPI_Type_vector(3, 1, 2, MPI_INT, &three_ints);
	MPI_Type_commit(&three_ints);
	for (int place = 0; place < 2; place++) {
		void *from_root = place && me == 1 ? MPI_IN_PLACE : a,
		     *from_all = place ? MPI_IN_PLACE : a;
		const bool root_in = place && me == 1;

		MPI_Barrier(c);
		say("BARRIER", nothing, false);
		MPI_Bcast(a, 5, MPI_DOUBLE, 1, c);
		say("BCAST", bcast_gives, false);
		MPI_Gather(from_root, 2, three_ints, b, 6, MPI_INT, 1, c);
		say("GATHER", gather_gives, root_in);
		MPI_Scatter(a, 3, MPI_INT, root_in ? MPI_IN_PLACE : (void *)b, 1, three_ints, 1, c);
		say("SCATTER", scatter_gives, root_in);
		for (int k = 0; k < n; k++) {
			counts[k] = k + 1;
			at[k] = 64 * k;
		}
		MPI_Gatherv(from_root, me + 1, MPI_DOUBLE, b, counts, at, MPI_DOUBLE, 1, c);
		say("GATHERV", gatherv_gives, root_in);
		MPI_Reduce_scatter(from_all, b, counts, MPI_DOUBLE, MPI_SUM, c);
		say("REDUCE_SCATTER", reduce_scatter_gives, place);
		for (int k = 0; k < n; k++)
			counts[k] = k + 2;
		MPI_Scatterv(a, counts, at, MPI_INT, root_in ? MPI_IN_PLACE : (void *)b, me + 2,
			     MPI_INT, 1, c);
		say("SCATTERV", scatterv_gives, root_in);
		for (int k = 0; k < n; k++)
			counts[k] = k + 3;
		MPI_Allgatherv(from_all, me + 3, MPI_INT, b, counts, at, MPI_INT, c);
		say("ALLGATHERV", allgatherv_gives, place);
		MPI_Allgather(from_all, 2, three_ints, b, 6, MPI_INT, c);
		say("ALLGATHER", all_give, place);
		MPI_Alltoall(from_all, 2, three_ints, b, 6, MPI_INT, c);
		say("ALLTOALL", all_give, place);
		for (int k = 0; k < n; k++)
			counts[k] = me + k + 1;
		MPI_Alltoallv(from_all, counts, at, MPI_DOUBLE, b, counts, at, MPI_DOUBLE, c);
		say("ALLTOALLV", alltoallv_gives, place);
		MPI_Reduce(from_root, b, 7, MPI_DOUBLE, MPI_SUM, 1, c);
		say("REDUCE", reduce_gives, root_in);
		MPI_Allreduce(from_all, b, 6, MPI_INT, MPI_SUM, c);
		say("ALLREDUCE", all_give, place);
		MPI_Reduce_scatter_block(from_all, b, 6, MPI_INT, MPI_SUM, c);
		say("REDUCE_SCATTER_BLOCK", all_give, place);
		MPI_Scan(from_all, b, 9, MPI_DOUBLE, MPI_SUM, c);
		say("SCAN", scan_gives, place);
		MPI_Exscan(from_all, b, 9, MPI_DOUBLE, MPI_SUM, c);
		say("EXSCAN", exscan_gives, place);
	}
	MPI_Type_free(&three_ints);
}

/* Nobody takes part in what is refused. */
static void roots(void)
{
	const int bad[] = {77, -5, MPI_PROC_NULL};
	double a = 0;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (int i = 0; me == 1 && i < 3; i++)
		if (MPI_Bcast(&a, 1, MPI_DOUBLE, bad[i], MPI_COMM_WORLD) == MPI_SUCCESS)
			abort();
	for (int i = 0; i < 6; i++) {
		spin(me == i % 2 ? 20 : 1);
		MPI_Bcast(&a, 1, MPI_DOUBLE, i % 2, MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	int provided;

	if (strcmp(argv[1], "threads"))
		MPI_Init(&argc, &argv);
	else
		MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	if (!strcmp(argv[1], "wildcard"))
		wildcard();
	else if (!strcmp(argv[1], "traps"))
		traps();
	else if (!strcmp(argv[1], "untold"))
		untold();
	else if (!strcmp(argv[1], "threads"))
		threads(atoi(argv[2]));
	else if (!strcmp(argv[1], "probes"))
		probes();
	else if (!strcmp(argv[1], "slow"))
		slow(atoi(argv[2]));
	else if (!strcmp(argv[1], "late"))
		late(atoi(argv[2]));
	else if (!strcmp(argv[1], "scan"))
		scan(atoi(argv[2]));
	else if (!strcmp(argv[1], "sizes"))
		sizes();
	else if (!strcmp(argv[1], "roots"))
		roots();
	else
		talk(atoi(argv[1]));
	MPI_Finalize();
	return 0;
}
