/* SPDX-License-Identifier: MIT */
/*
 * unwind_chains.c - a profiler's signal stops a program that does hardly anything but calls, and
 * each stack must be one of those that the program can have, from main up to the function that
 * was stopped, none missing.  Frames outside the program (a tracer's) may stand above them.
 *
 * The walker is backtrace(), or unw_backtrace() or libunwind's cursor with -DWITH_LIBUNWIND.
 *
 * Build: O2, O0, no-pie
 * Flags: -rdynamic -pthread
 * Calls: hot=1 main=1
 */
#define _GNU_SOURCE
#include "torture.h"
#include <dlfcn.h>
#include <execinfo.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#ifdef WITH_LIBUNWIND
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#endif

#define STACKS 1200
#define DEPTH 24
#define EXPORTED OPAQUE __attribute__((visibility("default")))

static struct {
	void *frame[DEPTH];
	int n;
	uintptr_t pc;
} stacks[STACKS];
static volatile int nstacks, is_hot;
static volatile unsigned long sink;

static int walk(void **frames, int max)
{
#ifdef WITH_LIBUNWIND
	unw_context_t context;
	unw_cursor_t cursor;
	unw_word_t ip;
	int n = 0;

	if (nstacks % 2)
		return unw_backtrace(frames, max);
	unw_getcontext(&context);
	unw_init_local(&cursor, &context);
	do {
		unw_get_reg(&cursor, UNW_REG_IP, &ip);
		frames[n++] = (void *)ip;
	} while (n < max && unw_step(&cursor) > 0);
	return n;
#else
	return backtrace(frames, max);
#endif
}

static void on_timer(int sig, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)sig;
	(void)info;
	if (is_hot && nstacks < STACKS) { /* the first signal may come before main calls it */
		stacks[nstacks].pc = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
		stacks[nstacks].n = walk(stacks[nstacks].frame, DEPTH);
		nstacks++;
	}
	errno = saved;
}

EXPORTED unsigned long leaf(unsigned long x)
{
	return x * 2862933555777941757ul + 3037000493ul;
}
EXPORTED unsigned long deep(unsigned long x, unsigned depth)
{
	if (depth)
		return deep(leaf(x), depth - 1) + 1;
	return leaf(x);
}
EXPORTED unsigned long middle(unsigned long x)
{
	return leaf(x) + deep(x, 2);
}
EXPORTED void hot(void)
{
	unsigned long x = 1;

	is_hot = 1;
	while (nstacks < STACKS)
		sink = x = middle(x);
}

/* The program's own functions among the frames, main first, as letters. */
static void spell(int i, char *word)
{
	static const struct {
		const char *name;
		char letter;
	} known[] = {{"main", 'm'}, {"hot", 'h'}, {"middle", 'i'}, {"deep", 'd'}, {"leaf", 'l'}};
	int n = 0;

	for (int k = stacks[i].n - 1; k >= 0; k--) {
		Dl_info at;

		/* a return address may be the next function's start; what was stopped is exact */
		if (!dladdr(stacks[i].frame[k], &at) || !at.dli_sname)
			continue;
		for (size_t j = 0; j < sizeof(known) / sizeof(known[0]); j++)
			if (!strcmp(at.dli_sname, known[j].name))
				word[n++] = known[j].letter;
	}
	word[n] = 0;
}

/* Where the program itself was stopped, the stack must name that function at its end. */
static int has_stopped_one(int i, const char *word)
{
	Dl_info at, self;
	size_t n = strlen(word);

	if (!dladdr((void *)stacks[i].pc, &at) || !dladdr((void *)hot, &self) ||
	    at.dli_fbase != self.dli_fbase || !at.dli_sname)
		return 1;
	if (!strcmp(at.dli_sname, "middle"))
		return word[n - 1] == 'i';
	return !*at.dli_sname || strchr("mhdl", at.dli_sname[0]) == NULL ||
	       word[n - 1] == at.dli_sname[0];
}

static int is_possible(const char *word)
{
	static const char *const all[] = {"mh",    "mhi",    "mhil",   "mhid",   "mhidl",
					  "mhidd", "mhiddl", "mhiddd", "mhidddl"};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(word, all[i]))
			return 1;
	return 0;
}

static void start_timer(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
	const struct itimerspec every = {{0, 200000}, {0, 200000}};
	timer_t timer;

	CHECK(!timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer));
	CHECK(!timer_settime(timer, 0, &every, NULL));
}

int main(void)
{
	struct sigaction sa = {.sa_sigaction = on_timer, .sa_flags = SA_RESTART | SA_SIGINFO};
	const struct itimerval every = {{0, 1000}, {0, 1000}}, off = {{0, 0}, {0, 0}};
	void *warm[4];
	int bad = 0;

#ifdef WITH_LIBUNWIND
	/*
	 * It caches rules by address alone.  An address where a thread may stand is one that another frame
	 * returns to, for which the instruction before it counts: the first to be looked up wins.
	 */
	unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_NONE);
#endif
	walk(warm, 4); /* loads libgcc_s outside the handler */
	sigfillset(&sa.sa_mask);
	CHECK(!sigaction(SIGPROF, &sa, NULL));
	CHECK(!sigaction(SIGALRM, &sa, NULL));
	start_timer();
	CHECK(!setitimer(ITIMER_REAL, &every, NULL));
	hot();
	CHECK(!setitimer(ITIMER_REAL, &off, NULL));
	for (int i = 0; i < STACKS; i++) {
		char word[DEPTH + 1];

		spell(i, word);
		if (is_possible(word) && has_stopped_one(i, word))
			continue;
		if (bad++ < 5) {
			fprintf(stderr, "stack %d is %s, stopped at %#lx:", i, word,
				(unsigned long)stacks[i].pc);
			for (int k = 0; k < stacks[i].n; k++)
				fprintf(stderr, " %p", stacks[i].frame[k]);
			fputc('\n', stderr);
		}
	}
	if (bad) {
		fprintf(stderr, "%d of %d stacks are wrong\n", bad, STACKS);
		return 1;
	}
	puts("every stack reaches main");
	return 0;
}
