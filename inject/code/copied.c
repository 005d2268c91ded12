/* SPDX-License-Identifier: MIT */
/* copied.c - see copied.h. */
#include "inject/code/copied.h"

#include <string.h>

#define PAGE 4096ull
#define ROW 8u /* builtins: V8 has some two thousand; fewer are somebody's own functions */

/* libffi's closures; the stubs and write barriers of .NET's runtime. */
static const char *const templates[] = {"trampoline_code_table", "StubPrecodeCode",
					"FixupPrecodeCode",      "CallCountingStubCode",
					"JIT_WriteBarrier",      "JIT_CheckedWriteBarrier",
					"JIT_ByRefWriteBarrier", "JIT_PatchedCodeStart"};

static bool is_builtin(const struct function *f)
{
	static const char prefix[] = "Builtins_";

	return f->name && !strncmp(f->name, prefix, sizeof(prefix) - 1);
}

void copied_find(struct copied_code *c, const struct functions *f)
{
	size_t longest = ROW - 1;

	c->lo = c->hi = 0;
	for (size_t i = 0, n; i < f->n; i += n ? n : 1) {
		for (n = 0; i + n < f->n && is_builtin(&f->v[i + n]); n++)
			;
		if (n <= longest)
			continue;
		longest = n;
		c->lo = f->v[i].start & -PAGE;
		c->hi = (f->v[i + n - 1].end + PAGE - 1) & -PAGE;
	}
}

bool copied_has(const struct copied_code *c, const struct function *f)
{
	return f->start < c->hi && f->end > c->lo;
}

bool copied_is_template(const struct function *f)
{
	for (size_t i = 0; f->name && i < sizeof(templates) / sizeof(templates[0]); i++)
		if (!strcmp(f->name, templates[i]))
			return true;
	return false;
}
