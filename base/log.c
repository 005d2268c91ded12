/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { RULES_MAX = 16, LINE_MAX_BYTES = 1024 };

struct rule {
	char area[24]; /* "" is every area */
	enum log_level level;
};

static struct rule rules[RULES_MAX];
static size_t nrules;

static const char *const level_names[] = {"off", "error", "warn", "info", "debug", "trace"};

static int find_level(const char *name, size_t len)
{
	for (int i = 0; i <= LOG_TRACE; i++)
		if (strlen(level_names[i]) == len && !strncmp(level_names[i], name, len))
			return i;
	return -1;
}

/* "area:level" or "level" */
static bool add_rule(const char *word, size_t len)
{
	const char *colon = memchr(word, ':', len);
	size_t area_len = colon ? (size_t)(colon - word) : 0;
	const char *name = colon ? colon + 1 : word;
	int level = find_level(name, len - (size_t)(name - word));
	struct rule *r = &rules[nrules];

	if (level < 0 || nrules == RULES_MAX || area_len >= sizeof(r->area))
		return false;
	memcpy(r->area, word, area_len);
	r->area[area_len] = 0;
	r->level = (enum log_level)level;
	nrules++;
	return true;
}

void log_init(const char *setting)
{
	nrules = 0;
	while (setting && *setting) {
		size_t len = strcspn(setting, ",");

		if (len && !add_rule(setting, len))
			dprintf(STDERR_FILENO, "kron: KRON_LOG: '%.*s' is not AREA:LEVEL\n",
				(int)len, setting);
		setting += len + (setting[len] == ',');
	}
}

/* The last rule that fits decides, so that "info,plan:off" means what it says. */
bool log_wants(const char *area, enum log_level level)
{
	for (size_t i = nrules; i-- > 0;)
		if (!rules[i].area[0] || !strcmp(rules[i].area, area))
			return level <= rules[i].level;
	return false;
}

void log_line(const char *area, enum log_level level, const char *fmt, ...)
{
	char line[LINE_MAX_BYTES];
	int saved = errno;
	size_t n;
	va_list ap;

	snprintf(line, sizeof(line), "kron %s:%s: ", area, level_names[level]);
	n = strlen(line);
	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	va_end(ap);
	n = strlen(line);
	line[n++] = '\n';
	while (write(STDERR_FILENO, line, n) < 0 && errno == EINTR)
		;
	errno = saved;
}
