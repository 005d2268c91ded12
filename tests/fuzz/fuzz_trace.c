/* SPDX-License-Identifier: MIT */
/*
 * fuzz_trace.c - the readers of trace directories against damaged ones.
 *
 *   fuzz_trace DIR SECONDS [SEED]    mutates the trace in DIR, reads each result in every way
 *
 * Nothing may crash, hang or, built with sanitizers as in CI, do anything undefined.  When
 * something does, the directory that did it is what $TMPDIR/kron-fuzz-trace.PID holds.
 *
 * For libFuzzer, build with -DWITH_LIBFUZZER -fsanitize=fuzzer: an input is the files of a
 * directory, each as one byte of which file, two bytes of length, and the content.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/vec.h"
#include "trace/export/export.h"
#include "trace/analysis/filter.h"
#include "trace/report/report.h"
#include "trace/view/view.h"

static const char *const files[] = {"session", "modules", "functions", "refusals", "tasks",
				    "events",  "jumps",   "sleeps",    "switches", "samples"};
#define NFILES (sizeof(files) / sizeof(files[0]))

struct content {
	uint8_t *p;
	size_t n;
	bool absent;
};

static char work_dir[256];

static void make_work_dir(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(work_dir, sizeof(work_dir), "%.200s/kron-fuzz-trace.%d", tmp ? tmp : "/tmp",
		 getpid());
	if (mkdir(work_dir, 0700) && errno != EEXIST) {
		perror(work_dir);
		exit(99);
	}
}

static void write_files(const struct content *c)
{
	char path[300];

	for (size_t i = 0; i < NFILES; i++) {
		FILE *f;

		snprintf(path, sizeof(path), "%s/%s", work_dir, files[i]);
		if (c[i].absent) {
			unlink(path);
			continue;
		}
		f = fopen(path, "w");
		if (!f || fwrite(c[i].p, 1, c[i].n, f) != c[i].n || fclose(f)) {
			perror(path);
			exit(99);
		}
	}
}

static void remove_files(void)
{
	char path[300];

	for (size_t i = 0; i < NFILES; i++) {
		snprintf(path, sizeof(path), "%s/%s", work_dir, files[i]);
		unlink(path);
	}
	rmdir(work_dir);
}

/* An interval.info that names what the trace may have. */
static void write_info(const char *path)
{
	FILE *f = fopen(path, "w");

	if (!f)
		exit(99);
	fputs("1 4 5 \"work\"\n2 0 6 7 \"a\" \"b\"\n3 4 6 7 \"c\" \"d\"\n4 6 3 \"e\"\n"
	      "1 leaf app:leaf%return \"f\"\n",
	      f);
	fclose(f);
}

static void read_relations(struct trace *t, FILE *out)
{
	char info[300];
	struct err err;

	snprintf(info, sizeof(info), "%s.info", work_dir);
	write_info(info);
	for (int i = 0; i < 8; i++) {
		struct edges_options edges = {
			.function = "*", .callers = i & 1, .callees = i & 2, .json = i & 4};
		struct graph_options graph = {.threshold = i, .json = i & 4};
		struct diff_options diff = {.sort = i & 3, .json = i & 4};
		struct intervals_options intervals = {.file = info,
						      .by = (enum profile_by)(i & 3),
						      .virtual = i & 4,
						      .histogram = i & 1,
						      .json = i & 2};

		report_edges(t, &edges, out, &err);
		report_graph(t, &graph, out);
		report_diff(t, t, &diff, out);
		report_intervals(t, &intervals, out, &err);
	}
	unlink(info);
}

static void remove_tree(const char *path)
{
	struct dirent *e;
	DIR *d = opendir(path);

	while (d && (e = readdir(d))) {
		char *below = xasprintf("%s/%s", path, e->d_name);

		if (e->d_name[0] != '.')
			remove_tree(below);
		xfree(below);
	}
	if (d)
		closedir(d);
	remove(path);
}

/* Streams always, one format that is a path each round: those take milliseconds. */
static void export_all(const struct trace *t, FILE *out)
{
	static int (*const paths[])(const struct trace *, const char *, struct err *) = {
#define X(name, function, text) function,
		EXPORT_PATHS(X)
#undef X
	};
	static unsigned turn;
	char *path = xasprintf("%s/export", work_dir);
	struct err err = {.msg = ""};

#define X(name, function, text) function(t, out);
	EXPORT_STREAMS(X)
#undef X
	/* a page so small that calls have to be packed */
	report_view(t,
		    &(struct view_options){
			    .to_ns = UINT64_MAX, .size = 12800, .detail = 10000, .dir = "."},
		    out, &err);
	if (paths[turn++ % (sizeof(paths) / sizeof(paths[0]))](t, path, &err) && !err.msg[0])
		abort(); /* an error without a sentence */
	remove_tree(path);
	xfree(path);
}

