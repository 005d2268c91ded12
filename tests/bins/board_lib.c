/* SPDX-License-Identifier: MIT */
/* board_lib: a library with one function, -DNAME=a -DHIT=hit_a; -DCONSTRUCTOR: and what sets it up. */
#define GLUE(x, y) x##y
#define COUNTER(name) GLUE(name, _calls)

int COUNTER(NAME);
static volatile int is_set = 1;

#ifdef CONSTRUCTOR
__attribute__((constructor)) static void set_up(void)
{
	is_set = is_set * 2 - 1;
}
#endif

__attribute__((noipa)) int HIT(int x)
{
	__atomic_fetch_add(&COUNTER(NAME), 1, __ATOMIC_RELAXED);
	return x + is_set;
}
