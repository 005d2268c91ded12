// SPDX-License-Identifier: MIT
// draw.js - canvases: sharp on every screen, axes of time, boxes with labels, hatching.

class Surface {
	constructor(name) {
		this.canvas = el("canvas", {role: "img", "aria-label": name});
		this.g = this.canvas.getContext("2d");
	}
	resize(width, height) {
		const ratio = printing ? 2 : window.devicePixelRatio || 1;
		const w = Math.max(1, Math.round(width * ratio)), h = Math.max(1, Math.round(height * ratio));
		if (this.canvas.width !== w || this.canvas.height !== h) {
			this.canvas.width = w;
			this.canvas.height = h;
			this.canvas.style.width = `${width}px`;
			this.canvas.style.height = `${height}px`;
		}
		this.width = width;
		this.height = height;
		this.g.setTransform(ratio, 0, 0, ratio, 0, 0);
		this.g.fillStyle = paint.paper;
		this.g.fillRect(0, 0, width, height);
		this.g.textBaseline = "middle";
		this.font(12);
	}
	font(size, weight = 400) {
		this.g.font = `${weight} ${size}px system-ui, "DejaVu Sans", Arial, sans-serif`;
		this.size = size;
	}
	rect(x, y, w, h, fill) {
		this.g.fillStyle = fill;
		this.g.fillRect(x, y, w, h);
	}
	line(x1, y1, x2, y2, colour, width = 1) {
		this.g.strokeStyle = colour;
		this.g.lineWidth = width;
		this.g.beginPath();
		this.g.moveTo(x1, y1);
		this.g.lineTo(x2, y2);
		this.g.stroke();
	}
	// a name, as much as fits of the longest of its labels that does
	name(name, x, y, room, colour) {
		const labels = labelsOf(name), fits = l => l.length * this.size * 0.4 <= room && this.g.measureText(l).width <= room;
		this.words(room < 12 ? name : labels.find(fits) ?? labels[labels.length - 1], x, y, room, colour);
	}
	// words, as many as fit; measured roughly first, for there are thousands of boxes
	words(s, x, y, room, colour, align = "left") {
		const g = this.g;
		if (room < 12)
			return;
		if (s.length * this.size > room && g.measureText(s).width > room) {
			let n = Math.min(s.length - 1, Math.ceil(room / (this.size * 0.4)));
			while (n > 1 && g.measureText(`${s.slice(0, n)}\u2026`).width > room)
				n--;
			if (n < 2)
				return;
			s = `${s.slice(0, n)}\u2026`;
		}
		g.fillStyle = colour;
		g.textAlign = align;
		g.fillText(s, x, y);
		g.textAlign = "left";
	}
	hatch(x, y, w, h, colour) {
		const g = this.g;
		g.save();
		g.beginPath();
		g.rect(x, y, w, h);
		g.clip();
		g.strokeStyle = colour;
		g.lineWidth = 1;
		g.beginPath();
		for (let i = Math.floor((x - h) / 6) * 6; i < x + w; i += 6) {
			g.moveTo(i, y + h);
			g.lineTo(i + h, y);
		}
		g.stroke();
		g.restore();
	}
	// an axis of time from x0 to x1
	timeAxis(a, b, x0, x1, y, down) {
		const step = niceStep(b - a, (x1 - x0) / 130), scale = (x1 - x0) / (b - a);
		this.font(11);
		for (const t of ticks(a, b, (x1 - x0) / 130)) {
			const x = Math.round(x0 + (t - a) * scale) + 0.5;
			this.line(x, y - 5, x, down, paint.line);
			this.words(moment(t, step), x + 3, y - 8, 120, paint.quiet);
		}
	}
}

// Calls f with pointer positions that count from the element's corner.
function placeIn(e, element) {
	const r = element.getBoundingClientRect();
	return [e.clientX - r.left, e.clientY - r.top];
}
