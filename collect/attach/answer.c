/* SPDX-License-Identifier: MIT */
/*
 * answer.c - see answer.h.
 *
 *   /proc/PID/maps ─► loaded modules ─► wanted? ─► plan ─► gap ─► bind ─► command file
 *                  └► blocks ─► of a loaded module: done already;  of none: UNMAP
 *
 * A module that cannot be traced leaves a note and does not keep the others from being traced.
 */
#define _GNU_SOURCE
#include "collect/attach/answer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "collect/attach/answer_impl.h"
#include "collect/attach/semaphores.h"
#include "inject/bind/bind.h"
#include "inject/bind/space.h"

#define PAGE 4096ull

void answerer_init(struct answerer *a, struct modules *ms, const struct selection *sel,
		   const uint8_t *session)
{
	memset(a, 0, sizeof(*a));
	a->modules = ms;
	a->selection = sel;
	a->next_number = 1;
	memcpy(&a->session, session, sizeof(a->session));
	pthread_mutex_init(&a->lock, NULL);
}

void answerer_free(struct answerer *a)
{
	vec_free(&a->blocks);
	vec_free(&a->asked);
	vec_free(&a->refused);
	vec_for(&a->met, p)
		vec_free(&p->modules);
	vec_free(&a->met);
}

void answer_note(struct work *w, const char *module, const struct err *err)
{
	struct answer_note *note;

	/* One note a question, however often the program has loaded it. */
	vec_for(&w->out->notes, n)
		if (!strcmp(n->err.msg, err->msg))
			return;
	log_info("collect", "pid %d: %s", w->q->pid, err->msg);
	note = vec_push(&w->out->notes);
	note->module = module ? xstrdup(module) : NULL;
	note->err = *err;
}

/* ---- which modules? ---- */

/* Where the runtime's hooks are: the C library and the dynamic linker, which are one file of musl's. */
static bool is_hooked_library(const char *path)
{
	const char *name = str_base_name(path);

	return !strcmp(name, "libc.so.6") || !strncmp(name, "libc-2.", 7) ||
	       !strcmp(name, "ld-linux-x86-64.so.2") || !strncmp(name, "ld-2.", 5) ||
	       !strcmp(name, "libc.so") || !strcmp(name, "ld-musl-x86_64.so.1");
}

/* It has the end of a function that unwinds the stack, as the C library has. */
static bool is_unwinder(const char *path)
{
	const char *name = str_base_name(path);

	return !strcmp(name, "libgcc_s.so.1") || !strncmp(name, "libunwind.so.1", 14);
}

bool answer_wants_unwinds(const struct work *w)
{
	const struct selection *s = w->a->selection;

	return !s->probes_only && !s->calls && kron_thunk_is_lane(w->q->way);
}

/* A static program from kron patch: the runtime, which asks, is a part of it. */
static bool brings_runtime(const struct work *w, const struct process_mapping *m)
{
	const struct process_mapping *rt = process_maps_at(&w->maps, w->q->hook_thunk);

	return rt && w->exe && rt->ino == m->ino && rt->dev == m->dev && !strcmp(m->path, w->exe);
}

bool answer_is_runtime(const struct work *w, const struct process_mapping *m)
{
	const struct process_mapping *rt = process_maps_at(&w->maps, w->q->thunk);

	if (brings_runtime(w, m))
		return false;
	return (rt && rt->ino == m->ino && rt->dev == m->dev) ||
	       !strcmp(str_base_name(m->path), "libkron-rt.so");
}

/* Programs and libraries lie there, too (fexecve(3), dlopen of /proc/self/fd/N), mapped as loaders do it.  What
 * is mapped shared is a compiler's at run time; what is called as kron's own files are, is kron's. */
static bool may_be_loaded_from_memory(const struct process_mapping *m)
{
	return m->perms[3] == 'p' && !process_mapping_is_krons(m);
}

