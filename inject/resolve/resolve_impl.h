/* SPDX-License-Identifier: MIT */
/*
 * resolve_impl.h - shared by the files that implement resolve.h; private to them.
 *
 *   resolve.c                 one probe after the other, and which file finds its places
 *   resolve_names.c           which functions a name means
 *   resolve_places.c          places in a function: exits, blocks, calls, loads ...
 *   resolve_callsites.c       where a function is called
 *   resolve_callsite_links.c  the same for another file's, where this one is alone
 *   resolve_lines.c           lines of a source
 *   resolve_usdt.c            notes of owner stapsdt
 *   resolve_variables.c       values that have a name in the source
 *   resolve_types.c           ... as what they are taken along
 *   resolve_match.c           does a symbol have this name?
 *   resolve_sink.c            where they put what they found: events, actions, notes
 */
#ifndef INJECT_RESOLVE_IMPL_H
#define INJECT_RESOLVE_IMPL_H

#include "inject/elf/eh_frame.h"
#include "inject/elf/variables.h"
#include "inject/elf/callsite_links.h"
#include "inject/resolve/resolve.h"

/* A name that a symbol table gives to the start of a function. */
struct alias {
	const char *raw;
	char *readable; /* NULL: as raw */
	uint32_t function;
	bool is_ifunc;
};

struct resolver {
	const struct probe_set *set;
	const struct code_map *map;
	const struct elf_image *img;
	const struct functions *fns;
	const char *path; /* of the module */
	const struct module_name *name;
	struct resolution *out;
	VEC(struct alias) aliases;
	uint32_t *next_part;                /* functions_link_parts() */
	struct callsite_links *slots;       /* NULL: nobody asked yet */
	const struct callsite_links *links; /* of a file that is alone; NULL: there are others */
	struct lines *lines;
	bool has_lines, asked_lines;
	struct err no_lines; /* why not */
	/* the probe at work */
	const struct probe_spec *spec;
	uint32_t number, action, event;
	size_t before;     /* places when it began, call sites too */
	size_t no_operand; /* places without what $addr needs */
	size_t tails;      /* tail jumps without a return value */
	size_t ambiguous;  /* jumps that may be ways out, or switches */
	bool told;         /* a note says why nothing was found */
	/* of a probe whose value has a name */
	char *payload;           /* NAME:TYPE at the place at work */
	char *unknown;           /* why there was none at the first place where there is none */
	size_t nunknown;         /* places where there is none */
	struct eh_frame *frames; /* NULL: nobody asked yet */
};

void resolver_note(struct resolver *r, bool nothing, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* A place of the probe at work, with its action and event.  The suffix names it: "%return". */
void resolver_add(struct resolver *r, uint64_t vaddr, enum place_where where, const char *suffix);
/* The function's callers get the probe at work, not the function itself. */
void resolver_add_callsite(struct resolver *r, uint64_t vaddr, enum place_where where,
			   bool is_ifunc);
/* The same for the probe of a function of another file, at a place that calls it.  False: one of an
 * alternative's stands there. */
bool resolver_add_call(struct resolver *r, uint64_t vaddr, enum place_where where,
		       const char *function);
/* May the probe at work want the function's result from its callers? */
bool resolver_may_call(const struct resolver *r);
/* Places and call sites found so far, of all probes. */
size_t resolver_count(const struct resolver *r);
/* The value that has a name, at this place: its action becomes that of the probe at work.  False: there is none
 * there. */
bool variable_settle(struct resolver *r, uint64_t vaddr, enum place_where where);
/* That there is none at a place is said once, with how many there are. */
void variable_refuse(struct resolver *r, const char *why);
void variable_note(struct resolver *r);
void variables_free(struct resolver *r);
/* Takes v along as `s` says, whose type, steps and conditions are set; *type: "s32", and so on.  False: why. */
bool variable_take(struct variable *v, struct probe_spec *s, char type[16], struct err *why);
/* In which register the argument of this number is: 1 to 6. */
uint8_t resolver_argument(uint64_t number);
/* The next places have this payload. */
void resolver_payload(struct resolver *r, enum payload_kind payload, uint8_t reg, uint64_t value);
/* "main", or "bash+0x1234"; allocated. */
char *resolver_function_name(const struct resolver *r, uint32_t function);

/* ---- names ---- */
void names_build(struct resolver *r);
void names_free(struct resolver *r);
/* Does a symbol have this name, in one of the forms of its readable one?  (NULL: it has none.) */
bool names_match(const struct spec_name *n, const char *raw, const char *readable);
/* The same for a symbol that nobody has demangled yet. */
bool names_match_symbol(const struct spec_name *n, const char *name);
/* Calls fn for each function, no part, that the probe's FUNC[@SRC] means; false: there is none,
 * and a note says so. */
bool names_for_each(struct resolver *r, void (*fn)(struct resolver *r, uint32_t function));

/* ---- places ---- */
void places_in_function(struct resolver *r, uint32_t function);
void places_at_offset(struct resolver *r, uint32_t function);
void places_at_address(struct resolver *r);

void callsite_find_callers(struct resolver *r);
/* Where the file calls what the probe at work names, and has not itself.  False: nowhere. */
bool callsite_take(struct resolver *r);
/* The IFUNC whose resolver is there. */
bool callsite_take_ifunc(struct resolver *r, uint64_t resolver, const char *name);
void lines_in_function(struct resolver *r, uint32_t function);
void lines_in_source(struct resolver *r);
/* The module's line tables; NULL, and r->no_lines says why. */
struct lines *resolver_lines(struct resolver *r);
void markers_find(struct resolver *r);

#endif
