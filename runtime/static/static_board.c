/* SPDX-License-Identifier: MIT */
/*
 * static_board.c - KRON_BOARD=name: a static program whose probes are stores to a board that is
 * there, with or without a recorder on it.  Nobody is asked and nobody is told; samples are bus
 * cycles of the model (bus exact), and they name their thread by its number.
 *
 * What is trusted is what board/bus/object.c trusts: a plain file of our own that nobody else can
 * write to, of the right length and version, with a model in it that makes sense.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "runtime/sys/memory.h"
#include "runtime/sys/procfile.h"
#include "runtime/static/static.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

#define PREFIX "/dev/shm/kron-board."
#define TAIL_SIZE (KRON_WINDOW_SIZE - KRON_CTL_OFFSET)

/*
 * Each module from `kron patch`, the program and its libraries, has this code; they share one board
 * and what is mapped for it.  Whoever comes first maps it and it stays, for nobody knows who is
 * still there:
 *
 *   KRON_CTL_ADDR   the window's tail: gates are at fixed addresses
 *   RT_MEMORY_HINT  local memory
 *   RT_LANES_HINT   what a fork wipes
 *
 * What lies there already is ours if all three are there, of this very board.
 */

/* As board/bus/boards.c: no slash, no dot first. */
static bool is_name(const char *name)
{
	size_t len = mini_len(name), i;

	for (i = 0; i < len; i++) {
		char c = name[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    c != '_' && c != '-' && (c != '.' || !i))
			return false;
	}
	return len && len <= RT_BOARD_NAME_MAX;
}

static char *put_number(char *at, uint32_t n)
{
	char digits[10];
	unsigned i = 0;

	do
		digits[i++] = (char)('0' + n % 10);
	while (n /= 10);
	while (i)
		*at++ = digits[--i];
	return at;
}

static int open_board(const char *name, uint32_t uid)
{
	char path[sizeof(PREFIX) + 10 + 1 + RT_BOARD_NAME_MAX + 1];
	char *at = path + sizeof(PREFIX) - 1;

	mini_copy(path, PREFIX, sizeof(PREFIX) - 1);
	at = put_number(at, uid);
	*at++ = '.';
	mini_copy(at, name, mini_len(name) + 1);
	return (int)sys4(__NR_openat, AT_FDCWD, (long)path,
			 O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
}

static bool is_ours(int fd, uint32_t uid)
{
	struct stat st;

	return sys2(__NR_fstat, fd, (long)&st) == 0 && S_ISREG(st.st_mode) && st.st_uid == uid &&
	       !(st.st_mode & 077) && (uint64_t)st.st_size >= KRON_WINDOW_SIZE;
}

static void use_model(long tail, long memory)
{
	kron_rt.ctl = (struct kron_ctl *)tail;
	kron_rt.board.ctl = kron_rt.ctl;
	kron_rt.board.model = (struct model *)(tail + (long)(KRON_MODEL_OFFSET - KRON_CTL_OFFSET));
	kron_rt.board.memory = (void *)memory;
}

static bool map_model(int fd)
{
	long tail = rt_map_shared(KRON_CTL_ADDR, true, TAIL_SIZE, PROT_READ | PROT_WRITE, fd,
				  KRON_CTL_OFFSET);
	long memory;

	if (sys_failed(tail))
		return false;
	memory = rt_map_shared(RT_MEMORY_HINT, false, KRON_MEMORY_BYTES, PROT_READ | PROT_WRITE, fd,
			       KRON_MEMORY_OFFSET);
	if (sys_failed(memory)) {
		sys_munmap((void *)tail, TAIL_SIZE);
		return false;
	}
	use_model(tail, memory);
	return true;
}

static void unmap_model(void)
{
	sys_munmap(kron_rt.board.memory, KRON_MEMORY_BYTES);
	sys_munmap(kron_rt.ctl, TAIL_SIZE);
}

static bool is_part_of(uint64_t addr, uint64_t len, uint64_t off, const struct stat *st)
{
	struct rt_mapping m;

	return rt_mapping_at(addr, &m) && m.start == addr && m.end == addr + len && m.off == off &&
	       m.dev == st->st_dev && m.ino == st->st_ino &&
	       mini_mismatch(m.rights, "rw-s", 4) == 4;
}

static bool share_private(void)
{
	struct rt_mapping m;

	if (!rt_mapping_at(RT_LANES_HINT, &m) || m.start != RT_LANES_HINT || m.ino ||
	    m.end != m.start + rt_private_first() || mini_mismatch(m.rights, "rw-p", 4) != 4)
		return false;
	rt_private_use(RT_LANES_HINT);
	return true;
}

/* Another module has done it. */
static bool share_model(int fd)
{
	struct stat st;

	if (sys2(__NR_fstat, fd, (long)&st) != 0 ||
	    !is_part_of(KRON_CTL_ADDR, TAIL_SIZE, KRON_CTL_OFFSET, &st) ||
	    !is_part_of(RT_MEMORY_HINT, KRON_MEMORY_BYTES, KRON_MEMORY_OFFSET, &st) ||
	    !share_private())
		return false;
	use_model(KRON_CTL_ADDR, RT_MEMORY_HINT);
	return true;
}

static bool is_board(void)
{
	return kron_rt.ctl->magic == KRON_SEGMENT_MAGIC &&
	       kron_rt.ctl->version == KRON_SEGMENT_VERSION && board_is_sane(&kron_rt.board);
}

static void wake(void)
{
	board_remember_threads(&kron_rt.proc->epoch);
	/* named first: other threads meet probes before all are awake. */
	kron_rt.named = true;
	kron_rt.live = kron_rt_wake(&kron_start);
	if (!kron_rt.live)
		kron_rt.named = false;
}

void kron_rt_board(const char *name)
{
	uint32_t uid = (uint32_t)sys0(__NR_geteuid);
	int fd = is_name(name) ? open_board(name, uid) : -EINVAL;

	if (fd < 0)
		return;
	if (is_ours(fd, uid) && map_model(fd)) {
		if (is_board() && !rt_private_map())
			wake();
		if (!kron_rt.live)
			unmap_model();
	} else if (is_ours(fd, uid) && share_model(fd) && is_board()) {
		wake();
	}
	sys_close(fd);
}
