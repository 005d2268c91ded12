/* SPDX-License-Identifier: MIT */
/*
 * fuzz_elf.c - hostile ELF files against everything that reads them: image, symbols, functions,
 * frames, names, the code map with its decoders, the planner, the writer of patched files and
 * the reader of what they say about themselves.
 *
 *   clang -fsanitize=fuzzer,address -DKRON_LIBFUZZER ...     with libFuzzer
 *   fuzz_elf [-t SECONDS] [-s SEED] [-o FILE] [ELF...]       on its own: mutates seeds, prints TAP
 *
 * Without ELF files the seeds are the unit tests' made-up file and a few small programs of the
 * system.  The input in use stands in FILE (default fuzz_elf.input), so that a crash leaves it
 * there; "fuzz_elf -r FILE" runs that one again.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/vec.h"
#include "inject/disk/apply_elf.h"
#include "inject/bind/bind.h"
#include "inject/code/code_map.h"
#include "inject/elf/demangle.h"
#include "inject/code/functions.h"
#include "inject/plan/callsite.h"
#include "inject/disk/patch_info.h"
#include "inject/plan/plan.h"
#include "inject/resolve/resolve.h"
#include "tests/unit/inject/elf_maker.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* They are not what is tested here. */
static const struct functions_options no_debug_files = {
	.sources = FUNCTION_ALL_SOURCES & ~FUNCTION_DEBUG_FILE,
};

static void see(uint64_t value, void *ctx)
{
	*(uint64_t *)ctx += value;
}

/* What every user of struct functions relies on. */
static void check(const struct elf_image *img, const struct functions *f)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct function *fn = &f->v[i];

		if (fn->start >= fn->end || (i && fn[-1].end > fn->start))
			abort();
		if (!elf_image_at(img, fn->start, fn->end - fn->start) ||
		    !elf_image_is_exec(img, fn->start))
			abort();
		if (fn->parent >= f->n || (!fn->is_part && fn->parent != i))
			abort();
		if (f->v[fn->parent].is_part && fn->parent != i)
			abort();
	}
}

/* Whatever the planner makes of it can be kept, loaded and bound. */
static void use_plan(const struct plan *p)
{
	uint8_t *all = memset(xmalloc(p->nfunctions + 1), 1, p->nfunctions + 1);
	int fd = memfd_create("plan", 0);
	static const struct plan_key key;
	struct plan *loaded;
	struct bound bound;

	if (fd < 0 || plan_save(p, &key, fd, NULL) || plan_load(&loaded, &key, fd, NULL))
		abort();
	if (!bind_make(&bound,
		       &(struct binding){
			       .plan = loaded,
			       .selected = all,
			       .hooks = true,
			       .block = (p->reach_hi + 0xfff) & ~0xfffull,
		       },
		       NULL))
		bound_free(&bound);
	plan_free(loaded);
	xfree(all);
	close(fd);
}

/* A file in memory. */
struct file {
	uint8_t *bytes;
	size_t size, max;
};

static int put_bytes(void *ctx, uint64_t off, const void *bytes, uint64_t len, struct err *err)
{
	struct file *f = ctx;

	if (off > f->max || len > f->max - off)
		return err_set(err, EFBIG,
			       "holes of this size are the writer's business, not ours");
	if (off + len > f->size) {
		f->bytes = xrealloc(f->bytes, off + len);
		memset(f->bytes + f->size, 0, off + len - f->size);
		f->size = off + len;
	}
	memcpy(f->bytes + off, bytes, len);
	return 0;
}

/* The image with the plan's probes: no bytes when that cannot be. */
static struct file patched(const struct elf_image *img, const struct patch_info *what)
{
	struct file f = {.max = img->size + (96ull << 20)};
	const struct elf_sink to = {put_bytes, &f};
	struct elf_patched result;

	put_bytes(&f, 0, img->bytes, img->size, NULL);
	if (!apply_elf_make(&result, &to, img, what, NULL)) {
		if (result.size != f.size)
			abort();
		return f;
	}
	xfree(f.bytes);
	return (struct file){.bytes = NULL};
}

