// The page: its state, which is its address, the list of passes, and the keys.

const $ = (id) => document.getElementById(id);

const app = {
  state: { view: "diff", pass: 0, mode: "inline", line: 0, column: "", file: 0, q: "", changed: false, phase: "", hidden: [] },
  lists: [],

  // --- the address ---

  read() {
    const given = new URLSearchParams(location.hash.slice(1));
    const s = this.state;
    if (VIEWS.some((v) => v.id === given.get("view"))) s.view = given.get("view");
    const pass = trace.steps.findIndex((step) => step.id === given.get("pass"));
    if (pass >= 0) s.pass = pass;
    s.mode = given.get("mode") === "split" ? "split" : "inline";
    s.line = Number(given.get("line")) || 0;
    s.column = given.get("column") || "";
    s.file = Math.min(Math.max(Number(given.get("file")) || 0, 0), Math.max(trace.files.length - 1, 0));
    s.q = given.get("q") || "";
    s.changed = given.get("changed") === "1";
    s.phase = given.get("phase") || "";
    s.hidden = (given.get("hidden") || "").split(",").filter(Boolean);
    return given;
  },

  address() {
    const s = this.state;
    const out = new URLSearchParams({ view: s.view });
    if (trace.steps.length) out.set("pass", trace.steps[s.pass].id);
    if (s.mode === "split") out.set("mode", s.mode);
    if (s.line) out.set("line", s.line);
    if (s.column) out.set("column", s.column);
    if (s.file) out.set("file", s.file);
    if (s.q) out.set("q", s.q);
    if (s.changed) out.set("changed", "1");
    if (s.phase) out.set("phase", s.phase);
    if (s.hidden.length) out.set("hidden", s.hidden.join(","));
    return `#${out}`;
  },

  write() {
    // Without an entry in the history for every line.
    history.replaceState(null, "", this.address());
  },

  // --- what is shown ---

  open(change) {
    if ("pass" in change && change.pass !== this.state.pass) { opened.delete("all"); [...opened].forEach((o) => opened.delete(o)); }
    const moves = "pass" in change || "view" in change;
    Object.assign(this.state, moves && !("line" in change) ? { line: 0, column: "" } : {}, change);
    this.show();
  },

  show() {
    this.write();
    const main = $("main");
    main.textContent = "";
    this.tabs();
    this.passes();
    if (!trace.steps.length) {
      this.lists = summaryView(main);
      return;
    }
    this.lists = VIEWS.find((v) => v.id === this.state.view).fill(main);
    requestAnimationFrame(() => { this.lists.forEach((list) => list.draw()); this.find(); });
  },

  // The line of the address, picked and brought into sight; without one the first hit of the search.
  find() {
    const { line, column, view } = this.state;
    if (!line) {
      if (search.hits) for (const list of this.lists) list.show(list.find(isHit, -1, 1));
      return;
    }
    const list = view === "columns" ? this.lists.find((l) => l.column === (column || "ir")) : this.lists[this.lists.length - 1];
    if (!list) return;
    const n = list.entries.findIndex((e) => e.n === line && e.cls !== "del" && e.cls !== "went");
    if (n >= 0) { list.at = n; list.show(n, true); this.choose(list.entries[n], list); list.paint(); }
  },

  choose(entry, from) {
    gather(picked, entry);
    for (const list of this.lists) {
      if (list === from) continue;
      const n = list.entries.findIndex((e) => isIn(picked, e));
      if (n >= 0) list.show(n);
    }
    this.paint();
  },

  pick(entry, column, list, n) {
    if (entry.gap !== undefined) { opened.add(entry.gap); return this.show(); }
    if (entry.n !== undefined) {
      this.state.line = entry.n;
      this.state.column = column === "diff" ? "" : column;
      this.write();
    }
    this.choose(entry, list);
  },

  paint() { for (const list of this.lists) list.paint(); },

  say(text) { $("live").textContent = text; },

  tabs() {
    $("tabs").replaceChildren(...VIEWS.map((view, n) => make("button", {
      type: "button", role: "tab", id: `tab-${view.id}`, "aria-selected": String(view.id === this.state.view),
      title: `${view.title} (${n + 1})`, onclick: () => this.open({ view: view.id }),
    }, view.title)));
  },

  // --- the list of passes ---

  isListed(step) {
    const { changed, phase, q } = this.state;
    if ((changed || step.depth) && !step.rows && step.id !== "emit") return false;
    if (phase && step.phase !== phase) return false;
    return !q || search.test(step.name) || hitsIn(step.document) > 0 || step.decisions.some((d) => search.test(d.said));
  },

  passes() {
    const longest = Math.max(...trace.steps.map((s) => s.seconds), 1e-9);
    const nodes = [];
    let phase = null, listed = 0, hits = 0;
    trace.steps.forEach((step, n) => {
      if (!this.isListed(step)) return;
      if (!step.depth) listed++;
      const found = hitsIn(step.document);
      hits += found;
      const title = step.attempt ? `${step.phase}, attempt ${step.attempt + 1}` : step.phase;
      if (title !== phase) { phase = title; nodes.push(make("li", {}, make("h2", {}, phase))); }
      const bar = make("span", { class: "bar" });
      bar.style.transform = `scaleX(${step.seconds / longest})`;
      nodes.push(make("li", {}, make("button", {
        type: "button", class: `pass${step.rows ? "" : " same"}${step.depth ? " inner" : ""}`, "aria-current": n === this.state.pass ? "true" : null,
        "data-pass": step.id, onclick: () => this.open({ pass: n, view: this.state.view === "columns" ? "columns" : "diff" }),
      }, make("span", { class: "mark", "aria-hidden": "true" }, step.rows ? "●" : "○"),
        make("span", { class: "name", title: step.name }, step.name.split("/").pop()), make("span", { class: "time" }, duration(step.seconds)),
        make("span", { class: "what", title: step.decided || null }, [found && search.hits ? `${found} hits` : "", step.decided, step.rows ? step.summary || "places changed" : ""].filter(Boolean).join(" · ")), bar)));
    });
    if (trace.failure) nodes.push(make("li", {}, make("button", { type: "button", class: "pass failed", onclick: () => this.open({ view: "summary" }) },
      make("span", { class: "mark" }, "✗"), make("span", { class: "name" }, trace.failure.step), make("span", {}, ""),
      make("span", { class: "what" }, trace.failure.message))));
    $("passes").replaceChildren(...nodes);
    const current = $("passes").querySelector("[aria-current]");
    if (current) current.scrollIntoView({ block: "nearest" });
    const total = trace.steps.filter((step) => !step.depth).length;
    $("found").textContent = this.state.q ? `${hits} lines in ${listed} of ${total} passes` : `${listed} of ${total} passes`;
  },

  step(by) {
    for (let n = this.state.pass + by; n >= 0 && n < trace.steps.length; n += by) {
      if (this.isListed(trace.steps[n])) {
        this.open({ pass: n });
        this.say([trace.steps[n].name, trace.steps[n].decided, trace.steps[n].summary || "no change"].filter(Boolean).join(", "));
        return;
      }
    }
  },

  // The next hit of the search, or the next change.
  next(by) {
    const list = this.lists.find((l) => l.node.contains(document.activeElement)) || this.lists[this.lists.length - 1];
    if (!list) return;
    let from = list.at < 0 ? (by > 0 ? -1 : list.entries.length) : list.at;
    const test = search.hits ? isHit : (e) => e.change;
    if (!search.hits) while (list.entries[from + by] && list.entries[from] && list.entries[from].change && list.entries[from + by].change) from += by;
    const n = list.find(test, from, by);
    if (n >= 0) { list.go(n); list.node.focus({ preventScroll: true }); }
  },

  toggleGaps() { if (!opened.delete("all")) opened.add("all"); this.show(); },

  theme() {
    const dark = document.documentElement.dataset.theme === "dark";
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("tilelang-trace-theme", document.documentElement.dataset.theme); } catch { /* no storage for files here */ }
  },

  async copy(text, said) {
    try { await navigator.clipboard.writeText(text); } catch {
      const area = make("textarea", { class: "hidden" });
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    this.say(said);
  },
};

