/* SPDX-License-Identifier: MIT */
/*
 * probe.h - the probe language: what `-p SPEC` and `-P FILE` say, as data.
 *
 *   [[GROUP:]EVENT=][OBJ:]PLACE [KIND] [[NAME=]PAYLOAD[:TYPE]] [if COND]          kron-probes(7) has the rest
 *
 *   text --parse--> struct probe_spec --check--> a set        (inject/resolve/: set + image -> places)
 *
 * Nothing here knows an ELF file: whether there is such a function is found out later.  An error
 * has the form "FILE:LINE:COLUMN: sentence", the line itself, and a caret below its column.
 */
#ifndef PROBES_PROBE_H
#define PROBES_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"
#include "probes/module_name.h"

#define PROBE_LEVELS 16u
#define PROBE_WORDS 128u /* chip words that a store may name */
#define PROBE_PLACES 4u  /* how often what was read is an address again, and the first time */
#define PROBE_ARRAY_BYTES 64u
/* Instead of the last of its places: what stands there is a descriptor, of which the kernel is asked: wire.h. */
#define PROBE_PLACE_SOCKET INT32_MIN
/* How that is written: "socket(", and "endpoints(", whose value is an array. */
const char *probe_question(bool is_array);
#define PROBE_COUNTERS 16u           /* resource counters */
#define PROBE_VIRTUAL_COUNTERS 8192u /* the first 16 of them are those; bus lane (NISTIR 5993) */
/* Twice the number travels in a sample, and the highest ones are the runtime's own. */
#define PROBE_NUMBER_MAX 0x7fffff7eu

/* What of the function, or where else. */
enum spec_place {
	SPEC_ENTRY,   /* FUNC */
	SPEC_RETURN,  /* FUNC%return: in front of each ret and tail jump */
	SPEC_OFFSET,  /* FUNC+OFF */
	SPEC_LINE,    /* FUNC:LINE, counted from the function's own line */
	SPEC_SOURCE,  /* SRC:LINE, inlined copies too */
	SPEC_ADDRESS, /* 0x1234, as in the file */
	SPEC_BLOCKS,  /* FUNC%blocks, and so on: every one in FUNC */
	SPEC_CALLS,
	SPEC_BRANCHES,
	SPEC_LOADS,
	SPEC_STORES,
	SPEC_ACCESSES,
	SPEC_INSNS,
	SPEC_CALLERS, /* FUNC%callers, FUNC%after: the calls of FUNC, in the module that is probed */
	SPEC_USDT     /* sdt_PROVIDER:NAME */
};

enum spec_pages { SPEC_PAGES_LINES = 1, SPEC_PAGES_BY_FUNCTION = 2 };
enum spec_kind { SPEC_TRACE, SPEC_RESOURCE, SPEC_COUNT, SPEC_STORE, SPEC_PAGES };

enum spec_payload {
	SPEC_PAYLOAD_NONE,
	SPEC_PAYLOAD_REGISTER, /* value: 0..15, as the hardware numbers them */
	SPEC_PAYLOAD_ARGUMENT, /* value: 1.. */
	SPEC_PAYLOAD_RETVAL,
	SPEC_PAYLOAD_ADDRESS, /* of the memory operand */
	SPEC_PAYLOAD_STACK,   /* the stack pointer */
	SPEC_PAYLOAD_IMMEDIATE,
	SPEC_PAYLOAD_VARIABLE /* what is named in `variable` */
};

enum spec_compare { SPEC_IF_EQ, SPEC_IF_NE, SPEC_IF_LE, SPEC_IF_GE, SPEC_IF_LT, SPEC_IF_GT };

/* One comparison of `if ... && ...`: a sample is taken when all hold. */
#define PROBE_CONDITIONS 4u
struct spec_condition {
	uint8_t what;    /* SPEC_IF_... */
	uint8_t payload; /* SPEC_IF_VALUE: enum spec_payload, and its value */
	uint8_t compare; /* enum spec_compare */
	uint8_t bits;    /* 8 to 64; of it that much is compared; 0: as many as the value has */
	bool is_signed, has_mask;
	bool is_negative; /* the number; else it may have bit 63 and be as large as that */
	uint64_t value, mask, number;
};
enum { SPEC_IF_VALUE, SPEC_IF_DATA, SPEC_IF_CPU };

/* How a name is meant. */
enum spec_match { MATCH_NAME, MATCH_GLOB, MATCH_REGEX };

struct spec_name {
	char *text;          /* NULL: none given */
	uint8_t match;       /* enum spec_match */
	struct regex *regex; /* of MATCH_REGEX */
};

struct probe_spec {
	char *where;     /* "<-p 1>" or "malloc.probe:12": for messages */
	char *text;      /* the place as the user wrote it */
	char *words;     /* likewise, with all that follows it, but for a comment */
	uint8_t level;   /* of the gate */
	bool gated;      /* a group was given, or the kind always has a gate */
	char *event;     /* NULL: named after each place */
	uint32_t number; /* with has_number: the number that samples carry */
	bool has_number;

