/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "slow_board.h"

enum { TEST = 1 << 8, LOCAL = 1 << 9, EXT_CPU = 1 << 10, WAIT_CPU = 1 << 11, TESTB = 1 << 12 };
enum { MK_OE = 1 << 13, WRAPB = 1 << 14, EN_EXT = 1 << 15, DIS_STATE = 1 << 16 };
enum { TS_RATIO = 1 << 18, DIV2 = 1 << 19, WAIT_MEM = 1 << 20 };

static bool has(const struct slow_board *b, uint32_t bit)
{
	return (b->config & bit) != 0;
}

static bool in_test_mode(const struct slow_board *b)
{
	return !has(b, TESTB);
}

/* ---- resource counters, one count at a time ---- */

static bool is_double(const struct slow_counters *k, unsigned i)
{
	return k->field[i - i % 2].mode >= 8;
}

static void count(struct slow_counters *k, unsigned i)
{
	if (!is_double(k, i)) {
		if (k->counter[i] != 0xffffffff)
			k->counter[i]++;
	} else if (i % 2 == 0) {
		if (k->counter[i] == 0xffffffff && k->counter[i + 1] == 0xffffffff)
			return;
		if (++k->counter[i] == 0)
			k->counter[i + 1]++;
	}
}

static bool is_on(const struct slow_counters *k, unsigned i)
{
	return k->field[i].enable % 4 == 2;
}

static void clock_counters(const struct slow_board *b, struct slow_counters *k, bool ts)
{
	bool ten = ++k->tens == 10;
	bool hundred = ++k->hundreds == 100;

	if (ten)
		k->tens = 0;
	if (hundred)
		k->hundreds = 0;
	for (unsigned i = 0; i < 16; i++) {
		unsigned mode = k->field[i].mode % 8;
		unsigned clock = k->field[i].clock % 8;
		bool edge = clock == 1 || clock == 5 || (ten && (clock == 2 || clock == 6)) ||
			    (hundred && (clock == 3 || clock == 7)) || (ts && clock == 4);

		if (!edge || !is_on(k, i) || in_test_mode(b))
			continue;
		if (mode == 1 || mode == 5 || ((mode == 3 || mode == 7) && b->external[i]))
			count(k, i);
	}
}

/* ---- one tick ---- */

static void node_clock(struct slow_board *b)
{
	bool ts = false;

	if (++b->ts_count >= (has(b, TS_RATIO) ? 3u : 4u)) {
		b->ts_count = 0;
		ts = true;
	}
	if (ts && !in_test_mode(b))
		b->timestamp = (b->timestamp + 1) & 0xffffffffffffffull;
	if (ts && !in_test_mode(b))
		b->vc.timestamp++;
	clock_counters(b, &b->counters, ts);
	clock_counters(b, &b->vc.in, ts);
}

static void remove_head(struct slow_board *b)
{
	memmove(b->fifo, b->fifo + 1, sizeof(b->fifo) - sizeof(b->fifo[0]));
	b->nfifo--;
	b->out = 0;
	b->network_delay = 2;
}

static void network(struct slow_board *b)
{
	const struct slow_sample *head = &b->fifo[0];
	uint8_t byte;

	if (b->nfifo == 0 || b->network_off || --b->network_delay > 0)
		return;
	b->network_delay = 2;
	if (b->nqueue == b->geometry.board_fifo)
		return; /* NETRDY is not asserted */
	if (b->out < 20)
		byte = head->bytes[b->out];
	else
		byte = (uint8_t)(b->counters.shadow[(b->out - 20) / 4] >> (24 - (b->out % 4) * 8));
	if (has(b, MK_OE))
		b->queue[b->nqueue++] = byte;
	b->progress++;
	if (++b->out < (head->resource ? 84u : 20u))
		return;
	if (head->resource)
		b->shadow_busy = false;
	remove_head(b);
}

static uint8_t unqueue(struct slow_board *b)
{
	uint8_t byte = b->queue[0];

	memmove(b->queue, b->queue + 1, --b->nqueue);
	return byte;
}

