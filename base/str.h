/* SPDX-License-Identifier: MIT */
/*
 * str.h - numbers and words as people read them.  Each function writes into the caller's
 * buffer, always ends it with NUL, and returns it.
 */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stddef.h>
#include <stdint.h>

#define STR_NUMBER 32 /* room enough for all but str_shell */

/* 1,234,567 */
char *str_thousands(char *out, size_t size, uint64_t v);
/* Three decimals and a unit: "1.234 us", "12.000 ms", "1.500 s", "2.000 m" */
char *str_duration(char *out, size_t size, uint64_t ns);
/* The same with units of one width, as uftrace prints: "1.500  s" stands well below "1.234 us" */
char *str_duration_column(char *out, size_t size, uint64_t ns);
/* Bytes: "512 B", "4.0 KiB", "2.5 GiB" */
char *str_bytes(char *out, size_t size, uint64_t bytes);
/* A word that a shell reads back as s; s itself if nothing in it needs quotes. */
char *str_shell(char *out, size_t size, const char *s);

/* FNV-1a of n bytes, after those that h is of; of none it is STR_HASH. */
#define STR_HASH UINT64_C(0xcbf29ce484222325)
uint64_t str_hash(uint64_t h, const void *bytes, size_t n);

/* What follows the last slash of the path. */
const char *str_base_name(const char *path);

#endif
