/* SPDX-License-Identifier: MIT */
/*
 * throws.cc - a SIGSEGV handler that throws, through libmk's frame and the kernel's, between
 * stores to the board.  With -fnon-call-exceptions; with -DPLAIN without the board.
 */
#include <csignal>
#include <cstdio>
#ifndef PLAIN
#include <mk.h>
#define STORE() (mk_ts1 = 1)
#else
#define MK_DEFAULT_MAP() ((void)0)
#define STORE() ((void)0)
#endif

struct fault {
	void *addr;
};

struct counted {
	static int alive;
	counted()
	{
		alive++;
	}
	~counted()
	{
		alive--;
		STORE();
	}
};
int counted::alive;

static void handler(int, siginfo_t *info, void *)
{
	sigset_t s;

	sigemptyset(&s);
	sigaddset(&s, SIGSEGV);
	sigprocmask(SIG_UNBLOCK, &s, nullptr);
	STORE();
	throw fault{info->si_addr};
}

static volatile int *volatile bad = reinterpret_cast<volatile int *>(64);

static void dive(int n)
{
	counted c;

	if (n)
		dive(n - 1);
	else
		*bad = 1;
	STORE();
}

int main()
{
	struct sigaction a = {};
	int caught = 0;

	MK_DEFAULT_MAP();
	a.sa_sigaction = handler;
	a.sa_flags = SA_SIGINFO;
	sigaction(SIGSEGV, &a, nullptr);
	for (int i = 0; i < 20; i++) {
		try {
			dive(5);
		} catch (const fault &f) {
			caught += f.addr == const_cast<int *>(bad);
		}
	}
	std::printf("%d caught, %d alive\n", caught, counted::alive);
	return caught == 20 && counted::alive == 0 ? 0 : 1;
}
