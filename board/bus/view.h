/* SPDX-License-Identifier: MIT */
/*
 * view.h - all registers of a board at one moment, and what their bits are called.
 *
 * For kron status and mk_status.  Looking changes nothing on an emulated board: the registers
 * are read from a copy of the model.  On a real one only loads that have no effect are used.
 */
#ifndef BUS_VIEW_H
#define BUS_VIEW_H

#include "board/bus/bus.h"

struct bus_view {
	uint32_t csr, filter, config, map, wait, overrun, high;
	uint64_t timestamp, enable, mode, clock;
	uint32_t source[KRON_SOURCES];
	uint64_t counter[KRON_COUNTERS]; /* of a double one both halves in the even */
	struct model_geometry geometry;  /* zero for a real board */
	struct view_vc {
		uint64_t timestamp, enable, mode, clock;
		uint32_t csr, high, page;
	} vc;                      /* if geometry.vc; its counters: board_read_counters() */
	bool counters_are_shadows; /* a real board: what was last copied, not what counts */
};

/* -EIO: the board is damaged. */
int bus_look(struct bus *b, struct bus_view *v, struct err *err);

/* ---- fields ---- */
static inline unsigned view_field(uint64_t fields, unsigned counter)
{
	return (unsigned)(fields >> (4 * counter)) & 15;
}
/* "disabled", "enabled" */
const char *view_enable_word(unsigned field);
/* Table B5: "internal clock", "software", "clock while external", "external"; an odd counter's
 * width is its even neighbour's. */
const char *view_mode_word(unsigned field);
bool view_is_double(uint64_t mode, unsigned counter);
/* Table B6: "NODECLK", "NODECLK/10", "NODECLK/100", "timestamp" */
const char *view_clock_word(unsigned field);

/* ---- bits ---- */
struct view_bit {
	unsigned bit;
	const char *name; /* for JSON, too: no blanks */
	const char *meaning;
};
/* Tables B1 and 2, ends with name NULL */
extern const struct view_bit view_csr_bits[], view_config_bits[];

/* Words in local memory that hold samples, and how often the pointer went round. */
uint32_t view_words_used(const struct bus_view *v);
unsigned view_wraps(const struct bus_view *v);

#endif
