/* SPDX-License-Identifier: MIT */
/*
 * send.c - the sender of NISTIR 5993's pseudo-code (3.6): interval class 4.
 *
 *	send SOCKET        receive SOCKET runs elsewhere and waits
 *
 * Each has a board of its own; their mk.dat files are concatenated for mk_rpt(1).
 */
#include "examples/message/message.h"

int main(int argc, char **argv)
{
	const struct timespec pause = {0, 2000000};
	struct sockaddr_un a;
	int fd, i;

	if (argc != 2) {
		fprintf(stderr, "usage: send SOCKET\n");
		return 2;
	}
	/* init MultiKron device */
	MK_DEFAULT_MAP();
	a = address_of(argv[1]);
	fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	for (i = 0; connect(fd, (struct sockaddr *)&a, sizeof(a)); i++) {
		if (i == 1000)
			return fail("send: connect");
		nanosleep(&pause, NULL); /* the receiver is not there yet */
	}
	for (i = 0; i < MESSAGES; i++) {
		if (i % BURST == 0)
			nanosleep(&pause, NULL);
		mk_ts1 = SEND_EVENT;
		if (send_msg(fd, (uint64_t)i))
			return fail("send");
	}
	return 0;
}