	uint8_t place;           /* enum spec_place */
	bool after;              /* after the instruction, not in front of it */
	struct spec_name object; /* the module; none: the main executable */
	struct spec_name function;
	char *source;            /* SRC of SRC:LINE and FUNC@SRC; NULL */
	uint64_t offset;         /* OFF, LINE or the address */
	char *provider, *marker; /* USDT; the marker may be a glob */

	uint8_t kind;  /* enum spec_kind */
	uint16_t word; /* COUNT: the counter; STORE: the chip word; PAGES: enum spec_pages, or-ed */
	uint64_t data; /* STORE */
	uint8_t payload;
	uint64_t value;
	char *payload_name; /* as the user called or wrote it, with :TYPE where there is one; NULL
			     * without a payload */
	bool is_wide;       /* its type has 64 bits */
	uint8_t bits;       /* of the payload; without a type 32 */
	bool is_signed, is_double, is_text; /* is_double: or a float */
	uint8_t count;                      /* not 0: an array of so many, of `bits` each */
	/* Not NULL: the value is a variable, or what it leads to, and the debug information says where:
	 * NAME, @NAME (no local one), NAME@SRC (of this source), with ->MEMBER .MEMBER [INDEX] after it; or
	 * ->MEMBER and so on after an argument or return value.  Without a type it is of its own: is_typed. */
	char *variable;
	bool is_typed;
	/* Not 0: the value is in memory: at payload + places[0] stands it, or another address ... */
	uint8_t nplaces;
	int32_t places[PROBE_PLACES];
	struct spec_condition conditions[PROBE_CONDITIONS];
	uint8_t nconditions;
};

struct probe_level {
	char *name;
	uint8_t level;
};

struct probe_set {
	VEC(struct probe_spec) specs;
	VEC(uint32_t)
	objects; /* the first spec of each object that there is: a pack has few of them */
	VEC(struct probe_level) levels;
	uint8_t default_level; /* of probes that name no group */
	bool no_callsites; /* no probe may stand where its function is called, but in its code */
	unsigned depth;    /* of includes */
};

void probe_set_free(struct probe_set *set);

/* ---- reading; all: 0, or -errno with the message that users see ---- */

/* One `-p SPEC`; number counts from 1 and stands in messages: <-p 1>:1:7; 0: SPEC:1:7. */
int probe_set_add(struct probe_set *set, const char *spec, unsigned number, struct err *err);
/* Text of several lines, as in a file of this name. */
int probe_set_add_text(struct probe_set *set, const char *name, const char *text, size_t n,
		       struct err *err);
/* `-P FILE`: a path, or the name of a pack: "malloc" is malloc.probe where kron's packs are. */
int probe_set_add_file(struct probe_set *set, const char *name, struct err *err);

/* ---- asking ---- */

/* Is this module meant?  A name matches the path, its last part, its soname, or one of these two without
 * ".so...". */
bool probe_spec_wants(const struct probe_spec *s, const struct module_name *m, bool is_exe);
/*
 * Probes of one event are alternatives: whichever is there.  Is this one such, and not the first
 * of them?  Then it is no mistake that it finds nothing.
 */
bool probe_set_is_alternative(const struct probe_set *set, size_t spec);
/* Has the set a probe for this module? */
bool probe_set_wants(const struct probe_set *set, const struct module_name *m, bool is_exe);
/* Does one of its probes name a module, so that it matters what modules are called? */
bool probe_set_names_modules(const struct probe_set *set);
/* Does the name match?  (A bad regex never gets this far.) */
bool spec_name_matches(const struct spec_name *n, const char *name);
/* Its expression was too costly for a name: from there on it matches none (base/regex.h). */
bool probe_spec_gave_up(const struct probe_spec *s);
/* The type of NAME:TYPE; "": it has none, or there is no payload (NULL). */
const char *probe_payload_type(const char *payload_name);
/* A counter that only the lane bus has. */
static inline bool probe_spec_is_virtual(const struct probe_spec *s)
{
	return s->kind == SPEC_COUNT && s->word >= PROBE_COUNTERS;
}
bool probe_set_has_virtual(const struct probe_set *set);
/* 0, or why a board cannot count with what these name.  -EINVAL. */
int probe_set_check_board(const struct probe_set *set, struct err *err);
/* Takes on the type, "s32", "u8[16]".  False: there is no such; *is_long: it has too many bytes. */
bool probe_spec_type(struct probe_spec *s, const char *type, size_t n, bool *is_long);
/* Can the condition be both true and false, and can it be compared?  NULL: yes; else why not. */
const char *spec_condition_doubt(const struct spec_condition *c);
const char *spec_kind_key(enum spec_kind kind);
/* "rdi"; NULL beyond 15. */
const char *spec_register_name(unsigned reg);

#endif
