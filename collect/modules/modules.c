/* SPDX-License-Identifier: MIT */
/*
 * modules.c - see modules.h.
 *
 * Opening a module: the path in /proc/PID/maps may be a name in another mount namespace, and by
 * now another file may stand there.  So several ways to the file are tried, and what is opened
 * must be the very inode that is mapped.
 */
#define _GNU_SOURCE
#include "collect/modules/function_sleep.h"
#include "collect/modules/modules.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file_bytes.h"
#include "base/jobs.h"
#include "base/log.h"
#include "base/opt.h"
#include "collect/modules/callsite_process.h"
#include "collect/modules/choices.h"
#include "collect/modules/claims.h"
#include "collect/modules/settle.h"
#include "inject/elf/aot_image.h"
#include "inject/bind/bind.h"
#include "inject/plan/callsite.h"
#include "inject/disk/patch_info.h"

#define PAGE 4096ull

void modules_init(struct modules *ms, const struct selection *sel, struct journal *j)
{
	memset(ms, 0, sizeof(*ms));
	pthread_mutex_init(&ms->lock, NULL);
	ms->whole = ms;
	ms->selection = sel;
	ms->journal = j;
	plan_cache_open(&ms->cache, getenv("XDG_CACHE_HOME"), getenv("HOME"));
	ms->cache.tactics = sel->tactics;
	probe_results_init(&ms->results, sel->probes);
	ms->asleep = sel->probes ? xcalloc(sel->probes->specs.n + 1, 1) : NULL;
	if (getenv("KRON_CACHE_SIZE"))
		opt_size(getenv("KRON_CACHE_SIZE"), &ms->cache.max_bytes);
}

void modules_branch(struct modules *ms, struct modules *whole, const struct selection *sel)
{
	modules_init(ms, sel, whole->journal);
	ms->whole = whole;
}

static void free_module(struct module *m)
{
	if (m->img)
		elf_image_close(m->img);
	if (m->hooks)
		plan_free(m->hooks);
	if (m->full)
		plan_free(m->full);
	module_probes_free(&m->probes);
	callsite_process_forget(m);
	xfree(m->selected);
	xfree(m->levels);
	xfree(m->timed);
	xfree(m->kept);
	xfree(m->segments);
	xfree(m->path);
	xfree(m->soname);
	xfree(m);
}

void modules_free(struct modules *ms)
{
	vec_for(&ms->all, p)
		free_module(*p);
	vec_free(&ms->all);
	vec_free(&ms->events);
	claims_free(ms);
	vec_for(&ms->listed, l)
		xfree(l->rows);
	vec_free(&ms->listed);
	vec_for(&ms->sonames, s)
		xfree(s->soname);
	vec_free(&ms->sonames);
	probe_results_free(&ms->results);
	xfree(ms->asleep);
	function_sleep_free(ms);
	plan_cache_close(&ms->cache);
}

/* ---- which file is it? ---- */

/* How /proc/PID/maps would show fd: map a page here and look. */
static bool maps_identity(int fd, uint64_t *dev, uint64_t *ino)
{
	void *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	const struct process_mapping *m;
	struct process_maps maps;
	bool found = false;

	if (page == MAP_FAILED)
		return false;
	if (!process_maps_read(&maps, getpid(), NULL)) {
		m = process_maps_at(&maps, (uint64_t)(uintptr_t)page);
		if (m) {
			*dev = m->dev;
			*ino = m->ino;
			found = true;
		}
		process_maps_free(&maps);
	}
	munmap(page, PAGE);
	return found;
}

static bool is_mapped_file(int fd, const struct stat *st, const struct process_mapping *map)
{
	uint64_t dev, ino;

	if (st->st_dev == map->dev && st->st_ino == map->ino)
		return true;
	return maps_identity(fd, &dev, &ino) && dev == map->dev && ino == map->ino;
}

