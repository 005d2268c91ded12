/* SPDX-License-Identifier: MIT */
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
	char text[sizeof(err->msg)];
	size_t n;
	va_list ap;

	if (!err)
		return code;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	n = strlen(text);
	snprintf(text + n, sizeof(text) - n, ": %s", err->msg);
	memcpy(err->msg, text, sizeof(text));
	return code;
}
