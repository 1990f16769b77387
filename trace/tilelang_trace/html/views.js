// One function a view: it fills `main` and gives the lists that are to be painted.

const opened = new Set();

function events(column) {
  return {
    isLit: (entry) => (isIn(picked, entry) ? "picked" : isIn(lit, entry) ? "lit" : ""),
    isHit,
    hover: (entry) => { gather(lit, entry); app.paint(); },
    pick: (entry, list, n) => app.pick(entry, column, list, n),
  };
}

function button(text, title, action, pressed) {
  return make("button", { type: "button", title, "aria-pressed": pressed === undefined ? null : String(pressed), onclick: action }, text);
}

function stepBar(step, extra) {
  const changes = step.rows ? step.summary || "places in Python changed" : "no change";
  const counts = step.decided ? `${step.decided} · ${changes}` : changes;
  return make("div", { class: "bar2" },
    make("strong", {}, step.name), make("span", {}, duration(step.seconds)), make("span", { class: "counts", title: counts }, counts),
    make("span", { class: "reason", title: step.reason }, step.reason), ...extra);
}

// Names between backquotes as code.
function marked(text) {
  return text.split("`").map((part, n) => (n % 2 ? make("code", {}, part) : part)).filter((part) => part !== "");
}

// What the assembler is told of places stands in the columns beside it.
const NOISE = /^\s*(\.loc\b|\/\/ (begin|end) inline asm|\/\/ *$|$)/;

function decisionList(step) {
  if (!step.decisions.length) return null;
  return make("ul", { class: "decisions", "aria-label": "Decisions of this pass" }, ...step.decisions.map((d) =>
    make("li", {}, make("b", {}, d.kind), make("span", {}, place(d.span)),
      make("div", {}, ...marked(d.text), d.why ? make("span", { class: "why" }, " (", ...marked(d.why), ")") : "",
        ...d.places.map(([span, text]) => make("span", { class: "why" }, " · ", place(span), " ", ...marked(text))),
        ...d.rejected.map(([way, why]) => make("div", { class: "why" }, make("em", {}, `not ${way}`), ": ", ...marked(why)))))));
}

function symbolTable(step) {
  if (!step.symbols.length) return null;
  return make("details", { class: "symbols" }, make("summary", {}, `${step.symbols.length} buffers`),
    make("table", { tabindex: 0 }, make("thead", {}, make("tr", {}, ...["buffer", "scope", "type", "attached"].map((t) => make("th", { scope: "col" }, t)))),
      make("tbody", {}, ...step.symbols.map(([name, scope, type, said, span]) => make("tr", {},
        make("td", {}, place(span) || name, span >= 0 ? ` ${name}` : ""), make("td", {}, scope), make("td", {}, type), make("td", {}, said))))));
}

// A place in Python as a link that lights it everywhere.
function place(span) {
  if (!(span >= 0)) return "";
  const [file, line] = trace.spans[span];
  return make("button", { type: "button", onclick: () => app.open({ view: "columns", column: "python", line, file }) },
    `${trace.files[file][0]}:${line}`);
}

function diffView(main) {
  const step = trace.steps[app.state.pass];
  main.append(stepBar(step, [
    button("Inline", "One column (s)", () => app.open({ mode: "inline" }), app.state.mode === "inline"),
    button("Side by side", "Two columns (s)", () => app.open({ mode: "split" }), app.state.mode === "split"),
    button("All lines", "Show unchanged lines too (x)", () => app.toggleGaps(), opened.has("all")),
  ]), ...[decisionList(step), symbolTable(step)].filter(Boolean));
  const shown = opened.has("all") && step.rows ? new Set(step.rows.keys()) : opened;
  const sides = app.state.mode === "split" && step.rows ? ["old", "new"] : ["both"];
  const titles = { old: "before", new: "after", both: step.rows ? "difference" : "the program" };
  const lists = sides.map((side) => new Rows(`${titles[side]} ${step.name}`, diffEntries(step, side, shown), events("diff")));
  const columns = make("div", { class: "columns" }, ...lists.map((list, n) =>
    make("section", { class: "column" }, make("h2", {}, titles[sides[n]]), list.node)));
  main.append(columns);
  if (lists.length === 2) {
    const [a, b] = lists;
    const tie = (from, to) => () => { if (to.node.scrollTop !== from.node.scrollTop) to.node.scrollTop = from.node.scrollTop; };
    a.follows = tie(a, b);
    b.follows = tie(b, a);
  }
  return lists;
}

function layoutsView(main) {
  const body = make("div", { class: "scroll layouts", tabindex: 0 });
  if (!trace.layouts.length) body.append(make("p", { class: "empty" }, "No layouts were inferred for this target."));
  for (const found of trace.layouts) {
    const shape = found.shape.length ? `(${found.shape.join(", ")})` : "";
    const what = found.kind === "loop" ? `loop ${shape}` : `${found.kind} ${found.dtype}${shape}`;
    const drawn = found.drawing
      ? make("details", { open: found.kind !== "loop" }, make("summary", {}, "drawing"),
        make("button", { type: "button", class: "enlarge", title: "Enlarge", onclick: () => drawing.open(found) },
          make("img", { alt: `${found.name}: ${found.short}`, loading: "lazy", src: picture(found) }),
          make("span", { class: "hint", "aria-hidden": "true" }, "enlarge ⤢"))) : null;
    body.append(make("section", { class: "layout" }, make("h3", {}, `${found.name}  `, place(found.span)),
      make("div", {}, what, found.cost ? ` · ${found.cost}` : ""), make("pre", {}, found.short),
      found.why ? make("p", { class: "why" }, (found.why.split("\n")[1] || found.why).trim()) : null,
      found.why.includes("\n") ? make("details", {}, make("summary", {}, "all steps"), make("pre", {}, found.why)) : null, drawn));
  }
  main.append(body);
  return [];
}

