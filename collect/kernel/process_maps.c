/* SPDX-License-Identifier: MIT */
/* process_maps.c - reads /proc/PID.  See process_maps.h. */
#define _GNU_SOURCE
#include "collect/kernel/process_maps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/str.h"
#include "base/vec.h"

#define KERNEL_THREAD 0x00200000u /* PF_KTHREAD */
#define EXITING 0x4u
#define IO_WORKER 0x10u
#define USER_WORKER 0x4000u

/* The whole of a /proc file, NUL-terminated; *len without the NUL. */
static char *read_all(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t cap = 16384, n = 0;
	char *buf;
	ssize_t r;

	if (fd < 0)
		return NULL;
	buf = xmalloc(cap);
	while ((r = read(fd, buf + n, cap - n - 1)) != 0) {
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0) {
			int code = errno;

			xfree(buf);
			close(fd);
			errno = code;
			return NULL;
		}
		n += (size_t)r;
		if (cap - n < 8192)
			buf = xrealloc(buf, cap *= 2);
	}
	close(fd);
	buf[n] = 0;
	*len = n;
	return buf;
}

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* The kernel writes a newline in a name as \012, and only that. */
static void resolve_escapes(char *s)
{
	char *out = s;

	while (*s) {
		if (s[0] == '\\' && is_octal(s[1]) && is_octal(s[2]) && is_octal(s[3])) {
			*out++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
			s += 4;
		} else {
			*out++ = *s++;
		}
	}
	*out = 0;
}

static bool parse_hex(const char **p, char end, uint64_t *out)
{
	char *stop;

	if (**p == ' ' || **p == '-' || **p == '+')
		return false;
	errno = 0;
	*out = strtoull(*p, &stop, 16);
	if (errno || stop == *p || *stop != end)
		return false;
	*p = stop + 1;
	return true;
}

/* "start-end perms offset major:minor inode   path", NUL-terminated, path edited in place */
static bool parse_line(char *line, struct process_mapping *m)
{
	const char *p = line;
	uint64_t major, minor;
	char *stop;

	memset(m, 0, sizeof(*m));
	if (!parse_hex(&p, '-', &m->start) || !parse_hex(&p, ' ', &m->end))
		return false;
	if (m->start >= m->end || strnlen(p, 5) < 5 || p[4] != ' ')
		return false;
	memcpy(m->perms, p, 4);
	p += 5;
	if (!parse_hex(&p, ' ', &m->off) || !parse_hex(&p, ':', &major) ||
	    !parse_hex(&p, ' ', &minor))
		return false;
	m->dev = makedev((unsigned)major, (unsigned)minor);
	if (*p < '0' || *p > '9')
		return false;
	m->ino = strtoull(p, &stop, 10);
	while (*stop == ' ')
		stop++;
	m->path = stop;
	if (*stop == '/') {
		static const char gone[] = " (deleted)";
		size_t n = strlen(stop);

		if (n > sizeof(gone) && !strcmp(stop + n - (sizeof(gone) - 1), gone)) {
			m->deleted = true;
			stop[n - (sizeof(gone) - 1)] = 0;
		}
		resolve_escapes(stop);
	}
	return true;
}

static void parse_text(struct process_maps *out, char *text)
{
	VEC(struct process_mapping) v = {0};
	char *line, *end;

	out->text = text;
	for (line = text; *line; line = end + 1) {
		struct process_mapping m;

		end = strchr(line, '\n');
		if (!end)
			break;
		*end = 0;
		/* The kernel prints them in order; anything else is not for us. */
		if (parse_line(line, &m) && (!v.n || m.start >= v.v[v.n - 1].end))
			*vec_push(&v) = m;
	}
	out->v = v.v;
	out->n = v.n;
}

void process_maps_parse(struct process_maps *out, const char *text, size_t len)
{
	parse_text(out, xstrndup(text, len));
}

