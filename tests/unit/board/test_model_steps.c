/* SPDX-License-Identifier: MIT */
/*
 * The model against one that is stepped tick by tick (slow_board.c): random boards,
 * random cycles, random pauses; every register, every word for memory and every acknowledgement
 * must be the same.  KRON_TEST_SEED=N runs one seed again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "slow_board.h"

static uint64_t seed;

static uint32_t roll(uint32_t n) /* 0 to n-1 */
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)((seed * 0x2545f4914f6cdd1dull) >> 32) % n;
}

static uint64_t any(void)
{
	return (uint64_t)roll(0xffffffff) << 32 ^ (uint64_t)roll(0xffffffff) << 8 ^ roll(256);
}

/* ---- the two boards ---- */

static struct model_state fast;
static struct slow_board slow;
static uint64_t now;
static uint64_t first_seed;
static unsigned cycles;

/* The fast model's words for memory, since slow.nstored was last set to 0. */
static struct model_store stored[4096];
static unsigned nstored;
static uint32_t sram[KRON_VC_COUNTERS];
static uint16_t cabled[8192]; /* likewise over the cable */
static unsigned ncabled;

static void collect_stores(void)
{
	for (unsigned i = 0; i < model_stores(&fast); i++)
		stored[nstored++] = model_store(&fast, i);
	for (unsigned i = 0; i < model_vc_stores(&fast); i++)
		sram[model_vc_store(&fast, i).word] = model_vc_store(&fast, i).value;
	for (unsigned i = 0; i < fast.ncable; i++)
		cabled[ncabled++] = model_cable_value(&fast, i);
	assert_true(nstored < 4096 - 700 && ncabled < 8192 - 1400);
	assert_true(model_is_sane(&fast));
}

/* A copy of what model_used_bytes() promises to be enough; the rest is garbage. */
static void pass_through_copy(void)
{
	static struct model_state copy;

	memset(&copy, (int)roll(256), sizeof(copy));
	memcpy(&copy, &fast, model_used_bytes(&fast));
	fast = copy;
	fast.nstores = 0;
	fast.ncpu = 0;
	fast.ncable = 0;
	fast.vc.nout = 0;
}

static uint64_t peek(unsigned word)
{
	struct model_state copy = fast;
	struct model_cycle c = {.offset = KRON_CHIP_BYTE(word), .bytes = 8};

	copy.config = (copy.config | KRON_CONFIG_MK_OE) & ~KRON_CONFIG_EN_EXT;
	copy.csr &= ~KRON_CSR_WAIT_STATES;
	model_cycle(&copy, 0, &c);
	return c.data;
}

#define same(what, a, b)                                                                              \
	do {                                                                                          \
		if ((a) != (b))                                                                       \
			fail_msg(                                                                     \
				"KRON_TEST_SEED=%llu: cycle %u, tick %llu: %s is %llx, stepped %llx", \
				(unsigned long long)first_seed, cycles,                               \
				(unsigned long long)slow.tick, what, (unsigned long long)(a),         \
				(unsigned long long)(b));                                             \
	} while (0)

static void compare_registers(void)
{
	same("tick", fast.time, slow.tick);
	same("CSR", model_csr(&fast), slow_csr(&slow));
	same("filter", model_filter(&fast), slow.filter);
	same("configuration", model_config(&fast), 0x90000000 | slow.config);
	same("memory pointer", model_map(&fast), slow.map);
	same("timestamp", model_timestamp(&fast), slow.timestamp);
	same("high order register", (uint32_t)peek(7), slow.high);
	same("wait counter", (uint32_t)peek(5), slow.wait);
	same("overrun counter", (uint32_t)peek(6), slow.overrun);
	same("board FIFO", (unsigned)(fast.wr - fast.rd), slow.nqueue);
	same("chip FIFO", fast.nfifo, slow.nfifo);
	for (unsigned i = 0; i < 16; i++) {
		bool two = slow.counters.field[i & ~1u].mode >= 8;
		uint64_t value = slow.counters.counter[i];

		if (two && i % 2 == 0)
			value |= (uint64_t)slow.counters.counter[i + 1] << 32;
		same("counter", model_counter(&fast, i), value);
		same("shadow register", (uint32_t)peek(80 + i), slow.counters.shadow[i]);
		same("source", (uint32_t)peek(32 + i % 8), slow.source[i % 8]);
	}
}

