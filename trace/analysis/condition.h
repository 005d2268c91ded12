/* SPDX-License-Identifier: MIT */
/*
 * condition.h - which samples are meant: the language of --where and of --trigger's steps.
 *
 *   NAME                      a sample of the functions, or of the user's event, of this name: a
 *                             glob, against the name with and without its argument list
 *   entry=NAME exit=NAME      only the one or the other end of functions
 *   event=N                   the number in the sample
 *   data=V data&MASK=V        the payload; also != < <= > >=
 *   cpu=N thread=T process=P  numbers or, for the last two, globs of the name or program
 *   module=GLOB source=V      of functions and events; the source address
 *   A and B, A or B, not A, ( )
 *
 * Names with signs that mean something here stand in double quotes.  Numbers are decimal, or
 * hexadecimal after 0x.
 *
 * The data mask, source and CPU of a condition are those of the trigger cards that traced SCI
 * (shared between a hardware's patterns and a reader's filters): the same words everywhere.
 */
#ifndef TRACE_CONDITION_H
#define TRACE_CONDITION_H

#include "base/vec.h"
#include "trace/names.h"
#include "trace/reader.h"

struct condition;

/*
 * Parses text from *at on, as far as it is a condition: up to the end, or to a word that only a
 * trigger knows (trace/analysis/trigger.h).  label stands in front of messages: "LABEL:COLUMN:
 * sentence", the text, and a caret.
 */
int condition_parse(struct condition **out, const char *label, const char *text, size_t *at,
		    struct err *err);
void condition_free(struct condition *c);
/* Looks names up, and all threads of the trace. */
void condition_bind(struct condition *c, const struct trace *t);
/* The same in parts, for who learns of them one by one; p may be NULL. */
void condition_bind_names(struct condition *c, const struct trace_names *names);
void condition_bind_lanes(struct condition *c, const struct trace *t);
void condition_bind_lane(struct condition *c, uint32_t lane, const struct trace_lane *l,
			 const struct trace_proc *p);
/* What it says of samples with this event number, by what is bound of names: asked once for each
 * number, most samples need not be asked. */
enum condition_answer { CONDITION_FAILS, CONDITION_DEPENDS, CONDITION_HOLDS };
enum condition_answer condition_of_event(const struct condition *c, uint32_t event);
/* Is it a "not" of nothing but names and numbers of events: any other sample will do? */
bool condition_is_anything_else(const struct condition *c);
/* Special records (CPU, LOST) match nothing. */
bool condition_holds(const struct condition *c, const struct trace_event *e);

/*
 * The first name in it that nothing of the trace it is bound to has; NULL: there is none.
 * lanes: those of threads and processes, too.
 */
const char *condition_unknown_name(const struct condition *c, bool lanes);
/* An event some of whose samples cannot be told to be of a module that is asked for, or of another; NULL: there
 * is none. */
const char *condition_unsure_event(const struct condition *c);
/* Does it ask for threads by name? */
bool condition_names_threads(const struct condition *c);

/* For those who parse what stands around conditions. */
int condition_error(struct err *err, const char *label, const char *text, size_t at,
		    const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Skips blanks; is this word next?  Then *at is after it. */
bool condition_word(const char *text, size_t *at, const char *word);
/* A word or a quoted string, for xfree(), and *at after it; NULL: there is none. */
char *condition_name(const char *text, size_t *at, bool *quoted);
bool condition_is_field(const char *word);

#endif
