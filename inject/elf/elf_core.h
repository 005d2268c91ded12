/* SPDX-License-Identifier: MIT */
/*
 * elf_core.h - a core file: which files the process had mapped, and the bytes of them that are in it.
 *
 * The kernel writes them, gcore and others too.  Nothing of it is taken to memory but what is asked for: a core
 * may be as large as the machine's memory.
 */
#ifndef INJECT_ELF_CORE_H
#define INJECT_ELF_CORE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/vec.h"

/* Bytes of a mapped file. */
struct elf_core_part {
	uint64_t off;     /* in the mapped file */
	uint64_t in_core; /* and in the core */
	uint64_t size;
	bool is_cut; /* there was more, which the core's file ends before */
};

struct elf_core_map {
	uint64_t start, end; /* addresses */
	uint64_t off;        /* of start, in the file */
	char *path;          /* as in /proc/PID/maps */
};

struct elf_core_load {
	uint64_t vaddr, in_core, size;
	bool is_cut;
};

struct elf_core {
	int fd;
	pid_t pid; /* in the process's own pid namespace; 0: it does not say */
	VEC(struct elf_core_map) maps;
	VEC(struct elf_core_load) loads;
};

/* -ENOEXEC: no core, or one of another machine.  Then nothing is open. */
int elf_core_open(struct elf_core *c, const char *path, struct err *err);
void elf_core_close(struct elf_core *c);

/* The parts of this file that were mapped and are there: appended to `parts`.  False: it was not mapped. */
struct elf_core_parts {
	VEC(struct elf_core_part) v;
};
bool elf_core_find(const struct elf_core *c, const char *path, struct elf_core_parts *parts);

#endif
