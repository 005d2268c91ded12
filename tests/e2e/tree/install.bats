#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What `make install` puts where, and that kron works from there.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"

install_to() {
	make -s -C "$KRON_TOP_BUILD" install DESTDIR="$1" >install.log 2>&1 ||
		{ cat install.log; false; }
	prefix=$(sed -n 's/^prefix = //p' "$KRON_TOP_BUILD/Makefile")
	tree=$1$prefix
}

@test "a DESTDIR tree holds program, runtime, pages and completion" {
	install_to "$T/dest"
	[ -x "$tree/bin/kron" ]
	[ -r "$tree/lib/kron/libkron-rt.so" ]
	[ -r "$tree/share/man/man1/kron.1" ]
	for c in $("$KRON" --help-words | cut -f1); do
		[ -r "$tree/share/man/man1/kron-$c.1" ] || { echo "no page of $c"; false; }
	done
	[ -r "$tree/share/bash-completion/completions/kron" ]
	[ -r "$tree/share/zsh/site-functions/_kron" ]
	[ -r "$tree/share/fish/vendor_completions.d/kron.fish" ]
	for c in mk_rdsample mk_expand mk_rpt mk_status mk_mem_test test_mk mk_sample_test mk_nite_test; do
		[ -x "$tree/bin/$c" ]
		[ -r "$tree/share/man/man1/$c.1" ]
		[ -r "$tree/share/bash-completion/completions/$c" ]
		[ -r "$tree/share/fish/vendor_completions.d/$c.fish" ]
		grep -q "^#compdef.* $c\( \|$\)" "$tree/share/zsh/site-functions/_kron"
	done
	[ -r "$tree/share/man/man5/interval.info.5" ]
	[ -r "$tree/share/man/man5/mk.dat.5" ]
	# nothing else comes along: of libraries and headers only what programs with mk.h or refcnt.h need, no test
	[ "$(cd "$tree" && find . ! -path "./share/*" \
		\( -name "*.a" -o -name "*.h" -o -name "test_*" \) | sort | xargs)" = \
		"./bin/test_mk ./include/mk.h ./include/refcnt.h ./lib/libmk.a ./lib/librefcnt.a" ]
}

@test "kron records from a DESTDIR tree, wherever it lies" {
	install_to "$T/dest"
	mv "$T/dest" "$T/moved"
	unset KRON_RUNTIME
	run "$T/moved$prefix/bin/kron" record -- /bin/true
	[ "$status" = 0 ]
	[[ $output == *" samples, 0 lost"* ]]
	[[ $output != "kron: 0 samples"* ]]
	# with its packs
	[ -r "$T/moved$prefix/share/man/man7/kron-probes.7" ]
	run "$T/moved$prefix/bin/kron" record -P process -- /bin/sh -c '/bin/true; exit 0'
	[ "$status" = 0 ]
	[[ $output == *" samples, 0 lost"* ]]
	run "$T/moved$prefix/bin/kron" report
	[[ $output == *" vfork [libc.so.6]"* || $output == *" fork [libc.so.6]"* ]]
}

@test "KRON_RUNTIME names another runtime, and a wrong one is named" {
	install_to "$T/dest"
	KRON_RUNTIME=$tree/lib/kron/libkron-rt.so run "$KRON" record -- /bin/true
	[ "$status" = 0 ]
	[[ $output == *" samples, 0 lost"* ]]
	KRON_RUNTIME=$T/nowhere.so run "$KRON" record -- sh -c 'exit 3'
	[[ $output == *"$T/nowhere.so"* ]]
}

@test "uninstall leaves nothing" {
	install_to "$T/dest"
	make -s -C "$KRON_TOP_BUILD" uninstall DESTDIR="$T/dest" >/dev/null 2>&1
	[ -z "$(find "$T/dest" -type f)" ]
}

@test "pkg-config says how to build with libmk, and where packs go" {
	need pkg-config
	install_to "$T/dest"
	export PKG_CONFIG_LIBDIR=$tree/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$T/dest
	printf '#include <mk.h>\nint main(void)\n{\n\treturn !mk_map("");\n}\n' >prog.c
	${CC:-gcc} -o prog prog.c $(pkg-config --cflags --libs libmk)
	readelf -dW prog | grep -qF '[libmk.so.0]'
	ls "$T/dest$(PKG_CONFIG_SYSROOT_DIR= pkg-config --variable=packdir kron)/malloc.probe"
}

# ---- completion ----

# The programs under the names that people type, in ./bin, first in PATH.
programs() {
	local p
	mkdir bin
	for p in "$KRON" "$KRON_TOP_BUILD"/board/toolkit/mk_* "$KRON_TOP_BUILD/board/toolkit/test_mk"; do
		case ${p##*/} in
		*.*) ;;
		*) ln -s "$p" bin/ ;;
		esac
	done
	PATH=$T/bin:$PATH
}

