/* SPDX-License-Identifier: MIT */
/* near.h - which of the known words somebody meant who mistyped one. */
#ifndef BASE_NEAR_H
#define BASE_NEAR_H

#define NEAR_WORDS 3u

/* The nearest words, best first; {.n = 0} to begin with. */
struct near {
	const char *v[NEAR_WORDS];
	unsigned far[NEAR_WORDS], n;
};

/*
 * Keep word if it is near enough to wanted: one edit for a word of up to three letters, two up to
 * six, else three.  It has to live as long as the struct.
 */
void near_consider(struct near *near, const char *wanted, const char *word);

#endif
