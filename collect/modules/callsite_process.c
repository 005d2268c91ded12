/* SPDX-License-Identifier: MIT */
/* callsite_process.c - see callsite_process.h */
#include "collect/modules/callsite_process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/jobs.h"
#include "base/log.h"
#include "base/search.h"
#include "collect/modules/link_order.h"
#include "inject/bind/bind.h"
#include "inject/plan/callsite.h"
#include "inject/resolve/resolve.h"

#define CALLSITE_LEN 6u /* jmp or call *slot(%rip), without prefixes */

/* What a module needs at its callers, the same for all processes. */
struct callsite_needs { /* as VEC() has it */
	struct callsite_need *v;
	size_t n, cap;
};

void callsite_process_init(struct callsite_process *in, struct modules *ms)
{
	memset(in, 0, sizeof(*in));
	in->modules = ms;
}

void callsite_process_free(struct callsite_process *in)
{
	vec_free(&in->all);
	vec_free(&in->needs);
	vec_free(&in->notes);
}

static void free_needs(struct callsite_needs *needs)
{
	if (needs)
		vec_free(needs);
	xfree(needs);
}

void callsite_process_forget(struct module *m)
{
	free_needs(m->needs);
	vec_for(&m->stubs, p) {
		plan_free((*p)->plan);
		xfree((*p)->events);
		xfree(*p);
	}
	vec_free(&m->stubs);
	callsite_links_free(m->links);
}

/* ---- what is needed ---- */

static int read_links(struct module *m, const struct elf_image *img, void *ctx, struct err *err)
{
	(void)ctx, (void)err;
	if (!m->links)
		m->links = callsite_links_make(img);
	return 0;
}

static bool has_links(struct module *m)
{
	bool has;

	pthread_mutex_lock(&m->lock);
	has = m->links;
	pthread_mutex_unlock(&m->lock);
	return has;
}

static const struct callsite_links *links_of(struct module *m)
{
	struct err err;

	if (has_links(m))
		return m->links;
	if (modules_with_image(m, read_links, NULL, &err)) {
		log_info("collect", "%s", err.msg);
		return NULL;
	}
	return m->links;
}

/* One for each name of the function, and one for calls inside its module. */
static void add_need(struct callsite_needs *out, struct module *m, const struct callsite_need *need)
{
	const struct callsite_links *l = links_of(m);
	struct callsite_need inner = *need;

	if (!l)
		return;
	inner.name = "";
	for (size_t i = 0; i < l->exports.n; i++) {
		struct callsite_need n = *need;

		if (l->exports.v[i].value != need->vaddr)
			continue;
		n.export = &l->exports.v[i];
		n.name = n.shown = n.export->name;
		if (inner.shown == need->shown)
			inner.shown = n.name;
		*vec_push(out) = n;
	}
	*vec_push(out) = inner;
}

/* Is it a function's exit?  The reader infers exits that were not probed. */
static bool is_exit(uint32_t event)
{
	return event & BIND_EXIT && event != RESOLVE_NO_EVENT;
}

/* Is there a probe in the function's own code where it returns? */
static bool has_exit(const struct module *m, uint32_t function)
{
	const struct plan_function *f = &m->full->functions[function];

	for (uint32_t i = 0; m->selected[function] == 1 && i < f->nprobes; i++)
		if (m->full->probes[f->first_probe + i].kind == PROBE_EXIT &&
		    m->full->probes[f->first_probe + i].site != UINT32_MAX)
			return true;
	return false;
}

/* By one of its names: it may be called and not jumped to. */
static bool is_known(struct module *m, uint64_t vaddr)
{
	const struct callsite_links *l = links_of(m);

	for (size_t i = 0; l && i < l->exports.n; i++)
		if (l->exports.v[i].value == vaddr && callsite_knows(l->exports.v[i].name))
			return true;
	return false;
}

/* counts: its calls are counted, and nothing is recorded. */
static void need_function(struct callsite_needs *out, struct module *m, const struct plan_probe *p,
			  bool counts, const char *why)
{
	const uint32_t number = m->event_base + p->function;
	struct callsite_need need = {
		.callee = m,
		.shown = m->full->strings + m->full->functions[p->function].name,
		.vaddr = p->vaddr,
		.action = {.kind = ACTION_TRACE,
			   .level = m->levels ? m->levels[p->function] : 0,
			   .payload = PAYLOAD_SP},
		.event = number,
		.why = why,
	};

	if (counts) {
		need.action = (struct place_action){.kind = ACTION_CALLS,
						    .ungated = 1,
						    .payload = PAYLOAD_ZERO,
						    .value = number};
		need.event = RESOLVE_NO_EVENT;
	}
	add_need(out, m, &need);
	if (counts || has_exit(m, p->function) || !is_known(m, p->vaddr))
		return;
	need.where = PLACE_AFTER;
	need.event |= BIND_EXIT;
	add_need(out, m, &need);
}

