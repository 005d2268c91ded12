/* SPDX-License-Identifier: MIT */
/*
 * segment.c - shared memory of a board, collector's side.  See segment.h.
 *
 * Pages are had in this order, each by posix_fallocate(): ctl, chunk_state, the first slots of
 * the process table, the first chunks, the model; or, in memory of our own, when they are touched.
 * The local memory stays a hole unless samples go there.
 */
#define _GNU_SOURCE
#include "collect/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/log.h"
#include "board/bus/bus.h"
#include "board/bus/node.h"
#include "collect/limits.h"
#include "collect/starts.h"

#define PROCS_START 512u
#define CALIBRATE_MS 1 /* samples of lanes have the machine's own counter: no need for more */
#define CALIBRATE_EXACT_MS 10
#define CALIBRATE_LATER 0 /* roughly by now; segment_settle_clock() waits */
#define THREADS_MAX 8192u /* that may need more than the buffer has */
#define MIB (1024.0 * 1024.0)

/* ---- sizes ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t segment_default_buffer(const struct segment_options *opt)
{
	/* A flight recorder has all of its buffer in use all the time. */
	uint64_t limit = opt->when_full == KRON_WHEN_FULL_WRAP && !opt->ages ? 64ull << 20
			 : opt->watched                                      ? 256ull << 20
									     : 1ull << 30;
	uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 4;

	limit = least(least(limit, ram), limits_default_buffer());
	return opt->board ? least(limit, object_room() / 2) : limit;
}

uint64_t segment_share(uint64_t cgroup_left)
{
	return cgroup_left == CGROUP_NO_LIMIT ? cgroup_left : cgroup_left / 4;
}

static uint32_t chunks_of_buffer(uint64_t buffer)
{
	uint64_t n = buffer / KRON_CHUNK_SIZE;

	if (n < SEGMENT_CHUNKS_MIN)
		return SEGMENT_CHUNKS_MIN;
	return n > KRON_CHUNKS_MAX ? KRON_CHUNKS_MAX : (uint32_t)n;
}

static void fit_into_room(struct segment *seg)
{
	uint64_t room = object_room();
	uint64_t tables = KRON_POOL_OFFSET - KRON_CTL_OFFSET;

	room = room > tables ? room - tables : 0;
	if ((uint64_t)seg->chunks_limit * KRON_CHUNK_SIZE > room) {
		seg->chunks_limit = chunks_of_buffer(room);
		seg->pool_limited = true;
	}
}

/* A start has no time for the cgroups, so a pool that may stay small asks for them when it does not. */
static uint64_t choose_buffer(struct segment *seg, const struct segment_options *opt)
{
	seg->cgroup_left = CGROUP_NO_LIMIT;
	if (opt->buffer || opt->when_full == KRON_WHEN_FULL_WRAP)
		segment_look_at_cgroups(seg);
	if (opt->buffer)
		return opt->buffer;
	seg->follows_cgroups = true;
	return least(segment_share(seg->cgroup_left), segment_default_buffer(opt));
}

/*
 * Each thread has a chunk of its own, full or not, and keeps it while it sleeps.  Who is to lose
 * nothing gets one, too, however small the buffer: places for so many, as limits allow.  They take
 * no memory before they are needed.
 */
static uint32_t places_for_threads(const struct segment *seg, const struct segment_options *opt)
{
	uint64_t buffer = (uint64_t)seg->chunks_limit * KRON_CHUNK_SIZE;
	uint64_t room = limits_default_buffer();
	uint64_t n = KRON_CHUNKS_MAX - seg->chunks_limit;

	if (opt->when_full != KRON_WHEN_FULL_WAIT || opt->bus != KRON_BUS_LANE || room <= buffer)
		return 0;
	n = least(n, (room - buffer) / KRON_CHUNK_SIZE);
	return (uint32_t)least(n, THREADS_MAX);
}

