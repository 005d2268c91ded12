/* SPDX-License-Identifier: MIT */
/*
 * stat.c - kron stat: runs a program and counts the calls of its functions.
 *
 * The counters are the collector's (collect/counts.h).  The trace that a recording leaves holds only
 * tables here, in a folder that goes at the end.
 *
 * Exit status: as kron record's.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/output.h"
#include "base/str.h"
#include "base/temp.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "cmd/record/record.h"
#include "cmd/record/say.h"
#include "collect/counts.h"
#include "collect/modules/choices.h"
#include "inject/bind/bind.h"

enum { OWN_FAILURE = 125 };

static struct record_counting counting;
static const char *path;
static bool json;

static const struct opt options[] = {
	{'F', "function", OPT_LIST, &counting.only, "GLOB",
	 "Count only functions whose name matches GLOB. May be repeated.", 0, 0},
	{'N', "no-function", OPT_LIST, &counting.except, "GLOB",
	 "Do not count functions whose name matches GLOB. May be repeated.", 0, 0},
	{'L', "library", OPT_LIST, &counting.libraries, "GLOB",
	 "Also count in the libraries whose file name, soname or path matches GLOB: 'libz*', or '*' for all. "
	 "May be repeated.",
	 0, 0},
	{0, "json", OPT_FLAG, &json, NULL,
	 "Print a JSON array of objects with function, module and calls. Without -o it stands alone on "
	 "standard error: kron's notes are left out, as with -q.",
	 0, 0},
	{'o', "output", OPT_STR, &path, "FILE",
	 "Write the table to FILE. Default: to standard error, for standard output is the program's.",
	 0, 0},
	{'p', "pid", OPT_LIST, &counting.pids, "PID[,PID]...",
	 "Count in these processes, which run already, instead of a program that is started. They run on "
	 "afterwards.",
	 0, 0},
	{0, "for", OPT_STR, &counting.lasting, "TIME",
	 "With --pid: end after this time, like 5s or 500ms. Default: at Ctrl-C, or when all of them have "
	 "ended.",
	 0, 0},
	{0, "no-children", OPT_FLAG, &counting.no_children, NULL,
	 "Do not count in the programs that the program starts.", 0, 0},
	{'q', "quiet", OPT_FLAG, &counting.quiet, NULL, "Print no notes: the table only.", 0, 0},
	OPT_END,
};

static const struct opt_command command = {
	.name = "stat",
	.operands = "[--] CMD [ARG]... | --pid PID",
	.summary = "Run CMD and count the calls of each of its functions, exactly.",
	.opts = options,
	.stop_at_operand = true,
	.usage_status = OWN_FAILURE,
};

/* ---- what was counted ---- */

struct row {
	char *function;
	const char *module;
	uint64_t calls;
	bool is_resolver; /* of an IFUNC: it is called once, to choose */
	bool is_imported; /* counted where other code calls it */
};
struct rows { /* as VEC() has it */
	struct row *v;
	size_t n, cap;
};

static void add_rows(struct rows *rows, const struct module *m, const uint64_t *counts)
{
	for (uint32_t i = 0; i < m->full->nfunctions; i++) {
		const struct plan_function *f = &m->full->functions[i];
		const char *name = m->full->strings + f->name;
		uint64_t calls = counts[m->event_base + i];

		if (!m->selected[i] || !calls)
			continue;
		*vec_push(rows) = (struct row){
			.function = *name ? xstrdup(name)
					  : xasprintf("%s+0x%" PRIx64, str_base_name(m->path),
						      f->vaddr),
			.module = m->path,
			.calls = calls,
			.is_resolver = module_is_resolver(m, i),
			.is_imported = module_is_imported(m, i),
		};
	}
}

static int compare(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int order;

	if (x->calls != y->calls)
		return x->calls < y->calls ? 1 : -1;
	order = strcmp(x->function, y->function);
	return order ? order : strcmp(x->module, y->module);
}

