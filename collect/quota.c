/* SPDX-License-Identifier: MIT */
/* quota.c - see quota.h */
#include "collect/quota.h"

bool quota_take(struct quota *q, pid_t pid, uint32_t second)
{
	struct quota_of *of = &q->of[(uint32_t)pid % QUOTA_PROCESSES];
	uint32_t passed = second - of->second;

	of->used -= passed < of->used ? passed : of->used;
	of->second = second;
	if (of->used >= QUOTA_LINES) {
		q->left_out++;
		return false;
	}
	of->used++;
	return true;
}
