/* SPDX-License-Identifier: MIT */
/* function_probes.c - see function_probes.h. */
#include "collect/changes/function_probes.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "collect/changes/turn.h"

static int check(const struct changes *all, const char *glob, struct err *err)
{
	if (!*glob)
		return err_set(err, EINVAL, "-F takes the name of a function, or a glob");
	if (all->modules->selection->probes_only)
		return err_set(err, ENOENT, "this recording traces no functions");
	return 0;
}

/* Nothing has turned: why? */
static int nothing(const struct function_sleep *s, const char *glob, bool wakes, struct err *err)
{
	if (!s->met)
		return err_set(err, ENOENT, "no function that is traced is called %s", glob);
	if (s->stay == s->met)
		return err_set(err, ENOTSUP,
			       "the probes of %s stay: they are where it is called, or in a file "
			       "of `kron patch`",
			       glob);
	return err_set(err, EEXIST,
		       wakes ? "nothing that %s means sleeps" : "all that %s means sleeps already",
		       glob);
}

static void note(struct changes *all, const char *glob, bool wakes, uint64_t functions)
{
	char *name = xasprintf("-F %s", glob);
	const struct change_note n = {name, name, functions, wakes};

	all->note(all->note_ctx, &n);
	xfree(name);
}

void function_probes_note(struct changes *all, uint64_t since, uint64_t until, bool wakes,
			  bool by_budget, struct function_sleep *s)
{
	char *functions = function_sleep_text(s);
	const struct sleep_note n = {since, until, wakes, by_budget, functions};

	if (s->turned.n)
		all->note_sleep(all->note_ctx, &n);
	xfree(functions);
}

/* Until now. */
static void note_sleep(struct changes *all, uint64_t since, bool wakes, bool by_budget,
		       struct function_sleep *s)
{
	function_probes_note(all, since, all->now(all->note_ctx), wakes, by_budget, s);
}

int function_probes_check_waiting(const struct changes *all, const struct function_sleep *s,
				  const char *glob, struct err *err)
{
	if (!s->turned.n || !all->waits_for(all->note_ctx, s->turned.v, s->turned.n))
		return 0;
	return err_set(
		err, EBUSY,
		"a trigger of this recording waits for calls of what %s means, or for their ends: they stay",
		glob);
}

/* Some processes have turned, perhaps: what they did till now was not seen, or was. */
static void undo_glob(struct changes *all, bool wakes, struct function_sleep *s)
{
	const uint64_t since = all->now(all->note_ctx);

	function_sleep_undo(all->modules);
	turn_back(all);
	note_sleep(all, since, !wakes, false, s);
}

static int turn_glob(struct changes *all, const char *glob, bool wakes, struct function_sleep *s,
		     struct err *err)
{
	const uint64_t since = all->now(all->note_ctx);
	int code;

	function_sleep_add(all->modules, glob, wakes, s);
	code = s->turned.n || s->ruled ? 0 : nothing(s, glob, wakes, err);
	if (!code && !wakes)
		code = function_probes_check_waiting(all, s, glob, err);
	if (code) {
		function_sleep_undo(all->modules);
		if (s->turned.n) /* who started meanwhile */
			turn_back(all);
		return code;
	}
	if (s->turned.n)
		code = turn_all(all, err);
	if (!code) {
		function_sleep_keep(all->modules);
		note(all, glob, wakes, s->ruled);
	}
	note_sleep(all, since, wakes, false, s);
	if (code)
		undo_glob(all, wakes, s);
	return code;
}

int function_probes_turn(struct changes *all, const char *glob, bool wakes, struct err *err)
{
	struct function_sleep s = {0};
	int code = check(all, glob, err);

	if (!code)
		code = turn_glob(all, glob, wakes, &s, err);
	if (!code && s.stay)
		err_set(err, 0,
			"%" PRIu64 " of %" PRIu64 " functions stay as they are: their probes are "
			"where they are called, or in a file of `kron patch`",
			s.stay, s.met);
	else if (!code && s.turned.n < s.ruled)
		err_set(err, 0, "%" PRIu64 " of %" PRIu64 " functions are out for --budget%s",
			s.ruled - s.turned.n, s.ruled,
			wakes ? ", and come back when it says so" : " already, and stay so");
	function_sleep_clear(&s);
	return code;
}

/* Those of them that sleep now, or that are awake. */
static struct function_sleep half_of(const struct function_sleep *s, const uint8_t *held,
				     uint32_t n, bool wakes)
{
	struct function_sleep half = {0};

	for (size_t i = 0; i < s->turned.n; i++) {
		const uint32_t f = s->turned.v[i];

		if ((f < n && held[f]) != wakes)
			*vec_push(&half.turned) = f;
	}
	return half;
}

static void note_held(struct changes *all, uint64_t since, const struct function_sleep *s,
		      const uint8_t *held, uint32_t n)
{
	for (int wakes = 0; wakes < 2; wakes++) {
		struct function_sleep half = half_of(s, held, n, wakes);

		note_sleep(all, since, wakes, true, &half);
		function_sleep_clear(&half);
	}
}

/* What has turned was the other way before. */
static void take_back(struct changes *all, const struct function_sleep *s, const uint8_t *held,
		      uint32_t n)
{
	const uint64_t since = all->now(all->note_ctx);
	uint8_t *before = xmalloc(n + 1);
	struct function_sleep ignored;

	memcpy(before, held, n);
	for (size_t i = 0; i < s->turned.n; i++)
		if (s->turned.v[i] < n)
			before[s->turned.v[i]] = !before[s->turned.v[i]];
	function_sleep_hold(all->modules, before, n, &ignored);
	function_sleep_clear(&ignored);
	turn_back(all);
	note_held(all, since, s, before, n);
	xfree(before);
}

int function_probes_hold(struct changes *all, const uint8_t *held, uint32_t n, uint64_t *turned,
			 struct err *err)
{
	const uint64_t since = all->now(all->note_ctx);
	struct function_sleep s;
	int code = 0;

	function_sleep_hold(all->modules, held, n, &s);
	*turned = s.turned.n;
	if (s.turned.n)
		code = turn_all(all, err);
	note_held(all, since, &s, held,
		  n); /* also of a failure: some processes have turned, perhaps */
	if (code)
		take_back(all, &s, held, n);
	function_sleep_clear(&s);
	return code;
}
