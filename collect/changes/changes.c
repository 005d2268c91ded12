/* SPDX-License-Identifier: MIT */
/*
 * changes.c - see changes.h.
 *
 * Each SPEC is a little recording within the recording: a selection of its own, modules planned for it alone, command
 * files of its own.  Numbers of events and tables of the trace are the recording's.  What a window must not
 * touch is not looked up here: the process's runtime knows its own blocks, and refuses.
 */
#define _GNU_SOURCE
#include "collect/changes/changes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "collect/changes/change_line.h"
#include "collect/changes/first_probes.h"
#include "collect/changes/function_probes.h"
#include "collect/changes/turn.h"
#include "collect/changes/visit.h"
#include "inject/plan/tactics.h"

/* Command files of the recording itself have lower numbers. */
#define FIRST_NUMBER (1ull << 32)
#define NUMBERS 0xffffu /* kron_reply.more */

/* ---- one of them ---- */

static void take_file(void *ctx, uint64_t number, int fd)
{
	struct change *c = ctx;

	pthread_mutex_lock(&c->files.lock);
	*vec_push(&c->files.v) =
		(struct retire_file){.number = number, .fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)};
	pthread_mutex_unlock(&c->files.lock);
	surgeon_take_file(c->surgeon, number, fd);
}

/* None of them leads anywhere any more. */
static void forget_files(struct change *c)
{
	c->answerer.oldest_number = c->answerer.next_number;
	vec_for(&c->files.v, f)
		if (f->fd >= 0)
			close(f->fd);
	vec_free(&c->files.v);
	c->files.v.n = 0;
}

/* One that prepare() has not come to. */
static void free_unused(struct change *c)
{
	probe_set_free(&c->set);
	xfree(c->name);
	xfree(c->text);
	xfree(c);
}

static void free_change(struct change *c)
{
	forget_files(c);
	answerer_free(&c->answerer);
	modules_free(&c->modules);
	free_unused(c);
}

/* Traps would take a handler, and stubs of other modules are the recording's. */
static uint32_t tactics_of(const struct selection *whole)
{
	return (whole->tactics ? whole->tactics : (uint32_t)USE_DEFAULT) &
	       ~(uint32_t)(USE_INT3 | USE_CALLSITE);
}

static int read_spec(struct change *c, const struct changes *all, const char *text, struct err *err)
{
	int code;

	c->set.default_level = all->default_level;
	c->set.no_callsites = true;
	code = probe_set_add(&c->set, text, 0, err);
	if (!code && c->set.specs.n != 1)
		code = err_set(err, EINVAL, "\"%s\" is not one probe: add them one by one", text);
	if (!code && c->set.specs.v[0].kind == SPEC_PAGES)
		code = err_set(err, EINVAL,
			       "pages are counted from a program's start only: `kron pages`");
	if (!code && !kron_thunk_is_lane(all->server->thunk))
		code = probe_set_check_board(&c->set, err);
	if (code)
		return code;
	c->text = xstrdup(text);
	c->name = xstrdup(c->set.specs.v[0].event ? c->set.specs.v[0].event : text);
	c->selection = (struct selection){.probes = &c->set,
					  .probes_only = true,
					  .tactics = tactics_of(all->modules->selection)};
	return 0;
}

static void prepare(struct change *c, struct changes *all)
{
	uint8_t session[16];

	memcpy(session, &all->server->answerer->session, sizeof(uint64_t));
	memset(session + sizeof(uint64_t), 0, sizeof(session) - sizeof(uint64_t));
	modules_branch(&c->modules, all->modules, &c->selection);
	answerer_init(&c->answerer, &c->modules, &c->selection, session);
	c->answerer.whole = all->server->answerer;
	pthread_mutex_init(&c->files.lock, NULL);
	c->answerer.next_number = FIRST_NUMBER * ++all->next_number;
	c->answerer.oldest_number = c->answerer.next_number;
	c->answerer.file_made = take_file;
	c->answerer.file_ctx = c;
	c->surgeon = all->surgeon;
}

