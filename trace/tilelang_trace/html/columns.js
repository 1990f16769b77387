// Python, IR and everything below beside each other: columns that can be hidden and sized. The one that
// was used last has more room than the others.

const FOCUSED = 2.4, LEAST = 60;
const weights = new Map();  // of columns that somebody has sized
let focusedColumn = "";

function columnsView(main) {
  const step = trace.steps[app.state.pass];
  const names = { source: "generated source", ptx: "PTX", sass: "machine code" };
  const all = [
    { id: "python", title: "Python", rows: () => pythonEntries(app.state.file) },
    { id: "ir", title: `IR after ${step.id}`, short: "IR", rows: () => entriesOf(step.document) },
    ...trace.codes.map((code) => ({
      id: code.kind, title: code.kind === "source" ? `${code.language} source` : names[code.kind],
      note: code.note, rows: () => entriesOf(code.document).filter((e) => code.kind !== "ptx" || !NOISE.test(e.text)),
    })),
  ];
  if (!all.some((column) => column.id === focusedColumn)) focusedColumn = "";
  if (app.state.line && app.state.column) focusedColumn = app.state.column;
  const isHidden = (column) => app.state.hidden.includes(column.id);
  const toggle = (column) => {
    const hidden = isHidden(column) ? app.state.hidden.filter((id) => id !== column.id) : [...app.state.hidden, column.id];
    if (hidden.length < all.length) app.open({ hidden });
  };
  main.append(stepBar(step, [make("span", { class: "choice", role: "group", "aria-label": "Columns" }, ...all.map((column) =>
    button(column.short || column.title, `Show or hide ${column.title}`, () => toggle(column), !isHidden(column))))]));
  const lists = all.map((column) => {
    const list = new Rows(column.title, column.rows(), events(column.id));
    list.column = column.id;
    return list;
  });
  const sections = new Map();
  const size = () => {
    for (const [id, section] of sections) section.style.flexGrow = String(weights.get(id) || (id === focusedColumn ? FOCUSED : 1));
    lists.forEach((list) => list.draw());
  };
  const focus = (id) => { if (focusedColumn !== id) { focusedColumn = id; size(); } };
  const columns = make("div", { class: "columns tight" });
  all.forEach((column, n) => {
    const list = lists[n];
    const head = make("h2", {}, make("span", { class: "title" }, column.title), make("span", { class: "spacer" }));
    if (column.id === "python" && trace.files.length > 1) {
      head.append(make("select", { "aria-label": "File", onchange: (event) => app.open({ file: Number(event.target.value) }) },
        ...trace.files.map(([name], m) => make("option", { value: m, selected: m === app.state.file }, name))));
    }
    head.append(button("×", `Hide ${column.title}`, () => toggle(column)));
    const section = make("section", { class: "column", "data-column": column.id, hidden: isHidden(column) }, head,
      column.note ? make("p", { class: "empty" }, column.note) : "", list.node);
    // After the click has found its line: columns that move between press and release lose it.
    list.node.addEventListener("click", () => focus(column.id));
    list.node.addEventListener("focus", () => { if (list.node.matches(":focus-visible")) focus(column.id); });
    if (!isHidden(column)) {
      if (sections.size) columns.append(grip([...sections].at(-1), [column.id, section], column.title, size));
      sections.set(column.id, section);
    }
    columns.append(section);
  });
  size();
  main.append(columns);
  return lists;
}

// What is between two columns, and moved to give one the room of the other.
function grip([leftId, left], [rightId, right], title, size) {
  const move = (by) => {
    const whole = left.offsetWidth + right.offsetWidth, sum = Number(left.style.flexGrow) + Number(right.style.flexGrow);
    const width = Math.min(Math.max(left.offsetWidth + by, LEAST), whole - LEAST);
    for (const section of left.parentElement.querySelectorAll(".column:not([hidden])")) weights.set(section.dataset.column, Number(section.style.flexGrow));
    weights.set(leftId, (sum * width) / whole).set(rightId, (sum * (whole - width)) / whole);
    node.setAttribute("aria-valuenow", String(Math.round((100 * width) / whole)));
    size();
  };
  const node = make("div", {
    class: "grip", role: "separator", "aria-orientation": "vertical", "aria-label": `Width before ${title}`, tabindex: 0,
    "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": 50, title: "Drag to size; double click: all as they were",
    ondblclick: () => { weights.clear(); size(); },
    onkeydown: (event) => {
      const by = { ArrowLeft: -24, ArrowRight: 24 }[event.key];
      if (by) { move(by); event.preventDefault(); }
    },
    onpointerdown: (event) => {
      node.setPointerCapture(event.pointerId);
      node.onpointermove = (moved) => move(moved.clientX - node.getBoundingClientRect().left - 2);
      node.onpointerup = node.onpointercancel = () => { node.onpointermove = null; };
    },
  });
  return node;
}
