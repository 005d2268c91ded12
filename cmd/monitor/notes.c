/* SPDX-License-Identifier: MIT */
/* notes.c - see notes.h */
#include "cmd/monitor/notes.h"

#include <stdio.h>

#include "base/str.h"
#include "collect/modules/choices.h"

#define MS 1000000u

/* As the document has it: the program is to run ten times as long as it stands. */
static void propose(const struct monitor *m, const struct monitor_summary *s)
{
	char now[STR_NUMBER];
	const uint64_t stood = s->freezes ? s->all_stood_ns / s->freezes : 0;

	if (stood * 10 <= m->every_ns)
		return;
	fprintf(stderr,
		"kron: the program stood for %s in each interval: --every %llums is ten times that\n",
		str_duration(now, sizeof(now), stood),
		(unsigned long long)((stood * 10 + MS - 1) / MS));
}

void notes_on_variables(struct monitor *m, const char *when)
{
	char text[256];

	vec_for(&m->variables.v, v) {
		const char *trouble = monitor_variable_trouble(v, text, sizeof(text));

		if (trouble && ((v->was_sought && !v->was_found) || !*when || v->was_alive))
			fprintf(stderr, "kron: --var %s: %s%s\n", v->name, trouble, when);
	}
}

static void say_locks(struct monitor *m)
{
	vec_for(&m->locks.v, k) {
		const char *trouble = monitor_lock_trouble(&m->locks, k);

		if (trouble)
			fprintf(stderr, "kron: --lock %s: %s\n", k->text, trouble);
	}
}

static void say_choice(void *ctx, const char *sentence)
{
	(void)ctx;
	fprintf(stderr, "kron: -e calls: %s\n", sentence);
}

static void say_calls(struct monitor *m)
{
	static const struct choice_words words = {"counted", "-e 'calls:*", "*'"};

	if (m->calls.modules)
		choices_each(m->calls.modules, &words, say_choice, NULL);
}

static void say_ranges(struct monitor *m)
{
	char text[256];

	vec_for(&m->ranges.v, r) {
		const char *trouble = monitor_range_trouble(&m->ranges, r, text, sizeof(text));

		if (trouble)
			fprintf(stderr, "kron: --range %s: %s\n", r->text, trouble);
	}
}

static void say_overruns(const struct monitor *m, const struct monitor_summary *s)
{
	if (!s->overruns)
		return;
	fprintf(stderr,
		"kron: in %llu intervals a counter has overrun, or could have (marked by !): --every "
		"%llums is short enough for those that go round; a Resource Counter that stands at "
		"its maximum has to be reset\n",
		(unsigned long long)s->overruns,
		(unsigned long long)(monitor_board_longest_ns(m->board) / MS));
}

void notes_say(struct monitor *m, const struct monitor_summary *s)
{
	say_overruns(m, s);
	if (s->failed_freezes)
		fprintf(stderr, "kron: %llu intervals ended without a stop of all: %s\n",
			(unsigned long long)s->failed_freezes, s->why_not.msg);
	notes_on_variables(m, "");
	say_locks(m);
	say_calls(m);
	say_ranges(m);
	propose(m, s);
}
