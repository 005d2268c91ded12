/* SPDX-License-Identifier: MIT */
/*
 * patch.c - kron patch: writes a copy of an ELF file that has the probes in it, asleep.
 *
 *   IN ─► plan ─► selection ─► a copy, new parts ─► OUT, whole or not at all (base/output.h)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/output.h"
#include "base/str.h"
#include "base/vec.h"
#include <kron/board.h>
#include "cmd/cmd.h"
#include "cmd/levels.h"
#include "cmd/probe_options.h"
#include "inject/disk/apply_elf.h"
#include "inject/elf/go_table.h"
#include "inject/plan/callsite.h"
#include "inject/disk/patch_info.h"
#include "inject/resolve/resolve.h"
#include "inject/plan/tactics.h"

static const char *output;
static struct opt_list only, except, levels, specs, files;
static const char *tactics;
static uint32_t tactic_set;
static uint64_t first_number;
static bool jumps, no_board, quiet;

static const struct opt options[] = {
	{'o', "output", OPT_STR, &output, "OUT",
	 "Write the patched copy to OUT, which may be the file itself.", 0, 0},
	{'F', "function", OPT_LIST, &only, "GLOB",
	 "Only functions whose name matches GLOB get probes. May be repeated.", 0, 0},
	{'N', "no-function", OPT_LIST, &except, "GLOB",
	 "Functions whose name matches GLOB get none. May be repeated.", 0, 0},
	{'g', "level", OPT_LIST, &levels, "LEVEL[=GLOB]",
	 "Filter level of the probes, 0 to 15, default 0; or of those of the functions whose name "
	 "matches GLOB. May be repeated; where several match, the last one counts. The option of "
	 "the same name of kron record overrules it.",
	 0, 0},
	{'p', "probe", OPT_LIST, &specs, "SPEC",
	 "Place a probe: see kron-probes(7). With it functions get probes only if -F or -N asks for "
	 "them. May be repeated.",
	 0, 0},
	{'P', "probe-file", OPT_LIST, &files, "FILE",
	 "Place the probes of FILE, or of kron's pack of this name. May be repeated.", 0, 0},
	{0, "first-number", OPT_UINT, &first_number, "N",
	 "Number of the first function where nobody gives numbers, for KRON_BOARD; default 0. Programs "
	 "and libraries that store to one board can be told apart so.",
	 0, 0},
	{0, "jumps", OPT_FLAG, &jumps, NULL,
	 "Write the jumps to the probes into the code, too, so that nothing has to write to the "
	 "code of the running program when they wake. Probes that sleep then take some time.",
	 0, 0},
	{0, "no-board", OPT_FLAG, &no_board, NULL,
	 "Leave out what wakes the probes of a dynamic program or library by KRON_BOARD: some 110 KiB, "
	 "and 16 bytes a probe.",
	 0, 0},
	{'q', "quiet", OPT_FLAG, &quiet, NULL, "Do not say what was done.", 0, 0},
	{0, "tactics", OPT_STR, &tactics, "LIST",
	 "Use only these tactics, separated by commas: " TACTICS_HELP_NO_TRAP
	 ". With + or - before each: the default, and these too or without them.",
	 0, 0},
	OPT_END,
};

static const struct opt_command command = {
	.name = "patch",
	.operands = "-o OUT ELF",
	.summary = "Write a copy of an ELF file with a probe at the entry and the exits of each of "
		   "its functions. The probes sleep until kron record starts the program.",
	.opts = options,
	.min_operands = 1,
	.max_operands = 1,
};

/* ---- writing the file ---- */

struct writing {
	struct output out;
	const struct elf_image *img;
	struct err *err;
};

static int failed(struct writing *w, int code)
{
	return err_set(w->err, code, "cannot write %s: %s", output, strerror(code));
}

static int put(void *ctx, uint64_t off, const void *bytes, uint64_t n, struct err *err)
{
	const uint8_t *at = bytes;
	struct writing *w = ctx;

	(void)err; /* w->err, always */
	while (n) {
		ssize_t r = pwrite(w->out.fd, at, n, (off_t)off);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return failed(w, r ? errno : EIO);
		at += r;
		off += (uint64_t)r;
		n -= (uint64_t)r;
	}
	return 0;
}

static int copy_by_hand(struct writing *w, off_t at)
{
	size_t room = 1 << 20;
	uint8_t *buf = xmalloc(room);
	int code = 0;

	while (!code && (uint64_t)at < w->img->size) {
		ssize_t r = pread(w->img->fd, buf, room, at);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			code = err_set(w->err, r ? errno : EIO, "cannot read %s: %s", w->img->path,
				       r ? strerror(errno) : "it has become shorter");
		else
			code = put(w, (uint64_t)at, buf, (uint64_t)r, w->err);
		at += r;
	}
	xfree(buf);
	return code;
}

