/* SPDX-License-Identifier: MIT */
/*
 * bus.h - how a tool gets at a board: one by name, or a real one by path.
 *
 *   struct bus ──┬── exact, the model: a named board in shared memory
 *                └── device, the hardware: a PCI BAR, /dev/mk0 or a file; literal loads and stores
 *
 * For the tools (kron ctl, status, read, board; mk_*) and for libmk.  The traced process has
 * its own way (runtime/).  Prints nothing, exits never.
 */
#ifndef BUS_BUS_H
#define BUS_BUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "board/model/access.h"

struct bus {
	const struct bus_ops *ops;
	char name[256];           /* "default", "kron-0123456789abcdef", "/dev/mk0" */
	struct board board;       /* the model only */
	volatile uint8_t *window; /* hardware only: the 32 MiB */
	int fd;
	int32_t keeper; /* who holds a recorder's own board, and as what (object.h); else 0 */
	int keeper_fd;
	uint64_t mapped; /* bytes */
	void *base;
};

static inline bool bus_is_exact(const struct bus *b)
{
	return b->board.ctl != NULL;
}

struct bus_ops {
	const char *name; /* "exact", "device" */
	uint32_t (*read32)(struct bus *b, uint32_t offset);
	uint64_t (*read64)(struct bus *b, uint32_t offset);
	void (*write32)(struct bus *b, uint32_t offset, uint32_t value);
	void (*write64)(struct bus *b, uint32_t offset, uint64_t value);
	void (*read_memory)(struct bus *b, uint32_t first, uint32_t n, uint32_t *out);
};

/*
 * Which board is meant: `name` if not NULL, else $KRON_BOARD, else "default" if there is one,
 * else the only one that there is.  A name with a slash is the path of a device or file, which
 * must have the 32 MiB of Table 1; "kron-<16 hex>" or a process id is the board that this
 * running kron record has for itself.
 * -ENOENT: there is none (the sentence lists those that there are and how to make one);
 * -EACCES: it belongs to another user; -EINVAL: no board, or one of another version.
 */
int bus_open(struct bus *b, const char *name, struct err *err);
void bus_close(struct bus *b);
/* A bus to a board that the caller has mapped and will unmap. */
void bus_use_board(struct bus *b, const struct board *board);

static inline uint32_t bus_read32(struct bus *b, uint32_t offset)
{
	return b->ops->read32(b, offset);
}
static inline uint64_t bus_read64(struct bus *b, uint32_t offset)
{
	return b->ops->read64(b, offset);
}
static inline void bus_write32(struct bus *b, uint32_t offset, uint32_t value)
{
	b->ops->write32(b, offset, value);
}
static inline void bus_write64(struct bus *b, uint32_t offset, uint64_t value)
{
	b->ops->write64(b, offset, value);
}
static inline void bus_read_memory(struct bus *b, uint32_t first, uint32_t n, uint32_t *out)
{
	b->ops->read_memory(b, first, n, out);
}

/* Memory Address Pointer, 24 bits. */
static inline uint32_t bus_memory_pointer(struct bus *b)
{
	return bus_read32(b, KRON_BOARD_MAP) & KRON_MAP_MASK;
}

/* An emulated board whose time moves by board_tick() alone. */
bool bus_has_virtual_clock(const struct bus *b);

/*
 * A register of 64 bits, in either mode of the chip: in the 32-bit mode the upper half goes
 * through the High Order register, which is not an indivisible operation (NISTIR 5993, 1.1).  Words of the
 * MultiKron_vc go on where those of the MultiKron II end: (offset - KRON_BOARD_CHIP) / 4.
 */
uint64_t bus_read_chip64(struct bus *b, unsigned word);
void bus_write_chip64(struct bus *b, unsigned word, uint64_t value);

/*
 * A timestamp tick is this many NODECLKs, and a NODECLK this many of the oscillator's: how fast the
 * timestamp counts with this value of the Configuration Register.
 */
double bus_timestamp_hz(uint32_t config);

/*
 * What the toolkit's initialisation does (NISTIR 5993, "Default Configuration"): board reset,
 * Configuration Register 003201, Memory Address Pointer 0, all filter levels on, Source Address
 * Register 0 = source, sampling on.
 */
void bus_init_default(struct bus *b, uint32_t source);
/* All of that after the reset, and what the Configuration Register is at first. */
#define BUS_CONFIG_IDLE ((KRON_CONFIG_DEFAULT & ~KRON_CONFIG_LOCAL) | KRON_CONFIG_DIS_STATE)
void bus_configure_default(struct bus *b, uint32_t source);

/* ---- named boards ---- */
struct boards_entry {
	char name[64];
	uint64_t bytes;       /* shared memory that it has pages for */
	uint64_t recording;   /* the last one on it: a random number, which its trace has, too */
	int32_t recorder_pid; /* 0: no kron record on it */
	uint32_t node;        /* that it is in */
	bool permanent;       /* by `kron board create`; else it goes with its recorder */
	bool damaged;         /* cannot be used; why[] says why */
	bool orphaned;        /* its recorder was killed and left samples in it... */
	int32_t orphaned_pid; /* ...this one... */
	char dir[1024];       /* ...for the trace in this folder; "" unknown */
	char why[256];
};
#define BOARDS_DEFAULT "default"
#define BOARDS_ENV "KRON_BOARD"

/* Letters, digits, . _ -; at most 63; no leading dot. */
bool boards_name_is_valid(const char *name);
/* Make a board that stays until it is removed, initialised by bus_init_default(), but that one with a cable
 * sends its samples there.  -EEXIST.
 * g NULL: MODEL_GEOMETRY_DEFAULT.  node: that it is in, or NODE_DEFAULT (board/bus/node.h). */
int boards_create(const char *name, const struct model_geometry *g, enum access_clock clock,
		  int node, struct err *err);
/* Damaged ones and those of killed recorders, too.  -ENOENT; -EBUSY: a kron record is on it. */
int boards_remove(const char *name, struct err *err);
/* A board like one of boards_create(), but without a name: for this process and its children,
 * and with the last of them it goes. */
int boards_open_own(struct bus *b, struct err *err);
/* All boards of this user, sorted by name; *out is the caller's to xfree(). */
int boards_list(struct boards_entry **out, size_t *n, struct err *err);
/* One, by the name of its object.  false: it is gone, or none of kron's. */
bool boards_look_at(const char *object, struct boards_entry *e);

#endif
