/* SPDX-License-Identifier: MIT */
/*
 * plan_file.c - a plan as a file: the plan's arrays one after the other, mapped, not parsed.
 *
 *   offset  size  field
 *        0     8  magic "KRONPLAN"
 *        8     4  PLAN_VERSION
 *       12     4  build_id_len
 *       16    32  build_id
 *       48     8  file size
 *       56     8  checksum of everything else
 *       64    48  what it was made from: struct plan_key
 *      112    48  text_lo, text_hi, reach_lo, reach_hi, copied_lo, copied_hi
 *      160     8  nlies
 *      168    72  element counts of the nine arrays, in the order of struct plan
 *      240     -  the arrays, each padded to 8 bytes
 *
 * A cache file may be cut short by a full disk or damaged; what it says goes into the code of
 * running programs.  So everything is checked on load: the checksum first, and then, because
 * a checksum proves no sense, every offset and index.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"
#include "base/search.h"
#include "inject/plan/action.h"
#include "inject/plan/action_pages.h"
#include "inject/plan/plan.h"
#include "inject/plan/stub.h"
#include "inject/plan/window.h"

struct header {
	char magic[8];
	uint32_t version;
	uint32_t build_id_len;
	uint8_t build_id[32];
	uint64_t size;
	uint64_t checksum;
	struct plan_key key;
	uint64_t text_lo, text_hi, reach_lo, reach_hi, copied_lo, copied_hi;
	uint64_t nlies;
	uint64_t count[9];
};
_Static_assert(sizeof(struct plan_key) == 48 && sizeof(struct header) == 240, "the table above");
_Static_assert(sizeof(struct plan_function) == 40 && sizeof(struct plan_probe) == 32 &&
		       sizeof(struct plan_site) == 56 && sizeof(struct plan_fixup) == 16 &&
		       sizeof(struct plan_map) == 4 && sizeof(struct place_action) == 136 &&
		       sizeof(struct plan_jump) == 12,
	       "bump PLAN_VERSION with the arrays' layout");
#define ARRAYS 9

static const char magic[8] = {'K', 'R', 'O', 'N', 'P', 'L', 'A', 'N'};
static const size_t element_size[ARRAYS] = {
	sizeof(struct plan_function),
	sizeof(struct plan_probe),
	sizeof(struct plan_site),
	sizeof(struct plan_fixup),
	sizeof(struct plan_map),
	sizeof(struct place_action),
	sizeof(struct plan_jump),
	1,
	1,
};

/* Where an array's pointer and count are in struct plan. */
struct array {
	void **v;
	size_t *n;
};

static void list_arrays(struct plan *p, struct array a[ARRAYS])
{
	a[0] = (struct array){(void **)&p->functions, &p->nfunctions};
	a[1] = (struct array){(void **)&p->probes, &p->nprobes};
	a[2] = (struct array){(void **)&p->sites, &p->nsites};
	a[3] = (struct array){(void **)&p->fixups, &p->nfixups};
	a[4] = (struct array){(void **)&p->maps, &p->nmaps};
	a[5] = (struct array){(void **)&p->actions, &p->nactions};
	a[6] = (struct array){(void **)&p->jumps, &p->njumps};
	a[7] = (struct array){(void **)&p->code, &p->code_len};
	a[8] = (struct array){(void **)&p->strings, &p->strings_len};
}

/* Four independent lanes, so that it runs at the speed of memory. */
struct sum {
	uint64_t lane[4];
	size_t words; /* so far */
};

static struct sum sum_begin(uint64_t seed)
{
	return (struct sum){
		.lane = {seed, seed ^ 0x9e3779b97f4a7c15, ~seed, seed + 0xd1b54a32d192ed03}};
}

static uint64_t mixed(uint64_t lane, uint64_t word)
{
	lane = (lane ^ word) * 0xff51afd7ed558ccd;
	return lane ^ lane >> 32;
}

/* One word; what is less at the end counts as one, with zeros. */
static size_t sum_word(struct sum *s, const uint8_t *p, size_t len)
{
	uint64_t *lane = &s->lane[s->words++ % 4], w = 0;

	len = len < 8 ? len : 8;
	memcpy(&w, p, len);
	*lane = mixed(*lane, w);
	return len;
}

