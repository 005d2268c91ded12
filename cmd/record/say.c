/* SPDX-License-Identifier: MIT */
/* say.c - see say.h. */
#define _GNU_SOURCE
#include "cmd/record/say.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/paths.h"
#include "base/str.h"
#include "base/vec.h"
#include "board/bus/node.h"
#include "cmd/cmd.h"
#include "collect/modules/choices.h"

static const struct say_options *o;

void say_begin(const struct say_options *options)
{
	o = options;
}

/* One line, one write: other programs may use the same terminal. */
void say(const char *fmt, ...)
{
	char text[2048];
	va_list ap;
	int n;

	if (o->quiet)
		return;
	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text) - 1, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if (n > (int)sizeof(text) - 2)
		n = (int)sizeof(text) - 2;
	text[n] = '\n';
	if (write(STDERR_FILENO, text, (size_t)n + 1) < 0)
		return; /* nowhere to say it */
}

/* ---- notes ---- */

static const char *signal_name(int sig, char *buf, size_t size)
{
	const char *abbrev = sigabbrev_np(sig);

	if (abbrev)
		snprintf(buf, size, "SIG%s", abbrev);
	else
		snprintf(buf, size, "signal %d", sig);
	return buf;
}

/* Another probe of the same event found a place. */
static bool has_alternative(const struct probe_results *r, size_t spec)
{
	const struct probe_spec *s = &o->probes->specs.v[spec], *other = o->probes->specs.v;

	for (size_t i = 0; s->event && i < r->n; i++, other++)
		if (r->v[i].places && other->event && !strcmp(other->event, s->event) &&
		    other->level == s->level)
			return true;
	return false;
}

/* No module of the program was meant by it. */
static bool is_elsewhere(const struct probe_results *r, size_t spec)
{
	return !r->v[spec].places && !r->v[spec].notes.n &&
	       !probe_spec_gave_up(&o->probes->specs.v[spec]) &&
	       (o->verbose || !has_alternative(r, spec));
}

/* "FILE:12": how much of it is FILE. */
static size_t file_length(const struct probe_spec *s)
{
	const char *colon = strrchr(s->where, ':');

	return colon ? (size_t)(colon - s->where) : strlen(s->where);
}

static bool are_of_one_file(const struct probe_spec *a, const struct probe_spec *b)
{
	const size_t n = file_length(a);

	return file_length(b) == n && !strncmp(a->where, b->where, n);
}

/* What a pack knows, where the names of what it is about do not say it. */
static const char *pack_limits(const char *pack)
{
	return !strcmp(pack, "mpi") ? ": it knows Open MPI 4 only, no other version and no MPICH"
				    : "";
}

/* The program has nothing that one of its probes means. */
static void say_whole_file(const char *file, size_t n)
{
	char path[4096], found[4096], *name, *end;

	snprintf(path, sizeof(path), "%.*s", (int)n, file);
	name = xstrdup(str_base_name(path));
	end = strrchr(name, '.');
	if (end)
		*end = 0;
	if (!paths_pack(found, sizeof(found), name) && !strcmp(found, path))
		say("kron: pack %s: the program loaded no module that it is about%s", name,
		    pack_limits(name));
	else
		say("kron: %s: the program loaded no module that its probes mean", path);
	xfree(name);
}

/* The probes of one file, a pack mostly, in one line, by the first of them. */
static void say_elsewhere(const struct probe_results *r, size_t spec)
{
	const struct probe_spec *all = o->probes->specs.v, *s = &all[spec];
	bool is_whole = true;
	size_t more = 0;

	for (size_t i = 0; i < r->n; i++) {
		if (i == spec || !are_of_one_file(s, &all[i]))
			continue;
		if (!is_elsewhere(r, i)) {
			is_whole = false;
			continue;
		}
		if (i < spec)
			return;
		more++;
	}
	if (more && is_whole)
		say_whole_file(s->where, file_length(s));
	else if (!more)
		say("kron: %s: %s: the program loaded no module that this means", s->where,
		    s->text);
	else
		say("kron: %.*s: %s and %zu more: the program loaded no module that they mean",
		    (int)file_length(s), s->where, s->text, more);
}

