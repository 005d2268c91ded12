#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# scripts/check-words: a file that is named and not there is reported.  The sources are a copy.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"

setup() {
	test_setup
	# what a distribution has of them, or git
	(cd "$KRON_TOP_SRC" && scripts/sources '*' | tar -cf - -T -) | tar -xf -
}

# The number of the last line of a file.
last() {
	wc -l <"$1"
}

@test "as they are they pass, with what is no claim" {
	# an example of a page is yet to be written
	printf '```c\n/* nowhere.c */\n```\n' >>doc/GLOSSARY.md
	# a name for any of several files
	echo '/* one of inject/plan/tactic_NAME.c */' >>base/vec.c
	# a string
	echo 'static const char *const name = "nowhere.c";' >>base/vec.c
	run scripts/check-words
	[ "$output" = "" ]
	[ "$status" = 0 ]
}

# All in one copy, and one run: it takes seconds.
@test "a file or a function that is named and not there is reported" {
	want=$BATS_TEST_TMPDIR/want
	# a path, and a name for any of several files, in a comment
	echo '/* see base/nowhere.c */' >>base/vec.c
	echo "base/vec.c:$(last base/vec.c): there is no file base/nowhere.c" >"$want"
	echo '/* one of inject/tactic_NAME.c */' >>base/vec.c
	echo "base/vec.c:$(last base/vec.c): there is no file inject/tactic_NAME.c" >>"$want"
	# a name in a comment of several lines
	printf '/*\n * What %s does.\n */\n' nowhere.h >>base/vec.c
	echo "base/vec.c:$(($(last base/vec.c) - 1)): there is no file nowhere.h" >>"$want"
	# a path and a function in a page
	echo 'The work is done by `inject/nowhere.c`.' >>doc/GLOSSARY.md
	echo "doc/GLOSSARY.md:$(last doc/GLOSSARY.md): there is no file inject/nowhere.c" >>"$want"
	name=not_any # put together here: this file is one of those where it looks
	printf 'It calls `vec_free()`, and then `%s_thing()`.\n' "$name" >>doc/GLOSSARY.md
	echo "doc/GLOSSARY.md:$(last doc/GLOSSARY.md): there is no function ${name}_thing()" >>"$want"
	# a name in a comment of a script
	echo '# see nowhere.S' >>scripts/run-test
	echo "scripts/run-test:$(last scripts/run-test): there is no file nowhere.S" >>"$want"
	run scripts/check-words
	[ "$status" = 1 ]
	diff "$want" <(echo "$output")
}
