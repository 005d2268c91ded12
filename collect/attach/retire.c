/* SPDX-License-Identifier: MIT */
/*
 * retire.c - see retire.h.
 *
 *   block of a file, as it is mapped ─► its group's patches there ─► RETIRE, PATCH with old and new exchanged
 */
#define _GNU_SOURCE
#include "collect/attach/retire.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collect/attach/command_file.h"
#include "inject/bind/bind.h"

struct making {
	int mem;
	const struct process_maps *maps;
	struct answer *out;
	VEC(struct kron_command) commands; /* file_off of a PATCH: the number of its first patch */
	VEC(struct kron_patch) patches;
};

/* Is one of the group's patches there? */
static bool is_patched(const struct making *m, const struct command_file *s, uint32_t group)
{
	for (uint32_t i = 0; i < s->n; i++) {
		const struct kron_command *c = &s->cmd[i];

		for (uint32_t k = 0; c->kind == KRON_CMD_PATCH && c->group == group && k < c->count;
		     k++) {
			const struct kron_patch *p = &command_file_patches(s, c)[k];
			uint8_t now[KRON_PATCH_NEW_MAX];

			if (pread(m->mem, now, p->new_len, (off_t)(c->addr + p->off)) ==
				    p->new_len &&
			    !memcmp(now, p->new_bytes, p->new_len))
				return true;
		}
	}
	return false;
}

/* Block and code: another library may come to its place, with a block at the same place, and the same jumps. */
static void add_groups(struct making *m, const struct command_file *s,
		       const struct kron_command *block)
{
	struct answer_group text = {0}, stubs = {0};

	for (uint32_t i = 0; i < s->n; i++)
		if (s->cmd[i].kind == KRON_CMD_PATCH && s->cmd[i].group == block->group)
			answer_note_text(&text, m->maps, s->cmd[i].addr);
	answer_note_text(&stubs, m->maps, block->addr);
	*vec_push(&m->out->groups) = text;
	*vec_push(&m->out->groups) = stubs;
}

static void retire_block(struct making *m, const struct command_file *s,
			 const struct kron_command *block)
{
	const uint32_t group = (uint32_t)m->out->groups.n;

	*vec_push(&m->commands) = (struct kron_command){
		.kind = KRON_CMD_RETIRE, .addr = block->addr, .len = block->len, .group = group};
	for (uint32_t i = 0; i < s->n; i++) {
		const struct kron_command *c = &s->cmd[i];
		struct kron_command *out;

		if (c->kind != KRON_CMD_PATCH || c->group != block->group)
			continue;
		out = vec_push(&m->commands);
		*out = *c;
		out->group = group;
		out->file_off = m->patches.n;
		for (uint32_t k = 0; k < c->count; k++) {
			struct kron_patch *p = vec_push(&m->patches);

			*p = command_file_patches(s, c)[k];
			bind_turn_round(p);
		}
	}
	add_groups(m, s, block);
}

static void consider(struct making *m, const struct process_mapping *map, int fd)
{
	struct command_file s;

	if (!command_file_open(&s, fd))
		return;
	for (uint32_t i = 0; i < s.n; i++)
		if (s.cmd[i].kind == KRON_CMD_MAP && s.cmd[i].addr == map->start &&
		    s.cmd[i].file_off == map->off && is_patched(m, &s, s.cmd[i].group))
			retire_block(m, &s, &s.cmd[i]);
	command_file_close(&s);
}

int retire_make(struct answer *out, const struct process_maps *maps, uint64_t session, int mem,
		const struct retire_file *files, size_t n, struct err *err)
{
	struct making m = {.mem = mem, .maps = maps, .out = out};
	uint64_t number;
	int code = 0;

	memset(out, 0, sizeof(*out));
	out->fd = -1;
	for (size_t i = 0; i < maps->n; i++) {
		if (!process_mapping_is_block(&maps->v[i], session, &number))
			continue;
		for (size_t k = 0; k < n; k++)
			if (files[k].number == number)
				consider(&m, &maps->v[i], files[k].fd);
	}
	if (m.commands.n)
		code = command_file_write(m.commands.v, m.commands.n, m.patches.v, m.patches.n,
					  &out->fd, &out->size, err);
	out->ncommands = (uint32_t)m.commands.n;
	vec_free(&m.commands);
	vec_free(&m.patches);
	return code;
}