const KEYS = [
  ["j  k", "next, previous pass", { j: () => app.step(1), k: () => app.step(-1) }],
  ["n  p", "next, previous hit of the search, or change", { n: () => app.next(1), p: () => app.next(-1) }],
  ["/", "search", { "/": () => { $("search").focus(); $("search").select(); } }],
  ["1 – 5", "views", Object.fromEntries(VIEWS.map((v, n) => [String(n + 1), () => app.open({ view: v.id })]))],
  ["s", "inline or side by side", { s: () => app.open({ mode: app.state.mode === "split" ? "inline" : "split" }) }],
  ["x", "unchanged lines too", { x: () => app.toggleGaps() }],
  ["b", "hide the list of passes", { b: () => { document.body.classList.toggle("wide"); app.lists.forEach((l) => l.draw()); } }],
  ["c", "changed passes only", { c: () => $("only-changed").click() }],
  ["↑ ↓ Enter", "lines of a list; light what belongs to one", {}],
  ["y", "copy the text", { y: () => $("copy").click() }],
  ["l", "copy a link to this place", { l: () => $("link").click() }],
  ["+ − 0 1", "of an enlarged drawing: larger, smaller, as wide as the window, as drawn", {}],
  ["j  k", "of an enlarged drawing: the next, the one before", {}],
  ["t", "light or dark", { t: () => app.theme() }],
  ["Esc", "light nothing", { Escape: () => { gather(picked, null); gather(lit, null); app.paint(); } }],
  ["?", "these keys", { "?": () => $("keys").showModal() }],
];
const ACTIONS = Object.assign({}, ...KEYS.map(([, , actions]) => actions));