static int open_candidate(const char *path, const struct process_mapping *map, struct stat *st)
{
	int fd = file_open_plain(path);

	if (fd < 0)
		return -errno;
	if (fstat(fd, st) || !S_ISREG(st->st_mode) || !is_mapped_file(fd, st, map)) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

/*
 * Names under which the file may be reached, best first: the kernel prints paths as seen from
 * our own root; a process of another mount namespace has it below its root.
 */
enum way { WAY_PATH, WAY_ROOT, WAY_EXE, WAY_MAP_FILES, WAY_COUNT };

static char *way_to_file(enum way way, pid_t pid, const struct process_mapping *map, bool is_exe)
{
	switch (way) {
	case WAY_PATH:
		return map->deleted ? NULL : xstrdup(map->path);
	case WAY_ROOT:
		return map->deleted ? NULL
				    : xasprintf("/proc/%d/root%s", process_memory_thread(pid),
						map->path);
	case WAY_EXE:
		return is_exe ? xasprintf("/proc/%d/exe", process_memory_thread(pid)) : NULL;
	default: /* needs a capability */
		return xasprintf("/proc/%d/map_files/%" PRIx64 "-%" PRIx64,
				 process_memory_thread(pid), map->start, map->end);
	}
}

static int open_mapped_file(pid_t pid, const struct process_mapping *map, bool is_exe,
			    struct stat *st, struct err *err)
{
	int first = 0;

	for (enum way way = WAY_PATH; way < WAY_COUNT; way++) {
		char *path = way_to_file(way, pid, map, is_exe);
		int fd;

		if (!path)
			continue;
		fd = open_candidate(path, map, st);
		xfree(path);
		if (fd >= 0)
			return fd;
		/* That another file stands there now says more than that we may not look. */
		if (!first || fd == -ESTALE)
			first = fd;
	}
	if (process_mapping_is_memfd(map)) /* but for the program itself (/proc/PID/exe) */
		return err_set(err, -first, "%s: only root may read a library without a name: %s",
			       map->path, strerror(-first));
	if (map->deleted || first == -ESTALE || first == -ENOENT)
		return err_set(err, ESTALE, "%s was replaced on disk since it was loaded",
			       map->path);
	return err_set(err, -first, "cannot open %s: %s", map->path, strerror(-first));
}

/* ---- entries ---- */

/* Clocks of filesystems step by less: what was changed so long ago has another ctime after a change. */
#define YOUNG_NS 2000000000ll

static bool is_young(const struct file_identity *f)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec - (int64_t)f->ctime_ns < YOUNG_NS;
}

/* Under the lock. */
static struct module *find_module(struct modules *ms, const struct file_identity *f,
				  const struct process_mapping *map)
{
	struct module *found = NULL;

	vec_for(&ms->all, p)
		if (!(*p)->is_gone && !memcmp(&(*p)->file, f, sizeof(*f)) &&
		    (*p)->maps_dev == map->dev && f->ino == map->ino)
			found = *p;
	return found;
}

/* The usual case needs one stat: no open, no ELF.  NULL: the file is new, or may be. */
static struct module *find_known(struct modules *ms, const struct process_mapping *map)
{
	struct module *found = NULL;
	struct file_identity f;
	struct stat st;

	if (map->deleted || stat(map->path, &st))
		return NULL;
	file_identify(&f, &st);
	pthread_mutex_lock(&ms->lock);
	found = find_module(ms, &f, map);
	if (found && found->is_young)
		found = NULL;
	pthread_mutex_unlock(&ms->lock);
	return found;
}

static char *soname_of(const struct elf_image *img)
{
	const char *soname = elf_image_soname(img);

	return soname ? xstrdup(soname) : NULL;
}

static struct module *new_module(struct elf_image *img, const struct process_mapping *map)
{
	struct module *m = xcalloc(1, sizeof(*m));

	m->file = img->file;
	m->is_young = m->has_content = is_young(&m->file);
	if (m->has_content)
		content_of(&m->content, img->bytes, img->size);
	m->maps_dev = map->dev;
	m->path = xstrdup(map->path);
	m->soname = soname_of(img);
	m->nsegments = img->nsegments;
	m->segments = xcalloc(img->nsegments, sizeof(*m->segments));
	memcpy(m->segments, img->segments, img->nsegments * sizeof(*m->segments));
	m->has_start = patch_info_has_start(img);
	m->is_static = img->kind == ELF_KIND_STATIC;
	m->is_go = img->is_go;
	m->img = img;
	pthread_mutex_init(&m->lock, NULL);
	return m;
}

static bool has_same_content(const struct module *m, const struct elf_image *img)
{
	struct content now;

	if (!m->has_content)
		return true;
	content_of(&now, img->bytes, img->size);
	return content_is(&now, &m->content);
}

/* Is what was opened just now what the other one is?  If so, then so it is from now on. */
static bool is_same_file(struct module *m, const struct elf_image *img)
{
	if (!m->is_young)
		return true;
	m->is_gone = !has_same_content(m, img);
	m->is_young = is_young(&img->file);
	return !m->is_gone;
}

