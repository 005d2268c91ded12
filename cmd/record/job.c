/* SPDX-License-Identifier: MIT */
/*
 * job.c - each rank of an MPI job records to a directory of its own, in one folder.
 *
 *   kron.data/.job   says which job's it is: the first rank that comes makes room for it
 *   kron.data/0, kron.data/1, ...
 *
 * Ranks come at the same time, so that they take turns by a lock on the folder.
 */
#define _GNU_SOURCE
#include "cmd/record/job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/vec.h"
#include "collect/kernel/process_maps.h"
#include "trace/writer_dir.h"

#define MARK ".job"
enum { ID_SIZE = 256, TURNS = 100 };
enum { LOCK_PAUSE_MS = 10, LOCK_MS = 60000 };

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static const char *first_of(const char *a, const char *b, const char *c)
{
	const char *value = variable(a);

	value = value ? value : variable(b);
	return value ? value : variable(c);
}

/* NULL: this is no rank of several. */
static const char *rank_of_several(void)
{
	const char *rank = first_of("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK");
	const char *size = first_of("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS");
	const size_t length = rank ? strlen(rank) : 0;

	if (!length || !size || atoi(size) < 2)
		return NULL;
	return length < 10 && strspn(rank, "0123456789") == length ? rank : NULL;
}

/* What all ranks of a job have, and no other job. */
static void job_id(char id[ID_SIZE])
{
	const char *name = first_of("PMIX_NAMESPACE", "OMPI_MCA_orte_ess_jobid", "PMI_JOBID");
	const char *step = variable("SLURM_STEP_ID"), *here = variable("MPI_LOCALNRANKS");
	const char *size = variable("PMI_SIZE");
	struct process_stat parent = {0};

	if (name)
		snprintf(id, ID_SIZE, "%s", name);
	else if (variable("SLURM_JOB_ID"))
		snprintf(id, ID_SIZE, "%s.%s", variable("SLURM_JOB_ID"), step ? step : "");
	else if (here && size && !strcmp(here, size)) { /* Hydra's proxy has started all of them */
		process_read_stat(getppid(), 0, &parent);
		snprintf(id, ID_SIZE, "%d.%" PRIu64, (int)getppid(), parent.starttime);
	} else
		snprintf(id, ID_SIZE, "?");
}

/* Of a folder that is open. false: it has none. */
static bool read_mark(int dir, char id[ID_SIZE])
{
	const int fd = openat(dir, MARK, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, id, ID_SIZE - 1);
	close(fd);
	id[n > 0 ? n : 0] = 0;
	return true;
}

