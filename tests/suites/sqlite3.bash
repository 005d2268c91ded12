# SPDX-License-Identifier: MIT
# sqlite3: the test/*.test scripts of the source, by its testfixture

prepare() {
	fetch sqlite3 && cd "$src" && ./configure --with-tcl=/usr/lib/tcl8.6 && make testfixture
}

setup() {
	program testfixture "$(fixture)"
}

fixture() {
	[ -e "$src/.libs/testfixture" ] && echo "$src/.libs/testfixture" || echo "$src/testfixture"
}

tests() { # without those that run the others
	(cd "$src/test" && ls ./*.test) | sed 's|^\./||' |
		grep -vE '^(all|full|quick|veryquick|permutations|soak|memleak|mallocAll|async.*|crash.*|extraquick|rbu|session|fts5)\.test$'
}

run() {
	local t
	t=$(fixture)
	[ -e "$bin/testfixture" ] && t=$bin/testfixture
	probed "$t" "$src/test/$1"
}

summary() {
	local n
	n=$(sed -n 's/.* errors out of \([0-9]*\) tests.*/\1/p' "$1")
	echo "${n:-0} ok, $(grep -c '^! ' "$1") not ok"
}
