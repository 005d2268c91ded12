/* SPDX-License-Identifier: MIT */
/*
 * exec_target.c - will the file that is about to be executed load libkron-rt.so, and may it?
 *
 * Only a program that certainly reads LD_PRELOAD, or has the runtime in itself (a static one from
 * `kron patch`), gets kron's entries.
 * Anything else would see an environment that is not its own: other static programs, other
 * architectures, setuid programs (ld.so ignores LD_PRELOAD there), a root directory in which
 * our library does not exist (ld.so would complain on the program's stderr).
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include "runtime/hooks/exec_target.h"
#include "runtime/core/rt.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

#define INTERPRETER "/lib64/ld-linux-x86-64.so.2"
/* The note of a file from `kron patch`: its owner, and the start of what it says. */
#define NOTE_OWNER "kron\0\0\0" /* eight bytes */
#define NOTE_HAS_START 2u       /* the runtime is in it, for there is no interpreter to load ours */
#define SCRIPT_LEVELS 4         /* as the kernel */
#define SCRIPT_LINE 256         /* likewise: BINPRM_BUF_SIZE */
#define PHDRS_MAX 128

static long read_at(int fd, void *buf, size_t len, uint64_t off)
{
	return sys4(__NR_pread64, fd, (long)buf, (long)len, (long)off);
}

/* The program would start in ld.so's secure mode: real and effective ids differ. */
static bool is_secure_process(void)
{
	return sys0(__NR_getuid) != sys0(__NR_geteuid) || sys0(__NR_getgid) != sys0(__NR_getegid);
}

static bool is_privileged_file(int fd, const struct stat *st)
{
	return (st->st_mode & (S_ISUID | S_ISGID)) ||
	       sys4(__NR_fgetxattr, fd, (long)"security.capability", 0, 0) > 0;
}

/* version, flags: inject/disk/patch_info.h */
static bool has_start_code(int fd, const Elf64_Phdr *p)
{
	struct {
		Elf64_Nhdr head;
		char owner[sizeof(NOTE_OWNER)];
		uint8_t words[8];
	} __attribute__((packed)) note;
	uint32_t flags;

	if (p->p_filesz < sizeof(note) ||
	    read_at(fd, &note, sizeof(note), p->p_offset) != sizeof(note))
		return false;
	mini_copy(&flags, note.words + 4, sizeof(flags));
	return note.head.n_type == NT_VERSION && note.head.n_namesz > sizeof(NOTE_OWNER) &&
	       mini_mismatch(note.owner, NOTE_OWNER, sizeof(NOTE_OWNER)) == sizeof(NOTE_OWNER) &&
	       flags & NOTE_HAS_START;
}

static bool takes_our_entries(int fd, const Elf64_Ehdr *e)
{
	char name[sizeof(INTERPRETER)];
	bool brings_runtime = false;
	uint32_t i;

	if (e->e_phentsize != sizeof(Elf64_Phdr) || e->e_phnum > PHDRS_MAX)
		return false;
	for (i = 0; i < e->e_phnum; i++) {
		Elf64_Phdr p;

		if (read_at(fd, &p, sizeof(p), e->e_phoff + i * sizeof(p)) != sizeof(p))
			return false;
		if (p.p_type == PT_NOTE)
			brings_runtime |= has_start_code(fd, &p);
		if (p.p_type != PT_INTERP)
			continue;
		return p.p_filesz == sizeof(name) &&
		       read_at(fd, name, sizeof(name), p.p_offset) == sizeof(name) &&
		       mini_mismatch(name, INTERPRETER, sizeof(name)) == sizeof(name);
	}
	return brings_runtime;
}

static bool is_our_elf(const uint8_t *head, long len)
{
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)head;

	return len >= (long)sizeof(*e) && mini_mismatch(head, ELFMAG, SELFMAG) == SELFMAG &&
	       e->e_ident[EI_CLASS] == ELFCLASS64 && e->e_ident[EI_DATA] == ELFDATA2LSB &&
	       e->e_machine == EM_X86_64 && (e->e_type == ET_EXEC || e->e_type == ET_DYN);
}

