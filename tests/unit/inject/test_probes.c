/* SPDX-License-Identifier: MIT */
/* Unit tests of the probe language: what each spelling means, and where errors point. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "probes/probe.h"

static const char *const places[] = {
	"entry",    "return", "offset", "line",     "source", "address", "blocks", "calls",
	"branches", "loads",  "stores", "accesses", "insns",  "callers", "usdt",
};
static const char *const payloads[] = {"-", "reg", "arg", "retval", "addr", "sp", "imm", "name"};
static const char matches[] = {'=', '*', '/'};

static void put_name(char *out, size_t size, const char *key, const struct spec_name *n)
{
	size_t at = strlen(out);

	if (n->text)
		snprintf(out + at, size - at, " %s%c%s", key, matches[n->match], n->text);
}

static void put_text(char *out, size_t size, const char *key, const char *text)
{
	size_t at = strlen(out);

	if (text)
		snprintf(out + at, size - at, " %s=%s", key, text);
}

/* All of a probe in one line. */
static void describe(const struct probe_spec *s, char *out, size_t size)
{
	size_t at;

	snprintf(out, size, "%s%s", places[s->place], s->after ? " after" : "");
	put_name(out, size, "obj", &s->object);
	put_name(out, size, "fn", &s->function);
	put_text(out, size, "src", s->source);
	put_text(out, size, "provider", s->provider);
	put_text(out, size, "marker", s->marker);
	at = strlen(out);
	if (s->place >= SPEC_OFFSET && s->place <= SPEC_ADDRESS)
		at += (size_t)snprintf(out + at, size - at, " at=%" PRIu64, s->offset);
	if (s->gated && s->level)
		at += (size_t)snprintf(out + at, size - at, " level=%u", s->level);
	if (!s->gated)
		at += (size_t)snprintf(out + at, size - at, " ungated");
	put_text(out, size, "event", s->event);
	at = strlen(out);
	if (s->has_number)
		at += (size_t)snprintf(out + at, size - at, " number=%u", s->number);
	if (s->kind)
		at += (size_t)snprintf(out + at, size - at, " %s", spec_kind_key(s->kind));
	if (s->kind == SPEC_COUNT || s->kind == SPEC_STORE)
		at += (size_t)snprintf(out + at, size - at, ":%u", s->word);
	if (s->kind == SPEC_STORE)
		at += (size_t)snprintf(out + at, size - at, "=%" PRIu64, s->data);
	if (s->payload)
		snprintf(out + at, size - at, " %s=%s:%" PRId64, s->payload_name,
			 payloads[s->payload], (int64_t)s->value);
}

