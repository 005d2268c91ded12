// SPDX-License-Identifier: MIT
// elements.js - elements, words and numbers for people: what all pages of kron have in common.

function el(name, attributes, ...children) {
	const e = document.createElement(name);
	for (const [k, v] of Object.entries(attributes ?? {})) {
		if (k === "on")
			for (const [type, f] of Object.entries(v))
				e.addEventListener(type, f);
		else if (v !== false && v !== null && v !== undefined)
			e.setAttribute(k, v === true ? "" : v);
	}
	e.append(...children.filter(c => c !== null && c !== undefined));
	return e;
}

function svg(name, attributes, ...children) {
	const e = document.createElementNS("http://www.w3.org/2000/svg", name);
	for (const [k, v] of Object.entries(attributes ?? {})) {
		if (k === "on")
			for (const [type, f] of Object.entries(v))
				e.addEventListener(type, f);
		else if (v !== null && v !== undefined)
			e.setAttribute(k, typeof v === "number" ? Math.round(v * 100) / 100 : v);
	}
	e.append(...children.filter(c => c !== null && c !== undefined));
	return e;
}

const text = (x, y, words, attributes) => svg("text", {x, y, ...attributes}, words);

// ---- numbers ----

const thousands = n => Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ",");
const percent = (part, all, digits = 1) => all > 0 ? `${(100 * part / all).toFixed(digits)}%` : "-";

const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "\u00b5s"], [1, "ns"]];
function duration(ns) {
	if (Math.abs(ns) < 1000)
		return `${Math.round(ns)} ns`;
	const [scale, unit] = UNITS.find(([s]) => Math.abs(ns) >= s);
	return `${(ns / scale).toFixed(3)} ${unit}`;
}

// Steps of 1, 2 or 5 times a power of ten, about n of them.
function niceStep(span, n) {
	const raw = span / Math.max(1, n), power = 10 ** Math.floor(Math.log10(raw));
	const m = raw / power;
	return (m <= 1 ? 1 : m <= 2 ? 2 : m <= 5 ? 5 : 10) * power;
}
function* ticks(a, b, n) {
	if (!(b > a))
		return;
	const step = niceStep(b - a, n);
	for (let i = Math.ceil(a / step - 1e-9); i * step <= b + step * 1e-9; i++)
		yield i * step;
}

// Cividis: equal steps for everybody, also on grey paper.
const STEPS = ["#fee838", "#e5cf52", "#cbb861", "#b1a36c", "#989075", "#7d7c7a", "#656976", "#4b566d", "#2b446c", "#00224e"];
const stepColour = share => STEPS[Math.max(0, Math.min(STEPS.length - 1, Math.floor(share * STEPS.length)))];
