/* SPDX-License-Identifier: MIT */
/*
 * hook_map.c - what the program does with the memory that its code is in.
 *
 * It maps some of its code once more, to run it there:
 *
 *   mmap()    of the file: the code as it is there, without probes
 *   mremap()  with MREMAP_DONTUNMAP: the pages that we changed go along, and what stays behind is
 *             the file's.  A second one brings them back, so that the program has what it would
 *             have without us: the file's pages at both places, but for our probes here.
 *
 * Then the collector is asked for the copy's own probes, before anything runs in it.  Only programs
 * that are known to do so (KRON_CMD_COPIES) come as far as that.  A copy by memcpy has our jumps,
 * which hold there.
 *
 * It is about to write to code, by mprotect(): what it writes, a breakpoint of its own or a jump to
 * another function, is to take effect, and what it reads is to be its own.  So the collector is
 * asked to take the module's probes out first.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include "runtime/core/rt.h"
#include "runtime/hooks/hooks.h"
#include "runtime/sys/sys.h"
#include "runtime/faults/unwind.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

#define WATCHED_MAX 4u /* modules; of more the copies run without probes */

static struct {
	uint64_t addr, len;
} watched[WATCHED_MAX];
static uint32_t nwatched; /* atomic; only grows */

long rt_copies_watch(uint64_t addr, uint64_t len)
{
	uint32_t n = nwatched;

	if (n == WATCHED_MAX)
		return 0;
	watched[n].addr = addr;
	watched[n].len = len;
	/* Release: the entry; partner: the hooks. */
	__atomic_store_n(&nwatched, n + 1, __ATOMIC_RELEASE);
	return 0;
}

/* All of it lies in code that is copied. */
static bool is_watched(uint64_t addr, uint64_t len)
{
	uint32_t n = __atomic_load_n(&nwatched, __ATOMIC_ACQUIRE);
	uint32_t i;

	for (i = 0; i < n; i++)
		if (addr >= watched[i].addr && len <= watched[i].len &&
		    addr - watched[i].addr <= watched[i].len - len)
			return true;
	return false;
}

static void ask_about(uint32_t kind, uint64_t addr, uint64_t len)
{
	rt_modules_ask((struct rt_question){
		.kind = kind, .range = addr, .range_len = (len + 4095) & -4096ul});
}

void rt_hook_mmap(const struct rt_regs *r)
{
	if (__atomic_load_n(&nwatched, __ATOMIC_ACQUIRE) && r->rdx & PROT_EXEC && (int)r->r8 >= 0 &&
	    !(r->r10 & MAP_ANONYMOUS) && !sys_failed((long)r->rax))
		ask_about(KRON_HELLO_MAPPED, r->rax, r->rsi);
}

void rt_hook_mremap(const struct rt_regs *r)
{
	const uint64_t from = r->rdi, len = r->rsi;

	if (!(r->r10 & MREMAP_DONTUNMAP) || sys_failed((long)r->rax) || r->rdx != len ||
	    !is_watched(from, len) || kron_rt.quiet)
		return;
	if (sys_failed(sys5(__NR_mremap, (long)r->rax, (long)len, (long)len,
			    MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, (long)from)))
		return;
	ask_about(KRON_HELLO_MAPPED, r->rax, len);
}

void rt_hook_mprotect(const struct rt_regs *r)
{
	if (r->rdx & PROT_WRITE && rt_unwind_claim(r->rdi, r->rsi))
		ask_about(KRON_HELLO_WRITES, r->rdi, r->rsi);
}
