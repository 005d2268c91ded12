/* SPDX-License-Identifier: MIT */
/*
 * start.c - START: runs before the first instruction of the program's own code.
 *
 * Linked with -z initfirst, so no constructor of any other library has run, no thread exists
 * but ours, and no handler is installed.  Whatever goes wrong, the program goes on untraced,
 * and the collector, if it can be reached, is told why.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/prctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "runtime/sys/memory.h"
#include "runtime/core/rt.h"
#include "runtime/core/thread.h"
#include "runtime/faults/faults.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

/* ---- the segment ---- */

static bool is_our_segment(const struct kron_ctl *ctl, const uint8_t *session)
{
	return ctl->magic == KRON_SEGMENT_MAGIC && ctl->version == KRON_SEGMENT_VERSION &&
	       mini_mismatch(ctl->session, session, 16) == 16;
}

#define TAIL_SIZE (KRON_WINDOW_SIZE - KRON_CTL_OFFSET)

void rt_unmap_all(bool hardware)
{
	sys_munmap((void *)(uintptr_t)KRON_CTL_ADDR, TAIL_SIZE);
	if (hardware)
		sys_munmap((void *)(uintptr_t)KRON_WINDOW_ADDR, KRON_BOARD_SIZE);
	if (kron_rt.board.memory)
		sys_munmap(kron_rt.board.memory, KRON_MEMORY_BYTES);
	rt_pool_unmap();
}

/*
 * Control block, tables, model, at their place after the window.  The window itself stays
 * free: a program that uses the board by itself (libmk) has it there.
 */
static uint32_t map_tail(const struct rt_segment *seg, uint64_t *detail)
{
	long at = rt_map_shared(KRON_CTL_ADDR, true, TAIL_SIZE, PROT_READ | PROT_WRITE, seg->fd,
				KRON_CTL_OFFSET);

	if (sys_failed(at)) {
		*detail = (uint64_t)-at;
		return KRON_RESULT_WINDOW_TAKEN;
	}
	at -= KRON_CTL_OFFSET;
	kron_rt.ctl = (struct kron_ctl *)(at + KRON_CTL_OFFSET);
	kron_rt.states = (uint64_t *)(at + KRON_STATES_OFFSET);
	kron_rt.sources = (struct kron_source *)(at + KRON_SOURCES_OFFSET);
	kron_rt.procs = (struct kron_proc *)(at + KRON_PROCS_OFFSET);
	kron_rt.count_table = (struct kron_counts *)(at + KRON_COUNTS_OFFSET);
	kron_rt.board.ctl = kron_rt.ctl;
	kron_rt.board.model = (struct model *)(at + KRON_MODEL_OFFSET);
	return is_our_segment(kron_rt.ctl, seg->session) ? KRON_RESULT_OK : KRON_RESULT_VERSION;
}

/* What the bus of the session needs. */
static uint32_t map_bus(const struct rt_segment *seg, uint64_t *detail)
{
	long at;

	if (kron_rt.bus != KRON_BUS_LANE)
		rt_threads_take_board();
	if (kron_rt.bus == KRON_BUS_EXACT) {
		at = rt_map_shared(RT_MEMORY_HINT, false, KRON_MEMORY_BYTES, PROT_READ | PROT_WRITE,
				   seg->fd, KRON_MEMORY_OFFSET);
		if (sys_failed(at)) {
			*detail = (uint64_t)-at;
			return KRON_RESULT_MAP_FAILED;
		}
		kron_rt.board.memory = (void *)at;
		return board_is_sane(&kron_rt.board) ? KRON_RESULT_OK : KRON_RESULT_BOARD;
	}
	if (kron_rt.bus != KRON_BUS_HARDWARE)
		return KRON_RESULT_OK;
	if (!rt_has_rseq())
		return KRON_RESULT_NO_RSEQ;
	at = rt_map_shared(KRON_WINDOW_ADDR, true, KRON_BOARD_SIZE, PROT_READ | PROT_WRITE,
			   seg->hardware, 0);
	if (sys_failed(at)) {
		*detail = (uint64_t)-at;
		return KRON_RESULT_WINDOW_TAKEN;
	}
	return KRON_RESULT_OK;
}

