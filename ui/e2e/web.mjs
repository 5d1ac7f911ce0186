// A story through the pages of the web service in Chromium: two tests over loopback, their results, history,
// comparison, export and deletion. It deletes the runs that it made, and no others.
//
//   node e2e/web.mjs BASE [TOKEN]        CHROMIUM names another browser than the system's

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { begin, fromCommandLine, holds, signIn, tell, trouble, visitor } from "./story.mjs";

const [BASE, TOKEN] = fromCommandLine();
const NAME = `story-${Date.now()}`;

const scratch = await mkdtemp(join(tmpdir(), "linerate-web-"));
await tell(
  async () => {
    await story();
    await onPhone();
  },
  { after: () => rm(scratch, { recursive: true, force: true }) },
);

async function story() {
  const page = await reader({ viewport: { width: 1280, height: 720 } });
  begin("start page");
  await open(page, "/");
  await sound(page);

  begin("mistakes");
  await page.getByLabel("Other host", { exact: true }).fill("this host");
  await page.locator("summary", { hasText: "More" }).click();
  await page.getByLabel("Parallel streams").fill("many");
  await page.getByRole("button", { name: "Start test" }).click();
  const streams = page.getByLabel("Parallel streams");
  holds((await streams.getAttribute("aria-invalid")) === "true", "a mistake is not marked at its field");
  await page
    .waitForFunction(() => document.activeElement?.name === "streams")
    .catch(() => trouble("the field with the mistake has no focus"));
  await streams.fill("20000");
  await page.getByRole("button", { name: "Start test" }).click();
  const described = page.locator("#streams-trouble");
  await described.waitFor();
  holds((await described.textContent()).includes("10000"), "the server's limit is not said at its field");
  holds(new URL(page.url()).pathname === "/", "a refused test left the page");
  await streams.fill("1");

  begin("first test");
  const first = await measure(page, 2);
  const rates = await page.locator(".document .figure strong").allTextContents();
  holds(
    rates.length === 2 && rates.every((rate) => /\d.* [kMGT]?b\/s/.test(rate)),
    `results are ${rates.join(", ")}`,
  );
  holds(
    (await page.locator(".document .statement").first().textContent()).trim() !== "",
    "there is no verdict",
  );
  await drawn(page);
  await sound(page);

  begin("reload");
  await page.reload();
  await page.locator(".document .verdict").first().waitFor();
  holds(
    (await page.locator(".document .figure strong").allTextContents()).join() === rates.join(),
    "the result changed",
  );

  begin("run again");
  await page.getByRole("link", { name: "Run again" }).click();
  holds(
    (await page.getByLabel("Other host", { exact: true }).inputValue()) !== "",
    "the other host is not filled in",
  );
  holds((await page.getByLabel("Name of the run").inputValue()) === NAME, "the name is not filled in");
  holds((await page.getByLabel("Time per direction").inputValue()) === "2", "the time is not filled in");
  await page.getByLabel("Other host", { exact: true }).fill("this host");
  const second = await measure(page, 2);
  holds(first !== second, "the second test has the id of the first");

  begin("history");
  await page.getByRole("link", { name: "History" }).click();
  await page.getByRole("heading", { name: "What was measured" }).waitFor();
  await page.locator("summary", { hasText: "Filter" }).click();
  await page.getByLabel("Name", { exact: true }).fill(NAME);
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 2);
  // Without the filter, an archive of these two runs has as many rows, and the address follows a moment later.
  await page.waitForURL((address) => address.searchParams.get("name") === NAME);
  await sound(page);
  await page.reload();
  await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 2);

  begin("compare");
  const boxes = page.getByRole("checkbox");
  await boxes.nth(1).focus();
  await page.keyboard.press("Space");
  await boxes.nth(0).focus();
  await page.keyboard.press("Space");
  await sound(page);
  await page.getByRole("button", { name: "Compare", exact: true }).click();
  await page.locator(".document h1").waitFor();
  const compared = new URL(page.url()).searchParams;
  holds(compared.get("before") === first && compared.get("after") === second, `compared ${compared}`);
  await drawn(page);
  await sound(page);
  await page.goBack();
  await page.getByRole("heading", { name: "What was measured" }).waitFor();
  await page
    .waitForFunction(() => document.querySelectorAll("tbody :checked").length === 2)
    .catch(() => trouble("the selection is lost on the way back"));

  begin("export");
  await open(page, `/runs/${first}`);
  await page.locator("summary", { hasText: "Export" }).click();
  await sound(page);
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("link", { name: "Result (JSON)" }).click(),
  ]);
  const path = join(scratch, "result.json");
  await download.saveAs(path);
  holds(
    JSON.parse(await readFile(path, "utf8")).schema?.startsWith("linerate.result/"),
    "the file is no result",
  );

  begin("kiosk");
  const kiosk = await reader({ viewport: { width: 800, height: 480 } });
  await open(kiosk, "/kiosk");
  const digits = kiosk.locator(".digits").first();
  await digits.waitFor();
  holds(
    (await digits.locator("b").evaluate((b) => b.getBoundingClientRect().height)) >= 85,
    "the digits are small",
  );
  holds(await kiosk.evaluate(() => document.documentElement.scrollHeight <= 480), "the kiosk scrolls");
  await kiosk.context().close();

  begin("delete");
  for (const id of [first, second]) {
    await open(page, `/runs/${id}`);
    await page.getByLabel("More actions").click();
    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("button", { name: "Keep it" }).click();
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    holds(
      await page.evaluate(async (id) => (await fetch(`/api/v1/runs/${id}`)).ok, id),
      "a run is deleted without being asked",
    );
    await page.getByLabel("More actions").click();
    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.waitForURL("**/history");
  }
  await open(page, `/history?name=${NAME}`);
  await page.getByText("No run matches").waitFor();

  begin("from this browser");
  await open(page, "/?from=browser&seconds=2");
  await page.getByLabel("Connections").fill("40");
  await page.getByRole("button", { name: "Start test" }).click();
  holds(
    (await page.getByLabel("Connections").getAttribute("aria-invalid")) === "true",
    "40 connections are taken",
  );
  await page.getByLabel("Connections").fill("2");
  // A download ends with a reset, which the browser reports.
  page.removeAllListeners("console");
  await watch(page);
  await page.getByRole("button", { name: "Start test" }).click();
  await page.waitForURL("**/runs/*");
  await page.locator(".document .verdict").first().waitFor();
  holds((await watched(page)).figures > 0, "no figures are shown while it runs");
  const moved = await page.locator(".document .figure strong").allTextContents();
  holds(
    moved.length === 2 && moved.every((rate) => /\d.* [kMGT]?b\/s/.test(rate)),
    `results from the browser are ${moved.join(", ")}`,
  );
  holds(
    (await page.getByRole("link", { name: "Run again" }).getAttribute("href")).includes("from=browser"),
    "the same test cannot be started again",
  );
  const own = new URL(page.url()).pathname.split("/").at(-1);
  await remove(page, own);

  begin("single streams");
  await open(page, "/");
  await page.getByLabel("host to host").check();
  await page.getByLabel("Other host", { exact: true }).fill("this host");
  await page.locator("summary", { hasText: "More" }).click();
  await page.getByLabel("Time per direction").fill("60");
  await page.getByLabel("Parallel streams").fill("128");
  await page.getByRole("button", { name: "Start test" }).click();
  await page.waitForURL("**/runs/*");
  await page.locator("summary", { hasText: "Each stream" }).click();
  const map = page.locator("details .panel", {
    hasText: /download: bit rate of each stream, grey 0 to full colour \d/,
  });
  // A place that is reached in the first seconds of two minutes.
  await map.locator(".u-over").hover({ position: { x: 30, y: 30 } });
  await map.getByText(/stream \d+, until \d.* s: /).waitFor();
  await sound(page);
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.locator(".document").waitFor();
  const maps = page.locator(".document .panel h4", { hasText: "bit rate of each stream, received" });
  await maps.first().waitFor();
  const several = new URL(page.url()).pathname.split("/").at(-1);
  await remove(page, several);

  begin("no such run");
  page.removeAllListeners("console");
  await open(page, `/runs/${first}`);
  await page.getByRole("alert").waitFor();
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
  holds(gone, "a run is not deleted");
}

