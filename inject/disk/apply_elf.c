/* SPDX-License-Identifier: MIT */
/*
 * apply_elf.c - see apply_elf.h.
 *
 *   image, plan ─► layout (where the new segment lies) ─► bind, asleep, part by part ─► sink:
 *                  block, sites, start-up code, plan, program headers, note, sections, header
 *
 * apply_elf_check.c refuses whatever the headers leave in doubt.
 */
#include "inject/disk/apply_elf_impl.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/vec.h"
#include "inject/bind/bind.h"
#include "inject/elf/elf_image_impl.h"
#include "inject/elf/elf_symbols.h"
#include "inject/disk/patch_info.h"
#include "inject/disk/start_code.h"
#include "inject/bind/unwind.h"

#define PAGE 4096ull
/* What the distance that old kernels want may cost. */
#define HOLE_MAX (64ull << 20)
#define GAP_MAX (1ull << 30)
#define SYMBOL_MAX (1ull << 20) /* larger ones are no reason for a gap */
/* rel32, less something for the block itself */
#define REACH_MAX (0x7fff0000ull)
/* The names of the sections that we add: a string table. */
#define SECTION_NAMES(X)                     \
	X(note, ".note.kron")                \
	X(block, ".kron")                    \
	X(plan, ".kron.plan")                \
	X(hdr, ".eh_frame_hdr")              \
	X(old_hdr, ".kron.old_eh_frame_hdr") \
	X(start, ".kron.start")              \
	X(debug, ".debug_frame")             \
	X(data, ".kron.data")                \
	X(wake, ".kron.wake")
struct section_names {
#define X(id, name) char id[sizeof(name)];
	SECTION_NAMES(X)
#undef X
};
#define NAME_AT(id) ((uint32_t)offsetof(struct section_names, id))
#define NEW_SECTIONS 8u /* at most */

/* ---- where it goes ---- */

static uint64_t page_up(uint64_t v)
{
	return (v + PAGE - 1) & -PAGE;
}

struct layout {              /* of the new parts, in the order of the file */
	uint64_t vaddr, off; /* of the new segment */
	uint64_t head_len;   /* headers, note, frames, up to the page's end; the block follows */
	uint64_t block_len;
	uint64_t start_len;  /* of the start-up code after it; 0: not a static program */
	uint64_t start_data; /* of that: its data, which are not in the file */
	uint64_t wake_at;    /* in memory, from vaddr on: what follows the data */
	uint64_t info_off;
	uint64_t names_off, debug_off, sections_off; /* has_sections */
	size_t phnum;
	uint64_t note_at;  /* in the segment */
	uint64_t frame_at; /* likewise: frame information of the block, if frame.len */
};

struct applying {
	const struct elf_image *img;
	const struct plan *plan;
	const struct patch_info *what;
	Elf64_Ehdr eh;
	struct layout at;
	const struct elf_sink *to;
	uint64_t size; /* of the new file, so far */
	struct err *err;
	struct patch_note note;
	struct kron_tables tables; /* the block's, and their address */
	uint64_t tables_at;
	const uint8_t *frame_hdr; /* the image's own .eh_frame_hdr, NULL: it has none */
	uint64_t frame_hdr_vaddr;
	bool adds_table; /* PT_GNU_EH_FRAME is ours alone */
	struct unwind_disk frame;
	uint8_t *info;
	Elf64_Shdr names;    /* the old section header of their names, if they can be added to */
	Elf64_Shdr *headers; /* the new table */
	size_t nsections;    /* in it */
	uint8_t *debug;      /* a .debug_frame; NULL: the image has one */
	size_t debug_len;
	char *strings; /* the new names */
	uint64_t strings_len;
};

#define NOTE_HEAD (sizeof(Elf64_Nhdr) + sizeof(KRON_NOTE_OWNER))
#define NOTE_LEN (NOTE_HEAD + sizeof(struct patch_note))

static bool take_larger(const struct elf_symbol *sym, void *ctx)
{
	uint64_t *largest = ctx;

	if (sym->size > *largest && sym->size < SYMBOL_MAX)
		*largest = sym->size;
	return true;
}

