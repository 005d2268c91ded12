/* SPDX-License-Identifier: MIT */
/*
 * exec.h - what execve() makes of a file, and whether libkron-rt.so gets into it.
 *
 * The collector asks before it starts a program (collect/attach/program.c), the runtime before a
 * traced process executes one (runtime/hooks/exec_target.c).  Two answers would be one too many: a
 * program that is traced as the first of a recording is traced as the child of another.
 *
 *   head ─► kind ─┬─ script ─► interpreter ─► its head, KRON_EXEC_SCRIPTS times at most
 *                 ├─ ELF ────► verdict of the headers; then, do ids change?
 *                 └─ other     execve() fails; a shell may take it for text
 *
 * The rules are Linux 5.1's and later: fs/exec.c, fs/binfmt_script.c, fs/binfmt_elf.c and
 * security/commoncap.c; tests/unit/collect/test_exec_files.c holds them against the kernel.  Nobody
 * can tell from a file what binfmt_misc or a security module do.
 *
 * Pure: bytes and what stat() says, no system call, no function of libc.
 */
#ifndef KRON_EXEC_H
#define KRON_EXEC_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* What the kernel reads of a file, with zeros after the end of a shorter one (BINPRM_BUF_SIZE). */
#define KRON_EXEC_HEAD 256
/* This many scripts, each the interpreter of the one before it; one more is ELOOP (exec_binprm()). */
#define KRON_EXEC_SCRIPTS 5
/* Longer paths of dynamic linkers, with their '\0', are not glibc's for us. */
#define KRON_EXEC_LINKER_MAX 256
#define KRON_EXEC_LINKER "ld-linux-x86-64.so.2"
#define KRON_EXEC_MUSL "ld-musl-x86_64.so.1"

/*
 * The note of a file from `kron patch` (inject/disk/patch_info.h): of type NT_VERSION, which has no
 * description but a name to be made use of.  (With a description eu-elflint would not know its
 * type.)  What it says starts after these eight bytes, with a version and flags of four bytes each.
 */
#define KRON_NOTE_OWNER "kron\0\0\0"
#define KRON_NOTE_HAS_START 2u /* a static program with the runtime in it (kron/start.h) */

/* ---- the head ---- */

enum kron_exec_kind { KRON_EXEC_ELF, KRON_EXEC_SCRIPT, KRON_EXEC_OTHER };

static inline enum kron_exec_kind kron_exec_kind(const char *head)
{
	if (head[0] == '#' && head[1] == '!')
		return KRON_EXEC_SCRIPT;
	return head[0] == ELFMAG0 && head[1] == ELFMAG1 && head[2] == ELFMAG2 && head[3] == ELFMAG3
		       ? KRON_EXEC_ELF
		       : KRON_EXEC_OTHER;
}

/*
 * "#! interpreter [argument]": the interpreter, in place; a relative one counts from the working
 * folder.  NULL: there is none, or the head may have cut it off.
 */
static inline char *kron_exec_interpreter(char head[KRON_EXEC_HEAD])
{
	unsigned start = 2, end;

	while (start < KRON_EXEC_HEAD && (head[start] == ' ' || head[start] == '\t'))
		start++;
	end = start;
	while (end < KRON_EXEC_HEAD && head[end] && head[end] != ' ' && head[end] != '\t' &&
	       head[end] != '\n')
		end++;
	if (end == start || end == KRON_EXEC_HEAD)
		return NULL;
	head[end] = '\0';
	return head + start;
}

/* ---- limits ---- */

/*
 * The dynamic linker loads the runtime before the program's own libraries.  Under small limits there is no
 * room for those then, and the program does not start.  Below these none could be traced either: the board's
 * window and a C library do not fit beside each other, or the C library's code may not be changed.
 */
#define KRON_EXEC_SPACE_MIN (8ull << 20) /* RLIMIT_AS */
#define KRON_EXEC_DATA_MIN (2ull << 20)  /* RLIMIT_DATA */

static inline bool kron_exec_has_room(uint64_t space, uint64_t data)
{
	return space >= KRON_EXEC_SPACE_MIN && data >= KRON_EXEC_DATA_MIN;
}

/* ---- ELF ---- */

enum kron_exec_verdict {
	KRON_EXEC_LOADS, /* glibc's ld.so loads what LD_PRELOAD names, or the runtime is in it */
	/* execve() fails: */
	KRON_EXEC_SHORT,      /* the file ends in its header */
	KRON_EXEC_NO_PROGRAM, /* an object, a core dump */
	KRON_EXEC_DAMAGED,    /* its program headers lie */
	/* it runs without us: */
	KRON_EXEC_32BIT,
	KRON_EXEC_MACHINE,     /* for another processor */
	KRON_EXEC_CUT_OFF,     /* a segment lies past the end of the file */
	KRON_EXEC_STATIC,      /* no dynamic linker */
	KRON_EXEC_LINKER_MUSL, /* it loads what LD_PRELOAD names, and has none of what that needs */
	KRON_EXEC_LINKER_OTHER
};

static inline bool kron_exec_fails(enum kron_exec_verdict v)
{
	return v == KRON_EXEC_SHORT || v == KRON_EXEC_NO_PROGRAM || v == KRON_EXEC_DAMAGED;
}

/* The file that is asked about, and what was found. */
struct kron_exec_file {
	/* Reads all of it, or returns false. */
	bool (*read)(const struct kron_exec_file *f, void *buf, size_t len, uint64_t off);
	int fd;
	uint64_t size;
	/* out, with LOADS, LINKER_MUSL and LINKER_OTHER: the dynamic linker's path, "" for none; cut off if long */
	char linker[KRON_EXEC_LINKER_MAX];
};

