/* SPDX-License-Identifier: MIT */
/*
 * variables_dwarf.c - which variable a name is at an instruction, and where it stands there; in the
 * reader's process (lines.c), like all that trusts libdw.
 *
 *   local     in the blocks of the function that hold the instruction, the innermost first
 *   global    in the function's unit, then those of other units that all see, then those of one other
 *
 * Where unoptimised code has a parameter, its location is true once the function's first instructions have put it
 * there.  At the very first one it is where the ABI passes it (System V x86-64, 3.2.3).
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

#ifdef HAVE_DW

#include "inject/elf/variable_finder.h"

enum { RBX = 3, RSI = 4, RDI = 5, RBP = 6, RSP = 7 };

/* ---- the function ---- */

/* Where its first instructions are over, as debuggers take it. */
static Dwarf_Addr body_of(Dwarf_Die *function)
{
	Dwarf_Addr *at = NULL, low = 0, body = 0;
	int n = dwarf_entry_breakpoints(function, &at);

	if (dwarf_entrypc(function, &low))
		low = 0;
	for (int i = 0; i < n; i++)
		if (at[i] > low && (!body || at[i] < body))
			body = at[i];
	free(at);
	return body;
}

/* ---- the ABI ---- */

static bool is_c(Dwarf_Die *cu)
{
	switch (dwarf_srclang(cu)) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
		return true;
	}
	return false;
}

static bool is_integer(Dwarf_Word encoding)
{
	switch (encoding) {
	case DW_ATE_signed:
	case DW_ATE_signed_char:
	case DW_ATE_unsigned:
	case DW_ATE_unsigned_char:
	case DW_ATE_boolean:
	case DW_ATE_UTF:
	case DW_ATE_address:
		return true;
	}
	return false;
}

/* How many argument registers it takes: 0 for doubles; -1: that is for the ABI's finer points. */
static int registers_of(Dwarf_Die *type)
{
	Dwarf_Attribute attr;
	Dwarf_Word size = 0, encoding = 0;

	switch (dwarf_tag(type)) {
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
	case DW_TAG_enumeration_type:
		return 1;
	case DW_TAG_base_type:
		break;
	default:
		return -1;
	}
	if (dwarf_aggregate_size(type, &size) || !dwarf_attr(type, DW_AT_encoding, &attr) ||
	    dwarf_formudata(&attr, &encoding))
		return -1;
	if (encoding == DW_ATE_float)
		return 0;
	return size <= 8 && is_integer(encoding) ? 1 : -1;
}

static bool passes_by_abi(struct finder *f)
{
	Dwarf_Attribute attr;
	Dwarf_Word convention;

	if (f->q->flags & VARIABLE_IS_CLONE || !is_c(&f->cu))
		return false;
	return !dwarf_attr_integrate(&f->function, DW_AT_calling_convention, &attr) ||
	       dwarf_formudata(&attr, &convention) || convention == DW_CC_normal;
}

/* A struct in which there is no vector, which might come back in a register; nor what may hold one. */
static bool is_plain_struct(Dwarf_Die *type)
{
	Dwarf_Die die, inner;
	int tag = dwarf_tag(type);

	if ((tag != DW_TAG_structure_type && tag != DW_TAG_class_type &&
	     tag != DW_TAG_union_type) ||
	    dwarf_child(type, &die))
		return false;
	do {
		if (dwarf_tag(&die) == DW_TAG_inheritance)
			return false;
		if (dwarf_tag(&die) != DW_TAG_member)
			continue;
		if (!variable_type_of(&die, &inner))
			return false;
		while (dwarf_tag(&inner) == DW_TAG_array_type &&
		       !dwarf_hasattr(&inner, DW_AT_GNU_vector))
			if (!variable_type_of(&inner, &inner))
				return false;
		tag = dwarf_tag(&inner);
		if (tag != DW_TAG_base_type && registers_of(&inner) != 1)
			return false;
	} while (!dwarf_siblingof(&die, &die));
	return true;
}

/* The registers that a result in memory takes: 1, as its address is the first argument; -1: who knows. */
static int result_registers(Dwarf_Die *function)
{
	Dwarf_Word size = 0;
	Dwarf_Die type;

	if (!dwarf_hasattr_integrate(function, DW_AT_type))
		return 0;
	if (!variable_type_of(function, &type))
		return -1;
	if (registers_of(&type) >= 0)
		return 0;
	return is_plain_struct(&type) && !dwarf_aggregate_size(&type, &size) && size > 16 ? 1 : -1;
}

