/* SPDX-License-Identifier: MIT */
/* answer_impl.h - shared by the files that implement answer.h; private to them. */
#ifndef COLLECT_ANSWER_IMPL_H
#define COLLECT_ANSWER_IMPL_H

#include "collect/attach/answer.h"
#include "inject/bind/bind.h"
#include "inject/bind/bind_layout.h"
#include "inject/bind/space.h"

struct loaded { /* a module in the process */
	struct module *module;
	uint64_t dev, ino, bias;
	bool full; /* its functions are wanted, else only its hooks */
	bool hooks;
	bool done;      /* a block of it is there */
	bool late;      /* its turn comes when it is planned, and its threads are stopped */
	bool is_caller; /* only the stubs by which it calls others */
	/* Of its text only this is mapped there, once more; 0, 0: it is the module itself. */
	uint64_t copy_lo, copy_hi;
};

/* One answer in the making. */
struct work {
	struct answerer *a;
	const struct question *q;
	struct answer *out;
	struct process_maps maps;
	char *exe;
	VEC(struct loaded) loaded;
	VEC(struct loaded) texts;                  /* every module, for answer_callsites() */
	VEC(const struct process_mapping *) fresh; /* texts that the process has anew */
	VEC(struct block_record) stubs;            /* blocks of stubs that are there */
	VEC(struct space_mapping) space;
	VEC(struct kron_command) commands;
	VEC(struct bound) bound; /* by group */
	VEC(struct block_record) records;
};

/* module: path, NULL: the note is about none. */
void answer_note(struct work *w, const char *module, const struct err *err);
bool answer_is_runtime(const struct work *w, const struct process_mapping *m);
/* Calls are recorded, in lanes: there the runtime says when they are unwound. */
bool answer_wants_unwinds(const struct work *w);
/* Text of a file. */
bool answer_is_module(const struct process_mapping *m);
bool answer_is_in_lineage(const struct question *q, uint32_t uid);
/* The block of a binding, and its commands; none if nothing is to be bound. */
int answer_add_block(struct work *w, const struct loaded *l, struct binding *b, struct err *err);

/* Text of this module that is mapped there? */
bool answer_is_text_of(const struct process_mapping *m, const struct loaded *l);

struct kron_command *answer_add_command(struct work *w, uint32_t kind, uint32_t group);
/* For the patches of the last binding; likewise where its block, or table, is found again. */
int answer_add_patch_commands(struct work *w, const struct loaded *l, struct bound *bound,
			      uint32_t flags, struct err *err);
void answer_add_record(struct work *w, const struct loaded *l, uint64_t len);

/* answer_binding.c: what a binding has of the process and of where its module lies. */
struct binding answer_binding(const struct work *w, const struct loaded *l);
/* That of its functions, hooks and places. */
struct binding answer_module_binding(const struct work *w, const struct loaded *l);
/* Lanes have a thunk of its own for blocks with Resource samples.  -ENOTSUP: there is none for what is in the plan. */
int answer_choose_thunk(const struct work *w, const struct loaded *l, struct binding *b,
			struct err *err);
bool answer_has_action(const struct plan *p, enum action_kind kind);

/* answer_blocks.c: which of what is loaded is done?  What leads nowhere is unmapped. */
void answer_consider_blocks(struct work *w);

/* answer_copies.c: text of a module that is mapped once more leaves the list of what is loaded, but
 * for what the process asks about. */
void answer_sort_copies(struct work *w);
/* Of a module whose text the program copies: its process tells when it does so. */
void answer_watch_copies(struct work *w, const struct loaded *l, const struct binding *b);

/* answer_release.c: what the process is about to write to has no probes any more. */
void answer_release(struct work *w);

/* answer_callsites.c: what is new in the process. */
void answer_meet(struct work *w);
/* Does nothing run in it yet, says the question itself? */
bool answer_is_fresh(const struct work *w, const struct loaded *l);
/* Was the module new at its last question to the recording's answerer? */
bool answer_was_new(const struct work *w, const struct loaded *l);
/* When all modules are done. */
void answer_callsites(struct work *w);

/* answer_file.c: the commands, as a file that the process maps; out->fd. */
int answer_make_file(struct work *w, struct err *err);

#endif
