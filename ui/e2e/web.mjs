// A story through the pages of the web service in Chromium: two tests over loopback, their results, history,
// comparison, export and deletion. It deletes the runs that it made, and no others.
//
//   node e2e/web.mjs BASE [TOKEN]        CHROMIUM names another browser than the system's

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { launch } from "./browser.mjs";

const BASE = (process.argv[2] ?? "http://localhost:8080").replace(/\/$/, "");
const TOKEN = process.argv[3];
/** How long a busy machine may take for a step, milliseconds. */
const PATIENCE = 60_000;
const NAME = `story-${Date.now()}`;

const scratch = await mkdtemp(join(tmpdir(), "linerate-web-"));
const browser = await launch();
const troubles = [];
let step = "";
try {
  await story();
  await onPhone();
} catch (error) {
  troubles.push(`${step}: ${error.message}`);
} finally {
  await browser.close();
  await rm(scratch, { recursive: true, force: true });
}
for (const trouble of troubles) console.log(trouble);
console.log(troubles.length > 0 ? `${troubles.length} troubles` : "ok");
process.exitCode = troubles.length > 0 ? 1 : 0;

function check(holds, words) {
  if (!holds) troubles.push(`${step}: ${words}`);
}

async function story() {
  const page = await visitor({ viewport: { width: 1280, height: 720 } });
  step = "start page";
  await open(page, "/");
  await sound(page);

  step = "mistakes";
  await page.getByLabel("Other host", { exact: true }).fill("this host");
  await page.locator("summary", { hasText: "More" }).click();
  await page.getByLabel("Parallel streams").fill("many");
  await page.getByRole("button", { name: "Start test" }).click();
  const streams = page.getByLabel("Parallel streams");
  check((await streams.getAttribute("aria-invalid")) === "true", "a mistake is not marked at its field");
  await page
    .waitForFunction(() => document.activeElement?.name === "streams", null, { timeout: PATIENCE })
    .catch(() => check(false, "the field with the mistake has no focus"));
  await streams.fill("20000");
  await page.getByRole("button", { name: "Start test" }).click();
  const described = page.locator("#streams-trouble");
  await described.waitFor({ timeout: PATIENCE });
  check((await described.textContent()).includes("10000"), "the server's limit is not said at its field");
  check(new URL(page.url()).pathname === "/", "a refused test left the page");
  await streams.fill("1");

  step = "first test";
  const first = await measure(page, 2);
  const rates = await page.locator(".document .figure strong").allTextContents();
  check(
    rates.length === 2 && rates.every((rate) => /\d.* [kMGT]?b\/s/.test(rate)),
    `results are ${rates.join(", ")}`,
  );
  check(
    (await page.locator(".document .statement").first().textContent()).trim() !== "",
    "there is no verdict",
  );
  await drawn(page);
  await sound(page);

  step = "reload";
  await page.reload();
  await page.locator(".document .verdict").first().waitFor({ timeout: PATIENCE });
  check(
    (await page.locator(".document .figure strong").allTextContents()).join() === rates.join(),
    "the result changed",
  );

  step = "run again";
  await page.getByRole("link", { name: "Run again" }).click();
  check(
    (await page.getByLabel("Other host", { exact: true }).inputValue()) !== "",
    "the other host is not filled in",
  );
  check((await page.getByLabel("Name of the run").inputValue()) === NAME, "the name is not filled in");
  check((await page.getByLabel("Time per direction").inputValue()) === "2", "the time is not filled in");
  await page.getByLabel("Other host", { exact: true }).fill("this host");
  const second = await measure(page, 2);
  check(first !== second, "the second test has the id of the first");

  step = "history";
  await page.getByRole("link", { name: "History" }).click();
  await page.getByRole("heading", { name: "What was measured" }).waitFor();
  await page.locator("summary", { hasText: "Filter" }).click();
  await page.getByLabel("Name", { exact: true }).fill(NAME);
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 2, null, {
    timeout: PATIENCE,
  });
  // Without the filter, an archive of these two runs has as many rows, and the address follows a moment later.
  await page.waitForURL((address) => address.searchParams.get("name") === NAME, { timeout: PATIENCE });
  await sound(page);
  await page.reload();
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 2, null, {
    timeout: PATIENCE,
  });

  step = "compare";
  const boxes = page.getByRole("checkbox");
  await boxes.nth(1).focus();
  await page.keyboard.press("Space");
  await boxes.nth(0).focus();
  await page.keyboard.press("Space");
  await sound(page);
  await page.getByRole("button", { name: "Compare", exact: true }).click();
  await page.locator(".document h1").waitFor({ timeout: PATIENCE });
  const compared = new URL(page.url()).searchParams;
  check(compared.get("before") === first && compared.get("after") === second, `compared ${compared}`);
  await drawn(page);
  await sound(page);
  await page.goBack();
  await page.getByRole("heading", { name: "What was measured" }).waitFor();
  await page
    .waitForFunction(() => document.querySelectorAll("tbody :checked").length === 2, null, {
      timeout: PATIENCE,
    })
    .catch(() => check(false, "the selection is lost on the way back"));

  step = "export";
  await open(page, `/runs/${first}`);
  await page.locator("summary", { hasText: "Export" }).click();
  await sound(page);
  const [download] = await Promise.all([
    page.waitForEvent("download", { timeout: PATIENCE }),
    page.getByRole("link", { name: "Result (JSON)" }).click(),
  ]);
  const path = join(scratch, "result.json");
  await download.saveAs(path);
  check(
    JSON.parse(await readFile(path, "utf8")).schema?.startsWith("linerate.result/"),
    "the file is no result",
  );

  step = "kiosk";
  const kiosk = await visitor({ viewport: { width: 800, height: 480 } });
  await open(kiosk, "/kiosk");
  const digits = kiosk.locator(".digits").first();
  await digits.waitFor({ timeout: PATIENCE });
  check(
    (await digits.locator("b").evaluate((b) => b.getBoundingClientRect().height)) >= 85,
    "the digits are small",
  );
  check(await kiosk.evaluate(() => document.documentElement.scrollHeight <= 480), "the kiosk scrolls");
  await kiosk.context().close();

  step = "delete";
  for (const id of [first, second]) {
    await open(page, `/runs/${id}`);
    await page.getByLabel("More actions").click();
    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("button", { name: "Keep it" }).click();
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    check(
      await page.evaluate(async (id) => (await fetch(`/api/v1/runs/${id}`)).ok, id),
      "a run is deleted without being asked",
    );
    await page.getByLabel("More actions").click();
    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.waitForURL("**/history", { timeout: PATIENCE });
  }
  await open(page, `/history?name=${NAME}`);
  await page.getByText("No run matches").waitFor({ timeout: PATIENCE });

  step = "from this browser";
  await open(page, "/?from=browser&seconds=2");
  await page.getByLabel("Connections").fill("40");
  await page.getByRole("button", { name: "Start test" }).click();
  check(
    (await page.getByLabel("Connections").getAttribute("aria-invalid")) === "true",
    "40 connections are taken",
  );
  await page.getByLabel("Connections").fill("2");
  // A download ends with a reset, which the browser reports.
  page.quiet = true;
  await watch(page);
  await page.getByRole("button", { name: "Start test" }).click();
  await page.waitForURL("**/runs/*", { timeout: PATIENCE });
  await page.locator(".document .verdict").first().waitFor({ timeout: PATIENCE });
  check((await watched(page)).figures > 0, "no figures are shown while it runs");
  const moved = await page.locator(".document .figure strong").allTextContents();
  check(
    moved.length === 2 && moved.every((rate) => /\d.* [kMGT]?b\/s/.test(rate)),
    `results from the browser are ${moved.join(", ")}`,
  );
  check(
    (await page.getByRole("link", { name: "Run again" }).getAttribute("href")).includes("from=browser"),
    "the same test cannot be started again",
  );
  const own = new URL(page.url()).pathname.split("/").at(-1);
  await remove(page, own);

  step = "single streams";
  await open(page, "/");
  await page.getByLabel("host to host").check();
  await page.getByLabel("Other host", { exact: true }).fill("this host");
  await page.locator("summary", { hasText: "More" }).click();
  await page.getByLabel("Time per direction").fill("60");
  await page.getByLabel("Parallel streams").fill("128");
  await page.getByRole("button", { name: "Start test" }).click();
  await page.waitForURL("**/runs/*", { timeout: PATIENCE });
  await page.locator("summary", { hasText: "Each stream" }).click();
  const map = page.locator("details .panel", {
    hasText: /download: bit rate of each stream, grey 0 to full colour \d/,
  });
  // A place that is reached in the first seconds of two minutes.
  await map.locator(".u-over").hover({ position: { x: 30, y: 30 }, timeout: PATIENCE });
  await map.getByText(/stream \d+, until \d.* s: /).waitFor({ timeout: PATIENCE });
  await sound(page);
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.locator(".document").waitFor({ timeout: PATIENCE });
  const maps = page.locator(".document .panel h4", { hasText: "bit rate of each stream, received" });
  await maps.first().waitFor({ timeout: PATIENCE });
  const several = new URL(page.url()).pathname.split("/").at(-1);
  await remove(page, several);

  step = "no such run";
  page.quiet = true;
  await open(page, `/runs/${first}`);
  await page.getByRole("alert").waitFor({ timeout: PATIENCE });
  await open(page, "/nothing/here");
  await page.getByRole("heading", { name: "There is no such page" }).waitFor();
  await page.context().close();
}

