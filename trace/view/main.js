// SPDX-License-Identifier: MIT
// main.js - what the page begins with: facts and warnings, tabs, keys, help, printing.

const about = {
	id: "about", title: "About",
	empty: false,

	build(section) {
		const s = data.session, table = rows => el("table", {}, el("tbody", {}, ...rows.filter(r => r[1] !== undefined && r[1] !== "").map(([k, v]) => el("tr", {}, el("th", {class: "word", scope: "row"}, k), el("td", {class: "word"}, v)))));
		section.append(
			el("h2", {}, "What this page leaves out"), el("ul", {id: "left-out"}, ...leftOut().map(n => el("li", {}, ...n))),
			el("h2", {}, "The trace"),
			el("div", {class: "tablebox"}, table([["command", s.command], ["host", s.hostname], ["node", s.node], ["kernel", s.kernel], ["processor", s.cpu], ["CPUs of the host", s.ncpu], ["began", s.start_real_ns ? new Date(Number(s.start_real_ns) / 1e6).toISOString() : undefined],
				["recorded by", s.kron], ["bus", s.bus], ["when full", s.when_full], ["ended", s.exit], ["error", s.error], ["samples", thousands(data.trace_samples - data.trace_records)], ["records of the runtime (losses, changes of CPU)", thousands(data.trace_records)], ["lost", thousands(data.lost)],
				["cut off by kills or longjmp", data.cut_off ? thousands(data.cut_off) : ""], ["bytes and lines that make no sense", data.damaged ? thousands(data.damaged) : ""],
				["calls", thousands(data.calls.calls)], ["ends inferred", thousands(data.calls.inferred)], ["still running at the end", thousands(data.calls.open)], ["exits without entry", thousands(data.calls.orphans)],
				["calls across a loss", thousands(data.calls.spans_loss)], ["moves to another CPU", thousands(data.migrations)], ["a probe costs", s.probe_ns ? `${s.probe_ns} ns (limit ${s.probe_ns_limit ?? "?"} ns, switched off ${s.probe_ns_off ?? "?"} ns)` : ""],
				["ticks a second", thousands(data.hz)]])),
			el("h2", {}, "Losses"), data.losses.length ? el("div", {class: "tablebox", id: "losses"}, el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, "at"), el("th", {}, "samples lost"), el("th", {class: "word"}, "thread"))),
				el("tbody", {}, ...data.losses.slice(0, 200).map(l => el("tr", {}, el("td", {}, moment(l[0])), el("td", {}, thousands(l[2])), el("td", {class: "word"}, laneLabel(l[1]))))))) : el("p", {class: "note"}, data.lost ? "The trace says how many, not where." : "None."),
			...data.sleeps.length ? [el("h2", {}, "Functions that were out"), el("p", {class: "note"}, "Their probes were taken out of the program for a time: what they did then is in no picture, and they look less called than they were."),
				el("div", {class: "tablebox", id: "sleeps"}, sortedTable([{name: "Function", word: true, value: f => f[0]}, {name: "Module", word: true, value: f => data.modules[f[1]] ?? ""}, ...data.sleeps.some(f => f[3]) ? [{name: "Node", value: f => f[3]}] : [],
					{name: "Out for", value: f => f[4], show: f => `${duration(f[4])}, ${percent(f[4], data.to_ns - data.from_ns)}`}, {name: "By", word: true, value: f => f[2] ? "--budget" : "kron ctl probe"},
					{name: "Times watched", value: f => f[6]}, {name: "Watched", word: true, value: f => f[5][0] ?? 0, show: f => spells(f)}], data.sleeps, 3))] : [],
			el("h2", {}, "Threads"), el("div", {class: "tablebox"}, sortedTable([{name: "Process", value: t => t.pid}, {name: "Thread", value: t => t.tid}, {name: "Name", word: true, value: t => t.name}, {name: "Program", word: true, value: t => t.exe},
				{name: "Samples", value: t => t.samples, show: t => thousands(t.samples)}, {name: "Calls", value: t => t.calls, show: t => thousands(t.calls)}, {name: "Lost", value: t => t.lost, show: t => t.lost ? thousands(t.lost) : ""},
				{name: "Calls drawn one by one", value: t => (t.nspans ?? 0) + (t.inDetail ?? 0), show: t => thousands((t.nspans ?? 0) + (t.inDetail ?? 0))}, {name: "all of at least", value: t => leastOf(t), show: t => t.missing ? duration(leastOf(t)) : "all"}], [...threads], 4)));
	},
	draw() {},
	key() {
		return false;
	},
	keys: [],
};

