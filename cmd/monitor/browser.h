/* SPDX-License-Identifier: MIT */
/*
 * browser.h - the intervals of `kron monitor` in a browser, as they come (--serve).
 *
 *   the monitor's thread ──browser_row─► a list ──the server's thread─► the last 4,096 rows ─► each client, from its place
 *                        ◄──────────── what may be freed ◄──────────
 *
 * Neither waits for the other: both lists change hands by one atomic exchange, and each thread frees only what it has
 * made, so that they share no lock of malloc(3) either.
 */
#ifndef CMD_MONITOR_BROWSER_H
#define CMD_MONITOR_BROWSER_H

#include "cmd/monitor/save.h"
#include "collect/http/server.h"
#include "collect/monitor/monitor.h"

#define BROWSER_ROWS 4096u       /* the last of them, for who comes late */
#define BROWSER_BYTES (8u << 20) /* that they take at most */

struct browser_row;

struct browser {
	bool is_on;
	struct http_server server;
	struct http_page page;
	const struct columns *columns;
	bool freezes;
	char *about; /* the first event */
	uint64_t n;  /* rows so far */
	/* atomic */
	struct browser_row *fresh, *done;
	/* the server's */
	struct browser_row **ring;
	uint64_t first, next;
	size_t bytes;
};

/* Takes the port and says where it is, on standard error.  -errno with a sentence. */
int browser_begin(struct browser *b, const char *port, const struct columns *columns,
		  const struct save_subject *what, struct err *err);
/* Once the program has started: a thread begins. */
int browser_start(struct browser *b, struct err *err);
void browser_row(struct browser *b, const struct monitor_row *row);
/* how: as save_end() wants it. */
void browser_end(struct browser *b, const struct monitor_summary *sum, const struct reading *totals,
		 const char *how);
/* Any number of times. */
void browser_close(struct browser *b);

#endif
