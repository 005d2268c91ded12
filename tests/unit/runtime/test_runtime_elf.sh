#!/bin/bash
# SPDX-License-Identifier: MIT
# What libkron-rt.so may be: no needed library, three weak symbols of ld.so and nothing else
# from outside (so no malloc, no stdio, no errno), little exported, no text relocation, no
# segment writable and executable, no vector or x87 instruction.
set -u
lib=$KRON_TOP_BUILD/runtime/libkron-rt.so
n=0
failed=0

check() { # NAME FOUND EXPECTED
	n=$((n + 1))
	if [ "$2" = "$3" ]; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		echo "# found:"
		printf '%s\n' "$2" | sed 's/^/#   /'
		failed=1
	fi
}

[ -r "$lib" ] || { echo "Bail out! $lib: not there"; exit 99; }
dynamic=$(readelf -dW "$lib")
symbols=$(readelf --dyn-syms -W "$lib" | awk '$1 ~ /^[0-9]+:$/ && NF >= 8')

check "needs no library" "$(grep -c NEEDED <<<"$dynamic")" 0
check "takes only weak symbols of ld.so" \
	"$(awk '$7 == "UND" { print $5, $8 }' <<<"$symbols" | sed 's/@.*//' | sort)" \
	"WEAK __rseq_offset
WEAK __rseq_size
WEAK _r_debug"
check "exports nothing but what unwinders call" \
	"$(awk '$7 != "UND" { print $8 }' <<<"$symbols" | sort)" \
	"_dl_find_object
dl_iterate_phdr"
check "is initialised first" "$(grep -c 'FLAGS_1.*INITFIRST' <<<"$dynamic")" 1
check "binds at once" "$(grep -c 'FLAGS_1.*NOW' <<<"$dynamic")" 1
check "has no text relocation" "$(grep -c TEXTREL <<<"$dynamic")" 0
check "has no PLT" "$(grep -c -E 'PLTGOT|JMPREL' <<<"$dynamic")" 0
check "has no segment that is writable and executable" \
	"$(readelf -lW "$lib" | awk '/LOAD|GNU_STACK/ && /RWE/' | wc -l)" 0
check "has few relocations" \
	"$(readelf -rW "$lib" | awk '$3 ~ /^R_X86_64_/ { print $3 }' | sort -u |
		grep -v -x -E 'R_X86_64_(RELATIVE|GLOB_DAT|TPOFF64|64)')" ""
check "touches no vector and no x87 register" \
	"$(objdump -d --no-show-raw-insn "$lib" | grep -E '%([xyz]mm|mm[0-7]|st)|\b(f(n?stcw|ldcw|xsave|xrstor)|xsave|xrstor)' | head -n 3)" ""
# the slow path takes a stack for C that way, in Go's programs
check "has no locked instruction in the probe" \
	"$(objdump -d --no-show-raw-insn --disassemble=kron_rt_probe "$lib" | grep -w lock |
		grep -c -v '<kron_rt_stacks_taken>')" 0
# what is loaded, not what is for debuggers
loaded=0
while read -r bytes; do loaded=$((loaded + bytes)); done < <(readelf -lW "$lib" | awk '/LOAD/ { print $5 }')
check "is small" "$([ "$loaded" -gt 0 ] && [ "$loaded" -lt 120000 ] && echo yes)" yes
echo "1..$n"
exit $failed
