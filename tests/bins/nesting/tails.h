/* SPDX-License-Identifier: MIT */
/* tails.h - the calls of tails.c and of its library, which count into one file. */
/* clang-format off */
#define CALLS(X)                                                                               \
	X(main, direct) X(direct, leaf) X(main, chain) X(chain, direct) X(main, wait_sleep)    \
	X(main, wait_chain) X(wait_chain, wait_sleep) X(main, pointer) X(pointer, leaf)        \
	X(main, conditional) X(conditional, leaf) X(main, twice) X(twice, wait_sleep)          \
	X(twice, between) X(main, even) X(even, odd) X(main, down) X(main, over)  \
	X(over, lib_leaf) X(main, lib_over) X(lib_over, lib_leaf) X(main, lib_wait)            \
	X(lib_wait, wait_sleep) X(main, lib_pointer) X(lib_pointer, leaf) X(main, works)       \
	X(works, leaf) X(works, direct) X(main, after) X(main, nested_sleep)  \
	X(nested_sleep, wait_sleep)
/* clang-format on */
#define TIMES(X) X(wait_sleep) X(wait_chain) X(lib_wait) X(nested_sleep)
void lib_leaf(int n);
void lib_over(int n);
void lib_wait(void (*f)(void));
void lib_pointer(void (*f)(int), int n);
