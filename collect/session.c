/* SPDX-License-Identifier: MIT */
/* session.c - see session.h */
#define _GNU_SOURCE
#include "collect/session.h"

#include <cpuid.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/boot.h"
#include "board/bus/node.h"
#include "collect/counts.h"

static const char *const when_full_words[] = {"discard", "wait", "wrap"};
static const char *const bus_words[] = {"lane", "exact", "device"};

/* "Intel(R) Xeon(R) ...", from the processor itself: /proc/cpuinfo takes the kernel long. */
static void cpu_name(char *out, size_t size)
{
	unsigned words[12], max = __get_cpuid_max(0x80000000, NULL);
	const char *p = (const char *)words;

	out[0] = 0;
	if (max < 0x80000004)
		return;
	for (unsigned i = 0; i < 3; i++)
		__cpuid(0x80000002 + i, words[4 * i], words[4 * i + 1], words[4 * i + 2],
			words[4 * i + 3]);
	while (*p == ' ' && p < (const char *)words + sizeof(words) - 1)
		p++;
	snprintf(out, size, "%.*s", (int)((const char *)words + sizeof(words) - p), p);
}

/* The only line of a file of the kernel's; nothing where there is none. */
static void write_line_of(struct journal *j, const char *key, const char *path)
{
	char line[80];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, line, sizeof(line) - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return;
	line[n] = 0;
	line[strcspn(line, "\n")] = 0;
	journal_session(j, key, "%s", line);
}

static void write_node(struct journal *j, const struct segment *seg,
		       const struct collector_options *opt)
{
	struct node n;

	node_default(&n);
	journal_session(j, "node", "%u", seg->ctl->node & NODE_MAX);
	if (opt->node != NODE_DEFAULT)
		n.from = "--node";
	else if (seg->stays)
		n.from = "the board";
	if (n.from)
		journal_session(j, "node_from", "%s", n.from);
}

/* Of nodes with one boot id the processors' counters are one clock. */
void session_write_machine(struct journal *j)
{
	struct utsname u = {0};
	char cpu[64];

	uname(&u);
	cpu_name(cpu, sizeof(cpu));
	journal_session(j, "hostname", "%s", u.nodename);
	journal_session(j, "kernel", "%s %s", u.sysname, u.release);
	journal_session(j, "cpu", "%s", cpu);
	journal_session(j, "ncpu", "%ld", sysconf(_SC_NPROCESSORS_ONLN));
	if (boot_id()[0])
		journal_session(j, "boot_id", "%s", boot_id());
	write_line_of(j, "clocksource",
		      "/sys/devices/system/clocksource/clocksource0/current_clocksource");
}

static void write_globs(struct journal *j, const char *key, const struct globs *g)
{
	char *all = xstrdup(g->v[0]);

	for (size_t i = 1; i < g->n; i++) {
		char *more = xasprintf("%s\n%s", all, g->v[i]);

		xfree(all);
		all = more;
	}
	journal_session(j, key, "%s", all);
	xfree(all);
}

void session_write_start(struct journal *j, const struct segment *seg,
			 const struct collector_options *opt, const struct time_point *start)
{
	journal_session(j, "command", "%s", opt->command);
	session_write_machine(j);
	write_node(j, seg, opt);
	journal_session(j, "kron", "%s", opt->version);
	journal_session(j, "segment", "%s", seg->name);
	journal_session(j, "recording", "%016" PRIx64, object_note(seg->ctl)->recording);
	journal_session(j, "collector_pid", "%d", getpid());
	journal_session(j, "bus", "%s", bus_words[opt->bus]);
	if (opt->bus == KRON_BUS_HARDWARE)
		journal_session(j, "device", "%s", opt->hardware);
	if (opt->bus == KRON_BUS_EXACT)
		journal_session(j, "board_overruns_before", "%u",
				board_read32(&seg->window.board,
					     KRON_CHIP_BYTE(KRON_WORD_OVERRUN)));
	if (opt->watch.trigger)
		journal_session(j, "trigger", "%s",
				strcmp(opt->watch.trigger, WATCH_OTHERS_ONLY) != 0
					? opt->watch.trigger
					: "none; the others of its group have theirs");
	if (opt->flight.text)
		journal_session(j, "flight", "%s", opt->flight.text);
	if (opt->clock_every > 1)
		journal_session(j, "clock_every", "%u", opt->clock_every);
	if (opt->selection.timed.n)
		write_globs(j, "timed", &opt->selection.timed);
	if (opt->budget)
		journal_session(j, "budget", "%s", opt->budget);
	if (opt->selection.keep.n)
		write_globs(j, "keep", &opt->selection.keep);
	if (opt->constant_time)
		journal_session(j, "constant_time", "1");
	journal_session(j, "when_full", "%s", when_full_words[opt->when_full]);
	journal_session(j, "buffer", "%" PRIu64, (uint64_t)segment_limit(seg) * KRON_CHUNK_SIZE);
	journal_session(j, "filter", "%x", seg->ctl->filter);
	journal_session(j, "start_tsc", "%" PRIu64, start->tsc);
	journal_session(j, "start_mono_ns", "%" PRIu64, start->mono_ns);
	journal_session(j, "start_real_ns", "%" PRIu64, start->real_ns);
}

void session_write_end(struct journal *j, const char *how, const struct time_point *end, double hz,
		       const struct collector_summary *s, const struct collector_options *opt)
{
	journal_session(j, "exit", "%s", how);
	journal_session(j, "samples", "%" PRIu64, s->samples);
	journal_session(j, "lost", "%" PRIu64, s->lost);
	journal_session(j, "cut_off", "%" PRIu64, s->cut_off);
	journal_session(j, "overwritten", "%" PRIu64, s->overwritten);
	if (opt->bus != KRON_BUS_LANE) {
		journal_session(j, "board_overruns", "%" PRIu64,
				opt->bus == KRON_BUS_EXACT ? s->overruns : s->hardware.overruns);
		journal_session(j, "board_waits", "%" PRIu64, s->waited);
	}
	if (opt->bus == KRON_BUS_HARDWARE && s->hardware_answers)
		journal_session(j, "board_samples", "%" PRIu64, s->hardware.samples);
	if (opt->watch.trigger) {
		journal_session(j, "trigger_ns", "%" PRIu64, s->fired_ns);
		if (s->fired_by[0])
			journal_session(j, "trigger_by", "%s", s->fired_by);
		journal_session(j, "outside", "%" PRIu64, s->outside);
		journal_session(j, "unsure", "%" PRIu64, s->unsure);
	}
	if (opt->flight.text)
		journal_session(j, "ring_samples", "%" PRIu64, s->ring_samples);
	journal_session(j, "probes", "%" PRIu64, s->probes);
	journal_session(j, "refused", "%" PRIu64, s->refused);
	if (s->unnoted_maps)
		journal_session(j, "unnoted_maps", "%" PRIu64, s->unnoted_maps);
	counts_write(j, s->counts);
	journal_session(j, "processes", "%" PRIu64, s->processes);
	if (s->left_out)
		journal_session(j, "left_out", "%" PRIu64, s->left_out);
	journal_session(j, "threads", "%" PRIu64, s->threads);
	journal_session(j, "cpu_ns", "%" PRIu64, s->probes_cost.cpu_ns);
	journal_probe_cost(j, &s->cost);
	journal_session(j, "tsc_hz", "%.0f", hz);
	journal_session(j, "end_mono_ns", "%" PRIu64, end->mono_ns);
	/* Last: a trace with this line is complete. */
	journal_session(j, "end_tsc", "%" PRIu64, end->tsc);
}
