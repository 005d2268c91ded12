/* SPDX-License-Identifier: MIT */
/* table_lines.c - see table_lines.h. */
#define _GNU_SOURCE
#include "trace/table_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int table_open(struct table_lines *l, int dirfd, const char *file)
{
	struct stat st;
	int fd = openat(dirfd, file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int ret = 0;

	memset(l, 0, sizeof(*l));
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st)) {
		ret = -errno;
	} else if (!S_ISREG(st.st_mode)) {
		ret = -EINVAL;
	} else if (st.st_size) {
		l->text =
			mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
		if (l->text == MAP_FAILED) {
			ret = -errno;
			l->text = NULL;
		} else {
			l->size = (size_t)st.st_size;
		}
	}
	close(fd);
	return ret;
}

void table_close(struct table_lines *l)
{
	if (l->text)
		munmap(l->text, l->size);
	l->text = NULL;
}

void table_unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (*s == '\\' && s[1]) {
			s++;
			*to++ = *s == 't' ? '\t' : *s == 'n' ? '\n' : *s;
		} else {
			*to++ = *s;
		}
	}
	*to = 0;
}

char *table_next(struct table_lines *l)
{
	char *line, *nl;

	if (l->at >= l->size)
		return NULL;
	line = l->text + l->at;
	nl = memchr(line, '\n', l->size - l->at);
	if (!nl)
		return NULL;
	*nl = 0;
	l->at = (size_t)(nl + 1 - l->text);
	return line;
}

bool table_next_fields(struct table_lines *l)
{
	static char empty[] = "";
	char *s = table_next(l);

	if (!s)
		return false;
	l->nfields = 0;
	while (s && l->nfields < TABLE_FIELDS_MAX) {
		char *tab = strchr(s, '\t');

		if (tab)
			*tab++ = 0;
		table_unescape(s);
		l->field[l->nfields++] = s;
		s = tab;
	}
	for (size_t i = l->nfields; i < TABLE_FIELDS_MAX; i++)
		l->field[i] = empty;
	return true;
}

bool table_number(const char *s, int base, uint64_t max, uint64_t *out)
{
	char *end;

	if (!(*s >= '0' && *s <= '9') && !(base == 16 && strchr("abcdefABCDEF", *s) && *s))
		return false;
	errno = 0;
	*out = strtoull(s, &end, base);
	return !errno && !*end && *out <= max;
}

/* ---- written ----
 *
 * Of hundred thousands of lines: each byte goes where it stays.  A wide copy of bytes that were just stored one by one
 * waits until they are all in the cache, which took longer than all the rest.
 */

void table_put_text(table_text *t, const char *s)
{
	char *to, c;

	if (!s || !*s)
		return;
	vec_reserve(t, t->n + 2 * strlen(s));
	for (to = t->v + t->n; (c = *s); s++) {
		const bool escaped = c == '\t' || c == '\n' || c == '\\';

		if (escaped)
			*to++ = '\\';
		*to++ = !escaped || c == '\\' ? c : c == '\t' ? 't' : 'n';
	}
	t->n = (size_t)(to - t->v);
}

static unsigned digits_of(uint64_t value, int base)
{
	unsigned n = 1;

	if (base == 16)
		return (unsigned)(63 - __builtin_clzll(value | 1)) / 4 + 1;
	for (uint64_t least = 10; n < 20 && value >= least; least *= 10)
		n++;
	return n;
}

/* snprintf() takes a microsecond, and a division by what is no constant a good part of the rest. */
void table_put_number(table_text *t, int base, uint64_t value)
{
	const unsigned n = digits_of(value, base);
	char *p;

	vec_reserve(t, t->n + n);
	t->n += n;
	p = t->v + t->n;
	if (base == 16)
		for (unsigned i = 0; i < n; i++, value /= 16)
			*--p = "0123456789abcdef"[value % 16];
	else
		for (unsigned i = 0; i < n; i++, value /= 10)
			*--p = (char)('0' + value % 10);
}
