/* SPDX-License-Identifier: MIT */
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

char *str_thousands(char *out, size_t size, uint64_t v)
{
	char digits[24], text[32];
	int n = snprintf(digits, sizeof(digits), "%" PRIu64, v);
	char *p = text;

	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			*p++ = ',';
		*p++ = digits[i];
	}
	*p = 0;
	snprintf(out, size, "%s", text);
	return out;
}

static char *put_duration(char *out, size_t size, uint64_t ns, int unit_width)
{
	/* each unit in the next smaller one; fractions are cut off, not rounded, so that
	 * 999.9995 us never shows as 1000.000 us */
	static const struct {
		uint64_t ns;
		const char *name;
	} units[] = {
		{3600000000000, "h"}, {60000000000, "m"}, {1000000000, "s"},
		{1000000, "ms"},      {1000, "us"},
	};
	uint64_t whole, rest;

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (ns < units[i].ns)
			continue;
		whole = ns / units[i].ns;
		rest = (uint64_t)((unsigned __int128)(ns % units[i].ns) * 1000 / units[i].ns);
		snprintf(out, size, "%" PRIu64 ".%03" PRIu64 " %*s", whole, rest, unit_width,
			 units[i].name);
		return out;
	}
	/* below a microsecond uftrace still says us: columns of small times line up */
	snprintf(out, size, "0.%03" PRIu64 " us", ns);
	return out;
}

char *str_duration(char *out, size_t size, uint64_t ns)
{
	return put_duration(out, size, ns, 0);
}

char *str_duration_column(char *out, size_t size, uint64_t ns)
{
	return put_duration(out, size, ns, 2);
}

char *str_bytes(char *out, size_t size, uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double v = (double)bytes;
	size_t i = 0;

	if (bytes < 1024) {
		snprintf(out, size, "%" PRIu64 " B", bytes);
		return out;
	}
	for (v /= 1024; v >= 1024 && i < 5; i++)
		v /= 1024;
	snprintf(out, size, "%.1f %s", v, units[i]);
	return out;
}

static void put(char *out, size_t size, size_t *n, const char *text)
{
	while (*text && *n + 1 < size)
		out[(*n)++] = *text++;
}

char *str_shell(char *out, size_t size, const char *s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-+./:,@%^=";
	size_t n = 0;

	if (!size)
		return out;
	if (*s && !s[strspn(s, plain)]) {
		snprintf(out, size, "%s", s);
		return out;
	}
	put(out, size, &n, "'");
	for (; *s; s++) {
		char one[2] = {*s, 0};

		put(out, size, &n, *s == '\'' ? "'\\''" : one);
	}
	put(out, size, &n, "'");
	out[n] = 0;
	return out;
}

const char *str_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

uint64_t str_hash(uint64_t h, const void *bytes, size_t n)
{
	const uint8_t *byte = bytes;

	for (size_t i = 0; i < n; i++)
		h = (h ^ byte[i]) * UINT64_C(0x100000001b3);
	return h;
}
