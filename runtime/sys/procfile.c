/* SPDX-License-Identifier: MIT */
/* procfile.c - see procfile.h. */
#define _GNU_SOURCE
#include <fcntl.h>
#include "runtime/sys/procfile.h"
#include "runtime/sys/sys.h"

bool rt_procfile_open(struct rt_procfile *f, const char *path)
{
	f->at = f->len = 0;
	f->fd = (int)sys4(__NR_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0);
	return f->fd >= 0;
}

int rt_procfile_byte(struct rt_procfile *f)
{
	if (f->at == f->len) {
		long n = sys3(__NR_read, f->fd, (long)f->bytes, sizeof(f->bytes));

		if (n <= 0)
			return -1;
		f->len = (uint32_t)n;
		f->at = 0;
	}
	return f->bytes[f->at++];
}

void rt_procfile_close(struct rt_procfile *f)
{
	sys_close(f->fd);
}

/* ---- mappings ---- */

/* A number in this base, up to the byte that ends it, which is gone then. */
static uint64_t read_number(struct rt_procfile *r, unsigned base, int *end)
{
	uint64_t n = 0;

	for (;;) {
		int c = rt_procfile_byte(r);
		unsigned digit = c >= '0' && c <= '9'   ? (unsigned)c - '0'
				 : c >= 'a' && c <= 'f' ? (unsigned)c - 'a' + 10
							: 16;

		*end = c;
		if (digit >= base)
			return n;
		n = n * base + digit;
	}
}

bool rt_mapping_read(struct rt_procfile *r, struct rt_mapping *m)
{
	unsigned major, minor;
	int c, i;

	m->start = read_number(r, 16, &c);
	if (c < 0)
		return false;
	m->end = read_number(r, 16, &c);
	for (i = 0; i < 4; i++)
		m->rights[i] = (char)rt_procfile_byte(r);
	rt_procfile_byte(r);
	m->off = read_number(r, 16, &c);
	major = (unsigned)read_number(r, 16, &c);
	minor = (unsigned)read_number(r, 16, &c);
	m->dev = (minor & 0xff) | major << 8 | (uint64_t)(minor & ~0xffu) << 12; /* st_dev */
	m->ino = read_number(r, 10, &c);
	while (c >= 0 && c != '\n')
		c = rt_procfile_byte(r);
	return true;
}

bool rt_mapping_at(uint64_t addr, struct rt_mapping *out)
{
	bool found = false;
	struct rt_procfile r;

	if (!rt_procfile_open(&r, "/proc/self/maps"))
		return false;
	while (!found && rt_mapping_read(&r, out))
		found = addr >= out->start && addr < out->end;
	rt_procfile_close(&r);
	return found;
}
