/* SPDX-License-Identifier: MIT */
/* browser_page.h - the page that shows intervals as they come; scripts/embed-view makes its bytes of cmd/monitor/page. */
#ifndef CMD_MONITOR_BROWSER_PAGE_H
#define CMD_MONITOR_BROWSER_PAGE_H

#include <stddef.h>

extern const unsigned char browser_page[];
extern const size_t browser_page_size;
/* What a browser may do for it (Content-Security-Policy): this very script and style, events from here. */
extern const char browser_page_policy[];

#endif