/* A file of its memory, which is empty where the process's first thread has ended: another's then. */
static char *read_of_memory(pid_t pid, const char *name, char path[64], size_t *len)
{
	pid_t thread;
	char *text;

	snprintf(path, 64, "/proc/%d/%s", pid, name);
	text = read_all(path, len);
	thread = text && !*len ? process_memory_thread(pid) : pid;
	if (thread == pid)
		return text;
	xfree(text);
	snprintf(path, 64, "/proc/%d/%s", thread, name);
	return read_all(path, len);
}

int process_maps_read(struct process_maps *out, pid_t pid, struct err *err)
{
	char path[64];
	size_t len;
	char *text;

	memset(out, 0, sizeof(*out));
	text = read_of_memory(pid, "maps", path, &len);
	if (!text)
		return err_set(err, errno, "cannot read %s: %s", path, strerror(errno));
	if (!len) { /* a zombie */
		xfree(text);
		return err_set(err, ESRCH, "it ended before its probes were in place");
	}
	parse_text(out, text);
	return 0;
}

void process_maps_free(struct process_maps *m)
{
	xfree(m->v);
	xfree(m->text);
	memset(m, 0, sizeof(*m));
}

const struct process_mapping *process_maps_at(const struct process_maps *m, uint64_t addr)
{
	size_t lo = 0, hi = m->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (addr < m->v[mid].start)
			hi = mid;
		else if (addr >= m->v[mid].end)
			lo = mid + 1;
		else
			return &m->v[mid];
	}
	return NULL;
}

struct space_mapping *process_maps_space(const struct process_maps *m, size_t *n)
{
	struct space_mapping *v = xcalloc(m->n, sizeof(*v));

	for (size_t i = 0; i < m->n; i++) {
		v[i].start = m->v[i].start;
		v[i].end = m->v[i].end;
		v[i].is_heap = !strcmp(m->v[i].path, "[heap]");
		v[i].is_stack = !strcmp(m->v[i].path, "[stack]");
	}
	*n = m->n;
	return v;
}

bool process_mapping_is_memfd(const struct process_mapping *m)
{
	return !strncmp(m->path, "/memfd:", 7);
}

bool process_mapping_is_krons(const struct process_mapping *m)
{
	static const char name[] = "/memfd:kron";
	const char after =
		strncmp(m->path, name, sizeof(name) - 1) ? 'x' : m->path[sizeof(name) - 1];

	return !after || after == ':' || after == '-';
}

bool process_mapping_is_block(const struct process_mapping *m, uint64_t session, uint64_t *number)
{
	static const char prefix[] = "/memfd:kron:";
	const char *p = m->path;
	uint64_t of_session;

	if (strncmp(p, prefix, sizeof(prefix) - 1))
		return false;
	p += sizeof(prefix) - 1;
	return parse_hex(&p, ':', &of_session) && of_session == session && parse_hex(&p, 0, number);
}

uint64_t process_mapping_session(const struct process_mapping *m)
{
	static const char prefix[] = "/memfd:kron:";
	const char *p = m->path + sizeof(prefix) - 1;
	uint64_t session;

	return !strncmp(m->path, prefix, sizeof(prefix) - 1) && parse_hex(&p, ':', &session)
		       ? session
		       : 0;
}

char *process_exe(pid_t pid)
{
	char path[64], target[4096];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", process_memory_thread(pid));
	n = readlink(path, target, sizeof(target) - 1);
	return n < 0 ? NULL : xstrndup(target, (size_t)n);
}

char *process_cmdline(pid_t pid)
{
	enum { LONGEST = 2000 };
	char path[64], word[LONGEST], line[LONGEST + 8];
	size_t len = 0, n = 0, at = 0;
	char *text;

	text = read_of_memory(pid, "cmdline", path, &len);
	if (!text)
		return xstrdup("");
	line[0] = 0;
	while (at < len && n < LONGEST) {
		char *arg = text + at;

		at += strlen(arg) + 1;
		str_shell(word, sizeof(word), arg);
		n += (size_t)snprintf(line + n, sizeof(line) - n, "%s%s", n ? " " : "", word);
	}
	if (n >= LONGEST)
		strcpy(line + LONGEST, "...");
	xfree(text);
	return xstrdup(line);
}

