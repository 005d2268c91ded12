/* SPDX-License-Identifier: MIT */
/*
 * test_exec_files.c - "will this file load our library?", asked of the collector (before it starts
 * a program) and of the runtime (before a traced process executes one), by one table.
 *
 * The truth is the kernel and ld.so: each file is executed with LD_SHOW_AUXV=1, which glibc's
 * ld.so heeds in programs where it heeds LD_PRELOAD, and in no others.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include <kron/exec.h>
#include "base/vec.h"
#include "collect/attach/program.h"
#include "runtime/core/rt.h"
#include "runtime/hooks/exec_target.h"

#define NOBODY 65534

static char dir[] = "/tmp/kron-exec-XXXXXX";

enum answer {
	LOADS,   /* ld.so loads our library */
	IGNORES, /* it runs, without */
	FAILS    /* execve() fails, also when a shell would take it for text */
};

/* ---- the files ---- */

static char *path_of(const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

static void write_file(const char *name, const void *bytes, size_t n, mode_t mode)
{
	char *path = path_of(name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	xfree(path);
}

static uint8_t program[1 << 20]; /* /bin/true */
static size_t program_len;

/* The copy's program header of this type. */
static Elf64_Phdr *header_of(uint8_t *bytes, uint32_t type)
{
	Elf64_Ehdr *e = (Elf64_Ehdr *)bytes;
	Elf64_Phdr *ph = (Elf64_Phdr *)(bytes + e->e_phoff);

	for (unsigned i = 0; i < e->e_phnum; i++)
		if (ph[i].p_type == type)
			return &ph[i];
	return NULL;
}

/* /bin/true with this as its interpreter, in that many bytes of the file: after its end. */
static void write_program(const char *name, const char *interp, size_t interp_len)
{
	uint8_t *bytes = xcalloc(1, program_len + interp_len);
	Elf64_Phdr *ph;

	memcpy(bytes, program, program_len);
	ph = header_of(bytes, PT_INTERP);
	memcpy(bytes + program_len, interp, strlen(interp));
	ph->p_offset = program_len;
	ph->p_filesz = ph->p_memsz = interp_len;
	write_file(name, bytes, program_len + interp_len, 0755);
	xfree(bytes);
}

static void write_own(const char *name, uid_t uid, gid_t gid, mode_t mode)
{
	char *path = path_of(name);

	write_file(name, program, program_len, 0755);
	assert_int_equal(chown(path, uid, gid), 0);
	assert_int_equal(chmod(path, mode), 0);
	xfree(path);
}

/* A script of that many bytes before its newline; '\0': none. */
static void write_script(const char *name, const char *interp, size_t len, char newline)
{
	char *path = interp[0] == '.' ? xstrdup(interp) : path_of(interp);
	char text[512];
	int n = snprintf(text, sizeof(text), "#!%s", path);

	assert_true((size_t)n <= len || !len);
	if (len)
		memset(text + n, ' ', len - (size_t)n);
	else
		len = (size_t)n;
	text[len] = newline;
	write_file(name, text, len + (newline != 0), 0755);
	xfree(path);
}

/* A folder's name makes the interpreter's path that long: '/' repeated, which the kernel reads as one. */
static void write_long_script(const char *name, size_t len, char newline)
{
	char text[512];
	char *path = path_of("true");
	size_t n = strlen(path);

	memset(text, '/', len);
	memcpy(text, "#!", 2);
	memcpy(text + len - n, path, n);
	text[len] = newline;
	write_file(name, text, len + (newline != 0), 0755);
	xfree(path);
}

/* ---- the table ---- */

static void make_true(void)
{
	write_file("true", program, program_len, 0755);
}

static void make_scripts(void)
{
	make_true();
	write_script("script1", "true", 0, '\n');
	write_script("script2", "script1", 0, '\n');
	write_script("script3", "script2", 0, '\n');
	write_script("script4", "script3", 0, '\n');
	write_script("script5", "script4", 0, '\n');
	write_script("script6", "script5", 0, '\n');
}

static void make_lines(void)
{
	make_true();
	write_script("no-newline", "true", 0, 0);
	write_script("relative", "./true", 0, '\n');
	write_script("blanks", "true", 300, '\n');
	write_long_script("fits", 255, '\n');
	write_long_script("cut", 256, '\n');
	write_file("no-name", "#! \n", 4, 0755);
	write_file("nowhere", "#!/nowhere/at-all\n", 18, 0755);
	write_file("text", "exit 0\n", 7, 0755);
}

#define LINKER "/lib64/ld-linux-x86-64.so.2"

static void make_interpreters(void)
{
	char *other = path_of("ld-other.so"), *same = path_of("ld-linux-x86-64.so.2");

	assert_int_equal(symlink(LINKER, same), 0);
	write_program("linker", LINKER, sizeof(LINKER));
	write_program("padded", LINKER, 4096);
	write_program("elsewhere", same, strlen(same) + 1);
	write_program("unended", LINKER, sizeof(LINKER) - 1);
	write_program("too-long", LINKER, 4097);
	/* one that heeds no LD_PRELOAD: a program that needs none */
	write_file("ld-other.so", program, program_len, 0755);
	write_program("other", other, strlen(other) + 1);
	xfree(other);
	xfree(same);
}

static void make_broken(void)
{
	uint8_t *bytes = xcalloc(1, program_len);
	Elf64_Ehdr *e = (Elf64_Ehdr *)bytes;

	write_file("short", program, 40, 0755);
	memcpy(bytes, program, program_len);
	e->e_type = ET_REL;
	write_file("object", bytes, program_len, 0755);
	memcpy(bytes, program, program_len);
	e->e_phentsize = 3;
	write_file("entsize", bytes, program_len, 0755);
	memcpy(bytes, program, program_len);
	e->e_phoff = program_len;
	write_file("headers", bytes, program_len, 0755);
	memcpy(bytes, program, program_len);
	e->e_machine = EM_AARCH64;
	write_file("machine", bytes, program_len, 0755);
	memcpy(bytes, program, program_len);
	header_of(bytes, PT_INTERP)->p_type = PT_NULL; /* nobody relocates it: it crashes */
	write_file("static", bytes, program_len, 0755);
	xfree(bytes);
}

static void make_owned(void)
{
	static const uint8_t capability[20] = {1, 0, 0, 2,
					       1}; /* VFS_CAP_REVISION_2, effective: chown */
	char *path = path_of("capable");

	write_own("setuid-root", 0, 0, 04755);
	write_own("setuid-nobody", NOBODY, 0, 04755);
	write_own("setgid-root", 0, 0, 02755);
	write_own("setgid-nobody", 0, NOBODY, 02755);
	write_own("locked", 0, 1, 02745); /* setgid without x for the group: no setgid */
	write_own("capable", 0, 0, 0755);
	assert_int_equal(setxattr(path, "security.capability", capability, sizeof(capability), 0),
			 0);
	write_own("unreadable", 0, 0, 0711);
	write_script("to-unreadable", "unreadable", 0, '\n');
	write_script("to-setuid", "setuid-nobody", 0, '\n');
	make_true();
	write_script("setuid-script", "true", 0, '\n');
	xfree(path);
	path = path_of("setuid-script");
	assert_int_equal(chown(path, NOBODY, 0), 0);
	assert_int_equal(chmod(path, 04755), 0);
	xfree(path);
}

struct row {
	const char *name;
	enum answer root, nobody;
};

#define BOTH(answer) answer, answer

static const struct row scripts[] = {
	{"true", BOTH(LOADS)},    {"script1", BOTH(LOADS)}, {"script4", BOTH(LOADS)},
	{"script5", BOTH(LOADS)}, {"script6", BOTH(FAILS)}, {NULL, BOTH(FAILS)},
};
static const struct row lines[] = {
	{"no-newline", BOTH(LOADS)}, {"relative", BOTH(LOADS)}, {"blanks", BOTH(LOADS)},
	{"fits", BOTH(LOADS)},       {"cut", BOTH(FAILS)},      {"no-name", BOTH(FAILS)},
	{"nowhere", BOTH(FAILS)},    {"text", BOTH(FAILS)},     {NULL, BOTH(FAILS)},
};
static const struct row interpreters[] = {
	{"linker", BOTH(LOADS)},  {"padded", BOTH(LOADS)},   {"elsewhere", BOTH(LOADS)},
	{"unended", BOTH(FAILS)}, {"too-long", BOTH(FAILS)}, {"other", BOTH(IGNORES)},
	{NULL, BOTH(FAILS)},
};
static const struct row broken[] = {
	{"short", BOTH(FAILS)},   {"object", BOTH(FAILS)},   {"entsize", BOTH(FAILS)},
	{"headers", BOTH(FAILS)}, {"static", BOTH(IGNORES)}, {NULL, BOTH(FAILS)},
};
static const struct row owned[] = {
	{"setuid-root", LOADS, IGNORES},   {"setuid-nobody", IGNORES, LOADS},
	{"setgid-root", LOADS, IGNORES},   {"setgid-nobody", IGNORES, LOADS},
	{"locked", LOADS, LOADS},          {"capable", LOADS, IGNORES},
	{"unreadable", LOADS, IGNORES}, /* ld.so would load it; who cannot read it cannot tell */
	{"to-unreadable", LOADS, IGNORES}, {"to-setuid", IGNORES, LOADS},
	{"setuid-script", LOADS, LOADS},   {NULL, BOTH(FAILS)},
};

/* ---- the three who are asked; each in a process of its own, with the ids in question ---- */

static enum answer execute(const char *path)
{
	char *argv[] = {(char *)path, NULL}, *envp[] = {"LD_SHOW_AUXV=1", NULL};
	int ends[2], status;
	char buf[4096];
	bool said = false;
	ssize_t n;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		_exit(99);
	pid = fork();
	if (!pid) {
		dup2(ends[1], 1);
		execve(path, argv, envp);
		_exit(97);
	}
	close(ends[1]);
	while ((n = read(ends[0], buf, sizeof(buf))) > 0)
		said = true;
	waitpid(pid, &status, 0);
	close(ends[0]);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 97)
		return FAILS;
	return said ? LOADS : IGNORES;
}

static enum answer ask_collector(const char *path)
{
	enum answer a;
	struct program p;
	struct err err;

	if (program_find(&p, path, NULL, &err))
		return FAILS;
	a = p.verdict == PROGRAM_BROKEN || p.needs_shell ? FAILS
	    : p.verdict == PROGRAM_TRACEABLE             ? LOADS
							 : IGNORES;
	program_free(&p);
	return a;
}

static enum answer ask_runtime(const char *path)
{
	kron_rt_env.path = "/bin/true"; /* whoever may execute the files can read this one */
	switch (rt_exec_target(AT_FDCWD, path, 0)) {
	case KRON_UNTRACED_NOT:
		return LOADS;
	case KRON_UNTRACED_REASONS:
		return FAILS;
	default:
		return IGNORES;
	}
}

static enum answer ask_as(enum answer (*whom)(const char *path), const char *path, uid_t id)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		if (id != geteuid() &&
		    (setgroups(0, NULL) || setresgid(id, id, id) || setresuid(id, id, id)))
			_exit(99);
		_exit(whom(path));
	}
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static bool is_other(const char *name, const char *who, enum answer got, enum answer want)
{
	static const char *const words[] = {"loads", "ignores", "fails"};

	if (got == want)
		return false;
	print_message("%s: %s says %s, the table %s\n", name, who,
		      got <= FAILS ? words[got] : "nothing", words[want]);
	return true;
}

