// SPDX-License-Identifier: MIT
// timeline.js - the Gantt chart: who was in which function, by CPU and by thread, over time.
//
//   overview   the whole view: utilisation, losses, and a frame around what is shown below
//   CPU 0      ▇▇▇▅▇   a strip: the function (or thread) with most of each bin, as high as its bin
//   thread 17  ▇▇▅▇▇   was busy; and below it, when opened, the longest calls by depth
//              main
//              parse    read
//
// All pictures share the piece of time that is shown here: `span`.

const whole = {a: data.from_ns, b: Math.max(data.to_ns, data.from_ns + 1)};
const span = {a: whole.a, b: whole.b};
const spanListeners = [];

function setSpan(a, b) {
	const most = whole.b - whole.a, least = Math.min(most, 20);
	let width = Math.min(most, Math.max(least, b - a));
	const middle = (a + b) / 2;
	a = Math.max(whole.a, Math.min(whole.b - width, middle - width / 2));
	span.a = a;
	span.b = a + width;
	for (const f of spanListeners)
		f();
}
const zoom = (factor, at = (span.a + span.b) / 2) =>
	setSpan(at - (at - span.a) * factor, at + (span.b - at) * factor);
const pan = share => setSpan(span.a + (span.b - span.a) * share, span.b + (span.b - span.a) * share);

// for pictures that follow: the piece in words, buttons that change it, keys that do
const spanWords = () => `${moment(span.a, (span.b - span.a) / 1000)} to ${moment(span.b, (span.b - span.a) / 1000)}: ${duration(span.b - span.a)}`;
const spanButtons = () => [["+", () => zoom(0.5)], ["\u2212", () => zoom(2)], ["Whole (0)", () => setSpan(whole.a, whole.b)]]
	.map(([words, click]) => el("button", {type: "button", on: {click}}, words));
function spanKey(e) {
	switch (e.key) {
	case "+": case "=": zoom(0.5); return true;
	case "-": zoom(2); return true;
	case "0": case "Home": setSpan(whole.a, whole.b); return true;
	}
	return false;
}

