// What the trace holds, as entries of lists; and which lines belong together.

const trace = JSON.parse(document.getElementById("data").textContent);

trace.steps.forEach((step, n) => {
  const before = trace.steps.slice(0, n).filter((other) => other.name === step.name).length;
  step.id = before ? `${step.name}.${before + 1}` : step.name;
});

// Numbers of the places that begin at each line of Python, by file.
const starts = trace.files.map(() => new Map());
trace.spans.forEach(([file, line], n) => {
  const found = starts[file].get(line);
  if (found) found.push(n); else starts[file].set(line, [n]);
});

function spansAt(file, line) {
  const own = starts[file].get(line);
  if (own) return own;
  let best = [], size = Infinity;
  trace.spans.forEach(([f, first, , last], n) => {
    if (f !== file || first > line || last < line) return;
    if (last - first < size) { best = [n]; size = last - first; }
    else if (last - first === size) best.push(n);
  });
  return best;
}

function entriesOf(number, extra) {
  const found = trace.documents[number];
  return found.t.map((text, n) => ({
    text: trace.texts[text], runs: trace.colours[text], textId: text, n: n + 1,
    span: found.s[n], others: found.o[n] || [], ...extra,
  }));
}

function pythonEntries(file) {
  return entriesOf(trace.files[file][2]).map((entry, n) => ({ ...entry, python: [file, n + 1] }));
}

const CLASSES = { "+": "add", "-": "del", ">": "come", "<": "went", "~": "ren", "*": "add" };
const KEPT = { "=": "unchanged lines", "⇤": "lines, only dedented", "⇥": "lines, only indented" };
const CONTEXT = 3;

// The rows of a difference for one column: both sides under each other, or one of two.
function diffEntries(step, side, opened) {
  const now = entriesOf(step.document);
  if (!step.rows) return now.map((entry) => ({ ...entry, sign: " " }));
  const then = entriesOf(trace.steps[step.before].document);
  const out = [];
  const blank = { text: "", n: undefined, sign: " ", cls: "gap", span: -1, others: [] };
  // What goes and what comes between two kept lines: beside each other, or one after the other.
  const lefts = [], rights = [];
  const flush = () => {
    if (side === "both") out.push(...lefts, ...rights);
    else {
      const mine = side === "old" ? lefts : rights;
      for (let n = 0; n < Math.max(lefts.length, rights.length); n++) out.push(mine[n] || { ...blank, change: true });
    }
    lefts.length = rights.length = 0;
  };
  step.rows.forEach((row, position) => {
    const [sign, old, fresh, count, gone, come] = row;
    if (sign === "·") {
      const said = { ...blank, text: gone, sign, cls: "about", change: true };
      (old >= 0 ? lefts : rights).push(said);
      return;
    }
    if (sign in KEPT) {
      flush();
      const first = position === 0 ? 0 : CONTEXT, last = position === step.rows.length - 1 ? 0 : CONTEXT;
      const folded = !opened.has(position) && count > first + last + 1;
      for (let n = 0; n < count; n++) {
        if (folded && n === first) {
          const hidden = count - first - last;
          out.push({ text: `⋯ ${hidden} ${KEPT[sign]}`, n: undefined, sign: " ", cls: "gap", span: -1, others: [], gap: position });
          n = count - last - 1;
          continue;
        }
        const source = side === "old" ? then[old + n] : now[fresh + n];
        out.push(sign === "=" ? { ...source, sign: " " } : { ...source, sign, cls: "shift" });
      }
      return;
    }
    const left = old >= 0 ? { ...then[old], sign: sign === "<" ? "<" : "-", cls: CLASSES[sign === "*" ? "-" : sign], words: gone } : null;
    const right = fresh >= 0 ? { ...now[fresh], sign: sign === "*" ? "+" : sign, cls: CLASSES[sign], words: come } : null;
    if (left && sign === "~") left.sign = "~";
    const paired = left && right;
    if (paired) flush();
    if (left && !(sign === "~" && side === "both")) lefts.push({ ...left, change: true });
    if (right) rights.push({ ...right, change: true });
    if (paired) flush();
  });
  flush();
  return out;
}

// What is lit: places by number, and lines of Python.
const lit = { spans: new Set(), python: new Set() };
const picked = { spans: new Set(), python: new Set() };

function gather(into, entry) {
  into.spans.clear();
  into.python.clear();
  if (!entry) return;
  if (entry.python) {
    into.python.add(entry.python.join(":"));
    for (const span of spansAt(...entry.python)) into.spans.add(span);
    return;
  }
  if (!(entry.span >= 0)) return;
  into.spans.add(entry.span);
  for (const span of [entry.span, ...entry.others]) {
    if (!(span >= 0)) continue;
    const [file, first, , last] = trace.spans[span];
    for (let line = first; line <= last; line++) into.python.add(`${file}:${line}`);
  }
}

function isIn(found, entry) {
  if (entry.python) return found.python.has(entry.python.join(":"));
  if (entry.span >= 0 && found.spans.has(entry.span)) return true;
  return entry.others.some((span) => found.spans.has(span));
}

// Search: each distinct line is tested once.
const search = { hits: null, test: null };

function setSearch(text) {
  search.hits = search.test = null;
  if (!text) return;
  const pattern = /^\/(.+)\/$/.exec(text);
  try {
    const regex = pattern ? new RegExp(pattern[1], "i") : null;
    const lower = text.toLowerCase();
    search.test = regex ? (line) => regex.test(line) : (line) => line.toLowerCase().includes(lower);
  } catch { search.test = () => false; }
  search.hits = trace.texts.map(search.test);
}

function hitsIn(number) {
  if (!search.hits) return 0;
  return trace.documents[number].t.reduce((sum, text) => sum + (search.hits[text] ? 1 : 0), 0);
}

const isHit = (entry) => search.hits !== null && entry.textId !== undefined && search.hits[entry.textId];

function duration(seconds) {
  if (seconds >= 1) return `${seconds.toFixed(2)} s`;
  const ms = seconds * 1e3;
  return ms < 10 ? `${ms.toFixed(1)} ms` : `${ms.toFixed(0)} ms`;
}