/*
 * The end of what is loaded, and some distance more: eu-elflint takes a relocation for one that
 * changes the new segment when the segment begins less than the symbol's size after it.
 */
static uint64_t loaded_end(const struct elf_image *img)
{
	const struct elf_segment *last = &img->segments[img->nsegments - 1];
	uint64_t largest = 0;

	elf_symbols_for_each(img, SHT_DYNSYM, take_larger, &largest);
	return page_up(last->vaddr + last->memsz + largest);
}

/* Nothing, or the start-up code's. */
static struct unwind_code frames_of_start(const struct applying *a)
{
	struct unwind_code code = {0};
	uint64_t off;

	if (!a->at.start_len)
		return code;
	code.frame = start_part_frame(&off, &code.len);
	code.at = a->at.vaddr + a->at.head_len + a->at.block_len + off;
	return code;
}

/*
 * The image's table for unwinders is to be merged with the block's.  One that is not as linkers
 * make it stays alone: a stack is then cut off at a stub.  So does one that is not there, but in
 * static programs, which manage without.
 */
static void plan_frames(struct applying *a)
{
	const struct binding whole = {.plan = a->plan, .whole = true};
	const struct unwind_code code = frames_of_start(a);
	bool has_table = false;

	for (size_t i = 0; i < a->eh.e_phnum; i++) {
		Elf64_Phdr ph = apply_elf_header(a->img, &a->eh, i);
		const uint8_t *hdr;

		if (ph.p_type != PT_GNU_EH_FRAME)
			continue;
		has_table = true;
		hdr = elf_image_at(a->img, ph.p_vaddr, ph.p_filesz);
		if (!hdr ||
		    !unwind_disk_plan(&a->frame, hdr, ph.p_filesz, bind_stubs_size(&whole), &code))
			continue;
		a->frame_hdr = hdr;
		a->frame_hdr_vaddr = ph.p_vaddr;
	}
	a->adds_table = !has_table && a->img->kind == ELF_KIND_STATIC;
	if (a->adds_table)
		unwind_disk_plan(&a->frame, NULL, 0, bind_stubs_size(&whole), &code);
}

static uint64_t segment_len(const struct layout *at)
{
	return at->head_len + at->block_len + at->start_len;
}

static uint64_t file_len(const struct layout *at)
{
	return segment_len(at) - at->start_data;
}

static int check_reach(const struct applying *a, struct err *err)
{
	if (a->at.vaddr + segment_len(&a->at) - a->plan->reach_lo <= REACH_MAX)
		return 0;
	return err_set(err, ERANGE, "there is no room within 2 GiB of its code");
}

static int lay_out(struct applying *a, struct err *err)
{
	const struct elf_image *img = a->img;
	const struct elf_segment *first = &img->segments[0];
	uint64_t end = loaded_end(img), file_end = page_up(img->size);
	struct layout *at = &a->at;

	at->phnum = a->eh.e_phnum + NEW_HEADERS - !a->adds_table;
	if (!at->start_len)
		at->phnum -= LOADS_MAX - 1;
	at->note_at = at->phnum * sizeof(Elf64_Phdr);
	at->frame_at = (at->note_at + NOTE_LEN + 15) & ~15ull;
	at->head_len = page_up(at->frame_at + a->frame.len);
	/* as far from the first segment as in the file, if it can be had */
	at->vaddr = first->vaddr - first->off + file_end;
	if (first->off > first->vaddr || first->vaddr % PAGE != first->off % PAGE ||
	    at->vaddr < end || at->vaddr - end > GAP_MAX)
		at->vaddr = end;
	at->off = at->vaddr - (first->vaddr - first->off);
	if (first->off > first->vaddr || at->off < file_end || at->off - file_end > HOLE_MAX)
		at->off = file_end;
	at->info_off = at->off + file_len(at);
	at->wake_at = segment_len(at);
	return check_reach(a, err);
}

/* ---- the parts ---- */

static int named(const struct applying *a, int code)
{
	return code < 0 ? err_prefix(a->err, code, "%s", a->img->path) : code;
}

