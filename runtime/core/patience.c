/* SPDX-License-Identifier: MIT */
/*
 * patience.c - how long a thread waits for room in all, whatever signs of life the segment shows.
 *
 * Room comes, or a sign that it will: words in memory that all traced processes write to, other users'
 * among them.  So they are believed for a time only.  Who asked for --when-full wait wants to lose
 * nothing, and is in no hurry; everybody else would rather lose samples than time.  After that nobody
 * in this process waits for a minute, so that it costs a small part of its time at most.
 */
#include "runtime/core/rt.h"

#define WAIT_MS 30000u /* --when-full wait */
#define ELSE_MS 2000u  /* while the pool grows, or where kron ctl has said to wait */
#define PAUSE_MS 60000u

bool rt_waited_too_long(uint64_t *since, uint64_t now)
{
	if (!*since)
		*since = now;
	if (now - *since > (kron_rt.waits ? WAIT_MS : ELSE_MS))
		__atomic_store_n(&kron_rt.no_waits_ms, now + PAUSE_MS, __ATOMIC_RELAXED);
	return now < __atomic_load_n(&kron_rt.no_waits_ms, __ATOMIC_RELAXED);
}
