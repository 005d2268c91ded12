// SPDX-License-Identifier: MIT
// counters.js - counters over time: the intervals that kron monitor has saved.  A graph for each column, all on the
// axis of time that the timeline has.

const COUNTERS_PARTS = 600; // of a graph: more intervals than that become one by one a step of several

// a number of the page: one that JSON's cannot hold exactly is a string
const counterNumber = v => v === null ? null : Number(v);

// by kind: what the height of a step is, of a value n over ns
const COUNTER_KINDS = {
	count: {height: (n, ns) => n * 1e9 / ns, unit: "per second", words: n => thousands(n), sums: true},
	bytes: {height: (n, ns) => n * 1e9 / ns, unit: "bytes per second", words: n => `${thousands(n)} bytes`, sums: true},
	ns: {height: (n, ns) => 100 * n / ns, unit: "% of a processor", words: n => duration(n), sums: true},
	percent: {height: n => n, unit: "%", words: n => `${n.toFixed(1)}%`},
	value: {height: n => n, unit: "", words: n => String(n)},
};

function counterText(n) {
	const a = Math.abs(n);
	return a >= 1e15 || a > 0 && a < 0.01 ? n.toExponential(2) : a >= 1000 ? thousands(n) : String(Math.round(n * 100) / 100);
}

// of an address or a mask what it is, in hex
function counterWords(column, raw, n) {
	return column.isHex ? `0x${BigInt(raw).toString(16)}` : typeof raw === "string" ? raw : COUNTER_KINDS[column.kind].words(n);
}

const counters = {
	id: "counters", title: "Counters",

	get empty() {
		return !data.counters.some(m => m.rows.length);
	},

	build(section) {
		this.section = section;
		this.where = el("span", {class: "note"});
		this.boxes = [];
		section.append(el("div", {class: "bar"}, el("h2", {}, "Counters"), this.where, el("span", {class: "space"}),
			...spanButtons()));
		data.counters.forEach((m, k) => {
			section.append(el("p", {class: "note"}, `${m.command}: an interval each ${duration(m.every_ns)}.` + (m.each > 1 ? ` A step is ${thousands(m.each)} intervals: their sum, of a variable the last value.` : "")));
			m.columns.forEach(([name, kind, isHex], i) => {
				const figure = el("figure", {"data-counter": name});
				section.append(figure);
				this.boxes.push({m, k, i: i + 2, figure, column: {name, kind, isHex}});
			});
		});
		spanListeners.push(() => this.wish());
	},

	wish,

	draw() {
		this.where.textContent = spanWords();
		for (const box of this.boxes)
			this.drawOne(box);
	},

	// what lies in the piece shown, put together to no more steps than can be seen
	steps(m, i, kind) {
		const rows = m.rows.filter(r => r[1] > span.a && r[0] < span.b), each = Math.ceil(rows.length / COUNTERS_PARTS), out = [];
		for (let at = 0; at < rows.length; at += each) {
			const some = rows.slice(at, at + each), known = some.filter(r => r[i] !== null);
			const step = {a: some[0][0], b: some[some.length - 1][1], n: null, raw: null, rows: some.length};
			if (known.length) {
				const last = known[known.length - 1];
				step.raw = last[i];
				step.n = COUNTER_KINDS[kind].sums ? known.reduce((sum, r) => sum + counterNumber(r[i]), 0)
					: kind === "percent" ? known.reduce((sum, r) => sum + r[i] * (r[1] - r[0]), 0) / known.reduce((sum, r) => sum + r[1] - r[0], 0) : counterNumber(last[i]);
				const length = known.reduce((sum, r) => sum + r[1] - r[0], 0);
				step.y = COUNTER_KINDS[kind].height(step.n, Math.max(1, length));
				if (each > 1 && COUNTER_KINDS[kind].sums)
					step.raw = step.n;
			}
			out.push(step);
		}
		return out;
	},

	drawOne({m, i, figure, column}) {
		const kind = COUNTER_KINDS[column.kind], steps = this.steps(m, i, column.kind), known = steps.filter(s => s.n !== null);
		const W = 1180, H = 112, x0 = 90, x1 = W - 10, y0 = 8, y1 = H - 24;
		const high = Math.max(column.kind === "percent" ? 100 : 0, ...known.map(s => s.y)), low = Math.min(0, ...known.map(s => s.y)), range = high - low || 1;
		const x = t => x0 + (Math.min(span.b, Math.max(span.a, t)) - span.a) * (x1 - x0) / (span.b - span.a), y = v => y1 - (v - low) * (y1 - y0) / range;
		const g = svg("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${column.name} over time`});
		for (const v of new Set([low, low + range / 2, high]))
			g.append(svg("path", {class: "tick", d: `M${x0} ${y(v)}H${x1}`}), text(x0 - 5, y(v) + 4, counterText(v), {"text-anchor": "end"}));
		for (const s of steps) {
			const words = `${moment(s.a)} to ${moment(s.b)}${s.rows > 1 ? ` (${s.rows} steps)` : ""}: `;
			if (s.n === null) {
				g.append(telling(svg("rect", {class: "unknown", x: x(s.a), y: y0, width: Math.max(0.5, x(s.b) - x(s.a)), height: y1 - y0, fill: "var(--faint)"}), `${words}not known`));
				continue;
			}
			const height = Math.max(s.y ? 1 : 0, Math.abs(y(s.y) - y(0))), top = s.y < 0 ? y(0) : y(0) - height;
			g.append(telling(svg("rect", {class: "bar", "data-n": String(s.raw), x: x(s.a), y: top, width: Math.max(0.5, x(s.b) - x(s.a) - 0.3), height}),
				`${words}${counterWords(column, s.raw, s.n)}${kind.sums ? `, ${counterText(s.y)} ${kind.unit}` : ""}`));
		}
		g.append(...usage.timeAxis(x0, x1, y1).slice(0, -1));
		const sum = kind.sums && known.length ? `${kind.words(known.reduce((n, s) => n + s.n, 0))} in the intervals shown, ` : "";
		figure.replaceChildren(el("figcaption", {}, `${column.name} `, el("small", {}, known.length ? `${sum}${kind.sums ? "height: " : ""}${kind.unit}${kind.unit ? ", " : ""}${counterText(Math.max(...known.map(s => s.y)))} at most` : "not known in this piece of time")), g);
	},

	key(e) {
		switch (e.key) {
		case "ArrowLeft": pan(-0.2); return true;
		case "ArrowRight": pan(0.2); return true;
		}
		return spanKey(e);
	},

	keys: [["+ \u2212", "zoom (the timeline follows)"], ["\u2190 \u2192", "move"], ["0", "the whole view"]],
};
