/* SPDX-License-Identifier: MIT */
/*
 * lanes.c - the recorder's part of a board, seen from outside.  See lanes.h and object.h.
 *
 * Which processes have lanes?  Only a traced process (and the recorder) maps the chunk pool of the object, so its line in
 * /proc/PID/maps gives it away, in whatever pid namespace it calls itself something else:
 *
 *   7f55c0000000-7f55c4000000 ---s 02200000 00:1a 4711   /dev/shm/kron-board.1000.default
 *                                  ^ >= KRON_POOL_OFFSET  ^ inode; else /memfd:kron-<16 hex>
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "board/bus/lanes.h"
#include "board/bus/object.h"

static bool is_pool_line(const char *line, const struct stat *st)
{
	unsigned major_number, minor_number;
	uint64_t offset, inode;

	return sscanf(line, "%*x-%*x %*s %" SCNx64 " %x:%x %" SCNu64, &offset, &major_number,
		      &minor_number, &inode) == 4 &&
	       offset >= KRON_POOL_OFFSET && inode == st->st_ino &&
	       makedev(major_number, minor_number) == st->st_dev;
}

static bool maps_pool(const char *pid, const struct stat *st)
{
	char path[300], *line = NULL;
	bool found = false;
	size_t cap = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/maps", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (!found && getline(&line, &cap, f) > 0)
		found = is_pool_line(line, st);
	free(line);
	fclose(f);
	return found;
}

bool object_has_lanes(int fd, pid_t *who)
{
	struct dirent *e;
	struct stat st;
	DIR *proc;

	*who = 0;
	if (fstat(fd, &st))
		return false;
	proc = opendir("/proc");
	while (!*who && proc && (e = readdir(proc))) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		if (pid > 0 && pid != getpid() && maps_pool(e->d_name, &st))
			*who = pid;
	}
	if (proc)
		closedir(proc);
	return *who != 0;
}

/* ---- what lies there ---- */

static uint64_t object_size(const struct bus *b)
{
	struct stat st;

	return fstat(b->fd, &st) ? 0 : (uint64_t)st.st_size;
}

static void count_chunks(const struct kron_ctl *ctl, uint64_t size, struct lanes_view *l)
{
	const uint64_t *states =
		(const void *)((const uint8_t *)ctl + (KRON_STATES_OFFSET - KRON_CTL_OFFSET));
	uint64_t fit = size > KRON_POOL_OFFSET ? (size - KRON_POOL_OFFSET) / KRON_CHUNK_SIZE : 0;
	uint32_t ready = __atomic_load_n(&ctl->chunks_ready, __ATOMIC_ACQUIRE);
	uint32_t limit = __atomic_load_n(&ctl->chunks_max, __ATOMIC_RELAXED);

	if (fit > KRON_CHUNKS_MAX)
		fit = KRON_CHUNKS_MAX;
	l->chunks_max = limit < fit ? limit : (uint32_t)fit;
	for (uint32_t i = 0; i < ready && i < fit; i++) {
		unsigned state =
			kron_chunk_word_state(__atomic_load_n(&states[i], __ATOMIC_RELAXED));

		l->free += state == KRON_CHUNK_FREE;
		l->owned += state == KRON_CHUNK_OWNED;
		l->full += state == KRON_CHUNK_FULL;
	}
}

/* Slots are claimed from the first on, and given back: as many as there were processes. */
static void count_processes(const struct kron_ctl *ctl, struct lanes_view *l)
{
	const struct kron_proc *p =
		(const void *)((const uint8_t *)ctl + (KRON_PROCS_OFFSET - KRON_CTL_OFFSET));
	uint32_t uids = __atomic_load_n(&ctl->next_uid, __ATOMIC_RELAXED);

	l->started = uids ? uids - 1 : 0;
	l->lost = __atomic_load_n(&ctl->lost_unowned, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < l->started && i < KRON_PROCS_MAX; i++) {
		uint64_t state = __atomic_load_n(&p[i].state, __ATOMIC_RELAXED);

		l->live += (state & 0xff) == KRON_PROC_LIVE;
		l->lost += __atomic_load_n(&p[i].lost, __ATOMIC_RELAXED);
	}
}

uint32_t lanes_counts_used(const struct kron_ctl *ctl)
{
	uint32_t used = __atomic_load_n(&ctl->counts_used, __ATOMIC_ACQUIRE);
	uint32_t ready = __atomic_load_n(&ctl->counts_ready, __ATOMIC_ACQUIRE);

	if (used > ready)
		used = ready;
	return used < KRON_COUNTS_MAX ? used : KRON_COUNTS_MAX;
}

void lanes_count(const struct kron_ctl *ctl, uint64_t out[KRON_COUNTERS])
{
	const struct kron_counts *table =
		(const void *)((const uint8_t *)ctl + (KRON_COUNTS_OFFSET - KRON_CTL_OFFSET));
	uint32_t used = lanes_counts_used(ctl);

	for (unsigned k = 0; k < KRON_COUNTERS; k++) {
		out[k] = __atomic_load_n(&ctl->counts[k], __ATOMIC_RELAXED);
		for (uint32_t i = 0; i < used * KRON_COUNT_BANKS; i++)
			out[k] += __atomic_load_n(
				&table[i / KRON_COUNT_BANKS].n[i % KRON_COUNT_BANKS][k],
				__ATOMIC_RELAXED);
	}
}

void lanes_look(const struct bus *b, struct lanes_view *l)
{
	const struct object o = {.fd = b->fd, .held = {b->keeper, b->keeper_fd}};
	const struct kron_ctl *ctl = b->board.ctl;
	struct object_recorder r;

	memset(l, 0, sizeof(*l));
	if (!ctl)
		return;
	object_find_recorder(&o, ctl, &r);
	l->orphaned = r.killed;
	if (r.killed || !r.pid)
		return;
	l->recorder_pid = r.pid;
	l->bus = ctl->bus;
	if (l->bus == KRON_BUS_LANE)
		lanes_count(ctl, l->counts);
	l->constant_time = ctl->constant_time != 0;
	memcpy(l->dir, r.dir, sizeof(l->dir));
	count_chunks(ctl, object_size(b), l);
	count_processes(ctl, l);
}

void lanes_set_wait(struct bus *b, bool wait)
{
	uint32_t *when_full = &b->board.ctl->when_full;
	uint32_t before = __atomic_load_n(when_full, __ATOMIC_ACQUIRE);
	uint32_t now = wait ? KRON_WHEN_FULL_WAIT : KRON_WHEN_FULL_DISCARD;

	if (before != KRON_WHEN_FULL_WRAP && before != now)
		__atomic_compare_exchange_n(when_full, &before, now, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED);
}

/* It looks at them each time that it wakes. */
void lanes_tell_gates(struct bus *b)
{
	uint32_t *wake = &b->board.ctl->wake_collector;

	__atomic_fetch_add(wake, 1, __ATOMIC_ACQ_REL);
	syscall(SYS_futex, wake, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

const char *lanes_bus_word(uint32_t bus)
{
	static const char *const words[] = {"lane", "exact", "device"};

	return bus < 3 ? words[bus] : "?";
}
