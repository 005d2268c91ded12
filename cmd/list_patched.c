/* SPDX-License-Identifier: MIT */
/* list_patched.c - see list_patched.h */
#include "cmd/list_patched.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/vec.h"

#define NONE UINT32_MAX
#define NUMBER 24

bool patched_has_places(const struct patch_info *info)
{
	for (size_t i = 0; i < info->plan->nprobes; i++)
		if (info->plan->probes[i].kind == PROBE_PLACE)
			return true;
	return false;
}

static const char *where_word(const struct plan_probe *p)
{
	static const char *const words[PLACE_WHERES] = {"before", "after", "taken"};

	return words[p->where];
}

static const struct place_action *action_of(const struct patch_info *info,
					    const struct plan_probe *p)
{
	return &info->plan->actions[p->action];
}

static void kind_text(const struct place_action *a, char *out, size_t size)
{
	static const char *const kinds[ACTION_KINDS] = {"trace", "resource", "count", "store"};

	if (a->kind == ACTION_COUNT)
		snprintf(out, size, "count:%u", a->word);
	else if (a->kind == ACTION_STORE)
		snprintf(out, size, "store:%u=%" PRId64, a->word, (int64_t)a->value);
	else
		snprintf(out, size, "%s", kinds[a->kind]);
}

/* "main+0x1f"; of a call by a linker's stub, that; allocated. */
static char *place_text(const struct patch_info *info, const struct plan_probe *p)
{
	const struct plan_function *f;
	const char *name;

	if (p->function == PLAN_NO_FUNCTION)
		return xstrdup("");
	f = &info->plan->functions[p->function];
	if (f->sources & FUNCTION_STUB)
		return xstrdup("linker's stub");
	name = f->name ? info->plan->strings + f->name : "?";
	if (p->vaddr == f->vaddr)
		return xstrdup(name);
	if (p->vaddr < f->vaddr) /* in a .cold part before it */
		return xasprintf("%s-0x%" PRIx64, name, f->vaddr - p->vaddr);
	return xasprintf("%s+0x%" PRIx64, name, p->vaddr - f->vaddr);
}

/* NULL: it makes no sample. */
static const struct patch_event *event_of(const struct patch_info *info, const struct plan_probe *p)
{
	return action_of(info, p)->kind <= ACTION_RESOURCE && p->event < info->nevents
		       ? &info->events[p->event]
		       : NULL;
}

static void print_place(const struct patch_info *info, const struct plan_probe *p)
{
	const struct patch_event *e = event_of(info, p);
	const struct place_action *a = action_of(info, p);
	char kind[48], level[NUMBER] = "-", *place = place_text(info, p);

	kind_text(a, kind, sizeof(kind));
	if (!a->ungated)
		snprintf(level, sizeof(level), "%u", a->level);
	printf("%#10" PRIx64 " %-6s  %-13s %5s  %-9s %-28s %s%s%s\n", p->vaddr, where_word(p),
	       p->site == NONE ? "no" : tactic_key(p->tactic), level, kind, place,
	       e ? e->name : "-", e && e->payload ? "  " : "", e && e->payload ? e->payload : "");
	if (p->site == NONE)
		printf("%20s refused: %s\n", "", refusal_text(p->refusal));
	xfree(place);
}

void patched_print_places(const struct patch_info *info)
{
	if (!patched_has_places(info))
		return;
	printf("%10s %-6s  %-13s %5s  %-9s %-28s %s\n", "Address", "Where", "Tactic", "Level",
	       "Kind", "Place", "Event");
	for (size_t i = 0; i < info->plan->nprobes; i++)
		if (info->plan->probes[i].kind == PROBE_PLACE)
			print_place(info, &info->plan->probes[i]);
}

static void json_place(struct json *j, const struct patch_info *info, const struct plan_probe *p)
{
	const struct patch_event *e = event_of(info, p);
	const struct place_action *a = action_of(info, p);
	char kind[48], *place = place_text(info, p);

	kind_text(a, kind, sizeof(kind));
	json_open(j, '{');
	json_ku64(j, "address", p->vaddr);
	json_kstr(j, "where", where_word(p));
	json_kstr(j, "place", place);
	json_kstr(j, "event", e ? e->name : NULL);
	json_key(j, "level");
	if (a->ungated)
		json_str(j, NULL);
	else
		json_u64(j, a->level);
	json_kstr(j, "kind", kind);
	json_kstr(j, "payload", e ? e->payload : NULL);
	if (p->site == NONE) {
		json_kstr(j, "refused", refusal_key(p->refusal));
		json_kstr(j, "reason", refusal_text(p->refusal));
	} else {
		json_kstr(j, "tactic", tactic_key(p->tactic));
	}
	json_close(j, '}');
	xfree(place);
}

void patched_json_places(struct json *j, const struct patch_info *info)
{
	json_key(j, "places");
	json_open(j, '[');
	for (size_t i = 0; i < info->plan->nprobes; i++)
		if (info->plan->probes[i].kind == PROBE_PLACE)
			json_place(j, info, &info->plan->probes[i]);
	json_close(j, ']');
}
