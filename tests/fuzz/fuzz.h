/* SPDX-License-Identifier: MIT */
/*
 * fuzz.h - dice that a seed repeats, and the options of the fuzzers: -t SECONDS, -s SEED, -o FILE
 * (what the last round tried) and -r INPUT (that one again).  $KRON_FUZZ_SECONDS is the default
 * of -t, else ten.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

static uint64_t random_state = 1; /* never 0 */

static inline uint64_t rnd64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static inline uint64_t rnd(uint64_t below)
{
	return below ? (rnd64() >> 11) % below : 0;
}

struct fuzz_options {
	double seconds;
	uint64_t seed; /* as the caller has set it, without -s */
	const char *out, *again;
};

/* false: no such option.  What is not an option begins at argv[optind]. */
static inline bool fuzz_options(struct fuzz_options *o, int argc, char **argv)
{
	const char *seconds = getenv("KRON_FUZZ_SECONDS");
	int c;

	o->seconds = seconds ? atof(seconds) : 10;
	while ((c = getopt(argc, argv, "t:s:o:r:")) != -1) {
		if (c == 't')
			o->seconds = atof(optarg);
		else if (c == 's')
			o->seed = strtoull(optarg, NULL, 0);
		else if (c == 'o')
			o->out = optarg;
		else if (c == 'r')
			o->again = optarg;
		else
			return false;
	}
	random_state = o->seed ? o->seed : 1;
	return true;
}

#endif
