// SPDX-License-Identifier: MIT
// matrix.js - which process sends how much to which: messages of class 4 of an interval.info, and MPI's.
//
// A cell of the matrix is all messages from the process of its row to that of its column, in the whole view.  Colours
// are logarithmic: the darkest is what has most.

const MATRIX_GUTTER = 190, MATRIX_MOST = 28, MATRIX_LEAST = 4, MATRIX_ROOM = 640;

const matrix = {
	id: "matrix", title: "Messages", what: "count",

	get empty() {
		return !data.matrix.length;
	},

	build(section) {
		this.section = section;
		this.cells = data.matrix.map(([def, from, to, count, bytes, sum, max]) => ({name: data.message_names[def], from, to, count, bytes, sum, max}));
		this.hasBytes = this.cells.some(c => c.bytes);
		this.figure = el("figure", {id: "matrix-figure"});
		this.table = el("div", {class: "tablebox", id: "matrix-table"});
		const what = el("select", {id: "matrix-what", "aria-label": "what colours show", on: {change: e => { this.what = e.target.value; this.draw(); }}},
			el("option", {value: "count"}, "messages"), ...this.hasBytes ? [el("option", {value: "bytes"}, "bytes")] : [],
			el("option", {value: "sum"}, "time under way"), el("option", {value: "max"}, "longest time"));
		section.append(el("div", {class: "bar"}, el("h2", {}, "Messages"), el("span", {class: "note"}, "from row to column, in all of the page's time"), el("span", {class: "space"}), what), this.figure, this.table);
		const who = i => data.matrix_names[i];
		this.table.append(sortedTable([{name: "From", word: true, value: c => who(c.from)}, {name: "To", word: true, value: c => who(c.to)}, {name: "Message", word: true, value: c => c.name},
			{name: "Count", value: c => c.count, show: c => thousands(c.count)}, ...this.hasBytes ? [{name: "Bytes", value: c => c.bytes, show: c => thousands(c.bytes)}] : [],
			{name: "Time", value: c => c.sum, show: c => duration(c.sum)}, {name: "Average", value: c => c.sum / c.count, show: c => duration(c.sum / c.count)}, {name: "Longest", value: c => c.max, show: c => duration(c.max)}], [...this.cells], 3));
	},

	// rows and columns in the order of their names, with numbers in them as numbers
	get order() {
		return this.orderMade ??= data.matrix_names.map((name, i) => i).sort((a, b) => data.matrix_names[a].localeCompare(data.matrix_names[b], "en", {numeric: true}));
	},

	draw() {
		const n = this.order.length, at = new Map(this.order.map((who, i) => [who, i])), sums = new Map();
		for (const c of this.cells) {
			const key = at.get(c.from) * n + at.get(c.to), s = sums.get(key) ?? {count: 0, bytes: 0, sum: 0, max: 0};
			s.count += c.count;
			s.bytes += c.bytes;
			s.sum += c.sum;
			s.max = Math.max(s.max, c.max);
			sums.set(key, s);
		}
		const side = Math.max(MATRIX_LEAST, Math.min(MATRIX_MOST, Math.floor(MATRIX_ROOM / n))), most = Math.max(...[...sums.values()].map(s => s[this.what]));
		const x0 = MATRIX_GUTTER, y0 = 24, wide = x0 + n * side + 10, high = y0 + n * side + 4;
		const g = svg("svg", {viewBox: `0 0 ${wide} ${high}`, width: wide, height: high, role: "img", "aria-label": `messages between ${n} processes`, "data-cells": sums.size, "data-what": this.what});
		g.append(svg("rect", {x: x0, y: y0, width: n * side, height: n * side, fill: "var(--faint)"}));
		for (const [key, s] of sums) {
			const row = Math.floor(key / n), column = key % n;
			const words = `${data.matrix_names[this.order[row]]} \u2192 ${data.matrix_names[this.order[column]]}: ${countWord(s.count, "message")}` +
				(this.hasBytes ? `, ${countWord(s.bytes, "byte")}` : "") + `, ${duration(s.sum / s.count)} on average, ${duration(s.max)} at most`;
			g.append(telling(svg("rect", {x: x0 + column * side, y: y0 + row * side, width: side - 0.5, height: side - 0.5, "data-count": s.count, "data-bytes": s.bytes,
				fill: s[this.what] ? stepColour(Math.log(s[this.what]) / Math.log(most + 1)) : "var(--faint)"}), words));
		}
		const step = Math.max(1, Math.ceil(12 / side));
		for (let i = 0; i < n; i += step)
			g.append(text(x0 - 6, y0 + (i + 0.5) * side + 4, data.matrix_names[this.order[i]].slice(0, 28), {"text-anchor": "end", "font-size": 11, fill: "var(--ink)"}));
		this.figure.replaceChildren(el("figcaption", {}, "Who sends to whom ", el("small", {}, "columns in the order of the rows; point at a cell for numbers; colours are logarithmic")), g);
	},

	key() {
		return false;
	},
	keys: [],
};
