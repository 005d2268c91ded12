// SPDX-License-Identifier: MIT
// live.js - takes the monitor's events, and draws what has come before the next picture.
//
//   about ─► a picture for each column ─► rows, as intervals end ─► end
//
// A connection that is lost is made again, and gives what the monitor still has; what it has no more is said.

const TRIES = 5; // connections in vain, one after another

const byId = id => document.getElementById(id);
let pictures = [], wanted = false, held = false, failures = 0, over = "";

// ---- which pictures ----

const GROUPS = [
	["Memory", c => /^(page|minor|major)-faults$/.test(c.name)],
	["Input and output", c => c.kind === "bytes"],
	["Locks and variables", c => c.kind === "value"],
	["Profile", () => true],
];

function makePictures() {
	const all = about.columns.filter(c => c.name === "idle" && isBusy(c)), processors = about.columns.filter(c => c.name !== "idle" && isBusy(c));
	const rest = about.columns.filter(c => !isBusy(c)), sections = [];
	const busy = [...all.map(c => new Meter(c)), ...all.map(c => new Graph(c, 90))];
	if (processors.length)
		busy.push(new Gantt(processors));
	if (processors.length >= 3)
		busy.push(new Kiviat(processors));
	if (busy.length)
		sections.push(["Utilisation", busy]);
	for (const [title, is] of GROUPS) {
		const some = rest.filter(c => is(c) && !sections.some(([, have]) => have.some(p => p.column === c)));
		if (some.length)
			sections.push([title, some.map(c => new Graph(c))]);
	}
	pictures = sections.flatMap(([, some]) => some);
	byId("main").replaceChildren(...sections.flatMap(([title, some]) => [el("h2", {}, title), ...some.map(p => p.figure)]));
	byId("title").textContent = document.title = `kron monitor: ${about.command}`;
}

// ---- drawing ----

function stateWords() {
	if (over)
		return over;
	return failures ? "No connection to the monitor." : held ? "Held: intervals come, and are not drawn." : "Running.";
}

function draw() {
	const some = rows.slice(-Number(byId("span").value)), last = some[some.length - 1];
	wanted = false;
	byId("state").textContent = stateWords();
	byId("state").dataset.state = over ? over.startsWith("Ended") ? "ended" : "lost" : failures ? "lost" : "running";
	if (!last || held && !over)
		return;
	const parts = [`an interval each ${duration(about.every_ns)}`, `${thousands(last.n + 1)} so far`, `${(last.to_ns / 1e9).toFixed(3)} s`];
	if (about.freezes)
		parts.push(last.stopped ? `${last.threads} threads stood for ${duration(last.stood_ns)}, ${duration(last.skew_ns)} between them` : "not all threads stood");
	if (earlier)
		parts.push(`the first ${thousands(earlier)} are not here any more`);
	byId("facts").textContent = `${parts.join(", ")}.`;
	for (const p of pictures)
		p.draw(some);
	document.documentElement.dataset.drawn = last.n + 1;
}

function wish() {
	if (!wanted)
		requestAnimationFrame(draw);
	wanted = true;
}

// ---- events ----

function listen() {
	const source = new EventSource("events");
	const on = (name, f) => source.addEventListener(name, e => {
		f(JSON.parse(e.data));
		wish();
	});
	on("about", message => {
		failures = 0;
		takeAbout(message);
		makePictures();
	});
	on("message", takeRow);
	on("missed", message => earlier += message.intervals);
	on("end", message => {
		source.close();
		const how = about.of === "board" ? "" : message.exit === "running" ? "the program runs on, " : `the program: ${message.exit}, `;
		over = `Ended: ${how}${thousands(message.intervals)} intervals, real time ${duration(message.real_ns)}`
			+ (about.of === "board" ? "." : `, virtual time ${duration(message.virtual_ns)}.`);
	});
	source.addEventListener("error", () => {
		if (++failures >= TRIES || source.readyState === EventSource.CLOSED) {
			source.close();
			over = "The monitor is gone, or has no room: what it did last may be missing here.";
		}
		wish();
	});
}

byId("hold").addEventListener("click", () => {
	held = !held;
	byId("hold").setAttribute("aria-pressed", held);
	wish();
});
byId("span").addEventListener("change", wish);
listen();
document.documentElement.dataset.ready = "1";
