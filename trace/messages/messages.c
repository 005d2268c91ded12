/* SPDX-License-Identifier: MIT */
/* messages.c - see messages.h. */
#include "trace/messages/messages.h"

#include "trace/messages/mpi.h"
#include "trace/messages/net.h"

const char *const message_kinds[MESSAGE_KINDS] = {[MESSAGE_MPI] = "MPI", [MESSAGE_TCP] = "TCP"};

bool messages_has_kind(const struct trace *t, enum message_kind kind)
{
	return kind == MESSAGE_MPI ? mpi_has(t) : net_has(t);
}

bool messages_has(const struct trace *t)
{
	return mpi_has(t) || net_has(t);
}

void messages_read(const struct trace *t, const struct message_sink *sink, struct mpi_counts *mpi,
		   struct net_counts *net, int32_t *ranks)
{
	mpi_read(t, sink, mpi, ranks);
	net_read(t, sink, net);
}