bool answer_is_module(const struct process_mapping *m)
{
	if (!process_mapping_is_exec(m) || !m->ino || m->path[0] != '/')
		return false;
	if (process_mapping_is_memfd(m))
		return may_be_loaded_from_memory(m);
	return strncmp(m->path, "/SYSV", 5) &&
	       (strncmp(m->path, "/dev/", 5) || !strncmp(m->path, "/dev/shm/", 9));
}

static bool is_known(struct work *w, const struct process_mapping *m, uint64_t bias)
{
	vec_for(&w->loaded, l)
		if (l->dev == m->dev && l->ino == m->ino && l->bias == bias)
			return true;
	return false;
}

/*
 * libkron-rt.so asks, but the program's threads have no place for what it keeps of each: Go's,
 * without a C library, set %fs to data of their own.  Or a loader of its own has brought the dynamic linker
 * that brought us, and what its code does with %fs nobody knows.
 */
static bool is_static_under_runtime(struct work *w, const struct process_mapping *m,
				    const struct module *module)
{
	struct err err;

	if (!module->is_static || w->q->live || brings_runtime(w, m))
		return false;
	w->out->brings_runtime = module->has_start;
	if (!module->has_start) {
		if (module->is_go)
			err_set(&err, ENOTSUP,
				"%s is a Go program without a C library: `kron patch` makes a "
				"copy that can be traced",
				m->path);
		else
			err_set(&err, ENOTSUP,
				"%s is a static program that has loaded a dynamic one into its own "
				"process: its own functions are not traced",
				m->path);
		answer_note(w, m->path, &err);
	}
	return true;
}

static struct module_name name_of(struct work *w, const struct process_mapping *m, bool is_exe)
{
	if (!selection_names_modules(w->a->selection))
		return (struct module_name){.path = m->path};
	return modules_name_mapping(w->a->modules, w->q->pid, m, is_exe);
}

static void consider_mapping(struct work *w, const struct process_mapping *m)
{
	struct loaded l = {.dev = m->dev, .ino = m->ino};
	bool is_exe = w->exe && !strcmp(m->path, w->exe), probes;
	const struct module_name name = name_of(w, m, is_exe);
	struct err err;

	l.full = !w->a->selection->probes_only &&
		 (is_exe || selection_has_library(w->a->selection, &name));
	l.hooks = !w->q->changes &&
		  (is_hooked_library(m->path) || brings_runtime(w, m) || (w->q->live && is_exe) ||
		   (is_unwinder(m->path) && answer_wants_unwinds(w)));
	probes = module_probes_want(w->a->selection->probes, &name, is_exe, NULL);
	if ((!l.full && !l.hooks && !probes) || answer_is_runtime(w, m))
		return;
	if (m->perms[3] != 'p') {
		err_set(&err, ENOTSUP,
			"%s: its code is mapped shared: what is changed there would be in the file",
			m->path);
		answer_note(w, m->path, &err);
		return;
	}
	vec_for(&w->loaded, other)
		if (other->dev == m->dev && other->ino == m->ino)
			l.module = other->module;
	if (!l.module && modules_get(w->a->modules, &l.module, w->q->pid, m, is_exe, &err)) {
		answer_note(w, m->path, &err);
		return;
	}
	if (is_exe && is_static_under_runtime(w, m, l.module))
		return;
	if (is_exe)
		w->out->small_stacks = l.module->is_go;
	l.full = l.full || (probes && modules_wants_probes(w->a->modules, l.module));
	if (!l.full && !l.hooks)
		return;
	if (module_bias(l.module, m, &l.bias) && !is_known(w, m, l.bias))
		*vec_push(&w->loaded) = l;
}

/* ---- one module ---- */

struct kron_command *answer_add_command(struct work *w, uint32_t kind, uint32_t group)
{
	struct kron_command *c = vec_push(&w->commands);

	c->kind = kind;
	c->group = group;
	return c;
}

