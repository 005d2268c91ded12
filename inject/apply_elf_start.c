/* SPDX-License-Identifier: MIT */
/* apply_elf_start.c - see start_code.h. */
#include <errno.h>
#include <string.h>

#include <kron/start.h>

#include "base/vec.h"
#include "inject/start_code.h"

static struct kron_start head(void)
{
	struct kron_start h;

	memcpy(&h, start_code, sizeof(h));
	return h;
}

uint64_t start_code_len(void)
{
	return (uint64_t)head().data_off + head().data_len;
}

int start_code_make(uint8_t **out, uint64_t vaddr, uint64_t *entry, struct err *err)
{
	const struct kron_start h = head();
	int64_t distance = (int64_t)(*entry - (vaddr + h.leave + 4));
	int32_t rel32 = (int32_t)distance;

	if (rel32 != distance)
		return err_set(err, ERANGE, "its entry point is too far from where there is room");
	*out = xmalloc(start_code_size);
	memcpy(*out, start_code, start_code_size);
	memcpy(*out + h.leave, &rel32, sizeof(rel32));
	*entry = vaddr + h.entry;
	return 0;
}
