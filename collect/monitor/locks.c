/* SPDX-License-Identifier: MIT */
/*
 * locks.c - see locks.h
 *
 * Layouts of glibc on x86-64 (struct __pthread_mutex_s, struct __pthread_rwlock_arch_t, struct new_sem):
 *
 *   mutex    0 lock   8 owner   16 kind     lock 0: free; of robust and of priority-inheriting ones the owner is in lock
 *   rwlock   0 readers << 3 | waiting | locked for a writer | phase of writers   24 the writer
 *   sem      0 value                        the low half of 64 bits
 */
#define _GNU_SOURCE
#include "collect/monitor/locks.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/str.h"
#include "collect/kernel/process_maps.h"

#define KIND_OWNER_IN_LOCK 0x30u /* PTHREAD_MUTEX_ROBUST_NORMAL_NP, PTHREAD_MUTEX_PRIO_INHERIT_NP */
#define KIND_CEILING 0x40u       /* PTHREAD_MUTEX_PRIO_PROTECT_NP */
#define CEILING_MASK 0xfff80000u
#define PHASE_OF_WRITERS 1u
#define LOCKED_FOR_WRITER 2u
#define READERS_SHIFT 3

static const struct layout {
	const char *name;
	unsigned size;
	const char *columns[LOCK_COLUMNS];
} layouts[] = {
	[LOCK_MUTEX] = {"mutex", 40, {"holder", "waiters"}},
	[LOCK_RWLOCK] = {"rwlock", 56, {"holder", "readers", "waiters"}},
	[LOCK_SEM] = {"sem", 32, {"value", "waiters"}},
};
#define NLAYOUTS (sizeof(layouts) / sizeof(layouts[0]))

/* ---- what is asked for ---- */

static int take_type(struct lock *k, char *text, struct err *err)
{
	char *colon = strrchr(text, ':');

	if (!colon)
		return 0;
	k->is_typed = true;
	for (unsigned i = 0; i < NLAYOUTS; i++) {
		if (strcmp(colon + 1, layouts[i].name))
			continue;
		k->type = (enum lock_type)i;
		*colon = 0;
		return 0;
	}
	return err_set(err, EINVAL, "--lock %s: '%s' is no lock; there are mutex, rwlock, sem",
		       text, colon + 1);
}

static int take_offset(struct lock *k, char *name, struct err *err)
{
	char *plus = strchr(name, '+'), *end;

	if (!plus)
		return 0;
	errno = 0;
	k->offset = strtoull(plus + 1, &end, 0);
	if (plus[1] < '0' || plus[1] > '9' || *end || errno || k->offset % 4)
		return err_set(
			err, EINVAL,
			"--lock %s: '%s' is not where a lock can be in a variable: a number of bytes, by fours",
			name, plus + 1);
	*plus = 0;
	return 0;
}

static int take_symbol(struct locks *l, struct lock *k, const char *name, struct err *err)
{
	for (k->symbol = 0; k->symbol < l->symbols.v.n; k->symbol++)
		if (!strcmp(l->symbols.v.v[k->symbol].name, name))
			return 0;
	return monitor_variables_add(&l->symbols, name, false, err);
}

int monitor_locks_add(struct locks *l, const char *text, struct err *err)
{
	char *name = xstrdup(text);
	struct lock k = {0};
	int code = take_type(&k, name, err);

	k.text = xstrdup(name);
	if (!code && !*name)
		code = err_set(err, EINVAL, "--lock '%s' has no name", text);
	vec_for(&l->v, other)
		if (!code && !strcmp(other->text, k.text))
			code = err_set(err, EINVAL, "--lock %s is there already", k.text);
	code = code ? code : take_offset(&k, name, err);
	code = code ? code : take_symbol(l, &k, name, err);
	xfree(name);
	if (code)
		xfree(k.text);
	else
		*vec_push(&l->v) = k;
	return code;
}

