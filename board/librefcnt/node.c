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

	return x->paddr < y->paddr ? -1 : x->paddr > y->paddr;
}

/* Pages that are mapped twice have one set. */
static size_t join(struct placed *v, size_t n)
{
	size_t to = 0;

	if (n)
		qsort(v, n, sizeof(*v), by_paddr);
	for (size_t i = 0; i < n; i++) {
		if (to && v[to - 1].paddr == v[i].paddr) {
			uint64_t sum = (uint64_t)v[to - 1].mirror + v[i].mirror;

			v[to - 1].mirror = sum > UINT32_MAX ? UINT32_MAX : (refcnt_t)sum;
		} else {
			v[to++] = v[i];
		}
	}
	return to;
}

/* How many counted pages from that one on lie next to each other. */
static size_t run_at(const struct rc_counts *c, size_t first)
{
	size_t n = 1;

	while (n < RUN_MAX && first + n < c->n &&
	       c->v[first + n].address == c->v[first].address + n * REFCNT_HW_PAGE)
		n++;
	return n;
}

/* The pages that are at home there; *n of them.  -EPERM: none of those in memory has an address. */
static int place(const struct refcnt *r, const struct rc_counts *c, int cnodeid, struct placed *out,
		 size_t *n)
{
	sn0_refcnt_buf_t buf[RUN_MAX];
	size_t hidden = 0, run;

	*n = 0;
	for (size_t i = 0; i < c->n; i += run) {
		run = run_at(c, i);
		rc_where(r->pid, c->v[i].address, run, buf);
		for (size_t k = 0; k < run; k++) {
			const struct kron_control_count *one = &c->v[i + k];

			if (buf[k].paddr == REFCNT_PADDR_UNKNOWN)
				hidden += buf[k].cnodeid != REFCNT_CNODE_UNKNOWN;
			else if (buf[k].cnodeid == cnodeid)
				out[(*n)++] = (struct placed){buf[k].paddr,
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

static int fill(struct refcnt_node *node, const struct placed *v, size_t n)
{
	rcb_info_t *info = &node->info;

	info->rcb_sw_sets = (int)n;
	info->rcb_len = n * sizeof(refcnt_t);
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
		rcb_slot_t *s = &node->slots[info->rcb_num_slots];

		node->counters[i] = v[i].mirror;
		if (i && s[-1].base + s[-1].size == v[i].paddr) {
			s[-1].size += REFCNT_HW_PAGE;
			continue;
		}
		*s = (rcb_slot_t){v[i].paddr, REFCNT_HW_PAGE};
		info->rcb_num_slots++;
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

	if (cnodeid) { /* refcnt_open(): the machine has one */
		rc_fail(EINVAL, "there is no node %d", cnodeid);
		return NULL;
	}
	node = calloc(1, sizeof(*node));
	if (!node) {
		rc_fail(ENOMEM, "no memory");
		return NULL;
	}
	node->info = (rcb_info_t){
		.rcb_sw_counters_per_set = 1,
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
