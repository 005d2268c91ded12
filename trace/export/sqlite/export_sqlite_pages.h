/* SPDX-License-Identifier: MIT */
/*
 * export_sqlite_pages.h - page reference counters in a trace database.
 *
 *   process ◄── page (what a thread did to a page, from a node) ──► mapping
 *           ◄── page_function (what a function did to a page, in all threads) ──► function
 *           ◄── page_step (what was touched between two looks) ──► page_look
 *           ◄── page_home, page_move
 *
 * "Page" is what was counted: of 4096 bytes, or a line of 64.
 */
#ifndef TRACE_EXPORT_SQLITE_PAGES_H
#define TRACE_EXPORT_SQLITE_PAGES_H

#include <sqlite3.h>

#include "trace/reader.h"

/* SQL that makes the tables, and when they are filled indexes and views. */
extern const char export_sqlite_pages_tables[], export_sqlite_pages_views[];

/* SQLITE_OK, or SQLite's error. */
int export_sqlite_pages(sqlite3 *db, int64_t trace_id, const struct trace *t);

#endif
