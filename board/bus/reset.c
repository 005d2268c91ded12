/* SPDX-License-Identifier: MIT */
/* reset.c - see reset.h */
#define _GNU_SOURCE
#include "board/bus/reset.h"

#include <errno.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "board/bus/object.h"

#define SOON_TSC (1u << 21) /* half a millisecond to one: time to reach all of them */
#define ATTEMPTS 1000u      /* each fails only where a board is in use just then */

/* ---- what is refused ---- */

static int refuse_recorded(const struct bus *b, const struct object_recorder *r, struct err *err)
{
	if (r->killed)
		return err_set(
			err, EBUSY,
			"the kron record (pid %d) on board %s was killed and has left samples there: "
			"`kron recover %.300s` gets them first",
			r->pid, b->name, r->dir[0] ? r->dir : "DIR");
	return err_set(
		err, EBUSY,
		"a kron record (pid %d) has the times of its samples from board %s (--bus exact): end "
		"it first",
		r->pid, b->name);
}

/* Who has the lock and is not a recorder yet, or makes the board another's, takes no time for it. */
static int keep_recorders_away(const struct bus *b)
{
	const struct timespec nap = {.tv_nsec = 10000000};
	int code = 0;

	for (int i = 0; i < 100; i++) {
		code = object_lock(b->fd);
		if (code != -EBUSY ||
		    __atomic_load_n(&b->board.ctl->collector_pid, __ATOMIC_ACQUIRE))
			break;
		nanosleep(&nap, NULL);
	}
	return code;
}

static int check_recorder(const struct bus *b, struct err *err)
{
	const struct object o = {.fd = b->fd, .held = {b->keeper, b->keeper_fd}};
	struct object_recorder r;
	int code = b->keeper ? 0 : keep_recorders_away(b);

	/* With our lock on it a board has no recorder; one whose name is there was killed. */
	object_find_recorder(&o, b->board.ctl, &r);
	if (r.pid && b->board.ctl->bus == KRON_BUS_EXACT)
		return refuse_recorded(b, &r, err);
	if (code && !r.pid)
		return err_set(err, -code, "another process keeps the lock on board %s", b->name);
	return 0;
}

static bool are_same(const struct bus *a, const struct bus *b)
{
	struct stat x, y;

	return !fstat(a->fd, &x) && !fstat(b->fd, &y) && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

static int check_apart(const struct bus *b, size_t i, struct err *err)
{
	if (!bus_is_exact(&b[i]))
		return err_set(err, EINVAL,
			       "%s is hardware: what resets it together with others is a wire",
			       b[i].name);
	if (bus_has_virtual_clock(&b[i]) != bus_has_virtual_clock(&b[0]))
		return err_set(
			err, EINVAL,
			"the time of board %s moves by `kron ctl tick` alone: it has no instant in common "
			"with board %s",
			b[bus_has_virtual_clock(&b[i]) ? i : 0].name,
			b[bus_has_virtual_clock(&b[i]) ? 0 : i].name);
	for (size_t k = 0; k < i; k++)
		if (are_same(&b[k], &b[i]))
			return err_set(err, EINVAL, "board %s is there twice", b[i].name);
	return 0;
}

static int check(const struct bus *b, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		int code = n > 1 ? check_apart(b, i, err) : 0;

		if (!code && bus_is_exact(&b[i]))
			code = check_recorder(&b[i], err);
		if (code)
			return code;
	}
	return 0;
}

/* ---- the reset ---- */

static int reset_all_at(struct bus *b, size_t n, uint64_t tsc)
{
	for (size_t i = 0; i < n; i++) {
		int code = board_reset_at(&b[i].board, tsc, BUS_CONFIG_IDLE);

		if (code)
			return code;
		board_use_rate_of(&b[i].board, &b[0].board);
	}
	return 0;
}

/* Who was reset too early is so once more. */
static int reset_together(struct bus *b, size_t n)
{
	int code = -ETIME;
	uint64_t then = 0;

	for (unsigned i = 0; i < ATTEMPTS && code == -ETIME; i++) {
		then = clock_tsc() + SOON_TSC;
		code = reset_all_at(b, n, then);
	}
	/* No sample is taken before: no filter level is on yet. */
	while (!code && clock_tsc() < then)
		__builtin_ia32_pause();
	return code;
}

static int reset(struct bus *b, size_t n, struct err *err)
{
	int code;

	if (bus_is_exact(b) && !bus_has_virtual_clock(b)) {
		code = reset_together(b, n);
		if (code == -ETIME)
			return err_set(
				err, EBUSY,
				"the boards are in use all the time: they have no reset in common now");
		return code ? err_set(err, -code, "a board does not answer: it is damaged") : 0;
	}
	for (size_t i = 0; i < n; i++)
		bus_write32(&b[i], KRON_BOARD_RESET, 0);
	return 0;
}

int boards_reset(struct bus *b, size_t n, struct err *err)
{
	int code = check(b, n, err);

	if (!code)
		code = reset(b, n, err);
	for (size_t i = 0; i < n && !code; i++)
		bus_configure_default(
			&b[i], bus_is_exact(&b[i]) ? KRON_SOURCE(b[i].board.ctl->node, 0) : 0);
	return code;
}