static void to_memory(struct slow_board *b, uint32_t value)
{
	if (has(b, WRAPB) && b->memory_full)
		return;
	b->stored[b->nstored++] = (struct model_store){b->map % 0x400000, value};
	b->memory_full = has(b, WRAPB) && b->map % 0x400000 == 0x3fffff;
	if (!b->memory_full)
		b->map = (b->map + 1) % 0x1000000;
}

static uint32_t four_bytes(struct slow_board *b)
{
	uint32_t value = 0;

	for (int i = 0; i < 4; i++)
		value = value * 256 + unqueue(b);
	return value;
}

static void end_sequence(struct slow_board *b)
{
	b->progress++;
	if (b->taking == 4) {
		to_memory(b, four_bytes(b));
	} else {
		uint16_t first = unqueue(b);

		b->cabled[b->ncabled++] = (uint16_t)(256 * first + unqueue(b));
		b->waiting++;
	}
}

static void begin_sequence(struct slow_board *b)
{
	if (b->busy || has(b, TEST) || has(b, DIS_STATE))
		return;
	if (has(b, LOCAL) && b->nqueue >= 4) {
		b->taking = 4;
		b->busy = b->geometry.drain_memory;
	} else if (!has(b, LOCAL) && b->waiting < b->geometry.cable && b->nqueue >= 2) {
		b->taking = 2;
		b->busy = b->geometry.drain_cable;
	}
}

static void one_tick(struct slow_board *b)
{
	bool edge = !has(b, EN_EXT);

	b->tick++;
	if (b->busy && --b->busy == 0)
		end_sequence(b);
	if (edge && has(b, DIV2)) {
		b->half_tick = !b->half_tick;
		edge = !b->half_tick;
	}
	if (edge) {
		node_clock(b);
		network(b);
	}
	begin_sequence(b);
}

void slow_advance(struct slow_board *b, uint64_t now)
{
	while (b->tick < now)
		one_tick(b);
}

/* ---- resets ---- */

static void reset_counters(struct slow_counters *k)
{
	memset(k, 0, sizeof(*k));
	for (unsigned i = 0; i < 16; i++)
		k->field[i] = (struct slow_field){1, 4, 4};
}

static void reset_vc(struct slow_board *b)
{
	reset_counters(&b->vc.in);
	b->vc.page = b->vc.high = 0;
	b->vc.mode32 = false;
}

static void reset_chip(struct slow_board *b)
{
	b->sampling = b->write_wait = b->read_wait = b->mode32 = false;
	b->fifo_lost = b->shadow_lost = b->shadow_busy = b->network_off = false;
	b->filter = b->high = b->wait = b->overrun = 0;
	b->nfifo = b->out = 0;
	memset(b->source, 0, sizeof(b->source));
	reset_counters(&b->counters);
}

void slow_power_on(struct slow_board *b, const struct model_geometry *g)
{
	static uint32_t all[8192];

	memset(b, 0, sizeof(*b));
	memset(all, 0, sizeof(all));
	b->vc.all = all;
	b->geometry = *g;
	reset_chip(b);
	reset_vc(b);
}

static void reset_board(struct slow_board *b)
{
	reset_chip(b);
	reset_vc(b);
	b->wait_states = b->vc.cpu_waits = has(b, WAIT_CPU);
	b->vc.memory_waits = has(b, WAIT_MEM);
	b->timestamp = b->vc.timestamp = 0;
	b->ts_count = 0;
	b->half_tick = false;
	b->config = 0;
	b->nqueue = b->busy = 0;
}

/* ---- samples ---- */

static bool fifo_full(const struct slow_board *b)
{
	return b->nfifo == b->geometry.chip_fifo;
}

static void settle_shadows(struct slow_board *b)
{
	memcpy(b->counters.shadow, b->counters.counter, sizeof(b->counters.shadow));
}

/* Hold the bus while blocked; false: for ever.  Then nothing has moved since the last progress. */
static bool hold(struct slow_board *b, bool fifo, bool shadows)
{
	static struct slow_board last;
	uint64_t limit = 0;
	uint32_t wait = 0, waited = 0;

	last = *b;
	while ((fifo && fifo_full(b)) || (shadows && b->shadow_busy)) {
		bool node = !(has(b, DIV2) && !b->half_tick);

		if (b->progress != last.progress) {
			last = *b;
			waited = wait;
			limit = 0;
		}
		if (++limit > 4 * b->network_delay + b->geometry.drain_memory +
				      b->geometry.drain_cable + 1000) {
			*b = last;
			if (!in_test_mode(b))
				b->wait += waited;
			return false;
		}
		one_tick(b);
		wait += node;
	}
	if (!in_test_mode(b))
		b->wait += wait;
	return true;
}

