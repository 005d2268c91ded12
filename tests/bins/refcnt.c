/* SPDX-License-Identifier: MIT */
/*
 * refcnt.c - touches pages so often as its assembly says, and reads the counters of them by librefcnt while it
 * runs.  A line for each look: a word, and for each of eight pages reads,writes; or what the counters hold.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <refcnt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES 8
#define LARGE 20000L
static char *m;
static int node; /* that all references come from: NODE */

/* Page i: (i + 1) * rounds reads and rounds writes; none of the last. */
static __attribute__((noinline)) void touch(long rounds)
{
	for (long i = 0; i < PAGES - 1; i++)
		for (long r = 0; r < rounds; r++) {
			for (long k = 0; k <= i; k++)
				__asm__ volatile("movq (%0), %%rax" : : "r"(m + i * 4096) : "rax");
			__asm__ volatile("movq %%rax, 8(%0)" : : "r"(m + i * 4096) : "memory");
		}
}

static void *thread(void *rounds)
{
	touch((long)rounds);
	return NULL;
}

static void die(const char *what)
{
	printf("%s: %s (%d)\n", what, refcnt_error(), errno);
	exit(1);
}

static void show_uses(struct refcnt *r, const char *word)
{
	struct refcnt_use use[PAGES];

	if (refcnt_uses(r, m, PAGES * 4096, use) != PAGES)
		die("refcnt_uses");
	printf("%s", word);
	for (int i = 0; i < PAGES; i++)
		printf(" %lu,%lu", (unsigned long)use[i].reads, (unsigned long)use[i].writes);
	printf("\n");
}

static void show_counters(struct refcnt *r, int request, const char *word)
{
	static sn0_refcnt_buf_t buf[PAGES];
	sn0_refcnt_args_t args = {m, PAGES * 4096, buf};

	if (refcnt_ioctl(r, request, &args) != PAGES)
		die("refcnt_ioctl");
	printf("%s", word);
	for (int i = 0; i < PAGES; i++) {
		printf(" %u", buf[i].refcnt_set.refcnt[node]);
		for (int k = 0; k < SN0_REFCNT_MAX_COUNTERS; k++)
			if ((k != node && buf[i].refcnt_set.refcnt[k]) || buf[i].refcnt_set.flags)
				printf("?");
	}
	printf("\n%s-where", word);
	for (int i = 0; i < PAGES; i++)
		printf(" %lx,%lu,%d", (unsigned long)buf[i].paddr, (unsigned long)buf[i].page_size,
		       buf[i].cnodeid);
	printf("\n");
}

/* Physical addresses as this process's own pagemap has them, and the node's counters found by them. */
static void show_node(struct refcnt *r)
{
	struct refcnt_node *n = refcnt_node_open(r, 0);
	const refcnt_t *counters;
	rcb_slot_t *slots;
	rcb_info_t info;
	FILE *f = fopen("/proc/self/pagemap", "r");

	if (!n) {
		printf("node errno %d\n", errno);
		return;
	}
	refcnt_node_info(n, &info);
	slots = calloc((size_t)info.rcb_num_slots, sizeof(*slots));
	refcnt_node_slots(n, slots);
	counters = refcnt_node_map(n);
	printf("node %d %d %d %d %d %u", info.rcb_cnodeid, info.rcb_sw_counters_per_set,
	       info.rcb_sw_counter_size, info.rcb_granularity,
	       info.rcb_len == (unsigned long)info.rcb_sw_sets *
				       (unsigned long)info.rcb_sw_counters_per_set *
				       sizeof(refcnt_t),
	       info.rcb_hw_counter_max);
	for (long i = 0; i < PAGES; i++) {
		unsigned long word = 0, at, set = 0;
		long found = -1;

		if (pread(fileno(f), &word, 8, (off_t)((unsigned long)(m + i * 4096) / 4096 * 8)) !=
		    8)
			die("pagemap");
		at = (word & ((1ul << 55) - 1)) * 4096;
		for (int k = 0; k < info.rcb_num_slots; k++) {
			if (at >= slots[k].base && at < slots[k].base + slots[k].size)
				found = counters[(set + (at - slots[k].base) / 4096) *
							 (unsigned long)
								 info.rcb_sw_counters_per_set +
						 (unsigned long)node];
			set += slots[k].size / 4096;
		}
		printf(" %ld", found);
	}
	printf("\n");
	fclose(f);
	free(slots);
	refcnt_node_close(n);
}

static void run_thread(long rounds)
{
	pthread_t t;

	pthread_create(&t, NULL, thread, (void *)rounds);
	pthread_join(t, NULL);
}

static void sections(struct refcnt *r)
{
	if (refcnt_enable(r, m + 4096, 2 * 4096))
		die("refcnt_enable");
	show_uses(r, "enabled");
	touch(7);
	show_uses(r, "section");
	printf("errors %d %d %d %d\n", refcnt_enable(r, m, 4097), refcnt_enable(r, m, 0),
	       refcnt_disable(r, m, 4096), refcnt_set_width(r, 12));
	if (refcnt_disable(r, m + 4096, 2 * 4096))
		die("refcnt_disable");
	show_uses(r, "disabled");
}

/* Another process looks at this one: its parent, which is traced, too, or not. */
static void look_at(pid_t pid, unsigned long at)
{
	struct refcnt *r = refcnt_open(pid);

	m = (char *)at;
	if (!r)
		die("refcnt_open");
	show_uses(r, "other");
	refcnt_close(r);
}

/* More pages than a message has room for: page i is written i % 3 times, unless nobody touches it. */
static void large(void)
{
	static struct refcnt_use use[LARGE];
	struct refcnt *r = refcnt_open(0);
	int wrong = 0;

	m = mmap(NULL, LARGE * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (long i = 0; i < LARGE; i++)
		for (long k = 0; k < i % 3; k++)
			__asm__ volatile("movq %%rax, 8(%0)" : : "r"(m + i * 4096) : "memory");
	if (!r || refcnt_uses(r, m + 8, LARGE * 4096 - 16, use) != LARGE)
		die("refcnt_uses");
	for (long i = 0; i < LARGE; i++)
		wrong += use[i].reads || use[i].writes != (unsigned long)(i % 3);
	printf("large %d\n", wrong);
	refcnt_close(r);
}

int main(int argc, char **argv)
{
	struct refcnt *r;

	node = getenv("NODE") ? atoi(getenv("NODE")) : 0;
	if (argc == 2 && !strcmp(argv[1], "large")) {
		large();
		return 0;
	}
	if (argc > 2) {
		look_at((pid_t)atol(argv[1]), strtoul(argv[2], NULL, 16));
		return 0;
	}
	m = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	r = refcnt_open(0);
	if (!r) {
		printf("open: %s (%d)\n", refcnt_error(), errno);
		return 1;
	}
	show_uses(r, "none");
	touch(1000);
	show_uses(r, "touched");
	run_thread(500);
	show_uses(r, "thread");
	usleep(300000); /* the recorder takes the thread's chunk meanwhile */
	show_uses(r, "thread");
	refcnt_set_width(r, 11);
	show_counters(r, PIOCGETSN0REFCNTRS, "hardware");
	show_counters(r, PIOCGETSN0EXTREFCNTRS, "extended");
	show_node(r);
	if (argc > 1) {
		printf("wait %d %lx\n", getpid(), (unsigned long)m);
		getchar();
	}
	sections(r);
	refcnt_close(r);
	return 0;
}
