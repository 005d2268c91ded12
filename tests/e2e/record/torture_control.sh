#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 1800
# torture_control.sh - programs made to break tracers: computed jumps, tiny functions, switches,
# tail calls, long jumps, exceptions, coroutines, registers.
# One of them alone: tests/e2e/record/torture_control.sh FILE

source "${KRON_TOP_SRC:-$(dirname "$0")/../../..}/tests/lib.sh"
source "$KRON_TOP_SRC/tests/subjects.bash"

suite_start
if [ $# -gt 0 ]; then
	subject "$@"
else
	subject jump_into_entry.c odd_code.c tiny.c pop_return.c switches.c tailcalls.c tailcalls_virtual.cc \
		relocate.c redzone.c registers.c recursion.c longjmp.c siglongjmp.c coroutines.c \
		throw.cc uncaught.cc stack_shapes.c jit.c copied_code.c own_traps.c flags.c
fi
suite_end
