// SPDX-License-Identifier: MIT
// model.js - the data of the page, read once: names, threads, tracks, calls, samples.
// Times are nanoseconds from the start of the trace; numbers, exact up to 104 days.

const data = JSON.parse(document.getElementById("kron-data").textContent);
const tickNs = data.hz > 0 ? 1e9 / data.hz : 1;
const NO_FUNCTION = 0xfffffffe;
const NO_KEY = 0xffffffff;

function bytesOf(text) {
	const s = atob(text), out = new Uint8Array(s.length);
	for (let i = 0; i < s.length; i++)
		out[i] = s.charCodeAt(i);
	return out;
}

// LEB128, as view_put.c writes it
class Numbers {
	constructor(text) {
		this.bytes = typeof text === "string" ? bytesOf(text) : text;
		this.at = 0;
	}
	get more() {
		return this.at < this.bytes.length;
	}
	next() {
		let v = 0, scale = 1, b;
		do {
			b = this.bytes[this.at++];
			v += (b & 0x7f) * scale;
			scale *= 128;
		} while (b & 0x80);
		return v;
	}
	signed() {
		const v = this.next();
		return v % 2 ? -(v + 1) / 2 : v / 2;
	}
}

// ---- functions ----

const functions = new Map(); // by number
for (const f of data.functions)
	functions.set(f[0], {n: f[0], name: f[1], module: data.modules[f[2]] ?? "?", calls: f[3], total: f[4],
			     self: f[5], min: f[6], avg: f[7], max: f[8], inferred: f[9], measured: f[10],
			     histogram: f[11]});

function functionName(n) {
	if (n === NO_FUNCTION)
		return "(no traced function)";
	return functions.get(n)?.name ?? `function ${n}`;
}

// ---- tracks: see view_track.c ----

class Level {
	constructor(text, width, origin) {
		const n = new Numbers(text), bins = [], keys = [], part = [], busy = [], calls = [], depth = [];
		let bin = 0;
		while (n.more) {
			const key = n.next();
			if (!key) {
				bin += n.next();
				continue;
			}
			bins.push(bin++);
			keys.push(key - 1);
			part.push(n.next() * tickNs);
			busy.push(n.next() * tickNs);
			calls.push(n.next());
			depth.push(n.next());
		}
		this.width = width;
		this.origin = origin;
		this.bins = Float64Array.from(bins);
		this.keys = Uint32Array.from(keys);
		this.part = Float64Array.from(part);
		this.busy = Float64Array.from(busy);
		this.calls = Float64Array.from(calls);
		this.depth = Uint32Array.from(depth);
	}
	// index of the first bin that ends after t
	first(t) {
		return lowerBound(this.bins, Math.floor((t - this.origin) / this.width));
	}
	begin(i) {
		return this.origin + this.bins[i] * this.width;
	}
}

class Track {
	constructor(texts, ticks) {
		this.texts = texts;
		this.ticks = ticks;
		this.made = [];
	}
	level(i) {
		this.made[i] ??= new Level(this.texts[i], this.ticks * tickNs * data.level_factor ** i, data.from_ns);
		return this.made[i];
	}
	// the coarsest level with bins of at most `ns`, or the finest
	levelFor(ns) {
		let i = 0;
		while (i + 1 < this.texts.length && this.ticks * tickNs * data.level_factor ** (i + 1) <= ns)
			i++;
		return this.level(i);
	}
	// time within [a, b); bins at the edges count by the part that lies in it
	busy(a, b) {
		const l = this.levelFor((b - a) / 200);
		let sum = 0;
		for (let i = l.first(a); i < l.bins.length && l.begin(i) < b; i++) {
			const begin = l.begin(i), end = begin + l.width;
			const inside = Math.min(end, b) - Math.max(begin, a);
			sum += l.busy[i] * Math.min(1, inside / l.width);
		}
		return Math.min(sum, b - a);
	}
}