/* The kernel copies, or shares the blocks where the file system can. */
static int copy_file(struct writing *w)
{
	off_t from = 0, to = 0;

	while ((uint64_t)from < w->img->size) {
		ssize_t r = copy_file_range(w->img->fd, &from, w->out.fd, &to,
					    w->img->size - (uint64_t)from, 0);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return copy_by_hand(w, from);
	}
	return 0;
}

/* As IN's; set-id bits only where they would mean the same. */
static int choose_mode(struct writing *w)
{
	struct stat in, out;

	if (fstat(w->img->fd, &in) || fstat(w->out.fd, &out))
		return failed(w, errno);
	w->out.mode = in.st_mode & 0777;
	if (in.st_uid == out.st_uid && in.st_gid == out.st_gid)
		w->out.mode = in.st_mode & 07777;
	return 0;
}

static int fill(struct writing *w, const struct patch_info *what, struct elf_patched *out)
{
	const struct elf_sink sink = {put, w};
	int code = copy_file(w);

	if (!code)
		code = apply_elf_make(out, &sink, w->img, what, w->err);
	return code ? code : choose_mode(w);
}

static int write_file(const struct elf_image *img, const struct patch_info *what,
		      struct elf_patched *out, struct err *err)
{
	struct writing w = {.img = img, .err = err};
	int code = output_begin(&w.out, output, OUTPUT_REGULAR, err);

	if (code)
		return code;
	code = fill(&w, what, out);
	if (!code)
		return output_end(&w.out, err);
	output_drop(&w.out);
	return code;
}

/* ---- which probes ---- */

/* Where a library's start-up code might be called. */
static struct start_hook hooks[START_HOOKS_MAX];
static size_t nhooks;
/* The function that has no probes for its sake; NULL: none. */
static char *gave_way;

static struct level_globs level_globs;
static struct probe_set probes;

/* As kron record: with -p functions only if they are asked for. */
static bool wants_functions(void)
{
	return !probes.specs.n || only.n || except.n;
}

static struct patch_event event_of(const struct resolved_event *e)
{
	const struct probe_spec *s = &probes.specs.v[e->spec];
	const char *payload = resolve_payload(e, s);

	return (struct patch_event){
		.name = xstrdup(e->name),
		.payload = payload ? xstrdup(payload) : NULL,
		.vaddr = e->vaddr,
		.number = s->has_number ? s->number : 0,
		.level = s->level,
		.has_number = s->has_number,
		.is_named = s->event,
		.is_resource = s->kind == SPEC_RESOURCE,
	};
}

static void take_events(struct patch_info *out, const struct resolution *found)
{
	out->nevents = found->events.n;
	out->events = xcalloc(out->nevents + 1, sizeof(*out->events));
	for (size_t i = 0; i < out->nevents; i++)
		out->events[i] = event_of(&found->events.v[i]);
	out->nsemaphores = found->semaphores.n;
	out->semaphores = xcalloc(out->nsemaphores + 1, sizeof(*out->semaphores));
	for (size_t i = 0; i < out->nsemaphores; i++)
		out->semaphores[i] = found->semaphores.v[i];
}

/* Every probe of -p and -P must have a place here: there is only this file.  But of packs with other
 * files' functions it may call some. */
static int check_found(const struct resolution *found, const char *path, struct err *err)
{
	for (size_t i = 0; i < found->notes.n; i++) {
		if (found->notes.v[i].nothing)
			return err_set(err, ENOENT, "%s", found->notes.v[i].text);
		cmd_fail(&command, 0, "%s", found->notes.v[i].text);
	}
	if (!found->places.n && !wants_functions())
		return err_set(err, ENOENT, "%s calls none of the functions that were asked for",
			       path);
	return 0;
}

static int plan_map(struct plan **all, struct patch_info *out, const struct code_map *map,
		    struct callsite_links *links, uint64_t handlers, struct err *err)
{
	struct plan_options opt = apply_elf_options(map->img);
	struct plan_request request;
	struct resolution found;
	int code;

	opt.tactics = tactic_set;
	opt.handlers = handlers;
	if (!probes.specs.n)
		return plan_make_from(all, map, &opt, err);
	if (links)
		resolve_make_alone(&found, &probes, map, map->img->path, links);
	else
		resolve_make(&found, &probes, map, map->img->path, true);
	request = resolve_request(&found, wants_functions());
	opt.request = &request;
	code = check_found(&found, map->img->path, err);
	if (!code)
		code = plan_make_from(all, map, &opt, err);
	if (!code && links && resolve_refused(&found, *all, links)) {
		plan_free(*all);
		*all = NULL;
		request = resolve_request(&found, wants_functions());
		code = plan_make_from(all, map, &opt, err);
	}
	if (!code) {
		resolve_mark_calls(&found, *all);
		take_events(out, &found);
	}
	resolve_free(&found);
	return code;
}

