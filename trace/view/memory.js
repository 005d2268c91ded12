// SPDX-License-Identifier: MIT
// memory.js - references to memory by address and time: what page reference counters have seen (view_memory.c).
//
// A band of the picture is as many rows of the data as one can see; a step likewise of its columns.  Colours are
// logarithmic, by references a page: the darkest is what has most of all that is shown.

const MEMORY_GUTTER = 190, MEMORY_HEIGHT = 560, MEMORY_AXIS = 26;

class MemoryPart {
	constructor(raw) {
		Object.assign(this, raw);
		const n = new Numbers(raw.cells);
		this.rows = raw.rows.map(([pid, from, to, mapping, pages]) => {
			const row = {pid, from, to, mapping, pages, cells: []};
			for (let left = n.next(), column = 0; left; left--, column++) {
				column += n.next();
				row.cells.push({column, reads: n.next(), writes: n.next()});
			}
			return row;
		});
	}
	get unitWord() {
		return this.unit === 64 ? "line" : "page";
	}
	get isMany() {
		return this.rows.some(r => r.pid !== this.rows[0].pid);
	}
}

const countWord = (n, word) => `${thousands(n)} ${word}${n === 1 ? "" : "s"}`;

const memory = {
	id: "memory", title: "Memory", what: "both", mapping: -1,

	get empty() {
		return !data.memory.length;
	},

	build(section) {
		this.section = section;
		this.parts = data.memory.map(m => new MemoryPart(m));
		this.part = this.parts[0];
		this.where = el("span", {class: "note"});
		this.choice = el("select", {id: "memory-mapping", "aria-label": "which mapping", on: {change: () => this.choose(Number(this.choice.value))}});
		const parts = el("select", {"aria-label": "which recording", on: {change: e => { this.part = this.parts[Number(e.target.value)]; this.fillChoice(); this.draw(); }}},
			...this.parts.map((p, i) => el("option", {value: i}, p.command.slice(0, 60))));
		const what = el("select", {id: "memory-what", "aria-label": "which references", on: {change: e => { this.what = e.target.value; this.draw(); }}},
			el("option", {value: "both"}, "reads and writes"), el("option", {value: "reads"}, "reads"), el("option", {value: "writes"}, "writes"));
		this.surface = new Surface("references to memory by address and time");
		this.surface.canvas.id = "memory-picture";
		this.surface.canvas.addEventListener("mousemove", e => this.point(e));
		this.surface.canvas.addEventListener("mouseleave", hideTip);
		this.surface.canvas.addEventListener("click", e => this.pick(e));
		this.figure = el("figure", {id: "memory-figure"});
		this.table = el("div", {class: "tablebox", id: "memory-table"});
		this.note = el("p", {class: "note"});
		this.fillChoice();
		section.append(el("div", {class: "bar"}, el("h2", {}, "Memory"), this.where, el("span", {class: "space"}), ...this.parts.length > 1 ? [parts] : [], this.choice, what,
			...spanButtons()), this.note, this.figure, this.table);
		addEventListener("resize", () => this.wish());
		spanListeners.push(() => this.wish());
	},

	wish,

	fillChoice() {
		this.mapping = -1;
		this.choice.replaceChildren(el("option", {value: -1}, "all mappings"), ...this.part.mappings.map((name, i) => el("option", {value: i}, name)));
		const p = this.part, steps = p.looks ? `${countWord(p.looks, "step")}${p.each > 1 ? `, ${p.each} together` : ""}` : "one step, for nobody looked while it ran (kron pages --every)";
		this.note.textContent = `${countWord(p.pages, p.unitWord)} of ${thousands(p.unit)} bytes were touched` + (p.per > 1 ? `, up to ${p.per} of them in a row` : "") + `; ${steps}. Only what was touched has a row.`;
	},

	choose(mapping) {
		this.mapping = mapping;
		this.choice.value = mapping;
		this.draw();
	},

	of(cell) {
		return this.what === "reads" ? cell.reads : this.what === "writes" ? cell.writes : cell.reads + cell.writes;
	},

	// rows as bands, columns as steps: what can be seen
	layOut(width) {
		const part = this.part, rows = part.rows.filter(r => this.mapping < 0 || r.mapping === this.mapping);
		const columns = part.columns.map((c, i) => i).filter(i => part.columns[i][1] > span.a && part.columns[i][0] < span.b);
		const first = columns[0] ?? 0, last = columns[columns.length - 1] ?? -1, n = last - first + 1;
		const inBand = Math.ceil(rows.length / MEMORY_HEIGHT), inStep = Math.max(1, Math.ceil(n / width)), bands = [];
		rows.forEach((row, i) => {
			if (i % inBand === 0)
				bands.push({rows: [], pages: 0, cells: new Map()});
			const band = bands[bands.length - 1];
			band.rows.push(row);
			band.pages += row.pages;
			for (const c of row.cells) {
				if (c.column < first || c.column > last)
					continue;
				const at = Math.floor((c.column - first) / inStep), sum = band.cells.get(at) ?? {reads: 0, writes: 0};
				sum.reads += c.reads;
				sum.writes += c.writes;
				band.cells.set(at, sum);
			}
		});
		const steps = Array.from({length: Math.ceil(n / inStep)}, (_, k) => [part.columns[first + k * inStep][0], part.columns[Math.min(last, first + (k + 1) * inStep - 1)][1]]);
		return {bands, steps};
	},

	draw() {
		this.where.textContent = spanWords();
		const s = this.surface, width = Math.max(400, printing ? 1100 : this.section.clientWidth - 30), x0 = MEMORY_GUTTER, x1 = width - 10;
		const shown = this.layOut(x1 - x0), {bands, steps} = shown;
		const height = Math.max(bands.length, Math.min(MEMORY_HEIGHT, bands.length * 14)), each = height / Math.max(1, bands.length);
		// whole pixels, or neighbours of one colour have seams
		const x = t => Math.round(x0 + (Math.min(span.b, Math.max(span.a, t)) - span.a) * (x1 - x0) / (span.b - span.a)), y = i => MEMORY_AXIS + Math.round(i * each);
		Object.assign(this, {shown, place: {x, y, each, x0, x1, height}});
		let most = 0, reads = 0, writes = 0;
		for (const b of bands)
			for (const c of b.cells.values()) {
				most = Math.max(most, this.of(c) / b.pages);
				reads += c.reads;
				writes += c.writes;
			}
		s.resize(width, height + MEMORY_AXIS + 4);
		s.timeAxis(span.a, span.b, x0, x1, MEMORY_AXIS, MEMORY_AXIS + height);
		s.rect(x0, MEMORY_AXIS, x1 - x0, height, paint.faint);
		bands.forEach((band, i) => {
			for (const [k, c] of band.cells) {
				const n = this.of(c) / band.pages, left = x(steps[k][0]);
				if (n)
					s.rect(left, y(i), Math.max(1, x(steps[k][1]) - left), Math.max(1, y(i + 1) - y(i)), stepColour(Math.log(n) / Math.log(most + 1)));
			}
		});
		this.drawNames();
		Object.assign(s.canvas.dataset, {reads, writes, most, bands: bands.length, steps: steps.length});
		this.figure.replaceChildren(el("figcaption", {}, "References by address and time ", el("small", {}, most ? `point at them for numbers, click for the mapping alone; colour: references a ${this.part.unitWord}, logarithmic` : "there are none in this piece of time")), s.canvas, this.legend(most));
		this.drawTable();
	},

	// where a mapping, or a process, begins; its name where there is room
	drawNames() {
		const s = this.surface, {bands} = this.shown, {y, x1, x0} = this.place;
		s.font(11);
		for (let i = 0, from = 0; i <= bands.length; i++) {
			const is = b => `${b.rows[0].pid} ${b.rows[0].mapping}`;
			if (i && i < bands.length && is(bands[i]) === is(bands[from]))
				continue;
			if (i) {
				const row = bands[from].rows[0], room = y(i) - y(from);
				s.line(4, y(i), x1, y(i), paint.line, 0.5);
				if (room >= 11)
					s.words(this.label(row), 4, (y(from) + y(i)) / 2, x0 - 10, paint.ink);
			}
			from = i;
		}
	},

	label(row) {
		const name = this.part.mappings[row.mapping];
		return `${this.part.isMany && row.pid ? `${row.pid} ` : ""}${name.replace(/^.*\/(?=.)/, "")}`;
	},

	legend(most) {
		const g = svg("svg", {viewBox: "0 0 420 30", width: 420, height: 30, role: "img", "aria-label": `colours from 1 to ${most} references`});
		STEPS.forEach((colour, i) => g.append(svg("rect", {x: 34 + i * 30, y: 4, width: 30, height: 9, fill: colour})));
		if (most)
			g.append(text(30, 12, "1", {"text-anchor": "end"}), text(340, 12, thousands(most)));
		return g;
	},

	// what lies under the pointer
	at(e) {
		const [px, py] = placeIn(e, this.surface.canvas), {x0, x1, each, height} = this.place;
		if (px < 0 || px > x1 || py < MEMORY_AXIS || py >= MEMORY_AXIS + height)
			return null;
		const band = this.shown.bands[Math.min(this.shown.bands.length - 1, Math.floor((py - MEMORY_AXIS) / each))];
		const t = span.a + (px - x0) * (span.b - span.a) / (x1 - x0), k = px < x0 ? -1 : this.shown.steps.findIndex(([a, b]) => t >= a && t < b);
		return band && {band, k, cell: band.cells.get(k)};
	},

	point(e) {
		const p = this.at(e);
		if (!p)
			return hideTip();
		const {rows, pages} = p.band, step = this.shown.steps[p.k];
		const lines = [`${rows[0].from} to ${rows[rows.length - 1].to}: ${countWord(pages, this.part.unitWord)} touched`, [...new Set(rows.map(r => this.label(r)))].slice(0, 5).join(", ")];
		if (step)
			lines.push(`${moment(step[0])} to ${moment(step[1])}: ${p.cell ? `${countWord(p.cell.reads, "read")}, ${countWord(p.cell.writes, "write")}` : "not touched"}`);
		showTip(lines.join("\n"), e.clientX, e.clientY);
	},

	pick(e) {
		const p = this.at(e);
		hideTip();
		if (p)
			this.choose(this.mapping < 0 ? p.band.rows[0].mapping : -1);
	},

	drawTable() {
		const sums = this.part.mappings.map((name, i) => ({name, i, pages: 0, reads: 0, writes: 0}));
		for (const row of this.part.rows) {
			const m = sums[row.mapping], cells = row.cells.filter(c => this.part.columns[c.column][1] > span.a && this.part.columns[c.column][0] < span.b);
			m.pages += cells.length ? row.pages : 0;
			for (const c of cells) {
				m.reads += c.reads;
				m.writes += c.writes;
			}
		}
		const all = sums.reduce((n, m) => n + m.reads + m.writes, 0);
		this.table.replaceChildren(sortedTable([{name: "Mapping", word: true, value: m => m.name}, {name: `${this.part.unit === 64 ? "Lines" : "Pages"}${this.part.per > 1 ? ", at most" : ""}`, value: m => m.pages, show: m => thousands(m.pages)},
			{name: "Reads", value: m => m.reads, show: m => thousands(m.reads)}, {name: "Writes", value: m => m.writes, show: m => thousands(m.writes)},
			{name: "Share", value: m => m.reads + m.writes, show: m => percent(m.reads + m.writes, all)}], sums.filter(m => m.reads + m.writes), 4, m => this.choose(m.i)));
	},

	key(e) {
		switch (e.key) {
		case "ArrowLeft": pan(-0.2); return true;
		case "ArrowRight": pan(0.2); return true;
		case "a": this.choose(-1); return true;
		}
		return spanKey(e);
	},

	keys: [["+ \u2212", "zoom (the timeline follows)"], ["\u2190 \u2192", "move"], ["0", "the whole view"], ["click", "the mapping alone, and back"], ["a", "all mappings"]],
};