static int put(struct applying *a, uint64_t off, const void *bytes, uint64_t len)
{
	if (off + len > a->size)
		a->size = off + len;
	return a->to->put(a->to->ctx, off, bytes, len, a->err);
}

static int damaged(const struct applying *a)
{
	return err_set(a->err, ENOEXEC, "%s is damaged: its code is not where its headers say",
		       a->img->path);
}

/* The text must be as the plan has it; the jump is written, if the file is to have any. */
static int put_jump(struct applying *a, uint64_t vaddr, const struct kron_patch *p)
{
	const uint8_t *text = elf_image_at(a->img, vaddr, p->old_len);

	if (!text || !elf_image_is_exec(a->img, vaddr) || memcmp(text, p->old_bytes, p->old_len))
		return damaged(a);
	if (!p->new_len || !a->what->has_jumps)
		return 0;
	/* the ELF header may be part of a segment with code, but no site lies in it */
	if ((uint64_t)(text - a->img->bytes) < sizeof(a->eh))
		return damaged(a);
	return put(a, (uint64_t)(text - a->img->bytes), p->new_bytes, p->new_len);
}

static int put_block_part(struct applying *a, const struct bind_part *part)
{
	uint64_t block = a->at.vaddr + a->at.head_len;
	int code = put(a, a->at.off + a->at.head_len + part->at, part->bytes, part->len);

	for (size_t i = 0; i < part->npatches && !code; i++)
		code = put_jump(a, part->patch_addr + part->patches[i].off, &part->patches[i]);
	a->note.block_sum = patch_block_sum(part->bytes, part->at, part->len, a->note.block_sum);
	a->tables_at = block + part->at;
	if (part->at + part->len == a->at.block_len)
		memcpy(&a->tables, part->bytes, sizeof(a->tables));
	return code;
}

/* wake may be NULL. */
static int put_block(struct applying *a, const struct binding *b, struct start_wake *wake)
{
	struct bind_parts *parts = bind_open(b);
	struct bind_part part;
	int code;

	while ((code = named(a, bind_next(parts, &part, a->err))) > 0) {
		code = put_block_part(a, &part);
		if (!code && wake)
			code = named(a, start_wake_add(wake, &part, !a->what->has_jumps, a->err));
		if (code)
			break;
	}
	bind_close(parts);
	return code;
}

/* A library's start-up code is called by the one jump that its text always has. */
static int put_start_jump(struct applying *a, uint64_t entry)
{
	const struct start_hook *h = a->what->hook;
	const uint8_t *text = elf_image_at(a->img, h->vaddr, START_HOOK_JUMP);
	int64_t distance = (int64_t)(entry - (h->vaddr + START_HOOK_JUMP));
	int32_t rel32 = (int32_t)distance;
	uint8_t jump[START_HOOK_JUMP] = {0xe9};

	if (!text || rel32 != distance)
		return damaged(a);
	memcpy(jump + 1, &rel32, sizeof(rel32));
	return put(a, (uint64_t)(text - a->img->bytes), jump, sizeof(jump));
}

/* Where nobody else brings the runtime along.  What follows it moves. */
static int put_start(struct applying *a, const struct binding *b, struct start_wake *wake)
{
	struct layout *at = &a->at;
	uint64_t off = at->head_len + at->block_len;
	struct start_part s;
	int code = named(a, start_part_make(&s, at->vaddr + off, a->eh.e_entry, a->img, a->what, b,
					    at->block_len, wake, a->err));

	if (code)
		return code;
	at->start_len = s.len;
	at->info_off = a->note.info_off = at->off + file_len(at);
	code = named(a, check_reach(a, a->err));
	if (a->img->kind != ELF_KIND_SHARED)
		a->eh.e_entry = s.entry;
	else if (!code)
		code = put_start_jump(a, s.entry);
	if (!code)
		code = put(a, at->off + off, s.code, start_code_size);
	if (!code)
		code = put(a, at->off + at->wake_at - at->start_data, s.wake, s.wake_len);
	start_part_free(&s);
	return code;
}

