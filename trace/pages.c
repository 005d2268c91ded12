/* SPDX-License-Identifier: MIT */
/*
 * pages.c - see pages.h.  A line each, fields between TABs, addresses in hex:
 *
 *   U unit nodes is_test unsure check        check: of all bytes after this line; older traces have none
 *   M pid start end name offset uid          older traces have no uid
 *   P uid address reads writes tid node      "-": not known; older traces have neither
 *   F uid address reads writes function          of the P, those of a function
 *   L ns                                     a look
 *   S look uid address reads writes          what happened since the look before it
 *   H uid address node
 *   G ns uid address from to errno is_rehearsal local remote
 */
#define _GNU_SOURCE
#include "trace/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "trace/table_lines.h"

static void put_field(table_text *t, int base, uint64_t value)
{
	table_put_char(t, '\t');
	table_put_number(t, base, value);
}

static void put_node(table_text *t, int node)
{
	if (node == TRACE_NODE_UNKNOWN)
		table_put_text(t, "\t-");
	else
		put_field(t, 10, (uint64_t)node);
}

static void put_page(table_text *t, const struct trace_page *p)
{
	table_put_char(t, 'P');
	put_field(t, 10, p->uid);
	put_field(t, 16, p->address);
	put_field(t, 10, p->reads);
	put_field(t, 10, p->writes);
	put_field(t, 10, p->tid);
	put_node(t, p->node);
	table_put_char(t, '\n');
}

static void put_function(table_text *t, const struct trace_page_function *f)
{
	table_put_char(t, 'F');
	put_field(t, 10, f->uid);
	put_field(t, 16, f->address);
	put_field(t, 10, f->reads);
	put_field(t, 10, f->writes);
	put_field(t, 10, f->function);
	table_put_char(t, '\n');
}

static void put_mapping(table_text *t, const struct trace_mapping *m)
{
	table_put_char(t, 'M');
	put_field(t, 10, m->pid);
	put_field(t, 16, m->start);
	put_field(t, 16, m->end);
	table_put_char(t, '\t');
	table_put_text(t, m->name);
	put_field(t, 16, m->offset);
	put_field(t, 10, m->uid);
	table_put_char(t, '\n');
}

static void put_step(table_text *t, const struct trace_page_step *s)
{
	table_put_char(t, 'S');
	put_field(t, 10, s->look);
	put_field(t, 10, s->uid);
	put_field(t, 16, s->address);
	put_field(t, 10, s->reads);
	put_field(t, 10, s->writes);
	table_put_char(t, '\n');
}

static void put_home(table_text *t, const struct trace_page_home *h)
{
	table_put_char(t, 'H');
	put_field(t, 10, h->uid);
	put_field(t, 16, h->address);
	put_node(t, h->node);
	table_put_char(t, '\n');
}

static void put_move(table_text *t, const struct trace_page_move *m)
{
	table_put_char(t, 'G');
	put_field(t, 10, m->ns);
	put_field(t, 10, m->uid);
	put_field(t, 16, m->address);
	put_node(t, m->from);
	put_node(t, m->to);
	put_field(t, 10, (uint64_t)(m->code > 0 ? 0 : -m->code));
	put_field(t, 10, m->code > 0);
	put_field(t, 10, m->local);
	put_field(t, 10, m->remote);
	table_put_char(t, '\n');
}

static void put_head(table_text *t, const struct trace_pages *p, const table_text *rest)
{
	table_put_char(t, 'U');
	put_field(t, 10, p->unit);
	put_field(t, 10, p->nodes);
	put_field(t, 10, p->is_test);
	put_field(t, 10, p->unsure);
	put_field(t, 16, str_hash(STR_HASH, rest->v, rest->n));
	table_put_char(t, '\n');
}

static void put_rest(table_text *t, const struct trace_pages *p)
{
	for (size_t i = 0; i < p->maps.n; i++)
		put_mapping(t, &p->maps.v[i]);
	for (size_t i = 0; i < p->v.n; i++)
		put_page(t, &p->v.v[i]);
	for (size_t i = 0; i < p->functions.n; i++)
		put_function(t, &p->functions.v[i]);
	for (size_t i = 0; i < p->looks.n; i++) {
		table_put_char(t, 'L');
		put_field(t, 10, p->looks.v[i]);
		table_put_char(t, '\n');
	}
	for (size_t i = 0; i < p->steps.n; i++)
		put_step(t, &p->steps.v[i]);
	for (size_t i = 0; i < p->homes.n; i++)
		put_home(t, &p->homes.v[i]);
	for (size_t i = 0; i < p->moves.n; i++)
		put_move(t, &p->moves.v[i]);
}

