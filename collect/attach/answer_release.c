/* SPDX-License-Identifier: MIT */
/*
 * answer_release.c - a process is about to make some of its code writable: the modules whose code it is
 * get it back as it was, and have no probes from then on (inject/bind/bind_release.c).
 *
 * Only where the process has one thread, the one that asks; others might be in the trampolines.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "collect/attach/answer_impl.h"

struct placed { /* a module's block as it is in the process */
	uint64_t block, table;
};

static bool has_one_thread(const struct work *w)
{
	struct process_stat st;

	return process_read_stat(w->q->pid, 0, &st) && st.threads == 1;
}

/* Is it code of the module that is going to change? */
static bool is_concerned(const struct work *w, const struct loaded *l)
{
	uint64_t end = w->q->range + w->q->range_len, bias;

	for (size_t i = 0; i < w->maps.n; i++) {
		const struct process_mapping *m = &w->maps.v[i];

		if (m->start < end && m->end > w->q->range && answer_is_text_of(m, l) &&
		    module_bias(l->module, m, &bias) && bias == l->bias)
			return true;
	}
	return false;
}

static void find_record(const struct work *w, const struct process_mapping *m, uint64_t number,
			const struct loaded *l, struct placed *out)
{
	for (size_t i = 0; i < w->a->blocks.n; i++) {
		const struct block_record *b = &w->a->blocks.v[i];

		if (b->number != number || b->is_stubs || b->is_copy || b->is_added ||
		    b->dev != l->dev || b->ino != l->ino || b->bias != l->bias || b->off < m->off ||
		    b->off - m->off >= m->end - m->start)
			continue;
		*(b->is_table ? &out->table : &out->block) = m->start + b->off - m->off;
	}
}

static bool find_placed(struct work *w, const struct loaded *l, struct placed *out)
{
	uint64_t number;

	*out = (struct placed){0, 0};
	pthread_mutex_lock(&w->a->lock);
	for (size_t i = 0; i < w->maps.n; i++)
		if (process_mapping_is_block(&w->maps.v[i], w->a->session, &number))
			find_record(w, &w->maps.v[i], number, l, out);
	pthread_mutex_unlock(&w->a->lock);
	return out->block;
}

static int add_commands(struct work *w, const struct loaded *l, struct binding *b, struct err *err)
{
	struct bound *bound = vec_push(&w->bound);
	size_t before = w->commands.n;
	struct kron_command *c;
	int code = bind_make(bound, b, err);

	if (code) {
		w->bound.n--;
		return code;
	}
	bind_release(bound, b);
	c = answer_add_command(w, KRON_CMD_RELEASE, (uint32_t)w->bound.n - 1);
	c->addr = b->block;
	c->len = bound->block_len;
	code = answer_add_patch_commands(w, l, bound, 0, err);
	if (code) { /* not the block without its text */
		w->commands.n = before;
		bound_free(&w->bound.v[--w->bound.n]);
		return code;
	}
	*vec_push(&w->out->groups) = (struct answer_group){.module = l->module, .bias = l->bias};
	answer_add_record(w, l, bound->block_len);
	w->records.v[w->records.n - 1].is_released = true;
	return 0;
}

static int release(struct work *w, const struct loaded *l, struct err *err)
{
	struct binding b = answer_module_binding(w, l);
	struct placed placed;
	int code;

	if (l->module->patched)
		return err_set(err, ENOTSUP,
			       "%s makes code of its own writable, and has the probes of kron "
			       "patch: what it writes there may not take effect",
			       l->module->path);
	if (!has_one_thread(w))
		return err_set(err, EBUSY,
			       "%s: the program makes its code writable while it has several "
			       "threads: what it writes may not take effect where probes are",
			       l->module->path);
	code = answer_choose_thunk(w, l, &b, err);
	if (code || !find_placed(w, l, &placed))
		return code;
	b.block = placed.block;
	b.table = placed.table;
	code = add_commands(w, l, &b, err);
	if (!code)
		err_set(err, 0,
			"%s: the program makes its code writable: its probes were taken out before",
			l->module->path);
	return code;
}

void answer_release(struct work *w)
{
	for (size_t i = 0; i < w->loaded.n; i++) {
		const struct loaded *l = &w->loaded.v[i];
		struct err err = {{0}};

		if (!l->done || !l->full || l->copy_hi || !is_concerned(w, l))
			continue;
		release(w, l, &err);
		if (err.msg[0])
			answer_note(w, l->module->path, &err);
	}
}
