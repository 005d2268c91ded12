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
#include "collect/changes/added_functions.h"
#include "collect/changes/change_line.h"
#include "collect/changes/first_probes.h"
#include "collect/changes/function_probes.h"
#include "collect/changes/late.h"
#include "collect/changes/turn.h"
#include "collect/changes/visit.h"
#include "collect/modules/claims.h"
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
	vec_free(&c->globs);
	xfree(c->words);
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
	if (c->words)
		added_functions_prepare(c, all);
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
	c->is_placed = false;
	while (!is_there && c->holds)
		pthread_cond_wait(&all->released, &all->lock);
	pthread_mutex_unlock(&all->lock);
}

static void set_placed(struct changes *all, struct change *c)
{
	pthread_mutex_lock(&all->lock);
	c->is_placed = true;
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

static int explain_nothing(struct change *c, bool begun, unsigned met, struct err *err)
{
	const struct probe_results *r = &c->modules.results;

	if (!met && !begun) {
		err_set(err, 0, "%s: no program has started yet: the probe comes with it", c->text);
		return 0;
	}
	if (!met)
		return err_set(err, ESRCH, "no process of this recording runs that kron can reach");
	if (c->words)
		return added_functions_explain(c, err);
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
	if (code || c->probes) /* in a process, at least once */
		return code;
	return explain_nothing(c, begun, met, err);
}

static int place(struct changes *all, struct change *c, struct err *err)
{
	unsigned others;
	struct err other = {{0}};
	const int code = place_everywhere(all, c, err);

	if (!code)
		return 0;
	set_there(all, c, false);
	if (!visit_all(all, c, change_process_remove, true, &others, &other)) {
		forget_files(c);
		claims_release(&c->modules); /* else some process has them still */
	}
	return code;
}

/* Its plans are what they would be now. */
static bool may_return(struct change *c)
{
	return !c->words || claims_retake(&c->modules);
}

/* One that was there before has its plans still, and its events' numbers.  NULL: there are too many. */
static struct change *settle_on(struct changes *all, struct change *fresh)
{
	for (size_t i = 0; i < all->all.n; i++) {
		struct change *c = all->all.v[i];

		if (strcmp(c->text, fresh->text) || !may_return(c))
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

/* It has been read.  It comes, or is freed. */
static int add_change(struct changes *all, struct change *fresh, struct err *err)
{
	const uint64_t since = all->now(all->note_ctx);
	struct change *c = settle_on(all, fresh);
	int code;

	if (!c) {
		free_unused(fresh);
		return err_set(err, E2BIG, "this recording has had %u probes added: no more",
			       NUMBERS);
	}
	code = place(all, c, err);
	if (code && c->words) { /* what started meanwhile had them */
		added_functions_note(c, all, since, true);
		added_functions_note(c, all, all->now(all->note_ctx), false);
	}
	if (code)
		return code;
	c->since_ns = clock_ns(CLOCK_MONOTONIC) - all->begin_ns;
	changes_note(all, c, true);
	set_placed(all, c);
	if (!c->words)
		return 0;
	added_functions_note(c, all, since, true);
	added_functions_say_rest(c, err);
	return 0;
}

static int add(struct changes *all, const char *spec, struct err *err)
{
	struct change *c = xcalloc(1, sizeof(*c));
	int code = read_spec(c, all, spec, err);

	if (!code && (find(all, c->name) || first_probes_has(all, c->name)))
		code = err_set(err, EEXIST, "there is a probe %s already", c->name);
	if (!code)
		code = changes_start_surgeon(all, err);
	if (!code)
		code = first_probes_wake(all, &c->set.specs.v[0], err);
	if (code == FIRST_PROBES_NONE)
		return add_change(all, c, err);
	free_unused(c);
	return code;
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

static int take_change_away(struct changes *all, struct change *c, struct err *err)
{
	const uint64_t since = all->now(all->note_ctx);
	unsigned met;
	int code = c->words ? added_functions_check_waiting(c, all, err) : 0;

	if (code)
		return code;
	set_there(all, c, false);
	code = visit_all(all, c, change_process_remove, true, &met, err);
	if (code) {
		set_there(all, c, true);
		set_placed(all, c);
		return code;
	}
	forget_files(c);
	claims_release(&c->modules);
	changes_note(all, c, false);
	if (c->words)
		added_functions_note(c, all, since, false);
	return 0;
}

static int take_away(struct changes *all, const char *name, struct err *err)
{
	struct change *c = find(all, name);

	if (c)
		return take_change_away(all, c, err);
	if (first_probes_has(all, name))
		return first_probes_remove(all, name, err);
	return explain_unknown(all, name, err);
}

int changes_remove(struct changes *all, const char *name, struct err *err)
{
	int code;

	pthread_mutex_lock(&all->turn);
	code = take_away(all, name, err);
	pthread_mutex_unlock(&all->turn);
	return code;
}

static int add_functions(struct changes *all, const char *words, struct err *err)
{
	struct change *c = xcalloc(1, sizeof(*c));
	int code = added_functions_read(c, all, words, err);

	c->selection.tactics = tactics_of(all->modules->selection);
	if (!code && find(all, c->name))
		code = err_set(err, EEXIST, "%s was added already", c->name);
	if (!code)
		code = changes_start_surgeon(all, err);
	if (!code)
		return add_change(all, c, err);
	free_unused(c);
	return code;
}

/* Those of the recording wake, and those that it did not choose come. */
static int wake_or_add(struct changes *all, const char *words, struct err *err)
{
	const bool has_libraries = strchr(words, '\n');
	struct err woken = {{0}}, added = {{0}};
	int slept = -ENOENT, code;

	if (!has_libraries)
		slept = function_probes_turn(all, words, true, &woken);
	*err = woken;
	if (slept && slept != -ENOENT && slept != -EEXIST)
		return slept;
	code = add_functions(all, words, &added);
	if (slept) {
		*err = added;
		return code;
	}
	/* there were perhaps no others */
	if (code != -ENOENT && code != -EEXIST && added.msg[0])
		err_set(err, 0, "%s%s%s", woken.msg, woken.msg[0] ? "; " : "", added.msg);
	return 0;
}

/* Functions that were added go together: *stays: a change of which the glob means only some. */
static int remove_functions(struct changes *all, const char *glob, const struct change **stays,
			    bool *gone, struct err *err)
{
	int code = 0;

	for (size_t i = 0; i < all->all.n && !code; i++) {
		struct change *c = all->all.v[i];
		const enum added_functions_meant meant = added_functions_meant(c, glob);

		if (meant == ADDED_FUNCTIONS_SOME)
			*stays = c;
		if (meant != ADDED_FUNCTIONS_ALL)
			continue;
		code = take_change_away(all, c, err);
		*gone = *gone || !code;
	}
	return code;
}

/* Those of the recording sleep, and those that were added go. */
static int sleep_or_remove(struct changes *all, const char *glob, struct err *err)
{
	const struct change *stays = NULL;
	bool gone = false;
	int code = remove_functions(all, glob, &stays, &gone, err);

	if (code)
		return code;
	code = function_probes_turn(all, glob, false, err);
	if (code != -ENOENT && code != -EEXIST)
		return code;
	if (gone) {
		*err = (struct err){{0}};
		code = 0;
	}
	if (stays)
		err_set(err, 0,
			"functions that were added together go together: `kron ctl probe rm -F '%s'`",
			stays->globs.v[0]);
	return code;
}

int changes_turn_functions(struct changes *all, const char *words, bool wakes, struct err *err)
{
	int code;

	pthread_mutex_lock(&all->turn);
	code = wakes ? wake_or_add(all, words, err) : sleep_or_remove(all, words, err);
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

/* ---- its begin and end ---- */

void changes_begin(struct changes *all)
{
	pthread_mutex_init(&all->turn, NULL);
	pthread_mutex_init(&all->lock, NULL);
	pthread_cond_init(&all->released, NULL);
	pthread_cond_init(&all->late, NULL);
	pthread_mutex_init(&all->no_files.lock, NULL);
	all->added = (struct added_probes){all, next_added, hold, release, join, late_tell};
	server_set_added(all->server, &all->added);
	if (all->modules->selection->no_wait)
		late_begin(all);
}

void changes_stop(struct changes *all)
{
	late_stop(all);
}

/* ---- list ---- */

/* The files that have it: the first, and how many besides. */
static char *module_of(const struct change *c)
{
	const char *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < c->modules.all.n; i++) {
		const struct module *m = c->modules.all.v[i];

		if (!m->probes.patched && !m->nselected)
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
	const struct probe_spec *spec = c->words ? NULL : &c->set.specs.v[0];
	const char *object = spec ? spec->object.text : NULL;
	char *module = module_of(c);
	struct change_line v = {.name = c->name,
				.spec = c->text,
				.module = module,
				.level = spec ? spec->level : all->default_level,
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
