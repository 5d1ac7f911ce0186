// Opens every page of a folder in Chromium from the disk, and checks what only a browser can tell.
//
//   node e2e/check.mjs FOLDER        CHROMIUM names another browser than the system's

import { readdirSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { launch } from "./browser.mjs";

const folder = resolve(process.argv[2] ?? ".");
const pages = readdirSync(folder).filter((name) => name.endsWith(".html"));
if (pages.length === 0) throw new Error(`no pages in ${folder}`);

/** Runs of a page that are opened: every one has the same charts. */
const MAX_OPEN_RUNS = 2;
/** How long a busy machine may take for a chart or a file, milliseconds. */
const TIMEOUT = 60_000;

const scratch = await mkdtemp(join(tmpdir(), "linerate-pages-"));
const browser = await launch();
let failures = 0;
try {
  for (const name of pages) {
    const troubles = await check(name);
    failures += troubles.length > 0 ? 1 : 0;
    console.log(`${name}: ${troubles.length > 0 ? troubles.join("; ") : "ok"}`);
  }
} finally {
  await browser.close();
  await rm(scratch, { recursive: true, force: true });
}
process.exitCode = failures > 0 ? 1 : 0;

/** What is wrong with a page. */
async function check(name) {
  const troubles = [];
  for (const view of [
    { width: 1200, height: 900, colorScheme: "light" },
    { width: 360, height: 740, colorScheme: "dark" },
  ]) {
    const context = await browser.newContext({
      viewport: { width: view.width, height: view.height },
      colorScheme: view.colorScheme,
    });
    const page = await context.newPage();
    watch(page, troubles);
    await page.goto(pathToFileURL(join(folder, name)).href);
    await drawn(page, troubles, `at ${view.width} px`);
    await fits(page, troubles, `at ${view.width} px`);
    if (view.width > 1000) await short(page, troubles);
    await page.evaluate((most) => {
      for (const details of document.querySelectorAll("details:not(.run)")) details.open = true;
      for (const details of [...document.querySelectorAll("details.run")].slice(0, most)) details.open = true;
    }, MAX_OPEN_RUNS);
    await drawn(page, troubles, `at ${view.width} px, opened`);
    await fits(page, troubles, `at ${view.width} px, opened`);
    if (view.width > 1000) {
      await saved(page, troubles);
      await sorted(page, troubles);
      await savedPieces(page, troubles);
      await printed(page, troubles);
    }
    await context.close();
  }
  await withoutScript(name, troubles);
  return troubles;
}

/** The page does not scroll sideways. */
async function fits(page, troubles, where) {
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (overflow > 0) troubles.push(`${where} the page is ${overflow} px too wide`);
}

/** A plan of up to 18 points is at most ten screens of a laptop. */
async function short(page, troubles) {
  const found = await page.evaluate(() => ({
    points: document.querySelectorAll(".points tbody tr:not(.more)").length,
    height: document.documentElement.scrollHeight,
    heads: document.querySelectorAll(".points thead th").length,
  }));
  if (found.points > 0 && found.points <= 18 && found.height > 10 * 720)
    troubles.push(`${found.points} points take ${(found.height / 720).toFixed(1)} screens`);
  if (found.heads > 8) troubles.push(`${found.heads} columns in sight`);
}

/** Anything on the console, any error, any request but the page itself. */
function watch(page, troubles) {
  page.on("console", (message) => troubles.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => troubles.push(`error: ${error.message}`));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith("file:") && !url.startsWith("blob:")) troubles.push(`request: ${url.slice(0, 80)}`);
  });
}