static void choose_size(struct segment *seg, const struct segment_options *opt)
{
	seg->chunks_limit = chunks_of_buffer(choose_buffer(seg, opt));
	if (!seg->own)
		fit_into_room(seg);
	seg->chunks_max = seg->chunks_limit + places_for_threads(seg, opt);
	seg->size = KRON_WINDOW_SIZE + (uint64_t)seg->chunks_max * KRON_CHUNK_SIZE;
}

/* ---- the lane part ---- */

static void set_pointers(struct segment *seg)
{
	uint8_t *base = seg->window.base;

	seg->ctl = seg->window.board.ctl;
	seg->states = (uint64_t *)(base + KRON_STATES_OFFSET);
	seg->procs = (struct kron_proc *)(base + KRON_PROCS_OFFSET);
	seg->guards[0] = guard_add(base, KRON_WINDOW_SIZE);
}

bool segment_is_cut(const struct segment *seg)
{
	struct stat st;

	/* Whoever is traced goes on in memory of his own, so we may never come to what is gone. */
	return guard_was_hit(seg->guards[0]) || guard_was_hit(seg->guards[1]) ||
	       (!seg->own && !fstat(seg->fd, &st) && (uint64_t)st.st_size < seg->size);
}

static int map_pool(struct segment *seg, struct err *err)
{
	uint64_t len = (uint64_t)seg->chunks_max * KRON_CHUNK_SIZE;
	void *pool = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, seg->fd, KRON_POOL_OFFSET);

	if (pool == MAP_FAILED)
		return err_set(err, errno, "cannot map the %.0f MiB pool of the board segment: %s",
			       (double)len / MIB, strerror(errno));
	seg->pool = pool;
	seg->guards[1] = guard_add(pool, len);
	return 0;
}

static const char *where(const struct segment *seg)
{
	return seg->own ? "memory" : OBJECT_DIR;
}

static int get_first_pages(struct segment *seg, struct err *err)
{
	int code = 0;

	if (!seg->late)
		code = object_get_pages(seg->fd, KRON_CTL_OFFSET, 0x1000 + 8ull * seg->chunks_max);
	if (!code && !seg->late)
		code = object_get_pages(seg->fd, KRON_PROCS_OFFSET,
					PROCS_START * sizeof(struct kron_proc));
	if (code)
		return err_set(err, -code, "no room in %s for the board's tables: %s", where(seg),
			       strerror(-code));
	seg->procs_ready = PROCS_START;
	return 0;
}

static void write_csr(struct segment *seg, uint32_t bits)
{
	board_write32(&seg->window.board, KRON_CHIP_BYTE(KRON_WORD_CSR), bits);
}

/* What a sample does that finds no room, the register says, too: kron ctl changes both. */
static void set_when_full(struct segment *seg, enum kron_when_full when_full)
{
	seg->ctl->when_full = when_full;
	write_csr(seg, when_full == KRON_WHEN_FULL_WAIT ? KRON_CSR_WAIT : KRON_CSR_DISCARD);
}

static void leave_note(struct segment *seg, const struct segment_options *opt, const void *random)
{
	struct object_note *note = object_note(seg->ctl);
	char path[PATH_MAX];

	memcpy(&note->recording, random, sizeof(note->recording));
	if (!opt->dir || !realpath(opt->dir, path) || strlen(path) >= sizeof(note->dir))
		path[0] = 0;
	snprintf(note->dir, sizeof(note->dir), "%.*s", (int)sizeof(note->dir) - 1, path);
}

/* A board that stays has its own node again when we go, or who recovers what we have left. */
static void set_node(struct segment *seg, int node)
{
	struct node n;

	object_note(seg->ctl)->node = seg->ctl->node;
	if (node != NODE_DEFAULT)
		seg->ctl->node = (uint32_t)node & NODE_MAX;
	else if (!seg->stays) {
		node_default(&n);
		seg->ctl->node = n.n;
	}
}