/* A sequence with some bytes changed, other ones each round. */
static void read_filtered(struct trace *t, FILE *out)
{
	static const char alphabet[] = "ab*()=!<>&\" 019xdusn\xc3";
	static uint32_t turn;
	char text[] = "work then (leaf* and cpu!=1) within 2us then not data&0xff=3 then \"a b\"";
	struct filter_options o = {.where = turn & 1 ? "entry=*a* or event<9" : NULL,
				   .trigger = text,
				   .pre = turn & 2 ? "3" : "10ns"};
	struct err err = {.msg = ""};

	for (uint32_t i = 0, r = turn++; i < turn % 4; i++) {
		r = r * 1103515245u + 12345;
		text[(r >> 8) % (sizeof(text) - 1)] = alphabet[(r >> 20) % (sizeof(alphabet) - 1)];
	}
	if (trace_filter_set(t, &o, &err) && !err.msg[0])
		abort(); /* an error without a sentence */
	report_dump(t, true, false, out);
}

/* Every reader, every option that changes what is computed. */
static bool read_all(FILE *out)
{
	const struct report_state complete = {.key = "complete"};
	struct profile_options profile = {.by = PROFILE_BY_THREAD};
	struct replay_options replay = {.depth = 3};
	const char *glob = "*a*";
	struct trace *t;
	struct err err = {.msg = ""};

	if (trace_open(&t, work_dir, &err)) {
		if (!err.msg[0])
			abort(); /* an error without a sentence */
		return false;
	}
	for (int sort = PROFILE_TOTAL; sort <= PROFILE_SELF_ON_CPU; sort++) {
		profile.sort = sort;
		profile.json = sort & 1;
		profile.by = (enum profile_by)(sort % 5);
		profile.virtual = sort & 2;
		profile.on_cpu = sort & 1;
		profile.histogram = sort & 4;
		profile.percentiles = sort > PROFILE_MIN;
		profile.totals = sort == PROFILE_MIN;
		report_profile(t, &profile, out);
	}
	read_relations(t, out);
	report_replay(t, &replay, out, &err);
	replay = (struct replay_options){
		.globs = &glob, .nglobs = 1, .no_merge = true, .switches = true};
	report_replay(t, &replay, out, &err);
	report_dump(t, false, true, out);
	report_dump(t, true, true, out);
	report_info(t, &complete, false, out);
	report_info(t, &complete, true, out);
	export_all(t, out);
	read_filtered(t, out);
	trace_close(t);
	return true;
}

#ifdef WITH_LIBFUZZER
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct content c[NFILES];
	static FILE *out;

	if (!out) {
		make_work_dir();
		out = fopen("/dev/null", "w");
	}
	for (size_t i = 0; i < NFILES; i++)
		c[i] = (struct content){.absent = true};
	while (size >= 3) {
		size_t n = (size_t)data[1] | (size_t)data[2] << 8;

		n = n < size - 3 ? n : size - 3;
		c[data[0] % NFILES] = (struct content){.p = (uint8_t *)(uintptr_t)data + 3, .n = n};
		data += 3 + n;
		size -= 3 + n;
	}
	write_files(c);
	read_all(out);
	return 0;
}
#else

/* ---- mutations ---- */

static uint64_t state;

static uint32_t below(size_t n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return n ? (uint32_t)((state >> 33) % n) : 0;
}

#define START 1000000000000u

/* Two threads of the trace that go and come; one goes twice. */
static void make_switches(struct content *c)
{
	for (uint32_t i = 0; i < 40; i++) {
		struct trace_switch s = {.tsc = START + 700 * i,
					 .tid = 1000 + i / 2 % 2,
					 .cpu = i % 3 ? 1 : 0,
					 .kind = (uint16_t)(i == 20 ? TRACE_SWITCH_LOST
							    : i % 2 ? TRACE_SWITCH_IN
							    : i % 5 ? TRACE_SWITCH_OUT
								    : TRACE_SWITCH_PREEMPTED)};

		memcpy(c->p + c->n, &s, sizeof(s));
		c->n += sizeof(s);
	}
}

/* Some functions go and come, at the times of the switches above. */
static void make_sleeps(struct content *c)
{
	for (uint64_t i = 0; i < 20; i++)
		c->n += (size_t)sprintf((char *)c->p + c->n,
					"%" PRIu64 "\t%" PRIu64 "\t%s\t%s\t0-%" PRIu64 " 7 9\n",
					START + i * 2000, START + i * 2000 + 500,
					i & 1 ? "wake" : "sleep",
					i % 5 == 0   ? "asked"
					: i % 5 == 1 ? "groups"
						     : "budget",
					i % 6);
}