/** Deletes a run. */
async function remove(page, id) {
  const gone = await page.evaluate(async (id) => {
    const request = { method: "DELETE", headers: { "X-Linerate": "1" } };
    return (await fetch(`/api/v1/runs/${id}`, request)).ok;
  }, id);
  check(gone, "a run is not deleted");
}

/** Starts a test over loopback with the form as it is, and follows it to its result; its id. */
async function measure(page, seconds) {
  if (!(await page.getByLabel("Name of the run").isVisible()))
    await page.locator("summary", { hasText: "More" }).click();
  await page.getByLabel("Time per direction").fill(String(seconds));
  await page.getByLabel("Name of the run").fill(NAME);
  await watch(page);
  await page.getByRole("button", { name: "Start test" }).click();
  await page.waitForURL("**/runs/*", { timeout: PATIENCE });
  const id = new URL(page.url()).pathname.split("/").at(-1);
  await page.locator(".document .verdict").first().waitFor({ timeout: PATIENCE });
  const { figures, heights } = await watched(page);
  // Figures that move are frames that arrive.
  check(figures > 1, "the figures do not move");
  check(heights.length === 1, `the live page jumps: the charts were at ${heights.join(", ")} px`);
  return id;
}

/** Makes a page note what it shows of a running test, which may be over before it is looked at. */
async function watch(page) {
  await page.evaluate(() => {
    const noted = { figures: new Set(), heights: new Set() };
    window.noted = noted;
    new MutationObserver(() => {
      const figures = document.querySelector(".figures");
      if (/\d/.test(figures?.querySelector(".big.running .huge")?.textContent ?? ""))
        noted.figures.add(figures.textContent);
      if (document.querySelector(".live canvas"))
        noted.heights.add(Math.round(document.querySelector(".live .panels").getBoundingClientRect().top));
    }).observe(document.body, { childList: true, characterData: true, subtree: true });
  });
}