function start() {
  let theme = null;
  try { theme = localStorage.getItem("tilelang-trace-theme"); } catch { /* no storage for files here */ }
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = theme || (dark ? "dark" : "light");
  $("facts").textContent = trace.values.map(([name, value]) => `${name}=${value}`).join(", ");
  $("facts").title = $("facts").textContent;
  for (const phase of new Set(trace.steps.map((s) => s.phase))) $("phase").append(make("option", { value: phase }, phase));
  $("keylist").append(...KEYS.flatMap(([keys, what]) => [make("dt", {}, make("kbd", {}, keys)), make("dd", {}, what)]));

  const firstChange = trace.steps.findIndex((step) => step.rows);
  app.state.pass = Math.max(firstChange, 0);
  if (trace.failure) app.state.view = "summary";
  const given = app.read();
  setSearch(app.state.q);
  if (app.state.q && !given.has("pass")) {
    const hit = (step) => app.isListed(step) && hitsIn(step.document) > 0;
    const first = trace.steps.findIndex(hit);
    if (first >= 0 && !hit(trace.steps[app.state.pass])) app.state.pass = first;
  }
  $("search").value = app.state.q;
  $("only-changed").checked = app.state.changed;
  $("phase").value = app.state.phase;

  let waiting = 0;
  $("search").addEventListener("input", (event) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      app.state.q = event.target.value;
      setSearch(app.state.q);
      app.write();
      app.passes();
      app.paint();
    }, 80);
  });
  $("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") app.next(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") $("main").focus();
  });
  $("only-changed").addEventListener("change", (event) => { app.state.changed = event.target.checked; app.write(); app.passes(); });
  $("phase").addEventListener("change", (event) => { app.state.phase = event.target.value; app.write(); app.passes(); });
  $("theme").addEventListener("click", () => app.theme());
  $("help").addEventListener("click", () => $("keys").showModal());
  $("copy").addEventListener("click", () => {
    const list = app.lists.find((l) => l.node.contains(document.activeElement)) || app.lists[app.lists.length - 1];
    app.copy(list ? list.text : $("main").innerText, "copied");
  });
  $("link").addEventListener("click", () => app.copy(location.href, "link copied"));
  addEventListener("hashchange", () => { app.read(); app.show(); });
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    const action = ACTIONS[event.key];
    if (action) { action(); event.preventDefault(); }
  });
  const splitter = $("splitter"), side = document.querySelector("aside");
  const widen = (width) => {
    side.style.width = `${Math.min(Math.max(width, 120), innerWidth / 2)}px`;
    splitter.setAttribute("aria-valuenow", String(side.offsetWidth));
    app.lists.forEach((l) => l.draw());
  };
  splitter.addEventListener("pointerdown", (event) => {
    splitter.setPointerCapture(event.pointerId);
    splitter.onpointermove = (move) => widen(move.clientX);
    splitter.onpointerup = () => { splitter.onpointermove = null; };
  });
  splitter.addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft") widen(side.offsetWidth - 20);
    if (event.key === "ArrowRight") widen(side.offsetWidth + 20);
  });
  drawing.listen();
  app.show();
}

start();
