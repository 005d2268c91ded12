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
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/vec.h"
#include "inject/elf/elf_image.h"
#include "inject/disk/patch_info.h"

#define SCRIPT_DEPTH 5 /* interpreters of interpreters that the kernel follows */
#define HEAD 512

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

/*
 * Will the kernel set AT_SECURE, so that ld.so ignores LD_PRELOAD?  When the file changes an
 * id, or has capabilities that we do not have as root anyway.
 */
static bool is_privileged(int fd, const struct stat *st)
{
	if ((st->st_mode & S_ISUID) && st->st_uid != geteuid())
		return true;
	if ((st->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st->st_gid != getegid())
		return true;
	return getuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

static const char *machine_name(unsigned machine)
{
	switch (machine) {
	case EM_386:
		return "32-bit x86";
	case EM_ARM:
		return "ARM";
	case EM_AARCH64:
		return "AArch64";
	case EM_RISCV:
		return "RISC-V";
	case EM_PPC64:
		return "PowerPC";
	case EM_S390:
		return "S/390";
	case EM_MIPS:
		return "MIPS";
	default:
		return "another processor";
	}
}

static bool is_readable_part(int fd, off_t off, void *buf, size_t n)
{
	return pread(fd, buf, n, off) == (ssize_t)n;
}

struct load_headers {      /* what the program headers say to the kernel */
	char interp[4096]; /* "" when there is none */
	bool cut_off;      /* part of a segment is not in the file */
};

/* false: the headers lie. */
static bool read_load_headers(int fd, const Elf64_Ehdr *e, uint64_t size, struct load_headers *out)
{
	out->interp[0] = 0;
	out->cut_off = false;
	if (e->e_phentsize != sizeof(Elf64_Phdr) || !e->e_phnum)
		return false;
	for (unsigned i = 0; i < e->e_phnum; i++) {
		Elf64_Phdr ph;

		if (!is_readable_part(fd, (off_t)(e->e_phoff + i * sizeof(ph)), &ph, sizeof(ph)))
			return false;
		if (ph.p_type == PT_LOAD && !elf_file_has(size, ph.p_offset, ph.p_filesz))
			out->cut_off = true;
		if (ph.p_type != PT_INTERP || out->interp[0])
			continue;
		if (ph.p_filesz < 2 || ph.p_filesz > sizeof(out->interp) ||
		    !is_readable_part(fd, (off_t)ph.p_offset, out->interp, ph.p_filesz))
			return false;
		out->interp[ph.p_filesz - 1] = 0;
	}
	return true;
}

static bool has_name(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');

	return !strcmp(slash ? slash + 1 : path, name);
}

#define LINKER "ld-linux-x86-64.so.2"

/* A static program, or one that is like one, that is not from kron patch. */
static bool lacks_runtime(const char *path, bool has_interp)
{
	struct elf_image *img;
	struct err err;
	bool yes;

	if (elf_image_open(&img, path, &err))
		return !has_interp;
	yes = img->kind == ELF_KIND_STATIC && !patch_info_has_start(img);
	elf_image_close(img);
	return yes;
}

static void look_at_elf(struct program *p, int fd, const char *path, const uint8_t *head, size_t n,
			const struct stat *st)
{
	struct load_headers h;
	Elf64_Ehdr e;

	if (n < sizeof(e)) {
		judge(p, PROGRAM_BROKEN, "%s is a truncated ELF file", path);
		return;
	}
	memcpy(&e, head, sizeof(e));
	if (e.e_ident[EI_CLASS] == ELFCLASS32)
		judge(p, PROGRAM_UNTRACEABLE, "%s is a 32-bit program; kron traces x86-64 ones",
		      path);
	else if (e.e_machine != EM_X86_64)
		judge(p, PROGRAM_UNTRACEABLE, "%s is a program for %s; kron traces x86-64 ones",
		      path, machine_name(e.e_machine));
	else if (e.e_type != ET_EXEC && e.e_type != ET_DYN)
		judge(p, PROGRAM_BROKEN, "%s is an ELF file, but no program", path);
	else if (!read_load_headers(fd, &e, (uint64_t)st->st_size, &h))
		judge(p, PROGRAM_BROKEN, "%s is a damaged ELF file", path);
	else if (h.cut_off)
		judge(p, PROGRAM_UNTRACEABLE,
		      "%s is truncated: a segment lies past the end of the file", path);
	else if (!has_name(path, LINKER) && lacks_runtime(path, h.interp[0]))
		judge(p, PROGRAM_UNTRACEABLE,
		      "%s is %s: `kron patch` makes a copy that can be traced", path,
		      h.interp[0] ? "a Go program without a C library" : "statically linked");
	else if (h.interp[0] && !has_name(h.interp, LINKER))
		judge(p, PROGRAM_UNTRACEABLE, "%s uses the dynamic linker %s; kron knows glibc's",
		      path, h.interp);
	else if (is_privileged(fd, st))
		judge(p, PROGRAM_UNTRACEABLE,
		      "%s changes its user, group or capabilities when it starts (setuid, setgid "
		      "or file capabilities)",
		      path);
}

/* "#! interpreter [argument]": the interpreter, in place; NULL when there is none. */
static char *script_interpreter(char *head)
{
	char *p = head + 2 + strspn(head + 2, " \t");

	p[strcspn(p, " \t\n")] = 0;
	return *p ? p : NULL;
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
	char *interp = script_interpreter(head);

	if (!interp || depth >= SCRIPT_DEPTH)
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
	char head[HEAD + 1] = "";
	struct stat st;
	ssize_t n;

	if (fd < 0) {
		judge(p, PROGRAM_UNTRACEABLE, "%s cannot be read: %s", path, strerror(errno));
		return;
	}
	n = read(fd, head, HEAD);
	if (n < 0 || fstat(fd, &st))
		judge(p, PROGRAM_BROKEN, "%s cannot be read: %s", path, strerror(errno));
	else if (n >= 4 && !memcmp(head, ELFMAG, SELFMAG))
		look_at_elf(p, fd, path, (const uint8_t *)head, (size_t)n, &st);
	else if (n >= 2 && head[0] == '#' && head[1] == '!')
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
