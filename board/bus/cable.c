/* SPDX-License-Identifier: MIT */
/* cable.c - see cable.h. */
#define _GNU_SOURCE
#include "board/bus/cable.h"

#include <errno.h>
#include <string.h>

#include "board/bus/bus_impl.h"

int bus_cable_open(struct bus_cable *c, struct bus *b, struct err *err)
{
	struct model_state s;

	c->bus = b;
	memset(&c->at, 0, sizeof(c->at));
	if (!bus_is_exact(b))
		return err_set(err, ENODEV, "board %s is hardware: its cable leads out of it",
			       b->name);
	if (!board_snapshot(&b->board, &s))
		return err_set(err, EIO, "board %s is damaged", b->name);
	if (!s.geometry.cable)
		return err_set(err, ENODEV,
			       "nothing can be at the far end of board %s's cable: `kron board "
			       "create --cable` makes a board with one",
			       b->name);
	if (object_lock_cable(b->fd))
		return err_set(err, EBUSY,
			       "another process takes what board %s sends over its cable", b->name);
	return 0;
}

int bus_cable_take(struct bus_cable *c, size_t *n, struct err *err)
{
	int code = board_take_cable(&c->bus->board, &c->at, c->values, BUS_CABLE_VALUES);
	size_t i;

	*n = 0;
	if (code)
		return err_set(err, -code, "board %s is damaged", c->bus->name);
	for (i = 0; i < c->at.took; i++) {
		c->bytes[2 * i] = (uint8_t)(c->values[i] >> 8);
		c->bytes[2 * i + 1] = (uint8_t)c->values[i];
	}
	*n = 2 * (size_t)c->at.took;
	return 0;
}

bool bus_cable_is_there(const struct bus_cable *c)
{
	char object[OBJECT_NAME];

	object_name_of_board(object, sizeof(object), c->bus->name);
	return object_is_named(c->bus->fd, object);
}

void bus_cable_close(struct bus_cable *c)
{
	board_take_cable(&c->bus->board, &c->at, c->values, 0);
}
