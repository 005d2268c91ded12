/* SPDX-License-Identifier: MIT */
/*
 * core.c - see core.h.
 *
 *   core ──► bytes of "/memfd:kron-<16 hex>" ──► memory, at the same offsets ──► chunks that are left out
 *
 * All threads of the process had ended when the kernel wrote the core.  Other processes of the same recording may have
 * run on: their chunks can be half of one state and half of a later one.  They, and the recorder, which clears the
 * oldest, may have taken chunks of the process's meanwhile.  So with others about only its own chunks count, and of each
 * thread those without a gap up to the end.
 *
 * The tables come before the pool in the core, and pages in the order of their addresses.  So a chunk that was taken
 * since has no number, or a later one than was given out by then; what it held is missing, and older ones that lie
 * before it may be there still.  Numbers are given to all threads in turn: where one between two chunks of a thread
 * is nowhere, it may have been that thread's.  One that was taken while it was copied begins as it was, and ends
 * empty, or with times that belong after the thread's next chunk.
 *
 * A thread that died while it began a chunk owns none.  Its last ones are full, and may be among those that were
 * taken: where that cannot be ruled out, no end of it is known, and nothing of it counts.
 */
#define _GNU_SOURCE
#include "collect/recover/core.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <kron/segment.h>
#include "base/search.h"
#include "base/vec.h"
#include "board/bus/object.h"
#include "collect/drain.h"
#include "inject/elf/elf_core.h"

#define SEGMENT_MOST (KRON_POOL_OFFSET + (uint64_t)KRON_CHUNKS_MAX * KRON_CHUNK_SIZE)
#define COPIED_AT_ONCE (1u << 20)

/* ---- the bytes ---- */

static bool is_zero(const uint8_t *p, size_t n)
{
	return !p[0] && !memcmp(p, p + 1, n - 1);
}

static int copy_part(int to, int core, const struct elf_core_part *p, void *room)
{
	uint64_t done = 0;

	while (done < p->size) {
		uint64_t left = p->size - done;
		size_t want = left < COPIED_AT_ONCE ? (size_t)left : COPIED_AT_ONCE;
		ssize_t got = pread(core, room, want, (off_t)(p->in_core + done));

		if (got <= 0)
			return got ? -errno : -EIO;
		/* what is zero takes no memory */
		if (!is_zero(room, (size_t)got) &&
		    pwrite(to, room, (size_t)got, (off_t)(p->off + done)) != got)
			return errno ? -errno : -EIO;
		done += (uint64_t)got;
	}
	return 0;
}

/* Where the last part ends.  A process has each byte mapped once, or twice at most; and the tables all of them. */
static int look_at_parts(const struct elf_core_parts *parts, uint64_t *end, bool *is_cut)
{
	uint64_t all = 0, tables = 0;

	*end = 0;
	for (size_t i = 0; i < parts->v.n; i++) {
		const struct elf_core_part *p = &parts->v.v[i];

		if (p->off > SEGMENT_MOST || p->size > SEGMENT_MOST - p->off)
			return -EINVAL;
		all += p->size;
		*is_cut |= p->is_cut;
		if (p->off <= KRON_CTL_OFFSET && p->off + p->size > tables)
			tables = p->off + p->size;
		if (all > 2 * SEGMENT_MOST)
			return -EINVAL;
		*end = p->off + p->size > *end ? p->off + p->size : *end;
	}
	return tables >= KRON_POOL_OFFSET && *end > KRON_POOL_OFFSET ? 0 : -ENODATA;
}

static int copy_parts(int to, int core, const struct elf_core_parts *parts, bool *is_cut)
{
	uint64_t end;
	void *room;
	int code = look_at_parts(parts, &end, is_cut);

	if (code)
		return code;
	end = KRON_POOL_OFFSET +
	      (end - KRON_POOL_OFFSET + KRON_CHUNK_SIZE - 1) / KRON_CHUNK_SIZE * KRON_CHUNK_SIZE;
	if (ftruncate(to, (off_t)end))
		return -errno;
	room = xmalloc(COPIED_AT_ONCE);
	for (size_t i = 0; i < parts->v.n && !code; i++)
		code = copy_part(to, core, &parts->v.v[i], room);
	xfree(room);
	return code;
}

