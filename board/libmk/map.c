/* SPDX-License-Identifier: MIT */
/*
 * map.c - mk_map(): which board, and what lies at MK_BASE.
 *
 *   a device or file   its 32 MiB, shared: loads and stores go there
 *   an emulated board  32 MiB that nobody may touch; trap.h makes cycles of the faults.  The
 *                      segment itself is mapped anywhere else.
 *
 * Just the 32 MiB of the window are taken.  In a process that `kron record` traces, kron's
 * control block and tables follow them directly, and the runtime may hold the window with a
 * mapping without rights: that one is replaced.  Any other mapping there is the program's.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "board/bus/bus.h"
#include "board/bus/node.h"
#include "board/libmk/cycle.h"
#include "board/libmk/trap.h"

/* What mk.h declares; it does not include kron's headers, nor do we include it. */
#define EXPORT __attribute__((visibility("default")))
EXPORT int mk_map(const char *name);
EXPORT const char *mk_error(void);
EXPORT void mk_init(void);
EXPORT int mk_external(unsigned input, int level);
EXPORT void mk_unmap(void);

#define DEVICE "/dev/mk0"
#define WINDOW ((void *)(uintptr_t)KRON_WINDOW_ADDR)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	bool mapped;
	bool held; /* somebody had reserved the window: to be given back so */
	char name[256];
	struct bus bus;
} mk;
static struct err error;

/* ---- the window ---- */

struct mapping {
	uint64_t start, end, inode;
	unsigned major, minor;
	char rights[5];
};

static bool next_mapping(FILE *maps, struct mapping *m)
{
	char line[512];

	if (!fgets(line, sizeof(line), maps))
		return false;
	if (!strchr(line, '\n')) /* a long path */
		while (fgets(line + 256, 256, maps) && !strchr(line + 256, '\n'))
			;
	return sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %x:%x %" SCNu64, &m->start, &m->end,
		      m->rights, &m->major, &m->minor, &m->inode) == 6;
}

enum holder { HOLDER_NOBODY, HOLDER_RESERVED, HOLDER_HARDWARE, HOLDER_OTHER };

/* What lies in the window.  fd: the device that is to be mapped, or -1. */
static enum holder window_holder(int fd)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	enum holder h = HOLDER_NOBODY;
	struct stat st = {0};
	struct mapping m;

	if (!maps)
		return HOLDER_OTHER;
	if (fd >= 0)
		fstat(fd, &st);
	while (h != HOLDER_OTHER && next_mapping(maps, &m)) {
		if (m.end <= KRON_WINDOW_ADDR || m.start >= KRON_WINDOW_ADDR + KRON_BOARD_SIZE)
			continue;
		if (!memcmp(m.rights, "---", 3))
			h = HOLDER_RESERVED;
		else if (fd >= 0 && !memcmp(m.rights, "rw-s", 4) && m.inode == st.st_ino &&
			 makedev(m.major, m.minor) == st.st_dev && m.start == KRON_WINDOW_ADDR &&
			 m.end >= KRON_WINDOW_ADDR + KRON_BOARD_SIZE)
			h = HOLDER_HARDWARE;
		else
			h = HOLDER_OTHER;
	}
	fclose(maps);
	return h;
}

static int map_window(int rights, int flags, int fd)
{
	void *at = mmap(WINDOW, KRON_BOARD_SIZE, rights, flags | MAP_FIXED_NOREPLACE, fd, 0);
	enum holder h;

	if (at == WINDOW)
		return 0;
	if (at != MAP_FAILED) /* a kernel before 4.17 takes the address for a wish */
		munmap(at, KRON_BOARD_SIZE);
	else if (errno != EEXIST)
		return err_set(&error, errno, "cannot map the board at %#x: %s", KRON_WINDOW_ADDR,
			       strerror(errno));
	h = window_holder(fd);
	if (h == HOLDER_HARDWARE) /* kron record --bus device has it there already */
		return 0;
	if (h != HOLDER_RESERVED)
		return err_set(&error, EEXIST,
			       "the board's addresses, %#x to %#x, are taken in this process",
			       KRON_WINDOW_ADDR, KRON_WINDOW_ADDR + KRON_BOARD_SIZE - 1);
	if (mmap(WINDOW, KRON_BOARD_SIZE, rights, flags | MAP_FIXED, fd, 0) == MAP_FAILED)
		return err_set(&error, errno, "cannot map the board at %#x: %s", KRON_WINDOW_ADDR,
			       strerror(errno));
	mk.held = true;
	return 0;
}

