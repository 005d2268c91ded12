/* SPDX-License-Identifier: MIT */
/* starts.c - see starts.h */
#include "collect/starts.h"

#include <string.h>

static const char *const reasons[KRON_UNTRACED_REASONS] = {
	[KRON_UNTRACED_FILE] = "it is set-id, not readable, or not for x86-64 and glibc",
	[KRON_UNTRACED_IDS] = "it was started by a process with the ids of two users",
	[KRON_UNTRACED_ROOT] =
		"libkron-rt.so cannot be read where it runs: in another root directory, "
		"or as another user",
	[KRON_UNTRACED_QUIET] = "a process under a seccomp filter may have started it",
	[KRON_UNTRACED_SPACE] = "its environment is too large",
	[KRON_UNTRACED_STATIC] =
		"it is static, and kron did not answer the process that executed it",
	[KRON_UNTRACED_UNASKED] =
		"a process that was attached to executed it: --children records such programs, too",
	[KRON_UNTRACED_UNAWAITED] = "kron did not answer the process that executed it",
	[KRON_UNTRACED_LIMITS] =
		"the limits of its address space or data (ulimit -v, -d) leave no room for "
		"libkron-rt.so",
	[KRON_UNTRACED_GONE] = "it was started after the recorder had been killed",
	[KRON_UNTRACED_GONE_LOADS] =
		"what a process may have loaded after the recorder had been killed",
	[KRON_UNTRACED_UNHEARD] = "what a process loaded: kron did not answer it in time",
};

void starts_clear(struct segment *seg)
{
	memset(kron_starts(seg->ctl), 0, sizeof(struct kron_starts));
}

static uint64_t *entries(const struct segment *seg)
{
	return kron_starts(seg->ctl)->start;
}

void starts_arrived(struct segment *seg, pid_t its_pid)
{
	uint32_t *unlisted = &kron_starts(seg->ctl)->unlisted;
	uint32_t left;

	for (uint32_t i = 0; i < KRON_STARTS_MAX; i++) {
		uint64_t who = __atomic_load_n(&entries(seg)[i], __ATOMIC_RELAXED);

		if (who && (pid_t)who == its_pid &&
		    __atomic_compare_exchange_n(&entries(seg)[i], &who, 0, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return;
	}
	left = __atomic_load_n(unlisted, __ATOMIC_RELAXED);
	while (left && !__atomic_compare_exchange_n(unlisted, &left, left - 1, false,
						    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

bool starts_vouches(const struct segment *seg, pid_t its_pid, uid_t uid)
{
	uint64_t wanted = (uint32_t)its_pid | (uint64_t)uid << 32;

	for (uint32_t i = 0; i < KRON_STARTS_MAX; i++)
		if (__atomic_load_n(&entries(seg)[i], __ATOMIC_RELAXED) == wanted)
			return true;
	return false;
}

void starts_finish(const struct segment *seg,
		   void (*note)(void *ctx, pid_t pid, const char *reason, uint64_t n), void *ctx)
{
	struct kron_starts *s = kron_starts(seg->ctl);
	uint64_t missing = __atomic_load_n(&s->unlisted, __ATOMIC_RELAXED);
	pid_t last = 0;

	for (uint32_t i = 0; i < KRON_STARTS_MAX; i++) {
		pid_t pid = (pid_t)__atomic_load_n(&s->start[i], __ATOMIC_RELAXED);

		if (!pid)
			continue;
		missing++;
		last = pid;
	}
	if (missing)
		note(ctx, missing == 1 ? last : 0,
		     "it was started and never reported to kron: it failed to load, was killed at "
		     "once, had too few file descriptors (ulimit -n), or is in another network "
		     "namespace",
		     missing);
	for (unsigned why = 1; why < KRON_UNTRACED_REASONS; why++) {
		uint32_t n = __atomic_load_n(&s->untraced[why], __ATOMIC_RELAXED);

		if (n)
			note(ctx, 0, reasons[why], n);
	}
}
