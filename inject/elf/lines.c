/* SPDX-License-Identifier: MIT */
/*
 * lines.c - see lines.h.  libdw trusts what it reads: damaged debug information makes it crash,
 * run for ever, or eat the machine's memory.  So a process of its own reads it, with limits:
 *
 *   kron  -- struct request, name of the file -->  reader (lines_dwarf.c)
 *         <-- struct reply, places or a name -----
 *
 * What a reader says that has crashed, or has overwritten itself, is no more than numbers that
 * are too large or too many, and they are looked at here.
 */
#define _GNU_SOURCE
#include "inject/elf/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

bool lines_is_file(const char *path, const char *file)
{
	size_t n = strlen(path), m = strlen(file);

	while (m > 2 && file[0] == '.' && file[1] == '/') {
		file += 2;
		m -= 2;
	}
	return m && n >= m && !strcmp(path + n - m, file) &&
	       (n == m || path[n - m - 1] == '/' || file[0] == '/');
}

#ifdef HAVE_DW

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject/elf/elf_symbols.h"
#include "inject/elf/lines_impl.h"

#define MOST_PLACES (16u << 20)
#define LONGEST_NAME 65536u

enum request_kind { REQUEST_FIND, REQUEST_FUNCTION, REQUEST_VARIABLE };

struct request {
	uint32_t kind, line; /* of a variable: argument */
	uint32_t flags;
	uint64_t vaddr;
	uint32_t name_len;
};

struct reply {
	uint32_t n; /* places, or bytes of a name or of an error */
	uint32_t ok, line, has_file, before, next, unreadable;
};

struct lines {
	char *path;
	int socket;
	pid_t reader;
	struct lines_limits limits;
	char *name;   /* of the function that was asked for last */
	char *broken; /* why no more can be read */
};

/* ---- both sides ---- */

static bool send_all(int fd, const void *data, size_t n)
{
	const char *at = data;

	while (n) {
		ssize_t did = send(fd, at, n, MSG_NOSIGNAL);

		if (did < 0 && errno == EINTR)
			continue;
		if (did <= 0)
			return false;
		at += did;
		n -= (size_t)did;
	}
	return true;
}

static bool receive_all(int fd, void *data, size_t n)
{
	char *at = data;

	while (n) {
		ssize_t did = recv(fd, at, n, 0);

		if (did < 0 && errno == EINTR)
			continue;
		if (did <= 0)
			return false;
		at += did;
		n -= (size_t)did;
	}
	return true;
}

/* ---- the reader ---- */

static uint64_t memory_now(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long pages = 0;

	if (f) {
		if (fscanf(f, "%lu", &pages) != 1)
			pages = 0;
		fclose(f);
	}
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Signals for kron are none of its business; those for itself end it. */
static void be_alone(int sock, int fd, const struct lines_limits *limits)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGXCPU};
	uint64_t now = memory_now();
	struct rlimit none = {0, 0}, memory = {now + limits->memory, now + limits->memory};
	sigset_t all;
	int null;

	sigfillset(&all);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		signal(own[i], SIG_DFL);
		sigdelset(&all, own[i]);
	}
	sigprocmask(SIG_SETMASK, &all, NULL);
	setrlimit(RLIMIT_CORE, &none);
	if (now)
		setrlimit(RLIMIT_AS, &memory);
	/* what else is open has users who wait for its end */
	sock = fcntl(sock, F_DUPFD, 3);
	fd = fcntl(fd, F_DUPFD, 3);
	null = open("/dev/null", O_RDWR);
	if (sock < 0 || fd < 0 || null < 0 || dup2(null, 2) < 0 || dup2(sock, 0) < 0 ||
	    dup2(fd, 1) < 0)
		_exit(1);
	syscall(SYS_close_range, 3u, ~0u, 0u);
}

/* The limit is for each request. */
static void more_time(const struct lines_limits *limits)
{
	struct rusage used;
	struct rlimit r;

	if (getrusage(RUSAGE_SELF, &used) || getrlimit(RLIMIT_CPU, &r))
		return;
	r.rlim_cur = (rlim_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + 1 + limits->seconds;
	if (r.rlim_cur > r.rlim_max)
		r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_CPU, &r);
}

