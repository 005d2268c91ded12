/* SPDX-License-Identifier: MIT */
/* duration.h - a length of time as people write it: 500ns, 20us, 1.5 ms, 2s, 5m, 1h. */
#ifndef BASE_DURATION_H
#define BASE_DURATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* At the beginning of s, in nanoseconds: its length there, 0 if there is none.  *has_unit false: a
 * number alone, of seconds. */
size_t duration_take(const char *s, uint64_t *ns, bool *has_unit);

/* The whole of text. */
bool duration_parse(const char *text, uint64_t *ns);

#endif
