/* SPDX-License-Identifier: MIT */
/* nodes.c - see nodes.h */
#define _GNU_SOURCE
#include "collect/kernel/nodes.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BATCH 512u

/* ---- processors ---- */

/* "0-3,8": as far as it makes sense; where it ends. */
static const char *take_list(struct nodes *nodes, const char *s, int node)
{
	while (*s >= '0' && *s <= '9') {
		char *end;
		unsigned long from = strtoul(s, &end, 10), to = from;

		if (*end == '-')
			to = strtoul(end + 1, &end, 10);
		for (; from <= to && from < NODES_CPUS; from++)
			nodes->of_cpu[from] = (int8_t)node;
		s = end;
		if (*s != ',')
			break;
		s++;
	}
	return s;
}

static int take_test(struct nodes *nodes, const char *text, struct err *err)
{
	const char *s = text;

	nodes->is_test = true;
	for (nodes->n = 0; nodes->n < NODES_MAX; s++) {
		const char *end = take_list(nodes, s, (int)nodes->n++);

		if (end == s || (*end && *end != '/'))
			break;
		if (!*end)
			return 0;
		s = end;
	}
	return err_set(err, EINVAL, "%s is a list of processors for each node, like 0-3/4-7",
		       NODES_TEST);
}

static bool read_list(struct nodes *nodes, unsigned node)
{
	char path[64], text[4096];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/cpulist", node);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fgets(text, sizeof(text), f) && text[0] != '\n') {
		take_list(nodes, text, (int)node);
		nodes->n = node + 1;
	}
	fclose(f);
	return true;
}

int nodes_read(struct nodes *out, struct err *err)
{
	const char *test = getenv(NODES_TEST);

	*out = (struct nodes){.n = 1};
	memset(out->of_cpu, -1, sizeof(out->of_cpu));
	if (test && *test)
		return take_test(out, test, err);
	for (unsigned node = 0; node < NODES_MAX; node++)
		read_list(out, node);
	if (!access("/sys/devices/system/node/node64", F_OK))
		return err_set(err, EINVAL, "pages are counted on machines of at most %u nodes",
			       NODES_MAX);
	if (out->n == 1) /* also where the kernel knows of no nodes */
		memset(out->of_cpu, 0, sizeof(out->of_cpu));
	return 0;
}

int nodes_of_cpu(const struct nodes *nodes, uint32_t cpu)
{
	return cpu < NODES_CPUS ? nodes->of_cpu[cpu] : -1;
}

/* /proc/PID/task/TID/stat: the 39th field; the second one is in parentheses and may hold anything. */
int nodes_of_thread(const struct nodes *nodes, pid_t pid, pid_t tid)
{
	char path[64], text[1024], *s;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = 0;
	s = strrchr(text, ')');
	for (int field = 2; s && field < 39; field++)
		s = strchr(s + 1, ' ');
	return s ? nodes_of_cpu(nodes, (uint32_t)strtoul(s + 1, NULL, 10)) : -1;
}

/* ---- pages ---- */

int nodes_of_pages(pid_t pid, const uint64_t *pages, size_t n, const int *to, int *out)
{
	void *at[BATCH];

	for (size_t i = 0; i < n; i += BATCH) {
		size_t some = n - i < BATCH ? n - i : BATCH;

		for (size_t k = 0; k < some; k++)
			at[k] = (void *)(uintptr_t)pages[i + k];
		if (syscall(SYS_move_pages, pid, some, at, to ? to + i : NULL, out + i,
			    to ? MPOL_MF_MOVE : 0) < 0)
			return -errno;
	}
	return 0;
}
