/* SPDX-License-Identifier: MIT */
/*
 * net_talk.c - talks over TCP, and says how many calls have transferred how many bytes.
 *
 *   net_talk serve FILE ADDRESS WAY [N]     listens, writes its port to FILE, answers N connections
 *   net_talk call PORT ADDRESS WAY [N]      makes them
 *   net_talk fds OUT IN                     sends on one inherited descriptor, receives on the other
 *
 * At its end each process prints "tally PID SENDS BYTES RECEIVES BYTES", of calls that have transferred something.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 40, MOST = 50000, BIG = 8 << 20 };
static struct {
	unsigned long sends, sent, receives, received;
} tally;
static char *buffer;
static const char *way;
static unsigned state;

static bool is(const char *name)
{
	return !strcmp(way, name);
}

static unsigned draw(unsigned n)
{
	return (unsigned)rand_r(&state) % n;
}

static void say(void)
{
	printf("tally %d %lu %lu %lu %lu\n", (int)getpid(), tally.sends, tally.sent, tally.receives,
	       tally.received);
	fflush(stdout);
}

static void nap(unsigned ms)
{
	usleep(ms * 1000);
}

/* ---- each way to send and to receive ---- */

static ssize_t send_some(int fd, size_t n, unsigned how)
{
	struct iovec v[2] = {{buffer, n / 2}, {buffer + n / 2, n - n / 2}};
	struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
	static int file = -1;

	if (file < 0) {
		file = memfd_create("bytes", 0);
		if (ftruncate(file, BIG))
			err(1, "ftruncate");
	}
	switch (how) {
	case 0:
		return send(fd, buffer, n, 0);
	case 1:
		return sendto(fd, buffer, n, 0, NULL, 0);
	case 2:
		return sendmsg(fd, &m, 0);
	case 3:
		return write(fd, buffer, n);
	case 4:
		return writev(fd, v, 2);
	default:
		return sendfile(fd, file, &(off_t){0}, n);
	}
}

static ssize_t receive_some(int fd, size_t n, unsigned how)
{
	struct iovec v[2] = {{buffer, n / 2}, {buffer + n / 2, n - n / 2}};
	struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};

	switch (how) {
	case 0:
		return recv(fd, buffer, n, 0);
	case 1:
		return recvfrom(fd, buffer, n, 0, NULL, NULL);
	case 2:
		return recvmsg(fd, &m, 0);
	case 3:
		return read(fd, buffer, n);
	default:
		return readv(fd, v, 2);
	}
}

static void send_all(int fd, size_t n, unsigned how)
{
	while (n) {
		const ssize_t got = send_some(fd, n, how);

		if (got < 0)
			err(1, "send");
		tally.sends++;
		tally.sent += (unsigned long)got;
		n -= (size_t)got;
	}
}

/* Until the end of the stream, or so many. */
static void receive_all(int fd, size_t most)
{
	ssize_t got = 1;

	for (size_t n = 0; n < most && got; n += (size_t)got) {
		const size_t want = 1 + draw(MOST);

		if (!draw(4) && is("every")) { /* none of these takes anything out of the stream */
			(void)recv(fd, buffer, want, MSG_PEEK);
			(void)recv(fd, buffer, 0, 0);
			(void)recv(fd, buffer, want, MSG_ERRQUEUE | MSG_DONTWAIT);
		}
		got = receive_some(fd, want < most - n ? want : most - n, draw(5));
		if (got < 0)
			err(1, "receive");
		tally.receives += got > 0;
		tally.received += (unsigned long)got;
	}
}

/* ---- ways ---- */

static void *send_big(void *arg)
{
	if (send(*(int *)arg, buffer, BIG, 0) != BIG)
		err(1, "send");
	__atomic_add_fetch(&tally.sends, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&tally.sent, BIG, __ATOMIC_RELAXED);
	return NULL;
}

/* Two that send at the same time: nobody reads before both have begun. */
static void send_by_threads(int fd)
{
	pthread_t t[2];

	send_all(fd, 10, 0);
	for (int i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, send_big, &fd);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	send_all(fd, 20, 0);
}

/* The descriptor has gone to a child, under another number, while its own number is that of another socket. */
static void send_by_child(int fd)
{
	const int other = dup(fd);
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child < 0)
		err(1, "fork");
	if (!child) {
		memset(&tally, 0, sizeof(tally));
		close(fd);
		if (socket(AF_INET, SOCK_STREAM, 0) != fd)
			errx(1, "not the lowest descriptor");
		for (int i = 0; i < ROUNDS; i++)
			send_all(other, 1 + draw(MOST), draw(6));
		say();
		_exit(0);
	}
	waitpid(child, NULL, 0);
	close(other);
}

static void send_untold(int fd)
{
	struct iovec v = {buffer, 100};
	struct mmsghdr m = {.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1}};

	send_all(fd, 10, 0);
	if (sendmmsg(fd, &m, 1, 0) != 1)
		err(1, "sendmmsg");
	send_all(fd, 20, 0);
}

/* What no probe on the C library sees. */
static void send_unseen(int fd)
{
	send_all(fd, 10, 0);
	if (syscall(SYS_sendto, fd, buffer, 100, 0, NULL, 0) != 100)
		err(1, "sendto");
	send_all(fd, 20, 0);
}

