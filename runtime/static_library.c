/* SPDX-License-Identifier: MIT */
/*
 * static_library.c - what a library from `kron patch` has to ask the kernel, because nobody hands it
 * the process's stack: environment, auxiliary vector, and which mappings are there.
 *
 * The C library calls initialisation functions with the environment as it is by then, or with
 * nothing at all; so it is read as the process was given it.  Where there is no /proc, nothing is
 * asked for.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include "runtime/static.h"
#include "runtime/sys.h"
#include "runtime/mini.h"

/* A stack in a program that we do not know. */
#define BLOCK 512u

struct reader {
	int fd;
	uint32_t at, len;
	uint8_t bytes[BLOCK];
};

static bool open_file(struct reader *r, const char *path)
{
	r->at = r->len = 0;
	r->fd = (int)sys4(__NR_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0);
	return r->fd >= 0;
}

/* The next byte; -1 at the end. */
static int next_byte(struct reader *r)
{
	if (r->at == r->len) {
		long n = sys3(__NR_read, r->fd, (long)r->bytes, sizeof(r->bytes));

		if (n <= 0)
			return -1;
		r->len = (uint32_t)n;
		r->at = 0;
	}
	return r->bytes[r->at++];
}

/* ---- the environment ---- */

/* The next entry, or what of it fits; false: there is none. */
static bool next_entry(struct reader *r, char *out, uint32_t size)
{
	uint32_t n = 0;
	int c = next_byte(r);

	if (c < 0)
		return false;
	for (; c > 0; c = next_byte(r)) {
		if (n < size - 1)
			out[n++] = (char)c;
	}
	out[n] = 0;
	return true;
}

static bool reads_board(struct reader *r, char *board)
{
	char entry[sizeof(RT_ENV_BOARD) + RT_BOARD_NAME_MAX + 1];
	bool found = false;

	while (next_entry(r, entry, sizeof(entry))) {
		const char *name = mini_after(entry, RT_ENV_BOARD);

		if (mini_after(entry, KRON_ENV_RT "="))
			return false;
		if (!name || found)
			continue;
		found = mini_len(name) <= RT_BOARD_NAME_MAX;
		if (!found)
			return false;
		mini_copy(board, name, mini_len(name) + 1);
	}
	return found;
}

/* More rights than its caller has: the environment has no say there. */
static bool is_secure(struct reader *r)
{
	Elf64_auxv_t entry;

	for (;;) {
		uint8_t *to = (uint8_t *)&entry;
		uint32_t i;

		for (i = 0; i < sizeof(entry); i++) {
			int c = next_byte(r);

			if (c < 0)
				return true;
			to[i] = (uint8_t)c;
		}
		if (entry.a_type == AT_SECURE)
			return entry.a_un.a_val != 0;
	}
}

bool rt_library_is_asked(char board[RT_BOARD_NAME_MAX + 1])
{
	struct reader r;
	bool asked;

	if (!open_file(&r, "/proc/self/environ"))
		return false;
	asked = reads_board(&r, board);
	sys_close(r.fd);
	if (!asked || !open_file(&r, "/proc/self/auxv"))
		return false;
	asked = !is_secure(&r);
	sys_close(r.fd);
	return asked;
}

/* ---- mappings ---- */

/* A number in this base, up to the byte that ends it, which is gone then. */
static uint64_t read_number(struct reader *r, unsigned base, int *end)
{
	uint64_t n = 0;

	for (;;) {
		int c = next_byte(r);
		unsigned digit = c >= '0' && c <= '9'   ? (unsigned)c - '0'
				 : c >= 'a' && c <= 'f' ? (unsigned)c - 'a' + 10
							: 16;

		*end = c;
		if (digit >= base)
			return n;
		n = n * base + digit;
	}
}

static bool read_mapping(struct reader *r, struct rt_mapping *m)
{
	unsigned major, minor;
	int c, i;

	m->start = read_number(r, 16, &c);
	if (c < 0)
		return false;
	m->end = read_number(r, 16, &c);
	for (i = 0; i < 4; i++)
		m->rights[i] = (char)next_byte(r);
	next_byte(r);
	m->off = read_number(r, 16, &c);
	major = (unsigned)read_number(r, 16, &c);
	minor = (unsigned)read_number(r, 16, &c);
	m->dev = (minor & 0xff) | major << 8 | (uint64_t)(minor & ~0xffu) << 12; /* st_dev */
	m->ino = read_number(r, 10, &c);
	while (c >= 0 && c != '\n')
		c = next_byte(r);
	return true;
}

bool rt_mapping_at(uint64_t addr, struct rt_mapping *out)
{
	bool found = false;
	struct reader r;

	if (!open_file(&r, "/proc/self/maps"))
		return false;
	while (!found && read_mapping(&r, out))
		found = addr >= out->start && addr < out->end;
	sys_close(r.fd);
	return found;
}
