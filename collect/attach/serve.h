/* SPDX-License-Identifier: MIT */
/*
 * serve.h - answers the runtimes' questions (kron/wire.h) on an abstract Unix socket.
 *
 * A thread accepts, hears, and ticks: each second it tells those who wait that work goes on.  It
 * takes no lock that is held over a write to a file.  Questions are answered by threads that live as
 * long as there are any (serve_turns.c).
 */
#ifndef COLLECT_SERVE_H
#define COLLECT_SERVE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <kron/wire.h>
#include "base/vec.h"
#include "collect/attach/answer.h"
#include "collect/journal.h"
#include "collect/attach/peers.h"
#include "collect/segment.h"
#include "collect/tasks.h"
#include "collect/attach/untraced.h"

#define SERVE_SILENT 64u /* connections of other users that have not said HELLO */

struct connection;

/* Probes that were added while the recording runs, by number: what asks gets them, too. */
struct added_probes {
	void *ctx;
	/* The next one after this number; 0: there is none. */
	uint32_t (*next)(void *ctx, uint32_t after);
	/* Until it is released it is not taken out; NULL: it is not there any more. */
	struct answerer *(*hold)(void *ctx, uint32_t number);
	void (*release)(void *ctx, uint32_t number, uint64_t probes);
	/* Into a program that was attached to in front of its first instruction, and asks for nothing. */
	void (*join)(void *ctx, pid_t pid);
	/* A process has begun to run without some of its modules' functions (--no-wait). */
	void (*late)(void *ctx);
};

/* Who wants to know when processes wait for kron, and when what they waited for is in their code. */
struct plan_watcher {
	void *ctx;
	/* A program asks for its first plan, or goes on: with it, or untraced.  From any thread. */
	void (*tell)(void *ctx, pid_t pid, bool goes_on);
};

TAILQ_HEAD(connections, connection);

enum connection_state {
	CONNECTION_SILENT, /* has not said HELLO; in the epoll set, of the listener's thread alone */
	CONNECTION_WAITS,  /* for a thread */
	CONNECTION_ASKS,   /* has one */
	CONNECTION_STATES
};

/* Another's socket, and what is to be done when somebody comes to it for the first time. */
struct server_guest {
	int fd;
	void (*comes)(void *ctx);
	void *ctx;
};

struct server {
	struct segment *seg;
	struct journal *journal;
	struct tasks *tasks;
	struct answerer *answerer;
	bool no_children;
	struct pages *pages; /* collect/pages/pages.h; NULL */
	/* The first process that asks has its plan, and waits for it: by that thread.  NULL: nothing. */
	void (*on_first)(void *ctx, const struct peer *p, bool is_program);
	void *on_first_ctx;
	/* A process asks KRON_HELLO_EXECUTES or STAYS, and waits: KRON_REPLY_* for it.  In a thread of
	 * its own.  NULL: nobody awaits programs. */
	uint32_t (*on_exec)(void *ctx, const struct peer *p, const struct kron_hello *h);
	void *on_exec_ctx;
	const struct added_probes *added;   /* under the lock; NULL: nobody adds any */
	const struct plan_watcher *watcher; /* likewise; NULL: nobody */
	struct server_guest guest;          /* under the lock; comes NULL: none */
	enum kron_thunk thunk;              /* what all probes are bound to */
	int hardware_fd;                    /* bus device: what the programs map; else -1 */
	char name[64];                      /* abstract, without the leading NUL */
	uint8_t session[16];
	uid_t uid;
	int fd, wake_fd, epoll_fd;
	pthread_t thread;
	bool running;

	pthread_mutex_t lock;
	pthread_cond_t idle;
	struct connections list[CONNECTION_STATES];
	uint32_t nconnections;
	uint64_t last_number; /* of a connection */
	uint64_t turned_away; /* not noted yet */
	pid_t turned_away_pid;
	uint64_t given_up; /* likewise: no thread could be made */
	bool stopping;
	bool has_begun;  /* on_first was called */
	uint64_t starts; /* processes that are being traced after START */
	char *debugged;  /* "process 7 runs under gdb (pid 5)": the first of them; NULL: none */
	struct untraced_list untraced;

	/* the listener's thread alone */
	pid_t first_pid; /* that has asked */
	struct peer_users users;
	unsigned useless; /* connections in this second that were none of a start */
	bool flooded;     /* there were too many in this one or the last */
};

int server_start(struct server *s, struct err *err);
/* Ends all connections and waits, a second at most, for their threads.  Notes what never came
 * through.  False: some plan on, and what they use must not be freed. */
bool server_stop(struct server *s);
void server_free(struct server *s);

void server_set_added(struct server *s, const struct added_probes *added);
const struct added_probes *server_added(struct server *s);
void server_set_watcher(struct server *s, const struct plan_watcher *watcher);
void server_tell_watcher(struct server *s, pid_t pid, bool goes_on);

/* Saves a thread where nobody ever comes.  comes() runs once, in the listener's thread, which watches the
 * socket no more then; it may still run when server_forget_guest() returns. */
int server_watch_guest(struct server *s, const struct server_guest *guest);
void server_forget_guest(struct server *s);

/* Until all that is being answered now is done.  False: it takes longer than that. */
bool server_wait_answered(struct server *s, unsigned seconds);

/* Somebody plans for a process that has no connection: server_stop() waits for that, too. */
void server_hold(struct server *s);
void server_release(struct server *s);
/* Note that a program, or one of its modules (its path, else NULL), stays untraced. */
void server_note_untraced(struct server *s, pid_t pid, const char *module, const char *reason);
/* Several programs; pid 0: of several processes. */
void server_note_many(struct server *s, pid_t pid, const char *reason, uint64_t n);
#endif
