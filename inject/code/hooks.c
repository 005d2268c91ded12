/* SPDX-License-Identifier: MIT */
/*
 * hooks.c - finds the hooks' symbols; only the two modules that own them are looked at, and static
 * programs, which have libc's functions inside.  Everywhere else, and in static programs, too, it
 * looks for instructions: system calls, and what changes %fs; and everywhere for the ends of unwinders
 * and of longjmp, which have no symbols where they lie.
 */
#include "inject/code/hooks.h"

#include <emmintrin.h>
#include <string.h>
#include <sys/syscall.h>

#include "inject/elf/elf_image_impl.h"
#include "inject/elf/elf_symbols.h"

static const struct {
	const char *symbol, *soname;
} hooks[KRON_HOOK_SYMBOLS] = {
	[KRON_HOOK_EXECVE] = {"execve", "libc.so.6"},
	[KRON_HOOK_EXECVEAT] = {"execveat", "libc.so.6"},
	[KRON_HOOK_FEXECVE] = {"fexecve", "libc.so.6"},
	[KRON_HOOK_DL_STATE] = {"_dl_debug_state", "ld-linux-x86-64.so.2"},
	[KRON_HOOK_PRCTL] = {"prctl", "libc.so.6"},
	[KRON_HOOK_SYSCALL] = {"syscall", "libc.so.6"},
	[KRON_HOOK_SIGACTION] = {"sigaction", "libc.so.6"},
	[KRON_HOOK_MMAP] = {"mmap", "libc.so.6"},
	[KRON_HOOK_MREMAP] = {"mremap", "libc.so.6"},
	[KRON_HOOK_MPROTECT] = {"mprotect", "libc.so.6"},
	[KRON_HOOK_EXIT] = {"_exit", "libc.so.6"},
	[KRON_HOOK_VFORK] = {"vfork", "libc.so.6"},
	[KRON_HOOK_CLONE] = {"clone", "libc.so.6"},
	/* of several versions, which are functions of their own, each the next */
	[KRON_HOOK_SPAWN] = {"posix_spawn", "libc.so.6"},
	[KRON_HOOK_SPAWN_OLD] = {"posix_spawn", "libc.so.6"},
	[KRON_HOOK_SPAWNP] = {"posix_spawnp", "libc.so.6"},
	[KRON_HOOK_SPAWNP_OLD] = {"posix_spawnp", "libc.so.6"},
	[KRON_HOOK_ARCH_PRCTL] = {"arch_prctl", "libc.so.6"},
	[KRON_HOOK_MLOCKALL] = {"mlockall", "libc.so.6"},
};

static bool has_soname(const struct elf_image *img, const char *soname)
{
	const char *its = elf_image_soname(img);

	return its && !strcmp(its, soname);
}

struct search {
	const struct elf_image *img;
	uint64_t *vaddr;
	unsigned found;
};

static bool match(const struct elf_symbol *sym, void *ctx)
{
	struct search *s = ctx;

	if (sym->shndx == SHN_UNDEF || sym->type != STT_FUNC ||
	    !elf_image_is_exec(s->img, sym->value))
		return true;
	for (unsigned i = 0; i < KRON_HOOK_SYMBOLS; i++) {
		if (!hooks[i].symbol || strcmp(sym->name, hooks[i].symbol))
			continue;
		if (s->vaddr[i] && s->vaddr[i] != sym->value)
			continue;
		s->found += !s->vaddr[i];
		s->vaddr[i] = sym->value;
		break;
	}
	return s->found < KRON_HOOK_SYMBOLS;
}

/* Static programs have no linker that could load a library; what is wrapped there are the system
 * calls; kron patch leaves code alone that is copied, and nobody takes probes out of a file. */
