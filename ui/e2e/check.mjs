// Opens every page of a folder in Chromium from the disk, and checks what only a browser can tell.
//
//   node e2e/check.mjs FOLDER        CHROMIUM names another browser than the system's

import { existsSync, readdirSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const folder = resolve(process.argv[2] ?? ".");
const pages = readdirSync(folder).filter((name) => name.endsWith(".html"));
const known = [
  process.env.CHROMIUM,
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];
const executablePath = known.find((path) => path && existsSync(path));
if (!executablePath)
  throw new Error("no Chromium found; install the package chromium, or name it in CHROMIUM");
if (pages.length === 0) throw new Error(`no pages in ${folder}`);

const scratch = await mkdtemp(join(tmpdir(), "linerate-pages-"));
// Root has no sandbox of its own to offer.
const browser = await chromium.launch({
  executablePath,
  args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
});
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
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (overflow > 0) troubles.push(`at ${view.width} px the page is ${overflow} px too wide`);
    if (view.width > 1000) {
      await saved(page, troubles);
      await printed(page, troubles);
    }
    await context.close();
  }
  await withoutScript(name, troubles);
  return troubles;
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
    await figure.scrollIntoViewIfNeeded();
    const canvas = figure.locator("canvas").first();
    await canvas.waitFor({ timeout: 5000 }).catch(() => troubles.push(`${where}: a chart is not drawn`));
  }
  // Drawing ends with the task that began it; one frame later everything is there.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const blank = await page.evaluate(() => {
    const data = JSON.parse(document.querySelector("#charts").textContent);
    const troubles = [];
    document.querySelectorAll("figure[data-chart]").forEach((figure, number) => {
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
        const { data: pixels } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
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
  const [download] = await Promise.all([page.waitForEvent("download", { timeout: 5000 }), button.click()]);
  const path = join(scratch, download.suggestedFilename());
  await download.saveAs(path);
  const lines = (await readFile(path, "utf8")).trimEnd().split("\n");
  if (lines.some((line, number) => JSON.parse(line).seq !== number)) troubles.push("the saved log has gaps");
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
