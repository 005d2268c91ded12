/* SPDX-License-Identifier: MIT */
/*
 * insn_confirm.c - the second decoder's word on an instruction, by capstone.
 *
 *   bytes --Zydis, capstone--> length, class, target: equal?     insn_confirm()
 *        \--capstone--> text for people                          insn_text()
 *
 * The only file of the tree that may include capstone.  It keeps one handle a thread, with what was
 * confirmed already.
 */
#include "inject/code/insn.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <capstone/capstone.h>

#include "inject/code/insn_impl.h"

/*
 * Code repeats itself: what was confirmed once is not asked again.  Displacements of branches
 * and of rip-relative operands do not matter, so they are left out.
 */
#define CONFIRMED 4096u
struct confirmed {
	uint8_t bytes[15];
	uint8_t len; /* 0: empty */
	uint8_t kind;
};

struct second_decoder {
	csh handle;
	cs_insn *insn;
	struct confirmed confirmed[CONFIRMED];
};

static pthread_key_t second_key;
static pthread_once_t second_once = PTHREAD_ONCE_INIT;
static __thread struct second_decoder *second_cached;

static void close_second(void *p)
{
	struct second_decoder *d = p;

	cs_free(d->insn, 1);
	cs_close(&d->handle);
	free(d);
}

static void init_second(void)
{
	pthread_key_create(&second_key, close_second);
}

/* This thread's capstone, NULL when there is none to be had. */
static struct second_decoder *second(void)
{
	struct second_decoder *d = second_cached;

	if (d)
		return d;
	pthread_once(&second_once, init_second);
	d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &d->handle) != CS_ERR_OK) {
		free(d);
		return NULL;
	}
	cs_option(d->handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
	d->insn = cs_malloc(d->handle);
	if (!d->insn) {
		cs_close(&d->handle);
		free(d);
		return NULL;
	}
	pthread_setspecific(second_key, d);
	second_cached = d;
	return d;
}

static bool second_decode(struct second_decoder *d, const uint8_t *code, size_t avail,
			  uint64_t addr)
{
	return cs_disasm_iter(d->handle, &code, &avail, &addr, d->insn);
}

/* What capstone takes the instruction for, in our words; many kinds are plain to it. */
static uint8_t second_kind(const cs_insn *ci)
{
	bool indirect = ci->op_str[0] == '*';
	bool is_far = ci->mnemonic[0] == 'l'; /* ljmpl, whose id is JMP in capstone 5 */

	switch (ci->id) {
	case X86_INS_CALL:
		if (is_far)
			return INSN_OTHER_TRANSFER;
		return indirect ? INSN_CALL_INDIRECT : INSN_CALL;
	case X86_INS_JMP:
		if (is_far)
			return INSN_OTHER_TRANSFER;
		return indirect ? INSN_JMP_INDIRECT : INSN_JMP;
	case X86_INS_JAE ... X86_INS_JL:
	case X86_INS_JNE ... X86_INS_JS:
	case X86_INS_LOOP:
	case X86_INS_LOOPE:
	case X86_INS_LOOPNE:
		return INSN_JCC;
	case X86_INS_RET:
		return INSN_RET;
	case X86_INS_LCALL:
	case X86_INS_LJMP:
	case X86_INS_RETF:
	case X86_INS_RETFQ:
	case X86_INS_IRET:
	case X86_INS_IRETD:
	case X86_INS_IRETQ:
	case X86_INS_XBEGIN:
		return INSN_OTHER_TRANSFER;
	}
	return INSN_PLAIN;
}

/* Kinds that capstone does not tell apart count as one. */
static uint8_t kind_class(uint8_t kind)
{
	switch (kind) {
	case INSN_TRAP:
	case INSN_SYSCALL:
	case INSN_PADDING:
		return INSN_PLAIN;
	}
	return kind;
}

/* Zydis' word: the one that is asked about may come from insn_quick.c. */
static bool is_first_decoders(const struct insn *in, const uint8_t *code)
{
	struct insn first;

	return insn_scan_all(&first, code, in->len, in->addr) && first.len == in->len &&
	       first.kind == in->kind && first.target == in->target &&
	       first.rip_relative == in->rip_relative && first.disp_off == in->disp_off &&
	       first.disp_size == in->disp_size;
}

static bool confirm(struct second_decoder *d, const struct insn *in, const uint8_t *code)
{
	uint8_t kind;

	if (!is_first_decoders(in, code))
		return false;
	if (!second_decode(d, code, in->len, in->addr)) {
		/* Unknown to it, or does it only want more bytes than the first took? */
		uint8_t more[16] = {0};

		memcpy(more, code, in->len);
		if (!second_decode(d, more, sizeof(more), in->addr))
			return true;
		return false;
	}
	if (d->insn->size != in->len)
		return false;
	kind = second_kind(d->insn);
	if (kind != kind_class(in->kind))
		return false;
	if (kind == INSN_CALL || kind == INSN_JMP || kind == INSN_JCC)
		return strtoull(d->insn->op_str, NULL, 0) == in->target;
	return true;
}

static struct confirmed *find_confirmed(struct second_decoder *d, const struct confirmed *key)
{
	uint64_t a, b;

	memcpy(&a, key->bytes, 8);
	memcpy(&b, key->bytes + 7, 8);
	a = (a ^ b << 3 ^ key->len) * 0xff51afd7ed558ccd;
	return &d->confirmed[a >> 40 & (CONFIRMED - 1)];
}

/* The target of a direct branch is what its displacement says, which the key has not. */
static bool is_target_right(const struct insn *in, const uint8_t *code)
{
	int64_t disp;
	int32_t disp32;

	if ((in->kind != INSN_CALL && in->kind != INSN_JMP && in->kind != INSN_JCC) ||
	    in->rip_relative)
		return true;
	if (in->disp_size == 1) {
		disp = (int8_t)code[in->disp_off];
	} else if (in->disp_size == 4) {
		memcpy(&disp32, code + in->disp_off, 4);
		disp = disp32;
	} else {
		return true; /* indirect: no target */
	}
	return in->target == in->addr + in->len + (uint64_t)disp;
}

bool insn_confirm(const struct insn *in, const uint8_t *code)
{
	struct confirmed key = {.len = in->len, .kind = in->kind}, *slot;
	struct second_decoder *d = second();

	if (!d)
		return false;
	memcpy(key.bytes, code, in->len);
	if (in->disp_size)
		memset(key.bytes + in->disp_off, 0, in->disp_size);
	slot = find_confirmed(d, &key);
	if (!memcmp(slot, &key, sizeof(key)))
		return is_target_right(in, code);
	if (!confirm(d, in, code))
		return false;
	*slot = key;
	return true;
}

char *insn_text(char *out, size_t size, const uint8_t *code, size_t avail, uint64_t addr)
{
	struct second_decoder *d = second();

	if (!size)
		return out;
	if (!d || !second_decode(d, code, avail, addr))
		snprintf(out, size, "(bad)");
	else if (d->insn->op_str[0])
		snprintf(out, size, "%s %s", d->insn->mnemonic, d->insn->op_str);
	else
		snprintf(out, size, "%s", d->insn->mnemonic);
	return out;
}
