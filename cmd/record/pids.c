/* SPDX-License-Identifier: MIT */
/* pids.c - see pids.h. */
#include "cmd/record/pids.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

static bool has(const struct pids *p, pid_t pid)
{
	for (size_t i = 0; i < p->v.n; i++)
		if (p->v.v[i] == pid)
			return true;
	return false;
}

static bool take_list(struct pids *out, const char *s)
{
	for (;;) {
		char *end;
		long pid = strtol(s, &end, 10);

		if (end == s || (*end && *end != ',') || pid <= 0 || pid > INT_MAX)
			return false;
		if (!has(out, (pid_t)pid))
			*vec_push(&out->v) = (pid_t)pid;
		if (!*end)
			return true;
		s = end + 1;
	}
}

int pids_check(const struct opt_list *lists, struct err *err)
{
	struct pids p;
	int code = pids_take(&p, lists, err);

	vec_free(&p.v);
	return code;
}

int pids_take(struct pids *out, const struct opt_list *lists, struct err *err)
{
	*out = (struct pids){0};
	for (size_t i = 0; i < lists->n; i++) {
		if (take_list(out, lists->v[i]))
			continue;
		vec_free(&out->v);
		return err_set(err, EINVAL,
			       "--pid: '%s' is not a list of process numbers, like 12 or 12,34",
			       lists->v[i]);
	}
	return 0;
}