static void need_place(struct callsite_needs *out, struct module *m, uint64_t vaddr,
		       enum place_where where, const struct place_action *a, uint32_t event,
		       const char *why)
{
	struct callsite_need need = {
		.callee = m,
		.shown = "",
		.vaddr = vaddr,
		.where = where,
		.action = *a,
		.event = event < m->probes.found.events.n ? m->probes.events[event]
							  : RESOLVE_NO_EVENT,
		.why = why,
	};

	add_need(out, m, &need);
}

static void list_needs(struct callsite_needs *out, struct module *m, bool counts)
{
	const struct resolution *found = &m->probes.found;

	for (size_t i = 0; i < m->full->nprobes; i++) {
		const struct plan_probe *p = &m->full->probes[i];

		if (p->kind == PROBE_ENTRY && m->selected[p->function] == SELECTED_CALLSITES)
			need_function(out, m, p, counts, "ifunc");
		if (p->site != UINT32_MAX)
			continue;
		if (p->kind == PROBE_ENTRY && m->selected[p->function] == 1)
			need_function(out, m, p, counts, refusal_key(p->refusal));
		else if (m->probed && callsite_is_entry(m->full, p))
			need_place(out, m, p->vaddr, PLACE_BEFORE, &m->full->actions[p->action],
				   p->event, refusal_key(p->refusal));
	}
	for (size_t i = 0; m->probed && i < found->callsites.n; i++) {
		const struct resolved_callsite *im = &found->callsites.v[i];

		need_place(out, m, im->vaddr, im->where, &found->actions.v[im->action], im->event,
			   im->is_ifunc ? "ifunc" : "tail-call");
	}
}

/* They are the same each time: whoever lists them first leaves them in the module. */
static const struct callsite_needs *needs_of(struct module *m, bool counts)
{
	struct callsite_needs *mine = NULL, *known;

	pthread_mutex_lock(&m->lock);
	known = m->needs;
	pthread_mutex_unlock(&m->lock);
	if (known)
		return known;
	mine = xcalloc(1, sizeof(*mine));
	list_needs(mine, m, counts);
	pthread_mutex_lock(&m->lock);
	known = m->needs ? m->needs : mine;
	m->needs = known;
	pthread_mutex_unlock(&m->lock);
	if (known != mine)
		free_needs(mine);
	return known;
}

void callsite_process_add_callee(struct callsite_process *in, struct module *m)
{
	const struct callsite_needs *needs;
	bool is_settled;

	pthread_mutex_lock(&m->lock); /* another answer's thread may be planning it */
	is_settled = m->full && m->settled;
	pthread_mutex_unlock(&m->lock);
	if (!is_settled || m->patched)
		return;
	needs = needs_of(m, in->modules->selection->calls);
	for (size_t i = 0; i < needs->n; i++)
		*vec_push(&in->needs) = needs->v[i];
}

