/* SPDX-License-Identifier: MIT */
/*
 * recover.c - see recover.h.
 *
 *   trace as it is ──► session: name of the segment, start of the clock
 *                 └──► sequence numbers of its chunks ─┐
 *   segment ──► chunks with other numbers ─────────────┴─► appended;  totals;  unlink
 *   or a copy of it, from a core
 *
 * Running it twice does no harm: chunks are known by number, and the segment goes last.
 */
#define _GNU_SOURCE
#include "collect/recover/recover.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "board/bus/lanes.h"
#include "collect/counts.h"
#include "base/boot.h"
#include "base/number.h"
#include "base/vec.h"
#include "collect/calibrate.h"
#include "collect/drain.h"
#include "collect/fetch.h"
#include "collect/grow.h"
#include "collect/recover/core.h"
#include "collect/starts.h"
#include "trace/chunks.h"
#include "trace/packed.h"
#include "trace/reader.h"
#include "trace/writer_dir.h"

#define OTHERS_WAIT_S 60 /* for another process that recovers the same trace */

struct origin {
	const char *object; /* the segment's name; NULL: the one that the trace names */
	int memory;         /* it is open; -1: it is looked for */
	const char *core;   /* instead; NULL: none */
	const char *out;    /* of a core: a trace of its own; NULL: the trace is finished */
};

struct before { /* what the trace says already */
	char segment[OBJECT_NAME];
	uint64_t recording; /* which one of those on that segment */
	struct time_point start;
	double hz; /* of the counter; 0: not known */
	uint64_t samples, lost, cut_off;
	uint32_t overruns; /* exact: what the board had counted when the recording began */
	VEC(uint32_t) uids;
	VEC(struct ended {
		uint32_t uid;
		uint64_t lost;
	})
	ended; /* for processes that the core may have as they were before */
	VEC(uint64_t) seqs;
	uint64_t last_tsc;
	bool exact;
	VEC(struct trace_chunk) chunks; /* exact: their heads */
};

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t session_hex(const struct trace *t, const char *key)
{
	const char *text = trace_session(t, key);

	return text ? strtoull(text, NULL, 16) : 0;
}

/* Since it was opened: the recorder has ended, or somebody has recovered it. */
static bool has_ended(const char *dir)
{
	static const char key[] = "end_tsc=";
	char *path = xasprintf("%s/session", dir), line[256];
	FILE *f = fopen(path, "re");
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = !strncmp(line, key, strlen(key));
	if (f)
		fclose(f);
	xfree(path);
	return found;
}

static enum recover_state look_at_segment(const struct trace *t)
{
	const char *segment = trace_session(t, "segment");
	struct boards_entry e;

	if (!segment || !boards_look_at(segment, &e))
		return RECOVER_GONE;
	/* a board that stays may have been used by another recording since */
	if (!object_is_recorders_own(segment) && e.recording != session_hex(t, "recording"))
		return RECOVER_GONE;
	if (e.recorder_pid)
		return RECOVER_RECORDING;
	return e.orphaned ? RECOVER_WAITING : RECOVER_GONE;
}

/* Of a trace without shared memory only this says that somebody still writes it. */
static bool is_locked(const char *dir)
{
	char *path = xasprintf("%s/lock", dir);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const bool is = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;

	if (fd >= 0)
		close(fd);
	xfree(path);
	return is;
}

static enum recover_state look(const struct trace *t)
{
	if (trace_session(t, "segment"))
		return look_at_segment(t);
	return is_locked(t->dir) ? RECOVER_RECORDING : RECOVER_GONE;
}

/* A collector's file in it (collect/cable/nodes.c). */
static bool came_by_cable(const char *dir)
{
	char *path = xasprintf("%s/cable", dir);
	const bool came = !access(path, F_OK);

	xfree(path);
	return came;
}

enum recover_state recover_look(const struct trace *t)
{
	enum recover_state state = t->complete ? RECOVER_COMPLETE : look(t);