static unsigned cpu_number(const struct slow_board *b, uint8_t lines)
{
	uint32_t active = has(b, EXT_CPU) ? lines : b->config % 256;

	for (unsigned i = 0; i < 8; i++)
		if (active >> i & 1)
			return i;
	return 0;
}

static void put(uint8_t *to, uint64_t value, unsigned bytes)
{
	while (bytes--) {
		to[bytes] = (uint8_t)value;
		value /= 256;
	}
}

static void sample(struct slow_board *b, struct model_cycle *c, unsigned word, uint64_t data)
{
	bool resource = word >= 112;
	unsigned cpu = cpu_number(b, c->cpu_lines);
	struct slow_sample *s;

	if (!b->sampling || !(b->filter >> word % 16 & 1))
		return;
	if (fifo_full(b) || (resource && b->shadow_busy)) {
		if (b->write_wait)
			c->no_answer = !hold(b, true, resource);
		if (!b->write_wait || c->no_answer) {
			b->fifo_lost |= fifo_full(b);
			b->shadow_lost |= resource && b->shadow_busy;
			if (!in_test_mode(b))
				b->overrun++;
			return;
		}
	}
	if (b->nfifo == 0)
		b->network_delay = 2;
	s = &b->fifo[b->nfifo++];
	put(s->bytes, cpu * 32 + (resource ? 3 : 2) * 8 + b->shadow_lost * 4 + b->fifo_lost * 2, 1);
	put(s->bytes + 1, b->timestamp, 7);
	put(s->bytes + 8, b->source[cpu], 4);
	put(s->bytes + 12, data, 8);
	s->resource = resource;
	b->fifo_lost = b->shadow_lost = false;
	if (resource) {
		settle_shadows(b);
		b->shadow_busy = true;
	}
	c->taken = true;
}

/* ---- chip words ---- */

static void write_csr(struct slow_board *b, uint64_t d)
{
	struct {
		bool *bit;
		unsigned on, off;
	} v[] = {{&b->sampling, 0, 1},
		 {&b->write_wait, 2, 3},
		 {&b->read_wait, 4, 5},
		 {&b->mode32, 14, 15}};

	for (unsigned i = 0; i < 4; i++) {
		if (d >> v[i].on & 1)
			*v[i].bit = true;
		if (d >> v[i].off & 1)
			*v[i].bit = false;
	}
}

uint32_t slow_csr(const struct slow_board *b)
{
	return b->sampling | b->write_wait << 2 | b->read_wait << 4 | fifo_full(b) << 6 |
	       b->shadow_busy << 7 | b->fifo_lost << 8 | b->shadow_lost << 9 |
	       (b->nfifo && b->fifo[0].resource) << 10 | b->wait_states << 12 | b->mode32 << 14 |
	       !b->mode32 << 15;
}

static void write_fields(struct slow_counters *k, unsigned word, uint64_t data)
{
	struct slow_field old[16];

	memcpy(old, k->field, sizeof(old));
	for (unsigned i = 0; i < 16; i++, data /= 16) {
		unsigned v = data % 16;
		struct slow_field *f = &k->field[i];

		if (word == 8 && v % 4 == 3 && is_double(k, i)) {
			if (i % 2 == 0)
				k->counter[i] = k->counter[i + 1] = 0;
		} else if (word == 8 && v % 4 == 3) {
			k->counter[i] = 0;
		}
		if (word == 8 && v % 4)
			f->enable = v % 4 == 3 ? v - 1 : v;
		if (word == 10 && v)
			f->mode = v == 8 ? 8 + old[i].mode % 8 : v;
		if (word == 12 && v % 8)
			f->clock = v;
	}
}