static void compare_vc(void)
{
	const struct slow_vc *v = &slow.vc;

	same("vc timestamp", fast.vc.timestamp, v->timestamp);
	same("vc page", fast.vc.page, v->page);
	same("vc high order register", fast.vc.high, v->high);
	for (unsigned i = 0; i < 16; i++) {
		same("vc counter", (uint32_t)model_vc_counter(&fast, i), v->in.counter[i]);
		same("vc shadow register", fast.vc.page_in.shadow[i], v->in.shadow[i]);
	}
	for (unsigned i = 0; i < KRON_VC_COUNTERS; i++)
		same("virtual counter", sram[i], v->all[i]);
}

static void compare_memory(void)
{
	same("number of words", nstored, slow.nstored);
	for (unsigned i = 0; i < nstored; i++) {
		same("place in memory", stored[i].word, slow.stored[i].word);
		same("word in memory", stored[i].value, slow.stored[i].value);
	}
	nstored = slow.nstored = 0;
	same("values over the cable", ncabled, slow.ncabled);
	for (unsigned i = 0; i < ncabled; i++)
		same("value over the cable", cabled[i], slow.cabled[i]);
	same("values at its far end", model_cable_waiting(&fast), slow.waiting);
	ncabled = slow.ncabled = 0;
}

static void take_from_cable(void)
{
	unsigned n = roll(3) ? roll(20) : slow.waiting + roll(3);

	model_cable_take(&fast, now, n);
	collect_stores();
	slow_take(&slow, now, n);
}

static void cycle(struct model_cycle *c)
{
	struct model_cycle d = *c;

	if (model_vc_page(&fast, c) >= 0)
		c->page = sram + model_vc_page(&fast, c) * KRON_COUNTERS;
	model_cycle(&fast, now, c);
	collect_stores();
	slow_cycle(&slow, now, &d);
	cycles++;
	same("acknowledgement", c->done, d.done);
	same("no answer", c->no_answer, d.no_answer);
	same("taken", c->taken, d.taken);
	same("gates changed", c->gates_changed, d.gates_changed);
	same("data", c->data, d.data);
	now = c->done;
}

/* ---- what to do to them ---- */

static void write_to(uint32_t offset, uint64_t data)
{
	struct model_cycle c = {.offset = offset, .bytes = roll(2) ? 8 : 4, .write = true};

	c.data = data;
	c.cpu_lines = (uint8_t)(roll(4) ? 1u << roll(8) : roll(256));
	c.set_source = roll(4) == 0;
	c.source = (uint32_t)any();
	cycle(&c);
}

static void read_from(uint32_t offset)
{
	struct model_cycle c = {.offset = offset, .bytes = roll(2) ? 8 : 4};

	cycle(&c);
}

/* Mostly a board at work; switches are thrown one at a time, so that each stays for a while. */
static void change_config(void)
{
	static const uint32_t rare[] = {KRON_CONFIG_EN_EXT,    KRON_CONFIG_MK_OE,
					KRON_CONFIG_TESTB,     KRON_CONFIG_TEST,
					KRON_CONFIG_DIS_STATE, KRON_CONFIG_LOCAL,
					KRON_CONFIG_DIV2};
	uint32_t config = 0x3201;

	config ^= roll(2) ? rare[roll(7)] : 0;
	config ^= roll(4) ? 0 : rare[roll(7)];
	config ^=
		(uint32_t)any() & (KRON_CONFIG_WRAPB | KRON_CONFIG_TS_RATIO | KRON_CONFIG_EXT_CPU);
	config ^= roll(4) ? 0
			  : (uint32_t)any() & (0xff | KRON_CONFIG_WAIT_CPU | KRON_CONFIG_WAIT_MEM |
					       KRON_CONFIG_DIV2);
	write_to(KRON_BOARD_CONFIG, roll(30) ? config : any());
}

