/* SPDX-License-Identifier: MIT */
/* boot.h - which start of the kernel this is. */
#ifndef BASE_BOOT_H
#define BASE_BOOT_H

#define BOOT_ID_LEN 36

/* The kernel's boot id, BOOT_ID_LEN characters, read once; "" where there is none. */
const char *boot_id(void);

#endif
