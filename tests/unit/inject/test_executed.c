/* SPDX-License-Identifier: MIT */
/*
 * The code map against the processor: single-steps real programs, and asks of every
 * instruction that they execute in any module:
 *
 *   - an instruction starts here, and it is not padding;
 *   - if control did not come from the instruction before it, the map knows that it may;
 *   - a ret is an exit; a jump that leaves its function is an exit, one that stays is none
 *     (refused exits may be either).
 *
 * KRON_TEST_STEPS=2000000 looks longer.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/vec.h"
#include "inject/code/code_map.h"

/* Instructions of each program, from its entry on; a step costs up to 20 us. */
static unsigned long limit = 40000;

struct module {
	char path[256];
	struct elf_image *img; /* NULL: not an ELF file that we can read */
	struct functions f;
	struct code_map *m;
};
struct mapping {
	uint64_t start, end, bias;
	uint32_t module;
};

static struct {
	VEC(struct module *) modules; /* kept over runs: libc is in all of them */
	VEC(struct mapping) maps;
	unsigned long steps, jumps, indirect, exits;
} t;

static uint32_t find_module(const char *path)
{
	struct module *m;
	struct err err;

	for (uint32_t i = 0; i < t.modules.n; i++)
		if (!strcmp(t.modules.v[i]->path, path))
			return i;
	m = *vec_push(&t.modules) = xcalloc(1, sizeof(*m));
	snprintf(m->path, sizeof(m->path), "%s", path);
	if (!elf_image_open(&m->img, path, &err)) {
		assert_int_equal(functions_find(&m->f, m->img, &err), 0);
		assert_int_equal(code_map_build(&m->m, m->img, &m->f, &err), 0);
	}
	return (uint32_t)t.modules.n - 1;
}

static uint64_t vaddr_of_offset(const struct elf_image *img, uint64_t off)
{
	for (size_t i = 0; i < img->nsegments; i++)
		if (img->segments[i].flags & PF_X && off >= (img->segments[i].off & ~4095ull) &&
		    off < img->segments[i].off + img->segments[i].filesz)
			return img->segments[i].vaddr + (off - img->segments[i].off);
	return UINT64_MAX;
}

static void read_maps(pid_t pid)
{
	char name[64], line[512], perms[5], path[256];
	FILE *f;

	t.maps.n = 0;
	snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
	f = fopen(name, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		uint64_t start, end, off, vaddr;
		uint32_t module;

		if (sscanf(line, "%lx-%lx %4s %lx %*s %*s %255s", &start, &end, perms, &off,
			   path) != 5 ||
		    perms[2] != 'x' || path[0] != '/')
			continue;
		module = find_module(path);
		if (!t.modules.v[module]->img)
			continue;
		vaddr = vaddr_of_offset(t.modules.v[module]->img, off);
		if (vaddr != UINT64_MAX)
			*vec_push(&t.maps) = (struct mapping){start, end, start - vaddr, module};
	}
	fclose(f);
}

static const struct mapping *mapping_at(pid_t pid, uint64_t addr)
{
	static const struct mapping none;

	for (int again = 0; again < 2; again++) {
		vec_for(&t.maps, m)
			if (addr >= m->start && addr < m->end)
				return m;
		if (!again)
			read_maps(pid);
	}
	/* not a file's: vdso, or code made at run time; remember the page */
	*vec_push(&t.maps) = (struct mapping){addr & ~4095ull, (addr | 4095) + 1, 0, UINT32_MAX};
	return &none;
}

static const struct code_exit *exit_at(const struct code_map *m, uint64_t vaddr)
{
	size_t lo = 0, hi = m->nexits;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->exits[mid].vaddr < vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < m->nexits && m->exits[lo].vaddr == vaddr ? &m->exits[lo] : NULL;
}

struct place {
	const struct module *module;
	const struct function *fn; /* NULL: in no function */
	uint64_t vaddr;
	struct insn in;
};

static void locate(pid_t pid, uint64_t addr, struct place *p)
{
	const struct mapping *m = mapping_at(pid, addr);

	*p = (struct place){0};
	if (!m->end || m->module == UINT32_MAX)
		return;
	p->module = t.modules.v[m->module];
	p->vaddr = addr - m->bias;
	p->fn = functions_at(&p->module->f, p->vaddr);
	if (!p->fn)
		return;
	if (!(code_map_flags(p->module->m, p->vaddr) & CODE_INSN)) {
		/* the one exception: after a lock prefix */
		if (!code_map_insn(p->module->m, p->vaddr - 1, &p->in) || p->in.len < 2 ||
		    *elf_image_at(p->module->img, p->vaddr - 1, 1) != 0xf0)
			fail_msg("%s: %#lx was executed, and starts no instruction",
				 p->module->path, (unsigned long)p->vaddr);
	}
	if (code_map_flags(p->module->m, p->vaddr) & CODE_PADDING)
		fail_msg("%s: %#lx was executed, and is called padding", p->module->path,
			 (unsigned long)p->vaddr);
	assert_true(code_map_insn(p->module->m, p->vaddr, &p->in));
}

static bool same_function(const struct place *a, const struct place *b)
{
	return a->module == b->module && b->fn && a->fn->parent == b->fn->parent;
}

static void check_exit(const struct place *from, const struct place *to, bool taken)
{
	const struct code_exit *e = exit_at(from->module->m, from->vaddr);
	bool stays = same_function(from, to) && to->vaddr != to->fn->start;
	const char *what = NULL;

	switch (from->in.kind) {
	case INSN_RET:
		what = e ? NULL : "a ret that is not an exit";
		break;
	case INSN_JMP:
	case INSN_JMP_INDIRECT:
	case INSN_JCC:
		if (!taken || same_function(from, to) != stays)
			break;
		if (!stays && !e)
			what = "a jump out of the function that is not an exit";
		if (stays && e && !e->refusal)
			what = "an exit that stays in the function";
		break;
	}
	t.exits += e != NULL;
	if (what)
		fail_msg("%s: %#lx is %s (to %#lx)", from->module->path, (unsigned long)from->vaddr,
			 what, (unsigned long)to->vaddr);
}

