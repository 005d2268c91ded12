/* SPDX-License-Identifier: MIT */
/* command_file.h - a command file of ours (kron/wire.h), read again: what was to be applied where. */
#ifndef COLLECT_COMMAND_FILE_H
#define COLLECT_COMMAND_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kron/wire.h>

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

#endif
