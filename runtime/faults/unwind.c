/* SPDX-License-Identifier: MIT */
/*
 * unwind.c - shows the trampoline blocks to whoever walks stacks in this process.
 *
 *   libgcc (C++, backtrace(), pthread_cancel) ── _dl_find_object() ──┐
 *   libunwind, older libgcc ── dl_iterate_phdr() ────────────────────┼─► ours, then libc's
 *   gdb ── __jit_debug_descriptor ── the ELF image in each block     ┘
 *
 * The two functions are the only names that libkron-rt.so exports.  They stand in for libc's
 * because unwinders call them through the dynamic symbol table, and nothing else needs them: a
 * library that is bound otherwise (RTLD_DEEPBIND, dlmopen) stops at a stub, as it would at any
 * code that it does not know.
 *
 * The debugger's names stay local symbols: a program with a JIT compiler of its own (LLVM) has
 * names like these, and must not find ours.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include "runtime/core/rt.h"
#include "runtime/sys/elf_lookup.h"
#include "runtime/faults/faults.h"
#include "runtime/faults/spots.h"
#include "runtime/faults/unwind.h"
#include "runtime/sys/mini.h"

#define EXPORT __attribute__((visibility("default")))

static uint64_t changes[2];               /* blocks that came, that went */
static const char *const name = "[kron]"; /* of no file */

/* ---- the debugger's list ---- */

enum { JIT_NOACTION, JIT_REGISTER, JIT_UNREGISTER };
struct jit_code_entry {
	struct jit_code_entry *next, *prev;
	const void *symfile_addr;
	uint64_t symfile_size;
};
struct jit_descriptor {
	uint32_t version;
	uint32_t action_flag;
	struct jit_code_entry *relevant_entry;
	struct jit_code_entry *first_entry;
};
static struct jit_code_entry entries[RT_BLOCKS_MAX];
/* gdb finds both by name, in .symtab. */
struct jit_descriptor __jit_debug_descriptor
	__attribute__((visibility("hidden"), used)) = {1, 0, 0, 0};

/* gdb has a breakpoint here. */
void __attribute__((visibility("hidden"), noinline, used)) __jit_debug_register_code(void)
{
	__asm__ volatile("" : : : "memory");
}

static void jit_tell(struct jit_code_entry *e, uint32_t action)
{
	__jit_debug_descriptor.relevant_entry = e;
	__jit_debug_descriptor.action_flag = action;
	__jit_debug_register_code();
	__jit_debug_descriptor.action_flag = JIT_NOACTION;
}

static void jit_add(struct jit_code_entry *e, const struct kron_tables *t)
{
	e->symfile_addr = (const uint8_t *)t + t->elf_at;
	e->symfile_size = t->elf_size;
	e->prev = NULL;
	e->next = __jit_debug_descriptor.first_entry;
	if (e->next)
		e->next->prev = e;
	__jit_debug_descriptor.first_entry = e;
	jit_tell(e, JIT_REGISTER);
}

static void jit_remove(struct jit_code_entry *e)
{
	if (e->prev)
		e->prev->next = e->next;
	else
		__jit_debug_descriptor.first_entry = e->next;
	if (e->next)
		e->next->prev = e->prev;
	jit_tell(e, JIT_UNREGISTER);
}

/* ---- blocks come and go ---- */

void rt_unwind_add(uint64_t addr, uint64_t len)
{
	int i = rt_blocks_add(addr, len);

	if (i < 0)
		return;
	__atomic_fetch_add(&changes[0], 1, __ATOMIC_RELEASE);
	jit_add(&entries[i], rt_block((uint32_t)i));
	rt_faults_block(rt_block((uint32_t)i));
}

void rt_unwind_remove(uint64_t addr)
{
	int i = rt_blocks_remove(addr);

	if (i < 0)
		return;
	__atomic_fetch_add(&changes[1], 1, __ATOMIC_RELEASE);
	jit_remove(&entries[i]);
}

/* ---- _dl_find_object ---- */

struct found_object { /* struct dl_find_object of <dlfcn.h>, glibc 2.35 */
	unsigned long long flags;
	void *start, *end;
	struct link_map *map;
	void *frame_hdr;
	unsigned long long reserved[7];
};
typedef int find_object(void *pc, struct found_object *out);
/* Under a name of its own: old headers do not declare it, new ones with a type of theirs. */
EXPORT int rt_find_object(void *pc, struct found_object *out) __asm__("_dl_find_object");

