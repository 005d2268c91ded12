/* SPDX-License-Identifier: MIT */
/*
 * differential.c - random code, in place and displaced, must do the same.
 *
 *   differential [-t SECONDS] [-s SEED] [-n BATCHES] [-v]      prints TAP
 *   differential [-m] -r SEED                  one batch again, and shows it; -m: shrinks it
 *
 * A batch is an image of some dozens of functions: drawn from all opcodes (diff_generate.c) or cut
 * out of real programs (diff_cut.c).  It is planned, with probes at entries and exits or at
 * arbitrary instructions, and bound.  Each function is run from several random states, then all
 * are patched, and run again from the same states.
 *
 *   truth: what the processor does with the unpatched bytes
 *
 * Compared: registers, flags, vector and x87 registers, memory, stack with its red zone; for a
 * fault its signal, code and address and where it happened, as the original sees it.  And for some
 * of the states the probes: which ones are passed in which order with which stack pointer, against
 * a run of the original one instruction at a time.
 *
 * What differs is run once more in place with what lies below the red zone changed at every step.
 * If that alone makes a difference, the code reads what no code may rely on, and is let go; so is
 * what reads the patched code as data or jumps to where a stray value leads.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <kron/board.h>
#include <kron/segment.h>

#include "inject/code/insn.h"
#include "tests/fuzz/diff_patch.h"

#define STATES 8u
#define FUNCTIONS_A_BATCH 48u
#define BATCHES_A_CHILD 64u
#define DIFFERS 3 /* a child's exit status; that of sanitizers is 1 */

struct counts {
	uint64_t cases, functions, insns, faults, timeouts, volatiles, stepped, probes;
	uint64_t found[PROBE_KINDS], taken[PROBE_KINDS];
	uint64_t differences;
};

static struct counts *counts; /* shared with the children */
static uint64_t *current;     /* the seed at work, likewise */
static bool verbose, shrinking;

/* ---- the same? ---- */

static const char *const fp_names[] = {"x87 or xmm", "ymm", "k, zmm or upper"};

/*
 * What differs, in words, or NULL.  loose: registers and flags that nobody reads any more may be
 * lost (liveness.h), so a fault may show others, and flags are nothing that a function returns.
 */
static const char *difference(const struct outcome *a, const struct outcome *b, uint64_t b_rip,
			      bool loose)
{
	if (a->signal != b->signal)
		return "signal";
	if (a->signal && a->rip != b_rip)
		return "address of the fault";
	if (a->signal && (a->code != b->code || a->trap != b->trap || a->error != b->error))
		return "kind of the fault";
	if (a->signal && a->fault_addr != b->fault_addr && a->fault_addr != a->rip)
		return "what the fault says it touched";
	if (!(loose && a->signal) && memcmp(a->regs.r, b->regs.r, sizeof(a->regs.r)))
		return "registers";
	if (!loose && a->regs.flags != b->regs.flags)
		return "flags";
	if (memcmp(a->fp, b->fp, 512))
		return fp_names[0];
	if (memcmp(a->fp + 512, b->fp + 512, 832 - 512))
		return fp_names[1];
	if (memcmp(a->fp + 832, b->fp + 832, FP_SIZE - 832))
		return fp_names[2];
	if (memcmp(a->data, b->data, sizeof(a->data)))
		return "rip-relative data";
	if (memcmp(a->scratch, b->scratch, sizeof(a->scratch)))
		return "memory";
	if (memcmp(a->stack, b->stack, sizeof(a->stack)))
		return "stack or red zone";
	return NULL;
}

/* ---- a batch ---- */

static void make_image(struct image *im, uint64_t seed)
{
	struct rng r = {seed};
	unsigned n = 1 + below(&r, FUNCTIONS_A_BATCH);
	bool cut = chance(&r, 3);

	image_clear(im);
	im->fixed = chance(&r, 2);
	for (unsigned i = 0; i < (cut ? 24 : 4); i++) {
		unsigned reg = below(&r, 16);

		if (reg != RSP && reg != RCX)
			im->pointers |= 1u << reg;
	}
	if (!im->pointers)
		im->pointers = 1u << RDI;
	do
		im->index = below(&r, 16);
	while (im->index == RSP || im->pointers >> im->index & 1);
	while (im->nfn < n) {
		struct code *c = &im->fn[im->nfn];

		c->alignment = 1u << below(&r, 5);
		c->padding = chance(&r, 2) ? 0 : below(&r, 20);
		c->filler = "\x90\x90\xcc\xf4"[below(&r, 4)];
		if (cut || chance(&r, 8))
			cut_function(im, &r);
		else
			generate_function(im, &r);
	}
	for (unsigned f = 0; f < im->nfn; f++)
		vec_for(&im->fn[f].items, it)
			it->salt = (uint32_t)rnd(&r);
	image_build(im);
}

