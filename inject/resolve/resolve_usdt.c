/* SPDX-License-Identifier: MIT */
/* resolve_usdt.c - the probes that a program's author wrote into it. */
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "inject/resolve/resolve_impl.h"
#include "inject/elf/usdt.h"

static bool matches(const struct probe_spec *s, const struct usdt_note *n)
{
	return !fnmatch(s->provider, n->provider, 0) && !fnmatch(s->marker, n->name, 0);
}

/* False: the value is not where a probe could take it from. */
static bool take_argument(struct resolver *r, const struct usdt_note *n)
{
	struct usdt_arg arg;

	if (r->spec->payload != SPEC_PAYLOAD_ARGUMENT)
		return true;
	usdt_arg(n->args, (unsigned)r->spec->value, &arg);
	switch (arg.kind) {
	case USDT_REGISTER:
		resolver_payload(r, PAYLOAD_REG, arg.reg, 0);
		return true;
	case USDT_CONSTANT:
		resolver_payload(r, PAYLOAD_IMM, 0, arg.value);
		return true;
	case USDT_NONE:
		resolver_note(r, r->before == resolver_count(r), "%s:%s has no argument %u here",
			      n->provider, n->name, (unsigned)r->spec->value);
		return false;
	}
	resolver_note(r, r->before == resolver_count(r),
		      "argument %u of %s:%s is in memory at 0x%lx (%.*s): a probe can take a "
		      "register or a constant along",
		      (unsigned)r->spec->value, n->provider, n->name, (unsigned long)n->vaddr,
		      (int)arg.len, arg.text);
	return false;
}

static void keep_semaphore(struct resolver *r, uint64_t vaddr)
{
	if (!vaddr)
		return;
	vec_for(&r->out->semaphores, s)
		if (*s == vaddr)
			return;
	*vec_push(&r->out->semaphores) = vaddr;
}

static bool take_note(const struct usdt_note *n, void *ctx)
{
	struct resolver *r = ctx;

	if (!matches(r->spec, n) || !take_argument(r, n))
		return true;
	resolver_add(r, n->vaddr, PLACE_BEFORE, n->name);
	keep_semaphore(r, n->semaphore);
	return true;
}

struct inventory {
	const struct probe_set *set;
	const struct probe_spec *spec;
	bool provider, found;
	unsigned n;
	size_t len;
	char names[200];
};

/* Each name once, as far as there is room. */
static bool list_note(const struct usdt_note *n, void *ctx)
{
	struct inventory *v = ctx;
	char word[64];

	if (fnmatch(v->spec->provider, n->provider, 0))
		return true;
	v->provider = true;
	snprintf(word, sizeof(word), "%s%.50s", v->n ? ", " : "", n->name);
	if (strstr(v->names, word) || v->len + strlen(word) >= sizeof(v->names))
		return true;
	v->n++;
	v->len += (size_t)snprintf(v->names + v->len, sizeof(v->names) - v->len, "%s", word);
	return true;
}

void markers_find(struct resolver *r)
{
	struct inventory v = {.spec = r->spec};

	usdt_for_each(r->img, take_note, r);
	if (r->before != r->out->places.n || r->told)
		return;
	usdt_for_each(r->img, list_note, &v);
	if (v.provider)
		resolver_note(r, true, "%s has no such probe of this provider; it has %s", r->path,
			      v.names);
	else
		resolver_note(r, true, "%s has no USDT probe of this provider", r->path);
}

static bool find_any(const struct usdt_note *n, void *ctx)
{
	struct inventory *v = ctx;

	for (size_t i = 0; i < v->set->specs.n; i++)
		if (v->set->specs.v[i].place == SPEC_USDT && matches(&v->set->specs.v[i], n))
			v->found = true;
	return !v->found;
}

bool resolve_has_marker(const struct probe_set *set, const struct elf_image *img)
{
	struct inventory v = {.set = set};

	usdt_for_each(img, find_any, &v);
	return v.found;
}
