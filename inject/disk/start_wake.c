/* SPDX-License-Identifier: MIT */
/*
 * start_wake.c - writes down what wakes a file's probes without a collector (kron/start.h).
 *
 * The block is bound a second time, awake on the exact bus, part by part beside the one that
 * sleeps; what differs are the edits of the first range.  Neither has an address of a process in
 * it, so they hold wherever the program is loaded.  The jumps of the sites are the edits of the
 * others.
 */
#include <stdlib.h>
#include <string.h>

#include <kron/start.h>

#include "base/vec.h"
#include "inject/disk/start_code.h"
#include "inject/plan/stub.h"

#define PAGE 4096ull
/* This many equal bytes between two edits cost as much as a third edit. */
#define BRIDGE KRON_WAKE_EDIT

typedef VEC(uint8_t) bytes;
typedef VEC(struct kron_wake_range) ranges;

struct jump {
	uint64_t vaddr;
	uint8_t len, bytes[KRON_PATCH_NEW_MAX];
};

struct start_wake {
	uint8_t *all; /* functions, each selected */
	uint32_t *numbers;
	struct binding binding;
	struct bind_parts *awake;
	bytes edits;
	struct kron_wake_range block;
	uint64_t at; /* in the block: where the last edit ended */
	VEC(struct jump) jumps;
};

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

/* A probe of an entry or exit, which wakes at `at` of the block: five bytes say all of it. */
static bool add_probe(struct writing *w, uint64_t at, const uint8_t *old, const uint8_t *new,
		      uint64_t len)
{
	uint8_t x[KRON_WAKE_PROBE], info[KRON_WAKE_PROBE_INFO];

	if (len < sizeof(x))
		return false;
	memcpy(info, new + STUB_PROBE_EVENT, 4);
	info[4] = (uint8_t)(new[STUB_PROBE_GATE] - (KRON_GATE_ADDR(0) & 0xff));
	kron_wake_probe(x, info, (uint32_t)-at - KRON_WAKE_PROBE_CALL);
	for (unsigned i = 0; i < sizeof(x); i++)
		if ((old[i] ^ new[i]) != x[i])
			return false;
	go_to(w, at);
	*vec_push(w->out) = (uint8_t)(at - w->at);
	*vec_push(w->out) = (uint8_t)((at - w->at) >> 8);
	*vec_push(w->out) = 0;
	for (unsigned i = 0; i < sizeof(info); i++)
		*vec_push(w->out) = info[i];
	for (unsigned i = 0; i < sizeof(x); i++)
		w->range->sum = kron_wake_sum(w->range->sum, old[i]);
	w->at = at + sizeof(x);
	return true;
}
_Static_assert(KRON_WAKE_PROBE == STUB_PROBE_LEN && KRON_WAKE_PROBE_CALL == STUB_PROBE_CALL + 4,
	       "kron_wake_probe()");

static void add_edits(struct start_wake *w, const struct bind_part *asleep,
		      const struct bind_part *awake)
{
	const uint8_t *old = asleep->bytes, *new = awake->bytes;
	struct writing out = {.out = &w->edits, .range = &w->block, .at = w->at};

	for (uint64_t i = 0; i < asleep->len; i++) {
		uint64_t stop;

		if (old[i] == new[i])
			continue;
		if (add_probe(&out, asleep->at + i, old + i, new + i, asleep->len - i)) {
			i += KRON_WAKE_PROBE - 1;
			continue;
		}
		stop = run_end(old, new, i, asleep->len);
		change(&out, asleep->at + i, old + i, new + i, stop - i);
		i = stop - 1;
	}
	w->at = out.at;
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
static int compare_jumps(const void *a, const void *b)
{
	const struct jump *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static void add_jump(struct start_wake *w, uint64_t vaddr, const struct kron_patch *p)
{
	struct jump *j = vec_push(&w->jumps);

	j->vaddr = vaddr;
	j->len = p->new_len;
	memcpy(j->bytes, p->new_bytes, p->new_len);
}

static void add_text(ranges *all, bytes *out, uint64_t start, const struct elf_image *img,
		     struct start_wake *wake)
{
	const struct elf_segment *s = NULL;
	struct writing w = {0};

	vec_for(&wake->jumps, j) {
		if (!s || segment_of(img, j->vaddr) != s) {
			if (s)
				end(&w);
			s = segment_of(img, j->vaddr);
			*vec_push(all) = range_of(s, start);
			w = begin(out, &all->v[all->n - 1]);
		}
		change(&w, j->vaddr - (s->vaddr & -PAGE), elf_image_at(img, j->vaddr, j->len),
		       j->bytes, j->len);
	}
	if (s)
		end(&w);
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

struct start_wake *start_wake_open(const struct patch_info *what, const struct binding *asleep)
{
	struct start_wake *w = xcalloc(1, sizeof(*w));

	w->all = xmalloc(what->plan->nfunctions + 1);
	memset(w->all, 1, what->plan->nfunctions + 1);
	w->numbers = number_events(what);
	w->binding = *asleep;
	w->binding.dormant = false;
	w->binding.no_patches = true;
	w->binding.alone = true;
	w->binding.selected = w->all;
	w->binding.event_base = patch_info_first_number(what);
	w->binding.levels = what->levels;
	w->binding.way = KRON_THUNK_EXACT;
	w->binding.events = w->numbers;
	w->binding.nevents = what->nevents;
	w->awake = bind_open(&w->binding);
	w->block.sum = KRON_WAKE_SUM;
	return w;
}

int start_wake_add(struct start_wake *w, const struct bind_part *asleep, bool jumps,
		   struct err *err)
{
	struct bind_part awake;
	int code = bind_next(w->awake, &awake, err);

	if (code < 0)
		return code;
	w->block.len = asleep->at + asleep->len;
	add_edits(w, asleep, &awake);
	for (size_t i = 0; i < asleep->npatches && jumps; i++)
		if (asleep->patches[i].new_len)
			add_jump(w, asleep->patch_addr + asleep->patches[i].off,
				 &asleep->patches[i]);
	return 0;
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

void start_wake_make(struct start_wake *w, uint8_t **out, uint64_t *len, uint64_t vaddr,
		     const struct elf_image *img)
{
	ranges all = {0};

	w->block.at = (int64_t)(w->binding.block - vaddr);
	w->block.edits_len = (uint32_t)w->edits.n;
	*vec_push(&all) = w->block;
	if (w->jumps.n)
		qsort(w->jumps.v, w->jumps.n, sizeof(*w->jumps.v), compare_jumps);
	add_text(&all, &w->edits, vaddr, img, w);
	join(out, len, &all, &w->edits);
	vec_free(&all);
}

void start_wake_close(struct start_wake *w)
{
	if (!w)
		return;
	bind_close(w->awake);
	vec_free(&w->edits);
	vec_free(&w->jumps);
	xfree(w->numbers);
	xfree(w->all);
	xfree(w);
}
