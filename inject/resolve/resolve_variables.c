/* SPDX-License-Identifier: MIT */
/*
 * resolve_variables.c - values that have a name in the source: from where the debug information says that one is to
 * what a stub can push.
 *
 *   a register                         as it is there
 *   a place of the frame, CFA + n      from the register that .eh_frame counts the CFA from at this instruction
 *   an address of the file             as it is in the process
 *   ... that another module may have   as this module's own code finds it: through its table of addresses
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "inject/resolve/resolve_impl.h"

#define RED_ZONE 128

#define FAIL(why, ...) (err_set(why, EINVAL, __VA_ARGS__), false)

enum { DWARF_RSP = 7 };

/* ---- frames ---- */

struct asked {
	uint64_t vaddr;
	struct eh_row row;
	bool is_found;
};

static bool keep_row(uint64_t start, uint64_t end, const struct eh_row *row, void *ctx)
{
	struct asked *a = ctx;

	if (a->vaddr < start || a->vaddr >= end)
		return true;
	a->row = *row;
	a->is_found = true;
	return false;
}

/* How the CFA is found at an instruction.  False: nobody says. */
static bool frame_at(struct resolver *r, uint64_t vaddr, struct eh_row *out)
{
	struct asked a = {.vaddr = vaddr};
	const struct eh_fde *fde;

	if (!r->frames) {
		r->frames = xcalloc(1, sizeof(*r->frames));
		eh_frame_read(r->frames, r->img);
	}
	fde = eh_frame_at(r->frames, vaddr);
	if (fde)
		eh_frame_rows(r->frames, fde, keep_row, &a);
	*out = a.row;
	return a.is_found && a.row.reg < 16;
}

static bool move(struct variable *v, int64_t distance, struct err *why)
{
	int64_t sum = v->place[0] + distance;

	if (sum != (int32_t)sum)
		return FAIL(why, "is farther away than 31 bits tell");
	v->place[0] = (int32_t)sum;
	return true;
}

/* From the CFA; what the function's own frame register leads to is counted from there, too: at the function's end
 * that register is the caller's again. */
static bool settle_frame(struct resolver *r, struct variable *v, uint64_t vaddr, struct err *why)
{
	struct eh_row row, body;
	bool has_row = frame_at(r, vaddr, &row), has_body = v->body && frame_at(r, v->body, &body);

	if (v->is_in_body && v->nplaces) {
		if (!has_body || (v->reg == DWARF_RSP && body.reg != v->reg))
			return FAIL(why, "is in a frame that .eh_frame does not describe");
		if (body.reg == v->reg) {
			v->base = VARIABLE_FRAME;
			if (!move(v, -body.offset, why))
				return false;
		}
	}
	if (v->base == VARIABLE_REGISTER && v->body &&
	    (!has_row || !has_body ||
	     (row.reg == DWARF_RSP && row.offset == 8 &&
	      (body.reg != DWARF_RSP || body.offset != 8))))
		return FAIL(
			why,
			"is in a register that the function has given back there: probe a line before");
	if (v->is_passed && (v->base != VARIABLE_FRAME || v->place[0] < 0))
		return FAIL(
			why,
			"is not yet in its place at the function's entry, and in no general register that is "
			"sure: write $argN, or probe a line (FUNC:1)");
	if (v->base != VARIABLE_FRAME)
		return true;
	if (!has_row)
		return FAIL(why, "is in a frame that .eh_frame does not describe there");
	v->base = VARIABLE_REGISTER;
	v->reg = row.reg;
	if (!move(v, row.offset, why))
		return false;
	if (v->reg == DWARF_RSP && v->place[0] < -RED_ZONE)
		return FAIL(
			why,
			"is in a frame that the function has given back there: probe a line before");
	return true;
}

/* ---- addresses ---- */

static bool is_in_segment(const struct elf_image *img, uint64_t vaddr)
{
	for (size_t i = 0; i < img->nsegments; i++)
		if (vaddr >= img->segments[i].vaddr &&
		    vaddr - img->segments[i].vaddr < img->segments[i].memsz)
			return true;
	return false;
}

/* The loader binds this library's references to its own symbols first. */
static bool is_bound_here(const struct elf_image *img)
{
	const struct elf_section *s = elf_image_section(img, ".dynamic");
	Elf64_Dyn dyn;

	for (uint64_t at = 0; s && s->type == SHT_DYNAMIC && at + sizeof(dyn) <= s->size;
	     at += sizeof(dyn)) {
		memcpy(&dyn, img->bytes + s->off + at, sizeof(dyn));
		if (dyn.d_tag == DT_SYMBOLIC ||
		    (dyn.d_tag == DT_FLAGS && dyn.d_un.d_val & DF_SYMBOLIC))
			return true;
	}
	return false;
}

