/* SPDX-License-Identifier: MIT */
/* cabled.c - see cabled.h. */
#define _GNU_SOURCE
#include "cmd/record/cabled.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "board/bus/node.h"
#include "collect/cable/send.h"

static struct cable_sender sender;
static bool is_open;
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
	if (is_open && owner == getpid())
		cable_abandon(&sender);
}

int cabled_open(struct collector_options *o, const char *output, const char *token, struct err *err)
{
	char name[CABLE_NAME];
	int code;

	if (!cable_is_address(output))
		return token ? err_set(err, EINVAL, "--token belongs to -o tcp://HOST") : 0;
	make_name(name, sizeof(name), o->node);
	code = cable_open(&sender, output, token, name, NULL, err);
	if (code)
		return code;
	is_open = true;
	owner = getpid();
	atexit(at_exit);
	o->dir = sender.spool;
	o->gate = cable_gate;
	o->gate_ctx = &sender;
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

int cabled_finish(struct err *err)
{
	if (!is_open)
		return 0;
	is_open = false;
	return cable_finish(&sender, err);
}