static bool answer(struct dwarf_lines *dw, const struct request *ask, const char *name)
{
	struct line_places found = {0};
	struct variable variable = {0};
	struct reply reply = {.ok = true};
	struct err why;
	const void *data;
	const char *file = "";
	size_t size;

	if (ask->kind == REQUEST_FUNCTION) {
		reply.ok = dwarf_lines_function(dw, ask->vaddr, &file, &reply.line);
		data = file;
		reply.n = reply.ok ? (uint32_t)strnlen(file, LONGEST_NAME) : 0;
		size = reply.n;
	} else if (ask->kind == REQUEST_VARIABLE) {
		const struct variable_question q = {name, ask->vaddr, ask->flags, ask->line};

		reply.ok = dwarf_variables_find(dw, &q, &variable, &why);
		data = reply.ok ? (const void *)&variable : why.msg;
		reply.n = (uint32_t)(reply.ok ? sizeof(variable) : strlen(why.msg));
		size = reply.n;
	} else {
		dwarf_lines_find(dw, name, ask->line, &found);
		reply.n = (uint32_t)(found.v.n < MOST_PLACES ? found.v.n : MOST_PLACES);
		reply.has_file = found.has_file;
		reply.before = found.before;
		reply.next = found.next;
		reply.unreadable = found.unreadable;
		data = found.v.v;
		size = reply.n * sizeof(found.v.v[0]);
	}
	size = send_all(0, &reply, sizeof(reply)) && send_all(0, data, size);
	vec_free(&found.v);
	return size;
}

static void serve(const struct lines_limits *limits)
{
	struct reply reply = {0};
	struct request ask;
	struct dwarf_lines *dw;
	struct err err;
	char *name;

	more_time(limits);
	dw = dwarf_lines_open(1, &err);
	reply.ok = dw != NULL;
	reply.n = dw ? 0 : (uint32_t)strlen(err.msg);
	if (!send_all(0, &reply, sizeof(reply)) || !send_all(0, err.msg, reply.n) || !dw)
		return;
	while (receive_all(0, &ask, sizeof(ask))) {
		name = xcalloc(ask.name_len + 1, 1);
		more_time(limits);
		if (!receive_all(0, name, ask.name_len) || !answer(dw, &ask, name))
			return;
		xfree(name);
	}
}

/* ---- kron's side ---- */

/* The reader is gone: why? */
static void note_broken(struct lines *l)
{
	struct err err;
	int status = 0;

	if (l->broken)
		return;
	close(l->socket);
	l->socket = -1;
	while (waitpid(l->reader, &status, 0) < 0 && errno == EINTR)
		;
	l->reader = 0;
	if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL))
		err_set(&err, ETIME,
			"its debug information cannot be read: that took longer than %u seconds "
			"(it may be damaged)",
			l->limits.seconds);
	else if (WIFEXITED(status) && WEXITSTATUS(status) == LINES_NO_MEMORY)
		err_set(&err, ENOMEM,
			"its debug information cannot be read: that took more than %llu MiB of "
			"memory (it may be damaged)",
			(unsigned long long)l->limits.memory >> 20);
	else if (WIFSIGNALED(status))
		err_set(&err, EINVAL, "its debug information is damaged: libdw crashed on it (%s)",
			strsignal(WTERMSIG(status)));
	else
		err_set(&err, EINVAL, "its debug information is damaged: libdw gave up");
	l->broken = xstrdup(err.msg);
}

/* Starts the reader of fd, and hears whether it can read that at all. */
static int start_reader(struct lines *l, int fd, struct err *err)
{
	struct reply reply;
	char why[512] = "";
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv))
		return err_set(err, errno, "cannot make a socket pair: %s", strerror(errno));
	l->reader = fork();
	if (!l->reader) {
		be_alone(sv[1], fd, &l->limits);
		serve(&l->limits);
		_exit(0);
	}
	close(sv[1]);
	l->socket = sv[0];
	if (l->reader < 0) {
		l->reader = 0;
		return err_set(err, errno, "cannot start a process that reads debug information");
	}
	if (!receive_all(l->socket, &reply, sizeof(reply)) || reply.n >= sizeof(why) ||
	    !receive_all(l->socket, why, reply.n)) {
		note_broken(l);
		return err_set(err, EINVAL, "%s", l->broken);
	}
	return reply.ok ? 0 : err_set(err, EINVAL, "%s: %s", l->path, why);
}

static int open_reader(struct lines **out, const struct elf_image *of,
		       const struct lines_limits *limits, struct err *err)
{
	struct lines *l = xcalloc(1, sizeof(*l));
	int fd, code;

	l->socket = -1;
	l->path = xstrdup(of->path);
	/* a file of a gigabyte may take its time */
	l->limits.seconds = limits ? limits->seconds : 20 + (unsigned)(of->size >> 22);
	l->limits.memory = limits ? limits->memory : (2ull << 30) + 8ull * of->size;
	fd = open(of->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		code = err_set(err, errno, "cannot open %s: %s", of->path, strerror(errno));
	} else {
		code = start_reader(l, fd, err);
		close(fd);
	}
	if (code) {
		lines_close(l);
		l = NULL;
	}
	*out = l;
	return code;
}

static bool has_debug_info(const struct elf_image *img)
{
	return elf_image_section(img, ".debug_info") || elf_image_section(img, ".zdebug_info");
}

