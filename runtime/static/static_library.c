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
#include "runtime/sys/procfile.h"
#include "runtime/static/static.h"
#include "runtime/sys/mini.h"

/* ---- the environment ---- */

/* The next entry, or what of it fits; false: there is none. */
static bool next_entry(struct rt_procfile *r, char *out, uint32_t size)
{
	uint32_t n = 0;
	int c = rt_procfile_byte(r);

	if (c < 0)
		return false;
	for (; c > 0; c = rt_procfile_byte(r)) {
		if (n < size - 1)
			out[n++] = (char)c;
	}
	out[n] = 0;
	return true;
}

static bool reads_board(struct rt_procfile *r, char *board)
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
static bool is_secure(struct rt_procfile *r)
{
	Elf64_auxv_t entry;

	for (;;) {
		uint8_t *to = (uint8_t *)&entry;
		uint32_t i;

		for (i = 0; i < sizeof(entry); i++) {
			int c = rt_procfile_byte(r);

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
	struct rt_procfile r;
	bool asked;

	if (!rt_procfile_open(&r, "/proc/self/environ"))
		return false;
	asked = reads_board(&r, board);
	rt_procfile_close(&r);
	if (!asked || !rt_procfile_open(&r, "/proc/self/auxv"))
		return false;
	asked = !is_secure(&r);
	rt_procfile_close(&r);
	return asked;
}