// when a function was watched, the first few
function spells([,,,,, times, all]) {
	const out = [];
	for (let i = 0; i < times.length && out.length < 4; i += 2)
		out.push(`${moment(times[i])} to ${moment(times[i + 1])}`);
	return out.join(", ") + (all > out.length ? " \u2026" : "");
}

// from which length on all calls of a thread are there
function leastOf(t) {
	return t.missing ? t.inDetail ? detail.least : t.left_out_ns ?? 0 : 0;
}

function leftOut() {
	const out = [], spans = threads.reduce((n, t) => n + (t.missing ?? 0), 0), short = threads.reduce((n, t) => n + (t.inDetail ?? 0), 0);
	if (data.from_ns > data.trace_from_ns || data.to_ns < data.trace_to_ns)
		out.push([`The page shows ${moment(data.from_ns)} to ${moment(data.to_ns)} of a trace from ${moment(data.trace_from_ns)} to ${moment(data.trace_to_ns)}: `, code(command("")), " shows all of it."]);
	out.push([`Strips: a bin of the finest level is ${duration(data.bin_ticks * tickNs)} (threads), ${duration(data.cpu_bin_ticks * tickNs)} (CPUs); the function with most time of it gives its colour, what was busy its height.`]);
	if (short)
		out.push([`${thousands(short)} short calls are packed in this page: the timeline unpacks those of a stretch in which they can be seen. Finding a function looks through the others.`]);
	const dropped = threads.reduce((n, t) => n + (t.dropped ?? 0), 0);
	if (dropped)
		out.push([`${thousands(dropped)} more of them had no room, in pieces of some threads.`]);
	if (detail.unable)
		out.push(["This browser cannot unpack short calls (it has no DecompressionStream): one of the year 2023 or later can."]);
	if (spans)
		out.push([`${thousands(spans)} calls, the shortest ones${short ? ` (below ${duration(detail.least)})` : " of each thread"}, are not drawn one by one: they are in strips, flame graph, tables and histograms. Draw them for a piece of time: `, code(command(rangeOptions(whole.a + (whole.b - whole.a) * 0.5, whole.a + (whole.b - whole.a) * 0.51))), ", or allow a larger file: ", code(command("--size 100M --detail 400M")), "."]);
	const deeper = shownThreads.reduce((n, t) => n + (t.spans.rows && t.spans.deeper), 0);
	if (deeper)
		out.push([`${thousands(deeper)} calls that lie more than ${DEEPEST} levels deep have no row in the timeline.`]);
	if (data.all_sleeps)
		out.push([`${thousands(data.all_sleeps)} function${data.all_sleeps === 1 ? " was" : "s were"} out of the program for a part of this time (below${data.all_sleeps > data.sleeps.length ? `, the first ${thousands(data.sleeps.length)}` : ""}): what they did then is in no picture. `, code("kron report"), " estimates how often they were called."]);
	if (data.lanes > data.lanes_shown)
		out.push([`Only the ${thousands(data.lanes_shown)} threads with most samples have a row, of ${thousands(data.lanes)}.`]);
	if (data.tree.nodes < data.tree.all)
		out.push([`The flame graph draws ${thousands(data.tree.nodes)} of ${data.tree.more ? "more than " : ""}${thousands(data.tree.all)} call paths; those below ${duration(data.tree.least_ns)}${data.tree.more ? ", and those first seen after that many," : ""} are summed up as "(smaller ones)".`]);
	if (data.functions_left_out.functions)
		out.push([`${thousands(data.functions_left_out.functions)} functions with little time of their own (together ${duration(data.functions_left_out.self_ns)}, ${thousands(data.functions_left_out.calls)} calls) are not in the table, and have numbers for names.`]);
	if (data.samples.kept < data.samples.all)
		out.push([`The sample viewer has ${thousands(data.samples.kept)} of ${thousands(data.samples.all)} samples and records.`]);
	if (data.all_messages > data.messages.length)
		out.push([`${thousands(data.messages.length)} of ${thousands(data.all_messages)} messages.`]);
	if (data.all_marks > data.marks.length)
		out.push([`${thousands(data.marks.length)} of ${thousands(data.all_marks)} events of the user are marked in the timeline, evenly chosen.`]);
	const offs = data.off.reduce((n, [lane, , all, list]) => n + all - list.length / 3 - (threadOfLane.get(lane).offInDetail ?? 0), 0);
	if (offs)
		out.push([`${thousands(offs)} of the shortest times that threads were off the CPUs are not marked in the timeline; their sums are of all.`]);
	if (data.loss_places > data.losses.length)
		out.push([`${thousands(data.losses.length)} of ${thousands(data.loss_places)} places of losses are marked.`]);
	if (out.length === 1)
		out.push(["Nothing else: every call and every sample of the view is in this page."]);
	return out;
}