static int fill_ctl(struct segment *seg, const struct segment_options *opt, struct err *err)
{
	struct kron_ctl *ctl = seg->ctl;
	uint8_t random[sizeof(ctl->session) + sizeof(uint64_t)];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return err_set(err, EIO, "no random numbers for a session");
	memcpy(ctl->session, random, sizeof(ctl->session));
	set_node(seg, opt->node);
	ctl->chunks_max = seg->chunks_limit;
	ctl->chunks_ready = 0;
	seg->ready = 0;
	ctl->free_count = 0;
	ctl->lost_unowned = 0;
	ctl->next_seq = 1;
	ctl->next_uid = 1;
	ctl->waiters = 0;
	ctl->bus = seg->bus = (uint8_t)opt->bus;
	seg->when_full = (uint8_t)opt->when_full;
	ctl->constant_time = opt->constant_time;
	seg->clock_every = opt->clock_every;
	ctl->segment_size = seg->size;
	leave_note(seg, opt, random + sizeof(ctl->session));
	starts_clear(seg);
	ctl->collector_pid = getpid();
	__atomic_store_n(&ctl->closing, 0, __ATOMIC_RELEASE);
	return 0;
}

/* The window is there: tables, pool, first chunks. */
static int add_lanes(struct segment *seg, const struct segment_options *opt, struct err *err)
{
	uint32_t got;
	int code = get_first_pages(seg, err);

	if (!code)
		code = map_pool(seg, err);
	if (!code)
		code = fill_ctl(seg, opt, err);
	if (code)
		return code;
	got = segment_grow(seg, seg->late ? SEGMENT_CHUNKS_FIRST : SEGMENT_CHUNKS_START);
	if (got < SEGMENT_CHUNKS_MIN)
		return err_set(err, ENOSPC,
			       "%s has room for %u of the %u chunks (64 KiB each) that a "
			       "recording needs at least",
			       where(seg), got, SEGMENT_CHUNKS_MIN);
	return 0;
}

/* Nobody has lanes here: no table, no pool. */
static int wipe_lanes(int fd, struct err *err)
{
	const int how = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	int code = object_set_size(fd, KRON_WINDOW_SIZE);

	if (!code && fallocate(fd, how, KRON_STATES_OFFSET, KRON_MODEL_OFFSET - KRON_STATES_OFFSET))
		code = -errno;
	return code ? err_set(err, -code, "cannot clean the board: %s", strerror(-code)) : 0;
}

/* ---- a segment that is made for this recording ---- */

static void name_own(struct segment *seg)
{
	uint64_t id = 0;

	if (getrandom(&id, sizeof(id), 0) != sizeof(id))
		id = (uint64_t)getpid(); /* a name that is taken is an error, no more */
	snprintf(seg->name, sizeof(seg->name), "/kron-%016" PRIx64, id);
}

static void set_registers(struct segment *seg, uint32_t filter)
{
	struct bus bus;

	bus_use_board(&bus, &seg->window.board);
	bus_init_default(&bus, 0);
	bus_write32(&bus, KRON_CHIP_BYTE(KRON_WORD_CSR), KRON_CSR_STOP);
	bus_write32(&bus, KRON_CHIP_BYTE(KRON_WORD_FILTER), filter & 0xffff);
}

/* Nobody reads a clock of our own before the program runs, unless samples carry its time. */
static unsigned calibrate_ms(const struct segment *seg, const struct segment_options *opt)
{
	if (opt->bus == KRON_BUS_EXACT)
		return CALIBRATE_EXACT_MS;
	return seg->own ? CALIBRATE_LATER : CALIBRATE_MS;
}

