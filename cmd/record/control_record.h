/* SPDX-License-Identifier: MIT */
/* control_record.h - while a program runs, `kron ctl probe` may change the probes of its recording. */
#ifndef CMD_CONTROL_RECORD_H
#define CMD_CONTROL_RECORD_H

#include "collect/collector.h"
#include "collect/changes/control.h"

/* attached: the recording has this surgeon already, else one is started when it is needed. */
void control_record_begin(struct collector *c, struct surgeon *surgeon, bool attached,
			  uint8_t default_level);
/* Before it is detached from anything. */
void control_record_stop(void);
/* After the recording was finished. */
void control_record_end(const struct collector *c);
/* How long a process stood still for a change, at most. */
struct changes *control_record_changes(void);
uint64_t control_record_longest_stop_ns(void);

#endif
