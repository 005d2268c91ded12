/* SPDX-License-Identifier: MIT */
/*
 * list.c - `kron list`: what the planner finds in an ELF file and what it can do with it.
 *
 * Plans the file as `kron record` would, without the cache, and shows the plan.  Touches no
 * process, so static programs are fine here.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "cmd/list_patched.h"
#include "cmd/list_places.h"
#include "cmd/list_probes.h"
#include "cmd/probe_options.h"
#include "inject/code/classes.h"
#include "inject/plan/callsite.h"
#include "inject/disk/patch_info.h"
#include "inject/plan/plan.h"
#include "inject/plan/tactics.h"

static bool json, summary, no_pager;
/* The classes of classes.h in their order, then two more. */
#define PLACES "insns|branches|loads|stores|calls|blocks|accesses|entries|exits"
static int places = -1;
static struct opt_list specs, files;
static const char *tactics;

static bool is_class(void)
{
	return places >= 0 && places < CLASS_COUNT;
}

static const struct opt options[] = {
	{0, "json", OPT_FLAG, &json, NULL, "Print JSON.", 0, 0},
	{0, "summary", OPT_FLAG, &summary, NULL,
	 "Print only how many entries and exits were found, how many can be probed and by which "
	 "tactic, and why the others cannot.",
	 0, 0},
	{'p', "probe", OPT_LIST, &specs, "SPEC",
	 "List the places of this probe (see kron-probes(7)) instead of all functions. May be "
	 "repeated.",
	 0, 0},
	{'P', "probe-file", OPT_LIST, &files, "FILE",
	 "The same for the probes in FILE, or in kron's pack of this name. May be repeated.", 0, 0},
	{0, "places", OPT_CHOICE, &places, PLACES,
	 "Plan every place of this class, instead of entries and exits.", 0, 0},
	{0, "tactics", OPT_STR, &tactics, "LIST",
	 "Use only these tactics, separated by commas: " TACTICS_HELP
	 ". With + or - before each: the default, and these too or without them. int3 "
	 "is not in the default.",
	 0, 0},
	{0, "no-pager", OPT_FLAG, &no_pager, NULL, "Do not page output on a terminal.", 0, 0},
	OPT_END,
};

static const struct opt_command command = {
	.name = "list",
	.operands = "ELF",
	.summary = "List the functions of an ELF file: where they were found, which can be probed "
		   "at entry and exit, and why not.",
	.opts = options,
	.min_operands = 1,
	.max_operands = 1,
};

static const struct {
	enum function_source bit;
	const char *key;
} sources[] = {
	{FUNCTION_SYMTAB, "symtab"},         {FUNCTION_DYNSYM, "dynsym"},
	{FUNCTION_DEBUG_FILE, "debug-file"}, {FUNCTION_DEBUGDATA, "debugdata"},
	{FUNCTION_EH_FRAME, "eh_frame"},     {FUNCTION_GO_TABLE, "go"},
	{FUNCTION_GUESS, "guess"},
};
#define NSOURCES (sizeof(sources) / sizeof(sources[0]))

/* ---- one function ---- */

/* The symbol's readable name; without one, module+0x1234. */
static char *function_name(const struct plan *p, const struct plan_function *f, const char *path)
{
	const char *base = strrchr(path, '/');

	if (f->name)
		return xstrdup(p->strings + f->name);
	return xasprintf("%s+0x%lx", base ? base + 1 : path, (unsigned long)f->vaddr);
}

/* Neither in its code nor where other modules call it. */
static bool is_refused(const struct plan_probe *p)
{
	return p->site == UINT32_MAX && p->tactic != TACTIC_CALLSITE;
}

struct tally {
	const struct plan_probe *entry;
	unsigned exits, exits_patched;
};

static struct tally count_probes(const struct plan *p, const struct plan_function *f)
{
	struct tally t = {0};

	for (uint32_t i = 0; i < f->nprobes; i++) {
		const struct plan_probe *probe = &p->probes[f->first_probe + i];

		if (probe->kind == PROBE_ENTRY)
			t.entry = probe;
		if (probe->kind != PROBE_EXIT)
			continue;
		t.exits++;
		t.exits_patched += probe->site != UINT32_MAX;
	}
	return t;
}

/* In a patched file a function may be there for a hook of the runtime's only, or for places. */
static bool is_shown(const struct plan *p, const struct plan_function *f)
{
	return count_probes(p, f).entry;
}

static void source_words(char *out, size_t size, uint32_t bits)
{
	size_t n = 0;

	out[0] = 0;
	for (size_t i = 0; i < NSOURCES; i++)
		if (bits & sources[i].bit && n < size)
			n += snprintf(out + n, size - n, "%s%s", n ? "," : "", sources[i].key);
}