static void take_rows(struct rows *rows, struct collector *c)
{
	uint64_t *counts = xcalloc(KRON_CALLS_MAX, sizeof(*counts));

	calls_read(&c->seg, counts, KRON_CALLS_MAX);
	vec_for(&c->modules.all, m)
		if ((*m)->recorded && (*m)->full)
			add_rows(rows, *m, counts);
	xfree(counts);
	if (rows->n)
		qsort(rows->v, rows->n, sizeof(*rows->v), compare);
}

/* ---- who names an IFUNC means what it chooses ---- */

static void say_choice(void *ctx, const char *sentence)
{
	(void)ctx;
	say("kron: %s", sentence);
}

static void say_choices(struct collector *c)
{
	static const struct choice_words words = {"counted", "-F '*", "*'"};

	choices_each(&c->modules, &words, say_choice, NULL);
}

/* ---- how it is shown ---- */

/* "": it is counted where it begins. */
static const char *row_mark(const struct row *r)
{
	return r->is_imported ? "import" : r->is_resolver ? "resolver" : "";
}

static void print_json(FILE *f, struct rows *rows)
{
	struct json j = JSON_INIT(f);

	json_open(&j, '[');
	vec_for(rows, r) {
		json_open(&j, '{');
		json_kstr(&j, "function", r->function);
		json_kstr(&j, "module", r->module);
		json_ku64(&j, "calls", r->calls);
		if (*row_mark(r)) {
			json_key(&j, row_mark(r));
			json_bool(&j, true);
		}
		json_close(&j, '}');
	}
	json_close(&j, ']');
	putc('\n', f);
}

static void print_table(FILE *f, struct rows *rows)
{
	char number[STR_NUMBER];
	uint64_t total = 0;

	fprintf(f, "%18s  %-40s %s\n", "calls", "function", "module");
	vec_for(rows, r) {
		const char *mark = row_mark(r);

		total += r->calls;
		fprintf(f, "%18s  %-40s %s%s%s%s\n",
			str_thousands(number, sizeof(number), r->calls), r->function,
			str_base_name(r->module), *mark ? " (" : "", mark, *mark ? ")" : "");
	}
	fprintf(f, "%18s  in %zu functions\n", str_thousands(number, sizeof(number), total),
		rows->n);
}

/* Begun before the program is: what it has counted is not to be lost for a name. */
static struct output out;
static bool is_begun;

static int write_rows(struct rows *rows)
{
	struct err err;

	if (!path) {
		(json ? print_json : print_table)(stderr, rows);
		return 0;
	}
	is_begun = false;
	(json ? print_json : print_table)(output_stream(&out), rows);
	return output_end(&out, &err) ? cmd_fail(&command, OWN_FAILURE, "%s", err.msg) : 0;
}

/* ---- all together ---- */

static struct temp folder;

/* What comes after it may be a signal that ends us as it ended the program. */
static int show(struct collector *c, const struct collector_summary *s)
{
	struct rows rows = {0};
	int code;

	(void)s;
	take_rows(&rows, c);
	say_choices(c);
	code = write_rows(&rows);
	vec_for(&rows, r)
		xfree(r->function);
	vec_free(&rows);
	temp_close(&folder);
	return code;
}

int cmd_stat(int argc, char **argv)
{
	int status, first = cmd_parse(&command, argc, argv, &status);
	struct err err;
	char *dir;

	if (!first)
		return status;
	if (cmd_temp_folder(&folder, &command, &err))
		return cmd_fail(&command, OWN_FAILURE, "%s", err.msg);
	dir = xasprintf("%s/trace", folder.path);
	counting.command = &command;
	counting.dir = dir;
	counting.at_end = show;
	counting.quiet |= json && !path; /* who reads it as JSON reads nothing else */
	if (path && output_begin(&out, path, OUTPUT_STREAM, &err)) {
		status = cmd_fail(&command, OWN_FAILURE, "%s", err.msg);
	} else {
		is_begun = path;
		status = record_count(&counting, argv + first);
	}
	if (is_begun)
		output_drop(&out);
	temp_close(&folder);
	xfree(dir);
	return status;
}