function timelineView(main) {
  const body = make("div", { class: "scroll", tabindex: 0 });
  const total = trace.timeline.reduce((sum, e) => sum + (e.depth ? 0 : e.seconds), 0) || 1;
  const phases = [...new Set(trace.timeline.map((e) => e.phase))];
  const deepest = (own) => Math.max(...own.map((e) => e.depth));
  const chart = make("div", { class: "flame", role: "list", "aria-label": "Times of passes, in order" });
  for (const phase of phases) {
    const own = trace.timeline.filter((e) => e.phase === phase);
    const spent = own.reduce((sum, e) => sum + (e.depth ? 0 : e.seconds), 0);
    chart.append(make("div", {}, `${phase}  ${duration(spent)}`));
    const line = make("div", { class: "bar" });
    line.style.height = `${20 * (deepest(own) + 1)}px`;
    for (const entry of own) {
      const step = trace.steps.findIndex((s) => s.name === entry.name);
      // What takes less than a pixel inside of others is in the table.
      if (entry.depth && entry.seconds / total < 0.001) continue;
      const bar = make("button", {
        type: "button", role: "listitem", class: entry.depth ? "within" : entry.changed ? "changed" : "",
        title: `${entry.name}  ${duration(entry.seconds)}${entry.changed ? ", changed the program" : ""}`,
        onclick: () => { if (step >= 0) app.open({ view: "diff", pass: step }); },
      }, entry.seconds / total > 0.03 ? entry.name : "");
      bar.setAttribute("aria-label", `${entry.name}, ${duration(entry.seconds)}`);
      bar.style.left = `${(100 * entry.start) / total}%`;
      bar.style.width = `${(100 * entry.seconds) / total}%`;
      bar.style.top = `${20 * entry.depth}px`;
      line.append(bar);
    }
    chart.append(line);
  }
  const shown = trace.timeline.filter((e) => !e.depth || e.seconds / total > 0.005);
  const rows = shown.sort((a, b) => b.seconds - a.seconds).map((e) => make("tr", { class: e.depth ? "within" : null },
    make("td", {}, e.depth ? "↳ " : "", e.name), make("td", {}, e.phase), make("td", { class: "num" }, duration(e.seconds)),
    make("td", { class: "num" }, `${((100 * e.seconds) / total).toFixed(1)}%`),
    make("td", { class: "num" }, e.resident ? `${(e.resident / 2 ** 20).toFixed(0)} MB` : ""),
    make("td", { class: "num" }, Math.abs(e.grown) >= 2 ** 17 ? `${e.grown > 0 ? "+" : "−"}${(Math.abs(e.grown) / 2 ** 20).toFixed(1)} MB` : "")));
  body.append(make("h2", {}, `Times: ${duration(total)}`), chart, make("h2", {}, "Slowest first"),
    make("table", {}, make("thead", {}, make("tr", {}, ...["pass", "phase", "time", "share", "memory after", "grown by"].map((t) => make("th", { scope: "col" }, t)))),
      make("tbody", {}, ...rows)));
  main.append(body);
  return [];
}

function summaryView(main) {
  const body = make("div", { class: "scroll", tabindex: 0 });
  if (trace.failure) {
    body.append(make("h2", { class: "error" }, `${trace.failure.step} did not finish`), make("p", {}, trace.failure.message),
      make("details", {}, make("summary", {}, "exception"), make("pre", { class: "said" }, trace.failure.exception)));
  }
  body.append(make("h2", {}, "Did the pipelines take effect?"));
  for (const found of trace.pipelines.verdicts) body.append(make("p", { class: found.verdict }, `${found.verdict}: `, place(found.span)));
  body.append(make("pre", { class: "said" }, trace.pipelines.text.join("\n")));
  if (trace.resources.length) {
    body.append(make("h2", {}, "What the kernels take"));
    const facts = ["threads", "registers", "spills", "stack", "shared", "blocks"];
    body.append(make("table", {}, make("thead", {}, make("tr", {}, make("th", {}, "kernel"), ...facts.map((f) => make("th", { scope: "col" }, f)))),
      make("tbody", {}, ...trace.resources.map((r) => make("tr", {}, make("td", {}, r.kernel), ...facts.map((f) => make("td", { class: "num" }, String(r[f] === null ? "?" : r[f]))))))));
    const counted = trace.resources.filter((r) => r.counts.length);
    if (counted.length) body.append(make("p", {}, "Instructions as they stand in the machine code, however often a loop runs them:"));
    for (const r of counted) body.append(make("p", { class: "said" }, r.counts.map(([name, n]) => `${n} ${name}`).join(", ")));
  }
  body.append(make("h2", {}, "Remarks"));
  if (!trace.remarks.length) body.append(make("p", { class: "empty" }, "The compiler found nothing to remark upon."));
  for (const d of trace.remarks) {
    body.append(make("p", {}, make("b", { class: d.severity }, `${d.code} `), place(d.span), ` ${d.message}`,
      ...d.notes.map((note) => make("div", {}, note)), d.help ? make("div", {}, `help: ${d.help}`) : null));
  }
  body.append(make("h2", {}, "Values"), make("p", {}, trace.values.map(([name, value]) => `${name}=${value}`).join(", ") || "none"));
  main.append(body);
  return [];
}

const VIEWS = [
  { id: "diff", title: "Passes", fill: diffView },
  { id: "columns", title: "Python ⇄ machine code", fill: columnsView },
  { id: "layouts", title: "Layouts", fill: layoutsView },
  { id: "timeline", title: "Times", fill: timelineView },
  { id: "summary", title: "Summary", fill: summaryView },
];