static uint64_t read_fields(const struct slow_counters *k, unsigned word)
{
	uint64_t data = 0;

	for (unsigned i = 16; i-- > 0;) {
		const struct slow_field *f = &k->field[i];
		unsigned v = word == 8 ? f->enable : f->clock;

		if (word == 10)
			v = f->mode % 8 + 8 * is_double(k, i);
		data = data * 16 + v;
	}
	return data;
}

static void write_in_test_mode(struct slow_board *b, unsigned word, uint64_t data)
{
	if (word == 2)
		b->timestamp = data & 0xffffffffffffffull;
	else if (word == 16)
		b->timestamp = (b->timestamp + 1) & 0xffffffffffffffull;
	else if (word == 5)
		b->wait = (uint32_t)data;
	else if (word == 17)
		b->wait++;
	else if (word == 6)
		b->overrun = (uint32_t)data;
	else if (word == 18)
		b->overrun++;
	else if (word == 19)
		b->network_off = true;
	else if (word == 20 && b->network_off)
		b->network_off = false, b->network_delay = 2;
	else if (word == 21) {
		if (b->nfifo)
			remove_head(b);
		b->shadow_busy = false;
	} else if (word >= 25 && word <= 29 && !fifo_full(b)) {
		if (b->nfifo == 0)
			b->network_delay = 2;
		for (unsigned i = 0; i < 5; i++)
			put(b->fifo[b->nfifo].bytes + 4 * i, (uint32_t)data, 4);
		b->fifo[b->nfifo++].resource = false;
	}
}

/* Words 64 to 95 of either chip. */
static void write_counter(const struct slow_board *b, struct slow_counters *k, unsigned word,
			  uint64_t data)
{
	unsigned i = word % 16, mode = k->field[i].mode % 8;

	if (word >= 80) {
		if (in_test_mode(b) || (is_on(k, i) && (mode == 2 || mode == 6)))
			count(k, i);
		return;
	}
	k->counter[i] = (uint32_t)data;
	if (i % 2 == 0 && is_double(k, i))
		k->counter[i + 1] = (uint32_t)(data >> 32);
}

static uint64_t shadow_of(const struct slow_counters *k, unsigned i)
{
	if (is_double(k, i) && i % 2 == 0)
		return (uint64_t)k->shadow[i + 1] << 32 | k->shadow[i];
	return 0xffffffff00000000ull | k->shadow[i];
}

static void write_word(struct slow_board *b, struct model_cycle *c, unsigned word, uint64_t data)
{
	if (word >= 96)
		sample(b, c, word, data);
	else if (word >= 64)
		write_counter(b, &b->counters, word, data);
	else if (word >= 32 && word <= 39)
		b->source[word - 32] = (uint32_t)data;
	else if (word == 0)
		reset_chip(b);
	else if (word == 1)
		write_csr(b, data);
	else if (word == 4)
		b->filter = data & 0xffff;
	else if (word == 7)
		b->high = (uint32_t)data;
	else if (word == 8 || word == 10 || word == 12)
		write_fields(&b->counters, word, data);
	else if (in_test_mode(b))
		write_in_test_mode(b, word, data);
	else if (word == 5)
		b->wait = 0;
	else if (word == 6)
		b->overrun = 0;
}

static const uint64_t upper_ones = 0xffffffff00000000ull;

static uint64_t read_counter(struct slow_board *b, struct model_cycle *c, unsigned word)
{
	unsigned i = word % 16;

	if (word < 80 && b->shadow_busy && !b->read_wait)
		return ~0ull;
	if (word < 80 && b->shadow_busy && !hold(b, false, true)) {
		c->no_answer = true;
		return ~0ull;
	}
	if (word < 80)
		settle_shadows(b);
	else if (b->shadow_busy && b->nfifo && !b->network_off)
		b->network_delay += 2;
	return shadow_of(&b->counters, i);
}

