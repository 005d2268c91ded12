/* SPDX-License-Identifier: MIT */
/* sample_file.c - see sample_file.h. */
#define _GNU_SOURCE
#include "trace/sample_file.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "trace/packed.h"

#define ALIGN 4096u        /* of memory, offset and length: enough for every disk that we know */
#define STAGE (256u << 10) /* chunks are held until it is written: some forty of them, packed */
/* Less is not worth the wait for the disk. */
#define DIRECT_AT_LEAST (STAGE / 4)
/*
 * A disk that takes so much has all our batches.  A slower one has them if the page cache is not
 * much faster: copying costs a processor, waiting for the disk none.  It is asked again every
 * SLOW_BYTES.
 */
#define FAST_BYTES_PER_S 500e6
#define CACHE_IS_FASTER 1.5
#define SLOW_BYTES ((off_t)64 << 20)

void sample_file_close(struct sample_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	free(f->stage);
	*f = SAMPLE_FILE_INIT;
}

int write_whole(int fd, struct iovec *iov, int n, off_t off)
{
	off_t at = off;
	int ret;

	while (n > 0) {
		ssize_t did = pwritev(fd, iov, n, at);

		if (did < 0 && errno == EINTR)
			continue;
		if (did <= 0) {
			ret = did ? -errno : -EIO;
			if (ftruncate(fd, off))
				return ret; /* the reader copes with a torn tail */
			return ret;
		}
		at += did;
		while (n > 0 && (size_t)did >= iov->iov_len) {
			did -= (ssize_t)iov->iov_len;
			iov++, n--;
		}
		if (n > 0) {
			iov->iov_base = (char *)iov->iov_base + did;
			iov->iov_len -= (size_t)did;
		}
	}
	return 0;
}

static struct trace_chunk header_of(const struct trace_chunk *head)
{
	struct trace_chunk h = *head;

	h.magic = TRACE_CHUNK_MAGIC;
	return h;
}

int sample_file_append(struct sample_file *f, const struct trace_chunk *head, const void *samples)
{
	struct trace_chunk h = header_of(head);
	struct iovec iov[2] = {{&h, sizeof(h)}, {(void *)(uintptr_t)samples, h.nbytes}};
	int ret = write_whole(f->fd, iov, h.nbytes ? 2 : 1, f->good);

	if (!ret)
		f->good += (off_t)(sizeof(h) + h.nbytes);
	return ret;
}

/* ---- batches ---- */

bool sample_file_stage(struct sample_file *f, const struct trace_chunk *head, const void *samples)
{
	struct trace_chunk h = header_of(head);
	size_t packed;
	uint8_t *at;

	if (!f->stage && posix_memalign((void **)&f->stage, ALIGN, STAGE))
		return false;
	/* a pad after all of it must fit */
	if (2 * sizeof(h) + h.nbytes > STAGE - f->staged)
		return false;
	at = f->stage + f->staged;
	packed = packed_make(at + sizeof(h), h.nbytes, samples, h.nbytes);
	if (packed) {
		h.magic = TRACE_PACKED_MAGIC;
		h.nbytes = (uint32_t)packed;
	} else {
		memcpy(at + sizeof(h), samples, h.nbytes);
	}
	memcpy(at, &h, sizeof(h));
	f->staged += sizeof(h) + h.nbytes;
	return true;
}

/* Bytes of a pad record that ends at a multiple of ALIGN, 0 if `at` is one. */
static size_t pad_at(off_t at)
{
	size_t gap = (size_t)-at % ALIGN;

	return gap && gap < sizeof(struct trace_chunk) ? gap + ALIGN : gap;
}

static void make_pad(uint8_t *at, size_t len)
{
	struct trace_chunk pad = {.magic = TRACE_PAD_MAGIC,
				  .nbytes = (uint32_t)(len - sizeof(pad))};

	if (!len)
		return;
	memset(at, 0, len);
	memcpy(at, &pad, sizeof(pad));
}

static int write_pad(struct sample_file *f)
{
	uint8_t pad[2 * ALIGN];
	struct iovec iov = {pad, pad_at(f->good)};
	int ret;

	if (!iov.iov_len)
		return 0;
	make_pad(pad, iov.iov_len);
	ret = write_whole(f->fd, &iov, 1, f->good);
	if (!ret)
		f->good += (off_t)iov.iov_len;
	return ret;
}

/* write_whole() of one piece, and how fast it was. */
static int write_timed(struct sample_file *f, struct iovec *iov, double *rate)
{
	double bytes = (double)iov->iov_len;
	uint64_t start = clock_ns(CLOCK_MONOTONIC);
	int ret;

	ret = write_whole(f->fd, iov, 1, f->good);
	*rate = bytes * 1e9 / (double)(clock_ns(CLOCK_MONOTONIC) - start + 1);
	return ret;
}

static int set_direct(struct sample_file *f, bool on)
{
	int flags = fcntl(f->fd, F_GETFL);

	if (flags < 0 || fcntl(f->fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT))
		return -errno;
	return 0;
}

/* The stage is full of whole chunks and the file ends at a multiple of ALIGN. */
static int write_direct(struct sample_file *f)
{
	size_t pad = pad_at((off_t)f->staged);
	struct iovec iov = {f->stage, f->staged + pad};
	double rate;
	int ret = set_direct(f, true);

	if (ret)
		return ret;
	make_pad(f->stage + f->staged, pad);
	ret = write_timed(f, &iov, &rate);
	if (!ret)
		f->good += (off_t)(f->staged + pad);
	if (!ret && rate < FAST_BYTES_PER_S &&
	    (!f->cache_rate || f->cache_rate > rate * CACHE_IS_FASTER))
		f->slow_to = f->good + SLOW_BYTES;
	set_direct(f, false);
	return ret;
}

static int write_staged(struct sample_file *f)
{
	struct iovec iov = {f->stage, f->staged};
	double rate;
	int ret;

	if (f->staged >= DIRECT_AT_LEAST && !f->no_direct && f->good >= f->slow_to) {
		ret = write_pad(f);
		if (!ret)
			ret = write_direct(f);
		if (!ret)
			return 0;
		f->no_direct = ret != -ENOSPC;
	}
	ret = write_timed(f, &iov, &rate);
	if (ret)
		return ret;
	f->good += (off_t)f->staged;
	if (f->staged >= DIRECT_AT_LEAST) /* the last ones count most */
		f->cache_rate += (rate - f->cache_rate) / (f->cache_rate ? 8 : 1);
	return 0;
}

int sample_file_commit(struct sample_file *f)
{
	int ret = f->staged ? write_staged(f) : 0;

	f->staged = 0;
	return ret;
}
