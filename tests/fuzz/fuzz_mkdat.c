/* SPDX-License-Identifier: MIT */
/*
 * fuzz_mkdat.c - hostile mk.dat files, interval.info files and board memories against their
 * readers.
 *
 *   fuzz_mkdat [-t SECONDS] [-s SEED]      prints TAP; the seed is in its output
 *
 * An input is made as a good one that is damaged.  Nothing may crash, hang or, built with
 * sanitizers as in CI, do anything undefined; and every byte of mk.dat must be in a sample or
 * be counted as damaged.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/vec.h"
#include "board/bus/local_memory.h"
#include "board/toolkit/histogram.h"
#include "board/toolkit/rpt_print.h"

enum { ROOM = 1 << 16 };

struct bytes {
	uint8_t v[ROOM];
	size_t n;
};

static uint64_t state;
static FILE *nowhere;

static uint32_t rnd(uint32_t n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return n ? (uint32_t)(state >> 33) % n : 0;
}

static uint64_t rnd64(void)
{
	static const uint64_t odd[] = {
		0, 1, 0xffffffff, 0x80000000, 0x00ffffffffffffff, 0x0080000000000000, UINT64_MAX};
	uint64_t v = (uint64_t)rnd(1u << 31) << 33 ^ (uint64_t)rnd(1u << 31) << 11 ^ rnd(1u << 31);

	return rnd(3) ? v >> rnd(64) : odd[rnd(7)];
}

/* ---- good inputs ---- */

static void put_word(struct bytes *b, uint32_t w)
{
	memcpy(b->v + b->n, &w, 4);
	b->n += 4;
}

static void make_samples(struct bytes *b)
{
	uint64_t time = rnd64();
	uint32_t n = rnd(300);

	b->n = 0;
	for (uint32_t i = 0; i < n; i++) {
		bool resource = !rnd(6);

		time += rnd(20) ? rnd(1000) : rnd64();
		put_word(b, rnd(8) << 29 | (resource ? 3u : 2u) << 27 | (time >> 32 & 0xffffff));
		put_word(b, (uint32_t)time);
		put_word(b, rnd(3));
		put_word(b, rnd(4) ? 0 : (uint32_t)rnd64());
		put_word(b, rnd(8));
		for (int c = 0; resource && c < 16; c++)
			put_word(b, (uint32_t)rnd64());
	}
}

static void put_text(struct bytes *b, const char *s)
{
	memcpy(b->v + b->n, s, strlen(s));
	b->n += strlen(s);
}

static void make_info(struct bytes *b)
{
	char line[200];

	b->n = 0;
	for (uint32_t n = 1 + rnd(8); n > 0; n--) {
		uint32_t class = 1 + rnd(4);
		bool long_one = class == 2 || class == 3;

		snprintf(line, sizeof(line), "%u %u %u", class, rnd(8), rnd(8));
		put_text(b, line);
		snprintf(line, sizeof(line), long_one ? " %u" : " ", rnd(8));
		put_text(b, line);
		put_text(b, long_one ? " \"one \\\"\" \"two\\\\\" # both\n" : "\"name\"\n");
	}
}

/* ---- damage ---- */

static void insert(struct bytes *b, const void *what, size_t n)
{
	size_t at = rnd((uint32_t)b->n + 1);

	if (b->n + n > ROOM)
		return;
	memmove(b->v + at + n, b->v + at, b->n - at);
	memcpy(b->v + at, what, n);
	b->n += n;
}

static void damage(struct bytes *b, const char *const *texts, uint32_t ntexts)
{
	uint8_t piece[256];
	size_t from = rnd((uint32_t)b->n), n = rnd(200);
	const char *text = texts[rnd(ntexts)];

	n = n < b->n - from ? n : b->n - from;
	memcpy(piece, b->v + from, n);
	switch (rnd(6)) {
	case 0:
		b->n = from;
		break;
	case 1:
		memmove(b->v + from, b->v + from + n, b->n - from - n);
		b->n -= n;
		break;
	case 2:
		insert(b, piece, n);
		break;
	case 3:
		insert(b, text, strlen(text) + !rnd(8));
		break;
	default:
		for (uint32_t i = 1 + rnd(8); i > 0 && b->n; i--)
			b->v[rnd((uint32_t)b->n)] = (uint8_t)rnd(256);
	}
}