static int write_mark(int dir, const char *path, const char *id, struct err *err)
{
	const int fd = openat(dir, MARK, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	const size_t n = strlen(id);
	bool ok = fd >= 0 && write(fd, id, n) == (ssize_t)n;

	if (fd >= 0 && close(fd))
		ok = false;
	return ok ? 0
		  : err_set(err, errno ? errno : EIO, "cannot write %s/%s: %s", path, MARK,
			    strerror(errno));
}

static bool is_empty(int dir)
{
	DIR *d = fdopendir(dup(dir));
	struct dirent *de;
	int n = 0;

	if (!d)
		return false;
	rewinddir(d);
	while ((de = readdir(d)))
		n += strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0;
	closedir(d);
	return !n;
}

/* RANK, or RANK.old of a rank that has recorded twice. */
static bool is_rank(const char *name)
{
	const size_t n = strspn(name, "0123456789");

	return n && (!name[n] || !strcmp(name + n, ".old"));
}

/* Of an older job: a trace, or what one has begun with, that nobody writes to. 1: it is none. */
static int check_rank(int folder, const char *path, const char *name, struct err *err)
{
	const int dir = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const bool empty = dir >= 0 && is_empty(dir);
	char *each = xasprintf("%s/%s", path, name);
	int lock, code = 1;

	if (empty) {
		code = 0;
	} else if (dir >= 0 && !writer_check_dir(each, err)) {
		code = writer_lock_dir(each, &lock, err);
		if (!code)
			close(lock);
	}
	if (dir >= 0)
		close(dir);
	xfree(each);
	return code;
}

/* Is nothing else there? */
static int check_folder(const char *path, DIR *d, struct err *err)
{
	struct dirent *de;
	int code = 0;

	while (!code && (de = readdir(d))) {
		const char *name = de->d_name;

		if (is_rank(name))
			code = check_rank(dirfd(d), path, name, err);
		else
			code = strcmp(name, ".") && strcmp(name, "..") && strcmp(name, MARK);
		if (code > 0)
			code = err_set(
				err, EEXIST,
				"cannot remove %s, of an older MPI job: it holds %s, which is "
				"no trace of a rank",
				path, name);
	}
	rewinddir(d);
	return code;
}

static int remove_ranks(const char *path, DIR *d)
{
	char *mark = xasprintf("%s/" MARK, path);
	struct dirent *de;

	while ((de = readdir(d))) {
		char *each = xasprintf("%s/%s", path, de->d_name);

		if (is_rank(de->d_name))
			writer_remove_dir(each);
		xfree(each);
	}
	unlink(mark);
	xfree(mark);
	return rmdir(path);
}

/*
 * The folder of an older job; where anything but traces of its ranks is there, nothing goes. Of a symbolic link the link goes,
 * and what it leads to stays.
 */
static int remove_folder(const char *path, struct err *err)
{
	DIR *d = opendir(path);
	char id[ID_SIZE];
	struct stat st;
	int code = 0;

	if (!d || !read_mark(dirfd(d), id))
		goto out;
	if (!lstat(path, &st) && S_ISLNK(st.st_mode))
		code = unlink(path);
	else if ((code = check_folder(path, d, err)))
		goto out;
	else
		code = remove_ranks(path, d);
	if (code)
		code = err_set(err, errno, "cannot remove %s, of an older MPI job: %s", path,
			       strerror(errno));
out:
	if (d)
		closedir(d);
	return code;
}

/* What stands at the path goes to path.old. */
static int set_aside(const char *path, bool is_job, struct err *err)
{
	char *old = xasprintf("%s.old", path);
	struct writer_aside aside = {0};
	int code = remove_folder(old, err);

	if (!code && !is_job)
		code = writer_prepare_dir(path, &aside,
					  err); /* a trace becomes .old, others are refused */
	else if (!code) {
		writer_remove_dir(old);
		if (rename(path, old))
			code = err_set(err, errno, "cannot rename %s to %s: %s", path, old,
				       strerror(errno));
	}
	writer_keep_dir(&aside);
	xfree(old);
	return code;
}

/* Others have it as long as they take an older job away. Whoever keeps it does not hold this one up for ever. */
static int lock_folder(int dir, const char *path, struct err *err)
{
	const struct timespec pause = {.tv_nsec = LOCK_PAUSE_MS * 1000000L};

	for (int ms = 0; ms < LOCK_MS; ms += LOCK_PAUSE_MS) {
		/* where the file system has none, ranks only seldom meet */
		if (!flock(dir, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
			return 0;
		nanosleep(&pause, NULL);
	}
	return err_set(err, EBUSY, "cannot have %s: another process keeps it locked", path);
}

/* The folder is this job's now. 1: it has gone meanwhile, or has to be looked at again. */
static int take_folder(const char *path, const char *id, struct err *err)
{
	const int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char theirs[ID_SIZE];
	struct stat a, b;
	bool is_job;
	int code;

	if (dir < 0)
		return errno == ENOENT
			       ? 1
			       : err_set(err, errno, "cannot open %s: %s", path, strerror(errno));
	code = lock_folder(dir, path, err);
	if (code) {
		close(dir);
		return code;
	}
	if (fstat(dir, &a) || stat(path, &b) || a.st_ino != b.st_ino || a.st_dev != b.st_dev) {
		close(dir);
		return 1;
	}
	is_job = read_mark(dir, theirs);
	if (is_job && !strcmp(theirs, id))
		code = 0;
	else if (!is_job && is_empty(dir))
		code = write_mark(dir, path, id, err);
	else
		code = set_aside(path, is_job, err) ?: 1;
	close(dir);
	return code;
}

/* For a trace at the path itself. */
static int make_room(const char *path, struct err *err)
{
	const int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char id[ID_SIZE], *old;
	int code = 0;

	if (dir < 0)
		return 0;
	if (read_mark(dir, id)) {
		code = lock_folder(dir, path, err);
		if (!code)
			code = set_aside(path, true, err);
	} else if (!writer_check_dir(path, err)) {
		old = xasprintf("%s.old", path);
		code = remove_folder(old, err);
		xfree(old);
	}
	close(dir);
	return code;
}

/* The job's folder, for the rank. */
static int folder_of_job(const char *dir, const char *rank, char **out, struct err *err)
{
	char id[ID_SIZE];
	int code = 1;

	job_id(id);
	for (int turn = 0; code == 1 && turn < TURNS; turn++) {
		if (mkdir(dir, 0700) && errno != EEXIST)
			return err_set(err, errno, "cannot make the folder %s: %s", dir,
				       strerror(errno));
		code = take_folder(dir, id, err);
	}
	if (code == 1)
		return err_set(err, EBUSY, "cannot have %s for this job: others take it, too", dir);
	if (!code)
		*out = xasprintf("%s/%s", dir, rank);
	return code;
}

int job_dir(const char *dir, char **out, struct err *err)
{
	const char *rank = rank_of_several();
	size_t n = strlen(dir);
	char *folder;
	int code;

	while (n > 1 && dir[n - 1] == '/') /* what is called .old stands beside it */
		n--;
	folder = xstrndup(dir, n);
	*out = NULL;
	code = rank ? folder_of_job(folder, rank, out, err) : make_room(folder, err);
	xfree(folder);
	return code;
}
