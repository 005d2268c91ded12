/* SPDX-License-Identifier: MIT */
/*
 * start_rig.h - libkron-rt.so as it is preloaded, and a collector made by hand.
 *
 * Each test starts this program again as the target, with the runtime preloaded, and plays the
 * collector, well or badly.  The target looks at itself and exits 42; whatever the collector
 * does, it must get that far.
 *
 * KRON_TOP_BUILD says where the library is.
 */
#ifndef TESTS_START_RIG_H
#define TESTS_START_RIG_H

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <kron/segment.h>
#include <kron/wire.h>

#include "tests/unit/runtime/tap_fork.h"

#define TARGET_STATUS 42
#define CALLS 1000
#define CHUNKS 16u
#define SEGMENT_SIZE (KRON_POOL_OFFSET + (uint64_t)CHUNKS * KRON_CHUNK_SIZE)

static const uint8_t session[16] = "0123456789abcde";
static char self[PATH_MAX], runtime[PATH_MAX];

/* A page of text with the function to patch: "mov $7,%eax; ret". */
int victim(void);
__asm__(".text\n.p2align 12\n.globl victim\n.type victim, @function\nvictim:\n"
	"	mov $7, %eax\n	ret\n.p2align 12\n");

/* ---- the target ---- */

static inline bool has_env(const char *name)
{
	return getenv(name) != NULL;
}

static inline int count_fds(void)
{
	int n = 0;
	int fd;

	for (fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Readable text; "w" and "x" never together. */
static inline bool is_w_xor_x(void)
{
	char line[512], perms[8];
	FILE *f = fopen("/proc/self/maps", "r");
	bool ok = true;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*x-%*x %7s", perms) == 1 && strchr(perms, 'w') &&
		    strchr(perms, 'x'))
			ok = false;
	}
	if (f)
		fclose(f);
	return ok;
}

/* The auxiliary vector is where it was, and after the end of the environment. */
static inline bool auxv_is_found(char **envp)
{
	const Elf64_auxv_t *a;
	bool seen = false;

	while (*envp)
		envp++;
	for (a = (const Elf64_auxv_t *)(envp + 1); a->a_type != AT_NULL; a++)
		seen |= a->a_type == AT_PAGESZ && a->a_un.a_val == 4096;
	return seen && getauxval(AT_PAGESZ) == 4096;
}

static inline int target(const char *mode, char **envp)
{
	int sum = 0;
	int i;

	for (i = 0; i < CALLS; i++)
		sum += victim();
	CHECK_EQ(sum, 7 * CALLS);
	CHECK_EQ(count_fds(), 3);
	CHECK(is_w_xor_x());
	CHECK(auxv_is_found(envp));
	CHECK(strcmp(getenv("OTHER"), "stays") == 0);
	if (strcmp(mode, "hidden") == 0) {
		CHECK(!has_env("LD_PRELOAD") && !has_env("KRON_RT") && !has_env("KRON_RT_PAD"));
	} else if (strcmp(mode, "user") == 0) {
		CHECK(strcmp(getenv("LD_PRELOAD"), "libutil.so.1") == 0);
		CHECK(!has_env("KRON_RT") && !has_env("KRON_RT_PAD"));
	} else if (strcmp(mode, "exec") == 0) {
		char *args[] = {self, "target", "hidden", NULL};

		CHECK(!has_env("KRON_RT"));
		execve(self, args, environ);
		_exit(99);
	} else {
		CHECK(has_env("LD_PRELOAD") && has_env("KRON_RT"));
	}
	return TARGET_STATUS;
}

/* ---- the collector ---- */

static char sock_name[64];
static int listener;
static pid_t child;

static inline struct sockaddr_un address(socklen_t *len)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	memcpy(a.sun_path + 1, sock_name, strlen(sock_name));
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(sock_name));
	return a;
}

static inline void collector_listen(void)
{
	struct sockaddr_un a;
	socklen_t len;

	snprintf(sock_name, sizeof(sock_name), "kron-test-%d", (int)getpid());
	a = address(&len);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK(listener >= 0 && bind(listener, (struct sockaddr *)&a, len) == 0 &&
	      listen(listener, 8) == 0);
}

static inline void start_target(const char *mode, const char *user_preload)
{
	char rt[PATH_MAX + 128], hex[33];
	int i;

	for (i = 0; i < 16; i++)
		sprintf(hex + 2 * i, "%02x", session[i]);
	fflush(NULL);
	child = fork();
	if (child)
		return;
	close_range(3, ~0u, CLOSE_RANGE_CLOEXEC); /* what we inherited ourselves */
	clearenv();
	setenv("FIRST", "1", 1);
	if (user_preload) {
		snprintf(rt, sizeof(rt), "%s:%s", runtime, user_preload);
		setenv("LD_PRELOAD", rt, 1);
		setenv("KRON_RT_PAD", "", 1);
	} else {
		setenv("LD_PRELOAD", runtime, 1);
	}
	setenv("OTHER", "stays", 1);
	snprintf(rt, sizeof(rt), "%s,%s,%s", sock_name, hex, runtime);
	setenv("KRON_RT", rt, 1);
	setenv("LAST", "1", 1);
	/* Where this test is built with gcc's ASan: it wants to be preloaded first. */
	setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
	execl(self, self, "target", mode, NULL);
	_exit(99);
}

