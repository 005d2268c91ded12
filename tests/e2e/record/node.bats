#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# timeout: 600
# node.bats - V8 runs copies of its builtins; they behave as ever, and no call of them is missed.
source "${KRON_TOP_SRC:-$BATS_TEST_DIRNAME/../../..}/tests/lib.sh"

# The program itself, with its builtins' names
named_node() {
	need node
	node=$(readlink -f "$(command -v node)")
	readelf -sW "$node" | grep -q ' Builtins_InterpreterEntryTrampoline' ||
		skip "this node has no names of V8's builtins"
}

# script: calls of a function as often as its first argument says, and much else
script() {
	cat >script.js <<-'END'
		const n = Number(process.argv[2] || 1000);
		let calls = 0;
		function call() { calls++ }
		for (let i = 0; i < n; i++) call();
		console.log(calls);
		function* squares(n) { for (let i = 0; i < n; i++) yield i * i }
		console.log([...squares(300)].reduce((a, b) => a + b, 0));
		let caught = 0;
		for (let i = 0; i < 300; i++)
			try { if (i % 3) throw new Error('e'); } catch (e) { caught += e.stack.length > 2 }
		console.log(caught);
		function deep() { deep() }
		try { deep() } catch (e) { console.log(e instanceof RangeError) }
		console.log('abc def'.replace(/[a-c]+/, x => x.toUpperCase()), [3, 1, 2].sort().join());
		function add(a, b) { return a + b }
		let sum = 0;
		for (let i = 0; i < 20000; i++) sum = add(sum, i);
		console.log(add('x', sum), JSON.stringify({ a: [1, { b: 'c' }] }));
		(async () => { let r = 0; for (let i = 0; i < 100; i++) r += await i; console.log(r) })();
	END
}

# as_plain CMD...: prints what `node script.js` does
as_plain() {
	"$@" script.js >got 2>err
	node script.js >want
	diff want got || { cat err; return 1; }
}

# calls FUNCTION NODE-OPTION... : how many of them a trace has
calls() {
	local function=$1
	shift
	"$KRON" record -q -F 'Builtins_InterpreterEntryTrampoline' -- "$node" --no-opt --no-sparkplug "$@" >/dev/null
	"$KRON" report --json | json "sum(f['calls'] for f in d if f['function'] == '$function')"
}

@test "node behaves as ever with its builtins recorded, counted, patched" {
	named_node
	script
	as_plain "$KRON" record -q -F 'Builtins_*' -- "$node"
	as_plain "$KRON" record -q -F 'Builtins_*' -- "$node" --no-short-builtin-calls
	as_plain "$KRON" record -q -F 'Builtins_*' -- "$node" --use-largepages=silent
	as_plain "$KRON" record -q -p 'Builtins_*%calls count:0' -- "$node"
	as_plain "$KRON" record -q -- "$node"
	"$KRON" patch --jumps -o patched "$node"
	as_plain ./patched
	as_plain "$KRON" record -q -- ./patched
}

# What JavaScript itself counts: n more calls are n more entries of the interpreter.
@test "every call of the interpreter is recorded, wherever V8 runs its builtins" {
	named_node
	script
	for option in --short-builtin-calls --no-short-builtin-calls --use-largepages=silent; do
		few=$(calls Builtins_InterpreterEntryTrampoline $option script.js 1000)
		many=$(calls Builtins_InterpreterEntryTrampoline $option script.js 51000)
		echo "$option: $few, $many"
		[ $((many - few)) -ge 49950 ]
		[ $((many - few)) -le 50050 ]
	done
}

@test "kron patch says what it leaves alone" {
	named_node
	run "$KRON" patch -o patched "$node"
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *" of those refused are in code that the program copies"* ]]
}
