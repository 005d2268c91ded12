/* SPDX-License-Identifier: MIT */
/* asking.h - a way to the recorder of a board: the socket of kron/control.h. */
#ifndef BOARD_ASKING_H
#define BOARD_ASKING_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

/* Its name, of this recording (the board's note has the number). */
socklen_t asking_address(struct sockaddr_un *a, uint64_t recording);
/*
 * A socket, or -errno; who listens there has to be looked at (object_is_recorder()).  A recording has its board before
 * it listens: who comes at its start waits, as long as pid, its recorder, lives.
 */
int asking_connect(uint64_t recording, pid_t pid);

#endif