static int fill_new(struct segment *seg, const struct segment_options *opt, struct err *err)
{
	const struct model_geometry standard = MODEL_GEOMETRY_DEFAULT;
	unsigned ms = calibrate_ms(seg, opt);
	struct time_point start = opt->start;
	int code = object_map(seg->fd, &seg->window, err);

	if (code)
		return code;
	set_pointers(seg);
	if (!start.tsc)
		time_point_take(&start);
	code = add_lanes(seg, opt, err);
	if (code)
		return code;
	if (!seg->late)
		code = object_get_board(seg->fd, &standard, opt->bus == KRON_BUS_EXACT, err);
	if (code && seg->own)
		err_set(err, -code, "no room in memory for a board: %s", strerror(-code));
	if (code)
		return code;
	/* Last, for the clock must have run for a while. */
	object_fill(&seg->window, &standard, ACCESS_CLOCK_REAL, tsc_hz_since(&start, ms));
	if (ms == CALIBRATE_LATER)
		seg->clock_start = start;
	set_registers(seg, opt->filter);
	set_when_full(seg, opt->when_full);
	object_seal(&seg->window, seg->size);
	return 0;
}

void segment_settle_clock(struct segment *seg)
{
	if (seg->clock_start.tsc)
		board_set_rate(&seg->window.board, tsc_hz_since(&seg->clock_start, CALIBRATE_MS));
}

/* It has its lock before it has its name: nobody ever takes it for one without a recorder. */
static int publish_new(struct segment *seg, struct err *err)
{
	int code = object_lock(seg->fd);

	if (code)
		return err_set(err, -code, "cannot lock the board segment: %s", strerror(-code));
	seg->lock_fd = seg->fd;
	seg->fd = -1;
	return object_publish(seg->lock_fd, seg->name, &seg->fd, err);
}

static int create_new(struct segment *seg, const struct segment_options *opt, struct err *err)
{
	int code = object_begin(&seg->fd, seg->size, err);

	if (!code)
		code = fill_new(seg, opt, err);
	if (!code)
		code = publish_new(seg, err);
	return code;
}

/* Where there is no /dev/shm nobody finds the board, and it works all the same. */
static int create_own(struct segment *seg, const struct segment_options *opt, struct err *err)
{
	int code = held_begin(seg->name, &seg->fd, seg->size, err);

	seg->keeping = (struct keeper_options){.memory = seg->fd,
					       .object = seg->name,
					       .trace = opt->dir,
					       .exe = opt->kron,
					       .is_scratch = opt->is_scratch};
	seg->late = opt->bus == KRON_BUS_LANE && held_pages_may_come_late();
	if (!code)
		code = fill_new(seg, opt, err);
	if (!code)
		code = keeper_start(&seg->keeper, &seg->keeping, err);
	if (code)
		return code;
	seg->held = seg->keeper.held;
	seg->unnamed = held_publish(seg->name, &seg->held);
	return 0;
}

/* ---- a board that is there ---- */

static int refuse_busy(const struct segment *seg, const char *board, struct err *err)
{
	return err_set(err, EBUSY,
		       "a kron record (pid %d) is on board %s, which takes one at a time: end it "
		       "first, or record without --board",
		       seg->ctl->collector_pid, board);
}

/* What a recorder has left there that is worth more than this recording. */
static int check_remains(const struct segment *seg, const char *board, struct err *err)
{
	const struct object_note *note = object_note(seg->ctl);
	pid_t who;

	if (seg->ctl->collector_pid)
		return err_set(err, EBUSY,
			       "the kron record (pid %d) on board %s was killed and has left "
			       "samples there: `kron recover %.300s` gets them, `kron board rm %s` "
			       "gives them up",
			       seg->ctl->collector_pid, board, note->dir[0] ? note->dir : "DIR",
			       board);
	if (object_has_lanes(seg->fd, &who))
		return err_set(err, EBUSY,
			       "process %d of an earlier recording still runs on board %s: end it "
			       "first",
			       who, board);
	return 0;
}

/* Without a recorder's name in it the lock is somebody's who is about to remove the board, or to
 * write his name: that takes no time. */
static int wait_for_lock(struct segment *seg)
{
	const struct timespec nap = {.tv_nsec = 10000000};
	int code;

	for (int i = 0; i < 100; i++) {
		code = object_lock(seg->lock_fd);
		if (code != -EBUSY || __atomic_load_n(&seg->ctl->collector_pid, __ATOMIC_ACQUIRE))
			break;
		nanosleep(&nap, NULL);
	}
	return code;
}