void monitor_lock_columns(const struct lock *k, const char *names[LOCK_COLUMNS])
{
	memcpy(names, layouts[k->type].columns, sizeof(layouts[k->type].columns));
}

static size_t columns_of(const struct lock *k)
{
	size_t n = 0;

	while (n < LOCK_COLUMNS && layouts[k->type].columns[n])
		n++;
	return n;
}

size_t monitor_locks_columns(const struct locks *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->v.n; i++)
		n += columns_of(&l->v.v[i]);
	return n;
}

/* ---- who waits ---- */

struct waiters {
	VEC(uint64_t) at; /* the words that they wait for */
	bool is_known;
};

static bool is_wait(unsigned long op)
{
	switch (op & FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
		return true;
	default:
		return false;
	}
}

/* "202 0x7ffff7fb1080 0x80 ..."; "running" of one that waits for nothing.  False: it cannot be read. */
static bool look_at_thread(struct waiters *w, pid_t pid, int tid)
{
	unsigned long number, at, op;
	char path[80], line[256];
	bool has;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT; /* it has ended */
	errno = 0;
	has = fgets(line, sizeof(line), f);
	fclose(f);
	if (!has)
		return errno == ESRCH || !errno;
	if (sscanf(line, "%lu %lx %lx", &number, &at, &op) == 3 && number == SYS_futex &&
	    is_wait(op))
		*vec_push(&w->at) = at;
	return true;
}

static void look_for_waiters(struct waiters *w, pid_t pid)
{
	char path[64];
	struct dirent *e;
	DIR *d;

	*w = (struct waiters){0};
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	w->is_known = d;
	while (d && (e = readdir(d)))
		if (*e->d_name != '.')
			w->is_known &= look_at_thread(w, pid, atoi(e->d_name));
	if (d)
		closedir(d);
}

static struct reading number(uint64_t n)
{
	return (struct reading){.n = n, .known = true};
}

static struct reading waiters_at(const struct waiters *w, uint64_t start, unsigned size)
{
	uint64_t n = 0;

	for (size_t i = 0; i < w->at.n; i++)
		n += w->at.v[i] >= start && w->at.v[i] - start < size;
	return w->is_known ? number(n) : (struct reading){0};
}

/* ---- what stands in a lock ---- */

static uint32_t word_at(const uint8_t *bytes, unsigned offset)
{
	uint32_t word;

	memcpy(&word, bytes + offset, sizeof(word));
	return word;
}

/* Free, and nobody's; or held, and somebody's: else it is changing hands. */
static struct reading holder_if(bool is_held, uint32_t owner)
{
	return is_held == (owner != 0) ? number(owner) : (struct reading){0};
}

static void read_mutex(const uint8_t *bytes, struct reading *out)
{
	const uint32_t lock = word_at(bytes, 0), owner = word_at(bytes, 8),
		       kind = word_at(bytes, 16);

	if (kind & KIND_OWNER_IN_LOCK)
		out[0] = number(lock & FUTEX_TID_MASK);
	else
		out[0] = holder_if(kind & KIND_CEILING ? lock & ~CEILING_MASK : lock, owner);
}

static void read_rwlock(const uint8_t *bytes, struct reading *out)
{
	const uint32_t state = word_at(bytes, 0), writer = word_at(bytes, 24);
	const bool writes = state & PHASE_OF_WRITERS && state & LOCKED_FOR_WRITER;

	out[0] = holder_if(writes, writer);
	/* in the writers' phase they are those that wait, or that are about to have it */
	if (!(state & PHASE_OF_WRITERS) || writes)
		out[1] = number(writes ? 0 : state >> READERS_SHIFT);
	else if (!(state >> READERS_SHIFT))
		out[1] = number(0);
}

static bool is_usable(const struct lock *k, const struct watched_variable *v)
{
	const uint64_t size = layouts[k->type].size;

	if (!k->is_typed && !k->offset)
		return v->bytes == size;
	return v->bytes >= size && k->offset <= v->bytes - size;
}