/** Starts a test over loopback with the form as it is, and follows it to its result; its id. */
async function measure(page, seconds) {
  if (!(await page.getByLabel("Name of the run").isVisible()))
    await page.locator("summary", { hasText: "More" }).click();
  await page.getByLabel("Time per direction").fill(String(seconds));
  await page.getByLabel("Name of the run").fill(NAME);
  await watch(page);
  await page.getByRole("button", { name: "Start test" }).click();
  await page.waitForURL("**/runs/*");
  const id = new URL(page.url()).pathname.split("/").at(-1);
  await page.locator(".document .verdict").first().waitFor();
  const { figures, heights } = await watched(page);
  // Figures that move are frames that arrive.
  holds(figures > 1, "the figures do not move");
  holds(heights.length === 1, `the live page jumps: the charts were at ${heights.join(", ")} px`);
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
  begin("phone");
  const page = await reader({
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
  holds(top < 800, `the first rate is ${Math.round(top)} px below the top`);
  await open(page, "/history");
  await page.locator("tbody tr").first().waitFor();
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
async function reader(options) {
  const page = await visitor(options, [422]);
  page.on("request", (request) => {
    const url = request.url();
    const { hostname, pathname } = new URL(url);
    if (hostname === new URL(BASE).hostname && pathname.startsWith("/linerate/browser/")) return;
    if (!url.startsWith(BASE) && !/^(data|blob):/.test(url)) trouble(`request: ${url.slice(0, 80)}`);
  });
  if (TOKEN) await signIn(page, BASE, TOKEN);
  return page;
}

async function open(page, path) {
  await page.goto(BASE + path);
  await page.locator("h1").first().waitFor();
}

/** Every chart in sight has a canvas. */
async function drawn(page) {
  for (const figure of await page.locator("figure[data-chart]").all()) {
    if (!(await figure.isVisible())) continue;
    await figure.scrollIntoViewIfNeeded();
    await figure
      .locator("canvas")
      .first()
      .waitFor()
      .catch(() => trouble("a chart is not drawn"));
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
  for (const words of found) trouble(words);
}
