/* SPDX-License-Identifier: MIT */
/* bus_impl.h - what the files of bus/ share. */
#ifndef BUS_BUS_IMPL_H
#define BUS_BUS_IMPL_H

#include "board/bus/bus.h"
#include "board/bus/object.h"

extern const struct bus_ops bus_exact_ops, bus_hardware_ops;

/*
 * The object that a name means: a named board's, else, when it looks so, a recorder's own by
 * name or by process id.  The board need not be there.
 */
void boards_object_of(const char *name, char *object, size_t size);

#endif