bool answer_is_text_of(const struct process_mapping *m, const struct loaded *l)
{
	return m && process_mapping_is_exec(m) && m->perms[3] == 'p' && m->ino == l->ino &&
	       m->dev == l->dev;
}

/* The end of the text that is mapped without a gap from `at` to at most `hi`; `at` if none is. */
static uint64_t text_run(const struct work *w, const struct loaded *l, uint64_t at, uint64_t hi)
{
	while (at < hi) {
		const struct process_mapping *m = process_maps_at(&w->maps, at);

		if (!answer_is_text_of(m, l))
			break;
		at = m->end;
	}
	return at < hi ? at : hi;
}

/* How many counters the places of this plan, or its functions' entries, count with. */
static uint32_t calls_end_of(const struct binding *b)
{
	const struct plan *p = b->plan;
	uint32_t end = 0;

	for (size_t i = 0; i < p->nprobes; i++) {
		const struct place_action *a;

		if (p->probes[i].kind != PROBE_PLACE)
			continue;
		a = &p->actions[p->probes[i].action];
		if (a->kind == ACTION_CALLS && a->value >= end)
			end = (uint32_t)a->value + 1;
	}
	return end ? end : b->event_base + (uint32_t)p->nfunctions;
}

static bool has_exec_hook(const struct plan *p)
{
	for (size_t i = 0; i < p->nprobes; i++)
		if (p->probes[i].kind == PROBE_HOOK && p->probes[i].hook == KRON_HOOK_EXECVE &&
		    p->probes[i].site != UINT32_MAX)
			return true;
	return false;
}

/* The gap is taken: later modules must not get it, too. */
static void take_gap(struct work *w, uint64_t start, uint64_t len)
{
	struct space_mapping gap = {.start = start, .end = start + len};
	size_t i;

	vec_push(&w->space);
	for (i = w->space.n - 1; i > 0 && w->space.v[i - 1].start > start; i--)
		w->space.v[i] = w->space.v[i - 1];
	w->space.v[i] = gap;
}

/* The page of the lowest patch from number `first` on: a site's landing stands in front of its own
 * patch, and may lie after it. */
static uint64_t lowest_page(const struct bound *bound, size_t first)
{
	uint32_t lowest = bound->patches[first].off;

	for (size_t i = first + 1; i < bound->npatches; i++)
		if (bound->patches[i].off < lowest)
			lowest = bound->patches[i].off;
	return (bound->patch_addr + lowest) & ~(PAGE - 1);
}

/*
 * [addr, end) and the rest of the mappings that it begins and ends in: where the rights of a part of
 * a mapping change for a moment, it stays in pieces, which programs see that look for their own
 * code (V8).  Not where the runtime runs, which is to make the change.
 */
static void widen_to_mappings(const struct work *w, uint64_t *addr, uint64_t *end)
{
	const struct process_mapping *first = process_maps_at(&w->maps, *addr);
	const struct process_mapping *last = process_maps_at(&w->maps, *end - 1);
	const struct process_mapping *ours = process_maps_at(&w->maps, w->q->hook_thunk);

	if (first && first != ours)
		*addr = first->start;
	if (last && last != ours)
		*end = last->end;
}

/*
 * A command for each stretch of text: between two executable segments there may be pages of
 * nothing (node), which cannot be made writable.  The patches of a stretch stand together; their
 * offsets are made to count from their command's address.  lay_out() makes file_off count from
 * the start of the file.
 */
