/* SPDX-License-Identifier: MIT */
/* regex.c - see regex.h.  The only file that knows PCRE2. */
#include "base/regex.h"

#include <errno.h>
#include <string.h>

#include "base/vec.h"
#include "config.h"

#include <pcre2.h> /* after config.h, which says how wide its characters are */

#define LENGTH_MAX 1000u
#define STEPS_MAX 1000000u /* some 20 ms; `.*lock` takes as many as the name has letters */
#define MEMORY_MAX 16384u  /* KiB */

struct regex {
	pcre2_code *code;
	pcre2_match_context *limits;
	pcre2_match_data *data; /* atomic: NULL while a thread has it */
	unsigned shares;
	bool gave_up; /* atomic */
};

static int refuse(int why, size_t at, struct err *err)
{
	char text[120];

	pcre2_get_error_message(why, (PCRE2_UCHAR *)text, sizeof(text));
	return err_set(err, EINVAL, "%s, at its character %zu", text, at + 1);
}

int regex_make(struct regex **out, const char *pattern, struct err *err)
{
	/* as POSIX has it: a newline is a character like others */
	const uint32_t options =
		PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_UTF | PCRE2_NEVER_UCP;
	struct regex *r;
	pcre2_code *code;
	PCRE2_SIZE at;
	int why;

	if (strlen(pattern) > LENGTH_MAX)
		return err_set(err, EINVAL, "it has more than %u characters", LENGTH_MAX);
	code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, options, &why, &at, NULL);
	if (!code)
		return refuse(why, at, err);
	r = xcalloc(1, sizeof(*r));
	r->code = code;
	r->shares = 1;
	r->limits = pcre2_match_context_create(NULL);
	if (!r->limits) {
		regex_free(r);
		return err_set(err, ENOMEM, "no memory");
	}
	pcre2_set_match_limit(r->limits, STEPS_MAX);
	pcre2_set_depth_limit(r->limits, STEPS_MAX);
	pcre2_set_heap_limit(r->limits, MEMORY_MAX);
	*out = r;
	return 0;
}

struct regex *regex_share(struct regex *r)
{
	if (r)
		r->shares++;
	return r;
}

void regex_free(struct regex *r)
{
	if (!r || --r->shares)
		return;
	pcre2_code_free(r->code);
	pcre2_match_data_free(r->data);
	pcre2_match_context_free(r->limits);
	xfree(r);
}

bool regex_gave_up(const struct regex *r)
{
	return __atomic_load_n(&r->gave_up, __ATOMIC_RELAXED);
}

/* Most have one thread at a time: what it needs is kept.  Others make their own. */
static pcre2_match_data *take_data(struct regex *r)
{
	pcre2_match_data *data = __atomic_exchange_n(&r->data, NULL, __ATOMIC_ACQUIRE);

	return data ? data : pcre2_match_data_create(1, NULL);
}

static void give_data(struct regex *r, pcre2_match_data *data)
{
	pcre2_match_data_free(__atomic_exchange_n(&r->data, data, __ATOMIC_ACQ_REL));
}

bool regex_matches(struct regex *r, const char *text)
{
	pcre2_match_data *data;
	int n = PCRE2_ERROR_NOMEMORY;

	if (regex_gave_up(r))
		return false;
	data = take_data(r);
	if (data)
		n = pcre2_match(r->code, (PCRE2_SPTR)text, strlen(text), 0, 0, data, r->limits);
	give_data(r, data);
	if (n < 0 && n != PCRE2_ERROR_NOMATCH)
		__atomic_store_n(&r->gave_up, true, __ATOMIC_RELAXED);
	return n >= 0;
}