/** Every chart has a canvas for each panel, with something on it in more than one colour. */
async function drawn(page, troubles, where) {
  for (const figure of await page.locator("figure[data-chart]").all()) {
    if (!(await figure.isVisible())) continue;
    await figure.scrollIntoViewIfNeeded();
    const canvas = figure.locator("canvas").first();
    await canvas.waitFor({ timeout: TIMEOUT }).catch(() => troubles.push(`${where}: a chart is not drawn`));
  }
  // Drawing ends with the task that began it; one frame later everything is there.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const blank = await page.evaluate(() => {
    const data = JSON.parse(document.querySelector("#charts").textContent);
    const troubles = [];
    document.querySelectorAll("figure[data-chart]").forEach((figure) => {
      if (!figure.checkVisibility()) return;
      const number = Number(figure.dataset.chart);
      const canvases = [...figure.querySelectorAll("canvas")];
      const panels = data.charts[number].panels;
      if (canvases.length !== panels.length)
        troubles.push(`chart ${number}: ${canvases.length} of ${panels.length} panels`);
      canvases.forEach((canvas, at) => {
        const lines = panels[at].lines.filter((line) => line.y.some((value) => value !== null)).length;
        const words = [...figure.querySelectorAll(".panel")][at].querySelectorAll(
          ".u-legend .u-series",
        ).length;
        if (words <= lines)
          troubles.push(`chart ${number}, panel ${at}: the legend names ${words - 1} of ${lines} lines`);
        // Axes, grid and words are grey: a line has a colour.
        // Read from a copy, so that the page's own canvas is as it is without this check.
        const copy = new OffscreenCanvas(canvas.width, canvas.height);
        const context = copy.getContext("2d", { willReadFrequently: true });
        context.drawImage(canvas, 0, 0);
        const { data: pixels } = context.getImageData(0, 0, canvas.width, canvas.height);
        let coloured = 0;
        for (let pixel = 0; pixel < pixels.length; pixel += 4) {
          const [red, green, blue, alpha] = pixels.subarray(pixel, pixel + 4);
          if (alpha > 100 && Math.max(red, green, blue) - Math.min(red, green, blue) > 60) coloured += 1;
        }
        const shows = panels[at].lines.some((line) => line.y.some((value) => value));
        if (shows && coloured < 10) troubles.push(`chart ${number}, panel ${at}: nothing is drawn`);
      });
    });
    return troubles;
  });
  troubles.push(...blank.map((trouble) => `${where}: ${trouble}`));
}

/** The event log comes out of the page, one JSON object a line. */
async function saved(page, troubles) {
  const button = page.locator("button[data-log]").first();
  // A comparison has no log.
  if ((await button.count()) === 0) return;
  const [download] = await Promise.all([page.waitForEvent("download", { timeout: TIMEOUT }), button.click()]);
  const path = join(scratch, download.suggestedFilename());
  await download.saveAs(path);
  const lines = (await readFile(path, "utf8")).trimEnd().split("\n");
  if (lines.some((line, number) => JSON.parse(line).seq !== number)) troubles.push("the saved log has gaps");
}

/** Clicks where the contents, closed again, cover nothing. */
async function press(button) {
  await button.evaluate((element) => {
    for (const details of document.querySelectorAll("nav details")) details.open = false;
    element.scrollIntoView({ block: "center" });
  });
  await button.click();
}

/** A click on a head sorts the rows by that column, a second one turns them round, and no row is lost. */
async function sorted(page, troubles) {
  const tables = page.locator("table:has(thead .sort)");
  for (const table of (await tables.all()).slice(0, 4)) {
    if (!(await table.isVisible())) continue;
    const rows = () => table.evaluate((table) => [...table.tBodies[0].rows].map((row) => row.textContent));
    const head = table.locator("thead th:has(.sort)").last();
    const before = await rows();
    await press(head.locator(".sort"));
    const up = [await head.getAttribute("aria-sort"), await rows()];
    await press(head.locator(".sort"));
    const down = [await head.getAttribute("aria-sort"), await rows()];
    const same = (other) => [...other].sort().join() === [...before].sort().join();
    if (up[0] !== "ascending" || down[0] !== "descending") troubles.push(`sorted ${up[0]}, then ${down[0]}`);
    if (!same(up[1]) || !same(down[1])) troubles.push("sorting loses rows");
    const firsts = await table.evaluate((table) => ({
      more: [...table.tBodies[0].rows].map((row) => row.classList.contains("more")),
    }));
    if (firsts.more[0]) troubles.push("a row below another one comes first");
  }
}

