/* SPDX-License-Identifier: MIT */
/* variables.c - see variables.h */
#define _GNU_SOURCE
#include "collect/monitor/variables.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "collect/kernel/process_maps.h"
#include "inject/elf/demangle.h"
#include "inject/elf/elf_image.h"
#include "inject/elf/elf_symbols.h"

#define PAGE 4096u

/* ---- what is asked for ---- */

static bool take_type(struct watched_variable *v, const char *type)
{
	static const char letters[] = "usx";
	static const enum value_type types[] = {VALUE_UNSIGNED, VALUE_SIGNED, VALUE_HEX};
	static const char *const sizes[] = {"8", "16", "32", "64"};
	const char *letter = *type ? strchr(letters, *type) : NULL;

	if (!strcmp(type, "float") || !strcmp(type, "double")) {
		v->type = VALUE_DOUBLE;
		v->size = *type == 'f' ? 4 : 8;
		return true;
	}
	for (unsigned i = 0; letter && i < 4; i++) {
		if (strcmp(type + 1, sizes[i]))
			continue;
		v->type = types[letter - letters];
		v->size = 1u << i;
		return true;
	}
	return false;
}

const char *variable_colon(const char *text)
{
	const char *colon = strrchr(text, ':');

	return colon && colon > text && colon[-1] == ':' ? NULL : colon;
}

int monitor_variables_add(struct variables *v, const char *text, bool members, struct err *err)
{
	const char *colon = variable_colon(text);
	struct watched_variable new = {0};
	const char *way;

	if (colon && !take_type(&new, colon + 1))
		return err_set(
			err, EINVAL,
			"--var %s: '%s' is not a type; there are u8, u16, u32, u64, s8 to s64, x8 "
			"to x64, float, double",
			text, colon + 1);
	if (!*text || colon == text)
		return err_set(err, EINVAL, "--var '%s' has no name", text);
	new.name = colon ? xstrndup(text, (size_t)(colon - text)) : xstrdup(text);
	way = members ? member_way(new.name) : NULL;
	for (size_t i = 0; i < v->v.n; i++) {
		if (strcmp(v->v.v[i].name, new.name))
			continue;
		err_set(err, EINVAL, "--var %s is there already", new.name);
		xfree(new.name);
		return -EINVAL;
	}
	new.is_value = members;
	new.symbol = way ? xstrndup(new.name, (size_t)(way - new.name)) : NULL;
	*vec_push(&v->v) = new;
	return 0;
}

void monitor_variables_free(struct variables *v)
{
	vec_for(&v->v, k) {
		xfree(k->name);
		xfree(k->symbol);
		xfree(k->why);
	}
	vec_free(&v->v);
}

void monitor_variables_guess(struct variables *v, const char *path)
{
	struct elf_image *img = NULL;
	struct member member;
	struct err err;

	vec_for(&v->v, k) {
		if (!k->symbol || k->size)
			continue;
		if (!img && elf_image_open(&img, path, &err))
			return;
		if (member_find(&member, img, k->name, &err))
			k->type = member.type;
	}
	if (img)
		elf_image_close(img);
}

/* ---- where they are ---- */

/* In this order; a static of a library is sure once all have been asked. */
enum turn { PROGRAMS_GLOBALS, PROGRAMS_STATICS, LIBRARIES_GLOBALS, LIBRARIES_STATICS, TURNS };

static bool is_of_libraries(int turn)
{
	return turn >= LIBRARIES_GLOBALS;
}

static bool is_of_statics(int turn)
{
	return turn == PROGRAMS_STATICS || turn == LIBRARIES_STATICS;
}

struct search {
	const char *name;
	bool local;   /* what is asked for: statics, or what the whole module sees */
	bool loosely; /* and statics of functions */
	struct elf_symbol found;
	bool is_found;
	bool is_ambiguous; /* several statics of this name */
};

/* A static of a function has a number at its end: "name.0". */
static bool is_numbered(const char *symbol, const char *name)
{
	const size_t n = strlen(name);

	return !strncmp(symbol, name, n) && symbol[n] == '.' && symbol[n + 1] &&
	       !symbol[n + 1 + strspn(symbol + n + 1, "0123456789")];
}

/* As the source has it: "space::name"; of a type like std::string's without the ABI's mark. */
static bool is_mangled_of(const char *symbol, const char *name)
{
	const char *last = strrchr(name, ':');
	char *text, *mark;
	bool is_it;

	if (strncmp(symbol, "_Z", 2) || !strstr(symbol, last ? last + 1 : name))
		return false;
	text = symbol_demangle(symbol);
	mark = text ? strstr(text, "[abi:") : NULL;
	if (mark && !strchr(mark, ']')[1])
		*mark = 0;
	is_it = text && !strcmp(text, name);
	xfree(text);
	return is_it;
}