static const struct {
	const char *text, *meaning;
} good[] = {
	{"main", "entry fn=main"},
	{"main # and why", "entry fn=main"},
	{"main%return", "return fn=main"},
	{"main%exit", "return fn=main"},
	{"main+4", "offset fn=main at=4"},
	{"main+0x1f", "offset fn=main at=31"},
	{"main:3", "line fn=main at=3"},
	{"main@calc.c:3", "line fn=main src=calc.c at=3"},
	{"main@calc.c", "entry fn=main src=calc.c"},
	{"calc.c:12", "source src=calc.c at=12"},
	{"src/calc:12", "source src=src/calc at=12"},
	{"libz.so.1:deflate.c:12", "source obj=libz.so.1 src=deflate.c at=12"},
	{"\"foo.part.0\":2", "line fn=foo.part.0 at=2"},
	{"0x401000", "address at=4198400"},
	{"libc:0x401000", "address obj=libc at=4198400"},
	{"libc:malloc", "entry obj=libc fn=malloc"},
	{"/usr/lib/libz.so.1:deflate%return", "return obj=/usr/lib/libz.so.1 fn=deflate"},
	{"libstdc++.so.6:__cxa_throw", "entry obj=libstdc++.so.6 fn=__cxa_throw"},
	{"mem*", "entry fn*mem*"},
	{"/^mem(cpy|set)$/", "entry fn/^mem(cpy|set)$"},
	{"libc:/^mem/%loads", "loads obj=libc fn/^mem"},
	{"/a\\/b/+4", "offset fn/a\\/b at=4"},
	{"ns::f", "entry fn=ns::f"},
	{"ns::f(int, char const*)%return", "return fn*ns::f(int, char const*)"},
	{"libx:ns::Set<int, ns::Less>::insert", "entry obj=libx fn=ns::Set<int, ns::Less>::insert"},
	{"\"ns::f(int) const\"", "entry fn=ns::f(int) const"},
	{"operator+(A, A)+4", "offset fn=operator+(A, A) at=4"},
	{"A::operator==(A const&)", "entry fn=A::operator==(A const&)"},
	{"operator==", "entry fn=operator=="},
	{"A::operator()", "entry fn=A::operator()"},
	{"operator<<", "entry fn=operator<<"},
	{"operator%%return", "return fn=operator%"},
	{"(anonymous namespace)::f(int)", "entry fn=(anonymous namespace)::f(int)"},
	{"memcpy@@GLIBC_2.14", "entry fn=memcpy@@GLIBC_2.14"},
	{"main%blocks", "blocks fn=main"},
	{"main%calls", "calls fn=main"},
	{"main%calls%after", "calls after fn=main"},
	{"main%branches", "branches fn=main"},
	{"*%loads count:3", "loads fn** ungated count:3"},
	{"*:*%accesses pages", "accesses obj** fn** ungated pages"},
	{"*:*%accesses lines:function", "accesses obj** fn** ungated pages"},
	{"main n=$arg1:s16", "entry fn=main n:s16=arg:1"},
	{"send s=socket($arg1)", "entry fn=send s:x64=arg:1"},
	{"accept%return e=endpoints($retval) if %rbx > 1", "return fn=accept e:x32[14]=retval:0"},
	{"read socket=*(s64*)(%rdi)", "entry fn=read socket:s64=reg:7"},
	{"main d=+8($arg1):double", "entry fn=main d:double=arg:1"},
	{"main%return f=*(float*)$retval", "return fn=main f:float=retval:0"},
	{"main d=ratio:double", "entry fn=main d:double=name:0"},
	{"sdt_a:b d=$arg1:double", "usdt provider=a marker=b d:double=arg:1"},
	{"main%stores $addr:x32", "stores fn=main addr:x32=addr:0"},
	{"main%stores resource $addr", "stores fn=main resource addr=addr:0"},
	{"main%stores $addr", "stores fn=main addr:x64=addr:0"},
	{"main%insns", "insns fn=main"},
	{"main%loads%after $addr", "loads after fn=main addr:x64=addr:0"},
	{"main store:8=-2147483648", "entry fn=main ungated store:8=18446744071562067968"},
	{"malloc%after", "callers after fn=malloc"},
	{"malloc%callers", "callers fn=malloc"},
	{"malloc%after size=$retval", "callers after fn=malloc size=retval:0"},
	{"sdt_libc:setjmp", "usdt provider=libc marker=setjmp"},
	{"%libc:setjmp", "usdt provider=libc marker=setjmp"},
	{"libc.so.6:%libc:setjmp", "usdt obj=libc.so.6 provider=libc marker=setjmp"},
	{"%python:gc__* $arg1", "usdt provider=python marker=gc__* arg1=arg:1"},
	{"uprobe:/bin/bash:readline", "entry obj=/bin/bash fn=readline"},
	{"uprobe:/bin/bash:readline+4", "offset obj=/bin/bash fn=readline at=4"},
	{"uprobe:/bin/bash:0x1234", "address obj=/bin/bash at=4660"},
	{"uretprobe:libc:mem* retval", "return obj=libc fn*mem* retval=retval:0"},
	{"usdt:libx.so:prov:name", "usdt obj=libx.so provider=prov marker=name"},
	{"usdt:libx.so:name", "usdt obj=libx.so provider=* marker=name"},
	{"start=main", "entry fn=main event=start"},
	{"3:start=main", "entry fn=main level=3 event=start"},
	{"3:=main", "entry fn=main level=3"},
	{"5:1234=main", "entry fn=main level=5 number=1234"},
	{"0x10=main", "entry fn=main number=16"},
	{"main arg1", "entry fn=main arg1=arg:1"},
	{"main n=$arg6", "entry fn=main n=arg:6"},
	{"main %di", "entry fn=main di=reg:7"},
	{"main %r15", "entry fn=main r15=reg:15"},
	{"main 42", "entry fn=main 42=imm:42"},
	{"main tag=-1", "entry fn=main tag=imm:-1"},
	{"main $sp", "entry fn=main sp=sp:0"},
	{"main resource", "entry fn=main resource"},
	{"main $arg1 resource", "entry fn=main resource arg1=arg:1"},
	{"main store:8=0x1f", "entry fn=main ungated store:8=31"},
	{"2:=main store:8=1", "entry fn=main level=2 store:8=1"},
	{"level", "entry fn=level"},
	{"include", "entry fn=include"},
	{"level x=%rdi", "entry fn=level x=reg:7"},
	{"a#b", "entry fn=a#b"},
};

