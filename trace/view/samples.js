// SPDX-License-Identifier: MIT
// samples.js - the sample viewer: every field of every sample that is kept, as the board stores
// it (NISTIR 5571, Table B2).  Only the rows that can be seen are in the page.

const viewer = {
	id: "samples", title: "Samples", ROW: 21, selected: -1, filter: null, rows: null,

	get empty() {
		return !samples.count;
	},

	build(section) {
		this.section = section;
		this.search = el("input", {type: "search", size: 44, id: "sample-search", placeholder: "find: words, event:20 cpu:1 tid:17 data:0xff lost  ( / )",
			"aria-label": "find samples", on: {input: () => this.lookFor(), keydown: e => { if (e.key === "Enter") { e.preventDefault(); this.next(e.shiftKey ? -1 : 1); } }}});
		this.only = el("input", {type: "checkbox", id: "sample-only", on: {change: () => this.lookFor()}});
		this.found = el("span", {class: "note", id: "sample-found"});
		this.head = el("table", {}, el("thead", {}, el("tr", {}, ...[["Sample", 92], ["Time", 118], ["Header", 76], ["Timestamp", 138], ["CPU", 46], ["Source", 90], ["Thread", 150], ["Event", 86], ["Data 63..32", 98]].map(([n, w]) => {
			const th = el("th", {class: n === "Thread" ? "word" : null}, n);
			th.style.width = `${w}px`;
			return th;
		}), el("th", {class: "word"}, "Meaning"))));
		this.body = el("tbody");
		this.head.append(this.body);
		this.over = el("div");
		this.under = el("div");
		this.box = el("div", {class: "rows", tabindex: 0, "aria-label": "Samples", on: {scroll: () => this.fill()}}, this.over, this.head, this.under);
		this.detail = el("div", {id: "sample-detail"});
		this.detail.style.minHeight = "92px";
		const left = data.samples.all - data.samples.kept;
		section.append(el("div", {class: "bar"}, el("h2", {}, "Samples"), this.search, el("label", {}, this.only, " only these"), this.found, el("span", {class: "space"}),
			el("span", {class: "note"}, `${thousands(samples.count)} of ${thousands(data.samples.all)} samples and records`)),
			left ? el("p", {class: "note"}, `${thousands(left)} are left out between the runs shown here: the first and the last ones are there, others spread evenly, and those after losses. To see all samples of a stretch: `, code(command("--from 1ms --to 2ms")), " (with times of your own), or kron dump.") : el("p", {class: "note"}, "All samples of the view."),
			this.box, this.detail);
		this.rows = null;
		this.choose(0, false);
		new ResizeObserver(() => this.fill()).observe(this.box);
	},

	get count() {
		return this.rows ? this.rows.length : samples.count;
	},
	sampleAt(row) {
		return this.rows ? this.rows[row] : row;
	},
	rowOf(i) {
		return this.rows ? lowerBound(this.rows, i) : i;
	},

	draw() {
		this.fill();
	},

	fill() {
		if (this.section.hidden && !printing)
			return;
		const n = this.count, first = printing ? 0 : Math.max(0, Math.floor(this.box.scrollTop / this.ROW) - 10);
		const last = printing ? Math.min(n, 60) : Math.min(n, first + Math.ceil(this.box.clientHeight / this.ROW) + 24);
		const gap = this.box.clientHeight; // browsers end at some 16 million pixels: 100,000 rows are 2 million
		this.over.style.height = `${printing ? 0 : first * this.ROW}px`;
		this.under.style.height = `${printing ? 0 : Math.max(0, (n - last) * this.ROW)}px`;
		const lines = [];
		for (let row = first; row < last; row++)
			lines.push(this.line(row));
		this.body.replaceChildren(...lines);
		return gap;
	},

	line(row) {
		const i = this.sampleAt(row), f = this.fields(i), isGap = !this.rows && i && samples.number[i] !== samples.number[i - 1] + 1;
		const tr = el("tr", {"aria-selected": i === this.selected ? "true" : null, "data-sample": samples.number[i] + 1, class: this.hit?.(i) && !this.rows ? "hit" : null, on: {click: () => this.choose(i, false)}},
			...[f.number, f.time, f.head, f.stamp, f.cpu, f.source].map(v => el("td", {class: "mono"}, v)), el("td", {class: "word"}, f.thread),
			el("td", {class: "mono"}, f.event), el("td", {class: "mono"}, f.high), el("td", {class: "word", title: f.meaning}, f.meaning));
		if (isGap)
			tr.firstChild.textContent = `\u22ee ${f.number}`;
		if (isGap)
			tr.title = `${thousands(samples.number[i] - samples.number[i - 1] - 1)} samples before this one are left out`;
		tr.style.height = `${this.ROW}px`;
		return tr;
	},

	fields(i) {
		const event = samples.low[i], t = threadOfLane.get(samples.lane[i]);
		return {number: thousands(samples.number[i] + 1), time: moment(samples.ns[i]), head: `0x${samples.head[i].toString(16).padStart(2, "0")}`,
			stamp: `0x${timestampOf(i).toString(16).padStart(14, "0")}`, cpu: String(samples.cpu[i]), source: `0x${this.source(i).toString(16)}`, thread: t?.label ?? `thread ${samples.lane[i]}`,
			event: event >= 0x80000000 ? `0x${event.toString(16)}` : String(event), high: `0x${samples.high[i].toString(16)}`, meaning: this.meaning(i)};
	},

	source(i) {
		return ((threadOfLane.get(samples.lane[i])?.source ?? 0) ^ samples.source[i]) >>> 0;
	},

	meaning(i) {
		const event = samples.low[i];
		if (event === EVENT_LOST)
			return `${thousands(samples.high[i])} samples of this thread were lost before this`;
		if (event === EVENT_CPU)
			return `this thread is on CPU ${samples.high[i]} from here on`;
		const u = userEvents.get(event);
		return `${eventName(event)}${u?.payload ? `, ${u.payload} = ${samples.memory.get(i) ?? payloadWords(u.type, samples.high[i], samples.upper.get(i))}` : ""}${samples.head[i] & 2 ? "  (samples before this were lost: FIFO overflow)" : ""}`;
	},

	// ---- one sample, bit by bit ----

	choose(i, scroll = true) {
		if (!samples.count)
			return;
		this.selected = Math.max(0, Math.min(samples.count - 1, i));
		if (scroll) {
			const y = this.rowOf(this.selected) * this.ROW, box = this.box;
			if (y < box.scrollTop + 24 || y > box.scrollTop + box.clientHeight - 2 * this.ROW)
				box.scrollTop = Math.max(0, y - box.clientHeight / 2);
		}
		this.fill();
		this.tell();
	},

	tell() {
		const i = this.selected, f = this.fields(i), head = samples.head[i], bit = (name, from, n) => {
			const v = (head >> from) & ((1 << n) - 1);
			return el("span", {class: name !== "type" && name !== "CPU ID" && v ? "set" : null}, el("b", {}, v.toString(2).padStart(n, "0")), name);
		};
		const type = {2: "Trace", 3: "Resource"}[(head >> 3) & 3] ?? "none";
		const source = this.source(i), field = (name, v) => el("span", {}, el("b", {}, v), name);
		this.detail.replaceChildren(
			el("div", {class: "bits"}, bit("CPU ID", 5, 3), bit("type", 3, 2), bit("shadow overflow", 2, 1), bit("FIFO overflow", 1, 1), bit("n/a", 0, 1),
				field("timestamp 55..0", f.stamp), field("source", f.source), field("data 63..32", `0x${samples.high[i].toString(16).padStart(8, "0")}`),
				field("data 31..0", `0x${samples.low[i].toString(16).padStart(8, "0")}`)),
			el("p", {}, `Sample ${f.number}: ${f.meaning}`),
			el("p", {class: "note"}, `${type} sample at ${f.time}; CPU ${f.cpu}; source: node ${source >>> 22}, thread ${source & 0x3fffff} (${f.thread}); ` +
				(i ? `${duration(samples.ns[i] - samples.ns[i - 1])} after the sample above` : "the first one"),
			   "  ", el("button", {type: "button", on: {click: () => showTimelineAt(samples.ns[i])}}, "Show in the timeline (t)")));
	},

	// ---- finding: words of the meaning or thread, or field:value, all of which must fit ----

	test(words) {
		const number = v => v.startsWith("0x") ? parseInt(v, 16) : Number(v);
		const tests = words.toLowerCase().split(/\s+/).filter(Boolean).map(w => {
			const m = /^(event|cpu|tid|pid|data|source|head|sample):(.+)$/.exec(w);
			if (w === "lost")
				return i => samples.low[i] === EVENT_LOST || (samples.head[i] & 2) !== 0;
			if (!m)
				return i => this.meaning(i).toLowerCase().includes(w) || laneLabel(samples.lane[i]).toLowerCase().includes(w);
			const v = number(m[2]), thread = i => threadOfLane.get(samples.lane[i]);
			return {event: i => samples.low[i] === v, cpu: i => samples.cpu[i] === v, tid: i => thread(i)?.tid === v, pid: i => thread(i)?.pid === v, data: i => samples.high[i] === v,
				source: i => this.source(i) === v, head: i => samples.head[i] === v, sample: i => samples.number[i] + 1 === v}[m[1]];
		});
		return tests.length ? i => tests.every(t => t(i)) : null;
	},

	lookFor() {
		this.hit = this.test(this.search.value);
		this.hits = null;
		if (!this.hit) {
			this.rows = null;
			this.found.textContent = "";
		} else {
			this.hits = [];
			for (let i = 0; i < samples.count; i++)
				if (this.hit(i))
					this.hits.push(i);
			this.rows = this.only.checked ? this.hits : null;
			this.found.textContent = `${thousands(this.hits.length)} found`;
		}
		this.box.scrollTop = 0;
		if (this.hits?.length)
			this.choose(this.hits[0]);
		this.fill();
	},

	next(step) {
		if (!this.hits?.length)
			return;
		let at = lowerBound(this.hits, this.selected);
		if (step > 0 && this.hits[at] === this.selected)
			at++;
		if (step < 0)
			at--;
		this.choose(this.hits[(at + this.hits.length) % this.hits.length]);
	},

	step(by) {
		const row = Math.max(0, Math.min(this.count - 1, this.rowOf(this.selected) + by));
		if (this.count)
			this.choose(this.sampleAt(row));
	},

	key(e) {
		const page = Math.max(1, Math.floor(this.box.clientHeight / this.ROW) - 2);
		switch (e.key) {
		case "ArrowDown": case "j": this.step(1); return true;
		case "ArrowUp": case "k": this.step(-1); return true;
		case "PageDown": this.step(page); return true;
		case "PageUp": this.step(-page); return true;
		case "Home": this.step(-samples.count); return true;
		case "End": this.step(samples.count); return true;
		case "n": this.next(1); return true;
		case "N": this.next(-1); return true;
		case "/": this.search.focus(); return true;
		case "t": showTimelineAt(samples.ns[this.selected]); return true;
		case "Escape": this.search.value = ""; this.lookFor(); return true;
		}
		return false;
	},

	keys: [["\u2191 \u2193 Page up, down, Home, End", "choose a sample"], ["/  n  N", "find, next, previous"], ["t", "show it in the timeline"]],
};

// The sample nearest to a time (of a thread, if one is meant).
function showSamplesAt(t, lane) {
	show("samples");
	if (!samples.count)
		return;
	let i = lowerBound(samples.ns, t - tickNs);
	if (lane !== undefined)
		for (let k = i; k < Math.min(samples.count, i + 2000); k++)
			if (samples.lane[k] === lane) {
				i = k;
				break;
			}
	viewer.choose(Math.min(i, samples.count - 1));
	if (Math.abs(samples.ns[viewer.selected] - t) > Math.max(1000, (span.b - span.a) / 100))
		status(`The samples at ${moment(t)} are not in this page: ${command(rangeOptions(t - 1e6, t + 1e6))}`);
}

function showTimelineAt(t) {
	const half = Math.min((span.b - span.a) / 2, Math.max(1000, (whole.b - whole.a) / 2000));
	setSpan(t - half, t + half);
	show("timeline");
}
