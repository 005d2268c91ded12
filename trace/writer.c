/* SPDX-License-Identifier: MIT */
/*
 * writer.c - makes and appends to a trace directory.
 *
 * What a reader finds after a crash at any moment is whole lines and whole chunks, plus at most
 * one torn tail a file, which it ignores.  When a write fails half-way (full disk), the file is
 * cut back to its last whole line or chunk, so that later writes that succeed stay readable.
 */
#define _GNU_SOURCE
#include "trace/writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/vec.h"
#include "trace/chunks.h"
#include "trace/names.h"
#include "trace/sample_file.h"
#include "trace/table_lines.h"
#include "trace/writer_dir.h"

#define FLUSH_AT (64 * 1024)

struct text_file {
	int fd;
	off_t good; /* bytes of whole lines on disk */
	table_text buf;
};

struct trace_writer {
	pthread_mutex_t mutex;
	int lock_fd;
	struct writer_aside aside; /* until a close */
	struct sample_file samples;
	char *dir; /* for files that are made when there is something for them */
	int switches_fd;
	off_t switches_good;
	struct text_file text[WRITER_TEXTS];
	struct kept_names *names; /* or NULL */
	uint64_t named;           /* lines that are in there */
	int first_error;
	int (*gate)(void *ctx); /* or NULL */
	void *gate_ctx;
};

/* ---- open ---- */

static int open_file(const char *dir, const char *file, int *fd, struct err *err)
{
	char *name = xasprintf("%s/%s", dir, file);
	int ret = 0;

	*fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (*fd < 0)
		ret = err_set(err, errno, "cannot write %s: %s", name, strerror(errno));
	xfree(name);
	return ret;
}

static struct trace_writer *writer_new(void)
{
	struct trace_writer *w = xcalloc(1, sizeof(*w));

	pthread_mutex_init(&w->mutex, NULL);
	w->lock_fd = w->switches_fd = -1;
	w->samples = SAMPLE_FILE_INIT;
	for (size_t i = 0; i < WRITER_TEXTS; i++)
		w->text[i].fd = -1;
	return w;
}

static void writer_free(struct trace_writer *w)
{
	for (size_t i = 0; i < WRITER_TEXTS; i++) {
		if (w->text[i].fd >= 0)
			close(w->text[i].fd);
		vec_free(&w->text[i].buf);
	}
	sample_file_close(&w->samples);
	kept_names_free(w->names);
	if (w->switches_fd >= 0)
		close(w->switches_fd);
	xfree(w->dir);
	if (w->lock_fd >= 0)
		close(w->lock_fd);
	pthread_mutex_destroy(&w->mutex);
	xfree(w);
}

/* The others are made when there is something to write: many stay empty, and each file costs
 * a short recording some 0.1 ms, with the old one that is removed. */
static int open_first(struct trace_writer *w, const char *dir, struct err *err)
{
	int ret = open_file(dir, "samples", &w->samples.fd, err);

	w->dir = realpath(dir, NULL);
	return ret ? ret
		   : open_file(dir, writer_files[WRITER_SESSION], &w->text[WRITER_SESSION].fd, err);
}

static int open_all(struct trace_writer *w, const char *dir, struct err *err)
{
	int ret = open_first(w, dir, err);

	for (size_t i = 0; !ret && i < WRITER_TEXTS; i++)
		if (i != WRITER_SESSION)
			ret = open_file(dir, writer_files[i], &w->text[i].fd, err);
	return ret;
}

static char *without_slashes(const char *dir)
{
	size_t n = strlen(dir);

	while (n > 1 && dir[n - 1] == '/')
		n--;
	return xstrndup(dir, n);
}

static int write_version(struct trace_writer *w, const char *path, struct err *err)
{
	int ret = trace_writer_session(w, "version", "%d", TRACE_VERSION);

	if (!ret)
		ret = trace_writer_flush(w);
	return ret ? err_set(err, -ret, "cannot write to %s: %s", path, strerror(-ret)) : 0;
}