static inline bool kron_exec_is_linker(const char *path, const char *want)
{
	const char *name = path, *p;

	for (p = path; *p; p++)
		if (*p == '/')
			name = p + 1;
	while (*name && *name == *want) {
		name++;
		want++;
	}
	return *name == *want;
}

/* The kernel takes PT_INTERP's bytes, the last of which is '\0', for a path up to the first '\0'. */
static inline bool kron_exec_read_linker(struct kron_exec_file *f, const Elf64_Phdr *p)
{
	uint64_t n = p->p_filesz < sizeof(f->linker) ? p->p_filesz : sizeof(f->linker);
	char last;

	if (p->p_filesz < 2 || p->p_filesz > 4096 /* PATH_MAX */ ||
	    !f->read(f, &last, 1, p->p_offset + p->p_filesz - 1) || last ||
	    !f->read(f, f->linker, n, p->p_offset))
		return false;
	f->linker[sizeof(f->linker) - 1] = '\0';
	return true;
}

static inline bool kron_exec_has_start(const struct kron_exec_file *f, const Elf64_Phdr *p)
{
	static const char owner[sizeof(KRON_NOTE_OWNER)] = KRON_NOTE_OWNER;
	struct {
		Elf64_Nhdr head;
		char owner[sizeof(KRON_NOTE_OWNER)];
		uint32_t version, flags;
	} note;
	unsigned i = 0;

	if (p->p_filesz < sizeof(note) || !f->read(f, &note, sizeof(note), p->p_offset))
		return false;
	while (i < sizeof(owner) && note.owner[i] == owner[i])
		i++;
	return i == sizeof(owner) && note.head.n_type == NT_VERSION &&
	       note.head.n_namesz > sizeof(owner) && note.flags & KRON_NOTE_HAS_START;
}

/* Some at a time: a system call takes longer than to look at one. */
enum { KRON_EXEC_HEADERS = 8 };

static inline enum kron_exec_verdict kron_exec_read_headers(struct kron_exec_file *f,
							    const Elf64_Ehdr *e)
{
	bool has_linker = false, has_start = false, is_cut_off = false;
	Elf64_Phdr some[KRON_EXEC_HEADERS];
	unsigned i;

	if (e->e_phentsize != sizeof(Elf64_Phdr) || !e->e_phnum ||
	    e->e_phnum > 65536 / sizeof(Elf64_Phdr)) /* load_elf_phdrs() */
		return KRON_EXEC_DAMAGED;
	for (i = 0; i < e->e_phnum; i++) {
		const unsigned at = i % KRON_EXEC_HEADERS, left = e->e_phnum - i;
		const Elf64_Phdr *p = &some[at];

		if (!at &&
		    !f->read(f, some,
			     (left < KRON_EXEC_HEADERS ? left : KRON_EXEC_HEADERS) * sizeof(*p),
			     e->e_phoff + i * sizeof(*p)))
			return KRON_EXEC_DAMAGED;
		if (p->p_type == PT_LOAD)
			is_cut_off |= p->p_offset > f->size || p->p_filesz > f->size - p->p_offset;
		if (p->p_type == PT_NOTE)
			has_start |= kron_exec_has_start(f, p);
		if (p->p_type != PT_INTERP || has_linker)
			continue;
		if (!kron_exec_read_linker(f, p))
			return KRON_EXEC_DAMAGED;
		has_linker = true;
	}
	if (is_cut_off)
		return KRON_EXEC_CUT_OFF;
	if (has_linker)
		return kron_exec_is_linker(f->linker, KRON_EXEC_LINKER) ? KRON_EXEC_LOADS
		       : kron_exec_is_linker(f->linker, KRON_EXEC_MUSL) ? KRON_EXEC_LINKER_MUSL
									: KRON_EXEC_LINKER_OTHER;
	return has_start ? KRON_EXEC_LOADS : KRON_EXEC_STATIC;
}

/* A file with KRON_EXEC_ELF; whether it changes ids is another question. */
static inline enum kron_exec_verdict kron_exec_judge(struct kron_exec_file *f, Elf64_Ehdr *e)
{
	f->linker[0] = '\0';
	if (!f->read(f, e, sizeof(*e), 0))
		return KRON_EXEC_SHORT;
	if (e->e_ident[EI_CLASS] == ELFCLASS32)
		return KRON_EXEC_32BIT;
	if (e->e_machine != EM_X86_64)
		return KRON_EXEC_MACHINE;
	if (e->e_type != ET_EXEC && e->e_type != ET_DYN)
		return KRON_EXEC_NO_PROGRAM;
	return kron_exec_read_headers(f, e);
}

/* ---- ids ---- */

struct kron_exec_ids {
	uint32_t uid, euid, egid; /* of who executes it */
};

/*
 * Will the kernel set AT_SECURE for this program, so that ld.so ignores LD_PRELOAD?  When the
 * file changes an id, or has capabilities and root is not who executes it.  Set-id bits of scripts
 * mean nothing, those of their interpreters do.  Yes also where the bits are not honoured (nosuid,
 * PR_SET_NO_NEW_PRIVS), which a file does not say.
 */
static inline bool kron_exec_changes_ids(const struct stat *st, bool has_capabilities,
					 const struct kron_exec_ids *now)
{
	if ((st->st_mode & S_ISUID) && st->st_uid != now->euid)
		return true;
	/* without x for the group the bit once meant locking, and changes no id */
	if ((st->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st->st_gid != now->egid)
		return true;
	return has_capabilities && now->uid != 0;
}

#endif
