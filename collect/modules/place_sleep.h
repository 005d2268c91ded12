/* SPDX-License-Identifier: MIT */
/* place_sleep.h - which places of -p and -P sleep.  What several specs have at one place sleeps when all of them do. */
#ifndef COLLECT_PLACE_SLEEP_H
#define COLLECT_PLACE_SLEEP_H

#include "collect/modules/modules.h"

/* Can the spec's places in the module sleep?  Not those that are counted together with others.  The module is locked. */
bool place_sleep_can(struct module *m, uint32_t spec);

#endif
