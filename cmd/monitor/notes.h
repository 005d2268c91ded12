/* SPDX-License-Identifier: MIT */
/* notes.h - what kron monitor says beside its rows: what has no values, and which interval would be better. */
#ifndef CMD_MONITOR_NOTES_H
#define CMD_MONITOR_NOTES_H

#include "collect/monitor/monitor.h"

/* Those without a value; `when` ends the sentence. */
void notes_on_variables(struct monitor *m, const char *when);
void notes_say(struct monitor *m, const struct monitor_summary *s);

#endif
