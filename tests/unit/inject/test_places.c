/* SPDX-License-Identifier: MIT */
/*
 * test_places.c - places at every instruction of the snippets, with every kind of action.
 *
 *   truth: the unpatched snippet, single-stepped by the processor (the trap flag): which
 *   instructions were executed, in which order, with which registers
 *
 * The same world run patched must end with the same registers, flags, memory, stack and red
 * zone; samples must be those of the steps, in order, with the payload that the registers had;
 * counters must be the numbers of steps.
 */
#define _GNU_SOURCE
#include "tests/unit/inject/stub_rig.h"

#include <signal.h>
#include <stdio.h>
#include <ucontext.h>
#include <unistd.h>

#include "inject/code/insn.h"

#define COUNTERS 16u
#define PLACE_ROUNDS 48
#define ALTSTACK 65536

void test_payload(void);
void test_action(void);
void saw_payload(uint32_t event, uint32_t gate, uint64_t payload);
void saw_action(uint32_t code, uint32_t unused, uint64_t data);

/* ---- truth: the trap flag ---- */

#define MAX_STEPS 4096
struct step {
	uint64_t vaddr;
	uint64_t r[16];
};
static struct step steps[MAX_STEPS];
static unsigned nsteps;
static bool came_in; /* the run has been in a snippet */

static bool is_in_snippet(uint64_t vaddr, uint32_t *function)
{
	for (size_t i = 0; i < plan->nfunctions; i++) {
		const struct plan_function *f = &plan->functions[i];

		if (selected[i] && vaddr >= f->vaddr && vaddr < f->vaddr + f->size) {
			*function = i;
			return true;
		}
	}
	return false;
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
				      REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
				      REG_R12, REG_R13, REG_R14, REG_R15};
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
	uint64_t vaddr = g[REG_RIP] - bias;
	uint32_t function;

	(void)sig;
	(void)info;
	if (is_in_snippet(vaddr, &function)) {
		came_in = true;
		/* a repeated string instruction traps after every turn */
		if (nsteps < MAX_STEPS && (!nsteps || steps[nsteps - 1].vaddr != vaddr)) {
			struct step *s = &steps[nsteps++];

			s->vaddr = vaddr;
			for (int i = 0; i < 16; i++)
				s->r[i] = g[order[i]];
		}
	}
	if (came_in && (uint64_t)g[REG_RIP] - (uint64_t)run_snippet < 400)
		g[REG_EFL] &= ~0x100; /* back from it */
}

static void step_through(const char *name, uint64_t from)
{
	random_world(from);
	run_fn = (void *)snippet_addr(name);
	nsteps = 0;
	came_in = false;
	run_in.flags |= 0x100;
	run_snippet();
	run_in.flags &= ~0x100ull;
	/* stepping shows in what the snippet pushed of its flags: the world is only the steps' */
}

/* Stepping is slow, and the same for all tests. */
static void run_stepped(int i, int round)
{
	static struct {
		struct step *v;
		unsigned n;
	} known[NSNIPPETS][PLACE_ROUNDS];

	if (!known[i][round].v) {
		step_through(snippets[i].name, round);
		known[i][round].v = xmalloc((nsteps + 1) * sizeof(struct step));
		known[i][round].n = nsteps;
		memcpy(known[i][round].v, steps, nsteps * sizeof(struct step));
	}
	nsteps = known[i][round].n;
	memcpy(steps, known[i][round].v, nsteps * sizeof(struct step));
}

/* ---- what the patched run does ---- */

struct sample {
	uint32_t event, payload, gate;
};
static struct sample samples[MAX_STEPS];
static unsigned nsamples;
static uint64_t banks[KRON_COUNT_BANKS][COUNTERS], counters[COUNTERS], *counters_word;
static __thread uint64_t **counts_tp __attribute__((tls_model("local-exec")));
static bool keep_cold; /* the action thunk leaves the thread without counters */
static uint64_t stored[128];

__attribute__((target("general-regs-only"))) void saw_payload(uint32_t event, uint32_t gate,
							      uint64_t payload)
{
	if (nsamples < MAX_STEPS)
		samples[nsamples++] = (struct sample){event, (uint32_t)payload, gate};
}

__attribute__((target("general-regs-only"))) void saw_action(uint32_t code, uint32_t unused,
							     uint64_t data)
{
	unsigned word = code & 127, level = code >> 8 & 15;

	(void)unused;
	if (code & KRON_ACTION_GATED && !*(volatile uint8_t *)(uintptr_t)KRON_GATE_ADDR(level))
		return;
	if (word >= 80 && word < 96)
		counters[word - 80] += data;
	else
		stored[word] = data;
	if (!keep_cold)
		counters_word = banks[KRON_COUNT_BANK];
}