EXPORT int rt_find_object(void *pc, struct found_object *out)
{
	static find_object *next;
	find_object *f = __atomic_load_n(&next, __ATOMIC_RELAXED);
	const struct kron_tables *t = rt_block_at((uint64_t)pc);

	if (!f) {
		f = (find_object *)elf_lookup_next("_dl_find_object");
		__atomic_store_n(&next, f, __ATOMIC_RELAXED);
	}
	if (!t)
		return f ? f(pc, out) : -1;
	/* it is part of the module whose code it holds */
	if (!f || f((void *)t->lo, out) != 0) {
		mini_zero(out, offsetof(struct found_object, reserved));
	}
	out->start = (void *)t->block;
	out->end = (uint8_t *)t + t->size;
	out->frame_hdr = (uint8_t *)t + t->frame_hdr_at;
	return 0;
}

/* ---- dl_iterate_phdr ---- */

typedef int visitor(struct dl_phdr_info *info, size_t size, void *data);
typedef int iterate(visitor *fn, void *data);

struct walk {
	visitor *fn;
	void *data;
	uint64_t adds, subs;
	size_t size;
	struct dl_phdr_info own; /* libkron-rt.so; dlpi_name is set once it was met */
};

/* The program's counters tell whether anything has changed: ours are part of them. */
static int visit_module(struct dl_phdr_info *info, size_t size, void *data)
{
	struct walk *w = data;
	struct dl_phdr_info copy;

	if (size < sizeof(copy))
		return w->fn(info, size, w->data);
	w->size = size;
	w->adds = info->dlpi_adds;
	w->subs = info->dlpi_subs;
	if (size > sizeof(copy)) /* of a later libc: handed on as it is */
		return w->fn(info, size, w->data);
	copy = *info;
	copy.dlpi_adds += __atomic_load_n(&changes[0], __ATOMIC_ACQUIRE);
	copy.dlpi_subs += __atomic_load_n(&changes[1], __ATOMIC_ACQUIRE);
	if (copy.dlpi_addr == elf_own_start() && copy.dlpi_name && *copy.dlpi_name) {
		w->own = copy; /* shown last: see dl_iterate_phdr() */
		return 0;
	}
	return w->fn(&copy, size, w->data);
}

static int visit_block(const struct walk *w, uint64_t start, const struct kron_tables *t)
{
	const uint64_t at = (uint64_t)t - start;
	Elf64_Phdr ph[2] = {
		{.p_type = PT_LOAD,
		 .p_flags = PF_R | PF_X,
		 .p_filesz = at + t->size,
		 .p_memsz = at + t->size,
		 .p_align = 4096},
		{.p_type = PT_GNU_EH_FRAME,
		 .p_flags = PF_R,
		 .p_vaddr = at + t->walker_hdr_at,
		 .p_filesz = KRON_FRAME_HDR_SIZE,
		 .p_memsz = KRON_FRAME_HDR_SIZE,
		 .p_align = 4},
	};
	struct dl_phdr_info info = {
		.dlpi_addr = start,
		.dlpi_name = name,
		.dlpi_phdr = ph,
		.dlpi_phnum = 2,
		.dlpi_adds = w->adds + __atomic_load_n(&changes[0], __ATOMIC_ACQUIRE),
		.dlpi_subs = w->subs + __atomic_load_n(&changes[1], __ATOMIC_ACQUIRE),
	};

	return w->fn(&info, sizeof(info), w->data);
}

/*
 * We stand after the program's own modules, libkron-rt.so too, which the dynamic linker has in
 * front: gcc's AddressSanitizer ends a program whose first library is another one.
 */
EXPORT int dl_iterate_phdr(visitor *fn, void *data)
{
	static iterate *next;
	iterate *f = __atomic_load_n(&next, __ATOMIC_RELAXED);
	struct walk w = {.fn = fn, .data = data};
	const uint32_t n = rt_blocks_max();
	int ret = 0;

	if (!f) {
		f = (iterate *)elf_lookup_next("dl_iterate_phdr");
		__atomic_store_n(&next, f, __ATOMIC_RELAXED);
	}
	if (f)
		ret = f(visit_module, &w);
	if (!ret && w.own.dlpi_name)
		ret = fn(&w.own, sizeof(w.own), data);
	for (uint32_t i = 0; i < n && !ret; i++) {
		const struct kron_tables *t = rt_block(i);

		if (t)
			ret = visit_block(&w, rt_block_start(t), t);
	}
	return ret;
}
