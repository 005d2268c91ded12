/* SPDX-License-Identifier: MIT */
/*
 * regex.h - regular expressions of users, which may be anything: PCRE2's, with limits on what
 * they may cost.  regcomp() and regexec() have none: a dozen `+` in a row take a gigabyte.
 *
 * Bytes, not characters: names of functions need not be UTF-8.
 */
#ifndef BASE_REGEX_H
#define BASE_REGEX_H

#include <stdbool.h>

#include "base/err.h"

struct regex;

/* 0, or -errno and in err what is wrong with it. */
int regex_make(struct regex **out, const char *pattern, struct err *err);
/* Another owner, by the same thread: it is gone when each has freed it. */
struct regex *regex_share(struct regex *r);
void regex_free(struct regex *r);
/* Does it match somewhere in text?  By any thread. */
bool regex_matches(struct regex *r, const char *text);
/* It took too many steps, or too much memory, for a text.  That one did not match, and no other
 * has since. */
bool regex_gave_up(const struct regex *r);

#endif