/** A table is saved as CSV with its rows, a chart as a PNG picture with its colours. */
async function savedPieces(page, troubles) {
  for (const [button, check] of [
    [page.locator(".wide caption > .save").first(), isTable],
    [page.locator("figure[data-chart] > figcaption > .save").first(), isPicture],
  ]) {
    if ((await button.count()) === 0 || !(await button.isVisible())) continue;
    const [download] = await Promise.all([
      page.waitForEvent("download", { timeout: TIMEOUT }),
      press(button),
    ]);
    const path = join(scratch, download.suggestedFilename());
    await download.saveAs(path);
    const trouble = await check(await readFile(path), button);
    if (trouble) troubles.push(`${download.suggestedFilename()}: ${trouble}`);
  }
}

async function isTable(content, button) {
  const lines = content.toString("utf8").trimEnd().split("\r\n");
  const rows = await button.evaluate(
    (button) => button.closest("table").querySelectorAll("tbody tr:not(.more)").length,
  );
  return lines.length === rows + 1 ? null : `${lines.length} lines for ${rows} rows`;
}

/** The picture is as large as the panels of its chart, and has all of their colours. */
async function isPicture(content, button) {
  const found = await button.evaluate(async (button, base64) => {
    // Axes, grid and words are grey: a line has a colour. Read from a copy, as in `drawn`.
    const coloured = (image) => {
      const canvas = new OffscreenCanvas(image.width, image.height);
      const context = canvas.getContext("2d", { willReadFrequently: true });
      // Half transparent areas have the colour that they have on the page.
      context.fillStyle = getComputedStyle(document.body).backgroundColor;
      context.fillRect(0, 0, image.width, image.height);
      context.drawImage(image, 0, 0);
      const { data } = context.getImageData(0, 0, image.width, image.height);
      let count = 0;
      for (let at = 0; at < data.length; at += 4) {
        const [red, green, blue, alpha] = data.subarray(at, at + 4);
        if (alpha > 100 && Math.max(red, green, blue) - Math.min(red, green, blue) > 60) count += 1;
      }
      return count;
    };
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    const picture = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const panels = [...button.closest("figure").querySelectorAll("canvas")];
    return {
      fits:
        picture.width >= Math.max(...panels.map(({ width }) => width)) &&
        picture.height >= panels.reduce((sum, { height }) => sum + height, 0),
      coloured: coloured(picture),
      wanted: panels.reduce((sum, panel) => sum + coloured(panel), 0),
    };
  }, content.toString("base64"));
  if (!found.fits) return "the picture cuts the chart";
  // The legend adds colours to those of the panels.
  return found.coloured >= found.wanted && found.wanted > 10
    ? null
    : `${found.coloured} of ${found.wanted} coloured points`;
}

/** On paper every chart is there, in light colours, and nothing is cut off at the right. */
async function printed(page, troubles) {
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  await page.setViewportSize({ width: 680, height: 960 });
  await drawn(page, troubles, "on paper");
  const paper = await page.evaluate(() => ({
    background: getComputedStyle(document.body).backgroundColor,
    overflow: [...document.querySelectorAll("canvas, .wide:not(.many) table")].some(
      (wide) => wide.getBoundingClientRect().right > innerWidth,
    ),
  }));
  if (paper.background !== "rgb(255, 255, 255)") troubles.push(`paper is ${paper.background}`);
  if (paper.overflow) troubles.push("a chart or a table is wider than the paper");
  const pdf = await page.pdf({ format: "A4" });
  if (pdf.subarray(0, 5).toString() !== "%PDF-") troubles.push("it does not print");
}

/** Without the script there are words for the charts, and the tables are there. */
async function withoutScript(name, troubles) {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(pathToFileURL(join(folder, name)).href);
  const said = await page.locator(".verdict").first().textContent();
  if (!said?.trim()) troubles.push("without the script there is no verdict");
  await context.close();
}