/* Two processes may have come with the same new file: the first entry stays. */
static struct module *add_module(struct modules *ms, struct module *m,
				 const struct process_mapping *map)
{
	struct module *other;

	pthread_mutex_lock(&ms->lock);
	other = find_module(ms, &m->file, map);
	if (other && !is_same_file(other, m->img))
		other = NULL;
	if (!other)
		*vec_push(&ms->all) = m;
	pthread_mutex_unlock(&ms->lock);
	if (!other)
		return m;
	free_module(m);
	return other;
}

static void refuse(struct module *m, const char *why)
{
	m->full_code = m->hooks_code = err_set(&m->why, ENOTSUP, "%s %s", m->path, why);
}

/*
 * Its tools are static programs, linked to an address that is theirs.  What memcheck puts in the place of
 * strlen() and others is in its own text, and runs in the program's world, where our stubs are not.
 */
static bool is_valgrind_tool(const struct module *m)
{
	uint64_t lo, hi;

	module_span(m, &lo, &hi);
	return lo == VALGRIND_BASE;
}

int modules_get(struct modules *ms, struct module **out, pid_t pid,
		const struct process_mapping *map, bool is_exe, struct err *err)
{
	struct elf_image *img;
	struct stat st;
	int fd, code;

	*out = find_known(ms, map);
	if (*out)
		return 0;
	fd = open_mapped_file(pid, map, is_exe, &st, err);
	if (fd < 0)
		return fd;
	code = elf_image_open_fd(&img, fd, map->path, err);
	close(fd);
	if (code)
		return code;
	*out = new_module(img, map);
	if (img->has_text_relocs)
		refuse(*out, "has text relocations: its code in memory is not its file's");
	else if (is_exe && is_valgrind_tool(*out))
		refuse(*out,
		       "is a tool of valgrind, which runs some of its own code as the program's");
	(*out)->is_exe = is_exe;
	*out = add_module(ms, *out, map);
	return 0;
}

/* ---- names ---- */

