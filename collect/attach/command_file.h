/* SPDX-License-Identifier: MIT */
/*
 * command_file.h - a command file of ours (kron/wire.h), read again: what was to be applied where.  And those
 * without blocks, which change what is there.
 */
#ifndef COLLECT_COMMAND_FILE_H
#define COLLECT_COMMAND_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kron/wire.h>
#include "base/err.h"

struct command_file {
	const uint8_t *bytes;
	size_t size;
	const struct kron_command *cmd;
	uint32_t n;
};

/* false: it cannot be read.  The descriptor may be closed then. */
bool command_file_open(struct command_file *f, int fd);
/* Of a file that is not certain to be ours: nothing in it leads out of it. */
bool command_file_is_sane(int fd);
void command_file_close(struct command_file *f);
/* Of a PATCH: cmd->count of them. */
const struct kron_patch *command_file_patches(const struct command_file *f,
					      const struct kron_command *cmd);

/* A new one; cmd->file_off of a PATCH: the number of its first patch. */
int command_file_write(struct kron_command *cmd, size_t n, const struct kron_patch *patches,
		       size_t npatches, int *fd, uint64_t *size, struct err *err);

#endif