static int lock_board(struct segment *seg, const char *board, struct err *err)
{
	struct object o;
	int code = object_open(seg->name, board, &o, err);

	if (code)
		return code;
	seg->lock_fd = o.fd;
	code = wait_for_lock(seg);
	if (code == -EBUSY)
		return refuse_busy(seg, board, err);
	if (!code && !object_is_named(seg->fd, seg->name))
		return err_set(err, ESTALE, "board %s was removed just now", board);
	return code ? err_set(err, -code, "cannot lock board %s: %s", board, strerror(-code)) : 0;
}

static int attach(struct segment *seg, const struct segment_options *opt, struct err *err)
{
	struct board *b = &seg->window.board;
	int code;

	seg->csr_before = board_read32(b, KRON_CHIP_BYTE(KRON_WORD_CSR));
	segment_set_sampling(seg, false);
	code = wipe_lanes(seg->fd, err);
	if (!code && (code = object_set_size(seg->fd, seg->size)))
		err_set(err, -code, "cannot size the board segment: %s", strerror(-code));
	if (!code)
		code = add_lanes(seg, opt, err);
	if (code) {
		seg->ctl->collector_pid = 0;
		return code;
	}
	set_when_full(seg, opt->when_full);
	if (!opt->keep_filter)
		board_write32(b, KRON_CHIP_BYTE(KRON_WORD_FILTER), opt->filter & 0xffff);
	return 0;
}

static int use_existing(struct segment *seg, const struct segment_options *opt, struct err *err)
{
	struct object o;
	int code = object_open(seg->name, opt->board, &o, err);

	seg->fd = o.fd;
	if (!code)
		code = object_map_checked(seg->fd, opt->board, &seg->window, err);
	if (code)
		return code;
	set_pointers(seg);
	seg->stays = seg->ctl->permanent;
	code = lock_board(seg, opt->board, err);
	if (!code)
		code = check_remains(seg, opt->board, err);
	if (!code)
		code = attach(seg, opt, err);
	if (code)
		seg->name[0] = 0; /* it is not ours to remove */
	return code;
}

/* Others make and remove boards, too: what has changed meanwhile is looked at once more. */
static int create_named(struct segment *seg, const struct segment_options *opt, struct err *err)
{
	struct segment fresh;
	struct stat st;
	int code = 0;

	if (!boards_name_is_valid(opt->board))
		return err_set(err, EINVAL,
			       "\"%.80s\" is not a name for a board (a device is recorded to with "
			       "--bus device:PATH)",
			       opt->board);
	object_name_of_board(seg->name, sizeof(seg->name), opt->board);
	fresh = *seg;
	for (int i = 0; i < 10; i++) {
		bool absent = object_stat(seg->name, &st) && errno == ENOENT;

		code = absent ? create_new(seg, opt, err) : use_existing(seg, opt, err);
		if (code != (absent ? -EEXIST : -ESTALE) && !(code == -ENOENT && !absent))
			break;
		memset(&seg->cgroups, 0, sizeof(seg->cgroups)); /* fresh has them */
		segment_close(seg);
		*seg = fresh;
	}
	return code;
}

int segment_create(struct segment *seg, const struct segment_options *opt, struct err *err)
{
	int code;

	memset(seg, 0, sizeof(*seg));
	seg->fd = seg->lock_fd = -1;
	seg->own = !opt->board;
	choose_size(seg, opt);
	if (seg->own) {
		name_own(seg);
		code = create_own(seg, opt, err);
	} else {
		code = create_named(seg, opt, err);
	}
	if (code) {
		keeper_dismiss(&seg->keeper);
		segment_close(seg); /* what has no name yet goes with its descriptors */
		seg->name[0] = 0;
	}
	return code;
}

/* ---- the segment of a killed collector ---- */

/* All that will be read: a page that is missing after all would be a SIGBUS on a full /dev/shm.
 * Those that are there stay as they are. */
