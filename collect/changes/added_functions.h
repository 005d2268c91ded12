/* SPDX-License-Identifier: MIT */
/*
 * added_functions.h - `kron ctl probe add -F GLOB`: functions that a recording did not choose at its start.
 *
 * A change like others, whose selection has functions instead of a probe.  A function has one number, whoever asks for
 * it; what the recording traces already, or another change, is left out.  To the trace they are functions that
 * slept until they came.
 */
#ifndef COLLECT_ADDED_FUNCTIONS_H
#define COLLECT_ADDED_FUNCTIONS_H

#include "collect/changes/changes.h"

/* words: changes_turn_functions() */
int added_functions_read(struct change *c, const struct changes *all, const char *words,
			 struct err *err);
/* Its modules have been made. */
void added_functions_prepare(struct change *c, struct changes *all);
/* How many of the functions that it has brought does the glob mean?  None if it has gone, or is a probe. */
enum added_functions_meant { ADDED_FUNCTIONS_NONE, ADDED_FUNCTIONS_SOME, ADDED_FUNCTIONS_ALL };
enum added_functions_meant added_functions_meant(struct change *c, const char *glob);
/* They have come, or gone, since then: a line for the trace. */
void added_functions_note(struct change *c, struct changes *all, uint64_t since, bool comes);
/* What a trigger waits for would seem never to come. */
int added_functions_check_waiting(struct change *c, struct changes *all, struct err *err);
/* Why there is none in any process: -errno, and a sentence. */
int added_functions_explain(struct change *c, struct err *err);
/* They have come.  A sentence if some have not. */
void added_functions_say_rest(struct change *c, struct err *err);

#endif