static int make_plan(struct plan **all, struct patch_info *out, const struct elf_image *img,
		     struct err *err)
{
	bool calls = probes.specs.n && callsite_is_on(tactic_set);
	struct functions fns = {0};
	uint64_t handlers = 0;
	struct callsite_links *links;
	struct code_map *map;
	int code = functions_find(&fns, img, err);

	if (code)
		return code;
	links = callsite_links_make(img);
	if (calls)
		callsite_add_stubs(&fns, img, links);
	/* woken by KRON_BOARD, a dynamic program's handlers are wrapped where it installs them */
	if (img->kind != ELF_KIND_STATIC && !no_board)
		handlers = callsite_add_stub(&fns, img, links, "sigaction");
	code = code_map_build(&map, img, &fns, err);
	if (!code) {
		code = plan_map(all, out, map, calls ? links : NULL, handlers, err);
		if (img->kind == ELF_KIND_SHARED)
			nhooks = start_hooks_find(hooks, map);
		code_map_free(map);
	}
	callsite_links_free(links);
	functions_free(&fns);
	return code;
}

static size_t function_at(const struct plan *p, uint64_t vaddr)
{
	size_t i = 0;

	while (i < p->nfunctions && (vaddr < p->functions[i].vaddr ||
				     vaddr - p->functions[i].vaddr >= p->functions[i].size))
		i++;
	return i;
}

/*
 * Where all that initialises a library has probes, as in libc, one function does without them; but
 * not if the user has said which functions he wants.  Returns how many it was.
 */
static size_t make_room(const struct plan *p, uint8_t *selected)
{
	if (no_board || only.n || start_hook_choose(hooks, nhooks, p, selected))
		return 0;
	for (size_t i = 0; i < nhooks; i++) {
		size_t f = function_at(p, hooks[i].vaddr);

		if (f == p->nfunctions || !selected[f])
			continue;
		selected[f] = 0;
		if (start_hook_choose(&hooks[i], 1, p, selected)) {
			gave_way = xstrdup(p->strings + p->functions[f].name);
			return 1;
		}
		selected[f] = 1;
	}
	return 0;
}

/* What of it goes into the file. */
static int select_probes(struct patch_info *out, const struct elf_image *img, struct plan *all,
			 struct err *err)
{
	const struct module_name name = {img->path, elf_image_soname(img)};
	const struct selection sel = {
		.only = {only.v, only.n, NULL},
		.except = {except.v, except.n, NULL},
		.levels = level_globs,
	};
	uint8_t *selected = xcalloc(all->nfunctions, 1);
	size_t n = 0, nfunctions = all->nfunctions;
	struct go_table table;
	struct err why;

	if (wants_functions())
		n = selection_mark(&sel, all, img->path, selected);
	if (n > 1)
		n -= make_room(all, selected);
	out->levels = xcalloc(all->nfunctions, 1);
	selection_levels(&sel, all, &name, out->levels);
	patch_plan_trim(all, selected, out->levels);
	out->plan = all;
	out->hook = start_hook_choose(hooks, nhooks, all, NULL);
	out->has_jumps = jumps;
	xfree(selected);
	if (n || probes.specs.n)
		return 0;
	if (!nfunctions && go_table_find(&table, img, &why) != -ENOENT)
		return err_set(err, ENOENT, "%s: no function was found in it: %s", img->path,
			       why.msg);
	if (!nfunctions)
		return err_set(err, ENOENT, "%s: no function was found in it", img->path);
	return err_set(err, ENOENT,
		       "%s: no function was selected: nothing matches -F, or -N takes all",
		       img->path);
}

static void say_copied(uint64_t n)
{
	char text[STR_NUMBER];

	if (n)
		printf("%s: %s of those refused are in code that the program copies when it runs; kron "
		       "record finds room for them in the program that is not patched\n",
		       output, str_thousands(text, sizeof(text), n));
}

