/* SPDX-License-Identifier: MIT */
/*
 * segment.c - shared memory of a board, collector's side.  See segment.h.
 *
 * Pages are had in this order, each by posix_fallocate(): ctl, chunk_state, the first slots of
 * the process table, the first chunks.  The 32 MiB of board addresses stay a hole.
 */
#define _GNU_SOURCE
#include "collect/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "board/gate.h"

#define PROCS_START 512u
#define TABLES_SIZE (KRON_POOL_OFFSET - KRON_CTL_OFFSET)
#define MIB (1024.0 * 1024.0)

static uint64_t shm_free_bytes(void)
{
	struct statvfs v;

	if (statvfs("/dev/shm", &v))
		return 0;
	if (v.f_blocks == 0) /* a tmpfs without a limit */
		return UINT64_MAX / 4;
	return (uint64_t)v.f_bavail * v.f_frsize;
}

uint64_t segment_default_buffer(void)
{
	uint64_t limit = 1ull << 30;
	uint64_t half_shm = shm_free_bytes() / 2;
	uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 4;

	if (half_shm < limit)
		limit = half_shm;
	if (ram < limit)
		limit = ram;
	return limit;
}

static uint32_t chunks_of_buffer(uint64_t buffer)
{
	uint64_t n = buffer / KRON_CHUNK_SIZE;

	if (n < SEGMENT_CHUNKS_MIN)
		return SEGMENT_CHUNKS_MIN;
	return n > KRON_CHUNKS_MAX ? KRON_CHUNKS_MAX : (uint32_t)n;
}

static int map_segment(struct segment *seg, struct err *err)
{
	uint64_t pool_len = (uint64_t)seg->chunks_max * KRON_CHUNK_SIZE;
	uint8_t *tables = mmap(NULL, TABLES_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, seg->fd,
			       KRON_CTL_OFFSET);
	uint8_t *pool;

	if (tables == MAP_FAILED)
		return err_set(err, errno, "cannot map the board segment %s: %s", seg->name,
			       strerror(errno));
	pool = mmap(NULL, pool_len, PROT_READ | PROT_WRITE, MAP_SHARED, seg->fd, KRON_POOL_OFFSET);
	if (pool == MAP_FAILED) {
		int code = errno;

		munmap(tables, TABLES_SIZE);
		return err_set(err, code, "cannot map the %.0f MiB pool of the board segment: %s",
			       (double)pool_len / MIB, strerror(code));
	}
	seg->ctl = (struct kron_ctl *)tables;
	seg->states = (uint64_t *)(tables + (KRON_STATES_OFFSET - KRON_CTL_OFFSET));
	seg->procs = (struct kron_proc *)(tables + (KRON_PROCS_OFFSET - KRON_CTL_OFFSET));
	seg->pool = pool;
	return 0;
}

static int get_pages(struct segment *seg, uint64_t off, uint64_t len)
{
	int code;

	do
		code = posix_fallocate(seg->fd, (off_t)off, (off_t)len);
	while (code == EINTR);
	return -code;
}

static int get_first_pages(struct segment *seg, struct err *err)
{
	int code = get_pages(seg, KRON_CTL_OFFSET, 0x1000 + 8ull * seg->chunks_max);

	if (!code)
		code = get_pages(seg, KRON_PROCS_OFFSET, PROCS_START * sizeof(struct kron_proc));
	if (code)
		return err_set(err, -code, "no room in /dev/shm for the board's tables: %s",
			       strerror(-code));
	seg->procs_ready = PROCS_START;
	return 0;
}

static void fill_ctl(struct segment *seg, const struct segment_options *opt, const uint8_t *random)
{
	struct kron_ctl *ctl = seg->ctl;

	ctl->version = KRON_SEGMENT_VERSION;
	ctl->when_full = opt->when_full;
	ctl->segment_size = seg->size;
	memcpy(ctl->session, random, sizeof(ctl->session));
	ctl->collector_pid = getpid();
	ctl->node = opt->node;
	ctl->chunks_max = seg->chunks_max;
	ctl->next_seq = 1;
	ctl->next_uid = 1;
	ctl->filter = opt->filter & 0xffff;
	ctl->config = KRON_CONFIG_DEFAULT;
	kron_gate_recompute(ctl);
	/* Last: who finds the magic number finds the rest. */
	__atomic_store_n(&ctl->magic, KRON_SEGMENT_MAGIC, __ATOMIC_RELEASE);
}

