/* SPDX-License-Identifier: MIT */
/*
 * export_sqlite_intervals.h - the intervals of `kron monitor` in a trace database.
 *
 *   monitor ◄── monitor_column ◄── monitor_value ──► monitor_interval ──► monitor
 */
#ifndef TRACE_EXPORT_SQLITE_INTERVALS_H
#define TRACE_EXPORT_SQLITE_INTERVALS_H

#include <sqlite3.h>

#include "trace/reader.h"

/* SQL that makes the tables, and when they are filled views. */
extern const char export_sqlite_intervals_tables[], export_sqlite_intervals_views[];

/* SQLITE_OK, or SQLite's error. */
int export_sqlite_intervals(sqlite3 *db, int64_t trace_id, const struct trace *t);

#endif
