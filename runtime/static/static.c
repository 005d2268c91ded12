/* SPDX-License-Identifier: MIT */
/*
 * static.c - the runtime in a static program: its start, and what stands in for parts that are
 * not there.
 *
 * Nobody has preloaded us: the file's own entry point leads here, in a process that may not be
 * traced at all.  Then we look at the environment and are gone, and have touched nothing.
 *
 * What a static program does not have: hooks by name, if it has no symbols (then nothing puts the
 * environment back, so it stays visible), traps of ours, and a _dl_find_object of ours; the
 * program's table for unwinders has the block's tables already.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <sys/mman.h>
#include <kron/live.h>
#include "runtime/core/rt.h"
#include "runtime/hooks/hooks.h"
#include "runtime/static/static.h"
#include "runtime/faults/faults.h"
#include "runtime/faults/unwind.h"
#include "runtime/sys/memory.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

#define HWCAP2_FSGSBASE 2u

/* What follows prefix in an entry of the environment, or NULL. */
static const char *env_value(char **envp, const char *prefix)
{
	for (; *envp; envp++) {
		const char *value = mini_after(*envp, prefix);

		if (value)
			return value;
	}
	return NULL;
}

static uint64_t auxv_value(const Elf64_auxv_t *auxv, uint64_t type)
{
	for (; auxv->a_type != AT_NULL; auxv++) {
		if (auxv->a_type == type)
			return auxv->a_un.a_val;
	}
	return 0;
}

static bool has_data; /* zero before it may be written to */

bool rt_has_data(void)
{
	return has_data;
}

uint64_t rt_live_entry(void)
{
	return 0;
}

uint32_t rt_hello_flags(void)
{
	return 0;
}

/* Maps our data.  Until then the runtime has no memory that it may write to. */
static bool map_data(void)
{
	uint8_t *at = (uint8_t *)(uintptr_t)&kron_start + kron_start.data_off;

	if (sys_failed(sys_mmap(at, kron_start.data_len, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)))
		return false;
	has_data = true;
	return true;
}

/* sp: the kernel's: argc, argv, NULL, envp, NULL, auxv. */
static void start_program(uint64_t *sp)
{
	char **envp = (char **)(sp + 1 + sp[0] + 1);
	char **end = envp;
	const Elf64_auxv_t *auxv;
	bool recorded = env_value(envp, KRON_ENV_RT "=");
	const char *board = env_value(envp, RT_ENV_BOARD);
	bool asked = recorded ? !(kron_start.flags & KRON_START_DYNAMIC) : board != NULL;

	while (*end)
		end++;
	auxv = (const Elf64_auxv_t *)(end + 1);
	/* A program with more rights than whoever started it does not obey the environment. */
	asked = asked && !auxv_value(auxv, AT_SECURE);
	if (!asked && !(kron_start.flags & KRON_START_WRAPS))
		return;
	if (!map_data() || (kron_start.flags & KRON_START_SMALL_STACKS && !rt_map_stacks()) ||
	    !asked)
		return;
	kron_rt_thread_init(auxv_value(auxv, AT_HWCAP2) & HWCAP2_FSGSBASE, kron_live_has_rdpid(),
			    KRON_LIVE_DATA_FROM, KRON_LIVE_DATA_END);
	kron_rt.parent_flags = KRON_PROC_STATIC;
	if (recorded)
		rt_start(envp);
	else
		kron_rt_board(board);
}

/* A library's start: by ld.so at the program's start, or by dlopen() at any time.  No argument says
 * which. */
static void start_library(void)
{
	char board[RT_BOARD_NAME_MAX + 1];

	if (has_data || !rt_library_is_asked(board) || !map_data() ||
	    (kron_start.flags & KRON_START_SMALL_STACKS && !rt_map_stacks()))
		return;
	kron_rt_thread_init(false, kron_live_has_rdpid(), KRON_LIVE_DATA_FROM, KRON_LIVE_DATA_END);
	kron_rt_board(board);
}

void kron_rt_static(uint64_t *sp)
{
	if (kron_start.flags & KRON_START_LIBRARY)
		start_library();
	else
		start_program(sp);
}

/* ---- the one block ---- */

/* The file's, or the one that a collector has put in its place. */
static const struct kron_tables *tables(void)
{
	uint64_t block = (uint64_t)&kron_start - kron_start.block_len;
	uint32_t at = *(const uint32_t *)(block + KRON_BLOCK_TABLES);
	const struct kron_tables *t = (const struct kron_tables *)(block + at);

	return at && at < kron_start.block_len && t->magic == KRON_TABLES_MAGIC ? t : NULL;
}

const struct kron_tables *rt_block_at(uint64_t pc)
{
	const uint64_t end = (uint64_t)&kron_start;

	return pc < end && pc >= end - kron_start.block_len ? tables() : NULL;
}

/* There is one block. */
const struct kron_tables *rt_block_of_text_next(const struct kron_tables *after, uint64_t pc)
{
	return after ? NULL : rt_block_of_text(pc);
}

const struct kron_tables *rt_block_of_text(uint64_t pc)
{
	const struct kron_tables *t = tables();

	return t && pc - t->lo - kron_tables_bias(t) < t->hi - t->lo ? t : NULL;
}

bool rt_unwind_has_room(void)
{
	return false;
}

uint32_t rt_blocks_max(void)
{
	return 1;
}

const struct kron_tables *rt_block(uint32_t i)
{
	(void)i;
	return tables();
}

uint64_t rt_block_size(uint32_t i)
{
	(void)i;
	return kron_start.block_len;
}

/* ---- parts that are not there ---- */

void rt_faults_board(void)
{
}

void rt_hook_dl_state(void)
{
}

void rt_hook_mmap(const struct rt_regs *r)
{
	(void)r;
}

void rt_hook_mremap(const struct rt_regs *r)
{
	(void)r;
}

void rt_hook_mprotect(const struct rt_regs *r)
{
	(void)r;
}

long rt_copies_watch(uint64_t addr, uint64_t len)
{
	(void)addr;
	(void)len;
	return 0;
}

void rt_unwind_add(uint64_t block, uint64_t len)
{
	(void)block;
	(void)len;
}

void rt_unwind_release(uint64_t block)
{
	(void)block;
}

void rt_unwind_remove(uint64_t block)
{
	(void)block;
}