static struct change *find(const struct changes *all, const char *name)
{
	for (size_t i = 0; i < all->all.n; i++) {
		struct change *c = all->all.v[i];

		if (c->is_there && (!strcmp(c->name, name) || !strcmp(c->text, name)))
			return c;
	}
	return NULL;
}

/* ---- all processes ---- */

/* From now on what asks gets it, or gets it not; then nobody is being given it. */
static void set_there(struct changes *all, struct change *c, bool is_there)
{
	pthread_mutex_lock(&all->lock);
	c->is_there = is_there;
	while (!is_there && c->holds)
		pthread_cond_wait(&all->released, &all->lock);
	pthread_mutex_unlock(&all->lock);
}

static void changes_note(struct changes *all, const struct change *c, bool comes)
{
	const struct change_note n = {c->name, c->text, c->probes, comes};

	all->note(all->note_ctx, &n);
}

/* ---- add ---- */

/* Somewhere it had room: where that is loaded no more, it comes again with it. */
static bool is_possible(const struct change *c)
{
	for (size_t i = 0; i < c->modules.all.n; i++)
		if (c->modules.all.v[i]->probes.patched)
			return true;
	return false;
}

static bool has_begun(const struct changes *all)
{
	bool begun;

	pthread_mutex_lock(&all->server->lock);
	begun = all->server->starts > 0;
	pthread_mutex_unlock(&all->server->lock);
	return begun;
}

static int explain_nothing(const struct change *c, bool begun, unsigned met, struct err *err)
{
	const struct probe_results *r = &c->modules.results;

	if (!met && !begun) {
		err_set(err, 0, "%s: no program has started yet: the probe comes with it", c->text);
		return 0;
	}
	if (!met)
		return err_set(err, ESRCH, "no process of this recording runs that kron can reach");
	if (r->n && r->v[0].notes.n)
		return err_set(err, ENOENT, "%s", r->v[0].notes.v[0]);
	if (r->n && r->v[0].places && !is_possible(c))
		return err_set(err, ENOTSUP,
			       "%s: there is no room for a probe; `kron list -p` says why",
			       c->text);
	if (!c->set.specs.v[0].object.text)
		return err_set(err, ENOENT, "%s: what it names is in none of the programs",
			       c->text);
	err_set(err, 0, "%s: no process has loaded %s yet: the probe comes with it", c->text,
		c->set.specs.v[0].object.text);
	return 0;
}

int changes_start_surgeon(struct changes *all, struct err *err)
{
	if (!all->starts_surgeon || all->surgeon->pid > 0)
		return 0;
	return surgeon_start(all->surgeon, err);
}

/* Later ones ask for it, those before are listed; so nobody may be between the two. */
static int place_everywhere(struct changes *all, struct change *c, struct err *err)
{
	unsigned met;
	bool begun;
	int code;

	set_there(all, c, true);
	code = turn_settle(all, err);
	if (code)
		return code;
	begun = has_begun(all);
	code = visit_all(all, c, change_process_add, false, &met, err);
	return code || c->probes ? code : explain_nothing(c, begun, met, err);
}

static int place(struct changes *all, struct change *c, struct err *err)
{
	unsigned others;
	struct err other = {{0}};
	const int code = place_everywhere(all, c, err);

	if (!code)
		return 0;
	set_there(all, c, false);
	if (!visit_all(all, c, change_process_remove, true, &others, &other))
		forget_files(c);
	return code;
}

/* One that was there before has its plans still, and its events' numbers.  NULL: there are too many. */
static struct change *settle_on(struct changes *all, struct change *fresh)
{
	for (size_t i = 0; i < all->all.n; i++) {
		struct change *c = all->all.v[i];

		if (strcmp(c->text, fresh->text))
			continue;
		free_unused(fresh);
		c->probes = 0;
		return c;
	}
	if (all->all.n == NUMBERS)
		return NULL;
	prepare(fresh, all);
	pthread_mutex_lock(&all->lock);
	*vec_push(&all->all) = fresh;
	pthread_mutex_unlock(&all->lock);
	return fresh;
}