static bool is_for_static(enum kron_hook h)
{
	switch (h) {
	case KRON_HOOK_DL_STATE:
	case KRON_HOOK_SIGACTION:
	case KRON_HOOK_MMAP:
	case KRON_HOOK_MREMAP:
	case KRON_HOOK_MPROTECT:
	case KRON_HOOK_HANDLERS:
	case KRON_HOOK_MLOCKALL:
		return false;
	default:
		return true;
	}
}

static bool is_linker_function(const struct elf_symbol *sym, void *ctx)
{
	bool *found = ctx;

	*found |= sym->shndx != SHN_UNDEF && !strcmp(sym->name, "_dl_debug_state");
	return !*found;
}

/* C library and dynamic linker in one file, which has no name of its own, or musl's. */
static bool is_musl(const struct elf_image *img)
{
	bool is_linker = false;
	uint64_t name;

	if (img->kind != ELF_KIND_SHARED ||
	    (elf_dynamic(img, DT_SONAME, &name) && !has_soname(img, "libc.musl-x86_64.so.1")))
		return false;
	elf_symbols_for_each(img, SHT_DYNSYM, is_linker_function, &is_linker);
	return is_linker;
}

/* As in a static program, but that libraries may come: what is wrapped are the system calls. */
static unsigned find_in_musl(struct search *s)
{
	unsigned kept = 0;

	elf_symbols_for_each(s->img, SHT_DYNSYM, match, s);
	for (unsigned i = 0; i < KRON_HOOK_SYMBOLS; i++) {
		if (!is_for_static(i) && i != KRON_HOOK_DL_STATE)
			s->vaddr[i] = 0;
		kept += s->vaddr[i] != 0;
	}
	return kept;
}

static bool owns_symbols(const struct elf_image *img)
{
	return has_soname(img, "libc.so.6") || has_soname(img, "ld-linux-x86-64.so.2");
}

static unsigned find_in_static(struct search *s)
{
	unsigned kept = 0;

	elf_symbols_for_each(s->img, SHT_SYMTAB, match, s);
	for (unsigned i = 0; i < KRON_HOOK_SYMBOLS; i++) {
		if (!is_for_static(i))
			s->vaddr[i] = 0;
		kept += s->vaddr[i] != 0;
	}
	return kept;
}

unsigned hooks_find(const struct elf_image *img, uint64_t vaddr[KRON_HOOK_SYMBOLS])
{
	struct search s = {.img = img, .vaddr = vaddr};
	unsigned kept = 0;

	memset(vaddr, 0, KRON_HOOK_SYMBOLS * sizeof(vaddr[0]));
	if (img->kind == ELF_KIND_STATIC)
		return find_in_static(&s);
	if (is_musl(img))
		return find_in_musl(&s);
	if (!owns_symbols(img))
		return 0;
	elf_symbols_for_each(img, SHT_DYNSYM, match, &s);
	for (unsigned i = 0; i < KRON_HOOK_SYMBOLS; i++) {
		if (!hooks[i].symbol || !has_soname(img, hooks[i].soname))
			vaddr[i] = 0;
		kept += vaddr[i] != 0;
	}
	return kept;
}

/* ---- system calls ---- */

#define BACK_MAX 16u /* instructions between a number and its `syscall` */
#define RAX 0

static bool is_wanted_number(uint64_t n)
{
	return n == SYS_rt_sigaction || n == SYS_prctl || n == SYS_seccomp || n == SYS_mlockall ||
	       n == SYS_execve || n == SYS_execveat || n == SYS_clone || n == SYS_clone3 ||
	       n == SYS_arch_prctl;
}

/* The instruction sets eax: to *number, or to 0, or to what it does not say (false). */
static bool is_number(const struct elf_image *img, const struct insn *in, uint64_t *number)
{
	const uint8_t *code = elf_image_at(img, in->addr, in->len);
	bool is_zero = in->len == 2 && code && (code[0] == 0x31 || code[0] == 0x33) &&
		       code[1] == 0xc0; /* xor %eax,%eax */

	*number = is_zero ? 0 : (uint32_t)in->imm;
	return is_zero || (in->op == INSN_OP_MOV && in->dest_reg == RAX && in->has_imm);
}