/* ---- what counts ---- */

struct image {
	uint8_t *base;
	uint64_t size;
	uint32_t chunks;
	pid_t pid;
};

static const struct kron_proc *procs_of(const struct image *m)
{
	return (const void *)(m->base + KRON_PROCS_OFFSET);
}

static uint64_t *states_of(const struct image *m)
{
	return (void *)(m->base + KRON_STATES_OFFSET);
}

static struct kron_chunk *chunk_of(const struct image *m, uint32_t i)
{
	return (void *)(m->base + KRON_POOL_OFFSET + (uint64_t)i * KRON_CHUNK_SIZE);
}

static bool is_live(const struct kron_proc *p)
{
	return (p->state & 0xff) == KRON_PROC_LIVE && !p->left_tsc;
}

/*
 * Did another process of the recording run?  -ESRCH: which one it is cannot be told, for in another pid namespace its
 * number may be another process's, too.  (A program that another has executed has a slot of its own.)
 */
static int has_others(const struct image *m, bool *out)
{
	const struct kron_proc *procs = procs_of(m);
	uint32_t own = 0, others = 0;
	bool is_foreign = false;

	for (uint32_t i = 0; i < KRON_PROCS_MAX; i++) {
		if (!is_live(&procs[i]))
			continue;
		own += procs[i].pid == m->pid;
		others += procs[i].pid != m->pid;
		is_foreign |= procs[i].pid == m->pid && procs[i].flags & KRON_PROC_FOREIGN_PIDNS;
	}
	*out = others > (own ? 0 : 1);
	return (*out && !own) || (own > 1 && is_foreign) ? -ESRCH : 0;
}

static bool is_its_own(const struct image *m, uint64_t word)
{
	const uint32_t slot = kron_chunk_word_slot(word);

	return slot < KRON_PROCS_MAX && procs_of(m)[slot].pid == m->pid;
}

static void leave_out(const struct image *m, uint32_t i)
{
	states_of(m)[i] = KRON_CHUNK_ABSENT;
	chunk_of(m, i)->seq = 0;
}

struct own_chunk {
	uint64_t thread, seq;
	uint32_t i;
};

