#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What `make install` puts where, and that kron works from there.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../..}/tests/lib.sh"

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
	for c in $("$KRON" --help-words); do
		[ -r "$tree/share/man/man1/kron-$c.1" ] || { echo "no page of $c"; false; }
	done
	[ -r "$tree/share/bash-completion/completions/kron" ]
	for c in mk_rdsample mk_expand mk_rpt mk_status mk_mem_test test_mk mk_sample_test mk_nite_test; do
		[ -x "$tree/bin/$c" ]
		[ -r "$tree/share/man/man1/$c.1" ]
	done
	[ -r "$tree/share/man/man5/interval.info.5" ]
	[ -r "$tree/share/man/man5/mk.dat.5" ]
	# nothing else comes along: of libraries and headers only what programs with mk.h need, no test
	[ "$(cd "$tree" && find . -name "*.a" -o -name "*.h" -o -name "test_*" | sort | xargs)" = \
		"./bin/test_mk ./include/mk.h ./lib/libmk.a ./share/man/man1/test_mk.1" ]
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

@test "the shell completion offers commands and options" {
	mkdir bin
	ln -s "$KRON" bin/kron
	run env PATH="$T/bin:$PATH" bash -c '
		source "$KRON_TOP_SRC/doc/completion/kron"
		COMP_WORDS=(kron rec) COMP_CWORD=1; _kron; echo "${COMPREPLY[@]}"
		COMP_WORDS=(kron record --when) COMP_CWORD=2; _kron; echo "${COMPREPLY[@]}"'
	[ "$status" = 0 ]
	[[ ${lines[0]} == *record* ]]
	[ "${lines[1]}" = --when-full ]
}
