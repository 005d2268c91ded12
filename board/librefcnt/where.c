/* SPDX-License-Identifier: MIT */
/* where.c - where pages of a process lie: /proc/PID/pagemap, /proc/PID/smaps, move_pages(2). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "board/librefcnt/impl.h"

#define BATCH 256u
/* Documentation/admin-guide/mm/pagemap.rst */
#define PAGEMAP_PRESENT (1ull << 63)
#define PAGEMAP_FRAME ((1ull << 55) - 1)

static FILE *open_of(pid_t pid, const char *file)
{
	char path[64];

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	else
		snprintf(path, sizeof(path), "/proc/self/%s", file);
	return fopen(path, "re");
}

/* Frames are 0 for who may not know them. */
static void look_frames(FILE *f, uint64_t start, size_t n, sn0_refcnt_buf_t *buf)
{
	uint64_t word[BATCH];
	ssize_t got = pread(fileno(f), word, n * sizeof(word[0]),
			    (off_t)(start / REFCNT_HW_PAGE * sizeof(word[0])));

	for (size_t i = 0; got > 0 && i < (size_t)got / sizeof(word[0]); i++)
		if (word[i] & PAGEMAP_PRESENT && word[i] & PAGEMAP_FRAME)
			buf[i].paddr = (word[i] & PAGEMAP_FRAME) * REFCNT_HW_PAGE;
}

static void look_nodes(pid_t pid, uint64_t start, size_t n, sn0_refcnt_buf_t *buf)
{
	void *pages[BATCH];
	int status[BATCH];

	for (size_t i = 0; i < n; i++)
		pages[i] = (void *)(uintptr_t)(start + i * REFCNT_HW_PAGE);
	if (syscall(SYS_move_pages, pid, n, pages, NULL, status, 0))
		return;
	for (size_t i = 0; i < n; i++)
		if (status[i] >= 0)
			buf[i].cnodeid = (cnodeid_t)status[i];
}

/* Sizes of the mappings' pages; where the kernel puts a huge page into an ordinary mapping it does not say so. */
void rc_sizes(pid_t pid, uint64_t start, size_t n, sn0_refcnt_buf_t *buf)
{
	FILE *f = open_of(pid, "smaps");
	const uint64_t end = start + n * REFCNT_HW_PAGE;
	uint64_t from = 0, to = 0, a, b, kib;
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &a, &b) == 2) {
			from = a < start ? start : a;
			to = b > end ? end : b;
			if (a >= end)
				break;
		} else if (sscanf(line, "KernelPageSize: %" SCNu64 " kB", &kib) == 1) {
			for (; from < to; from += REFCNT_HW_PAGE)
				buf[(from - start) / REFCNT_HW_PAGE].page_size = kib * 1024;
		}
	}
	if (f)
		fclose(f);
}

void rc_where(pid_t pid, uint64_t start, size_t n, sn0_refcnt_buf_t *buf)
{
	FILE *frames = open_of(pid, "pagemap");

	for (size_t i = 0; i < n; i++) {
		buf[i].paddr = REFCNT_PADDR_UNKNOWN;
		buf[i].cnodeid = REFCNT_CNODE_UNKNOWN;
		buf[i].page_size = 0;
	}
	for (size_t i = 0; i < n; i += BATCH) {
		size_t some = n - i < BATCH ? n - i : BATCH;

		if (frames)
			look_frames(frames, start + i * REFCNT_HW_PAGE, some, buf + i);
		look_nodes(pid, start + i * REFCNT_HW_PAGE, some, buf + i);
	}
	if (frames)
		fclose(frames);
}