@test "--help-words has the options of --help, which completion takes" {
	programs
	for p in bin/*; do
		p=${p##*/}
		commands=
		if [ "$p" = kron ]; then commands=$(kron --help-words | cut -f1); fi
		for c in ${commands:-""}; do
			$p $c --help | grep -oE '^  (-., |    )--[a-z-]*' | tr -s ', ' '\n' | grep . | sort >want
			[ -s want ]
			# a program of its own has --version besides
			$p $c --help-words | cut -f1 | sort | diff want -
		done
	done
	kron --help | sed -n 's/^  \([a-z]*\) .*/\1/p' | diff - <(kron --help-words | cut -f1)
}

# answers: what each shell has to say to the lines of ./lines, compared to what is known otherwise
asked() { # NAME: ./NAME has a line of words for each line
	paste -d : lines "$1"
	[ "$(sed -n 1p "$1")" = "record recover" ]
	[ "$(sed -n 2p "$1")" = "--when-full" ]
	[ "$(sed -n 3p "$1")" = "discard wait wrap" ]
	[ "$(sed -n 4p "$1")" = "device:" ]
	# the packs that there are
	for pack in "$KRON_TOP_SRC"/probes/packs/*.probe; do
		pack=${pack##*/}
		[[ " $(sed -n 5p "$1") " == *" ${pack%.probe} "* ]]
	done
	# the verbs and operands that --help names
	[ "$(sed -n 6p "$1")" = "$(kron ctl --help | sed -n '2,/\.$/p' | tr '\n' ' ' |
		sed 's/^[^:]*: //; s/; or[^:]*: /, /; s/\.//' | tr ',' '\n' | awk '{ print $1 }' | sort -u | xargs)" ]
	[ "$(sed -n 7p "$1")" = "$(kron board --help | sed -n 's/.* \([a-z|]*\) \[NAME\]$/\1/p' | tr '|' '\n' | sort | xargs)" ]
	[ "$(sed -n 8p "$1")" = "--sum --summary" ] || [ "$(sed -n 8p "$1")" = "--summary" ]
	[ "$(sed -n 9p "$1")" = "made" ] || [ "$(sed -n 9p "$1")" = "made/" ]
	# words and not files, though there is a file that begins so
	[ "$(sed -n 10p "$1")" = "$(kron export --help-words | awk -F '\t' '$1 == "-f" { print $2 }' | tr '|' '\n' | sort | xargs)" ]
	[ "$(sed -n 11p "$1")" = "self self-on-cpu" ]
	[ "$(sed -n 12p "$1")" = "entries exits" ]
}
lines() {
	mkdir made
	printf '%s\n' 'kron rec' 'kron record --when' 'kron record --when-full ' 'kron record --bus d' \
		'kron record -P ' 'kron ctl ' 'kron board ' 'mk_rpt --sum' 'kron record -o ma' \
		'kron export -f ' 'kron report -s se' 'kron list --places e' >lines
	touch self.txt entries.txt
}

@test "bash completes commands, options and their words" {
	programs
	lines
	cat >ask <<-'EOF'
	for p in kron mk_rpt; do
		mkdir -p load && ln -s "$KRON_TOP_SRC/doc/completion/kron" load/$p
		source load/$p
	done
	complete -p mk_rpt >/dev/null || exit
	while IFS= read -r line; do
		read -ra COMP_WORDS <<<"$line"
		[[ $line != *' ' ]] || COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		COMPREPLY=()
		_kron
		printf '%s\n' "${COMPREPLY[@]}" | sort | xargs
	done <lines
	EOF
	bash ask >bash
	asked bash
}

@test "zsh completes commands, options and their words" {
	need zsh
	programs
	lines
	# a shell with a terminal is hard to ask: what the script hands to zsh's own functions
	cat >ask <<-'EOF'
	_describe() { local -a have=(${(P)@[-1]%%:*}); print -l -- ${(M)have:#$PREFIX*} }
	compadd() { shift; print -l -- ${(M)@:#$PREFIX*} }
	_files() { if [[ $1 == -/ ]]; then print -l -- $PREFIX*(N/); fi }
	while IFS= read -r line; do
		words=(${=line})
		[[ $line != *' ' ]] || words+=("")
		CURRENT=$#words PREFIX=$words[-1]
		source "$KRON_TOP_SRC/doc/completion/_kron" | sort | xargs
	done <lines
	EOF
	zsh -f ask >zsh
	asked zsh
}

@test "fish completes commands, options and their words" {
	need fish
	programs
	lines
	mkdir load
	for p in kron mk_rpt; do
		ln -s "$KRON_TOP_SRC/doc/completion/kron.fish" load/$p.fish
	done
	while IFS= read -r line; do
		fish -N -c 'source load/kron.fish; source load/mk_rpt.fish; complete -C $argv' "$line" |
			cut -f1 | sort | xargs
	done <lines >fish
	asked fish
}
