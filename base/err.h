/* SPDX-License-Identifier: MIT */
/*
 * err.h - how the tools report errors: a negative errno value up the stack, and one clear
 * sentence in a struct err that the caller owns.  Nothing below cmd/ prints or exits.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stdarg.h>

struct err {
	char msg[640];
};

/* Store the sentence and return -code (code is a positive errno value).  err may be NULL. */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Put "prefix: " in front of what stands there; returns code as it came. */
int err_prefix(struct err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
