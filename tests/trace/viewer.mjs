// Drives the pages of the trace viewer in a real Chromium: node viewer.mjs FOLDER CHROMIUM MODULES
// Prints one JSON object: by name of check null, or what went wrong.

import { createRequire } from "node:module";
import assert from "node:assert/strict";
import path from "node:path";

const [folder, executablePath, modules] = process.argv.slice(2);
const require = createRequire(path.join(modules, "node_modules", "x.js"));
const { chromium } = require("playwright-core");
const axe = require("fs").readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const browser = await chromium.launch({
  executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
});

const url = (name, hash = "") => `file://${path.join(folder, name)}${hash}`;

async function open(name, hash = "", options = {}) {
  const context = await browser.newContext({ viewport: { width: 1366, height: 768 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  page.troubles = [];
  page.on("console", (m) => { if (m.type() === "error") page.troubles.push(m.text()); });
  page.on("pageerror", (e) => page.troubles.push(String(e)));
  page.on("request", (r) => { if (!/^(file|data):/.test(r.url()) || (r.url().startsWith("file:") && !r.url().includes(name))) page.troubles.push(r.url()); });
  await page.goto(url(name, hash));
  await page.waitForSelector("#passes .pass");
  page.settle = () => page.evaluate(() => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r))));
  await page.settle();
  return page;
}

// Tried until it holds: drawing follows scrolling, and a busy machine is late with both.
async function eventually(check) {
  for (const until = Date.now() + 60_000; ;) {
    try { return await check(); } catch (error) {
      if (Date.now() > until) throw error;
      await new Promise((again) => setTimeout(again, 20));
    }
  }
}

// The search waits for a pause in typing; it is done when the page says so.
const searched = (page, text) => page.waitForFunction((q) => app.state.q === q, text);

const names = (page) => page.locator("#passes .pass .name").allTextContents();
const current = (page) => page.locator("#passes [aria-current] .name").textContent();
const lit = (page, column, cls = "lit") => page.locator(`[data-column="${column}"] .row.${cls} .code`).allTextContents();