int answer_add_patch_commands(struct work *w, const struct loaded *l, struct bound *bound,
			      uint32_t flags, struct err *err)
{
	uint64_t hi = bound->patch_addr + bound->patch_len;

	for (size_t first = 0, n; first < bound->npatches; first += n) {
		uint64_t addr = lowest_page(bound, first);
		uint64_t end = text_run(w, l, addr, hi);
		struct kron_command *c;

		if (addr < end)
			widen_to_mappings(w, &addr, &end);
		for (n = 0; first + n < bound->npatches; n++) {
			struct kron_patch *p = &bound->patches[first + n];

			if (bound->patch_addr + p->off + p->old_len > end)
				break;
			p->off = (uint32_t)(bound->patch_addr + p->off - addr);
		}
		if (!n)
			return err_set(err, ENOTSUP, "%s is not wholly mapped", l->module->path);
		c = answer_add_command(w, KRON_CMD_PATCH, (uint32_t)(bound - w->bound.v));
		c->addr = addr;
		c->len = end - addr;
		c->count = (uint32_t)n;
		c->file_off = first * sizeof(struct kron_patch);
		c->flags |= flags;
	}
	return 0;
}

static int add_module_commands(struct work *w, const struct loaded *l, const struct binding *b,
			       struct err *err)
{
	uint32_t group = (uint32_t)w->bound.n - 1, flags = 0;
	struct bound *bound = &w->bound.v[group];
	size_t before = w->commands.n;
	struct kron_command *c =
		answer_add_command(w, b->whole ? KRON_CMD_REPLACE : KRON_CMD_MAP, group);
	int code;

	c->addr = b->block;
	c->len = bound->block_len;
	if (b->hooks && has_exec_hook(b->plan))
		flags = KRON_CMD_HAS_EXEC_HOOK;
	if (b->whole && l->module->has_jumps) {
		c->flags |= flags;
		w->out->probes += bound->probes_bound;
		return 0;
	}
	code = answer_add_patch_commands(w, l, bound, flags, err);
	if (code)
		w->commands.n = before;
	else
		w->out->probes += bound->probes_bound;
	return code;
}

/* Without them the program passes the probes by: a note, and everything else goes on. */
static void raise_semaphores(struct work *w, const struct loaded *l)
{
	const struct resolution *found = &l->module->probes.found;
	struct err err;

	if (!semaphores_change(w->q->pid, w->q->pidfd, l->bias, found->semaphores.v,
			       found->semaphores.n, 1, &err))
		return;
	err_prefix(&err, -1, "%s", l->module->path);
	answer_note(w, l->module->path, &err);
}

/*
 * Other threads may map memory before the process has its answer, and the kernel places that next to other
 * mappings, where the block was to go.  So the block keeps a distance, which doubles with each such try.
 */
static uint64_t distance_of_block(const struct question *q)
{
	const uint64_t least = 1u << 20;

	if (!q->lineage) /* at its start it has one thread, which waits for us */
		return 0;
	return least << (q->again < 9 ? q->again : 9);
}

/* Addresses for the block, and for the table of far jumps if there are any. */
static int find_places(struct work *w, const struct loaded *l, struct binding *b, size_t len,
		       struct err *err)
{
	uint64_t lo = l->copy_lo, hi = l->copy_hi;
	size_t table = bind_table_size(b);

	if (!hi)
		module_span(l->module, &lo, &hi);
	b->block = b->whole ? l->bias + l->module->block_vaddr
			    : space_find_apart(w->space.v, w->space.n, lo + l->bias, hi + l->bias,
					       len, distance_of_block(w->q));
	if (!b->block)
		return err_set(err, ENOMEM, "%s: no room for %zu bytes within 2 GiB of its code",
			       l->module->path, len);
	if (!b->whole)
		take_gap(w, b->block, len);
	b->table = table ? space_find_low(w->space.v, w->space.n, table) : 0;
	if (table && !b->table)
		return err_set(err, ENOMEM, "%s: no free address space below 2 GiB",
			       l->module->path);
	if (table)
		take_gap(w, b->table, table);
	return 0;
}

