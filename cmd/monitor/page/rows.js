// SPDX-License-Identifier: MIT
// rows.js - the intervals that have come, and what a value of one is: as words, and as the height of a bar.
//
// A number that a browser cannot hold exactly comes as a string, and is shown as it came.

const KEPT = 4096; // intervals

const rows = [];
let about = null, earlier = 0; // that were here, or never came, and are shown nowhere

// by kind: what the height of a bar is, of a value n over ns
const KINDS = {
	count: {height: (n, ns) => n * 1e9 / ns, unit: "per second", words: v => thousandsOf(v), sums: true},
	bytes: {height: (n, ns) => n * 1e9 / ns, unit: "bytes per second", words: v => `${thousandsOf(v)} bytes`, sums: true},
	ns: {height: (n, ns) => 100 * n / ns, unit: "% of a processor", words: v => duration(Number(v)), sums: true},
	percent: {height: n => n, unit: "%", words: v => `${v.toFixed(1)}%`},
	value: {height: n => n, unit: "", words: v => String(v)},
};

const thousandsOf = v => typeof v === "string" ? v.replace(/\B(?=(\d{3})+$)/g, ",") : thousands(v);

function shortNumber(n) {
	const a = Math.abs(n);
	return a >= 1e15 || a > 0 && a < 0.01 ? n.toExponential(2) : a >= 1000 ? thousands(n) : String(Math.round(n * 100) / 100);
}

function wordsOf(column, v) {
	if (v === null)
		return "not known";
	return column.isHex ? `0x${BigInt(v).toString(16)}` : KINDS[column.kind].words(v);
}

function takeAbout(message) {
	about = message;
	about.columns = message.columns.map(([name, kind, isHex], i) => ({name, kind, isHex, i}));
	rows.length = earlier = 0;
}

function takeRow(row) {
	rows.push(row);
	if (rows.length > KEPT)
		earlier += rows.splice(0, rows.length - KEPT).length;
}

// What a processor did is what it was not idle.
const isBusy = column => column.kind === "percent";
function valueOf(row, column) {
	const v = row.values[column.i];
	return v !== null && isBusy(column) ? 100 - v : v;
}
const nameOf = column => isBusy(column) ? column.name.replace(/^idle/, "busy") : column.name;

// NaN: it is not known
function heightOf(row, column) {
	const v = valueOf(row, column);
	return v === null ? NaN : KINDS[column.kind].height(Number(v), Math.max(1, row.to_ns - row.from_ns));
}

// ~ an estimate, ! an overrun: of any of the rows
function marksOf(some, column) {
	return (some.some(r => r.estimates?.includes(column.i)) ? "~" : "") + (some.some(r => r.overrun?.includes(column.i)) ? "!" : "");
}

// A sum that is exact whatever its size.
function sumOf(some, column) {
	let n = 0n;
	for (const row of some)
		if (row.values[column.i] !== null)
			n += BigInt(row.values[column.i]);
	return n;
}