static void print_function(const struct plan *p, const struct plan_function *f, const char *path)
{
	struct tally t = count_probes(p, f);
	char *name = function_name(p, f, path);
	char words[64], exits[32];

	source_words(words, sizeof(words), f->sources);
	snprintf(exits, sizeof(exits), "%u/%u", t.exits_patched, t.exits);
	printf("%#10lx %7lu  %-22s %-13s %7s  %s%s\n", (unsigned long)f->vaddr,
	       (unsigned long)f->size, words,
	       is_refused(t.entry) ? "no" : tactic_key(t.entry->tactic), exits, name,
	       f->sources & FUNCTION_IFUNC ? " (resolver)" : "");
	xfree(name);
	for (uint32_t i = 0; i < f->nprobes; i++) {
		const struct plan_probe *probe = &p->probes[f->first_probe + i];

		if (probe->kind >= PROBE_HOOK || probe->site != UINT32_MAX)
			continue;
		printf("%20s no %s at %#lx: %s%s\n", "",
		       probe->kind == PROBE_ENTRY ? "entry" : "exit", (unsigned long)probe->vaddr,
		       refusal_text(probe->refusal),
		       is_refused(probe) ? "" : "; where other modules call it");
	}
}

static void print_functions(const struct plan *p, const char *path)
{
	size_t first = 0;

	if (!p->nfunctions) {
		puts("no functions found");
		return;
	}
	while (first < p->nfunctions && !is_shown(p, &p->functions[first]))
		first++;
	if (first < p->nfunctions)
		printf("%10s %7s  %-22s %-13s %7s  %s\n", "Address", "Size", "Found in", "Entry",
		       "Exits", "Function");
	for (size_t i = 0; i < p->nfunctions; i++)
		if (is_shown(p, &p->functions[i]))
			print_function(p, &p->functions[i], path);
}

/* A file from kron patch. */
static bool is_patched;
static struct patch_info patched;
/* Of functions in a file whose probes have numbers of their own (KRON_BOARD). */
static bool is_numbered;
static uint32_t first_number;

/* Where an exit by a jump leads to; "" where nobody knows. */
static void json_jump(struct json *j, const struct plan *p, const struct plan_jump *jump,
		      const char *path)
{
	char *name = NULL;

	if (jump->to == PLAN_JUMP_FUNCTION || jump->to == PLAN_JUMP_INSIDE)
		name = function_name(p, &p->functions[jump->target], path);
	json_kstr(j, "jump_to",
		  name                         ? name
		  : jump->to == PLAN_JUMP_NAME ? p->strings + jump->target
					       : "");
	xfree(name);
}

static void json_probe(struct json *j, const struct plan *p, const struct plan_probe *probe,
		       const char *path)
{
	json_open(j, '{');
	json_ku64(j, "address", probe->vaddr);
	if (probe->site == UINT32_MAX) {
		json_kstr(j, "refused", refusal_key(probe->refusal));
		json_kstr(j, "reason", refusal_text(probe->refusal));
	}
	if (!is_refused(probe))
		json_kstr(j, "tactic", tactic_key(probe->tactic));
	if (probe->kind == PROBE_EXIT && probe->action)
		json_jump(j, p, &p->jumps[probe->action - 1], path);
	json_close(j, '}');
}

static void json_mark(struct json *j, const struct plan_function *f, uint32_t source,
		      const char *key)
{
	if (!(f->sources & source))
		return;
	json_key(j, key);
	json_bool(j, true);
}

static void json_function(struct json *j, const struct plan *p, const struct plan_function *f,
			  const char *path)
{
	char *name = function_name(p, f, path);

	json_open(j, '{');
	json_ku64(j, "address", f->vaddr);
	json_ku64(j, "size", f->size);
	json_kstr(j, "name", name);
	json_kstr(j, "symbol", f->raw_name ? p->strings + f->raw_name : NULL);
	if (is_numbered)
		json_ku64(j, "number", first_number + (uint64_t)(f - p->functions));
	json_key(j, "sources");
	json_open(j, '[');
	for (size_t i = 0; i < NSOURCES; i++)
		if (f->sources & sources[i].bit)
			json_str(j, sources[i].key);
	json_close(j, ']');
	json_mark(j, f, FUNCTION_GUESS, "guessed");
	json_mark(j, f, FUNCTION_IFUNC, "resolver");
	json_key(j, "entry");
	json_probe(j, p, count_probes(p, f).entry, path);
	json_key(j, "exits");
	json_open(j, '[');
	for (uint32_t i = 0; i < f->nprobes; i++)
		if (p->probes[f->first_probe + i].kind == PROBE_EXIT)
			json_probe(j, p, &p->probes[f->first_probe + i], path);
	json_close(j, ']');
	json_key(j, "ends_in_call");
	json_bool(j, f->sources & FUNCTION_CALLS);
	json_close(j, '}');
	xfree(name);
}