static size_t code_len(const struct plan *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->nsites; i++)
		n += p->sites[i].code_len;
	return n;
}

/* What was written can be opened, says what its probes are, and is not patched again. */
static void read_back(const uint8_t *file, size_t size, const struct plan *plan)
{
	struct patch_info info;
	struct elf_image *img;
	struct err err;

	if (elf_image_from_memory(&img, file, size, "patched", &err) ||
	    patch_info_read(&info, img, &err) || !apply_elf_check(img, NULL)) {
		fprintf(stderr, "a patched file: %s\n", err.msg);
		abort();
	}
	if (info.plan->nsites != plan->nsites || info.plan->nprobes != plan->nprobes ||
	    code_len(info.plan) != code_len(plan))
		abort();
	patch_info_free(&info);
	elf_image_close(img);
}

/* Where a library's start-up code would be called. */
static const struct start_hook *find_hook(struct start_hook *hooks, const struct elf_image *img,
					  const struct plan *plan)
{
	struct functions f;
	struct code_map *map;
	size_t n = 0;

	if (img->kind != ELF_KIND_SHARED || functions_find(&f, img, NULL))
		return NULL;
	if (!code_map_build(&map, img, &f, NULL)) {
		n = start_hooks_find(hooks, map);
		code_map_free(map);
	}
	functions_free(&f);
	return start_hook_choose(hooks, n, plan, NULL);
}

static void write_patched(const struct elf_image *img, bool jumps)
{
	struct start_hook hooks[START_HOOKS_MAX];
	struct plan_options opt = apply_elf_options(img);
	struct plan *plan;
	uint8_t *selected, *levels;
	struct file file;

	if (apply_elf_check(img, NULL) || plan_make(&plan, img, &opt, NULL))
		return;
	selected = xcalloc(plan->nfunctions, 1);
	levels = xcalloc(plan->nfunctions, 1);
	for (size_t i = 0; i < plan->nfunctions; i++) {
		selected[i] = i % 5 != 3;
		levels[i] = i % 16;
	}
	patch_plan_trim(plan, selected, levels);
	file = patched(img, &(struct patch_info){.plan = plan,
						 .levels = levels,
						 .has_jumps = jumps,
						 .hook = find_hook(hooks, img, plan)});
	if (file.bytes)
		read_back(file.bytes, file.size, plan);
	xfree(file.bytes);
	plan_free(plan);
	xfree(selected);
	xfree(levels);
}

/* Every kind of place, wherever it may be. */
static void use_probes(const struct elf_image *img, const struct code_map *map)
{
	static const char *const specs[] = {
		"*",
		"*%return $retval",
		"*%blocks count:1",
		"*%loads $addr",
		"*+4",
		"0x1000",
		"*%after",
		"/[a-m]/%callers $arg1",
		"%*:* $arg1",
		"sdt_p:* $arg2",
		"main",
		"a.c:1",
		"*%stores%after",
		"usdt:*:x",
		"operator()",
	};
	struct probe_set set = {0};
	struct resolution found;
	struct plan_request request;
	struct plan *plan;

	for (unsigned i = 0; i < sizeof(specs) / sizeof(specs[0]); i++)
		if (probe_set_add(&set, specs[i], i + 1, NULL))
			abort();
	resolve_has_marker(&set, img);
	resolve_make(&found, &set, map, "/x/input", true);
	for (size_t i = 0; i < found.places.n; i++)
		if (found.places.v[i].event != RESOLVE_NO_EVENT &&
		    found.places.v[i].event >= found.events.n)
			abort();
	request = resolve_request(&found, img->size & 1);
	if (!plan_make_from(&plan, map, &(struct plan_options){.request = &request}, NULL))
		plan_free(plan);
	resolve_free(&found);
	probe_set_free(&set);
}

