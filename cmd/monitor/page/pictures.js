// SPDX-License-Identifier: MIT
// pictures.js - the diagrams of SPRA308: utilisation histogram, meter, Gantt by percent, Kiviat, and counters over time.
//
// A picture is made once and changed as intervals come: a path holds all of its bars, so one costs the same with 60 of them
// and with 4,096.

const WIDTH = 1200, LEFT = 92, RIGHT = WIDTH - 10;

// The axis of time of some rows.
function axisOf(some) {
	const a = some[0].from_ns, b = Math.max(some[some.length - 1].to_ns, a + 1);
	return {a, b, x: t => LEFT + (t - a) * (RIGHT - LEFT) / (b - a)};
}

const box = (x0, x1, y0, y1) => `M${x0.toFixed(1)} ${y0.toFixed(1)}H${Math.max(x1, x0 + 0.5).toFixed(1)}V${y1.toFixed(1)}H${x0.toFixed(1)}Z`;

function timeTicks(axis, y0, y1) {
	const out = [];
	for (const t of ticks(axis.a / 1e9, axis.b / 1e9, 8))
		out.push(svg("path", {class: "tick", d: `M${axis.x(t * 1e9)} ${y0}V${y1}`}),
			text(axis.x(t * 1e9) + 3, y1 + 12, `${Math.round(t * 1e6) / 1e6} s`));
	return out;
}

// A graph of a column: bars from the line of nothing, grey where it is not known.
class Graph {
	constructor(column, height = 70) {
		this.column = column;
		this.height = height;
		this.words = el("small");
		this.grid = svg("g");
		this.bars = svg("path", {class: "bars"});
		this.unknown = svg("path", {class: "unknown"});
		this.figure = el("figure", {"data-counter": column.name}, el("figcaption", {}, `${nameOf(column)} `, this.words),
			svg("svg", {viewBox: `0 0 ${WIDTH} ${height + 26}`, role: "img", "aria-label": `${nameOf(column)} over time`},
				this.grid, this.unknown, this.bars));
	}
	draw(some) {
		const c = this.column, kind = KINDS[c.kind], axis = axisOf(some), heights = some.map(r => heightOf(r, c));
		const known = heights.filter(h => !Number.isNaN(h)), y0 = 6, y1 = this.height;
		const high = Math.max(isBusy(c) ? 100 : 0, ...known), low = Math.min(0, ...known), range = high - low || 1;
		const y = v => y1 - (v - low) * (y1 - y0) / range;
		let bars = "", unknown = "";
		some.forEach((r, i) => {
			const h = heights[i], x0 = axis.x(r.from_ns), x1 = axis.x(r.to_ns) - 0.3;
			if (Number.isNaN(h))
				unknown += box(x0, x1, y0, y1);
			else if (h)
				bars += box(x0, x1, Math.min(y(h), y(0) - 1), Math.max(y(h), y(0)));
		});
		this.bars.setAttribute("d", bars);
		this.unknown.setAttribute("d", unknown);
		this.grid.replaceChildren(...timeTicks(axis, y0, y1));
		for (const v of new Set([low, high]))
			this.grid.append(svg("path", {class: "tick", d: `M${LEFT} ${y(v)}H${RIGHT}`}), text(LEFT - 5, y(v) + 4, shortNumber(v), {"text-anchor": "end"}));
		this.say(some, known, kind);
	}
	say(some, known, kind) {
		const c = this.column, last = some[some.length - 1], parts = [`now ${wordsOf(c, valueOf(last, c))}${marksOf([last], c)}`];
		if (kind.sums)
			parts.push(`${wordsOf(c, String(sumOf(some, c)))}${marksOf(some, c)} in the intervals shown`);
		if (known.length)
			parts.push(`${shortNumber(Math.max(...known))} ${kind.unit} at most`.replace("  ", " "));
		this.words.textContent = parts.join(", ");
		this.figure.dataset.now = valueOf(last, c) ?? "";
		if (kind.sums)
			this.figure.dataset.sum = sumOf(some, c);
	}
}