static bool dynamic_symbol(const struct elf_image *img, uint64_t i, Elf64_Sym *out,
			   const char **name)
{
	const struct elf_section *s = elf_image_section(img, ".dynsym"), *names;

	if (!s || s->type != SHT_DYNSYM || s->link >= img->nsections || i >= s->size / sizeof(*out))
		return false;
	names = &img->sections[s->link];
	memcpy(out, img->bytes + s->off + i * sizeof(*out), sizeof(*out));
	*name = (const char *)img->bytes + names->off + out->st_name;
	return names->type == SHT_STRTAB && out->st_name < names->size &&
	       memchr(*name, 0, names->size - out->st_name);
}

/* May the variable at this address be another module's for the process: has it a symbol that others see? */
static bool is_preemptible(const struct elf_image *img, uint64_t vaddr)
{
	Elf64_Sym sym;
	const char *name;

	if (!elf_image_section(img, ".dynsym"))
		return true; /* who knows */
	for (uint64_t i = 1; dynamic_symbol(img, i, &sym, &name); i++)
		if (sym.st_value == vaddr && sym.st_shndx != SHN_UNDEF &&
		    ELF64_ST_VISIBILITY(sym.st_other) == STV_DEFAULT)
			return !is_bound_here(img);
	return false;
}

/* Where the loader puts the address of this symbol; 0: nowhere. */
static uint64_t slot_of(const struct elf_image *img, const char *symbol, uint64_t vaddr)
{
	const struct elf_section *s = elf_image_section(img, ".rela.dyn");
	const char *name;
	Elf64_Rela rela;
	Elf64_Sym sym;

	for (uint64_t at = 0; s && s->type == SHT_RELA && at + sizeof(rela) <= s->size;
	     at += sizeof(rela)) {
		memcpy(&rela, img->bytes + s->off + at, sizeof(rela));
		if (ELF64_R_TYPE(rela.r_info) == R_X86_64_GLOB_DAT &&
		    dynamic_symbol(img, ELF64_R_SYM(rela.r_info), &sym, &name) &&
		    sym.st_value == vaddr && !strcmp(name, symbol) &&
		    is_in_segment(img, rela.r_offset))
			return rela.r_offset;
	}
	return 0;
}

static bool settle_address(struct resolver *r, struct variable *v, struct err *why)
{
	uint64_t slot;

	if (!is_in_segment(r->img, v->value))
		return FAIL(
			why,
			"has an address that is not in the module: the debug information is another build's, "
			"or the linker has left the variable out");
	if (r->img->kind != ELF_KIND_SHARED || !is_preemptible(r->img, v->value))
		return true;
	slot = slot_of(r->img, v->symbol, v->value);
	if (!slot)
		return FAIL(
			why,
			"may be in another module for all that this one knows: the program has a copy of its "
			"own where it uses it");
	if (v->nplaces == VARIABLE_STEPS)
		return FAIL(why, "has too many steps");
	memmove(v->place + 1, v->place, v->nplaces * sizeof(v->place[0]));
	v->place[0] = 0;
	v->nplaces++;
	v->value = slot;
	return true;
}

/* ---- one place ---- */

static bool is_sound(const struct variable *v)
{
	return v->base <= VARIABLE_NUMBER && v->kind <= VARIABLE_STRUCT &&
	       v->nplaces <= VARIABLE_STEPS && (v->base != VARIABLE_REGISTER || v->reg < 16) &&
	       v->bits <= 64 && v->bits % 8 == 0 &&
	       (v->base == VARIABLE_REGISTER || v->base == VARIABLE_NUMBER || v->nplaces) &&
	       !(v->kind == VARIABLE_ARRAY && v->form && !v->bits) &&
	       (v->base != VARIABLE_NUMBER || !v->nplaces);
}

static unsigned flags_at(const struct resolver *r, uint64_t vaddr, enum place_where where)
{
	const struct function *f = functions_at(r->fns, vaddr);
	const struct probe_spec *s = r->spec;
	unsigned flags = 0;

	if (f && f->start == vaddr && !f->is_part && where == PLACE_BEFORE)
		flags |= VARIABLE_AT_ENTRY;
	if (f && f->name && strchr(f->name, '.'))
		flags |= VARIABLE_IS_CLONE;
	if (s->place == SPEC_SOURCE || s->place == SPEC_ADDRESS)
		flags |= VARIABLE_IN_SOURCE;
	if ((s->place == SPEC_SOURCE || s->place == SPEC_LINE) && !(flags & VARIABLE_AT_ENTRY))
		flags |= VARIABLE_AT_LINE;
	return s->payload == SPEC_PAYLOAD_VARIABLE ? flags : flags | VARIABLE_IS_TYPED;
}