static void sum_add(struct sum *s, const void *data, size_t len)
{
	uint64_t a, b, c, d, w[4];
	const uint8_t *p = data;
	size_t i = 0;

	while (i < len && s->words % 4)
		i += sum_word(s, p + i, len - i);
	a = s->lane[0], b = s->lane[1], c = s->lane[2], d = s->lane[3];
	for (; i + 32 <= len; i += 32) {
		memcpy(w, p + i, 32);
		a = mixed(a, w[0]);
		b = mixed(b, w[1]);
		c = mixed(c, w[2]);
		d = mixed(d, w[3]);
	}
	s->lane[0] = a, s->lane[1] = b, s->lane[2] = c, s->lane[3] = d;
	while (i < len)
		i += sum_word(s, p + i, len - i);
}

static uint64_t sum_end(const struct sum *s)
{
	uint64_t all = s->lane[0];

	for (unsigned k = 1; k < 4; k++)
		all = (all ^ s->lane[k]) * 0xc4ceb9fe1a85ec53;
	return all ^ all >> 29;
}

/* The header without its checksum. */
static void sum_header(struct sum *s, const struct header *h)
{
	size_t field = offsetof(struct header, checksum), rest = field + sizeof(uint64_t);

	sum_add(s, h, field);
	sum_add(s, (const uint8_t *)h + rest, sizeof(*h) - rest);
}

/* Of a whole file; its checksum field does not count. */
static uint64_t file_checksum(const struct header *h)
{
	struct sum s = sum_begin(PLAN_VERSION);

	sum_header(&s, h);
	sum_add(&s, h + 1, h->size - sizeof(*h));
	return sum_end(&s);
}

