#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 1800
# torture_threads.sh - programs made to break tracers: threads, cancellation, signal
# handlers, and libraries that come and go.
# One of them alone: tests/e2e/record/torture_threads.sh FILE

source "${KRON_TOP_SRC:-$(dirname "$0")/../../..}/tests/lib.sh"
source "$KRON_TOP_SRC/tests/subjects.bash"

suite_start
if [ $# -gt 0 ]; then
	subject "$@"
else
	subject thread_storm.c pthread_exit.c pthread_cancel.c signals.c altstack.c dlopen_alone.c dlopen_late.c \
		dlopen_loop.c dlopen_threads.c dlopen_storm.c unwind_signal.c unwind_chains.c fault_address.c \
		fault_handlers.c fault_memory.c fault_steps.c fault_throw.cc foreign_fs.c stack_end.c
fi
suite_end
