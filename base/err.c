/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "base/err.h"

#include <stdio.h>
#include <string.h>

int err_set(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (err) {
		va_start(ap, fmt);
		vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
		va_end(ap);
	}
	return -code;
}

int err_prefix(struct err *err, int code, const char *fmt, ...)
{
	char old[sizeof(err->msg)];
	size_t n, room;
	va_list ap;

	if (!err)
		return code;
	memcpy(old, err->msg, sizeof(old));
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg) - 3, fmt, ap);
	va_end(ap);
	n = strlen(err->msg);
	memcpy(err->msg + n, ": ", 2);
	n += 2;
	/* what does not fit is cut off: the prefix says where, the rest says what */
	room = sizeof(err->msg) - 1 - n;
	memcpy(err->msg + n, old, strnlen(old, room));
	err->msg[n + strnlen(old, room)] = 0;
	return code;
}
