// SPDX-License-Identifier: MIT
/*
 * memory.c - a function that is given pointers, and a program that says what is there:
 *
 *     memory show [N]       N records and texts, a line each: a, b, c, c of the next one, d ... g, text-in-hex
 *     memory wait [N]       the same, once a line came in
 *     memory sealed [N]     the same after a seccomp filter, which kills for process_vm_readv and getpid
 *     memory bad N [MASK]   N pointers that lead nowhere, each 16th a good one; MASK: all signals are blocked
 *     memory torn N         a page that another thread takes away and brings back
 *     memory edge N         the last 1 to N bytes before one: first with a zero at their end, then without
 *     memory crowd N THREADS
 *
 * bad, torn: prints how many calls, how many good ones, SIGSEGV and SIGBUS that its handler has seen, whether
 * errno, the mask or floating point state changed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define HIDDEN __attribute__((noinline, noipa))
#define PATTERN 0x5a5aa5a5u

struct record {
	uint32_t a, b;
	uint64_t c;
	struct record *next;
	const char *name;
	int8_t d;
	int16_t e;
	float f;
	double g;
};
_Static_assert(offsetof(struct record, c) == 8 && offsetof(struct record, next) == 16 &&
		       offsetof(struct record, name) == 24 && offsetof(struct record, d) == 32 &&
		       offsetof(struct record, e) == 34 && offsetof(struct record, f) == 36 &&
		       offsetof(struct record, g) == 40,
	       "as the probes of memory.py have them");

HIDDEN uint64_t take(const struct record *r, const char *text, uint64_t n);
HIDDEN uint64_t take(const struct record *r, const char *text, uint64_t n)
{
	return (uint64_t)r ^ (uint64_t)text ^ n;
}

HIDDEN const char *give(const char *text);
HIDDEN const char *give(const char *text)
{
	return text;
}

static uint64_t seed = 88172645463325252u;

static uint64_t draw(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static void fill(struct record *r, char *text)
{
	uint64_t length = draw() % 3 ? draw() % 12 : draw() % 80;

	*r = (struct record){
		.a = (uint32_t)draw(), .b = (uint32_t)draw(), .c = draw(), .name = text};
	r->d = (int8_t)draw();
	r->e = (int16_t)draw();
	r->f = (float)(int32_t)draw() / 7;
	r->g = (double)(int64_t)draw() / 3;
	for (uint64_t i = 0; i < length; i++)
		text[i] = (char)(draw() % 4 ? ' ' + draw() % 95 : 1 + draw() % 255);
	text[length] = '\0';
}

static void say(const struct record *r, const char *text)
{
	printf("%u %u %" PRIu64 " %" PRIu64 " %d %d %.9g %.17g x", r->a, r->b, r->c, r->next->c,
	       r->d, r->e, (double)r->f, r->g);
	for (; *text; text++)
		printf("%02x", (unsigned char)*text);
	putchar('\n');
}

static void show(long n)
{
	struct record r[2];
	char text[2][100];

	for (long i = 0; i < n; i++) {
		fill(&r[0], text[0]);
		fill(&r[1], text[1]);
		r[0].next = &r[1];
		r[1].next = NULL;
		take(&r[0], text[1], (uint64_t)i);
		give(text[1]);
		say(&r[0], text[1]);
	}
}

static void seal(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		exit(3);
}

/* ---- pointers that lead nowhere ---- */

static volatile sig_atomic_t faults;
static char *page; /* of two: the second one is not there */
static char *closed;

static void on_fault(int sig)
{
	(void)sig;
	faults++;
	_exit(4);
}