static void json_places(struct json *j, const struct plan *p, const char *path)
{
	json_open(j, '{');
	json_kstr(j, "file", path);
	json_key(j, class_key(places));
	json_open(j, '[');
	for (size_t i = 0; i < p->nprobes; i++)
		if (p->probes[i].kind == PROBE_PLACE)
			json_probe(j, p, &p->probes[i], path);
	json_close(j, ']');
	json_close(j, '}');
}

static void print_places(const struct plan *p)
{
	for (size_t i = 0; i < p->nprobes; i++) {
		const struct plan_probe *probe = &p->probes[i];

		if (probe->kind != PROBE_PLACE)
			continue;
		if (probe->site == UINT32_MAX)
			printf("%#10lx  no: %s\n", (unsigned long)probe->vaddr,
			       refusal_text(probe->refusal));
		else
			printf("%#10lx  %s\n", (unsigned long)probe->vaddr,
			       tactic_key(probe->tactic));
	}
}

/* Symbols that are not functions of the plan. */
static struct functions found;

static void print_lies(void)
{
	for (size_t i = 0; i < found.nlies; i++)
		printf("%#10lx  %s: %s\n", (unsigned long)found.lies[i].vaddr,
		       found.lies[i].name ? found.lies[i].name : "?",
		       refusal_text(REFUSAL_CONTRADICTED));
}

