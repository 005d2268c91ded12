/* SPDX-License-Identifier: MIT */
/*
 * rt_board.c - see rt_board.h.
 */
#define _GNU_SOURCE
#include "tests/unit/runtime/rt_board.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "board/model/gate.h"
#include "board/model/holes.h"
#include "runtime/core/rt.h"

#define STUBS_SIZE 65536u
#define STUB_SIZE 64u

static void __attribute__((noreturn)) die(const char *what)
{
	perror(what);
	_exit(99);
}

/* ---- the segment ---- */

void rig_make(struct rig *b, uint32_t chunks, uint32_t ready, enum kron_when_full when_full)
{
	uint8_t *at;
	uint32_t i;

	memset(b, 0, sizeof(*b));
	b->size = KRON_POOL_OFFSET + (uint64_t)chunks * KRON_CHUNK_SIZE;
	b->fd = memfd_create("board", MFD_CLOEXEC);
	if (b->fd < 0 || ftruncate(b->fd, (off_t)b->size))
		die("memfd");
	at = mmap(NULL, b->size, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
	if (at == MAP_FAILED)
		die("mmap");
	for (i = 0; i < sizeof(b->session); i++)
		b->session[i] = (uint8_t)(i * 17);
	b->ctl = (struct kron_ctl *)(at + KRON_CTL_OFFSET);
	b->hardware = -1;
	b->states = (uint64_t *)(at + KRON_STATES_OFFSET);
	b->sources = (struct kron_source *)(at + KRON_SOURCES_OFFSET);
	b->procs = (struct kron_proc *)(at + KRON_PROCS_OFFSET);
	b->pool = at + KRON_POOL_OFFSET;
	b->board = (struct board){.ctl = b->ctl,
				  .model = (struct model *)(at + KRON_MODEL_OFFSET),
				  .memory = at + KRON_MEMORY_OFFSET};
	b->ctl->magic = KRON_SEGMENT_MAGIC;
	b->ctl->version = KRON_SEGMENT_VERSION;
	b->ctl->when_full = when_full;
	b->ctl->segment_size = b->size;
	memcpy(b->ctl->session, b->session, sizeof(b->session));
	b->ctl->collector_pid = getpid();
	b->ctl->node = 5;
	b->ctl->chunks_max = chunks;
	b->ctl->chunks_ready = ready;
	b->ctl->free_count = (int32_t)ready;
	b->ctl->csr = KRON_CSR_SAMPLING;
	b->ctl->filter = 0xffff;
	b->ctl->config = KRON_CONFIG_DEFAULT;
	kron_gate_recompute(b->ctl);
	for (i = 0; i < ready; i++)
		b->states[i] = KRON_CHUNK_FREE;
}

/* The counter's rate, roughly: what the tests compare is the board's own time. */
#define TSC_HZ 2000000000ull

void rig_make_exact(struct rig *b, enum kron_when_full when_full)
{
	const struct model_geometry g = MODEL_GEOMETRY_DEFAULT;
	const struct board *m = &b->board;

	rig_make(b, 1, 1, when_full);
	b->ctl->bus = KRON_BUS_EXACT;
	board_init(m, &g, ACCESS_CLOCK_REAL, TSC_HZ);
	board_write32(m, KRON_BOARD_CONFIG, KRON_CONFIG_DEFAULT | KRON_CONFIG_EXT_CPU);
	board_write32(m, KRON_CHIP_BYTE(KRON_WORD_FILTER), 0xffff);
	board_write32(m, KRON_CHIP_BYTE(KRON_WORD_CSR),
		      KRON_CSR_SAMPLING | KRON_CSR_MODE64 |
			      (when_full == KRON_WHEN_FULL_WAIT ? KRON_CSR_WAIT
								: KRON_CSR_DISCARD));
	rig_use_thunk(KRON_THUNK_EXACT);
}

void rig_make_hardware(struct rig *b)
{
	cpu_set_t set;

	rig_make(b, 1, 1, KRON_WHEN_FULL_DISCARD);
	b->ctl->bus = KRON_BUS_HARDWARE;
	b->hardware = memfd_create("device", MFD_CLOEXEC);
	if (b->hardware < 0 || ftruncate(b->hardware, KRON_BOARD_SIZE))
		die("memfd");
	b->window = mmap(NULL, KRON_BOARD_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, b->hardware, 0);
	if (b->window == MAP_FAILED || sched_getaffinity(0, sizeof(set), &set))
		die("device");
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			b->ctl->line[cpu % KRON_SOURCES].cpu = cpu;
	rig_use_thunk(KRON_THUNK_HARDWARE);
}

void rig_attach(const struct rig *b)
{
	const struct rt_segment seg = {.fd = b->fd,
				       .hardware = b->hardware,
				       .size = b->size,
				       .session = b->session,
				       .bus = (uint8_t)b->ctl->bus};
	uint64_t detail = 0;
	uint32_t code = rt_attach(&seg, &detail);

	if (code != KRON_RESULT_OK) {
		fprintf(stderr, "rt_attach: code %u, detail %lu\n", code, (unsigned long)detail);
		_exit(99);
	}
}

/* ---- stubs ---- */

static uint8_t *stubs;
static enum kron_thunk stubs_thunk;
static uint32_t nstubs;

static uint8_t *put(uint8_t *at, const void *bytes, size_t n)
{
	memcpy(at, bytes, n);
	return at + n;
}

static uint8_t *put32(uint8_t *at, uint32_t v)
{
	return put(at, &v, sizeof(v));
}

static void block_head(uint8_t *block)
{
	static const uint8_t jump[8] = {0xff, 0x25, 0x0a, 0x00, 0x00, 0x00, 0xcc, 0xcc};
	static void (*const thunk[KRON_THUNKS])(void) = {
		[KRON_THUNK_LANE] = kron_rt_probe,
		[KRON_THUNK_LANE_CONSTANT] = kron_rt_probe_constant,
		[KRON_THUNK_LANE_SPARSE] = kron_rt_probe_sparse,
		[KRON_THUNK_EXACT] = kron_rt_probe_exact,
		[KRON_THUNK_HARDWARE] = kron_rt_probe_hardware,
	};
	uint64_t probe = (uint64_t)thunk[stubs_thunk];
	uint64_t hook = (uint64_t)kron_rt_hook_thunk;

	put(block + KRON_BLOCK_THUNK, jump, sizeof(jump));
	put(block + KRON_BLOCK_HOOK, jump, sizeof(jump));
	put(block + 16, &probe, 8);
	put(block + 24, &hook, 8);
}

void rig_use_thunk(enum kron_thunk thunk)
{
	stubs_thunk = thunk;
	stubs = NULL; /* a new block with the next stub */
	nstubs = 0;
}

static uint8_t *stub_new(void)
{
	if (!stubs) {
		stubs = mmap(NULL, STUBS_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			     -1, 0);
		if (stubs == MAP_FAILED)
			die("mmap");
		block_head(stubs);
	} else if (mprotect(stubs, STUBS_SIZE, PROT_READ | PROT_WRITE)) {
		die("mprotect");
	}
	if (KRON_BLOCK_HEAD + (nstubs + 1) * STUB_SIZE > STUBS_SIZE)
		_exit(99);
	return stubs + KRON_BLOCK_HEAD + nstubs++ * STUB_SIZE;
}

static stub_fn stub_done(uint8_t *stub)
{
	if (mprotect(stubs, STUBS_SIZE, PROT_READ | PROT_EXEC))
		die("mprotect");
	return (stub_fn)(uintptr_t)stub;
}

static uint8_t *put_call(uint8_t *at, uint32_t number, uint32_t entry)
{
	at = put(at, "\x50\xb8", 2); /* push %rax; mov $number,%eax */
	at = put32(at, number);
	at = put(at, "\xe8", 1); /* call block + entry */
	at = put32(at, (uint32_t)(stubs + entry - (at + 4)));
	return put(at, "\x58", 1); /* pop %rax */
}

stub_fn rig_stub(uint32_t event, unsigned level)
{
	uint8_t *stub = stub_new();
	uint8_t *at = stub;

	at = put(at, "\x48\x8d\x64\x24\x80\x51", 6); /* lea -128(%rsp),%rsp; push %rcx */
	at = put(at, "\x0f\xb6\x0c\x25", 4);         /* movzbl gate,%ecx */
	at = put32(at, KRON_GATE_ADDR(level));
	at = put(at, "\xe3\x0c", 2); /* jrcxz */
	at = put_call(at, event, KRON_BLOCK_THUNK);
	at = put(at, "\x59\x48\x8d\xa4\x24\x80\x00\x00\x00", 9); /* pop %rcx; lea 128 */
	put(at, "\xc3", 1);
	return stub_done(stub);
}

stub_fn rig_hook_stub(uint32_t hook)
{
	uint8_t *stub = stub_new();
	uint8_t *at = stub;

	at = put(at, "\x48\x8d\x64\x24\x80\x51", 6);
	at = put_call(at, hook, KRON_BLOCK_HOOK);
	at = put(at, "\x59\x48\x8d\xa4\x24\x80\x00\x00\x00", 9);
	put(at, "\xc3", 1);
	return stub_done(stub);
}

void rig_trigger(stub_fn stub, uint64_t n)
{
	while (n--)
		stub();
}

/* ---- the collector's part ---- */

struct kron_chunk *rig_chunk(const struct rig *b, uint32_t index)
{
	return (struct kron_chunk *)(b->pool + (uint64_t)index * KRON_CHUNK_SIZE);
}

const struct kron_sample *rig_samples(const struct rig *b, uint32_t index)
{
	return (const struct kron_sample *)(rig_chunk(b, index) + 1);
}

static void tally_sample(const struct kron_sample *s, struct tally *t)
{
	if (s->event == KRON_EVENT_LOST) {
		t->lost_records += s->payload;
	} else if (s->event == KRON_EVENT_CPU) {
		t->cpu_records++;
	} else {
		t->samples++;
		t->flagged += (s->head & KRON_HEAD_FIFO_OVERFLOW) != 0;
	}
}

void rig_tally_chunk(const struct rig *b, uint32_t index, struct tally *t)
{
	const struct kron_sample *s = rig_samples(b, index);
	uint32_t used = KRON_CHUNK_SAMPLES;
	uint32_t i;

	while (used && !__atomic_load_n(&s[used - 1].head, __ATOMIC_ACQUIRE))
		used--;
	for (i = 0; i < used; i++) {
		if (s[i].head)
			tally_sample(&s[i], t);
		else
			t->holes++;
	}
	t->chunks += used != 0;
}

void rig_tally(const struct rig *b, struct tally *t)
{
	uint32_t i;

	for (i = 0; i < b->ctl->chunks_ready; i++) {
		unsigned state = kron_chunk_word_state(b->states[i]);

		if ((state == KRON_CHUNK_OWNED || state == KRON_CHUNK_FULL) && rig_chunk(b, i)->seq)
			rig_tally_chunk(b, i, t);
	}
}

/* Every slot of a FULL chunk was claimed. */
static bool may_be_written(const struct rig *b, uint32_t index)
{
	const struct kron_sample *s = rig_samples(b, index);
	uint32_t i;

	for (i = 0; i < KRON_CHUNK_SAMPLES; i++) {
		if (!__atomic_load_n(&s[i].head, __ATOMIC_ACQUIRE) && !kron_hole_is_abandoned(s, i))
			return true;
	}
	return false;
}

unsigned rig_drain(const struct rig *b, struct tally *t)
{
	unsigned freed = 0;
	uint32_t i;

	for (i = 0; i < b->ctl->chunks_ready; i++) {
		uint64_t word = __atomic_load_n(&b->states[i], __ATOMIC_ACQUIRE);

		if (kron_chunk_word_state(word) != KRON_CHUNK_FULL || may_be_written(b, i))
			continue;
		rig_tally_chunk(b, i, t);
		memset(rig_chunk(b, i), 0, KRON_CHUNK_SIZE);
		__atomic_store_n(&b->states[i], KRON_CHUNK_FREE, __ATOMIC_RELEASE);
		__atomic_fetch_add(&b->ctl->free_count, 1, __ATOMIC_SEQ_CST);
		freed++;
	}
	if (freed) {
		__atomic_fetch_add(&b->ctl->wake_waiters, 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&b->ctl->waiters, __ATOMIC_SEQ_CST))
			syscall(SYS_futex, &b->ctl->wake_waiters, FUTEX_WAKE, INT_MAX, NULL, NULL,
				0);
	}
	return freed;
}

uint64_t rig_lost(const struct rig *b)
{
	uint64_t lost = b->ctl->lost_unowned;
	uint32_t i;

	for (i = 0; i < KRON_PROCS_MAX; i++)
		lost += b->procs[i].lost;
	return lost;
}