static void test_meanings(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct probe_set set = {0};
		struct err err = {{0}};
		char text[512];

		if (probe_set_add(&set, good[i].text, 1, &err))
			fail_msg("%s: %s", good[i].text, err.msg);
		assert_int_equal(set.specs.n, 1);
		describe(&set.specs.v[0], text, sizeof(text));
		assert_string_equal(text, good[i].meaning);
		probe_set_free(&set);
	}
}

static const struct {
	const char *text;
	unsigned column; /* of the caret */
	const char *words;
} bad[] = {
	{"", 1, "missing"},
	{"# nothing", 1, "missing"},
	{"99:x=main", 1, "0 to 15"},
	{"nobody:x=main", 1, "no level"},
	{"x=", 3, "a place is missing"},
	{"main%foo", 5, "there is no %foo"},
	{"main%return%after", 1, "after a return"},
	{"main%blocks%after", 1, "%after follows"},
	{"main%loads%stores", 11, "once"},
	{"main%after%after", 11, "twice"},
	{"main+4+4", 7, "+OFF"},
	{"main%return $arg1", 13, "entry"},
	{"main $retval", 6, "%return"},
	{"main $arg7", 6, "arg6"},
	{"main $addr", 6, "memory operand"},
	{"main store:8=0x80000000", 14, "32 bits"},
	{"main $foo", 6, "there is no $foo"},
	{"main %xmm0", 6, "no register"},
	{"main $arg1:double", 6, "is in %xmm0 and up there"},
	{"main x=$arg1:float", 6, "name the variable"},
	{"main%return $retval:double", 13, "general registers"},
	{"main %rdi:float", 6, "general registers"},
	{"main%loads $addr:double", 12, "general registers"},
	{"main x=5:double", 6, "an integer here"},
	{"main x=", 8, "value is missing"},
	{"main =1", 6, "name is missing"},
	{"main $arg1 $arg2", 12, "one value"},
	{"main trace resource", 12, "one kind"},
	{"main count:8192", 12, "0 to 8191"},
	{"main count", 6, "count:J"},
	{"main store:200=1", 12, "chip word"},
	{"main store:8", 13, "=VALUE"},
	{"main store:8=x", 14, "32 bits"},
	{"main count:1 $arg1", 14, "no payload"},
	{"e=main count:1", 1, "no event"},
	{"main n=*(u31*)$arg1", 10, "a type is needed"},
	{"main n=*(u32*)($rdi+8", 22, ") is needed"},
	{"main n=socket($arg1", 20, ") is needed"},
	{"main n=socket($arg1)+1", 21, "the value ends"},
	{"main n=socket($arg1):u32", 22, "has its type"},
	{"main n=socket($retval)", 6, "nowhere else"},
	{"main resource n=socket($arg1)", 15, "32 bits"},
	{"main n=+0(+8(%di)", 18, ") is needed"},
	{"main n=$rdi->st_size", 8, "there is no $rdi"},
	{"main n=$sp->a", 8, "nobody knows"},
	{"main n=req->", 13, "a name is needed"},
	{"main n=a[x]", 10, "31 bits"},
	{"main n=a[3", 11, "] is needed"},
	{"main n=a+1", 9, "after a name"},
	{"main n=$arg1:u64[9]", 14, "64 bytes at most"},
	{"main n=a:u8[2] if data == 1", 19, "not compared"},
	{"sdt_a:b n=$arg1->x", 9, "no variables"},
	{"main if $arg1", 14, "a comparison"},
	{"main if $arg1 > -1", 17, "no sign"},
	{"main if data == 1", 9, "it has none"},
	{"main if $arg1 == 1 || $arg2 == 1", 20, "&& only"},
	{"main if $arg1 == 1 x", 20, "the end"},
	{"main count:1 if $arg1 == 1", 16, "samples"},
	{"main $arg1:u33", 12, "no such type"},
	{"main $arg1:", 12, "no such type"},
	{"main resource $arg1:u64", 15, "32 bits"},
	{"main 0x10000000000000000:u64", 6, "a number"},
	{"main 0x100000000:u32", 6, "it has 32 bits and no sign"},
	{"main n=300:u8", 8, "it has 8 bits and no sign"},
	{"main n=-1:x16", 8, "it has 16 bits and no sign"},
	{"main n=128:s8", 8, "it has 8 bits with a sign"},
	{"main n=-129:s8", 8, "it has 8 bits with a sign"},
	{"main n=18446744073709551615:s64", 8, "64 bits with a sign"},
	{"main n=-9223372036854775809:s64", 8, "neither"},
	{"main n=-2147483649", 8, "a type of 64"},
	{"main n=$arg1:s32 if data == 18446744073709551615", 29,
	 "32 bits with a sign: the comparison never"},
	{"main n=$arg1:s32 if data < 18446744073709551615", 28,
	 "32 bits with a sign: the comparison always"},
	{"main if $arg1:s64 < 18446744073709551615", 21,
	 "64 bits with a sign: the comparison always"},
	{"main if $arg1:s64 == -9223372036854775809", 22, "a number is needed"},
	{"main if $arg1:s64 == 0xffffffffffffffff", 22,
	 "64 bits with a sign: the comparison never"},
	{"main if $arg1:s64 < -9223372036854775808", 21, "the comparison never"},
	{"main if $arg1:s8 <= 127", 21, "the comparison always"},
	{"main if $arg1:s8 > 127", 20, "the comparison never"},
	{"main if $arg1:s8 >= -128", 21, "the comparison always"},
	{"main if $arg1:s8 != -129", 21, "the comparison always"},
	{"main if $arg1:u8 < 256", 20, "8 bits and no sign: the comparison always"},
	{"main if $arg1:u8 >= 0", 21, "the comparison always"},
	{"main if $arg1 < 0", 17, "the comparison never"},
	{"main if $arg1:s64 & -1 < 0", 26, "with this mask the comparison never"},
	{"main if $arg1:u32 & 0xf0 == 8", 29, "with this mask the comparison never"},
	{"main if $arg1:u32 & 0xf0 != 8", 29, "with this mask the comparison always"},
	{"main if $arg1:u32 & 0xf0 <= 0xf0", 29, "with this mask the comparison always"},
	{"main if $arg1:s32 & 1 == -1", 26, "after & has no sign"},
	{"main pages", 1, "touch memory"},
	{"main%accesses%after pages", 1, "before the instruction"},
	{"main%accesses pages $sp", 21, "pages takes no payload"},
	{"main 0x100000000", 6, "32 bits"},
	{"a:b:c:d:e", 9, "too many"},
	{"a:b:c", 5, "one too many"},
	{"libc:", 6, "after the colon"},
	{"f(int", 2, "never closed"},
	{"f)", 2, "never opened"},
	{"\"f", 1, "never closed"},
	{"/a(/", 1, "regular expression"},
	{"%libc", 1, "colon"},
	{"usdt:a", 6, "usdt:OBJ"},
	{"uprobe:main", 8, "uprobe:OBJ:FUNC"},
	{"4294967296=main", 1, "up to"},
	{"level 1x = 3", 7, "letter"},
	{"level io = 16", 12, "0 to 15"},
	{"level io = 3 x", 14, "all that"},
	{"include a b", 9, "one file"},
	{"include no-such-pack", 9, "no pack"},
	{"main\t\001", 6, "neither"},
};

