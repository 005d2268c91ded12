/* SPDX-License-Identifier: MIT */
/* session.h - the lines of the trace's session file (trace/format.h). */
#ifndef COLLECT_SESSION_H
#define COLLECT_SESSION_H

#include "collect/collector.h"

/* The lines of what it runs on. */
void session_write_machine(struct journal *j);
void session_write_start(struct journal *j, const struct segment *seg,
			 const struct collector_options *opt, const struct time_point *start);
void session_write_end(struct journal *j, const char *how, const struct time_point *end, double hz,
		       const struct collector_summary *s, const struct collector_options *opt);

#endif