static unsigned argument_of(const struct probe_spec *s)
{
	if (s->payload == SPEC_PAYLOAD_VARIABLE)
		return s->place == SPEC_SOURCE ? (unsigned)s->offset : 0;
	return s->payload == SPEC_PAYLOAD_ARGUMENT ? (unsigned)s->value : 0;
}

static bool find(struct resolver *r, uint64_t vaddr, enum place_where where, struct variable *v,
		 struct err *why)
{
	const struct probe_spec *s = r->spec;
	struct variable_question q = {.name = s->variable,
				      .vaddr = vaddr,
				      .flags = flags_at(r, vaddr, where),
				      .argument = argument_of(s)};
	struct lines *l = resolver_lines(r);
	struct insn in;

	if (!l)
		return FAIL(why, "is not known: %s: %s", r->path, r->no_lines.msg);
	if (where == PLACE_AFTER) { /* what it is when that has been executed */
		if (!code_map_insn(r->map, vaddr, &in))
			return FAIL(why, "is not known there");
		q.vaddr += in.len;
	}
	if (q.flags & VARIABLE_IS_TYPED && s->payload == SPEC_PAYLOAD_ARGUMENT &&
	    !(q.flags & VARIABLE_AT_ENTRY))
		return FAIL(why, "has a type at the function's entry only");
	if (q.flags & VARIABLE_IS_TYPED && s->payload == SPEC_PAYLOAD_RETVAL &&
	    s->place != SPEC_RETURN)
		return FAIL(why, "has a type at %%return only");
	memset(v, 0, sizeof(*v));
	if (!variables_find(l, &q, v, why))
		return false;
	if (!is_sound(v))
		return FAIL(why, "has debug information that makes no sense");
	return v->base == VARIABLE_ADDRESS  ? settle_address(r, v, why)
	       : v->base == VARIABLE_NUMBER ? true
					    : settle_frame(r, v, q.vaddr, why);
}

static void take_payload(struct resolver *r, const struct variable *v)
{
	/* as the hardware numbers them */
	static const uint8_t registers[16] = {0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15};

	if (v->base == VARIABLE_ADDRESS)
		resolver_payload(r, PAYLOAD_VADDR, 0, v->value);
	else if (v->base == VARIABLE_NUMBER)
		resolver_payload(r, PAYLOAD_IMM, 0, v->value);
	else if (v->reg == DWARF_RSP)
		resolver_payload(r, PAYLOAD_SP, 0, 0);
	else
		resolver_payload(r, PAYLOAD_REG, registers[v->reg], 0);
}

bool variable_settle(struct resolver *r, uint64_t vaddr, enum place_where where)
{
	const struct probe_spec *spec = r->spec;
	struct probe_spec typed = *spec;
	struct variable v;
	struct err why;
	char type[16];

	why.msg[0] = '\0';
	if (!find(r, vaddr, where, &v, &why) || !variable_take(&v, &typed, type, &why)) {
		variable_refuse(r, why.msg);
		return false;
	}
	xfree(r->payload);
	r->payload = xasprintf("%s%s%s", spec->payload_name, type[0] ? ":" : "", type);
	r->spec = &typed;
	take_payload(r, &v);
	r->spec = spec;
	return true;
}

/* ---- what is said ---- */

void variable_refuse(struct resolver *r, const char *why)
{
	if (r->nunknown++)
		return;
	xfree(r->unknown);
	r->unknown = xstrdup(why);
	for (char *c = r->unknown; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
}

void variable_note(struct resolver *r)
{
	const struct probe_spec *s = r->spec;
	const char *base = s->payload == SPEC_PAYLOAD_VARIABLE ? ""
			   : s->payload == SPEC_PAYLOAD_RETVAL ? "$retval"
							       : "$arg";
	char number[8] = "", more[64] = "";
	bool is_nothing =
		r->before == resolver_count(r) && !probe_set_is_alternative(r->set, r->number);

	if (!r->nunknown)
		return;
	if (s->payload == SPEC_PAYLOAD_ARGUMENT)
		snprintf(number, sizeof(number), "%u", (unsigned)s->value & 15);
	if (r->nunknown > 1)
		snprintf(more, sizeof(more), "; and %zu more place%s without it", r->nunknown - 1,
			 r->nunknown == 2 ? "" : "s");
	resolver_note(r, is_nothing, "%s%s%s %s%s", base, number, s->variable, r->unknown, more);
}

void variables_free(struct resolver *r)
{
	xfree(r->payload);
	xfree(r->unknown);
	if (r->frames)
		eh_frame_free(r->frames);
	xfree(r->frames);
}
