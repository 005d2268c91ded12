/* SPDX-License-Identifier: MIT */
/*
 * locked.c - holds locks and waits for them, a phase after another, for kron monitor --lock.  A byte of standard input leads from
 * each to the next; the variable `phase` says which it is once its threads sleep, and 0 in between.
 *
 *   1  nothing is held           2  mutexes: a thread holds, three wait       3  rwlock: a thread writes, two readers wait
 *   4  rwlock: two read, a writer waits       5  semaphore of 3: nobody waits     6  of 0: two wait
 *
 * Prints "PHASE HOLDER" for the phases in which somebody holds a lock.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST 16

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, pi, robust, recursive;
struct {
	long length;
	pthread_mutex_t lock;
} queue = {7, PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t of_this_file = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
sem_t pool;
volatile int phase;

static pthread_t threads[MOST];
static int tids[MOST], n, hold[2], held[2];

static void take_mutexes(void)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_lock(&pi);
	pthread_mutex_lock(&robust);
	pthread_mutex_lock(&recursive);
	pthread_mutex_lock(&queue.lock);
	pthread_mutex_lock(&of_this_file);
}

static void leave_mutexes(void)
{
	pthread_mutex_unlock(&of_this_file);
	pthread_mutex_unlock(&queue.lock);
	pthread_mutex_unlock(&recursive);
	pthread_mutex_unlock(&robust);
	pthread_mutex_unlock(&pi);
	pthread_mutex_unlock(&mutex);
}

/* Who holds something says so, and waits until it may leave it. */
static void keep(void)
{
	char byte = 0;

	if (write(held[1], &byte, 1) != 1 || read(hold[0], &byte, 1) != 1)
		abort();
}

static void *run(void *arg)
{
	const char *what = arg;

	tids[n++] = gettid(); /* they begin one after another */
	switch (*what) {
	case 'H':
		take_mutexes();
		keep();
		leave_mutexes();
		break;
	case 'm':
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
		break;
	case 'p':
		pthread_mutex_lock(&pi);
		pthread_mutex_unlock(&pi);
		break;
	case 'W':
	case 'w':
		pthread_rwlock_wrlock(&rwlock);
		if (*what == 'W')
			keep();
		pthread_rwlock_unlock(&rwlock);
		break;
	case 'R':
	case 'r':
		pthread_rwlock_rdlock(&rwlock);
		if (*what == 'R')
			keep();
		pthread_rwlock_unlock(&rwlock);
		break;
	default:
		sem_wait(&pool);
	}
	return NULL;
}

static char state_of(int tid)
{
	char path[64], text[512], *at;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	text[fread(text, 1, sizeof(text) - 1, f)] = 0;
	fclose(f);
	at = strrchr(text, ')');
	return at ? at[2] : 0;
}

/* Until it sleeps: for its lock, as there is nothing else that it would wait for. */
static void start(const char *what)
{
	const int before = n;
	char byte;

	pthread_create(&threads[before], NULL, run, (void *)what);
	if (*what < 'a' && read(held[0], &byte, 1) != 1)
		abort();
	for (int asleep = 0; asleep < 5; usleep(2000)) {
		const int now = *(volatile int *)&n;

		asleep = now > before && state_of(tids[before]) == 'S' ? asleep + 1 : 0;
	}
}

/* Until it is told to go on; then all that were started end. */
static void stay(int which, int holders, int posts)
{
	char byte;

	phase = which;
	if (read(0, &byte, 1) != 1)
		exit(1);
	phase = 0;
	for (int i = 0; i < holders; i++)
		if (write(hold[1], &byte, 1) != 1)
			abort();
	for (int i = 0; i < posts; i++)
		sem_post(&pool);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	n = 0;
}

static void make(pthread_mutex_t *m, int type, int protocol, int robustness)
{
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_settype(&a, type);
	pthread_mutexattr_setprotocol(&a, protocol);
	pthread_mutexattr_setrobust(&a, robustness);
	pthread_mutex_init(m, &a);
}

int main(void)
{
	if (pipe(hold) || pipe(held))
		return 1;
	make(&pi, PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_STALLED);
	make(&robust, PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST);
	make(&recursive, PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED);
	sem_init(&pool, 0, 3);
	stay(1, 0, 0);
	start("H");
	printf("2 %d\n", tids[0]);
	start("m");
	start("m");
	start("p");
	stay(2, 1, 0);
	start("W");
	printf("3 %d\n", tids[0]);
	start("r");
	start("r");
	stay(3, 1, 0);
	start("R");
	start("R");
	start("w");
	stay(4, 2, 0);
	stay(5, 0, 0);
	for (int i = 0; i < 3; i++)
		sem_wait(&pool);
	start("s");
	start("s");
	stay(6, 0, 2);
	return 5;
}