static uint32_t map_segment(const struct rt_segment *seg, uint64_t *detail)
{
	struct stat st;
	uint32_t code;
	bool hardware;
	long at;

	if (sys2(__NR_fstat, seg->fd, (long)&st) != 0 || (uint64_t)st.st_size < seg->size ||
	    seg->size < KRON_WINDOW_SIZE + KRON_CHUNK_SIZE) {
		*detail = EINVAL;
		return KRON_RESULT_MAP_FAILED;
	}
	code = map_tail(seg, detail);
	if (code == KRON_RESULT_WINDOW_TAKEN)
		return code; /* nothing to undo: the mapping there is somebody else's */
	if (code == KRON_RESULT_OK)
		code = map_bus(seg, detail);
	hardware = code == KRON_RESULT_OK && kron_rt.bus == KRON_BUS_HARDWARE;
	at = code == KRON_RESULT_OK ? rt_pool_map(seg) : 0;
	if (sys_failed(at)) {
		*detail = (uint64_t)-at;
		code = KRON_RESULT_MAP_FAILED;
	}
	if (code != KRON_RESULT_OK)
		rt_unmap_all(hardware);
	return code;
}

uint32_t rt_attach(const struct rt_segment *seg, uint64_t *detail)
{
	uint32_t code;

	kron_rt.bus = seg->bus;
	code = map_segment(seg, detail);
	if (code != KRON_RESULT_OK)
		return code;
	kron_rt.filtered = sys1(__NR_prctl, PR_GET_SECCOMP) > 0;
	rt_threads_start();
	board_remember_threads(&kron_rt.proc->epoch);
	if (!rt_proc_claim(KRON_PROC_EXEC, sys_getpid(), seg->ticket)) {
		rt_unmap_all(seg->hardware >= 0);
		return KRON_RESULT_NO_SLOT;
	}
	/* Whoever stops us now does not apply commands in the middle of ours: rt_change(). */
	__atomic_store_n(&kron_rt.proc->asks, 1, __ATOMIC_RELEASE);
	kron_rt.live = true;
	return KRON_RESULT_OK;
}

/* ---- START ---- */

uint32_t rt_begin(const struct rt_answer *a, struct kron_result *res)
{
	const struct kron_reply *r = &a->reply;
	const bool hardware = r->flags & KRON_REPLY_HARDWARE;
	const struct rt_segment seg = {.fd = a->fd[0],
				       .hardware = hardware ? a->fd[1] : -1,
				       .size = r->segment_size,
				       .session = kron_rt_env.session,
				       .ticket = r->ticket,
				       .bus = r->bus};
	uint32_t flags = 0;

	if (r->version != KRON_WIRE_VERSION) {
		res->code = KRON_RESULT_VERSION;
		return 0;
	}
	kron_rt.no_children = r->flags & KRON_REPLY_NO_CHILDREN;
	kron_rt.waits = r->when_full == KRON_WHEN_FULL_WAIT;
	rt_threads_clock(r->clock_every);
	if (r->flags & KRON_REPLY_SMALL_STACKS && !kron_rt_stacks && !rt_map_stacks()) {
		res->code = KRON_RESULT_MAP_FAILED;
		return 0;
	}
	if (r->flags & KRON_REPLY_CUTTABLE)
		rt_faults_board();
	res->code = rt_attach(&seg, &res->detail);
	if (res->code != KRON_RESULT_OK) {
		rt_log("cannot attach, code", res->code);
	} else {
		res->proc_uid = kron_rt.proc->uid;
		res->proc_slot = kron_rt.proc->slot;
		if (r->when_full == KRON_WHEN_FULL_WRAP)
			rt_memory_into_cores();
		if (r->ncommands)
			flags = rt_apply(a, a->fd[1 + hardware], res);
		__atomic_store_n(&kron_rt.proc->asks, 0, __ATOMIC_RELEASE);
	}
	return flags;
}

uint32_t rt_start(char **envp)
{
	struct kron_result res;
	struct rt_answer a;
	uint32_t flags;
	int ret;

	if (!rt_env_read(envp))
		return 0;
	mini_zero(&res, sizeof(res));
	ret = rt_ask(&a, &(struct rt_question){.kind = KRON_HELLO_START});
	if (ret) {
		/* kron has ended; this program was started by one that it had traced.  Its children
		 * need not try. */
		rt_log("no collector, errno", (uint64_t)-ret);
		if (ret == -ECONNREFUSED)
			rt_env_hide(envp);
		return 0;
	}
	flags = rt_begin(&a, &res);
	if (kron_rt.no_children || flags & KRON_CMD_HAS_EXEC_HOOK)
		rt_env_hide(envp);
	res.magic = KRON_WIRE_MAGIC;
	res.kind = KRON_RESULT_END;
	res.flags = 0; /* nobody else was there to take a gap */
	res.pid = sys_getpid();
	rt_ask_end(&a, &res);
	return res.code == KRON_RESULT_OK ? a.reply.more : 0;
}