static uint64_t read_word(struct slow_board *b, struct model_cycle *c, unsigned word)
{
	uint32_t group = 0;

	if (word >= 64 && word < 96)
		return read_counter(b, c, word);
	if (word >= 32 && word <= 39)
		return upper_ones | b->source[word - 32];
	if (word >= 25 && word <= 29 && b->nfifo) {
		for (unsigned i = 0; i < 4; i++)
			group = group * 256 + b->fifo[0].bytes[4 * (word - 25) + i];
		return upper_ones | group;
	}
	switch (word) {
	case 1:
		return slow_csr(b);
	case 2:
		return 0xff00000000000000ull | b->timestamp;
	case 4:
		return 0xffffffffffff0000ull | b->filter;
	case 5:
		return upper_ones | b->wait;
	case 6:
		return upper_ones | b->overrun;
	case 7:
		return upper_ones | b->high;
	case 8:
	case 10:
	case 12:
		return read_fields(&b->counters, word);
	}
	return ~0ull;
}

static void chip_cycle(struct slow_board *b, struct model_cycle *c)
{
	unsigned word = (c->offset - 0x1000) / 4;
	uint64_t data;

	if (!has(b, MK_OE) || has(b, EN_EXT)) {
		c->no_answer = true;
		if (!c->write)
			c->data = c->bytes == 8 ? ~0ull : 0xffffffff;
		return;
	}
	if (b->wait_states) {
		one_tick(b);
		if (has(b, DIV2))
			one_tick(b);
	}
	if (c->set_source && has(b, EXT_CPU) && __builtin_popcount(c->cpu_lines) == 1)
		b->source[cpu_number(b, c->cpu_lines)] = c->source;
	if (c->write) {
		data = c->bytes == 8 ? c->data : (uint32_t)c->data;
		if (b->mode32)
			data = (uint64_t)b->high << 32 | (uint32_t)data;
		write_word(b, c, word, data);
		return;
	}
	data = read_word(b, c, word);
	if (word != 7 && !c->no_answer)
		b->high = (uint32_t)(data >> 32);
	c->data = c->bytes == 8 ? data : (uint32_t)data;
}

/* ---- MultiKron_vc ---- */

static void swap_page(struct slow_board *b, unsigned page)
{
	struct slow_vc *v = &b->vc;
	struct slow_counters was = v->in;
	unsigned ticks = (v->memory_waits ? 64 : 32) * (has(b, DIV2) ? 2 : 1);

	if (page == v->page)
		return;
	while (ticks--)
		one_tick(b);
	memcpy(&v->all[16 * v->page], was.counter, sizeof(was.counter));
	memcpy(v->in.counter, &v->all[16 * page], sizeof(was.counter));
	v->page = page;
	v->stored = true;
}

static void vc_write(struct slow_board *b, unsigned word, uint64_t data)
{
	struct slow_vc *v = &b->vc;

	if (word >= 64 && word < 96) {
		write_counter(b, &v->in, word, data);
	} else if (word == 0) {
		reset_vc(b);
	} else if (word == 1) {
		if (data >> 14 & 1)
			v->mode32 = true;
		if (data >> 15 & 1)
			v->mode32 = false;
	} else if (word == 7) {
		v->high = (uint32_t)data;
	} else if (word == 8 || word == 10 || word == 12) {
		write_fields(&v->in, word, data);
	} else if (word == 14) {
		swap_page(b, data % 512);
	} else if (word == 15) {
		swap_page(b, data % 8192 / 16);
		write_counter(b, &v->in, 80 + data % 16, 0);
	} else if (word == 2 && in_test_mode(b)) {
		v->timestamp = data;
	} else if (word == 16 && in_test_mode(b)) {
		v->timestamp++;
	}
}

static uint64_t vc_read(struct slow_board *b, unsigned word)
{
	struct slow_vc *v = &b->vc;

	if (word >= 64 && word < 80)
		memcpy(v->in.shadow, v->in.counter, sizeof(v->in.shadow));
	if (word >= 64 && word < 96)
		return shadow_of(&v->in, word % 16);
	switch (word) {
	case 1:
		return v->cpu_waits << 12 | v->memory_waits << 13 | v->mode32 << 14 |
		       !v->mode32 << 15;
	case 2:
		return v->timestamp;
	case 7:
		return upper_ones | v->high;
	case 8:
	case 10:
	case 12:
		return read_fields(&v->in, word);
	case 14:
		return ~511ull | v->page;
	}
	return ~0ull;
}