static int write_text(int fd, const table_text *t)
{
	for (size_t at = 0; at < t->n;) {
		ssize_t n = write(fd, t->v + at, t->n - at);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			at += (size_t)n;
	}
	return 0;
}

static int write_file(int dir, const table_text *head, const table_text *rest)
{
	int fd = openat(dir, "pages", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int code = fd < 0 ? -errno : write_text(fd, head);

	if (!code)
		code = write_text(fd, rest);
	if (fd >= 0 && close(fd) && !code)
		code = -errno;
	return code;
}

int trace_pages_write(const char *dir, const struct trace_pages *p)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), code;
	table_text head = {0}, rest = {0};

	if (fd < 0)
		return -errno;
	put_rest(&rest, p);
	put_head(&head, p, &rest);
	code = write_file(fd, &head, &rest);
	vec_free(&head);
	vec_free(&rest);
	close(fd);
	return code;
}

/* ---- reading ---- */

static bool take_node(const char *field, int32_t *node)
{
	uint64_t n;

	*node = TRACE_NODE_UNKNOWN;
	if (!*field || !strcmp(field, "-"))
		return true;
	if (!table_number(field, 10, INT32_MAX, &n))
		return false;
	*node = (int32_t)n;
	return true;
}

static bool take_u32(const char *field, uint32_t *out)
{
	uint64_t n = 0;

	if (*field && !table_number(field, 10, UINT32_MAX, &n))
		return false;
	*out = (uint32_t)n;
	return true;
}

static void take_unit(struct trace_pages *out, char **f)
{
	uint64_t unit, nodes, is_test, unsure;

	if (!table_number(f[1], 10, TRACE_PAGE_SIZE, &unit) ||
	    !table_number(f[2], 10, UINT32_MAX, &nodes) || !table_number(f[3], 10, 1, &is_test) ||
	    !table_number(f[4], 10, UINT64_MAX, &unsure) ||
	    (unit != TRACE_PAGE_SIZE && unit != TRACE_LINE_SIZE))
		return;
	out->unit = (uint32_t)unit;
	out->nodes = (uint32_t)nodes;
	out->is_test = is_test;
	out->unsure = unsure;
}

static void take_page(struct trace_pages *out, char **f)
{
	struct trace_page p;

	if (take_u32(f[1], &p.uid) && table_number(f[2], 16, UINT64_MAX, &p.address) &&
	    table_number(f[3], 10, UINT64_MAX, &p.reads) &&
	    table_number(f[4], 10, UINT64_MAX, &p.writes) && take_u32(f[5], &p.tid) &&
	    take_node(f[6], &p.node))
		*vec_push(&out->v) = p;
}

static void take_function(struct trace_pages *out, char **f)
{
	struct trace_page_function p;

	if (take_u32(f[1], &p.uid) && table_number(f[2], 16, UINT64_MAX, &p.address) &&
	    table_number(f[3], 10, UINT64_MAX, &p.reads) &&
	    table_number(f[4], 10, UINT64_MAX, &p.writes) && take_u32(f[5], &p.function))
		*vec_push(&out->functions) = p;
}

static void take_mapping(struct trace_pages *out, char **f)
{
	struct trace_mapping m = {0};

	if (!take_u32(f[1], &m.pid) || !table_number(f[2], 16, UINT64_MAX, &m.start) ||
	    !table_number(f[3], 16, UINT64_MAX, &m.end) ||
	    (*f[5] && !table_number(f[5], 16, UINT64_MAX, &m.offset)) || !take_u32(f[6], &m.uid))
		return;
	m.name = xstrdup(f[4]);
	*vec_push(&out->maps) = m;
}

/* Steps of a look that is not there would be taken for its. */
static void take_step(struct trace_pages *out, char **f)
{
	struct trace_page_step s;

	if (take_u32(f[1], &s.look) && s.look < out->looks.n && take_u32(f[2], &s.uid) &&
	    table_number(f[3], 16, UINT64_MAX, &s.address) &&
	    table_number(f[4], 10, UINT64_MAX, &s.reads) &&
	    table_number(f[5], 10, UINT64_MAX, &s.writes))
		*vec_push(&out->steps) = s;
}

static void take_home(struct trace_pages *out, char **f)
{
	struct trace_page_home h = {0};

	if (take_u32(f[1], &h.uid) && table_number(f[2], 16, UINT64_MAX, &h.address) &&
	    take_node(f[3], &h.node))
		*vec_push(&out->homes) = h;
}

