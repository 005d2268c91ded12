// SPDX-License-Identifier: MIT
// ui.js - elements, words and numbers for people, colours.
//
// Words of a trace are put on the page as text, never as markup: through textContent, fillText
// and setAttribute("title" and such); nothing here makes elements of strings.

// A point in time, in the unit that suits the end of the view, as exact as a step of that many ns
// needs it.
function moment(ns, step = 1) {
	const most = Math.max(Math.abs(data.to_ns), 1), [scale, unit] = UNITS.find(([s]) => most >= s);
	const digits = Math.max(0, Math.ceil(Math.log10(scale / Math.max(step, 1)) - 1e-9));
	return `${(ns / scale).toFixed(digits)} ${unit}`;
}

// ---- names that fit: without parameters, then without what is in <>, then without where it is ----

// [from, to) of each pair of brackets that no other of the kind is around.  Of an operator's name
// the signs are none.
function bracketed(name, open, close) {
	const found = [];
	for (let i = 0, depth = 0, from = 0; i < name.length; i++) {
		const operator = /^operator(\(\)|<=>|<<=?|>>=?|->\*?|<=?|>=?)/.exec(name.slice(i));
		if (operator && !/\w/.test(name[i - 1] ?? ""))
			i += operator[0].length - 1;
		else if (name[i] === open && !depth++)
			from = i;
		else if (name[i] === close && depth && !--depth)
			found.push([from, i + 1]);
	}
	return found;
}

function withoutParameters(name) {
	const last = bracketed(name, "(", ")").pop();
	return last && last[0] > 0 && /^( const| volatile|&| \[.*\])*$/.test(name.slice(last[1])) ? name.slice(0, last[0]) + name.slice(last[1]) : name;
}

function withoutTemplates(name) {
	for (const [from, to] of bracketed(name, "<", ">").reverse())
		if (from > 0) // <T as Trait>::name has no other word for where it is
			name = name.slice(0, from) + name.slice(to);
	return name.replace(/::(?=::)/g, "");
}

// after the last :: or / that is in no bracket
function lastPart(name) {
	const inside = [...bracketed(name, "<", ">"), ...bracketed(name, "(", ")")];
	for (let i = name.length - 1; i > 0; i--)
		if ((name[i] === "/" || name[i] === ":" && name[i - 1] === ":") && i + 1 < name.length && !inside.some(([from, to]) => i >= from && i < to))
			return name.slice(i + 1);
	return name;
}

const labelsByName = new Map();
function labelsOf(name) {
	let labels = labelsByName.get(name);
	if (!labels) {
		labels = [name];
		for (const f of [withoutParameters, withoutTemplates, lastPart])
			labels.push(f(labels[labels.length - 1]));
		labels = labels.filter((l, i) => !i || l && l !== labels[i - 1]);
		labelsByName.set(name, labels);
	}
	return labels;
}
// the longest of at most that many characters, or the shortest
const labelOf = (name, most) => labelsOf(name).find(l => l.length <= most) ?? labelsOf(name)[labelsOf(name).length - 1];

// ---- colours: Okabe and Ito's, which people with any colour vision tell apart, in three
// brightnesses; a function has the same one in each picture, and in each trace but where one that
// calls it there, or that it calls, has its hue ----

const HUES = [[0, 114, 178], [230, 159, 0], [0, 158, 115], [204, 121, 167], [86, 180, 233], [213, 94, 0],
	      [240, 228, 66]];
const SHADES = [0, 0.35, -0.25]; // towards white, towards black

function hash(words) {
	let h = 2166136261;
	for (let i = 0; i < words.length; i++)
		h = Math.imul(h ^ words.charCodeAt(i), 16777619);
	h ^= h >>> 15;
	h = Math.imul(h, 0x2c1b3c6d);
	return (h ^ h >>> 13) >>> 0;
}

const colours = new Map();
// hue and shade: any numbers
function colourOf(hue, shade) {
	const key = hue % HUES.length + HUES.length * (shade % SHADES.length);
	let c = colours.get(key);
	if (!c) {
		const light = SHADES[shade % SHADES.length];
		const rgb = HUES[hue % HUES.length].map(v => Math.round(light < 0 ? v * (1 + light) : v + (255 - v) * light));
		const bright = (0.2126 * linear(rgb[0]) + 0.7152 * linear(rgb[1]) + 0.0722 * linear(rgb[2]));
		c = {fill: `rgb(${rgb.join(",")})`, ink: bright > 0.18 ? "#000" : "#fff", hue: hue % HUES.length};
		colours.set(key, c);
	}
	return c;
}
const linear = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;

const QUIET = {fill: "#9aa2aa", ink: "#000"};
const functionColours = new Map();
function giveColour(n, hueOf) {
	const h = hash(functionName(n)), c = colourOf(hueOf(h % HUES.length), Math.floor(h / HUES.length));
	functionColours.set(n, c);
	return c;
}
function functionColour(n) {
	if (n === NO_FUNCTION || n === NO_KEY || n < 0)
		return QUIET;
	return functionColours.get(n) ?? giveColour(n, hue => hue);
}

