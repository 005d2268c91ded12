/* SPDX-License-Identifier: MIT */
/*
 * export_table.h - a trace as one table: a row for each call when it ends, and for each sample that
 * is not part of a call.  The columns are those of Parquet's files, and of no reader's own.
 *
 *   kind        call, inferred (its end was not seen), running (when the trace ended),
 *               orphan (an exit without its entry), lost, cpu (the thread came to another),
 *               event (of a user's probe; its name is in the column function),
 *               waiting, preempted (from then on the thread was off the CPU)
 *   host node pid process process_id tid thread cpu    where; cpu is that of the entry
 *               node: its number if each has one of its own, else its place in the row, from 1
 *               process_id: no other process has it, while a pid may come again
 *   time_ns     since the start of the trace; of a call, its entry
 *   end_ns      time_ns + duration_ns, or time_ns: for questions about a span of time
 *   duration_ns self_ns depth function module caller recursive spans_loss      calls have them
 *   value       lost: how many samples; cpu: its number; event: its payload (a double: its bits);
 *               waiting, preempted: the CPU that the thread came back to
 *   level       filter level of the function or the event
 *   text        event: a value from memory that is a text; what could not be read has neither value
 *               nor text
 *   payload payload_type    event: what its value is called, and how it is meant: s32, double ...
 *   value_state             event whose value has a name: whole, cut (a text that went on), half (the
 *               board had the low half of 64 bits, see value), unreadable
 *   value_int value_uint value_real    of those that are whole the one of its type: s, u or x or none,
 *               double or float
 *
 * Rows come lane by lane, each when its call ends.
 */
#ifndef TRACE_EXPORT_TABLE_H
#define TRACE_EXPORT_TABLE_H

#include "trace/export/parquet.h"
#include "trace/export/text_pool.h"
#include "trace/reader.h"

/* X(name, type, whether it may be null) */
#define EXPORT_TABLE_COLUMNS(X)     \
	X(kind, TEXT, false)        \
	X(host, TEXT, false)        \
	X(node, INT32, false)       \
	X(pid, INT32, false)        \
	X(process, TEXT, false)     \
	X(process_id, INT32, false) \
	X(tid, INT32, false)        \
	X(thread, TEXT, false)      \
	X(cpu, INT32, false)        \
	X(time_ns, INT64, false)    \
	X(end_ns, INT64, false)     \
	X(duration_ns, INT64, true) \
	X(self_ns, INT64, true)     \
	X(depth, INT32, true)       \
	X(function, TEXT, true)     \
	X(module, TEXT, true)       \
	X(caller, TEXT, true)       \
	X(recursive, BOOL, true)    \
	X(spans_loss, BOOL, true)   \
	X(value, INT64, true)       \
	X(level, INT32, true)       \
	X(text, TEXT, true)         \
	X(payload, TEXT, true)      \
	X(payload_type, TEXT, true) \
	X(value_state, TEXT, true)  \
	X(value_int, INT64, true)   \
	X(value_uint, UINT64, true) \
	X(value_real, DOUBLE, true)

enum {
#define X(name, type, optional) EXPORT_TABLE_##name,
	EXPORT_TABLE_COLUMNS(X)
#undef X
		EXPORT_TABLE_WIDTH,
	EXPORT_TABLE_IS_NUMBER = EXPORT_TABLE_WIDTH, /* a row's last number, no column: see below */
	EXPORT_TABLE_NUMBERS
};
#define EXPORT_TABLE_NULL INT64_MIN
extern const struct parquet_column export_table_columns[EXPORT_TABLE_WIDTH];

/* Texts are numbers in the pool, but for the column `text`: that is null in the row and stands beside
 * it, NULL without one, for there may be a new one in each row.  A value may be any 64 bits, those of EXPORT_TABLE_NULL
 * too (-2^63, 2^63, -0.0): then a bit of row[EXPORT_TABLE_IS_NUMBER] says that the column is not null. */
typedef void (*export_table_fn)(void *ctx, const int64_t *row, const char *text);

static inline bool export_table_is_null(const int64_t *row, unsigned column)
{
	return row[column] == EXPORT_TABLE_NULL && !(row[EXPORT_TABLE_IS_NUMBER] >> column & 1);
}

struct export_table;
struct export_table *export_table_open(const struct trace *t, struct text_pool *pool,
				       export_table_fn fn, void *ctx);
void export_table_lane(struct export_table *w, uint32_t lane);
void export_table_close(struct export_table *w);

/* What the rows of a lane have in the columns node and pid. */
struct export_table_place {
	int32_t node, pid;
};
struct export_table_place export_table_place(const struct trace *t, uint32_t lane);

/* Of a part of the trace, likewise. */
int32_t export_table_node(const struct trace *t, uint32_t part);

/* What a file's metadata tell of a trace. */
void export_table_notes(struct parquet *p, const struct trace *t);

#endif