static void test_errors(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct probe_set set = {0};
		struct err err = {{0}};
		char place[32];
		const char *caret;

		assert_int_equal(probe_set_add(&set, bad[i].text, 3, &err), -EINVAL);
		snprintf(place, sizeof(place), "<-p 3>:1:%u: ", bad[i].column);
		if (strncmp(err.msg, place, strlen(place)) || !strstr(err.msg, bad[i].words))
			fail_msg("%s: expected %s and %s, got %s", bad[i].text, place, bad[i].words,
				 err.msg);
		caret = strrchr(err.msg, '\n') + 1;
		assert_int_equal(strlen(caret), 2 + bad[i].column);
		assert_int_equal(caret[strlen(caret) - 1], '^');
		assert_int_equal(set.specs.n, 0);
		probe_set_free(&set);
	}
}

static void test_file(void **state)
{
	static const char text[] = "# a file\n"
				   "level io = 4   # a name\n"
				   "level lock=5\n"
				   "\n"
				   "io:open = main\n";
	static const char text2[] = "level io = 4\n"
				    "\tio:open=main $arg1\r\n"
				    "f%return";
	struct probe_set set = {0};
	struct err err;

	(void)state;
	/* a blank before the = makes it no head */
	assert_int_equal(probe_set_add_text(&set, "x.probe", text, sizeof(text) - 1, &err),
			 -EINVAL);
	assert_non_null(strstr(err.msg, "x.probe:5:"));
	assert_int_equal(probe_set_add_text(&set, "y.probe", text2, sizeof(text2) - 1, &err), 0);
	assert_int_equal(set.specs.n, 2);
	assert_int_equal(set.specs.v[0].level, 4);
	assert_string_equal(set.specs.v[0].event, "open");
	assert_string_equal(set.specs.v[1].where, "y.probe:3");
	assert_int_equal(set.specs.v[1].place, SPEC_RETURN);
	assert_int_equal(probe_set_add(&set, "lock:x=main", 1, &err), 0);
	assert_int_equal(set.specs.v[2].level, 5);
	assert_int_equal(probe_set_add(&set, "level io = 3", 1, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "4 already"));
	probe_set_free(&set);
}