	if (state == RECOVER_GONE && has_ended(t->dir))
		return RECOVER_RECORDING;
	if ((state == RECOVER_GONE || state == RECOVER_WAITING) && came_by_cable(t->dir))
		return RECOVER_SENT;
	return state;
}

/* The counter's rate is the machine's, since it was started. */
static bool is_of_this_boot(const struct trace *t)
{
	return boot_id()[0] && trace_session_is(t, "boot_id", boot_id());
}

static int read_trace(struct before *b, const char *dir, const struct origin *from, struct err *err)
{
	const char *segment;
	struct trace *t;
	int code = trace_open(&t, dir, err);

	if (code)
		return code;
	segment = trace_session(t, "segment");
	b->hz = (double)trace_session_number(t, "tsc_hz", 0);
	if (t->complete && !from->out)
		code = err_set(err, EALREADY, "%s is complete: there is nothing to recover%s", dir,
			       from->core ? "; -o OUT makes a trace of what the core has" : "");
	else if (!segment)
		code = err_set(err, ENOENT, "%s names no shared memory to recover from", dir);
	else if (from->core && !from->out && look_at_segment(t) == RECOVER_WAITING)
		code = err_set(
			err, EEXIST,
			"the shared memory of %s is there still, with all that the core has: "
			"`kron recover %s`",
			dir, dir);
	else if (from->core && !b->hz && !is_of_this_boot(t))
		code = err_set(
			err, EINVAL,
			"how fast the clock of %s went is known on the machine that made it only, "
			"until that is started anew: its recorder was killed in its first second",
			dir);
	else
		snprintf(b->segment, sizeof(b->segment), "%s", segment);
	b->exact = trace_session_is(t, "bus", "exact");
	b->overruns = (uint32_t)trace_session_number(t, "board_overruns_before", 0);
	b->recording = session_hex(t, "recording");
	b->start.tsc = trace_session_number(t, "start_tsc", 0);
	b->start.mono_ns = trace_session_number(t, "start_mono_ns", 0);
	/* Of processes that have ended: what trace_count() adds stands in the slots of the others. */
	b->lost = from->out ? 0 : t->lost; /* of another trace the recording's total says nothing */
	trace_count(t);
	b->samples = t->samples;
	b->cut_off = t->cut_off;
	for (size_t i = 0; i < t->nprocs; i++) {
		if (t->procs[i].known)
			*vec_push(&b->uids) = t->procs[i].uid;
		if (from->core)
			*vec_push(&b->ended) = (struct ended){t->procs[i].uid, t->procs[i].lost};
		b->lost += from->out ? t->procs[i].lost : 0;
	}
	trace_close(t);
	if (b->uids.n)
		qsort(b->uids.v, b->uids.n, sizeof(*b->uids.v), compare_u32);
	return code;
}

static void note_last(struct before *b, const struct kron_sample *s)
{
	uint64_t tsc = kron_sample_time(s);

	if (s->head && tsc > b->last_tsc)
		b->last_tsc = tsc;
}

static int read_sequence_numbers(struct before *b, const char *dir, struct err *err)
{
	char *path = xasprintf("%s/samples", dir);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct trace_chunk head;
	struct chunk_map map;
	uint64_t skipped = 0;
	const struct kron_sample *s;
	struct sample_walk walk;
	const uint8_t *samples;
	size_t off = 0;
	int code = fd < 0 ? -errno : chunk_map_open(&map, fd);

	if (fd >= 0)
		close(fd);
	if (code) {
		err_set(err, -code, "cannot read %s: %s", path, strerror(-code));
		xfree(path);
		return code;
	}
	xfree(path);
	while ((samples = chunk_map_next(&map, &off, &head, &skipped))) {
		*vec_push(&b->seqs) = head.seq;
		if (b->exact)
			*vec_push(&b->chunks) = head;
		sample_walk_start(&walk, samples, head.nbytes, head.magic == TRACE_PACKED_MAGIC);
		while ((s = sample_walk_next(&walk, NULL)))
			note_last(b, s);
	}
	chunk_map_close(&map);
	if (b->seqs.n)
		qsort(b->seqs.v, b->seqs.n, sizeof(*b->seqs.v), compare_u64);
	return 0;
}

