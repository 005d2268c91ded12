/* SPDX-License-Identifier: MIT */
/* stream.c - see stream.h. */
#define _GNU_SOURCE
#include "base/stream.h"

#include <errno.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/vec.h"

struct stream {
	int fd;
	bool owned;
	int *error;
};

static ssize_t put(void *cookie, const char *data, size_t n)
{
	struct stream *s = cookie;
	size_t done = 0;

	while (!*s->error && done < n) {
		ssize_t r = write(s->fd, data + done, n - done);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			*s->error = r ? errno : EIO;
		else
			done += (size_t)r;
	}
	return *s->error ? 0 : (ssize_t)n;
}

static int seek(void *cookie, off64_t *at, int whence)
{
	const struct stream *s = cookie;

	*at = lseek(s->fd, *at, whence);
	return *at < 0 ? -1 : 0;
}

static int finish(void *cookie)
{
	struct stream *s = cookie;
	bool failed = s->owned && s->fd >= 0 && close(s->fd);

	if (failed && !*s->error)
		*s->error = errno;
	xfree(s);
	return failed ? -1 : 0;
}

FILE *stream_open(int fd, bool owned, int *error)
{
	const cookie_io_functions_t functions = {.write = put, .seek = seek, .close = finish};
	struct stream *s = xmalloc(sizeof(*s));
	FILE *f;

	*s = (struct stream){fd, owned, error};
	f = fopencookie(s, "w", functions);
	if (!f)
		abort(); /* no memory */
	__fsetlocking(f, FSETLOCKING_BYCALLER);
	return f;
}
