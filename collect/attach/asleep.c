/* SPDX-License-Identifier: MIT */
/*
 * asleep.c - see asleep.h.
 *
 *   block bound anew ─► what differs from what is there ─► PATCH
 *
 * Only first instructions of probes and places differ, and no thread stands within one of those: all are as
 * long as the jump over the rest, or longer.  Windows come back as they came at first, and whoever stands in one
 * goes on in its stub.
 */
#include "collect/attach/asleep.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "collect/attach/answer_impl.h"
#include "collect/attach/command_file.h"
#include "inject/code/insn.h"

#define TEXT_READ 65536u

/* What was read of the process's text last: sites stand close together. */
struct text {
	uint64_t at;
	size_t n;
	uint8_t bytes[TEXT_READ];
};

struct making {
	struct answerer *a;
	const struct process_maps *maps;
	int mem;
	struct answer *out;
	struct text *text;
	VEC(struct kron_command) commands;
	VEC(struct kron_patch) patches;
};

/* A copy, since others add to the list. */
static bool find_record(struct answerer *a, uint64_t number, uint64_t off, struct block_record *out)
{
	bool found = false;

	pthread_mutex_lock(&a->lock);
	for (size_t i = 0; i < a->blocks.n && !found; i++) {
		*out = a->blocks.v[i];
		found = out->number == number && out->off == off && !out->is_added &&
			!out->is_table;
	}
	pthread_mutex_unlock(&a->lock);
	return found;
}

/* Of the same command file, for the same module. */
static bool find_table(struct answerer *a, const struct block_record *block,
		       struct block_record *out)
{
	bool found = false;

	pthread_mutex_lock(&a->lock);
	for (size_t i = 0; i < a->blocks.n && !found; i++) {
		*out = a->blocks.v[i];
		found = out->is_table && out->number == block->number && out->dev == block->dev &&
			out->ino == block->ino && out->bias == block->bias;
	}
	pthread_mutex_unlock(&a->lock);
	return found;
}

static uint64_t table_at(const struct making *m, const struct block_record *block)
{
	struct block_record table;
	uint64_t number;

	if (!find_table(m->a, block, &table))
		return 0;
	for (size_t i = 0; i < m->maps->n; i++)
		if (process_mapping_is_block(&m->maps->v[i], m->a->session, &number) &&
		    number == table.number && m->maps->v[i].off == table.off)
			return m->maps->v[i].start;
	return 0;
}

static struct module *module_of(struct modules *ms, const struct block_record *r)
{
	struct module *found = NULL;

	pthread_mutex_lock(&ms->lock);
	vec_for(&ms->all, m)
		if ((*m)->maps_dev == r->dev && (*m)->file.ino == r->ino && !(*m)->is_gone)
			found = *m;
	pthread_mutex_unlock(&ms->lock);
	return found;
}

static bool find_question(struct answerer *a, uint64_t number, struct question *out)
{
	bool found = false;

	pthread_mutex_lock(&a->lock);
	for (size_t i = 0; i < a->asked.n && !found; i++) {
		found = a->asked.v[i].number == number;
		*out = a->asked.v[i].question;
	}
	pthread_mutex_unlock(&a->lock);
	return found;
}

/* Has anything of it ever slept?  Callsites have no places of its own. */
static bool is_concerned(const struct module *m)
{
	const struct sleepers *s = &m->probes.sleepers;
	const struct resolution *found = &m->probes.found;

	if (__atomic_load_n(&s->has_slept, __ATOMIC_RELAXED))
		return true;
	for (size_t i = 0, from = 0; s->asleep && i < found->ends.n; from = found->ends.v[i++])
		if (__atomic_load_n(&s->asleep[i], __ATOMIC_RELAXED) != PLACES_AWAKE &&
		    found->ends.v[i] > from)
			return true;
	return false;
}

/* ---- the block ---- */

/* Bytes that differ, from at on; 0: none does any more. */
static size_t next_run(const uint8_t *x, const uint8_t *y, size_t len, size_t *at)
{
	size_t n = 0;

	while (*at < len && x[*at] == y[*at])
		(*at)++;
	while (*at + n < len && x[*at + n] != y[*at + n])
		n++;
	return n;
}

static bool has_length(const uint8_t *code, size_t least)
{
	struct insn in;

	return insn_decode(&in, code, 15, 0) && in.len >= least;
}

static struct kron_patch *add_patch(struct making *m, size_t at, const uint8_t *old, size_t n)
{
	struct kron_patch *p = vec_push(&m->patches);

