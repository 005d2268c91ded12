/* SPDX-License-Identifier: MIT */
/*
 * fuzz_probes.c - hostile probe files: whatever the text, the parser ends, stays in its memory
 * (build with --enable-asan to see it), and either takes the text or says where it is wrong.
 *
 * LLVMFuzzerTestOneInput() serves libFuzzer (clang -fsanitize=fuzzer -DKRON_LIBFUZZER); without it
 * main() puts pieces of the language together, and breaks some.
 *
 *     fuzz_probes [-t SECONDS] [-s SEED] [-r FILE]
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "probes/probe.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void die(const char *what, const struct err *err)
{
	printf("not ok 1 - hostile probe files: %s: %s\n1..1\n", what, err->msg);
	abort();
}

/* FILE:LINE:COLUMN: and three lines, none of which holds what a terminal would obey. */
static void check_message(const struct err *err)
{
	unsigned lines = 0;

	if (strncmp(err->msg, "fuzz:", 5) || err->msg[5] < '1' || err->msg[5] > '9')
		die("a message without its place", err);
	for (const char *c = err->msg; *c; c++) {
		lines += *c == '\n';
		if (*c != '\n' && ((unsigned char)*c < 0x20 || *c == 0x7f))
			die("a control character in a message", err);
	}
	if (lines != 2 || err->msg[strlen(err->msg) - 1] != '^')
		die("a message without a caret", err);
}

static void check_spec(const struct probe_spec *s, const struct err *err)
{
	static const char *const names[] = {"main", "/usr/lib/libc.so.6", "", "a::b(int)"};
	bool has_name = s->function.text || s->place == SPEC_SOURCE || s->place == SPEC_ADDRESS ||
			(s->provider && s->marker);

	if (!s->text || !s->where || !has_name || s->level >= PROBE_LEVELS ||
	    s->place > SPEC_USDT || s->kind > SPEC_STORE || (s->payload && !s->payload_name) ||
	    (s->payload == SPEC_PAYLOAD_REGISTER && s->value > 15))
		die("a probe that says nothing", err);
	for (size_t i = 0; i < 4; i++) {
		probe_spec_wants(s, &(struct module_name){names[i], names[3 - i]}, false);
		if (s->function.text)
			spec_name_matches(&s->function, names[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct probe_set set = {0};
	struct err err = {{0}};
	int code = probe_set_add_text(&set, "fuzz", (const char *)data, size, &err);

	if (code == -EINVAL)
		check_message(&err);
	else if (code)
		die("another error", &err);
	vec_for(&set.specs, s)
		check_spec(s, &err);
	probe_set_free(&set);
	return 0;
}

#ifndef KRON_LIBFUZZER

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static const char *const pieces[] = {
	"main",
	"libc",
	":",
	"::",
	"=",
	"%",
	"%return",
	"%after",
	"%loads",
	"%insns",
	"%callers",
	"+4",
	"+0x1f",
	"@a.c",
	"a.c:12",
	"/re(x|y)/",
	"/",
	"\\",
	"\"",
	"(",
	")",
	"<",
	">",
	"operator+",
	"operator",
	"operator()",
	" ",
	" $arg1",
	" $retval",
	" $addr",
	" x=%rdi",
	" %xmm0",
	" 42",
	" -1",
	" 0xfffffffff",
	" count:3",
	" count:",
	" store:8=1",
	" store:",
	" resource",
	" trace",
	"\n",
	"# c\n",
	"level a=3\n",
	"level a = 9\n",
	"level ",
	"a:",
	"5:1234=",
	"3:e=",
	"sdt_p:n",
	"%p:n",
	"uprobe:",
	"usdt:",
	"uretprobe:",
	"0x401000",
	"99999999999999999999",
	"*",
	"[",
	"?",
	"include no-such-pack-at-all\n",
	"\t",
	"\r\n",
	"ns::f(int, char const*)",
};

static size_t make_input(char *out, size_t size)
{
	size_t n = 0, count = 1 + rnd(12);

	for (size_t i = 0; i < count; i++) {
		const char *p = pieces[rnd(sizeof(pieces) / sizeof(pieces[0]))];
		size_t len = strlen(p);

		if (n + len > size)
			break;
		memcpy(out + n, p, len);
		n += len;
	}
	for (size_t i = rnd(4) ? 0 : 1 + rnd(3); i && n; i--)
		out[rnd(n)] = (char)rnd(256);
	return n;
}

/* Against the end of a page that is followed by nothing. */
static size_t fuzz(double seconds)
{
	char *room = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	double end = now() + seconds;
	char text[4096];
	size_t runs = 0;

	if (room == MAP_FAILED || mprotect(room + 4096, 4096, PROT_NONE))
		return 0;
	while (now() < end) {
		for (int i = 0; i < 1000; i++, runs++) {
			size_t n = make_input(text, sizeof(text));

			memcpy(room + 4096 - n, text, n);
			LLVMFuzzerTestOneInput((uint8_t *)room + 4096 - n, n);
		}
	}
	munmap(room, 8192);
	return runs;
}

static int run_again(const char *path)
{
	static uint8_t data[1 << 20];
	FILE *f = fopen(path, "r");
	size_t n;

	if (!f)
		return 2;
	n = fread(data, 1, sizeof(data), f);
	fclose(f);
	return LLVMFuzzerTestOneInput(data, n);
}

int main(int argc, char **argv)
{
	struct fuzz_options o = {.seed = 88172645463325252ull};
	size_t runs;

	if (!fuzz_options(&o, argc, argv))
		return 2;
	if (o.again)
		return run_again(o.again);
	runs = fuzz(o.seconds);
	printf("# %zu inputs in %.0f s\n", runs, o.seconds);
	printf("%s 1 - hostile probe files\n1..1\n", runs ? "ok" : "not ok");
	return 0;
}

#endif
