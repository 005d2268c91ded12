/* SPDX-License-Identifier: MIT */
/*
 * demangle.h - readable names of C++ and Rust symbols.
 */
#ifndef INJECT_DEMANGLE_H
#define INJECT_DEMANGLE_H

/*
 * The demangled name, or NULL when raw is not a mangled name (use raw then).  Safe for hostile
 * names: length, depth and output are limited.  The caller frees it with xfree().
 */
char *symbol_demangle(const char *raw);
/* The same with the arguments of a C++ function. */
char *symbol_demangle_whole(const char *raw);

#endif