int trace_writer_create(struct trace_writer **out, const char *dir, struct err *err)
{
	struct trace_writer *w;
	char *path;
	int ret;

	*out = NULL;
	if (!dir[0])
		return err_set(err, EINVAL, "the name of the trace directory is empty");
	path = without_slashes(dir);
	w = writer_new();
	ret = writer_prepare_dir(path, &w->aside, err);
	if (!ret)
		ret = writer_lock_dir(path, &w->lock_fd, err);
	if (!ret)
		ret = open_first(w, path, err);
	if (!ret)
		ret = write_version(w, path, err);
	if (ret)
		trace_writer_undo(w);
	else
		*out = w;
	xfree(path);
	return ret;
}

/* Length of fd's content up to the last newline. */
static int whole_lines(int fd, off_t *good)
{
	off_t end = lseek(fd, 0, SEEK_END);
	char buf[4096];

	if (end < 0)
		return -errno;
	while (end > 0) {
		size_t want = end < (off_t)sizeof(buf) ? (size_t)end : sizeof(buf);
		ssize_t n = pread(fd, buf, want, end - (off_t)want);

		if (n != (ssize_t)want)
			return n < 0 ? -errno : -EIO;
		for (size_t i = want; i > 0; i--)
			if (buf[i - 1] == '\n') {
				*good = end - (off_t)want + (off_t)i;
				return 0;
			}
		end -= (off_t)want;
	}
	*good = 0;
	return 0;
}

static int cut_torn_tails(struct trace_writer *w)
{
	struct chunk_map map;
	int ret;

	for (size_t i = 0; i < WRITER_TEXTS; i++) {
		ret = whole_lines(w->text[i].fd, &w->text[i].good);
		if (ret)
			return ret;
		if (ftruncate(w->text[i].fd, w->text[i].good))
			return -errno;
	}
	ret = chunk_map_open(&map, w->samples.fd);
	if (ret)
		return ret;
	w->samples.good = (off_t)chunk_map_whole(&map);
	chunk_map_close(&map);
	return ftruncate(w->samples.fd, w->samples.good) ? -errno : 0;
}

int trace_writer_reopen(struct trace_writer **out, const char *dir, struct err *err)
{
	struct trace_writer *w;
	char *path;
	int ret;

	*out = NULL;
	path = without_slashes(dir);
	ret = writer_check_dir(path, err);
	if (ret) {
		xfree(path);
		return ret;
	}
	w = writer_new();
	ret = writer_lock_dir(path, &w->lock_fd, err);
	if (!ret)
		ret = open_all(w, path, err);
	if (!ret) {
		ret = cut_torn_tails(w);
		if (ret)
			err_set(err, -ret, "cannot mend the end of the files in %s: %s", path,
				strerror(-ret));
	}
	if (ret)
		writer_free(w);
	else
		*out = w;
	xfree(path);
	return ret;
}

/* ---- append ---- */

static int note_error(struct trace_writer *w, int ret)
{
	if (ret && !w->first_error)
		w->first_error = ret;
	return ret;
}

static int open_later(const struct trace_writer *w, const char *file, int *fd)
{
	struct err err;

	return w->dir ? open_file(w->dir, file, fd, &err) : -ENOENT;
}

static int flush_text(struct trace_writer *w, struct text_file *t)
{
	struct iovec iov = {t->buf.v, t->buf.n};
	int ret = 0;

	if (!t->buf.n)
		return 0;
	if (t->fd < 0)
		ret = open_later(w, writer_files[t - w->text], &t->fd);
	if (!ret)
		ret = write_whole(t->fd, &iov, 1, t->good);
	if (!ret) {
		t->good += (off_t)t->buf.n;
		t->buf.n = 0;
	}
	return note_error(w, ret);
}

/* A line has been put. */
static int end_line(struct trace_writer *w, struct text_file *t)
{
	return t->buf.n >= FLUSH_AT ? flush_text(w, t) : 0;
}

