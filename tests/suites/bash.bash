# SPDX-License-Identifier: MIT
# bash: tests/run-*, each compares with its .right file

prepare() {
	fetch bash && cd "$src" && ./configure && make recho zecho printenv xcase version.h
}

setup() {
	program bash /usr/bin/bash
}

tests() { # without those that run the others
	(cd "$src/tests" && ls run-*) | sed 's/^run-//' | grep -vxE 'all|minimal|gprof'
}

run() {
	local sh=/usr/bin/bash
	[ -e "$bin/bash" ] && sh=$bin/bash
	[ -e "$bin/tests/run-all" ] || { rm -rf "$bin/tests" && cp -a "$src/tests" "$bin/tests"; }
	cd "$bin/tests" || return 1
	PATH=$src:.:$PATH THIS_SH=$sh BASH_TSTOUT=$dir/tst BUILD_DIR=$src probed "$sh" "./run-$1"
}

# What differs from the .right file, less what is another each time
summary() {
	grep -av '^warning: ' "$1" | sed "s|$bin/bash|/usr/bin/bash|g; s|$work/run/bash.$mode|DIR|g; s|$bin|BIN|g; s|[0-9]\{4,\}|N|g" | cksum
}