static const char *const words[] = {"\x10", "\x18\x18", "\xff\xff\xff\xff", "\x10\x10\x10\x10",
				    "junk that is longer than a sample, twenty bytes and more"};
static const char *const texts[] = {
	"\"",   "\\", "#",        "\n",   " 99999999999999999999 ", "0x", "-1 ",
	"\r\n", "\t", "4 1 2 \"", "\"\"", "1 1 1 \"again\"\n"};

/* ---- readers ---- */

static void print_all(struct tally *t, const struct intervals *m, const struct mkdat_count *count)
{
	struct rpt r = {.tally = t,
			.intervals = m,
			.count = count,
			.hz = 1 + rnd64() % 1000000000000ull,
			.nbins = rnd(3) ? rnd(20) : 0,
			.histogram = t->keep_groups,
			.summary = t->keep_all,
			.chronological = rnd(2),
			.verbose = rnd(2)};

	tally_sort(t);
	rpt_print_text(&r, nowhere);
	rpt_print_json(&r, nowhere);
}

static uint64_t read_samples(const struct bytes *data, struct intervals *m,
			     struct mkdat_count *count)
{
	int fd = memfd_create("mk.dat", MFD_CLOEXEC);
	struct mkdat_sample s;
	struct mkdat r;
	struct err err;

	if (fd < 0 || write(fd, data->v, data->n) != (ssize_t)data->n || lseek(fd, 0, SEEK_SET))
		exit(99);
	mkdat_open(&r, fd);
	if (!rnd(4))
		intervals_in_order(m); /* even where they are not */
	while (mkdat_next(&r, &s, &err) > 0)
		intervals_sample(m, &(struct interval_sample){.time = (int64_t)(s.time << rnd(9)),
							      .data = s.data,
							      .mark = s.time,
							      .source = s.source,
							      .cpu = s.cpu});
	*count = r.count;
	mkdat_close(&r);
	close(fd);
	if (count->bytes != data->n || count->trace * KRON_SAMPLE_SIZE +
						       count->resource * KRON_RESOURCE_SIZE +
						       count->damaged + count->cut !=
					       data->n)
		abort(); /* a byte went missing */
	return count->trace + count->resource;
}

static void report(const struct interval_info *info, const struct bytes *data)
{
	struct tally t = {
		.by = (int)rnd(3), .wide = rnd(2), .keep_groups = rnd(2), .keep_all = rnd(2)};
	struct mkdat_count count;
	struct intervals *m = intervals_new(info, (int)rnd(3), 1 + rnd(64), tally_add, &t);

	tally_init(&t, info);
	read_samples(data, m, &count);
	intervals_finish(m);
	print_all(&t, m, &count);
	intervals_free(m);
	tally_free(&t);
}

static const char *find_name(void *ctx, const char *name, bool is_exit, uint64_t *event)
{
	(void)ctx;
	*event = 2 * strlen(name) + is_exit;
	return rnd(4) ? NULL : "is not a function";
}

static bool read_info(struct interval_info *info, const struct bytes *text)
{
	FILE *f = text->n ? fmemopen((void *)(uintptr_t)text->v, text->n, "r") : NULL;
	struct interval_names names = {.find = find_name};
	struct err err;
	int code;

	if (!f)
		return false;
	code = interval_info_read(info, f, 64, rnd(2) ? &names : NULL, &err);
	fclose(f);
	if (code && !info->errors.n)
		abort(); /* an error without a sentence */
	return !code;
}

/* ---- a board whose memory holds anything ---- */

static uint8_t *window;