static int put_block_and_start(struct applying *a)
{
	struct binding b = {
		.plan = a->plan,
		.block = a->at.vaddr + a->at.head_len,
		.whole = true,
		.dormant = true,
		.id = a->note.id,
		.handlers_only = a->img->kind != ELF_KIND_STATIC,
	};
	struct start_wake *wake = NULL;
	int code;

	if (a->note.flags & PATCH_OWN_HOOK)
		b.own_hook = start_part_hook(b.block + a->at.block_len);
	if (a->at.start_len)
		wake = start_wake_open(a->what, &b);
	code = put_block(a, &b, wake);
	if (!code && wake)
		code = put_start(a, &b, wake);
	start_wake_close(wake);
	return code;
}

/* A library's start-up code does not run unless it is asked to. */
static uint32_t own_hook_flag(const struct applying *a)
{
	return a->at.start_len && a->img->kind != ELF_KIND_SHARED ? PATCH_OWN_HOOK : 0;
}

static void describe(struct applying *a)
{
	a->note = (struct patch_note){
		.version = PATCH_VERSION,
		.flags = (a->what->has_jumps ? PATCH_HAS_JUMPS : 0) | own_hook_flag(a) |
			 (!a->at.start_len                  ? 0
			  : a->img->kind == ELF_KIND_STATIC ? PATCH_HAS_START
							    : PATCH_HAS_BOARD),
		.block_vaddr = a->at.vaddr + a->at.head_len,
		.block_len = a->at.block_len,
		.info_off = a->at.info_off,
	};
	a->info = patch_info_encode(a->what, &a->note);
}

/* From `from` to `to` in memory; what follows the data of the start-up code is nearer in the file. */
static Elf64_Phdr make_load(const struct layout *at, uint64_t from, uint64_t to, uint32_t flags)
{
	return (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_flags = flags,
		.p_offset = at->off + from - (from < at->wake_at ? 0 : at->start_data),
		.p_vaddr = at->vaddr + from,
		.p_paddr = at->vaddr + from,
		.p_filesz = flags & PF_X ? to - from : 0,
		.p_memsz = to - from,
		.p_align = PAGE,
	};
}

static size_t make_loads(const struct layout *at, Elf64_Phdr *ph)
{
	uint64_t data = at->wake_at - at->start_data;

	ph[0] = make_load(at, 0, data, PF_R | PF_X);
	if (!at->start_len)
		return 1;
	ph[1] = make_load(at, data, at->wake_at, PF_R); /* the code makes them writable */
	ph[2] = make_load(at, at->wake_at, segment_len(at), PF_R | PF_X);
	return LOADS_MAX;
}

/* The old headers in their order, ours after the last PT_LOAD and at the end. */
static void make_headers(const struct applying *a, Elf64_Phdr *ph)
{
	const struct layout *at = &a->at;
	const Elf64_Phdr note = {
		.p_type = PT_NOTE,
		.p_flags = PF_R,
		.p_offset = at->off + at->note_at,
		.p_vaddr = at->vaddr + at->note_at,
		.p_paddr = at->vaddr + at->note_at,
		.p_filesz = NOTE_LEN,
		.p_memsz = NOTE_LEN,
		.p_align = 4,
	};
	const Elf64_Phdr frame = {
		.p_type = PT_GNU_EH_FRAME,
		.p_flags = PF_R,
		.p_offset = at->off + at->frame_at,
		.p_vaddr = at->vaddr + at->frame_at,
		.p_paddr = at->vaddr + at->frame_at,
		.p_filesz = a->frame.hdr_len,
		.p_memsz = a->frame.hdr_len,
		.p_align = 4,
	};
	size_t last = 0, n = 0;

	for (size_t i = 0; i < a->eh.e_phnum; i++)
		if (apply_elf_header(a->img, &a->eh, i).p_type == PT_LOAD)
			last = i;
	for (size_t i = 0; i < a->eh.e_phnum; i++) {
		ph[n] = apply_elf_header(a->img, &a->eh, i);
		if (ph[n].p_type == PT_PHDR) {
			ph[n].p_offset = at->off;
			ph[n].p_vaddr = ph[n].p_paddr = at->vaddr;
			ph[n].p_filesz = ph[n].p_memsz = at->phnum * sizeof(*ph);
		} else if (ph[n].p_type == PT_GNU_EH_FRAME && a->frame_hdr) {
			ph[n] = frame;
		}
		n++;
		if (i == last)
			n += make_loads(at, ph + n);
	}
	ph[n++] = note;
	if (a->adds_table)
		ph[n] = frame;
}

