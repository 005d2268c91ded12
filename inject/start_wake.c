/* SPDX-License-Identifier: MIT */
/*
 * start_wake.c - writes down what wakes a file's probes without a collector (kron/start.h).
 *
 * The block is bound a second time, awake on the exact bus; what differs from the one that sleeps
 * are the edits of the first range.  Neither has an address of a process in it, so they hold
 * wherever the program is loaded.  The jumps of the sites are the edits of the others.
 */
#include <stdlib.h>
#include <string.h>

#include <kron/start.h>

#include "base/vec.h"
#include "inject/start_code.h"
#include "inject/stub.h"

#define PAGE 4096ull
/* So many equal bytes between two edits cost as much as a third edit. */
#define BRIDGE KRON_WAKE_EDIT

typedef VEC(uint8_t) bytes;
typedef VEC(struct kron_wake_range) ranges;

/* ---- one range ---- */

struct writing {
	bytes *out;
	struct kron_wake_range *range;
	uint64_t at; /* where the last edit ended */
};

static void go_to(struct writing *w, uint64_t at)
{
	for (; at - w->at >= KRON_WAKE_GAP_MAX; w->at += KRON_WAKE_GAP_MAX) {
		*vec_push(w->out) = 0xff;
		*vec_push(w->out) = 0xff;
		*vec_push(w->out) = 0;
	}
}

static void put(struct writing *w, unsigned gap, const uint8_t *old, const uint8_t *new,
		unsigned len)
{
	*vec_push(w->out) = (uint8_t)gap;
	*vec_push(w->out) = (uint8_t)(gap >> 8);
	*vec_push(w->out) = (uint8_t)len;
	for (unsigned i = 0; i < len; i++) {
		*vec_push(w->out) = old[i] ^ new[i];
		w->range->sum = kron_wake_sum(w->range->sum, old[i]);
	}
	w->at += gap + len;
}

static void change(struct writing *w, uint64_t at, const uint8_t *old, const uint8_t *new,
		   uint64_t len)
{
	go_to(w, at);
	while (len) {
		unsigned n = len < KRON_WAKE_LEN_MAX ? (unsigned)len : KRON_WAKE_LEN_MAX;

		put(w, (unsigned)(at - w->at), old, new, n);
		at += n;
		old += n;
		new += n;
		len -= n;
	}
}

static struct writing begin(bytes *out, struct kron_wake_range *r)
{
	r->edits = (uint32_t)out->n;
	r->sum = KRON_WAKE_SUM;
	return (struct writing){.out = out, .range = r};
}

static void end(struct writing *w)
{
	w->range->edits_len = (uint32_t)(w->out->n - w->range->edits);
}

/* ---- the block ---- */

/* Where the first run of bytes that differ ends: not before BRIDGE equal ones. */
static uint64_t run_end(const uint8_t *a, const uint8_t *b, uint64_t at, uint64_t len)
{
	uint64_t end = at;

	for (; at < len && at - end <= BRIDGE; at++)
		if (a[at] != b[at])
			end = at + 1;
	return end;
}

/* A probe of an entry or exit, which wakes at `at`: five bytes say all of it. */
static bool add_probe(struct writing *w, uint64_t at, const uint8_t *old, const uint8_t *new,
		      uint64_t len)
{
	uint8_t x[KRON_WAKE_PROBE], info[KRON_WAKE_PROBE_INFO];

	if (len - at < sizeof(x))
		return false;
	memcpy(info, new + at + STUB_PROBE_EVENT, 4);
	info[4] = (uint8_t)(new[at + STUB_PROBE_GATE] - (KRON_GATE_ADDR(0) & 0xff));
	kron_wake_probe(x, info, (uint32_t)-at - KRON_WAKE_PROBE_CALL);
	for (unsigned i = 0; i < sizeof(x); i++)
		if ((old[at + i] ^ new[at + i]) != x[i])
			return false;
	go_to(w, at);
	*vec_push(w->out) = (uint8_t)(at - w->at);
	*vec_push(w->out) = (uint8_t)((at - w->at) >> 8);
	*vec_push(w->out) = 0;
	for (unsigned i = 0; i < sizeof(info); i++)
		*vec_push(w->out) = info[i];
	for (unsigned i = 0; i < sizeof(x); i++)
		w->range->sum = kron_wake_sum(w->range->sum, old[at + i]);
	w->at = at + sizeof(x);
	return true;
}
_Static_assert(KRON_WAKE_PROBE == STUB_PROBE_LEN && KRON_WAKE_PROBE_CALL == STUB_PROBE_CALL + 4,
	       "kron_wake_probe()");

static void add_block(bytes *out, struct kron_wake_range *r, const uint8_t *old, const uint8_t *new)
{
	struct writing w = begin(out, r);

	for (uint64_t at = 0; at < r->len; at++) {
		uint64_t stop;

		if (old[at] == new[at])
			continue;
		if (add_probe(&w, at, old, new, r->len)) {
			at += KRON_WAKE_PROBE - 1;
			continue;
		}
		stop = run_end(old, new, at, r->len);
		change(&w, at, old + at, new + at, stop - at);
		at = stop - 1;
	}
	end(&w);
}

