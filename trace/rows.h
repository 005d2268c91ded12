/* SPDX-License-Identifier: MIT */
/*
 * rows.h - what a line of each table of trace/format.h says, and in which order: once, for the
 * writer and the reader.
 *
 *   struct trace_..._line ◄──── row_...(): its fields, in the line's order ────► bytes of the line
 *
 * The writer gives a struct and gets the line; the reader gives the line and gets the struct, its
 * strings in the line's own memory.  What the rows of a table have to do with each other, and with
 * those of other tables, is tables.c's.
 */
#ifndef TRACE_ROWS_H
#define TRACE_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/table_lines.h"

/* Strings that are written may be NULL: empty. */
struct trace_module_line {
	uint32_t id, event_base, nfunctions;
	uint64_t patched_entries, patched_exits, refused_entries, refused_exits;
	const char *build_id, *path;
};
struct trace_function_line {
	uint32_t n, module_id;
	uint64_t vaddr, size;
	const char *name;
	uint8_t level;
	uint16_t ways;       /* enum trace_way (trace/reader.h), or-ed */
	const char *aliases; /* a newline between two; left out when there are none */
};
struct trace_jump_line {
	uint32_t j, function;
	uint8_t to;      /* enum trace_jump_to (trace/jumps.h) */
	uint32_t target; /* a function's number: JUMP_TO_FUNCTION and JUMP_TO_INSIDE */
	const char *
		name; /* JUMP_TO_NAME; or of a target that is not in the table of functions, if known */
};
struct trace_event_line {
	uint32_t n, module_id;
	uint8_t level;
	bool resource;
	const char *payload; /* what the value is called; empty: there is none */
	uint64_t vaddr;
	const char *name;
	const char
		*refused; /* "1/3 no-room": places of so many that got no probe, and why; or NULL */
};
enum trace_refused { TRACE_REFUSED_ENTRY, TRACE_REFUSED_EXIT, TRACE_REFUSED_PLACE };
struct trace_refusal_line {
	uint32_t module_id;
	uint8_t what; /* enum trace_refused */
	const char *key;
	uint64_t count;
	const char *text; /* left out when it is empty, as older traces do */
};
struct trace_import_line {
	uint32_t module_id;
	uint64_t vaddr;
	const char *name, *why, *caller;
};
struct trace_change_line {
	uint64_t tsc, places;
	bool comes; /* else it goes */
	const char *name, *spec;
};
/* Functions have gone to sleep, or woken: by kron ctl probe rm -F, by --budget, or groups as their gates closed. */
enum trace_sleep_by { TRACE_SLEEP_ASKED, TRACE_SLEEP_BUDGET, TRACE_SLEEP_GROUPS };
struct trace_sleep_line {
	uint64_t since, until;
	bool wakes;
	uint8_t by;          /* enum trace_sleep_by */
	const char *numbers; /* "3 7-9": of functions, or groups; ascending */
};
struct trace_proc_line {
	uint32_t uid, parent_uid;
	int32_t pid;
	bool by_fork;
	uint64_t start_tsc;
	const char *note, *exe, *cmdline;
};
struct trace_proc_end_line {
	uint32_t uid;
	uint64_t end_tsc, lost, cut_off;
};
struct trace_thread_line {
	uint32_t uid, tid;
	const char *name;
	uint64_t end_tsc; /* 0: it is not known, and left out */
};
struct trace_untraced_line {
	int32_t pid;
	const char *reason;
};

struct trace_column_line {
	uint8_t kind, type; /* enum reading_kind, enum value_type (trace/monitor/reading.h) */
	const char *name;
};
struct trace_interval_line {
	uint64_t from_ns, to_ns, stood_ns, skew_ns;
	uint32_t threads;
	bool was_frozen;
	const char *values; /* trace/monitor/monitored.h */
};
struct trace_monitored_line {
	uint64_t real_ns, virtual_ns, stood_ns, probes_ns, all_stood_ns, stops, failed_stops;
};

struct row;
/* Passes the fields of a line through; false: what is read makes no sense. */
typedef bool row_layout(struct row *r, void *line);
row_layout row_module, row_function, row_jump, row_event, row_refusal, row_import, row_change,
	row_sleep;
/* Of the table `tasks`: the first field says which. */
row_layout row_proc, row_proc_end, row_thread, row_untraced;
/* Likewise of the table `monitor`. */
row_layout row_column, row_interval, row_monitored;

/* Appends the line and its newline. */
void row_write(table_text *out, row_layout *layout, const void *line, size_t size);
/* From the fields that the table has come to. */
bool row_read(const struct table_lines *from, row_layout *layout, void *line, size_t size);
/* The next line of the table that makes sense; *damaged counts those that do not. */
bool row_next(struct table_lines *from, row_layout *layout, void *line, size_t size,
	      uint64_t *damaged);

#endif