/* The parameter `die`, or, where that is NULL, the one that is in argument register `number`.  Returns its number,
 * 1 to 6; 0: it is in none, or nobody can tell. */
static unsigned parameter_by_abi(struct finder *f, Dwarf_Die *die, unsigned number, Dwarf_Die *out)
{
	int used = passes_by_abi(f) ? result_registers(&f->function) : -1;
	Dwarf_Die at, type;

	if (used < 0 || dwarf_child(&f->function, &at))
		return 0;
	do {
		bool is_it;
		int n;

		if (dwarf_tag(&at) != DW_TAG_formal_parameter)
			continue;
		n = variable_type_of(&at, &type) ? registers_of(&type) : -1;
		if (n < 0)
			return 0;
		used += n;
		is_it = die ? dwarf_dieoffset(&at) == dwarf_dieoffset(die)
			    : (unsigned)used == number;
		if (is_it && n && used <= 6) {
			*out = at;
			return (unsigned)used;
		}
	} while (!dwarf_siblingof(&at, &at));
	return 0;
}

static void set_argument(struct variable *v, unsigned number)
{
	static const uint8_t registers[] = {RDI, RSI, 1, 2, 8, 9};

	*v = (struct variable){.base = VARIABLE_REGISTER, .reg = registers[number - 1]};
}

/* ---- locations ---- */

static void set_memory(struct variable *v, enum variable_base base, uint32_t reg, int64_t place)
{
	v->base = base;
	v->reg = reg;
	v->nplaces = 1;
	v->place[0] = (int32_t)place;
}

static bool is_far(Dwarf_Word place)
{
	return (int64_t)place != (int32_t)place;
}

/* From what the function's frame is counted: the CFA, or a register that its first instructions set. */
static bool set_frame(struct finder *f, Dwarf_Word place)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;

	if (!dwarf_attr_integrate(&f->function, DW_AT_frame_base, &attr) ||
	    dwarf_getlocation_addr(&attr, f->q->vaddr, &ops, &n, 1) != 1 || n != 1 || is_far(place))
		return FAIL(f, "is in a frame that the debug information does not describe there");
	if (ops[0].atom == DW_OP_call_frame_cfa) {
		set_memory(f->v, VARIABLE_FRAME, 0, (int64_t)place);
		return true;
	}
	if (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31) {
		set_memory(f->v, VARIABLE_REGISTER, ops[0].atom - DW_OP_reg0, (int64_t)place);
		f->v->is_in_body = !is_list(&attr);
		return true;
	}
	return FAIL(f, "is in a frame that is computed");
}

static bool is_stack_value(const Dwarf_Op *ops, size_t n)
{
	return n && ops[n - 1].atom == DW_OP_stack_value;
}

static bool set_number(struct variable *v, uint64_t number)
{
	v->base = VARIABLE_NUMBER;
	v->value = number;
	return true;
}

static bool set_address(struct finder *f, Dwarf_Attribute *attr, const Dwarf_Op *op)
{
	Dwarf_Attribute result;
	Dwarf_Addr address = op->number;

	if (op->atom != DW_OP_addr &&
	    (dwarf_getlocation_attr(attr, op, &result) || dwarf_formaddr(&result, &address)))
		return FAIL(f, "has an address that cannot be read");
	set_memory(f->v, VARIABLE_ADDRESS, 0, 0);
	f->v->value = address;
	return true;
}

static bool is_frame_register(uint32_t reg)
{
	return reg == RSP || reg == RBP;
}