function lowerBound(array, value) {
	let low = 0, high = array.length;
	while (low < high) {
		const mid = (low + high) >> 1;
		if (array[mid] < value)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

// ---- calls of a thread: see view_spans.c ----

const DEEPEST = 300; // rows of a thread
const INFERRED = 1, OPEN = 2, LOSS = 4, JUMPED = 8;

class Spans {
	constructor(count) {
		this.count = count;
		this.begin = new Float64Array(count);
		this.end = new Float64Array(count);
		this.depth = new Uint32Array(count);
		this.fn = new Uint32Array(count);
		this.flags = new Uint8Array(count);
	}
	static read(text, count) {
		const s = new Spans(count), n = new Numbers(text);
		let last = data.from_ns;
		for (let i = 0; i < count; i++) {
			last += n.signed();
			s.begin[i] = last;
			s.end[i] = last + n.next();
			s.depth[i] = n.next();
			s.fn[i] = n.next();
			s.flags[i] = n.next();
		}
		return s;
	}
	// by depth, as far as rows are drawn: indexes in order of begin
	get rows() {
		if (!this.made) {
			this.made = [];
			this.deeper = 0;
			for (let i = 0; i < this.count; i++)
				if (this.depth[i] < DEEPEST)
					(this.made[this.depth[i]] ??= []).push(i);
				else
					this.deeper++;
			for (let d = 0; d < this.made.length; d++)
				this.made[d] ??= [];
		}
		return this.made;
	}
	// how long the longest of each row is
	get longest() {
		return this.most ??= this.rows.map(row => row.reduce((most, i) => Math.max(most, this.end[i] - this.begin[i]), 0));
	}
	// index into the row of the first span that ends after t
	firstInRow(row, t) {
		let low = 0, high = row.length;
		while (low < high) {
			const mid = (low + high) >> 1;
			if (this.end[row[mid]] <= t)
				low = mid + 1;
			else
				high = mid;
		}
		return low;
	}
	// who was on top of the stack, as [begin, end, function] in order; only of all calls, on one stack
	get states() {
		return this.top ??= statesOf(this);
	}
}

// calls in order of begin, the outer one first
function statesOf(calls) {
	const out = [], stack = [];
	let at = 0;
	const until = t => {
		if (stack.length && t > at) {
			const fn = calls.fn[stack[stack.length - 1]], last = out[out.length - 1];
			if (last && last[2] === fn && last[1] === at)
				last[1] = t;
			else
				out.push([at, t, fn]);
		}
		at = Math.max(at, t);
	};
	for (let i = 0; i < calls.count; i++) {
		while (stack.length && calls.end[stack[stack.length - 1]] <= calls.begin[i]) {
			until(calls.end[stack[stack.length - 1]]);
			stack.pop();
		}
		until(calls.begin[i]);
		stack.push(i);
	}
	while (stack.length) {
		until(calls.end[stack[stack.length - 1]]); // while it is on top
		stack.pop();
	}
	return out;
}

// ---- threads, in order of process and thread ----

// where a row of a thread's calls lies: {stack, depth}; depth -1: between two stacks
function placeOf(thread, row) {
	const {stacks} = thread;
	let stack = 0;
	while (stack + 1 < stacks.length && row >= stacks[stack + 1] - 1)
		stack++;
	return {stack, depth: row - stacks[stack]};
}

const threads = data.threads.map(t => ({
	...t,
	kind: "thread",
	label: `${t.name || t.exe || "thread"} ${t.tid}`,
	track: t.track && new Track(t.track, data.bin_ticks),
	spans: t.spans === undefined ? undefined : Spans.read(t.spans, t.nspans),
	stacks: t.stacks ?? [0], // the rows with which they begin
})).sort((a, b) => a.process - b.process || a.lane - b.lane);
const threadOfLane = new Map(threads.map(t => [t.lane, t]));
const shownThreads = threads.filter(t => t.track && t.samples);

const cpus = data.cpus.map(c => ({
	...c,
	kind: "cpu",
	label: `CPU ${c.cpu}`,
	byThread: new Track(c.by_thread, data.cpu_bin_ticks),
	byFunction: new Track(c.by_function, data.cpu_bin_ticks),
}));

const laneLabel = lane => threadOfLane.get(lane)?.label ?? `thread ${lane}`;
const lossesOfLane = new Map();
for (const l of data.losses) {
	if (!lossesOfLane.has(l[1]))
		lossesOfLane.set(l[1], []);
	lossesOfLane.get(l[1]).push(l);
}

// ---- call tree: see view_tables.c ----

const tree = (() => {
	const n = new Numbers(data.tree.data);
	const nodes = [{id: 0, fn: -1, calls: 0, total: 0, self: 0, children: [], parent: null, depth: 0}];
	while (n.more) {
		const id = nodes.length, back = n.next();
		const node = {id, fn: n.next(), calls: n.next(), total: n.next(), self: n.next(), children: [],
			      parent: nodes[id - back]};
		node.depth = node.parent.depth + 1;
		node.parent.children.push(node);
		nodes.push(node);
	}
	for (const [at, calls, total] of data.tree.rest) {
		const node = {id: nodes.length, fn: -2, calls, total, self: total, children: [], parent: nodes[at],
			      depth: nodes[at].depth + 1};
		nodes[at].children.push(node);
		nodes.push(node);
	}
	for (const node of nodes)
		node.children.sort((a, b) => b.total - a.total || a.fn - b.fn);
	nodes[0].total = nodes[0].children.reduce((sum, c) => sum + c.total, 0);
	nodes[0].calls = nodes[0].children.reduce((sum, c) => sum + c.calls, 0);
	return nodes;
})();

function nodeName(node) {
	return node.fn === -1 ? "all" : node.fn === -2 ? "(smaller ones)" : functionName(node.fn);
}

// ---- samples: see view_samples.c ----

const samples = (() => {
	const n = new Numbers(data.samples.data), count = data.samples.kept;
	const s = {count, number: new Float64Array(count), ns: new Float64Array(count), ticks: new Float64Array(count),
		   lane: new Uint32Array(count), cpu: new Uint32Array(count), head: new Uint8Array(count),
		   source: new Uint32Array(count), high: new Uint32Array(count), low: new Uint32Array(count),
		   upper: new Map(), memory: new Map()};
	let number = 0, ticks = 0;
	for (let i = 0; i < count; i++) {
		number += n.next();
		ticks += n.signed();
		s.number[i] = number++;
		s.ticks[i] = ticks;
		s.ns[i] = data.from_ns + ticks * tickNs;
		s.lane[i] = n.next();
		s.cpu[i] = n.next();
		const head = n.next();
		s.head[i] = head;
		s.source[i] = n.next();
		s.high[i] = n.next();
		s.low[i] = n.next();
		if (head & 0x100)
			s.upper.set(i, n.next());
		if (head & 0x200)
			s.memory.set(i, data.samples.memory[s.memory.size]);
	}
	return s;
})();
const EVENT_SPECIAL = 0xffffff00, EVENT_LOST = 0xffffff01, EVENT_CPU = 0xffffff02;
const specialNames = new Map([
	[EVENT_LOST, "samples lost before this"],
	[EVENT_CPU, "now on CPU"],
	[0xffffff03, "samples of a vfork child may follow"],
	[0xffffff04, "samples of a spawned child may follow"],
	[0xffffff05, "the child ends"],
	[0xffffff06, "the child's exec has failed"],
]);

// events of probes that a user placed
const userEvents = new Map(data.user_events.map(u => [u[0], {event: u[0], name: u[1], level: u[2], payload: u[3], type: u[4]}]));

// a payload as its type says: trace/value.h; upper: undefined where the sample has 32 bits
function payloadWords(type, low, upper) {
	const width = type === "double" ? 64 : type === "float" ? 32 : Number(/\d+$/.exec(type)?.[0] ?? 32);
	if (width === 64 && upper === undefined)
		return `0x${low.toString(16)} (low half)`;
	const bits = BigInt.asUintN(width, BigInt(upper ?? 0) << 32n | BigInt(low));
	if (type === "double")
		return String(new Float64Array(new BigUint64Array([bits]).buffer)[0]);
	if (type === "float")
		return String(new Float32Array(new Uint32Array([low]).buffer)[0]);
	return type[0] === "s" ? String(BigInt.asIntN(width, bits)) : type[0] === "u" ? String(bits) : `0x${bits.toString(16)}`;
}

const marksOfLane = new Map();
for (const m of data.marks) {
	if (!marksOfLane.has(m[1]))
		marksOfLane.set(m[1], []);
	marksOfLane.get(m[1]).push(m);
}
function markWords([t, , event, payload]) {
	const u = userEvents.get(event);
	return `event ${u?.name ?? event} at ${moment(t)}${u?.payload ? `, ${u.payload} = ${u.type ? payload : `${payload} (0x${payload.toString(16)})`}` : ""}`;
}

// when threads were off the CPUs, by context switches: begin, end, preempted
const offOfLane = new Map();
for (const [lane, ns, all, list] of data.off) {
	const out = [];
	for (let i = 0; i < list.length; i += 3)
		out.push({a: list[i], b: list[i + 1], preempted: list[i + 2] !== 0});
	offOfLane.set(lane, {ns, isWhole: out.length === all, list: out});
}
// ns of [a, b) that the thread was off; null where it is not known
function offTime(lane, a, b) {
	const off = offOfLane.get(lane);
	return off?.isWhole ? off.list.reduce((sum, o) => sum + Math.max(0, Math.min(o.b, b) - Math.max(o.a, a)), 0) : null;
}

// exits by a jump into another function
const jumps = new Map(data.jumps.map(([event, fn, to]) => [event, {fn, to}]));

function eventName(event) {
	if (event >= EVENT_SPECIAL)
		return `(${specialNames.get(event) ?? "record of the runtime"})`;
	if (userEvents.has(event))
		return `event ${userEvents.get(event).name}`;
	if (jumps.has(event))
		return `${functionName(jumps.get(event).fn)} exit by a jump${jumps.get(event).to && ` to ${jumps.get(event).to}`}`;
	const f = functions.get(Math.floor(event / 2));
	if (!f)
		return `event ${event}`;
	return event % 2 ? `${f.name} exit` : `${f.name} entry`;
}

// Exact, from a string that holds 64 bits; 56 bits as the board stores them.
const fromTicks = BigInt(data.from_tsc);
function timestampOf(i) {
	return (fromTicks + BigInt(samples.ticks[i])) & 0xffffffffffffffn;
}

const isEmpty = !data.view_samples;
const cpuCount = cpus.length;
