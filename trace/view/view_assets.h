/* SPDX-License-Identifier: MIT */
/* view_assets.h - the page around the data; scripts/embed-view makes the bytes of trace/view. */
#ifndef TRACE_VIEW_ASSETS_H
#define TRACE_VIEW_ASSETS_H

#include <stddef.h>

extern const unsigned char view_page_before[], view_page_after[];
extern const size_t view_page_before_size, view_page_after_size;

#endif