static void make_note(const struct applying *a, uint8_t *at)
{
	const Elf64_Nhdr nh = {
		.n_namesz = sizeof(KRON_NOTE_OWNER) + sizeof(a->note),
		.n_type = NT_VERSION,
	};

	memcpy(at, &nh, sizeof(nh));
	memcpy(at + sizeof(nh), KRON_NOTE_OWNER, sizeof(KRON_NOTE_OWNER));
	memcpy(at + NOTE_HEAD, &a->note, sizeof(a->note));
}

static struct unwind_tables tables_of(const struct applying *a)
{
	return (struct unwind_tables){(const uint8_t *)&a->tables, a->tables_at, a->note.id};
}

static int put_head(struct applying *a)
{
	const struct unwind_code code = frames_of_start(a);
	const struct unwind_tables tables = tables_of(a);
	uint8_t *head = xcalloc(a->at.head_len, 1);
	int failed;

	make_headers(a, (Elf64_Phdr *)head);
	make_note(a, head + a->at.note_at);
	if (a->frame.len)
		unwind_disk_make(head + a->at.frame_at, a->at.vaddr + a->at.frame_at, &a->frame,
				 a->frame_hdr, a->frame_hdr_vaddr, &tables, &code);
	failed = put(a, a->at.off, head, a->at.head_len);
	xfree(head);
	return failed;
}

/* ---- section headers ---- */

/*
 * Headers for the new parts make debuggers and disassemblers show them.  Nothing needs them, so
 * where the old table is at all strange it stays alone.
 */
static bool can_add_sections(const struct elf_image *img, const Elf64_Ehdr *eh, Elf64_Shdr *names)
{
	if (!eh->e_shoff || eh->e_shentsize != sizeof(*names) || !eh->e_shnum ||
	    eh->e_shnum >= SHN_LORESERVE - NEW_SECTIONS || eh->e_shstrndx >= eh->e_shnum ||
	    !elf_has(img, eh->e_shoff, (uint64_t)eh->e_shnum * sizeof(*names)))
		return false;
	memcpy(names, img->bytes + eh->e_shoff + eh->e_shstrndx * sizeof(*names), sizeof(*names));
	return names->sh_type == SHT_STRTAB && names->sh_size && names->sh_size < UINT32_MAX / 2 &&
	       elf_has(img, names->sh_offset, names->sh_size);
}

static void make_names(struct applying *a)
{
	static const struct section_names names = {
#define X(id, name) name,
		SECTION_NAMES(X)
#undef X
	};
	uint64_t old = a->names.sh_size;

	a->strings_len = old + sizeof(names);
	a->strings = xmalloc(a->strings_len);
	memcpy(a->strings, a->img->bytes + a->names.sh_offset, old);
	memcpy(a->strings + old, &names, sizeof(names));
}