uint64_t hooks_place(const struct code_map *map, enum kron_hook h, const struct function *f)
{
	struct insn in;

	if (h != KRON_HOOK_MMAP && h != KRON_HOOK_MREMAP && h != KRON_HOOK_MLOCKALL)
		return f->start;
	for (uint64_t at = f->start; at < f->end; at++)
		if (code_map_flags(map, at) & CODE_INSN && code_map_insn(map, at, &in) &&
		    in.kind == INSN_SYSCALL)
			return h == KRON_HOOK_MLOCKALL ? at : at + in.len;
	return 0;
}

static bool is_system_call(const struct code_map *map, uint64_t vaddr)
{
	uint64_t at = vaddr, number;
	struct insn in;

	if (!(code_map_flags(map, vaddr) & CODE_INSN) || !code_map_insn(map, vaddr, &in) ||
	    in.kind != INSN_SYSCALL)
		return false;
	for (unsigned i = 0; i < BACK_MAX && !code_map_is_target(map, at); i++) {
		at = code_map_previous(map, at);
		if (!at || !code_map_insn(map, at, &in))
			return true;
		if (in.regs_written & 1u << RAX || in.dest_reg == RAX)
			return !is_number(map->img, &in, &number) || is_wanted_number(number);
	}
	return true;
}

/* wrfsbase; mov to %fs; pop %fs.  The others that load it take a far pointer, which nobody has. */
static bool changes_fs(const uint8_t *code, uint64_t avail)
{
	unsigned at = code[0] == 0xf3;

	if (avail < 4)
		return false;
	if (at) {
		at += (code[at] & 0xf0) == 0x40;
		return avail >= at + 3u && code[at] == 0x0f && code[at + 1] == 0xae &&
		       (code[at + 2] & 0xf8) == 0xd0;
	}
	at = (code[0] & 0xf0) == 0x40;
	return (code[at] == 0x8e && (code[at + 1] & 0x38) == 0x20) ||
	       (code[at] == 0x0f && code[at + 1] == 0xa1);
}

static bool is_syscall(const uint8_t *code, uint64_t avail)
{
	return avail >= 2 && code[0] == 0x0f && code[1] == 0x05;
}

bool hooks_has_instructions(const struct elf_image *img)
{
	return img->kind == ELF_KIND_STATIC || !owns_symbols(img);
}

/* Sixteen bytes at a time: all of a library are asked.  The last ones are left to hooks_at(). */
uint64_t hooks_next(const uint8_t *code, uint64_t at, uint64_t n)
{
#define IS(v, byte) _mm_cmpeq_epi8(v, _mm_set1_epi8((char)(byte)))
#define HIGH(v) _mm_and_si128(v, _mm_set1_epi8((char)0xf0))
	for (; at + 17 <= n; at += 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)(code + at));
		__m128i next = _mm_loadu_si128((const __m128i *)(code + at + 1));
		__m128i prefix = _mm_or_si128(IS(v, 0xf3), IS(HIGH(v), 0x40));
		__m128i after = _mm_or_si128(IS(next, 0x0f), IS(next, 0x8e));
		__m128i plain = _mm_or_si128(IS(next, 0x05), IS(next, 0xa1));
		int found;

		plain = _mm_or_si128(_mm_and_si128(IS(v, 0x0f), plain), IS(v, 0x8e));
		prefix = _mm_or_si128(_mm_and_si128(prefix, after),
				      _mm_and_si128(IS(v, 0xf3), IS(HIGH(next), 0x40)));
		found = _mm_movemask_epi8(_mm_or_si128(plain, prefix));
		if (found)
			return at + (unsigned)__builtin_ctz((unsigned)found);
	}
	return at < n ? at : n;
#undef IS
#undef HIGH
}

