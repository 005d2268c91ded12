#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Programs with a count in front of every instruction do what they do without; what int3 took is
# counted, and a program's own traps stay its own.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"

# same PROGRAM ARG...: the same output and status with every instruction counted, of the program and
# of the modules that $MORE names.
same() {
	need "$1"
	local program
	program=$(command -v "$1")
	shift
	"$program" "$@" >plain.out 2>plain.err </dev/null && plain=0 || plain=$?
	"$KRON" record -q -p '*%insns count:3' ${MORE:+-p "$MORE:*%insns count:4"} -o data -- \
		"$program" "$@" >counted.out 2>counted.err </dev/null && counted=0 || counted=$?
	[ "$plain" = "$counted" ]
	cmp plain.out counted.out
	cmp plain.err counted.err
	"$KRON" info data >info
	grep -E '^counted: +3: [0-9,]{5,}' info
}

@test "bash counts its instructions and its script's output stays" {
	same bash -c 'for i in {1..300}; do x=$((x + i * i)); y+=${i%7}; done; echo $x ${#y}
		f() { local a=$1; echo "${a//b/c}"; }; f abab; [[ abc =~ b. ]] && echo ${BASH_REMATCH[0]}
		echo no-such-command-here | tr a-z A-Z; case x in (y) ;; (*) printf "%05d\n" 42;; esac'
}

@test "perl" {
	same perl -e 'my %h; $h{$_ * 7919 % 1009} .= chr(65 + $_ % 26) for 1 .. 3000;
		my $s = join "", map { "$_=$h{$_};" } sort { $a <=> $b } keys %h;
		$s =~ s/([AEIOU])/lc $1/ge; print length $s, " ", unpack("%32C*", $s), "\n";
		eval { die "x\n" }; print "err $@"; printf "%.6f %x\n", sqrt 2, 255;'
}

@test "perl with every instruction of libc as well" {
	MORE=libc same perl -e 'my @a = map { sprintf "%03d", $_ * 31 % 977 } 1 .. 500;
		print join(" ", (sort @a)[0 .. 9]), "\n"; print length(`echo from a child`), "\n"'
}

@test "sqlite3" {
	same sqlite3 :memory: 'create table t(a, b);
		with recursive c(x) as (select 1 union all select x + 1 from c where x < 3000)
		insert into t select x, x * 7919 % 1009 from c;
		select b, count(*), sum(a) from t group by b order by 2 desc, 1 limit 5;
		create index i on t(b); select count(*) from t where b between 5 and 90;'
}

@test "git" {
	need git
	git init -q repo
	for i in 1 2 3; do
		seq $((i * 40)) >repo/numbers
		git -C repo add numbers
		GIT_AUTHOR_DATE="2000-01-0${i}T00:00:00Z" GIT_COMMITTER_DATE="2000-01-0${i}T00:00:00Z" git -C repo \
			-c user.name=n -c user.email=e commit -q -m "number $i"
	done
	same git -C repo log -p --stat
}

@test "python3" {
	# the distribution's own: others keep all their code in a library
	[ -x /usr/bin/python3 ] || skip "there is no /usr/bin/python3"
	same /usr/bin/python3 -S -c 'import json, re, zlib, math
d = {i: [i * i % 1013] * (i % 3) for i in range(1500)}
print(zlib.crc32(json.dumps(d, sort_keys=True).encode()), re.sub(r"(\d)(\d)", r"\2\1", "1234567"))
print(math.factorial(40), sorted([(i * 7) % 11 for i in range(11)]))
try:
    1 / 0
except ZeroDivisionError as e:
    print(e)'
}

@test "gzip" {
	head -c 300000 "$KRON" >input
	same gzip -9c input
}

@test "a place that only a trap can take is counted, and the program's traps stay its own" {
	compile traps bins/traps.c
	./traps >plain
	run "$KRON" list --places insns --tactics jump,int3 traps
	grep -q int3 <<<"$output"
	"$KRON" record -q --tactics jump,int3 -p 'narrow+9 count:2' -o data -- ./traps >counted
	cmp plain counted
	"$KRON" info data | grep -E '^counted: +2: 1,000$'
	"$KRON" record -q --tactics +int3 -p '*%insns count:2' -o all -- ./traps >counted
	cmp plain counted
}

@test "short jumps come to their landings by way of others" {
	need bash
	"$KRON" list --summary --json --places insns --tactics jump,relay "$(command -v bash)" >list
	[ "$(json 'd["insns"]["by_tactic"]["relay"]' <list)" -gt 500 ]
	bash -c 'for i in {1..300}; do x=$((x + i * i)); y+=${i%7}; done; echo $x ${#y}; printf "%05d\n" 42' >plain
	"$KRON" record -q --tactics jump,relay -p '*%insns count:3' -o data -- bash -c \
		'for i in {1..300}; do x=$((x + i * i)); y+=${i%7}; done; echo $x ${#y}; printf "%05d\n" 42' >counted
	cmp plain counted
}

@test "tactics are chosen by name" {
	run "$KRON" list --summary --json --places insns --tactics jump "$KRON"
	[ "$status" = 0 ]
	! grep -Eq 'short|detour|pun|relay|int3|arrivals' <<<"${output%%refused*}"
	run "$KRON" list --tactics jump,hop "$KRON"
	[ "$status" = 2 ]
	grep -q "'hop' is not a tactic: there are jump short evict arrivals detour pun relay int3" <<<"$output"
	run "$KRON" list --tactics -jump,short "$KRON"
	[ "$status" = 2 ]
}