static bool is_same_soname(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* Under the lock.  NULL: the file is not known. */
static struct known_soname *find_soname(struct modules *ms, const struct file_identity *f,
					const struct process_mapping *map)
{
	struct known_soname *found = NULL;

	vec_for(&ms->sonames, s)
		if (s->is_sure && s->maps_dev == map->dev && !memcmp(&s->file, f, sizeof(*f)))
			found = s;
	return found && f->ino == map->ino ? found : NULL;
}

/* What was given out stays: of a file that was young there may be several. */
static const char *keep_soname(struct modules *ms, const struct elf_image *img,
			       const struct process_mapping *map)
{
	const char *soname = elf_image_soname(img);
	struct known_soname *kept = NULL;

	pthread_mutex_lock(&ms->lock);
	vec_for(&ms->sonames, s)
		if (s->maps_dev == map->dev && !memcmp(&s->file, &img->file, sizeof(s->file)) &&
		    is_same_soname(s->soname, soname))
			kept = s;
	if (!kept) {
		kept = vec_push(&ms->sonames);
		*kept = (struct known_soname){img->file, map->dev, soname_of(img), false};
	}
	kept->is_sure |= !is_young(&img->file);
	soname = kept->soname;
	pthread_mutex_unlock(&ms->lock);
	return soname;
}

static const char *read_soname(struct modules *ms, pid_t pid, const struct process_mapping *map,
			       bool is_exe)
{
	const char *soname = NULL;
	struct elf_image *img;
	struct stat st;
	struct err err;
	int fd = open_mapped_file(pid, map, is_exe, &st, &err);

	if (fd < 0)
		return NULL;
	if (!elf_image_open_fd(&img, fd, map->path, &err)) {
		soname = keep_soname(ms, img, map);
		elf_image_close(img);
	}
	close(fd);
	return soname;
}

/* The usual case needs one stat.  A young file may be another one by now: see find_known(). */
struct module_name modules_name_mapping(struct modules *ms, pid_t pid,
					const struct process_mapping *map, bool is_exe)
{
	struct module_name name = {.path = map->path};
	const struct known_soname *known = NULL;
	struct file_identity f;
	struct stat st;

	ms = ms->whole;
	if (!map->deleted && !stat(map->path, &st)) {
		file_identify(&f, &st);
		pthread_mutex_lock(&ms->lock);
		known = find_soname(ms, &f, map);
		name.soname = known ? known->soname : NULL;
		pthread_mutex_unlock(&ms->lock);
	}
	if (!known)
		name.soname = read_soname(ms, pid, map, is_exe);
	return name;
}

/* ---- plans ---- */

/* The plan of a file from kron patch is in the file. */
static int take_patched(struct module *m, bool full)
{
	struct patch_info info;
	int code = patch_info_read(&info, m->img, &m->why);

	if (code)
		return code;
	m->patched = true;
	m->block_vaddr = info.block_vaddr;
	m->block_len = info.block_len;
	m->has_jumps = info.has_jumps;
	memcpy(m->block_id, info.id, sizeof(m->block_id));
	*(full ? &m->full : &m->hooks) = info.plan;
	info.plan = NULL;
	if (full) {
		m->levels = info.levels;
		info.levels = NULL;
		module_probes_take(m, &info);
	}
	patch_info_free(&info);
	return 0;
}

static int make_full(struct modules *ms, struct module *m)
{
	const struct module_name name = module_name_of(m);

	if (patch_info_is_there(m->img))
		return take_patched(m, true);
	if (ms->selection->calls)
		return plan_cache_get_counting(&ms->cache, &m->full, m->img, &m->why);
	if (module_probes_want(ms->selection->probes, &name, m->is_exe, m->img)) {
		m->probed = true;
		return module_probes_plan(ms, m, settle_wants_functions(ms->selection, m), &m->why);
	}
	return plan_cache_get(&ms->cache, &m->full, m->img, false, &m->why);
}

/* A module whose code is read as data gets a plan in which every function is refused. */
static int refuse_read(struct module *m)
{
	if (!m->full->nprobes || m->full->probes[0].refusal != REFUSAL_READ)
		return 0;
	plan_free(m->full);
	m->full = NULL;
	return err_set(&m->why, ENOTSUP, "%s " AOT_IMAGE_WHY, m->path);
}

static int make_hooks(struct modules *ms, struct module *m)
{
	if (patch_info_is_there(m->img))
		return take_patched(m, false);
	return plan_cache_get(&ms->cache, &m->hooks, m->img, true, &m->why);
}

static int reopen_image(struct module *m)
{
	struct elf_image *img;
	int code = elf_image_open(&img, m->path, &m->why);

	if (code)
		return code;
	if (memcmp(&img->file, &m->file, sizeof(m->file)) || !has_same_content(m, img)) {
		elf_image_close(img);
		return err_set(&m->why, ESTALE, "%s was replaced on disk since it was loaded",
			       m->path);
	}
	m->img = img;
	return 0;
}

bool modules_wants_probes(struct modules *ms, struct module *m)
{
	const struct module_name name = module_name_of(m);
	bool yes;

	if (!ms->selection->probes)
		return false;
	pthread_mutex_lock(&m->lock);
	if (m->img)
		yes = module_probes_want(ms->selection->probes, &name, m->is_exe, m->img);
	else
		yes = m->probed;
	pthread_mutex_unlock(&m->lock);
	return yes;
}

/* The plan, if nobody has made it yet: under the module's lock. */
static void make_plan(struct modules *ms, struct module *m, bool full)
{
	int *code = full ? &m->full_code : &m->hooks_code;

	if (*code || m->full || (!full && m->hooks))
		return;
	if (!m->img)
		*code = reopen_image(m);
	if (!*code)
		*code = full ? make_full(ms, m) : make_hooks(ms, m);
	if (!*code && full)
		*code = refuse_read(m);
	if (!*code)
		*code = elf_image_check(m->img, &m->why);
	if (m->img)
		elf_image_close(m->img);
	m->img = NULL;
}

bool modules_is_at_hand(struct modules *ms, struct module *m)
{
	bool yes;

	pthread_mutex_lock(&m->lock);
	yes = m->full || m->full_code || !m->img || patch_info_is_there(m->img) ||
	      plan_cache_has(&ms->cache, m->img);
	pthread_mutex_unlock(&m->lock);
	if (!yes) {
		pthread_mutex_lock(&ms->lock);
		m->is_late = true;
		pthread_mutex_unlock(&ms->lock);
	}
	return yes;
}

int modules_plan(struct modules *ms, struct module *m, bool full, struct err *err)
{
	int *code = full ? &m->full_code : &m->hooks_code;

	pthread_mutex_lock(&m->lock);
	make_plan(ms, m, full);
	if (m->full && !m->full_code && !m->settled) { /* also if its hooks are wanted */
		m->full_code = settle_module(ms, m);
		m->settled = true;
	}
	if (*code && err)
		*err = m->why;
	pthread_mutex_unlock(&m->lock);
	return *code;
}

/* ---- many of them ---- */

/* Each takes memory: about four bytes a byte of code.  More processors help within one. */
#define AT_ONCE 8u
/* Less is loaded or made before a thread has started. */
#define WORTH_A_THREAD (1u << 20)

struct preparing {
	struct modules *ms;
	VEC(struct module_wish) wishes;
	size_t next;
};

static int largest_first(const void *a, const void *b)
{
	const struct module_wish *x = a, *y = b;
	uint64_t n = x->module->file.size, k = y->module->file.size;

	return n > k ? -1 : n < k;
}

static void prepare_some(size_t number, void *ctx)
{
	struct preparing *p = ctx;
	size_t i;

	(void)number;
	while ((i = __atomic_fetch_add(&p->next, 1, __ATOMIC_RELAXED)) < p->wishes.n) {
		const struct module_wish *w = &p->wishes.v[i];

		pthread_mutex_lock(&w->module->lock);
		make_plan(p->ms, w->module, w->full);
		pthread_mutex_unlock(&w->module->lock);
	}
}

void modules_prepare(struct modules *ms, const struct module_wish *v, size_t n)
{
	struct preparing p = {.ms = ms};
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++) {
		struct module *m = v[i].module;

		pthread_mutex_lock(&m->lock);
		if (!m->full && (v[i].full || !m->hooks)) {
			*vec_push(&p.wishes) = v[i];
			bytes += v[i].full ? m->file.size : 0;
		}
		pthread_mutex_unlock(&m->lock);
	}
	if (p.wishes.n > 1 && bytes > WORTH_A_THREAD) {
		qsort(p.wishes.v, p.wishes.n, sizeof(*p.wishes.v), largest_first);
		jobs_run(p.wishes.n < AT_ONCE ? p.wishes.n : AT_ONCE, prepare_some, &p);
	}
	vec_free(&p.wishes);
}

