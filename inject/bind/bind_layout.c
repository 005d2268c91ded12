/* SPDX-License-Identifier: MIT */
/* bind_layout.c - which sites of a plan are bound, and where in the block their stubs will be. */
#include "inject/bind/bind_layout.h"

#include "base/search.h"
#include "base/vec.h"
#include "inject/plan/action.h"
#include "inject/plan/window.h"

#define PAGE 4096ull

static bool is_inside(const struct binding *b, const struct plan_site *site)
{
	return !b->to || (site->vaddr >= b->from && site->vaddr + site->window <= b->to);
}

static bool is_wanted(const struct binding *b, const struct plan_site *site)
{
	if (!is_inside(b, site))
		return false;
	return b->whole || bind_is_selected(b, site->function) || (b->hooks && site->has_hook) ||
	       site->has_place;
}

/* The site whose window holds vaddr, or plan->nsites. */
static size_t site_at(const struct plan *plan, uint64_t vaddr)
{
	size_t lo = partition_point(i, plan->nsites, plan->sites[i].vaddr <= vaddr);

	if (lo && vaddr - plan->sites[lo - 1].vaddr < plan->sites[lo - 1].window)
		return lo - 1;
	return plan->nsites;
}

void bind_support(const struct plan *plan, uint8_t *bound, size_t i)
{
	while (i < plan->nsites && !bound[i]) {
		const struct plan_site *site = &plan->sites[i];

		bound[i] = true;
		if (!site->landing)
			return;
		if (site->patch_len == 1)
			bind_support(plan, bound, site_at(plan, site->vaddr + 1));
		for (unsigned k = 0; k < site->nrelays; k++)
			bind_support(plan, bound, site_at(plan, plan_relay_vaddr(plan, site, k)));
		i = site_at(plan, site->landing);
	}
}

/* A site that stands on others of which one stands on others, and so on: so far nobody goes. */
#define SUPPORTS_MOST 16u

static bool meets(const struct plan *plan, const uint8_t *marked, size_t i, unsigned depth)
{
	const struct plan_site *site = i < plan->nsites ? &plan->sites[i] : NULL;

	if (!site || marked[i] || !site->landing)
		return site && marked[i];
	if (depth == SUPPORTS_MOST || meets(plan, marked, site_at(plan, site->landing), depth + 1))
		return true;
	if (site->patch_len == 1 && meets(plan, marked, site_at(plan, site->vaddr + 1), depth + 1))
		return true;
	for (unsigned k = 0; k < site->nrelays; k++)
		if (meets(plan, marked, site_at(plan, plan_relay_vaddr(plan, site, k)), depth + 1))
			return true;
	return false;
}

bool bind_support_meets(const struct plan *plan, const uint8_t *marked, size_t i)
{
	return meets(plan, marked, i, 0);
}

/* One byte a site. */
static uint8_t *list_bound(const struct binding *b)
{
	uint8_t *bound = xcalloc(b->plan->nsites + 1, 1);

	for (size_t i = 0; i < b->plan->nsites; i++)
		if (is_wanted(b, &b->plan->sites[i]))
			bind_support(b->plan, bound, i);
	return bound;
}

size_t bind_tables_at(size_t stubs_end)
{
	return (stubs_end + UNWIND_ALIGN - 1) & -(size_t)UNWIND_ALIGN;
}

/* There is always one pair of commons. */
uint32_t bind_stubs_at(const struct plan *plan)
{
	uint32_t n = 0;

	for (size_t i = 0; i < plan->nactions; i++)
		n += action_has_common(&plan->actions[i]);
	return KRON_BLOCK_HEAD + (n ? n : 1) * 2 * ACTION_COMMON_LEN;
}

uint32_t bind_lay_out(const struct binding *b, uint32_t *stub_at)
{
	struct unwind_cursor c = {.at = bind_stubs_at(b->plan)};
	uint8_t *bound = list_bound(b);
	bool any = false;

	for (size_t i = 0; i < b->plan->nsites; i++) {
		stub_at[i] = bound[i] ? unwind_next(&c, &b->plan->sites[i]) : 0;
		any |= bound[i];
	}
	xfree(bound);
	return any ? c.at : 0;
}

/* A file's description does not say all that would have to be known to make them again. */
static struct unwind_names count_names(const struct binding *b, const uint32_t *stub_at)
{
	struct unwind_names names = {0, 0};

	if (!b->whole)
		unwind_names_add(&names, b->plan, stub_at, NULL, NULL);
	return names;
}

void bind_layout_make(struct bind_layout *out, const struct binding *b)
{
	const struct plan *plan = b->plan;

	*out = (struct bind_layout){.stub_at = xmalloc((plan->nsites + 1) * sizeof(uint32_t))};
	out->stubs_end = bind_lay_out(b, out->stub_at);
	if (!out->stubs_end)
		return;
	out->names = count_names(b, out->stub_at);
	for (size_t i = 0; i < plan->nsites; i++) {
		if (!out->stub_at[i])
			continue;
		out->nspots += unwind_count(&plan->sites[i]);
		out->ntraps += unwind_is_trap(&plan->sites[i]);
	}
	out->size = bind_tables_at(out->stubs_end) +
		    unwind_size(out->nspots, out->ntraps, out->stubs_end, &out->names);
	out->size = (out->size + PAGE - 1) & -PAGE;
}

void bind_layout_free(struct bind_layout *l)
{
	xfree(l->stub_at);
	l->stub_at = NULL;
}

static uint32_t *stubs_of(const struct binding *b, uint32_t *end)
{
	uint32_t *stub_at = xmalloc((b->plan->nsites + 1) * sizeof(*stub_at));

	*end = bind_lay_out(b, stub_at);
	return stub_at;
}

size_t bind_stubs_size(const struct binding *b)
{
	uint32_t end;

	xfree(stubs_of(b, &end));
	return end ? bind_tables_at(end) : 0;
}

size_t bind_size(const struct binding *b)
{
	struct bind_layout l;

	bind_layout_make(&l, b);
	bind_layout_free(&l);
	return l.size;
}

size_t bind_far_words(const struct plan *plan, const uint32_t *stub_at)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->nsites; i++)
		n += stub_at[i] && plan->sites[i].patch_len == WINDOW_FAR;
	return (n * sizeof(uint64_t) + PAGE - 1) & -PAGE;
}

size_t bind_table_size(const struct binding *b)
{
	uint32_t *stub_at, end;
	size_t size;

	if (b->plan->copied_lo == b->plan->copied_hi)
		return 0;
	stub_at = stubs_of(b, &end);
	size = bind_far_words(b->plan, stub_at);
	xfree(stub_at);
	return size;
}