static size_t padded(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

/* ---- save ---- */

static int write_all(int fd, const void *data, size_t n)
{
	const char *p = data;

	while (n) {
		ssize_t r = write(fd, p, n);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r ? -errno : -EIO;
		p += r;
		n -= r;
	}
	return 0;
}

/* The header but for its checksum. */
static void describe(struct header *h, const struct plan *plan, const struct plan_key *key)
{
	struct plan p = *plan;
	struct array a[ARRAYS];

	*h = (struct header){
		.version = PLAN_VERSION,
		.build_id_len = p.build_id_len,
		.size = sizeof(*h),
		.key = *key,
		.text_lo = p.text_lo,
		.text_hi = p.text_hi,
		.reach_lo = p.reach_lo,
		.reach_hi = p.reach_hi,
		.copied_lo = p.copied_lo,
		.copied_hi = p.copied_hi,
		.nlies = p.nlies,
	};
	memcpy(h->magic, magic, sizeof(magic));
	memcpy(h->build_id, p.build_id, sizeof(h->build_id));
	list_arrays(&p, a);
	for (int i = 0; i < ARRAYS; i++) {
		h->count[i] = *a[i].n;
		h->size += padded(*a[i].n * element_size[i]);
	}
}

uint64_t plan_file_size(const struct plan *p)
{
	static const struct plan_key none;
	struct header h;

	describe(&h, p, &none);
	return h.size;
}

int plan_save(const struct plan *plan, const struct plan_key *key, int fd, struct err *err)
{
	static const uint8_t zeros[8];
	struct sum sum = sum_begin(PLAN_VERSION);
	struct plan p = *plan;
	struct array a[ARRAYS];
	struct header h;
	int r;

	list_arrays(&p, a);
	describe(&h, plan, key);
	sum_header(&sum, &h);
	for (int i = 0; i < ARRAYS; i++)
		sum_add(&sum, *a[i].v, *a[i].n * element_size[i]);
	h.checksum = sum_end(&sum);
	r = write_all(fd, &h, sizeof(h));
	for (int i = 0; i < ARRAYS && !r; i++) {
		size_t n = *a[i].n * element_size[i];

		r = write_all(fd, *a[i].v, n);
		if (!r)
			r = write_all(fd, zeros, padded(n) - n);
	}
	return r ? err_set(err, -r, "cannot write the plan: %s", strerror(-r)) : 0;
}

/* ---- load ---- */

static bool is_range(uint64_t first, uint64_t n, uint64_t total)
{
	return first <= total && n <= total - first;
}

static bool are_functions_sound(const struct plan *p)
{
	uint64_t at = 0;

	if (!p->strings_len || p->strings[0] || p->strings[p->strings_len - 1])
		return false;
	for (size_t i = 0; i < p->nfunctions; i++) {
		const struct plan_function *f = &p->functions[i];

		if (f->name >= p->strings_len || f->raw_name >= p->strings_len ||
		    f->aliases >= p->strings_len || f->first_probe != at ||
		    !is_range(f->first_probe, f->nprobes, p->nprobes))
			return false;
		at += f->nprobes;
	}
	for (; at < p->nprobes; at++)
		if (p->probes[at].function != PLAN_NO_FUNCTION)
			return false;
	return true;
}

static bool are_actions_sound(const struct plan *p)
{
	for (size_t i = 0; i < p->nactions; i++) {
		if (!request_is_action_sound(&p->actions[i]))
			return false;
	}
	return true;
}

static bool are_jumps_sound(const struct plan *p)
{
	for (size_t i = 0; i < p->njumps; i++) {
		const struct plan_jump *j = &p->jumps[i];

		if (j->function >= p->nfunctions || j->to >= PLAN_JUMP_TOS ||
		    (j->to == PLAN_JUMP_NAME && j->target >= p->strings_len) ||
		    ((j->to == PLAN_JUMP_FUNCTION || j->to == PLAN_JUMP_INSIDE) &&
		     j->target >= p->nfunctions))
			return false;
	}
	return true;
}

/* The number of a jump, of its function. */
static bool is_exit_sound(const struct plan *p, const struct plan_probe *probe)
{
	return !probe->action || (probe->action <= p->njumps &&
				  p->jumps[probe->action - 1].function == probe->function);
}

static bool are_probes_sound(const struct plan *p)
{
	for (size_t i = 0; i < p->nprobes; i++) {
		const struct plan_probe *probe = &p->probes[i];

		if (probe->kind == PROBE_PLACE &&
		    (probe->action >= p->nactions || probe->where >= PLACE_WHERES))
			return false;
		if (probe->function == PLAN_NO_FUNCTION && probe->kind == PROBE_PLACE &&
		    probe->site == UINT32_MAX && probe->refusal == REFUSAL_NO_FUNCTION)
			continue;
		if (probe->function >= p->nfunctions || probe->kind >= PROBE_KINDS ||
		    probe->tactic >= TACTIC_COUNT || probe->refusal >= REFUSAL_COUNT ||
		    probe->hook >= KRON_HOOK_COUNT ||
		    (probe->kind == PROBE_EXIT && !is_exit_sound(p, probe)))
			return false;
		if (probe->site == UINT32_MAX
			    ? !probe->refusal
			    : probe->site >= p->nsites ||
				      p->sites[probe->site].function != probe->function)
			return false;
	}
	return true;
}

static bool is_place(const struct plan *p, uint64_t probe)
{
	return probe < p->nprobes && p->probes[probe].kind == PROBE_PLACE;
}

/* Likewise an entry that counts calls. */
static bool has_action(const struct plan *p, uint64_t probe)
{
	if (is_place(p, probe))
		return true;
	return probe < p->nprobes && p->probes[probe].kind == PROBE_ENTRY &&
	       p->probes[probe].action < p->nactions &&
	       p->actions[p->probes[probe].action].kind == ACTION_CALLS;
}

/* How many bytes of the stub a fixup writes, 0 when its kind or value makes no sense. */
static unsigned fixup_extent(const struct plan *p, const struct plan_fixup *f)
{
	switch (f->kind) {
	case FIXUP_PROBE:
	case FIXUP_HOOK:
		if (f->value >= p->nprobes ||
		    (p->probes[f->value].kind == PROBE_HOOK) != (f->kind == FIXUP_HOOK))
			return 0;
		return f->kind == FIXUP_HOOK ? STUB_HOOK_LEN : STUB_PROBE_LEN;
	case FIXUP_MODULE_REL32:
	case FIXUP_MODULE_LO32:
	case FIXUP_MODULE_HI32:
		return 4;
	case FIXUP_EVENT:
		return is_place(p, f->value) ? 4 : 0;
	case FIXUP_PAGES:
		if (f->value)
			return f->value > p->nfunctions || f->off < ACTION_PAGES_SALT_LEN
				       ? 0
				       : ACTION_PAGES_FUNCTION_LEN;
		return ACTION_PAGES_FIXUP_LEN;
	case FIXUP_FUNCTION:
		return f->value && f->value <= p->nfunctions ? 4 : 0;
	case FIXUP_BLOCK_REL32:
		return f->value < KRON_BLOCK_HEAD ? 4 : 0;
	case FIXUP_SITE_REL32:
		if (f->value >> 16 >= p->nsites ||
		    (f->value & 0xffff) >= p->sites[f->value >> 16].code_len)
			return 0;
		return 4;
	case FIXUP_CHAIN_REL32:
		return f->value < p->nsites ? 4 : 0;
	}
	return 0;
}

/* A place's sequence, and its cold part after it. */
static bool is_action_sound(const struct plan *p, const struct plan_site *s,
			    const struct plan_fixup *f)
{
	const struct place_action *a;
	struct action_room room;

	action_room_get(&room, f);
	if (!has_action(p, room.probe) || f->off + room.hot > s->code_len)
		return false;
	a = &p->actions[p->probes[room.probe].action];
	if (!action_has_common(a))
		return !room.cold && room.hot >= 2;
	return room.times <= ACTION_TIMES_MAX && room.hot >= action_hot_len(a, &room) &&
	       room.cold >= f->off + room.hot &&
	       room.cold + action_cold_len(a, &room) <= s->code_len;
}

static bool are_fixups_sound(const struct plan *p, const struct plan_site *s)
{
	for (uint32_t i = 0; i < s->nfixups; i++) {
		const struct plan_fixup *f = &p->fixups[s->first_fixup + i];
		unsigned extent = fixup_extent(p, f);

		if (f->kind == FIXUP_PLACE) {
			if (!is_action_sound(p, s, f))
				return false;
			continue;
		}
		if (!extent || f->off + extent > s->code_len)
			return false;
	}
	return true;
}

static bool are_maps_sound(const struct plan *p, const struct plan_site *s)
{
	uint16_t before = 0;

	for (uint32_t i = 0; i < s->nmaps; i++) {
		const struct plan_map *m = &p->maps[s->first_map + i];

		if (m->stub_off >= s->code_len || m->window_off > s->window ||
		    m->shape >= KRON_SHAPES || m->stub_off < before)
			return false;
		before = m->stub_off;
	}
	return true;
}

static bool is_in_text(const struct plan *p, uint64_t vaddr, unsigned len)
{
	return vaddr >= p->text_lo && vaddr < p->text_hi && p->text_hi - vaddr >= len;
}

static bool is_near(uint64_t from, uint64_t to)
{
	int64_t distance = (int64_t)(to - (from + WINDOW_SHORT));

	return distance == (int8_t)distance;
}

/*
 * A short jump has a landing within the text, and within its reach or that of the last relay;
 * another one has none.
 */
static bool is_landing_sound(const struct plan *p, const struct plan_site *s)
{
	unsigned jump = s->patch_len - (s->prefix != 0);
	uint64_t from = s->vaddr + (s->prefix != 0);

	if (!s->landing && jump == WINDOW_FAR)
		return !s->nrelays && !s->prefix && s->vaddr >= p->copied_lo &&
		       s->vaddr < p->copied_hi && s->vaddr % 4096 <= 4096 - WINDOW_FAR;
	if (!s->landing)
		return !s->nrelays && (jump == WINDOW_JUMP || (jump <= 1 && !s->prefix));
	for (unsigned i = 0; i < s->nrelays; i++) {
		uint64_t to = plan_relay_vaddr(p, s, i);

		if (!is_near(from, to) || !is_in_text(p, to, PLAN_RELAY))
			return false;
		from = to;
	}
	return (jump == WINDOW_SHORT || (jump == 1 && !s->prefix)) && is_near(from, s->landing) &&
	       is_in_text(p, s->landing, PLAN_LANDING);
}

static bool is_site_sound(const struct plan *p, const struct plan_site *s)
{
	return s->function < p->nfunctions && s->code_len && s->nrelays <= KRON_RELAYS_MAX &&
	       s->window >= s->patch_len && s->window <= WINDOW_LONG_MAX &&
	       s->vaddr >= p->text_lo && s->vaddr < p->text_hi &&
	       p->text_hi - s->vaddr >= s->window &&
	       is_range(s->code, plan_site_bytes(s), p->code_len) && is_landing_sound(p, s) &&
	       is_range(s->first_fixup, s->nfixups, p->nfixups) && s->kept &&
	       s->kept == plan_code_kept(p->fixups + s->first_fixup, s->nfixups, s->code_len) &&
	       is_range(s->first_map, s->nmaps, p->nmaps) && are_fixups_sound(p, s) &&
	       are_maps_sound(p, s);
}

static bool is_span_sound(const struct plan *p)
{
	/* offsets of patches have 32 bits */
	return p->text_lo <= p->text_hi && p->text_hi - p->text_lo <= UINT32_MAX &&
	       !((p->text_lo | p->text_hi) & 4095) && p->reach_lo <= p->text_lo &&
	       p->reach_hi >= p->text_hi && p->copied_lo <= p->copied_hi &&
	       !((p->copied_lo | p->copied_hi) & 4095);
}

/* A landing, or a relay. */
struct spot {
	uint64_t vaddr;
	unsigned len;
};

static int compare_spots(const void *a, const void *b)
{
	const struct spot *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

/* No patch of a window reaches into the spot, nor does a window begin in it. */
static bool is_clear_of_sites(const struct plan *p, struct spot spot)
{
	size_t lo = partition_point(i, p->nsites, p->sites[i].vaddr < spot.vaddr + spot.len);

	return !lo || p->sites[lo - 1].vaddr + p->sites[lo - 1].patch_len <= spot.vaddr;
}

/* Landings and relays overlap neither each other nor a window. */
static bool are_landings_apart(const struct plan *p)
{
	VEC(struct spot) spots = {0};
	bool apart = true;

	for (size_t i = 0; i < p->nsites; i++) {
		const struct plan_site *s = &p->sites[i];

		if (s->landing)
			*vec_push(&spots) = (struct spot){s->landing, PLAN_LANDING};
		for (unsigned k = 0; k < s->nrelays; k++)
			*vec_push(&spots) = (struct spot){plan_relay_vaddr(p, s, k), PLAN_RELAY};
	}
	if (spots.n)
		qsort(spots.v, spots.n, sizeof(*spots.v), compare_spots);
	for (size_t i = 0; i < spots.n; i++)
		apart &= is_clear_of_sites(p, spots.v[i]) &&
			 (!i || spots.v[i].vaddr - spots.v[i - 1].vaddr >= spots.v[i - 1].len);
	vec_free(&spots);
	return apart;
}

static bool are_sites_sound(const struct plan *p)
{
	uint64_t free_from = 0, code = 0;

	for (size_t i = 0; i < p->nsites; i++) {
		const struct plan_site *s = &p->sites[i];

		if (s->vaddr < free_from || !is_site_sound(p, s))
			return false;
		free_from = s->vaddr + s->window;
		code += plan_site_bytes(s);
	}
	/* each byte of code is one stub's, or a window's */
	return code == p->code_len && are_landings_apart(p);
}

bool plan_is_sound(const struct plan *p)
{
	return is_span_sound(p) && are_functions_sound(p) && are_actions_sound(p) &&
	       are_jumps_sound(p) && are_probes_sound(p) && are_sites_sound(p);
}

/* The header's sums fit the file: point the arrays into the mapping. */
static bool find_arrays(struct plan *p, const struct header *h)
{
	struct array a[ARRAYS];
	uint64_t at = sizeof(*h);

	list_arrays(p, a);
	for (int i = 0; i < ARRAYS; i++) {
		if (h->count[i] > (h->size - at) / element_size[i])
			return false;
		*a[i].v = (uint8_t *)p->mapping + at;
		*a[i].n = h->count[i];
		at += padded(h->count[i] * element_size[i]);
		if (at > h->size)
			return false;
	}
	return at == h->size;
}

static const char *why_unsound(struct plan *p, const struct plan_key *key)
{
	const struct header *h = p->mapping;

	if (p->mapping_len < sizeof(*h) || memcmp(h->magic, magic, sizeof(magic)))
		return "it is not a plan";
	if (h->version != PLAN_VERSION)
		return "it is of another version";
	if (h->size != p->mapping_len || h->size % 8 || h->build_id_len > sizeof(h->build_id))
		return "its size is wrong";
	if (memcmp(&h->key, key, sizeof(*key)))
		return "it was made from something else";
	if (h->checksum != file_checksum(h))
		return "its checksum is wrong";
	p->text_lo = h->text_lo, p->text_hi = h->text_hi;
	p->reach_lo = h->reach_lo, p->reach_hi = h->reach_hi;
	p->copied_lo = h->copied_lo, p->copied_hi = h->copied_hi;
	p->nlies = (uint32_t)h->nlies;
	p->build_id_len = h->build_id_len;
	memcpy(p->build_id, h->build_id, sizeof(p->build_id));
	if (!find_arrays(p, h) || !plan_is_sound(p))
		return "its tables contradict each other";
	return NULL;
}

int plan_load(struct plan **out, const struct plan_key *key, int fd, struct err *err)
{
	struct plan *p;
	struct stat st;
	const char *why;

	if (fstat(fd, &st))
		return err_set(err, errno, "cannot read the plan: %s", strerror(errno));
	if (st.st_size < (off_t)sizeof(struct header))
		return err_set(err, EINVAL, "the plan cannot be used: it is cut short");
	p = xcalloc(1, sizeof(*p));
	p->mapping_len = st.st_size;
	p->mapping = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (p->mapping == MAP_FAILED) {
		int code = errno;

		xfree(p);
		return err_set(err, code, "cannot map the plan: %s", strerror(code));
	}
	why = why_unsound(p, key);
	if (why) {
		plan_free(p);
		return err_set(err, EINVAL, "the plan cannot be used: %s", why);
	}
	*out = p;
	return 0;
}