static void make_sections(struct applying *a)
{
	const struct layout *at = &a->at;
	uint32_t name = (uint32_t)a->names.sh_size;
	size_t n = a->eh.e_shnum;
	const Elf64_Shdr added[] = {
		{
			.sh_name = name + NAME_AT(note),
			.sh_type = SHT_NOTE,
			.sh_flags = SHF_ALLOC,
			.sh_addr = at->vaddr + at->note_at,
			.sh_offset = at->off + at->note_at,
			.sh_size = NOTE_LEN,
			.sh_addralign = 4,
		},
		{
			.sh_name = name + NAME_AT(block),
			.sh_type = SHT_PROGBITS,
			.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
			.sh_addr = at->vaddr + at->head_len,
			.sh_offset = at->off + at->head_len,
			.sh_size = at->block_len,
			.sh_addralign = PAGE,
		},
		{
			.sh_name = name + NAME_AT(plan),
			.sh_type = SHT_PROGBITS,
			.sh_offset = at->info_off,
			.sh_size = a->note.info_len,
			.sh_addralign = 1,
		},
	};
	const Elf64_Shdr frame = {
		.sh_name = name + NAME_AT(hdr),
		.sh_type = SHT_PROGBITS,
		.sh_flags = SHF_ALLOC,
		.sh_addr = at->vaddr + at->frame_at,
		.sh_offset = at->off + at->frame_at,
		.sh_size = a->frame.hdr_len,
		.sh_addralign = 4,
	};
	const uint64_t code = at->head_len + at->block_len, data = at->wake_at - at->start_data;
	const Elf64_Shdr start[] = {
		{
			.sh_name = name + NAME_AT(start),
			.sh_type = SHT_PROGBITS,
			.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
			.sh_addr = at->vaddr + code,
			.sh_offset = at->off + code,
			.sh_size = data - code,
			.sh_addralign = PAGE,
		},
		{
			.sh_name = name + NAME_AT(data),
			.sh_type = SHT_NOBITS,
			.sh_flags = SHF_ALLOC,
			.sh_addr = at->vaddr + data,
			.sh_offset = at->off + data,
			.sh_size = at->start_data,
			.sh_addralign = PAGE,
		},
		{
			.sh_name = name + NAME_AT(wake),
			.sh_type = SHT_PROGBITS,
			.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
			.sh_addr = at->vaddr + at->wake_at,
			.sh_offset = at->off + data,
			.sh_size = segment_len(at) - at->wake_at,
			.sh_addralign = PAGE,
		},
	};
	const Elf64_Shdr debug = {
		.sh_name = name + NAME_AT(debug),
		.sh_type = SHT_PROGBITS,
		.sh_offset = at->debug_off,
		.sh_size = a->debug_len,
		.sh_addralign = 8,
	};
	const size_t nadded = sizeof(added) / sizeof(added[0]);

	a->headers = xmalloc((n + NEW_SECTIONS) * sizeof(*a->headers));
	memcpy(a->headers, a->img->bytes + a->eh.e_shoff, n * sizeof(*a->headers));
	for (size_t i = 1; i < n && a->frame_hdr; i++)
		if (a->headers[i].sh_addr == a->frame_hdr_vaddr &&
		    a->headers[i].sh_flags & SHF_ALLOC && a->headers[i].sh_size)
			a->headers[i].sh_name = name + NAME_AT(old_hdr);
	a->headers[a->eh.e_shstrndx].sh_offset = at->names_off;
	a->headers[a->eh.e_shstrndx].sh_size = a->strings_len;
	memcpy(a->headers + n, added, sizeof(added));
	a->nsections = n + nadded;
	if (a->frame.len)
		a->headers[a->nsections++] = frame;
	for (size_t i = 0; at->start_len && i < sizeof(start) / sizeof(start[0]); i++)
		a->headers[a->nsections++] = start[i];
	if (a->debug)
		a->headers[a->nsections++] = debug;
}

/* A debugger reads one section of a name. */
static void make_debug_frame(struct applying *a)
{
	const struct binding whole = {.plan = a->plan, .whole = true};
	const struct unwind_code code = frames_of_start(a);
	const struct unwind_tables tables = tables_of(a);

	if (elf_image_section(a->img, ".debug_frame") || elf_image_section(a->img, ".zdebug_frame"))
		return;
	a->debug = unwind_disk_debug(&a->debug_len, &tables, bind_stubs_size(&whole), &code);
}

/* Does the file claim headers that lie past its end?  There our parts are now. */
static bool lacks_its_sections(const struct elf_image *img, const Elf64_Ehdr *eh)
{
	Elf64_Shdr first;

	if (!eh->e_shoff || img->nsections || eh->e_shentsize != sizeof(first))
		return false;
	if (!elf_has(img, eh->e_shoff, sizeof(first)))
		return true;
	memcpy(&first, img->bytes + eh->e_shoff, sizeof(first));
	return eh->e_shnum || first.sh_size;
}