/* The first operation; what follows are steps.  *whole: it says it all. */
static bool begin_location(struct finder *f, Dwarf_Attribute *attr, const Dwarf_Op *ops, size_t n,
			   bool *whole)
{
	uint8_t atom = ops[0].atom;
	bool is_value = is_stack_value(ops, n);
	struct variable *v = f->v;

	*whole = false;
	if (atom >= DW_OP_reg0 && atom <= DW_OP_reg31) {
		v->base = VARIABLE_REGISTER;
		v->reg = atom - DW_OP_reg0;
		*whole = true;
		return true;
	}
	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31 && !is_far(ops[0].number)) {
		if (is_value && n == 2 && !ops[0].number) {
			v->base = VARIABLE_REGISTER;
			v->reg = atom - DW_OP_breg0;
			*whole = true;
		} else {
			set_memory(v, VARIABLE_REGISTER, atom - DW_OP_breg0,
				   (int64_t)ops[0].number);
			v->is_in_body = !is_list(attr) || is_frame_register(v->reg);
		}
		return true;
	}
	if (is_value && n == 2) {
		*whole = true;
		if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31)
			return set_number(v, atom - DW_OP_lit0);
		if (atom >= DW_OP_const1u && atom <= DW_OP_consts)
			return set_number(v, ops[0].number);
	}
	switch (atom) {
	case DW_OP_addr:
	case DW_OP_addrx:
	case DW_OP_GNU_addr_index:
		return set_address(f, attr, &ops[0]);
	case DW_OP_fbreg:
		return set_frame(f, ops[0].number);
	case DW_OP_call_frame_cfa:
		set_memory(v, VARIABLE_FRAME, 0, 0);
		return true;
	case DW_OP_entry_value:
	case DW_OP_GNU_entry_value:
		return FAIL(
			f,
			"is known there only as what the caller passed: probe the function's entry");
	case DW_OP_implicit_pointer:
	case DW_OP_GNU_implicit_pointer:
		return FAIL(f, "is a pointer that was optimised out: name what it points to");
	}
	return FAIL(
		f, "is computed there and stands nowhere: probe another line, or compile with -O0");
}

static bool take_operations(struct finder *f, Dwarf_Attribute *attr, const Dwarf_Op *ops, size_t n)
{
	struct variable *v = f->v;
	bool whole;

	for (size_t i = 0; i < n; i++) {
		if (ops[i].atom == DW_OP_piece || ops[i].atom == DW_OP_bit_piece)
			return FAIL(
				f,
				"is in several pieces there: probe another line, or compile with -O0");
		if (ops[i].atom == DW_OP_GNU_push_tls_address ||
		    ops[i].atom == DW_OP_form_tls_address)
			return FAIL(
				f,
				"is of each thread (thread-local): take it where it is a local or passed along");
	}
	if (!begin_location(f, attr, ops, n, &whole) || whole)
		return !f->why->msg[0];
	for (size_t i = 1; i < n; i++) {
		if (ops[i].atom == DW_OP_plus_uconst && ops[i].number <= INT32_MAX &&
		    !__builtin_add_overflow(v->place[v->nplaces - 1], (int32_t)ops[i].number,
					    &v->place[v->nplaces - 1]))
			continue;
		if (ops[i].atom != DW_OP_deref || v->nplaces == VARIABLE_STEPS)
			return FAIL(
				f,
				"is computed there and stands nowhere: probe another line, or compile with -O0");
		v->place[v->nplaces++] = 0;
	}
	return true;
}

/* A constant that the compiler kept instead of the variable. */
static bool take_constant(struct finder *f, Dwarf_Attribute *attr)
{
	Dwarf_Sword s;
	Dwarf_Word u;

	if (dwarf_whatform(attr) != DW_FORM_sdata &&
	    dwarf_whatform(attr) != DW_FORM_implicit_const && !dwarf_formudata(attr, &u))
		return set_number(f->v, u);
	if (!dwarf_formsdata(attr, &s))
		return set_number(f->v, (uint64_t)s);
	return FAIL(f, "is a constant that is not a number");
}

static bool is_argument_register(uint32_t reg)
{
	return reg == RDI || reg == RSI || reg == 1 || reg == 2 || reg == 8 || reg == 9;
}

static bool is_kept_register(uint32_t reg)
{
	return reg == RBX || reg == RBP || (reg >= 12 && reg <= 15);
}

/* A location for all of the scope is true from the function's body on. */
static bool settle_body(struct finder *f)
{
	struct variable *v = f->v;
	bool is_memory = v->nplaces, is_entry = f->q->flags & VARIABLE_AT_ENTRY;
	Dwarf_Die same;
	unsigned n;

	if (v->base == VARIABLE_ADDRESS || v->base == VARIABLE_NUMBER ||
	    (v->base == VARIABLE_FRAME && v->place[0] >= 0) ||
	    (!is_memory && !is_kept_register(v->reg) && !is_entry))
		return true;
	if (!is_entry || dwarf_tag(&f->die) != DW_TAG_formal_parameter) {
		v->body = body_of(&f->function);
		if (is_entry || (v->body && f->q->vaddr < v->body))
			return FAIL(
				f,
				"has no value yet there: the function's first instructions end at 0x%llx",
				(unsigned long long)v->body);
		return true;
	}
	if (!is_memory && is_argument_register(v->reg))
		return true;
	n = parameter_by_abi(f, &f->die, 0, &same);
	if (!n && is_memory &&
	    v->is_in_body) { /* the resolver knows whether it is the caller's frame */
		v->is_passed = 1;
		return true;
	}
	if (!n)
		return FAIL(
			f,
			"is not yet in its place at the function's entry, and in no general register that is "
			"sure: write $argN, or probe a line (FUNC:1)");
	set_argument(v, n);
	return true;
}