static uint64_t some_fields(uint64_t usual)
{
	uint64_t data = any();

	switch (roll(3)) {
	case 0:
		return data;
	case 1:
		return data & any() & any();
	default:
		return usual;
	}
}

static uint32_t a_page(void)
{
	return roll(4) ? roll(4) : (uint32_t)any();
}

static void use_vc(void)
{
	static const uint32_t edges[] = {0xffffffff, 0xfffffff0, 0xffffff00, 0};

	switch (roll(8)) {
	case 0:
		write_to(KRON_VC_BYTE(KRON_WORD_ENABLE), some_fields(0x2222222222222222ull));
		break;
	case 1:
		write_to(KRON_VC_BYTE(KRON_WORD_MODE), some_fields(0x1234123412341234ull));
		break;
	case 2:
		write_to(KRON_VC_BYTE(KRON_WORD_CLOCK), some_fields(0x4444333322221111ull));
		break;
	case 3:
		write_to(KRON_VC_BYTE(KRON_WORD_COUNTER + roll(16)),
			 (uint64_t)edges[roll(4)] << 32 | edges[roll(4)]);
		break;
	case 4:
		write_to(KRON_VC_BYTE(KRON_VC_PAGE), a_page());
		break;
	case 5:
		write_to(KRON_VC_BYTE(KRON_VC_COUNT), 16 * a_page() + roll(16));
		break;
	case 6:
		write_to(KRON_VC_BYTE(roll(128)), any());
		break;
	default:
		read_from(KRON_VC_BYTE(roll(10) ? roll(128) : roll(4096)));
	}
}

static void write_counters(void)
{
	static const uint32_t edges[] = {0xffffffff, 0xfffffff0, 0xffffff00, 0};

	switch (roll(5)) {
	case 0:
		write_to(KRON_CHIP_BYTE(KRON_WORD_ENABLE), some_fields(0x2222222222222222ull));
		break;
	case 1:
		write_to(KRON_CHIP_BYTE(KRON_WORD_MODE), some_fields(0x1234123412341234ull));
		break;
	case 2:
		write_to(KRON_CHIP_BYTE(KRON_WORD_CLOCK), some_fields(0x4444333322221111ull));
		break;
	case 3:
		write_to(KRON_CHIP_BYTE(KRON_WORD_COUNTER + roll(16)),
			 (uint64_t)edges[roll(4)] << 32 | edges[roll(4)]);
		break;
	default:
		write_to(KRON_CHIP_BYTE(KRON_WORD_INCREMENT + roll(16)), any());
	}
}

static void set_csr(void)
{
	static const uint32_t usual[] = {KRON_CSR_SAMPLING,
					 KRON_CSR_SAMPLING | KRON_CSR_WAIT,
					 KRON_CSR_SAMPLING | KRON_CSR_DISCARD,
					 KRON_CSR_READ_WAIT,
					 KRON_CSR_READ_NOWAIT,
					 KRON_CSR_MODE32,
					 KRON_CSR_MODE64,
					 KRON_CSR_STOP};

	write_to(KRON_CHIP_BYTE(KRON_WORD_CSR), roll(10) ? usual[roll(8)] : any());
}

/* The map's interesting addresses, among them the ends of everything. */
static uint32_t an_offset(void)
{
	static const uint32_t v[] = {0,         0xffc,     0x1200,    0x1208,
				     0x120c,    0x1210,    0x4000,    0x7ffc,
				     0xfffffc,  0x1000000, 0x1000100, 0x1fffffc,
				     0x1fffff8, 0x1000004, 0x1204,    0x120c};
	uint32_t offset = roll(2) ? KRON_CHIP_BYTE(roll(128)) : v[roll(16)];

	return offset;
}