static void load(struct content *c, const char *dir)
{
	for (size_t i = 0; i < NFILES; i++) {
		char *path = xasprintf("%s/%s", dir, files[i]);
		FILE *f = fopen(path, "r");

		c[i] = (struct content){.p = xmalloc(1 << 20)};
		if (!f && !strcmp(files[i], "session")) {
			perror(path);
			exit(99);
		}
		/* a table that is not there is an empty one */
		if (!f && !strcmp(files[i], "switches"))
			make_switches(&c[i]);
		if (!f && !strcmp(files[i], "sleeps"))
			make_sleeps(&c[i]);
		if (f) {
			c[i].n = fread(c[i].p, 1, 1 << 20, f);
			fclose(f);
		}
		xfree(path);
	}
}

static void copy(struct content *to, const struct content *from)
{
	for (size_t i = 0; i < NFILES; i++) {
		to[i] = from[i];
		to[i].p = xmalloc(2 * from[i].n + 4096);
		memcpy(to[i].p, from[i].p, from[i].n);
	}
}

static void insert(struct content *c, const void *what, size_t n)
{
	size_t at = below(c->n + 1);

	if (n > 2048 || n > c->n + 64)
		return;
	memmove(c->p + at + n, c->p + at, c->n - at);
	memcpy(c->p + at, what, n);
	c->n += n;
}

static void change_word(struct content *c)
{
	static const uint32_t words[] = {0,          1,          2,           0x7fffffff,
					 0x80000000, 0xffffffff, 0xfffffffe,  0xffffff00,
					 0xffffff01, 0xffffff02, 0x4b43484bu, 20,
					 0x10000,    0xfff0,     0xfffffdff};
	uint32_t w = words[below(sizeof(words) / sizeof(words[0]))];

	if (c->n >= 4)
		memcpy(c->p + (below(c->n - 3) & ~3u), &w, 4);
}

static void insert_text(struct content *c)
{
	static const char *const texts[] = {
		"\t",
		"\n",
		"\\",
		"=",
		"18446744073709551615",
		"4294967295",
		"-1",
		"99999999999999999999",
		"\0",
		"P\t9\t9\t0\texec\t0\t\tx\ty\n",
		"2147483519\t0\t0\t0\tf\n",
		"start_tsc=0\n",
		"end_tsc=18446744073709551615\n",
		"tsc_hz=nan\n",
		"tsc_hz=1e300\n",
		"version=1\n",
		"switches=yes\n",
		"%s%n",
		"\xff\xfe",
		"\xc2\x80",
	};
	const char *s = texts[below(sizeof(texts) / sizeof(texts[0]))];

	insert(c, s, *s ? strlen(s) : 1);
}

static void mutate(struct content *all)
{
	struct content *c = &all[below(3) ? NFILES - 1 : below(NFILES)];
	uint8_t piece[2048];
	size_t from = below(c->n), n = below(c->n - from < 2000 ? c->n - from : 2000);

	switch (below(9)) {
	case 0:
		c->n = below(c->n + 1);
		break;
	case 1: /* cut out */
		memmove(c->p + from, c->p + from + n, c->n - from - n);
		c->n -= n;
		break;
	case 2: /* twice */
		memcpy(piece, c->p + from, n);
		insert(c, piece, n);
		break;
	case 3:
		insert_text(c);
		break;
	case 4:
		c->absent = below(4) == 0;
		break;
	case 5:
	case 6:
		change_word(c);
		break;
	default:
		for (uint32_t i = below(8) + 1; i > 0 && c->n; i--)
			c->p[below(c->n)] = (uint8_t)below(256);
	}
}

/* An OTF2 library that fails is left by longjmp(), with all that it holds: export_otf2.c. */
int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
	return 1;
}

int main(int argc, char **argv)
{
	struct content base[NFILES], now[NFILES];
	uint64_t rounds = 0, accepted = 0, seed;
	time_t end;
	FILE *out = fopen("/dev/null", "w");

	if (argc < 3 || !out) {
		fputs("usage: fuzz_trace DIR SECONDS [SEED]\n", stderr);
		return 99;
	}
	seed = argc > 3 ? strtoull(argv[3], NULL, 10) : (uint64_t)time(NULL);
	end = time(NULL) + atoi(argv[2]);
	load(base, argv[1]);
	make_work_dir();
	fprintf(stderr, "fuzz_trace: seed %llu, working in %s\n", (unsigned long long)seed,
		work_dir);
	for (; time(NULL) < end; rounds++) {
		state = seed + rounds * 7919;
		copy(now, base);
		for (uint32_t i = below(5) + 1; i > 0; i--)
			mutate(now);
		write_files(now);
		accepted += read_all(out);
		for (size_t i = 0; i < NFILES; i++)
			xfree(now[i].p);
	}
	for (size_t i = 0; i < NFILES; i++)
		xfree(base[i].p);
	remove_files();
	fclose(out);
	printf("%llu damaged traces read, %llu of them accepted as traces\n",
	       (unsigned long long)rounds, (unsigned long long)accepted);
	return accepted ? 0 : 1; /* a slow machine may see none that is refused */
}
#endif
