/* SPDX-License-Identifier: MIT */
/*
 * remains.c - see remains.h.
 *
 * The process may have made all of it by itself, to have its writes done by root: so a command file has to be of
 * the kernel's own file system and sealed, as ours are, and is checked before it is used; what is
 * executed is compared when all threads stand still (implant_is_own()).
 */
#define _GNU_SOURCE
#include "collect/live/remains.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "collect/attach/command_file.h"

#define RUNTIME "/memfd:kron"
#define FILES_MAX (1ull << 29) /* bytes of all of them */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static void take_none(void *ctx)
{
	(void)ctx;
}

/* Of memfd_create(): no other process answers for what is read there.  0: it cannot be known. */
static uint64_t memfd_device(void)
{
	const int fd = memfd_create("kron-remains", MFD_CLOEXEC);
	struct stat st;
	const bool known = fd >= 0 && !fstat(fd, &st);

	if (fd >= 0)
		close(fd);
	return known ? st.st_dev : 0;
}

/* It stays what it is while it is read. */
static bool is_sealed(int fd, uint64_t dev, uint64_t ino, uint64_t room)
{
	const int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	return seals >= 0 && (seals & SEALS) == SEALS && !fstat(fd, &st) && st.st_dev == dev &&
	       st.st_ino == ino && st.st_size > 0 && (uint64_t)st.st_size <= room;
}

/* What is mapped there, without asking the file's own system for anything.  The mapping may be another one by now. */
static int open_mapped(pid_t pid, const struct process_mapping *m)
{
	struct statx st;
	char path[96];
	int at, fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64,
		 process_memory_thread(pid), m->start, m->end);
	at = open(path, O_PATH | O_CLOEXEC);
	if (at < 0)
		return -1;
	if (!statx(at, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &st) &&
	    makedev(st.stx_dev_major, st.stx_dev_minor) == m->dev) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	close(at);
	return fd;
}

/* -1: it cannot be read, or is none of ours. */
static int open_file(pid_t pid, const struct process_mapping *m, uint64_t dev, uint64_t *room)
{
	const int fd = dev && m->dev == dev ? open_mapped(pid, m) : -1;
	struct stat st;

	if (fd < 0)
		return -1;
	if (!is_sealed(fd, m->dev, m->ino, *room) || !command_file_is_sane(fd) || fstat(fd, &st)) {
		close(fd);
		return -1;
	}
	*room -= (uint64_t)st.st_size;
	return fd;
}

static int take_files(struct operation *o, const struct process_maps *maps, struct err *err)
{
	const uint64_t dev = memfd_device();
	uint64_t number, room = FILES_MAX;

	for (size_t i = 0; i < maps->n; i++) {
		const struct process_mapping *m = &maps->v[i];
		int fd;

		if (!process_mapping_is_block(m, o->session, &number) ||
		    live_file_of(o->files, m, number) >= 0)
			continue;
		fd = open_file(o->pid, m, dev, &room);
		if (fd < 0)
			return err_set(err, EBUSY,
				       "process %d has kron's runtime of an ended recording still, "
				       "and the files that it came from cannot be read: as root, "
				       "kron takes it out",
				       o->pid);
		*vec_push(&o->files->v) = (struct live_file){number, fd, m->dev, m->ino};
	}
	return 0;
}

static int look(struct operation *o, const struct process_maps *maps, struct err *err)
{
	for (size_t i = 0; i < maps->n; i++) {
		const struct process_mapping *m = &maps->v[i];

		if (!o->implant.code && process_mapping_is_exec(m) && !strcmp(m->path, RUNTIME))
			implant_at(&o->implant, m->start);
		if (!o->session)
			o->session = process_mapping_session(m);
	}
	if (!o->implant.code)
		return err_set(err, EBUSY,
			       "process %d has kron's runtime of an ended recording still: it can "
			       "be recorded once it is started again",
			       o->pid);
	return take_files(o, maps, err);
}

int remains_take_out(pid_t pid, uint64_t *stood_ns, struct err *err)
{
	struct live_files files = {.take_more = take_none};
	struct operation o = {.pid = pid, .files = &files, .remains = true};
	struct process_maps maps;
	int code = process_maps_read(&maps, pid, err);

	if (code)
		return code;
	code = look(&o, &maps, err);
	process_maps_free(&maps);
	if (!code)
		code = operation_detach(&o, err);
	*stood_ns = o.stood_ns;
	vec_for(&files.v, f)
		close(f->fd);
	vec_free(&files.v);
	return code;
}
