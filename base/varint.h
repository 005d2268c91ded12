/* SPDX-License-Identifier: MIT */
/* varint.h - integers of seven bits a byte, the lowest first: as Thrift, Parquet and Protocol Buffers have them. */
#ifndef BASE_VARINT_H
#define BASE_VARINT_H

#include <stddef.h>
#include <stdint.h>

#define VARINT_MAX 10u

/* How many bytes it took. */
static inline size_t varint_put(uint8_t out[VARINT_MAX], uint64_t v)
{
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		out[n++] = (uint8_t)(v | 0x80);
	out[n++] = (uint8_t)v;
	return n;
}

/* 0, -1, 1, -2 ... as 0, 1, 2, 3 ... */
static inline uint64_t varint_zigzag(int64_t v)
{
	return (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0);
}

#endif