// ---- tabs ----

const pictures = [timeline, flame, usage, ...data.counters.length ? [counters] : [], ...data.memory.length ? [memory] : [], histogram, causality, ...data.matrix.length ? [matrix] : [], viewer, about];
const sections = new Map();
let current = null;

const EMPTY_WORDS = {
	timeline: "There is no sample in this trace, so there is nothing to draw.",
	flame: "No call was recorded: the trace has no entries of functions.",
	usage: "There is no sample in this trace, so nobody was seen on any CPU.",
	counters: "No interval of kron monitor lies in this piece of the trace.",
	matrix: "No message lies in this piece of the trace.",
	memory: "No reference to memory was counted in this piece of the trace.",
	histograms: "No call ended in this trace and no interval.info was given, so there is no interval to count.",
	samples: "There is no sample in this trace.",
};

function make(p) {
	const section = sections.get(p);
	if (p.built)
		return;
	p.built = true;
	if (p.empty) {
		section.classList.add("empty");
		section.append(el("h2", {}, p.title), p.emptyMessage ? p.emptyMessage() : message(EMPTY_WORDS[p.id]));
	} else {
		p.build(section);
	}
}

function show(id) {
	const p = pictures.find(x => x.id === id) ?? timeline;
	hideTip();
	current = p;
	for (const x of pictures) {
		sections.get(x).hidden = x !== p;
		const tab = document.getElementById(`tab-${x.id}`);
		tab.setAttribute("aria-selected", String(x === p));
		tab.tabIndex = x === p ? 0 : -1;
	}
	make(p);
	if (!p.empty)
		p.draw();
	status("");
	if (location.hash !== `#${p.id}`)
		history.replaceState(null, "", `#${p.id}`);
}

function makeHead() {
	const s = data.session, program = s.command || data.processes[0]?.cmdline || data.dir;
	document.title = `${program} - kron view`;
	document.getElementById("title").replaceChildren(el("b", {}, "kron view"), program);
	const intervals = data.counters.reduce((n, m) => n + m.intervals, 0);
	const facts = [`${duration(data.to_ns - data.from_ns)} shown`, ...intervals ? [`${thousands(intervals)} intervals of counters`] : [], ...data.memory.map(m => `${thousands(m.pages)} ${m.unit === 64 ? "lines" : "pages"} of memory`), `${thousands(data.view_samples - data.view_records)} samples`, `${thousands(data.calls.calls)} calls`, `${thousands(functions.size + data.functions_left_out.functions)} functions`,
		`${new Set(threads.map(t => t.process)).size} process${new Set(threads.map(t => t.process)).size === 1 ? "" : "es"}`, `${threads.length} thread${threads.length === 1 ? "" : "s"}`, `${cpus.length} CPU${cpus.length === 1 ? "" : "s"} seen`];
	if (s.hostname)
		facts.push(`on ${s.hostname}`);
	document.getElementById("facts").textContent = facts.join(" \u00b7 ");
	const warn = [];
	if (data.lost)
		warn.push(`\u26a0 ${thousands(data.lost)} samples lost`);
	if (data.all_sleeps)
		warn.push(`\u26a0 ${thousands(data.all_sleeps)} function${data.all_sleeps === 1 ? "" : "s"} recorded for a part of the time`);
	if (data.calls.inferred)
		warn.push(`\u26a0 ${thousands(data.calls.inferred)} ends inferred`);
	if (data.damaged)
		warn.push(`\u26a0 ${thousands(data.damaged)} bytes or lines of the trace make no sense`);
	if (s.clock_every > 1)
		warn.push(`${s.clock_every} samples share a reading of the clock: times are estimates between two readings`);
	if (!data.complete)
		warn.push("\u26a0 the recording did not end properly");
	if (data.from_ns > data.trace_from_ns || data.to_ns < data.trace_to_ns)
		warn.push("a part of the trace");
	if (data.where || data.trigger)
		warn.push(`\u26a0 filtered: ${[data.where && `where ${data.where}`, data.trigger && `trigger ${data.trigger}`].filter(Boolean).join("; ")}`);
	if (data.samples.kept < data.samples.all || threads.some(t => t.missing))
		warn.push("summed up: see About");
	document.getElementById("badges").replaceChildren(...warn.map(w => el("span", {class: "badge"}, w)));
	document.getElementById("hint").replaceChildren(el("kbd", {}, "?"), " keys   ", el("kbd", {}, "1"), "\u2013", el("kbd", {}, String(pictures.length)), " pictures");
}

