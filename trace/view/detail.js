// SPDX-License-Identifier: MIT
// detail.js - calls too short for the picture of the whole: unpacked block by block when the
// timeline shows a piece in which they can be seen.  See view_detail.c.

class Block {
	constructor(lane, [level, a, b, count, at, length]) {
		Object.assign(this, {lane, level, a, b, count, at, length, spans: null, asked: false, used: 0});
	}

	async load() {
		let bytes = bytesOf(detail.text.substr(this.at, this.length));
		if (detail.packed) {
			const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(detail.packed));
			bytes = new Uint8Array(await new Response(unpacked).arrayBuffer());
		}
		const n = new Numbers(bytes), s = new Spans(this.count);
		let end = data.from_ns;
		for (let i = 0; i < this.count; i++)
			s.end[i] = end += n.signed();
		for (let i = 0; i < this.count; i++)
			s.begin[i] = s.end[i] - n.next();
		for (const column of [s.depth, s.fn, s.flags])
			for (let i = 0; i < this.count; i++)
				column[i] = n.next();
		this.spans = s;
	}
}

const detail = {
	MOST: 800,       // blocks that are kept unpacked, of 4,096 calls or 100 KB each
	AT_ONCE: 160,    // that one thread may ask for: more is nothing that anybody could see
	STRIP: 24,       // blocks for the exact strip of a thread
	loaded: [], waiting: [], working: 0, time: 0, onLoad: () => {},

	begin() {
		const text = document.getElementById("kron-detail"), index = document.getElementById("kron-detail-index");
		this.least = Infinity;
		for (const t of threads)
			t.missing = t.left_out ?? 0;
		if (!text || !index)
			return;
		const found = JSON.parse(index.textContent);
		if (found.packed && typeof DecompressionStream === "undefined") {
			this.unable = true;
			return;
		}
		this.packed = found.packed;
		this.factor = found.level_factor;
		this.least = found.least_ns;
		this.text = text.textContent;
		for (const l of found.lanes) {
			const t = threadOfLane.get(l.lane), blocks = l.blocks.map(b => new Block(l.lane, b));
			t.depth = l.depth;
			t.dropped = l.dropped;
			t.inDetail = blocks.reduce((n, b) => n + b.count, 0);
			t.missing -= t.inDetail;
			t.levels = this.byLevel(blocks);
			t.offLevels = this.byLevel(l.off.map(b => new Block(l.lane, b)));
			t.offInDetail = l.off.reduce((n, b) => n + b[3], 0);
		}
	},

	// of one level, a thread's blocks come by end; they overlap by less than a call of theirs
	byLevel(blocks) {
		return [...new Set(blocks.map(b => b.level))].sort((x, y) => y - x).map(level =>
			({level, longest: tickNs * this.factor ** (level + 1), blocks: blocks.filter(b => b.level === level)}));
	},

	// blocks of a level that hold something of [a, b]
	within(level, a, b) {
		let low = 0, high = level.blocks.length;
		while (low < high) {
			const mid = (low + high) >> 1;
			if (level.blocks[mid].b < a)
				low = mid + 1;
			else
				high = mid;
		}
		const out = [];
		for (; low < level.blocks.length && level.blocks[low].a <= b + level.longest; low++)
			if (level.blocks[low].a <= b)
				out.push(level.blocks[low]);
		return out;
	},

	use(blocks) { // those that are unpacked; the others are asked for
		this.time++;
		for (const b of blocks) {
			b.used = this.time;
			if (!b.asked) {
				b.asked = true;
				this.waiting.push(b);
			}
		}
		this.work();
		return blocks.filter(b => b.spans);
	},

	// calls of [a, b] that are at least half a pixel long, as Spans; long ones of the page are none of them
	of(thread, a, b, pixel) {
		return this.seen(thread.levels, a, b, pixel);
	},

	// likewise, when the thread was off the CPUs: {a, b, preempted}
	off(thread, a, b, pixel) {
		const out = [];
		for (const s of this.seen(thread.offLevels, a, b, pixel))
			for (let row = s.rows[0] ?? [], k = s.firstInRow(row, a); k < row.length && s.begin[row[k]] <= b; k++)
				out.push({a: s.begin[row[k]], b: s.end[row[k]], preempted: s.fn[row[k]] !== 0});
		return out;
	},

	seen(levels, a, b, pixel) {
		const blocks = [];
		for (const l of levels ?? []) {
			if (l.longest <= pixel / 2)
				break;
			const more = this.within(l, a, b);
			if (blocks.length + more.length > this.AT_ONCE)
				break;
			blocks.push(...more);
		}
		return this.use(blocks).map(block => block.spans);
	},

	// who was on top of the thread's stack in [a, b]; null: it has several, some calls are not
	// there, or too many
	statesIn(thread, a, b) {
		if (!thread.left_out)
			return thread.stacks.length > 1 ? null : thread.spans.states;
		if (thread.stacks.length > 1 || !thread.levels || thread.missing || thread.depth > DEEPEST || thread.spans.rows.length && thread.spans.deeper)
			return null;
		const blocks = thread.levels.flatMap(l => this.within(l, a, b));
		if (blocks.length > this.STRIP || this.use(blocks).length < blocks.length)
			return null;
		if (thread.strip && thread.strip.a === a && thread.strip.b === b)
			return thread.strip.states;
		const calls = [];
		for (const s of [thread.spans, ...blocks.map(block => block.spans)])
			for (const row of s.rows)
				for (let k = s.firstInRow(row, a); k < row.length && s.begin[row[k]] <= b; k++)
					calls.push([s.begin[row[k]], s.depth[row[k]], s.end[row[k]], s.fn[row[k]]]);
		calls.sort((x, y) => x[0] - y[0] || x[1] - y[1]);
		const states = statesOf({count: calls.length, begin: calls.map(c => c[0]), end: calls.map(c => c[2]), fn: calls.map(c => c[3])});
		thread.strip = {a, b, states};
		return states;
	},

	get pending() {
		return this.waiting.length + this.working;
	},

	work() {
		while (this.working < 4 && this.waiting.length) {
			const block = this.waiting.pop(); // what was asked for last is what is looked at
			this.working++;
			block.load().then(() => this.loaded.push(block), error => failed(`a block of short calls: ${error}`)).finally(() => {
				this.working--;
				this.work();
				if (!this.pending)
					this.makeRoom();
				this.onLoad();
			});
		}
	},

	makeRoom() {
		if (this.loaded.length <= this.MOST)
			return;
		this.loaded.sort((x, y) => y.used - x.used);
		for (const block of this.loaded.splice(this.MOST)) {
			block.spans = null;
			block.asked = false;
		}
	},
};
detail.begin();
