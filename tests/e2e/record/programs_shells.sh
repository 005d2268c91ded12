#!/bin/bash
# SPDX-License-Identifier: MIT
# programs_shells.sh - bash, dash, pipelines, scripts, make, gcc and git behave as untraced.

source "${KRON_TOP_SRC:-$(dirname "$0")/../../..}/tests/lib.sh"
source "$KRON_TOP_SRC/tests/subjects.bash"
source "$KRON_TOP_SRC/tests/e2e/record/programs.bash"

prepare() {
	cat >script.sh <<-'END'
		fib() { [ "$1" -lt 2 ] && echo "$1" && return; echo $(( $(fib $(($1 - 1))) + $(fib $(($1 - 2))) )); }
		fib 7
		for f in /usr/share/common-licenses/*; do n=${f##*/}; echo "$n ${#n}"; done | sort -r | head -n 5
		x=$(printf '%s\n' c a b | sort | tr '\n' ,)
		echo "$x"
		trap 'echo trapped; trap - USR1' USR1
		kill -USR1 $$
		(exit 7); echo "status $?"
		sleep 0.01 & wait $!; echo "waited $?"
		sh -c 'kill -TERM $$'; echo "killed $?"
		cat <<-X
		here
		X
		echo "to stderr" >&2
		exit 3
	END
	cat >bash-only.sh <<-'END'
		declare -A a
		for i in {1..200}; do a[k$((i % 17))]+=$i; done
		for k in $(printf '%s\n' "${!a[@]}" | sort); do echo "$k=${#a[$k]}"; done
		[[ "kron-2026" =~ ^([a-z]+)-([0-9]+)$ ]] && echo "${BASH_REMATCH[2]}"
		while read -r l; do echo "got $l"; done < <(seq 3)
		mapfile -t m < <(seq 1000); echo "${#m[@]} ${m[@]: -1}"
		coproc cat; echo hello >&"${COPROC[1]}"; read -r line <&"${COPROC[0]}"; echo "$line"
		exec {COPROC[1]}>&-
		wait
		printf -v s '%05d' 42; echo "$s ${s^^} ${s/0/x}"
	END
	printf '#!/bin/sh\necho "shebang $1 $#"\nexit 9\n' >shebang.sh
	printf '#!/usr/bin/env -S bash -e\necho env $BASH_VERSINFO\nfalse\n' >env.sh
	chmod +x shebang.sh env.sh
	small_tree
	text 30000 >text
}

suite_start
have bash && both "bash script" bash script.sh
have bash && both "bash alone" bash bash-only.sh
have dash && both "dash script" dash script.sh
both "sh -c pipeline" sh -c 'cat text | tr " " "\n" | sort | uniq -c | sort -rn | head -n 3; exit 4'
both "sh -c exec" sh -c 'exec /bin/echo replaced'
both "shebang script" ./shebang.sh one two
both "env script" ./env.sh
both "death by signal" sh -c 'kill -SEGV $$'
both "not found in a shell" sh -c 'nonexistent-program'
both "yes | head" bash -c 'set -o pipefail; yes | head -n 2; echo $?'
if have gcc; then
	both "gcc compiles" gcc -O2 -S -o - tree/main.c
	both "gcc links" sh -c 'gcc -O1 -o program tree/*.c && ./program'
	both "gcc reports errors" sh -c 'echo "int f(void) { return x; }" | gcc -c -x c -o /dev/null -'
fi
have make && both "make -j2" make -s -j2 -C tree
have make && both "make fails" make -C tree nothing
if have git; then
	both "git" sh -c '
		export GIT_AUTHOR_DATE="2026-01-02T03:04:05Z" GIT_COMMITTER_DATE="2026-01-02T03:04:05Z"
		git init -q -b main repo && cd repo
		git config user.name Someone && git config user.email someone@example.org
		cp -r ../tree ../text . && git add . && git commit -q -m first && echo more >>text &&
		git diff --stat && git commit -q -a -m second && git log --stat --format="%H %s" &&
		git gc -q && git fsck && git show HEAD~1:tree/part3.c | git hash-object --stdin
		git checkout nothing'
fi
suite_end
