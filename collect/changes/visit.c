/* SPDX-License-Identifier: MIT */
/* visit.c - see visit.h. */
#define _GNU_SOURCE
#include "collect/changes/visit.h"

#include <dirent.h>
#include <stdlib.h>

static void add_places(struct changes *all, struct change *c, uint64_t n)
{
	pthread_mutex_lock(&all->lock);
	if (c)
		c->probes += n;
	pthread_mutex_unlock(&all->lock);
}

struct visited {
	VEC(struct visit {
		pid_t pid;
		uint64_t started;
	})
	v;
};

static bool is_new(struct visited *seen, pid_t pid)
{
	struct process_stat st;

	if (!process_read_stat(pid, 0, &st))
		return false;
	vec_for(&seen->v, s)
		if (s->pid == pid && s->started == st.starttime)
			return false;
	*vec_push(&seen->v) = (struct visit){pid, st.starttime};
	return true;
}

struct change_process visit_process(struct changes *all, struct change *c, pid_t pid)
{
	return (struct change_process){.server = all->server,
				       .surgeon = all->surgeon,
				       .of = c ? &c->answerer : all->server->answerer,
				       .files = c ? &c->files : &all->no_files,
				       .pid = pid};
}

/* In this one; no change: what the recording began with.  1: it is none of ours. */
int visit_one(struct changes *all, struct change *c, pid_t pid, visit_what *what, struct err *err)
{
	struct change_process p = visit_process(all, c, pid);
	int code;

	if (!change_process_is_ours(&p))
		return 1;
	code = what(&p, err);
	add_places(all, c, p.probes);
	all->all_stood_ns += p.stood_ns;
	all->stood_ns = p.stood_ns > all->stood_ns ? p.stood_ns : all->stood_ns;
	return code;
}

/* Those that are there now and were not before; how many. */
static unsigned visit_new(struct changes *all, struct change *c, struct visited *seen,
			  visit_what *what, int *code, struct err *err)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	unsigned n = 0;

	while (d && (e = readdir(d))) {
		const pid_t pid = atoi(e->d_name);
		struct err why;
		int ret;

		if (pid <= 0 || !is_new(seen, pid))
			continue;
		ret = visit_one(all, c, pid, what, &why);
		n += ret <= 0;
		if (ret < 0 && !*code) {
			*err = why;
			*code = ret;
		}
	}
	if (d)
		closedir(d);
	return n;
}

/* What forks before it was come to has a child that was not in the list. */
int visit_all(struct changes *all, struct change *c, visit_what *what, bool goes_on, unsigned *met,
	      struct err *err)
{
	struct visited seen = {0};
	int code = 0;
	unsigned n;

	*met = 0;
	do {
		n = visit_new(all, c, &seen, what, &code, err);
		*met += n;
	} while (n && (!code || goes_on));
	vec_free(&seen.v);
	return code;
}