static void vc_cycle(struct slow_board *b, struct model_cycle *c)
{
	unsigned word = (c->offset - 0x4000) / 4;
	uint64_t data = c->bytes == 8 ? c->data : (uint32_t)c->data;

	if (!has(b, MK_OE) || has(b, EN_EXT)) {
		c->no_answer = true;
		if (!c->write)
			c->data = c->bytes == 8 ? ~0ull : 0xffffffff;
		return;
	}
	if (b->vc.cpu_waits) {
		one_tick(b);
		if (has(b, DIV2))
			one_tick(b);
	}
	if (c->write) {
		if (b->vc.mode32)
			data = (uint64_t)b->vc.high << 32 | (uint32_t)data;
		vc_write(b, word, data);
		return;
	}
	data = vc_read(b, word);
	if (word != 7)
		b->vc.high = (uint32_t)(data >> 32);
	c->data = c->bytes == 8 ? data : (uint32_t)data;
}

/* ---- board ---- */

static bool may_test(struct slow_board *b, unsigned bytes)
{
	if (!has(b, TEST) || has(b, DIS_STATE))
		return false;
	while (b->busy)
		one_tick(b);
	return b->nqueue >= bytes;
}

static void board_write(struct slow_board *b, struct model_cycle *c, uint32_t offset, uint32_t data)
{
	if (offset == 0x1200) {
		reset_board(b);
		c->gates_changed = true;
	} else if (offset == 0x1204) {
		if ((b->config ^ data) & DIV2)
			b->half_tick = false;
		b->config = data & 0xffffff;
		c->gates_changed = true;
	} else if (offset == 0x1208 && !has(b, LOCAL)) {
		b->map = data & 0xffffff;
		b->memory_full = false;
	} else if (offset == 0x120c && may_test(b, 4)) {
		to_memory(b, four_bytes(b));
	} else if (offset >= 0x1000000 && offset < 0x2000000) {
		b->stored[b->nstored++] = (struct model_store){(offset - 0x1000000) / 4, data};
	}
}

static uint32_t board_read(struct slow_board *b, uint32_t offset)
{
	if (offset == 0x1204)
		return 0x90000000 | b->config;
	if (offset == 0x1208)
		return 0xff000000 | b->map;
	if (offset == 0x120c && may_test(b, 1))
		return 0xffffff00 | unqueue(b);
	return 0xffffffff;
}

void slow_cycle(struct slow_board *b, uint64_t now, struct model_cycle *c)
{
	slow_advance(b, now);
	c->no_answer = c->taken = c->gates_changed = false;
	if (b->geometry.vc && c->offset >= 0x4000 && c->offset < 0x8000) {
		vc_cycle(b, c);
	} else if (c->offset >= 0x1000 && c->offset < 0x1200) {
		chip_cycle(b, c);
		if (c->write && (c->offset == 0x1000 || c->offset == 0x1004 || c->offset == 0x1010))
			c->gates_changed = !c->no_answer;
	} else {
		if (c->bytes == 8 && c->offset == 0x1208)
			may_test(b, 0);
		if (c->write) {
			board_write(b, c, c->offset, (uint32_t)c->data);
			if (c->bytes == 8)
				board_write(b, c, c->offset + 4, (uint32_t)(c->data >> 32));
		} else {
			c->data = board_read(b, c->offset);
			if (c->bytes == 8)
				c->data |= (uint64_t)board_read(b, c->offset + 4) << 32;
		}
	}
	begin_sequence(b);
	c->done = b->tick;
}

void slow_take(struct slow_board *b, uint64_t now, unsigned n)
{
	unsigned there = b->waiting;

	slow_advance(b, now);
	b->waiting -= n < there ? n : there;
	begin_sequence(b);
}

static void count_edge(struct slow_counters *k, unsigned i)
{
	if (is_on(k, i) && k->field[i].mode % 8 == 4)
		count(k, i);
}

void slow_external(struct slow_board *b, uint64_t now, unsigned counter, bool high)
{
	bool edge = high && !b->external[counter];

	slow_advance(b, now);
	b->external[counter] = high;
	if (!edge || in_test_mode(b) || has(b, EN_EXT))
		return;
	count_edge(&b->counters, counter);
	count_edge(&b->vc.in, counter);
}