/* ---- requests ---- */

static struct place_request *places;
static size_t nplaces;
static struct place_action actions[64];
static struct plan_request request;
static uint32_t *events;

/* All instructions of the snippets, as the plan's functions say where they are. */
static void list_instructions(uint8_t where)
{
	struct elf_image *img;
	struct err err;
	size_t cap = 0;

	assert_int_equal(elf_image_open(&img, "/proc/self/exe", &err), 0);
	nplaces = 0;
	for (size_t i = 0; i < plan->nfunctions; i++) {
		const struct plan_function *f = &plan->functions[i];
		struct insn in;

		for (uint64_t at = f->vaddr; selected[i] && at < f->vaddr + f->size; at += in.len) {
			const uint8_t *code = elf_image_at(img, at, 1);

			assert_true(insn_decode(&in, code, f->vaddr + f->size - at, at));
			if (nplaces == cap) {
				cap = cap * 2 + 64;
				places = xrealloc(places, cap * sizeof(*places));
			}
			places[nplaces] = (struct place_request){
				.vaddr = at, .where = where, .event = (uint32_t)nplaces};
			nplaces++;
		}
	}
	elf_image_close(img);
	events = xrealloc(events, nplaces * sizeof(*events));
	for (size_t i = 0; i < nplaces; i++)
		events[i] = EVENT_BASE + (uint32_t)i;
}

static void make_request(void)
{
	request = (struct plan_request){
		.places = places, .nplaces = nplaces, .actions = actions, .nactions = 64};
	rig_end();
	assert_int_equal(rig_start(&(struct plan_options){.request = &request}), 0);
}

static void patch_places(enum kron_thunk way, int64_t distance)
{
	patch_with(
		(struct binding){
			.plan = plan,
			.bias = bias,
			.thunk = (uint64_t)test_thunk,
			.payload_thunk = (uint64_t)test_payload,
			.action_thunk = (uint64_t)test_action,
			.way = way,
			.counts =
				(int32_t)((char *)&counts_tp - (char *)__builtin_thread_pointer()),
			.events = events,
			.nevents = nplaces,
		},
		distance);
	counts_tp = &counters_word;
}

static const struct plan_probe *probe_of(size_t place)
{
	for (size_t i = 0; i < plan->nprobes; i++)
		if (plan->probes[i].kind == PROBE_PLACE && plan->probes[i].event == place)
			return &plan->probes[i];
	fail_msg("a place got lost");
	return NULL;
}

static void report_refusals(const char *what)
{
	unsigned refused[REFUSAL_COUNT] = {0}, n = 0;

	for (size_t i = 0; i < nplaces; i++) {
		const struct plan_probe *p = probe_of(i);

		if (p->site == UINT32_MAX)
			refused[p->refusal]++;
		else
			n++;
	}
	print_message("%s: %u taken", what, n);
	for (int r = 1; r < REFUSAL_COUNT; r++)
		if (refused[r])
			print_message(", %u %s", refused[r], refusal_key(r));
	print_message("\n");
	assert_true(n + refused[REFUSAL_NOT_REACHED] > nplaces * 9 / 10);
}

/* Is the place at (vaddr, where) patched? */
static size_t place_at(uint64_t vaddr)
{
	size_t lo = 0, hi = nplaces;

	while (lo < hi) { /* not sorted over functions: look through all */
		if (places[lo].vaddr == vaddr)
			return lo;
		lo++;
	}
	return SIZE_MAX;
}

static bool *taken;

/* Steps may stand where no place is: in what was not planned. */
static bool is_taken(size_t place)
{
	return place < nplaces && taken[place];
}

static void list_taken(void)
{
	taken = xrealloc(taken, nplaces);
	for (size_t i = 0; i < nplaces; i++)
		taken[i] = probe_of(i)->site != UINT32_MAX;
}

/* ---- the runs ---- */

static struct world in_place, patched;

/* In place, stepped, and patched by turns: patching changes the code. */
struct case_run {
	void (*look)(int i, int round);
	bool gated;
};

/* The text stays writable: this is done often. */
static void write_code(bool on)
{
	for (size_t k = 0; k < bound.npatches; k++) {
		const struct kron_patch *p = &bound.patches[k];

		memcpy((uint8_t *)bound.patch_addr + p->off, on ? p->new_bytes : p->old_bytes,
		       on ? p->new_len : p->old_len);
	}
}

