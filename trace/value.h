/* SPDX-License-Identifier: MIT */
/*
 * value.h - what the payload of a user's event is called and how it is meant: the field `payload` of
 * the trace's table `events`, NAME or NAME:TYPE, with TYPE u, s or x and 8, 16, 32 or 64, or float, double,
 * string; with [N] after it an array, of 64 bytes at most.
 *
 * Without a type it is 32 bits, in hexadecimal.  A value of 64 bits whose sample has 32, because it was
 * taken on a board or with --constant-time, is shown as the low half that it is.
 */
#ifndef TRACE_VALUE_H
#define TRACE_VALUE_H

#include "base/json.h"
#include "trace/reader.h"

#define VALUE_TEXT (6 * KRON_TEXT_MAX + 8)

/* Takes a type off the end of NAME:TYPE, in place. */
struct trace_value_type value_type_take(char *name);
/* "s64"; "" without a type. */
const char *value_type_text(const struct trace_value_type *type, char buf[16]);

/* A payload as its probe says that it is meant. */
struct value {
	struct trace_value_type type; /* form VALUE_HALF: only the low half of it is there */
	uint64_t
		number; /* extended by its sign to 64 bits where it has one; of a double its bits */
	const struct trace_memory
		*memory; /* not NULL: a text, an array, or unreadable; as the event has it */
};
#define VALUE_HALF 'h'
#define VALUE_STRING 't'

/* Such a value is a text, or is written as one: an array. */
static inline bool value_type_is_text(const struct trace_value_type *type)
{
	return type->form == VALUE_STRING || type->count;
}
static inline bool value_is_number(struct value v)
{
	return !v.memory;
}
bool value_is_floating(struct value v);
/* It is as its type says: not a low half, not unreadable.  A text may be cut. */
bool value_is_whole(struct value v);
/* It has a name, and is what its probe promises, or the low half of that: exports give it a field of its type. */
bool value_has_field(const struct trace_user_event *u, struct value v);
enum value_state { STATE_WHOLE, STATE_CUT, STATE_HALF, STATE_UNREADABLE, VALUE_STATES };
enum value_state value_state(struct value v);
extern const char *const value_states[VALUE_STATES]; /* what exports call them */
/* A text as it is, an array as value_text() writes it.  NULL: it is none, or cannot be read. */
const char *value_string(struct value v, char buf[VALUE_TEXT]);

struct value value_of(const struct trace_user_event *u, const struct trace_event *e);
/* "-5", "0x7ffd12345678", "0x12345678 (low half)", "\"text\"", "\"long\"...", "{1,2,3}", "unreadable". */
const char *value_text(struct value v, char buf[VALUE_TEXT]);
/* A number, with sign or point where it has them, or an array of them; what JSON has no number for is a string, and what could
 * not be read is null. */
void value_json(struct json *j, struct value v);
/* Both of one type, and numbers. */
bool value_is_less(struct value a, struct value b);
double value_double(struct value v);
/* All bits of the payload that the sample has. */
static inline uint64_t value_bits(const struct trace_event *e)
{
	return (uint64_t)e->high << 32 | e->s.payload;
}

#endif
