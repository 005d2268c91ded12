// SPDX-License-Identifier: MIT
// histogram.js - how long intervals lasted: those of an interval.info, and the calls of functions.

const histogram = {
	id: "histograms", title: "Histograms", logCount: false, fine: 4,

	get empty() {
		return !this.items.length;
	},

	get items() {
		this.made ??= [
			...data.intervals.map((r, i) => ({id: `i${i}`, group: "Intervals of the file", name: `${r.name} (class ${r.class})`, count: r.count, sum: r.sum_ns, min: r.min_ns,
				max: r.max_ns, bins: r.histogram, row: r})),
			...[...functions.values()].filter(f => f.histogram).map(f => ({id: `f${f.n}`, group: "Calls of a function", name: f.name, count: f.measured, sum: f.avg * f.measured,
				min: f.min, max: f.max, bins: f.histogram, fn: f})),
		].filter(x => x.row || x.count);
		return this.made;
	},

	build(section) {
		this.section = section;
		this.item = this.items.find(x => x.count) ?? this.items[0];
		this.choice = el("select", {"aria-label": "which interval", id: "histogram-choice", on: {change: () => this.choose(this.items.find(x => x.id === this.choice.value))}});
		for (const group of new Set(this.items.map(x => x.group)))
			this.choice.append(el("optgroup", {label: group}, ...this.items.filter(x => x.group === group).map(x => el("option", {value: x.id}, `${x.name.slice(0, 90)}  \u00d7 ${thousands(x.count)}`))));
		this.choice.value = this.item.id;
		this.choice.style.maxWidth = "520px";
		this.log = el("input", {type: "checkbox", on: {change: () => { this.logCount = this.log.checked; this.draw(); }}});
		this.steps = el("select", {"aria-label": "bars per octave", on: {change: () => { this.fine = Number(this.steps.value); this.draw(); }}},
			...[1, 2, 4, 8, 16, 32].map(n => el("option", {value: n, selected: n === this.fine}, String(n))));
		this.figure = el("figure", {id: "histogram"});
		this.facts = el("div", {class: "tablebox"});
		section.append(el("div", {class: "bar"}, el("h2", {}, "Histogram of"), this.choice, el("span", {class: "space"}),
			el("label", {}, "bars per octave ", this.steps), el("label", {}, this.log, " logarithmic counts (l)")),
			el("p", {class: "note"}, data.intervals.length ? `Intervals are those of ${data.intervals_file}. ` :
				"Intervals between any two events, also across threads: write an interval.info(5) and run kron view --intervals FILE. ",
			   "Durations stand on a logarithmic axis; they are sorted into bins of at most a 32nd of their value."),
			this.figure, this.facts);
	},

	choose(item) {
		this.item = item;
		this.choice.value = item.id;
		this.draw();
	},

	// bins of the file, an octave in 32 steps, put together to `fine` bars per octave
	bars() {
		const out = new Map();
		for (const [from, to, count] of this.item.bins) {
			const middle = Math.max(1, (from + to) / 2), k = Math.floor(Math.log2(middle) * this.fine + 1e-9);
			out.set(k, (out.get(k) ?? 0) + count);
		}
		return [...out].sort((a, b) => a[0] - b[0]).map(([k, count]) => ({from: 2 ** (k / this.fine), to: 2 ** ((k + 1) / this.fine), k, count}));
	},

	// the middle of the first bin at which the given share is reached
	quantile(share) {
		if (this.item.row)
			return this.item.row[`p${Math.round(100 * share)}_ns`];
		let sum = 0;
		const all = this.item.bins.reduce((s, b) => s + b[2], 0);
		for (const [from, to, count] of this.item.bins) {
			sum += count;
			if (sum >= share * all)
				return Math.min(this.item.max, Math.max(this.item.min, (from + to) / 2));
		}
		return 0;
	},

	draw() {
		const W = 1180, H = 380, x0 = 70, x1 = W - 16, y0 = 34, y1 = H - 46, bars = this.bars(), item = this.item;
		const g = svg("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `Histogram of ${item.name}`, "data-count": item.count});
		if (!bars.length) {
			this.figure.replaceChildren(message(`${item.name}: there is none in this piece of the trace.`));
			this.tell();
			return;
		}
		const first = bars[0].k - 1, last = bars[bars.length - 1].k + 2, most = Math.max(...bars.map(b => b.count));
		const x = ns => x0 + (Math.log2(Math.max(ns, 1e-3)) * this.fine - first) * (x1 - x0) / (last - first);
		const y = n => y1 - (this.logCount ? Math.log10(n + 1) / Math.log10(most + 1) : n / most) * (y1 - y0);
		for (const n of this.countTicks(most))
			g.append(svg("path", {class: "tick", d: `M${x0} ${y(n)}H${x1}`}), text(x0 - 6, y(n) + 4, thousands(n), {"text-anchor": "end"}));
		for (const b of bars)
			g.append(telling(svg("rect", {class: "bar", "data-count": b.count, x: x(b.from) + 0.5, y: y(b.count), width: Math.max(1, x(b.to) - x(b.from) - 1), height: Math.max(1, y1 - y(b.count))}),
				`${duration(b.from)} to ${duration(b.to)}: ${thousands(b.count)} (${percent(b.count, item.count)})`));
		this.drawAxis(g, x, x0, x1, y1, first, last);
		let row = 0;
		for (const [name, ns] of [["p50", this.quantile(0.5)], ["p90", this.quantile(0.9)], ["p99", this.quantile(0.99)], ["max", item.max]]) {
			g.append(svg("path", {class: "limit", d: `M${x(ns)} ${y0 - 4}V${y1}`}), text(x(ns) + 3, 10 + 11 * (row++ % 2), `${name} ${duration(ns)}`, x(ns) > x1 - 110 ? {"text-anchor": "end", dx: -6} : {}));
		}
		g.append(text(x0 - 6, 14, "count", {"text-anchor": "end", class: "title"}), text(x1, H - 4, "duration, logarithmic", {"text-anchor": "end", class: "quiet"}));
		this.figure.replaceChildren(el("figcaption", {}, item.name), g);
		this.tell();
	},

	drawAxis(g, x, x0, x1, y, first, last) {
		g.append(svg("path", {class: "axis", d: `M${x0} ${y}H${x1}`}));
		const octaves = (last - first) / this.fine, list = [];
		if (octaves > 8)
			for (let p = Math.floor(Math.log10(2 ** (first / this.fine))); p <= Math.log10(2 ** (last / this.fine)); p++)
				list.push(10 ** p);
		else
			for (let p = Math.ceil(first / this.fine); p <= last / this.fine; p += octaves < 2 ? 0.25 : octaves < 4 ? 0.5 : 1)
				list.push(2 ** p);
		for (const ns of list)
			if (x(ns) >= x0 && x(ns) <= x1)
				g.append(svg("path", {class: "axis", d: `M${x(ns)} ${y}v5`}), text(x(ns), y + 17, duration(ns).replace(/\.000 /, " "), {"text-anchor": "middle"}));
	},

	countTicks(most) {
		if (!this.logCount)
			return [...ticks(0, most, 5)].filter(n => n === Math.round(n));
		const out = [0];
		for (let p = 1; p <= most; p *= 10)
			out.push(p);
		return out;
	},

	tell() {
		const item = this.item, cells = [["count", thousands(item.count)], ["total", duration(item.sum)], ["average", item.count ? duration(item.sum / item.count) : "-"],
			["min", duration(item.min)], ["p50", duration(this.quantile(0.5))], ["p90", duration(this.quantile(0.9))], ["p99", duration(this.quantile(0.99))], ["max", duration(item.max)]];
		if (item.row)
			cells.push(["begins without end", thousands(item.row.begun)], ["ends without begin", thousands(item.row.ended)], ["ends before begin", thousands(item.row.negative)]);
		if (item.fn)
			cells.push(["inferred ends", thousands(item.fn.inferred)], ["calls across a loss or an edge of the view, left out", thousands(item.fn.calls - item.fn.measured)]);
		this.facts.replaceChildren(el("table", {id: "histogram-facts"}, el("tbody", {}, el("tr", {}, ...cells.map(c => el("th", {}, c[0]))), el("tr", {}, ...cells.map(c => el("td", {}, c[1]))))));
	},

	step(by) {
		const at = this.items.indexOf(this.item) + by;
		this.choose(this.items[Math.max(0, Math.min(this.items.length - 1, at))]);
	},

	key(e) {
		switch (e.key) {
		case "ArrowUp": case "ArrowLeft": this.step(-1); return true;
		case "ArrowDown": case "ArrowRight": this.step(1); return true;
		case "l": this.log.checked = this.logCount = !this.logCount; this.draw(); return true;
		case "/": this.choice.focus(); return true;
		}
		return false;
	},

	keys: [["\u2190 \u2192", "the interval before, the next"], ["l", "counts: linear or logarithmic"]],
};
