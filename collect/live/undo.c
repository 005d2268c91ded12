/* SPDX-License-Identifier: MIT */
/*
 * undo.c - see undo.h.
 *
 * A block that is mapped says which command file it is of, and where in it: so what was applied is
 * known of every process, forked ones too, and of modules that came later.  Text is written through
 * /proc/PID/mem, a page at a time, and never loses its rights for a moment.
 */
#define _GNU_SOURCE
#include "collect/live/undo.h"

#include <string.h>

#include "collect/attach/command_file.h"

#define PAGE 4096ull
#define INT3 0xccu

/* A page of the text on its way. */
struct page {
	const struct live_threads *t;
	const struct process_maps *maps;
	uint64_t at; /* 0: none */
	bool changed;
	uint8_t bytes[PAGE];
};

static void page_put(struct page *p)
{
	if (p->at && p->changed)
		threads_write(p->t, p->at, p->bytes, PAGE);
	p->at = 0;
	p->changed = false;
}

static bool page_get(struct page *p, uint64_t at)
{
	if (p->at == at)
		return true;
	page_put(p);
	if (threads_read(p->t, p->bytes, at, PAGE) != (ssize_t)PAGE)
		return false;
	p->at = at;
	return true;
}

/* What is mapped there is the process's alone: nothing that others have too, or a file, changes. */
static bool is_private(const struct page *p, uint64_t at, unsigned len)
{
	const struct process_mapping *first = process_maps_at(p->maps, at);
	const struct process_mapping *last = process_maps_at(p->maps, at + (len ? len - 1 : 0));

	return first && last && first->perms[3] == 'p' && last->perms[3] == 'p';
}

enum window { PATCHED, OTHER, BREAKPOINT };

/* All of it, where it lies in one page, as nearly all do; NULL: it does not. */
static uint8_t *bytes_at(struct page *p, uint64_t at, const struct kron_patch *patch)
{
	const bool one = at % PAGE + patch->new_len <= PAGE && page_get(p, at & -PAGE);

	return one ? p->bytes + at % PAGE : NULL;
}

/*
 * OTHER: what the file has, or another library by now.  BREAKPOINT: a debugger's byte on top of our bytes,
 * which it will put back.  A patch may lie across two pages.
 */
static enum window look(struct page *p, uint64_t at, const struct kron_patch *patch)
{
	const uint8_t *whole = bytes_at(p, at, patch);
	unsigned same = 0, traps = 0, old = 0;

	if (!is_private(p, at, patch->new_len))
		return OTHER;
	if (whole && !memcmp(whole, patch->new_bytes, patch->new_len))
		return PATCHED;
	for (unsigned i = 0; i < patch->new_len; i++) {
		uint8_t now;

		if (!page_get(p, (at + i) & -PAGE))
			return OTHER;
		now = p->bytes[(at + i) % PAGE];
		old += now == patch->old_bytes[i];
		same += now == patch->new_bytes[i];
		traps += now == INT3 && now != patch->new_bytes[i];
	}
	if (same == patch->new_len)
		return PATCHED;
	if (old == patch->new_len) /* taken back already; it may be padding, which is int3 */
		return OTHER;
	return same && same + traps == patch->new_len ? BREAKPOINT : OTHER;
}

static void take_back(struct page *p, uint64_t at, const struct kron_patch *patch)
{
	uint8_t *whole = bytes_at(p, at, patch);

	if (whole) {
		memcpy(whole, patch->old_bytes, patch->new_len);
		p->changed = true;
		return;
	}
	for (unsigned i = 0; i < patch->new_len; i++) {
		if (!page_get(p, (at + i) & -PAGE))
			return;
		p->bytes[(at + i) % PAGE] = patch->old_bytes[i];
		p->changed = true;
	}
}

/* The group whose block lies there; NULL: none of this file. */
static const struct kron_command *block_command(const struct command_file *m, uint64_t addr,
						uint64_t off)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (m->cmd[i].kind == KRON_CMD_MAP && m->cmd[i].addr == addr &&
		    m->cmd[i].file_off == off)
			return &m->cmd[i];
	return NULL;
}

static uint64_t undo_group(struct page *p, const struct command_file *m, uint32_t group,
			   uint64_t *left)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct kron_command *c = &m->cmd[i];
		const struct kron_patch *patch = command_file_patches(m, c);

		if (c->kind != KRON_CMD_PATCH || c->group != group)
			continue;
		for (uint32_t k = 0; k < c->count; k++) {
			const enum window w = look(p, c->addr + patch[k].off, &patch[k]);

			if (w == PATCHED) {
				take_back(p, c->addr + patch[k].off, &patch[k]);
				n++;
			}
			*left += w == BREAKPOINT;
		}
	}
	page_put(p);
	return n;
}

int live_file_of(const struct live_files *files, const struct process_mapping *m, uint64_t number)
{
	for (size_t i = 0; i < files->v.n; i++) {
		const struct live_file *f = &files->v.v[i];

		if (f->number == number && (!f->ino || (f->dev == m->dev && f->ino == m->ino)))
			return f->fd;
	}
	return -1;
}

bool undo_knows_all(const struct process_maps *maps, uint64_t session, struct live_files *files)
{
	uint64_t number;

	files->take_more(files->ctx);
	for (size_t i = 0; i < maps->n; i++)
		if (process_mapping_is_block(&maps->v[i], session, &number) &&
		    live_file_of(files, &maps->v[i], number) < 0)
			return false;
	return true;
}

uint64_t undo_patches(const struct live_threads *t, const struct process_maps *maps,
		      uint64_t session, const struct live_files *files, uint64_t *left)
{
	struct page page = {.t = t, .maps = maps};
	uint64_t number, n = 0;

	*left = 0;
	for (size_t i = 0; i < maps->n; i++) {
		const struct process_mapping *m = &maps->v[i];
		const struct kron_command *c;
		struct command_file commands;

		if (!process_mapping_is_block(m, session, &number) ||
		    !command_file_open(&commands, live_file_of(files, m, number)))
			continue;
		c = block_command(&commands, m->start, m->off);
		if (c)
			n += undo_group(&page, &commands, c->group, left);
		command_file_close(&commands);
	}
	return n;
}
