/* SPDX-License-Identifier: MIT */
/*
 * hostile.c - a traced program that does to its recording whatever it can, without end.
 *
 *   hostile cut FILE          ask again, get the segment's descriptor, and cut it off; tries to seal it, to
 *                             make it larger, to lock it; says in FILE what succeeded
 *   hostile punch FILE        likewise, and make holes in it
 *   hostile flood FILE        ask, and say too much, too little, and nonsense; never say how it ended
 *   hostile speak FILE        ask as itself, and as each other process of the recording
 *   hostile scribble FILE SEED   write into every table that it shares with others
 *   hostile machine FILE SEED    and into the board's machine
 *   hostile hold FILE         close all gates' ways: every chunk is its own, every word says "wait"
 *
 * It gets the token where a traced program has it, in its environment as the kernel shows it.  After
 * its first round it writes to FILE; it is killed in the end.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <kron/segment.h>
#include <kron/wire.h>

static const char *file;
static char name[108], token[33];
static struct kron_ctl *const ctl = (struct kron_ctl *)(uintptr_t)KRON_CTL_ADDR;
static unsigned long seed;
static int round_number;

static void *at(uint64_t offset)
{
	return (char *)ctl + (offset - KRON_CTL_OFFSET);
}

static unsigned long rnd(unsigned long below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

static void __attribute__((noreturn)) die(const char *what)
{
	fprintf(stderr, "hostile: %s: %s\n", what, strerror(errno));
	exit(3);
}

static void read_environment(void)
{
	static char all[1 << 20];
	int fd = open("/proc/self/environ", O_RDONLY);
	ssize_t n = read(fd, all, sizeof(all) - 1);

	for (char *p = all; n > 0 && p < all + n; p += strlen(p) + 1)
		if (sscanf(p, "KRON_RT=%107[^,],%32[0-9a-f],", name, token) == 2)
			break;
	close(fd);
	if (!*token)
		die("no KRON_RT: is it traced?");
}

/* It has done its worst once. */
static void done_once(const char *text)
{
	FILE *f;

	if (round_number++)
		return;
	f = fopen(file, "w");
	fprintf(f, "%s\n", text);
	fclose(f);
}

/* ---- questions ---- */

static int connect_to_collector(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(a.sun_path + 1, name, strlen(name));
	if (s < 0 ||
	    connect(s, (struct sockaddr *)&a,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name)))) {
		if (s >= 0)
			close(s);
		return -1;
	}
	return s;
}

static struct kron_hello hello(uint32_t kind)
{
	struct kron_hello h = {.magic = KRON_WIRE_MAGIC,
			       .version = KRON_WIRE_VERSION,
			       .kind = kind,
			       .proc_uid = 1,
			       .proc_slot = (uint32_t)rnd(70000),
			       .hook_thunk = rnd(1ul << 47)};
	unsigned byte;

	for (int i = 0; i < 16; i++) {
		sscanf(token + 2 * i, "%2x", &byte);
		h.session[i] = (uint8_t)byte;
	}
	for (int i = 0; i < (int)KRON_THUNKS; i++)
		h.thunk[i] = h.payload_thunk[i] = rnd(1ul << 47);
	return h;
}

/* The first descriptor of the REPLY: the segment. */
static int take_segment(int s)
{
	struct kron_reply r;
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct iovec iov = {&r, sizeof(r)};
	int fd = -1;

	for (;;) {
		struct msghdr m = {.msg_iov = &iov,
				   .msg_iovlen = 1,
				   .msg_control = &control,
				   .msg_controllen = sizeof(control)};
		struct cmsghdr *c;

		if (recvmsg(s, &m, 0) != sizeof(r))
			return -1;
		c = CMSG_FIRSTHDR(&m);
		if (c)
			memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		if (r.kind == KRON_MSG_REPLY)
			return fd;
	}
}

static int ask_for_segment(void)
{
	struct kron_hello h = hello(KRON_HELLO_START);
	int s = connect_to_collector(), fd;

	if (s < 0)
		die("connect");
	if (send(s, &h, sizeof(h), MSG_NOSIGNAL) != sizeof(h))
		die("send");
	fd = take_segment(s);
	close(s);
	return fd;
}

/* ---- what it does ---- */

static void punch(int fd)
{
	struct stat st;

	fstat(fd, &st);
	fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, st.st_size);
	usleep(1000);
}

static void cut(bool holes)
{
	static const int seals[] = {F_SEAL_WRITE, F_SEAL_FUTURE_WRITE, F_SEAL_GROW};
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char text[200] = "";
	int fd = ask_for_segment();

	if (fd < 0)
		die("no segment came");
	if (!ftruncate(fd, 0))
		strcat(text, "truncated ");
	if (!ftruncate(fd, 1l << 40))
		strcat(text, "grew ");
	if (!fallocate(fd, 0, 1l << 40, 4096))
		strcat(text, "appended ");
	for (int i = 0; i < 3; i++)
		if (!fcntl(fd, F_ADD_SEALS, seals[i]))
			strcat(text, "sealed ");
	fcntl(fd, F_OFD_SETLK, &lock);
	if (holes)
		punch(fd);
	done_once(*text ? text : "nothing");
	if (rnd(2)) /* and some are kept open */
		close(fd);
}

