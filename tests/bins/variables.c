// SPDX-License-Identifier: MIT
/*
 * variables.c - a function whose parameters and variables are taken by their names, and a program that says
 * what they hold: a line a call, NAME=VALUE each (arrays with commas).
 *
 *     variables [wait]     wait: first for a line on its input
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum color { RED = -1, GREEN = 7 };
enum shape { ROUND = 3, LAST = 4000000000u };
typedef volatile uint64_t word;
struct node {
	struct node *next;
	int value;
};
struct request {
	int id;
	struct {
		short count;
		union {
			int raw;
			unsigned char first;
		};
	} headers;
	char name[12], full[4];
	double weight;
	float part;
	unsigned flag : 3, rest : 29;
	const struct node *list;
	enum color color;
	enum shape shape;
	bool is_good;
	char letter;
	signed char tiny;
	unsigned char bytes[8];
	word words[3];
	int grid[2][3];
	int big[40];
	struct node nodes[2];
	int (*call)(void);
};

int counter = 5;
static long hidden = -9;
double ratio = 2.5;
struct {
	int len;
	const char *text;
} queue = {3, "queued \"text\""};
static struct request table[4];

#define LIST(x, n, how)                                    \
	do {                                               \
		printf(" " #x "=");                        \
		for (int i_ = 0; i_ < (n); i_++)           \
			printf(i_ ? "," how : how, x[i_]); \
	} while (0)

__attribute__((noinline)) long work(const struct request *r, int n, double d, char c, long long l,
				    uint16_t s, const char *text, int seventh, long eighth);
__attribute__((noinline)) long work(const struct request *r, int n, double d, char c, long long l,
				    uint16_t s, const char *text, int seventh, long eighth)
{
	static int calls = 100;
	volatile int local = n * 2 + (int)d;
	const int *cells = r->grid[1];

	printf("n=%d c=%d l=%lld s=%u text=%s seventh=%d eighth=%ld", n, c, l, s, text, seventh,
	       eighth);
	printf(" counter=%d hidden=%ld ratio=%.17g queue.len=%d calls=%d local=%d", counter, hidden,
	       ratio, queue.len, calls, local);
	printf(" r->id=%d r->headers.count=%d r->headers.raw=%d r->headers.first=%u r->name=%.12s r->full=%.4s",
	       r->id, r->headers.count, r->headers.raw, r->headers.first, r->name, r->full);
	printf(" r->weight=%.17g r->part=%.9g r->color=%d r->shape=%u r->is_good=%d r->letter=%d r->tiny=%d",
	       r->weight, (double)r->part, r->color, r->shape, r->is_good, r->letter, r->tiny);
	LIST(r->bytes, 8, "%u");
	LIST(r->words, 3, "%lu");
	LIST(r->grid[1], 3, "%d");
	printf(" r->big[7]=%d table[2].id=%d r->nodes[1].value=%d", r->big[7], table[2].id,
	       r->nodes[1].value);
	if ((uintptr_t)r->list > 4096)
		printf(" r->list->next->value=%d\n", r->list->next->value);
	else
		printf(" r->list->next->value=unreadable\n");
	counter += n;
	hidden--;
	queue.len++;
	calls++;
	return local + cells[0] + c; /* the last line */
}

int main(int argc, char **argv)
{
	static char names[][12] = {"name", "", "twelve bytes", "x"};
	struct node b = {0, -77}, a = {&b, 33};
	char line[8];

	if (argc > 1 && !strcmp(argv[1], "wait") && !fgets(line, sizeof(line), stdin))
		return 1;
	for (int i = 0; i < 4; i++) {
		struct request *r = &table[i];

		*r = (struct request){
			.id = -i,
			.headers = {(short)(-300 - i), {5 + i * 1000}},
			.full = {'f', 'u', 'l', 'l'},
			.weight = i + .1,
			.part = (float)i / 3,
			.flag = 5,
			.list = i == 3 ? (struct node *)16 : &a,
			.color = i & 1 ? RED : GREEN,
			.shape = i & 1 ? LAST : ROUND,
			.is_good = i & 1,
			.letter = (char)('a' - 100 * i),
			.tiny = (signed char)-i,
			.bytes = {1, 2, 255, (unsigned char)i},
			.words = {1, (uint64_t)i << 40, (uint64_t)-1},
			.nodes = {{0, 1}, {0, i - 2}},
		};
		memcpy(r->name, names[i], sizeof(r->name));
		for (int k = 0; k < 40; k++)
			r->big[k] = k * -i;
		for (int k = 0; k < 6; k++)
			r->grid[k / 3][k % 3] = k * (i - 1);
		work(r, i * 10 - 5, 1.5, (char)('x' - 90 * i), 1ll << (40 + i),
		     (uint16_t)(65535 - i), "a text", i - 7, -1l << (i + 33));
	}
	return 0;
}
