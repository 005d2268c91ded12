/* SPDX-License-Identifier: MIT */
/*
 * fuzz_cable.c - what a collector may get over the cable, damaged.
 *
 *   fuzz_cable [-t SECONDS] [-s SEED]      prints TAP; the seed is in its output
 *
 * A good conversation is made up, of a few files that grow piece by piece, some pieces twice; then, but for some rounds, it
 * is damaged, and it comes in pieces of any size.  Nothing may crash or, built with sanitizers as in CI, do anything
 * undefined.  Undamaged, the files must be what was sent, to the byte; damaged, they must be as long as the collector
 * says, their bytes those of the conversation's pieces up to where the damage is, and nothing may lie beside them.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "collect/cable/serve.h"
#include "tests/fuzz/fuzz.h"

enum { ROOM = 1 << 17, FILE_ROOM = 1 << 14 };

static struct {
	uint8_t v[ROOM];
	size_t n;
} stream;
static struct {
	uint8_t v[FILE_ROOM];
	size_t n;
} files[CABLE_FILES];

static void put(const void *v, size_t n)
{
	memcpy(stream.v + stream.n, v, n);
	stream.n += n;
}

static void put_frame(enum cable_type type, unsigned file, uint64_t offset, const void *v, size_t n)
{
	struct cable_head h = {.magic = CABLE_MAGIC,
			       .type = (uint8_t)type,
			       .file = (uint8_t)file,
			       .nbytes = (uint32_t)n,
			       .offset = offset};

	put(&h, sizeof(h));
	put(v, n);
}

static void put_piece(void)
{
	unsigned file = (unsigned)rnd(CABLE_FILES);
	size_t n = 1 + rnd(600), at = files[file].n;

	if (at + n > FILE_ROOM)
		return;
	for (size_t i = 0; i < n; i++)
		files[file].v[at + i] = (uint8_t)rnd(256);
	files[file].n += n;
	if (at && !rnd(4)) { /* some of it again, as after a broken link */
		size_t again = 1 + rnd(at);

		put_frame(CABLE_DATA, file, at - again, files[file].v + at - again, again + n);
		return;
	}
	put_frame(CABLE_DATA, file, at, files[file].v + at, n);
}

static void make_conversation(const uint8_t id[CABLE_ID])
{
	struct cable_hello hello = {.version = CABLE_VERSION, .name = "node"};
	struct cable_sizes sizes;
	unsigned pieces = (unsigned)rnd(40);

	stream.n = 0;
	memset(files, 0, sizeof(files));
	memcpy(hello.id, id, CABLE_ID);
	put_frame(CABLE_HELLO, 0, 0, &hello, sizeof(hello));
	for (unsigned i = 0; i < pieces; i++) {
		struct cable_ping ping = {rnd64()};

		put_piece();
		if (!rnd(5))
			put_frame(CABLE_PING, 0, 0, &ping, sizeof(ping));
	}
	for (unsigned i = 0; i < CABLE_FILES; i++)
		sizes.v[i] = files[i].n;
	put_frame(CABLE_DONE, 0, 0, &sizes, sizeof(sizes));
}

static void damage(void)
{
	static const uint32_t odd[] = {0, 1, 0xff, 0x7fffffff, 0x80000000, 0xffffffff, CABLE_MAGIC};
	unsigned times = 1 + (unsigned)rnd(6);

	while (times-- && stream.n > 8) {
		size_t at = rnd(stream.n - 4), n = rnd(40);

		switch (rnd(5)) {
		case 0:
			stream.v[at] ^= (uint8_t)(1u << rnd(8));
			break;
		case 1:
			memcpy(stream.v + at, &odd[rnd(sizeof(odd) / sizeof(odd[0]))], 4);
			break;
		case 2:
			stream.n = at;
			break;
		case 3: /* something is missing */
			n = n < stream.n - at ? n : stream.n - at;
			memmove(stream.v + at, stream.v + at + n, stream.n - at - n);
			stream.n -= n;
			break;
		default: /* something comes twice */
			if (stream.n + n > ROOM || at + n > stream.n)
				break;
			memmove(stream.v + at + n, stream.v + at, stream.n - at);
			stream.n += n;
		}
	}
}

