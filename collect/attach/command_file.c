/* SPDX-License-Identifier: MIT */
/* command_file.c - see command_file.h. */
#define _GNU_SOURCE
#include "collect/attach/command_file.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define COMMANDS_MAX 65536u /* a few for each module */

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

/* *patches, *block: of the commands before it.  No patch is there twice, nor a second block of a group. */
static bool is_sane(const struct command_file *f, const struct kron_command *c, uint64_t *patches,
		    int64_t *block)
{
	const struct kron_patch *patch;

	if (c->kind == KRON_CMD_MAP) {
		const bool next = c->group > *block;

		*block = c->group;
		return next;
	}
	if (c->kind != KRON_CMD_PATCH)
		return true;
	if (c->file_off > f->size || c->file_off % 8 ||
	    c->count > (f->size - c->file_off) / sizeof(*patch))
		return false;
	*patches += c->count;
	if (*patches > f->size / sizeof(*patch))
		return false;
	patch = command_file_patches(f, c);
	for (uint32_t i = 0; i < c->count; i++)
		if (patch[i].new_len > KRON_PATCH_NEW_MAX || patch[i].off >= c->len)
			return false;
	return true;
}

bool command_file_is_sane(int fd)
{
	struct command_file f;
	uint64_t patches = 0;
	int64_t block = -1;
	struct stat st;
	bool sane;

	if (fstat(fd, &st) || st.st_size < (off_t)sizeof(struct kron_commands) ||
	    !command_file_open(&f, fd))
		return false;
	sane = f.n <= COMMANDS_MAX &&
	       f.n <= (f.size - sizeof(struct kron_commands)) / sizeof(*f.cmd);
	for (uint32_t i = 0; sane && i < f.n; i++)
		sane = is_sane(&f, &f.cmd[i], &patches, &block);
	command_file_close(&f);
	return sane;
}

static bool put(int fd, const void *data, size_t n, uint64_t off)
{
	return pwrite(fd, data, n, (off_t)off) == (ssize_t)n;
}

int command_file_write(struct kron_command *cmd, size_t n, const struct kron_patch *patches,
		       size_t npatches, int *fd, uint64_t *size, struct err *err)
{
	const uint64_t patches_at = sizeof(struct kron_commands) + n * sizeof(*cmd);
	const struct kron_commands head = {.magic = KRON_WIRE_MAGIC,
					   .ncommands = (uint32_t)n,
					   .size = patches_at + npatches * sizeof(*patches)};

	for (size_t i = 0; i < n; i++)
		if (cmd[i].kind == KRON_CMD_PATCH)
			cmd[i].file_off = patches_at + cmd[i].file_off * sizeof(*patches);
	*size = head.size;
	*fd = memfd_create("kron-change", MFD_CLOEXEC);
	if (*fd < 0)
		return err_set(err, errno, "cannot make a command file: %s", strerror(errno));
	if (!put(*fd, &head, sizeof(head), 0) || !put(*fd, cmd, n * sizeof(*cmd), sizeof(head)) ||
	    !put(*fd, patches, npatches * sizeof(*patches), patches_at))
		return err_set(err, errno, "cannot write a command file: %s", strerror(errno));
	return 0;
}