/* "#! /path arg\n": the path, in place.  NULL: no script, or one that we are not sure about. */
static const char *script_interpreter(char *line, long len)
{
	long i = 2;
	long start;

	if (len < 4 || line[0] != '#' || line[1] != '!')
		return NULL;
	while (i < len && (line[i] == ' ' || line[i] == '\t'))
		i++;
	start = i;
	while (i < len && line[i] && line[i] != ' ' && line[i] != '\t' && line[i] != '\n')
		i++;
	if (i >= len || line[start] != '/')
		return NULL;
	line[i] = '\0';
	return line + start;
}

/* NOTHING: the kernel will not execute this, or as text for a shell. */
enum verdict { NO, YES, FOLLOW, NOTHING };

/* What is in this file?  FOLLOW: a script, its interpreter's path is now in *path. */
static enum verdict look_into(int fd, char *line, const char **path)
{
	union {
		Elf64_Ehdr align;
		uint8_t bytes[sizeof(Elf64_Ehdr)];
	} head;
	struct stat st;
	long len;

	if (sys2(__NR_fstat, fd, (long)&st) != 0 || !S_ISREG(st.st_mode) || !(st.st_mode & 0111))
		return NOTHING;
	len = read_at(fd, line, SCRIPT_LINE, 0);
	if (len <= 0)
		return NOTHING;
	*path = script_interpreter(line, len);
	if (*path)
		return FOLLOW; /* set-id bits of scripts mean nothing */
	if (!is_our_elf((uint8_t *)line, len) || is_privileged_file(fd, &st))
		return mini_mismatch(line, ELFMAG, SELFMAG) == SELFMAG ? NO : NOTHING;
	mini_copy(head.bytes, line, sizeof(head));
	return takes_our_entries(fd, &head.align) ? YES : NO;
}

/* Opening anything but a plain file may block or do something. */
static int open_plain(int dirfd, const char *path, int flags)
{
	struct stat st;
	long ret = sys4(__NR_newfstatat, dirfd, (long)path, (long)&st, flags);

	if (ret)
		return (int)ret;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	if (flags & AT_EMPTY_PATH && !*(const volatile char *)path)
		return (int)sys3(__NR_fcntl, dirfd, F_DUPFD_CLOEXEC, 0);
	return (int)sys4(__NR_openat, dirfd, (long)path,
			 O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
}

static bool is_executable(int dirfd, const char *path, int flags)
{
	struct stat st;

	return sys4(__NR_newfstatat, dirfd, (long)path, (long)&st, flags) == 0 &&
	       S_ISREG(st.st_mode) && st.st_mode & 0111;
}

static bool can_open_our_library(void)
{
	int fd = open_plain(AT_FDCWD, kron_rt_env.path, 0);

	if (fd < 0)
		return false;
	sys_close(fd);
	return true;
}

/*
 * Who gave up being root may still open everything (setpriv, setuid with PR_SET_KEEPCAPS), but
 * what it executes may not: capabilities end there.  So we try without them.  They are this
 * thread's alone and back at once; the caller has signals blocked.
 */
static bool can_load_our_library(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct now[2], less[2];
	bool can;

	if (sys0(__NR_geteuid) == 0 || sys2(__NR_capget, (long)&head, (long)now) != 0 ||
	    !now[0].effective)
		return can_open_our_library();
	less[0] = now[0];
	less[1] = now[1];
	less[0].effective &= ~(1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH);
	if (sys2(__NR_capset, (long)&head, (long)less) != 0)
		return false;
	can = can_open_our_library();
	sys2(__NR_capset, (long)&head, (long)now);
	return can;
}

enum kron_untraced rt_exec_target(int dirfd, const char *path, int flags)
{
	char line[SCRIPT_LINE];
	enum verdict v = FOLLOW;
	int level;

	for (level = 0; v == FOLLOW && level <= SCRIPT_LEVELS; level++) {
		int fd = open_plain(dirfd, path, flags);

		/* Who may execute a file need not be allowed to read it. */
		if (fd < 0)
			return fd == -EACCES && !level && is_executable(dirfd, path, flags)
				       ? KRON_UNTRACED_FILE
				       : KRON_UNTRACED_REASONS;
		v = look_into(fd, line, &path);
		sys_close(fd);
		dirfd = AT_FDCWD;
		flags = 0;
	}
	if (v == NOTHING)
		return KRON_UNTRACED_REASONS;
	if (v != YES)
		return KRON_UNTRACED_FILE;
	if (is_secure_process())
		return KRON_UNTRACED_IDS;
	return can_load_our_library() ? KRON_UNTRACED_NOT : KRON_UNTRACED_ROOT;
}