static void run_one(int i, int round, const struct case_run *c)
{
	run(snippets[i].name, round, &in_place);
	run_stepped(i, round);
	write_code(true);
	nsamples = 0;
	memset(counters, 0, sizeof(counters));
	memset(stored, 0xee, sizeof(stored));
	counters_word = round % 2 ? banks[KRON_COUNT_BANK] : NULL;
	memset(banks, 0, sizeof(banks));
	keep_cold = round % 4 == 0;
	set_gate(c->gated && round % 3 == 0 ? 0 : KRON_GATE(KRON_GATE_TAKE, LEVEL));
	run(snippets[i].name, round, &patched);
	write_code(false);
	for (unsigned k = 0; k < KRON_COUNT_BANKS * COUNTERS; k++)
		counters[k % COUNTERS] += banks[k / COUNTERS][k % COUNTERS];
	if (!strcmp(snippets[i].name, "pop_return")) /* then the red zone begins 8 bytes higher */
		memcpy(patched.stack + (run_in.r[RSP] - 136 - (uint64_t)stack),
		       in_place.stack + (run_in.r[RSP] - 136 - (uint64_t)stack), 8);
	check_same(i, round, &in_place, &patched);
	if (c->gated && round % 3 == 0) {
		check(nsamples == 0, "the gate is off");
		for (unsigned k = 0; k < COUNTERS; k++)
			check(counters[k] == 0, "the gate is off, but something was counted");
		return;
	}
	/* the trap that a system call would cause comes an instruction late */
	if (strncmp(snippets[i].name, "syscall", 7))
		c->look(i, round);
}

static void run_places(const char *what, enum kron_thunk way, const struct case_run *c)
{
	static const int64_t distances[] = {-0x20000000, 0x60000000};

	make_request();
	report_refusals(what);
	list_taken();
	for (unsigned d = 0; d < 2; d++) {
		patch_places(way, distances[d]);
		assert_int_equal(mprotect((void *)bound.patch_addr, bound.patch_len,
					  PROT_READ | PROT_WRITE | PROT_EXEC),
				 0);
		write_code(false);
		for (int i = 0; i < (int)NSNIPPETS; i++)
			for (int round = 0; round < PLACE_ROUNDS; round++)
				run_one(i, round, c);
		bound_free(&bound);
	}
}

/* ---- counts ---- */

static unsigned counter_of(size_t place)
{
	return (unsigned)(place * 5 % 7); /* some neighbours share one */
}

static void check_counts(int i, int round, const uint64_t want[COUNTERS])
{
	for (unsigned k = 0; k < COUNTERS; k++)
		if (counters[k] != want[k])
			fail_msg("snip_%s, round %d: counter %u is %lu, not %lu", snippets[i].name,
				 round, k, (unsigned long)counters[k], (unsigned long)want[k]);
}

static void check_counts_before(int i, int round)
{
	uint64_t want[COUNTERS] = {0};

	for (unsigned s = 0; s < nsteps; s++) {
		size_t place = place_at(steps[s].vaddr);

		if (is_taken(place))
			want[actions[places[place].action].word]++;
	}
	check_counts(i, round, want);
}

/* After an instruction: the next step is what follows it; after a call, some step later is
 * the return to it with the stack as before. */
static void check_counts_after(int i, int round)
{
	uint64_t want[COUNTERS] = {0};

	for (unsigned s = 0; s + 1 < nsteps; s++) {
		size_t place = place_at(steps[s].vaddr);
		uint64_t next = place + 1 < nplaces ? places[place + 1].vaddr : 0;
		unsigned t = s + 1;

		if (!is_taken(place))
			continue;
		while (t < nsteps && steps[t].r[RSP] < steps[s].r[RSP] && steps[t].vaddr != next &&
		       steps[t].r[RSP] + 8 <= steps[s].r[RSP] && steps[s + 1].vaddr != next)
			t++; /* in the callee */
		if (t < nsteps && steps[t].vaddr == next)
			want[counter_of(place)]++;
	}
	check_counts(i, round, want);
}

static void count_actions(bool ungated)
{
	for (unsigned k = 0; k < COUNTERS; k++)
		actions[k] = (struct place_action){.kind = ACTION_COUNT,
						   .level = LEVEL,
						   .word = (uint8_t)k,
						   .ungated = ungated};
	for (size_t i = 0; i < nplaces; i++)
		places[i].action = counter_of(i);
}

static void test_counts(void **state)
{
	static const enum kron_thunk ways[] = {KRON_THUNK_LANE, KRON_THUNK_EXACT};
	static const struct case_run c = {.look = check_counts_before};

	(void)state;
	for (unsigned w = 0; w < 2; w++) {
		list_instructions(PLACE_BEFORE);
		count_actions(true);
		run_places("counts", ways[w], &c);
	}
}