	memset(p, 0, sizeof(*p));
	p->off = (uint32_t)at;
	p->old_len = p->new_len = (uint8_t)n;
	memcpy(p->old_bytes, old, n);
	return p;
}

/* Awake it begins with an instruction as long as the jump, at least; asleep with the jump. */
static int add_run(struct making *m, const uint8_t *there, const struct bound *now, size_t at,
		   size_t n, struct err *err)
{
	if (n > KRON_PATCH_NEW_MAX || at + 15 >= now->block_len || !has_length(there + at, n) ||
	    !has_length(now->block + at, n))
		return err_set(err, ENOTSUP,
			       "what one of its probes begins with is too short to be jumped over");
	memcpy(add_patch(m, at, there + at, n)->new_bytes, now->block + at, n);
	return 0;
}

/* It has unmapped the module since its map was read: its next one is without it. */
static int gone(struct err *err)
{
	return err_set(err, EAGAIN, "it loads and unloads libraries all the time");
}

static int add_block(struct making *m, const struct process_mapping *map, const struct bound *now,
		     struct err *err)
{
	const size_t first = m->patches.n, len = now->block_len;
	uint8_t *there = xmalloc(len);
	size_t at = 0, n;
	int code = 0;

	if (pread(m->mem, there, len, (off_t)map->start) != (ssize_t)len)
		code = gone(err);
	while (!code && (n = next_run(there, now->block, len, &at))) {
		code = add_run(m, there, now, at, n, err);
		at += n;
	}
	xfree(there);
	if (code || m->patches.n == first)
		return code;
	*vec_push(&m->commands) =
		(struct kron_command){.kind = KRON_CMD_PATCH,
				      .addr = map->start,
				      .len = len, /* the mapping may be in pieces */
				      .count = (uint32_t)(m->patches.n - first),
				      .group = (uint32_t)m->out->groups.n,
				      .file_off = first};
	return 0;
}

/* ---- the text ---- */

/* The rest of a long window, which is looked at only: what stands there may be in the way of a goroutine. */
static void take_rest(struct bound *now, struct kron_patch p, bool awake)
{
	const struct kron_patch *last = now->npatches ? &now->patches[now->npatches - 1] : NULL;

	if (awake && last && last->off + last->old_len == p.off)
		now->patches[now->npatches++] = p;
}

/* NULL: it is not there. */
static const uint8_t *text_at(const struct making *m, uint64_t at, size_t n)
{
	struct text *t = m->text;
	ssize_t got;

	if (at < t->at || at + n > t->at + t->n) {
		t->at = at & ~(uint64_t)4095;
		got = pread(m->mem, t->bytes, sizeof(t->bytes), (off_t)t->at);
		t->n = got > 0 ? (size_t)got : 0;
	}
	return at + n <= t->at + t->n ? t->bytes + (at - t->at) : NULL;
}

/* Keeps the patch if it is to be made, or taken back. */
static int take_patch(const struct making *m, struct bound *now, struct kron_patch p, bool awake,
		      struct err *err)
{
	const uint8_t *there = text_at(m, now->patch_addr + p.off, p.old_len);

	if (!there)
		return gone(err);
	if (awake ? !memcmp(there, p.new_bytes, p.new_len) : !memcmp(there, p.old_bytes, p.new_len))
		return 0;
	if (!awake)
		bind_turn_round(&p);
	if (memcmp(there, p.old_bytes, p.new_len) != 0)
		return err_set(err, ENOTSUP,
			       "the program, or a debugger, has changed its code: its probes stay");
	now->patches[now->npatches++] = p;
	return 0;
}

/* Of the binding's patches those stay that change something. */
static int choose_patches(const struct making *m, struct bound *now, const struct binding *b,
			  struct err *err)
{
	uint8_t *awake = bind_awake(now, b);
	const size_t n = now->npatches;
	int code = 0;

	now->npatches = 0;
	for (size_t i = 0; i < n && !code; i++) {
		const struct kron_patch p = now->patches[i];

		if (p.new_len)
			code = take_patch(m, now, p, awake[i], err);
		else
			take_rest(now, p, awake[i]);
	}
	xfree(awake);
	return code;
}