static int add(struct changes *all, const char *spec, struct err *err)
{
	struct change *c = xcalloc(1, sizeof(*c)), *fresh;
	int code = read_spec(c, all, spec, err);

	if (!code && (find(all, c->name) || first_probes_has(all, c->name)))
		code = err_set(err, EEXIST, "there is a probe %s already", c->name);
	if (!code)
		code = changes_start_surgeon(all, err);
	if (!code)
		code = first_probes_wake(all, &c->set.specs.v[0], err);
	if (code != FIRST_PROBES_NONE) {
		free_unused(c);
		return code;
	}
	fresh = c;
	c = settle_on(all, fresh);
	if (!c) {
		free_unused(fresh);
		return err_set(err, E2BIG, "this recording has had %u probes added: no more",
			       NUMBERS);
	}
	code = place(all, c, err);
	if (code)
		return code;
	c->since_ns = clock_ns(CLOCK_MONOTONIC) - all->begin_ns;
	changes_note(all, c, true);
	return 0;
}

int changes_add(struct changes *all, const char *spec, struct err *err)
{
	int code;

	pthread_mutex_lock(&all->turn);
	code = add(all, spec, err);
	pthread_mutex_unlock(&all->turn);
	return code;
}

/* ---- remove ---- */

static int explain_unknown(const struct changes *all, const char *name, struct err *err)
{
	if (all->modules->selection->probes_only)
		return err_set(err, ENOENT,
			       "no probe %s was added (`kron ctl probe list` shows them)", name);
	return err_set(err, ENOENT,
		       "no probe %s was added (`kron ctl probe list` shows them); `kron ctl probe "
		       "rm -F %s` takes out functions that the recording traces",
		       name, name);
}

static int take_away(struct changes *all, const char *name, struct err *err)
{
	struct change *c = find(all, name);
	unsigned met;
	int code;

	if (!c && first_probes_has(all, name))
		return first_probes_remove(all, name, err);
	if (!c)
		return explain_unknown(all, name, err);
	set_there(all, c, false);
	code = visit_all(all, c, change_process_remove, true, &met, err);
	if (code) {
		set_there(all, c, true);
		return code;
	}
	forget_files(c);
	changes_note(all, c, false);
	return 0;
}

int changes_remove(struct changes *all, const char *name, struct err *err)
{
	int code;

	pthread_mutex_lock(&all->turn);
	code = take_away(all, name, err);
	pthread_mutex_unlock(&all->turn);
	return code;
}

int changes_turn_functions(struct changes *all, const char *glob, bool wakes, struct err *err)
{
	int code;

	pthread_mutex_lock(&all->turn);
	code = function_probes_turn(all, glob, wakes, err);
	pthread_mutex_unlock(&all->turn);
	return code;
}

int changes_hold_functions(struct changes *all, const uint8_t *held, uint32_t n, uint64_t *turned,
			   struct err *err)
{
	int code;

	pthread_mutex_lock(&all->turn);
	code = function_probes_hold(all, held, n, turned, err);
	pthread_mutex_unlock(&all->turn);
	return code;
}

/* ---- what asks ---- */

static uint32_t next_added(void *ctx, uint32_t after)
{
	struct changes *all = ctx;
	uint32_t found = 0;

	pthread_mutex_lock(&all->lock);
	for (size_t i = after; i < all->all.n && !found; i++)
		if (all->all.v[i]->is_there)
			found = (uint32_t)i + 1;
	pthread_mutex_unlock(&all->lock);
	return found;
}

static struct answerer *hold(void *ctx, uint32_t number)
{
	struct changes *all = ctx;
	struct change *c = NULL;

	pthread_mutex_lock(&all->lock);
	if (number <= all->all.n && all->all.v[number - 1]->is_there) {
		c = all->all.v[number - 1];
		c->holds++;
	}
	pthread_mutex_unlock(&all->lock);
	return c ? &c->answerer : NULL;
}

static void release(void *ctx, uint32_t number, uint64_t probes)
{
	struct changes *all = ctx;
	struct change *c;

	pthread_mutex_lock(&all->lock);
	c = all->all.v[number - 1];
	c->probes += probes;
	c->holds--;
	pthread_cond_broadcast(&all->released);
	pthread_mutex_unlock(&all->lock);
}

