/* SPDX-License-Identifier: MIT */
/* browser.c - see browser.h */
#include "cmd/monitor/browser.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cmd/monitor/browser_page.h"

#define EVENT_MOST (64u << 10) /* bytes that a client is given at once */
#define PORT_MAX 65535

struct browser_row {
	struct browser_row *next;
	bool is_end;
	size_t size;
	char *text; /* an event of text/event-stream */
};

/* ---- events: each a line of JSON, in which no byte ends a line ---- */

static FILE *event_begin(char **text, size_t *size, const char *name, struct json *j)
{
	FILE *f = open_memstream(text, size);

	if (!f)
		return NULL;
	if (name)
		fprintf(f, "event: %s\n", name);
	fputs("data: ", f);
	*j = (struct json)JSON_INIT(f);
	json_open(j, '{');
	return f;
}

static void event_end(FILE *f, struct json *j)
{
	json_close(j, '}'); /* and the line */
	putc('\n', f);
	fclose(f);
}

static void put_values(struct browser *b, struct json *j, const char *key, const struct reading *v)
{
	json_key(j, key);
	json_open(j, '[');
	for (size_t i = 0; i < b->columns->v.n; i++)
		monitored_json_value(j, &b->columns->v.v[i], &v[i]);
	json_close(j, ']');
}

/* The numbers of columns. */
static void put_marks(struct browser *b, struct json *j, const char *key, const struct reading *v,
		      bool of_overrun)
{
	bool is_any = false;

	for (size_t i = 0; i < b->columns->v.n; i++) {
		if (!(of_overrun ? v[i].has_overrun : v[i].is_estimate))
			continue;
		if (!is_any) {
			json_key(j, key);
			json_open(j, '[');
		}
		is_any = true;
		json_u64(j, i);
	}
	if (is_any)
		json_close(j, ']');
}

static void put_all(struct browser *b, struct json *j, const char *key, const struct reading *v)
{
	put_values(b, j, key, v);
	put_marks(b, j, "estimates", v, false);
	put_marks(b, j, "overrun", v, true);
}

static char *make_about(struct browser *b, const struct save_subject *what)
{
	struct json j;
	char *text;
	size_t size;
	FILE *f = event_begin(&text, &size, "about", &j);

	if (!f)
		return xstrdup("");
	json_kstr(&j, "command", what->command);
	json_kstr(&j, "of", what->of);
	json_ku64(&j, "every_ns", what->every_ns);
	json_key(&j, "freezes");
	json_bool(&j, what->freezes);
	json_key(&j, "columns");
	json_open(&j, '[');
	for (size_t i = 0; i < b->columns->v.n; i++) {
		const struct column *c = &b->columns->v.v[i];

		json_open(&j, '[');
		json_str(&j, c->name);
		json_str(&j, monitored_kind(c->kind));
		json_bool(&j, c->type == VALUE_HEX);
		json_close(&j, ']');
	}
	json_close(&j, ']');
	event_end(f, &j);
	return text;
}

static void put_frozen(struct json *j, const struct monitor_row *row)
{
	json_key(j, "stopped");
	json_bool(j, row->was_frozen);
	json_ku64(j, "stood_ns", row->stood_ns);
	json_ku64(j, "skew_ns", row->skew_ns);
	json_ku64(j, "threads", row->threads);
}

static char *make_row(struct browser *b, const struct monitor_row *row, size_t *size)
{
	struct json j;
	char *text;
	FILE *f = event_begin(&text, size, NULL, &j);

	if (!f)
		return NULL;
	json_ku64(&j, "n", b->n);
	json_ku64(&j, "from_ns", row->from_ns);
	json_ku64(&j, "to_ns", row->to_ns);
	if (b->freezes)
		put_frozen(&j, row);
	put_all(b, &j, "values", row->v);
	event_end(f, &j);
	return text;
}

static char *make_end(struct browser *b, const struct monitor_summary *sum,
		      const struct reading *totals, const char *how, size_t *size)
{
	struct json j;
	char *text;
	FILE *f = event_begin(&text, size, "end", &j);

	if (!f)
		return NULL;
	json_kstr(&j, "exit", how);
	json_ku64(&j, "intervals", sum->intervals);
	json_ku64(&j, "real_ns", sum->real_ns);
	json_ku64(&j, "virtual_ns", sum->virtual_ns);
	put_all(b, &j, "totals", totals);
	event_end(f, &j);
	return text;
}

/* ---- from one thread to the other ---- */