/* What nobody can tell from outside is not asked of the kernel. */
static bool is_beyond_truth(const struct row *row, uid_t id)
{
	return strstr(row->name, "unreadable") && id;
}

static void check_rows(const struct row *rows, uid_t id)
{
	unsigned wrong = 0;

	for (const struct row *row = rows; row->name; row++) {
		enum answer want = id ? row->nobody : row->root;
		char *path = path_of(row->name);

		if (!is_beyond_truth(row, id))
			wrong += is_other(row->name, "the kernel", ask_as(execute, path, id), want);
		wrong +=
			is_other(row->name, "the collector", ask_as(ask_collector, path, id), want);
		wrong += is_other(row->name, "the runtime", ask_as(ask_runtime, path, id), want);
		xfree(path);
	}
	assert_int_equal(wrong, 0);
}

static void scripts_are_followed_as_far_as_the_kernel_does(void **state)
{
	(void)state;
	make_scripts();
	check_rows(scripts, geteuid());
}

static void first_lines_are_read_as_the_kernel_does(void **state)
{
	(void)state;
	make_lines();
	check_rows(lines, geteuid());
}

static void dynamic_linkers_are_told_apart(void **state)
{
	(void)state;
	make_interpreters();
	check_rows(interpreters, geteuid());
}

static void what_is_no_program_is_told(void **state)
{
	(void)state;
	make_broken();
	check_rows(broken, geteuid());
	/* the kernel's answer depends on binfmt_misc (qemu) */
	char *path = path_of("machine");
	assert_int_equal(ask_collector(path), IGNORES);
	assert_int_equal(ask_runtime(path), IGNORES);
	xfree(path);
}

