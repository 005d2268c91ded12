/* SPDX-License-Identifier: MIT */
/*
 * latency.c - one client of redis, over a Unix socket, that asks as soon as it is answered.
 *
 *   latency SOCKET SECONDS OUT    a pair of uint64_t for each question: when it was sent, CLOCK_MONOTONIC, and
 *                                 how long it took, in nanoseconds
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int main(int argc, char **argv)
{
	static const char ask[] = "SET key value\r\n";
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int sock = socket(AF_UNIX, SOCK_STREAM, 0);
	FILE *out = argc == 4 ? fopen(argv[3], "wb") : NULL;
	uint64_t end, sent, pair[2];
	char answer[64];

	if (!out)
		return 2;
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", argv[1]);
	if (connect(sock, (struct sockaddr *)&at, sizeof(at)))
		return 3;
	end = now_ns() + (uint64_t)(atof(argv[2]) * 1e9);
	while ((sent = now_ns()) < end) {
		if (write(sock, ask, sizeof(ask) - 1) < 0 ||
		    read(sock, answer, sizeof(answer)) != 5 || memcmp(answer, "+OK\r\n", 5))
			return 4;
		pair[0] = sent;
		pair[1] = now_ns() - sent;
		fwrite(pair, sizeof(pair), 1, out);
	}
	return fclose(out) ? 5 : 0;
}
