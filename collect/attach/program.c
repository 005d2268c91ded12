/* SPDX-License-Identifier: MIT */
/* program.c - see program.h */
#define _GNU_SOURCE
#include "collect/attach/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <kron/exec.h>
#include "base/vec.h"
#include "inject/elf/elf_image.h"
#include "inject/disk/patch_info.h"

/* ---- find ---- */

static int check_executable(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	/* For root access() says yes to any file with one x bit, as execve() does. */
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) ? -errno : 0;
}

static int search_path(char **out, const char *name, const char *path)
{
	int code = -ENOENT;

	while (!*out) {
		size_t n = strcspn(path, ":");
		char *candidate = n ? xasprintf("%.*s/%s", (int)n, path, name) : xstrdup(name);
		int r = check_executable(candidate);

		if (!r) {
			*out = candidate;
			return 0;
		}
		xfree(candidate);
		if (r == -EACCES)
			code = r;
		if (!path[n])
			break;
		path += n + 1;
	}
	return code;
}

static int find(struct program *p, const char *name, const char *path_variable, struct err *err)
{
	int code;

	if (!name[0])
		return err_set(err, ENOENT, "the name of the program is empty");
	if (strchr(name, '/')) {
		code = check_executable(name);
		if (!code)
			p->path = xstrdup(name);
	} else {
		code = search_path(&p->path, name, path_variable ? path_variable : "/bin:/usr/bin");
	}
	switch (code) {
	case 0:
		return 0;
	case -ENOENT:
	case -ENOTDIR:
		return err_set(err, ENOENT, "%s: there is no such program", name);
	case -EISDIR:
		return err_set(err, EACCES, "%s is a directory", name);
	case -EACCES:
		return err_set(err, EACCES, "%s: no permission to execute it", name);
	default:
		return err_set(err, EACCES, "%s: %s", name, strerror(-code));
	}
}

/* ---- look ---- */

