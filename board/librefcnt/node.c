/* SPDX-License-Identifier: MIT */
/* node.c - see refcnt.h: extended counters by physical address. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "board/librefcnt/impl.h"

#define USER_END (1ull << 47)
#define RUN_MAX 64u

struct placed {
	uint64_t paddr;
	int node; /* that used it; -1: not known, and in no counter */
	refcnt_t mirror;
};

struct refcnt_node {
	rcb_info_t info;
	rcb_slot_t *slots;
	refcnt_t *counters; /* NULL: there are none */
};

static int by_paddr(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	if (x->paddr != y->paddr)
		return x->paddr < y->paddr ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

/* Pages that are mapped twice have one set. */
static size_t join(struct placed *v, size_t n)
{
	size_t to = 0;

	if (n)
		qsort(v, n, sizeof(*v), by_paddr);
	for (size_t i = 0; i < n; i++) {
		if (to && !by_paddr(&v[to - 1], &v[i])) {
			uint64_t sum = (uint64_t)v[to - 1].mirror + v[i].mirror;

			v[to - 1].mirror = sum > UINT32_MAX ? UINT32_MAX : (refcnt_t)sum;
		} else {
			v[to++] = v[i];
		}
	}
	return to;
}

/* How many records from that one on are of pages next to each other, and of how many. */
static size_t run_at(const struct rc_counts *c, size_t first, size_t *pages)
{
	size_t n = 1;

	for (*pages = 1; first + n < c->n; n++) {
		const uint64_t ahead = c->v[first + n].address - c->v[first + n - 1].address;

		if (ahead > REFCNT_HW_PAGE || (ahead && *pages == RUN_MAX))
			break;
		*pages += ahead != 0;
	}
	return n;
}

/* The pages that are at home there; *n of them.  -EPERM: none of those in memory has an address. */
static int place(const struct refcnt *r, const struct rc_counts *c, int cnodeid, struct placed *out,
		 size_t *n)
{
	sn0_refcnt_buf_t buf[RUN_MAX];
	size_t hidden = 0, run, pages;

	*n = 0;
	for (size_t i = 0; i < c->n; i += run) {
		run = run_at(c, i, &pages);
		rc_where(r->pid, c->v[i].address, pages, buf);
		for (size_t k = 0; k < run; k++) {
			const struct kron_control_count *one = &c->v[i + k];
			const sn0_refcnt_buf_t *at =
				&buf[(one->address - c->v[i].address) / REFCNT_HW_PAGE];

			if (at->paddr == REFCNT_PADDR_UNKNOWN)
				hidden += at->cnodeid != REFCNT_CNODE_UNKNOWN;
			else if (at->cnodeid == cnodeid)
				out[(*n)++] = (struct placed){at->paddr, one->node,
							      rc_mirror(one->reads + one->writes,
									r->width)};
		}
	}
	if (!*n && hidden)
		return rc_fail(EPERM, "the kernel does not tell physical addresses: it wants "
				      "CAP_SYS_ADMIN");
	*n = join(out, *n);
	return 0;
}

static size_t sets_in(const struct placed *v, size_t n)
{
	size_t sets = 0;

	for (size_t i = 0; i < n; i++)
		sets += !i || v[i - 1].paddr != v[i].paddr;
	return sets;
}

static void take_set(struct refcnt_node *node, uint64_t paddr)
{
	rcb_info_t *info = &node->info;
	rcb_slot_t *s = &node->slots[info->rcb_num_slots];

	if (info->rcb_num_slots && s[-1].base + s[-1].size == paddr) {
		s[-1].size += REFCNT_HW_PAGE;
		return;
	}
	*s = (rcb_slot_t){paddr, REFCNT_HW_PAGE};
	info->rcb_num_slots++;
}

static int fill(struct refcnt_node *node, const struct placed *v, size_t n)
{
	rcb_info_t *info = &node->info;
	size_t set = 0;

	info->rcb_sw_sets = (int)sets_in(v, n);
	info->rcb_len = (size_t)info->rcb_sw_sets * (size_t)info->rcb_sw_counters_per_set *
			sizeof(refcnt_t);
	info->rcb_base_paddr = n ? v[0].paddr : 0;
	if (!n)
		return 0;
	node->slots = calloc(n, sizeof(*node->slots));
	node->counters = mmap(NULL, info->rcb_len, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (node->counters == MAP_FAILED)
		node->counters = NULL;
	if (!node->slots || !node->counters)
		return rc_fail(ENOMEM, "no memory");
	for (size_t i = 0; i < n; i++) {
		set += i && v[i - 1].paddr != v[i].paddr;
		if (!i || v[i - 1].paddr != v[i].paddr)
			take_set(node, v[i].paddr);
		if (v[i].node >= 0)
			node->counters[set * (size_t)info->rcb_sw_counters_per_set +
				       (size_t)v[i].node] = v[i].mirror;
	}
	return mprotect(node->counters, info->rcb_len, PROT_READ) ? rc_fail(ENOMEM, "no memory")
								  : 0;
}

static int look(struct refcnt *r, int cnodeid, struct refcnt_node *node)
{
	struct rc_counts counts;
	struct placed *v;
	size_t n = 0;
	int code = rc_count(r, 0, USER_END, &counts);

	if (code)
		return code;
	if (cnodeid < 0 || (uint32_t)cnodeid >= counts.nodes) {
		free(counts.v);
		return rc_fail(EINVAL, "there is no node %d", cnodeid);
	}
	node->info.rcb_sw_counters_per_set = (int)counts.nodes;
	node->info.rcb_abs_threshold = (int)(counts.absolute & INT32_MAX);
	node->info.rcb_diff_threshold = (int)(counts.differential & INT32_MAX);
	v = calloc(counts.n + 1, sizeof(*v));
	code = v ? place(r, &counts, cnodeid, v, &n) : rc_fail(ENOMEM, "no memory");
	if (!code)
		code = fill(node, v, n);
	free(v);
	free(counts.v);
	return code;
}

struct refcnt_node *refcnt_node_open(struct refcnt *r, int cnodeid)
{
	struct refcnt_node *node;
	int code;

	node = calloc(1, sizeof(*node));
	if (!node) {
		rc_fail(ENOMEM, "no memory");
		return NULL;
	}
	node->info = (rcb_info_t){
		.rcb_sw_counter_size = sizeof(refcnt_t),
		.rcb_base_pages = (int)sysconf(_SC_PHYS_PAGES),
		.rcb_base_page_size = (int)sysconf(_SC_PAGESIZE),
		.rcb_cnodeid = cnodeid,
		.rcb_granularity = REFCNT_HW_PAGE,
		.rcb_hw_counter_max = (1u << r->width) - 1,
	};
	code = look(r, cnodeid, node);
	if (!code)
		return node;
	refcnt_node_close(node);
	errno = -code;
	return NULL;
}

void refcnt_node_close(struct refcnt_node *n)
{
	if (!n)
		return;
	if (n->counters)
		munmap(n->counters, n->info.rcb_len);
	free(n->slots);
	free(n);
}

void refcnt_node_info(const struct refcnt_node *n, rcb_info_t *out)
{
	*out = n->info;
}

void refcnt_node_slots(const struct refcnt_node *n, rcb_slot_t *out)
{
	for (int i = 0; i < n->info.rcb_num_slots; i++)
		out[i] = n->slots[i];
}

const refcnt_t *refcnt_node_map(const struct refcnt_node *n)
{
	return n->counters;
}
