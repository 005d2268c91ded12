/* SPDX-License-Identifier: MIT */
/*
 * drive_board.c - makes samples on a board, one after the other, with the numbers 0, 1, 2 ... as
 * user data; every seventh is a Resource sample.
 *
 *   drive_board BOARD COUNT      COUNT samples, none lost (the CSR waits), then the FIFOs run dry
 *   drive_board BOARD 0          until killed
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "board/bus/bus.h"

int main(int argc, char **argv)
{
	const struct timespec pause = {.tv_nsec = 2000000}; /* 1024 bytes take 51 us */
	unsigned long count;
	struct bus b;
	struct err err;

	if (argc != 3)
		return 2;
	if (bus_open(&b, argv[1], &err)) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	count = strtoul(argv[2], NULL, 10);
	bus_write32(&b, KRON_CHIP_BYTE(KRON_WORD_CSR), KRON_CSR_SAMPLING | KRON_CSR_WAIT);
	for (uint32_t i = 0; !count || i < count; i++)
		bus_write32(&b, KRON_CHIP_BYTE(i % 7 == 6 ? KRON_WORD_RESOURCE : KRON_WORD_TRACE),
			    i);
	nanosleep(&pause, NULL);
	bus_close(&b);
	return 0;
}