const timeline = {
	id: "timeline", title: "Timeline", LABEL: 150, AXIS: 24, STRIP: 20, ROW: 15, TALLEST: 24, THIN: 3,
	opened: new Set(), byThread: false, selected: null, search: "",

	get empty() {
		return isEmpty;
	},

	build(section) {
		this.section = section;
		this.surface = new Surface("Timeline by CPU and by thread");
		this.over = new Surface("Utilisation of the whole view");
		this.tall = el("div", {class: "tall"});
		this.box = el("div", {class: "canvas", tabindex: 0, "aria-label": "Timeline; press ? for its keys"},
			      this.surface.canvas, this.tall);
		this.overview = el("div", {class: "overview"}, this.over.canvas);
		this.side = el("aside", {"aria-label": "What is shown and selected"});
		this.where = el("span", {class: "note", id: "span"});
		this.find = el("input", {type: "search", placeholder: "find a function  ( / )", size: 24,
					 "aria-label": "find a function", on: {input: () => this.lookFor(this.find.value)}});
		section.append(
			el("div", {class: "bar"}, el("h2", {}, "Timeline"), this.where, el("span", {class: "space"}), this.find,
			   this.button("CPUs by thread (g)", () => this.swap()),
			   this.button("Open all (e)", () => this.openAll()),
			   this.button("\u2212", () => zoom(2), "zoom out"), this.button("+", () => zoom(0.5), "zoom in"),
			   this.button("Whole (0)", () => setSpan(whole.a, whole.b))),
			this.overview, el("div", {class: "stage"}, this.box, this.side));
		for (const t of shownThreads.slice(0, shownThreads.length > 8 ? 2 : 8))
			this.opened.add(t.lane);
		this.listen();
		spanListeners.push(() => this.wish());
		detail.onLoad = () => this.wish();
		new ResizeObserver(() => this.wish()).observe(this.box);
	},

	button(words, f, label) {
		return el("button", {type: "button", "aria-label": label, on: {click: f}}, words);
	},

	swap() {
		this.byThread = !this.byThread;
		this.wish();
	},

	openAll() {
		if (this.opened.size === shownThreads.length)
			this.opened.clear();
		else
			shownThreads.forEach(t => this.opened.add(t.lane));
		this.wish();
	},

	// ---- rows: {y, height, cpu | thread | title} ----

	// rows as high as the room allows
	layOut() {
		const room = printing ? 0 : this.box.clientHeight;
		this.placeRows(this.ROW);
		const more = Math.floor((room - this.total) / Math.max(1, this.rowsOfCalls));
		if (more > 0)
			this.placeRows(Math.min(this.TALLEST, this.ROW + more));
	},

	// where the rows of a thread's calls begin, and the last one ends: thin are those in which no
	// call, wherever it is, has room for a word
	edgesOf(thread, height) {
		const {spans} = thread, least = 24 * this.pixel, edges = [0];
		const deep = Math.max(spans.rows.length, Math.min(DEEPEST, thread.depth ?? 0));
		const short = thread.levels?.[0]?.longest ?? 0; // in rows that are not known before they are seen
		for (let d = 0; d < deep; d++) {
			const title = thread.stacks.includes(d + 1), tall = title || Math.max(spans.longest[d] ?? 0, short) >= least;
			this.rowsOfCalls += tall;
			this.thin ||= !tall;
			edges.push(edges[d] + (tall ? height : this.THIN));
		}
		return edges;
	},

	get pixel() { // ns
		return (span.b - span.a) / (this.width - this.LABEL);
	},

	// where a row of calls begins; and how high it is
	top(row, depth) {
		return row.y + this.STRIP + 3 + row.edges[Math.min(depth, row.edges.length - 1)];
	},
	heightOf(row, depth) {
		return depth + 1 < row.edges.length ? row.edges[depth + 1] - row.edges[depth] : 0;
	},
	// the depth at a distance from the first of them
	depthAt(row, dy) {
		return row.edges.findIndex((edge, d) => d && dy < edge) - 1;
	},

	placeRows(height) {
		let y = this.AXIS + 2, process = null;
		const rows = this.rows = [];
		this.rowsOfCalls = 0;
		this.thin = false;
		const add = (height, row) => {
			rows.push({y, height, ...row});
			y += height;
		};
		if (cpus.length) {
			add(20, {title: `CPUs (${this.byThread ? "thread" : "function"})`, cpuTitle: true});
			cpus.forEach(cpu => add(this.STRIP + 3, {cpu}));
		}
		for (const thread of shownThreads) {
			if (thread.process !== process) {
				process = thread.process;
				add(22, {title: `process ${thread.pid} ${thread.exe}`});
			}
			const edges = this.opened.has(thread.lane) ? this.edgesOf(thread, height) : [0];
			add(this.STRIP + 3 + (edges.length > 1 ? edges[edges.length - 1] + 4 : 0), {thread, edges});
		}
		if (threads.length > shownThreads.length)
			add(22, {title: `${threads.length - shownThreads.length} threads without a row: see About`});
		this.total = y + 4;
		this.tall.style.height = `${this.total}px`;
	},

	wish,

	x(t) {
		return this.LABEL + (t - span.a) * (this.surface.width - this.LABEL) / (span.b - span.a);
	},
	time(x) {
		return span.a + (x - this.LABEL) * (span.b - span.a) / (this.surface.width - this.LABEL);
	},

	draw() {
		if (isEmpty)
			return;
		readColours();
		const s = this.surface, width = this.width = Math.max(300, printing ? 1000 : this.box.clientWidth);
		this.layOut();
		const height = printing ? Math.min(this.total, 440) : this.box.clientHeight;
		s.resize(width, height);
		this.scroll = printing ? 0 : this.box.scrollTop;
		this.shown = new Map();
		s.timeAxis(span.a, span.b, this.LABEL, width, this.AXIS - 4, height);
		for (const row of this.rows) {
			const y = row.y - this.scroll;
			if (y + row.height < this.AXIS || y > height)
				continue;
			this.drawRow(row, y);
		}
		this.drawHead(width);
		this.drawSelection(height);
		this.drawOverview();
		this.tell();
	},

	drawHead(width) { // over rows that have scrolled under it
		const s = this.surface;
		s.rect(0, 0, width, this.AXIS - 1, paint.panel);
		s.timeAxis(span.a, span.b, this.LABEL, width, this.AXIS - 4, this.AXIS);
		s.words("time since start", 6, this.AXIS / 2, this.LABEL - 10, paint.quiet);
		s.line(0, this.AXIS - 0.5, width, this.AXIS - 0.5, paint.ink);
		s.line(this.LABEL - 0.5, 0, this.LABEL - 0.5, s.height, paint.line);
	},

	drawRow(row, y) {
		const s = this.surface;
		if (row.title) {
			s.rect(0, y, s.width, row.height - 1, paint.faint);
			s.font(12, 600);
			const title = row.cpuTitle ? `CPUs, by ${this.byThread ? "thread" : "function"}` : row.title;
			s.words(title, 6, y + row.height / 2, s.width - 12, paint.ink);
			return;
		}
		s.g.save();
		s.g.beginPath();
		s.g.rect(this.LABEL, Math.max(y, this.AXIS), s.width - this.LABEL, row.height);
		s.g.clip();
		if (row.cpu)
			this.drawBins(this.byThread ? row.cpu.byThread : row.cpu.byFunction, y,
				      this.byThread ? threadColour : functionColour, this.byThread ? laneLabel : functionName);
		else
			this.drawThread(row, y);
		s.g.restore();
		s.font(12);
		const label = row.cpu ? row.cpu.label : `${this.opened.has(row.thread.lane) ? "\u25be" : "\u25b8"} ${row.thread.label}`;
		s.words(label, 6, y + this.STRIP / 2 + 1, this.LABEL - 12, paint.ink);
		if (row.thread && this.opened.has(row.thread.lane) && row.thread.missing && row.height > 50) {
			s.font(10);
			s.words(`calls \u2265 ${duration(row.thread.inDetail ? detail.least : row.thread.left_out_ns)};`, 6, y + 29, this.LABEL - 12, paint.quiet);
			s.words(`${thousands(row.thread.missing)} shorter:`, 6, y + 41, this.LABEL - 12, paint.quiet);
			s.words("in the strip only", 6, y + 53, this.LABEL - 12, paint.quiet);
		}
		s.line(0, y + row.height - 0.5, s.width, y + row.height - 0.5, paint.line);
	},

	note(key, colour, name, time) { // what the legend will say
		const k = `${name}`;
		const n = this.shown.get(k);
		if (n)
			n.time += time;
		else
			this.shown.set(k, {name, colour, time, key});
	},

	drawBins(track, y, colourFor, nameFor) {
		const s = this.surface, h = this.STRIP, perPixel = (span.b - span.a) / (s.width - this.LABEL);
		const l = track.levelFor(perPixel * 1.5);
		for (let i = l.first(span.a); i < l.bins.length; i++) {
			const t = l.begin(i);
			if (t > span.b)
				break;
			const x = Math.floor(this.x(Math.max(t, span.a))), w = Math.max(1, Math.floor(this.x(Math.min(t + l.width, span.b))) - x);
			const share = Math.min(1, l.busy[i] / l.width);
			if (!(l.busy[i] > 0))
				continue;
			const colour = colourFor(l.keys[i]), high = Math.max(2, h * share);
			s.rect(x, y + 1 + h - high, w, high, colour.fill);
			this.note(l.keys[i], colour, nameFor(l.keys[i]), Math.min(l.busy[i], (w * perPixel)));
			if (w > 40 && high > 12) {
				s.font(11);
				s.name(nameFor(l.keys[i]), x + 3, y + 1 + h - high / 2, w - 6, colour.ink);
			}
			if (w > 14)
				s.line(x + 0.5, y + 1 + h - high, x + 0.5, y + 1 + h, paint.paper);
		}
	},

	drawThread(row, y) {
		const {thread} = row, states = detail.statesIn(thread, span.a, span.b);
		if (!states || !this.drawStates(states, y))
			this.drawBins(thread.track, y, functionColour, functionName);
		if (this.opened.has(thread.lane)) {
			this.drawStacks(row);
			for (const spans of this.callsOf(thread))
				for (let d = 0; d < spans.rows.length; d++)
					this.drawCalls(spans, spans.rows[d], this.top(row, d) - this.scroll, this.heightOf(row, d));
		}
		for (const o of offOfLane.get(thread.lane)?.list ?? [])
			this.drawOff(o, y);
		for (const o of detail.off(thread, span.a, span.b, (span.b - span.a) / (this.surface.width - this.LABEL)))
			this.drawOff(o, y);
		for (const m of marksOfLane.get(row.thread.lane) ?? [])
			this.drawMark(m, y);
		for (const l of lossesOfLane.get(row.thread.lane) ?? [])
			this.drawLoss(l, y, row.height);
	},

	// above the rows of each stack but the first
	drawStacks(row) {
		const s = this.surface, {stacks} = row.thread;
		s.font(10);
		for (let i = 1; i < stacks.length && stacks[i] <= DEEPEST; i++)
			s.words(`stack ${i + 1}`, this.LABEL + 4, this.top(row, stacks[i] - 1) + this.heightOf(row, stacks[i] - 1) / 2 - this.scroll, 100, paint.quiet);
	},

	// those that the page has from the beginning, and the short ones that can be seen now
	callsOf(thread) {
		return [thread.spans, ...detail.of(thread, span.a, span.b, (span.b - span.a) / (this.surface.width - this.LABEL))];
	},

	drawLoss([t], y, height) {
		if (t < span.a || t > span.b)
			return;
		const x = this.x(t), g = this.surface.g;
		this.surface.line(x, y, x, y + height, paint.loss, 2);
		g.fillStyle = paint.loss;
		g.beginPath();
		g.moveTo(x - 6, y);
		g.lineTo(x + 6, y);
		g.lineTo(x, y + 9);
		g.fill();
	},

	drawOff(o, y) { // off the CPUs: the lowest part of the strip is cut away under a line
		if (o.b < span.a || o.a > span.b)
			return;
		const s = this.surface, x = this.x(Math.max(o.a, span.a)), w = this.x(Math.min(o.b, span.b)) - x;
		if (w < 0.7)
			return;
		s.g.globalAlpha = 0.8;
		s.rect(x, y + 1 + this.STRIP * 0.75, w, this.STRIP * 0.25, paint.paper);
		s.g.globalAlpha = 1;
		s.rect(x, y + 1 + this.STRIP * 0.75, w, 1.5, o.preempted ? paint.loss : paint.ink);
	},

	drawMark([t], y) { // an event of the user: a small diamond over the strip
		if (t < span.a || t > span.b)
			return;
		const x = this.x(t), g = this.surface.g, m = y + 1 + this.STRIP / 2;
		g.beginPath();
		g.moveTo(x, m - 6);
		g.lineTo(x + 4.5, m);
		g.lineTo(x, m + 6);
		g.lineTo(x - 4.5, m);
		g.closePath();
		g.fillStyle = paint.ink;
		g.fill();
		g.strokeStyle = paint.paper;
		g.lineWidth = 1;
		g.stroke();
	},

	// the exact strip of a thread whose calls are all there; false: too many of them
	drawStates(states, y) {
		const s = this.surface;
		let low = 0, high = states.length;
		while (low < high) {
			const mid = (low + high) >> 1;
			if (states[mid][1] <= span.a)
				low = mid + 1;
			else
				high = mid;
		}
		let end = low;
		while (end < states.length && states[end][0] < span.b && end - low <= 2 * s.width)
			end++;
		if (end - low > 2 * s.width)
			return false;
		for (let i = low; i < end; i++) {
			const [a, b, fn] = states[i], colour = functionColour(fn);
			const x = this.x(Math.max(a, span.a)), w = Math.max(0.8, this.x(Math.min(b, span.b)) - x);
			s.rect(x, y + 1, w, this.STRIP, colour.fill);
			this.note(fn, colour, functionName(fn), Math.min(b, span.b) - Math.max(a, span.a));
			s.font(11);
			if (w > 20)
				s.name(functionName(fn), x + 3, y + this.STRIP * 0.42, w - 6, colour.ink);
		}
		return true;
	},

	drawCalls(spans, row, y, height) {
		const s = this.surface, h = height > this.THIN ? height - 1 : height;
		if (y > s.height || y + height < this.AXIS)
			return;
		let drawn = -1;
		for (let k = spans.firstInRow(row, span.a); k < row.length; k++) {
			const i = row[k];
			if (spans.begin[i] > span.b)
				break;
			const x = this.x(Math.max(spans.begin[i], span.a)), end = this.x(Math.min(spans.end[i], span.b));
			if (end - x < 0.5 && end <= drawn)
				continue;
			const w = Math.max(0.7, end - x), colour = functionColour(spans.fn[i]);
			const found = !this.search || functionName(spans.fn[i]).toLowerCase().includes(this.search);
			s.g.globalAlpha = found ? 1 : 0.2;
			s.rect(x, y, w > 3 ? w - 0.5 : w, h, colour.fill);
			if (spans.flags[i] && height > this.THIN)
				this.drawEnd(spans.flags[i], x, y, w, h, colour.ink);
			if (w > 24 && height > this.THIN) {
				s.font(h > 18 ? 12 : 10.5);
				s.name(functionName(spans.fn[i]), x + 3, y + h / 2 + 0.5, w - 6, colour.ink);
			}
			s.g.globalAlpha = 1;
			drawn = Math.max(drawn, x + w);
		}
	},

	// ends that no sample told: a torn edge; a call across a loss: hatched
	drawEnd(flags, x, y, w, h, ink) {
		const g = this.surface.g;
		if (flags & LOSS)
			this.surface.hatch(x, y, w, h, ink);
		if (!(flags & (INFERRED | OPEN)) || w < 5)
			return;
		g.fillStyle = paint.paper;
		g.beginPath();
		g.moveTo(x + w, y);
		for (let i = 0; i < 4; i++) {
			g.lineTo(x + w - 4, y + h * (i + 0.5) / 4);
			g.lineTo(x + w, y + h * (i + 1) / 4);
		}
		g.fill();
		if (flags & OPEN && w > 14)
			this.surface.words("\u2192", x + w - 14, y + h / 2, 12, ink);
	},

	drawSelection(height) {
		const s = this.surface, p = this.selected;
		if (p && p.thread) {
			const row = this.rows.find(r => r.thread === p.thread);
			if (row && this.opened.has(p.thread.lane) && p.i !== undefined) {
				const spans = spansOf(p), depth = spans.depth[p.i], y = this.top(row, depth) - this.scroll;
				const x = Math.max(this.LABEL, this.x(spans.begin[p.i])), end = Math.min(s.width, this.x(spans.end[p.i]));
				if (end >= this.LABEL && x <= s.width && y > this.AXIS) {
					s.g.strokeStyle = paint.select;
					s.g.lineWidth = 2.5;
					s.g.strokeRect(x, y - 0.5, Math.max(3, end - x), this.heightOf(row, depth));
				}
			}
		}
		if (this.drag?.select) {
			const x0 = Math.min(this.drag.x, this.drag.now), x1 = Math.max(this.drag.x, this.drag.now);
			s.g.globalAlpha = 0.25;
			s.rect(x0, this.AXIS, x1 - x0, height, paint.accent);
			s.g.globalAlpha = 1;
			s.words(duration((x1 - x0) * (span.b - span.a) / (s.width - this.LABEL)), x0 + 4, this.AXIS + 10, 200, paint.ink);
		}
	},

	drawOverview() {
		const s = this.over, width = printing ? 1000 : this.overview.clientWidth - 2, height = 44;
		s.resize(width, height);
		const n = Math.max(1, Math.floor((width - this.LABEL) / 2)), step = (whole.b - whole.a) / n;
		const use = utilisation(whole.a, whole.b, n), x = t => this.LABEL + (t - whole.a) * (width - this.LABEL) / (whole.b - whole.a);
		use.forEach((u, i) => s.rect(x(whole.a + i * step), height - u * (height - 4), 2, u * (height - 4), "#0072b2"));
		for (const l of data.losses)
			s.line(x(l[0]), 0, x(l[0]), height, paint.loss);
		s.font(11);
		s.words("CPUs busy, 0-100%", 6, 14, this.LABEL - 10, paint.quiet);
		s.words("all of the view", 6, 30, this.LABEL - 10, paint.quiet);
		s.g.globalAlpha = 0.18;
		s.rect(this.LABEL, 0, x(span.a) - this.LABEL, height, paint.ink);
		s.rect(x(span.b), 0, width - x(span.b), height, paint.ink);
		s.g.globalAlpha = 1;
		s.g.strokeStyle = paint.select;
		s.g.lineWidth = 2;
		s.g.strokeRect(x(span.a), 1, Math.max(2, x(span.b) - x(span.a)), height - 2);
		this.overX = x;
	},

	// ---- words beside the picture ----

	tell() {
		this.where.textContent = spanWords();
		const list = [...this.shown.values()].sort((a, b) => b.time - a.time).slice(0, 14);
		const all = [...this.shown.values()].reduce((sum, s) => sum + s.time, 0);
		const parts = [];
		if (this.selected)
			parts.push(...this.tellSelected());
		parts.push(el("h3", {}, "States in the strips shown"), el("ul", {class: "legend"}, ...list.map(s => el("li", {},
			swatch(s.colour.fill), el("span", {class: "name", title: s.name,
				on: {click: () => { this.find.value = s.name; this.lookFor(s.name); }}}, labelOf(s.name, 24)),
			el("span", {class: "value"}, percent(s.time, all))))));
		parts.push(el("p", {class: "note"}, "A strip shows who had most of each bin, as high as the bin was busy. " +
			"Torn right edge: the end is inferred or open. Hatched: samples were lost inside. Red mark: a loss." + (data.off.some(o => o[2]) ? " Lower part of a strip cut away under a line: the thread was off the CPUs (red line: preempted)." : "") + (data.marks.length ? " Diamond: an event of a probe of yours." : "") +
			(this.thin ? " Thin rows: their calls are too short to be read; they grow when you zoom in." : "")));
		const bin = data.bin_ticks * tickNs;
		if (threads.some(t => t.missing) && span.b - span.a < 400 * bin)
			parts.push(el("p", {class: "note"}, "More detail of this piece: ", code(command(rangeOptions(span.a, span.b)))));
		this.side.replaceChildren(...parts);
	},

	tellSelected() {
		const p = this.selected, rows = [];
		const add = (k, v) => rows.push(el("dt", {}, k), el("dd", {}, v));
		if (p.words) {
			add("what", p.words);
		} else if (p.i !== undefined) {
			const s = spansOf(p), f = functions.get(s.fn[p.i]);
			add("function", functionName(s.fn[p.i]));
			if (f)
				add("module", f.module);
			add("begin", moment(s.begin[p.i]));
			add("took", duration(s.end[p.i] - s.begin[p.i]));
			const off = offTime(p.thread.lane, s.begin[p.i], s.end[p.i]);
			if (off !== null)
				add("on a CPU", `${duration(s.end[p.i] - s.begin[p.i] - off)}, off ${duration(off)}`);
			const {stack, depth} = placeOf(p.thread, s.depth[p.i]);
			add("depth", `${depth}${p.thread.stacks.length > 1 ? ` of stack ${stack + 1}` : ""}`);
			const how = endWords(s.flags[p.i]);
			if (how)
				add("end", how);
		} else {
			add("state", p.name);
			add("bin", `${moment(p.a, p.b - p.a)}, ${duration(p.b - p.a)}`);
			add("its time", duration(p.part));
			add("busy", percent(p.busy, p.b - p.a));
			add("calls", `${thousands(p.calls)} began, depth to ${p.depth}`);
		}
		add(p.thread ? "thread" : "CPU", p.thread ? `${p.thread.label}, process ${p.thread.pid}` : String(p.cpu.cpu));
		const a = p.i !== undefined ? spansOf(p).begin[p.i] : p.a, b = p.i !== undefined ? spansOf(p).end[p.i] : p.b;
		return [el("h3", {}, "Selected"), el("dl", {}, ...rows), el("div", {class: "bar"},
			this.button("Zoom to it (z)", () => this.zoomTo(a, b)),
			this.button("Its samples (s)", () => showSamplesAt(a, p.thread?.lane)))];
	},

	zoomTo(a, b) {
		const more = Math.max(10, (b - a) * 0.1);
		setSpan(a - more, b + more);
	},

	// ---- pointing ----

	what(x, y) {
		if (x < this.LABEL || y < this.AXIS)
			return null;
		const row = this.rows.find(r => y + this.scroll >= r.y && y + this.scroll < r.y + r.height);
		if (!row || row.title)
			return null;
		const t = this.time(x), dy = y + this.scroll - row.y - this.STRIP - 3;
		if (row.thread && dy >= 0)
			return this.callAt(row.thread, this.depthAt(row, dy), t);
		const near = 6 * (span.b - span.a) / (this.surface.width - this.LABEL);
		const mark = row.thread && (marksOfLane.get(row.thread.lane) ?? []).find(m => Math.abs(m[0] - t) < near);
		const loss = row.thread && (lossesOfLane.get(row.thread.lane) ?? []).find(l => Math.abs(l[0] - t) < near);
		if (mark || loss)
			return {thread: row.thread, words: loss ? `${thousands(loss[2])} samples lost before ${moment(loss[0])}` : markWords(mark), a: (mark ?? loss)[0], b: (mark ?? loss)[0]};
		const track = row.thread ? row.thread.track : this.byThread ? row.cpu.byThread : row.cpu.byFunction;
		const perPixel = (span.b - span.a) / (this.surface.width - this.LABEL), l = track.levelFor(perPixel * 1.5);
		const i = l.first(t);
		if (i >= l.bins.length || l.begin(i) > t)
			return null;
		return {thread: row.thread, cpu: row.cpu, a: l.begin(i), b: l.begin(i) + l.width, part: l.part[i], busy: l.busy[i],
			calls: l.calls[i], depth: l.depth[i], fn: l.keys[i],
			name: row.cpu && this.byThread ? laneLabel(l.keys[i]) : l.keys[i] === NO_KEY - 1 && !l.part[i] ? "(nothing)" : functionName(l.keys[i])};
	},

	callAt(thread, depth, t) {
		const slack = 1.5 * (span.b - span.a) / (this.surface.width - this.LABEL);
		let best = null, bestAway = slack;
		for (const spans of this.callsOf(thread)) {
			const row = spans.rows[depth] ?? [];
			for (let k = spans.firstInRow(row, t - slack); k < row.length && spans.begin[row[k]] <= t + slack; k++) {
				const i = row[k], away = Math.max(spans.begin[i] - t, t - spans.end[i], 0);
				if (away < bestAway || !best)
					[best, bestAway] = [{thread, spans, i}, away];
			}
		}
		return best;
	},

	wordsOf(p) {
		if (p.words)
			return p.words;
		if (p.i === undefined)
			return `${p.name}: ${duration(p.part)} of a bin of ${duration(p.b - p.a)}\nbusy ${percent(p.busy, p.b - p.a)}` +
				(p.thread ? `, ${thousands(p.calls)} calls began` : "");
		const s = spansOf(p), how = endWords(s.flags[p.i]), off = offTime(p.thread.lane, s.begin[p.i], s.end[p.i]);
		return `${functionName(s.fn[p.i])}\n${duration(s.end[p.i] - s.begin[p.i])}${off ? ` (on a CPU ${duration(s.end[p.i] - s.begin[p.i] - off)})` : ""} from ${moment(s.begin[p.i])}${how ? `\n${how}` : ""}`;
	},

	listen() {
		const c = this.surface.canvas;
		this.box.addEventListener("scroll", () => this.wish());
		c.addEventListener("wheel", e => {
			const [x] = placeIn(e, c);
			if (e.ctrlKey || e.altKey || e.metaKey) {
				e.preventDefault();
				zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY / 300))), this.time(Math.max(this.LABEL, x)));
			} else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
				e.preventDefault();
				pan((e.deltaX || e.deltaY) / 1000);
			}
		}, {passive: false});
		c.addEventListener("pointerdown", e => this.press(e));
		c.addEventListener("pointermove", e => this.move(e));
		c.addEventListener("pointerup", e => this.release(e));
		c.addEventListener("pointerleave", hideTip);
		c.addEventListener("dblclick", e => {
			const p = this.what(...placeIn(e, c));
			if (p)
				p.i !== undefined ? this.zoomTo(spansOf(p).begin[p.i], spansOf(p).end[p.i]) : this.zoomTo(p.a, p.b);
		});
		const over = this.over.canvas;
		const go = e => {
			const r = over.getBoundingClientRect();
			const t = whole.a + (e.clientX - r.left - this.LABEL) / (r.width - this.LABEL) * (whole.b - whole.a);
			const half = (span.b - span.a) / 2;
			setSpan(t - half, t + half);
		};
		over.addEventListener("pointerdown", e => { over.setPointerCapture(e.pointerId); go(e); });
		over.addEventListener("pointermove", e => { if (e.buttons) go(e); });
	},

	press(e) {
		const [x, y] = placeIn(e, this.surface.canvas);
		if (e.button)
			return;
		this.surface.canvas.setPointerCapture(e.pointerId);
		this.box.focus({preventScroll: true});
		this.drag = {x, y, now: x, a: span.a, b: span.b, top: this.box.scrollTop, select: e.shiftKey || y < this.AXIS, moved: false};
		hideTip();
	},

	move(e) {
		const [x, y] = placeIn(e, this.surface.canvas), d = this.drag;
		if (!d) {
			const p = this.what(x, y);
			showTip(p ? this.wordsOf(p) : "", e.clientX, e.clientY);
			if (x >= this.LABEL)
				status(`${moment(this.time(x), (span.b - span.a) / 1000)}`);
			return;
		}
		d.moved ||= Math.abs(x - d.x) + Math.abs(y - d.y) > 4;
		d.now = x;
		if (!d.select && d.moved) {
			const shift = (d.x - x) * (d.b - d.a) / (this.surface.width - this.LABEL);
			this.box.scrollTop = d.top + d.y - y;
			setSpan(d.a + shift, d.b + shift);
		}
		this.wish();
	},

	release(e) {
		const [x, y] = placeIn(e, this.surface.canvas), d = this.drag;
		this.drag = null;
		if (!d)
			return;
		if (d.moved && d.select)
			setSpan(Math.min(this.time(d.x), this.time(x)), Math.max(this.time(d.x), this.time(x)));
		else if (!d.moved)
			this.click(x, y);
		this.wish();
	},

	click(x, y) {
		const row = this.rows.find(r => y + this.scroll >= r.y && y + this.scroll < r.y + r.height);
		if (x < this.LABEL && row?.thread) {
			this.opened.has(row.thread.lane) ? this.opened.delete(row.thread.lane) : this.opened.add(row.thread.lane);
		} else {
			this.selected = this.what(x, y);
		}
		this.wish();
	},

	// ---- finding ----

	lookFor(words) {
		this.search = words.toLowerCase();
		this.hits = null;
		this.wish();
	},

	// the next call, after the selected one, of a function that is looked for
	next(step) {
		if (!this.search)
			return;
		this.hits ??= shownThreads.flatMap(thread => {
			const out = [];
			for (let i = 0; i < thread.spans.count; i++)
				if (functionName(thread.spans.fn[i]).toLowerCase().includes(this.search))
					out.push({thread, i});
			return out;
		}).sort((x, y) => x.thread.spans.begin[x.i] - y.thread.spans.begin[y.i]);
		if (!this.hits.length) {
			status(`No call that is kept in this page has such a name.${shownThreads.some(t => t.inDetail) ? " Short ones are looked for where they are drawn: come closer." : ""}`);
			return;
		}
		const n = this.hits.length, at = this.hits.findIndex(h => h.thread === this.selected?.thread && h.thread.spans === (this.selected?.spans ?? h.thread.spans) && h.i === this.selected?.i);
		this.selected = this.hits[at < 0 ? step > 0 ? 0 : n - 1 : (at + step + n) % n];
		const s = this.selected.thread.spans, i = this.selected.i, half = (span.b - span.a) / 2;
		this.opened.add(this.selected.thread.lane);
		if (s.begin[i] < span.a || s.begin[i] > span.b)
			setSpan(s.begin[i] - half, s.begin[i] + half);
		this.layOut();
		const row = this.rows.find(r => r.thread === this.selected.thread);
		this.box.scrollTop = Math.max(0, this.top(row, s.depth[i]) - this.box.clientHeight / 2);
		status(`${this.hits.length} calls; this one: ${duration(s.end[i] - s.begin[i])}`);
		this.wish();
	},

	key(e) {
		const p = this.selected;
		switch (e.key) {
		case "+": case "=": case "w": zoom(0.5); return true;
		case "-": case "_": zoom(2); return true;
		case "ArrowLeft": case "a": pan(-0.2); return true;
		case "ArrowRight": case "d": pan(0.2); return true;
		case "ArrowUp": this.box.scrollTop -= 60; return true;
		case "ArrowDown": this.box.scrollTop += 60; return true;
		case "0": case "Home": setSpan(whole.a, whole.b); return true;
		case "/": this.find.focus(); return true;
		case "n": this.next(1); return true;
		case "N": this.next(-1); return true;
		case "g": this.swap(); return true;
		case "e": this.openAll(); return true;
		case "z": if (p) p.i !== undefined ? this.zoomTo(spansOf(p).begin[p.i], spansOf(p).end[p.i]) : this.zoomTo(p.a, p.b); return true;
		case "s": if (p) showSamplesAt(p.i !== undefined ? spansOf(p).begin[p.i] : p.a, p.thread?.lane); return true;
		case "Escape": this.selected = null; this.find.value = ""; this.lookFor(""); return true;
		}
		return false;
	},

	keys: [["+ \u2212 or ctrl+wheel", "zoom"], ["\u2190 \u2192 or drag", "move"], ["shift+drag, or drag on the axis", "zoom to a piece"],
	       ["0", "the whole view"], ["click, double click", "select, zoom to it (z)"], ["/  n  N", "find a function, next, previous"],
	       ["g", "CPUs by function or by thread"], ["e, or click a thread's name", "open and close calls by depth"], ["s", "samples at the selected call"]],
};

// where a call that was pointed at stands
function spansOf(p) {
	return p.spans ?? p.thread.spans;
}

function endWords(flags) {
	const words = [];
	if (flags & OPEN)
		words.push("still running at the end");
	else if (flags & JUMPED)
		words.push("left by a jump: the end of what it jumped to is inferred");
	else if (flags & INFERRED)
		words.push("no exit sample: its end is inferred");
	if (flags & LOSS)
		words.push("samples were lost inside");
	return words.join("; ");
}