static void take_move(struct trace_pages *out, char **f)
{
	struct trace_page_move m;
	uint64_t code, rehearsal;

	if (!table_number(f[1], 10, UINT64_MAX, &m.ns) || !take_u32(f[2], &m.uid) ||
	    !table_number(f[3], 16, UINT64_MAX, &m.address) || !take_node(f[4], &m.from) ||
	    !take_node(f[5], &m.to) || !table_number(f[6], 10, INT32_MAX, &code) ||
	    !table_number(f[7], 10, 1, &rehearsal) ||
	    !table_number(f[8], 10, UINT64_MAX, &m.local) ||
	    !table_number(f[9], 10, UINT64_MAX, &m.remote))
		return;
	m.code = rehearsal ? 1 : -(int32_t)code;
	*vec_push(&out->moves) = m;
}

static void take_line(struct trace_pages *out, char **f)
{
	uint64_t ns;

	switch (f[0][0] && !f[0][1] ? f[0][0] : 0) {
	case 'U':
		take_unit(out, f);
		break;
	case 'P':
		take_page(out, f);
		break;
	case 'F':
		take_function(out, f);
		break;
	case 'M':
		take_mapping(out, f);
		break;
	case 'L':
		if (table_number(f[1], 10, UINT64_MAX, &ns))
			*vec_push(&out->looks) = ns;
		break;
	case 'S':
		take_step(out, f);
		break;
	case 'H':
		take_home(out, f);
		break;
	case 'G':
		take_move(out, f);
		break;
	}
}

/* Whose: a process, or in older traces a pid; and where it begins. */
struct place_key {
	uint32_t uid, pid;
	uint64_t start;
};

static struct place_key key_of(const struct trace_mapping *m)
{
	return (struct place_key){m->uid, m->uid ? 0 : m->pid, m->start};
}

static int compare_keys(const struct place_key *x, const struct place_key *y)
{
	if (x->uid != y->uid)
		return x->uid < y->uid ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

static int by_place(const void *a, const void *b, void *p)
{
	const struct trace_mapping *maps = p;
	const uint32_t i = ((const struct trace_place *)a)->at,
		       k = ((const struct trace_place *)b)->at;
	const struct place_key x = key_of(&maps[i]), y = key_of(&maps[k]);
	const int order = compare_keys(&x, &y);

	return order ? order : i < k ? -1 : i > k;
}

static void sort_places(struct trace_pages *p)
{
	for (size_t i = 0; i < p->maps.n; i++)
		*vec_push(&p->places) = (struct trace_place){.at = (uint32_t)i};
	if (p->places.n)
		qsort_r(p->places.v, p->places.n, sizeof(p->places.v[0]), by_place, p->maps.v);
	for (size_t i = 0; i < p->places.n; i++) {
		const struct trace_mapping *m = &p->maps.v[p->places.v[i].at];
		const struct place_key key = key_of(m);
		const struct place_key last =
			i ? key_of(&p->maps.v[p->places.v[i - 1].at]) : (struct place_key){0};
		const uint64_t before = i && last.uid == key.uid && last.pid == key.pid
						? p->places.v[i - 1].end
						: 0;

		p->places.v[i].end = m->end > before ? m->end : before;
	}
}

int trace_pages_read(struct trace_pages *out, const char *dir, struct err *err)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), code;
	struct table_lines l;

	*out = (struct trace_pages){.unit = TRACE_PAGE_SIZE, .nodes = 1};
	if (fd < 0)
		return err_set(err, errno, "cannot open %s: %s", dir, strerror(errno));
	code = faccessat(fd, "pages", F_OK, 0) ? -errno : table_open(&l, fd, "pages");
	close(fd);
	if (code == -ENOENT)
		return err_set(err, ENOENT, "%s has no counts of pages", dir);
	if (code)
		return err_set(err, -code, "cannot read %s/pages: %s", dir, strerror(-code));
	while (table_next_fields(&l))
		take_line(out, l.field);
	table_close(&l);
	sort_places(out);
	return 0;
}

bool trace_pages_are_damaged(int dirfd)
{
	struct table_lines l;
	uint64_t check;
	bool are = false;

	if (faccessat(dirfd, "pages", F_OK, 0) || table_open(&l, dirfd, "pages"))
		return false;
	if (!table_next_fields(&l) || strcmp(l.field[0], "U") != 0)
		are = true;
	else if (*l.field[5])
		are = !table_number(l.field[5], 16, UINT64_MAX, &check) ||
		      check != str_hash(STR_HASH, l.text + l.at, l.size - l.at);
	table_close(&l);
	return are;
}