enum kron_hook hooks_at(const struct code_map *map, uint64_t vaddr, const uint8_t *code,
			uint64_t avail)
{
	if (is_syscall(code, avail) && is_system_call(map, vaddr))
		return KRON_HOOK_SYSTEM_CALL;
	if (changes_fs(code, avail) && code_map_flags(map, vaddr) & CODE_INSN)
		return KRON_HOOK_FS;
	return KRON_HOOK_COUNT;
}

/* ---- where the stack is unwound ---- */

#define UNWIND_MAX 9u
static const struct {
	uint8_t hook, n, code[UNWIND_MAX];
} unwinds[] = {
	/* GCC's __builtin_eh_return: mov %rcx,%rsp; then pop %rcx; jmp *%rcx, or ret */
	{KRON_HOOK_UNWIND, 6, {0x48, 0x89, 0xcc, 0x59, 0xff, 0xe1}},
	{KRON_HOOK_UNWIND, 4, {0x48, 0x89, 0xcc, 0xc3}},
	/* mov 56(%rdi),%rsp; pop %rdi; likewise */
	{KRON_HOOK_UNWIND_LLVM, 8, {0x48, 0x8b, 0x67, 0x38, 0x5f, 0x59, 0xff, 0xe1}},
	{KRON_HOOK_UNWIND_LLVM, 6, {0x48, 0x8b, 0x67, 0x38, 0x5f, 0xc3}},
	/* mov %r8,%rsp; mov %r9,%rbp; perhaps nop, where SystemTap may look; jmp *%rdx */
	{KRON_HOOK_LONGJMP, 8, {0x4c, 0x89, 0xc4, 0x4c, 0x89, 0xcd, 0xff, 0xe2}},
	{KRON_HOOK_LONGJMP, 9, {0x4c, 0x89, 0xc4, 0x4c, 0x89, 0xcd, 0x90, 0xff, 0xe2}},
	/* mov 48(%rdi),%rsp; jmp *56(%rdi) */
	{KRON_HOOK_LONGJMP_MUSL, 7, {0x48, 0x8b, 0x67, 0x30, 0xff, 0x67, 0x38}},
};

static enum kron_hook unwind_of(const uint8_t *code, uint64_t avail)
{
	for (size_t i = 0; i < sizeof(unwinds) / sizeof(unwinds[0]); i++)
		if (avail >= unwinds[i].n && !memcmp(code, unwinds[i].code, unwinds[i].n))
			return unwinds[i].hook;
	return KRON_HOOK_COUNT;
}

/* The first offset from `at` on whose second and third byte may be those of one of them; n: nowhere. */
static uint64_t next_unwind(const uint8_t *code, uint64_t at, uint64_t n)
{
#define IS(at, byte) \
	_mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(code + (at))), _mm_set1_epi8((char)(byte)))
	for (; at + 18 <= n; at += 16) {
		__m128i moves = _mm_and_si128(IS(at + 1, 0x89),
					      _mm_or_si128(IS(at + 2, 0xcc), IS(at + 2, 0xc4)));
		__m128i loads = _mm_and_si128(IS(at + 1, 0x8b), IS(at + 2, 0x67));
		int found = _mm_movemask_epi8(_mm_or_si128(moves, loads));

		if (found)
			return at + (unsigned)__builtin_ctz((unsigned)found);
	}
	return at < n ? at : n;
#undef IS
}

enum kron_hook hooks_next_unwind(const struct code_map *map, uint64_t vaddr, const uint8_t *code,
				 uint64_t n, uint64_t *at)
{
	for (*at = next_unwind(code, *at, n); *at < n; *at = next_unwind(code, *at + 1, n)) {
		enum kron_hook h = unwind_of(code + *at, n - *at);

		if (h != KRON_HOOK_COUNT && code_map_flags(map, vaddr + *at) & CODE_INSN)
			return h;
	}
	return KRON_HOOK_COUNT;
}
