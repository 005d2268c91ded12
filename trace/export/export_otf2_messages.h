/* SPDX-License-Identifier: MIT */
/* export_otf2_messages.h - MPI's messages as records of an OTF2 archive. For export_otf2.c. */
#ifndef TRACE_EXPORT_OTF2_MESSAGES_H
#define TRACE_EXPORT_OTF2_MESSAGES_H

#include <otf2/otf2.h>

#include "trace/reader.h"

struct otf2_messages;

/* NULL: the trace has no messages of MPI.  Reads all of it. */
struct otf2_messages *otf2_messages_new(const struct trace *t);
/* Writes the records of a lane up to this moment, those not written yet. */
OTF2_ErrorCode otf2_messages_put(struct otf2_messages *m, uint32_t lane, uint64_t until,
				 OTF2_EvtWriter *events);
/* Communicators and their groups, from these numbers on. Strings come from the caller. */
OTF2_ErrorCode otf2_messages_define(struct otf2_messages *m, OTF2_GlobalDefWriter *w,
				    OTF2_GroupRef *groups,
				    OTF2_StringRef (*string)(void *arg, const char *s), void *arg);
void otf2_messages_free(struct otf2_messages *m);

#endif