static inline int accept_hello(struct kron_hello *h)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	CHECK(fd >= 0);
	CHECK_EQ(recv(fd, h, sizeof(*h), 0), sizeof(*h));
	CHECK_EQ(h->magic, KRON_WIRE_MAGIC);
	CHECK_EQ(h->version, KRON_WIRE_VERSION);
	CHECK_EQ(h->kind, KRON_HELLO_START);
	CHECK(memcmp(h->session, session, 16) == 0);
	return fd;
}

static inline void expect_target_ends(void)
{
	int status;

	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), TARGET_STATUS);
}

static inline void send_with_fds(int sock, const void *msg, size_t len, const int *fds,
				 unsigned nfds)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = (void *)msg, .iov_len = len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	memset(&control, 0, sizeof(control));
	if (nfds) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		CMSG_FIRSTHDR(&m)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&m)->cmsg_type = SCM_RIGHTS;
		CMSG_FIRSTHDR(&m)->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), fds, nfds * sizeof(int));
	}
	CHECK_EQ(sendmsg(sock, &m, MSG_NOSIGNAL), len);
}

static uint8_t *segment;

static inline int make_segment(void)
{
	int fd = memfd_create("segment", MFD_CLOEXEC);
	struct kron_ctl *ctl;
	uint32_t i;

	CHECK(fd >= 0 && ftruncate(fd, (off_t)SEGMENT_SIZE) == 0);
	segment = mmap(NULL, SEGMENT_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(segment != MAP_FAILED);
	ctl = (struct kron_ctl *)(segment + KRON_CTL_OFFSET);
	ctl->magic = KRON_SEGMENT_MAGIC;
	ctl->version = KRON_SEGMENT_VERSION;
	ctl->segment_size = SEGMENT_SIZE;
	memcpy(ctl->session, session, 16);
	ctl->collector_pid = getpid();
	ctl->chunks_max = CHUNKS;
	ctl->chunks_ready = CHUNKS;
	ctl->free_count = CHUNKS;
	ctl->next_uid = 1;
	ctl->next_seq = 1;
	memset(ctl->gate, 1, sizeof(ctl->gate));
	for (i = 0; i < CHUNKS; i++)
		((uint64_t *)(segment + KRON_STATES_OFFSET))[i] = KRON_CHUNK_FREE;
	return fd;
}

static inline uint64_t samples_taken(void)
{
	uint64_t n = 0;
	uint32_t i, j;

	for (i = 0; i < CHUNKS; i++) {
		const struct kron_sample *s =
			(const struct kron_sample *)(segment + KRON_POOL_OFFSET +
						     i * KRON_CHUNK_SIZE + KRON_CHUNK_HEADER);

		for (j = 0; j < KRON_CHUNK_SAMPLES; j++)
			n += s[j].head && s[j].event == 2;
	}
	return n;
}

/* Address of the start of a mapped file in the target. */
static inline uint64_t base_of(const char *name)
{
	char path[64], line[PATH_MAX + 128];
	uint64_t base = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)child);
	f = fopen(path, "r");
	CHECK(f != NULL);
	while (!base && fgets(line, sizeof(line), f)) {
		if (strstr(line, name))
			base = strtoull(line, NULL, 16);
	}
	fclose(f);
	CHECK(base != 0);
	return base;
}

static inline uint64_t own_base(const void *address_in_it)
{
	Dl_info info;

	CHECK(dladdr(address_in_it, &info) != 0);
	return (uint64_t)(uintptr_t)info.dli_fbase;
}

/* ---- a command file: one block, stubs in it, patches ---- */

struct job {
	struct kron_commands head;
	struct kron_command cmd[8];
	struct kron_patch patch[8] __attribute__((aligned(8)));
	uint8_t block[4096] __attribute__((aligned(4096)));
};
_Static_assert(sizeof(struct job) == 8192, "the block begins a page");

static inline void job_block(struct job *j, const struct kron_hello *h)
{
	static const uint8_t jump[8] = {0xff, 0x25, 0x0a, 0, 0, 0, 0xcc, 0xcc};

	memcpy(j->block, jump, 8);
	memcpy(j->block + 8, jump, 8);
	memcpy(j->block + 16, &h->thunk[KRON_THUNK_LANE], 8);
	memcpy(j->block + 24, &h->hook_thunk, 8);
}

static inline void put_rel32(uint8_t *at, uint64_t from, uint64_t to)
{
	int32_t rel = (int32_t)(to - (from + 4));

	memcpy(at, &rel, 4);
}