static int get_pages_again(struct segment *seg, struct err *err)
{
	int code = object_get_pages(seg->fd, KRON_CTL_OFFSET, KRON_POOL_OFFSET - KRON_CTL_OFFSET);
	uint32_t ready = __atomic_load_n(&seg->ctl->chunks_ready, __ATOMIC_ACQUIRE);

	seg->ready = ready < seg->chunks_max ? ready : seg->chunks_max;
	seg->when_full = (uint8_t)seg->ctl->when_full;
	if (!code && segment_ready(seg))
		code = object_get_pages(seg->fd, KRON_POOL_OFFSET,
					(uint64_t)segment_ready(seg) * KRON_CHUNK_SIZE);
	if (code)
		return err_set(err, -code, "cannot read the board segment %s: %s", seg->name,
			       strerror(-code));
	seg->procs_ready = KRON_PROCS_MAX;
	return 0;
}

static int open_parts(struct segment *seg, uint64_t size, const char *shown, struct err *err)
{
	uint64_t chunks = (size - KRON_WINDOW_SIZE) / KRON_CHUNK_SIZE;
	int code;

	if (!chunks)
		return err_set(err, EINVAL, "%s is too small for a board segment with samples",
			       seg->name);
	seg->size = size;
	seg->chunks_max = chunks > KRON_CHUNKS_MAX ? KRON_CHUNKS_MAX : (uint32_t)chunks;
	seg->chunks_limit = seg->chunks_max;
	code = object_map(seg->fd, &seg->window, err);
	if (code)
		return code;
	set_pointers(seg);
	code = object_check_format(shown, &seg->window, err);
	if (!code)
		code = map_pool(seg, err);
	if (!code)
		code = get_pages_again(seg, err);
	return code;
}

/* Its keeper knows that the recorder is gone when that one's last descriptor is closed. */
static int wait_for_recorder(const struct object *o, const char *shown, struct err *err)
{
	const struct timespec nap = {.tv_nsec = 10000000};
	struct object_recorder r;

	for (int i = 0; i < 100; i++) {
		held_find_recorder(&o->held, &r);
		if (!r.pid)
			return 0;
		nanosleep(&nap, NULL);
	}
	return err_set(err, EBUSY, "a kron record (pid %d) is on board %s: end it first", r.pid,
		       shown);
}

static int open_object(struct segment *seg, const char *shown, int memory, struct object *o,
		       struct err *err)
{
	struct stat st;

	if (memory < 0)
		return object_open(seg->name, shown, o, err);
	*o = (struct object){.fd = fcntl(memory, F_DUPFD_CLOEXEC, 0),
			     .held = {.keeper = getpid(), .fd = memory}};
	if (o->fd < 0 || fstat(o->fd, &st))
		return err_set(err, errno, "cannot open board %s: %s", shown, strerror(errno));
	o->size = (uint64_t)st.st_size;
	return 0;
}

int segment_open(struct segment *seg, const char *name, int memory, struct err *err)
{
	char shown[OBJECT_NAME];
	struct object o;
	int code;

	memset(seg, 0, sizeof(*seg));
	seg->fd = seg->lock_fd = -1;
	if (!object_shown_name(name, shown, sizeof(shown)))
		return err_set(err, EINVAL, "\"%.64s\" is not a name of a board segment", name);
	snprintf(seg->name, sizeof(seg->name), "%s", name);
	code = open_object(seg, shown, memory, &o, err);
	seg->fd = o.fd;
	seg->held = o.held;
	seg->own = o.held.keeper != 0;
	if (!code)
		code = open_parts(seg, o.size, shown, err);
	if (!code)
		code = seg->own ? wait_for_recorder(&o, shown, err) : lock_board(seg, shown, err);
	if (!code && !seg->own)
		seg->stays = seg->ctl->permanent;
	if (code) {
		segment_close(seg);
		seg->name[0] = 0;
	}
	return code;
}

/* ---- while it is used ---- */