static void read_one(const struct locks *l, const struct lock *k, pid_t thread,
		     const struct waiters *w, struct reading *out)
{
	const struct watched_variable *v = &l->symbols.v.v[k->symbol];
	const struct layout *t = &layouts[k->type];
	const size_t n = columns_of(k);
	const uint64_t start = v->addr + k->offset;
	uint8_t bytes[64];
	struct iovec to = {bytes, t->size}, from = {(void *)(uintptr_t)start, t->size};

	memset(out, 0, n * sizeof(*out));
	if (!l->is_glibc || !v->addr || !is_usable(k, v) ||
	    process_vm_readv(thread, &to, 1, &from, 1, 0) != (ssize_t)t->size)
		return;
	if (k->type == LOCK_MUTEX)
		read_mutex(bytes, out);
	else if (k->type == LOCK_RWLOCK)
		read_rwlock(bytes, out);
	else
		out[0] = number(word_at(bytes, 0));
	out[n - 1] = waiters_at(w, start, t->size);
}

/* ---- whose layout it is ---- */

static bool is_glibc(const char *path)
{
	const char *name = str_base_name(path);

	/* "libc-2.31.so" until 2.33; that of 2.25 is the first with these locks */
	return !strcmp(name, "libc.so.6") || !fnmatch("libc-2.2[5-9].so", name, 0) ||
	       !fnmatch("libc-2.3[0-9].so", name, 0);
}

static void look_for_library(struct locks *l, pid_t pid)
{
	struct process_maps maps;
	struct err err;

	if (l->image == l->symbols.image && l->is_glibc)
		return;
	l->image = l->symbols.image;
	l->is_glibc = false;
	if (process_maps_read(&maps, pid, &err))
		return;
	for (size_t i = 0; i < maps.n; i++)
		l->is_glibc |= is_glibc(maps.v[i].path);
	process_maps_free(&maps);
}

void monitor_locks_find(struct locks *l, pid_t pid)
{
	if (!l->v.n)
		return;
	monitor_variables_find(&l->symbols, pid);
	look_for_library(l, pid);
}

void monitor_locks_read(struct locks *l, pid_t pid, struct reading *out)
{
	struct waiters w;
	pid_t thread;

	if (!l->v.n)
		return;
	monitor_locks_find(l, pid);
	look_for_waiters(&w, pid);
	l->has_seen_threads |= w.is_known;
	thread = process_memory_thread(pid);
	for (size_t i = 0; i < l->v.n; i++) {
		read_one(l, &l->v.v[i], thread, &w, out);
		out += columns_of(&l->v.v[i]);
	}
	vec_free(&w.at);
	l->was_alive |= process_image(pid) != 0;
}

const char *monitor_lock_trouble(const struct locks *l, const struct lock *k)
{
	const struct watched_variable *v = &l->symbols.v.v[k->symbol];

	if (!v->was_found && !v->was_sought)
		return "the program ended before it could be looked for";
	if (!v->was_found)
		return v->is_ambiguous ? "there are several static variables of this name"
				       : "the program and its libraries have no such variable";
	if (!is_usable(k, v))
		return k->is_typed || k->offset
			       ? "the variable is too short for it"
			       : "its size is not that of a mutex; say what it is, like NAME:rwlock, or NAME:mutex of one that has more in it";
	if (!l->was_alive)
		return "the program ended before it could be read";
	if (!l->is_glibc)
		return "the program has no libc.so.6 of glibc: how its locks are laid out is not known";
	return l->has_seen_threads
		       ? NULL
		       : "who waits is not known: /proc/PID/task/TID/syscall may not be read";
}

void monitor_locks_free(struct locks *l)
{
	vec_for(&l->v, k)
		xfree(k->text);
	vec_free(&l->v);
	monitor_variables_free(&l->symbols);
}
