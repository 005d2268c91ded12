/* SPDX-License-Identifier: MIT */
/* probed.c - see probed.h */
#include "collect/monitor/probed.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "board/bus/lanes.h"
#include "probes/probe.h"

/* NAME:FUNC, and what of the function that is. */
static const struct {
	const char *name, *class;
	bool is_alone; /* NAME is all functions; else it is a counter of the processor's */
} kinds[] = {
	{"addr", "", false},
	{"returns", "%return", true},
	{"instructions", "%insns", false},
	{"branches", "%branches", false},
	{"loads", "%loads", true},
	{"stores", "%stores", true},
};
#define NKINDS (sizeof(kinds) / sizeof(kinds[0]))

/* ---- what is asked for ---- */

static bool is_single(const struct probe_spec *s)
{
	switch (s->place) {
	case SPEC_ENTRY:
	case SPEC_RETURN:
	case SPEC_OFFSET:
	case SPEC_LINE:
	case SPEC_SOURCE:
	case SPEC_ADDRESS:
		return true;
	default:
		return false;
	}
}

/* It is a place alone, of one probe. */
static int check(const struct probe_set *set, const char *name, struct err *err)
{
	const struct probe_spec *s = set->specs.v;

	if (set->specs.n != 1 || s->kind != SPEC_COUNT || s->payload || s->nconditions ||
	    s->event || s->gated)
		return err_set(err, EINVAL,
			       "-e %s: a place has to follow the colon, and nothing else: see "
			       "kron-probes(7)",
			       name);
	return 0;
}

/* "SPEC:1:7: sentence", the line and the caret: the sentence. */
static int refuse(const char *name, const struct err *why, struct err *err)
{
	const char *colon = strstr(why->msg, ":1:"), *at = colon ? strstr(colon, ": ") : NULL;

	at = at ? at + 2 : why->msg;
	return err_set(err, EINVAL, "-e %s: %.*s", name, (int)strcspn(at, "\n"), at);
}

static int add(struct probed *p, const char *name, const char *place, struct err *err)
{
	char *spec = xasprintf("%s count:0", place);
	struct probe_set set = {0};
	struct err why;
	int code = 0;

	if (p->v.n == PROBE_COUNTERS)
		code = err_set(err, EINVAL, "-e %s: %u events that probes count are the most", name,
			       PROBE_COUNTERS);
	else if (probe_set_add(&set, spec, 0, &why))
		code = refuse(name, &why, err);
	else
		code = check(&set, name, err);
	if (!code)
		*vec_push(&p->v) = (struct probed_event){xstrdup(name), xstrdup(place),
							 is_single(set.specs.v)};
	probe_set_free(&set);
	xfree(spec);
	return code;
}

int probed_add(struct probed *p, const char *name, struct err *err)
{
	for (size_t i = 0; i < NKINDS; i++) {
		const size_t n = strlen(kinds[i].name);
		char *place;
		int code;

		if (strncmp(name, kinds[i].name, n) ||
		    (name[n] != ':' && (name[n] || !kinds[i].is_alone)))
			continue;
		if (name[n] && !name[n + 1])
			return err_set(err, EINVAL, "-e %s: there is no name after the colon",
				       name);
		place = xasprintf("%s%s", name[n] ? name + n + 1 : "*", kinds[i].class);
		code = add(p, name, place, err);
		xfree(place);
		return code;
	}
	return 1;
}

int probed_add_calls(struct probed *p, const char *glob, struct err *err)
{
	char *name = strcmp(glob, "*") ? xasprintf("calls:%s", glob) : xstrdup("calls");
	int code = add(p, name, glob, err);

	xfree(name);
	return code;
}

void probed_specs(const struct probed *p, struct opt_list *specs, struct opt_list *names)
{
	for (size_t i = 0; i < p->v.n; i++) {
		*vec_push(specs) = xasprintf("%s count:%zu", p->v.v[i].place, i);
		*vec_push(names) = xasprintf("-e %s", p->v.v[i].name);
	}
}

bool probed_share(const struct probed *p)
{
	for (size_t i = 0; i < p->v.n; i++)
		if (!p->v.v[i].is_single)
			return true;
	return false;
}

/* ---- how often ---- */

void probed_read(const struct probed *p, struct reading *out, uint64_t *all)
{
	uint64_t counts[KRON_COUNTERS] = {0};

	*all = 0;
	if (p->v.n && p->seg)
		lanes_count(p->seg->ctl, counts);
	for (size_t i = 0; i < p->v.n; i++) {
		out[i] = (struct reading){.n = counts[i], .known = p->seg};
		*all += counts[i];
	}
}

void probed_free(struct probed *p)
{
	vec_for(&p->v, e) {
		xfree(e->name);
		xfree(e->place);
	}
	vec_free(&p->v);
}
