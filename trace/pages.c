/* SPDX-License-Identifier: MIT */
/* pages.c - see pages.h.  A line each: P TAB uid TAB address TAB reads TAB writes TAB tid, and M TAB pid
 * TAB start TAB end TAB name; addresses are hex.  Older traces have no tid. */
#define _GNU_SOURCE
#include "trace/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "trace/table_lines.h"

static void put_field(table_text *t, int base, uint64_t value)
{
	table_put_char(t, '\t');
	table_put_number(t, base, value);
}

static void put_page(table_text *t, const struct trace_page *p)
{
	table_put_char(t, 'P');
	put_field(t, 10, p->uid);
	put_field(t, 16, p->address);
	put_field(t, 10, p->reads);
	put_field(t, 10, p->writes);
	put_field(t, 10, p->tid);
	table_put_char(t, '\n');
}

static void put_mapping(table_text *t, const struct trace_mapping *m)
{
	table_put_char(t, 'M');
	put_field(t, 10, m->pid);
	put_field(t, 16, m->start);
	put_field(t, 16, m->end);
	table_put_char(t, '\t');
	table_put_text(t, m->name);
	table_put_char(t, '\n');
}

static int write_file(int dir, const table_text *t)
{
	int fd = openat(dir, "pages", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int code = fd < 0 ? -errno : 0;

	for (size_t at = 0; !code && at < t->n;) {
		ssize_t n = write(fd, t->v + at, t->n - at);

		if (n < 0 && errno != EINTR)
			code = -errno;
		else if (n > 0)
			at += (size_t)n;
	}
	if (fd >= 0 && close(fd) && !code)
		code = -errno;
	return code;
}

int trace_pages_write(const char *dir, const struct trace_page *v, size_t n,
		      const struct trace_mapping *maps, size_t nmaps)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), code;
	table_text t = {0};

	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < nmaps; i++)
		put_mapping(&t, &maps[i]);
	for (size_t i = 0; i < n; i++)
		put_page(&t, &v[i]);
	code = write_file(fd, &t);
	vec_free(&t);
	close(fd);
	return code;
}

static void take_page(struct trace_pages *out, const struct table_lines *l)
{
	struct trace_page p;
	uint64_t uid, tid = 0;

	if (!table_number(l->field[1], 10, UINT32_MAX, &uid) ||
	    !table_number(l->field[2], 16, UINT64_MAX, &p.address) ||
	    !table_number(l->field[3], 10, UINT64_MAX, &p.reads) ||
	    !table_number(l->field[4], 10, UINT64_MAX, &p.writes))
		return;
	if (*l->field[5] && !table_number(l->field[5], 10, UINT32_MAX, &tid))
		return;
	p.uid = (uint32_t)uid;
	p.tid = (uint32_t)tid;
	*vec_push(&out->v) = p;
}

static void take_mapping(struct trace_pages *out, const struct table_lines *l)
{
	struct trace_mapping m;
	uint64_t pid;

	if (!table_number(l->field[1], 10, UINT32_MAX, &pid) ||
	    !table_number(l->field[2], 16, UINT64_MAX, &m.start) ||
	    !table_number(l->field[3], 16, UINT64_MAX, &m.end))
		return;
	m.pid = (uint32_t)pid;
	m.name = xstrdup(l->field[4]);
	*vec_push(&out->maps) = m;
}

int trace_pages_read(struct trace_pages *out, const char *dir, struct err *err)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), code;
	struct table_lines l;

	*out = (struct trace_pages){0};
	if (fd < 0)
		return err_set(err, errno, "cannot open %s: %s", dir, strerror(errno));
	code = faccessat(fd, "pages", F_OK, 0) ? -errno : table_open(&l, fd, "pages");
	close(fd);
	if (code)
		return err_set(err, -code, "%s has no counts of pages", dir);
	while (table_next_fields(&l)) {
		if (!strcmp(l.field[0], "P"))
			take_page(out, &l);
		else if (!strcmp(l.field[0], "M"))
			take_mapping(out, &l);
	}
	table_close(&l);
	return 0;
}

void trace_pages_free(struct trace_pages *p)
{
	vec_for(&p->maps, m)
		xfree(m->name);
	vec_free(&p->maps);
	vec_free(&p->v);
}

const struct trace_mapping *trace_pages_mapping(const struct trace_pages *p, uint32_t pid,
						uint64_t address)
{
	const struct trace_mapping *found = NULL;

	for (size_t i = 0; i < p->maps.n; i++) {
		const struct trace_mapping *m = &p->maps.v[i];

		if (m->pid == pid && address - m->start < m->end - m->start)
			found = m;
	}
	return found;
}
