// SPDX-License-Identifier: MIT
// usage.js - how busy the processors were: SPRA308's utilisation histogram, meter, Gantt chart by
// percent and Kiviat diagram, of the piece of time that the timeline shows.
//
// A CPU is busy while the trace proves that a traced thread was there: by context switches, or, if
// there are none, by samples (view_cpus.c).  A thread is busy while a function with a probe is on
// its stack.

// Mean share of the CPUs in n equal parts of [a, b).
function utilisation(a, b, n) {
	const out = new Float64Array(n);
	for (const cpu of cpus)
		shares(cpu.byThread, a, b, n).forEach((s, i) => { out[i] += s / cpus.length; });
	return out;
}

// Share of each of n equal parts of [a, b) that a track was busy.
function shares(track, a, b, n) {
	const out = new Float64Array(n), step = (b - a) / n, l = track.levelFor(step);
	for (let i = l.first(a); i < l.bins.length; i++) {
		const begin = l.begin(i), end = begin + l.width, each = l.busy[i] / l.width;
		if (begin >= b)
			break;
		const last = Math.min(n - 1, Math.floor((end - a) / step));
		for (let k = Math.max(0, Math.floor((begin - a) / step)); k <= last; k++) {
			const inside = Math.min(end, a + (k + 1) * step) - Math.max(begin, a + k * step);
			out[k] += Math.max(0, inside) * each / step;
		}
	}
	return out.map(s => Math.min(1, s));
}