int trace_writer_session(struct trace_writer *w, const char *key, const char *fmt, ...)
{
	struct text_file *t = &w->text[WRITER_SESSION];
	va_list ap;
	char *value;
	int ret;

	va_start(ap, fmt);
	ret = vasprintf(&value, fmt, ap);
	va_end(ap);
	if (ret < 0)
		return -ENOMEM;
	pthread_mutex_lock(&w->mutex);
	table_put_text(&t->buf, key);
	table_put_char(&t->buf, '=');
	table_put_text(&t->buf, value);
	table_put_char(&t->buf, '\n');
	ret = end_line(w, t);
	pthread_mutex_unlock(&w->mutex);
	xfree(value);
	return ret;
}

/* add: what it says is among the names. */
static int put_row(struct trace_writer *w, enum writer_text table, row_layout *layout,
		   kept_names_add *add, const void *line, size_t size)
{
	struct text_file *t = &w->text[table];
	int ret;

	pthread_mutex_lock(&w->mutex);
	if (add && w->names) {
		add(w->names, line);
		w->named++;
	}
	row_write(&t->buf, layout, line, size);
	ret = end_line(w, t);
	pthread_mutex_unlock(&w->mutex);
	return ret;
}

int trace_writer_module(struct trace_writer *w, const struct trace_module_line *m)
{
	return put_row(w, WRITER_MODULES, row_module, kept_names_add_module, m, sizeof(*m));
}

int trace_writer_function(struct trace_writer *w, const struct trace_function_line *f)
{
	return put_row(w, WRITER_FUNCTIONS, row_function, kept_names_add_function, f, sizeof(*f));
}

int trace_writer_jump(struct trace_writer *w, const struct trace_jump_line *j)
{
	return put_row(w, WRITER_JUMPS, row_jump, kept_names_add_jump, j, sizeof(*j));
}

int trace_writer_event(struct trace_writer *w, const struct trace_event_line *e)
{
	return put_row(w, WRITER_EVENTS, row_event, kept_names_add_event, e, sizeof(*e));
}

int trace_writer_refusal(struct trace_writer *w, const struct trace_refusal_line *r)
{
	return put_row(w, WRITER_REFUSALS, row_refusal, NULL, r, sizeof(*r));
}

int trace_writer_import(struct trace_writer *w, const struct trace_import_line *i)
{
	return put_row(w, WRITER_IMPORTS, row_import, NULL, i, sizeof(*i));
}

int trace_writer_proc(struct trace_writer *w, const struct trace_proc_line *p)
{
	return put_row(w, WRITER_TASKS, row_proc, NULL, p, sizeof(*p));
}

int trace_writer_proc_end(struct trace_writer *w, const struct trace_proc_end_line *e)
{
	return put_row(w, WRITER_TASKS, row_proc_end, NULL, e, sizeof(*e));
}

int trace_writer_thread(struct trace_writer *w, const struct trace_thread_line *t)
{
	return put_row(w, WRITER_TASKS, row_thread, NULL, t, sizeof(*t));
}

int trace_writer_change(struct trace_writer *w, const struct trace_change_line *c)
{
	return put_row(w, WRITER_CHANGES, row_change, NULL, c, sizeof(*c));
}

int trace_writer_sleep(struct trace_writer *w, const struct trace_sleep_line *s)
{
	return put_row(w, WRITER_SLEEPS, row_sleep, NULL, s, sizeof(*s));
}

int trace_writer_untraced(struct trace_writer *w, const struct trace_untraced_line *u)
{
	return put_row(w, WRITER_TASKS, row_untraced, NULL, u, sizeof(*u));
}

int trace_writer_column(struct trace_writer *w, const struct trace_column_line *c)
{
	return put_row(w, WRITER_MONITOR, row_column, NULL, c, sizeof(*c));
}

int trace_writer_interval(struct trace_writer *w, const struct trace_interval_line *i)
{
	return put_row(w, WRITER_MONITOR, row_interval, NULL, i, sizeof(*i));
}

