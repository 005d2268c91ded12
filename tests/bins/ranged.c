/* SPDX-License-Identifier: MIT */
/*
 * ranged.c ROUNDS [PHASES] - loads and stores that are written out, one instruction each, at addresses that are known:
 * for kron monitor --range.  It says what it has done, and where:
 *
 *   word 0xADDR   table 0xADDR
 *   word R W   near R W   odd R W   table R W   heap R W
 *
 * word is an int in the middle of a line of its neighbours; odd lies across two lines; table is 1000 words from the
 * middle of a line on.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct neighbours {
	uint32_t before[5], it, after[10];
};
__attribute__((aligned(64))) volatile uint32_t line_before[5];
volatile uint32_t word; /* beside the others, by the linker's will */
volatile uint32_t near_it;
__attribute__((aligned(64))) static struct {
	uint8_t pad[60];
	uint64_t odd;
} __attribute__((packed)) across;
__attribute__((aligned(64))) uint64_t space[1100];
uint64_t *const table = &space[3];

/* One load, one store, one that does both. */
#define LOAD(p) __asm__ volatile("movl (%0), %%eax" : : "r"(p) : "eax", "memory")
#define STORE(p) __asm__ volatile("movl %%eax, (%0)" : : "r"(p) : "memory")
#define BOTH(p) __asm__ volatile("incl (%0)" : : "r"(p) : "memory", "cc")

__attribute__((noinline)) static void round_of(uint32_t *heap)
{
	LOAD(&word);
	LOAD(&word);
	STORE(&word);
	BOTH(&word);
	LOAD(&near_it);
	STORE(&near_it);
	STORE(&near_it);
	__asm__ volatile("movq (%0), %%rax" : : "r"(&across.odd) : "rax", "memory");
	for (int i = 0; i < 1000; i++)
		__asm__ volatile("movq %0, (%1)" : : "r"(7ul), "r"(&table[i]) : "memory");
	/* a string instruction: as many loads or stores as it has elements */
	__asm__ volatile("rep lodsl" : : "S"(heap), "c"(100) : "eax", "memory");
}

int main(int argc, char **argv)
{
	const unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 100;
	uint32_t *heap = calloc(1000, 4);

	printf("word %p table %p odd %p\n", (void *)&word, (void *)table, (void *)&across.odd);
	fflush(stdout);
	for (unsigned long i = 0; i < rounds; i++)
		round_of(heap);
	printf("word %lu %lu near %lu %lu odd %lu 0 table 0 %lu\n", 3 * rounds, 2 * rounds, rounds,
	       2 * rounds, rounds, 1000 * rounds);
	return 0;
}