/* From where on the location of this instruction is true; 0: nobody knows. */
static Dwarf_Addr range_start(Dwarf_Attribute *attr, Dwarf_Addr vaddr)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;
	Dwarf_Op *ops;
	size_t n;

	while ((at = dwarf_getlocations(attr, at, &base, &start, &end, &ops, &n)) > 0)
		if (vaddr >= start && vaddr < end)
			return start;
	return 0;
}

static bool locate(struct finder *f)
{
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n = 0;
	bool is_whole;

	f->why->msg[0] = '\0';
	if (dwarf_attr_integrate(&f->die, DW_AT_const_value, &attr))
		return take_constant(f, &attr);
	if (!dwarf_attr(&f->die, DW_AT_location, &attr) ||
	    dwarf_getlocation_addr(&attr, f->q->vaddr, &ops, &n, 1) != 1 || !n)
		return FAIL(f, "is optimised out there: probe another line, or compile with -O0");
	is_whole = !is_list(&attr);
	if (ops[0].atom == DW_OP_implicit_value) {
		Dwarf_Block block;
		uint64_t number = 0;

		if (dwarf_getlocation_implicit_value(&attr, ops, &block) || block.length > 8)
			return FAIL(f, "is a constant that is not a number");
		memcpy(&number, block.data, block.length);
		return set_number(f->v, number);
	}
	if (!take_operations(f, &attr, ops, n))
		return false;
	if (f->v->is_in_body)
		f->v->body = is_whole ? body_of(&f->function) : range_start(&attr, f->q->vaddr);
	if (f->v->base == VARIABLE_REGISTER && f->v->reg > 15)
		return FAIL(f,
			    "is in %%xmm%u there: a probe takes general registers and memory along",
			    f->v->reg - 17);
	return is_whole ? settle_body(f) : true;
}

/* ---- questions ---- */

static void split(struct finder *f, const char *text)
{
	const char *end;
	size_t n;

	f->is_global = *text == '@';
	text += f->is_global;
	for (n = 0; isalnum((unsigned char)text[n]) || text[n] == '_' || text[n] == ':';)
		n++;
	snprintf(f->name, sizeof(f->name), "%.*s", (int)(n < 255 ? n : 255), text);
	text += n;
	if (*text == '@') {
		f->is_global = true;
		for (end = ++text; *end && *end != '[' && (end[0] != '-' || end[1] != '>'); end++)
			;
		snprintf(f->source, sizeof(f->source), "%.*s",
			 (int)(end - text < 511 ? end - text : 511), text);
		text = end;
	}
	f->way = text;
}

static void note_symbol(struct finder *f)
{
	Dwarf_Attribute attr;
	const char *name = NULL;

	if (f->v->base != VARIABLE_ADDRESS || !dwarf_hasattr_integrate(&f->die, DW_AT_external))
		return;
	if (dwarf_attr_integrate(&f->die, DW_AT_linkage_name, &attr) ||
	    dwarf_attr_integrate(&f->die, DW_AT_MIPS_linkage_name, &attr))
		name = dwarf_formstring(&attr);
	if (!name)
		name = dwarf_diename(&f->die);
	f->v->is_exported = 1;
	snprintf(f->v->symbol, sizeof(f->v->symbol), "%s", name ? name : "");
}

static bool find_local(struct finder *f)
{
	bool is_entry = f->q->flags & VARIABLE_AT_ENTRY,
	     in_source = f->q->flags & VARIABLE_IN_SOURCE;

	if (finder_local(f, in_source))
		return true;
	if (is_entry || in_source)
		return false;
	if (finder_local(f, true))
		return true;
	f->is_in_copy = false;
	return false;
}

