/* SPDX-License-Identifier: MIT */
/* cabled.h - `kron record -o tcp://...`: the recording goes over a cable instead of into a directory. */
#ifndef CMD_RECORD_CABLED_H
#define CMD_RECORD_CABLED_H

#include "collect/collector.h"

/*
 * If output is an address: connects, and has the collector write to a spool.  0, or -errno with a sentence.
 */
int cabled_open(struct collector_options *o, const char *output, const char *token,
		struct err *err);
/* --trigger-group, likewise; NULL: none.  From now on the others know of us. */
int cabled_group(struct collector_options *o, const char *group, const char *token,
		 struct err *err);
/* After collector_open(). */
int cabled_start(struct err *err);
/* Before collector_finish(). */
void cabled_hurry(void);
/* After collector_finish(): until all is there. */
int cabled_finish(struct err *err);

#endif