const checks = {
  async "loads without errors or requests"() {
    const page = await open("gemm.html");
    for (const view of ["1", "2", "3", "4", "5"]) { await page.keyboard.press(view); await page.settle(); }
    assert.deepEqual(page.troubles, []);
    assert.equal(await page.title(), "matmul for cuda:sm_80 – tilelang trace");
  },

  async "opens at the first pass that changed something"() {
    const page = await open("gemm.html");
    assert.equal(await current(page), "apply_layouts");
    assert.ok(await page.locator(".row.add").count() > 0);
  },

  async "search"() {
    const page = await open("gemm.html");
    const before = (await names(page)).length;
    await page.keyboard.press("/");
    await page.keyboard.type("ldmatrix_x4_trans");
    await searched(page, "ldmatrix_x4_trans");
    const found = await names(page);
    assert.ok(found.length < before);
    assert.ok(found.includes("lower_gpu_ops") && !found.includes("apply_layouts"), String(found));
    assert.match(await page.locator("#found").textContent(), /^\d+ lines in \d+ of \d+ passes$/);
    await page.locator('[data-pass="lower_gpu_ops"]').click();
    await page.settle();
    await page.locator("#search").focus();
    await page.keyboard.press("Enter");
    const at = page.locator(".row.at.hit .code");
    await eventually(async () => {
      assert.match(await at.textContent(), /ldmatrix_x4_trans/);
      assert.ok(await at.isVisible());
    });
    assert.match(page.url(), /q=ldmatrix_x4_trans/);
  },

  async "search by pattern and by name of pass"() {
    const page = await open("gemm.html", "#q=/^%20*T\\.sync_threads/");
    assert.deepEqual((await names(page)).slice(0, 2), ["insert_sync", "fence_proxies"]);
    await page.locator("#search").fill("plan_sh");
    await searched(page, "plan_sh");
    assert.deepEqual(await names(page), ["plan_shared"]);
    await page.locator("#search").fill("/(/");
    await searched(page, "/(/");
    assert.deepEqual(await names(page), []);
    assert.deepEqual(page.troubles, []);
  },

  async "filters"() {
    const page = await open("gemm.html");
    const all = await names(page);
    await page.keyboard.press("c");
    await page.settle();
    const changed = await names(page);
    assert.ok(changed.length < all.length && !changed.includes("refuse_missing_ops"), String(changed));
    await page.selectOption("#phase", "threads");
    assert.deepEqual(await names(page), ["lower_async_copies"]);
    await page.keyboard.press("Escape");
    await page.locator("#main").focus();
    await page.keyboard.press("c");
    assert.deepEqual(await names(page), ["vectorize_accesses", "lower_async_copies"]);
  },

  async "a line of machine code lights all it came from"() {
    const page = await open("gemm.html", "#view=columns&pass=lower_gpu_ops");
    const sass = page.locator('[data-column="sass"] .list');
    const at = await page.evaluate(() => trace.documents[trace.codes.find((c) => c.kind === "sass").document].t.findIndex((t) => trace.texts[t].includes("HMMA")));
    await sass.evaluate((node, top) => { node.scrollTop = top; }, at * 18 - 60);
    await page.settle();
    await page.locator('[data-column="sass"] .row', { hasText: "HMMA" }).first().click();
    for (const [column, what] of [["python", "T.gemm(A_s"], ["ir", "T.mma_m16n8k16"], ["source", "tl::mma_m16n8k16"], ["ptx", "mma.sync"]]) {
      await eventually(async () => {
        const texts = await lit(page, column, "picked");
        assert.ok(texts.some((t) => t.includes(what)), `${column}: ${texts.join(" | ")}`);
      });
    }
    assert.equal((await lit(page, "python", "picked")).length, 1);
  },

  async "a line of Python lights all it became, on hover"() {
    const page = await open("gemm.html", "#view=columns&pass=apply_layouts&column=python&line=22");
    const python = page.locator('[data-column="python"] .row', { hasText: "T.copy(A[by * 64" });
    await page.locator('[data-column="python"] .row', { hasText: "# gemm" }).first().hover();
    await eventually(async () => assert.ok((await lit(page, "ir")).every((t) => t.includes("T.gemm(A_s") || t.includes("attr"))));
    await python.first().hover();
    await eventually(async () => {
      const ir = await lit(page, "ir", "picked");
      assert.ok(ir.some((t) => t.includes("T.copy(A[")) && ir.every((t) => !t.includes("T.copy(B[")), ir.join(" | "));
      const source = await lit(page, "source", "picked");
      assert.ok(source.some((t) => t.includes("cp_async<16>")), source.join(" | "));
    });
    await page.mouse.move(5, 5);
    await page.keyboard.press("Escape");
    await eventually(async () => assert.equal(await page.locator(".row.lit, .row.picked").count(), 0));
  },

  async "a permalink leads to a pass and a line"() {
    const page = await open("gemm.html", "#view=columns&pass=insert_sync&column=ptx&line=200");
    assert.equal(await current(page), "insert_sync");
    const row = page.locator('[data-column="ptx"] .row.at');
    await eventually(async () => {
      assert.equal((await row.locator(".n").textContent()).trim(), "200");
      assert.ok(await row.isVisible());
    });
    await page.keyboard.press("1");
    await page.locator(".row.add").first().click();
    const number = (await page.locator(".row.at .n").textContent()).trim();
    await page.waitForURL(new RegExp(`view=diff.*pass=insert_sync.*line=${number}`));
    const again = await open("gemm.html", new URL(page.url()).hash);
    await eventually(async () => assert.equal((await again.locator(".row.at .n").textContent()).trim(), number));
    await again.evaluate(() => { location.hash = "#view=timeline&pass=tidy.2"; });
    await again.waitForSelector(".flame");
    assert.equal(await again.locator("#passes [aria-current]").getAttribute("data-pass"), "tidy.2");
  },

  async "a permalink brings what is lit into sight in every column"() {
    const page = await open("gemm.html", "#view=columns&pass=insert_sync&column=python&line=22");
    for (const column of ["python", "ir", "source", "ptx", "sass"]) {
      await eventually(async () => assert.ok(await page.evaluate((id) => {
        const list = app.lists.find((one) => one.column === id), box = list.node.getBoundingClientRect();
        const first = list.entries.findIndex((entry) => isIn(picked, entry)), row = list.drawn.get(first);
        return first >= 0 && row && row.getBoundingClientRect().top >= box.top && row.getBoundingClientRect().bottom <= box.bottom;
      }, column), column));
    }
    // What is not laid out yet waits until it is.
    const top = await page.evaluate(async () => {
      const list = app.lists.find((one) => one.column === "sass"), section = list.node.parentElement;
      list.node.scrollTop = 0;
      section.hidden = true;
      list.show(list.entries.length - 1);
      section.hidden = false;
      list.draw();
      return list.node.scrollTop;
    });
    assert.ok(top > 500, String(top));
  },

  async "columns are hidden, sized, and wider where one works"() {
    const page = await open("gemm.html", "#view=columns&pass=insert_sync");
    const width = (column) => page.locator(`[data-column="${column}"]`).evaluate((n) => n.offsetWidth);
    const before = await width("ptx");
    await page.locator('[data-column="ptx"] .row.placed').nth(3).click();
    await eventually(async () => assert.ok(await width("ptx") > 1.7 * before, String(await width("ptx"))));
    assert.ok(await page.locator('[data-column="ptx"] .row.at').isVisible());
    await page.locator(".choice button", { hasText: "machine code" }).click();
    await eventually(async () => assert.equal(await page.locator('[data-column="sass"]').isVisible(), false));
    assert.match(page.url(), /hidden=sass/);
    const again = await open("gemm.html", new URL(page.url()).hash);
    assert.equal(await again.locator('[data-column="sass"]').isVisible(), false);
    await again.locator(".choice button", { hasText: "machine code" }).click();
    await eventually(async () => assert.ok(await again.locator('[data-column="sass"]').isVisible()));
    const first = await width("python");
    await page.locator(".grip").first().focus();
    for (let n = 0; n < 3; n++) await page.keyboard.press("ArrowRight");
    await eventually(async () => assert.ok(Math.abs(await width("python") - first - 72) < 6, `${first} ${await width("python")}`));
    const box = await page.locator(".grip").first().boundingBox();
    await page.mouse.move(box.x + 2, box.y + 100);
    await page.mouse.down();
    await page.mouse.move(box.x + 52, box.y + 100, { steps: 5 });
    await page.mouse.up();
    await eventually(async () => assert.ok(Math.abs(await width("python") - first - 122) < 8, `${first} ${await width("python")}`));
    for (const column of ["Python", "IR", "cuda source", "PTX"]) await page.locator(".choice button", { hasText: column }).click();
    assert.equal(await page.locator(".column:not([hidden])").count(), 1);  // the last one stays
    assert.deepEqual(page.troubles, []);
  },

  async "a page that is opened with a search shows a hit"() {
    const page = await open("gemm.html", "#q=/cp_async_commit/");
    assert.notEqual(await current(page), "apply_layouts");
    await eventually(async () => assert.ok(await page.locator(".row.hit").first().isVisible()));
    const kept = await open("gemm.html", "#q=/cp_async_commit/&pass=emit");
    assert.equal(await kept.evaluate(() => trace.steps[app.state.pass].id), "emit");
  },

  async "a pass is one line of the list, however long its name and time"() {
    const page = await open("gemm.html");
    const heights = await page.evaluate(() => {
      const pass = document.querySelector(".pass .name").closest(".pass");
      const measure = () => pass.querySelector(".name").offsetHeight + pass.querySelector(".time").offsetHeight;
      const before = measure();
      pass.querySelector(".name").textContent = "a_pass_with_a_name_that is longer than the list is wide";
      pass.querySelector(".time").textContent = "1234.56 s";
      return [before, measure()];
    });
    assert.equal(heights[0], heights[1]);
  },

  async "keys"() {
    const page = await open("gemm.html");
    await page.keyboard.press("j");
    assert.equal(await current(page), "pipeline_loops");
    await page.keyboard.press("k");
    assert.equal(await current(page), "apply_layouts");
    const at = () => page.evaluate(() => app.lists[0].at);
    await page.keyboard.press("n");
    const first = await at();
    await page.keyboard.press("n");
    await eventually(async () => assert.ok(await at() > first, `${first} ${await at()}`));
    const second = await at();
    await page.keyboard.press("ArrowDown");
    await eventually(async () => assert.notEqual(await at(), second));
    await page.keyboard.press("s");
    await eventually(async () => assert.equal(await page.locator(".column").count(), 2));
    await page.keyboard.press("x");
    await page.waitForFunction(() => opened.has("all"));
    await page.settle();
    assert.ok(await page.locator(".row").count() > 0);
    assert.equal(await page.locator(".row.gap", { hasText: "⋯" }).count(), 0);
    await page.keyboard.press("2");
    assert.equal(await page.locator('[role="tab"][aria-selected="true"]').textContent(), "Python ⇄ machine code");
    await page.keyboard.press("?");
    assert.ok(await page.locator("#keys").isVisible());
    await page.keyboard.press("Escape");
    await page.locator("#keys").waitFor({ state: "hidden" });
    await page.keyboard.press("/");
    await page.keyboard.type("jk1s");
    assert.equal(await page.locator("#search").inputValue(), "jk1s");
  },

  async "what only lost what was around it is quiet, and told once"() {
    const page = await open("gemm.html", "#view=diff&pass=place_versions");
    const shift = page.locator(".row.shift");
    await eventually(async () => assert.ok(await shift.count() > 0));
    assert.match(await page.locator(".row.about .code").first().textContent(), /^body of the removed `with .*` kept: \d+ lines?, dedented$/);
    assert.equal(await shift.first().locator(".sign").textContent(), "⇤");
    const folded = await page.evaluate(() => {
      const last = trace.steps.length - 1;
      return diffEntries({ rows: [["⇤", 0, 0, 30]], document: trace.steps[last].document, before: last }, "both", new Set()).map((e) => e.text);
    });
    assert.deepEqual(folded, ["⋯ 30 lines, only dedented"]);
    assert.match(await page.locator(".bar2 .counts").textContent(), /^\d+ dedented, /);
    await page.keyboard.press("s");
    const sizes = await page.evaluate(() => app.lists.map((l) => l.entries.length));
    assert.equal(sizes[0], sizes[1]);
    assert.match(await page.locator('[data-pass="insert_sync"] .what').textContent(), /^1 barrier inserted · \+1 −0$/);
  },

  async "side by side scrolls together"() {
    const page = await open("gemm.html", "#view=diff&pass=lower_gpu_ops&mode=split");
    await page.keyboard.press("x");
    await page.settle();
    const lists = page.locator(".list");
    await lists.nth(0).evaluate((node) => { node.scrollTop = 300; });
    await page.waitForFunction(() => document.querySelectorAll(".list")[1].scrollTop === document.querySelectorAll(".list")[0].scrollTop);
    const rows = await page.evaluate(() => app.lists.map((l) => l.entries.length));
    assert.equal(rows[0], rows[1]);
  },

  async "light and dark"() {
    const page = await open("gemm.html", "", { colorScheme: "dark" });
    const colour = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await colour();
    await page.keyboard.press("t");
    const light = await colour();
    assert.notEqual(dark, light);
    assert.equal(light, "rgb(255, 255, 255)");
    const other = await open("gemm.html", "", { colorScheme: "light" });
    assert.equal(await other.evaluate(() => document.documentElement.dataset.theme), "light");
  },

  async "copy buttons"() {
    const page = await open("gemm.html", "#view=diff&pass=insert_sync", { permissions: ["clipboard-read", "clipboard-write"] });
    await page.keyboard.press("y");
    await page.waitForFunction(() => document.getElementById("live").textContent === "copied");
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^\+ .*T\.sync_threads\(\)/m);
    await page.keyboard.press("l");
    await page.waitForFunction(() => document.getElementById("live").textContent === "link copied");
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /#view=diff&pass=insert_sync/);
  },

  async "layouts, times and the pipeline"() {
    const page = await open("gemm.html", "#view=layouts");
    await page.locator(".layout img").first().scrollIntoViewIfNeeded();
    const image = page.locator(".layout img").first();
    await page.waitForFunction(() => document.querySelector(".layout img").naturalWidth > 50);
    assert.match(await image.getAttribute("alt"), /^A_s: /);
    await page.keyboard.press("4");
    assert.ok(await page.locator(".flame button").count() > 15);
    // By its label: whether a bar is wide enough for its text, or for a mouse, is a matter of time.
    await page.locator('.flame button[aria-label^="insert_sync, "]').press("Enter");
    await eventually(async () => assert.equal(await current(page), "insert_sync"));
    await page.keyboard.press("5");
    assert.match(await page.locator("main").innerText(), /✓ matrix instructions: expected of 1 line, found of 1/);
  },

  async "a drawing is enlarged until its numbers can be read"() {
    const page = await open("gemm.html", "#view=layouts");
    const dialog = page.locator("#drawing");
    // With keys alone.
    await page.locator(".enlarge").first().focus();
    await page.keyboard.press("Enter");
    await dialog.waitFor();
    const size = () => page.evaluate(() => {
      const view = document.getElementById("drawing-view"), image = view.firstElementChild;
      return { font: 10 * image.offsetWidth / image.naturalWidth, width: view.clientWidth, height: view.clientHeight, left: view.scrollLeft };
    });
    await eventually(async () => assert.ok((await size()).font >= 11.9));
    const first = await size();
    assert.ok(first.width > 1300 && first.height > 640, JSON.stringify(first));
    assert.equal(await page.evaluate(() => document.activeElement.id), "drawing-view");
    await page.keyboard.press("+");
    await page.keyboard.press("+");
    await eventually(async () => assert.ok((await size()).font > first.font * 1.5));
    const there = (await size()).left;
    await page.keyboard.press("ArrowRight");
    await eventually(async () => assert.ok((await size()).left > there));
    await page.keyboard.press("1");
    await eventually(async () => assert.equal((await size()).font, 10));
    assert.equal(await page.locator("#drawing-title").textContent(), "A_s");
    await page.keyboard.press("j");
    assert.equal(await page.locator("#drawing-title").textContent(), "B_s");
    await page.locator("#drawing-in").click();
    await eventually(async () => assert.match(await page.locator("#drawing-zoom").textContent(), /^\d+%$/));
    await page.evaluate(axe);
    const found = await page.evaluate(async () => (await window.axe.run("#drawing", { resultTypes: ["violations"] })).violations
      .filter((v) => ["serious", "critical"].includes(v.impact)).map((v) => v.id));
    assert.deepEqual(found, []);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
    assert.ok(await page.evaluate(() => document.activeElement.classList.contains("enlarge")));
    assert.deepEqual(page.troubles, []);
  },

  async "a failure is named"() {
    const page = await open("failed.html");
    assert.match(await page.locator("main h2").first().textContent(), /^guard_bounds did not finish$/);
    assert.equal(await page.locator(".pass.failed .name").textContent(), "guard_bounds");
  },

  async "text of kernels is text"() {
    const page = await open("hostile.html");
    const texts = [];
    for (const view of ["1", "2", "3", "4", "5"]) {
      await page.keyboard.press(view);
      await page.settle();
      texts.push(await page.locator("body").innerText());
    }
    // What could run has run, once every picture of the page has loaded or failed.
    await page.evaluate(() => Promise.all([...document.images].map((one) => one.decode().catch(() => null))));
    await page.settle();
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.deepEqual(page.troubles, []);
    assert.equal(await page.locator("img[src='x'], b.evil, script:not([type]):not(:last-of-type)").count(), 0);
    assert.ok(texts[0].includes("<img src=x onerror=window.pwned=1>"), texts[0].slice(0, 500));
    assert.ok(texts.some((t) => t.includes("</script><script>window.pwned=1</script>")));
    assert.equal(await page.evaluate(() => trace.kernel), "<b class=evil>\u001b[31mk</b>");
  },

  async "20,000 lines"() {
    const page = await open("large.html", "#view=diff&pass=second");
    await page.keyboard.press("x");
    await page.settle();
    const list = page.locator(".list").first();
    const lines = await page.evaluate(() => app.lists[0].entries.length);
    assert.ok(lines >= 20000, String(lines));
    // Scrolled in 90 frames from end to end: what is in sight is always there, and little else.
    const seen = await list.evaluate(async (node) => {
      const out = { most: 0, blank: 0, times: [] };
      for (let n = 1; n <= 90; n++) {
        node.scrollTop = (n / 90) * (node.scrollHeight - node.clientHeight);
        const started = performance.now();
        await new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)));
        out.times.push(performance.now() - started);
        const rows = node.querySelectorAll(".row");
        out.most = Math.max(out.most, rows.length);
        const tops = [...rows].map((r) => parseFloat(r.style.top));
        const last = Math.min(node.scrollTop + node.clientHeight, node.scrollHeight) - 18;
        if (Math.min(...tops) > node.scrollTop || Math.max(...tops) < last - 18) out.blank++;
      }
      out.times.sort((a, b) => a - b);
      return out;
    });
    assert.equal(seen.blank, 0);
    assert.ok(seen.most < 150, `${seen.most} rows at once`);
    figures.scroll = { median_ms: seen.times[45], worst_ms: seen.times[89], rows: seen.most, lines };
    await page.keyboard.press("/");
    await page.keyboard.type("value_19999");
    await searched(page, "value_19999");
    assert.match(await page.locator("#found").textContent(), /^\d+ lines/);
    await page.keyboard.press("Enter");
    await eventually(async () => assert.match(await page.locator(".row.at .code").textContent(), /value_19999/));
  },

  async "accessible"() {
    for (const scheme of ["light", "dark"]) {
      const page = await open("gemm.html", "", { colorScheme: scheme });
      for (const view of ["1", "2", "3", "4", "5"]) {
        await page.keyboard.press(view);
        await page.settle();
        await page.evaluate(axe);
        const found = await page.evaluate(async () => (await window.axe.run(document, { resultTypes: ["violations"] })).violations
          .filter((v) => ["serious", "critical"].includes(v.impact)).map((v) => `${v.id}: ${v.nodes[0].html.slice(0, 120)} ${v.nodes[0].failureSummary || ""}`));
        assert.deepEqual(found, [], `view ${view}, ${scheme}`);
      }
    }
  },

  async "a laptop and a narrow window"() {
    for (const width of [1280, 900]) {
      const page = await open("gemm.html", "#view=columns", { viewport: { width, height: 700 } });
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(over <= 0, `${over} px too wide at ${width}`);
      await page.locator('[data-column="ptx"] h2 button').click();
      assert.equal(await page.locator('[data-column="ptx"]').isVisible(), false);
    }
  },
};

const figures = {};
const found = {};
for (const [name, check] of Object.entries(checks)) {
  try { await check(); found[name] = null; } catch (error) { found[name] = String(error && error.message || error).slice(0, 1500); }
  for (const context of browser.contexts()) await context.close();
}
await browser.close();
console.log(JSON.stringify({ checks: found, figures }));
