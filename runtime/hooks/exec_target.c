/* SPDX-License-Identifier: MIT */
/*
 * exec_target.c - will the file that is about to be executed load libkron-rt.so, and may it?
 * kron/exec.h has the rules; here are the system calls.
 *
 * Only a program that certainly reads LD_PRELOAD, or has the runtime in itself (a static one from
 * `kron patch`), gets kron's entries; other static programs get the runtime when they are there
 * (exec_static.c), and no entries.
 * Anything else would see an environment that is not its own: other architectures, setuid programs
 * (ld.so ignores LD_PRELOAD there), a root directory in which our library does not exist (ld.so would
 * complain on the program's stderr).  Under limits that are too small for both it would not start.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <kron/exec.h>
#include "runtime/hooks/exec_target.h"
#include "runtime/core/rt.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

static bool read_part(const struct kron_exec_file *f, void *buf, size_t len, uint64_t off)
{
	return sys4(__NR_pread64, f->fd, (long)buf, (long)len, (long)off) == (long)len;
}

/* The program would start in ld.so's secure mode: real and effective ids differ. */
static bool is_secure_process(void)
{
	return sys0(__NR_getuid) != sys0(__NR_geteuid) || sys0(__NR_getgid) != sys0(__NR_getegid);
}

static bool changes_ids(int fd, const struct stat *st)
{
	struct kron_exec_ids now = {.uid = (uint32_t)sys0(__NR_getuid),
				    .euid = (uint32_t)sys0(__NR_geteuid),
				    .egid = (uint32_t)sys0(__NR_getegid)};

	return kron_exec_changes_ids(
		st, sys4(__NR_fgetxattr, fd, (long)"security.capability", 0, 0) > 0, &now);
}

/* STATIC: nobody brings the runtime, or nobody that it could live with (musl); NOTHING: the kernel will not execute this, or as text for a shell. */
enum verdict { NO, YES, STATIC, FOLLOW, NOTHING };

static enum verdict look_into_elf(int fd, const struct stat *st)
{
	struct kron_exec_file f;
	enum kron_exec_verdict v;
	Elf64_Ehdr e;

	f.read = read_part;
	f.fd = fd;
	f.size = (uint64_t)st->st_size;
	v = kron_exec_judge(&f, &e);
	if (kron_exec_fails(v))
		return NOTHING;
	if ((v != KRON_EXEC_LOADS && v != KRON_EXEC_STATIC && v != KRON_EXEC_LINKER_MUSL) ||
	    changes_ids(fd, st))
		return NO;
	return v == KRON_EXEC_LOADS ? YES : STATIC;
}

/* What is in this file?  FOLLOW: a script, its interpreter's path is now in *path. */
static enum verdict look_into(int fd, char head[KRON_EXEC_HEAD], const char **path)
{
	struct stat st;

	if (sys2(__NR_fstat, fd, (long)&st) != 0 || !S_ISREG(st.st_mode) || !(st.st_mode & 0111))
		return NOTHING;
	mini_zero(head, KRON_EXEC_HEAD);
	if (sys4(__NR_pread64, fd, (long)head, KRON_EXEC_HEAD, 0) <= 0)
		return NOTHING;
	switch (kron_exec_kind(head)) {
	case KRON_EXEC_SCRIPT:
		*path = kron_exec_interpreter(head);
		return *path ? FOLLOW : NOTHING;
	case KRON_EXEC_ELF:
		return look_into_elf(fd, &st);
	default:
		return NOTHING;
	}
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

static uint64_t limit_of(int resource)
{
	struct rlimit r;

	return sys4(__NR_prlimit64, 0, resource, 0, (long)&r) == 0 ? r.rlim_cur : RLIM_INFINITY;
}

static bool has_room_for_our_library(void)
{
	return kron_exec_has_room(limit_of(RLIMIT_AS), limit_of(RLIMIT_DATA));
}

enum kron_untraced rt_exec_target(int dirfd, const char *path, int flags)
{
	char head[KRON_EXEC_HEAD];
	enum verdict v = FOLLOW;
	int level;

	for (level = 0; v == FOLLOW && level <= KRON_EXEC_SCRIPTS; level++) {
		int fd = open_plain(dirfd, path, flags);

		/* Who may execute a file need not be allowed to read it. */
		if (fd < 0)
			return fd == -EACCES && is_executable(dirfd, path, flags)
				       ? KRON_UNTRACED_FILE
				       : KRON_UNTRACED_REASONS;
		v = look_into(fd, head, &path);
		sys_close(fd);
		dirfd = AT_FDCWD;
		flags = 0;
	}
	if (v == NOTHING || v == FOLLOW)
		return KRON_UNTRACED_REASONS;
	if (v == NO)
		return KRON_UNTRACED_FILE;
	if (is_secure_process())
		return KRON_UNTRACED_IDS;
	if (v == STATIC)
		return KRON_UNTRACED_STATIC;
	if (!has_room_for_our_library())
		return KRON_UNTRACED_LIMITS;
	return can_load_our_library() ? KRON_UNTRACED_NOT : KRON_UNTRACED_ROOT;
}