/* ld.so is in its secure mode if ids differ after the execve(), or capabilities were gained. */
static void privileges_that_change_are_told(void **state)
{
	struct statvfs fs;

	(void)state;
	if (geteuid() || statvfs(dir, &fs) || fs.f_flag & ST_NOSUID) {
		print_message("only root can give files away, and not on a nosuid mount\n");
		return;
	}
	make_owned();
	check_rows(owned, 0);
	check_rows(owned, NOBODY);
}

static enum answer ask_below(enum answer (*whom)(const char *path), int resource, uint64_t limit)
{
	const struct rlimit r = {limit, limit};
	int status;
	pid_t pid = fork();

	if (!pid) {
		if (setrlimit((__rlimit_resource_t)resource, &r))
			_exit(99);
		_exit(whom("/bin/true"));
	}
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Nothing is asked of the kernel: from which limit on a program starts depends on its libraries. */
static void small_limits_are_told(void **state)
{
	static const struct {
		int resource;
		uint64_t least;
	} rows[] = {{RLIMIT_AS, KRON_EXEC_SPACE_MIN}, {RLIMIT_DATA, KRON_EXEC_DATA_MIN}};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const uint64_t least = rows[i].least;

		assert_int_equal(ask_below(ask_collector, rows[i].resource, least - 4096), IGNORES);
		assert_int_equal(ask_below(ask_runtime, rows[i].resource, least - 4096), IGNORES);
		assert_int_equal(ask_below(ask_collector, rows[i].resource, least), LOADS);
		assert_int_equal(ask_below(ask_runtime, rows[i].resource, least), LOADS);
	}
}

/* ---- a folder of our own ---- */

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static int make_dir(void **state)
{
	FILE *f = fopen("/bin/true", "rb");

	(void)state;
	if (!f || !mkdtemp(dir) || chmod(dir, 0755) || chdir(dir))
		return -1;
	program_len = fread(program, 1, sizeof(program), f);
	fclose(f);
	return program_len && program_len < sizeof(program) ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	return chdir("/") || nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scripts_are_followed_as_far_as_the_kernel_does),
		cmocka_unit_test(first_lines_are_read_as_the_kernel_does),
		cmocka_unit_test(dynamic_linkers_are_told_apart),
		cmocka_unit_test(what_is_no_program_is_told),
		cmocka_unit_test(privileges_that_change_are_told),
		cmocka_unit_test(small_limits_are_told),
	};

	return cmocka_run_group_tests_name("exec_files", tests, make_dir, remove_dir);
}
