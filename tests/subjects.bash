# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Runs programs untraced and traced and compares.  Source it after tests/lib.sh.
#
#   suite_start                 a folder for the whole file; goes when everything passed
#   subject FILE...             build tests/torture/*/FILE in its variants, run each both ways; KRON_TEST_MODES=all
#                               in both modes, otherwise in one that KRON_TEST_SEED gives
#   behaves NAME MODE CMD...    run CMD untraced and traced; MODE is exe or lib (-L '*')
#   suite_end
#
# `behaves` runs both in folders of their own, made alike by the function `prepare` (if any),
# with the same small environment and empty stdin, and compares stdout, stderr and the way it
# ended, death by signal included.  Then it looks into the trace: was anything
# recorded, do the bytes agree with what `kron info` and `kron report` say, is the segment gone.

TORTURE=$KRON_TOP_SRC/tests/torture
TRUTH=${TRUTH:-$KRON_TOP_SRC/tests/truth.py}

suite_start() {
	SUITE=$(mktemp -d "${TMPDIR:-/tmp}/kron-e2e.XXXXXX")
	[ -x "$KRON" ] || { echo "Bail out! no $KRON"; exit 99; }
	mkdir "$SUITE/cache" "$SUITE/home"
	SUBJECT_CC=gcc
	${CC:-gcc} --version | grep -q clang && SUBJECT_CC=clang
	# one cache for the whole file: each library is planned once
	export XDG_CACHE_HOME=$SUITE/cache
	RANDOM=${KRON_TEST_SEED:=$RANDOM}
	echo "# KRON_TEST_SEED=$KRON_TEST_SEED"
	OUTCOME=$SUITE/outcome
	${CC:-gcc} -O2 -o "$OUTCOME" "$KRON_TOP_SRC/tests/bins/outcome.c" ||
		{ echo "Bail out! no compiler"; exit 99; }
	cd "$SUITE" || exit 99
	trap 'kill_ours' EXIT
}

kill_ours() {
	cd / || exit 99
	[ "$tap_failed" = 0 ] && [ "${suite_complete-}" = 1 ] && rm -rf "$SUITE"
}

suite_end() {
	suite_complete=1
	[ "$tap_failed" = 0 ] || echo "# the folder of these tests: $SUITE"
	tap_done
}

# clean_env CMD...: the environment that every subject gets
clean_env() {
	env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME="$SUITE/home" LC_ALL=C.UTF-8 TERM=dumb \
		TZ=UTC XDG_CACHE_HOME="$SUITE/cache" ${KRON_LOG:+KRON_LOG="$KRON_LOG"} "$@"
}

# one_way FOLDER CMD...: stdout, stderr and outcome go to FOLDER.  Both runs work at the same
# path beside it, so that programs that print where they are print the same.
one_way() {
	local d=$1 work=${1%/*}/work
	shift
	rm -rf "$d" "$work"
	mkdir -p "$d" "$work"
	(
		cd "$work" || exit 99
		[ "$(type -t prepare)" != function ] || prepare || exit 99
		clean_env "$OUTCOME" "$d/outcome" "${TIMEOUT:-60}" "$@" </dev/null \
			>"$d/stdout" 2>"$d/stderr"
	)
}

# hide FOLDER: what differs between two runs anyway; a test may define its own
hide() { :; }

# behaves NAME MODE CMD...
behaves() {
	local name=$1 mode=$2 d=$SUITE/run/$1.$2 lib=() status=0
	shift 2
	[ "$mode" = exe ] || lib=(-L '*')
	one_way "$d/plain" "$@" || { echo "the untraced run could not be made"; return 1; }
	! grep -q timeout "$d/plain/outcome" || { echo "the untraced run hangs, too"; return 1; }
	# shellcheck disable=SC2086
	one_way "$d/traced" "$KRON" record -o "$d/traced/trace" -q ${RECORD_OPTIONS-} \
		${KRON_TEST_OPTIONS-} "${lib[@]}" -- "$@"
	echo "$KRON record -o trace ${RECORD_OPTIONS-} ${KRON_TEST_OPTIONS-} ${lib[*]} -- $*" >"$d/command"
	hide "$d/plain"
	hide "$d/traced"
	for what in outcome stdout stderr; do
		if ! cmp -s "$d/plain/$what" "$d/traced/$what"; then
			echo "$what differs ($d):"
			diff -a "$d/plain/$what" "$d/traced/$what" | head -n 12
			status=1
		fi
	done
	[ "$status" = 0 ] || cat "$d/command"
	# shellcheck disable=SC2086
	[ -n "${NO_TRACE-}" ] || "$PYTHON" "$TRUTH" check "$d/traced/trace" ${CHECKS-} || status=1
	[ "$status" != 0 ] || rm -rf "$d"
	return $status
}

# ---- torture programs ----

# torture_source FILE: where it is
torture_source() {
	echo "$TORTURE"/*/"$1"
}

# read_head FILE: into HEAD[KEY] the words after "KEY:" in the head comment
read_head() {
	local line
	HEAD=()
	while read -r line && [ "$line" != '*/' ]; do
		[[ $line =~ ^'* '([A-Z][a-z?-]*)': '(.*) ]] || continue
		HEAD[${BASH_REMATCH[1]}]+="${BASH_REMATCH[2]} "
	done <"$1"
}
declare -A HEAD

# flags_of VARIANT
flags_of() {
	local f
	for f in ${1//,/ }; do
		case $f in
		O*) echo "-$f" ;;
		pie) echo "-fpie -pie" ;;
		no-pie) echo "-fno-pie -no-pie" ;;
		static) echo "-static" ;;
		strip) echo "-s" ;;
		relro) echo "-Wl,-z,relro,-z,now" ;;
		cet) echo "-fcf-protection=full" ;;
		nopatch) echo "-fno-jump-tables" ;;
		g) echo "-g" ;;
		esac
	done
}