int lines_open_with(struct lines **out, const struct elf_image *img,
		    const struct lines_limits *limits, struct err *err)
{
	const struct elf_image *debug;

	*out = NULL;
	if (!img->path)
		return err_set(err, ENOENT, "this image is not a file");
	if (has_debug_info(img))
		return open_reader(out, img, limits, err);
	debug = elf_debug_file(img, NULL);
	if (debug && has_debug_info(debug))
		return open_reader(out, debug, limits, err);
	return err_set(err, ENOENT,
		       "it has no debug information (compile with -g, or install its debug "
		       "symbols)");
}

void lines_close(struct lines *l)
{
	if (!l)
		return;
	if (l->socket >= 0)
		close(l->socket); /* that ends the reader */
	while (l->reader > 0 && waitpid(l->reader, NULL, 0) < 0 && errno == EINTR)
		;
	xfree(l->path);
	xfree(l->name);
	xfree(l->broken);
	xfree(l);
}

const char *lines_broken(const struct lines *l)
{
	return l->broken;
}

static bool ask(struct lines *l, const struct request *r, const char *name, struct reply *reply)
{
	if (l->broken)
		return false;
	if (send_all(l->socket, r, sizeof(*r)) && send_all(l->socket, name, r->name_len) &&
	    receive_all(l->socket, reply, sizeof(*reply)))
		return true;
	note_broken(l);
	return false;
}

void lines_find(struct lines *l, const char *file, unsigned line, struct line_places *out)
{
	struct request r = {
		.kind = REQUEST_FIND,
		.line = line,
		.name_len = (uint32_t)strnlen(file, LONGEST_NAME),
	};
	struct reply reply;
	struct line_place place;

	memset(out, 0, sizeof(*out));
	if (!ask(l, &r, file, &reply))
		return;
	out->has_file = reply.has_file;
	out->before = reply.before;
	out->next = reply.next;
	out->unreadable = reply.unreadable;
	for (uint32_t i = 0; i < reply.n; i++) {
		if (i >= MOST_PLACES || !receive_all(l->socket, &place, sizeof(place))) {
			note_broken(l);
			out->v.n = 0;
			return;
		}
		*vec_push(&out->v) = place;
	}
}

bool lines_function(struct lines *l, uint64_t vaddr, const char **file, unsigned *line)
{
	struct request r = {.kind = REQUEST_FUNCTION, .vaddr = vaddr};
	struct reply reply;

	if (!ask(l, &r, "", &reply) || !reply.ok)
		return false;
	xfree(l->name);
	l->name = xcalloc(LONGEST_NAME + 1, 1);
	if (reply.n > LONGEST_NAME || !receive_all(l->socket, l->name, reply.n)) {
		note_broken(l);
		return false;
	}
	*file = l->name;
	*line = reply.line;
	return true;
}

bool variables_find(struct lines *l, const struct variable_question *q, struct variable *out,
		    struct err *why)
{
	struct request r = {
		.kind = REQUEST_VARIABLE,
		.line = q->argument,
		.flags = q->flags,
		.vaddr = q->vaddr,
		.name_len = (uint32_t)strnlen(q->name, LONGEST_NAME),
	};
	char sentence[sizeof(why->msg)] = "";
	struct reply reply;
	bool is_sound;

	if (!ask(l, &r, q->name, &reply)) {
		err_set(why, EINVAL, "%s", l->broken);
		return false;
	}
	is_sound = reply.ok ? reply.n == sizeof(*out) : reply.n < sizeof(sentence);
	if (!is_sound || !receive_all(l->socket, reply.ok ? (void *)out : sentence, reply.n)) {
		note_broken(l);
		err_set(why, EINVAL, "%s", l->broken);
		return false;
	}
	if (!reply.ok)
		err_set(why, ENOENT, "%s", sentence);
	else
		out->symbol[sizeof(out->symbol) - 1] = '\0';
	return reply.ok;
}

#else

bool variables_find(struct lines *l, const struct variable_question *q, struct variable *out,
		    struct err *why)
{
	(void)l, (void)q, (void)out;
	err_set(why, ENOTSUP, "this kron was built without libdw");
	return false;
}

int lines_open_with(struct lines **out, const struct elf_image *img,
		    const struct lines_limits *limits, struct err *err)
{
	(void)img, (void)limits;
	*out = NULL;
	return err_set(err, ENOTSUP, "this kron was built without libdw");
}

void lines_close(struct lines *l)
{
	(void)l;
}

const char *lines_broken(const struct lines *l)
{
	(void)l;
	return NULL;
}

void lines_find(struct lines *l, const char *file, unsigned line, struct line_places *out)
{
	(void)l, (void)file, (void)line;
	memset(out, 0, sizeof(*out));
}

bool lines_function(struct lines *l, uint64_t vaddr, const char **file, unsigned *line)
{
	(void)l, (void)vaddr, (void)file, (void)line;
	return false;
}

#endif

int lines_open(struct lines **out, const struct elf_image *img, struct err *err)
{
	return lines_open_with(out, img, NULL, err);
}
