/* SPDX-License-Identifier: MIT */
/* cabled.c - see cabled.h. */
#define _GNU_SOURCE
#include "cmd/record/cabled.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "board/bus/node.h"
#include "cmd/record/say.h"
#include "collect/cable/group.h"
#include "collect/cable/send.h"

static struct cable_sender sender;
static bool is_open;
static struct group *group;
static pid_t owner;

/* "HOST", or "HOST.NODE" where there is a number that the host's name does not say. */
static void make_name(char *name, size_t size, int node)
{
	char host[256] = "node";
	uint32_t of_host;
	struct node n;

	gethostname(host, sizeof(host) - 1);
	host[sizeof(host) - 1] = 0;
	node_default(&n);
	if (node != NODE_DEFAULT)
		snprintf(name, size, "%.48s.%d", host, node);
	else if (n.from && !(node_of_host(host, &of_host) && of_host == n.n))
		snprintf(name, size, "%.48s.%u", host, n.n);
	else
		snprintf(name, size, "%.60s", host);
}

/* Whatever keeps a recording from beginning: nothing is left of it. */
static void at_exit(void)
{
	if (owner != getpid())
		return;
	group_close(group);
	if (is_open)
		cable_abandon(&sender);
}

static void clean_up(void)
{
	if (!owner)
		atexit(at_exit);
	owner = getpid();
}

int cabled_open(struct collector_options *o, const char *output, const char *token, struct err *err)
{
	char name[CABLE_NAME];
	int code;

	if (!cable_is_address(output))
		return 0;
	make_name(name, sizeof(name), o->node);
	code = cable_open(&sender, output, token, name, NULL, err);
	if (code)
		return code;
	is_open = true;
	clean_up();
	o->dir = sender.spool;
	o->gate = cable_gate;
	o->gate_ctx = &sender;
	return 0;
}

int cabled_group(struct collector_options *o, const char *name, const char *token, struct err *err)
{
	char node[CABLE_NAME];
	int code;

	if (!name)
		return 0;
	make_name(node, sizeof(node), o->node);
	code = group_open(&group, name, token, node, err);
	if (code)
		return code;
	clean_up();
	o->watch.group = group;
	return 0;
}

int cabled_start(struct err *err)
{
	return is_open ? cable_start(&sender, err) : 0;
}

void cabled_hurry(void)
{
	if (is_open)
		cable_hurry(&sender);
}

/* Who was to stop with us, and may not have. */
static void end_group(void)
{
	struct group_end end;

	if (!group)
		return;
	end = group_close(group);
	group = NULL;
	if (!end.met)
		say("kron: --trigger-group: no other recording of this group has answered");
	else if (end.untold)
		say("kron: --trigger-group: %zu of %zu others have not said that they heard that "
		    "the trigger fired",
		    end.untold, end.met);
}

int cabled_finish(struct err *err)
{
	end_group();
	if (!is_open)
		return 0;
	is_open = false;
	return cable_finish(&sender, err);
}