static const char *check_files(struct cable_server *s, bool good)
{
	for (size_t i = 0; i < s->nodes.n; i++) {
		struct cable_node *n = s->nodes.v[i];

		for (unsigned f = 0; f < CABLE_FILES; f++) {
			uint8_t got[FILE_ROOM + 1];
			char path[CABLE_NAME + 64];
			ssize_t length;
			int fd;

			snprintf(path, sizeof(path), "%s/%s", n->name, cable_files[f]);
			fd = openat(s->dirfd, path, O_RDONLY | O_CLOEXEC);
			if (fd < 0) {
				if (n->has.v[f])
					return "a file that is said to be there is not";
				continue;
			}
			length = pread(fd, got, sizeof(got), 0);
			close(fd);
			if (length < 0 || (uint64_t)length != n->has.v[f])
				return "a file is not as long as it is said to be";
			if (good &&
			    ((size_t)length != files[f].n || memcmp(got, files[f].v, files[f].n)))
				return "a file is not what was sent";
		}
	}
	return NULL;
}

/* Names in a folder: that are not a trace's, or "". */
static bool is_clean(const char *dir, bool remove_it)
{
	DIR *d = opendir(dir);
	struct dirent *de;
	bool clean = true;

	while (d && (de = readdir(d))) {
		bool known = !strcmp(de->d_name, "cable") || de->d_name[0] == '.';

		for (unsigned f = 0; f < CABLE_FILES; f++)
			known |= !strcmp(de->d_name, cable_files[f]);
		clean &= known;
		if (remove_it && de->d_name[0] != '.')
			unlinkat(dirfd(d), de->d_name, 0);
	}
	if (d)
		closedir(d);
	return clean;
}

static bool clean_up(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *de;
	bool clean = true;
	char path[512];

	while (d && (de = readdir(d))) {
		if (de->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%.200s", dir, de->d_name);
		clean &= is_clean(path, true);
		rmdir(path);
	}
	if (d)
		closedir(d);
	return clean;
}

static const char *one_round(const char *dir)
{
	struct cable_server s = {.quiet = true};
	bool good = !rnd(4);
	uint8_t id[CABLE_ID];
	struct cable_conn *c;
	const char *why = NULL;
	struct err err;
	size_t at = 0;

	for (size_t i = 0; i < CABLE_ID; i++)
		id[i] = (uint8_t)rnd(256);
	if (cable_server_open(&s, dir, &err))
		return "the folder cannot be opened";
	make_conversation(id);
	if (!good)
		damage();
	c = cable_conn_new(&s, -1, "fuzz");
	while (at < stream.n && c->state != CABLE_ENDED) {
		size_t n = 1 + rnd(rnd(2) ? 4000 : 30);

		n = n < stream.n - at ? n : stream.n - at;
		cable_conn_take(&s, c, stream.v + at, n);
		c->nout = 0; /* it was taken */
		at += n;
	}
	if (good && (c->state != CABLE_OPEN || !c->node->done))
		why = "a good conversation was refused";
	if (!why)
		why = check_files(&s, good);
	cable_server_close(&s);
	return clean_up(dir) || why ? why : "there is something that nobody sent";
}

int main(int argc, char **argv)
{
	struct fuzz_options o = {.seed = clock_ns(CLOCK_REALTIME) | 1};
	char dir[] = "/tmp/fuzz-cable.XXXXXX";
	const char *why = NULL;
	uint64_t rounds = 0, end;

	if (!fuzz_options(&o, argc, argv) || !mkdtemp(dir))
		return 99;
	printf("1..1\n# seed %" PRIu64 "\n", o.seed);
	fflush(stdout);
	end = clock_ns(CLOCK_MONOTONIC) + (uint64_t)(o.seconds * 1e9);
	while (!why && clock_ns(CLOCK_MONOTONIC) < end) {
		why = one_round(dir);
		rounds++;
	}
	clean_up(dir);
	rmdir(dir);
	printf("%sok 1 - %" PRIu64 " conversations%s%s\n", why ? "not " : "", rounds,
	       why ? ": " : "", why ? why : "");
	return why != NULL;
}
