/* SPDX-License-Identifier: MIT */
/* hardware.c - see hardware.h */
#define _GNU_SOURCE
#include "collect/hardware.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/vec.h"

/* ---- lines ---- */

static int refuse_cpus(const cpu_set_t *set, int cpu, uint32_t other, struct err *err)
{
	return err_set(err, EXDEV,
		       "the program may run on %d CPUs, of which %u and %d are the same to a board "
		       "with %u CPU ID lines: `taskset -c 0-7 kron record ...` keeps it on eight "
		       "that are not",
		       CPU_COUNT(set), other, cpu, KRON_SOURCES);
}

/* Returns how many CPUs there are, or -EXDEV. */
static int give_lines(struct kron_ctl *ctl, int *one, struct err *err)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return err_set(err, errno, "cannot see which CPUs there are: %s", strerror(errno));
	for (unsigned i = 0; i < KRON_SOURCES; i++)
		ctl->line[i] = (struct kron_line){.cpu = KRON_LINE_UNUSED};
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		struct kron_line *line = &ctl->line[(unsigned)cpu % KRON_SOURCES];

		if (!CPU_ISSET(cpu, &set))
			continue;
		if (line->cpu != KRON_LINE_UNUSED)
			return refuse_cpus(&set, cpu, line->cpu, err);
		line->cpu = (uint32_t)cpu;
		*one = cpu;
	}
	return CPU_COUNT(&set);
}

/* ---- the board ---- */

/* bus_open() takes what has a slash for a path. */
static int open_path(struct hardware_board *d, const char *path, struct err *err)
{
	char *with_slash = xasprintf("%s%s", strchr(path, '/') ? "" : "./", path);
	int code = bus_open(&d->bus, with_slash, err);

	xfree(with_slash);
	return code;
}

static bool answers(const struct hardware_board *d)
{
	uint32_t config = bus_read32((struct bus *)&d->bus, KRON_BOARD_CONFIG);

	return (config & ~KRON_CONFIG_WRITABLE) == KRON_CONFIG_VERSION;
}

int hardware_board_open(struct hardware_board *d, const char *path, struct segment *seg,
			const struct board_setup *s, struct err *err)
{
	struct board_setup setup = *s;
	int one = 0, cpus;
	int code;

	memset(d, 0, sizeof(*d));
	cpus = give_lines(seg->ctl, &one, err);
	if (cpus < 0)
		return cpus;
	code = open_path(d, path, err);
	if (code)
		return code;
	d->open = true;
	/* A single CPU needs no wire: the Configuration Register can name its line. */
	setup.lines = cpus == 1 ? (uint8_t)(1u << one % (int)KRON_SOURCES) : 0;
	setup.mode32 = true;
	/* Nobody takes its samples away: keep the first ones, or the last. */
	if (s->when_full != KRON_WHEN_FULL_WRAP)
		setup.config = KRON_CONFIG_WRAPB;
	board_setup_make(&d->bus, &setup);
	d->answers = answers(d);
	return 0;
}

void hardware_board_end(struct hardware_board *d, struct hardware_end *out)
{
	uint32_t words;

	memset(out, 0, sizeof(*out));
	board_setup_sampling(&d->bus, false);
	if (!d->answers)
		return;
	words = bus_memory_pointer(&d->bus);
	/* In a simple buffer the pointer stays at the end. */
	if (words >> KRON_MAP_WRAPS_SHIFT || words == KRON_MAP_WORD)
		words = KRON_BOARD_MEMORY_WORDS;
	out->samples = 4ull * words / KRON_SAMPLE_SIZE;
	out->overruns = bus_read32(&d->bus, KRON_CHIP_BYTE(KRON_WORD_OVERRUN));
	out->waited = bus_read32(&d->bus, KRON_CHIP_BYTE(KRON_WORD_WAIT));
}

void hardware_board_close(struct hardware_board *d)
{
	if (d->open)
		bus_close(&d->bus);
	d->open = false;
}