// Those with most time choose first; of the hues after its own one that no neighbour in the call
// tree has, or those with the least time together.
function giveColours() {
	const around = new Map(), time = new Map(), add = (map, key, ns) => map.set(key, (map.get(key) ?? 0) + ns);
	for (const node of tree) {
		const a = node.fn, b = node.parent?.fn ?? -1;
		if (a < 0)
			continue;
		add(time, a, node.total);
		for (const [x, y] of b < 0 || a === b ? [] : [[a, b], [b, a]]) {
			if (!around.has(x))
				around.set(x, new Map());
			add(around.get(x), y, node.total + 1);
		}
	}
	for (const n of [...time.keys()].sort((a, b) => time.get(b) - time.get(a) || a - b))
		giveColour(n, own => {
			const taken = HUES.map(() => 0);
			for (const [other, ns] of around.get(n) ?? [])
				if (functionColours.has(other))
					taken[functionColours.get(other).hue] += ns;
			const from = taken.slice(own).concat(taken.slice(0, own));
			return own + from.indexOf(Math.min(...from));
		});
}
giveColours();

const placeOfLane = new Map(shownThreads.map((t, i) => [t.lane, i]));
function threadColour(lane) {
	const at = placeOfLane.get(lane) ?? hash(laneLabel(lane));
	return lane === NO_KEY ? QUIET : colourOf(at, Math.floor(at / HUES.length));
}

function swatch(colour) {
	return svg("svg", {class: "swatch", viewBox: "0 0 13 13"},
		   svg("rect", {x: 0.5, y: 0.5, width: 12, height: 12, fill: colour}));
}

const paint = {};
function readColours() {
	const style = getComputedStyle(document.documentElement);
	for (const name of ["paper", "ink", "quiet", "line", "faint", "panel", "accent", "select", "loss"])
		paint[name] = style.getPropertyValue(`--${name}`).trim();
	if (printing)
		Object.assign(paint, {paper: "#fff", ink: "#000", quiet: "#333", line: "#888", faint: "#eee",
				      panel: "#fff", accent: "#00527f", select: "#b35900", loss: "#b30f00"});
}
let printing = false;

// A view's method: draw() once before the next picture, however often it is wished for.
function wish() {
	if (this.asked || this.section.hidden && !printing)
		return;
	this.asked = true;
	requestAnimationFrame(() => {
		this.asked = false;
		this.draw();
	});
}

// ---- the tool tip and the line at the bottom ----

const tip = document.getElementById("tip");
function showTip(words, x, y) {
	tip.textContent = words;
	tip.hidden = !words;
	if (!words)
		return;
	const w = tip.offsetWidth, h = tip.offsetHeight;
	tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - w - 4))}px`;
	tip.style.top = `${y + 18 + h > innerHeight ? Math.max(4, y - h - 8) : y + 18}px`;
}
const hideTip = () => showTip("");
function status(words) {
	document.getElementById("status").textContent = words;
}
// An element of a picture that says something when pointed at, or read aloud.
function telling(e, words) {
	e.append(svg("title", {}, words));
	return e;
}

function message(...parts) {
	return el("p", {class: "message"}, ...parts);
}
const code = words => el("code", {}, words);

// A command that the user may copy; the folder's name is quoted for a shell.
function command(options) {
	const word = w => /^[\w@%+=:,./-]+$/.test(w) ? w : `'${w.replace(/'/g, "'\\''")}'`;
	const also = [["where", "--where"], ["trigger", "--trigger"], ["intervals_file", "-i"]].filter(([k]) => data[k]).map(([k, o]) => `${o} ${word(data[k])} `);
	return `kron view ${also.join("")}${options}${options ? " " : ""}-o zoom.html ${word(data.dir)}`;
}
const rangeOptions = (a, b) => `--from ${Math.max(0, Math.floor(a))}ns --to ${Math.ceil(b)}ns`;

// ---- a table that sorts: columns are {name, word, value(row), show(row)} ----

function sortedTable(columns, rows, by, onSelect) {
	let order = -1;
	const body = el("tbody"), heads = columns.map((c, i) => el("th", {
		class: `sortable${c.word ? " word" : ""}`, tabindex: 0, scope: "col",
		on: {
			click: () => sort(i),
			keydown: e => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); sort(i); } },
		}}, c.name));
	const sort = i => {
		order = i === by ? -order : columns[i].word ? 1 : -1;
		by = i;
		fill();
	};
	const fill = () => {
		heads.forEach((h, i) => i === by ? h.setAttribute("aria-sort", order > 0 ? "ascending" : "descending")
						 : h.removeAttribute("aria-sort"));
		const value = columns[by].value;
		rows.sort((a, b) => {
			const x = value(a), y = value(b);
			return order * (typeof x === "string" ? x.localeCompare(y) : x - y);
		});
		body.replaceChildren(...rows.slice(0, 500).map(r => {
			const line = el("tr", {on: onSelect ? {click: () => onSelect(r)} : {}}, ...columns.map(c =>
				el("td", {class: c.word ? "word" : null}, c.show ? c.show(r) : String(c.value(r)))));
			return line;
		}));
	};
	fill();
	return el("table", {}, el("thead", {}, el("tr", {}, ...heads)), body);
}