/* All samples of an event are read alike. */
static void test_types_of_an_event(void **state)
{
	static const struct {
		const char *text;
		int code;
	} added[] = {
		{"level io = 4", 0},
		{"y=f n=$arg1:u32", 0},
		{"y=g n=$arg2:u32", 0},
		{"y=g n=$arg1", 0},
		{"y=g n=$arg1:s32", -EINVAL},
		{"y=f%return r=$retval:u64", -EINVAL},
		{"y=g n=$arg1:string", -EINVAL},
		{"io:y=g n=$arg1:s64", 0}, /* another event */
		{"y=h", 0},
	};
	struct probe_set set = {0};
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(added) / sizeof(added[0]); i++) {
		if (probe_set_add(&set, added[i].text, (unsigned)i, &err) != added[i].code)
			fail_msg("%s: %s", added[i].text, added[i].code ? "was taken" : err.msg);
		if (added[i].code)
			assert_non_null(strstr(err.msg, "another type at <-p 1>"));
	}
	probe_set_free(&set);
}

static void write_file(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void remove_files(const char *dir)
{
	static const char *const names[] = {"a.probe", "b.probe", "c.probe", "loop.probe"};
	char path[256];

	for (size_t i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	assert_int_equal(rmdir(dir), 0);
}

static void test_includes(void **state)
{
	char dir[] = "/tmp/kron-test-XXXXXX", path[128];
	struct probe_set set = {0};
	struct err err;

	(void)state;
	assert_non_null(mkdtemp(dir));
	write_file(dir, "a.probe", "include b.probe\nio:x=main\n");
	write_file(dir, "b.probe", "level io = 7\n");
	write_file(dir, "c.probe", "main\n\nmain%%x\n");
	write_file(dir, "loop.probe", "include loop.probe\n");
	snprintf(path, sizeof(path), "%s/a.probe", dir);
	assert_int_equal(probe_set_add_file(&set, path, &err), 0);
	assert_int_equal(set.specs.v[0].level, 7);
	snprintf(path, sizeof(path), "%s/c.probe", dir);
	assert_int_equal(probe_set_add_file(&set, path, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "c.probe:3:6: "));
	snprintf(path, sizeof(path), "%s/loop.probe", dir);
	assert_int_equal(probe_set_add_file(&set, path, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "more than 8 deep"));
	assert_int_equal(probe_set_add_file(&set, "/no/such/file", &err), -ENOENT);
	setenv("KRON_PACKS", dir, 1);
	assert_int_equal(probe_set_add_file(&set, "a", &err), 0);
	assert_int_equal(probe_set_add_file(&set, "z", &err), -ENOENT);
	unsetenv("KRON_PACKS");
	probe_set_free(&set);
	remove_files(dir);
}

static bool wants_module(const char *spec, const char *path, const char *soname, bool is_exe)
{
	const struct module_name name = {path, soname};
	struct probe_set set = {0};
	struct err err;
	bool yes;

	assert_int_equal(probe_set_add(&set, spec, 1, &err), 0);
	yes = probe_set_wants(&set, &name, is_exe);
	probe_set_free(&set);
	return yes;
}

static bool wants(const char *spec, const char *path, bool is_exe)
{
	return wants_module(spec, path, NULL, is_exe);
}

static void test_sonames(void **state)
{
	static const char z[] = "/lib/libz.so.1.2.13", blas[] = "/lib/libopenblasp-r0.3.21.so";

	(void)state;
	assert_true(wants_module("libz.so.1:f", z, "libz.so.1", false));
	assert_true(wants_module("libz.so.1.2.13:f", z, "libz.so.1", false));
	assert_true(wants_module("*z.so.1:f", z, "libz.so.1", false));
	assert_true(wants_module("/^libz\\.so\\.1$/:f", z, "libz.so.1", false));
	assert_true(wants_module("libopenblas:f", blas, "libopenblas.so.0", false));
	assert_false(wants_module("libz.so.1:f", z, NULL, false));
	assert_false(wants_module("libz.so:f", z, "libz.so.1", false));
	assert_false(wants_module("/lib/libz.so.1:f", "/none/libz.so.1.2.13", "libz.so.1", false));
}

static void test_objects(void **state)
{
	(void)state;
	assert_true(wants("main", "/bin/x", true));
	assert_false(wants("main", "/lib/libc.so.6", false));
	assert_true(wants("libc:f", "/lib/libc.so.6", false));
	assert_true(wants("libc:f", "/lib/libc-2.31.so", false));
	assert_false(wants("libc:f", "/lib/libcap.so.2", false));
	assert_false(wants("libc:f", "/lib/libc-client.so.2", false));
	assert_true(wants("libc.so.6:f", "/lib/libc.so.6", false));
	assert_true(wants("/lib/libc.so.6:f", "/lib/libc.so.6", false));
	assert_false(wants("/usr/libc.so.6:f", "/lib/libc.so.6", false));
	assert_true(wants("libc*:f", "/lib/libcap.so.2", false));
	assert_true(wants("/^libz/:f", "/lib/libz.so.1", false));
	assert_true(wants("%p:n", "/lib/libz.so.1", false));
}

/* Whoever asks for a module asks each object once, however many probes name it. */
static void test_distinct_objects(void **state)
{
	static const char *const others[] = {
		"a*:f", "a:f", "/b/:f", "main", "main%return", "%p:n", "%q:n", "\"a\":g", "a*:%p:n",
	};
	static const char path[] = "/lib/libaa.so";
	const struct module_name name = {path, NULL};
	struct probe_set set = {0};
	struct err err;
	char letters[64];

	(void)state;
	for (unsigned i = 0; i < 50; i++)
		assert_int_equal(probe_set_add(&set, i & 1 ? "/^(a|aa)+$/:g" : "/^(a|aa)+$/:f",
					       i + 1, &err),
				 0);
	assert_int_equal(set.objects.n, 1);
	assert_false(probe_set_wants(&set, &name, false));
	memset(letters, 'a', sizeof(letters));
	memcpy(letters + sizeof(letters) - 2, "c", 2);
	probe_spec_wants(&set.specs.v[7], &(struct module_name){letters, NULL}, false);
	for (unsigned i = 0; i < 50; i++)
		assert_true(probe_spec_gave_up(&set.specs.v[i])); /* it is one expression */
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (probe_set_add(&set, others[i], 1, &err))
			fail_msg("%s: %s", others[i], err.msg);
	assert_int_not_equal(probe_set_add(&set, "/c/:f nonsense nonsense", 1, &err), 0);
	/* the glob, the name, /b/, the program's own, and the markers that say themselves where */
	assert_int_equal(set.objects.n, 6);
	assert_true(probe_set_wants(&set, &name, false)); /* a marker may be anywhere */
	probe_set_free(&set);
}

/* ---- regular expressions ---- */

#define LETTERS 600u
#define MUCH (400l << 10) /* KiB; AddressSanitizer keeps 256 MiB that were freed */

static uint32_t dice = 1;

static void random_name(char *out)
{
	for (unsigned i = 0; i < LETTERS; i++) {
		dice = dice * 1103515245 + 12345;
		out[i] = (char)('a' + (dice >> 16 & 1));
	}
	out[LETTERS] = 0;
}

/* In a process of its own, so that its memory can be told. */
static void use_expression(const char *spec)
{
	struct probe_set set = {0};
	char name[LETTERS + 1];
	struct err err;

	if (probe_set_add(&set, spec, 1, &err))
		_exit(strstr(err.msg, "regular expression") ? 0 : 2);
	for (unsigned i = 0; i < 300; i++) {
		random_name(name);
		spec_name_matches(&set.specs.v[0].function, name);
		if (probe_spec_gave_up(&set.specs.v[0]))
			break;
	}
	_exit(0);
}

static void check_memory(const char *spec)
{
	struct rusage used;
	int status;
	pid_t pid = fork();

	if (!pid)
		use_expression(spec);
	assert_int_equal(wait4(pid, &status, 0, &used), pid);
	if (status || used.ru_maxrss > MUCH)
		fail_msg("%.60s: status %x, %ld KiB", spec, (unsigned)status, used.ru_maxrss);
}

static void test_expensive(void **state)
{
	char text[1000];

	(void)state;
	snprintf(text, sizeof(text), "/a%s/", "+++++++++++++++++++++");
	check_memory(text);
	check_memory("/(a?){12000}/");
	check_memory("/((a{1,100}){1,100}){1,20}/");
	check_memory("/(a|b)*a(a|b){500}/");
	check_memory("/(a*)*(a*)*(a*)*x/");
	text[0] = '/';
	memset(text + 1, '(', 490);
	memset(text + 491, ')', 490);
	memcpy(text + 981, "/", 2);
	check_memory(text);
}

static void test_gave_up(void **state)
{
	struct probe_set set = {0};
	struct err err;
	char name[64];

	(void)state;
	assert_int_equal(probe_set_add(&set, "/^(a|aa)+$/", 1, &err), 0);
	assert_true(spec_name_matches(&set.specs.v[0].function, "aaaa"));
	assert_false(probe_spec_gave_up(&set.specs.v[0]));
	memset(name, 'a', sizeof(name));
	memcpy(name + sizeof(name) - 2, "c", 2);
	assert_false(spec_name_matches(&set.specs.v[0].function, name));
	assert_true(probe_spec_gave_up(&set.specs.v[0]));
	probe_set_free(&set);
}

/* What POSIX says of extended regular expressions holds. */
static void test_expressions(void **state)
{
	static const char *const expressions[] = {
		"^mem(cpy|set)$",
		"^[[:alpha:]_][[:alnum:]_]*$",
		"a{2,3}b",
		"lock$",
		"^$",
		"a|b|",
		"^(foo|bar)_?[0-9]+$",
		"[^a-z]",
		"x.y",
		"a*",
		"^ns::f\\(int, char\\*\\)$",
		"\\$",
		"[]x]",
		"(^|_)init",
		"^.?l+oc",
		"[.]part[.][0-9]",
	};
	static const char *const names[] = {
		"memcpy",   "memset", "memmove",
		"",         "x",      "aab",
		"ab",       "aaaab",  "pthread_mutex_lock",
		"foo_12",   "bar3",   "foobar",
		"x\ny",     "xzy",    "ns::f(int, char*)",
		"$x",       "a]",     "9_init",
		"init",     "malloc", "f.part.0",
		"\xff\xfe", "B",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(expressions) / sizeof(expressions[0]); i++) {
		struct probe_set set = {0};
		char *spec = xasprintf("/%s/", expressions[i]);
		regex_t posix;
		struct err err;

		assert_int_equal(regcomp(&posix, expressions[i], REG_EXTENDED | REG_NOSUB), 0);
		if (probe_set_add(&set, spec, 1, &err))
			fail_msg("%s: %s", spec, err.msg);
		for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++)
			if (spec_name_matches(&set.specs.v[0].function, names[n]) !=
			    !regexec(&posix, names[n], 0, NULL, 0))
				fail_msg("%s and \"%s\"", spec, names[n]);
		probe_set_free(&set);
		regfree(&posix);
		xfree(spec);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_meanings),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_includes),
		cmocka_unit_test(test_objects),
		cmocka_unit_test(test_sonames),
		cmocka_unit_test(test_distinct_objects),
		cmocka_unit_test(test_expensive),
		cmocka_unit_test(test_expressions),
		cmocka_unit_test(test_gave_up),
		cmocka_unit_test(test_types_of_an_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
