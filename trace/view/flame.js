// SPDX-License-Identifier: MIT
// flame.js - the flame graph, root on top: each box is a way to a function, as wide as the time
// of its calls; and the table of functions.

const flame = {
	id: "flame", title: "Flame graph", ROW: 18, root: tree[0], selected: null, search: "",
	chosen: null, // a function from the table: {fn, words, ways}

	get empty() {
		return !tree[0].total && !functions.size;
	},

	build(section) {
		this.section = section;
		this.surface = new Surface("Flame graph");
		this.tall = el("div", {class: "tall"});
		this.box = el("div", {class: "canvas", tabindex: 0, "aria-label": "Flame graph; press ? for its keys"},
			      this.surface.canvas, this.tall);
		this.find = el("input", {type: "search", placeholder: "find a function  ( / )", size: 24,
					 "aria-label": "find a function", on: {input: () => this.lookFor(this.find.value)}});
		this.where = el("span", {class: "note", id: "flame-where"});
		this.found = el("span", {class: "note found"});
		const columns = [
			{name: "Self", value: f => f.self, show: f => duration(f.self)},
			{name: "Self %", value: f => f.self, show: f => percent(f.self, tree[0].total)},
			{name: "Total", value: f => f.total, show: f => duration(f.total)},
			{name: "Calls", value: f => f.calls, show: f => thousands(f.calls)},
			{name: "Avg", value: f => f.avg, show: f => duration(f.avg)},
			{name: "Min", value: f => f.min, show: f => duration(f.min)},
			{name: "Max", value: f => f.max, show: f => duration(f.max)},
			{name: "Inferred ends", value: f => f.inferred, show: f => f.inferred ? thousands(f.inferred) : ""},
			{name: "Function", word: true, value: f => f.name},
			{name: "Module", word: true, value: f => f.module},
		];
		section.append(
			el("div", {class: "bar"}, el("h2", {}, "Flame graph"), this.where, el("span", {class: "space"}), this.found, this.find,
			   el("button", {type: "button", on: {click: () => this.go(tree[0])}}, "Whole (0)")),
			el("p", {class: "note"}, `All threads together, ${duration(tree[0].total)} of calls, by the way they were called: width is time with callees, what no callee covers is the function's own.`),
			this.stage = el("div", {class: "stage"}, this.box),
			el("div", {class: "bar"}, el("h2", {}, "Functions"), el("span", {class: "note"},
				`${thousands(functions.size)} functions; click a column to sort by it, a row to see it above` +
				(functions.size > 500 ? "; the first 500 of the order are listed" : ""))),
			el("div", {class: "tablebox", id: "functions"}, sortedTable(columns, [...functions.values()], 0, f => this.choose(f))));
		this.listen();
		new ResizeObserver(() => this.wish()).observe(this.box);
	},

	wish,

	go(node) {
		this.chosen = null;
		this.zoom(node);
	},

	zoom(node) {
		this.root = node;
		this.selected = node;
		this.box.scrollTop = 0;
		this.wish();
	},

	// a function, by all ways to it: what they have in common, and their time, of calls in
	// calls of itself once
	choose(f) {
		const ways = tree.filter(n => n.fn === f.n), outer = this.outermost(ways);
		let common = outer[0] ?? tree[0];
		for (const n of outer)
			while (!this.isBelow(n, common))
				common = common.parent;
		this.find.value = "";
		this.lookFor("");
		this.chosen = {fn: f.n, words: ways.length ? this.sumOf(outer, ways) : `${f.name}: ${thousands(f.calls)} calls, ${duration(f.total)}, in ways that are too small to be drawn`};
		this.zoom(common);
	},

	isBelow(node, above) {
		while (node && node !== above)
			node = node.parent;
		return Boolean(node);
	},

	// those of the nodes that are below no other of them
	outermost(nodes) {
		const all = new Set(nodes);
		return nodes.filter(n => {
			let up = n.parent;
			while (up && !all.has(up))
				up = up.parent;
			return !up;
		});
	},

	sumOf(outer, ways) {
		const total = outer.reduce((sum, n) => sum + n.total, 0), calls = ways.reduce((sum, n) => sum + n.calls, 0);
		return `${nodeName(ways[0])}: ${thousands(calls)} calls${ways.length > 1 ? ` in ${ways.length} ways` : ""}, ${duration(total)}, ${percent(total, tree[0].total)} of all`;
	},

	// no higher than the whole is deep: the table has what is left, a third at least
	layOut() {
		const width = this.box.clientWidth;
		let deepest = 0;
		for (const n of tree)
			if (n.total * width >= tree[0].total * 0.5)
				deepest = Math.max(deepest, n.depth);
		this.stage.style.flex = `0 1 ${(deepest + 2) * this.ROW + 2}px`;
	},

	draw() {
		readColours();
		this.layOut();
		const s = this.surface, width = printing ? 1000 : this.box.clientWidth;
		this.boxes = [];
		this.scroll = printing ? 0 : this.box.scrollTop;
		s.resize(width, printing ? 420 : this.box.clientHeight);
		// the way to the root, then the root and what is below it
		const way = [];
		for (let n = this.root.parent; n; n = n.parent)
			way.unshift(n);
		way.forEach((n, i) => this.put(n, 0, width, i, true));
		this.deepest = way.length;
		this.walk(this.root, 0, width, way.length);
		this.tall.style.height = `${(this.deepest + 2) * this.ROW}px`;
		for (const b of this.boxes)
			this.paint(b);
		const r = this.root;
		this.where.textContent = this.chosen?.words ?? (r.fn === -1 ? "" : this.sumOf([r], [r]));
		this.surface.canvas.setAttribute("aria-label", `Flame graph of ${nodeName(r)}, ${duration(r.total)}; the table below has its numbers`);
	},

	put(node, x, w, level, isWay) {
		this.deepest = Math.max(this.deepest, level);
		this.boxes.push({node, x, w, y: level * this.ROW, isWay});
	},

	walk(root, x, width, level) {
		const work = [[root, x, width, level]];
		while (work.length) {
			const [node, left, w, depth] = work.pop();
			this.put(node, left, w, depth);
			let at = left;
			for (const c of node.children) {
				const cw = node.total > 0 ? w * Math.min(1, c.total / node.total) : 0;
				if (cw < 0.5)
					continue;
				work.push([c, at, Math.min(cw, left + w - at), depth + 1]);
				at += cw;
			}
		}
	},

	paint(b) {
		const s = this.surface, y = b.y - this.scroll;
		if (y + this.ROW < 0 || y > s.height)
			return;
		const name = nodeName(b.node), colour = b.node.fn < 0 ? QUIET : functionColour(b.node.fn);
		const found = this.chosen ? b.node.fn === this.chosen.fn : !this.search || name.toLowerCase().includes(this.search);
		s.g.globalAlpha = (b.isWay ? 0.55 : 1) * (found ? 1 : 0.25);
		s.rect(b.x, y, Math.max(0.7, b.w - (b.w > 3 ? 1 : 0)), this.ROW - 1, colour.fill);
		s.font(11.5);
		if (b.w > 26)
			s.name(name, b.x + 4, y + this.ROW / 2, b.w - 8, colour.ink);
		s.g.globalAlpha = 1;
		if (b.node === this.selected) {
			s.g.strokeStyle = paint.select;
			s.g.lineWidth = 2;
			s.g.strokeRect(b.x + 1, y + 1, Math.max(2, b.w - 3), this.ROW - 3);
		}
	},

	at(x, y) {
		return this.boxes?.find(b => x >= b.x && x < b.x + b.w && y + this.scroll >= b.y && y + this.scroll < b.y + this.ROW)?.node;
	},

	wordsOf(n) {
		return `${nodeName(n)}${n.fn >= 0 ? `  (${functions.get(n.fn)?.module ?? "?"})` : ""}\n${thousands(n.calls)} calls, ${duration(n.total)}, ` +
			`${percent(n.total, tree[0].total)} of all` + (n.parent && n.parent.fn >= 0 ? `, ${percent(n.total, n.parent.total)} of ${nodeName(n.parent)}` : "") +
			(n.fn === -1 ? "" : `\nself ${duration(n.self)}`);
	},

	listen() {
		const c = this.surface.canvas;
		this.box.addEventListener("scroll", () => this.wish());
		c.addEventListener("pointermove", e => {
			const n = this.at(...placeIn(e, c));
			showTip(n ? this.wordsOf(n) : "", e.clientX, e.clientY);
		});
		c.addEventListener("pointerleave", hideTip);
		c.addEventListener("click", e => {
			const n = this.at(...placeIn(e, c));
			if (n)
				this.go(n);
		});
	},

	lookFor(words) {
		this.search = words.toLowerCase();
		this.chosen = null;
		const ways = this.search ? tree.filter(n => n.fn >= 0 && nodeName(n).toLowerCase().includes(this.search)) : [];
		const sum = this.outermost(ways).reduce((s, n) => s + n.total, 0);
		this.found.textContent = this.search ? `${ways.length} ways, ${duration(sum)}, ${percent(sum, tree[0].total)}` : "";
		this.wish();
	},

	step(node, by) {
		const all = node.parent?.children ?? [node], at = all.indexOf(node) + by;
		return all[Math.max(0, Math.min(all.length - 1, at))];
	},

	key(e) {
		const n = this.selected ?? this.root;
		const select = x => {
			if (x)
				this.selected = x;
			status(this.wordsOf(this.selected).replace(/\n/g, "; "));
			this.wish();
			return true;
		};
		switch (e.key) {
		case "ArrowDown": return select(n.children[0]);
		case "ArrowUp": return select(n.parent);
		case "ArrowLeft": return select(this.step(n, -1));
		case "ArrowRight": return select(this.step(n, 1));
		case "Enter": case "z": this.go(n); return true;
		case "Backspace": case "u": this.go(this.root.parent ?? this.root); return true;
		case "0": case "Home": this.go(tree[0]); return true;
		case "/": this.find.focus(); return true;
		case "Escape": this.find.value = ""; this.lookFor(""); this.go(tree[0]); return true;
		}
		return false;
	},

	keys: [["arrows", "caller, callee, neighbours"], ["Enter, or click", "zoom to a box"], ["u, Backspace", "back to its caller"],
	       ["0", "everything"], ["/, ctrl+F", "find functions"], ["click on a row", "a function, by all ways to it"]],
};
