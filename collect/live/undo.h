/* SPDX-License-Identifier: MIT */
/*
 * undo.h - a stopped process gets its text back, as the command files of its blocks say it was.
 */
#ifndef COLLECT_LIVE_UNDO_H
#define COLLECT_LIVE_UNDO_H

#include <kron/wire.h>

#include "collect/kernel/process_maps.h"
#include "collect/live/threads.h"

/* The command files of a recording, by number. */
struct live_files {
	VEC(struct live_file {
		uint64_t number;
		int fd;
		uint64_t dev;
		uint64_t ino; /* not 0: only what is mapped from this very file is of it */
	})
	v;
	/* Those that were made meanwhile are added.  A file is handed over before a process gets it. */
	void (*take_more)(void *ctx);
	void *ctx;
};

/* -1: it is none of these. */
int live_file_of(const struct live_files *files, const struct process_mapping *m, uint64_t number);
/* False: a block is of a file that is not here, so its patches are not known.  Stopped processes only. */
bool undo_knows_all(const struct process_maps *maps, uint64_t session, struct live_files *files);

/*
 * Patches that were taken back.  *left: windows with a debugger's breakpoint, which stay as they are: they
 * will lead into our blocks again, so these have to stay, too.
 */
uint64_t undo_patches(const struct live_threads *t, const struct process_maps *maps,
		      uint64_t session, const struct live_files *files, uint64_t *left);

#endif