/** How many figures a page has shown since `watch`, and the heights of its charts, pixels. */
async function watched(page) {
  return await page.evaluate(() => ({
    figures: window.noted.figures.size,
    heights: [...window.noted.heights],
  }));
}

/** On a phone nothing is wider than the screen, and the answer is on its first screen. */
async function onPhone() {
  step = "phone";
  const page = await visitor({
    viewport: { width: 400, height: 800 },
    hasTouch: true,
    isMobile: true,
    colorScheme: "dark",
  });
  await open(page, "/");
  await sound(page);
  await page.getByLabel("Other host", { exact: true }).fill("this host");
  const id = await measure(page, 2);
  await drawn(page);
  await sound(page);
  const top = await page
    .locator(".document .figure strong")
    .first()
    .evaluate((rate) => rate.getBoundingClientRect().bottom);
  check(top < 800, `the first rate is ${Math.round(top)} px below the top`);
  await open(page, "/history");
  await page.locator("tbody tr").first().waitFor({ timeout: PATIENCE });
  await page.getByRole("checkbox").first().check();
  await sound(page);
  await open(page, "/compare");
  await sound(page);
  await page.evaluate(async (id) => {
    await fetch(`/api/v1/runs/${id}`, {
      method: "DELETE",
      headers: { "Content-Type": "application/json", "X-Linerate": "1" },
    });
  }, id);
  await page.context().close();
}