static bool is_name_of(const struct elf_symbol *s, const struct search *q)
{
	return !strcmp(s->name, q->name) || (q->loosely && is_numbered(s->name, q->name)) ||
	       is_mangled_of(s->name, q->name);
}

static bool look_at_symbol(const struct elf_symbol *s, void *ctx)
{
	struct search *q = ctx;

	if (s->type != STT_OBJECT || s->shndx == SHN_UNDEF || s->shndx == SHN_ABS ||
	    (s->bind == STB_LOCAL) != q->local || !is_name_of(s, q))
		return true;
	q->is_ambiguous = q->is_found && q->found.value != s->value;
	q->found = *s;
	q->is_found = true;
	return q->local && !q->is_ambiguous;
}

/* What it is, once its symbol is found.  If it is not known, why is noted in *k. */
static bool take_size(struct watched_variable *k, const struct elf_image *img,
		      const struct search *q)
{
	unsigned bytes = (unsigned)q->found.size;
	struct err why;

	if (q->name != k->name) { /* a member */
		xfree(k->why);
		k->why = NULL;
		if (!member_find(&k->member, img, k->name, &why)) {
			k->why = xstrdup(why.msg);
			return false;
		}
		bytes = k->member.bytes;
	}
	if (k->size > bytes)
		k->too_short = bytes;
	k->bytes = k->size ? k->size : bytes;
	if (k->size > bytes)
		return false;
	if (k->is_value && q->name == k->name &&
	    !member_fits(img, k->name, q->found.value, k->size, k->type, &why)) {
		xfree(k->why);
		k->why = xstrdup(why.msg);
		return false;
	}
	return true;
}

/* If not, why is noted in *k. */
static bool is_usable(struct watched_variable *k, const struct elf_image *img,
		      const struct search *q)
{
	k->is_ambiguous |= q->is_ambiguous;
	return !q->is_ambiguous && take_size(k, img, q);
}

static void find_exactly(const struct elf_image *img, struct search *q)
{
	const struct elf_image *debug = elf_debug_file(img, NULL);

	elf_symbols_for_each(img, SHT_SYMTAB, look_at_symbol, q);
	if (!q->is_found)
		elf_symbols_for_each(img, SHT_DYNSYM, look_at_symbol, q);
	if (!q->is_found && debug)
		elf_symbols_for_each(debug, SHT_SYMTAB, look_at_symbol, q);
}

static void find_symbol(const struct elf_image *img, struct search *q)
{
	find_exactly(img, q);
	q->loosely = q->local && !q->is_found;
	if (q->loosely)
		find_exactly(img, q);
}

static bool bias_of(const struct elf_image *img, const struct process_mapping *m, uint64_t *bias)
{
	for (size_t i = 0; i < img->nsegments; i++) {
		const struct elf_segment *s = &img->segments[i];
		const uint64_t first = s->off & ~(uint64_t)(PAGE - 1);

		if (!(s->flags & PF_X) || m->off < first || m->off >= s->off + s->filesz)
			continue;
		*bias = m->start - (m->off - s->off + s->vaddr);
		return true;
	}
	return false;
}

/* All of its segments. */
static void note_home(struct watched_variable *k, const struct elf_image *img, uint64_t bias,
		      const struct process_mapping *m)
{
	k->home.start = UINT64_MAX;
	k->home.end = 0;
	for (size_t i = 0; i < img->nsegments; i++) {
		const struct elf_segment *s = &img->segments[i];
		const uint64_t from = (bias + s->vaddr) & ~(uint64_t)(PAGE - 1),
			       to = bias + s->vaddr + s->memsz;

		k->home.start = from < k->home.start ? from : k->home.start;
		k->home.end = to > k->home.end ? to : k->home.end;
	}
	k->home.dev = m->dev;
	k->home.ino = m->ino;
}

/* The program's own hide those of libraries, also where it is not known which of them is meant. */
static bool is_wanted(const struct watched_variable *k, int turn)
{
	if (turn == LIBRARIES_STATICS && k->turn == turn)
		return true;
	return !k->addr && !k->is_unfit;
}

static void look_for(struct watched_variable *k, const struct elf_image *img, uint64_t bias,
		     const struct process_mapping *m, int turn)
{
	struct search q = {.name = k->name, .local = is_of_statics(turn)};

	find_symbol(img, &q);
	if (!q.is_found && k->symbol) {
		q.name = k->symbol;
		find_symbol(img, &q);
	}
	if (k->addr) { /* another library's */
		k->is_ambiguous |= q.is_found && k->addr != bias + q.found.value;
		return;
	}
	k->is_unfit = q.is_found && !is_usable(k, img, &q);
	if (!q.is_found || k->is_unfit)
		return;
	k->addr = bias + q.found.value;
	k->was_found = true;
	k->turn = turn;
	k->home.ino = 0;
	if (is_of_libraries(turn))
		note_home(k, img, bias, m);
}