void answer_add_record(struct work *w, const struct loaded *l, uint64_t len)
{
	*vec_push(&w->records) =
		(struct block_record){.len = len,
				      .dev = l->dev,
				      .ino = l->ino,
				      .bias = l->bias,
				      .is_stubs = l->is_caller,
				      .is_copy = l->copy_hi,
				      .probes = w->bound.v[w->bound.n - 1].probes_bound,
				      .text = w->bound.v[w->bound.n - 1].patch_addr};
}

static void add_table_command(struct work *w, const struct loaded *l, const struct binding *b)
{
	const struct bound *bound = &w->bound.v[w->bound.n - 1];
	struct kron_command *c;

	if (!bound->table_len)
		return;
	c = answer_add_command(w, KRON_CMD_TABLE, (uint32_t)w->bound.n - 1);
	c->addr = b->table;
	c->len = bound->table_len;
	answer_add_record(w, l, bound->table_len);
	w->records.v[w->records.n - 1].is_table = true;
	w->records.v[w->records.n - 1].probes = 0;
}

static int add_block(struct work *w, const struct loaded *l, struct binding *b, size_t len,
		     struct err *err)
{
	uint32_t calls_end;
	int code = answer_choose_thunk(w, l, b, err);

	if (!code)
		code = find_places(w, l, b, len, err);
	if (code)
		return code;
	code = bind_make(vec_push(&w->bound), b, err);
	if (code) {
		w->bound.n--;
		return err_prefix(err, code, "%s", l->module->path);
	}
	code = add_module_commands(w, l, b, err);
	if (code) {
		bound_free(&w->bound.v[--w->bound.n]);
		return code;
	}
	*vec_push(&w->out->groups) = (struct answer_group){.module = l->module, .bias = l->bias};
	answer_add_record(w, l, len);
	add_table_command(w, l, b);
	answer_watch_copies(w, l, b);
	w->out->counts |= answer_has_action(b->plan, ACTION_COUNT);
	calls_end = answer_has_action(b->plan, ACTION_CALLS) ? calls_end_of(b) : 0;
	if (calls_end > w->out->calls_end)
		w->out->calls_end = calls_end;
	return 0;
}

/* The block of a binding, and its commands; none if nothing is to be bound. */
int answer_add_block(struct work *w, const struct loaded *l, struct binding *b, struct err *err)
{
	struct bind_layout layout;
	int code;

	bind_layout_make(&layout, b);
	b->layout = &layout;
	code = layout.size ? add_block(w, l, b, layout.size, err) : 0;
	b->layout = NULL;
	bind_layout_free(&layout);
	return code;
}

/* To patch it would take that right from the program. */
static bool has_writable_text(const struct work *w, const struct loaded *l)
{
	uint64_t bias;

	for (size_t i = 0; i < w->maps.n; i++)
		if (w->maps.v[i].perms[1] == 'w' && answer_is_text_of(&w->maps.v[i], l) &&
		    module_bias(l->module, &w->maps.v[i], &bias) && bias == l->bias)
			return true;
	return false;
}

static int bind_module(struct work *w, const struct loaded *l, struct err *err)
{
	bool traced = l->full && l->module->nselected;
	struct binding b = answer_module_binding(w, l);
	int code;

	if (w->a->whole && !traced && !l->module->probed)
		return 0; /* nothing of it was added */
	if (!b.thunk)
		return err_set(err, ENOTSUP, "%s is static: --bus device cannot be had there",
			       l->module->path);
	if (b.plan == l->module->full && l->module->probed && !b.payload_thunk)
		return err_set(err, ENOTSUP, "%s: this libkron-rt.so knows no probes of users",
			       l->module->path);
	if ((w->q->changes || w->q->live) && has_writable_text(w, l))
		return err_set(err, EBUSY,
			       "%s: the program has made its code writable, and may change it any "
			       "time",
			       l->module->path);
	if (l->module->patched && w->q->changes)
		return err_set(err, ENOTSUP,
			       "%s is from `kron patch`: it has the probes that it was given there",
			       l->module->path);
	if (l->module->patched && w->q->live)
		return err_set(err, ENOTSUP,
			       "%s is from `kron patch`: it can be traced from its start only",
			       l->module->path);
	if (l->module->patched && l->copy_hi)
		return 0; /* kron patch left that code alone */
	if (l->module->patched) {
		if (!traced && !b.hooks && !b.nevents && !l->module->probed)
			return 0; /* no probe of it is wanted: it need not be woken */
		b.no_places = b.plan != l->module->full;
		b.id = l->module->block_id;
	}
	code = answer_add_block(w, l, &b, err);
	if (!code && b.plan == l->module->full && !w->q->again && (!w->q->changes || w->q->waits) &&
	    !l->copy_hi)
		raise_semaphores(w, l);
	return code;
}

