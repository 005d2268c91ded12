/* SPDX-License-Identifier: MIT */
/*
 * edges.c - where an access to the board touches something else: bytes that it does not take,
 * memory that is not there, pages that end, many threads, and processes that are killed.
 * Each test runs in a child.  Prints TAP.
 */
#define _GNU_SOURCE
#include <mk.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "tests/unit/runtime/tap_fork.h"

/* Two pages before it, none there.  The compiler need not know what lies where. */
static uint8_t *volatile hole = (uint8_t *)0x4d002000;
#define HOLE hole

static sigjmp_buf back;
static siginfo_t seen;
static gregset_t registers;

static void jump(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	seen = *info;
	memcpy(registers, ((ucontext_t *)context)->uc_mcontext.gregs, sizeof(registers));
	siglongjmp(back, 1);
}

static void begin(void)
{
	struct sigaction a = {.sa_sigaction = jump, .sa_flags = SA_SIGINFO};

	MK_DEFAULT_MAP();
	mk_init();
	CHECK_EQ(sigaction(SIGSEGV, &a, NULL), 0);
	CHECK(mmap(HOLE - 8192, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == HOLE - 8192);
}

static void bytes(void)
{
	begin();
	mk_memory[0] = 0x44332211;
	CHECK_EQ(((volatile uint8_t *)mk_memory)[2], 0x33);
	((volatile uint8_t *)mk_memory)[2] = 0x99;
	CHECK_EQ(mk_memory[0], 0x44992211);
	CHECK_EQ(*((volatile uint8_t *)&mk_config + 1), 0x32);
	if (!sigsetjmp(back, 1)) {
		*((volatile uint8_t *)&mk_filter) = 1;
		CHECK(!"a byte was stored to a register");
	}
	CHECK(seen.si_addr == (void *)(uintptr_t)&mk_filter);
	CHECK_EQ(seen.si_code, SEGV_ACCERR);
	CHECK_EQ(mk_filter & 0xffff, 0xffff);
	if (!sigsetjmp(back, 1)) {
		*(volatile uint32_t *)((uintptr_t)&mk_filter + 1) = 1;
		CHECK(!"a store between registers");
	}
	CHECK_EQ(mk_filter & 0xffff, 0xffff);
}

/* rep movsb from `from` to 30 bytes before the hole, 100 bytes. */
static void copy_into_hole(const void *from)
{
	void *to = HOLE - 30;
	uint64_t n = 100;

	if (!sigsetjmp(back, 1))
		__asm__ volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(n) : : "memory");
}

static void to_a_hole(void)
{
	static uint8_t ordinary[128];
	gregset_t want;
	unsigned i;

	begin();
	for (i = 0; i < 128; i++)
		ordinary[i] = (uint8_t)(i + 1);
	copy_into_hole(ordinary);
	memcpy(want, registers, sizeof(want));
	CHECK(seen.si_addr == HOLE);
	memset(HOLE - 30, 0, 30);
	memset(&seen, 0, sizeof(seen));
	memcpy((void *)(uintptr_t)mk_memory, ordinary, 128);
	copy_into_hole((void *)(uintptr_t)mk_memory);
	CHECK(seen.si_addr == HOLE);
	CHECK_EQ(seen.si_code, SEGV_MAPERR);
	CHECK_EQ(registers[REG_RCX], want[REG_RCX]);
	CHECK_EQ(registers[REG_RDI], want[REG_RDI]);
	CHECK_EQ(registers[REG_RSI] - (uintptr_t)mk_memory, want[REG_RSI] - (uintptr_t)ordinary);
	CHECK_EQ(registers[REG_RIP], want[REG_RIP]);
	CHECK(!memcmp(HOLE - 30, ordinary, 30));
}