/* A stub for a place whose first instruction is 5 bytes long.  Returns its length. */
static inline void job_stub(struct job *j, unsigned off, uint64_t block, bool hook, uint32_t number,
			    const uint8_t displaced[5], uint64_t place)
{
	uint8_t *s = j->block + off;
	uint64_t at = block + off;
	unsigned n = 6;

	memcpy(s, "\x48\x8d\x64\x24\x80\x51", 6);
	if (!hook) {
		uint32_t gate = KRON_GATE_ADDR(0);

		memcpy(s + n, "\x0f\xb6\x0c\x25", 4);
		memcpy(s + n + 4, &gate, 4);
		memcpy(s + n + 8, "\xe3\x0c", 2);
		n += 10;
	}
	memcpy(s + n, "\x50\xb8", 2);
	memcpy(s + n + 2, &number, 4);
	s[n + 6] = 0xe8;
	put_rel32(s + n + 7, at + n + 7, block + (hook ? KRON_BLOCK_HOOK : KRON_BLOCK_THUNK));
	memcpy(s + n + 11, "\x58\x59\x48\x8d\xa4\x24\x80\0\0\0", 10);
	memcpy(s + n + 21, displaced, 5);
	s[n + 26] = 0xe9;
	put_rel32(s + n + 27, at + n + 27, place + 5);
}

static const uint8_t victim_bytes[6] = {0xb8, 7, 0, 0, 0, 0xc3};

static inline void job_patch(struct kron_patch *p, uint64_t page, uint64_t place, uint64_t stub,
			     const uint8_t *old, uint8_t old_len)
{
	memset(p, 0, sizeof(*p));
	p->off = (uint32_t)(place - page);
	p->old_len = old_len;
	p->new_len = 5;
	memcpy(p->old_bytes, old, old_len);
	p->new_bytes[0] = 0xe9;
	put_rel32(p->new_bytes + 1, place + 1, stub);
}

/* Group 1: a block right above the target's last mapping, a probe at victim's entry. */
static inline void job_for_victim(struct job *j, const struct kron_hello *h)
{
	uint64_t base = base_of(self);
	uint64_t place = base + ((uint64_t)(uintptr_t)victim - own_base(victim));
	uint64_t block = base - 0x100000;

	memset(j, 0, sizeof(*j));
	j->head = (struct kron_commands){
		.magic = KRON_WIRE_MAGIC, .ncommands = 2, .size = sizeof(*j)};
	j->cmd[0] = (struct kron_command){.kind = KRON_CMD_MAP,
					  .addr = block,
					  .len = 4096,
					  .file_off = offsetof(struct job, block),
					  .group = 1};
	j->cmd[1] = (struct kron_command){.kind = KRON_CMD_PATCH,
					  .count = 1,
					  .addr = place,
					  .len = 4096,
					  .file_off = offsetof(struct job, patch),
					  .group = 1};
	job_block(j, h);
	job_stub(j, 64, block, false, 2, victim_bytes, place);
	job_patch(&j->patch[0], place, place, block + 64, victim_bytes, 6);
}

static inline int job_file(const struct job *j)
{
	int fd = memfd_create("kron:test", MFD_CLOEXEC);

	CHECK(fd >= 0 && write(fd, j, sizeof(*j)) == (ssize_t)sizeof(*j));
	return fd;
}

static inline struct kron_reply reply_for(const struct job *j, uint32_t flags)
{
	return (struct kron_reply){
		.magic = KRON_WIRE_MAGIC,
		.version = KRON_WIRE_VERSION,
		.kind = KRON_MSG_REPLY,
		.ncommands = j ? j->head.ncommands : 0,
		.segment_size = SEGMENT_SIZE,
		.commands_size = j ? sizeof(*j) : 0,
		.flags = flags,
	};
}

/* What it says at the end; why, and of which group, from the first that it refused. */
static inline struct kron_result do_reply(int sock, const struct job *j, uint32_t flags)
{
	struct kron_reply r = reply_for(j, flags);
	struct kron_result res, first = {.kind = 0};
	int fds[2] = {make_segment(), j ? job_file(j) : -1};
	uint32_t refused = 0;

	send_with_fds(sock, &r, sizeof(r), fds, j ? 2 : 1);
	for (;;) {
		CHECK_EQ(recv(sock, &res, sizeof(res), 0), sizeof(res));
		CHECK_EQ(res.magic, KRON_WIRE_MAGIC);
		if (res.kind != KRON_RESULT_GROUP)
			break;
		if (!refused++)
			first = res;
	}
	CHECK_EQ(res.kind, KRON_RESULT_END);
	CHECK_EQ(res.pid, child);
	CHECK_EQ(res.groups_refused, refused);
	close(sock);
	if (refused) {
		CHECK_EQ(res.code, KRON_RESULT_OK);
		res.code = first.code;
		res.detail = first.detail;
		res.group = first.group;
	}
	return res;
}

/* Ends as the target, or finds the library that targets get. */
static inline void start_begin(int argc, char **argv, char **envp)
{
	const char *build = getenv("KRON_TOP_BUILD");

	CHECK(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	if (argc > 2 && strcmp(argv[1], "target") == 0)
		exit(target(argv[2], envp));
	CHECK(realpath(build ? build : ".", runtime) != NULL);
	strncat(runtime, "/runtime/libkron-rt.so", sizeof(runtime) - strlen(runtime) - 1);
	if (access(runtime, R_OK))
		printf("Bail out! %s: not there\n", runtime);
}

#endif