bool answer_is_in_lineage(const struct question *q, uint32_t uid)
{
	for (const uint32_t *p = q->lineage; p && *p; p++)
		if (*p == uid)
			return true;
	return false;
}

static bool was_refused(struct work *w, const struct loaded *l)
{
	bool found = false;

	pthread_mutex_lock(&w->a->lock);
	vec_for(&w->a->refused, r)
		if (r->ino == l->ino && r->dev == l->dev && r->bias == l->bias &&
		    answer_is_in_lineage(w->q, r->uid))
			found = true;
	pthread_mutex_unlock(&w->a->lock);
	return found;
}

/* Is the whole module mapped earlier in the list?  Programs map parts of their own file to read them. */
static bool has_better_place(struct work *w, const struct loaded *l)
{
	vec_for(&w->loaded, other)
		if (other->module == l->module && other < l)
			return true;
	return false;
}

/* Makes the plans of all wanted modules, in parallel. */
static void prepare_modules(struct work *w)
{
	VEC(struct module_wish) wishes = {0};

	vec_for(&w->loaded, l)
		if (!l->done && !l->late && !was_refused(w, l))
			*vec_push(&wishes) = (struct module_wish){l->module, l->full};
	modules_prepare(w->a->modules, wishes.v, wishes.n);
	vec_free(&wishes);
}

/* What is traced of it is right, but not all is. */
static void note_lies(struct work *w, const struct module *m)
{
	struct err err;

	if (!m->full || !m->full->nlies)
		return;
	err_set(&err, EINVAL,
		"%s: symbols that start inside of instructions of other code are not traced (%u; "
		"`kron list` shows which)",
		m->path, m->full->nlies);
	answer_note(w, m->path, &err);
}

static void note_flaws(struct work *w, const struct module *m)
{
	struct err err;

	note_lies(w, m);
	if (!modules_cannot_count(w->a->modules, m))
		return;
	err_set(&err, ENOTSUP, "%s is from `kron patch`: its calls are not counted", m->path);
	answer_note(w, m->path, &err);
}

static void do_modules(struct work *w)
{
	struct err err = {{0}};

	prepare_modules(w);
	vec_for(&w->loaded, l) {
		int code;

		if (l->done || l->late || (!l->copy_hi && was_refused(w, l)))
			continue;
		code = modules_plan(w->a->modules, l->module, l->full, &err);
		if (code && l->full && l->hooks) { /* then perhaps its hooks */
			answer_note(w, l->module->path, &err);
			l->full = false;
			code = modules_plan(w->a->modules, l->module, false, &err);
		}
		if (!code && l->full && !w->a->whole)
			note_flaws(w, l->module);
		if (!code)
			code = bind_module(w, l, &err);
		if (!code)
			continue;
		*vec_push(&w->out->refused) =
			(struct refused_module){.dev = l->dev, .ino = l->ino, .bias = l->bias};
		if (l->copy_hi || !has_better_place(w, l))
			answer_note(w, l->module->path, &err);
	}
}

/*
 * --no-wait: the program starts without the functions of modules that have no plan yet.  Those with hooks are
 * waited for, for a second block would need the same windows; and those with places of the user's, which
 * are planned in no time.  By a change only late ones get anything: what others have was their own affair.
 */