static void test_gated_counts(void **state)
{
	static const struct case_run c = {.look = check_counts_before, .gated = true};

	(void)state;
	list_instructions(PLACE_BEFORE);
	count_actions(false);
	run_places("gated counts", KRON_THUNK_LANE, &c);
}

static void test_one_counter(void **state)
{
	static const struct case_run c = {.look = check_counts_before};

	(void)state;
	list_instructions(PLACE_BEFORE);
	count_actions(true);
	for (unsigned k = 0; k < COUNTERS; k++)
		actions[k].word = (uint8_t)(k / 4); /* different actions of the same effect */
	run_places("merged counts", KRON_THUNK_LANE, &c);
}

static void test_counts_after(void **state)
{
	static const struct case_run c = {.look = check_counts_after};

	(void)state;
	list_instructions(PLACE_AFTER);
	count_actions(true);
	run_places("counts after", KRON_THUNK_LANE, &c);
}

/* ---- samples ---- */

static unsigned register_of(size_t place)
{
	return (unsigned)(place * 7 % 16);
}

static void check_samples(int i, int round)
{
	unsigned n = 0;

	for (unsigned s = 0; s < nsteps; s++) {
		size_t place = place_at(steps[s].vaddr);

		if (!is_taken(place))
			continue;
		check(n < nsamples, "samples are missing");
		check(samples[n].event == KRON_EVENT_ENTRY(events[place]), "another event");
		/* flags in a register say that they were stepped through */
		check(!((samples[n].payload ^ (uint32_t)steps[s].r[register_of(place)]) & ~0x100u),
		      "another payload");
		n++;
	}
	check(n == nsamples, "more samples than steps");
}

static void test_register_payloads(void **state)
{
	static const struct case_run c = {.look = check_samples, .gated = true};

	(void)state;
	list_instructions(PLACE_BEFORE);
	for (unsigned k = 0; k < 16; k++)
		actions[k] = (struct place_action){.kind = ACTION_TRACE,
						   .level = LEVEL,
						   .payload = PAYLOAD_REG,
						   .reg = (uint8_t)k};
	for (size_t i = 0; i < nplaces; i++)
		places[i].action = register_of(i);
	run_places("register payloads", KRON_THUNK_LANE, &c);
}

/* ---- stores ---- */

static void check_stores(int i, int round)
{
	volatile uint64_t *chip = (uint64_t *)(uintptr_t)(KRON_WINDOW_ADDR + KRON_BOARD_CHIP);
	uint64_t want = 0xdead;

	for (unsigned s = 0; s < nsteps; s++)
		if (is_taken(place_at(steps[s].vaddr)))
			want = (uint64_t)(int32_t)(0x80000000u + place_at(steps[s].vaddr) % 64);
	check(want == 0xdead || chip[8 / 2] == want, "another store");
}

static void test_stores(void **state)
{
	void *page = (void *)(uintptr_t)(KRON_WINDOW_ADDR + KRON_BOARD_CHIP);

	(void)state;
	assert_ptr_equal(mmap(page, 4096, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
			 page);
	for (int ungated = 0; ungated < 2; ungated++) {
		list_instructions(PLACE_BEFORE);
		for (unsigned k = 0; k < 64; k++)
			actions[k] = (struct place_action){
				.kind = ACTION_STORE,
				.level = LEVEL,
				.word = 8,
				.ungated = (uint8_t)ungated,
				.value = (uint64_t)(int32_t)(0x80000000u + k)};
		for (size_t i = 0; i < nplaces; i++)
			places[i].action = i % 64;
		run_places("stores", KRON_THUNK_HARDWARE, &(struct case_run){.look = check_stores});
	}
	munmap(page, 4096);
}

static int set_up(void **state)
{
	static uint8_t altstack[ALTSTACK];
	struct sigaction act = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	(void)state;
	sigaltstack(&(stack_t){.ss_sp = altstack, .ss_size = sizeof(altstack)}, NULL);
	sigaction(SIGTRAP, &act, NULL);
	return rig_start(NULL) ? -1 : rig_map_gates();
}

static int tear_down(void **state)
{
	(void)state;
	rig_end();
	xfree(places);
	xfree(events);
	xfree(taken);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_gated_counts),
		cmocka_unit_test(test_one_counter),
		cmocka_unit_test(test_counts_after),
		cmocka_unit_test(test_register_payloads),
		cmocka_unit_test(test_stores),
	};

	return cmocka_run_group_tests_name("places", tests, set_up, tear_down);
}
