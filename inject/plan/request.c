/* SPDX-License-Identifier: MIT */
/* request.c - what the planner asks of a request. */
#include "inject/plan/request.h"

#include "inject/plan/action.h"
#include "inject/plan/plan.h"

enum { RSP = 4 };

static bool is_condition_sound(const struct place_condition *c)
{
	return c->what < CONDITION_WHATS && c->reg < 16 && c->reg != RSP &&
	       c->compare < CONDITION_COMPARES &&
	       (c->bits == 8 || c->bits == 16 || c->bits == 32 || c->bits == 64) &&
	       c->is_signed + c->has_mask <= 1 &&
	       (c->bits != 64 || !c->has_mask || c->number == (uint64_t)(int32_t)c->number);
}

static bool is_memory_sound(const struct place_action *a)
{
	if (!a->nplaces)
		return true;
	if (a->kind != ACTION_TRACE || a->nplaces > PLACE_DEPTH ||
	    (a->bits & 7 || a->bits > 64 || a->bits & (a->bits - 1)) ||
	    a->count * (a->bits ? a->bits : 8u) > KRON_TEXT_MAX * 8)
		return false;
	for (unsigned i = 0; i < a->nconditions; i++)
		if (a->conditions[i].what == CONDITION_PAYLOAD &&
		    (a->count || a->conditions[i].bits > a->bits))
			return false;
	return true;
}

bool request_is_action_sound(const struct place_action *a)
{
	if (a->kind >= ACTION_KINDS || a->level > 15 || a->word > 127 ||
	    a->payload >= PAYLOAD_KINDS || a->reg > 15 || a->is_wide > 1 || a->ungated > 1 ||
	    a->nconditions > PLACE_CONDITIONS || (a->kind == ACTION_COUNT && a->word > 15) ||
	    (a->kind == ACTION_CALLS && a->value >= KRON_CALLS_MAX))
		return false;
	for (unsigned i = 0; i < a->nconditions; i++)
		if (!is_condition_sound(&a->conditions[i]))
			return false;
	return is_memory_sound(a);
}

static bool are_conditions_alike(const struct place_condition *a, const struct place_condition *b)
{
	return a->what == b->what && a->reg == b->reg && a->compare == b->compare &&
	       a->bits == b->bits && a->is_signed == b->is_signed && a->has_mask == b->has_mask &&
	       a->mask == b->mask && a->number == b->number;
}

bool request_are_actions_alike(const struct place_action *a, const struct place_action *b)
{
	for (unsigned i = 0; i < a->nconditions && a->nconditions == b->nconditions; i++)
		if (!are_conditions_alike(&a->conditions[i], &b->conditions[i]))
			return false;
	for (unsigned i = 0; i < a->nplaces && a->nplaces == b->nplaces; i++)
		if (a->place[i] != b->place[i])
			return false;
	return a->nplaces == b->nplaces && a->bits == b->bits && a->count == b->count &&
	       a->kind == b->kind && a->level == b->level && a->word == b->word &&
	       a->payload == b->payload && a->reg == b->reg && a->ungated == b->ungated &&
	       a->is_wide == b->is_wide && a->nconditions == b->nconditions && a->value == b->value;
}

bool request_is_sound(const struct plan_request *r)
{
	for (size_t i = 0; r && i < r->nactions; i++)
		if (!request_is_action_sound(&r->actions[i]))
			return false;
	for (size_t i = 0; r && i < r->nplaces; i++)
		if (r->places[i].action >= r->nactions)
			return false;
	if (r && r->calls && (r->nplaces || !r->nactions || r->actions[0].kind != ACTION_CALLS))
		return false;
	return !r || r->nplaces < UINT32_MAX;
}

bool request_is_counting(const struct plan_request *r)
{
	for (size_t i = 0; r && i < r->nactions; i++)
		if (action_has_common(&r->actions[i]))
			return true;
	return request_counts_pages(r);
}

bool request_counts_pages(const struct plan_request *r)
{
	for (size_t i = 0; r && i < r->nactions; i++)
		if (r->actions[i].kind == ACTION_PAGES)
			return true;
	return false;
}

/* The registers that its samples show as payload, which nothing else may lose. */
uint16_t request_shown_registers(const struct plan_request *r)
{
	uint16_t regs = 0;

	for (size_t i = 0; r && i < r->nactions; i++) {
		const struct place_action *a = &r->actions[i];

		if (a->kind != ACTION_TRACE && a->kind != ACTION_RESOURCE)
			continue;
		if (a->payload == PAYLOAD_REG)
			regs |= (uint16_t)(1u << a->reg);
		if (a->payload == PAYLOAD_ADDRESS) /* after the instruction, too */
			return UINT16_MAX;
		for (unsigned k = 0; k < a->nconditions; k++)
			if (a->conditions[k].what == CONDITION_REG)
				regs |= (uint16_t)(1u << a->conditions[k].reg);
	}
	return regs;
}

static uint64_t mix(uint64_t sum, uint64_t word)
{
	sum = (sum ^ word) * 0xff51afd7ed558ccd;
	return sum ^ sum >> 32;
}

/* Field by field: padding is nobody's. */
uint64_t plan_request_hash(const struct plan_request *r)
{
	uint64_t sum = mix(mix(r->functions | r->calls << 1, r->nplaces), r->nactions);

	for (size_t i = 0; i < r->nactions; i++) {
		const struct place_action *a = &r->actions[i];

		sum = mix(sum, a->kind | a->level << 8 | a->word << 16 |
				       (uint64_t)a->payload << 24 | (uint64_t)a->reg << 32 |
				       (uint64_t)a->ungated << 40 | (uint64_t)a->is_wide << 48);
		sum = mix(sum, a->value);
		sum = mix(sum, a->nplaces | a->bits << 8 | a->count << 16);
		for (unsigned k = 0; k < a->nplaces; k++)
			sum = mix(sum, (uint32_t)a->place[k]);
		for (unsigned k = 0; k < a->nconditions; k++) {
			const struct place_condition *c = &a->conditions[k];

			sum = mix(sum,
				  c->what | c->reg << 8 | c->compare << 16 |
					  (uint64_t)c->bits << 24 | (uint64_t)c->is_signed << 32 |
					  (uint64_t)c->has_mask << 40 | (uint64_t)(k + 1) << 48);
			sum = mix(sum, c->mask);
			sum = mix(sum, c->number);
		}
	}
	for (size_t i = 0; i < r->nplaces; i++) {
		const struct place_request *p = &r->places[i];

		sum = mix(sum, p->vaddr);
		sum = mix(sum, p->where | (uint64_t)p->action << 8);
		sum = mix(sum, p->event);
	}
	return sum;
}