static void leave_late(struct work *w)
{
	vec_for(&w->loaded, l) {
		struct module *m = l->module;

		if (w->q->changes)
			l->late = !m->is_late;
		else if (!l->done && l->full && !l->hooks && !l->copy_hi && !w->q->live &&
			 !modules_wants_probes(w->a->modules, m))
			l->late = !modules_is_at_hand(w->a->modules, m) ||
				  (m->is_late && !answer_is_fresh(w, l));
		w->out->is_late |= l->late && !w->q->changes;
	}
}

/* ---- all together ---- */

/* Where threads may be already, they are stopped for it. */
static void leave_old(struct work *w)
{
	vec_for(&w->loaded, l)
		l->done |= !answer_was_new(w, l);
}

static void copy_space(struct work *w)
{
	size_t n;
	struct space_mapping *v = process_maps_space(&w->maps, &n);

	for (size_t i = 0; i < n; i++)
		*vec_push(&w->space) = v[i];
	xfree(v);
}

int answer_make(struct answerer *a, const struct question *q, struct answer *out, struct err *err)
{
	struct work w = {.a = a, .q = q, .out = out};
	int code;

	memset(out, 0, sizeof(*out));
	out->fd = -1;
	out->pid = q->pid;
	code = process_maps_read(&w.maps, q->pid, err);
	if (code)
		return code;
	w.exe = process_exe(q->pid);
	if (w.exe) { /* without what /proc/PID/exe adds: the maps have the bare path */
		char *gone = strstr(w.exe, " (deleted)");

		if (gone && !gone[10])
			*gone = 0;
	}
	for (size_t i = 0; i < w.maps.n; i++)
		if (answer_is_module(&w.maps.v[i]))
			consider_mapping(&w, &w.maps.v[i]);
	answer_sort_copies(&w);
	answer_consider_blocks(&w);
	if (!q->changes && (q->kind == KRON_HELLO_START || q->kind == KRON_HELLO_MODULES))
		answer_meet(&w);
	if (q->waits)
		leave_old(&w);
	if (a->selection->no_wait)
		leave_late(&w);
	copy_space(&w);
	if (q->kind == KRON_HELLO_WRITES)
		answer_release(&w);
	else
		do_modules(&w);
	if (!q->changes && (q->kind == KRON_HELLO_START || q->kind == KRON_HELLO_MODULES))
		answer_callsites(&w);
	if (w.commands.n)
		code = answer_make_file(&w, err);
	vec_for(&w.bound, b)
		bound_free(b);
	vec_free(&w.bound);
	vec_free(&w.loaded);
	vec_free(&w.texts);
	vec_free(&w.fresh);
	vec_free(&w.stubs);
	vec_free(&w.space);
	vec_free(&w.commands);
	vec_free(&w.records);
	xfree(w.exe);
	process_maps_free(&w.maps);
	return code;
}

bool answer_find_preempt(const struct answer *a, uint64_t *lo, uint64_t *hi)
{
	*lo = *hi = 0;
	for (size_t i = 0; a->small_stacks && i < a->groups.n; i++) {
		const struct answer_group *g = &a->groups.v[i];
		const struct plan *p = g->module ? g->module->full : NULL;

		for (size_t k = 0; p && k < p->nfunctions; k++) {
			const struct plan_function *f = &p->functions[k];

			if (!function_is_preempt(p->strings + f->name))
				continue;
			*lo = g->bias + f->vaddr;
			*hi = *lo + f->size;
		}
	}
	return !a->small_stacks || *lo;
}

void answer_free(struct answer *out)
{
	vec_for(&out->notes, n)
		xfree(n->module);
	vec_free(&out->notes);
	vec_free(&out->groups);
	vec_free(&out->refused);
	if (out->fd >= 0)
		close(out->fd);
	out->fd = -1;
}