static void judge(struct program *p, enum program_verdict verdict, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void judge(struct program *p, enum program_verdict verdict, const char *fmt, ...)
{
	va_list ap;

	p->verdict = verdict;
	va_start(ap, fmt);
	vsnprintf(p->why.msg, sizeof(p->why.msg), fmt, ap);
	va_end(ap);
}

static bool read_part(const struct kron_exec_file *f, void *buf, size_t n, uint64_t off)
{
	return pread(f->fd, buf, n, (off_t)off) == (ssize_t)n;
}

static bool changes_ids(int fd, const struct stat *st)
{
	struct kron_exec_ids now = {.uid = getuid(), .euid = geteuid(), .egid = getegid()};

	return kron_exec_changes_ids(st, fgetxattr(fd, "security.capability", NULL, 0) > 0, &now);
}

/*
 * Does it need a library for sure?  That is seen at a glance, and most programs do; an image is a lot of
 * work for a start.  (DT_NEEDED comes first, by custom.)
 */
static bool needs_library(const struct kron_exec_file *f, const Elf64_Ehdr *e)
{
	Elf64_Phdr ph[32];
	Elf64_Dyn dyn[32];
	unsigned i, n;

	if (!f->linker[0] || e->e_phnum > 32 ||
	    !f->read(f, ph, e->e_phnum * sizeof(*ph), e->e_phoff))
		return false;
	for (i = 0; i < e->e_phnum && ph[i].p_type != PT_DYNAMIC; i++)
		;
	if (i == e->e_phnum)
		return false;
	n = (unsigned)(ph[i].p_filesz < sizeof(dyn) ? ph[i].p_filesz / sizeof(*dyn) : 32);
	if (!f->read(f, dyn, n * sizeof(*dyn), ph[i].p_offset))
		return false;
	for (i = 0; i < n && dyn[i].d_tag != DT_NULL; i++)
		if (dyn[i].d_tag == DT_NEEDED)
			return true;
	return false;
}

/*
 * What the file is besides.  Go's programs without a C library load ours, but their threads' data
 * are their own.  And ld.so started by hand is traced, with what it is told to run.  (As a child it
 * is not: it may be asked what a program would load, and its answer would name our library.)
 */
static enum kron_exec_verdict look_at_image(const char *path, const struct kron_exec_file *f,
					    const Elf64_Ehdr *e, enum kron_exec_verdict v)
{
	struct elf_image *img;
	struct err err;

	if (v == KRON_EXEC_LOADS && needs_library(f, e))
		return v;
	if ((v != KRON_EXEC_LOADS && v != KRON_EXEC_STATIC) || elf_image_open(&img, path, &err))
		return v;
	if (v == KRON_EXEC_STATIC && img->kind == ELF_KIND_SHARED)
		v = KRON_EXEC_LOADS;
	else if (v == KRON_EXEC_LOADS && img->kind == ELF_KIND_STATIC && !patch_info_has_start(img))
		v = KRON_EXEC_STATIC;
	elf_image_close(img);
	return v;
}

static bool say_changes_ids(struct program *p, int fd, const char *path, const struct stat *st)
{
	if (!changes_ids(fd, st))
		return false;
	judge(p, PROGRAM_UNTRACEABLE,
	      "%s changes its user, group or capabilities when it starts (setuid, setgid or file "
	      "capabilities)",
	      path);
	return true;
}

static uint64_t limit_of(int resource)
{
	struct rlimit r;

	return getrlimit((__rlimit_resource_t)resource, &r) ? RLIM_INFINITY : r.rlim_cur;
}

static bool has_room(void)
{
	return kron_exec_has_room(limit_of(RLIMIT_AS), limit_of(RLIMIT_DATA));
}

static void look_at_elf(struct program *p, int fd, const char *path, const struct stat *st)
{
	struct kron_exec_file f = {.read = read_part, .fd = fd, .size = (uint64_t)st->st_size};
	const char *machine;
	Elf64_Ehdr e;
	enum kron_exec_verdict v = kron_exec_judge(&f, &e);

	switch (look_at_image(path, &f, &e, v)) {
	case KRON_EXEC_SHORT:
		judge(p, PROGRAM_BROKEN, "%s is a truncated ELF file", path);
		break;
	case KRON_EXEC_NO_PROGRAM:
		judge(p, PROGRAM_BROKEN, "%s is an ELF file, but no program", path);
		break;
	case KRON_EXEC_DAMAGED:
		judge(p, PROGRAM_BROKEN, "%s is a damaged ELF file", path);
		break;
	case KRON_EXEC_32BIT:
		judge(p, PROGRAM_UNTRACEABLE, "%s is a 32-bit program; kron traces x86-64 ones",
		      path);
		break;
	case KRON_EXEC_MACHINE:
		machine = elf_machine_name(e.e_machine);
		judge(p, PROGRAM_UNTRACEABLE, "%s is a program for %s; kron traces x86-64 ones",
		      path, machine ? machine : "another processor");
		break;
	case KRON_EXEC_CUT_OFF:
		judge(p, PROGRAM_UNTRACEABLE,
		      "%s is truncated: a segment lies past the end of the file", path);
		break;
	case KRON_EXEC_STATIC:
		if (!say_changes_ids(p, fd, path, st))
			judge(p, PROGRAM_STATIC, "%s is %s", path,
			      f.linker[0] ? "a Go program without a C library"
					  : "statically linked");
		break;
	case KRON_EXEC_LINKER_MUSL: /* attached to, like a static one */
		if (!say_changes_ids(p, fd, path, st))
			judge(p, PROGRAM_STATIC, "%s uses musl's dynamic linker", path);
		break;
	case KRON_EXEC_LINKER_OTHER:
		judge(p, PROGRAM_UNTRACEABLE,
		      "%s uses the dynamic linker %s; kron knows glibc's and "
		      "musl's",
		      path, f.linker);
		break;
	case KRON_EXEC_LOADS:
		if (!say_changes_ids(p, fd, path, st) && !has_room())
			judge(p, PROGRAM_UNTRACEABLE,
			      "the limits of address space or data (ulimit -v, -d) leave no room for "
			      "libkron-rt.so in it");
		break;
	}
}

/* What a shell would take for a program of its own: text, up to the first newline. */
static bool is_text(const char *head, size_t n)
{
	const char *newline = memchr(head, '\n', n);

	return !memchr(head, 0, newline ? (size_t)(newline - head) : n);
}

static void look_at(struct program *p, const char *path, int depth);

static void look_at_script(struct program *p, char *head, const char *path, int depth)
{
	char *interp = kron_exec_interpreter(head);

	if (!interp || depth >= KRON_EXEC_SCRIPTS)
		judge(p, PROGRAM_BROKEN, "%s: its #! line names no usable interpreter", path);
	else if (check_executable(interp))
		judge(p, PROGRAM_BROKEN, "%s: its interpreter %s cannot be executed: %s", path,
		      interp, strerror(-check_executable(interp)));
	else
		look_at(p, interp, depth + 1);
}

static void look_at(struct program *p, const char *path, int depth)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char head[KRON_EXEC_HEAD] = "";
	struct stat st;
	ssize_t n;

	if (fd < 0) {
		judge(p, PROGRAM_UNTRACEABLE, "%s cannot be read: %s", path, strerror(errno));
		return;
	}
	n = read(fd, head, sizeof(head));
	if (n < 0 || fstat(fd, &st))
		judge(p, PROGRAM_BROKEN, "%s cannot be read: %s", path, strerror(errno));
	else if (kron_exec_kind(head) == KRON_EXEC_ELF)
		look_at_elf(p, fd, path, &st);
	else if (kron_exec_kind(head) == KRON_EXEC_SCRIPT)
		look_at_script(p, head, path, depth);
	else if (depth == 0 && is_text(head, (size_t)n))
		p->needs_shell = true;
	else
		judge(p, PROGRAM_UNTRACEABLE, "%s is neither an ELF file nor a script", path);
	close(fd);
}

int program_find(struct program *p, const char *name, const char *path_variable, struct err *err)
{
	int code;

	memset(p, 0, sizeof(*p));
	code = find(p, name, path_variable, err);
	if (!code)
		look_at(p, p->path, 0);
	return code;
}

void program_free(struct program *p)
{
	xfree(p->path);
	p->path = NULL;
}