/* Probes that found no place, and what is wrong with those that did. */
static void say_probes(const struct collector *c)
{
	const struct probe_results *r = &c->modules.results;

	for (size_t i = 0; i < r->n; i++) {
		const struct probe_spec *s = &o->probes->specs.v[i];

		if (!r->v[i].places && !o->verbose && has_alternative(r, i))
			continue;
		for (size_t k = 0; k < r->v[i].notes.n; k++)
			if (!r->v[i].places || o->verbose || probe_spec_gave_up(s))
				say("kron: %s: %s", s->where, r->v[i].notes.v[k]);
		if (!r->v[i].places && !r->v[i].notes.n && probe_spec_gave_up(s))
			say("kron: %s: %s: the expression takes too long for some paths: a simpler "
			    "one will do",
			    s->where, s->text);
		else if (is_elsewhere(r, i))
			say_elsewhere(r, i);
	}
}

/* After the last library has come. */
static void say_libraries(const struct globs *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (!globs_has_found(g, i) && strcmp(g->v[i], "*"))
			say("kron: no library was loaded that -L '%s' matches", g->v[i]);
}

void say_untraced(struct collector *c, const struct program *p)
{
	vec_for(&c->server.untraced.v, u) {
		char *text = untraced_sentence(u);

		if (p->verdict != PROGRAM_TRACEABLE && !strcmp(text, p->why.msg))
			; /* said below */
		else if (u->count > 1)
			say("kron: untraced (%" PRIu64 " times): %s", u->count, text);
		else
			say("kron: untraced: %s", text);
		xfree(text);
	}
}

void say_notes(struct collector *c, const struct collector_summary *s, const struct program *p,
	       const struct child *child)
{
	char buf[STR_NUMBER], left[STR_NUMBER];

	say_untraced(c, p);
	if (p->verdict != PROGRAM_TRACEABLE)
		say("kron: the program ran untraced: %s", p->why.msg);
	else if (s->starts && !s->modules && !o->probes->specs.n && !c->server.untraced.v.n)
		say("kron: no function was selected: nothing matches -F, or -N takes all");
	else if (s->starts && !s->probes && s->refused && !o->counting)
		say("kron: no probe could be placed: `kron info %s` says why", c->opt.dir);
	if (s->starts)
		say_libraries(&c->opt.selection.libraries);
	if (s->left_out)
		say("kron: a process asked for plans, or executed programs that have no samples, again "
		    "and again: %s of them are not in the trace's table of processes",
		    str_thousands(left, sizeof(left), s->left_out));
	say_probes(c);
	if (o->attached)
		; /* they are let go without a word of it here */
	else if (child->signal && !child->ended)
		say("kron: %s: recording ends; the program (pid %d) still runs, untraced from here",
		    signal_name(child->signal, buf, sizeof(buf)), child->pid);
	else if (s->living)
		say("kron: %u traced %s still %s, untraced from here", s->living,
		    s->living == 1 ? "process" : "processes", s->living == 1 ? "runs" : "run");
	if (c->server.debugged)
		say("kron: %s: breakpoints at functions are hit, those at instructions that probes "
		    "have displaced are not",
		    c->server.debugged);
	if (c->seg.pool_limited)
		say("kron: /dev/shm is small: the buffer can grow to %" PRIu64 " MiB only",
		    (uint64_t)segment_limit(&c->seg) * KRON_CHUNK_SIZE >> 20);
	if (s->lost && c->seg.follows_cgroups && c->seg.cgroup_left != CGROUP_NO_LIMIT)
		say("kron: the buffer grew to %s, for the memory cgroup had %s left: -b asks for "
		    "more, --when-full wait loses nothing",
		    str_bytes(buf, sizeof(buf), (uint64_t)segment_ready(&c->seg) * KRON_CHUNK_SIZE),
		    str_bytes(left, sizeof(left), c->seg.cgroup_left));
	if (c->seg.unnamed)
		say("kron: no name in /dev/shm (%s): kron ctl, status and top did not find this "
		    "recording",
		    strerror(-c->seg.unnamed));
}

/* Before the program starts: a size that was asked for is kept, whatever comes of it. */
void say_node(const struct collector *c)
{
	struct node n;

	node_default(&n);
	if (n.unfit && c->opt.node == NODE_DEFAULT && !c->seg.stays && !o->counting)
		say("kron: %s is %s, but a node is a number from 0 to %u: this is node %u now, and --node "
		    "says another",
		    n.unfit, n.unfit_value, NODE_MAX, c->seg.ctl->node & NODE_MAX);
}

