/* SPDX-License-Identifier: MIT */
/* unwind_shapes.c - how far each sequence of ours has moved the stack pointer, byte by byte. */
#include "inject/plan/action.h"
#include "inject/plan/stub.h"
#include "inject/bind/unwind.h"

#include <string.h>

struct step {
	uint8_t shape;
	uint8_t from;  /* first byte of the instruction from which on it holds */
	uint8_t depth; /* bytes */
};

/* By shape, ascending; 0 before the first.  The sequences are in kron/wire.h; those of places
 * are inject/plan/action.c's. */
static const struct step steps[] = {
	{KRON_SHAPE_CALL, 5, 8}, /* call 1f: what it pushed becomes the return address */

	{KRON_SHAPE_CALL_RELATIVE, 5, 8},    /* likewise */
	{KRON_SHAPE_CALL_RELATIVE, 15, 136}, /* lea -128(%rsp),%rsp */
	{KRON_SHAPE_CALL_RELATIVE, 16, 144}, /* push %rax */
	{KRON_SHAPE_CALL_RELATIVE, 32, 136}, /* pop %rax */
	{KRON_SHAPE_CALL_RELATIVE, 40, 8},   /* lea 128(%rsp),%rsp */

	{KRON_SHAPE_RESULT, 5, 8},  /* lea -8(%rsp),%rsp */
	{KRON_SHAPE_RESULT, 16, 0}, /* lea 8(%rsp),%rsp */

	{KRON_SHAPE_PROBE, 5, 128},            /* lea -128(%rsp),%rsp */
	{KRON_SHAPE_PROBE, 6, 136},            /* push %rcx */
	{KRON_SHAPE_PROBE, 17, 144},           /* push %rax */
	{KRON_SHAPE_PROBE, 28, 136},           /* pop %rax */
	{KRON_SHAPE_PROBE, 29, 128},           /* pop %rcx */
	{KRON_SHAPE_PROBE, STUB_PROBE_LEN, 0}, /* lea 128(%rsp),%rsp */

	{KRON_SHAPE_HOOK, 5, 128},           /* lea -128(%rsp),%rsp */
	{KRON_SHAPE_HOOK, 6, 136},           /* push %rcx */
	{KRON_SHAPE_HOOK, 7, 144},           /* push %rax */
	{KRON_SHAPE_HOOK, 18, 136},          /* pop %rax */
	{KRON_SHAPE_HOOK, 19, 128},          /* pop %rcx */
	{KRON_SHAPE_HOOK, STUB_HOOK_LEN, 0}, /* lea 128(%rsp),%rsp */
};

void unwind_shapes(uint8_t depth[KRON_SHAPES][KRON_SHAPE_BYTES])
{
	memset(depth, 0, KRON_SHAPES * KRON_SHAPE_BYTES);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		memset(&depth[steps[i].shape][steps[i].from], steps[i].depth / 8,
		       KRON_SHAPE_BYTES - steps[i].from);
	for (unsigned shape = KRON_SHAPE_128; shape < KRON_SHAPE_RESULT; shape++)
		for (unsigned at = 0; at < KRON_SHAPE_BYTES; at++)
			depth[shape][at] = action_shape_depth(shape, at);
}