function makeTabs() {
	const main = document.getElementById("main");
	main.replaceChildren();
	pictures.forEach((p, i) => {
		const section = el("section", {class: "picture", id: `picture-${p.id}`, role: "tabpanel", "aria-labelledby": `tab-${p.id}`, hidden: true});
		sections.set(p, section);
		main.append(section);
		document.getElementById("tabs").append(el("button", {type: "button", role: "tab", id: `tab-${p.id}`, "aria-controls": section.id, on: {click: () => show(p.id)}}, el("kbd", {}, String(i + 1)), p.title));
	});
}

// ---- keys ----

const help = document.getElementById("help");
function makeHelp() {
	const table = (title, rows) => el("div", {}, el("h3", {}, title), el("table", {}, el("tbody", {}, ...rows.map(([k, what]) => el("tr", {}, el("td", {}, el("kbd", {}, k)), el("td", {}, what))))));
	help.replaceChildren(el("div", {class: "bar"}, el("h2", {}, "Keys and mouse"), el("span", {class: "space"}), el("button", {type: "button", on: {click: () => help.close()}}, "Close (Esc)")),
		el("div", {class: "columns"}, table("Everywhere", [[`1 \u2013 ${pictures.length}`, "choose a picture"], ["?", "this page"], ["Esc", "give up a selection"], ["ctrl+P", "print: all pictures, one after another"]]),
			...pictures.filter(p => p.keys.length).map(p => table(p.title, p.keys))));
}

function onKey(e) {
	if (help.open) {
		if (e.key === "?") {
			e.preventDefault();
			help.close();
		}
		return;
	}
	const typing = e.target instanceof HTMLInputElement && e.target.type !== "checkbox" || e.target instanceof HTMLSelectElement;
	if (typing) {
		if (e.key === "Escape" || e.key === "Enter" && e.target.type === "search" && current !== viewer)
			e.target.blur();
		return;
	}
	// the browser's own search finds nothing in pictures
	if (e.key === "f" && (e.ctrlKey || e.metaKey) && !e.altKey && current === flame && !flame.empty) {
		flame.find.focus();
		flame.find.select();
		e.preventDefault();
		return;
	}
	if (e.ctrlKey || e.altKey || e.metaKey)
		return;
	if (e.key === "?") {
		help.showModal();
	} else if (e.key >= "1" && e.key <= String(pictures.length)) {
		show(pictures[Number(e.key) - 1].id);
	} else if (e.target.getAttribute?.("role") === "tab" && (e.key === "ArrowLeft" || e.key === "ArrowRight")) {
		const n = pictures.length, to = pictures[(pictures.indexOf(current) + (e.key === "ArrowRight" ? 1 : n - 1)) % n];
		show(to.id);
		document.getElementById(`tab-${to.id}`).focus();
	} else if (!(current && !current.empty && current.key(e))) {
		return;
	}
	e.preventDefault();
}

// ---- printing: every picture, on white paper ----

function beforePrint() {
	printing = true;
	readColours();
	for (const p of pictures) {
		make(p);
		sections.get(p).hidden = false;
		if (!p.empty)
			p.draw();
	}
}
function afterPrint() {
	printing = false;
	show(current.id);
}

// ---- begin ----

function failed(words) {
	document.getElementById("main").prepend(message(`This page could not draw all of its pictures: ${words}`));
}
window.addEventListener("error", e => failed(e.message));
window.kronView = {data, detail, functions, threads, cpus, tree, samples, span, setSpan, utilisation, show, pictures, labelsOf, functionColour, threadColour}; // for the console, and tests

readColours();
makeHead();
makeTabs();
makeHelp();
document.addEventListener("keydown", onKey);
window.addEventListener("beforeprint", beforePrint);
window.addEventListener("afterprint", afterPrint);
window.addEventListener("hashchange", () => show(location.hash.slice(1)));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => show(current.id));
show(location.hash.slice(1) || (!isEmpty ? "timeline" : data.counters.length ? "counters" : data.memory.length ? "memory" : "timeline"));
document.documentElement.dataset.ready = "1";