static void look_in(struct variables *v, pid_t pid, const struct process_mapping *m, int turn)
{
	char path[96];
	struct elf_image *img;
	struct err err;
	uint64_t bias;

	/* the mapping's own file, whatever has come in its place, or is elsewhere in its namespace */
	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", process_memory_thread(pid),
		 (unsigned long long)m->start, (unsigned long long)m->end);
	if (elf_image_open(&img, path, &err) && elf_image_open(&img, m->path, &err))
		return;
	if (bias_of(img, m, &bias)) {
		vec_for(&v->v, k) {
			k->was_sought = true;
			if (is_wanted(k, turn))
				look_for(k, img, bias, m, turn);
		}
	}
	elf_image_close(img);
}

static bool are_all_found(const struct variables *v)
{
	for (size_t i = 0; i < v->v.n; i++)
		if (!v->v.v[i].addr)
			return false;
	return true;
}

static bool is_home(const struct watched_variable *k, const struct process_maps *maps)
{
	for (size_t i = 0; i < maps->n; i++) {
		const struct process_mapping *m = &maps->v[i];

		if (m->ino == k->home.ino && m->dev == k->home.dev && m->start >= k->home.start &&
		    m->start < k->home.end)
			return true;
	}
	return false;
}

/* What is in the place of a library that was unloaded is not its variables. */
static void forget_unloaded(struct variables *v, const struct process_maps *maps)
{
	vec_for(&v->v, k) {
		if (!k->addr || !k->home.ino || is_home(k, maps))
			continue;
		k->addr = 0;
		v->mapped = 0;
	}
}

static bool are_all_the_programs(const struct variables *v)
{
	for (size_t i = 0; i < v->v.n; i++)
		if (v->v.v[i].home.ino)
			return false;
	return true;
}

/* A library that has come since may have a static of the name, too. */
static void begin_look(struct variables *v)
{
	vec_for(&v->v, k) {
		if (k->turn == LIBRARIES_STATICS)
			k->addr = 0;
		if (!k->addr)
			k->turn = 0;
		k->is_ambiguous = k->is_unfit = false;
	}
}

static void end_look(struct variables *v)
{
	vec_for(&v->v, k)
		if (k->is_ambiguous)
			k->addr = 0;
}

/* It has ended meanwhile: what was not found then may be there all the same. */
static void forget_look(struct variables *v, bool was_sought)
{
	vec_for(&v->v, k) {
		if (k->was_found)
			continue;
		k->was_sought = was_sought;
		xfree(k->why);
		k->why = NULL;
		k->too_short = 0;
		k->is_ambiguous = false;
	}
}

static bool is_turn_needed(const struct variables *v, int turn)
{
	for (size_t i = 0; i < v->v.n; i++)
		if (is_wanted(&v->v.v[i], turn))
			return true;
	return false;
}

static void look(struct variables *v, pid_t pid)
{
	struct process_maps maps;
	struct err err;
	const bool was_sought = v->v.n && v->v.v[0].was_sought;
	char *exe;

	if ((are_all_found(v) && are_all_the_programs(v)) || process_maps_read(&maps, pid, &err))
		return;
	forget_unloaded(v, &maps);
	if (maps.n != v->mapped) {
		exe = process_exe(pid);
		begin_look(v);
		for (int turn = 0; turn < TURNS; turn++)
			for (size_t i = 0; i < maps.n && is_turn_needed(v, turn); i++) {
				const bool is_library = !exe || strcmp(maps.v[i].path, exe);

				if (process_mapping_is_exec(&maps.v[i]) && maps.v[i].ino &&
				    is_library == is_of_libraries(turn))
					look_in(v, pid, &maps.v[i], turn);
			}
		end_look(v);
		if (!process_image(pid))
			forget_look(v, was_sought);
		xfree(exe);
		v->mapped = maps.n;
	}
	process_maps_free(&maps);
}

/* ---- what they are ---- */

/*
 * Fields 26 and 28 of stat: where text and stack begin.  Programs that are not position-independent have the same text,
 * and hardly the same stack; two that have both have the same variables, too.
 */
