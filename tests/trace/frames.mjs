// How fluent is a large page? node frames.mjs PAGE CHROMIUM MODULES
// Prints one JSON object: for each kind of use the frames it took, and what the browser calls long tasks.

import { createRequire } from "node:module";
import path from "node:path";

const [file, executablePath, modules] = process.argv.slice(2);
const require = createRequire(path.join(modules, "node_modules", "x.js"));
const { chromium } = require("playwright-core");
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
const page = await (await browser.newContext({ viewport: { width: 1366, height: 768 } })).newPage();

await page.addInitScript(() => {
  window.long = [];
  new PerformanceObserver((found) => { for (const task of found.getEntries()) window.long.push(task.duration); }).observe({ entryTypes: ["longtask"] });
  window.frames_ = [];
  window.watching = false;
  let before = 0;
  const tick = (now) => { if (window.watching && before) window.frames_.push(now - before); before = window.watching ? now : 0; requestAnimationFrame(tick); };
  requestAnimationFrame(tick);
});

const measure = async (action) => {
  await page.evaluate(() => { window.long = []; window.frames_ = []; window.watching = true; });
  await action();
  await page.waitForTimeout(120);
  return page.evaluate(() => {
    window.watching = false;
    const times = window.frames_.sort((a, b) => a - b);
    const at = (part) => Math.round(10 * (times[Math.min(times.length - 1, Math.floor(times.length * part))] || 0)) / 10;
    return { frames: times.length, median_ms: at(0.5), p95_ms: at(0.95), worst_ms: at(1), long_tasks: window.long.filter((d) => d > 50).length, longest_ms: Math.round(Math.max(0, ...window.long)) };
  });
};

const out = {};
const started = Date.now();
await page.goto(`file://${file}#view=diff&pass=second`);
await page.waitForSelector("#passes .pass");
out.load = { ready_ms: Date.now() - started, long_tasks: await page.evaluate(() => window.long.length), longest_ms: await page.evaluate(() => Math.round(Math.max(0, ...window.long))) };
out.all_lines = await measure(async () => { await page.keyboard.press("x"); });
const list = page.locator(".list").first();
await list.hover();
out.wheel = await measure(async () => { for (let n = 0; n < 120; n++) { await page.mouse.wheel(0, 240); await page.waitForTimeout(8); } });
out.drag = await measure(() => list.evaluate(async (node) => {
  for (let n = 1; n <= 120; n++) { node.scrollTop = (n / 120) * (node.scrollHeight - node.clientHeight); await new Promise((r) => requestAnimationFrame(r)); }
}));
await list.focus();
out.jump = await measure(async () => { for (let n = 0; n < 20; n++) for (const key of ["Home", "PageDown", "PageDown", "End"]) await page.keyboard.press(key); });
const box = await list.boundingBox();
const sweep = async (b) => { for (let n = 0; n < 120; n++) { await page.mouse.move(b.x + 200 + (n % 7), b.y + 10 + ((n * 37) % (b.height - 30))); await page.waitForTimeout(4); } };
out.hover = await measure(() => sweep(box));
out.search = await measure(async () => { await page.keyboard.press("/"); await page.keyboard.type("value_1999", { delay: 60 }); await page.waitForTimeout(200); });
out.next_hit = await measure(async () => { for (let n = 0; n < 10; n++) await page.keyboard.press("Enter"); });
await page.locator("#main").focus();
out.other_pass = await measure(async () => { for (let n = 0; n < 4; n++) { await page.keyboard.press("k"); await page.waitForTimeout(60); await page.keyboard.press("j"); await page.waitForTimeout(60); } });
out.columns = await measure(async () => { await page.keyboard.press("2"); await page.waitForTimeout(100); });
const sass = page.locator('[data-column="sass"] .list');
const at = await sass.boundingBox();
out.hover_columns = await measure(() => sweep(at));
out.click_columns = await measure(async () => { for (let n = 0; n < 10; n++) { await page.mouse.click(at.x + 90, at.y + 30 + n * 36); await page.waitForTimeout(20); } });
await browser.close();
console.log(JSON.stringify(out));
