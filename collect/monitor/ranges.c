/* SPDX-License-Identifier: MIT */
/* ranges.c - see ranges.h */
#define _GNU_SOURCE
#include "collect/monitor/ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "collect/kernel/process_maps.h"

/* ---- what is asked for ---- */

/* The qualifier, if there is one; its length. */
static size_t take_qualifier(const char *text, bool *reads, bool *writes)
{
	const char *colon = variable_colon(text);
	const bool r = colon && !strcmp(colon, ":r"), w = colon && !strcmp(colon, ":w");

	*reads = !w;
	*writes = !r;
	return r || w || (colon && !strcmp(colon, ":rw")) ? strlen(colon) : 0;
}

static bool take_address(const char **s, uint64_t *out)
{
	char *end;

	if (strncmp(*s, "0x", 2) || !(*s)[2])
		return false;
	errno = 0;
	*out = strtoull(*s, &end, 16);
	*s = end;
	return !errno;
}

static bool take_addresses(const char *name, struct range *one)
{
	const char *s = name;

	if (!take_address(&s, &one->start) || *s++ != '-' || !take_address(&s, &one->end) || *s)
		return false;
	return one->start < one->end;
}

static int take_kind(struct ranges *r, struct range *one, struct err *err)
{
	if (!*one->name)
		return err_set(err, EINVAL, "--range '%s' has no name", one->text);
	if (!strncmp(one->name, "0x", 2)) {
		one->kind = RANGE_ADDRESSES;
		return take_addresses(one->name, one)
			       ? 0
			       : err_set(err, EINVAL,
					 "--range %s: it is not two addresses like "
					 "0x404040-0x404080, the first one less than the second",
					 one->text);
	}
	if (one->name[0] == '[' || strpbrk(one->name, "/.")) {
		one->kind = RANGE_MAPPING;
		return 0;
	}
	if (variable_colon(one->name))
		return err_set(err, EINVAL, "--range %s: after a colon there are r, w and rw",
			       one->text);
	one->kind = RANGE_SYMBOL;
	for (one->symbol = 0; one->symbol < r->symbols.v.n; one->symbol++)
		if (!strcmp(r->symbols.v.v[one->symbol].name, one->name))
			return 0;
	return monitor_variables_add(&r->symbols, one->name, false, err);
}

int monitor_ranges_add(struct ranges *r, const char *text, struct err *err)
{
	struct range one = {.text = xstrdup(text)};
	const size_t n = take_qualifier(text, &one.reads, &one.writes);
	int code = 0;

	one.name = xstrndup(text, strlen(text) - n);
	vec_for(&r->v, other)
		if (!strcmp(other->text, text))
			code = err_set(err, EINVAL, "--range %s is there already", text);
	if (!code && r->v.n == RANGES_MAX)
		code = err_set(err, EINVAL, "--range: %u of them are the most", RANGES_MAX);
	if (!code)
		code = take_kind(r, &one, err);
	if (code) {
		xfree(one.text);
		xfree(one.name);
		return code;
	}
	*vec_push(&r->v) = one;
	return 0;
}

/* ---- where they are ---- */

static void watch_edges(struct ranges *r, uint64_t start, uint64_t end)
{
	if (start % TRACE_LINE_SIZE)
		pages_watch(r->drain->pages, start);
	if (end % TRACE_LINE_SIZE)
		pages_watch(r->drain->pages, end);
}

/* Of a library or a file.  Where the program itself, its heap and its stack are nothing else was before, nor comes. */
static bool can_be_anothers(const struct ranges *r, const struct range *one)
{
	return one->kind == RANGE_MAPPING  ? one->name[0] != '['
	       : one->kind == RANGE_SYMBOL ? r->symbols.v.v[one->symbol].home.ino != 0
					   : false;
}

/* A mapping grows; one that goes is not forgotten, for it was counted. */
static void add_span(struct ranges *r, struct range *one, uint64_t start, uint64_t end)
{
	const uint32_t image = (uint32_t)r->images.n - 1;

	vec_for(&one->spans, s) {
		if (s->image != image || start > s->end || end < s->start)
			continue;
		s->start = start < s->start ? start : s->start;
		s->end = end > s->end ? end : s->end;
		return;
	}
	*vec_push(&one->spans) = (struct range_span){image, start, end};
	one->has_come |= r->images.v[image].is_seen && can_be_anothers(r, one);
	watch_edges(r, start, end);
}

