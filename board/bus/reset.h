/* SPDX-License-Identifier: MIT */
/*
 * reset.h - the reset signal that boards have in common: NISTIR 5571 has several chips count from one
 * instant.  For emulated boards of one machine.
 */
#ifndef BUS_RESET_H
#define BUS_RESET_H

#include "board/bus/bus.h"

/*
 * Reset them and set them up by bus_configure_default(), each as a board of its node.  From then on those with
 * real clocks have one time: the same instant is the same timestamp on all of them.
 *
 * All or none: before the first is reset it is made sure that none is damaged, none is there twice, and none is one
 * whose samples' times belong to a recording (bus exact); no such recording begins meanwhile.  The locks
 * for that go with bus_close().  -EBUSY, -EINVAL; one board alone may be hardware.
 */
int boards_reset(struct bus *b, size_t n, struct err *err);

#endif
