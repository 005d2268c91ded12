/* SPDX-License-Identifier: MIT */
/*
 * deflate.c - drives the exported functions of libz; linked with Debian's library itself, so
 * that no headers are needed.  Prototypes as zlib.h has them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned long compressBound(unsigned long);
int compress2(unsigned char *, unsigned long *, const unsigned char *, unsigned long, int);
int uncompress(unsigned char *, unsigned long *, const unsigned char *, unsigned long);
unsigned long crc32(unsigned long, const unsigned char *, unsigned);
unsigned long adler32(unsigned long, const unsigned char *, unsigned);
const char *zlibVersion(void);
void *gzopen(const char *, const char *);
int gzwrite(void *, const void *, unsigned);
int gzputc(void *, int);
int gzgetc(void *);
int gzclose(void *);

#define SIZE 20000

int main(void)
{
	static unsigned char in[SIZE], back[SIZE];
	unsigned long room = compressBound(SIZE), sums = 0, total = 0;
	unsigned char *out = malloc(room);
	void *gz;

	if (!out || zlibVersion()[0] != '1')
		return 1;
	for (int level = 0; level <= 9; level++) {
		unsigned long n = room, m = SIZE;

		for (int i = 0; i < SIZE; i++)
			in[i] = (unsigned char)((i * i / 97) ^ (level << 3));
		if (compress2(out, &n, in, SIZE, level) || uncompress(back, &m, out, n) ||
		    m != SIZE || memcmp(in, back, SIZE))
			return 2;
		total += n;
		for (unsigned i = 1; i < 200; i++)
			sums += crc32(0, in, i) ^ adler32(1, in, i);
	}
	gz = gzopen("out.gz", "wb");
	if (!gz || gzwrite(gz, in, SIZE) != SIZE)
		return 3;
	for (int i = 0; i < 500; i++)
		gzputc(gz, i & 127);
	if (gzclose(gz))
		return 4;
	gz = gzopen("out.gz", "rb");
	if (!gz)
		return 5;
	while (gzgetc(gz) >= 0)
		total++;
	if (gzclose(gz))
		return 6;
	printf("%lu %lu\n", total, sums);
	return 0;
}
