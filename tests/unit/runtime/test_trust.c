/* SPDX-License-Identifier: MIT */
/*
 * test_trust.c - whom libkron-rt.so says HELLO to: runtime/collector/trust.c, case by case.
 *
 * Each case is a listener of one user and a program of another, preloaded with the runtime.  The
 * truth is what arrives at the listener: a HELLO, or a connection on which nothing is said.
 *
 * KRON_TOP_BUILD says where the library is.  As root only: nobody else can be two users.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/vfs.h>

#include <kron/wire.h>
#include "tests/unit/runtime/tap_fork.h"

#define NOBODY 65534
#define OTHER 4321

enum identity { NONE, RIGHT, WRONG };

struct party {
	uid_t listener, program;
	gid_t group;     /* of the program; 0: as its uid */
	bool capability; /* the program has one */
	const char *map; /* the program's user namespace: its uid_map, "" empty; NULL: ours */
	enum identity identity;
};

static char runtime[PATH_MAX];

/* ---- what the kernel knows ---- */

static uint64_t identity_of(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct statfs fs;
	struct stat st;

	if (fd < 0 || fstatfs(fd, &fs) || fs.f_type != 0x50494446 || fstat(fd, &st))
		return 0;
	close(fd);
	return st.st_ino;
}

static void become_member(uid_t uid, gid_t gid)
{
	CHECK(!setgroups(0, NULL) && !setresgid(gid, gid, gid) && !setresuid(uid, uid, uid));
	CHECK(!prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)); /* /proc/self is its own */
}

static void become(uid_t uid)
{
	become_member(uid, uid);
}

/* ---- the listener ---- */

static void name_of(char *name, size_t size, uint64_t identity)
{
	snprintf(name, size, KRON_SOCKET_PREFIX "%016lx-%016x", identity, (unsigned)getpid());
}

/* Says on `out` that it listens, and then how many bytes came. */
static void listen_as(const struct party *p, int out)
{
	uint64_t identity = p->identity == NONE ? 0 : identity_of(getpid());
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char name[64], message[4096];
	int s, fd;
	long n;

	name_of(name, sizeof(name), identity);
	if (p->identity == WRONG)
		name_of(name, sizeof(name), identity + 1);
	become(p->listener);
	memcpy(a.sun_path + 1, name, strlen(name));
	s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK(s >= 0 &&
	      !bind(s, (struct sockaddr *)&a,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))) &&
	      !listen(s, 8));
	CHECK_EQ(write(out, name, sizeof(name)), sizeof(name));
	fd = accept(s, NULL, NULL);
	n = fd < 0 ? -1 : recv(fd, message, sizeof(message), 0);
	CHECK_EQ(write(out, &n, sizeof(n)), sizeof(n));
	_exit(0);
}

/* ---- the program ---- */

static void enter_namespace(const char *map)
{
	int fd;

	CHECK(!unshare(CLONE_NEWUSER));
	if (!*map)
		return;
	fd = open("/proc/self/uid_map", O_WRONLY);
	CHECK(fd >= 0 && write(fd, map, strlen(map)) == (ssize_t)strlen(map));
	close(fd);
}

/* A capability that outlives setuid and exec, and does not help to open files. */
static void keep_capability(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct set[2] = {{0}};

	set[0].effective = set[0].permitted = set[0].inheritable = 1u << CAP_NET_RAW;
	CHECK(!syscall(SYS_capset, &head, set));
	CHECK(!prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_RAW, 0, 0));
}