/* Close the gates; processes that still run get a moment to finish stores that have passed them. */
static void quiet_board(struct segment *seg, struct tasks *tasks, struct recovery *out)
{
	struct timespec ts = {.tv_nsec = 20000000};
	struct task_totals totals;

	segment_set_sampling(seg, false);
	__atomic_store_n(&seg->ctl->closing, 1, __ATOMIC_RELEASE);
	segment_wake_waiters(seg);
	tasks_look(tasks, true, true);
	tasks_totals(tasks, &totals);
	out->living = totals.living;
	if (out->living)
		nanosleep(&ts, NULL);
}

static void find_last_sample(struct before *b, const struct segment *seg)
{
	for (uint32_t i = 0; i < segment_ready(seg); i++) {
		const struct kron_chunk *c = segment_chunk(seg, i);
		struct chunk_count n;

		if (!c->seq || KRON_CHUNK_KIND(c->kind) == KRON_CHUNK_OF_PAGES)
			continue;
		chunk_count(c, &n);
		if (n.nbytes)
			note_last(b, (const void *)((const char *)(c + 1) + n.nbytes -
						    KRON_SAMPLE_SIZE));
	}
}

/*
 * Bus exact: chunks that were written after the last time that ctl->fetched was set.  The
 * samples in them come once more, each thread's in the same order.
 */
static void note_fetched(const struct before *b, struct fetch *f)
{
	for (size_t i = 0; i < b->chunks.n; i++) {
		const struct trace_chunk *c = &b->chunks.v[i];

		if (c->seq > f->fetched)
			fetch_has_already(f, c->source, c->nbytes);
	}
}

static double rate_by_now(const struct before *b, const struct board *board)
{
	struct time_point now;

	if (board)
		board_time_point(board, &now);
	else
		time_point_take(&now);
	return tsc_hz(&b->start, &now);
}