static int by_thread_and_seq(const void *a, const void *b)
{
	const struct own_chunk *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

struct numbers {
	VEC(uint64_t) v; /* of all chunks that are as they were, sorted */
	uint64_t last;   /* the last that was given out */
	VEC(uint64_t)
	taken; /* the threads of each of the process's own that was taken; of one twice, if several */
};

/* How many of them are less than n. */
static size_t numbers_below(const struct numbers *all, uint64_t n)
{
	return partition_point(i, all->v.n, all->v.v[i] < n);
}

/* Is the chunk of each number after this one, up to that, as it was? */
static bool has_all_between(const struct numbers *all, uint64_t from, uint64_t to)
{
	return numbers_below(all, to + 1) - numbers_below(all, from + 1) == to - from;
}

static bool has_lost_any(const struct numbers *all, uint64_t thread)
{
	for (size_t i = 0; i < all->taken.n; i++)
		if (all->taken.v[i] == thread)
			return true;
	return false;
}

/* Of its thread's that are as they were, it is the newest: of all that thread's, too? */
static bool is_its_end(const struct image *m, const struct numbers *all, const struct own_chunk *a)
{
	return kron_chunk_word_state(states_of(m)[a->i]) == KRON_CHUNK_OWNED ||
	       !has_lost_any(all, a->thread) || has_all_between(all, a->seq, all->last);
}

/* The same thread's: nothing was between them. */
static bool are_neighbours(const struct image *m, const struct numbers *all,
			   const struct own_chunk *a, const struct own_chunk *next)
{
	const struct kron_chunk *c = chunk_of(m, a->i);
	const struct kron_sample *first = (const void *)(chunk_of(m, next->i) + 1);

	return first->head && chunk_stored(c) == KRON_CHUNK_SAMPLES &&
	       chunk_last_time(c) <= kron_sample_time(first) &&
	       (!all->taken.n || has_all_between(all, a->seq, next->seq));
}

/* One that was taken was full: its first record says on which processor it began, the others are samples. */
static void note_taken(uint64_t word, struct core_memory *out)
{
	out->left_out++;
	if (kron_chunk_word_state(word) == KRON_CHUNK_FULL)
		out->lost += KRON_CHUNK_SAMPLES - 1;
}

static void keep_whole_ends(const struct image *m, const struct numbers *all,
			    const struct own_chunk *v, size_t n, struct core_memory *out)
{
	bool is_gap = false;

	for (size_t i = n; i-- > 0;) {
		if (i + 1 == n || v[i + 1].thread != v[i].thread)
			is_gap = !is_its_end(m, all, &v[i]);
		else if (!is_gap)
			is_gap = !are_neighbours(m, all, &v[i], &v[i + 1]);
		if (!is_gap)
			continue;
		note_taken(states_of(m)[v[i].i], out);
		leave_out(m, v[i].i); /* nobody looks at what is in it after that */
	}
}

static void keep_its_own(const struct image *m, bool others, struct core_memory *out)
{
	const struct kron_ctl *ctl = (const void *)(m->base + KRON_CTL_OFFSET);
	struct numbers all = {.last = ctl->next_seq};
	VEC(struct own_chunk) own = {0};

	for (uint32_t i = 0; i < m->chunks; i++) {
		const uint64_t word = states_of(m)[i], seq = chunk_of(m, i)->seq;
		const bool is_whole = seq && seq <= ctl->next_seq;

		if (!chunk_is_owned(word)) { /* or it was when the tables were copied */
			if (seq)
				chunk_of(m, i)->seq = 0;
			continue;
		}
		if (is_whole)
			*vec_push(&all.v) = seq;
		if (others && !is_its_own(m, word)) {
			out->left_out++;
		} else if (is_whole) {
			*vec_push(&own) = (struct own_chunk){kron_chunk_word_owner(word), seq, i};
			continue;
		} else if (kron_chunk_word_state(word) == KRON_CHUNK_FULL) {
			*vec_push(&all.taken) = kron_chunk_word_owner(word);
			note_taken(word, out);
		}
		leave_out(m, i);
	}
	if (all.v.n)
		qsort(all.v.v, all.v.n, sizeof(*all.v.v), compare_uint64);
	if (own.n)
		qsort(own.v, own.n, sizeof(*own.v), by_thread_and_seq);
	keep_whole_ends(m, &all, own.v, own.n, out);
	vec_free(&all.v);
	vec_free(&all.taken);
	vec_free(&own);
}

static bool is_segment(const struct image *m)
{
	const struct kron_ctl *ctl = (const void *)(m->base + KRON_CTL_OFFSET);

	return ctl->magic == KRON_SEGMENT_MAGIC && ctl->version == KRON_SEGMENT_VERSION;
}

static bool has_any_samples(const struct image *m)
{
	for (uint32_t i = 0; i < m->chunks; i++)
		if (chunk_is_owned(states_of(m)[i]) && chunk_of(m, i)->seq &&
		    chunk_stored(chunk_of(m, i)) > 1)
			return true;
	return false;
}

static int choose(int fd, pid_t pid, struct core_memory *out)
{
	struct image m = {.pid = pid};
	const off_t size = lseek(fd, 0, SEEK_END);
	bool others = false;
	int code;

	if (size < 0)
		return -errno;
	m.size = (uint64_t)size;
	m.chunks = (uint32_t)((m.size - KRON_POOL_OFFSET) / KRON_CHUNK_SIZE);
	m.base = mmap(NULL, m.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (m.base == MAP_FAILED)
		return -errno;
	code = is_segment(&m) ? has_others(&m, &others) : -EINVAL;
	if (!code)
		keep_its_own(&m, others, out);
	if (!code && !has_any_samples(&m))
		code = -ENOMSG;
	munmap(m.base, m.size);
	return code;
}

/* ---- whose it is ---- */

/* "/memfd:kron-<16 hex> (deleted)" */
static bool is_recorders_memory(const char *path, char *object, size_t size)
{
	static const char before[] = "/memfd:", after[] = " (deleted)";
	const size_t len = strlen(path);

	if (strncmp(path, before, strlen(before)) || len < strlen(before) + strlen(after) ||
	    strcmp(path + len - strlen(after), after))
		return false;
	snprintf(object, size, "/%.*s", (int)(len - strlen(before) - strlen(after)),
		 path + strlen(before));
	return object_is_recorders_own(object);
}

/* It may have been written by the process: a path at most. */
static void read_dir(const struct elf_core *core, const struct elf_core_parts *parts, char *dir,
		     size_t size)
{
	const uint64_t at = KRON_CTL_OFFSET + OBJECT_NOTE_OFFSET;
	struct object_note note;

	dir[0] = 0;
	for (size_t i = 0; i < parts->v.n; i++) {
		const struct elf_core_part *p = &parts->v.v[i];

		if (p->off <= at && p->size >= sizeof(note) &&
		    at - p->off <= p->size - sizeof(note) &&
		    pread(core->fd, &note, sizeof(note), (off_t)(p->in_core + at - p->off)) ==
			    (ssize_t)sizeof(note))
			snprintf(dir, size, "%.*s", (int)sizeof(note.dir) - 1, note.dir);
	}
	for (const char *c = dir; *c; c++)
		if (dir[0] != '/' || (unsigned char)*c < ' ' || *c == 0x7f) {
			dir[0] = 0;
			break;
		}
}

bool core_find_origin(const char *path, struct core_origin *out)
{
	struct elf_core_parts parts = {0};
	struct elf_core core;
	bool found = false;

	if (elf_core_open(&core, path, NULL))
		return false;
	vec_for(&core.maps, m) {
		if (found || !is_recorders_memory(m->path, out->object, sizeof(out->object)))
			continue;
		found = elf_core_find(&core, m->path, &parts);
		read_dir(&core, &parts, out->dir, sizeof(out->dir));
	}
	vec_free(&parts.v);
	elf_core_close(&core);
	return found;
}

/* ---- together ---- */

static int explain(int code, bool was_mapped, const char *path, const char *object, struct err *err)
{
	if (!was_mapped)
		return err_set(
			err, ENOENT,
			"%s has not mapped the shared memory %s of this trace: it is the core of "
			"another process, or recorded at another time",
			path, object + 1);
	if (code == -ENODATA)
		return err_set(
			err, ENOENT,
			"%s lacks the samples: it was cut short, or coredump_filter left shared "
			"memory out (see core(5)), or they were not recorded with --flight or "
			"--when-full wrap",
			path);
	if (code == -ENOMSG)
		return err_set(err, ENOENT,
			       "%s has no samples of its process: others have stored there since",
			       path);
	if (code == -ESRCH)
		return err_set(
			err, ESRCH,
			"which of the recorded processes %s is of cannot be told: it does not say "
			"its number, or it is that of several, in several pid namespaces",
			path);
	if (code == -EINVAL)
		return err_set(
			err, EINVAL,
			"%s is damaged, or of a program that another version of kron recorded: "
			"what it has of %s makes no sense",
			path, object + 1);
	return err_set(err, -code, "cannot read %s: %s", path, strerror(-code));
}

int core_memory_open(struct core_memory *m, const char *path, const char *object, struct err *err)
{
	struct elf_core_parts parts = {0};
	char name[OBJECT_NAME + 32];
	struct elf_core core;
	bool was_mapped;
	int code;

	*m = (struct core_memory){.fd = -1};
	if (!object_is_recorders_own(object))
		return err_set(err, ENOENT,
			       "%s has no samples of this trace: they are in the board's file, %s, "
			       "where kron recover looks without a core",
			       path, object + 1);
	code = elf_core_open(&core, path, err);
	if (code)
		return code;
	snprintf(name, sizeof(name), "/memfd:%s (deleted)", object + 1);
	was_mapped = elf_core_find(&core, name, &parts);
	m->fd = was_mapped ? memfd_create(object + 1, MFD_CLOEXEC) : -1;
	if (m->fd < 0)
		code = was_mapped ? -errno : -ENOENT;
	else
		code = copy_parts(m->fd, core.fd, &parts, &m->is_cut);
	if (!code)
		code = choose(m->fd, core.pid, m);
	vec_free(&parts.v);
	elf_core_close(&core);
	if (!code)
		return 0;
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
	return explain(code, was_mapped, path, object, err);
}
