/* SPDX-License-Identifier: MIT */
/*
 * answer_file.c - an answer's commands as a sealed file in memory: kron/wire.h has its layout.
 */
#define _GNU_SOURCE
#include "collect/attach/answer_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#define PAGE 4096ull
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

static uint64_t page_up(uint64_t v)
{
	return (v + PAGE - 1) & ~(PAGE - 1);
}

static bool holds_block(const struct kron_command *c)
{
	return c->kind == KRON_CMD_MAP || c->kind == KRON_CMD_REPLACE ||
	       c->kind == KRON_CMD_RELEASE;
}

/* Give every block and patch array its place; returns the size of the file. */
static uint64_t lay_out(struct work *w)
{
	uint64_t at = sizeof(struct kron_commands) + w->commands.n * sizeof(struct kron_command);
	uint64_t patches = 0;
	size_t record = 0;

	vec_for(&w->commands, c) {
		if (c->kind == KRON_CMD_TABLE || holds_block(c)) {
			at = page_up(at);
			c->file_off = at;
			w->records.v[record++].off = at;
			at += c->len;
		} else if (c->kind == KRON_CMD_PATCH) {
			if (c->file_off == 0) /* the first of its module */
				patches = (at + 7) & ~7ull;
			c->file_off += patches;
			at = c->file_off + c->count * sizeof(struct kron_patch);
		}
	}
	return page_up(at);
}

static int put(int fd, const void *data, size_t n, uint64_t off)
{
	const char *p = data;

	while (n) {
		ssize_t r = pwrite(fd, p, n, (off_t)off);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r < 0 ? -errno : -EIO;
		p += r;
		off += (uint64_t)r;
		n -= (size_t)r;
	}
	return 0;
}

static int fill_file(struct work *w, int fd, uint64_t size)
{
	struct kron_commands head = {
		.magic = KRON_WIRE_MAGIC, .ncommands = (uint32_t)w->commands.n, .size = size};
	int code = ftruncate(fd, (off_t)size) ? -errno : put(fd, &head, sizeof(head), 0);
	size_t done = 0; /* patches of the module */

	if (!code)
		code = put(fd, w->commands.v, w->commands.n * sizeof(*w->commands.v), sizeof(head));
	for (size_t i = 0; i < w->commands.n && !code; i++) {
		const struct kron_command *c = &w->commands.v[i];
		const struct bound *b = &w->bound.v[c->group];

		if (holds_block(c)) {
			code = put(fd, b->block, b->block_len, c->file_off);
			done = 0;
		} else if (c->kind == KRON_CMD_TABLE) {
			code = put(fd, b->table, b->table_len, c->file_off);
		} else if (c->kind == KRON_CMD_PATCH) {
			code = put(fd, b->patches + done, c->count * sizeof(*b->patches),
				   c->file_off);
			done += c->count;
		}
	}
	return code;
}

/* The recording's answerer unmaps what leads nowhere, also when the probe is gone. */
static void tell_whole(const struct work *w)
{
	struct answerer *whole = w->a->whole;

	pthread_mutex_lock(&whole->lock);
	for (size_t i = 0; i < w->records.n; i++) {
		struct block_record *b = vec_push(&whole->blocks);

		*b = w->records.v[i];
		b->is_added = true;
	}
	pthread_mutex_unlock(&whole->lock);
}

static int open_file(struct work *w, uint64_t *out, struct err *err)
{
	struct asked *asked;
	char name[64];
	uint64_t number;
	int fd;

	pthread_mutex_lock(&w->a->lock);
	*out = number = w->a->next_number++;
	vec_for(&w->records, r) {
		r->number = number;
		*vec_push(&w->a->blocks) = *r;
	}
	asked = vec_push(&w->a->asked);
	*asked = (struct asked){number, *w->q};
	asked->question.lineage = NULL;
	pthread_mutex_unlock(&w->a->lock);
	if (w->a->whole)
		tell_whole(w);
	snprintf(name, sizeof(name), "kron:%" PRIx64 ":%" PRIx64, w->a->session, number);
	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 every memfd was executable */
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return err_set(err, errno, "cannot make a command file: %s", strerror(errno));
	return fd;
}

void answer_note_text(struct answer_group *g, const struct process_maps *maps, uint64_t addr)
{
	const struct process_mapping *m = process_maps_at(maps, addr);

	if (g->text || !m)
		return;
	g->text = addr;
	g->off = m->off + addr - m->start;
	g->dev = m->dev;
	g->ino = m->ino;
}

static void note_text(struct work *w)
{
	vec_for(&w->commands, c)
		if (c->kind == KRON_CMD_PATCH)
			answer_note_text(&w->out->groups.v[c->group], &w->maps, c->addr);
}

static bool is_mapped_still(const struct answer_group *g, const struct process_maps *maps)
{
	const struct process_mapping *m = process_maps_at(maps, g->text);

	return m && process_mapping_is_exec(m) && m->dev == g->dev && m->ino == g->ino &&
	       m->off + g->text - m->start == g->off;
}

bool answer_is_current(const struct answer *a)
{
	struct process_maps maps;
	bool same = true;

	if (process_maps_read(&maps, a->pid, NULL))
		return false;
	for (size_t i = 0; i < a->groups.n; i++)
		same &= !a->groups.v[i].text || is_mapped_still(&a->groups.v[i], &maps);
	process_maps_free(&maps);
	return same;
}

int answer_make_file(struct work *w, struct err *err)
{
	uint64_t size = lay_out(w), number;
	int fd = open_file(w, &number, err);
	int code;

	if (fd < 0)
		return fd;
	note_text(w);
	code = fill_file(w, fd, size);
	if (!code && fcntl(fd, F_ADD_SEALS, SEALS)) /* it is code, and stays what it is */
		code = -errno;
	if (code) {
		close(fd);
		return err_set(err, -code, "cannot write a command file: %s", strerror(-code));
	}
	if (w->a->file_made)
		w->a->file_made(w->a->file_ctx, number, fd);
	w->out->fd = fd;
	w->out->number = number;
	w->out->size = size;
	w->out->ncommands = (uint32_t)w->commands.n;
	return 0;
}