/* ---- the text ---- */

static const struct elf_segment *segment_of(const struct elf_image *img, uint64_t vaddr)
{
	for (size_t i = 0; i < img->nsegments; i++) {
		const struct elf_segment *s = &img->segments[i];

		if (vaddr >= s->vaddr && vaddr - s->vaddr < s->filesz)
			return s;
	}
	return NULL;
}

static struct kron_wake_range range_of(const struct elf_segment *s, uint64_t start)
{
	uint64_t first = s->vaddr & -PAGE;

	return (struct kron_wake_range){
		.at = (int64_t)(first - start),
		.len = ((s->vaddr + s->filesz + PAGE - 1) & -PAGE) - first,
	};
}

/* The sites stand in order of their addresses, but for landings: those are sorted in. */
static int compare_patches(const void *a, const void *b)
{
	const struct kron_patch *x = a, *y = b;

	return x->off < y->off ? -1 : x->off > y->off;
}

static void add_text(ranges *all, bytes *out, uint64_t start, const struct elf_image *img,
		     const struct bound *b)
{
	struct kron_patch *p = xmalloc((b->npatches + 1) * sizeof(*p));
	const struct elf_segment *s = NULL;
	struct writing w = {0};

	memcpy(p, b->patches, b->npatches * sizeof(*p));
	qsort(p, b->npatches, sizeof(*p), compare_patches);
	for (size_t i = 0; i < b->npatches; i++) {
		uint64_t vaddr = b->patch_addr + p[i].off;

		if (!p[i].new_len)
			continue;
		if (!s || segment_of(img, vaddr) != s) {
			if (s)
				end(&w);
			s = segment_of(img, vaddr);
			*vec_push(all) = range_of(s, start);
			w = begin(out, &all->v[all->n - 1]);
		}
		change(&w, vaddr - (s->vaddr & -PAGE), p[i].old_bytes, p[i].new_bytes,
		       p[i].new_len);
	}
	if (s)
		end(&w);
	xfree(p);
}

/* ---- all of it ---- */

/* Numbers that the user chose are his, wherever they lie. */
static uint32_t *number_events(const struct patch_info *what)
{
	uint32_t *numbers = xcalloc(what->nevents + 1, sizeof(*numbers));
	uint32_t next = patch_info_first_number(what) + (uint32_t)what->plan->nfunctions;

	for (size_t i = 0; i < what->nevents; i++)
		numbers[i] = what->events[i].has_number ? what->events[i].number : next++;
	return numbers;
}

static int bind_awake(struct bound *out, const struct patch_info *what, const struct binding *b,
		      struct err *err)
{
	uint8_t *all = xmalloc(what->plan->nfunctions + 1);
	struct binding awake = *b;
	uint32_t *numbers = number_events(what);
	int code;

	memset(all, 1, what->plan->nfunctions + 1);
	awake.dormant = false;
	awake.no_patches = true;
	awake.hooks = b->own_hook; /* else they are libkron-rt.so's */
	awake.selected = all;
	awake.event_base = patch_info_first_number(what);
	awake.levels = what->levels;
	awake.way = KRON_THUNK_EXACT;
	awake.events = numbers;
	awake.nevents = what->nevents;
	code = bind_make(out, &awake, err);
	xfree(all);
	xfree(numbers);
	return code;
}

static void join(uint8_t **out, uint64_t *len, ranges *all, const bytes *edits)
{
	const struct kron_wake head = {.nranges = (uint32_t)all->n};
	size_t front = sizeof(head) + all->n * sizeof(*all->v);

	vec_for(all, r)
		r->edits += (uint32_t)front;
	*len = front + edits->n;
	*out = xmalloc(*len);
	memcpy(*out, &head, sizeof(head));
	memcpy(*out + sizeof(head), all->v, all->n * sizeof(*all->v));
	memcpy(*out + front, edits->v, edits->n);
}

int start_wake_make(uint8_t **out, uint64_t *len, uint64_t vaddr, const struct elf_image *img,
		    const struct patch_info *what, const struct binding *b,
		    const struct bound *asleep, struct err *err)
{
	struct bound awake;
	ranges all = {0};
	bytes edits = {0};
	int code = bind_awake(&awake, what, b, err);

	if (code)
		return code;
	*vec_push(&all) = (struct kron_wake_range){
		.at = (int64_t)(b->block - vaddr),
		.len = asleep->block_len,
	};
	add_block(&edits, &all.v[0], asleep->block, awake.block);
	bound_free(&awake);
	if (!what->has_jumps)
		add_text(&all, &edits, vaddr, img, asleep);
	join(out, len, &all, &edits);
	vec_free(&all);
	vec_free(&edits);
	return 0;
}
