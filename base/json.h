/* SPDX-License-Identifier: MIT */
/*
 * json.h - writes JSON to a FILE: commas and escaping are its business, the caller opens and
 * closes.  Strings are treated as bytes; what is not valid UTF-8 is escaped as U+FFFD.
 *
 *   struct json j = JSON_INIT(stdout);
 *   json_open(&j, '{');  json_key(&j, "calls");  json_u64(&j, 3);  json_close(&j, '}');
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *f;
	int depth;
	int need_comma;
	int after_key;
};
#define JSON_INIT(file)     \
	{                   \
		.f = (file) \
	}

void json_open(struct json *j, char bracket); /* '{' or '[' */
void json_close(struct json *j, char bracket);
void json_key(struct json *j, const char *key);
void json_str(struct json *j, const char *s); /* NULL becomes null */
void json_u64(struct json *j, uint64_t v);
void json_i64(struct json *j, int64_t v);
void json_f64(struct json *j, double v);       /* NaN and infinities become null */
void json_f64_exact(struct json *j, double v); /* with all of its 17 digits */
void json_bool(struct json *j, int v);

/* key and value at once */
void json_kstr(struct json *j, const char *key, const char *s);
void json_ku64(struct json *j, const char *key, uint64_t v);

#endif
