/* SPDX-License-Identifier: MIT */
/*
 * report_messages.h - the matrix of kron report --messages, a row for each two processes and kind of message. Private to
 * report_messages.c and report_matched.c.
 */
#ifndef TRACE_REPORT_REPORT_MESSAGES_H
#define TRACE_REPORT_REPORT_MESSAGES_H

#include <stdio.h>

#include "base/json.h"
#include "base/vec.h"
#include "trace/analysis/slack.h"
#include "trace/index.h"
#include "trace/reader.h"

struct message_row {            /* times in ticks */
	uint32_t def, from, to; /* processes */
	uint64_t count, sum, min, max, negative;
	uint64_t timed; /* of which it is known how long they took */
	uint64_t bytes;
	struct slack *slack; /* NULL: each sample of theirs has read the clock */
};

struct message_matrix {
	const struct trace *t;
	const char *(*name)(const struct message_matrix *m, uint32_t def);
	void *arg;                 /* name's */
	bool is_sparse;            /* samples share readings of the clock */
	bool guessed_order;        /* of some message: REPORT_SLACK_ORDER */
	const int32_t *ranks;      /* of MPI, by index of the process: has bytes, too; or NULL */
	struct index keys[2];      /* from and to; that, and the definition */
	VEC(struct message_row) v; /* by index of the second */
};

/* Lanes that it went from and to. */
struct message_row *message_row_of(struct message_matrix *m, uint32_t def, uint32_t from,
				   uint32_t to);
void message_row_add(struct message_row *row, int64_t ticks);
/* The same, where samples share readings of the clock. */
void message_row_add_between(struct message_row *row, const struct interval *i);
/* The most first. */
void message_matrix_sort(struct message_matrix *m);
void message_matrix_print(const struct message_matrix *m, FILE *out);
void message_matrix_json(const struct message_matrix *m, struct json *j);
void message_matrix_free(struct message_matrix *m);
/* "rank 3, 4711 a.out" */
void message_put_process(const struct message_matrix *m, uint32_t uid, FILE *out);
void message_json_process(const struct message_matrix *m, struct json *j, uint32_t uid);
int32_t message_rank(const struct message_matrix *m, uint32_t uid);

#endif
