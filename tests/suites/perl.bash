# SPDX-License-Identifier: MIT
# perl: t/ of the source, by the perl that is installed

prepare() {
	fetch perl && mkdir -p "$work/perl-lib" && cp -as /usr/share/perl/5.36/. "$work/perl-lib" &&
		cp -as /usr/lib/x86_64-linux-gnu/perl/5.36/. "$work/perl-lib"
}

setup() {
	program perl /usr/bin/perl
}

tests() {
	(cd "$src/t" && ls base/*.t cmd/*.t comp/*.t io/*.t op/*.t opbasic/*.t mro/*.t re/*.t uni/*.t lib/*.t run/*.t)
}

run() {
	local perl=/usr/bin/perl
	[ -e "$bin/perl" ] && perl=$bin/perl
	if ! [ -e "$bin/top/t/perl" ]; then
		rm -rf "$bin/top" && mkdir "$bin/top" && cp -a "$src/t" "$bin/top/t" &&
			ln -s "$work/perl-lib" "$bin/top/lib" && ln -s "$perl" "$bin/top/t/perl" || return 1
	fi
	cd "$bin/top/t" || return 1
	PERL_CORE=1 PERL_TEST_MEMORY=0 probed ./perl -I../lib "$1"
}

summary() {
	echo "$(grep -c '^ok' "$1") ok, $(grep -c '^not ok' "$1") not ok"
}