/* Functions of other files, where this one calls them. */
static void use_calls(const struct elf_image *img)
{
	static const char *const specs[] = {"*", "*:*%return $retval", "*:* $sp", "malloc count:3",
					    "libc*:/./"};
	struct plan_options opt = apply_elf_options(img);
	struct callsite_links *links = callsite_links_make(img);
	struct functions f = {0};
	struct probe_set set = {.no_callsites = true};
	struct plan_request request;
	struct resolution found;
	struct code_map *map;
	struct plan *plan;

	for (unsigned i = 0; i < sizeof(specs) / sizeof(specs[0]); i++)
		if (probe_set_add(&set, specs[i], i + 1, NULL))
			abort();
	if (!functions_find_with(&f, img, &no_debug_files, NULL)) {
		callsite_add_stubs(&f, img, links);
		if (!code_map_build(&map, img, &f, NULL)) {
			resolve_make_alone(&found, &set, map, "/x/input", links);
			request = resolve_request(&found, img->size & 1);
			opt.request = &request;
			if (!plan_make_from(&plan, map, &opt, NULL)) {
				resolve_mark_calls(&found, plan);
				if (!plan_is_sound(plan))
					abort();
				plan_free(plan);
			}
			resolve_free(&found);
			code_map_free(map);
		}
		functions_free(&f);
	}
	probe_set_free(&set);
	callsite_links_free(links);
}

