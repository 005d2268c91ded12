/* SPDX-License-Identifier: MIT */
/* symbols.h - which variables and functions of a program or library lie where in its memory: kron pages. */
#ifndef CMD_PAGES_SYMBOLS_H
#define CMD_PAGES_SYMBOLS_H

#include "trace/report/report_pages.h"

struct pages_symbols;

struct pages_symbols *pages_symbols_new(void);
/* As struct report_symbols has it; ctx is what pages_symbols_new() gave. */
size_t pages_symbols_find(void *ctx, const char *module, uint64_t from, uint64_t to,
			  const char *names[], size_t max);
const char *pages_symbols_function(void *ctx, const char *module, uint64_t at, uint64_t *offset);
void pages_symbols_free(struct pages_symbols *s);

#endif