const usage = {
	id: "usage", title: "Utilisation", PARTS: 60, part: null, axes: "cpus",

	get empty() {
		return isEmpty;
	},

	build(section) {
		this.section = section;
		this.where = el("span", {class: "note"});
		this.choice = el("select", {"aria-label": "axes of the Kiviat diagram", on: {change: () => { this.axes = this.choice.value; this.draw(); }}},
			el("option", {value: "cpus"}, "CPUs"), el("option", {value: "threads"}, "threads"));
		this.histogram = el("figure", {id: "utilisation-histogram"});
		this.meter = el("figure", {id: "utilisation-meter"});
		this.gantt = el("figure", {id: "utilisation-gantt"});
		this.kiviat = el("figure", {id: "kiviat"});
		this.table = el("div", {class: "tablebox", id: "utilisation-table"});
		section.append(
			el("div", {class: "bar"}, el("h2", {}, "Utilisation"), this.where, el("span", {class: "space"}), el("label", {}, "Kiviat axes ", this.choice),
			   ...spanButtons()),
			el("p", {class: "note"}, cpus.length ? `In percent of the CPUs that samples came from: ${cpus.length}. A CPU counts as busy ` + (data.switches_known ? "while a traced thread was on it, by the kernel's context switches" + (data.switches_lost ? ` (${thousands(data.switches_lost)} of them were lost).` : ".")
				: "between two samples of one thread with nobody else's in between: what the trace can prove. A thread that slept alone on a CPU counts, too, for there are no context switches in this trace.") : "No sample of this trace names a CPU."),
			el("div", {class: "grid"}, el("div", {class: "left"}, this.histogram, this.gantt, this.table), el("div", {class: "right"}, this.meter, this.kiviat)));
		spanListeners.push(() => this.wish());
	},

	wish,

	draw() {
		this.where.textContent = spanWords();
		this.use = utilisation(span.a, span.b, this.PARTS);
		this.byCpu = cpus.map(c => shares(c.byThread, span.a, span.b, this.PARTS));
		this.drawHistogram();
		this.drawGantt();
		this.drawPart();
		this.drawTable();
	},

	drawPart() {
		this.drawMeter();
		this.drawKiviat();
		for (const r of this.section.querySelectorAll("[data-part]"))
			r.classList.toggle("on", Number(r.dataset.part) === this.part);
	},

	pick(part) {
		this.part = part;
		this.drawPart();
	},

	partTime(k) {
		const step = (span.b - span.a) / this.PARTS;
		return [span.a + k * step, span.a + (k + 1) * step];
	},

	timeAxis(x0, x1, y) {
		const out = [svg("path", {class: "axis", d: `M${x0} ${y}H${x1}`})], step = niceStep(span.b - span.a, 6);
		for (const t of ticks(span.a, span.b, 6)) {
			const x = x0 + (t - span.a) * (x1 - x0) / (span.b - span.a);
			out.push(svg("path", {class: "axis", d: `M${x} ${y}v4`}), text(x, y + 15, moment(t, step), {"text-anchor": "middle"}));
		}
		out.push(text(x1, y + 29, "time since the start of the trace", {"text-anchor": "end", class: "quiet"}));
		return out;
	},

	drawHistogram() {
		const W = 800, H = 190, x0 = 46, x1 = W - 10, y0 = 10, y1 = H - 34, w = (x1 - x0) / this.PARTS;
		const g = svg("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "Utilisation histogram"});
		for (const p of [0, 25, 50, 75, 100]) {
			const y = y1 - p / 100 * (y1 - y0);
			g.append(svg("path", {class: "tick", d: `M${x0} ${y}H${x1}`}), text(x0 - 5, y + 4, `${p}%`, {"text-anchor": "end"}));
		}
		this.use.forEach((u, k) => {
			const [a] = this.partTime(k), h = Math.max(u > 0 ? 1 : 0, u * (y1 - y0));
			g.append(telling(svg("rect", {class: "bar", "data-part": k, "data-share": u.toFixed(6), x: x0 + k * w, y: y1 - h, width: Math.max(0.5, w - 1), height: h,
				on: {click: () => this.pick(k), pointerenter: () => this.pick(k)}}), `${moment(a)}: ${(100 * u).toFixed(1)}% of all CPUs`));
			g.append(svg("rect", {x: x0 + k * w, y: y0, width: w, height: y1 - y0, fill: "transparent", on: {pointerenter: () => this.pick(k)}}));
		});
		g.append(...this.timeAxis(x0, x1, y1));
		this.histogram.replaceChildren(el("figcaption", {}, "Utilisation histogram ", el("small", {}, `mean of all CPUs, in ${this.PARTS} parts; point at one for the meter and the Kiviat diagram`)), g);
	},

	drawMeter() {
		const mean = this.use.reduce((s, u) => s + u, 0) / this.PARTS, value = this.part === null ? mean : this.use[this.part];
		const W = 340, H = 182, cx = W / 2, cy = 126, r = 104, at = (share, radius) => {
			const angle = Math.PI * (1 - share);
			return `${(cx + radius * Math.cos(angle)).toFixed(1)} ${(cy - radius * Math.sin(angle)).toFixed(1)}`;
		};
		const g = svg("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `Utilisation meter: ${(100 * value).toFixed(1)} percent`, "data-share": value.toFixed(6)});
		g.append(svg("path", {d: `M${at(0, r)}A${r} ${r} 0 0 1 ${at(1, r)}`, fill: "none", stroke: "var(--line)", "stroke-width": 16}));
		if (value > 0)
			g.append(svg("path", {d: `M${at(0, r)}A${r} ${r} 0 0 1 ${at(value, r)}`, fill: "none", stroke: "#0072b2", "stroke-width": 16}));
		for (let p = 0; p <= 100; p += 10) {
			g.append(svg("path", {class: "axis", d: `M${at(p / 100, r - 9)}L${at(p / 100, r - (p % 50 ? 13 : 18))}`}));
			if (p % 20 === 0 && p % 100) {
				const [x, y] = at(p / 100, r - 27).split(" ").map(Number);
				g.append(text(x, y + 4, String(p), {"text-anchor": "middle"}));
			}
		}
		g.append(svg("path", {d: `M${cx} ${cy}L${at(value, r - 4)}`, stroke: "#d55e00", "stroke-width": 3}), svg("circle", {cx, cy, r: 5, fill: "#d55e00"}));
		g.append(text(cx, cy + 36, `${(100 * value).toFixed(1)}%`, {"text-anchor": "middle", class: "big"}));
		const of = this.part === null ? "mean of the piece shown" : `${moment(this.partTime(this.part)[0])}, ${duration((span.b - span.a) / this.PARTS)}`;
		g.append(text(cx, cy + 52, of, {"text-anchor": "middle", class: "quiet"}));
		this.meter.replaceChildren(el("figcaption", {}, "Utilisation meter"), g);
	},

	drawGantt() {
		const shown = cpus.slice(0, 64), row = shown.length > 20 ? 9 : 20, W = 800, x0 = 62, x1 = W - 10, y1 = 6 + shown.length * row;
		const w = (x1 - x0) / this.PARTS, H = y1 + 56;
		const g = svg("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "Utilisation by CPU over time"});
		shown.forEach((c, i) => {
			const y = 6 + i * row;
			if (row > 12 || i % 4 === 0)
				g.append(text(x0 - 6, y + row / 2 + 4, c.label, {"text-anchor": "end"}));
			this.byCpu[i].forEach((u, k) => g.append(telling(svg("rect", {x: x0 + k * w, y, width: w + 0.3, height: row - 1.5, "data-share": u.toFixed(6), fill: u > 0 ? stepColour(u) : "var(--faint)",
				on: {pointerenter: () => this.pick(k)}}), `${c.label}, ${moment(this.partTime(k)[0])}: ${(100 * u).toFixed(1)}%`)));
		});
		g.append(...this.timeAxis(x0, x1, y1));
		STEPS.forEach((colour, i) => g.append(svg("rect", {x: x0 + i * 34, y: y1 + 34, width: 34, height: 8, fill: colour})));
		for (let p = 0; p <= 100; p += 20)
			g.append(text(x0 + p / 100 * 34 * STEPS.length, y1 + 54, `${p}%`, {"text-anchor": "middle"}));
		this.gantt.replaceChildren(el("figcaption", {}, "Gantt chart by percent ", el("small", {}, "of each CPU" + (cpus.length > 64 ? `; the first 64 of ${cpus.length}` : ""))), g);
	},

	// ---- Kiviat: an axis for each processor, 0% in the middle ----

	kiviatAxes() {
		if (this.axes === "cpus")
			return cpus.slice(0, 64).map((c, i) => ({name: c.label, track: c.byThread, part: k => this.byCpu[i][k]}));
		return [...shownThreads].sort((a, b) => b.samples - a.samples).slice(0, 16).map(t => ({name: t.label, track: t.track,
			part: k => t.track.busy(...this.partTime(k)) / ((span.b - span.a) / this.PARTS)}));
	},

	drawKiviat() {
		const axes = this.kiviatAxes(), W = 420, H = 300, cx = W / 2, cy = H / 2 - 4, r = 108, n = axes.length;
		const g = svg("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "Kiviat diagram"});
		const place = (i, share) => {
			const angle = 2 * Math.PI * i / Math.max(n, 1) - Math.PI / 2;
			return [cx + r * share * Math.cos(angle), cy + r * share * Math.sin(angle)];
		};
		const shape = values => n >= 3 ? `M${values.map((v, i) => place(i, v).map(p => p.toFixed(1)).join(" ")).join("L")}Z`
			: values.map((v, i) => `M${cx} ${cy}L${place(i, v).map(p => p.toFixed(1)).join(" ")}`).join("");
		for (const share of [0.25, 0.5, 0.75, 1])
			g.append(n >= 3 ? svg("path", {class: "tick", fill: "none", d: shape(axes.map(() => share))}) : svg("circle", {class: "tick", cx, cy, r: r * share, fill: "none"}));
		const mean = axes.map(x => x.track.busy(span.a, span.b) / (span.b - span.a));
		g.append(svg("path", {class: "area", "stroke-linecap": "round", "stroke-width": n < 3 ? 7 : 2, d: shape(mean)}));
		if (this.part !== null)
			g.append(svg("path", {class: "now", d: shape(axes.map(x => Math.min(1, x.part(this.part))))}));
		axes.forEach((axis, i) => {
			const [x, y] = place(i, 1), [lx, ly] = place(i, 1.12), [px, py] = place(i, mean[i]);
			g.append(svg("path", {class: "tick", d: `M${cx} ${cy}L${x} ${y}`}));
			g.append(telling(svg("circle", {class: "axis-value", cx: px, cy: py, r: 4, fill: "#0072b2", "data-name": axis.name, "data-share": mean[i].toFixed(6)}), `${axis.name}: ${(100 * mean[i]).toFixed(1)}%`));
			if (n <= 24 || i % Math.ceil(n / 24) === 0)
				g.append(text(lx, ly + 4, n > 12 ? axis.name.replace(/^CPU /, "") : `${axis.name.length > 16 ? `${axis.name.slice(0, 15)}\u2026` : axis.name} ${(100 * mean[i]).toFixed(0)}%`, {"text-anchor": Math.abs(lx - cx) < 8 ? "middle" : lx > cx ? "start" : "end"}));
		});
		for (const share of [0.5, 1])
			g.append(text(cx + 3, cy - r * share + 11, `${100 * share}%`, {class: "quiet"}));
		g.append(text(cx, H - 4, n < 3 ? `an area needs three axes; k shows ${this.axes === "cpus" ? "threads" : "CPUs"}` : `filled: the piece shown${this.part === null ? "" : "; dashed: the part pointed at"}`, {"text-anchor": "middle", class: "quiet"}));
		this.kiviat.replaceChildren(el("figcaption", {}, "Kiviat diagram ", el("small", {}, this.axes === "cpus" ? "percent of each CPU" : "percent of each thread (the 16 with most samples): a traced function was on its stack")),
			n ? g : el("p", {class: "note"}, "There is nothing to draw an axis for."));
	},

	drawTable() {
		const length = span.b - span.a;
		this.table.replaceChildren(el("table", {}, el("thead", {}, el("tr", {}, el("th", {class: "word"}, "CPU"), el("th", {}, "busy, piece shown"), el("th", {}, "%"),
			el("th", {}, "busy, whole view"), el("th", {}, "%"), el("th", {}, "samples"), el("th", {}, "switches of thread"))),
			el("tbody", {}, ...cpus.map(c => {
				const busy = c.byThread.busy(span.a, span.b);
				return el("tr", {"data-cpu": c.cpu, "data-busy-ns": c.busy_ns}, el("td", {class: "word"}, c.label), el("td", {}, duration(busy)), el("td", {}, percent(busy, length)),
					el("td", {}, duration(c.busy_ns)), el("td", {}, percent(c.busy_ns, whole.b - whole.a)), el("td", {}, thousands(c.samples)), el("td", {}, thousands(c.switches)));
			}))));
	},

	key(e) {
		switch (e.key) {
		case "ArrowLeft": this.pick(Math.max(0, (this.part ?? this.PARTS) - 1)); return true;
		case "ArrowRight": this.pick(Math.min(this.PARTS - 1, (this.part ?? -1) + 1)); return true;
		case "k": this.choice.value = this.axes = this.axes === "cpus" ? "threads" : "cpus"; this.draw(); return true;
		case "Escape": this.pick(null); return true;
		}
		return spanKey(e);
	},

	keys: [["\u2190 \u2192, or point", "choose a part for meter and Kiviat"], ["+ \u2212", "zoom (the timeline follows)"], ["0", "the whole view"], ["k", "Kiviat by CPU or by thread"]],
};
