# SPDX-License-Identifier: MIT
# zlib: its own library and programs, as its makefile makes them

prepare() {
	fetch zlib && cd "$src" && ./configure --static && make -j2
}

setup() {
	program example "$src/example" && program minigzip "$src/minigzip"
}

tests() {
	echo example
	(cd "$src" && ls ./*.c ./*.h ./*.txt) | sed 's|^\./||'
}

run() {
	local at=$bin
	[ -e "$bin/example" ] || at=$src
	if [ "$1" = example ]; then
		probed "$at/example" foo.gz
		return
	fi
	probed "$at/minigzip" <"$src/$1" >x.gz && probed "$at/minigzip" -d <x.gz | cmp - "$src/$1" &&
		gzip -dc x.gz | cmp - "$src/$1" && cksum <x.gz
}

summary() { # all that it says
	cksum <"$1"
}
