/* SPDX-License-Identifier: MIT */
/* ctl_probe.c - see ctl_probe.h. */
#include "cmd/ctl_probe.h"

#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "board/bus/lanes.h"
#include "board/bus/object.h"
#include "cmd/cmd.h"
#include "collect/changes/control.h"

static const struct verb {
	const char *name;
	int arguments;
	enum kron_control_verb verb, functions; /* with -F; 0: it takes none */
} verbs[] = {
	{"add", 1, KRON_CONTROL_ADD, KRON_CONTROL_WAKE},
	{"rm", 1, KRON_CONTROL_REMOVE, KRON_CONTROL_SLEEP},
	{"list", 0, KRON_CONTROL_LIST, 0},
};

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	return NULL;
}

static int ask(const struct opt_command *command, struct bus *b, enum kron_control_verb verb,
	       const char *text)
{
	struct kron_control_answer *answer = xcalloc(1, sizeof(*answer));
	struct lanes_view view;
	struct err err;
	int status = CMD_OK;

	lanes_look(b, &view);
	if (!view.recorder_pid)
		status = cmd_fail(command, CMD_ERROR,
				  "no kron record runs on board %s: its probes are nowhere",
				  b->name);
	else if (control_ask(object_note(b->board.ctl)->recording, view.recorder_pid, verb, text,
			     answer, &err))
		status = cmd_fail(command, CMD_ERROR, "%s", err.msg);
	else if (answer->code)
		status = cmd_fail(command, CMD_ERROR, "%s", answer->text);
	else
		fputs(answer->text, stdout);
	xfree(answer);
	return status;
}

int ctl_probe_check(const struct opt_command *command, const struct ctl_probe_options *o, int n,
		    char **argv)
{
	const struct verb *v = find_verb(argv[0]);

	if (!v || n != (o->functions ? 0 : v->arguments) || (o->functions && !v->functions) ||
	    (o->json && v->verb != KRON_CONTROL_LIST) ||
	    (o->libraries.n && (!o->functions || v->functions != KRON_CONTROL_WAKE)))
		return cmd_fail(
			command, CMD_USAGE,
			"probe takes: add SPEC, rm NAME, add -F GLOB, which may have -L GLOB, "
			"rm -F GLOB, or list, which may have --json");
	return CMD_OK;
}

/* A line each: changes_turn_functions(). */
static int ask_functions(const struct opt_command *command, struct bus *b,
			 const struct ctl_probe_options *o, enum kron_control_verb verb)
{
	char *text = xstrdup(o->functions);
	int status;

	for (size_t i = 0; i < o->libraries.n; i++) {
		char *more = xasprintf("%s\n%s", text, o->libraries.v[i]);

		xfree(text);
		text = more;
	}
	status = ask(command, b, verb, text);
	xfree(text);
	return status;
}

int ctl_probe(const struct opt_command *command, struct bus *b, const struct ctl_probe_options *o,
	      int n, char **argv)
{
	const struct verb *v = find_verb(argv[0]);

	if (o->functions)
		return ask_functions(command, b, o, v->functions);
	return ask(command, b, o->json ? KRON_CONTROL_LIST_JSON : v->verb, n ? argv[1] : "");
}