static void make_pages(void)
{
	page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(page, 'e', 4096);
	munmap(page + 4096, 4096);
	closed = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static const void *bad_pointer(void)
{
	const void *const all[] = {
		NULL,
		(void *)16,
		(void *)0x800000000000,
		(void *)0x8000000000000000,
		(void *)0xffffffff81000000,
		(void *)-1l,
		(void *)-8l,
		closed,
		closed + 4090,
		page + 4096,
		page + 4090, /* runs out of its page */
		(void *)(draw() | 1ull << 63),
	};

	return all[draw() % (sizeof(all) / sizeof(all[0]))];
}

static void catch (void)
{
	struct sigaction act = {.sa_handler = on_fault};

	sigaction(SIGSEGV, &act, NULL);
	sigaction(SIGBUS, &act, NULL);
}

static void bad(long n, bool mask)
{
	struct record good = {.b = 77, .name = "good"};
	sigset_t all, before = {0}, after = {0};
	uint64_t sum = 0;
	long ngood = 0;
	double x = 0.1;

	make_pages();
	catch ();
	sigfillset(&all);
	if (mask)
		sigprocmask(SIG_SETMASK, &all, NULL);
	sigprocmask(SIG_SETMASK, NULL, &before);
	good.next = &good;
	errno = 123;
	for (long i = 0; i < n; i++) {
		x = x * 1.0000001 + 1e-9;
		if (i % 16) {
			const void *p = bad_pointer();

			sum += take(p, p, (uint64_t)i) - ((uint64_t)p ^ (uint64_t)p ^ (uint64_t)i);
		} else {
			take(&good, "good", (uint64_t)i);
			ngood++;
		}
	}
	ngood += errno == 123 ? 0 : 1000000;
	sigprocmask(SIG_SETMASK, NULL, &after);
	printf("%ld calls %ld good %d faults %" PRIu64 " wrong mask %s %.17g\n", n, ngood,
	       (int)faults, sum, memcmp(&before, &after, sizeof(before)) ? "changed" : "kept", x);
}

/* ---- a page that comes and goes ---- */

static uint32_t *torn_page;
static int done;

static void *tear(void *arg)
{
	while (!__atomic_load_n(&done, __ATOMIC_RELAXED)) {
		mprotect(torn_page, 4096, PROT_NONE);
		mprotect(torn_page, 4096, PROT_READ);
	}
	return arg;
}

static void torn(long n)
{
	pthread_t t;

	catch ();
	torn_page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 1024; i++)
		torn_page[i] = PATTERN;
	pthread_create(&t, NULL, tear, NULL);
	for (long i = 0; i < n; i++)
		take((void *)(torn_page + draw() % 1000), "", (uint64_t)i);
	__atomic_store_n(&done, 1, __ATOMIC_RELAXED);
	pthread_join(t, NULL);
	printf("%ld calls %d faults\n", n, (int)faults);
}

/* ---- texts at the end of what there is ---- */

static void edge(long n)
{
	make_pages();
	for (long zero = 1; zero >= 0; zero--) {
		page[4095] = zero ? '\0' : 'e';
		for (long i = 1; i <= n; i++)
			take(NULL, page + 4096 - i, (uint64_t)i);
	}
}

/* ---- many threads ---- */

static long rounds;

static void on_alarm(int sig)
{
	(void)sig;
	take(NULL, "from the handler, which is a text of some more bytes", 1);
}

static void *work(void *arg)
{
	char text[80];

	for (long i = 0; i < rounds; i++) {
		int n = (int)((i * 7 + (long)arg) % 64);

		memset(text, 'a' + n % 26, (size_t)n);
		text[n] = '\0';
		take(NULL, text, (uint64_t)n);
	}
	return NULL;
}

static void crowd(long n, long threads)
{
	struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
	pthread_t t[64];

	rounds = n;
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &often, NULL);
	for (long i = 0; i < threads && i < 64; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (long i = 0; i < threads && i < 64; i++)
		pthread_join(t[i], NULL);
	setitimer(ITIMER_REAL, &never, NULL);
	printf("%ld\n", n * threads);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "show";
	long n = argc > 2 ? atol(argv[2]) : 50;

	if (!strcmp(mode, "bad")) {
		bad(n, argc > 3);
	} else if (!strcmp(mode, "torn")) {
		torn(n);
	} else if (!strcmp(mode, "edge")) {
		edge(n);
	} else if (!strcmp(mode, "crowd")) {
		crowd(n, argc > 3 ? atol(argv[3]) : 4);
	} else {
		if (!strcmp(mode, "wait"))
			getchar();
		if (!strcmp(mode, "sealed"))
			seal();
		show(n);
	}
	return 0;
}
