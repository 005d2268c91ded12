/* SPDX-License-Identifier: MIT */
/* remains.c - see remains.h. */
#define _GNU_SOURCE
#include "collect/live/remains.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect/attach/command_file.h"
#include "collect/live/live_code.h"

#define RUNTIME "/memfd:kron"
#define FILE_MAX (1u << 30)

static void take_none(void *ctx)
{
	(void)ctx;
}

/* A copy: the process may write to what it has mapped.  -1: it cannot be read, or is none of ours. */
static int copy_file(pid_t pid, const struct process_mapping *m)
{
	struct stat st;
	char path[96];
	int from, to;
	loff_t at = 0;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, m->start,
		 m->end);
	from = open(path, O_RDONLY | O_CLOEXEC);
	if (from < 0)
		return -1;
	to = memfd_create("kron-remains", MFD_CLOEXEC);
	while (!fstat(from, &st) && st.st_size <= FILE_MAX && at < st.st_size) {
		char bytes[65536];
		const ssize_t n = pread(from, bytes, sizeof(bytes), at);

		if (n <= 0 || pwrite(to, bytes, (size_t)n, at) != n)
			break;
		at += n;
	}
	close(from);
	if (to >= 0 && !command_file_is_sane(to)) {
		close(to);
		to = -1;
	}
	return to;
}

/* Of this very kron: its calls have one form, and its code one length. */
static bool is_own_code(int mem, uint64_t at)
{
	char bytes[4096];

	for (size_t done = 0; done < live_code_size; done += sizeof(bytes)) {
		const size_t left = live_code_size - done;
		const size_t n = left < sizeof(bytes) ? left : sizeof(bytes);

		if (pread(mem, bytes, n, (off_t)(at + done)) != (ssize_t)n ||
		    memcmp(bytes, live_code + done, n))
			return false;
	}
	return true;
}

static int ask_memory(struct operation *o, struct err *err)
{
	struct kron_live_call *call = xcalloc(1, sizeof(*call));
	const size_t len = offsetof(struct kron_live_call, pc);
	char path[64];
	int mem;
	bool ok;

	snprintf(path, sizeof(path), "/proc/%d/mem", o->pid);
	mem = open(path, O_RDONLY | O_CLOEXEC);
	ok = mem >= 0 && is_own_code(mem, o->implant.code) &&
	     pread(mem, call, len, (off_t)o->implant.call) == (ssize_t)len;
	if (mem >= 0)
		close(mem);
	o->go_lo = call->go_lo;
	o->go_hi = call->go_hi;
	o->stays = call->flags & KRON_LIVE_STAYS;
	xfree(call);
	if (!ok)
		return err_set(err, EBUSY,
			       "process %d has the runtime of another kron still: it can be "
			       "recorded once it is started again",
			       o->pid);
	return 0;
}

static int look(struct operation *o, const struct process_maps *maps, struct err *err)
{
	uint64_t number;

	for (size_t i = 0; i < maps->n; i++) {
		const struct process_mapping *m = &maps->v[i];
		int fd;

		if (!o->implant.code && m->perms[2] == 'x' && !strcmp(m->path, RUNTIME))
			implant_at(&o->implant, m->start);
		if (!o->session)
			o->session = process_mapping_session(m);
		if (!o->session || !process_mapping_is_block(m, o->session, &number))
			continue;
		fd = copy_file(o->pid, m);
		if (fd < 0)
			return err_set(err, EBUSY,
				       "process %d has kron's runtime of an ended recording still, "
				       "and the files that it came from cannot be read: as root, "
				       "kron takes it out",
				       o->pid);
		*vec_push(&o->files->v) = (struct live_file){number, fd};
	}
	if (!o->implant.code)
		return err_set(err, EBUSY,
			       "process %d has kron's runtime of an ended recording still: it can "
			       "be recorded once it is started again",
			       o->pid);
	return ask_memory(o, err);
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
