/* SPDX-License-Identifier: MIT */
/*
 * export_sqlite_messages.h - messages of MPI and TCP in a trace database.
 *
 *   thread ◄── message (from one to another)
 *          ◄── message_wait (that one stood still because another was late)
 */
#ifndef TRACE_EXPORT_SQLITE_MESSAGES_H
#define TRACE_EXPORT_SQLITE_MESSAGES_H

#include <sqlite3.h>

#include "trace/reader.h"

/* SQL that makes the tables, and when they are filled indexes and views. */
extern const char export_sqlite_messages_tables[], export_sqlite_messages_views[];

/* Threads have the numbers of their lanes. SQLITE_OK, or SQLite's error. */
int export_sqlite_messages(sqlite3 *db, int64_t trace_id, const struct trace *t);

#endif
