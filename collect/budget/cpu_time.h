/* SPDX-License-Identifier: MIT */
/* cpu_time.h - the processor time that processes of a recording have taken, looked at again and again. */
#ifndef COLLECT_CPU_TIME_H
#define COLLECT_CPU_TIME_H

#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "collect/tasks.h"

struct cpu_time {
	struct tasks *tasks;
	VEC(struct cpu_time_of {
		pid_t pid;
		uint64_t ns;
	})
	known;
	bool has_begun;
};

/* User and system time in ns since the last look, of those that live now; 0 at the first look. */
uint64_t cpu_time_look(struct cpu_time *c);
void cpu_time_free(struct cpu_time *c);

#endif
