"use strict";
// Lists of lines of which only those in sight exist. Text is set as text, never as markup.

const ROW = 18;
const SPARE = 20;

function make(tag, properties, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// Parts of a line: its colours, with the words that differ marked.
function paintLine(into, text, runs, words) {
  const indent = text.length - text.trimStart().length;
  const cuts = [];
  let at = 0;
  for (const found of (runs || "").matchAll(/([a-z_])(\d+)/g)) {
    const end = at + Number(found[2]);
    if (found[1] !== "_") cuts.push([at, end, found[1]]);
    at = end;
  }
  const edges = new Set([0, text.length]);
  for (const [start, end] of cuts) edges.add(start).add(end);
  for (const [start, end] of words || []) edges.add(start).add(end);
  if (indent) edges.add(indent);
  const points = [...edges].filter((p) => p <= text.length).sort((a, b) => a - b);
  let cut = 0;
  for (let n = 0; n + 1 < points.length; n++) {
    const start = points[n], end = points[n + 1];
    while (cut < cuts.length && cuts[cut][1] <= start) cut++;
    const colour = cut < cuts.length && cuts[cut][0] <= start ? cuts[cut][2] : null;
    const marked = (words || []).some(([a, b]) => a <= start && end <= b);
    const part = text.slice(start, end);
    if (end <= indent && !marked) { into.append(make("span", { class: "indent" }, part)); continue; }
    if (!colour && !marked) { into.append(part); continue; }
    into.append(make(marked ? "mark" : "span", { class: colour || null }, part));
  }
}

class Rows {
  // `entries`: [{text, runs, n, sign, cls, span, others, words, python, key}]
  constructor(label, entries, events) {
    this.events = events;
    this.space = make("div", { class: "space" });
    this.node = make("div", { class: "list", tabindex: 0, role: "list", "aria-label": label }, this.space);
    this.drawn = new Map();
    this.at = this.waits = -1;
    this.set(entries);
    let asked = false;
    this.node.addEventListener("scroll", () => {
      if (asked) return;
      asked = true;
      requestAnimationFrame(() => { asked = false; this.draw(); if (this.follows) this.follows(); });
    }, { passive: true });
    const row = (event) => {
      const found = event.target.closest(".row");
      return found ? Number(found.dataset.row) : -1;
    };
    this.node.addEventListener("mouseover", (event) => this._hover(row(event)));
    this.node.addEventListener("mouseleave", () => this._hover(-1));
    this.node.addEventListener("click", (event) => {
      const n = row(event);
      if (n >= 0 && String(getSelection()) === "") this.pick(n);
    });
    this.node.addEventListener("keydown", (event) => this._key(event));
    new ResizeObserver(() => this.draw()).observe(this.node);
  }

  set(entries) {
    this.entries = entries;
    for (const node of this.drawn.values()) node.remove();
    this.drawn.clear();
    this.space.style.height = `${entries.length * ROW}px`;
    this.draw();
  }

  draw() {
    const height = this.node.clientHeight;
    if (!height) return;
    if (this.waits >= 0) {
      this.node.scrollTop = Math.max(0, this.waits * ROW - height / 2 + ROW);
      this.waits = -1;
    }
    const first = Math.max(0, Math.floor(this.node.scrollTop / ROW) - SPARE);
    const last = Math.min(this.entries.length, Math.ceil((this.node.scrollTop + height) / ROW) + SPARE);
    for (const [n, node] of this.drawn) {
      if (n < first || n >= last) { node.remove(); this.drawn.delete(n); }
    }
    const fresh = document.createDocumentFragment();
    for (let n = first; n < last; n++) {
      if (this.drawn.has(n)) continue;
      const node = this._row(n);
      this.drawn.set(n, node);
      fresh.append(node);
    }
    this.space.append(fresh);
  }

  _row(n) {
    const entry = this.entries[n];
    const node = make("div", {
      class: this._classes(n), role: "listitem", "data-row": n,
      "aria-setsize": this.entries.length, "aria-posinset": n + 1,
    });
    node.style.top = `${n * ROW}px`;
    node.append(make("span", { class: "n" }, entry.n === undefined ? "" : String(entry.n)));
    if (entry.sign !== undefined) node.append(make("span", { class: "sign" }, entry.sign));
    const code = make("span", { class: "code" });
    paintLine(code, entry.text, entry.runs, entry.words);
    node.append(code);
    return node;
  }

  _classes(n) {
    const entry = this.entries[n];
    const lit = this.events.isLit(entry);
    return ["row", entry.cls, entry.span >= 0 || entry.python ? "placed" : "", lit,
      this.events.isHit(entry) ? "hit" : "", n === this.at ? "at" : ""].filter(Boolean).join(" ");
  }

  // Classes of what is in sight, after what is lit or searched has changed.
  paint() {
    for (const [n, node] of this.drawn) {
      const classes = this._classes(n);
      if (node.className !== classes) node.className = classes;
    }
  }

  _hover(n) { this.events.hover(n < 0 ? null : this.entries[n]); }

  pick(n) {
    this.at = n;
    this.events.pick(this.entries[n], this, n);
    this.paint();
  }

  // Brings a row into the middle unless it is in sight already.
  show(n, always) {
    if (n < 0) return;
    const top = n * ROW, height = this.node.clientHeight;
    if (!height) { this.waits = n; return; }  // until it is in sight itself
    const inSight = top >= this.node.scrollTop && top + ROW <= this.node.scrollTop + height;
    if (!inSight || always) this.node.scrollTop = Math.max(0, top - height / 2 + ROW);
    this.draw();
  }

  go(n) {
    this.at = Math.max(0, Math.min(this.entries.length - 1, n));
    this.show(this.at);
    this._hover(this.at);
    this.paint();
  }

  find(test, from, step) {
    for (let n = from + step; n >= 0 && n < this.entries.length; n += step) if (test(this.entries[n])) return n;
    return -1;
  }

  _key(event) {
    const page = Math.floor(this.node.clientHeight / ROW) - 2;
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in moves) this.go(this.at + moves[event.key]);
    else if (event.key === "Home") this.go(0);
    else if (event.key === "End") this.go(this.entries.length - 1);
    else if (event.key === "Enter" && this.at >= 0) this.pick(this.at);
    else return;
    event.preventDefault();
  }

  get text() { return this.entries.filter((e) => !e.gap).map((e) => (e.sign === undefined ? "" : e.sign + " ") + e.text).join("\n"); }
}
