/* SPDX-License-Identifier: MIT */
/* unmatched.c - see unmatched.h */
#include "collect/modules/unmatched.h"

#include <elf.h>
#include <string.h>

#include "collect/modules/modules.h"
#include "inject/elf/elf_symbols.h"

/* ---- can it execute another program? ---- */

/* dlopen, too: what comes by it may import the others. */
static const char *const executing[] = {"execl",       "execle",      "execlp",  "execv",
					"execve",      "execveat",    "execvp",  "execvpe",
					"fexecve",     "posix_spawn", "popen",   "dlopen",
					"dlmopen",     "syscall",     "wordexp", "system",
					"posix_spawnp"};

static bool is_executing(const struct elf_symbol *sym, void *ctx)
{
	bool *found = ctx;

	if (sym->shndx != SHN_UNDEF)
		return true;
	for (size_t i = 0; i < sizeof(executing) / sizeof(*executing); i++)
		*found |= !strcmp(sym->name, executing[i]);
	return !*found;
}

static bool file_may_execute(const char *path)
{
	struct elf_image *img;
	bool found = false;
	struct err err;

	if (elf_image_open(&img, path, &err))
		return true;
	elf_symbols_for_each(img, SHT_DYNSYM, is_executing, &found);
	elf_image_close(img);
	return found;
}

/* They have these functions themselves, and use them only for who imports them. */
static bool is_c_library(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return !strncmp(name, "libc.so", 7) || !strncmp(name, "libc-2.", 7) ||
	       !strncmp(name, "ld-linux-", 9) || !strcmp(name, "libkron-rt.so");
}

bool unmatched_may_execute(pid_t pid)
{
	bool has_c_library = false, may = false;
	struct process_maps maps;
	struct err err;

	if (process_maps_read(&maps, pid, &err))
		return true;
	for (size_t i = 0; i < maps.n && !may; i++) {
		const struct process_mapping *m = &maps.v[i];

		if (!process_mapping_is_exec(m) || !m->ino || process_mapping_is_krons(m))
			continue;
		if (is_c_library(m->path))
			has_c_library = true;
		else
			may = file_may_execute(m->path);
	}
	process_maps_free(&maps);
	return may || !has_c_library;
}

/* ---- what has matched nothing ---- */

static void add(struct unmatched *u, char *sentence, bool may_come)
{
	*vec_push(&u->v) = (struct unmatched_item){sentence, may_come};
}

static const struct module *planned_exe(const struct modules *ms)
{
	for (size_t i = 0; i < ms->all.n; i++)
		if (ms->all.v[i]->is_exe && ms->all.v[i]->settled)
			return ms->all.v[i];
	return NULL;
}

static void find_functions(struct unmatched *u, const struct modules *ms, const char *exe,
			   const struct globs *g, const char *option)
{
	const bool more = ms->selection->libraries.n;

	for (size_t i = 0; i < g->n; i++)
		if (!globs_has_found(g, i))
			add(u,
			    xasprintf("no function of %s%s matches %s '%s'", exe,
				      more ? ", or of the libraries that it has loaded so far,"
					   : "",
				      option, g->v[i]),
			    more);
}

/* A glob of -g may mean a library, too. */
static void find_levels(struct unmatched *u, const struct modules *ms, const char *exe)
{
	const struct level_globs *l = &ms->selection->levels;
	const bool more = ms->selection->libraries.n;

	for (size_t i = 0; i < l->globs.n; i++)
		if (!globs_has_found(&l->globs, i))
			add(u,
			    xasprintf("nothing of %s%s matches -g '%u=%s'", exe,
				      more ? ", or of the libraries that it has loaded so far,"
					   : "",
				      l->level[i], l->globs.v[i]),
			    more);
}

static void find_libraries(struct unmatched *u, const struct modules *ms, const char *exe)
{
	const struct globs *g = &ms->selection->libraries;

	for (size_t i = 0; i < g->n; i++)
		if (!globs_has_found(g, i) && strcmp(g->v[i], "*"))
			add(u,
			    xasprintf("no library that %s has loaded so far matches -L '%s'", exe,
				      g->v[i]),
			    true);
}

