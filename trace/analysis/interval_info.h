/* SPDX-License-Identifier: MIT */
/*
 * interval_info.h - interval.info: which events delimit which intervals (NISTIR 5993, 3.5).
 *
 *   1 10 20 "whole program"                      begin, end
 *   2 81 82 83 "if then" "if else"               begin, one end or the other
 *   3 8 17 12 "process input" "write output"     begin, middle, end
 *   4 27 36 "message timer"                      sent, received: first in, first out
 *
 * A reader that knows functions takes their names for events, too: NAME is the entry of a
 * function, NAME%return its exit.  A name ends at a blank, or stands in single quotes:
 *
 *   1 parse parse%return "parsing"
 *   4 'queue::put(int)' 'queue::get()'%return "in the queue"
 *
 * kron's readings of what the report leaves open: `#` begins a comment where a field could
 * begin; blank lines count for nothing; numbers are decimal, or hexadecimal after 0x;
 * descriptions stand in double quotes, with \" and \\ for those two characters; the interval
 * of class 3 as a whole is named by both descriptions with a blank between.
 */
#ifndef TRACE_INTERVAL_INFO_H
#define TRACE_INTERVAL_INFO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/vec.h"

#define INTERVAL_INFO_FILE "interval.info"

enum { INTERVAL_EVENTS = 3, INTERVAL_ROWS = 3 };

/* One line of the file. */
struct interval_def {
	int class;
	unsigned line;
	int nevents; /* 2; classes 2 and 3: 3 */
	uint64_t event[INTERVAL_EVENTS];
	int nrows;                 /* what the report shows of it: 1, class 2: 2, class 3: 3 */
	char *name[INTERVAL_ROWS]; /* of each row */
};

struct interval_info {
	VEC(struct interval_def) defs;
	VEC(char *) errors; /* sentences, without the file's name: "3: 7 is not a class: ..." */
	size_t nerrors;     /* how many there are; only the first INTERVAL_ERRORS are kept */
};
#define INTERVAL_ERRORS 10

struct interval_names {
	/* Returns NULL and *event, or a sentence's end that says what is wrong with the name. */
	const char *(*find)(void *ctx, const char *name, bool is_exit, uint64_t *event);
	void *ctx;
};
/*
 * Read f.  event_bits: events have to fit.  names: may be NULL, then there are only numbers.  0; or -EINVAL: some lines are wrong, info->errors
 * has a sentence for each of the first; or another -errno and *err: f cannot be read.
 */
int interval_info_read(struct interval_info *info, FILE *f, unsigned event_bits,
		       const struct interval_names *names, struct err *err);
void interval_info_free(struct interval_info *info);

#endif
