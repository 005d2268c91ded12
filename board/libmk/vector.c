/* SPDX-License-Identifier: MIT */
/*
 * vector.c - see vector.h.
 *
 * A signal frame has the registers in the XSAVE area's standard format, each in slices:
 *
 *   register   bytes 0-15         16-31            32-63
 *   0-15       legacy area +160   component 2      component 6
 *   16-31      component 7, all 64 bytes
 *
 * A component whose bit in the header is clear holds its initial value, zero, whatever the
 * bytes say; whoever writes into it must set the bit and zero the rest of it first.
 */
#include "board/libmk/vector.h"

#include <cpuid.h>
#include <stddef.h>
#include <string.h>

#define LEGACY_XMM 160u
#define LEGACY_SIZE 512u
#define SW_MAGIC 464u    /* the kernel's note in the legacy area: what follows it, */
#define SW_FEATURES 472u /* which components */
#define SW_SIZE 480u     /* and how many bytes */
#define MAGIC1 0x46505853u
#define COMPONENT_SSE 1u
#define COMPONENT_YMM 2u
#define COMPONENT_ZMM_HIGH 6u
#define COMPONENT_ZMM_16 7u

static struct {
	uint32_t offset, size;
} component[8];

void vector_init(void)
{
	unsigned i, a, b, c, d;

	for (i = 2; i < 8; i++) {
		if (!__get_cpuid_count(0xd, i, &a, &b, &c, &d))
			return;
		component[i].offset = b;
		component[i].size = a;
	}
}

/* Is this component part of the frame? */
static bool has_component(const uint8_t *area, unsigned i)
{
	uint64_t features;
	uint32_t magic, size;

	if (i <= COMPONENT_SSE)
		return true;
	memcpy(&magic, area + SW_MAGIC, 4);
	memcpy(&features, area + SW_FEATURES, 8);
	memcpy(&size, area + SW_SIZE, 4);
	return magic == MAGIC1 && (features >> i & 1) && component[i].size != 0 &&
	       component[i].offset + component[i].size <= size;
}

static bool is_in_use(const uint8_t *area, unsigned i)
{
	uint32_t magic;

	memcpy(&magic, area + SW_MAGIC, 4);
	return magic != MAGIC1 || (area[LEGACY_SIZE] >> i & 1);
}

static uint8_t *slice(uint8_t *area, unsigned i, unsigned reg)
{
	switch (i) {
	case COMPONENT_SSE:
		return area + LEGACY_XMM + reg * 16u;
	case COMPONENT_YMM:
		return area + component[i].offset + reg * 16u;
	case COMPONENT_ZMM_HIGH:
		return area + component[i].offset + reg * 32u;
	default:
		return area + component[i].offset + (reg - 16u) * 64u;
	}
}

static void read_slice(uint8_t *area, unsigned i, unsigned reg, uint8_t *out, unsigned bytes)
{
	if (has_component(area, i) && is_in_use(area, i))
		memcpy(out, slice(area, i, reg), bytes);
	else
		memset(out, 0, bytes);
}

static void begin_use(uint8_t *area, unsigned i)
{
	if (is_in_use(area, i))
		return;
	if (i == COMPONENT_SSE)
		memset(area + LEGACY_XMM, 0, 256);
	else
		memset(area + component[i].offset, 0, component[i].size);
	area[LEGACY_SIZE] |= (uint8_t)(1u << i);
}

static bool is_zero(const uint8_t *p, unsigned n)
{
	while (n && !*p) {
		p++;
		n--;
	}
	return n == 0;
}

static void write_slice(uint8_t *area, unsigned i, unsigned reg, const uint8_t *in, unsigned bytes)
{
	if (!has_component(area, i) || (!is_in_use(area, i) && is_zero(in, bytes)))
		return;
	begin_use(area, i);
	memcpy(slice(area, i, reg), in, bytes);
}

void vector_read(const ucontext_t *uc, unsigned reg, void *out, unsigned bytes)
{
	uint8_t *area = (uint8_t *)uc->uc_mcontext.fpregs;
	uint8_t whole[VECTOR_BYTES] = {0};

	if (reg >= 16) {
		read_slice(area, COMPONENT_ZMM_16, reg, whole, 64);
	} else {
		read_slice(area, COMPONENT_SSE, reg, whole, 16);
		read_slice(area, COMPONENT_YMM, reg, whole + 16, 16);
		read_slice(area, COMPONENT_ZMM_HIGH, reg, whole + 32, 32);
	}
	memcpy(out, whole, bytes);
}

void vector_write(ucontext_t *uc, unsigned reg, const void *in, unsigned bytes, bool zero_rest)
{
	uint8_t *area = (uint8_t *)uc->uc_mcontext.fpregs;
	uint8_t whole[VECTOR_BYTES];

	vector_read(uc, reg, whole, VECTOR_BYTES);
	memcpy(whole, in, bytes);
	if (zero_rest)
		memset(whole + bytes, 0, VECTOR_BYTES - bytes);
	if (reg >= 16) {
		write_slice(area, COMPONENT_ZMM_16, reg, whole, 64);
		return;
	}
	write_slice(area, COMPONENT_SSE, reg, whole, 16);
	if (bytes <= 16 && !zero_rest)
		return;
	write_slice(area, COMPONENT_YMM, reg, whole + 16, 16);
	write_slice(area, COMPONENT_ZMM_HIGH, reg, whole + 32, 32);
}