static uint32_t read32(struct bus *b, uint32_t offset)
{
	uint32_t v;

	(void)b;
	memcpy(&v, window + offset, 4);
	return v;
}

static void read_memory(struct bus *b, uint32_t first, uint32_t n, uint32_t *out)
{
	(void)b;
	if (first > KRON_BOARD_MEMORY_WORDS || n > KRON_BOARD_MEMORY_WORDS - first)
		abort();
	memcpy(out, window + KRON_BOARD_MEMORY + 4 * (size_t)first, 4 * (size_t)n);
}

static const struct bus_ops fake_ops = {.read32 = read32, .read_memory = read_memory};

static void read_board(const struct bytes *data)
{
	struct bus b = {.ops = &fake_ops};
	struct local_range range = {.has_start = !rnd(3), .has_end = !rnd(3)};
	struct local_memory m;
	struct err err;
	uint32_t config = rnd(2) ? KRON_CONFIG_WRAPB : 0;
	uint32_t pointer = rnd(2) ? (uint32_t)data->n / 4 + rnd(9) : (uint32_t)rnd64();
	uint32_t at = rnd(2) ? 0 : KRON_BOARD_MEMORY_SIZE - (uint32_t)data->n / 4 * 4;

	range.start = rnd(KRON_BOARD_MEMORY_WORDS);
	range.end = rnd(KRON_BOARD_MEMORY_WORDS + 1);
	memcpy(window + KRON_BOARD_CONFIG, &config, 4);
	memcpy(window + KRON_BOARD_MAP, &pointer, 4);
	memcpy(window + KRON_BOARD_MEMORY + at, data->v, data->n / 4 * 4);
	if (!local_memory_read(&m, &b, &range, &err)) {
		if (m.n > KRON_BOARD_MEMORY_WORDS)
			abort();
		local_memory_free(&m);
	} else if (!err.msg[0]) {
		abort();
	}
}

/* ---- */

static void one(uint64_t round, uint64_t *accepted)
{
	static struct bytes data, text;
	struct interval_info info = {0};

	make_samples(&data);
	make_info(&text);
	for (uint32_t i = rnd(6); i > 0; i--)
		damage(&data, words, sizeof(words) / sizeof(*words));
	for (uint32_t i = rnd(3); i > 0; i--)
		damage(&text, texts, sizeof(texts) / sizeof(*texts));
	if (read_info(&info, &text)) {
		report(&info, &data);
		++*accepted;
	}
	interval_info_free(&info);
	if (round % 64 == 0) /* slow: 16 MiB */
		read_board(&data);
}

int main(int argc, char **argv)
{
	double seconds = getenv("KRON_FUZZ_SECONDS") ? atof(getenv("KRON_FUZZ_SECONDS")) : 10;
	uint64_t seed = (uint64_t)time(NULL), rounds = 0, accepted = 0;
	time_t end;
	int c;

	while ((c = getopt(argc, argv, "t:s:")) != -1) {
		if (c == 't')
			seconds = atof(optarg);
		else if (c == 's')
			seed = strtoull(optarg, NULL, 0);
		else
			return 2;
	}
	nowhere = fopen("/dev/null", "w");
	window = mmap(NULL, KRON_BOARD_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	if (!nowhere || window == MAP_FAILED)
		return 99;
	printf("# fuzz_mkdat -s %" PRIu64 "\n", seed);
	fflush(stdout);
	for (end = time(NULL) + (time_t)seconds; time(NULL) < end; rounds++) {
		state = seed + rounds * 7919;
		one(rounds, &accepted);
	}
	printf("# %" PRIu64 " inputs, %" PRIu64 " of them with a good interval.info\n", rounds,
	       accepted);
	printf("%s 1 - hostile mk.dat, interval.info and board memory\n1..1\n",
	       accepted && accepted < rounds ? "ok" : "not ok");
	fclose(nowhere);
	munmap(window, KRON_BOARD_SIZE);
	return 0;
}