static void say(const struct patch_info *what, const struct elf_image *img,
		const struct elf_patched *patched)
{
	char counts[3][STR_NUMBER], sizes[2][STR_NUMBER];
	struct plan_counts in, out, places;

	if (quiet)
		return;
	plan_count(what->plan, PROBE_ENTRY, &in);
	plan_count(what->plan, PROBE_EXIT, &out);
	plan_count(what->plan, PROBE_PLACE, &places);
	printf("%s: ", output);
	if (wants_functions())
		printf("%s entr%s, %s exit%s, ",
		       str_thousands(counts[0], sizeof(counts[0]), in.patched),
		       in.patched == 1 ? "y" : "ies",
		       str_thousands(counts[1], sizeof(counts[1]), out.patched),
		       out.patched == 1 ? "" : "s");
	if (probes.specs.n)
		printf("%s place%s", str_thousands(counts[0], sizeof(counts[0]), places.patched),
		       places.patched == 1 ? "" : "s");
	if (places.by_tactic[TACTIC_CALLSITE])
		printf(" (import: %s where functions of other files are called)",
		       str_thousands(counts[0], sizeof(counts[0]),
				     places.by_tactic[TACTIC_CALLSITE]));
	if (probes.specs.n)
		printf(", ");
	printf("%s refused; %s -> %s\n",
	       str_thousands(counts[2], sizeof(counts[2]),
			     in.found - in.patched + out.found - out.patched + places.found -
				     places.patched - places.refused[REFUSAL_NOT_REACHED]),
	       str_bytes(sizes[0], sizeof(sizes[0]), img->size),
	       str_bytes(sizes[1], sizeof(sizes[1]), patched->size));
	say_copied(in.refused[REFUSAL_COPIED] + out.refused[REFUSAL_COPIED] +
		   places.refused[REFUSAL_COPIED]);
	if (img->kind == ELF_KIND_SHARED && !what->hook && !no_board)
		printf("%s: wakes under kron record, but not by KRON_BOARD: no function that "
		       "initialises it has room for a jump\n",
		       output);
	if (gave_way && what->hook)
		printf("%s: %s initialises it and has no probes, for KRON_BOARD wakes the others "
		       "there; with --no-board it has\n",
		       output, gave_way);
}

static int write_patched(const struct elf_image *img, const struct patch_info *what,
			 struct err *err)
{
	struct elf_patched patched;
	int code = write_file(img, what, &patched, err);

	if (!code)
		say(what, img, &patched);
	return code;
}

/* Go's runtime makes errors of faults, by their addresses; asleep nobody puts those right. */
static int check_jumps(const struct elf_image *img, struct err *err)
{
	if (!jumps || !img->is_go || img->kind == ELF_KIND_STATIC)
		return 0;
	return err_set(err, ENOTSUP,
		       "%s is a dynamic Go program, which must see faults where they happen: not "
		       "with --jumps",
		       img->path);
}

static int patch(const struct elf_image *img, struct err *err)
{
	struct patch_info what = {.first_number = (uint32_t)first_number, .no_board = no_board};
	struct plan *all = NULL;
	int code = apply_elf_check(img, err);

	if (!code)
		code = check_jumps(img, err);
	if (!code)
		code = make_plan(&all, &what, img, err);
	if (!code)
		code = select_probes(&what, img, all, err);
	else
		plan_free(all);
	if (!code)
		code = write_patched(img, &what, err);
	patch_info_free(&what);
	return code;
}

static int check_options(struct err *err)
{
	if (tactics && tactics_parse(&tactic_set, tactics, err))
		return -EINVAL;
	if (first_number > KRON_EVENT_SPECIAL / 4)
		return err_set(err, EINVAL, "--first-number %" PRIu64 " is too large",
			       first_number);
	if (tactic_set & USE_INT3)
		return err_set(err, EINVAL, "int3 wants kron's runtime: not in a file on disk");
	return 0;
}

int cmd_patch(int argc, char **argv)
{
	struct elf_image *img;
	struct err err;
	int status, first = cmd_parse(&command, argc, argv, &status);

	if (!first)
		return status;
	if (!output || !*output)
		return cmd_fail(&command, CMD_USAGE,
				"-o OUT is needed (`kron patch --help` shows the usage)");
	if (levels_take(&level_globs, &levels, &err) ||
	    probe_options_read(&probes, &specs, &files, level_globs.others, &err) ||
	    check_options(&err))
		return cmd_fail(&command, CMD_USAGE, "%s (`kron patch --help` shows the usage)",
				err.msg);
	vec_for(&probes.specs, s)
		if (s->kind == SPEC_PAGES)
			return cmd_fail(&command, CMD_USAGE,
					"pages are counted by `kron pages`, not in a file");
	if (probe_set_has_virtual(&probes))
		return cmd_fail(
			&command, CMD_USAGE,
			"a file that is patched counts with counters 0 to 15: those above are "
			"for `kron record`");
	probes.no_callsites = true; /* those are other files, but for calls that this one makes */
	if (elf_image_open(&img, argv[first], &err))
		return cmd_fail(&command, CMD_ERROR, "%s", err.msg);
	status = patch(img, &err) ? cmd_fail(&command, CMD_ERROR, "%s", err.msg) : CMD_OK;
	elf_image_close(img);
	return cmd_finish(&command, status);
}
