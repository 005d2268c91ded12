/* SPDX-License-Identifier: MIT */
/*
 * cable.h - the far end of a board's external cable (NISTIR 5993, 2.6): takes what the board has sent, in its
 * order, as the bytes that left the board's FIFO.
 *
 *   FIFO ─ 2 bytes a sequence ─► room for MODEL_CABLE_MAX values ─► bus_cable_take()
 *                                full: the FIFOs fill, and the CSR says what then happens
 *
 * One process at a time is it; a lock says so that ends with that process.  What was taken is gone from the board
 * by the next bus_cable_take() or the bus_cable_close(): who is killed between has it again.
 */
#ifndef BUS_CABLE_H
#define BUS_CABLE_H

#include "board/bus/bus.h"

#define BUS_CABLE_VALUES 8192u

struct bus_cable {
	struct bus *bus;
	struct access_cable at;
	uint16_t values[BUS_CABLE_VALUES];
	uint8_t bytes[2 * BUS_CABLE_VALUES];
};

/* -ENODEV: hardware, or nothing is at its cable's far end.  -EBUSY: another is. */
int bus_cable_open(struct bus_cable *c, struct bus *b, struct err *err);
/* The next c->bytes, *n of them: 0 if there are none yet.  -EIO: the board is damaged. */
int bus_cable_take(struct bus_cable *c, size_t *n, struct err *err);
/* Is the board still there? */
bool bus_cable_is_there(const struct bus_cable *c);
void bus_cable_close(struct bus_cable *c);

#endif
