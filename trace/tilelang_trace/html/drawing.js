// One drawing of a layout, as large as one likes.

const drawing = {
  at: 0,
  zoom: 1,

  // The layouts of the page that have one, in its order.
  all: trace.layouts.filter((found) => found.drawing),

  open(layout) {
    this.at = this.all.indexOf(layout);
    if (this.at < 0) return;
    const dialog = document.getElementById("drawing");
    if (!dialog.open) dialog.showModal();
    this.show();
  },

  step(by) {
    const next = this.at + by;
    if (next < 0 || next >= this.all.length) return;
    this.at = next;
    this.show();
  },

  show() {
    const found = this.all[this.at];
    document.getElementById("drawing-title").textContent = found.name;
    document.getElementById("drawing-says").textContent = found.short;
    const image = make("img", { alt: `${found.name}: ${found.short}`, src: picture(found), draggable: "false" });
    const view = document.getElementById("drawing-view");
    view.replaceChildren(image);
    view.scrollTop = view.scrollLeft = 0;
    this.zoom = 1;
    view.focus();
    document.getElementById("drawing-before").disabled = this.at === 0;
    document.getElementById("drawing-next").disabled = this.at === this.all.length - 1;
    image.addEventListener("load", () => this.fit());
  },

  // As wide as the window, but never so small that numbers cannot be read.
  fit() {
    const view = document.getElementById("drawing-view");
    const image = view.firstElementChild;
    this.scale(Math.max((view.clientWidth - 2) / image.naturalWidth, 1.2), 0, 0);
  },

  scale(zoom, x, y) {
    const view = document.getElementById("drawing-view");
    const image = view.firstElementChild;
    const next = Math.min(Math.max(zoom, 0.25), 8), by = next / this.zoom;
    // What is under the pointer, or in the middle, stays there.
    const left = x === undefined ? view.clientWidth / 2 : x, top = y === undefined ? view.clientHeight / 2 : y;
    const [over, down] = [(view.scrollLeft + left) * by - left, (view.scrollTop + top) * by - top];
    this.zoom = next;
    image.style.width = `${image.naturalWidth * next}px`;
    view.scrollLeft = over;
    view.scrollTop = down;
    document.getElementById("drawing-zoom").textContent = `${Math.round(100 * next)}%`;
  },

  keys: {
    "+": () => drawing.scale(drawing.zoom * 1.25),
    "=": () => drawing.scale(drawing.zoom * 1.25),
    "-": () => drawing.scale(drawing.zoom / 1.25),
    "0": () => drawing.fit(),
    "1": () => drawing.scale(1),
    j: () => drawing.step(1),
    k: () => drawing.step(-1),
  },

  listen() {
    const $$ = (name) => document.getElementById(`drawing-${name}`);
    const view = $$("view");
    $$("out").addEventListener("click", this.keys["-"]);
    $$("in").addEventListener("click", this.keys["+"]);
    $$("fit").addEventListener("click", this.keys["0"]);
    $$("before").addEventListener("click", this.keys.k);
    $$("next").addEventListener("click", this.keys.j);
    document.getElementById("drawing").addEventListener("keydown", (event) => {
      const action = event.ctrlKey || event.metaKey || event.altKey ? null : this.keys[event.key];
      if (action) { action(); event.preventDefault(); }
    });
    view.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      const box = view.getBoundingClientRect();
      this.scale(this.zoom * (event.deltaY < 0 ? 1.15 : 1 / 1.15), event.clientX - box.left, event.clientY - box.top);
    }, { passive: false });
    view.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      view.setPointerCapture(event.pointerId);
      view.onpointermove = (move) => { view.scrollLeft -= move.movementX; view.scrollTop -= move.movementY; };
      view.onpointerup = view.onpointercancel = () => { view.onpointermove = null; };
    });
  },
};

function picture(found) { return `data:image/svg+xml;utf8,${encodeURIComponent(found.drawing)}`; }
