/* SPDX-License-Identifier: MIT */
/*
 * demangle.c - C++ (Itanium ABI) and Rust names, by libiberty.
 *
 * libiberty's demanglers are LGPL with permission to link them into anything.  Their callback
 * forms use no heap, and limit length (about 1,000 characters) and depth; but a short name with
 * substitutions of substitutions may still stand for gigabytes, so we leave by longjmp() when
 * more than a sane name has come out.
 *
 * Parameters are not shown: names are for lists and globs.  Who spells them out asks for the
 * whole name.
 */
#include "inject/elf/demangle.h"

#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "base/vec.h"

#define RAW_MAX 8192
#define OUT_MAX 8192

struct output {
	char text[OUT_MAX];
	size_t n;
	jmp_buf too_long;
};

static void take(const char *s, size_t n, void *ctx)
{
	struct output *out = ctx;

	if (n >= sizeof(out->text) - out->n)
		longjmp(out->too_long, 1);
	memcpy(out->text + out->n, s, n);
	out->n += n;
}

static bool is_mangled(const char *raw)
{
	return !strncmp(raw, "_Z", 2) || !strncmp(raw, "_R", 2) || !strncmp(raw, "_GLOBAL_", 8);
}

static bool demangle(const char *raw, int options, struct output *out)
{
	/* Rust's older names are also well-formed C++ names, so Rust comes first. */
	if (setjmp(out->too_long))
		return false;
	out->n = 0;
	if (rust_demangle_callback(raw, DMGL_NO_OPTS, take, out))
		return true;
	out->n = 0;
	return cplus_demangle_v3_callback(raw, options, take, out);
}

static char *readable(const char *raw, int options)
{
	struct output out;

	if (!is_mangled(raw) || strnlen(raw, RAW_MAX) == RAW_MAX)
		return NULL;
	if (!demangle(raw, options, &out) || !out.n)
		return NULL;
	return xstrndup(out.text, out.n);
}

char *symbol_demangle(const char *raw)
{
	return readable(raw, DMGL_ANSI);
}

char *symbol_demangle_whole(const char *raw)
{
	return readable(raw, DMGL_ANSI | DMGL_PARAMS);
}