/* A probe of the user's own in the main executable; those of packs are for whoever has them. */
static bool is_about_exe(const struct probe_spec *s)
{
	return (!strncmp(s->where, "<-p", 3) || !strncmp(s->where, "-e ", 3)) && !s->object.text &&
	       s->place != SPEC_USDT;
}

/* Another probe of the same event found a place. */
static bool has_alternative(const struct modules *ms, size_t spec)
{
	const struct probe_spec *specs = ms->selection->probes->specs.v, *s = &specs[spec];

	for (size_t i = 0; s->event && i < ms->results.n; i++)
		if (ms->results.v[i].places && specs[i].event && !strcmp(specs[i].event, s->event))
			return true;
	return false;
}

/* Or may have one in a library that comes later. */
static bool has_match(const struct modules *ms)
{
	for (size_t i = 0; i < ms->all.n; i++)
		if (ms->all.v[i]->nselected)
			return true;
	for (size_t i = 0; i < ms->results.n; i++)
		if (ms->results.v[i].places || !is_about_exe(&ms->selection->probes->specs.v[i]))
			return true;
	return false;
}

static void find_probes(struct unmatched *u, const struct modules *ms)
{
	const struct probe_results *r = &ms->results;

	for (size_t i = 0; i < r->n; i++) {
		const struct probe_spec *s = &ms->selection->probes->specs.v[i];

		if (!r->v[i].places && r->v[i].notes.n && is_about_exe(s) &&
		    !has_alternative(ms, i))
			add(u, xasprintf("%s: %s", s->where, r->v[i].notes.v[0]), false);
	}
}

/* Of `kron pages`: each library that was named with each function.  -1: another one stands for this one. */
static int pages_found(const struct modules *ms, size_t spec, bool by_function)
{
	const struct probe_spec *specs = ms->selection->probes->specs.v, *s = &specs[spec];
	int found = 0;

	for (size_t i = 0; i < ms->results.n; i++) {
		const struct probe_result *r = &ms->results.v[i];

		if (specs[i].kind != SPEC_PAGES || !specs[i].object.text || !specs[i].function.text)
			continue;
		if (strcmp(by_function ? specs[i].function.text : specs[i].object.text,
			   by_function ? s->function.text : s->object.text))
			continue;
		if (i < spec)
			return -1;
		found |= r->places || (!by_function && r->notes.n);
	}
	return found;
}

static void find_pages(struct unmatched *u, const struct modules *ms, const char *exe)
{
	for (size_t i = 0; i < ms->results.n; i++) {
		const struct probe_spec *s = &ms->selection->probes->specs.v[i];

		if (s->kind != SPEC_PAGES || !s->object.text || !s->function.text)
			continue;
		if (!pages_found(ms, i, false))
			add(u,
			    xasprintf("no library that %s has loaded so far matches '%s'", exe,
				      s->object.text),
			    true);
		if (strcmp(s->function.text, "*") && !pages_found(ms, i, true))
			add(u,
			    xasprintf("no function of %s, or of the libraries that it has loaded "
				      "so far, matches '%s'",
				      exe, s->function.text),
			    true);
	}
}

void unmatched_find(struct unmatched *out, struct modules *ms)
{
	const struct module *exe;

	*out = (struct unmatched){0};
	pthread_mutex_lock(&ms->lock);
	exe = planned_exe(ms);
	if (exe && !ms->selection->probes_only) {
		find_functions(out, ms, exe->path, &ms->selection->only, "-F");
		find_functions(out, ms, exe->path, &ms->selection->except, "-N");
		find_levels(out, ms, exe->path);
	}
	if (exe) {
		find_functions(out, ms, exe->path, &ms->selection->timed, "--timed");
		find_functions(out, ms, exe->path, &ms->selection->keep, "--keep");
		find_libraries(out, ms, exe->path);
	}
	if (exe && ms->selection->probes && !exe->patched)
		find_probes(out, ms);
	if (ms->selection->probes) /* of libraries alone, perhaps: then the program has no plan */
		find_pages(out, ms, exe ? exe->path : "the program");
	out->is_all = exe && !exe->patched && !has_match(ms);
	pthread_mutex_unlock(&ms->lock);
}

void unmatched_free(struct unmatched *u)
{
	vec_for(&u->v, i)
		xfree(i->sentence);
	vec_free(&u->v);
}
