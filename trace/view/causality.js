// SPDX-License-Identifier: MIT
// causality.js - the Hasse diagram: which send and receive events of which threads could have
// influenced which others.
//
//   thread 17  ──●──────●────────●──      ● events; along a thread, and from a send to its
//                 ╲            ↗          receive, order is certain; all else is concurrent
//   thread 18  ────●──────●───●─────
//
// In "logical order" an event stands one step right of the latest that it depends on.  A line
// that follows from others is left out of the order (shown dotted), as in Hasse's diagrams.
// Messages are intervals of class 4; beginnings of processes are known to the trace itself.

const causality = {
	id: "causality", title: "Causality", MOST: 240, byTime: true, selected: null,

	get forks() {
		return this.forksMade ??= data.processes.filter(p => p.fork && p.start_ns >= data.from_ns && p.start_ns <= data.to_ns).map(child => {
			const lane = threads.find(t => t.process === child.uid)?.lane, parent = threads.find(t => t.process === child.parent)?.lane;
			return lane === undefined || parent === undefined ? null : {def: -1, sent: child.start_ns, from: parent, received: child.start_ns, to: lane, name: "fork"};
		}).filter(Boolean);
	},

	get messages() {
		return this.made ??= [...data.messages.map(m => ({def: m[0], sent: m[1], from: m[2], received: m[3], to: m[4], name: data.message_names[m[0]]})),
				      ...this.forks].sort((a, b) => a.sent - b.sent);
	},

	get empty() {
		return !this.messages.length;
	},

	emptyMessage() {
		const file = 'interval.info: 4 10 20 "message latency"';
		return message(data.intervals.length ? "No interval of class 4 (a message: sent, received) lies in this piece of the trace, and no process was forked in it. "
			: "Messages between threads and processes are intervals of class 4 of an interval.info(5): the event of the sending and that of the receiving, ", data.intervals.length ? "" : "for example ", code(file),
			" or, by functions, ", code("4 send_msg receive_msg%return \"message\""), ". Then: ", code(command("--intervals interval.info")));
	},

	build(section) {
		this.section = section;
		this.where = el("span", {class: "note"});
		this.order = el("select", {"aria-label": "order", id: "causality-order", on: {change: () => { this.byTime = this.order.value === "time"; this.draw(); }}},
			el("option", {value: "time"}, "by time"), el("option", {value: "logical"}, "logical order"));
		this.figure = el("div", {class: "tablebox", id: "hasse"});
		this.figure.style.flex = "1";
		this.words = el("p", {class: "note", id: "hasse-words"});
		section.append(el("div", {class: "bar"}, el("h2", {}, "Causality (Hasse) diagram"), this.where, el("span", {class: "space"}), this.order,
			...spanButtons()),
			el("p", {class: "note"}, "Select an event: what could have caused it and what it could have influenced stays, what is concurrent with it fades."), this.figure, this.words);
		spanListeners.push(() => this.wish());
	},

	wish,

	// ---- the order ----

	// events by thread; each gets a vector clock: how many events of each thread come before it
	arrange() {
		const inside = this.messages.filter(m => Math.max(m.sent, m.received) >= span.a && Math.min(m.sent, m.received) <= span.b);
		const list = inside.slice(0, this.MOST), lines = new Map();
		const event = (lane, t, kind, m) => {
			if (!lines.has(lane))
				lines.set(lane, []);
			const e = {lane, t, kind, m, before: []};
			lines.get(lane).push(e);
			return e;
		};
		for (const m of list) {
			m.send = event(m.from, m.sent, m.def < 0 ? "fork" : "send", m);
			m.receive = event(m.to, m.received, m.def < 0 ? "begin" : "receive", m);
		}
		const all = [], lanes = [...lines.keys()].sort((a, b) => a - b);
		for (const lane of lanes) {
			const line = lines.get(lane).sort((a, b) => a.t - b.t || (a.kind === "send") - (b.kind === "send"));
			line.forEach((e, i) => {
				e.index = i;
				if (i)
					e.before.push({from: line[i - 1], kind: "order"});
				all.push(e);
			});
		}
		for (const m of list)
			m.receive.before.push({from: m.send, kind: "send", m});
		this.count(all, lanes);
		return {lanes, lines, list, all, left: inside.length - list.length};
	},

	// In order of dependence.  Messages that are received before they are sent (clocks that
	// disagree) could make a circle: an edge that would close one is shown, but orders nothing.
	count(all, lanes) {
		const place = new Map(lanes.map((l, i) => [l, i]));
		const visit = e => { // depth first, without recursion
			const work = [e];
			while (work.length) {
				const x = work[work.length - 1];
				x.state = 1;
				const next = x.before.find(b => !b.broken && b.from.state !== 2);
				if (next && next.from.state === 1)
					next.broken = true;
				else if (next)
					work.push(next.from);
				else
					this.finish(work.pop(), place, lanes.length);
			}
		};
		for (const e of all)
			if (!e.state)
				visit(e);
	},

	finish(e, place, n) {
		e.state = 2;
		e.clock = new Int32Array(n);
		e.level = 0;
		for (const b of e.before.filter(x => !x.broken)) {
			e.level = Math.max(e.level, b.from.level + 1);
			b.from.clock.forEach((v, i) => { e.clock[i] = Math.max(e.clock[i], v); });
		}
		e.place = place.get(e.lane);
		e.clock[e.place] = e.index + 1;
		for (const b of e.before) // implied by another way?
			b.implied = !b.broken && e.before.some(o => o !== b && !o.broken && o.from.clock[b.from.place] > b.from.index);
	},

	precedes(a, b) {
		return a !== b && b.clock[a.place] > a.index;
	},

	// ---- drawing ----

	draw() {
		const d = this.now = this.arrange(), W = 1220, x0 = 170, x1 = W - 24, row = Math.max(34, Math.min(90, 420 / Math.max(1, d.lanes.length)));
		const y = lane => 40 + d.lanes.indexOf(lane) * row, H = 70 + d.lanes.length * row;
		const levels = Math.max(1, ...d.all.map(e => e.level)), wide = this.byTime ? W : Math.max(W, x0 + levels * 26 + 40);
		const x = e => this.byTime ? x0 + (e.t - span.a) * (x1 - x0) / (span.b - span.a) : x0 + 14 + e.level * (wide - x0 - 40) / levels;
		const g = svg("svg", {viewBox: `0 0 ${wide} ${H}`, width: wide, height: H, role: "img", "aria-label": `Causality diagram of ${d.list.length} messages`,
			"data-messages": d.list.length, "data-events": d.all.length, on: {click: () => this.select(null)}});
		const head = svg("marker", {id: "head", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto"}, svg("path", {d: "M0 0L8 4L0 8Z", fill: "context-stroke"}));
		g.append(svg("defs", {}, head, svg("clipPath", {id: "hasse-clip"}, svg("rect", {x: x0, y: 0, width: wide - x0, height: H}))));
		for (const lane of d.lanes)
			g.append(svg("path", {class: "tick", d: `M${x0} ${y(lane)}H${wide - 10}`}), text(x0 - 8, y(lane) + 4, laneLabel(lane).slice(0, 26), {"text-anchor": "end"}),
				 text(x0 - 8, y(lane) + 17, `process ${threadOfLane.get(lane)?.pid ?? "?"}`, {"text-anchor": "end", class: "quiet"}));
		const inner = svg("g", {"clip-path": "url(#hasse-clip)"});
		this.edges = [];
		for (const e of d.all)
			for (const b of e.before)
				this.edges.push(this.edge(inner, b, e, x, y));
		this.dots = d.all.map(e => this.dot(inner, e, x(e), y(e.lane)));
		g.append(inner);
		if (this.byTime)
			g.append(...this.axis(x0, x1, H - 22));
		else
			g.append(text(wide - 10, H - 6, `logical step \u2192 (${levels + 1} steps)`, {"text-anchor": "end", class: "quiet"}));
		this.figure.replaceChildren(g);
		this.where.textContent = `${moment(span.a, (span.b - span.a) / 1000)} to ${moment(span.b, (span.b - span.a) / 1000)}: ${d.list.length} messages` +
			(d.left ? `; ${thousands(d.left)} more: zoom in` : "") + (data.all_messages > data.messages.length ? `; the page has the first ${thousands(data.messages.length)} of ${thousands(data.all_messages)}` : "");
		this.select(null);
	},

	axis(x0, x1, y) {
		const step = niceStep(span.b - span.a, 8);
		return [svg("path", {class: "axis", d: `M${x0} ${y}H${x1}`}), ...[...ticks(span.a, span.b, 8)].flatMap(t => {
			const x = x0 + (t - span.a) * (x1 - x0) / (span.b - span.a);
			return [svg("path", {class: "axis", d: `M${x} ${y}v4`}), text(x, y + 16, moment(t, step), {"text-anchor": "middle"})];
		})];
	},

	edge(g, b, e, x, y) {
		const send = b.kind === "send", late = send && e.t < b.from.t;
		const colour = send ? (b.m.def < 0 ? "#009e73" : HUE(b.m.def)) : null;
		const p = svg("path", {class: `${send ? "send" : "order"}${b.implied || b.broken ? " implied" : ""}`, d: `M${x(b.from).toFixed(1)} ${y(b.from.lane)}L${x(e).toFixed(1)} ${y(e.lane)}`,
			stroke: colour, "marker-end": send ? "url(#head)" : null, "data-implied": b.implied ? "1" : null});
		if (send)
			telling(p, `${b.m.name}: ${laneLabel(b.m.from)} to ${laneLabel(b.m.to)}, ${duration(e.t - b.from.t)}${late ? " (received before it was sent: clocks disagree)" : ""}${b.implied ? " (follows from others)" : ""}`);
		g.append(p);
		return {path: p, from: b.from, to: e};
	},

	dot(g, e, x, y) {
		const c = telling(svg("circle", {class: "event", cx: x, cy: y, r: 5.5, fill: e.kind === "send" || e.kind === "fork" ? "#0072b2" : "#d55e00", "data-level": e.level, "data-kind": e.kind, tabindex: -1,
			on: {click: ev => { ev.stopPropagation(); this.select(e); }}}), `${e.kind} ${e.m.name}\n${laneLabel(e.lane)}, ${moment(e.t)}, step ${e.level}`);
		g.append(c);
		return {circle: c, e};
	},

	select(e) {
		this.selected = e;
		const related = x => !e || x === e || this.precedes(x, e) || this.precedes(e, x);
		for (const d of this.dots)
			d.circle.classList.toggle("dim", !related(d.e));
		for (const d of this.edges)
			d.path.classList.toggle("dim", !(related(d.from) && related(d.to)));
		if (!e) {
			this.words.textContent = "Blue: sends and forks; orange: receives and beginnings. Dotted lines follow from others.";
			return;
		}
		const past = this.now.all.filter(x => this.precedes(x, e)).length, future = this.now.all.filter(x => this.precedes(e, x)).length;
		this.words.textContent = `${e.kind} ${e.m.name} at ${moment(e.t)} in ${laneLabel(e.lane)}: ${past} events could have caused it, it could have influenced ${future}, ` +
			`${this.now.all.length - 1 - past - future} are concurrent.`;
	},

	key(e) {
		const list = this.now?.all ?? [];
		switch (e.key) {
		case "a": pan(-0.2); return true;
		case "d": pan(0.2); return true;
		case "o": this.byTime = !this.byTime; this.order.value = this.byTime ? "time" : "logical"; this.draw(); return true;
		case "ArrowRight": case "ArrowLeft": {
			const sorted = [...list].sort((a, b) => a.t - b.t), at = sorted.indexOf(this.selected), n = sorted.length;
			if (n)
				this.select(sorted[at < 0 ? 0 : (at + (e.key === "ArrowRight" ? 1 : n - 1)) % n]);
			return true;
		}
		case "Escape": this.select(null); return true;
		}
		return spanKey(e);
	},

	keys: [["o", "by time, or in logical order"], ["\u2190 \u2192, or click", "select an event"], ["+ \u2212 0", "zoom"], ["a d", "move"]],
};
const HUE = i => `rgb(${HUES[[0, 3, 5, 1, 4, 2][i % 6]].join(",")})`;
