/* SPDX-License-Identifier: MIT */
/*
 * inputs.c - external counter inputs, driven by the program that measures.
 *
 *	inputs DEVICE     $KRON_BOARD has a virtual clock; DEVICE is a real board
 *
 * Prints what counters 0 (a clock while X0 is high), 4 (a clock) and 5 (edges of X5) have counted.
 */
#include <errno.h>
#include <mk.h>
#include <pthread.h>

#define TOGGLES 1000

static void *toggle(void *unused)
{
	for (int i = 0; i < TOGGLES; i++)
		if (mk_external(5, MK_TOGGLE))
			abort();
	return unused;
}

static int expect(int code, int got)
{
	if (got != code)
		printf("%d, not %d: %s\n", got, code, mk_error());
	return got != code;
}

static void set(int code)
{
	if (code)
		abort();
}

static void tick(void)
{
	if (system("\"$KRON\" ctl tick 100"))
		abort();
}

int main(int argc, char **argv)
{
	pthread_t t[2];

	if (argc < 2 || expect(-ENODEV, mk_external(0, MK_HIGH)))
		return 1;
	MK_DEFAULT_MAP();
	if (expect(-EINVAL, mk_external(16, MK_HIGH)) || expect(-EINVAL, mk_external(0, 3)) ||
	    expect(-EINVAL, mk_external(0, -1)))
		return 1;
	mk_mode = MK_FIELD(0, MK_MODE_GATED) | MK_FIELD(4, MK_MODE_CLOCK) |
		  MK_FIELD(5, MK_MODE_EXTERNAL);
	mk_clock = MK_FIELD(0, MK_CLOCK_NODE) | MK_FIELD(4, MK_CLOCK_NODE);
	mk_enable = MK_FIELD(0, MK_ENABLE_RESET) | MK_FIELD(4, MK_ENABLE_RESET) |
		    MK_FIELD(5, MK_ENABLE_RESET);
	tick();
	set(mk_external(0, MK_HIGH));
	tick();
	tick();
	set(mk_external(0, MK_HIGH)); /* it is */
	tick();
	set(mk_external(0, MK_LOW));
	tick();
	for (int i = 0; i < 2; i++)
		if (pthread_create(&t[i], NULL, toggle, NULL))
			abort();
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	printf("%u %u %u\n", mk_counter[0], mk_counter[4], mk_counter[5]);
	mk_unmap();
	if (mk_map(argv[1]) || expect(-ENOTSUP, mk_external(0, MK_HIGH)))
		return 1;
	puts(mk_error());
	return 0;
}
