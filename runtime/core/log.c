/* SPDX-License-Identifier: MIT */
/*
 * log.c - one line a call on descriptor 2, and only when KRON_LOG asks for rt:debug.
 */
#include "runtime/core/rt.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

static size_t put_string(char *line, size_t at, size_t room, const char *s)
{
	while (*s && at < room)
		line[at++] = *s++;
	return at;
}

static size_t put_hex(char *line, size_t at, size_t room, uint64_t value)
{
	int shift = 60;

	while (shift > 0 && !(value >> shift & 15))
		shift -= 4;
	for (; shift >= 0 && at < room; shift -= 4)
		line[at++] = "0123456789abcdef"[value >> shift & 15];
	return at;
}

void rt_log(const char *what, uint64_t value)
{
	char line[128];
	size_t room = sizeof(line) - 1;
	size_t at = 0;

	if (!kron_rt.debug)
		return;
	at = put_string(line, at, room, "kron-rt[");
	at = put_hex(line, at, room, (uint64_t)sys_getpid());
	at = put_string(line, at, room, "]: ");
	at = put_string(line, at, room, what);
	at = put_string(line, at, room, " 0x");
	at = put_hex(line, at, room, value);
	line[at++] = '\n';
	sys3(__NR_write, 2, (long)line, (long)at);
}