static void use_functions(const struct elf_image *img, struct functions *f)
{
	struct frame_info *fi = frame_info_open(img);
	struct code_map *map;
	struct plan *plan;
	uint64_t sum = 0;

	frame_info_for_each_landing_pad(fi, see, &sum);
	for (size_t i = 0; i < f->n; i++) {
		sum += frame_info_cfa_from_sp(fi, f->v[i].start);
		sum += frame_info_cfa_from_sp(fi, f->v[i].end - 1);
		if (f->v[i].name && i < 50)
			xfree(symbol_demangle(f->v[i].name));
	}
	frame_info_close(fi);
	if (!code_map_build(&map, img, f, NULL)) {
		check(img, f);
		if (!(img->bytes[img->size / 2] & 3)) /* it takes as long as all the rest */
			use_probes(img, map);
		code_map_free(map);
	}
	if (!plan_make(&plan, img, &(struct plan_options){0}, NULL)) {
		use_plan(plan);
		plan_free(plan);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct patch_info info;
	struct elf_image *img;
	struct functions f;
	uint64_t sum = 0;

	if (elf_image_from_memory(&img, data, size, "input", NULL))
		return 0;
	if (!patch_info_read(&info, img, NULL))
		patch_info_free(&info);
	write_patched(img, size & 1);
	if (!(data[size / 2] & 12))
		use_calls(img);
	elf_image_for_each_address_constant(img, see, &sum);
	if (!functions_find_with(&f, img, &no_debug_files, NULL)) {
		check(img, &f);
		use_functions(img, &f);
		functions_free(&f);
	}
	elf_image_close(img);
	return 0;
}

#ifndef KRON_LIBFUZZER

struct seed {
	uint8_t *bytes;
	size_t size;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static bool load(struct seed *s, const char *path)
{
	FILE *f = fopen(path, "rb");
	long n;

	if (!f)
		return false;
	fseek(f, 0, SEEK_END);
	n = ftell(f);
	rewind(f);
	s->bytes = xmalloc(n > 0 ? n : 1);
	s->size = n > 0 ? fread(s->bytes, 1, n, f) : 0;
	fclose(f);
	return true;
}

/* Headers and tables decide more than code does: half of the damage goes there. */
static size_t pick_place(const uint8_t *p, size_t size)
{
	Elf64_Ehdr eh;
	uint64_t at = rnd(size), table;

	if (!rnd(4)) /* what patched files say about themselves */
		return size - 1 - rnd(size / 3 + 1);
	if (size < sizeof(eh) || rnd(2))
		return at;
	memcpy(&eh, p, sizeof(eh));
	table = rnd(3) ? eh.e_shoff + rnd(64 * 64) : eh.e_phoff + rnd(56 * 16);
	if (!rnd(8))
		table = rnd(64);
	return table < size ? table : at;
}

static void mutate_once(uint8_t *p, size_t *size)
{
	static const uint64_t values[] = {
		0,          1,          7,      8,          0x7f,       0x80,
		0xff,       0x7fff,     0xffff, 0x7fffffff, 0xffffffff, 1ull << 47,
		1ull << 60, 1ull << 63, ~0ull,  ~0ull >> 1, ~0ull - 7,
	};
	size_t at = pick_place(p, *size), n;
	uint64_t v = values[rnd(sizeof(values) / sizeof(*values))];

	switch (rnd(8)) {
	case 0:
	case 1:
		p[at] = rnd(256);
		break;
	case 2:
		p[at] ^= 1u << rnd(8);
		break;
	case 3:
	case 4: /* an interesting number of 1, 2, 4 or 8 bytes */
		n = 1u << rnd(4);
		if (rnd(4) == 0)
			v = rnd(*size);
		memcpy(p + at, &v, *size - at < n ? *size - at : n);
		break;
	case 5: /* something from elsewhere */
		n = 1 + rnd(64);
		if (*size > n)
			memmove(p + rnd(*size - n), p + rnd(*size - n), n);
		break;
	case 6:
		n = 1 + rnd(32);
		memset(p + at, rnd(256), *size - at < n ? *size - at : n);
		break;
	case 7:
		if (!rnd(4))
			*size = 1 + rnd(*size);
		break;
	}
}

/* Without a right checksum nobody looks further. */
static void mend_checksum(uint8_t *p, size_t size)
{
	uint64_t sum = 0xcbf29ce484222325;
	struct patch_note note;
	struct elf_image *img;
	const uint8_t *block;

	if (elf_image_from_memory(&img, p, size, "input", NULL))
		return;
	if (img->kron_note.size == sizeof(note)) {
		memcpy(&note, p + img->kron_note.off, sizeof(note));
		if (elf_file_has(size, note.info_off, note.info_len)) {
			for (uint64_t i = 0; i < note.info_len; i++)
				sum = (sum ^ p[note.info_off + i]) * 0x100000001b3;
			note.info_sum = sum;
			block = elf_image_at(img, note.block_vaddr, note.block_len);
			if (block && note.block_len > KRON_BLOCK_HEAD)
				note.block_sum = patch_block_sum(block, 0, note.block_len, 0);
			memcpy(p + img->kron_note.off, &note, sizeof(note));
		}
	}
	elf_image_close(img);
}

/* The file that has the input of the last round. */
struct kept {
	int fd;
	uint8_t *bytes;
	size_t room;
};

/* The input ends where a page ends, so that one byte too far faults even without sanitizers. */
static void run_one(uint8_t *arena_end, const struct seed *s, struct kept *keep,
		    unsigned int changes)
{
	uint8_t *work = keep->bytes;
	size_t size = s->size;

	if (ftruncate(keep->fd, (off_t)keep->room))
		exit(99);
	memcpy(work, s->bytes, size);
	for (unsigned int i = 0; i < changes; i++)
		mutate_once(work, &size);
	if (rnd(4))
		mend_checksum(work, size);
	memcpy(arena_end - size, work, size);
	if (ftruncate(keep->fd, (off_t)size))
		exit(99);
	LLVMFuzzerTestOneInput(arena_end - size, size);
}

static int fuzz(const struct seed *seeds, size_t n, double seconds, const char *out)
{
	size_t most = 0, runs = 0, room;
	double end = now() + seconds, slowest = 0;
	struct kept keep;
	uint8_t *arena;

	for (size_t i = 0; i < n; i++)
		if (seeds[i].size > most)
			most = seeds[i].size;
	room = (most + 4095) & ~4095ul;
	arena = mmap(NULL, room + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	keep.room = room;
	keep.fd = open(out, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (arena == MAP_FAILED || keep.fd < 0)
		return 99;
	mprotect(arena + room, 4096, PROT_NONE);
	keep.bytes = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, keep.fd, 0);
	if (keep.bytes == MAP_FAILED)
		return 99;
	while (now() < end) {
		double start = now();

		run_one(arena + room, &seeds[rnd(n)], &keep, 1 + rnd(rnd(3) ? 4 : 32));
		if (now() - start > slowest)
			slowest = now() - start;
		runs++;
	}
	munmap(keep.bytes, room);
	munmap(arena, room + 4096);
	close(keep.fd);
	unlink(out);
	printf("# %zu inputs in %.0f s, the slowest took %.0f ms\n", runs, seconds, slowest * 1e3);
	printf("%s 1 - hostile ELF files\n1..1\n", slowest < 10 ? "ok" : "not ok");
	return 0;
}

/* A patched file of the program at path. */
static bool load_patched(struct seed *s, const char *path, bool jumps)
{
	struct plan_options opt;
	struct elf_image *img;
	struct file file;
	struct plan *plan;
	uint8_t *levels;

	if (elf_image_open(&img, path, NULL))
		return false;
	opt = apply_elf_options(img);
	if (plan_make(&plan, img, &opt, NULL))
		return false;
	levels = xcalloc(plan->nfunctions, 1);
	file = patched(img,
		       &(struct patch_info){.plan = plan, .levels = levels, .has_jumps = jumps});
	s->bytes = file.bytes;
	s->size = file.size;
	xfree(levels);
	plan_free(plan);
	elf_image_close(img);
	return s->bytes;
}

static size_t load_seeds(struct seed *seeds, size_t max, char **paths, int npaths)
{
	static const char *defaults[] = {"/bin/true", "/usr/bin/printf",
					 "/lib64/ld-linux-x86-64.so.2"};
	static struct made made[3];
	size_t n = 0;

	for (int i = 0; i < npaths && n < max; i++)
		n += load(&seeds[n], paths[i]);
	if (npaths)
		return n;
	for (int i = 0; i < 3; i++) {
		make_elf(&made[i], i == 0 ? MADE_PIE : i == 1 ? MADE_STATIC : MADE_SHARED);
		if (i == 2) { /* with something to begin with */
			Elf64_Dyn *d = MADE_DYN(&made[i]);

			while (d->d_tag != DT_NULL)
				d++;
			*d++ = (Elf64_Dyn){DT_INIT, {MADE_BASE + 0x840}};
			*d++ = (Elf64_Dyn){DT_INIT_ARRAY, {MADE_BASE + 0x2200}};
			*d++ = (Elf64_Dyn){DT_INIT_ARRAYSZ, {32}};
			*d = (Elf64_Dyn){DT_NULL, {0}};
		}
		seeds[n].bytes = xmalloc(MADE_SIZE);
		memcpy(seeds[n].bytes, &made[i], MADE_SIZE);
		seeds[n++].size = MADE_SIZE;
	}
	for (int i = 0; i < 4; i++) {
		make_go_elf(&made[0],
			    (uint32_t[]){0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1}[i]);
		seeds[n].bytes = xmalloc(MADE_SIZE);
		memcpy(seeds[n].bytes, &made[0], MADE_SIZE);
		seeds[n++].size = MADE_SIZE;
	}
	for (size_t i = 0; i < sizeof(defaults) / sizeof(*defaults); i++)
		n += load(&seeds[n], defaults[i]);
	for (int i = 0; i < 2; i++)
		n += load_patched(&seeds[n], defaults[0], i);
	return n;
}

int main(int argc, char **argv)
{
	struct seed seeds[64] = {{NULL, 0}};
	struct fuzz_options o = {.seed = 1, .out = "fuzz_elf.input"};
	size_t n;
	int rc;

	if (!fuzz_options(&o, argc, argv))
		return 2;
	if (o.again) {
		if (!load(&seeds[0], o.again))
			return 2;
		LLVMFuzzerTestOneInput(seeds[0].bytes, seeds[0].size);
		xfree(seeds[0].bytes);
		return 0;
	}
	n = load_seeds(seeds, 64, argv + optind, argc - optind);
	if (!n)
		return 99;
	rc = fuzz(seeds, n, o.seconds, o.out);
	for (size_t i = 0; i < n; i++)
		xfree(seeds[i].bytes);
	return rc;
}

#endif