static void json_lies(struct json *j)
{
	json_key(j, refusal_key(REFUSAL_CONTRADICTED));
	json_open(j, '[');
	for (size_t i = 0; i < found.nlies; i++) {
		json_open(j, '{');
		json_ku64(j, "address", found.lies[i].vaddr);
		json_kstr(j, "symbol", found.lies[i].name);
		json_kstr(j, "reason", refusal_text(REFUSAL_CONTRADICTED));
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void json_functions(struct json *j, const struct plan *p, const char *path)
{
	json_open(j, '{');
	json_kstr(j, "file", path);
	json_key(j, "functions");
	json_open(j, '[');
	for (size_t i = 0; i < p->nfunctions; i++)
		if (is_shown(p, &p->functions[i]))
			json_function(j, p, &p->functions[i], path);
	json_close(j, ']');
	if (found.nlies)
		json_lies(j);
	if (is_patched)
		patched_json_places(j, &patched);
	json_close(j, '}');
}

/* ---- summary ---- */

static void print_counts(const char *what, const struct plan_counts *c)
{
	char found[STR_NUMBER], patched[STR_NUMBER];

	str_thousands(found, sizeof(found), c->found);
	str_thousands(patched, sizeof(patched), c->patched);
	printf("%-8s %10s found  %10s patched", what, found, patched);
	if (c->found)
		printf("  %6.2f %%", 100.0 * c->patched / c->found);
	putchar('\n');
	for (int i = 0; i < TACTIC_COUNT; i++)
		if (c->by_tactic[i])
			printf("  %10s  %s%s\n",
			       str_thousands(found, sizeof(found), c->by_tactic[i]), tactic_key(i),
			       i == TACTIC_CALLSITE && !is_patched
				       ? " (calls from other modules only)"
				       : "");
	for (int i = 0; i < REFUSAL_COUNT; i++)
		if (c->refused[i])
			printf("  %10s  refused: %s\n",
			       str_thousands(found, sizeof(found), c->refused[i]), refusal_text(i));
}

static void json_counts(struct json *j, const char *what, const struct plan_counts *c)
{
	json_key(j, what);
	json_open(j, '{');
	json_ku64(j, "found", c->found);
	json_ku64(j, "patched", c->patched);
	json_key(j, "by_tactic");
	json_open(j, '{');
	for (int i = 0; i < TACTIC_COUNT; i++)
		if (c->by_tactic[i])
			json_ku64(j, tactic_key(i), c->by_tactic[i]);
	json_close(j, '}');
	json_key(j, "refused");
	json_open(j, '{');
	for (int i = 0; i < REFUSAL_COUNT; i++)
		if (c->refused[i])
			json_ku64(j, refusal_key(i), c->refused[i]);
	json_close(j, '}');
	json_close(j, '}');
}

/* What the summary shows: entries and exits, or the class that was asked for. */
static void show_summary(struct json *j, const struct plan *p, uint64_t filler)
{
	static const struct {
		const char *key, *words;
	} kinds[] = {{"entries", "Entries"}, {"exits", "Exits"}};
	struct plan_counts c;

	if (json)
		json_open(j, '{');
	for (int kind = PROBE_ENTRY; kind <= PROBE_EXIT; kind++) {
		if (places >= 0 && places != CLASS_COUNT + kind)
			continue;
		plan_count(p, kind, &c);
		if (json)
			json_counts(j, kinds[kind].key, &c);
		else
			print_counts(kinds[kind].words, &c);
	}
	if (is_class()) {
		plan_count(p, PROBE_PLACE, &c);
		if (json)
			json_counts(j, class_key(places), &c);
		else
			print_counts(class_key(places), &c);
	}
	plan_count(p, PROBE_PLACE, &c);
	if (is_patched && c.found && json)
		json_counts(j, "places", &c);
	else if (is_patched && c.found)
		print_counts("Places", &c);
	if (is_class() && json)
		json_ku64(j, "filler", filler);
	else if (filler)
		printf("  %10lu  more that nothing reaches (filler between code)\n",
		       (unsigned long)filler);
	if (json)
		json_close(j, '}');
}

/* -p and -P */
static int list_probes(const struct elf_image *img, const char *path, struct plan_options *opt)
{
	struct json j = JSON_INIT(stdout);
	struct probe_set set = {0};
	struct probe_list list;
	char *full = realpath(path, NULL);
	size_t missing;
	struct err err;

	if (probe_options_read(&set, &specs, &files, 0, &err))
		return cmd_fail(&command, CMD_USAGE, "%s", err.msg);
	if (patch_info_is_there(img))
		return cmd_fail(
			&command, CMD_ERROR,
			"%s was patched by kron patch, and has the probes that it was given "
			"there: `kron list` without -p shows them",
			path);
	set.no_callsites = !callsite_is_on(opt->tactics);
	if (probe_list_make(&list, img, &set, full ? full : path, opt, &err))
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	cmd_pager(!json && !no_pager);
	if (json)
		probe_list_json(&j, &list, &set, path);
	else
		probe_list_print(&list, &set);
	fflush(stdout);
	for (size_t i = 0; i < list.found.notes.n; i++)
		cmd_fail(&command, 0, "%s", list.found.notes.v[i].text);
	missing = probe_list_missing(&list);
	if (set.specs.n && !list.found.places.n && !list.found.callsites.n && !list.found.notes.n) {
		cmd_fail(&command, 0, "%s is not a module that a probe means", path);
		missing = 1;
	}
	probe_list_free(&list);
	probe_set_free(&set);
	free(full);
	return cmd_finish(&command, missing ? CMD_ERROR : CMD_OK);
}

/* A file from kron patch: the probes that are in it. */
static int read_patched(struct plan **out, const struct elf_image *img, struct err *err)
{
	int code = patch_info_read(&patched, img, err);

	if (!code && patch_info_has_board(img)) {
		is_numbered = true;
		first_number = patch_info_first_number(&patched);
	}
	is_patched = !code;
	*out = patched.plan;
	return code;
}

int cmd_list(int argc, char **argv)
{
	struct json j = JSON_INIT(stdout);
	struct plan_options opt = {0};
	struct elf_image *img;
	uint64_t filler = 0;
	struct plan *p;
	struct err err;
	int status, first, r;

	first = cmd_parse(&command, argc, argv, &status);
	if (!first)
		return status;
	if (tactics && tactics_parse(&opt.tactics, tactics, &err))
		return cmd_fail(&command, CMD_USAGE, "%s", err.msg);
	if (elf_image_open(&img, argv[first], &err))
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	if (specs.n || files.n) {
		r = list_probes(img, argv[first], &opt);
		elf_image_close(img);
		return r;
	}
	if (patch_info_is_there(img))
		r = read_patched(&p, img, &err);
	else if (is_class())
		r = list_plan_places(&p, &filler, img, places, &opt, &err);
	else
		r = plan_make(&p, img, &opt, &err);
	if (!r && !is_class() && !patch_info_is_there(img))
		callsite_mark(p, img, opt.tactics);
	if (!r && p->nlies)
		r = functions_find(&found, img, &err);
	elf_image_close(img);
	if (r)
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	cmd_pager(!json && !summary && !no_pager);
	if (summary)
		show_summary(&j, p, filler);
	else if (is_class() && json)
		json_places(&j, p, argv[first]);
	else if (is_class())
		print_places(p);
	else if (json)
		json_functions(&j, p, argv[first]);
	else
		print_functions(p, argv[first]);
	if (!summary && !json && !is_class())
		print_lies();
	functions_free(&found);
	if (is_patched && !summary && !json)
		patched_print_places(&patched);
	if (!is_patched)
		plan_free(p);
	patch_info_free(&patched);
	return cmd_finish(&command, CMD_OK);
}