int modules_with_image(struct module *m,
		       int (*fn)(struct module *m, const struct elf_image *img, void *ctx,
				 struct err *err),
		       void *ctx, struct err *err)
{
	bool was_open;
	int code = 0;

	pthread_mutex_lock(&m->lock);
	was_open = m->img;
	if (!was_open) {
		struct err why = m->why;

		code = reopen_image(m);
		if (code)
			*err = m->why;
		m->why = why;
	}
	if (!code)
		code = fn(m, m->img, ctx, err);
	if (!code)
		code = elf_image_check(m->img, err);
	if (!was_open && m->img) {
		elf_image_close(m->img);
		m->img = NULL;
	}
	pthread_mutex_unlock(&m->lock);
	return code;
}

/* ---- where it lies ---- */

bool module_bias(const struct module *m, const struct process_mapping *map, uint64_t *bias)
{
	for (size_t i = 0; i < m->nsegments; i++) {
		const struct elf_segment *s = &m->segments[i];
		uint64_t first = s->off & ~(PAGE - 1);
		uint64_t last = (s->off + s->filesz + PAGE - 1) & ~(PAGE - 1);

		if (!(s->flags & PF_X) || map->off < first || map->off >= last)
			continue;
		*bias = map->start - (map->off - s->off + s->vaddr);
		return true;
	}
	return false;
}

void module_span(const struct module *m, uint64_t *lo, uint64_t *hi)
{
	*lo = UINT64_MAX;
	*hi = 0;
	for (size_t i = 0; i < m->nsegments; i++) {
		const struct elf_segment *s = &m->segments[i];
		uint64_t end = s->vaddr + s->memsz;

		*lo = s->vaddr < *lo ? s->vaddr : *lo;
		*hi = end > *hi ? end : *hi;
	}
}

void modules_get_totals(struct modules *ms, struct modules_totals *out)
{
	pthread_mutex_lock(&ms->lock);
	*out = ms->totals;
	pthread_mutex_unlock(&ms->lock);
}

/* They live until the end. */
void modules_each(struct modules *ms, void (*fn)(void *ctx, struct module *m), void *ctx)
{
	VEC(struct module *) all = {0};

	pthread_mutex_lock(&ms->lock);
	vec_add(&all, ms->all.v, ms->all.n);
	pthread_mutex_unlock(&ms->lock);
	vec_for(&all, m) {
		pthread_mutex_lock(&(*m)->lock);
		fn(ctx, *m);
		pthread_mutex_unlock(&(*m)->lock);
	}
	vec_free(&all);
}