static void flood(void)
{
	static int open_ones[64];
	struct kron_hello h = hello(rnd(2) ? KRON_HELLO_START : KRON_HELLO_MODULES);
	struct kron_result r;
	unsigned char noise[300];
	int *slot = &open_ones[rnd(64)];
	int s = connect_to_collector();

	for (unsigned i = 0; i < sizeof(noise); i++)
		noise[i] = (unsigned char)rnd(256);
	memcpy(&r, noise, sizeof(r));
	r.magic = KRON_WIRE_MAGIC;
	if (s < 0)
		return;
	switch (rnd(6)) {
	case 0: /* says nothing */
		break;
	case 1:
		send(s, &h, rnd(sizeof(h)), MSG_NOSIGNAL);
		break;
	case 2:
		send(s, noise, sizeof(noise), MSG_NOSIGNAL);
		break;
	case 3: /* a question, and no word of what came of it */
		send(s, &h, sizeof(h), MSG_NOSIGNAL);
		break;
	default:
		send(s, &h, sizeof(h), MSG_NOSIGNAL);
		send(s, &r, sizeof(r), MSG_NOSIGNAL);
	}
	if (*slot)
		close(*slot);
	*slot = s;
	done_once("flooded");
}

/* Does it get a REPLY, as this process of the table? */
static bool is_heard_as(const struct kron_proc *procs, uint32_t slot)
{
	struct kron_hello h = hello(KRON_HELLO_MODULES);
	struct kron_reply r = {.kind = 0};
	int s = connect_to_collector();

	h.proc_uid = (uint32_t)(procs[slot].state >> 8);
	h.proc_slot = slot;
	if (s < 0 || send(s, &h, sizeof(h), MSG_NOSIGNAL) != sizeof(h))
		die("ask");
	while (recv(s, &r, sizeof(r), 0) == sizeof(r) && r.kind != KRON_MSG_REPLY)
		;
	close(s);
	return r.kind == KRON_MSG_REPLY;
}

static void speak(void)
{
	const struct kron_proc *procs = at(KRON_PROCS_OFFSET);
	unsigned own = 0, others = 0, heard_as_others = 0;
	char text[100];

	for (uint32_t i = 0; i < 64; i++) {
		if ((procs[i].state & 0xff) != KRON_PROC_LIVE)
			continue;
		if (procs[i].pid == getpid()) {
			own += is_heard_as(procs, i);
			continue;
		}
		others++;
		heard_as_others += is_heard_as(procs, i);
	}
	if (!others)
		return;
	snprintf(text, sizeof(text), "heard as itself: %s, as others: %u", own ? "yes" : "no",
		 heard_as_others);
	done_once(text);
	usleep(1000);
}

static void scribble_on(void *start, size_t bytes, unsigned n)
{
	uint64_t *words = start;

	while (n--) {
		volatile uint64_t *w = &words[rnd(bytes / 8)];

		switch (rnd(5)) {
		case 0:
			*w = 0;
			break;
		case 1:
			*w = ~0ul;
			break;
		case 2:
			*w += rnd(256);
			break;
		case 3:
			*w ^= 1ul << rnd(64);
			break;
		default:
			*w = seed;
		}
	}
}

/* The tables are long, and what is used of them stands in front. */
static void scribble(void)
{
	scribble_on(ctl, sizeof(*ctl), 3);
	scribble_on(at(KRON_CTL_OFFSET), 4096, 2);
	scribble_on(at(KRON_STATES_OFFSET), 8 * 64, 4);
	scribble_on(at(KRON_STATES_OFFSET), 8 * KRON_CHUNKS_MAX, 4);
	scribble_on(at(KRON_PROCS_OFFSET), 64 * 16, 4);
	scribble_on(at(KRON_PROCS_OFFSET), 64 * KRON_PROCS_MAX, 4);
	scribble_on(at(KRON_SOURCES_OFFSET), 16 * 16, 2);
	scribble_on(at(KRON_SOURCES_OFFSET), 16 * KRON_SOURCES_MAX, 2);
	scribble_on(at(KRON_COUNTS_OFFSET), 576 * 8, 2);
	if (rnd(64) == 0)
		usleep(100); /* let them see it */
	if (round_number < 1000)
		round_number += round_number > 0;
	done_once("scribbled");
}

static void machine(void)
{
	scribble_on(at(KRON_MODEL_OFFSET), 4096, 1);
	scribble_on(at(KRON_MODEL_OFFSET) + 4096, 1 << 15, 8);
	scribble_on(at(KRON_MODEL_OFFSET), KRON_MODEL_SIZE, 8);
	if (rnd(64) == 0)
		usleep(100);
	done_once("scribbled");
}

static void hold(void)
{
	uint64_t *states = at(KRON_STATES_OFFSET);

	for (unsigned i = 0; i < KRON_CHUNKS_MAX; i++)
		if (kron_chunk_word_state(states[i]) == KRON_CHUNK_FREE)
			states[i] =
				kron_chunk_word(KRON_CHUNK_OWNED, (uint32_t)getpid(), 0xfffe, 77);
	ctl->when_full = KRON_WHEN_FULL_WAIT;
	ctl->free_count = 0;
	ctl->wake_waiters++;
	done_once("held");
	usleep(500);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	if (argc < 3)
		return 2;
	file = argv[2];
	seed = argc > 3 ? strtoul(argv[3], NULL, 10) * 2654435761u + 1 : 88172645463325252ul;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	read_environment();
	for (;;) {
		if (!strcmp(what, "cut") || !strcmp(what, "punch"))
			cut(*what == 'p');
		else if (!strcmp(what, "flood"))
			flood();
		else if (!strcmp(what, "speak"))
			speak();
		else if (!strcmp(what, "scribble"))
			scribble();
		else if (!strcmp(what, "machine"))
			machine();
		else if (!strcmp(what, "hold"))
			hold();
		else
			return 2;
	}
}