/* What a recording that has ended says of all of it is not true of what one core has. */
static void forget_whole(struct journal *j)
{
	static const char *const keys[] = {"ring_samples", "outside", "cpu_ns"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		journal_session(j, keys[i], "0");
}

/* The recording ends with its last sample, on the clock as it goes now; on another machine's, as it was measured
 * there. */
static void write_end(struct journal *j, const struct before *b, const struct recovery *r,
		      const struct board *board, const struct origin *from)
{
	const double hz = from->core && b->hz ? b->hz : rate_by_now(b, board);
	/* without a sample a millisecond later: of a shorter time no rate of the counter can be told */
	uint64_t end_tsc =
		b->last_tsc > b->start.tsc ? b->last_tsc : b->start.tsc + (uint64_t)(hz / 1e3);
	uint64_t end_ns;

	end_ns = b->start.mono_ns + number_u64((double)(end_tsc - b->start.tsc) / hz * 1e9);
	journal_session(j, "recovered", "%" PRIu64, r->recovered);
	journal_session(j, "error", "%s", "");
	journal_session(j, "samples", "%" PRIu64, r->in_file + r->recovered);
	journal_session(j, "lost", "%" PRIu64, r->lost);
	journal_session(j, "cut_off", "%" PRIu64, r->cut_off);
	journal_session(j, "processes", "%" PRIu64, r->processes);
	journal_session(j, "tsc_hz", "%.0f", hz);
	journal_session(j, "end_mono_ns", "%" PRIu64, end_ns);
	journal_session(j, "end_tsc", "%" PRIu64, end_tsc);
	if (from->out)
		forget_whole(j);
}

/* What both the trace and the core say of a process that has ended since. */
static uint64_t lost_twice(const struct before *b, const struct segment *seg)
{
	uint64_t lost = 0;

	for (uint32_t i = 0; i < segment_procs_ready(seg); i++) {
		const uint64_t state = __atomic_load_n(&seg->procs[i].state, __ATOMIC_RELAXED);

		if ((state & 0xff) != KRON_PROC_LIVE)
			continue;
		for (size_t k = 0; k < b->ended.n; k++)
			if (b->ended.v[k].uid == state >> 8)
				lost += b->ended.v[k].lost;
	}
	return lost;
}

struct untraced_notes {
	struct journal *journal;
	struct recovery *out;
};

static void note_untraced(void *ctx, pid_t pid, const char *reason, uint64_t n)
{
	struct untraced_notes *to = ctx;
	const struct trace_untraced_line line = {.pid = pid, .reason = reason};

	journal_put(to->journal, trace_writer_untraced, &line);
	to->out->untraced += n;
}

static int append(struct before *b, struct segment *seg, struct trace_writer *w,
		  const struct origin *from, struct recovery *out)
{
	const struct board *board = b->exact ? &seg->window.board : NULL;
	struct fetch fetch = {.words = NULL};
	struct task_totals totals;
	struct journal journal;
	struct tasks tasks;
	struct drain drain;
	uint64_t counts[KRON_COUNTERS];
	int code;

	journal_init(&journal, w);
	tasks_init(&tasks, seg, &journal);
	tasks.known = b->uids.v;
	tasks.nknown = b->uids.n;
	drain_init(&drain, seg, &journal, &tasks);
	drain.written = b->seqs.v;
	drain.nwritten = b->seqs.n;
	if (from->core) {
		const uint64_t twice = lost_twice(b, seg);

		b->lost -= twice < b->lost ? twice : b->lost;
		find_last_sample(b, seg);
		tasks.all_ended = b->last_tsc ? b->last_tsc : 1;
	}
	quiet_board(seg, &tasks, out);
	if (board) {
		fetch_resume(&fetch, &drain);
		fetch.overrun_register = b->overruns;
		note_fetched(b, &fetch);
	}
	find_last_sample(b, seg);
	drain_all(&drain);
	tasks_totals(&tasks, &totals);
	out->recovered = drain.totals.samples;
	out->chunks = drain.totals.chunks;
	out->cut_off = b->cut_off + drain.totals.cut_off;
	out->lost = b->lost + totals.lost + fetch.overruns + fetch.overwritten;
	if (fetch.last_ticks > b->last_tsc)
		b->last_tsc = fetch.last_ticks;
	out->processes = b->uids.n + totals.unrecorded;
	if (!b->exact) {
		lanes_count(seg->ctl, counts);
		counts_write(&journal, counts);
		counts_write_virtual(&journal, seg);
	}
	if (!from->core)
		starts_finish(seg, note_untraced, &(struct untraced_notes){&journal, out});
	if (!journal_error(&journal))
		write_end(&journal, b, out, board, from);
	code = journal_flush(&journal);
	fetch_free(&fetch);
	tasks_free(&tasks);
	return code ? code : journal_error(&journal);
}

/* A board that stays may have been used by another recording since. */
static bool is_of_this_recording(const struct segment *seg, const struct before *b)
{
	return object_is_recorders_own(seg->name) ||
	       (seg->ctl->collector_pid && object_note(seg->ctl)->recording == b->recording);
}

static void explain_gone(int code, const struct before *b, const char *dir, struct err *err)
{
	if (code == -ENOENT)
		err_set(err, ENOENT,
			"the shared memory %s of %s is gone (recovered already, or the machine was "
			"restarted); the trace can be read as it is",
			b->segment, dir);
	if (code != -ESRCH)
		return;
	err_set(err, ESRCH,
		"the shared memory %s of %s is gone: the process that kept it was killed, too; the "
		"trace can be read as it is",
		b->segment, dir);
	object_remove(b->segment); /* a link to nothing */
}

/* Closes w. */
static int recover_from(struct before *b, struct trace_writer *w, const char *dir,
			const struct origin *from, struct recovery *out, struct err *err)
{
	struct segment seg;
	int closed, code;

	code = segment_open(&seg, b->segment, from->memory, err);
	if (!code && !is_of_this_recording(&seg, b)) {
		segment_close(&seg);
		code = -ENOENT;
	}
	explain_gone(code, b, dir, err);
	if (code) {
		trace_writer_close(w);
		return code;
	}
	code = append(b, &seg, w, from, out);
	closed = trace_writer_close(w);
	code = code ? code : closed;
	if (code)
		err_set(err, -code, "cannot write %s: %s; %s stays for another try", dir,
			strerror(-code), from->core ? "the core" : "the shared memory");
	else if (!from->core)
		segment_unlink(&seg);
	segment_close(&seg);
	return code;
}

/* Does it name a recorder that lives, or can it not be told?  Else who has the lock is about to
 * recover it, as we are: its keeper, mostly. */
static bool has_recorder(const char *dir)
{
	const char *name;
	struct object_recorder r = {.pid = 1};
	struct object o;
	struct trace *t;

	if (trace_open(&t, dir, NULL))
		return true;
	name = trace_session(t, "segment");
	if (name && object_is_recorders_own(name)) {
		r.pid = 0;
		if (!object_open(name, name, &o, NULL))
			held_find_recorder(&o.held, &r);
		object_close(&o);
	}
	trace_close(t);
	return r.pid;
}

static int lock_trace(struct trace_writer **w, const char *dir, struct err *err)
{
	const struct timespec nap = {.tv_nsec = 100000000};
	int code = trace_writer_reopen(w, dir, err);

	for (int i = 0; i < OTHERS_WAIT_S * 10 && code == -EBUSY && !has_recorder(dir); i++) {
		nanosleep(&nap, NULL);
		code = trace_writer_reopen(w, dir, err);
	}
	if (code == -EBUSY)
		return err_set(err, EBUSY, "kron still records to %s: end it first", dir);
	return code;
}

/* Whose it is says which memory it is of, and could name any of ours. */
static int check_owner(const char *dir, struct err *err)
{
	char *path = xasprintf("%s/session", dir);
	struct stat st;
	bool others = !lstat(path, &st) && st.st_uid != geteuid();

	xfree(path);
	if (!others)
		return 0;
	return err_set(
		err, EPERM,
		"%s is another user's (uid %u), who could have named any recording in it: only "
		"its owner can recover it",
		dir, (unsigned)st.st_uid);
}

/* Closes w. */
static int recover_from_core(struct before *b, struct trace_writer *w, const char *dir,
			     const struct origin *from, struct recovery *out, struct err *err)
{
	struct origin image = *from;
	struct core_memory memory;
	int code = core_memory_open(&memory, from->core, b->segment, err);

	/* which would be all that the trace ever gets */
	if (!code && memory.is_cut && !from->out) {
		close(memory.fd);
		code = err_set(
			err, ENODATA,
			"%s was cut short, by a full disk or a limit: `kron recover -o OUT` makes "
			"a trace of the samples that are in it",
			from->core);
	}
	if (code) {
		trace_writer_close(w);
		return code;
	}
	image.memory = memory.fd;
	b->lost += memory.lost;
	out->left_out = memory.left_out;
	out->is_cut = memory.is_cut;
	code = recover_from(b, w, dir, &image, out, err);
	close(memory.fd);
	return code;
}

static int recover_locked(const char *dir, struct trace_writer *w, const struct origin *from,
			  struct recovery *out, struct err *err)
{
	struct before b;
	int code;

	memset(&b, 0, sizeof(b));
	code = read_trace(&b, dir, from, err);
	if (!code && from->object && strcmp(from->object, b.segment))
		code = err_set(err, ENOENT, "%s is of another recording", dir);
	if (!code)
		code = read_sequence_numbers(&b, dir, err);
	out->in_file = b.samples;
	if (code)
		trace_writer_close(w);
	else if (from->core)
		code = recover_from_core(&b, w, dir, from, out, err);
	else
		code = recover_from(&b, w, dir, from, out, err);
	vec_free(&b.uids);
	vec_free(&b.ended);
	vec_free(&b.seqs);
	vec_free(&b.chunks);
	return code;
}

/* No command takes a trace that has other things in it. */
static bool lies_in(const char *dir, const char *out)
{
	const char *slash = strrchr(out, '/');
	char *parent = slash ? xstrndup(out, (size_t)(slash - out) + 1) : xstrdup(".");
	struct stat a, b;
	bool lies =
		!stat(parent, &a) && !stat(dir, &b) && a.st_ino == b.st_ino && a.st_dev == b.st_dev;

	xfree(parent);
	return lies;
}

/* The names of the recording, for a trace of what a core has. */
static int begin_apart(const char *dir, const char *out, struct err *err)
{
	int code = writer_check_dir(dir, err);

	if (code)
		return code;
	if (lies_in(dir, out))
		return err_set(err, EINVAL, "%s would lie in the trace %s: choose another place",
			       out, dir);
	code = writer_copy_tables(dir, out, err);
	return code == -EEXIST
		       ? err_set(err, EEXIST, "%s is there already: choose another name", out)
		       : code;
}

static int recover(const char *dir, const struct origin *from, struct recovery *out,
		   struct err *err)
{
	const char *where = from->out ? from->out : dir;
	struct trace_writer *w;
	int code;

	memset(out, 0, sizeof(*out));
	code = check_owner(dir, err);
	if (!code && from->out)
		code = begin_apart(dir, from->out, err);
	if (code)
		return code;
	/* The lock first: what a living kron still writes says nothing yet. */
	code = lock_trace(&w, where, err);
	if (!code)
		code = recover_locked(where, w, from, out, err);
	if (code && from->out)
		writer_remove_dir(from->out);
	return code;
}

bool recover_is_for(const char *dir, const char *object)
{
	char *path = xasprintf("%s/session", dir);
	bool gone = access(path, F_OK) && errno == ENOENT;
	const char *name;
	struct trace *t;
	bool named;

	xfree(path);
	if (gone)
		return false;
	if (trace_open(&t, dir, NULL))
		return true; /* for all that can be told */
	name = trace_session(t, "segment");
	named = name && !strcmp(name, object);
	trace_close(t);
	return named;
}

int recover_trace(const char *dir, struct recovery *out, struct err *err)
{
	return recover(dir, &(struct origin){.memory = -1}, out, err);
}

int recover_core(const char *dir, const char *core, const char *out_dir, struct recovery *out,
		 struct err *err)
{
	return recover(dir, &(struct origin){.memory = -1, .core = core, .out = out_dir}, out, err);
}

/* What a core names, its process may have made up: we write to a directory of ours only. */
static bool is_own(const char *dir)
{
	struct stat st;

	return !lstat(dir, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

/* The first of the trace and `dir` that is of that recording, or NULL. */
static const char *first_of(const struct core_origin *o, const char *dir)
{
	if (o->dir[0] && is_own(o->dir) && recover_is_for(o->dir, o->object))
		return o->dir;
	return recover_is_for(dir, o->object) ? dir : NULL;
}

int recover_find_dir(const char *core, char **dir, struct err *err)
{
	struct core_origin o;
	const char *found;
	char *copy;

	if (!core_find_origin(core, &o))
		return 0; /* recover_core() says why not */
	found = first_of(&o, *dir);
	if (found) {
		copy = xstrdup(found);
		xfree(*dir);
		*dir = copy;
		return 0;
	}
	if (o.dir[0])
		return err_set(err, ENOENT,
			       "%.120s is of the recording in %.200s, which is not here: give its "
			       "directory, or a copy of it, after the core: `kron recover %.120s "
			       "DIR`",
			       core, o.dir, core);
	return err_set(err, ENOENT,
		       "%.120s does not say where its recording is: give that directory after the "
		       "core: `kron recover %.120s DIR`",
		       core, core);
}

int recover_held(const char *dir, const char *object, int memory, struct recovery *out,
		 struct err *err)
{
	return recover(dir, &(struct origin){.object = object, .memory = memory}, out, err);
}
