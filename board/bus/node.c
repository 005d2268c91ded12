/* SPDX-License-Identifier: MIT */
/* node.c - see node.h */
#define _GNU_SOURCE
#include "board/bus/node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#define DIGITS "0123456789"

static bool parse(const char *text, size_t len, uint32_t *n)
{
	unsigned long v;
	char *end;

	if (!len || strspn(text, DIGITS) < len)
		return false;
	errno = 0;
	v = strtoul(text, &end, 10);
	*n = (uint32_t)v;
	return !errno && end == text + len && v <= NODE_MAX;
}

bool node_of_host(const char *name, uint32_t *n)
{
	size_t len = strcspn(name, "."), letters = strcspn(name, "." DIGITS);

	return letters && parse(name + letters, len - letters, n);
}

/* false: it says nothing, or what is not a node's number. */
static bool take_variable(struct node *out, const char *name)
{
	const char *value = getenv(name);

	if (!value || !*value)
		return false;
	if (parse(value, strlen(value), &out->n)) {
		out->from = name;
		return true;
	}
	if (!out->unfit) {
		out->unfit = name;
		out->unfit_value = value;
	}
	return false;
}

void node_default(struct node *out)
{
	static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
						"SLURM_NODEID"};
	struct utsname u;

	*out = (struct node){0};
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		if (take_variable(out, variables[i]))
			return;
	if (!uname(&u) && node_of_host(u.nodename, &out->n))
		out->from = "the host's name";
	else
		out->n = 0;
}