/* Of the function no variable, but what might be meant.  False: why it is not a global. */
static bool may_be_global(struct finder *f)
{
	if (finder_elsewhere(f))
		return FAIL(
			f,
			f->q->flags & VARIABLE_AT_ENTRY
				? "has no value at the function's entry: probe a line (FUNC:1) or its "
				  "parameters"
				: "is not there: its block is elsewhere in the function, or it is "
				  "optimised out");
	if (finder_around(f))
		return FAIL(
			f,
			"is a variable of the function around this one: probe that, or write @%s for the global",
			f->name);
	if (finder_is_member(f))
		return FAIL(f, "is a member: write this->%s, or @%s for the global", f->name,
			    f->name);
	return true;
}

static bool take_global(struct finder *f)
{
	if (finder_global(f))
		return true;
	if (f->many)
		return FAIL(f, "is the name of %u variables: write %s@SOURCE.c", f->many, f->name);
	if (f->is_declared)
		return FAIL(f, "is defined by another module: probe it there");
	if (f->is_elsewhere)
		return FAIL(f, "is optimised out of the module");
	return FAIL(
		f,
		"is not a variable there: the debug information defines none of this name in this module");
}

static bool find_named(struct finder *f, Dwarf_Die *type)
{
	bool is_found = false;

	if (f->has_function) {
		is_found = !f->is_global && find_local(f);
		if (!finder_is_copy_sure(f))
			return FAIL(
				f,
				"may be the caller's or an inlined copy's there: probe another line, or compile with -O0");
		finder_scopes(f);
		if (!is_found && !f->is_global && !may_be_global(f))
			return false;
	}
	if (is_found && f->q->flags & VARIABLE_AT_ENTRY && dwarf_tag(&f->die) == DW_TAG_variable &&
	    !finder_is_static(&f->die) && !dwarf_hasattr(&f->die, DW_AT_const_value))
		return FAIL(
			f,
			"has no value at the function's entry: it is a local variable, so probe a line (FUNC:1)");
	if (!is_found && !take_global(f))
		return false;
	if (f->steps > FINDER_STEPS)
		return FAIL(f, "is in debug information that makes no sense");
	if (!locate(f))
		return false;
	note_symbol(f);
	return variable_type_of(&f->die, type) || FAIL(f, "has a type that cannot be read");
}

/* What an argument or the result points to. */
static bool find_typed(struct finder *f, Dwarf_Die *type)
{
	struct variable wanted;
	Dwarf_Die die;

	f->way = f->q->name;
	if (!f->has_function)
		return FAIL(f, "has no type: the debug information does not know the function");
	if (!f->q->argument) {
		if (!variable_type_of(&f->function, type) || registers_of(type) != 1)
			return FAIL(f, "is not a pointer or number: the function returns none");
		*f->v = (struct variable){.base = VARIABLE_REGISTER, .reg = 0};
		return true;
	}
	if (!parameter_by_abi(f, NULL, f->q->argument, &die))
		return FAIL(
			f,
			"is not a parameter that is sure: name it as the source does, or write +N($arg%u)",
			f->q->argument);
	f->die = die;
	set_argument(&wanted, f->q->argument);
	if (!locate(f) || f->v->base != VARIABLE_REGISTER || f->v->nplaces ||
	    f->v->reg != wanted.reg)
		return FAIL(
			f,
			"is not a parameter that is sure: name it as the source does, or write +N($arg%u)",
			f->q->argument);
	*f->v = wanted;
	return variable_type_of(&die, type) || FAIL(f, "has a type that cannot be read");
}

/* Variables that are declared after it are not there yet. */
static void note_line(struct finder *f)
{
	Dwarf_Line *line = dwarf_getsrc_die(&f->cu, f->q->vaddr);

	if (!line || dwarf_lineno(line, &f->line))
		return;
	f->file = dwarf_linesrc(line, NULL, NULL);
	if (dwarf_decl_line(&f->function, &f->first_line))
		f->first_line = 0;
}

bool dwarf_variables_find(struct dwarf_lines *l, const struct variable_question *q,
			  struct variable *out, struct err *why)
{
	struct finder f = {.l = l, .q = q, .v = out, .why = why};
	Dwarf_Die type;

	why->msg[0] = '\0';
	f.has_function = dwarf_lines_unit(l, q->vaddr, &f.cu) && finder_function(&f);
	if (f.has_function && q->flags & VARIABLE_AT_LINE)
		note_line(&f);
	if (q->flags & VARIABLE_IS_TYPED) {
		if (!find_typed(&f, &type))
			return false;
	} else {
		split(&f, q->name);
		if (!find_named(&f, &type))
			return false;
	}
	return variable_walk(l, &type, f.way, out, why);
}

#endif
