/* SPDX-License-Identifier: MIT */
/* condition_data.h - `data` in a condition: a payload as its event says that it is meant, against a number. */
#ifndef TRACE_CONDITION_DATA_H
#define TRACE_CONDITION_DATA_H

#include "trace/names.h"
#include "trace/value.h"

struct data_number {
	uint64_t bits;    /* of a natural one */
	long double real; /* exact for all that payloads can be */
	bool is_natural;  /* neither sign nor point */
	bool is_hex;      /* it means bits */
};

/* Of events whose payload has a sign or a point, by the event's number. */
struct data_types {
	struct trace_value_type *v;
	uint32_t n; /* 0: there are none */
};

bool data_number_parse(const char *s, struct data_number *out);
void data_types_bind(struct data_types *t, const struct trace_names *names);
void data_types_free(struct data_types *t);

enum data_order { DATA_LESS, DATA_SAME, DATA_MORE, DATA_UNORDERED };
/* The sample's payload, which is a number, against this one. */
enum data_order data_order(const struct data_types *t, const struct data_number *number,
			   const struct trace_event *e);

#endif