// How busy all processors are, right now.
class Meter {
	constructor(column) {
		this.column = column;
		this.bar = svg("path", {class: "meter"});
		this.words = text(530, 21, "");
		this.figure = el("figure", {id: "meter"}, el("figcaption", {}, "Utilisation of all processors now"),
			svg("svg", {viewBox: "0 0 640 34", role: "img", "aria-label": "utilisation of all processors now"},
				this.bar, svg("path", {class: "frame", d: box(1, 520, 5, 28)}), this.words));
	}
	draw(some) {
		const v = valueOf(some[some.length - 1], this.column);
		this.bar.setAttribute("d", v === null ? "" : box(1, 1 + 519 * v / 100, 5, 28));
		this.words.textContent = wordsOf(this.column, v);
		this.figure.dataset.now = v ?? "";
	}
}

// A line for each processor: the darker, the busier.
class Gantt {
	constructor(columns) {
		this.columns = columns;
		this.height = 16 * columns.length;
		this.grid = svg("g");
		this.steps = STEPS.map(fill => svg("path", {fill}));
		this.unknown = svg("path", {class: "unknown"});
		this.figure = el("figure", {id: "gantt"}, el("figcaption", {}, "Processors ", el("small", {}, "the darker, the busier")),
			svg("svg", {viewBox: `0 0 ${WIDTH} ${this.height + 26}`, role: "img", "aria-label": "how busy each processor was over time"},
				this.unknown, ...this.steps, this.grid, ...columns.map((c, k) => text(LEFT - 5, 16 * k + 13, nameOf(c), {"text-anchor": "end"}))));
	}
	draw(some) {
		const axis = axisOf(some), paths = STEPS.map(() => "");
		let unknown = "";
		this.columns.forEach((c, k) => {
			for (const r of some) {
				const v = valueOf(r, c), b = box(axis.x(r.from_ns), axis.x(r.to_ns), 16 * k + 2, 16 * k + 16);
				if (v === null)
					unknown += b;
				else
					paths[Math.max(0, Math.min(STEPS.length - 1, Math.floor(v / 100 * STEPS.length)))] += b;
			}
		});
		this.steps.forEach((p, i) => p.setAttribute("d", paths[i]));
		this.unknown.setAttribute("d", unknown);
		this.grid.replaceChildren(...timeTicks(axis, 2, this.height));
		this.figure.dataset.now = JSON.stringify(this.columns.map(c => valueOf(some[some.length - 1], c)));
	}
}

// An axis for each processor, the first upwards, clockwise; the rim is 100 %.
class Kiviat {
	constructor(columns) {
		this.columns = columns;
		this.area = svg("path", {class: "area"});
		const labels = columns.length <= 64 ? columns.map((c, k) => text(...this.at(k, 1.13), nameOf(c), {"text-anchor": "middle"})) : [];
		this.figure = el("figure", {id: "kiviat"}, el("figcaption", {}, "Kiviat diagram of the processors now ", el("small", {}, "the rim is 100%")),
			svg("svg", {viewBox: "0 0 420 330", role: "img", "aria-label": "Kiviat diagram of the processors now"},
				...columns.map((c, k) => svg("path", {class: "tick", d: `M210 165L${this.at(k, 1).join(" ")}`})),
				svg("path", {class: "tick", d: this.ring(columns.map(() => 1))}), this.area, ...labels));
	}
	at(k, r) {
		const angle = 2 * Math.PI * k / this.columns.length;
		return [210 + 130 * r * Math.sin(angle), 165 - 130 * r * Math.cos(angle)];
	}
	ring(shares) {
		return `M${shares.map((r, k) => this.at(k, r).map(n => n.toFixed(1)).join(" ")).join("L")}Z`;
	}
	draw(some) {
		const now = this.columns.map(c => valueOf(some[some.length - 1], c));
		this.area.setAttribute("d", now.includes(null) ? "" : this.ring(now.map(v => v / 100)));
		this.figure.dataset.now = JSON.stringify(now);
	}
}