static int compare_needs(const void *a, const void *b)
{
	const struct callsite_need *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	if (order)
		return order;
	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

bool callsite_process_is_needed(struct callsite_process *in)
{
	if (in->needs.n)
		qsort(in->needs.v, in->needs.n, sizeof(in->needs.v[0]), compare_needs);
	return in->needs.n;
}

static void read_one(size_t i, void *ctx)
{
	struct module *const *v = ctx;

	links_of(v[i]);
}

void callsite_process_read(struct module **v, size_t n)
{
	VEC(struct module *) missing = {0};

	for (size_t i = 0; i < n; i++)
		if (!has_links(v[i]))
			*vec_push(&missing) = v[i];
	jobs_run(missing.n, read_one, missing.v);
	vec_free(&missing);
}

bool callsite_process_add_module(struct callsite_process *in, struct module *m)
{
	vec_for(&in->all, other)
		if (*other == m)
			return true;
	if (!links_of(m))
		return false;
	*vec_push(&in->all) = m;
	return true;
}

#define MODULES_MAX 4096u

void callsite_process_order(struct callsite_process *in, pid_t pid, const uint64_t *bias, size_t n)
{
	uint64_t *order = xcalloc(MODULES_MAX, sizeof(*order));
	size_t found = 0, done = 0;

	for (size_t i = 0; i < n && i < in->all.n && !found; i++)
		if (in->all.v[i]->is_exe && in->all.v[i]->links->debug)
			found = link_order_read(pid, bias[i] + in->all.v[i]->links->debug, order,
						MODULES_MAX);
	if (n == in->all.n && found) {
		struct module **sorted = xcalloc(n + 1, sizeof(*sorted));

		for (size_t k = 0; k < found; k++)
			for (size_t i = 0; i < n; i++)
				if (bias[i] == order[k] && done < n)
					sorted[done++] = in->all.v[i];
		in->ordered = done == n;
		if (in->ordered)
			memcpy(in->all.v, sorted, n * sizeof(*sorted));
		xfree(sorted);
	}
	xfree(order);
}

/* ---- who is called? ---- */

static void note_ambiguous(struct callsite_process *in, const struct callsite_import *im,
			   const struct module *a, const struct module *b)
{
	struct err err;

	err_set(&err, EAGAIN,
		"%s cannot be probed in its own code, and not where it is called: %s and %s both "
		"have one",
		im->name, strcmp(a->path, b->path) < 0 ? a->path : b->path,
		strcmp(a->path, b->path) < 0 ? b->path : a->path);
	vec_for(&in->notes, n)
		if (!strcmp(n->msg, err.msg))
			return;
	*vec_push(&in->notes) = err;
}

/* Does the import mean the function of the need, and no other module's function of that name? */
static bool is_bound_to(struct callsite_process *in, const struct module *caller,
			const struct callsite_import *im, const struct callsite_need *need)
{
	if (callsite_links_find(need->callee->links, im->name, im->version) != need->export)
		return false;
	if (caller->links->is_symbolic && callsite_links_find(caller->links, im->name, im->version))
		return caller == need->callee;
	vec_for(&in->all, m) {
		if (!callsite_links_find((*m)->links, im->name, im->version))
			continue;
		if (in->ordered)
			return *m == need->callee;
		if (*m != need->callee) {
			note_ambiguous(in, im, need->callee, *m);
			return false;
		}
	}
	return true;
}

/* What is in the slot may be the address of another module's stub, which is probed itself. */
static bool leads_to_stub(struct callsite_process *in, const struct module *m,
			  const struct callsite_import *im)
{
	vec_for(&in->all, other)
		if (im->is_data && *other != m &&
		    callsite_links_is_address((*other)->links, im->name))
			return true;
	return false;
}

/* ---- a module's plan ---- */

struct span {
	uint64_t start, end;
};

struct asking {
	struct callsite_process *in;
	VEC(struct span) own; /* what other probes of the module displace, by start */
	size_t displaced;     /* calls and stubs there */
	size_t silent;        /* calls whose results are wanted */
	uint8_t *wanted;      /* by call */
	VEC(struct place_request) places;
	VEC(struct place_action) actions;
	VEC(uint32_t) events;
	VEC(const struct callsite_need *) needs; /* by place */
	struct callsite_plan *plan;
};

static int compare_spans(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Windows, and landings, which may lie in windows: what overlaps becomes one. */
static void list_own(struct asking *a, const struct binding *own)
{
	uint32_t *stub_at = xcalloc(own->plan->nsites + 1, sizeof(*stub_at));
	size_t n = 0;

	bind_lay_out(own, stub_at);
	for (size_t i = 0; i < own->plan->nsites; i++) {
		const struct plan_site *s = &own->plan->sites[i];

		if (!stub_at[i])
			continue;
		*vec_push(&a->own) = (struct span){s->vaddr, s->vaddr + s->window};
		if (s->landing)
			*vec_push(&a->own) = (struct span){s->landing, s->landing + PLAN_LANDING};
	}
	xfree(stub_at);
	if (a->own.n)
		qsort(a->own.v, a->own.n, sizeof(*a->own.v), compare_spans);
	for (size_t i = 0; i < a->own.n; i++) {
		const struct span s = a->own.v[i];

		if (n && s.start <= a->own.v[n - 1].end) {
			if (s.end > a->own.v[n - 1].end)
				a->own.v[n - 1].end = s.end;
		} else {
			a->own.v[n++] = s;
		}
	}
	a->own.n = n;
}

/* Is the jump or call at vaddr there? */
static bool is_displaced(const struct asking *a, uint64_t vaddr)
{
	/* the first one that ends after it */
	size_t lo = partition_point(i, a->own.n, a->own.v[i].end <= vaddr);

	return lo < a->own.n && a->own.v[lo].start < vaddr + CALLSITE_LEN;
}

/* call: the call at which the probe stands, or NULL: a stub.  At a call the return address is not pushed yet. */
static void ask(struct asking *a, uint64_t vaddr, const struct callsite_call *call,
		const struct callsite_need *need)
{
	struct place_action *action;
	struct place_request *p;

	if (call && need->where == PLACE_AFTER) {
		a->silent += !is_exit(need->event);
		return;
	}
	if (is_displaced(a, vaddr)) {
		a->displaced++;
		return;
	}
	p = vec_push(&a->places);
	p->vaddr = vaddr;
	p->where = need->where;
	p->action = (uint32_t)a->actions.n;
	p->event = (uint32_t)a->events.n;
	action = vec_push(&a->actions);
	*action = need->action;
	if (call && !call->jumps && action->payload == PAYLOAD_SP)
		action->value = (uint64_t)-8;
	*vec_push(&a->events) = need->event;
	*vec_push(&a->needs) = need;
}

/* The first need of this name. */
static size_t first_need(const struct callsite_process *in, const char *name)
{
	return partition_point(i, in->needs.n, strcmp(in->needs.v[i].name, name) < 0);
}

/* Is this the need that a call by the import meets? */
static bool meets(struct callsite_process *in, const struct module *m,
		  const struct callsite_import *im, const struct callsite_need *need)
{
	return *im->name ? is_bound_to(in, m, im, need) && !leads_to_stub(in, m, im)
			 : need->callee == m && need->vaddr == im->target;
}

static void ask_for(struct asking *a, const struct module *m, const struct callsite_import *im,
		    uint64_t vaddr, const struct callsite_call *call)
{
	struct callsite_process *in = a->in;

	for (size_t i = first_need(in, im->name); i < in->needs.n; i++) {
		const struct callsite_need *need = &in->needs.v[i];

		if (strcmp(need->name, im->name))
			return;
		if (meets(in, m, im, need))
			ask(a, vaddr, call, need);
	}
}

/* ---- calls without a stub ---- */

static bool is_needed(struct callsite_process *in, const struct module *m,
		      const struct callsite_import *im)
{
	for (size_t i = first_need(in, im->name); i < in->needs.n; i++) {
		if (strcmp(in->needs.v[i].name, im->name))
			break;
		if (meets(in, m, im, &in->needs.v[i]))
			return true;
	}
	return false;
}

/* Which of its calls lead to functions that are needed; false: none does. */
static bool mark_wanted(struct asking *a, const struct module *m)
{
	const struct callsite_links *l = m->links;
	uint8_t *needed = xcalloc(l->imports.n + 1, 1);
	bool any = false;

	a->wanted = xcalloc(l->calls.n + 1, 1);
	for (size_t i = 0; l->calls.n && i < l->imports.n; i++)
		needed[i] = is_needed(a->in, m, &l->imports.v[i]);
	for (size_t i = 0; i < l->calls.n; i++) {
		a->wanted[i] = needed[l->calls.v[i].import];
		any |= a->wanted[i];
	}
	xfree(needed);
	return any;
}

/* The module is locked, because what is found out about its calls is kept in it. */
static int ask_calls(struct module *m, const struct elf_image *img, void *ctx, struct err *err)
{
	struct asking *a = ctx;
	struct callsite_links *l = m->links;
	bool known = true;
	int code = 0;

	for (size_t i = 0; i < l->calls.n; i++)
		known = known && (!a->wanted[i] || l->calls.v[i].state != CALLSITE_UNKNOWN);
	if (!known)
		code = callsite_find_calls(l, img, a->wanted, err);
	for (size_t i = 0; !code && i < l->calls.n; i++)
		if (a->wanted[i] && l->calls.v[i].state == CALLSITE_YES)
			ask_for(a, m, &l->imports.v[l->calls.v[i].import], l->calls.v[i].vaddr,
				&l->calls.v[i]);
	return code;
}

static uint64_t hash_of(const struct asking *a, const struct plan_request *request)
{
	uint64_t sum = plan_request_hash(request);

	for (size_t i = 0; i < a->events.n; i++)
		sum = (sum ^ a->events.v[i]) * 0x100000001b3;
	return sum;
}

/* Lines of the table `imports`: what is probed at its callers, and why. */
static void write_lines(struct asking *a, const struct module *m)
{
	struct journal *j = a->in->modules->journal;

	journal_lock(j);
	for (size_t i = 0; i < a->needs.n; i++) {
		const struct callsite_need *need = a->needs.v[i];
		const struct trace_import_line line = {.module_id = need->callee->id,
						       .vaddr = need->vaddr,
						       .name = need->shown,
						       .why = need->why,
						       .caller = m->path};

		if (!is_exit(need->event))
			journal_put_locked(j, trace_writer_import, &line);
	}
	journal_unlock(j);
}

static void note_missed(struct asking *a, const struct module *m)
{
	struct err err;

	if (a->displaced) {
		err_set(&err, EBUSY,
			"%s: %zu of its calls or stubs are not probed for the functions they lead to: "
			"other probes stand there",
			m->path, a->displaced);
		*vec_push(&a->in->notes) = err;
	}
	if (a->silent) {
		err_set(&err, ENOTSUP,
			"%s: what functions return is not seen at %zu calls that it makes without the "
			"linker's stubs: %%after is for these",
			m->path, a->silent);
		*vec_push(&a->in->notes) = err;
	}
}

/* A stub that unwinders know nothing of must not call. */
static void note_refused(struct asking *a, const struct module *m)
{
	size_t n = 0;
	struct err err;

	for (size_t i = 0; i < a->plan->plan->nprobes; i++)
		n += a->plan->plan->probes[i].kind == PROBE_PLACE &&
		     a->plan->plan->probes[i].site == UINT32_MAX &&
		     !is_exit(a->plan->events[a->plan->plan->probes[i].event]);
	if (!n)
		return;
	err_set(&err, ENOTSUP,
		"%s: %zu stubs could not be probed for what the functions return: they have no "
		"frame information",
		m->path, n);
	*vec_push(&a->in->notes) = err;
}

static int make_plan(struct module *m, const struct elf_image *img, void *ctx, struct err *err)
{
	struct asking *a = ctx;
	struct plan_request request = {.places = a->places.v,
				       .nplaces = a->places.n,
				       .actions = a->actions.v,
				       .nactions = a->actions.n};
	uint64_t hash = hash_of(a, &request);
	struct plan *plan;
	int code;

	vec_for(&m->stubs, p)
		if ((*p)->hash == hash) {
			a->plan = *p;
			return 0;
		}
	code = callsite_make_plan(&plan, img, &request, err);
	if (code)
		return err_prefix(err, code, "%s", m->path);
	a->plan = xcalloc(1, sizeof(*a->plan));
	*a->plan = (struct callsite_plan){hash, plan, a->events.v, a->events.n};
	memset(&a->events, 0, sizeof(a->events));
	*vec_push(&m->stubs) = a->plan;
	write_lines(a, m);
	note_refused(a, m);
	return 0;
}

int callsite_process_plan(struct callsite_process *in, struct module *m, const struct binding *own,
			  const struct callsite_plan **out, struct err *err)
{
	struct asking a = {.in = in};
	int code = 0;

	if (own)
		list_own(&a, own);
	for (size_t i = 0; i < m->links->imports.n; i++)
		if (m->links->imports.v[i].jump)
			ask_for(&a, m, &m->links->imports.v[i], m->links->imports.v[i].jump, NULL);
	if (mark_wanted(&a, m))
		code = modules_with_image(m, ask_calls, &a, err);
	if (!code && a.places.n && m->full_code == -ENOTSUP && m->hooks_code == -ENOTSUP)
		code = err_prefix(err, modules_plan(in->modules, m, false, err),
				  "functions are not probed where it calls them");
	else if (!code && a.places.n)
		code = modules_with_image(m, make_plan, &a, err);
	note_missed(&a, m);
	*out = a.plan;
	vec_free(&a.own);
	xfree(a.wanted);
	vec_free(&a.places);
	vec_free(&a.actions);
	vec_free(&a.events);
	vec_free(&a.needs);
	return code;
}

static bool is_for(const struct callsite_plan *p, const struct plan_probe *probe, uint32_t number)
{
	const struct place_action *a = &p->plan->actions[probe->action];

	return probe->site != UINT32_MAX &&
	       (a->kind == ACTION_CALLS
			? a->value == number
			: probe->event < p->nevents && p->events[probe->event] == number);
}

bool callsite_process_has(struct modules *ms, const struct module *callee, uint32_t function)
{
	const uint32_t number = callee->event_base + function;

	vec_for(&ms->all, m)
		vec_for(&(*m)->stubs, p)
			for (size_t i = 0; i < (*p)->plan->nprobes; i++)
				if ((*p)->plan->probes[i].kind == PROBE_PLACE &&
				    is_for(*p, &(*p)->plan->probes[i], number))
					return true;
	return false;
}