/* It asks for nothing at its start, and all that it loads later it asks for. */
static void join(void *ctx, pid_t pid)
{
	struct changes *all = ctx;
	struct err err;

	pthread_mutex_lock(&all->turn);
	if (turn_one(all, pid, &err))
		server_note_untraced(all->server, pid, NULL, err.msg);
	for (size_t i = 0; i < all->all.n; i++) {
		struct change *c = all->all.v[i];

		if (c->is_there && visit_one(all, c, pid, change_process_add, &err) < 0)
			server_note_untraced(all->server, pid, NULL, err.msg);
	}
	pthread_mutex_unlock(&all->turn);
}

/* ---- what is late: --no-wait ---- */

/* So many are planned side by side, and come at one stop. */
#define LATE_AT_ONCE 8u

typedef VEC(struct module_wish) late_modules;

static int smallest_first(const void *a, const void *b)
{
	const struct module_wish *x = a, *y = b;
	uint64_t n = x->module->file.size, k = y->module->file.size;

	return n < k ? -1 : n > k;
}

static void list_late(struct changes *all, late_modules *out)
{
	pthread_mutex_lock(&all->modules->lock);
	vec_for(&all->modules->all, m)
		if ((*m)->is_late && !(*m)->has_come)
			*vec_push(out) = (struct module_wish){*m, true};
	pthread_mutex_unlock(&all->modules->lock);
}

/* Not all at once: the largest would make the others wait. */
static void choose_late(struct changes *all, late_modules *out)
{
	list_late(all, out);
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), smallest_first);
	out->n = out->n > LATE_AT_ONCE ? LATE_AT_ONCE : out->n;
}

/* Side by side, where that is worth it. */
static void plan_late(struct changes *all, const late_modules *late)
{
	struct err err;

	modules_prepare(all->modules, late->v, late->n);
	for (size_t i = 0; i < late->n; i++) {
		struct module *m = late->v[i].module;

		if (modules_plan(all->modules, m, true, &err))
			server_note_untraced(all->server, 0, m->path, err.msg);
	}
}

/*
 * From now on they are traced; those that have no plan are noted already.  A module that was asked for after
 * list_late() has come as well if a process got it in this round.
 */
static void note_come(struct changes *all)
{
	late_modules late = {0};

	list_late(all, &late);
	vec_for(&late, w) {
		struct module *m = w->module;
		bool tried, planned;

		pthread_mutex_lock(&m->lock);
		planned = m->full && !m->full_code;
		tried = m->full || m->full_code;
		pthread_mutex_unlock(&m->lock);
		pthread_mutex_lock(&all->modules->lock);
		m->has_come = tried;
		pthread_mutex_unlock(&all->modules->lock);
		if (planned)
			all->note_module(all->note_ctx, m->path);
	}
	vec_free(&late);
}

/* False: nothing was left to be planned. */
static bool catch_up(struct changes *all)
{
	late_modules late = {0};
	unsigned met;
	struct err err;
	bool more;

	choose_late(all, &late);
	plan_late(all, &late);
	pthread_mutex_lock(&all->turn);
	if (changes_start_surgeon(all, &err))
		server_note_untraced(all->server, 0, NULL, err.msg);
	else
		visit_all(all, NULL, change_process_catch_up, true, &met, &err);
	note_come(all);
	pthread_mutex_unlock(&all->turn);
	more = late.n;
	vec_free(&late);
	return more;
}

static bool is_over(struct changes *all)
{
	pthread_mutex_lock(&all->lock);
	const bool over = all->is_over;
	pthread_mutex_unlock(&all->lock);
	return over;
}

static void *late_thread(void *arg)
{
	struct changes *all = arg;

	pthread_setname_np(pthread_self(), "kron-late");
	pthread_mutex_lock(&all->lock);
	while (!all->is_over) {
		if (!all->is_late) {
			pthread_cond_wait(&all->late, &all->lock);
			continue;
		}
		all->is_late = false;
		pthread_mutex_unlock(&all->lock);
		while (catch_up(all) && !is_over(all))
			;
		pthread_mutex_lock(&all->lock);
	}
	pthread_mutex_unlock(&all->lock);
	return NULL;
}

