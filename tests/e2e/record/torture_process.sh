#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 1800
# torture_process.sh - programs made to break tracers: fork, exec, environment,
# descriptors, rights, seccomp.
# One of them alone: tests/e2e/record/torture_process.sh FILE

source "${KRON_TOP_SRC:-$(dirname "$0")/../../..}/tests/lib.sh"
source "$KRON_TOP_SRC/tests/subjects.bash"

suite_start
if [ $# -gt 0 ]; then
	subject "$@"
else
	subject plain.c fork_load.c fork_threads.c fork_late.c spawn.c exec_self.c exec_script.c environment.c \
		environment_bad.c environment_big.c descriptors.c process_state.c close_everything.c low_memory.c \
		seccomp_strict.c seccomp_threads.c dispatch.c killed.c
fi
suite_end