static void print_function(const struct image *im, unsigned f)
{
	const struct code *c = &im->fn[f];
	const uint8_t *text = im->file + TEXT_OFF;
	char words[160];

	printf("# f%u:\n", f);
	for (unsigned i = 0; i < c->items.n; i++) {
		printf("#   %#10" PRIx64 "  %-40s ", im->text + c->at[i],
		       insn_text(words, sizeof(words), text + c->at[i], 15, im->text + c->at[i]));
		for (unsigned k = 0; k < c->items.v[i].len; k++)
			printf(" %02x", text[c->at[i] + k]);
		printf("\n");
	}
}

static void print_bytes(const char *what, const uint8_t *a, const uint8_t *b, size_t n)
{
	unsigned shown = 0;

	for (size_t i = 0; i < n && shown < 4; i += 8) {
		if (!memcmp(a + i, b + i, 8))
			continue;
		printf("# %s+%zu: %#" PRIx64 " in place, %#" PRIx64 " displaced\n", what, i,
		       *(const uint64_t *)(a + i), *(const uint64_t *)(b + i));
		shown++;
	}
}

static void print_outcomes(const struct outcome *a, const struct outcome *b, uint64_t b_rip)
{
	static const char *const names[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
					    "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

	for (int i = 0; i < 16; i++)
		printf("%s%s %#" PRIx64, i % 4 ? "  " : i ? "\n# " : "# ", names[i], run_in.r[i]);
	printf("\n");
	if (a->signal || b->signal)
		printf("# signal %d code %d at %#" PRIx64 " touching %#" PRIx64 " trap %" PRIu64
		       " error %" PRIx64 " in place;\n#   %d code %d at %#" PRIx64 " (%#" PRIx64
		       ") touching %#" PRIx64 " trap %" PRIu64 " error %" PRIx64 " displaced\n",
		       a->signal, a->code, a->rip, a->fault_addr, a->trap, a->error, b->signal,
		       b->code, b->rip, b_rip, b->fault_addr, b->trap, b->error);
	for (int i = 0; i < 16; i++)
		if (a->regs.r[i] != b->regs.r[i])
			printf("# %s: %#" PRIx64 " in place, %#" PRIx64 " displaced\n", names[i],
			       a->regs.r[i], b->regs.r[i]);
	if (a->regs.flags != b->regs.flags)
		printf("# flags: %#" PRIx64 " in place, %#" PRIx64 " displaced\n", a->regs.flags,
		       b->regs.flags);
	print_bytes("fp", a->fp, b->fp, FP_SIZE);
	print_bytes("data", a->data, b->data, sizeof(a->data));
	print_bytes("scratch", a->scratch, b->scratch, sizeof(a->scratch));
	print_bytes("stack", a->stack, b->stack, sizeof(a->stack));
}

/* One function from one state: NULL, or what is wrong. */
static struct outcome in_place, displaced, stepped;

static uint64_t state_seed(uint64_t seed, unsigned f, unsigned s)
{
	return seed ^ (uint64_t)f << 40 ^ (uint64_t)s << 32 ^ 0x5bd1e995;
}

/*
 * An exit may be probed on the way to the instruction that it stands at, and a place at the same
 * instruction there: exits move after the places that follow.
 */
static void order_events(struct event *v, unsigned n)
{
	for (unsigned i = n; i-- > 0;) {
		struct event exit = v[i];
		unsigned k = i;

		if (!(exit.event & 1) || exit.event >> 32)
			continue;
		for (; k + 1 < n && v[k + 1].event >> 32; k++)
			v[k] = v[k + 1];
		v[k] = exit;
	}
}

/* Counts that went by the thunk join the others; returns how many events are left. */
static unsigned take_counts(struct event *v, unsigned n, uint64_t *counters)
{
	unsigned kept = 0;

	memset(counters, 0, KRON_COUNTERS * sizeof(*counters));
	for (unsigned i = 0; i < KRON_COUNT_BANKS * KRON_COUNTERS; i++)
		counters[i % KRON_COUNTERS] +=
			run_counters()->n[i / KRON_COUNTERS][i % KRON_COUNTERS];
	for (unsigned i = 0; i < n; i++) {
		unsigned counter = (v[i].event & 0xff) - KRON_WORD_INCREMENT;

		if (v[i].event >> 32 == EVENT_STORE && v[i].event & KRON_ACTION_COUNT)
			counters[counter % KRON_COUNTERS] += v[i].sp;
		else
			v[kept++] = v[i];
	}
	return kept;
}

static bool is_same_event(const struct event *want, const struct event *seen)
{
	return want->event == seen->event && (want->sp == PAYLOAD_ANY || want->sp == seen->sp);
}

/* Two places after one instruction and before the next one: either may be first. */
static bool is_same_pair(const struct event *want, const struct event *seen)
{
	return want[0].event >> 32 && want[1].event >> 32 && is_same_event(&want[0], &seen[1]) &&
	       is_same_event(&want[1], &seen[0]);
}

static const char *compare_events(const struct expected *e, const struct event *seen, unsigned n,
				  const uint64_t *counters)
{
	bool same = e->v.n == n;

	if (memcmp(e->counts, counters, sizeof(e->counts)))
		return "counters";
	for (unsigned i = 0; same && i < n; i++) {
		if (is_same_event(&e->v.v[i], &seen[i]))
			continue;
		same = i + 1 < n && is_same_pair(&e->v.v[i], &seen[i]);
		i++;
	}
	return same ? NULL : "probes";
}

static void print_events(const struct expected *e, const struct event *seen, unsigned n,
			 const uint64_t *counters)
{
	for (unsigned i = 0; i < 16; i++)
		if (counters[i] != e->counts[i])
			printf("# counter %u: expected %" PRIu64 ", seen %" PRIu64 "\n", i,
			       e->counts[i], counters[i]);
	for (unsigned i = 0; i < n || i < e->v.n; i++)
		printf("# event %u: expected %" PRIx64 " with %#" PRIx64 ", seen %" PRIx64
		       " with %#" PRIx64 "\n",
		       i, i < e->v.n ? e->v.v[i].event : 0, i < e->v.n ? e->v.v[i].sp : 0,
		       i < n ? seen[i].event : 0, i < n ? seen[i].sp : 0);
}

static const char *check_probes(struct patched *p, const struct image *im, const struct state *st,
				uint64_t addr, const struct outcome *want)
{
	struct expected e = {.p = p, .im = im, .t = run_trail()};
	static struct event seen[EVENTS_MAX];
	unsigned nseen = e.t->nevents;
	uint64_t counters[16];
	const char *wrong = NULL;

	/* the events of the run before, the steps of another in place */
	memcpy(seen, e.t->events, nseen * sizeof(seen[0]));
	nseen = take_counts(seen, nseen, counters);
	patch_image(p, im, false);
	run_function(addr, st, true, &stepped);
	if (!difference(want, &stepped, stepped.rip, false)) {
		expect_all(&e);
		order_events(seen, nseen);
		order_events(e.v.v, e.v.n);
		counts->stepped++;
		counts->probes += e.v.n;
		wrong = e.is_ambiguous ? NULL : compare_events(&e, seen, nseen, counters);
		if (wrong && verbose)
			print_events(&e, seen, nseen, counters);
	}
	patch_image(p, im, true);
	xfree(e.v.v);
	return wrong;
}

/* Which instructions the last stepped run passed. */
static uint64_t path_taken(void)
{
	const struct trail *t = run_trail();
	uint64_t sum = t->nsteps;

	for (unsigned i = 0; i < t->nsteps; i++)
		sum = (sum ^ t->steps[i].rip) * 0x100000001b3u;
	return sum;
}

/*
 * Does it read what lies below the red zone, flags that are none of its arguments, or its own
 * code?  Then its outcome or its path depends on them.
 */
static bool is_volatile(struct patched *p, const struct state *st, uint64_t addr,
			const struct outcome *want)
{
	uint64_t path = 0;
	bool differs = false;

	patch_image(p, st->im, false);
	run_hands_on_no_flags = p->what != ACTS_TRACE;
	for (int i = 0; i < 12 && !differs; i++) {
		run_function(addr, st, true, &stepped);
		differs = run_trail()->reads_text || run_trail()->reads_lost ||
			  goes_astray(st->im, run_trail()) ||
			  difference(want, &stepped, stepped.rip, false) ||
			  (i && path_taken() != path);
		path = path_taken();
	}
	run_hands_on_no_flags = false;
	patch_image(p, st->im, true);
	return differs;
}

/* Bytes of the stack that nobody looks at, as they are in place. */
static void forgive(const struct outcome *want, uint64_t at, unsigned n)
{
	for (uint64_t i = at - (STACK_TOP - STACK_SHOWN); n--; i++)
		if (i < STACK_SHOWN)
			displaced.stack[i] = want->stack[i];
}

/*
 * A displaced call that cannot read or reach its target has pushed the return address already.
 * The runtime shows the handler the stack pointer that the call found (runtime/faults/faults.c);
 * the word below it is what the call was going to write.
 */
static void forgive_pushed(const struct image *im, const struct outcome *want, uint64_t rip)
{
	uint64_t off = rip - im->text, rsp = displaced.regs.r[RSP] + 8;
	struct insn in;

	if (!displaced.signal || rip == displaced.rip || off >= TEXT_SIZE - 15 ||
	    want->regs.r[RSP] != rsp || !insn_decode(&in, im->file + TEXT_OFF + off, 15, rip) ||
	    in.kind != INSN_CALL_INDIRECT)
		return;
	displaced.regs.r[RSP] = rsp;
	forgive(want, rsp - 8, 8);
	forgive(want, rsp - 136, 8); /* the red zone was taken to end there */
}

/* Patched, and `want` is what it does in place. */
static const char *run_displaced(struct patched *p, const struct image *im, unsigned f, unsigned s,
				 uint64_t seed, const struct outcome *want, bool with_probes)
{
	struct state st = {state_seed(seed, f, s), im};
	uint64_t addr = im->text + im->fn[f].start, rip;
	const char *wrong;

	run_function(addr, &st, false, &displaced);
	rip = original(p, im, displaced.rip);
	forgive_pushed(im, want, rip);
	wrong = difference(want, &displaced, rip, p->what != ACTS_TRACE);
	if (wrong && (want->signal == SIGNAL_TIMEOUT || displaced.signal == SIGNAL_TIMEOUT)) {
		counts->timeouts++;
		return NULL;
	}
	if (!wrong && with_probes)
		wrong = check_probes(p, im, &st, addr, want);
	if (wrong && is_volatile(p, &st, addr, want)) {
		counts->volatiles++;
		return NULL;
	}
	return wrong;
}

static enum where_probes probes_of(uint64_t seed)
{
	struct rng r = {seed ^ 99};

	return below(&r, PROBES_KINDS);
}

/* Once more from the image as it stands; for shrinking. */
static const char *try_again(struct image *im, unsigned f, unsigned s, uint64_t seed)
{
	struct state st = {state_seed(seed, f, s), im};
	struct patched p;
	const char *wrong;

	image_build(im);
	image_load(im);
	prepare(&p, im, probes_of(seed), seed);
	run_function(im->text + im->fn[f].start, &st, false, &in_place);
	patch_image(&p, im, true);
	wrong = in_place.signal == SIGNAL_TIMEOUT
			? NULL
			: run_displaced(&p, im, f, s, seed, &in_place, true);
	patch_image(&p, im, false);
	release(&p);
	return wrong;
}

/* Items [at, at + n) go; labels follow. */
static void cut_items(struct image *im, unsigned f, unsigned at, unsigned n)
{
	struct code *c = &im->fn[f];

	memmove(c->items.v + at, c->items.v + at + n, (c->items.n - at - n) * sizeof(struct item));
	c->items.n -= n;
	vec_for(&c->items, it)
		if ((it->kind == ITEM_JUMP || it->kind == ITEM_LABEL) && it->to > at)
			it->to = it->to >= at + n ? it->to - n : at;
	vec_for(&im->tables, t)
		for (unsigned k = 0; t->function == f && k < TABLE_CASES; k++)
			if (t->to[k] > at)
				t->to[k] = t->to[k] >= at + n ? t->to[k] - n : at;
}

struct saved {
	struct item *items;
	unsigned n;
	struct table *tables;
};

static struct saved save(const struct image *im, unsigned f)
{
	const struct code *c = &im->fn[f];
	struct saved s = {xmalloc(c->items.n * sizeof(struct item)), c->items.n,
			  xmalloc(im->tables.n * sizeof(struct table))};

	memcpy(s.items, c->items.v, s.n * sizeof(struct item));
	if (im->tables.n)
		memcpy(s.tables, im->tables.v, im->tables.n * sizeof(struct table));
	return s;
}

static void restore(struct image *im, unsigned f, const struct saved *s)
{
	memcpy(im->fn[f].items.v, s->items, s->n * sizeof(struct item));
	im->fn[f].items.n = s->n;
	if (im->tables.n)
		memcpy(im->tables.v, s->tables, im->tables.n * sizeof(struct table));
}

static void shrink_function(struct image *im, unsigned g, unsigned f, unsigned s, uint64_t seed,
			    const char *wrong)
{
	for (unsigned n = im->fn[g].items.n - 1; n; n /= 2) {
		for (unsigned at = 0; at + n < im->fn[g].items.n;) { /* the last item stays */
			struct saved old;

			old = save(im, g);
			cut_items(im, g, at, n);
			if (try_again(im, f, s, seed) != wrong) {
				restore(im, g, &old);
				at += n;
			}
			xfree(old.items);
			xfree(old.tables);
		}
	}
}

static void show(struct image *im, unsigned f, unsigned s, uint64_t seed, const char *first)
{
	struct state st = {state_seed(seed, f, s), im};
	struct patched p;
	const char *wrong;

	verbose = false;
	for (int round = 0; shrinking && round < 2; round++)
		for (int g = FUNCTIONS_MAX - 1; g >= 0; g--)
			if (im->fn[g].items.n > 1)
				shrink_function(im, g, f, s, seed, first);
	verbose = true;
	wrong = try_again(im, f, s, seed);
	printf("# smallest: f%u, state %u: %s\n", f, s, wrong ? wrong : "it is gone");
	for (unsigned g = 0; g < im->nfn; g++)
		if (im->fn[g].items.n > 1 || g == f)
			print_function(im, g);
	run_function(im->text + im->fn[f].start, &st, false, &in_place);
	prepare(&p, im, probes_of(seed), seed);
	print_outcomes(&in_place, &displaced, original(&p, im, displaced.rip));
	for (size_t i = 0; i < p.plan->nprobes; i++) {
		const struct plan_probe *x = &p.plan->probes[i];
		unsigned g = function_at(im, im->bias + x->vaddr);

		if (g < im->nfn && im->fn[g].items.n > 1)
			printf("# probe at %#" PRIx64 ": %s%s, %s\n", im->bias + x->vaddr,
			       (const char *[]){"entry", "exit", "hook", "place"}[x->kind],
			       x->where == PLACE_AFTER ? " after" : "",
			       x->site == UINT32_MAX ? refusal_text(x->refusal)
						     : tactic_key(x->tactic));
	}
	for (size_t i = 0; i < p.plan->nsites; i++) {
		const struct site_span *x = &p.spans[i];

		if (im->fn[function_at(im, im->bias + x->site->vaddr)].items.n <= 1)
			continue;
		printf("# site %#" PRIx64 ", %u bytes, %u patched, landing %#" PRIx64 "\n",
		       im->bias + x->site->vaddr, x->site->window, x->site->patch_len,
		       x->site->landing ? im->bias + x->site->landing : 0);
		for (uint64_t at = x->start; at < x->end;) {
			char words[160];
			struct insn in;

			if (!insn_decode(&in, (uint8_t *)at, 15, at))
				break;
			printf("#   %#10" PRIx64 "  %s\n", at,
			       insn_text(words, sizeof(words), (uint8_t *)at, 15, at));
			at += in.len;
		}
	}
	release(&p);
}

static void count_plan(const struct plan *p)
{
	for (size_t i = 0; i < p->nprobes; i++) {
		counts->found[p->probes[i].kind]++;
		counts->taken[p->probes[i].kind] += p->probes[i].site != UINT32_MAX;
	}
}

/* True: all was the same. */
static bool run_batch(uint64_t seed, bool shrink)
{
	static struct image im;
	static struct outcome *want;
	struct patched p;
	bool same = true;

	if (!want)
		want = xmalloc(FUNCTIONS_MAX * STATES * sizeof(*want));
	make_image(&im, seed);
	image_load(&im);
	prepare(&p, &im, probes_of(seed), seed);
	count_plan(p.plan);
	for (unsigned f = 0; f < im.nfn; f++) {
		counts->insns += im.fn[f].items.n;
		for (unsigned s = 0; s < STATES; s++) {
			struct state st = {state_seed(seed, f, s), &im};

			run_function(im.text + im.fn[f].start, &st, false, &want[f * STATES + s]);
			if (want[f * STATES + s].signal == SIGNAL_TIMEOUT)
				break;
		}
	}
	counts->functions += im.nfn;
	patch_image(&p, &im, true);
	for (unsigned f = 0; f < im.nfn && same; f++) {
		for (unsigned s = 0; s < STATES && same; s++) {
			const struct outcome *w = &want[f * STATES + s];
			const char *wrong;

			counts->cases++;
			counts->faults += w->signal != 0;
			if (w->signal == SIGNAL_TIMEOUT) {
				counts->timeouts++;
				break;
			}
			wrong = run_displaced(&p, &im, f, s, seed, w, s == 0 && f % 8 == seed % 8);
			if (!wrong)
				continue;
			same = false;
			counts->differences++;
			printf("# differs: %s, f%u state %u; again: differential -r %#" PRIx64 "\n",
			       wrong, f, s, seed);
			if (verbose)
				print_outcomes(w, &displaced, original(&p, &im, displaced.rip));
			patch_image(&p, &im, false);
			if (shrink)
				show(&im, f, s, seed, wrong);
		}
	}
	if (same)
		patch_image(&p, &im, false);
	release(&p);
	fflush(stdout);
	return same;
}

/* ---- many ---- */

static void set_gates(void)
{
	uint64_t page = KRON_GATE_ADDR(0) & -4096u;

	if (mmap((void *)page, 4096, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED)
		bail("the board's window", strerror(errno));
	memset((void *)(uint64_t)KRON_GATE_ADDR(0), 0, 16);
	memset((void *)(uint64_t)KRON_GATE_ADDR(0), 1, LEVELS_ON);
}

/* The batches of one child; a wild one may damage it. */
static void run_child(uint64_t seed, unsigned n, bool shrink)
{
	bool same = true;

	run_setup();
	for (unsigned i = 0; i < n; i++) {
		struct rng r = {seed + i};

		*current = rnd(&r);
		same = run_batch(*current, shrink) && same;
	}
	_exit(same ? 0 : DIFFERS);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Returns how many children ended otherwise than they should. */
static unsigned run_many(uint64_t seed, double seconds, uint64_t batches)
{
	double end = now() + seconds;
	unsigned lost = 0;

	for (uint64_t n = 0; n < batches && now() < end; n += BATCHES_A_CHILD) {
		int status;
		pid_t pid;

		fflush(stdout);
		pid = fork();
		if (!pid)
			run_child(seed + n, BATCHES_A_CHILD, false);
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			bail("fork", strerror(errno));
		if (WIFEXITED(status) && (!WEXITSTATUS(status) || WEXITSTATUS(status) == DIFFERS))
			continue;
		printf("# lost with status %#x in: differential -r %#" PRIx64 "\n", status,
		       *current);
		lost++;
	}
	return lost;
}

static void print_counts(double seconds)
{
	static const char *const kinds[] = {"entries", "exits", "hooks", "places"};

	printf("# %" PRIu64 " cases, %.0f a second; %" PRIu64 " functions, %" PRIu64
	       " instructions\n",
	       counts->cases, (double)counts->cases / seconds, counts->functions, counts->insns);
	printf("# %" PRIu64 " faults, %" PRIu64 " too long, %" PRIu64
	       " read below the red zone or code; %" PRIu64 " stepped, with %" PRIu64 " probes\n",
	       counts->faults, counts->timeouts, counts->volatiles, counts->stepped,
	       counts->probes);
	for (int i = 0; i < PROBE_KINDS; i++)
		if (counts->found[i])
			printf("# %s: %" PRIu64 " of %" PRIu64 " taken\n", kinds[i],
			       counts->taken[i], counts->found[i]);
}

int main(int argc, char **argv)
{
	double seconds = getenv("KRON_FUZZ_SECONDS") ? atof(getenv("KRON_FUZZ_SECONDS")) : 5,
	       start = now();
	uint64_t seed = 1, batches = UINT64_MAX;
	unsigned lost;
	int o;

	counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	current = (uint64_t *)(counts + 1);
	set_gates();
	if (!cut_open())
		bail("cut", "none of the programs to cut from is there");
	while ((o = getopt(argc, argv, "t:s:n:r:mv")) != -1) {
		switch (o) {
		case 't':
			seconds = atof(optarg);
			break;
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			batches = strtoull(optarg, NULL, 0);
			break;
		case 'm':
			shrinking = true;
			break;
		case 'v':
			verbose = true;
			break;
		case 'r':
			run_setup();
			return !run_batch(strtoull(optarg, NULL, 0), true);
		default:
			return 2;
		}
	}
	lost = run_many(seed << 32, seconds, batches);
	print_counts(now() - start);
	printf("%s 1 - displaced code does what it does in place\n",
	       counts->differences || lost ? "not ok" : "ok");
	printf("1..1\n");
	return counts->differences || lost;
}