int trace_writer_monitored(struct trace_writer *w, const struct trace_monitored_line *m)
{
	return put_row(w, WRITER_MONITOR, row_monitored, NULL, m, sizeof(*m));
}

void trace_writer_keep_names(struct trace_writer *w)
{
	pthread_mutex_lock(&w->mutex);
	if (!w->names)
		w->names = kept_names_new();
	w->named++; /* even none are more than nothing */
	pthread_mutex_unlock(&w->mutex);
}

bool trace_writer_show_names(struct trace_writer *w, uint64_t *seen,
			     void (*show)(void *ctx, const struct trace_names *names), void *ctx)
{
	bool more;

	pthread_mutex_lock(&w->mutex);
	more = w->names && w->named != *seen;
	if (more)
		show(ctx, kept_names_settle(w->names));
	*seen = w->named;
	pthread_mutex_unlock(&w->mutex);
	return more;
}

void trace_writer_set_gate(struct trace_writer *w, int (*gate)(void *ctx), void *ctx)
{
	w->gate = gate;
	w->gate_ctx = ctx;
}

static bool is_well_formed(const struct trace_chunk *head)
{
	return head->nbytes <= TRACE_CHUNK_MAX && head->nbytes % 4 == 0;
}

int trace_writer_chunk(struct trace_writer *w, const struct trace_chunk *head, const void *samples)
{
	int ret;

	if (!is_well_formed(head))
		return -EINVAL;
	ret = w->gate ? w->gate(w->gate_ctx) : 0;
	if (ret)
		return note_error(w, ret);
	pthread_mutex_lock(&w->mutex);
	ret = note_error(w, sample_file_append(&w->samples, head, samples));
	pthread_mutex_unlock(&w->mutex);
	return ret;
}

bool trace_writer_stage(struct trace_writer *w, const struct trace_chunk *head, const void *samples)
{
	bool fits;

	if (!is_well_formed(head))
		return false;
	pthread_mutex_lock(&w->mutex);
	fits = sample_file_stage(&w->samples, head, samples);
	pthread_mutex_unlock(&w->mutex);
	return fits;
}

int trace_writer_commit(struct trace_writer *w)
{
	int ret = w->gate ? w->gate(w->gate_ctx) : 0;

	pthread_mutex_lock(&w->mutex);
	if (ret)
		w->samples.staged = 0;
	else
		ret = sample_file_commit(&w->samples);
	pthread_mutex_unlock(&w->mutex);
	return ret;
}

static int open_switches(struct trace_writer *w)
{
	return w->switches_fd >= 0 ? 0 : open_later(w, "switches", &w->switches_fd);
}

int trace_writer_switches(struct trace_writer *w, const struct trace_switch *v, size_t n)
{
	struct iovec iov = {(void *)(uintptr_t)v, n * sizeof(*v)};
	int ret;

	pthread_mutex_lock(&w->mutex);
	ret = open_switches(w);
	if (!ret)
		ret = write_whole(w->switches_fd, &iov, 1, w->switches_good);
	if (!ret)
		w->switches_good += (off_t)iov.iov_len;
	pthread_mutex_unlock(&w->mutex);
	return ret;
}

int trace_writer_flush(struct trace_writer *w)
{
	int ret = 0;

	pthread_mutex_lock(&w->mutex);
	for (size_t i = 0; i < WRITER_TEXTS; i++) {
		int r = flush_text(w, &w->text[i]);

		if (r && !ret)
			ret = r;
	}
	pthread_mutex_unlock(&w->mutex);
	return ret;
}

void trace_writer_settle(struct trace_writer *w)
{
	writer_settle_dir(&w->aside);
}

int trace_writer_close(struct trace_writer *w)
{
	int ret = trace_writer_flush(w);

	if (!ret)
		ret = w->first_error;
	writer_keep_dir(&w->aside);
	writer_free(w);
	return ret;
}

void trace_writer_undo(struct trace_writer *w)
{
	struct writer_aside aside = w->aside;

	writer_free(w); /* its lock, too */
	writer_restore_dir(&aside);
}
