/* SPDX-License-Identifier: MIT */
/*
 * test_core.c - what is believed of a core: made-up ones, of processes whose chunks others have taken while it was
 * written.  tests/e2e/record/core.py has real ones, where that is a matter of luck.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/vec.h"
#include "collect/recover/core.h"
#include <kron/segment.h>

#define OBJECT "/kron-00000000000000aa"
#define PATH "/memfd:kron-00000000000000aa (deleted)"
#define OWN 100
#define OTHER 200
#define CHUNKS 8u
#define TAIL (KRON_POOL_OFFSET - KRON_CTL_OFFSET)
#define POOL_AT 0x7e9001000000ull
#define FULL KRON_CHUNK_SAMPLES
#define FILE_SIZE (4096u + TAIL + CHUNKS * KRON_CHUNK_SIZE)

static uint8_t *tail, *pool; /* of the segment that goes into the core */
static size_t tail_in_core;

static struct kron_ctl *ctl(void)
{
	return (void *)tail;
}

static struct kron_proc *proc(unsigned slot)
{
	return (struct kron_proc *)(void *)(tail + KRON_PROCS_OFFSET - KRON_CTL_OFFSET) + slot;
}

static void live(unsigned slot, pid_t pid, uint32_t flags)
{
	*proc(slot) = (struct kron_proc){
		.state = (uint64_t)(slot + 1) << 8 | KRON_PROC_LIVE, .pid = pid, .flags = flags};
}

/* A FULL chunk of a thread in this slot, with n samples, one a tick. */
static void put(uint32_t i, uint64_t seq, uint32_t tid, unsigned slot, uint32_t time, uint32_t n)
{
	uint64_t *states = (void *)(tail + KRON_STATES_OFFSET - KRON_CTL_OFFSET);
	struct kron_chunk *c = (void *)(pool + i * KRON_CHUNK_SIZE);
	struct kron_sample *s = (void *)(c + 1);

	states[i] = kron_chunk_word(KRON_CHUNK_FULL, tid, slot, slot + 1);
	c->seq = seq;
	for (uint32_t k = 0; k < n; k++)
		s[k] = (struct kron_sample){.head = 1u << 24, .time_lo = time + k};
}

/* Its thread was storing there when it died. */
static void put_last(uint32_t i, uint64_t seq, uint32_t tid, uint32_t time, uint32_t n)
{
	uint64_t *states = (void *)(tail + KRON_STATES_OFFSET - KRON_CTL_OFFSET);

	put(i, seq, tid, 0, time, n);
	states[i] = kron_chunk_word(KRON_CHUNK_OWNED, tid, 0, 1);
}

static int set_up(void **state)
{
	(void)state;
	tail = xcalloc(1, TAIL);
	tail_in_core = TAIL;
	pool = xcalloc(CHUNKS, KRON_CHUNK_SIZE);
	ctl()->magic = KRON_SEGMENT_MAGIC;
	ctl()->version = KRON_SEGMENT_VERSION;
	ctl()->next_seq = 50;
	live(0, OWN, 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	xfree(tail);
	xfree(pool);
	return 0;
}

struct note {
	Elf64_Nhdr head;
	char name[8];
};

static size_t put_note(uint8_t *at, uint32_t type, const void *desc, size_t n)
{
	struct note h = {{5, (Elf64_Word)n, type}, "CORE"};

	memcpy(at, &h, sizeof(h));
	memcpy(at + sizeof(h), desc, n);
	return sizeof(h) + (n + 3) / 4 * 4;
}

/* Header and notes in the first page, then window and pool. */
static void make_core(uint8_t *file, pid_t pid)
{
	const Elf64_Ehdr eh = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB,
					   EV_CURRENT},
			       .e_type = ET_CORE,
			       .e_machine = EM_X86_64,
			       .e_version = EV_CURRENT,
			       .e_phoff = sizeof(eh),
			       .e_ehsize = sizeof(eh),
			       .e_phentsize = sizeof(Elf64_Phdr),
			       .e_phnum = 3};
	struct {
		uint64_t count, page, start[3], next[3];
		char names[2 * sizeof(PATH)];
	} maps = {2,
		  4096,
		  {KRON_CTL_ADDR, KRON_CTL_ADDR + TAIL, KRON_CTL_OFFSET / 4096},
		  {POOL_AT, POOL_AT + CHUNKS * KRON_CHUNK_SIZE, KRON_POOL_OFFSET / 4096},
		  PATH "\0" PATH};
	const struct elf_prpsinfo info = {.pr_pid = pid};
	Elf64_Phdr ph[3] = {
		{.p_type = PT_NOTE, .p_offset = 1024, .p_align = 4},
		{.p_type = PT_LOAD,
		 .p_vaddr = KRON_CTL_ADDR,
		 .p_offset = 4096,
		 .p_filesz = tail_in_core},
		{.p_type = PT_LOAD,
		 .p_vaddr = POOL_AT,
		 .p_offset = 4096 + TAIL,
		 .p_filesz = CHUNKS * KRON_CHUNK_SIZE},
	};
	size_t n = put_note(file + 1024, NT_PRPSINFO, &info, sizeof(info));

	ph[0].p_filesz = n + put_note(file + 1024 + n, NT_FILE, &maps, sizeof(maps));
	memcpy(file, &eh, sizeof(eh));
	memcpy(file + sizeof(eh), ph, sizeof(ph));
	memcpy(file + 4096, tail, TAIL);
	memcpy(file + 4096 + TAIL, pool, CHUNKS * KRON_CHUNK_SIZE);
}