char *process_thread_name(pid_t pid, pid_t tid)
{
	char path[64];
	size_t len;
	char *name;

	if (tid)
		snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tid);
	else
		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	name = read_all(path, &len);
	if (name && len && name[len - 1] == '\n')
		name[len - 1] = 0;
	return name;
}

uint64_t process_status_number(pid_t pid, pid_t tid, const char *key, int base)
{
	const size_t n = strlen(key);
	char path[64];
	char *text, *at;
	uint64_t v = 0;
	size_t len;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid ? tid : pid);
	text = read_all(path, &len);
	for (at = text; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (!strncmp(at, key, n) && at[n] == ':') {
			v = strtoull(at + n + 1, NULL, base);
			break;
		}
	}
	xfree(text);
	return v;
}

pid_t process_tracer(pid_t pid)
{
	return (pid_t)process_status_number(pid, 0, "TracerPid", 10);
}

#define CAP_SYS_PTRACE_BIT (1ull << 19)

bool process_may_trace_others(void)
{
	return process_status_number(getpid(), 0, "CapEff", 16) & CAP_SYS_PTRACE_BIT;
}

int process_yama_scope(void)
{
	FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = 0;

	if (f && fscanf(f, "%d", &scope) != 1)
		scope = 0;
	if (f)
		fclose(f);
	return scope;
}

bool process_read_stat(pid_t pid, pid_t tid, struct process_stat *out)
{
	char path[64];
	size_t len;
	char *text, *p;
	int n;

	if (tid && tid != pid)
		snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	else
		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	text = read_all(path, &len);
	if (!text)
		return false;
	/* The name stands in parentheses and may hold anything: start after the last one. */
	p = strrchr(text, ')');
	n = p ? sscanf(p + 1,
		       " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
		       "%" SCNd64 " %*d %" SCNu64,
		       &out->state, &out->ppid, &out->threads, &out->starttime)
	      : 0;
	xfree(text);
	return n == 4;
}

/* The kernel's PF_*; 0: not known. */
static unsigned flags_of(const char *path)
{
	unsigned flags = 0;
	char *text, *p;
	size_t len;

	text = read_all(path, &len);
	p = text ? strrchr(text, ')') : NULL;
	if (p && sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) != 1)
		flags = 0;
	xfree(text);
	return flags;
}

bool process_is_kernels(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	return flags_of(path) & KERNEL_THREAD;
}

bool process_is_ending(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	return flags_of(path) & EXITING;
}

pid_t process_memory_thread(pid_t pid)
{
	pid_t found = pid;
	struct dirent *e;
	char path[64];
	DIR *d;

	if (!process_is_ending(pid))
		return pid;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	while (d && found == pid && (e = readdir(d)))
		if (atoi(e->d_name) > 0 && !process_is_ending(atoi(e->d_name)))
			found = atoi(e->d_name);
	if (d)
		closedir(d);
	return found;
}

bool process_thread_is_kernels(pid_t pid, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	return flags_of(path) & (IO_WORKER | USER_WORKER);
}

bool process_uid(pid_t pid, uid_t *uid)
{
	char path[64], *line;
	size_t len;
	char *text;
	bool found;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	text = read_all(path, &len);
	line = text ? strstr(text, "\nUid:") : NULL;
	found = line && sscanf(line, "\nUid: %*u %u", uid) == 1;
	xfree(text);
	return found;
}

bool process_thread_ran(pid_t pid, pid_t tid, uint64_t *ns)
{
	char path[64];
	size_t len;
	char *text;
	bool good;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
	text = read_all(path, &len);
	good = text && sscanf(text, "%" SCNu64, ns) == 1;
	xfree(text);
	return good;
}