static void tell_late(void *ctx)
{
	struct changes *all = ctx;

	pthread_mutex_lock(&all->lock);
	all->is_late = true;
	pthread_cond_signal(&all->late);
	pthread_mutex_unlock(&all->lock);
}

/* What asked before somebody listened is late, too. */
static void begin_late(struct changes *all)
{
	all->is_late = true;
	all->has_thread = !pthread_create(&all->late_thread, NULL, late_thread, all);
	if (!all->has_thread)
		server_note_untraced(all->server, 0, NULL,
				     "kron could not make a thread to plan what is late");
}

void changes_stop(struct changes *all)
{
	char *why;

	if (!all->has_thread)
		return;
	pthread_mutex_lock(&all->lock);
	all->is_over = true;
	pthread_cond_signal(&all->late);
	pthread_mutex_unlock(&all->lock);
	pthread_join(all->late_thread, NULL);
	all->has_thread = false;
	vec_for(&all->modules->all, m) {
		if (!(*m)->is_late || (*m)->has_come)
			continue;
		why = xasprintf("%s: the recording ended before its plan was ready (--no-wait)",
				(*m)->path);
		server_note_untraced(all->server, 0, (*m)->path, why);
		xfree(why);
	}
}

void changes_begin(struct changes *all)
{
	pthread_mutex_init(&all->turn, NULL);
	pthread_mutex_init(&all->lock, NULL);
	pthread_cond_init(&all->released, NULL);
	pthread_cond_init(&all->late, NULL);
	pthread_mutex_init(&all->no_files.lock, NULL);
	all->added = (struct added_probes){all, next_added, hold, release, join, tell_late};
	server_set_added(all->server, &all->added);
	if (all->modules->selection->no_wait)
		begin_late(all);
}

/* ---- list ---- */

/* The files that have it: the first, and how many besides. */
static char *module_of(const struct change *c)
{
	const char *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < c->modules.all.n; i++) {
		const struct module *m = c->modules.all.v[i];

		if (!m->probes.patched)
			continue;
		first = first ? first : m->path;
		n++;
	}
	return n > 1 ? xasprintf("%s and %zu more", first, n - 1) : xstrdup(first ? first : "");
}

/* In processes that run, and in libraries that they have loaded. */
static uint64_t count_places(struct changes *all, struct change *c)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	uint64_t n = 0;

	while (d && (e = readdir(d))) {
		const struct change_process p = visit_process(all, c, atoi(e->d_name));

		if (p.pid > 0 && change_process_is_ours(&p))
			n += change_process_places(&p);
	}
	if (d)
		closedir(d);
	return n;
}

static void show_added(struct changes *all, struct change *c, FILE *out, struct json *j)
{
	const char *object = c->set.specs.v[0].object.text;
	char *module = module_of(c);
	struct change_line v = {.name = c->name,
				.spec = c->text,
				.module = module,
				.level = c->set.specs.v[0].level,
				.places = count_places(all, c),
				.since_ns = c->since_ns};

	if (!v.places)
		v.waits = object ? object : "a program that has it";
	change_line_show(&v, out, j);
	xfree(module);
}

void changes_list(struct changes *all, bool json, FILE *out)
{
	struct json writer = JSON_INIT(out), *j = json ? &writer : NULL;

	if (j)
		json_open(j, '[');
	else
		change_line_head(out);
	first_probes_list(all, out, j);
	vec_for(&all->all, c)
		if ((*c)->is_there)
			show_added(all, *c, out, j);
	if (j)
		json_close(j, ']');
}

/* ---- the end ---- */

void changes_unplaced(struct changes *all, void (*tell)(const struct change *c, const char *why))
{
	vec_for(&all->all, c) {
		const struct probe_results *r = &(*c)->modules.results;

		if ((*c)->is_there && !(*c)->probes)
			tell(*c, r->n && r->v[0].notes.n ? r->v[0].notes.v[0] : NULL);
	}
}

void changes_end(struct changes *all)
{
	vec_for(&all->all, c)
		free_change(*c);
	vec_free(&all->all);
	if (all->starts_surgeon)
		surgeon_end(all->surgeon);
}