static void unmap_window(void)
{
	if (mk.held)
		mmap(WINDOW, KRON_BOARD_SIZE, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	else
		munmap(WINDOW, KRON_BOARD_SIZE);
	mk.held = false;
}

/* ---- which board ---- */

static const char *default_name(void)
{
	const char *env = getenv(BOARDS_ENV);

	if (env && strchr(env, '/'))
		return env;
	if (access(DEVICE, F_OK) == 0)
		return DEVICE;
	return env && *env ? env : BOARDS_DEFAULT;
}

static int open_board(const char *name, bool *created)
{
	int code = bus_open(&mk.bus, name, &error);

	if (code != -ENOENT || strchr(name, '/'))
		return code;
	code = boards_create(name, NULL, ACCESS_CLOCK_REAL, NODE_DEFAULT, &error);
	*created = !code;
	/* -EEXIST: somebody else has made it meanwhile */
	return code && code != -EEXIST ? code : bus_open(&mk.bus, name, &error);
}

static uint32_t own_source(void)
{
	struct node n;

	if (bus_is_exact(&mk.bus))
		return KRON_SOURCE(mk.bus.board.ctl->node, getpid());
	node_default(&n);
	return KRON_SOURCE(n.n, getpid());
}

static void initialise(void)
{
	bus_init_default(&mk.bus, own_source());
}

/* After a reset bits 0-23 are zero, and the chip answers nobody. */
static bool is_as_after_reset(void)
{
	return !(bus_read32(&mk.bus, KRON_BOARD_CONFIG) & KRON_CONFIG_WRITABLE);
}

static int map_board(const char *name)
{
	bool exact, created = false;
	int code = open_board(name, &created);

	if (code)
		return code;
	exact = bus_is_exact(&mk.bus);
	if (exact)
		code = map_window(PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	else
		code = map_window(PROT_READ | PROT_WRITE, MAP_SHARED, mk.bus.fd);
	if (code) {
		bus_close(&mk.bus);
		return code;
	}
	/* A new board is set up but for who we are.  Others may use it already: no reset. */
	if (created)
		bus_write32(&mk.bus, KRON_CHIP_BYTE(KRON_WORD_SOURCE), own_source());
	else if (is_as_after_reset())
		initialise();
	if (exact) {
		board_remember_threads(NULL);
		cycle_use(&mk.bus.board);
		trap_on();
	}
	return 0;
}

int mk_map(const char *name)
{
	int code = 0;

	if (!name || !*name)
		name = default_name();
	pthread_mutex_lock(&lock);
	if (!mk.mapped) {
		code = map_board(name);
		mk.mapped = !code;
		snprintf(mk.name, sizeof(mk.name), "%s", name);
	} else if (strncmp(mk.name, name, sizeof(mk.name) - 1)) {
		code = err_set(&error, EBUSY, "board %s is mapped already", mk.name);
	}
	pthread_mutex_unlock(&lock);
	return code;
}

const char *mk_error(void)
{
	return error.msg;
}

void mk_init(void)
{
	if (mk.mapped)
		initialise();
}

int mk_external(unsigned input, int level)
{
	int code;

	if (!mk.mapped)
		return err_set(&error, ENODEV, "no board is mapped: mk_map() comes first");
	if (input >= KRON_COUNTERS || level < ACCESS_LOW || level > ACCESS_TOGGLE)
		return err_set(&error, EINVAL,
			       "%u is not a counter input from 0 to %u, or %d no level", input,
			       KRON_COUNTERS - 1, level);
	if (!bus_is_exact(&mk.bus))
		return err_set(&error, ENOTSUP,
			       "%s is hardware: its counter inputs are on its connector", mk.name);
	code = board_set_external(&mk.bus.board, input, (enum access_level)level);
	return code ? err_set(&error, -code, "board %s does not answer", mk.name) : 0;
}

void mk_unmap(void)
{
	pthread_mutex_lock(&lock);
	if (mk.mapped) {
		trap_off();
		unmap_window();
		bus_close(&mk.bus);
		mk.mapped = false;
	}
	pthread_mutex_unlock(&lock);
}