/* Who looks for the last sample of all looks at numbers alone. */
static void check_numbers(int fd)
{
	uint64_t word, seq;

	for (off_t i = 0; i < (off_t)CHUNKS; i++) {
		assert_int_equal(pread(fd, &word, 8, (off_t)KRON_STATES_OFFSET + i * 8), 8);
		assert_int_equal(pread(fd, &seq, 8,
				       (off_t)KRON_POOL_OFFSET + i * (off_t)KRON_CHUNK_SIZE),
				 8);
		assert_true(!seq || kron_chunk_word_state(word) == KRON_CHUNK_OWNED ||
			    kron_chunk_word_state(word) == KRON_CHUNK_FULL);
	}
}

/* What is kept of the chunks, a bit each; or -errno. */
static int kept(pid_t pid, size_t size, struct core_memory *m)
{
	int fd = memfd_create("core", MFD_CLOEXEC), bits = 0, code;
	uint8_t *file = xcalloc(1, FILE_SIZE), *got;
	struct err err = {{0}};
	char path[64];

	make_core(file, pid);
	assert_int_equal(write(fd, file, size), size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	code = core_memory_open(m, path, OBJECT, &err);
	close(fd);
	xfree(file);
	if (code) {
		assert_int_not_equal(strlen(err.msg), 0);
		return code;
	}
	check_numbers(m->fd);
	got = mmap(NULL, KRON_POOL_OFFSET, PROT_READ, MAP_SHARED, m->fd, 0);
	assert_ptr_not_equal(got, MAP_FAILED);
	for (uint32_t i = 0; i < CHUNKS; i++)
		if (((uint64_t *)(void *)(got + KRON_STATES_OFFSET))[i] != KRON_CHUNK_ABSENT)
			bits |= 1 << i;
	munmap(got, KRON_POOL_OFFSET);
	close(m->fd);
	return bits;
}

/* They were free when the tables were copied, or just being taken: others have filled them since. */
static void what_nobody_owned_has_no_number(void **state)
{
	uint64_t *states = (void *)(tail + KRON_STATES_OFFSET - KRON_CTL_OFFSET);
	struct core_memory m;

	(void)state;
	put(0, 10, 1, 0, 1000, FULL);
	put(1, 60, 2, 1, 90000, FULL);
	put(2, 61, 2, 1, 95000, FULL);
	states[1] = KRON_CHUNK_FREE;
	states[2] = KRON_TAKEN_BY_RECORDER;
	assert_int_equal(kept(OWN, FILE_SIZE, &m), 7);
	assert_int_equal(m.left_out + m.lost, 0);
}

static void one_process_keeps_all(void **state)
{
	struct core_memory m;

	(void)state;
	put(0, 10, 1, 0, 1000, FULL);
	put(1, 14, 1, 0, 9000, FULL);
	put(2, 12, 2, 0, 5000, FULL);
	put(3, 17, 1, 0, 20000, 5);
	assert_int_equal(kept(OWN, FILE_SIZE, &m), 0xf);
	assert_int_equal(m.left_out + m.lost, 0);
	assert_false(m.is_cut);
	/* whose it is need not be said then */
	assert_int_equal(kept(0, FILE_SIZE, &m), 0xf);
}

static void others_are_left_out(void **state)
{
	struct core_memory m;

	(void)state;
	live(1, OTHER, 0);
	put(0, 10, 1, 0, 1000, FULL);
	put(1, 11, 1, 0, 9000, 7);
	put(2, 12, 2, 1, 5000, FULL);
	assert_int_equal(kept(OWN, FILE_SIZE, &m), 3);
	assert_int_equal(m.left_out, 1);
	assert_int_equal(m.lost, 0);
}

/* Another has taken the chunk with number 12, or one that was given out since; the older one is still there. */
static void nothing_older_than_one_that_was_taken(void **state)
{
	struct core_memory m;

	(void)state;
	for (unsigned since = 0; since < 2; since++) {
		put(0, 10, 1, 0, 1000, FULL);
		put(1, since ? 51 : 0, 1, 0, 0, 0);
		put(2, 13, 1, 0, 9000, FULL);
		put_last(3, 14, 1, 20000, 3);
		put(4, 11, 2, 0, 4000, FULL);
		assert_int_equal(kept(OWN, FILE_SIZE, &m), 1 << 2 | 1 << 3 | 1 << 4);
		assert_int_equal(m.left_out, 2);
		assert_int_equal(m.lost, 2 * (FULL - 1));
	}
	/* all numbers in between are somebody's: what was taken was older */
	put(5, 12, 2, 0, 8000, 3);
	assert_int_equal(kept(OWN, FILE_SIZE, &m), 1 << 0 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5);
	assert_int_equal(m.left_out, 1);
}

/* The thread died while it began a chunk: what others have taken of it may have been its last. */
static void nothing_of_a_thread_without_an_end(void **state)
{
	uint64_t *states = (void *)(tail + KRON_STATES_OFFSET - KRON_CTL_OFFSET);
	struct core_memory m;

	(void)state;
	ctl()->next_seq = 14;
	put(0, 10, 1, 0, 1000, FULL);
	put(1, 0, 1, 0, 0, 0);
	put(2, 11, 2, 0, 5000, FULL);
	put(3, 12, 2, 0, 9000, FULL);
	put(4, 14, 3, 1, 9000, 3);
	assert_int_equal(kept(OWN, FILE_SIZE, &m), 1 << 2 | 1 << 3 | 1 << 4);
	assert_int_equal(m.left_out, 2);
	assert_int_equal(m.lost, 2 * (FULL - 1));
	/* all younger numbers are somebody's: what was taken was older */
	put(5, 13, 3, 1, 5000, FULL);
	assert_int_equal(kept(OWN, FILE_SIZE, &m) & 0xf, 1 << 0 | 1 << 2 | 1 << 3);
	/* or it has its last one */
	put(5, 0, 0, 0, 0, 0);
	states[5] = KRON_CHUNK_FREE;
	put_last(0, 10, 1, 1000, FULL);
	assert_int_equal(kept(OWN, FILE_SIZE, &m) & 0xf, 1 << 0 | 1 << 2 | 1 << 3);
}

/* It begins as it was, and ends empty: it was being cleared. */
static void nothing_up_to_one_that_was_being_cleared(void **state)
{
	struct core_memory m;

	(void)state;
	put(0, 10, 1, 0, 1000, FULL);
	put(1, 11, 1, 0, 5000, 100);
	put_last(2, 12, 1, 9000, 3);
	assert_int_equal(kept(OWN, FILE_SIZE, &m), 1 << 2);
	assert_int_equal(m.left_out, 2);
}

/* Its later samples are another's. */
static void nothing_up_to_one_with_later_times(void **state)
{
	struct core_memory m;

	(void)state;
	put(0, 10, 1, 0, 1000, FULL);
	put(1, 11, 1, 0, 7000, FULL);
	put_last(2, 12, 1, 9000, 3);
	assert_int_equal(kept(OWN, FILE_SIZE, &m), 1 << 2);
	assert_int_equal(m.left_out, 2);
}

static void whose_it_is(void **state)
{
	struct core_memory m;

	(void)state;
	put(0, 10, 1, 0, 1000, FULL);
	live(1, OTHER, 0);
	assert_int_equal(kept(0, FILE_SIZE, &m), -ESRCH);
	assert_int_equal(kept(300, FILE_SIZE, &m), -ESRCH);
	live(1, OWN, 0); /* it has executed another program */
	assert_int_equal(kept(OWN, FILE_SIZE, &m), 1);
	live(1, OWN, KRON_PROC_FOREIGN_PIDNS);
	assert_int_equal(kept(OWN, FILE_SIZE, &m), -ESRCH);
}

static void what_is_not_there(void **state)
{
	struct core_memory m;

	(void)state;
	assert_int_equal(kept(OWN, FILE_SIZE, &m), -ENOENT); /* no samples */
	put(0, 10, 1, 0, 1000, FULL);
	assert_int_equal(kept(OWN, 4096 + TAIL - 1, &m), -ENOENT);
	assert_int_equal(kept(OWN, 4096 + TAIL, &m), -ENOENT);
	assert_int_equal(kept(OWN, FILE_SIZE - 1, &m), 1);
	assert_true(m.is_cut);
	tail_in_core = KRON_PROCS_OFFSET - KRON_CTL_OFFSET; /* chunks, and nobody whose they are */
	assert_int_equal(kept(OWN, FILE_SIZE, &m), -ENOENT);
	tail_in_core = TAIL;
	ctl()->version++;
	assert_int_equal(kept(OWN, FILE_SIZE, &m), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_nobody_owned_has_no_number, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_process_keeps_all, set_up, tear_down),
		cmocka_unit_test_setup_teardown(others_are_left_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nothing_older_than_one_that_was_taken, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(nothing_of_a_thread_without_an_end, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(nothing_up_to_one_that_was_being_cleared, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(nothing_up_to_one_with_later_times, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(whose_it_is, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_not_there, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("core", tests, NULL, NULL);
}