static void run_program(const struct party *p, const char *name)
{
	char rt[PATH_MAX + 128];

	if (p->capability)
		CHECK(!prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
	if (p->group)
		become_member(p->program, p->group);
	else
		become(p->program);
	if (p->capability)
		keep_capability();
	if (p->map)
		enter_namespace(p->map);
	setenv("LD_PRELOAD", runtime, 1);
	snprintf(rt, sizeof(rt), "%s,%032x,%s", name, 0, runtime);
	setenv("KRON_RT", rt, 1);
	execl("/bin/true", "true", NULL);
	_exit(99);
}

/* ---- a case ---- */

static long bytes_said(const struct party *p)
{
	int pipes[2], status;
	pid_t listener, program;
	char name[64];
	long n;

	CHECK(!pipe2(pipes, O_CLOEXEC));
	fflush(NULL);
	listener = fork();
	if (!listener)
		listen_as(p, pipes[1]);
	CHECK_EQ(read(pipes[0], name, sizeof(name)), sizeof(name));
	program = fork();
	if (!program)
		run_program(p, name);
	CHECK_EQ(read(pipes[0], &n, sizeof(n)), sizeof(n));
	/* whoever it talked to, it ran */
	CHECK(waitpid(program, &status, 0) == program && WIFEXITED(status) &&
	      WEXITSTATUS(status) == 0);
	CHECK(waitpid(listener, &status, 0) == listener && WIFEXITED(status));
	close(pipes[0]);
	close(pipes[1]);
	return n;
}

#define BELIEVED(...)                                                       \
	do {                                                                \
		const struct party p_ = {__VA_ARGS__};                      \
		CHECK_EQ(bytes_said(&p_), (long)sizeof(struct kron_hello)); \
	} while (0)
#define STRANGER(...)                                  \
	do {                                           \
		const struct party p_ = {__VA_ARGS__}; \
		CHECK_EQ(bytes_said(&p_), 0);          \
	} while (0)

static void root_is_believed(void)
{
	BELIEVED(.listener = 0, .program = 0);
	BELIEVED(.listener = 0, .program = NOBODY);
	BELIEVED(.listener = 0, .program = OTHER);
	BELIEVED(.listener = 0, .program = OTHER, .capability = true);
}

static void another_user_is_not(void)
{
	STRANGER(.listener = NOBODY, .program = 0);
	STRANGER(.listener = OTHER, .program = 0);
	STRANGER(.listener = NOBODY, .program = OTHER);
	STRANGER(.listener = OTHER, .program = NOBODY);
}

static void one_is_believed_by_oneself(void)
{
	BELIEVED(.listener = OTHER, .program = OTHER);
	BELIEVED(.listener = NOBODY, .program = NOBODY);
	/* who may more than its user does not do what that one says */
	STRANGER(.listener = OTHER, .program = OTHER, .capability = true);
	/* nor who is in another group: its user may not trace it, either */
	STRANGER(.listener = OTHER, .program = OTHER, .group = NOBODY);
	BELIEVED(.listener = 0, .program = OTHER, .group = NOBODY);
}

static void the_named_process_is_believed(void)
{
	if (!identity_of(getpid()))
		return;
	BELIEVED(.listener = 0, .program = 0, .identity = RIGHT);
	BELIEVED(.listener = OTHER, .program = OTHER, .identity = RIGHT);
	/* of the right user, but another process */
	STRANGER(.listener = 0, .program = 0, .identity = WRONG);
	STRANGER(.listener = OTHER, .program = OTHER, .identity = WRONG);
	/* who has written the name is no reason to believe another user */
	STRANGER(.listener = OTHER, .program = 0, .identity = RIGHT);
	STRANGER(.listener = NOBODY, .program = 0, .identity = RIGHT);
	STRANGER(.listener = NOBODY, .program = OTHER, .identity = RIGHT);
}

static void uids_without_a_number_tell_nothing(void)
{
	/* nobody has a number: both look like 65534 */
	STRANGER(.listener = OTHER, .program = NOBODY, .map = "");
	STRANGER(.listener = OTHER, .program = OTHER, .map = "");
	STRANGER(.listener = 0, .program = OTHER, .map = "");
	/* oneself as root there: the peer has that number, or none */
	BELIEVED(.listener = OTHER, .program = OTHER, .map = "0 4321 1");
	STRANGER(.listener = NOBODY, .program = OTHER, .map = "0 4321 1");
	/* as 65534, which any stranger seems to be */
	STRANGER(.listener = NOBODY, .program = OTHER, .map = "65534 4321 1");
	if (!identity_of(getpid()))
		return;
	BELIEVED(.listener = 0, .program = OTHER, .map = "", .identity = RIGHT);
	BELIEVED(.listener = OTHER, .program = OTHER, .map = "", .identity = RIGHT);
	STRANGER(.listener = 0, .program = OTHER, .map = "", .identity = WRONG);
}

static bool can_be_reached(uid_t uid)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		become(uid);
		_exit(access(runtime, R_OK) != 0);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

static const struct tap_test tests[] = {
#define TEST(name)          \
	{                   \
#name, name \
	}
	TEST(root_is_believed),
	TEST(another_user_is_not),
	TEST(one_is_believed_by_oneself),
	TEST(the_named_process_is_believed),
	TEST(uids_without_a_number_tell_nothing),
};

int main(int argc, char **argv)
{
	const char *top = getenv("KRON_TOP_BUILD");
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/runtime/libkron-rt.so", top ? top : ".");
	if (!realpath(path, runtime) || geteuid() || !can_be_reached(OTHER)) {
		puts("1..0 # SKIP needs root, and a folder that others may read");
		return 0;
	}
	return tap_main(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