# build FILE VARIANT OUT: the program, and its plug-ins into the folder of OUT
build() {
	local src cc=${CC:-gcc} p so
	src=$(torture_source "$1")
	case $1 in *.cc) cc=${CXX:-g++} ;; esac
	# shellcheck disable=SC2046
	$cc -w -D_GNU_SOURCE -I"$TORTURE" -o "$3" "$src" $(flags_of "$2") ${HEAD[Flags]-} ||
		return 1
	for p in ${HEAD[Plugins]-}; do
		so=${p%%:*}
		p=${p#*:}
		[ -e "$SUITE/plugins/$so" ] && continue
		mkdir -p "$SUITE/plugins"
		${CC:-gcc} -O2 -fPIC -shared -DID="$(echo "$so" | tr -dc 0-9)" \
			-o "$SUITE/plugins/$so" "$(torture_source "$p")" || return 1
	done
}

prepare() {
	[ ! -d "$SUITE/plugins" ] || cp "$SUITE"/plugins/*.so .
}

# take_modes VARIANT MODE...: into MODES: all of them of a program's first variant; of others one, another one each time
take_modes() {
	local v=$1
	shift
	MODES=("$@")
	[ "$v" = "${HEAD[Build]%% *}" ] || [ -n "${KRON_TEST_MODES-}" ] || MODES=("${MODES[RANDOM % $#]}")
}

# subject FILE...: a TAP line for each program, variant and mode
subject() {
	local f src v mode exe modes calls lib_calls maybe exits lib_exits most lossless
	for f; do
		src=$(torture_source "$f")
		read_head "$src"
		if [ "${HEAD[Needs]-}" = "root " ] && [ "$(id -u)" != 0 ]; then
			tap_skip "$f" "needs root"
			continue
		fi
		modes=${HEAD[Modes]-}
		lossless=--lossless
		[ -z "${HEAD[Lossy]-}" ] || lossless=
		for v in ${HEAD[Build]}; do
			exe=$SUITE/${f%.*}.${v//,/.}
			if ! build "$f" "$v" "$exe" 2>"$SUITE/compiler"; then
				tap "$f $v builds" cat "$SUITE/compiler" /nonexistent
				continue
			fi
			case $SUBJECT_CC/$v in
			# no names; or calls left out by a compiler that knows their results
			*strip* | clang/O[123]*) calls='' maybe='' exits='' lib_calls='' lib_exits='' most='' ;;
			*)
				calls=${HEAD[Calls]-}
				maybe=${HEAD['Calls?']-}
				exits=${HEAD[Exits]-}
				most=${HEAD['Exits?']-}
				lib_calls=${HEAD[Calls-lib]-}
				lib_exits=${HEAD[Exits-lib]-}
				;;
			esac
			# shellcheck disable=SC2086
			take_modes "$v" ${modes:-exe lib}
			for mode in "${MODES[@]}"; do
				if [ "$mode" = exe ]; then
					RECORD_OPTIONS='--when-full wait'
					CHECKS="$lossless --calls $calls --maybe $maybe --exits $exits --most $most"
				else
					RECORD_OPTIONS=
					CHECKS="--calls $calls $lib_calls --maybe $maybe --exits $exits $lib_exits --most $most"
				fi
				# shellcheck disable=SC2086
				tap "$f $v $mode" behaves "${f%.*}.${v//,/.}" "$mode" "$exe" ${HEAD[Args]-}
			done
			[ "$tap_failed" = 1 ] || rm -f "$exe"
		done
	done
	RECORD_OPTIONS='' CHECKS=''
}
