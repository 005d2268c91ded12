/* SPDX-License-Identifier: MIT */
/*
 * text.h - words from a trace on their way to people.  Names in a trace may hold anything, so
 * control characters (C0, C1, DEL) and bytes that are not UTF-8 are shown as \xNN: they can
 * neither move a cursor nor forge a line.
 */
#ifndef TRACE_TEXT_H
#define TRACE_TEXT_H

#include <stddef.h>
#include <stdio.h>

#include "trace/reader.h"

void text_put(FILE *f, const char *s);
char *text_shown(const char *s); /* the same in memory, for xfree() */
/* Likewise, and a backslash is \\: what was there can be told from it. */
char *text_escaped(const char *s);
/* The last part of a path, as a pointer into it. */
const char *text_base(const char *path);

/* Function number n: its name, or "event 123" when the table does not have it. */
void text_put_function(FILE *f, const struct trace *t, uint32_t n);
/* The same, not escaped; buf is used for the second form. */
const char *text_function(const struct trace *t, uint32_t n, char *buf, size_t size);
const char *text_module(const struct trace *t, uint32_t n); /* path, or "?" */
/* What the event lies in, "a.so" or "a.so and 1 more"; base: without the path's folders.  For xfree(). */
char *text_event_modules(const struct trace *t, const struct trace_user_event *u, bool base);

/* ns as a duration, right-aligned in 10 columns (wider only beyond 999 hours) */
void text_put_duration(FILE *f, uint64_t ns);
/*
 * Likewise; where the bounds make it meaningless the one that says more, "<0.3 us" or ">1.0 ms".  A high end of
 * UINT64_MAX is not known.
 */
void text_put_bounded(FILE *f, uint64_t ns, uint64_t low, uint64_t high);

/* Of a bit each: "0-3, 7". */
#define TEXT_GROUPS 64
const char *text_groups(char *buf, size_t size, uint32_t groups);

#endif