/* After the plan, whose length is known by now. */
static int put_sections(struct applying *a)
{
	int code;

	if (lacks_its_sections(a->img, &a->eh))
		a->eh.e_shoff = a->eh.e_shnum = a->eh.e_shstrndx = 0;
	if (!can_add_sections(a->img, &a->eh, &a->names))
		return 0;
	make_names(a);
	a->at.names_off = a->at.info_off + a->note.info_len;
	make_debug_frame(a);
	a->at.debug_off = (a->at.names_off + a->strings_len + 7) & ~7ull;
	a->at.sections_off = (a->at.debug_off + a->debug_len + 7) & ~7ull;
	make_sections(a);
	code = put(a, a->at.names_off, a->strings, a->strings_len);
	if (!code && a->debug)
		code = put(a, a->at.debug_off, a->debug, a->debug_len);
	if (!code)
		code = put(a, a->at.sections_off, a->headers, a->nsections * sizeof(*a->headers));
	a->eh.e_shoff = a->at.sections_off;
	a->eh.e_shnum = (uint16_t)a->nsections;
	xfree(a->strings);
	xfree(a->debug);
	xfree(a->headers);
	return code;
}

/* ---- what follows the ELF file ---- */

static uint64_t later(uint64_t end, uint64_t off, uint64_t len)
{
	return off + len > end ? off + len : end;
}

/*
 * Programs that unpack themselves have their data after everything that the headers name, and find
 * it by its distance from the file's start, from its end, or after the section headers.  So it
 * stays where it is, and is there once more after ours.
 */
static uint64_t elf_end(const struct elf_image *img, const Elf64_Ehdr *eh)
{
	uint64_t end = later(sizeof(*eh), eh->e_phoff, eh->e_phnum * sizeof(Elf64_Phdr));

	if (eh->e_shoff)
		end = later(end, eh->e_shoff, (uint64_t)eh->e_shnum * eh->e_shentsize);
	for (size_t i = 0; i < eh->e_phnum; i++) {
		Elf64_Phdr ph = apply_elf_header(img, eh, i);

		end = later(end, ph.p_offset, ph.p_filesz);
	}
	for (size_t i = 0; i < img->nsections; i++)
		if (img->sections[i].type != SHT_NOBITS)
			end = later(end, img->sections[i].off, img->sections[i].size);
	return end < img->size ? end : img->size;
}

/* ---- all of it ---- */

/* What holds the lengths of others comes after them. */
static int put_all(struct applying *a)
{
	uint64_t tail = elf_end(a->img, &a->eh);
	int code = put_block_and_start(a);

	if (!code)
		code = put(a, a->at.info_off, a->info, a->note.info_len);
	if (!code)
		code = put_head(a);
	if (!code)
		code = put_sections(a);
	if (!code && tail < a->img->size)
		code = put(a, a->size, a->img->bytes + tail, a->img->size - tail);
	a->eh.e_phoff = a->at.off;
	a->eh.e_phnum = (uint16_t)a->at.phnum;
	if (!code)
		code = put(a, 0, &a->eh, sizeof(a->eh));
	return code;
}

/* Static programs cannot do without the start-up code; others have it for KRON_BOARD. */
static bool has_start(const struct elf_image *img, const struct patch_info *what)
{
	if (img->kind == ELF_KIND_STATIC)
		return true;
	return !what->no_board && (img->kind != ELF_KIND_SHARED || what->hook);
}

int apply_elf_make(struct elf_patched *out, const struct elf_sink *to, const struct elf_image *img,
		   const struct patch_info *what, struct err *err)
{
	const struct binding whole = {.plan = what->plan, .whole = true};
	struct applying a = {.img = img, .plan = what->plan, .what = what, .to = to, .err = err};
	int code = apply_elf_check(img, err);

	if (code)
		return code;
	memcpy(&a.eh, img->bytes, sizeof(a.eh));
	a.at.block_len = bind_size(&whole);
	if (!a.at.block_len)
		return err_set(err, ENOENT, "%s: no function that was asked for can be probed",
			       img->path);
	if (has_start(img, what))
		a.at.start_len = start_part_min(&a.at.start_data);
	plan_frames(&a);
	code = lay_out(&a, err);
	if (code)
		return err_prefix(err, code, "%s", img->path);
	describe(&a);
	code = put_all(&a);
	xfree(a.info);
	*out = (struct elf_patched){.size = a.size};
	return code;
}