void say_buffer(const struct segment *seg)
{
	uint64_t most = (uint64_t)segment_limit(seg) * KRON_CHUNK_SIZE;
	char size[STR_NUMBER], left[STR_NUMBER];

	if (!seg->follows_cgroups && most > seg->cgroup_left)
		say("kron: the buffer may grow to %s, but the memory cgroup has %s left: the "
		    "kernel may kill the program, or kron, for it",
		    str_bytes(size, sizeof(size), most),
		    str_bytes(left, sizeof(left), seg->cgroup_left));
}

/* What the board itself has counted. */
static void say_board(const struct collector_summary *s)
{
	char overruns[STR_NUMBER], gone[STR_NUMBER], waits[STR_NUMBER];

	say("kron: board: %s triggers found its FIFO full, %s samples were overwritten in its "
	    "memory, %s clocks of waiting; a bus cycle costs %.1f ns here",
	    str_thousands(overruns, sizeof(overruns), s->overruns),
	    str_thousands(gone, sizeof(gone), s->overwritten),
	    str_thousands(waits, sizeof(waits), s->waited), s->cost.on);
}

static void say_details(const struct collector *c, const struct collector_summary *s)
{
	char size[STR_NUMBER];

	say("kron: %" PRIu64 " modules with %s probes; %" PRIu64 " processes, %" PRIu64
	    " threads; %.3f s",
	    s->modules, str_thousands(size, sizeof(size), s->probes), s->processes, s->threads,
	    s->seconds);
	if (c->opt.bus == KRON_BUS_EXACT)
		say_board(s);
	else if (c->opt.bus == KRON_BUS_LANE)
		say("kron: a probe costs %.1f ns here (rdtsc and a store: %.1f ns), switched off "
		    "%.1f ns; the buffer grew to %s",
		    s->cost.on, s->cost.limit, s->cost.off,
		    str_bytes(size, sizeof(size),
			      (uint64_t)segment_ready(&c->seg) * KRON_CHUNK_SIZE));
}

static void say_hardware_summary(const struct collector *c, const struct collector_summary *s)
{
	char samples[STR_NUMBER], lost[STR_NUMBER];

	str_thousands(lost, sizeof(lost), s->lost + s->hardware.overruns);
	if (s->hardware_answers)
		say("kron: %s samples are on the board at %s, %s lost; `mk_rdsample --board %s` "
		    "fetches them; the functions' names -> %s",
		    str_thousands(samples, sizeof(samples), s->hardware.samples), c->opt.hardware,
		    lost, c->opt.hardware, o->output);
	else
		say("kron: %s is memory and no board: it took the stores of the probes, %s were "
		    "not made, and there are no samples; the functions' names -> %s",
		    c->opt.hardware, lost, o->output);
}

static bool has_said_unknown;

void say_unknown_yet(const struct watch *w)
{
	char name[128];

	if (!w || !watch_unknown_yet(w, name, sizeof(name)))
		return;
	has_said_unknown = true;
	say("kron: %s: nothing that has a probe so far is called '%s'", watch_label(w), name);
}

static void say_trigger(const struct collector_summary *s)
{
	char number[STR_NUMBER];

	str_thousands(number, sizeof(number), s->outside);
	if (s->fired_by[0])
		say("kron: the trigger of %s fired after %.6f s of this recording; %s samples were "
		    "not near it",
		    s->fired_by, (double)s->fired_ns / 1e9, number);
	else if (s->fired_ns)
		say("kron: the trigger fired after %.6f s; %s samples were not near it",
		    (double)s->fired_ns / 1e9, number);
	else
		say("kron: the trigger never fired; %s samples were discarded", number);
	if (s->unknown[0])
		say("kron: nothing that got a probe is called '%s', as the trigger says",
		    s->unknown);
	if (s->lost && !s->fired_ns)
		say("kron: %s samples were lost before the trigger saw them, because the buffer was "
		    "full: a larger --buffer, or --when-full wait, keeps them",
		    str_thousands(number, sizeof(number), s->lost));
	if (s->unsure)
		say("kron: %s times a sample that was waited for may be among those that were lost: "
		    "the trigger did not fire then",
		    str_thousands(number, sizeof(number), s->unsure));
}