static void list_push(struct browser_row **list, struct browser_row *r)
{
	r->next = __atomic_load_n(list, __ATOMIC_RELAXED);
	/* pairs with list_take(): who takes it sees what is in it */
	while (!__atomic_compare_exchange_n(list, &r->next, r, true, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
}

/* The latest comes first. */
static struct browser_row *list_take(struct browser_row **list)
{
	return __atomic_exchange_n(list, NULL, __ATOMIC_ACQUIRE);
}

static struct browser_row *reversed(struct browser_row *r)
{
	struct browser_row *out = NULL, *next;

	for (; r; r = next) {
		next = r->next;
		r->next = out;
		out = r;
	}
	return out;
}

static void free_rows(struct browser_row *r)
{
	struct browser_row *next;

	for (; r; r = next) {
		next = r->next;
		free(r->text);
		xfree(r);
	}
}

static void hand_over(struct browser *b, char *text, size_t size, bool is_end)
{
	struct browser_row *r;

	free_rows(list_take(&b->done));
	if (!text)
		return;
	r = xcalloc(1, sizeof(*r));
	*r = (struct browser_row){.is_end = is_end, .size = size, .text = text};
	list_push(&b->fresh, r);
	http_wake(&b->server);
}

void browser_row(struct browser *b, const struct monitor_row *row)
{
	size_t size = 0;
	char *text;

	if (!b->is_on)
		return;
	text = make_row(b, row, &size);
	b->n++;
	hand_over(b, text, size, false);
}

/* ---- the server's thread ---- */

static void keep(struct browser *b, struct browser_row *r)
{
	b->bytes += r->size;
	while (b->next - b->first &&
	       (b->bytes > BROWSER_BYTES || b->next - b->first == BROWSER_ROWS)) {
		struct browser_row *old = b->ring[b->first++ % BROWSER_ROWS];

		b->bytes -= old->size;
		list_push(&b->done, old);
	}
	b->ring[b->next++ % BROWSER_ROWS] = r;
}

static void gather(void *ctx)
{
	struct browser *b = ctx;
	struct browser_row *next;

	for (struct browser_row *r = reversed(list_take(&b->fresh)); r; r = next) {
		next = r->next;
		keep(b, r);
	}
}

static void put_missed(http_bytes *out, uint64_t n)
{
	char text[96];
	const int size =
		snprintf(text, sizeof(text), "event: missed\ndata: {\"intervals\":%llu}\n\n",
			 (unsigned long long)n);

	vec_add(out, text, (size_t)size);
}

/* place: one more than the number of the row that is next */
static bool next_events(void *ctx, uint64_t *place, http_bytes *out)
{
	struct browser *b = ctx;

	if (!*place) {
		vec_add(out, b->about, strlen(b->about));
		*place = 1;
	}
	if (*place - 1 < b->first) {
		put_missed(out, b->first - (*place - 1));
		*place = b->first + 1;
	}
	while (*place - 1 < b->next && out->n < EVENT_MOST) {
		const struct browser_row *r = b->ring[(*place - 1) % BROWSER_ROWS];

		vec_add(out, r->text, r->size);
		++*place;
		if (r->is_end)
			return true;
	}
	return false;
}

/* ---- begin and end ---- */

static int take_port(const char *text, unsigned *port, struct err *err)
{
	char *end;
	const unsigned long n = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || n > PORT_MAX)
		return err_set(
			err, EINVAL,
			"--serve: '%s' is not a port, a number up to %d; 0 takes one that is free",
			text, PORT_MAX);
	*port = (unsigned)n;
	return 0;
}

int browser_begin(struct browser *b, const char *port, const struct columns *columns,
		  const struct save_subject *what, struct err *err)
{
	char url[96];
	unsigned number = 0;
	int code;

	*b = (struct browser){.columns = columns, .freezes = what->freezes};
	b->page = (struct http_page){.name = "",
				     .type = "text/html; charset=utf-8",
				     .policy = browser_page_policy,
				     .bytes = browser_page,
				     .size = browser_page_size};
	b->server = (struct http_server){.page = &b->page,
					 .stream = "events",
					 .next = next_events,
					 .gather = gather,
					 .ctx = b};
	code = take_port(port, &number, err);
	if (code)
		return code;
	code = http_open(&b->server, number, err);
	if (code)
		return err_prefix(err, code, "--serve");
	b->is_on = true;
	b->about = make_about(b, what);
	b->ring = xcalloc(BROWSER_ROWS, sizeof(struct browser_row *));
	fprintf(stderr, "kron: the intervals are shown at %s\n",
		http_url(&b->server, url, sizeof(url)));
	return 0;
}

int browser_start(struct browser *b, struct err *err)
{
	return b->is_on ? http_start(&b->server, err) : 0;
}

void browser_end(struct browser *b, const struct monitor_summary *sum, const struct reading *totals,
		 const char *how)
{
	size_t size = 0;
	char *text;

	if (!b->is_on)
		return;
	text = make_end(b, sum, totals, how, &size);
	hand_over(b, text, size, true);
	browser_close(b);
}

void browser_close(struct browser *b)
{
	if (!b->is_on)
		return;
	http_end(&b->server);
	free_rows(list_take(&b->fresh));
	free_rows(list_take(&b->done));
	while (b->first < b->next) {
		struct browser_row *r = b->ring[b->first++ % BROWSER_ROWS];

		r->next = NULL;
		free_rows(r);
	}
	xfree(b->ring);
	xfree(b->about);
	b->is_on = false;
}
