/* SPDX-License-Identifier: MIT */
/*
 * receive.c - the receiver of NISTIR 5993's pseudo-code (3.6); see send.c.
 */
#include "examples/message/message.h"

int main(int argc, char **argv)
{
	struct sockaddr_un a;
	uint64_t value;
	int waiting, fd, i;

	if (argc != 2) {
		fprintf(stderr, "usage: receive SOCKET\n");
		return 2;
	}
	/* init MultiKron device */
	MK_DEFAULT_MAP();
	a = address_of(argv[1]);
	waiting = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	if (bind(waiting, (struct sockaddr *)&a, sizeof(a)) || listen(waiting, 1))
		return fail("receive");
	fd = accept(waiting, NULL, NULL);
	if (fd < 0)
		return fail("receive");
	for (i = 0; i < MESSAGES; i++) {
		if (receive_msg(fd, &value))
			return fail("receive");
		mk_ts1 = RECEIVE_EVENT;
	}
	return 0;
}
