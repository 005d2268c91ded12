/* SPDX-License-Identifier: MIT */
/* request.c - what the planner asks of a request. */
#include "inject/plan/request.h"

#include "inject/plan/action.h"
#include "inject/plan/plan.h"

bool request_is_sound(const struct plan_request *r)
{
	for (size_t i = 0; r && i < r->nactions; i++)
		if (r->actions[i].kind >= ACTION_KINDS || r->actions[i].level > 15 ||
		    r->actions[i].word > 127 || r->actions[i].payload >= PAYLOAD_KINDS ||
		    r->actions[i].reg > 15 ||
		    (r->actions[i].kind == ACTION_COUNT && r->actions[i].word > 15))
			return false;
	for (size_t i = 0; r && i < r->nplaces; i++)
		if (r->places[i].action >= r->nactions)
			return false;
	return !r || r->nplaces < UINT32_MAX;
}

bool request_is_counting(const struct plan_request *r)
{
	for (size_t i = 0; r && i < r->nactions; i++)
		if (action_has_common(&r->actions[i]))
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
	uint64_t sum = mix(mix(r->functions, r->nplaces), r->nactions);

	for (size_t i = 0; i < r->nactions; i++) {
		const struct place_action *a = &r->actions[i];

		sum = mix(sum, a->kind | a->level << 8 | a->word << 16 |
				       (uint64_t)a->payload << 24 | (uint64_t)a->reg << 32 |
				       (uint64_t)a->ungated << 40);
		sum = mix(sum, a->value);
	}
	for (size_t i = 0; i < r->nplaces; i++) {
		const struct place_request *p = &r->places[i];

		sum = mix(sum, p->vaddr);
		sum = mix(sum, p->where | (uint64_t)p->action << 8);
		sum = mix(sum, p->event);
	}
	return sum;
}