static bool is_mapping(const struct range *one, const struct process_mapping *m)
{
	return !strcmp(m->path, one->name) ||
	       (m->path[0] == '/' && !strcmp(str_base_name(m->path), one->name));
}

static uint64_t mapped_bytes(const struct range *one, const struct range_span *s,
			     const struct process_maps *maps)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < maps->n; i++) {
		const struct process_mapping *m = &maps->v[i];
		const uint64_t from = m->start > s->start ? m->start : s->start;
		const uint64_t to = m->end < s->end ? m->end : s->end;

		if (from < to && is_mapping(one, m))
			sum += to - from;
	}
	return sum;
}

static void note_gone(struct ranges *r, struct range *one, const struct process_maps *maps)
{
	const uint64_t at = one->kind == RANGE_SYMBOL ? r->symbols.v.v[one->symbol].addr : 0;

	one->is_gone = false;
	vec_for(&one->spans, s)
		if (s->image == r->images.n - 1 && can_be_anothers(r, one))
			one->is_gone |= one->kind == RANGE_SYMBOL
						? at < s->start || at >= s->end
						: mapped_bytes(one, s, maps) < s->end - s->start;
}

static void find_mappings(struct ranges *r, pid_t pid)
{
	struct process_maps maps;
	struct err err;

	if (process_maps_read(&maps, pid, &err))
		return;
	vec_for(&r->v, one)
		for (size_t i = 0; one->kind == RANGE_MAPPING && i < maps.n; i++)
			if (is_mapping(one, &maps.v[i]))
				add_span(r, one, maps.v[i].start, maps.v[i].end);
	vec_for(&r->v, one)
		note_gone(r, one, &maps);
	process_maps_free(&maps);
}

static void find_symbols(struct ranges *r, pid_t pid)
{
	monitor_variables_find(&r->symbols, pid);
	vec_for(&r->v, one) {
		const struct watched_variable *k;

		if (one->kind != RANGE_SYMBOL)
			continue;
		k = &r->symbols.v.v[one->symbol];
		if (k->addr && k->bytes)
			add_span(r, one, k->addr, k->addr + k->bytes);
	}
}

static struct range_image *image(struct ranges *r)
{
	return r->images.n ? &r->images.v[r->images.n - 1] : NULL;
}

/* It has executed a program that looks the same from outside, so all is where it was. */
static void begin_same_image(struct ranges *r)
{
	const uint32_t last = (uint32_t)r->images.n - 1;
	const struct range_image same = {.image = image(r)->image};

	*vec_push(&r->images) = same;
	vec_for(&r->v, one)
		for (size_t i = 0, n = one->spans.n; i < n; i++) {
			struct range_span s = one->spans.v[i];

			if (s.image != last)
				continue;
			s.image++;
			*vec_push(&one->spans) = s;
		}
}

/* Of the last image, if it is not that of one before. */
static void set_uid(struct ranges *r, uint32_t uid)
{
	vec_for(&r->images, i)
		if (i->uid == uid)
			return;
	if (!uid || !image(r))
		return;
	if (image(r)->uid)
		begin_same_image(r);
	image(r)->uid = uid;
}

static void take_uid(void *ctx, pid_t pid, uint32_t uid)
{
	struct ranges *r = ctx;

	pthread_mutex_lock(&r->lock);
	if (pid && pid == r->pid)
		set_uid(r, uid);
	pthread_mutex_unlock(&r->lock);
}

/* It has executed a program: what is asked for lies elsewhere. */
static void begin_image(struct ranges *r, uint64_t which)
{
	r->is_unsure |= image(r) && !image(r)->uid;
	/* those of the one before: its code is gone, and of the new one none has been executed */
	pages_watch_none(r->drain->pages);
	*vec_push(&r->images) = (struct range_image){.image = which};
	vec_for(&r->v, one)
		if (one->kind == RANGE_ADDRESSES)
			add_span(r, one, one->start, one->end);
}

/* Also in front of the answer to a process that asks for its plan: what it counts comes later. */
static void note(void *ctx, pid_t pid)
{
	struct ranges *r = ctx;
	uint64_t which;

	pthread_mutex_lock(&r->lock);
	if (!r->pid)
		r->pid = pid;
	which = pid == r->pid ? process_image(pid) : 0;
	if (which) {
		/* one that it has just executed is in no table before it has its plan */
		if (image(r) && r->drain)
			set_uid(r, tasks_last_uid(r->drain->tasks, pid));
		if (!image(r) || image(r)->image != which)
			begin_image(r, which);
		find_symbols(r, pid);
		find_mappings(r, pid);
		image(r)->is_seen = true;
	}
	pthread_mutex_unlock(&r->lock);
}

