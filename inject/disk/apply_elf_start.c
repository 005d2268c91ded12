/* SPDX-License-Identifier: MIT */
/* apply_elf_start.c - see start_code.h. */
#include <errno.h>
#include <string.h>

#include <kron/start.h>

#include "base/vec.h"
#include "inject/disk/start_code.h"
#include "inject/disk/start_hook.h"

#define PAGE 4096ull

static struct kron_start head(void)
{
	struct kron_start h;

	memcpy(&h, start_code, sizeof(h));
	return h;
}

uint64_t start_part_min(uint64_t *data)
{
	*data = head().data_len;
	return (uint64_t)head().data_off + head().data_len;
}

uint64_t start_part_hook(uint64_t vaddr)
{
	return vaddr + head().hook;
}

const uint8_t *start_part_frame(uint64_t *off, size_t *len)
{
	*off = head().frame;
	*len = head().frame_len;
	return start_code + *off;
}

static int make_code(struct start_part *out, uint64_t entry, const struct elf_image *img,
		     uint64_t block_len, bool wraps, struct err *err)
{
	struct kron_start h = head();
	int64_t distance = (int64_t)(entry - (out->vaddr + h.leave + 4));
	int32_t rel32 = (int32_t)distance;

	if (rel32 != distance)
		return err_set(err, ERANGE, "its entry point is too far from where there is room");
	h.wake = (uint32_t)out->wake_at;
	h.wake_len = (uint32_t)out->wake_len;
	h.block_len = (uint32_t)block_len;
	/* Its goroutines have stacks that are too small for the runtime's C. */
	h.flags = (img->is_go ? KRON_START_SMALL_STACKS : 0) |
		  (img->kind != ELF_KIND_STATIC ? KRON_START_DYNAMIC : 0) |
		  (img->kind == ELF_KIND_SHARED ? KRON_START_LIBRARY : 0) |
		  (wraps ? KRON_START_WRAPS : 0);
	out->code = xmalloc(start_code_size);
	memcpy(out->code, start_code, start_code_size);
	memcpy(out->code, &h, sizeof(h));
	memcpy(out->code + h.leave, &rel32, sizeof(rel32));
	out->entry = out->vaddr + h.entry;
	return 0;
}

/* After all that: where a library's start-up code goes on. */
static int add_displaced(struct start_part *out, uint64_t *entry, const struct start_hook *hook,
			 const struct elf_image *img, struct err *err)
{
	uint64_t at = (out->wake_len + 15) & ~15ull;
	uint8_t *all = xcalloc(at + START_HOOK_CODE_MAX, 1);
	size_t n;

	memcpy(all, out->wake, out->wake_len);
	xfree(out->wake);
	out->wake = all;
	*entry = out->vaddr + out->wake_at + at;
	n = start_hook_emit(all + at, hook, img, *entry);
	out->wake_len = at + n;
	return n ? 0 : err_set(err, ERANGE, "its start is too far from where there is room");
}

int start_part_make(struct start_part *out, uint64_t vaddr, uint64_t entry,
		    const struct elf_image *img, const struct patch_info *what,
		    const struct binding *b, uint64_t block_len, struct start_wake *wake,
		    struct err *err)
{
	uint64_t data;
	int code = 0;

	*out = (struct start_part){.vaddr = vaddr, .wake_at = start_part_min(&data)};
	start_wake_make(wake, &out->wake, &out->wake_len, vaddr, img);
	if (out->wake_len > UINT32_MAX / 2)
		code = err_set(err, ERANGE, "it has too many probes");
	if (!code && img->kind == ELF_KIND_SHARED)
		code = add_displaced(out, &entry, what->hook, img, err);
	if (!code)
		code = make_code(out, entry, img, block_len, what->has_jumps && b->own_hook, err);
	out->len = (out->wake_at + out->wake_len + PAGE - 1) & -PAGE;
	if (code)
		start_part_free(out);
	return code;
}

void start_part_free(struct start_part *part)
{
	xfree(part->code);
	xfree(part->wake);
	memset(part, 0, sizeof(*part));
}
