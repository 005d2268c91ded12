/* SPDX-License-Identifier: MIT */
/* Unit tests of collect/: memory maps, selection, programs. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/vec.h"
#include "collect/kernel/pidns.h"
#include "collect/kernel/process_maps.h"
#include "collect/attach/program.h"
#include "collect/modules/selection.h"
#include "inject/plan/plan.h"

/* ---- a folder of our own ---- */

static char dir[] = "/tmp/kron-collect-XXXXXX";

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	return nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static char *file_in_dir(const char *name, const void *bytes, size_t n, mode_t mode)
{
	char *path = xasprintf("%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	close(fd);
	chmod(path, mode);
	return path;
}

/* ---- process_maps ---- */

static const char sample_maps[] =
	"00400000-00401000 r--p 00000000 fe:01 123                                /usr/bin/a\n"
	"00401000-00403000 r-xp 00001000 fe:01 123                                /usr/bin/a\n"
	"01000000-01021000 rw-p 00000000 00:00 0                                  [heap]\n"
	"7f0000000000-7f0000002000 r-xp 00002000 00:01 77                         /tmp/with blank\\012newline (deleted)\n"
	"7f0000003000-7f0000004000 r-xp 00005000 00:01 1049                       /memfd:kron:12ab:f (deleted)\n"
	"7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]\n";

static void maps_are_parsed(void **state)
{
	struct process_maps m;

	(void)state;
	process_maps_parse(&m, sample_maps, strlen(sample_maps));
	assert_int_equal(m.n, 6);
	assert_int_equal(m.v[1].start, 0x401000);
	assert_int_equal(m.v[1].end, 0x403000);
	assert_int_equal(m.v[1].off, 0x1000);
	assert_int_equal(m.v[1].ino, 123);
	assert_int_equal(m.v[1].dev, makedev(0xfe, 1));
	assert_true(process_mapping_is_exec(&m.v[1]));
	assert_false(process_mapping_is_exec(&m.v[0]));
	assert_string_equal(m.v[0].path, "/usr/bin/a");
	assert_string_equal(m.v[3].path, "/tmp/with blank\nnewline");
	assert_true(m.v[3].deleted);
	assert_false(m.v[1].deleted);
	assert_ptr_equal(process_maps_at(&m, 0x402fff), &m.v[1]);
	assert_null(process_maps_at(&m, 0x403000));
	assert_null(process_maps_at(&m, 0));
	process_maps_free(&m);
}

static void maps_without_sense_are_left_out(void **state)
{
	static const char text[] = "garbage\n"
				   "-1000-2000 r-xp 0 0:0 0 x\n"
				   "00002000-00001000 r-xp 00000000 00:00 0 /backwards\n"
				   "00005000-00006000 r-xp\n"
				   "00005000-00006000 r-xp 00000000 08:01 9 /good\n"
				   "00001000-00002000 r-xp 00000000 08:01 9 /out of order\n"
				   "00007000-00008000 r-xp 00000000 08:01 9 /torn";
	struct process_maps m;

	(void)state;
	process_maps_parse(&m, text, strlen(text));
	assert_int_equal(m.n, 1);
	assert_string_equal(m.v[0].path, "/good");
	process_maps_free(&m);
	process_maps_parse(&m, "", 0);
	assert_int_equal(m.n, 0);
	process_maps_free(&m);
}

static void blocks_are_told_by_their_session(void **state)
{
	struct process_maps m;
	uint64_t number = 0;

	(void)state;
	process_maps_parse(&m, sample_maps, strlen(sample_maps));
	assert_true(process_mapping_is_block(&m.v[4], 0x12ab, &number));
	assert_int_equal(number, 0xf);
	assert_false(process_mapping_is_block(&m.v[4], 0x12ac, &number));
	assert_false(process_mapping_is_block(&m.v[3], 0x12ab, &number));
	process_maps_free(&m);
}

static void space_knows_heap_and_stack(void **state)
{
	struct space_mapping *v;
	struct process_maps m;
	size_t n;

	(void)state;
	process_maps_parse(&m, sample_maps, strlen(sample_maps));
	v = process_maps_space(&m, &n);
	assert_int_equal(n, 6);
	assert_true(v[2].is_heap);
	assert_false(v[2].is_stack);
	assert_true(v[5].is_stack);
	assert_false(v[0].is_heap);
	xfree(v);
	process_maps_free(&m);
}

static void own_maps_hold_this_function(void **state)
{
	const struct process_mapping *m;
	struct process_maps maps;
	struct process_stat st;
	struct err err;
	char *exe;

	(void)state;
	assert_int_equal(process_maps_read(&maps, getpid(), &err), 0);
	m = process_maps_at(&maps, (uint64_t)(uintptr_t)own_maps_hold_this_function);
	assert_non_null(m);
	assert_true(process_mapping_is_exec(m));
	exe = process_exe(getpid());
	assert_string_equal(m->path, exe);
	xfree(exe);
	process_maps_free(&maps);
	assert_true(process_read_stat(getpid(), 0, &st));
	assert_int_equal(st.state, 'R');
	assert_int_equal(st.threads, 1);
	assert_true(st.starttime > 0);
	assert_false(process_read_stat(0x3fffffff, 0, &st));
	assert_true(process_maps_read(&maps, 0x3fffffff, &err) < 0);
}

static void a_zombie_has_no_maps(void **state)
{
	struct process_maps maps;
	struct err err;
	pid_t pid;
	siginfo_t info;

	(void)state;
	pid = fork();
	if (pid == 0)
		_exit(0);
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	assert_true(process_maps_read(&maps, pid, &err) < 0);
	/* a user who reads it knows nothing of the pid, and counts such processes */
	assert_string_equal(err.msg, "it ended before its probes were in place");
	waitpid(pid, NULL, 0);
}

/* ---- selection ---- */

static struct globs globs_of(const char *const *v)
{
	struct globs g = {.v = v};

	while (v && v[g.n])
		g.n++;
	return g;
}

static bool selects(const char *const *only, const char *const *except, const char *name)
{
	struct selection s = {.only = globs_of(only), .except = globs_of(except)};

	return selection_has_function(&s, name, name, NULL);
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static void selection_of_plain_names(void **state)
{
	(void)state;
	assert_true(selects(NULL, NULL, "anything"));
	assert_true(selects(LIST("sqlite3*"), NULL, "sqlite3_open"));
	assert_false(selects(LIST("sqlite3*"), NULL, "open"));
	assert_false(selects(NULL, LIST("open"), "open"));
	assert_true(selects(NULL, LIST("open"), "openat"));
	assert_false(selects(LIST("s*"), LIST("*_open"), "sqlite3_open"));
	assert_true(selects(LIST("a", "b"), NULL, "b"));
	assert_true(selects(LIST("[abc]_?"), NULL, "b_1"));
}

static void selection_of_cxx_names(void **state)
{
	struct selection raw = {.only = globs_of(LIST("_ZN2ns*"))};
	struct selection no_raw = {.except = globs_of(LIST("_ZN2ns*"))};

	(void)state;
	assert_true(selection_has_function(&raw, "ns::f", "_ZN2ns1fEi", ""));
	assert_false(selection_has_function(&raw, "nt::f", "_ZN2nt1fEi", ""));
	assert_false(selection_has_function(&no_raw, "ns::f", "_ZN2ns1fEi", ""));
	assert_true(selection_has_function(&no_raw, "nt::f", "_ZN2nt1fEi", ""));
	assert_true(selects(LIST("ns::f"), NULL, "ns::f(int, char*)"));
	assert_true(selects(LIST("ns::f(int*"), NULL, "ns::f(int, char*)"));
	assert_true(selects(LIST("ns::Set<int>::size"), NULL, "ns::Set<int>::size() const"));
	assert_true(selects(LIST("*::operator()"), NULL, "ns::Less::operator()(int, int) const"));
	assert_true(selects(LIST("std::move<int>"), NULL, "int&& std::move<int>(int&)"));
	assert_true(selects(LIST("(anonymous namespace)::g"), NULL, "(anonymous namespace)::g()"));
	assert_false(selects(LIST("f"), NULL, "ns::f(int)"));
	assert_true(selects(NULL, LIST("x"), "weird)name("));
	assert_true(selects(NULL, LIST("x"), ")"));
	assert_true(selects(NULL, LIST("x"), ""));
}

/* glibc's free is cfree and __libc_free, too. */
static void selection_of_aliases(void **state)
{
	struct selection s = {.only = globs_of(LIST("free"))};
	struct selection glob = {.only = globs_of(LIST("__libc_f*"))};
	struct selection not = {.except = globs_of(LIST("free"))};
	struct selection not_glob = {.except = globs_of(LIST("__*"))};
	struct plan_function f = {.name = 1, .raw_name = 1, .aliases = 7};
	struct plan p = {.functions = &f, .nfunctions = 1, .strings = "\0cfree\0__libc_free\nfree"};
	char *name, *others = NULL;

	(void)state;
	assert_true(selection_has_function(&s, "cfree", "cfree", "__libc_free\nfree"));
	assert_true(selection_has_function(&glob, "cfree", "cfree", "__libc_free\nfree"));
	assert_false(selection_has_function(&s, "cfree", "cfree", "__libc_free\nfreed"));
	assert_false(selection_has_function(&not, "cfree", "cfree", "__libc_free\nfree"));
	assert_true(selection_has_function(&not_glob, "cfree", "cfree", "__libc_free\nfree"));
	assert_true(selection_names(&s, "cfree", "__libc_free\nfree"));
	assert_false(selection_names(&glob, "cfree", "__libc_free\nfree"));
	name = selection_shown_name(&s, &p, &f, &others);
	assert_string_equal(name, "free");
	assert_string_equal(others, "__libc_free\ncfree");
	xfree(name);
	xfree(others);
	assert_null(selection_shown_name(&not, &p, &f, &others));
}

static bool has_library(const struct selection *s, const char *path, const char *soname)
{
	return selection_has_library(s, &(struct module_name){path, soname});
}

static void selection_of_libraries(void **state)
{
	struct selection s = {.libraries = globs_of(LIST("libz*", "/opt/*/lib*.so"))};
	struct selection all = {.libraries = globs_of(LIST("*"))};
	struct selection none = {.libraries = {NULL, 0, NULL}};

	(void)state;
	assert_true(has_library(&s, "/usr/lib/libz.so.1.2.13", NULL));
	assert_true(has_library(&s, "/opt/x/libq.so", NULL));
	assert_false(has_library(&s, "/usr/lib/libq.so", NULL));
	assert_true(has_library(&s, "/usr/lib/libq.so", "libz.so.1"));
	assert_true(has_library(&all, "/usr/lib/libq.so", NULL));
	assert_false(has_library(&none, "/usr/lib/libq.so", "libq.so.1"));
}

static void selection_marks_unnamed_functions(void **state)
{
	char strings[] = "\0alpha\0beta";
	struct plan_function f[] = {{.vaddr = 0x1000, .name = 1},
				    {.vaddr = 0x1234, .name = 0},
				    {.vaddr = 0x2000, .name = 7}};
	struct plan p = {.functions = f,
			 .nfunctions = 3,
			 .strings = strings,
			 .strings_len = sizeof(strings)};
	struct selection s = {.only = globs_of(LIST("libx.so+0x12*", "beta"))};
	uint8_t mark[3];

	(void)state;
	assert_int_equal(selection_mark(&s, &p, "/lib/libx.so", mark), 2);
	assert_int_equal(mark[0], 0);
	assert_int_equal(mark[1], 1);
	assert_int_equal(mark[2], 1);
	/* a glob that fits the module's name does not mean what has no name in it */
	s.only = globs_of(LIST("libx*", "alpha"));
	assert_int_equal(selection_mark(&s, &p, "/lib/libx.so", mark), 1);
	assert_int_equal(mark[0], 1);
	assert_int_equal(mark[1], 0);
	s.only = globs_of(LIST("*"));
	assert_int_equal(selection_mark(&s, &p, "/lib/libx.so", mark), 3);
}

/* ---- programs ---- */

static enum program_verdict verdict_of(const char *path)
{
	enum program_verdict v;
	struct program p;
	struct err err;

	assert_int_equal(program_find(&p, path, NULL, &err), 0);
	v = p.verdict;
	program_free(&p);
	return v;
}

static void programs_are_found_like_execvp_does(void **state)
{
	struct program p;
	struct err err;
	char *path, *var;

	(void)state;
	assert_int_equal(program_find(&p, "true", "/nowhere:/bin", &err), 0);
	assert_string_equal(p.path, "/bin/true");
	program_free(&p);
	assert_int_equal(program_find(&p, "no-such-program", "/bin:/usr/bin", &err), -ENOENT);
	assert_int_equal(program_find(&p, "", "/bin", &err), -ENOENT);
	assert_int_equal(program_find(&p, "/bin", NULL, &err), -EACCES);
	assert_int_equal(program_find(&p, "/bin/true/x", NULL, &err), -ENOENT);
	path = file_in_dir("plain", "x", 1, 0644);
	assert_int_equal(program_find(&p, path, NULL, &err), -EACCES);
	var = xasprintf("%s:/bin", dir);
	assert_int_equal(program_find(&p, "plain", var, &err), -EACCES);
	xfree(var);
	xfree(path);
}

static Elf64_Ehdr header_of(uint8_t class, uint16_t type, uint16_t machine)
{
	Elf64_Ehdr e = {.e_type = type,
			.e_machine = machine,
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_phoff = sizeof(e),
			.e_phnum = 1,
			.e_ehsize = sizeof(e)};

	memcpy(e.e_ident, ELFMAG, SELFMAG);
	e.e_ident[EI_CLASS] = class;
	e.e_ident[EI_DATA] = ELFDATA2LSB;
	return e;
}

static enum program_verdict verdict_of_elf(Elf64_Ehdr e, size_t size, uint32_t segment,
					   uint64_t segment_size, const char *interp)
{
	struct {
		Elf64_Ehdr e;
		Elf64_Phdr ph;
		char interp[64];
	} file = {.e = e};
	enum program_verdict v;
	char *path;

	file.ph.p_type = segment;
	file.ph.p_offset = offsetof(__typeof__(file), interp);
	file.ph.p_filesz = segment_size;
	if (interp)
		strcpy(file.interp, interp);
	path = file_in_dir("elf", &file, size, 0755);
	v = verdict_of(path);
	xfree(path);
	return v;
}

static void elf_programs_are_judged(void **state)
{
	Elf64_Ehdr good = header_of(ELFCLASS64, ET_DYN, EM_X86_64);
	const char *linker = "/lib64/ld-linux-x86-64.so.2";
	size_t all = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr) + 64;

	(void)state;
	assert_int_equal(verdict_of("/bin/true"), PROGRAM_TRACEABLE);
	assert_int_equal(verdict_of_elf(good, all, PT_INTERP, strlen(linker) + 1, linker),
			 PROGRAM_TRACEABLE);
	assert_int_equal(verdict_of_elf(good, all, PT_INTERP, 10, "/lib/musl"),
			 PROGRAM_UNTRACEABLE);
	assert_int_equal(verdict_of_elf(good, all, PT_LOAD, 0, NULL), PROGRAM_STATIC);
	assert_int_equal(verdict_of_elf(good, 40, PT_LOAD, 0, NULL), PROGRAM_BROKEN);
	assert_int_equal(verdict_of_elf(good, 70, PT_LOAD, 0, NULL), PROGRAM_BROKEN);
	assert_int_equal(verdict_of_elf(good, all, PT_INTERP, 1ull << 60, linker), PROGRAM_BROKEN);
	assert_int_equal(verdict_of_elf(header_of(ELFCLASS32, ET_EXEC, EM_386), all, PT_LOAD, 0,
					NULL),
			 PROGRAM_UNTRACEABLE);
	assert_int_equal(verdict_of_elf(header_of(ELFCLASS64, ET_EXEC, EM_AARCH64), all, PT_LOAD, 0,
					NULL),
			 PROGRAM_UNTRACEABLE);
	assert_int_equal(verdict_of_elf(header_of(ELFCLASS64, ET_REL, EM_X86_64), all, PT_LOAD, 0,
					NULL),
			 PROGRAM_BROKEN);
	good.e_phentsize = 3;
	assert_int_equal(verdict_of_elf(good, all, PT_LOAD, 0, NULL), PROGRAM_BROKEN);
}

static void scripts_are_followed(void **state)
{
	struct program p;
	struct err err;
	char *path;

	(void)state;
	path = file_in_dir("script", "#! /bin/sh -e\n", 14, 0755);
	assert_int_equal(verdict_of(path), PROGRAM_TRACEABLE);
	xfree(path);
	path = file_in_dir("script", "#!/no/such\n", 11, 0755);
	assert_int_equal(verdict_of(path), PROGRAM_BROKEN);
	xfree(path);
	path = file_in_dir("script", "#!\n", 3, 0755);
	assert_int_equal(verdict_of(path), PROGRAM_BROKEN);
	xfree(path);
	path = file_in_dir("text", "echo hi\n", 8, 0755);
	assert_int_equal(program_find(&p, path, NULL, &err), 0);
	assert_true(p.needs_shell);
	program_free(&p);
	xfree(path);
	path = file_in_dir("binary", "\1\0\2\0", 4, 0755);
	assert_int_equal(verdict_of(path), PROGRAM_UNTRACEABLE);
	xfree(path);
}

static void privileged_programs_are_told(void **state)
{
	char bytes[65536], *path;
	FILE *f = fopen("/bin/true", "rb");
	size_t n;

	(void)state;
	assert_non_null(f);
	n = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	path = file_in_dir("setuid", bytes, n, 0755);
	assert_int_equal(verdict_of(path), PROGRAM_TRACEABLE);
	if (geteuid() == 0) { /* only root can give a file away */
		assert_int_equal(chown(path, 1, (gid_t)-1), 0);
		chmod(path, 04755);
		assert_int_equal(verdict_of(path), PROGRAM_UNTRACEABLE);
		assert_int_equal(chown(path, 0, 1), 0);
		chmod(path, 02755);
		assert_int_equal(verdict_of(path), PROGRAM_UNTRACEABLE);
	}
	xfree(path);
}

/* ---- pid namespaces ---- */

static void a_status_says_the_inner_pid(void **state)
{
	(void)state;
	assert_int_equal(pidns_inner("Name:\tx\nNStgid:\t77\t5\nNSpid:\t77\t5\nNSpgid:\t1\n"), 5);
	assert_int_equal(pidns_inner("Name:\tx\nNSpid:\t77\t5\t1\n"), 1);
	assert_int_equal(pidns_inner("Name:\tx\nNSpid:\t77\n"), 0);
	assert_int_equal(pidns_inner("Name:\tx\nNSpid:\t77\t"), 0);
	assert_int_equal(pidns_inner("Name:\tNSpid:\t77\t5\n"), 0);
	assert_int_equal(pidns_inner(""), 0);
}

static void a_hiding_proc_is_noticed(void **state)
{
	(void)state;
	assert_false(pidns_is_hiding("22 1 0:20 / /proc rw - proc proc rw\n"));
	assert_false(pidns_is_hiding("22 1 0:20 / /proc rw - proc proc rw,hidepid=0\n"));
	assert_false(
		pidns_is_hiding("1 1 0:1 / /proc rw - proc proc rw\n2 1 0:2 / /hidepid=2 rw\n"));
	assert_true(pidns_is_hiding("22 1 0:20 / /proc rw - proc proc rw,hidepid=invisible\n"));
	assert_true(pidns_is_hiding("1 1 0:1 / /a rw - proc proc rw\n"
				    "2 1 0:2 / /b rw - proc proc rw,gid=4,hidepid=2\n"));
}

static void who_is_not_found_is_gone_only_if_all_are_seen(void **state)
{
	struct pidns_process v[] = {{100, 5, 1005}, {100, 6, 1006}, {200, 5, 2005}, {0, 9, 3009}};
	struct pidns_list l = {.v = {.v = v, .n = 4}, .complete = true};
	pid_t here = 0;

	(void)state;
	assert_int_equal(pidns_find(&l, 200, 5, &here), PIDNS_FOUND);
	assert_int_equal(here, 2005);
	assert_int_equal(pidns_find(&l, 200, 6, &here), PIDNS_GONE);
	assert_int_equal(pidns_find(&l, 200, 9, &here), PIDNS_UNKNOWN);
	l.complete = false;
	assert_int_equal(pidns_find(&l, 200, 6, &here), PIDNS_UNKNOWN);
	assert_int_equal(pidns_find(&l, 100, 6, &here), PIDNS_FOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maps_are_parsed),
		cmocka_unit_test(maps_without_sense_are_left_out),
		cmocka_unit_test(blocks_are_told_by_their_session),
		cmocka_unit_test(space_knows_heap_and_stack),
		cmocka_unit_test(own_maps_hold_this_function),
		cmocka_unit_test(a_zombie_has_no_maps),
		cmocka_unit_test(selection_of_plain_names),
		cmocka_unit_test(selection_of_cxx_names),
		cmocka_unit_test(selection_of_aliases),
		cmocka_unit_test(selection_of_libraries),
		cmocka_unit_test(selection_marks_unnamed_functions),
		cmocka_unit_test(programs_are_found_like_execvp_does),
		cmocka_unit_test(elf_programs_are_judged),
		cmocka_unit_test(scripts_are_followed),
		cmocka_unit_test(privileged_programs_are_told),
		cmocka_unit_test(a_status_says_the_inner_pid),
		cmocka_unit_test(a_hiding_proc_is_noticed),
		cmocka_unit_test(who_is_not_found_is_gone_only_if_all_are_seen),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
