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
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"
#include "trace/writer_dir.h"

#define MARK ".job"
enum { ID_SIZE = 256, TURNS = 100 };

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

/* When a process started, by the clock that never goes back; 0: nobody knows. */
static unsigned long long start_of(pid_t pid)
{
	char path[64], text[1024] = "", *p;
	unsigned long long start = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (!fgets(text, sizeof(text), f))
		text[0] = 0;
	fclose(f);
	p = strrchr(text, ')'); /* field 2; the start is field 22 */
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (p)
		start = strtoull(p, NULL, 10);
	return start;
}

/* What all ranks of a job have, and no other job. */
static void job_id(char id[ID_SIZE])
{
	const char *name = first_of("PMIX_NAMESPACE", "OMPI_MCA_orte_ess_jobid", "PMI_JOBID");
	const char *step = variable("SLURM_STEP_ID"), *here = variable("MPI_LOCALNRANKS");
	const char *size = variable("PMI_SIZE");

	if (name)
		snprintf(id, ID_SIZE, "%s", name);
	else if (variable("SLURM_JOB_ID"))
		snprintf(id, ID_SIZE, "%s.%s", variable("SLURM_JOB_ID"), step ? step : "");
	else if (here && size && !strcmp(here, size)) /* Hydra's proxy has started all of them */
		snprintf(id, ID_SIZE, "%d.%llu", (int)getppid(), start_of(getppid()));
	else
		snprintf(id, ID_SIZE, "?");
}

/* Of a folder that is open. false: it has none. */
static bool read_mark(int dir, char id[ID_SIZE])
{
	const int fd = openat(dir, MARK, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
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

/* The ranks of an older job. What is no trace stays, and with it the folder. */
static int remove_folder(const char *path, struct err *err)
{
	char *mark = xasprintf("%s/" MARK, path), id[ID_SIZE];
	DIR *d = opendir(path);
	struct dirent *de;
	int code = 0;

	if (d && read_mark(dirfd(d), id)) {
		while ((de = readdir(d))) {
			char *each = xasprintf("%s/%s", path, de->d_name);

			if (de->d_name[0] != '.')
				writer_remove_dir(each);
			xfree(each);
		}
		unlink(mark);
		if (rmdir(path)) {
			code = err_set(err, errno,
				       "cannot remove %s, of an older MPI job: %s (it holds more "
				       "than traces)",
				       path, strerror(errno));
			close(open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
		}
	}
	if (d)
		closedir(d);
	xfree(mark);
	return code;
}

/* What stands at the path goes to path.old. */
static int set_aside(const char *path, bool is_job, struct err *err)
{
	char *old = xasprintf("%s.old", path);
	int code = remove_folder(old, err);

	if (!code && !is_job)
		code = writer_prepare_dir(path, err); /* a trace becomes .old, others are refused */
	else if (!code) {
		writer_remove_dir(old);
		if (rename(path, old))
			code = err_set(err, errno, "cannot rename %s to %s: %s", path, old,
				       strerror(errno));
	}
	xfree(old);
	return code;
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
	flock(dir, LOCK_EX); /* where the file system has none, ranks only seldom meet */
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
		flock(dir, LOCK_EX);
		code = set_aside(path, true, err);
	} else if (!writer_check_dir(path, err)) {
		old = xasprintf("%s.old", path);
		code = remove_folder(old, err);
		xfree(old);
	}
	close(dir);
	return code;
}

int job_dir(const char *dir, char **out, struct err *err)
{
	const char *rank = rank_of_several();
	char id[ID_SIZE];
	int code = 1;

	*out = NULL;
	if (!rank)
		return make_room(dir, err);
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
