/* SPDX-License-Identifier: MIT */
/*
 * procfile.h - reads files of /proc that tell a process of itself.  Async-signal-safe.
 */
#ifndef RUNTIME_PROCFILE_H
#define RUNTIME_PROCFILE_H

#include <stdbool.h>
#include <stdint.h>

/* It lies on a stack in a program that we do not know. */
#define RT_PROCFILE_BLOCK 512u

struct rt_procfile {
	int fd;
	uint32_t at, len;
	uint8_t bytes[RT_PROCFILE_BLOCK];
};
bool rt_procfile_open(struct rt_procfile *f, const char *path)
	__attribute__((visibility("hidden")));
/* The next byte; -1 at the end. */
int rt_procfile_byte(struct rt_procfile *f) __attribute__((visibility("hidden")));
void rt_procfile_close(struct rt_procfile *f) __attribute__((visibility("hidden")));

struct rt_mapping {
	uint64_t start, end, off, dev, ino;
	char rights[4]; /* as /proc shows them: "rw-s" */
};
/* The next of /proc/self/maps; false: there is none. */
bool rt_mapping_read(struct rt_procfile *f, struct rt_mapping *m)
	__attribute__((visibility("hidden")));
/* false: nothing is there, or we may not know. */
bool rt_mapping_at(uint64_t addr, struct rt_mapping *out) __attribute__((visibility("hidden")));

#endif