static void from_a_hole(void)
{
	const void *from = HOLE - 30;
	void *to = (void *)(uintptr_t)mk_memory;
	uint64_t n = 100;

	begin();
	memset(HOLE - 30, 0x77, 30);
	if (!sigsetjmp(back, 1))
		__asm__ volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(n) : : "memory");
	CHECK(seen.si_addr == HOLE);
	CHECK_EQ(registers[REG_RCX], 70);
	CHECK_EQ(registers[REG_RSI], HOLE);
	CHECK_EQ(mk_memory[6], 0x77777777);
}

/* More than one call of the handler does: it goes on where it was. */
static void long_copies(void)
{
	static uint8_t from[300001], to[300001];
	void *board = (void *)(uintptr_t)(mk_memory + 1);
	const void *s = from;
	void *d = board;
	uint64_t n = sizeof(from);
	unsigned i;

	begin();
	for (i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 31 + i / 256);
	__asm__ volatile("rep movsb" : "+S"(s), "+D"(d), "+c"(n) : : "memory");
	s = board;
	d = to;
	n = sizeof(from);
	__asm__ volatile("rep movsb" : "+S"(s), "+D"(d), "+c"(n) : : "memory");
	CHECK(!memcmp(from, to, sizeof(from)));
}

/* The window's end: what follows it is nobody's. */
static void over_the_end(void)
{
	volatile uint32_t *last = mk_memory + MK_MEMORY_WORDS - 1;

	begin();
	*last = 5;
	CHECK_EQ(*last, 5);
	seen.si_addr = NULL;
	if (!sigsetjmp(back, 1))
		*(mk_word64 *)(uintptr_t)last = 6;
	CHECK(seen.si_addr != NULL);
	CHECK_EQ(*last, 5);
}

/* Instructions at the very end of a page, and one that goes over it. */
static void end_of_page(void)
{
	static const uint8_t store[] = {0xc7, 0x04, 0x25, 0x84, 0x11, 0x00,
					0x6b, 0x2a, 0x00, 0x00, 0x00}; /* movl $42, mk_ts1 */
	uint8_t *code = HOLE - 4096;
	unsigned before;

	begin();
	memcpy(HOLE - sizeof(store), store, sizeof(store));
	if (!sigsetjmp(back, 1))
		((void (*)(void))(HOLE - sizeof(store)))();
	CHECK(seen.si_addr == HOLE); /* the next instruction's bytes */
	for (before = 1; before < sizeof(store); before++) {
		memcpy(code - before, store, sizeof(store));
		code[sizeof(store) - before] = 0xc3;
		((void (*)(void))(code - before))();
	}
	usleep(1000);
	CHECK_EQ(MK_MAP_WORD(mk_map_pointer), 11 * MK_TRACE_WORDS);
	CHECK_EQ(mk_memory[10 * MK_TRACE_WORDS + 4], 42);
}

/* ---- many at once ---- */

#define THREADS 8u
#define EACH 2000u

static void *store_all(void *arg)
{
	unsigned i;

	for (i = 0; i < EACH; i++)
		mk_ts(i % 16) = (uint32_t)(uintptr_t)arg * EACH + i;
	return NULL;
}

static void check_samples(unsigned n, unsigned *last_of, unsigned users)
{
	unsigned i, who;

	for (i = 0; i < n; i++) {
		uint32_t event = mk_memory[i * MK_TRACE_WORDS + 4];

		CHECK_EQ(MK_HEAD_TYPE(mk_memory[i * MK_TRACE_WORDS]), MK_TYPE_TRACE);
		who = event / EACH;
		CHECK(who < users);
		CHECK_EQ(event % EACH, last_of[who]);
		last_of[who]++;
	}
}

static void wait_for_words(unsigned words)
{
	while (MK_MAP_WORD(mk_map_pointer) < words)
		;
}

static void many_threads(void)
{
	static unsigned last_of[THREADS];
	pthread_t t[THREADS];
	unsigned i;

	begin();
	mk_csr = MK_CSR_WAIT;
	for (i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, store_all, (void *)(uintptr_t)i);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	wait_for_words(THREADS * EACH * MK_TRACE_WORDS);
	CHECK_EQ(MK_MAP_WORD(mk_map_pointer), THREADS * EACH * MK_TRACE_WORDS);
	check_samples(THREADS * EACH, last_of, THREADS);
}

