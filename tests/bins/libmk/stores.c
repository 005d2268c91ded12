/* SPDX-License-Identifier: MIT */
/*
 * stores.c - C and C++: every kind of sample, then what the board's memory has of them.
 *
 * Prints one line a sample, "type level-independent user data", for who reads mk.dat.
 */
#include <mk.h>
#include <string.h>

#define SEND_EVENT 10
#define MANY 300u

static unsigned count;
static uint64_t data[1000];
static unsigned kind[1000];

static void expect(unsigned type, uint64_t value)
{
	kind[count] = type;
	data[count++] = value;
}

#define TS(n)                                                     \
	do {                                                      \
		mk_ts##n = 100 + n;                               \
		expect(MK_TYPE_TRACE, 100 + n);                   \
		mk_ts##n##_64 = 0x123456789abcdef0ull + n;        \
		expect(MK_TYPE_TRACE, 0x123456789abcdef0ull + n); \
	} while (0)
#define RS(n)                                                        \
	do {                                                         \
		mk_rs##n = 200 + n;                                  \
		expect(MK_TYPE_RESOURCE, 200 + n);                   \
		mk_rs##n##_64 = 0xfedcba9800000000ull + n;           \
		expect(MK_TYPE_RESOURCE, 0xfedcba9800000000ull + n); \
	} while (0)

static void all_levels(void)
{
	TS(0);
	TS(1);
	TS(2);
	TS(3);
	TS(4);
	TS(5);
	TS(6);
	TS(7);
	TS(8);
	TS(9);
	TS(10);
	TS(11);
	TS(12);
	TS(13);
	TS(14);
	TS(15);
	RS(0);
	RS(1);
	RS(2);
	RS(3);
	RS(4);
	RS(5);
	RS(6);
	RS(7);
	RS(8);
	RS(9);
	RS(10);
	RS(11);
	RS(12);
	RS(13);
	RS(14);
	RS(15);
}

static void loops(void)
{
	unsigned i;

	for (i = 0; i < MANY; i++) {
		mk_ts1 = SEND_EVENT + i;
		expect(MK_TYPE_TRACE, SEND_EVENT + i);
		mk_ts(i % 16) = i;
		expect(MK_TYPE_TRACE, i);
	}
}

static int check(int ok, const char *what)
{
	if (!ok)
		printf("wrong: %s\n", what);
	return !ok;
}

static int registers(void)
{
	int bad = 0;
	unsigned i;

	for (i = 0; i < 8; i++)
		mk_source[i] = 0x1000 + i;
	for (i = 1; i < 8; i++)
		bad += check(mk_source[i] == 0x1000 + i, "source");
	bad += check(mk_source5 == 0x1005, "source5");
	mk_filter = 0x00ff;
	bad += check((mk_filter & 0xffff) == 0x00ff, "filter");
	mk_filter |= 0xff00;
	bad += check((mk_filter & 0xffff) == 0xffff, "filter or");
	mk_csr = MK_CSR_STOP;
	bad += check(!(mk_csr & MK_CSR_SAMPLING), "stopped");
	mk_ts1 = 99; /* not taken */
	mk_csr = MK_CSR_SAMPLING;
	bad += check(mk_csr & MK_CSR_SAMPLING, "sampling");
	mk_mode_64 = MK_FIELD(3, MK_MODE_SOFTWARE);
	mk_enable = (uint32_t)MK_FIELD(3, MK_ENABLE_RESET);
	mk_increment[3] = 0;
	mk_increment[3] = 0;
	bad += check(mk_counter[3] == 2, "counter");
	bad += check(mk_increment[3] == 2, "counter without copy");
	bad += check(mk_config == (MK_CONFIG_DEFAULT | 0x90000000u), "config");
	bad += check(mk_timestamp < mk_timestamp, "time");
	bad += check((mk_timestamp_64 >> 56) == 0xff, "unused bits");
	mk_source[0] = 4711;
	return bad;
}

static int memory(void)
{
	static uint8_t pattern[5000], got[5000];
	mk_word32 *at = mk_memory + MK_MEMORY_WORDS - 2000;
	int bad = 0;
	unsigned i;

	for (i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(i * 37 + i / 256);
	for (i = 0; i < sizeof(pattern); i = i * 2 + 1) {
		memcpy((void *)(uintptr_t)at, pattern + 1, i);
		memcpy(got, (void *)(uintptr_t)at, i);
		bad += check(!memcmp(got, pattern + 1, i), "memcpy");
	}
	memset((void *)(uintptr_t)at, 0x5a, 777);
	memcpy(got, (void *)(uintptr_t)at, 777);
	for (i = 0; i < 777; i++)
		bad += check(got[i] == 0x5a, "memset");
	for (i = 0; i < 100; i++)
		at[i] = i;
	for (i = 0; i < 100; i++)
		at[i] += i;
	for (i = 0; i < 100; i++)
		bad += check(at[i]-- == 2 * i, "a word");
	bad += check(__sync_fetch_and_add(&at[7], 5) == 13, "fetch and add");
	bad += check(at[7] == 18, "after fetch and add");
	bad += check(((volatile uint8_t *)at)[28] == 18, "a byte");
	return bad;
}

static int samples(void)
{
	uint32_t word = 0;
	unsigned i;

	for (i = 0; i < count; i++)
		word += kind[i] == MK_TYPE_TRACE ? MK_TRACE_WORDS : MK_RESOURCE_WORDS;
	for (i = 0; i < 1000000 && MK_MAP_WORD(mk_map_pointer) < word; i++)
		; /* until it is all there */
	word = 0;
	for (i = 0; i < count; i++) {
		uint64_t user = (uint64_t)mk_memory[word + 3] << 32 | mk_memory[word + 4];
		unsigned type = MK_HEAD_TYPE(mk_memory[word]);

		if (type != kind[i] || user != data[i] || mk_memory[word + 2] != 4711) {
			printf("sample %u: type %u, data %#llx\n", i, type,
			       (unsigned long long)user);
			return 1;
		}
		word += type == MK_TYPE_TRACE ? MK_TRACE_WORDS : MK_RESOURCE_WORDS;
	}
	return check(MK_MAP_WORD(mk_map_pointer) == word, "pointer");
}

int main(void)
{
	int bad;
	unsigned i;

	MK_DEFAULT_MAP();
	mk_init();
	bad = registers();
	mk_csr = MK_CSR_WAIT;
	all_levels();
	loops();
	mk_csr = MK_CSR_DISCARD;
	bad += memory() + samples();
	for (i = 0; i < count; i++)
		printf("%u %llx\n", kind[i], (unsigned long long)data[i]);
	return bad != 0;
}
