# SPDX-License-Identifier: MIT
# git: t/ of the source, with the git that is installed

prepare() {
	fetch git && cd "$src" && make NO_CURL=1 NO_TCLTK=1 NO_GETTEXT=1 USE_LIBPCRE2=1 \
		GIT-BUILD-OPTIONS t/helper/test-tool && make -C templates
}

setup() { # git's other programs are links to it and scripts
	local git f
	git=$(program git /usr/bin/git) || return 1
	[ "$git" = /usr/bin/git ] && return
	mkdir -p "$bin/core" && for f in /usr/lib/git-core/*; do
		[ "$(stat -Lc %s "$f")" = "$(stat -c %s /usr/bin/git)" ] && ln -sf "$git" "$bin/core/" &&
			ln -sf "$git" "$bin/core/${f##*/}" || ln -sf "$f" "$bin/core/"
	done
}

tests() { # servers and mail need more than git
	(cd "$src/t" && ls t[0-9]*.sh) | grep -vE '^t(5[5-7]|9)' | sed 's/\.sh$//'
}

run() {
	local installed=/usr/bin core=/usr/lib/git-core
	[ -e "$bin/git" ] && installed=$bin core=$bin/core
	cd "$src/t" || return 1
	GIT_TEST_INSTALLED=$installed GIT_TEST_EXEC_PATH=$core GIT_EXEC_PATH=$core \
		probed sh "./$1.sh" --root="$dir/trash" --no-bin-wrappers
}

summary() {
	echo "$(grep -c '^ok' "$1") ok, $(grep -c '^not ok' "$1") not ok"
}
