/* SPDX-License-Identifier: MIT */
/*
 * cable.h - the process at the far end of a board's cable, `kron-cable`: writes what the board sends to a
 * FIFO, file or socket, until the board is removed or nobody reads there any more.
 */
#ifndef CMD_BOARD_CABLE_H
#define CMD_BOARD_CABLE_H

#include "base/err.h"

/* Where it leads to.  *to is -1 for a FIFO, which is opened once somebody reads there. */
int board_cable_open(int *to, const char *path, struct err *err);
/* Start the process; it stays when we end.  It takes over `to`.  -EBUSY: the board has one. */
int board_cable_start(const char *board, const char *path, int to, struct err *err);

#endif