void segment_look_after_keeper(struct segment *seg)
{
	struct err err;

	if (!seg->keeper.held.keeper || !keeper_is_gone(&seg->keeper))
		return;
	log_error("collect", "the keeper (pid %d) was killed", seg->keeper.held.keeper);
	keeper_dismiss(&seg->keeper);
	keeper_leave(&seg->keeper);
	if (keeper_start(&seg->keeper, &seg->keeping, &err)) {
		log_error("collect", "%s", err.msg);
		return;
	}
	seg->held = seg->keeper.held;
	seg->unnamed = held_republish(seg->name, &seg->held);
}

void segment_grow_procs(struct segment *seg)
{
	if (segment_procs_ready(seg) < KRON_PROCS_MAX &&
	    !object_get_pages(seg->fd, KRON_PROCS_OFFSET,
			      KRON_PROCS_MAX * sizeof(struct kron_proc)))
		/* Release: who reads it finds pages; partner: tasks.c. */
		__atomic_store_n(&seg->procs_ready, KRON_PROCS_MAX, __ATOMIC_RELEASE);
}

void segment_set_sampling(struct segment *seg, bool on)
{
	write_csr(seg, on ? KRON_CSR_SAMPLING : KRON_CSR_STOP);
	if (on)
		return;
	/* Even if the model is damaged or does not answer, and even with constant time. */
	for (unsigned level = 0; level < KRON_LEVELS; level++)
		__atomic_store_n(&seg->ctl->gate[level], KRON_GATE_CLOSED, __ATOMIC_RELEASE);
}

/* ---- the end ---- */

/* For the next recorder and for those who look. */
static void leave_board(struct segment *seg)
{
	struct kron_ctl *ctl = seg->ctl;
	pid_t who;

	ctl->bus = KRON_BUS_LANE;
	ctl->constant_time = 0;
	ctl->node = object_note(ctl)->node & NODE_MAX;
	object_note(ctl)->dir[0] = 0;
	__atomic_store_n(&ctl->collector_pid, 0, __ATOMIC_RELEASE);
	/* Who has lanes may be about to store there, and must go first. */
	if (object_has_lanes(seg->fd, &who))
		return;
	ctl->chunks_ready = seg->ready = 0;
	ctl->chunks_max = 0;
	ctl->segment_size = KRON_WINDOW_SIZE;
	wipe_lanes(seg->fd, NULL);
	write_csr(seg, seg->csr_before & KRON_CSR_WAIT ? KRON_CSR_WAIT : KRON_CSR_DISCARD);
	if (seg->csr_before & KRON_CSR_SAMPLING)
		segment_set_sampling(seg, true);
}

/* The name first: who finds one finds a board. */
static void remove_own(struct segment *seg)
{
	const struct object o = {.fd = seg->fd, .held = seg->held};

	object_remove(seg->name);
	if (seg->keeper.held.keeper)
		keeper_dismiss(&seg->keeper);
	else
		held_let_go(&o);
}

void segment_unlink(struct segment *seg)
{
	if (seg->name[0] && seg->own)
		remove_own(seg);
	else if (seg->name[0] && seg->stays && !segment_is_cut(seg))
		leave_board(seg);
	else if (seg->name[0] && seg->stays)
		; /* whoever has cut it off knows what it is to be */
	else if (seg->name[0])
		object_remove(seg->name);
	seg->name[0] = 0;
}

void segment_close(struct segment *seg)
{
	guard_remove(seg->guards[0]);
	guard_remove(seg->guards[1]);
	if (seg->pool)
		munmap(seg->pool, (uint64_t)seg->chunks_max * KRON_CHUNK_SIZE);
	object_unmap(&seg->window);
	if (seg->fd >= 0)
		close(seg->fd);
	if (seg->lock_fd >= 0)
		close(seg->lock_fd);
	cgroups_free(&seg->cgroups);
	keeper_leave(&seg->keeper);
	seg->pool = NULL;
	seg->ctl = NULL;
	seg->fd = seg->lock_fd = -1;
}
