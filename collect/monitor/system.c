/* SPDX-License-Identifier: MIT */
/* system.c - see system.h */
#include "collect/monitor/system.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "collect/kernel/process_maps.h"

/* ---- processors ---- */

/* "cpu3 user nice system idle iowait irq softirq steal ...": guest time is in user. */
static bool parse_cpu(const char *line, long *number, struct reading *out)
{
	uint64_t t[8] = {0};
	char name[16];

	if (sscanf(line,
		   "%15s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64 " %" SCNu64,
		   name, &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) < 5 ||
	    strncmp(name, "cpu", 3))
		return false;
	if (!name[3])
		*number = -1;
	else if (sscanf(name + 3, "%ld", number) != 1)
		return false;
	*out = (struct reading){.n = t[3] + t[4], .known = true};
	for (size_t i = 0; i < 8; i++)
		out->of += t[i];
	return true;
}

size_t system_read_idle(struct reading *out, size_t n)
{
	char line[512];
	size_t seen = 0;
	FILE *f = fopen("/proc/stat", "re");

	memset(out, 0, n * sizeof(*out));
	while (f && fgets(line, sizeof(line), f)) {
		struct reading r;
		long number;

		if (!parse_cpu(line, &number, &r))
			break;
		if (number + 1 >= 0 && (size_t)(number + 1) < n)
			out[number + 1] = r;
		seen++;
	}
	if (f)
		fclose(f);
	return seen;
}

size_t system_processors(void)
{
	const long n = sysconf(_SC_NPROCESSORS_CONF);

	return n > 0 ? (size_t)n : 1;
}

/* ---- block devices ---- */

static bool read_io(pid_t pid, uint64_t *in, uint64_t *out)
{
	char path[64], line[128];
	int found = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/io", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		found += sscanf(line, "read_bytes: %" SCNu64, in) == 1;
		found += sscanf(line, "write_bytes: %" SCNu64, out) == 1;
	}
	if (f)
		fclose(f);
	return found == 2;
}

int system_io_check(pid_t pid, struct err *err)
{
	uint64_t in, out;

	if (read_io(pid, &in, &out))
		return 0;
	return err_set(err, EACCES,
		       "/proc/%d/io cannot be read: the process is another user's, or this kernel "
		       "does not count bytes of block devices",
		       pid);
}

static bool is_known(const struct system_io *io, pid_t pid)
{
	for (size_t i = 0; i < io->v.n; i++)
		if (io->v.v[i].pid == pid && io->v.v[i].seen)
			return true;
	return false;
}

static void look_at(struct system_io *io, const struct tree_process *p)
{
	struct process_stat st;
	uint64_t in = 0, out = 0;

	if (!read_io(p->pid, &in, &out) || !process_read_stat(p->pid, 0, &st))
		return;
	vec_for(&io->v, k) {
		if (k->pid != p->pid || k->starttime != p->starttime)
			continue;
		k->seen = true;
		k->parent = st.ppid;
		k->read = in;
		k->written = out;
		return;
	}
	*vec_push(&io->v) =
		(struct system_io_process){p->pid, st.ppid, p->starttime, in, out, true};
}

/* The kernel adds a process's bytes to those of its parent, when that waits for it. */
static void forget_ended(struct system_io *io)
{
	size_t n = 0;

	for (size_t i = 0; i < io->v.n; i++) {
		const struct system_io_process p = io->v.v[i];

		if (p.seen) {
			io->v.v[n++] = p;
		} else if (!is_known(io, p.parent)) {
			io->read += p.read;
			io->written += p.written;
		}
	}
	io->v.n = n;
}

void system_read_io(struct system_io *io, const struct tree *t, struct reading *read,
		    struct reading *written)
{
	vec_for(&io->v, p)
		p->seen = false;
	for (size_t i = 0; i < t->v.n; i++)
		look_at(io, &t->v.v[i]);
	forget_ended(io);
	*read = (struct reading){.n = io->read, .known = true};
	*written = (struct reading){.n = io->written, .known = true};
	vec_for(&io->v, p) {
		read->n += p->read;
		written->n += p->written;
	}
}

/* ---- the network ---- */

FILE *system_open_net(pid_t pid)
{
	char path[64] = "/proc/self/net/dev";

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/net/dev", pid);
	return fopen(path, "re");
}

/* "  eth0: received packets errs drop fifo frame compressed multicast sent ..." */
void system_read_net(FILE *net, struct reading *received, struct reading *sent)
{
	char line[512];

	*received = *sent = (struct reading){.known = net};
	if (!net)
		return;
	rewind(net);
	while (fgets(line, sizeof(line), net)) {
		char *colon = strchr(line, ':');
		uint64_t in, out;

		if (!colon || sscanf(colon + 1, "%" SCNu64 " %*u %*u %*u %*u %*u %*u %*u %" SCNu64,
				     &in, &out) != 2)
			continue;
		*colon = 0;
		if (!strcmp(line + strspn(line, " "), "lo"))
			continue;
		received->n += in;
		sent->n += out;
	}
}