static int add_text(struct making *m, struct work *w, const struct loaded *l, struct err *err)
{
	struct bound *now = &w->bound.v[0];
	const size_t first = m->patches.n;

	if (!now->npatches)
		return 0;
	/* Maps are read a page at a time: of one that executes meanwhile the rest is missing. */
	if (answer_add_patch_commands(w, l, now, KRON_CMD_OWN, err))
		return gone(err);
	for (size_t i = 0; i < w->commands.n; i++) {
		struct kron_command *c = vec_push(&m->commands);

		*c = w->commands.v[i];
		c->group = (uint32_t)m->out->groups.n;
		c->file_off = first + c->file_off / sizeof(struct kron_patch);
	}
	for (size_t i = 0; i < now->npatches; i++)
		*vec_push(&m->patches) = now->patches[i];
	return 0;
}

/* ---- a module ---- */

/*
 * Another library may have come to its place, with a block at the same place, too, before the process stands still:
 * then its code begins with the same jump.  The block has no commands of its own.
 */
static void add_groups(struct making *m, const struct process_mapping *map, const struct work *w,
		       const struct loaded *l)
{
	struct answer_group text = {.module = l->module, .bias = l->bias};
	struct answer_group block = text;

	if (w->commands.n)
		answer_note_text(&text, m->maps, w->commands.v[0].addr);
	answer_note_text(&block, m->maps, map->start);
	*vec_push(&m->out->groups) = text;
	*vec_push(&m->out->groups) = block;
	m->out->small_stacks |=
		l->module->is_go; /* where its goroutines stand is to be looked for */
}

static int add_module(struct making *m, const struct process_mapping *map, struct work *w,
		      const struct loaded *l, const struct binding *b, struct err *err)
{
	const size_t before = m->commands.n;
	struct bound *now = vec_push(&w->bound);
	int code = bind_make(now, b, err);

	if (code) {
		w->bound.n--;
		return code;
	}
	code = choose_patches(m, now, b, err);
	if (!code)
		code = add_block(m, map, now, err);
	if (!code)
		code = add_text(m, w, l, err);
	if (!code && m->commands.n > before)
		add_groups(m, map, w, l);
	return code;
}

static void free_work(struct work *w)
{
	vec_for(&w->bound, b)
		bound_free(b);
	vec_free(&w->bound);
	vec_free(&w->commands);
}

static int consider(struct making *m, const struct process_mapping *map, uint64_t number,
		    struct err *err)
{
	struct block_record r;
	struct question q;
	struct module *mod;
	struct binding b;
	int code;

	if (!find_record(m->a, number, map->off, &r) || r.is_stubs || r.is_released)
		return 0;
	mod = module_of(m->a->modules, &r);
	if (!mod || !mod->full || !is_concerned(mod))
		return 0;
	if (mod->patched || r.is_copy || !find_question(m->a, number, &q))
		return err_set(err, ENOTSUP,
			       "%s: its code is copied, or from `kron patch`: its probes stay",
			       mod->path);
	{
		struct work w = {.a = m->a, .q = &q, .out = m->out, .maps = *m->maps};
		const struct loaded l = {
			.module = mod, .dev = r.dev, .ino = r.ino, .bias = r.bias, .full = true};

		b = answer_module_binding(&w, &l);
		b.block = map->start;
		b.table = table_at(m, &r);
		if (bind_size(&b) != r.len && !r.probes)
			return 0; /* it has its hooks alone */
		if (bind_size(&b) != r.len)
			return err_set(err, EINVAL,
				       "%s: how its probes lie in the process cannot be told",
				       mod->path);
		code = answer_choose_thunk(&w, &l, &b, err);
		if (!code)
			code = add_module(m, map, &w, &l, &b, err);
		free_work(&w);
	}
	return code ? err_prefix(err, code, "%s", mod->path) : 0;
}

int asleep_make(struct answer *out, struct answerer *a, const struct process_maps *maps, int mem,
		struct err *err)
{
	struct making m = {
		.a = a, .maps = maps, .mem = mem, .out = out, .text = xcalloc(1, sizeof(*m.text))};
	uint64_t number;
	int code = 0;

	memset(out, 0, sizeof(*out));
	out->fd = -1;
	for (size_t i = 0; i < maps->n && !code; i++)
		if (process_mapping_is_block(&maps->v[i], a->session, &number))
			code = consider(&m, &maps->v[i], number, err);
	if (!code && m.commands.n)
		code = command_file_write(m.commands.v, m.commands.n, m.patches.v, m.patches.n,
					  &out->fd, &out->size, err);
	out->ncommands = (uint32_t)m.commands.n;
	vec_free(&m.commands);
	vec_free(&m.patches);
	xfree(m.text);
	return code;
}
