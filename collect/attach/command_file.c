/* SPDX-License-Identifier: MIT */
/* command_file.c - see command_file.h. */
#include "collect/attach/command_file.h"

#include <sys/mman.h>
#include <sys/stat.h>

bool command_file_open(struct command_file *f, int fd)
{
	const struct kron_commands *head;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return false;
	f->size = (size_t)st.st_size;
	f->bytes = mmap(NULL, f->size, PROT_READ, MAP_SHARED, fd, 0);
	if (f->bytes == MAP_FAILED)
		return false;
	head = (const struct kron_commands *)f->bytes;
	f->n = head->ncommands;
	f->cmd = (const struct kron_command *)(head + 1);
	return true;
}

void command_file_close(struct command_file *f)
{
	munmap((void *)f->bytes, f->size);
}

const struct kron_patch *command_file_patches(const struct command_file *f,
					      const struct kron_command *cmd)
{
	return (const struct kron_patch *)(f->bytes + cmd->file_off);
}
