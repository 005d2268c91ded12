/* SPDX-License-Identifier: MIT */
/*
 * test_stub.c - runs patched code for real.
 *
 * The test plans its own program, patches the functions of snippets.S in memory, and runs each
 * in place and patched with the same random registers, flags, stack and data.  A probe's thunk
 * is one of the test's own, which writes down every register as the probe's place sees it.
 *
 *   truth: what the unpatched snippet does; and expect(), written from the assembly
 *
 * Compared: all registers, all flags, the scratch memory, and the stack with the red zone.
 * Done with the gate on and off, and with the trampolines below and above the program.
 */
#define _GNU_SOURCE
#include "tests/unit/inject/stub_rig.h"

#define MAX_EVENTS 40
struct expected {
	int n;
	struct {
		const char *function;
		bool exit;
	} v[MAX_EVENTS];
};

static void event(struct expected *e, const char *function, bool exit)
{
	e->v[e->n].function = function;
	e->v[e->n++].exit = exit;
}

static void expect(struct expected *e, int i, const struct regs *in)
{
	bool negative = (int32_t)in->r[RSI] < 0;
	const char *next = NULL;
	int depth = snippets[i].shape == RECURSES ? in->r[RSI] & 7 : 0;

	e->n = 0;
	if (snippets[i].shape == TO_ONE || (snippets[i].shape == TO_ONE_IF_NEGATIVE && negative))
		next = "one";
	if (snippets[i].shape == TO_SHORT)
		next = "tail_short_target";
	if (snippets[i].shape == TO_TARGET_IF_NEGATIVE && negative)
		next = "tail_conditional_target";
	for (int d = 0; d <= depth; d++)
		event(e, snippets[i].name, false);
	for (int d = 0; d <= depth; d++)
		event(e, snippets[i].name, true);
	if (next) {
		event(e, next, false);
		event(e, next, true);
	}
}

static int make_plan(void **state)
{
	(void)state;
	return rig_start(NULL) ? -1 : rig_map_gates();
}

static int drop_plan(void **state)
{
	(void)state;
	rig_end();
	return 0;
}

/* Snippets whose exit takes a tactic that only places of a request may use. */
static bool is_for_places(const char *name)
{
	return !strcmp(name, "dots");
}

static void check_events(int i, int round)
{
	struct expected e;

	expect(&e, i, &run_in);
	check(seen_n == (uint64_t)e.n, "another number of events");
	for (int k = 0; k < e.n; k++) {
		uint64_t event = seen[k].event - KRON_EVENT_ENTRY(EVENT_BASE);

		check(!strcmp(function_name(event / 2) + 5, e.v[k].function), "wrong function");
		check((event & 1) == e.v[k].exit, "entry for exit or the reverse");
	}
	check(seen[0].regs.r[RSP] == run_in.r[RSP] - 8, "stack pointer of the entry");
	check(same_regs(&seen[0].regs, &run_in), "registers as the entry sees them");
	if (snippets[i].shape == LEAVES)
		return;
	check(seen[e.n - 1].regs.r[RSP] == run_out.r[RSP] - 8 - snippets[i].pops,
	      "stack pointer of the exit");
	check(same_regs(&seen[e.n - 1].regs, &run_out), "registers as the exit sees them");
}

static struct world *run_all_in_place(void)
{
	struct world *w = xcalloc(NSNIPPETS * ROUNDS, sizeof(*w));

	for (size_t i = 0; i < NSNIPPETS; i++)
		for (int round = 0; round < ROUNDS; round++)
			run(snippets[i].name, round, &w[i * ROUNDS + round]);
	return w;
}

static void run_all_patched(int64_t distance)
{
	struct world *want = run_all_in_place();
	static struct world got;

	patch(distance);
	for (int i = 0; i < (int)NSNIPPETS; i++) {
		for (int round = 0; round < ROUNDS; round++) {
			set_gate(round % 3 != 0);
			run(snippets[i].name, round, &got);
			check_same(i, round, &want[i * ROUNDS + round], &got);
			if (is_for_places(snippets[i].name))
				continue;
			if (round % 3)
				check_events(i, round);
			else
				check(seen_n == 0, "the gate is off");
		}
	}
	unpatch();
	xfree(want);
}

/* ---- tests ---- */

static void test_every_place_is_taken(void **state)
{
	(void)state;
	for (size_t i = 0; i < plan->nprobes; i++) {
		const struct plan_probe *p = &plan->probes[i];

		if (selected[p->function] && !is_for_places(function_name(p->function) + 5) &&
		    p->site == UINT32_MAX)
			fail_msg("%s of %s: %s", p->kind == PROBE_ENTRY ? "entry" : "exit",
				 function_name(p->function), refusal_text(p->refusal));
	}
}

static void test_trampolines_below(void **state)
{
	(void)state;
	run_all_patched(-0x20000000);
}

static void test_trampolines_above(void **state)
{
	(void)state;
	run_all_patched(0x60000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_place_is_taken),
		cmocka_unit_test(test_trampolines_below),
		cmocka_unit_test(test_trampolines_above),
	};

	return cmocka_run_group_tests_name("stub", tests, make_plan, drop_plan);
}
