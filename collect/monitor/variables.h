/* SPDX-License-Identifier: MIT */
/*
 * variables.h - global variables of a process by their names, read from outside (process_vm_readv(2)).
 *
 *   NAME[:TYPE]    u8 u16 u32 u64, s…, x…, float, double; without one u and the symbol's size, of a member
 *                  (members.h) its own type
 *
 * Looked for among the global variables of the program, its statics, then those of its libraries, likewise, when the
 * process has mapped them; once more after it has executed another program, or unloaded the library.  Of C++ by the
 * name that the source has: space::name.
 */
#ifndef COLLECT_MONITOR_VARIABLES_H
#define COLLECT_MONITOR_VARIABLES_H

#include <sys/types.h>

#include "base/err.h"
#include "collect/monitor/members.h"
#include "trace/monitor/reading.h"

struct watched_variable {
	char *name;
	char *symbol; /* the name up to the way to a member; NULL: there is none */
	struct member member;
	char *why; /* a member is not known; NULL: nobody has looked, or it is */
	enum value_type type;
	unsigned size;  /* bytes; 0: the symbol's */
	unsigned bytes; /* of what was found */
	uint64_t addr;  /* 0: not found in what is mapped */
	struct {        /* the library that has it; ino 0: it is the program's own, and stays */
		uint64_t start, end, dev, ino;
	} home;
	bool is_value;   /* it is to be read, and not only where it is to be known */
	bool was_sought; /* in a file of the process, that is */
	bool was_found;
	bool was_alive;     /* the process, when it had been found and was read */
	bool is_unfit;      /* what has the name is not what is asked for */
	int turn;           /* in which it was found: enum turn */
	bool is_ambiguous;  /* statics of this name are several */
	unsigned too_short; /* bytes of one that the type is longer than; 0: there was none */
};
struct variables {
	VEC(struct watched_variable) v;
	uint64_t image; /* of the process when they were looked for */
	size_t mapped;  /* mappings there were then */
};

/* Where the type of NAME:TYPE begins; NULL: the colons are those of a C++ name.  */
const char *variable_colon(const char *text);
/* Why there is no value of it, as far as anybody has looked; text: room for the words.  NULL: there is one. */
const char *monitor_variable_trouble(const struct watched_variable *k, char *text, size_t size);
/* members: one of a variable's will do.  -EINVAL with a sentence. */
int monitor_variables_add(struct variables *v, const char *text, bool members, struct err *err);
/* The same of the variable as such, of whatever size. */
const char *monitor_variable_missing(const struct watched_variable *k, char *text, size_t size);
/* As what members without a type are shown, before there is a process: as this file has them. */
void monitor_variables_guess(struct variables *v, const char *path);
/* Where they are now: addr and bytes. */
void monitor_variables_find(struct variables *v, pid_t pid);
/* Another one when it has executed a program; 0: it is not known. */
uint64_t process_image(pid_t pid);
/* out: as many as there are variables. */
void monitor_variables_read(struct variables *v, pid_t pid, struct reading *out);
void monitor_variables_free(struct variables *v);

#endif
