/* SPDX-License-Identifier: MIT */
/*
 * env.c - reads kron's entries in the environment, and takes them out again.
 *
 * On the initial stack:
 *
 *   before   e0 LD_PRELOAD e2 KRON_RT NULL | auxv ...
 *   after    e0 e2 NULL AT_IGNORE 0        | auxv ...
 *
 * libc, ld.so and a few programs find the auxiliary vector after the NULL of envp, others
 * hold its address already: so it stays, and the words that became free turn into a pair that
 * every reader of an auxiliary vector skips.  That takes an even number of entries (wire.h).
 */
#include <elf.h>
#include "runtime/core/rt.h"
#include "runtime/sys/sys.h"
#include "runtime/sys/mini.h"

#define ENTRY_MAX 4608 /* PATH_MAX for the library, a socket name, a session */

struct rt_env kron_rt_env;
static char entry_copy[ENTRY_MAX];

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

static const char *read_session(const char *s)
{
	size_t i;

	for (i = 0; i < sizeof(kron_rt_env.session); i++) {
		int hi = hex_digit(s[2 * i]);
		int lo = hi < 0 ? -1 : hex_digit(s[2 * i + 1]);

		if (lo < 0)
			return NULL;
		kron_rt_env.session[i] = (uint8_t)(hi << 4 | lo);
	}
	return s + 2 * i;
}

/* 0: there is no such number. */
static uint64_t read_hex(const char *s, int digits)
{
	uint64_t number = 0;
	int i, digit;

	for (i = 0; i < digits; i++) {
		digit = hex_digit(s[i]);
		if (digit < 0)
			return 0;
		number = number << 4 | (uint64_t)digit;
	}
	return number;
}

/* "kron-<16 hex digits>-<8 random ones><8 hex digits>": of the process that listens under this name. */
static void read_name(const char *name)
{
	const char *s = mini_after(name, KRON_SOCKET_PREFIX);

	kron_rt_env.collector = s ? read_hex(s, 16) : 0;
	if (!kron_rt_env.collector)
		return;
	if (s[16] != '-')
		kron_rt_env.collector = 0;
	else if (mini_len(s) == 33)
		kron_rt_env.collector_pid = (int32_t)read_hex(s + 25, 8);
}

/* "NAME,SESSION,PATH"; the copy outlives whatever the program does to its stack. */
static bool read_entry(const char *entry)
{
	size_t len = mini_len(entry) + 1;
	const char *s;

	if (len > sizeof(entry_copy))
		return false;
	mini_copy(entry_copy, entry, len);
	kron_rt_env.entry = entry_copy;
	s = mini_after(entry_copy, KRON_ENV_RT "=");
	if (!s)
		return false;
	while (*s && *s != ',' && kron_rt_env.name_len < sizeof(kron_rt_env.name) - 1)
		kron_rt_env.name[kron_rt_env.name_len++] = *s++;
	if (*s++ != ',' || kron_rt_env.name_len == 0)
		return false;
	read_name(kron_rt_env.name);
	s = read_session(s);
	if (!s || *s != ',' || s[1] != '/')
		return false;
	kron_rt_env.path = s + 1;
	return true;
}

static bool wants_debug(const char *log)
{
	return mini_contains(log, "rt:debug") || mini_contains(log, "rt:trace");
}

bool rt_env_read(char **envp)
{
	const char *entry = NULL;
	size_t i;

	for (i = 0; envp[i]; i++) {
		if (mini_after(envp[i], KRON_ENV_RT "="))
			entry = envp[i];
		else if (mini_after(envp[i], "KRON_LOG="))
			kron_rt.debug = wants_debug(envp[i]);
	}
	return entry && read_entry(entry);
}

/*
 * An LD_PRELOAD entry without our library, which is its first word, in place.  NULL: ours was
 * all there was.
 */
static char *preload_of_user(char *entry)
{
	const char *rest = mini_after(entry, "LD_PRELOAD=");
	size_t name = (size_t)(rest - entry);
	char *start;

	rest = mini_after(rest, kron_rt_env.path);
	if (rest && !*rest)
		return NULL;
	if (!rest || (*rest != ':' && *rest != ' '))
		return entry;            /* not what kron wrote: hands off */
	start = (char *)rest + 1 - name; /* over the separator and the end of our path */
	mini_copy(start, "LD_PRELOAD=", name);
	return start;
}

/* True: the entry is to go.  *entry may move to where the user's part begins. */
static bool is_ours(char **entry)
{
	char *user;

	if (mini_after(*entry, KRON_ENV_RT "=") || mini_after(*entry, KRON_ENV_PAD "="))
		return true;
	if (!mini_after(*entry, "LD_PRELOAD="))
		return false;
	user = preload_of_user(*entry);
	if (!user)
		return true;
	*entry = user;
	return false;
}

static size_t count_ours(char **envp)
{
	size_t ours = 0;
	size_t i;

	for (i = 0; envp[i]; i++) {
		const char *rest = mini_after(envp[i], "LD_PRELOAD=");

		if (rest) {
			rest = mini_after(rest, kron_rt_env.path);
			ours += rest && !*rest;
		} else if (mini_after(envp[i], KRON_ENV_RT "=") ||
			   mini_after(envp[i], KRON_ENV_PAD "=")) {
			ours++;
		}
	}
	return ours;
}

void rt_env_hide(char **envp)
{
	size_t kept = 0;
	size_t i;

	if (count_ours(envp) % 2) {
		rt_log("odd number of entries, environment stays", count_ours(envp));
		return;
	}
	for (i = 0; envp[i]; i++) {
		if (!is_ours(&envp[i]))
			envp[kept++] = envp[i];
	}
	envp[kept++] = NULL;
	while (kept <= i) {
		envp[kept++] = (char *)(uintptr_t)AT_IGNORE;
		envp[kept++] = NULL;
	}
	kron_rt.env_hidden = true;
}
