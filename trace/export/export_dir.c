/* SPDX-License-Identifier: MIT */
/* export_dir.c - see export_dir.h. */
#include "trace/export/export_dir.h"

#include <errno.h>
#include <fcntl.h>

#include "base/stream.h"
#include "base/vec.h"

int export_dir_begin(struct export_dir *d, const char *path, struct err *err)
{
	d->error = 0;
	return output_begin(&d->out, path, OUTPUT_FOLDER, err);
}

void export_dir_make(struct export_dir *d, const char *name)
{
	char *path = xasprintf("%s/%s", export_dir_path(d), name);

	if (mkdir(path, 0777) && errno != EEXIST && !d->error)
		d->error = errno;
	xfree(path);
}

FILE *export_dir_open(struct export_dir *d, const char *name)
{
	char *path = xasprintf("%s/%s", export_dir_path(d), name);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd < 0 && !d->error)
		d->error = errno;
	xfree(path);
	return stream_open(fd, true, &d->error);
}

void export_dir_close(struct export_dir *d, FILE *f)
{
	if (fclose(f) && !d->error)
		d->error = errno;
}

int export_dir_end(struct export_dir *d, struct err *err)
{
	d->out.error = d->error;
	return output_end(&d->out, err);
}