void monitor_ranges_setup(struct ranges *r, struct pages_setup *setup)
{
	pthread_mutex_init(&r->lock, NULL);
	setup->by_address = true;
	setup->on_maps = note;
	setup->on_taken = take_uid;
	setup->ctx = r;
}

void monitor_ranges_begin(struct ranges *r, struct drain *d)
{
	r->drain = d;
}

/* ---- how often ---- */

/* From the first to the last that any range has of it. */
static void find_hull(struct ranges *r, uint32_t which, struct pages_range *out)
{
	out->start = UINT64_MAX;
	vec_for(&r->v, one)
		vec_for(&one->spans, s) {
			if (s->image != which)
				continue;
			out->start = s->start < out->start ? s->start : out->start;
			out->end = s->end > out->end ? s->end : out->end;
		}
}

static bool is_inside(struct range *one, uint32_t which, uint64_t address)
{
	vec_for(&one->spans, s)
		if (s->image == which && address >= s->start && address < s->end)
			return true;
	return false;
}

/* The lock is not held while sums are made: who makes others may ask for mappings meanwhile. */
static void add_image(struct ranges *r, uint32_t which, struct reading *out)
{
	struct pages_range sums = {.uid = r->images.v[which].uid};
	int code;

	find_hull(r, which, &sums);
	if (!sums.uid || sums.start >= sums.end)
		return;
	pthread_mutex_unlock(&r->lock);
	code = drain_sum_pages(r->drain, r->pid, &sums);
	pthread_mutex_lock(&r->lock);
	if (code)
		return;
	vec_for(&sums.v, p)
		for (size_t i = 0; i < r->v.n; i++) {
			struct range *one = &r->v.v[i];

			if (is_inside(one, which, p->address))
				out[i].n +=
					(one->reads ? p->reads : 0) + (one->writes ? p->writes : 0);
		}
	vec_free(&sums.v);
}

static bool is_known(struct ranges *r, struct range *one)
{
	vec_for(&one->spans, s)
		if (r->images.v[s->image].uid)
			return true;
	return false;
}

static bool is_ambiguous(const struct ranges *r, const struct range *one)
{
	return one->kind == RANGE_SYMBOL && r->symbols.v.v[one->symbol].is_ambiguous;
}

static void finish_reading(struct ranges *r, struct range *one, struct reading *out)
{
	out->known = is_known(r, one) && !is_ambiguous(r, one);
	out->is_estimate = out->n != one->count && (one->has_come || one->is_gone);
	one->has_come &= !out->known;
	one->count = out->n;
}

void monitor_ranges_read(struct ranges *r, struct reading *out)
{
	uint32_t uid;

	if (!r->v.n)
		return;
	memset(out, 0, r->v.n * sizeof(*out));
	if (!r->drain)
		return;
	if (r->pid)
		note(r, r->pid);
	uid = r->pid ? tasks_last_uid(r->drain->tasks, r->pid) : 0;
	r->is_full = pages_watch_is_full(r->drain->pages);
	pthread_mutex_lock(&r->lock);
	if (uid)
		set_uid(r, uid);
	for (uint32_t i = 0; i < r->images.n; i++)
		add_image(r, i, out);
	for (size_t i = 0; i < r->v.n; i++)
		finish_reading(r, &r->v.v[i], &out[i]);
	pthread_mutex_unlock(&r->lock);
}

const char *monitor_range_trouble(struct ranges *r, struct range *one, char *text, size_t size)
{
	const char *missing =
		one->kind == RANGE_SYMBOL
			? monitor_variable_missing(&r->symbols.v.v[one->symbol], text, size)
			: NULL;

	if (missing)
		return missing;
	if (r->is_unsure)
		return "what the program did before it executed another one may be missing";
	if (r->is_full)
		return "it begins or ends inside of a line of 64 bytes, of which too many are watched: "
		       "all of the line may be counted, or nothing";
	if (is_known(r, one))
		return NULL;
	return one->kind == RANGE_MAPPING
		       ? "the program had no such mapping at the end of an interval"
		       : "no access of the program was counted";
}

void monitor_ranges_free(struct ranges *r)
{
	vec_for(&r->v, one) {
		xfree(one->text);
		xfree(one->name);
		vec_free(&one->spans);
	}
	vec_free(&r->v);
	vec_free(&r->images);
	monitor_variables_free(&r->symbols);
}