/** A page whose console and requests are watched, of somebody who has signed in if that is needed. */
async function visitor(options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.on("console", (message) => {
    if (!page.quiet && (message.type() === "error" || message.type() === "warning"))
      if (!/status of 422/.test(message.text()))
        // The answer to a mistake that the story makes.
        troubles.push(`${step}: console: ${message.text()}`);
  });
  page.on("pageerror", (error) => troubles.push(`${step}: error: ${error.message}`));
  page.on("request", (request) => {
    const url = request.url();
    const { hostname, pathname } = new URL(url);
    if (hostname === new URL(BASE).hostname && pathname.startsWith("/linerate/browser/")) return;
    if (!url.startsWith(BASE) && !/^(data|blob):/.test(url))
      troubles.push(`${step}: request: ${url.slice(0, 80)}`);
  });
  if (TOKEN) {
    await page.goto(`${BASE}/`);
    await page.getByLabel("Token").fill(TOKEN);
    await page.getByLabel("Token").press("Enter");
    await page.getByRole("button", { name: "Sign out" }).waitFor({ timeout: PATIENCE });
  }
  return page;
}

async function open(page, path) {
  await page.goto(BASE + path);
  await page.locator("h1").first().waitFor({ timeout: PATIENCE });
}

/** Every chart in sight has a canvas. */
async function drawn(page) {
  for (const figure of await page.locator("figure[data-chart]").all()) {
    if (!(await figure.isVisible())) continue;
    await figure.scrollIntoViewIfNeeded();
    await figure
      .locator("canvas")
      .first()
      .waitFor({ timeout: PATIENCE })
      .catch(() => check(false, "a chart is not drawn"));
  }
  await page.evaluate(() => scrollTo(0, 0));
}

/** What must hold on every page: it fits, everything that can be used has a name, and a place of its own for a finger. */
async function sound(page) {
  const found = await page.evaluate(() => {
    const troubles = [];
    const overflow = document.documentElement.scrollWidth - innerWidth;
    if (overflow > 0) troubles.push(`the page is ${overflow} px too wide`);
    if (document.querySelectorAll("h1").length !== 1)
      troubles.push(`${document.querySelectorAll("h1").length} titles`);
    if (document.querySelectorAll("main").length !== 1)
      troubles.push(`${document.querySelectorAll("main").length} mains`);
    if (!document.title.includes("linerate")) troubles.push(`the window is called ${document.title}`);
    const ids = [...document.querySelectorAll("[id]")].map(({ id }) => id);
    const twice = ids.filter((id, at) => ids.indexOf(id) !== at);
    if (twice.length > 0) troubles.push(`ids ${twice.join(", ")} are there twice`);
    const coarse = matchMedia("(pointer: coarse)").matches;
    for (const element of document.querySelectorAll("a, button, input, select, textarea, summary")) {
      if (!element.checkVisibility({ visibilityProperty: true })) continue;
      const label =
        element.getAttribute("aria-label") ||
        [...(element.labels ?? [])].map((label) => label.textContent).join(" ") ||
        element.textContent;
      if (!label?.trim()) troubles.push(`<${element.localName} class="${element.className}"> has no name`);
      // Words within a sentence or a table are read, not aimed at.
      if (coarse && element.matches("button:not(.save, .sort), .button, input, select, .top nav a")) {
        const { height } = (element.closest("label") ?? element).getBoundingClientRect();
        if (height > 0 && height < 44) troubles.push(`${label.trim()} is ${height} px high`);
      }
    }
    return troubles;
  });
  for (const trouble of found) check(false, trouble);
}
