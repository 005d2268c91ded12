/* SPDX-License-Identifier: MIT */
/* The far end of the cable of a board that several processes use. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "board/model/access.h"

static struct board make_board(uint32_t room)
{
	struct model_geometry g = MODEL_GEOMETRY_DEFAULT;
	uint8_t *at = mmap(NULL, KRON_WINDOW_SIZE, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct board b = {.ctl = (struct kron_ctl *)(at + KRON_CTL_OFFSET),
			  .model = (struct model *)(at + KRON_MODEL_OFFSET),
			  .memory = at + KRON_MEMORY_OFFSET};

	assert_ptr_not_equal(at, MAP_FAILED);
	g.cable = room;
	board_init(&b, &g, ACCESS_CLOCK_VIRTUAL, 0);
	board_write32(&b, KRON_BOARD_CONFIG,
		      (KRON_CONFIG_DEFAULT | KRON_CONFIG_EXT_CPU) & ~KRON_CONFIG_LOCAL);
	board_write32(&b, KRON_CHIP_BYTE(KRON_WORD_FILTER), 0xffff);
	board_write32(&b, KRON_CHIP_BYTE(KRON_WORD_CSR), KRON_CSR_SAMPLING);
	return b;
}

enum { SENDERS = 3, SENT = 4000 };

/* Its samples have the numbers 0, 1, ... without a gap, for only what was taken is counted. */
static void send_numbers(const struct board *b, uint32_t source)
{
	uint64_t n = 0;

	while (n < SENT || source == SENDERS - 1) {
		n += board_trigger(b, KRON_WORD_TRACE, source, source, n) == 1;
		board_tick(b, 60);
	}
	_exit(0);
}

struct received {
	uint8_t bytes[KRON_SAMPLE_SIZE];
	unsigned n;
	uint64_t next[SENDERS];
};

static void receive(struct received *r, uint16_t value)
{
	uint64_t number = 0;
	unsigned source;

	r->bytes[r->n++] = (uint8_t)(value >> 8);
	r->bytes[r->n++] = (uint8_t)value;
	if (r->n < KRON_SAMPLE_SIZE)
		return;
	r->n = 0;
	assert_int_equal(r->bytes[0] >> 3 & 3, KRON_HEAD_TYPE_TRACE);
	source = r->bytes[11];
	assert_in_range(source, 0, SENDERS - 1);
	for (unsigned i = 12; i < 20; i++)
		number = number << 8 | r->bytes[i];
	assert_int_equal(number, r->next[source]);
	r->next[source]++;
}

/* Each sample comes once and whole, whoever made the bus cycle that moved it; one sender is killed in the middle. */
static void several_processes_send_over_the_cable(void **state)
{
	struct board b = make_board(500); /* so that it is full now and then */
	struct received r = {.n = 0};
	struct access_cable c = {0};
	uint16_t values[1000];
	pid_t child[SENDERS];
	bool killed = false;
	int status;

	(void)state;
	for (uint32_t i = 0; i < SENDERS; i++) {
		child[i] = fork();
		if (!child[i])
			send_numbers(&b, i);
	}
	while (r.next[0] < SENT || r.next[1] < SENT || !killed || c.waiting) {
		assert_int_equal(board_take_cable(&b, &c, values, 1000), 0);
		assert_true(c.waiting <= 500);
		for (uint32_t i = 0; i < c.took; i++)
			receive(&r, values[i]);
		if (!killed && r.next[SENDERS - 1] > SENT / 2) {
			kill(child[SENDERS - 1], SIGKILL);
			killed = true;
		}
		if (!c.waiting)
			board_tick(&b, 60);
	}
	for (unsigned i = 0; i < SENDERS; i++)
		assert_int_equal(waitpid(child[i], &status, 0), child[i]);
	board_tick(&b, 10000);
	assert_int_equal(board_take_cable(&b, &c, values, 1000), 0);
	for (uint32_t i = 0; i < c.took; i++)
		receive(&r, values[i]);
	assert_int_equal(r.n, 0);
	assert_int_equal(r.next[0] + r.next[1], 2 * SENT);
	munmap(b.memory, KRON_WINDOW_SIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(several_processes_send_over_the_cable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