static void talk_of_other_families(void)
{
	int pair[2], udp = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || bind(udp, (void *)&a, sizeof(a)) ||
	    getsockname(udp, (void *)&a, &n) || connect(udp, (void *)&a, sizeof(a)))
		err(1, "sockets");
	if (send(pair[0], buffer, 5, 0) != 5 || recv(pair[1], buffer, 10, 0) != 5 ||
	    send(udp, buffer, 7, 0) != 7 || recv(udp, buffer, 10, 0) != 7)
		err(1, "not as sent");
}

static void send_in_way(int fd)
{
	if (is("threads"))
		send_by_threads(fd);
	else if (is("untold"))
		send_untold(fd);
	else if (is("unseen"))
		send_unseen(fd);
	else if (is("child"))
		send_by_child(fd);
	for (int i = 0; i < ROUNDS && (is("every") || is("child") || is("again") || is("sealed"));
	     i++)
		send_all(fd, 1 + draw(MOST), draw(6));
}

/* A question and its answer, time after time; one of the two is slow. */
static void play(int fd, bool asks, unsigned ms)
{
	for (int i = 0; i < 10; i++) {
		if (asks) {
			nap(ms);
			send_all(fd, 100, 0);
			receive_all(fd, 200);
			continue;
		}
		if (is("poll"))
			poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1);
		receive_all(fd, 100);
		nap(ms);
		send_all(fd, 200, 0);
	}
}

/* ---- both ends ---- */

static socklen_t address_of(struct sockaddr_storage *out, const char *text, unsigned port)
{
	struct sockaddr_in *v4 = (void *)out;
	struct sockaddr_in6 *v6 = (void *)out;

	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)port);
		return sizeof(*v4);
	}
	if (inet_pton(AF_INET6, text, &v6->sin6_addr) != 1)
		errx(1, "%s is no address", text);
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons((uint16_t)port);
	return sizeof(*v6);
}

static bool plays(void)
{
	return is("server") || is("client") || is("poll");
}

static void serve(const char *file, const char *address, int n)
{
	struct sockaddr_storage a;
	socklen_t size = address_of(&a, address, 0);
	const int fd = socket(a.ss_family, SOCK_STREAM, 0);
	char part[4096];
	FILE *f;

	if (fd < 0 || bind(fd, (void *)&a, size) || listen(fd, 8) ||
	    getsockname(fd, (void *)&a, &size))
		err(1, "listen");
	snprintf(part, sizeof(part), "%s.part", file);
	f = fopen(part, "w");
	fprintf(f, "%d\n", ntohs(((struct sockaddr_in *)&a)->sin_port));
	if (fclose(f) || rename(part, file))
		err(1, "%s", file);
	for (int i = 0; i < n; i++) {
		const int c =
			i & 1 ? accept(fd, NULL, NULL) : accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		if (c < 0)
			err(1, "accept");
		if (is("threads"))
			nap(300);
		if (plays()) {
			play(c, false, is("server") ? 30 : 0);
		} else {
			receive_all(c, SIZE_MAX);
			if (is("every"))
				send_in_way(c);
		}
		shutdown(c, SHUT_WR);
		close(c);
	}
}

/* The same local port time after time: no connection is left that would keep it. */
static void keep_port(int fd, struct sockaddr_storage *own)
{
	const struct linger now = {.l_onoff = 1};

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) ||
	    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)) ||
	    bind(fd, (void *)own, sizeof(struct sockaddr_in)) ||
	    getsockname(fd, (void *)own, &(socklen_t){sizeof(*own)}))
		err(1, "bind");
}

/* From here on nobody else makes system calls in this process. */
static void seal(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog all = {1, &allow};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all))
		err(1, "prctl");
}

static void call(unsigned port, const char *address, int n)
{
	struct sockaddr_storage own;

	address_of(&own, address, 0);
	if (is("sealed"))
		seal();
	if (is("every"))
		talk_of_other_families();
	for (int i = 0; i < n; i++) {
		struct sockaddr_storage a;
		const socklen_t size = address_of(&a, address, port);
		const int fd = socket(a.ss_family, SOCK_STREAM, 0);

		if (is("again"))
			keep_port(fd, &own);
		if (fd < 0 || connect(fd, (void *)&a, size))
			err(1, "connect");
		if (plays())
			play(fd, true, is("server") ? 0 : 30);
		else
			send_in_way(fd);
		shutdown(fd, SHUT_WR);
		receive_all(fd, SIZE_MAX);
		close(fd);
	}
}

int main(int argc, char **argv)
{
	if (argc < 4)
		errx(2, "what?");
	buffer = calloc(1, BIG);
	way = argc > 4 ? argv[4] : "";
	state = (unsigned)getpid();
	if (!strcmp(argv[1], "serve")) {
		serve(argv[2], argv[3], argc > 5 ? atoi(argv[5]) : 1);
	} else if (!strcmp(argv[1], "call")) {
		call((unsigned)atoi(argv[2]), argv[3], argc > 5 ? atoi(argv[5]) : 1);
	} else {
		send_all(atoi(argv[2]), 1000, 0);
		receive_all(atoi(argv[3]), 1000);
	}
	say();
	return 0;
}
