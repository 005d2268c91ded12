/* SPDX-License-Identifier: MIT */
/* memory.c - see memory.h. */
#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>

uint64_t memory_available(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	uint64_t kib = UINT64_MAX >> 10;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib << 10;
}
