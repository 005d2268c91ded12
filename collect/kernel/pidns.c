/* SPDX-License-Identifier: MIT */
/* pidns.c - see pidns.h */
#define _GNU_SOURCE
#include "collect/kernel/pidns.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t namespace(pid_t pid, const char *which)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, which);
	return stat(path, &st) ? 0 : st.st_ino;
}

uint64_t pidns_of(pid_t pid)
{
	return namespace(pid, "pid");
}

uint64_t pidns_for_children(pid_t pid)
{
	return namespace(pid, "pid_for_children");
}

pid_t pidns_inner(const char *status)
{
	const char *line = strstr(status, "\nNSpid:");
	char *end;
	long v = 0;
	int n = 0;

	if (!line)
		return 0;
	for (line += strlen("\nNSpid:"); *line == '\t'; line = end, n++) {
		v = strtol(line + 1, &end, 10);
		if (end == line + 1)
			break;
	}
	return n > 1 ? (pid_t)v : 0;
}

/* "... /proc rw,nosuid - proc proc rw,hidepid=invisible": the options after the dash. */
bool pidns_is_hiding(const char *mountinfo)
{
	for (const char *p = mountinfo; (p = strstr(p, " - proc ")); p++) {
		const char *option = strstr(p, "hidepid=");
		const char *end = strchr(p, '\n');

		if (option && (!end || option < end) && strncmp(option, "hidepid=0", 9) &&
		    strncmp(option, "hidepid=off", 11))
			return true;
	}
	return false;
}

/* As much as fits; NULL when it cannot be read. */
static char *read_text(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = -1;

	if (fd < 0)
		return NULL;
	while (len < size - 1 && (n = read(fd, buf + len, size - 1 - len)) > 0)
		len += (size_t)n;
	close(fd);
	buf[len] = 0;
	return n < 0 ? NULL : buf;
}

pid_t pidns_inner_of(pid_t pid)
{
	char path[64], status[8192];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	return read_text(path, status, sizeof(status)) ? pidns_inner(status) : 0;
}

static bool is_all_visible(void)
{
	const size_t size = 1 << 18;
	char *buf = xcalloc(1, size);
	bool visible = readlink("/proc/self", buf, size - 1) > 0 && /* /proc is of our namespace */
		       strtol(buf, NULL, 10) == getpid() &&
		       read_text("/proc/self/mountinfo", buf, size) && strlen(buf) < size - 1 &&
		       !pidns_is_hiding(buf);

	xfree(buf);
	return visible;
}

void pidns_list_read(struct pidns_list *l)
{
	DIR *proc = opendir("/proc");
	struct dirent *e;

	memset(l, 0, sizeof(*l));
	if (!proc)
		return;
	l->complete = is_all_visible();
	while ((e = readdir(proc))) {
		struct pidns_process p = {.here = (pid_t)strtol(e->d_name, NULL, 10)};

		if (p.here <= 0)
			continue;
		p.inner = pidns_inner_of(p.here);
		if (!p.inner) /* one of ours, or gone */
			continue;
		p.ns = pidns_of(p.here);
		*vec_push(&l->v) = p;
	}
	closedir(proc);
}

void pidns_list_free(struct pidns_list *l)
{
	vec_free(&l->v);
}

enum pidns_answer pidns_find(const struct pidns_list *l, uint64_t ns, pid_t inner, pid_t *here)
{
	enum pidns_answer answer = l->complete ? PIDNS_GONE : PIDNS_UNKNOWN;

	for (size_t i = 0; i < l->v.n; i++) {
		const struct pidns_process *p = &l->v.v[i];

		if (p->inner != inner || (p->ns && p->ns != ns))
			continue;
		if (p->ns) {
			*here = p->here;
			return PIDNS_FOUND;
		}
		answer = PIDNS_UNKNOWN; /* it may be this one */
	}
	return answer;
}