uint64_t process_image(pid_t pid)
{
	char path[64], text[2048], *at;
	unsigned long long code, stack;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", process_memory_thread(pid));
	f = fopen(path, "re");
	if (!f)
		return 0;
	text[fread(text, 1, sizeof(text) - 1, f)] = 0;
	fclose(f);
	at = strrchr(text, ')');
	for (int field = 2; at && field < 26; field++)
		at = strchr(at + 1, ' ');
	return at && sscanf(at, "%llu %*u %llu", &code, &stack) == 2 && code ? code ^ stack : 0;
}

static uint64_t value_of(const struct watched_variable *k, const uint8_t *bytes)
{
	const unsigned unused = 64 - 8 * k->bytes;
	uint64_t n = 0;
	double d;
	float f;

	if (k->type == VALUE_DOUBLE && k->bytes == 4) {
		memcpy(&f, bytes, sizeof(f));
		d = (double)f;
		memcpy(&n, &d, sizeof(n));
		return n;
	}
	memcpy(&n, bytes, k->bytes);
	if (k->type == VALUE_SIGNED)
		n = (uint64_t)((int64_t)(n << unused) >> unused);
	return n;
}

static bool has_readable_size(const struct watched_variable *k)
{
	return k->bytes && k->bytes <= 8 && !(k->bytes & (k->bytes - 1));
}

const char *monitor_variable_trouble(const struct watched_variable *k, char *text, size_t size)
{
	const char *missing = monitor_variable_missing(k, text, size);

	if (missing)
		return missing;
	if (has_readable_size(k))
		return k->was_alive ? NULL : "the program ended before it could be read";
	snprintf(text, size, "it has %u bytes; say which type, like %s:u32", k->bytes, k->name);
	return text;
}

const char *monitor_variable_missing(const struct watched_variable *k, char *text, size_t size)
{
	if (k->is_ambiguous)
		snprintf(text, size, "there are several static variables of this name");
	else if (k->was_found)
		return NULL;
	else if (k->why)
		snprintf(text, size, "%s", k->why);
	else if (!k->was_sought)
		snprintf(text, size, "the program ended before it could be looked for");
	else if (k->too_short)
		snprintf(text, size, "it has %u bytes, fewer than its type", k->too_short);
	else
		snprintf(text, size, "the program and its libraries have no such variable");
	return text;
}

static bool read_bytes(pid_t thread, uint64_t addr, void *bytes, unsigned n)
{
	struct iovec to = {bytes, n}, from = {(void *)(uintptr_t)addr, n};

	return process_vm_readv(thread, &to, 1, &from, 1, 0) == (ssize_t)n;
}

static void read_one(const struct watched_variable *k, pid_t thread, struct reading *out)
{
	uint64_t at = k->addr;
	uint8_t bytes[8];

	*out = (struct reading){0};
	if (!k->addr || !k->bytes || k->bytes > 8)
		return;
	for (unsigned i = 0; i < k->member.nsteps; i++) {
		if (i && !read_bytes(thread, at, &at, sizeof(at)))
			return;
		at += (uint64_t)(int64_t)k->member.step[i];
	}
	if (!read_bytes(thread, at, bytes, k->bytes))
		return;
	out->known = true;
	out->n = value_of(k, bytes);
}

void monitor_variables_find(struct variables *v, pid_t pid)
{
	const uint64_t image = v->v.n ? process_image(pid) : 0;

	if (image && image != v->image) {
		vec_for(&v->v, k)
			k->addr = 0;
		v->image = image;
		v->mapped = 0;
	}
	look(v, pid);
}

/* What was read may be of a program that has been executed since they were found, or of another library. */
static void drop_changed(const struct variables *v, pid_t pid, struct reading *out)
{
	struct process_maps maps = {0};
	struct err err;

	if (!are_all_the_programs(v) && process_maps_read(&maps, pid, &err))
		memset(&maps, 0, sizeof(maps));
	for (size_t i = 0; i < v->v.n; i++)
		if (v->v.v[i].home.ino && !is_home(&v->v.v[i], &maps))
			out[i] = (struct reading){0};
	process_maps_free(&maps);
	if (process_image(pid) != v->image)
		memset(out, 0, v->v.n * sizeof(*out));
}

static void note_alive(struct variables *v, pid_t pid)
{
	const bool is_alive = process_image(pid) != 0;

	vec_for(&v->v, k)
		k->was_alive |= is_alive && k->was_found;
}

void monitor_variables_read(struct variables *v, pid_t pid, struct reading *out)
{
	pid_t thread;

	if (!v->v.n)
		return;
	monitor_variables_find(v, pid);
	thread = process_memory_thread(pid);
	for (size_t i = 0; i < v->v.n; i++)
		read_one(&v->v.v[i], thread, &out[i]);
	drop_changed(v, pid, out);
	note_alive(v, pid);
}
