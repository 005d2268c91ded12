/* SPDX-License-Identifier: MIT */
/*
 * choices.h - IFUNCs that -F names: who means memcpy means the memcpy that is called in the end, but at
 * its symbol is the code that chooses one when the program starts.
 *
 * Its calls are seen where they are made (callsite_process.h).  Where that cannot be, somebody has to
 * be told.
 */
#ifndef COLLECT_CHOICES_H
#define COLLECT_CHOICES_H

#include "collect/modules/modules.h"

/* By number in its full plan: what is probed of it is who chooses one when the program starts (IFUNC). */
bool module_is_resolver(const struct module *m, uint32_t function);
/* Likewise: it is probed where it is called, and not in its own code. */
bool module_is_imported(const struct module *m, uint32_t function);

/* How to say it: what is done with calls ("counted"), and how another name is asked for: before, name, after. */
struct choice_words {
	const char *done, *before, *after;
};
/*
 * A sentence for each one whose calls nobody sees: the resolver is probed in their place, or no stub or
 * call of any module could be.  Once nothing is planned any more.
 */
void choices_each(struct modules *ms, const struct choice_words *words,
		  void (*fn)(void *ctx, const char *sentence), void *ctx);

#endif
