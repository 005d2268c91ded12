/* SPDX-License-Identifier: MIT */
/*
 * parse.h - the parts of the parser.  Private to probes/.
 *
 *   parse.c        a line: declaration, include, or a probe with its group and event
 *   parse_place.c  where: [OBJ:]FUNC... and its other spellings
 *   parse_what.c   kind and payload
 *   parse_if.c     conditions
 *   parse_memory.c values that are in memory
 *   parse_variable.c values that have a name in the source
 *   check.c        what is well-formed and still makes no sense
 */
#ifndef PROBES_PARSE_H
#define PROBES_PARSE_H

#include "probes/lex.h"

/* Where the parts stood, for the checker's carets. */
struct spec_marks {
	const char *start, *place, *kind, *payload, *condition, *event;
};

int parse_place(struct lex *lx, struct probe_spec *s);
int parse_what(struct lex *lx, struct probe_spec *s, struct spec_marks *marks);
/* EXPR:TYPE: the type, which is taken off and noted; empty: there is none. */
int parse_type(const struct lex *lx, struct probe_spec *s, struct span *sp, struct span *type);
/* u32, x64, double, string: the type of the payload.  False: there is no such. */
bool parse_type_name(struct probe_spec *s, struct span type);
/* Is it a value in memory?  Then that is parsed: *(u32*)($rdi+8), +8($arg1); *type becomes that of the cast. */
bool parse_is_memory(struct span sp);
/* socket($arg1), endpoints($retval): likewise by parse_memory(). */
bool parse_is_question(struct span sp);
int parse_memory(const struct lex *lx, struct probe_spec *s, struct span sp, struct span *type);
/* Is it a name of the source, or a member of what an argument points to?  Then that is parsed. */
bool parse_is_variable(struct span sp);
int parse_variable(const struct lex *lx, struct probe_spec *s, struct span sp);
/* $arg1, %rdi, 42 ... */
int parse_value(const struct lex *lx, struct probe_spec *s, struct span sp);
/* What follows `if`. */
int parse_if(struct lex *lx, struct probe_spec *s);
/* Also compiles regular expressions. */
int check_spec(const struct lex *lx, struct probe_spec *s, const struct spec_marks *marks);
/* Parses one line, which holds neither NUL nor newline and may be empty. */
int parse_line(struct probe_set *set, struct lex *lx);
void probe_spec_free(struct probe_spec *s);

#endif