/* What DIR itself has no samples of. */
static void say_flight(const struct collector *c, const struct collector_summary *s,
		       const char *cost)
{
	const bool looks = c->watch != NULL;
	char lost[STR_NUMBER];

	if (s->unkept.msg[0])
		fprintf(stderr, "kron: not every snapshot could be taken: %s\n", s->unkept.msg);
	str_thousands(lost, sizeof(lost), looks ? s->outside : s->lost);
	if (s->snapshots)
		say("kron: %" PRIu32 " snapshot%s, the last one %s/%03" PRIu32
		    "; %s samples went by before it, probes cost %s",
		    s->snapshots, s->snapshots == 1 ? "" : "s", o->output, s->last_snapshot, lost,
		    cost);
	if (looks && s->lost)
		say("kron: %s samples were lost before anybody had looked at them%s: a larger --flight "
		    "leaves more room for that",
		    str_thousands(lost, sizeof(lost), s->lost),
		    c->worst_trigger ? ", and maybe slower calls than those that were kept" : "");
	if (s->unsure)
		say("kron: of %s calls nobody knows how they went on, because samples were lost: no "
		    "snapshot was taken for them",
		    str_thousands(lost, sizeof(lost), s->unsure));
	if (s->unknown[0] && !has_said_unknown)
		say("kron: nothing that got a probe is called '%s', as %s says", s->unknown,
		    watch_label(c->watch));
}

static void say_summary(struct collector *c, const struct collector_summary *s)
{
	char samples[STR_NUMBER], lost[STR_NUMBER], refused[STR_NUMBER], cost[COST_TEXT];

	if (o->verbose)
		say_details(c, s);
	if (c->opt.bus == KRON_BUS_HARDWARE) {
		say_hardware_summary(c, s);
		return;
	}
	/* a kill costs a thread one at most, and is no news */
	if (s->cut_off && (o->verbose || s->cut_off > s->threads))
		say("kron: %" PRIu64 " sample%s cut off by a kill or a longjmp, besides those lost",
		    s->cut_off, s->cut_off == 1 ? " was" : "s were");
	if (c->fetch.damaged)
		say("kron: %" PRIu64 " words of the board's memory belong to no sample: something "
		    "wrote over it",
		    c->fetch.damaged);
	if (c->opt.watch.trigger)
		say_trigger(s);
	if (c->flight) {
		say_flight(c, s, cost_text(cost, &s->probes_cost));
		return;
	}
	say("kron: %s samples, %s lost, %s sites refused, probes cost %s -> %s",
	    str_thousands(samples, sizeof(samples), s->samples),
	    str_thousands(lost, sizeof(lost), s->lost),
	    str_thousands(refused, sizeof(refused), s->refused), cost_text(cost, &s->probes_cost),
	    o->output);
}

/* The disk is full: say what is where.  Not silenced by -q. */
static void explain_failure(const struct collector_summary *s)
{
	char file[STR_NUMBER], segment[STR_NUMBER];

	cmd_fail(o->command, 0,
		 "%s: %s samples are in %s, %s more in shared memory (%s): make room, then "
		 "`kron recover %s` adds them",
		 s->error.msg, str_thousands(file, sizeof(file), s->samples), o->output,
		 str_thousands(segment, sizeof(segment), s->stranded), s->segment, o->output);
}

/* Likewise. */
static void explain_cut(const struct collector_summary *s)
{
	char file[STR_NUMBER];

	cmd_fail(o->command, 0,
		 "another process cut off the shared memory of board %s, and the recording ended "
		 "then; %s samples are in %s",
		 o->board, str_thousands(file, sizeof(file), s->samples), o->output);
}

/* Of `kron stat`: what its table lacks. */
static void say_uncounted(const struct collector_summary *s)
{
	char number[STR_NUMBER];

	if (s->refused)
		say("kron: %s of the functions are not counted, or only where other modules call them (import): their "
		    "entries cannot be probed (`kron list` says why)",
		    str_thousands(number, sizeof(number), s->refused));
	if (s->lost)
		say("kron: %s calls are not counted: their threads had no memory for it",
		    str_thousands(number, sizeof(number), s->lost));
}

static void say_choice(void *ctx, const char *sentence)
{
	(void)ctx;
	say("kron: %s", sentence);
}

static void say_recorded(struct collector *c, const struct collector_summary *s)
{
	static const struct choice_words words = {"recorded", "-F '*", "*'"};

	if (c->all_ended) /* else a thread still plans with what is there */
		choices_each(&c->modules, &words, say_choice, NULL);
	say_summary(c, s);
}

void say_end(struct collector *c, const struct collector_summary *s)
{
	if (s->error.msg[0])
		explain_failure(s);
	else if (s->cut)
		explain_cut(s);
	else if (o->counting)
		say_uncounted(s);
	else
		say_recorded(c, s);
}
