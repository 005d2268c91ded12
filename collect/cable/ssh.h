/* SPDX-License-Identifier: MIT */
/* ssh.h - a cable whose far end ssh runs. */
#ifndef COLLECT_CABLE_SSH_H
#define COLLECT_CABLE_SSH_H

#include "collect/cable/address.h"

/* The sender's end: a socket whose other end is ssh's standard input and output.  -errno with a sentence. */
int cable_ssh(const struct cable_address *a, struct err *err);
/*
 * The collector's: a socket of which each byte is one of our standard input and output, by two threads.  -errno
 * with a sentence.
 */
int cable_stdio(struct err *err);
/* The socket is closed: until all that was sent to it has gone out. */
void cable_stdio_end(void);

#endif