static void check_step(const struct place *from, const struct place *to)
{
	bool taken =
		!from->fn || from->module != to->module || to->vaddr != from->vaddr + from->in.len;

	t.steps++;
	/* rep movs and an interrupted system call come back to themselves */
	if (from->fn && from->module == to->module && to->vaddr == from->vaddr)
		return;
	if (taken && to->fn && !code_map_is_target(to->module->m, to->vaddr))
		fail_msg("%s: control came to %#lx from %#lx, unforeseen", to->module->path,
			 (unsigned long)to->vaddr, (unsigned long)from->vaddr);
	t.jumps += taken;
	if (!from->fn)
		return;
	t.indirect += from->in.kind == INSN_JMP_INDIRECT;
	check_exit(from, to, taken);
}

static pid_t start(char *const argv[])
{
	pid_t pid = fork();

	if (pid)
		return pid;
	personality(ADDR_NO_RANDOMIZE);
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
		_exit(126);
	execv(argv[0], argv);
	_exit(127);
}

/* Let it run to its entry point: most of what the loader does is the same every time. */
static bool run_to_entry(pid_t pid)
{
	char name[64];
	uint64_t entry[2] = {0};
	struct user_regs_struct regs;
	long word;
	int status;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/auxv", (int)pid);
	f = fopen(name, "r");
	while (f && fread(entry, sizeof(entry), 1, f) == 1 && entry[0] != AT_ENTRY)
		;
	if (!f || fclose(f) || entry[0] != AT_ENTRY)
		return false;
	word = ptrace(PTRACE_PEEKTEXT, pid, entry[1], 0);
	if (ptrace(PTRACE_POKETEXT, pid, entry[1], (word & ~0xffl) | 0xcc) ||
	    ptrace(PTRACE_CONT, pid, 0, 0) || waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status) ||
	    WSTOPSIG(status) != SIGTRAP)
		return false;
	ptrace(PTRACE_POKETEXT, pid, entry[1], word);
	ptrace(PTRACE_GETREGS, pid, 0, &regs);
	regs.rip = entry[1];
	return !ptrace(PTRACE_SETREGS, pid, 0, &regs);
}

/* Returns false when single-stepping is not possible here. */
static bool step_program(char *const argv[])
{
	pid_t pid = start(argv);
	struct place from = {0};
	unsigned long begin = t.steps;
	int status;

	t.maps.n = 0;
	if (waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status))
		return false;
	ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_EXITKILL);
	if (!run_to_entry(pid))
		return false;
	status = SIGTRAP << 8 | 0x7f;
	while (t.steps - begin < limit) {
		struct user_regs_struct regs;
		struct place to;
		int sig = WSTOPSIG(status);

		if (ptrace(PTRACE_GETREGS, pid, 0, &regs))
			break;
		locate(pid, regs.rip, &to);
		/* a signal's handler may start anywhere, and sigreturn goes back anywhere */
		if (from.module && from.in.kind != INSN_SYSCALL)
			check_step(&from, &to);
		from = to;
		if (ptrace(PTRACE_SINGLESTEP, pid, 0, sig == SIGTRAP ? 0 : sig) ||
		    waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status))
			break;
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return t.steps > begin;
}

static void programs(void **state)
{
	static char *const commands[][8] = {
		{"/bin/bash", "-c",
		 "for i in a b c; do case $i in a) echo $((1+2));; esac; done; "
		 "printf '%5.2f %s\\n' 3.5 x; f() { return 3; }; f; "
		 "[[ abc =~ b ]] && echo ${x:-y}"},
		{"/usr/bin/perl", "-e",
		 "my %h = map { $_ => $_*2 } 1..20; $_ = join ',', sort keys "
		 "%h; s/(\\d)/<$1>/g; printf '%s %g', $_, 3.25; "
		 "eval { die 'x' }; print sprintf('%x', 255)"},
		{"/usr/bin/git", "--version"},
		{"/usr/bin/git", "diff", "--no-index", "/etc/passwd", "/etc/group"},
		{"/usr/bin/sort", "-n", "/etc/passwd"},
		{"/usr/bin/gzip", "-c", "/etc/passwd"},
		{"/usr/bin/python3.11", "-S", "-c", "print(1)"},
		{"/usr/bin/openssl", "dgst", "-sha256", "/etc/passwd"},
	};

	(void)state;
	if (getenv("KRON_TEST_STEPS"))
		limit = strtoul(getenv("KRON_TEST_STEPS"), NULL, 0);
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		unsigned long steps = t.steps, jumps = t.jumps, indirect = t.indirect;

		if (access(commands[i][0], X_OK)) {
			print_message("%s is not installed\n", commands[i][0]);
			continue;
		}
		if (!step_program(commands[i])) {
			print_message("single-stepping is not allowed here\n");
			return;
		}
		print_message("%s %s: %lu instructions, %lu jumps, %lu indirect\n", commands[i][0],
			      commands[i][1], t.steps - steps, t.jumps - jumps,
			      t.indirect - indirect);
	}
	assert_true(t.exits > 1000);
	vec_for(&t.modules, m) {
		if ((*m)->img) {
			code_map_free((*m)->m);
			functions_free(&(*m)->f);
			elf_image_close((*m)->img);
		}
		xfree(*m);
	}
	vec_free(&t.modules);
	vec_free(&t.maps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(programs)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
