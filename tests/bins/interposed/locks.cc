// SPDX-License-Identifier: MIT
//
// locks.cc - every way to take a lock, with what came of it: "event value" lines in order.  And
// threads that are cancelled while they wait: the stack is unwound through the stubs.
#include <cstdio>
#include <cstring>
#include <ctime>
#include <pthread.h>
#include <semaphore.h>
#include <string>

static std::string out;
static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER, recursive, guard;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t waiting;
static int destroyed;

static void say(const char *event, unsigned long value)
{
	char line[64];

	snprintf(line, sizeof(line), "%s %#lx\n", event, value & 0xffffffff);
	out += line;
}

#define ASK(event, lock, call, result)              \
	do {                                        \
		say(event, (unsigned long)(lock));  \
		say(result, (unsigned long)(call)); \
	} while (0)

struct marker {
	~marker()
	{
		destroyed++;
	}
};

// Waits for ever; the marker goes only if the stack is unwound.
static void *waits(void *)
{
	marker m;

	pthread_mutex_lock(&guard);
	pthread_cleanup_push([](void *p) { pthread_mutex_unlock((pthread_mutex_t *)p); }, &guard);
	sem_post(&waiting);
	for (;;)
		pthread_cond_wait(&cond, &guard);
	pthread_cleanup_pop(1);
	return nullptr;
}

static void *tries(void *)
{
	struct timespec past = {1, 0};

	ASK("mutex_trylock", &plain, pthread_mutex_trylock(&plain), "mutex_tried");
	ASK("mutex_timedlock", &plain, pthread_mutex_timedlock(&plain, &past), "mutex_timedlocked");
	ASK("rwlock_tryrdlock", &rw, pthread_rwlock_tryrdlock(&rw), "rwlock_triedrd");
	ASK("rwlock_trywrlock", &rw, pthread_rwlock_trywrlock(&rw), "rwlock_triedwr");
	return nullptr;
}

static void locks()
{
	struct timespec past = {1, 0};
	pthread_t t;

	ASK("mutex_lock", &plain, pthread_mutex_lock(&plain), "mutex_locked");
	ASK("mutex_lock", &recursive, pthread_mutex_lock(&recursive), "mutex_locked");
	ASK("mutex_lock", &recursive, pthread_mutex_lock(&recursive), "mutex_locked");
	ASK("rwlock_wrlock", &rw, pthread_rwlock_wrlock(&rw), "rwlock_wrlocked");
	pthread_create(&t, nullptr, tries, nullptr);
	pthread_join(t, nullptr);
	say("cond_timedwait", (unsigned long)&cond);
	say("cond_timedwait_mutex", (unsigned long)&plain);
	say("cond_timedwaited", (unsigned long)pthread_cond_timedwait(&cond, &plain, &past));
	pthread_rwlock_unlock(&rw);
	ASK("rwlock_rdlock", &rw, pthread_rwlock_rdlock(&rw), "rwlock_rdlocked");
	pthread_rwlock_unlock(&rw);
	pthread_mutex_unlock(&recursive);
	pthread_mutex_unlock(&recursive);
	pthread_mutex_unlock(&plain);
	ASK("barrier_wait", &barrier, pthread_barrier_wait(&barrier), "barrier_waited");
}

static void cancels()
{
	for (int i = 0; i < 10; i++) {
		pthread_t t;

		pthread_create(&t, nullptr, waits, nullptr);
		sem_wait(&waiting);
		pthread_mutex_lock(&guard); // it waits now
		pthread_mutex_unlock(&guard);
		pthread_cancel(t);
		pthread_join(t, nullptr);
	}
	printf("destroyed %d\n", destroyed);
}

int main(int argc, char **argv)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&recursive, &attr);
	pthread_mutex_init(&guard, nullptr);
	pthread_barrier_init(&barrier, nullptr, 1);
	sem_init(&waiting, 0, 0);
	if (argc > 1 && !strcmp(argv[1], "cancel"))
		cancels();
	else
		locks();
	fputs(out.c_str(), stdout);
	return 0;
}
