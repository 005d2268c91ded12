/* SPDX-License-Identifier: MIT */
/* job.h - each rank of an MPI job records to a directory of its own, in one folder. */
#ifndef CMD_RECORD_JOB_H
#define CMD_RECORD_JOB_H

#include "base/err.h"

/*
 * Where this process records to, if DIR is asked for: DIR/RANK in a job of several ranks, to be freed; else NULL. Makes
 * room for it: the folder of an older job becomes DIR.old, and so does a trace where a folder has to be. 0, or a -errno and
 * *err.
 */
int job_dir(const char *dir, char **out, struct err *err);

#endif
