/* SPDX-License-Identifier: MIT */
/*
 * farm.c - a master, three workers and a collector: something to look at with kron view.
 *
 *	master ──jobs──► worker, worker, worker (processes) ──results──► collector (a thread)
 *
 * Jobs and results go through a pipe each, so whoever is free takes the next one.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS 3
#define VALUES 64
#define ROUNDS 6

#define NOINLINE __attribute__((noinline))

struct job {
	int number;
	double v[VALUES];
};

static int jobs[2], results[2], njobs = 60;

NOINLINE void make_job(struct job *j, int number)
{
	j->number = number;
	for (int i = 0; i < VALUES; i++)
		j->v[i] = (number * 7919 + i * 104729) % 1000;
}

NOINLINE void send_job(const struct job *j)
{
	if (write(jobs[1], j, sizeof(*j)) != sizeof(*j))
		exit(1);
}

NOINLINE int receive_job(struct job *j)
{
	return read(jobs[0], j, sizeof(*j)) == sizeof(*j);
}

NOINLINE void send_result(const struct job *j)
{
	if (write(results[1], j, sizeof(*j)) != sizeof(*j))
		exit(1);
}

NOINLINE int receive_result(struct job *j)
{
	return read(results[0], j, sizeof(*j)) == sizeof(*j);
}

NOINLINE double transform(double x)
{
	return sin(x) * cos(x / 3) + sqrt(fabs(x));
}

NOINLINE void filter(struct job *j)
{
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < VALUES; i++)
			j->v[i] = transform(j->v[i]);
}

NOINLINE int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

NOINLINE void sort_values(struct job *j)
{
	qsort(j->v, VALUES, sizeof(*j->v), compare);
}

NOINLINE void work(void)
{
	struct job j;

	while (receive_job(&j)) {
		filter(&j);
		sort_values(&j);
		send_result(&j);
	}
}

NOINLINE void *collect(void *sum)
{
	struct job j;

	for (int i = 0; i < njobs && receive_result(&j); i++)
		*(double *)sum += j.v[j.number % VALUES];
	return NULL;
}

/* In bursts, so that the workers also wait. */
NOINLINE void master(void)
{
	struct job j;

	for (int i = 0; i < njobs; i++) {
		make_job(&j, i);
		send_job(&j);
		if (i % 12 == 11)
			usleep(500);
	}
	close(jobs[1]);
}

int main(int argc, char **argv)
{
	pthread_t collector;
	double sum = 0;

	if (argc > 1)
		njobs = atoi(argv[1]);
	if (pipe(jobs) || pipe(results))
		return 1;
	for (int i = 0; i < WORKERS; i++) {
		if (fork())
			continue;
		close(jobs[1]);
		work();
		_exit(0);
	}
	if (pthread_create(&collector, NULL, collect, &sum))
		return 1;
	master();
	pthread_join(collector, NULL);
	while (wait(NULL) > 0)
		;
	printf("%d jobs, sum %.3f\n", njobs, sum);
	return 0;
}