/* Whoever is killed inside a store: his samples are whole and in order, the board goes on. */
static void killed(void)
{
	static unsigned last_of[3];
	unsigned round, i, n;
	pid_t pid[2];

	begin();
	for (round = 0; round < 40; round++) {
		mk_init();
		mk_csr = MK_CSR_WAIT;
		for (i = 0; i < 2; i++) {
			pid[i] = fork();
			if (pid[i] == 0) {
				store_all((void *)(uintptr_t)i);
				_exit(0);
			}
		}
		usleep(200 + round * 97);
		for (i = 0; i < 2; i++) {
			kill(pid[i], SIGKILL);
			waitpid(pid[i], NULL, 0);
		}
		mk_ts3 = 2 * EACH;
		usleep(2000);
		n = MK_MAP_WORD(mk_map_pointer) / MK_TRACE_WORDS;
		memset(last_of, 0, sizeof(last_of));
		check_samples(n, last_of, 3);
		CHECK_EQ(last_of[2], 1);
	}
}

/* The registers of this CPU's line say which thread it is. */
static void *store_own_id(void *arg)
{
	unsigned i;

	for (i = 0; i < EACH; i++)
		mk_ts2 = (uint32_t)gettid();
	return arg;
}

static void sources(void)
{
	pthread_t t[4];
	unsigned i;

	begin();
	mk_config = MK_CONFIG_DEFAULT | MK_CONFIG_EXT_CPU;
	mk_csr = MK_CSR_WAIT;
	for (i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, store_own_id, NULL);
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	wait_for_words(4 * EACH * MK_TRACE_WORDS);
	for (i = 0; i < 4 * EACH; i++)
		CHECK_EQ(mk_memory[i * MK_TRACE_WORDS + 2] & 0x3fffff,
			 mk_memory[i * MK_TRACE_WORDS + 4]);
}

static void unmaps(void)
{
	struct sigaction a;

	begin();
	CHECK_EQ(mk_map(NULL), 0);
	CHECK(mk_map("another") < 0);
	CHECK(strstr(mk_error(), "mapped already"));
	mk_unmap();
	sigaction(SIGSEGV, NULL, &a);
	CHECK(a.sa_sigaction == jump);
	seen.si_addr = NULL;
	if (!sigsetjmp(back, 1))
		mk_ts1 = 1;
	CHECK(seen.si_addr == (void *)(uintptr_t)&mk_ts1);
	CHECK_EQ(mk_map(NULL), 0);
	mk_ts1 = 1;
}

static void taken(void)
{
	CHECK(mmap((void *)(uintptr_t)(MK_BASE + 0x100000), 4096, PROT_READ,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != MAP_FAILED);
	CHECK(mk_map(NULL) < 0);
	CHECK(strstr(mk_error(), "taken"));
}

static void reserved(void)
{
	CHECK(mmap((void *)(uintptr_t)MK_BASE, MK_SIZE, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != MAP_FAILED);
	CHECK_EQ(mk_map(NULL), 0);
	mk_memory[3] = 3;
	CHECK_EQ(mk_memory[3], 3);
}

static const struct tap_test tests[] = {
	{"bytes", bytes},
	{"a copy to where no memory is", to_a_hole},
	{"a copy from where no memory is", from_a_hole},
	{"long copies", long_copies},
	{"over the end of the window", over_the_end},
	{"the end of a page", end_of_page},
	{"many threads, none lost", many_threads},
	{"processes killed inside a store", killed},
	{"each sample has its thread's source", sources},
	{"unmapped and mapped again", unmaps},
	{"the window is taken", taken},
	{"the window is reserved", reserved},
};

int main(int argc, char **argv)
{
	return tap_main(tests, sizeof(tests) / sizeof(*tests), argc, argv);
}
