/* SPDX-License-Identifier: MIT */
/* symbols.h - which variables of a program or library lie in a stretch of its memory: kron pages. */
#ifndef CMD_PAGES_SYMBOLS_H
#define CMD_PAGES_SYMBOLS_H

#include "trace/report/report_pages.h"

struct pages_symbols;

struct pages_symbols *pages_symbols_new(void);
/* As struct report_symbols has it; ctx is what pages_symbols_new() gave. */
size_t pages_symbols_find(void *ctx, const char *module, uint64_t from, uint64_t to,
			  const char *names[], size_t max);
void pages_symbols_free(struct pages_symbols *s);

#endif