void trace_pages_free(struct trace_pages *p)
{
	vec_for(&p->maps, m)
		xfree(m->name);
	vec_free(&p->maps);
	vec_free(&p->places);
	vec_free(&p->v);
	vec_free(&p->functions);
	vec_free(&p->looks);
	vec_free(&p->steps);
	vec_free(&p->homes);
	vec_free(&p->moves);
}

bool trace_mapping_is_of(const struct trace_mapping *m, uint32_t uid, uint32_t pid)
{
	return m->uid ? m->uid == uid : m->pid == pid;
}

/* The first place that is another owner's, or begins after the address. */
static size_t places_end(const struct trace_pages *p, const struct place_key *key)
{
	size_t lo = 0, hi = p->places.n;

	while (lo < hi) {
		const size_t mid = (lo + hi) / 2;
		const struct place_key k = key_of(&p->maps.v[p->places.v[mid].at]);

		if (compare_keys(&k, key) <= 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The mapping before places[*i] that holds the address; *i is its place.  NULL: there is none. */
static const struct trace_mapping *
place_before(const struct trace_pages *p, const struct place_key *key, uint64_t address, size_t *i)
{
	while (*i && p->places.v[*i - 1].end > address) {
		const struct trace_mapping *m = &p->maps.v[p->places.v[--*i].at];
		const struct place_key k = key_of(m);

		if (k.uid != key->uid || k.pid != key->pid)
			break;
		if (m->end > address)
			return m;
	}
	return NULL;
}

/* Of one owner: the index of the one that was noted last, + 1; 0: none. */
static uint32_t find_place(const struct trace_pages *p, uint32_t uid, uint32_t pid,
			   uint64_t address)
{
	const struct place_key key = {uid, pid, address};
	const struct trace_mapping *m;
	size_t i = places_end(p, &key);
	uint32_t found = 0;

	while ((m = place_before(p, &key, address, &i)))
		if (m - p->maps.v >= found)
			found = (uint32_t)(m - p->maps.v) + 1;
	return found;
}

const struct trace_mapping *trace_pages_mapping(const struct trace_pages *p, uint32_t uid,
						uint32_t pid, uint64_t address)
{
	const uint32_t one = uid ? find_place(p, uid, 0, address) : 0,
		       other = find_place(p, 0, pid, address);
	const uint32_t found = one > other ? one : other;

	return found ? &p->maps.v[found - 1] : NULL;
}

/* A file that is replaced while it is mapped gets another name. */
static bool is_same_file(const char *a, const char *b)
{
	const size_t n = strlen(a) < strlen(b) ? strlen(a) : strlen(b);

	return !strncmp(a, b, n) &&
	       (a[n] == b[n] || !strcmp(a + n, " (deleted)") || !strcmp(b + n, " (deleted)"));
}

static bool has_other_place(const struct trace_pages *p, const struct place_key *key,
			    uint64_t address, const char *name)
{
	const struct trace_mapping *m;
	size_t i = places_end(p, key);

	while ((m = place_before(p, key, address, &i)))
		if (!is_same_file(m->name, name))
			return true;
	return false;
}

bool trace_pages_are_mixed(const struct trace_pages *p, const struct trace_mapping *m, uint32_t uid,
			   uint32_t pid, uint64_t address)
{
	return m && ((uid &&
		      has_other_place(p, &(struct place_key){uid, 0, address}, address, m->name)) ||
		     has_other_place(p, &(struct place_key){0, pid, address}, address, m->name));
}

const char *trace_mapping_name(const struct trace_mapping *m)
{
	if (!m)
		return "(not mapped when kron looked)";
	return *m->name ? m->name : "(anonymous memory)";
}

int trace_page_step_compare(const void *a, const void *b)
{
	const struct trace_page_step *x = a, *y = b;

	if (x->uid != y->uid)
		return x->uid < y->uid ? -1 : 1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->look < y->look ? -1 : x->look > y->look;
}

int trace_pages_home(const struct trace_pages *p, uint32_t uid, uint64_t address)
{
	size_t lo = 0, hi = p->homes.n;

	address -= address % TRACE_PAGE_SIZE;
	while (lo < hi) {
		const struct trace_page_home *h = &p->homes.v[(lo + hi) / 2];

		if (h->uid == uid && h->address == address)
			return h->node;
		if (h->uid < uid || (h->uid == uid && h->address < address))
			lo = (lo + hi) / 2 + 1;
		else
			hi = (lo + hi) / 2;
	}
	return TRACE_NODE_UNKNOWN;
}