static void initialise(void)
{
	write_to(KRON_BOARD_CONFIG, 0x3001);
	write_to(KRON_BOARD_MAP, roll(2) ? 0x3ffff0 : (uint32_t)any());
	write_to(KRON_BOARD_CONFIG, 0x3201 | (roll(2) ? KRON_CONFIG_WRAPB : 0));
	write_to(KRON_CHIP_BYTE(KRON_WORD_FILTER), 0xffff);
	write_to(KRON_CHIP_BYTE(KRON_WORD_CSR), KRON_CSR_SAMPLING);
}

static void act(void)
{
	unsigned what = roll(100);

	if (fast.geometry.cable && roll(16) == 0)
		take_from_cable();
	if (!(model_config(&fast) & KRON_CONFIG_TESTB) && roll(4) == 0)
		write_to(KRON_CHIP_BYTE(KRON_WORD_INCR_TIMESTAMP + roll(14)), any());
	else if (what < 8)
		use_vc();
	else if (what < 45)
		write_to(KRON_CHIP_BYTE(KRON_WORD_TRACE + roll(roll(3) ? 16 : 32)), any());
	else if (what < 52)
		read_from(KRON_CHIP_BYTE(KRON_WORD_COUNTER + roll(32)));
	else if (what < 60)
		write_counters();
	else if (what < 66)
		set_csr();
	else if (what < 72)
		change_config();
	else if (what < 82)
		read_from(an_offset());
	else if (what < 86)
		write_to(KRON_CHIP_BYTE(roll(128)), any());
	else if (what < 91)
		read_from(KRON_BOARD_TEST);
	else if (what < 94)
		write_to(KRON_BOARD_TEST, any());
	else if (what < 95)
		write_to(an_offset(), any());
	else if (what < 97)
		initialise();
	else {
		unsigned i = roll(16);
		bool high = roll(2);

		model_set_external(&fast, now, i, high);
		collect_stores();
		slow_external(&slow, now, i, high);
	}
}

static uint32_t a_pause(void)
{
	switch (roll(8)) {
	case 0:
		return 0;
	case 1:
		return roll(200);
	case 2:
		return roll(50) ? 40 : roll(5000);
	default:
		return roll(50);
	}
}

static void run_board(uint64_t n, unsigned steps)
{
	struct model_geometry g = MODEL_GEOMETRY_DEFAULT;

	first_seed = n;
	seed = n * 0x9e3779b97f4a7c15ull + 1;
	if (roll(3)) {
		g.chip_fifo = 1 + roll(roll(2) ? 4 : 16);
		g.board_fifo = 4 + roll(roll(2) ? 40 : 1021);
		g.drain_memory = 1 + roll(roll(2) ? 9 : 60);
		g.drain_cable = 1 + roll(30);
	}
	g.cable = roll(2) ? 1 + roll(roll(2) ? 20 : 2000) : 0;
	g.vc = roll(2);
	now = cycles = nstored = ncabled = 0;
	memset(sram, 0, sizeof(sram));
	model_power_on(&fast, &g);
	slow_power_on(&slow, &g);
	initialise();
	while (steps--) {
		act();
		compare_registers();
		if (roll(8) == 0) {
			compare_memory();
			if (g.vc)
				compare_vc();
		}
		if (nstored > 2000 || ncabled > 4000)
			compare_memory();
		now += a_pause();
		pass_through_copy();
	}
	now += 30000; /* all that can still move does */
	model_advance(&fast, now);
	collect_stores();
	slow_advance(&slow, now);
	compare_registers();
	compare_memory();
}

static void bulk_time_is_stepped_time(void **state)
{
	const char *one = getenv("KRON_TEST_SEED");
	uint64_t n;

	(void)state;
	if (one) {
		run_board(strtoull(one, NULL, 0), 2000);
		return;
	}
	for (n = 1; n <= 150; n++)
		run_board(n, 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bulk_time_is_stepped_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