/* Name and create it; the name is random, so O_EXCL fails only by accident or by malice. */
static int create_object(struct segment *seg, struct err *err)
{
	uint64_t id;

	for (int attempt = 0; attempt < 8; attempt++) {
		if (getrandom(&id, sizeof(id), 0) != sizeof(id))
			return err_set(err, EIO, "no random numbers for a segment name");
		snprintf(seg->name, sizeof(seg->name), "/kron-%016" PRIx64, id);
		seg->fd = shm_open(seg->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (seg->fd >= 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	return err_set(err, errno, "cannot create shared memory in /dev/shm: %s", strerror(errno));
}

/*
 * ftruncate() without the limit on file sizes: that one is about files on disk, and the
 * segment is some 34 MiB at least.  Only around this call: the trace obeys the limit.
 */
static int set_size(int fd, uint64_t size)
{
	struct rlimit old, none = {RLIM_INFINITY, RLIM_INFINITY};
	int code = 0;

	getrlimit(RLIMIT_FSIZE, &old);
	if (setrlimit(RLIMIT_FSIZE, &none)) { /* only root may raise the hard one */
		none.rlim_cur = none.rlim_max = old.rlim_max;
		setrlimit(RLIMIT_FSIZE, &none);
	}
	if (ftruncate(fd, (off_t)size))
		code = -errno;
	setrlimit(RLIMIT_FSIZE, &old);
	return code;
}

static int fill_segment(struct segment *seg, const struct segment_options *opt, struct err *err)
{
	uint8_t random[sizeof(seg->ctl->session)];
	uint32_t got;
	int code;

	code = set_size(seg->fd, seg->size);
	if (code)
		return err_set(err, -code, "cannot size the board segment: %s", strerror(-code));
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return err_set(err, EIO, "no random numbers for a session");
	code = get_first_pages(seg, err);
	if (!code)
		code = map_segment(seg, err);
	if (code)
		return code;
	fill_ctl(seg, opt, random);
	got = segment_grow(seg, SEGMENT_CHUNKS_START);
	if (got < SEGMENT_CHUNKS_MIN)
		return err_set(err, ENOSPC,
			       "/dev/shm has room for %u of the %u chunks (64 KiB each) that a "
			       "recording needs at least",
			       got, SEGMENT_CHUNKS_MIN);
	return 0;
}

int segment_create(struct segment *seg, const struct segment_options *opt, struct err *err)
{
	uint64_t room = shm_free_bytes();
	uint64_t tables = TABLES_SIZE;
	int code;

	memset(seg, 0, sizeof(*seg));
	seg->chunks_max = chunks_of_buffer(opt->buffer ? opt->buffer : segment_default_buffer());
	room = room > tables ? room - tables : 0;
	if ((uint64_t)seg->chunks_max * KRON_CHUNK_SIZE > room) {
		seg->chunks_max = chunks_of_buffer(room);
		seg->pool_limited = true;
	}
	seg->size = KRON_WINDOW_SIZE + (uint64_t)seg->chunks_max * KRON_CHUNK_SIZE;
	code = create_object(seg, err);
	if (code)
		return code;
	code = fill_segment(seg, opt, err);
	if (code) {
		segment_unlink(seg);
		segment_close(seg);
	}
	return code;
}

static bool is_segment_name(const char *name)
{
	return !strncmp(name, "/kron-", 6) && strlen(name) == 22 &&
	       strspn(name + 6, "0123456789abcdef") == 16;
}

static int check_ctl(const struct segment *seg, struct err *err)
{
	const struct kron_ctl *ctl = seg->ctl;

	if (ctl->magic != KRON_SEGMENT_MAGIC)
		return err_set(err, EINVAL, "%s is no board segment", seg->name);
	if (ctl->version != KRON_SEGMENT_VERSION)
		return err_set(err, EINVAL,
			       "%s is a board segment of version %u, this kron reads %u", seg->name,
			       ctl->version, KRON_SEGMENT_VERSION);
	return 0;
}

/* All that will be read: a page that is missing after all would be a SIGBUS on a full /dev/shm.
 * Those that are there stay as they are. */
static int get_pages_again(struct segment *seg, struct err *err)
{
	int code = get_pages(seg, KRON_CTL_OFFSET, 0x1000 + 8ull * seg->chunks_max);

	if (!code)
		code = get_pages(seg, KRON_PROCS_OFFSET, KRON_PROCS_MAX * sizeof(struct kron_proc));
	if (!code && segment_ready(seg))
		code = get_pages(seg, KRON_POOL_OFFSET,
				 (uint64_t)segment_ready(seg) * KRON_CHUNK_SIZE);
	if (code)
		return err_set(err, -code, "cannot read the board segment %s: %s", seg->name,
			       strerror(-code));
	seg->procs_ready = KRON_PROCS_MAX;
	return 0;
}

int segment_open(struct segment *seg, const char *name, struct err *err)
{
	struct stat st;
	uint64_t chunks;
	int code;

	memset(seg, 0, sizeof(*seg));
	seg->fd = -1;
	if (!is_segment_name(name))
		return err_set(err, EINVAL, "\"%.64s\" is no name of a board segment", name);
	snprintf(seg->name, sizeof(seg->name), "%s", name);
	seg->fd = shm_open(name, O_RDWR | O_CLOEXEC, 0);
	if (seg->fd < 0)
		return err_set(err, errno, "cannot open the board segment %s: %s", name,
			       strerror(errno));
	if (fstat(seg->fd, &st)) {
		code = err_set(err, errno, "%s: %s", name, strerror(errno));
		goto fail;
	}
	chunks = st.st_size > (off_t)KRON_WINDOW_SIZE
			 ? ((uint64_t)st.st_size - KRON_WINDOW_SIZE) / KRON_CHUNK_SIZE
			 : 0;
	if (!S_ISREG(st.st_mode) || chunks == 0) {
		code = err_set(err, EINVAL, "%s is too small for a board segment", name);
		goto fail;
	}
	seg->size = (uint64_t)st.st_size;
	seg->chunks_max = chunks > KRON_CHUNKS_MAX ? KRON_CHUNKS_MAX : (uint32_t)chunks;
	code = map_segment(seg, err);
	if (!code)
		code = check_ctl(seg, err);
	if (!code)
		code = get_pages_again(seg, err);
	if (!code)
		return 0;
fail:
	segment_close(seg);
	return code;
}

uint32_t segment_grow(struct segment *seg, uint32_t n)
{
	uint32_t ready = segment_ready(seg);

	if (n > seg->chunks_max - ready)
		n = seg->chunks_max - ready;
	/* Halve the wish until /dev/shm grants it. */
	while (n && get_pages(seg, KRON_POOL_OFFSET + (uint64_t)ready * KRON_CHUNK_SIZE,
			      (uint64_t)n * KRON_CHUNK_SIZE))
		n /= 2;
	if (!n)
		return 0;
	for (uint32_t i = ready; i < ready + n; i++)
		__atomic_store_n(&seg->states[i], KRON_CHUNK_FREE, __ATOMIC_RELEASE);
	/* Release: who reads the new number finds the states; partner: the runtime's claim. */
	__atomic_store_n(&seg->ctl->chunks_ready, ready + n, __ATOMIC_RELEASE);
	__atomic_fetch_add(&seg->ctl->free_count, (int32_t)n, __ATOMIC_ACQ_REL);
	return n;
}

void segment_grow_procs(struct segment *seg)
{
	if (segment_procs_ready(seg) < KRON_PROCS_MAX &&
	    !get_pages(seg, KRON_PROCS_OFFSET, KRON_PROCS_MAX * sizeof(struct kron_proc)))
		/* Release: who reads it finds pages; partner: tasks.c. */
		__atomic_store_n(&seg->procs_ready, KRON_PROCS_MAX, __ATOMIC_RELEASE);
}

void segment_set_sampling(struct segment *seg, bool on)
{
	if (on)
		__atomic_or_fetch(&seg->ctl->csr, KRON_CSR_SAMPLING, __ATOMIC_ACQ_REL);
	else
		__atomic_and_fetch(&seg->ctl->csr, ~KRON_CSR_SAMPLING, __ATOMIC_ACQ_REL);
	kron_gate_recompute(seg->ctl);
}

void segment_unlink(struct segment *seg)
{
	if (seg->name[0])
		shm_unlink(seg->name);
	seg->name[0] = 0;
}

void segment_close(struct segment *seg)
{
	if (seg->pool)
		munmap(seg->pool, (uint64_t)seg->chunks_max * KRON_CHUNK_SIZE);
	if (seg->ctl)
		munmap(seg->ctl, TABLES_SIZE);
	if (seg->fd >= 0)
		close(seg->fd);
	seg->pool = NULL;
	seg->ctl = NULL;
	seg->fd = -1;
}
