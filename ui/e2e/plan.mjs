// A plan from its page to its result in Chromium, in a network that the server emulates: started, watched, found again,
// and a second one cancelled. Then a series over message sizes.
//
//   node e2e/plan.mjs BASE        CHROMIUM names another browser than the system's

import { begin, fits, fromCommandLine, holds, tell, visitor, watched } from "./story.mjs";

const [BASE] = fromCommandLine();

await tell(
  async () => {
    await story({ viewport: { width: 1280, height: 720 } });
    await story({
      viewport: { width: 400, height: 800 },
      hasTouch: true,
      isMobile: true,
      colorScheme: "dark",
    });
  },
  { timeout: 90_000 },
);

async function start(page, settings) {
  await page.goto(`${BASE}/plans`);
  await page.getByLabel("Settings instead of").fill(settings);
  await page.locator(".answer:not(.stale) .described", { hasText: "my-plan" }).waitFor();
  await fits(page);
  await page.getByRole("button", { name: "Run this plan" }).click();
  await page.waitForURL("**/runs/*");
}

async function story(options) {
  const page = await visitor(options, [422]);

  begin("a plan that would take too long");
  await page.goto(`${BASE}/plans`);
  await page.getByLabel("Settings instead of").fill("max_time=2s");
  await page.locator(".answer:not(.stale) .described", { hasText: "my-plan" }).waitFor();
  await page.getByRole("button", { name: "Run this plan" }).click();
  await page.getByRole("alert").filter({ hasText: "at most 2" }).waitFor();
  holds(new URL(page.url()).pathname === "/plans", "a refused plan left the page");

  begin("a plan");
  await start(page, "repeats=1\ntest.duration=3\naxis.window=64K,256K");
  // In one step: the result takes the place of the live page.
  const live = await page.waitForFunction(() => {
    const row = document.querySelector(".trials tbody tr");
    return row && { heading: document.querySelector("h1").textContent, row: row.textContent };
  });
  const { heading, row } = await live.jsonValue();
  holds(heading === "Plan my-plan", `the heading is ${heading}`);
  holds(/ b\/s|[kMGT]b\/s/.test(row), `no rate in ${row}`);
  await fits(page);
  await page.locator(".document").waitFor();
  const rows = await page.locator(".document table").first().textContent();
  holds(/64K/.test(rows) && /256K/.test(rows), `the result is ${rows}`);
  holds((await page.locator(".verdict.bad").count()) === 0, "the plan failed");
  const address = page.url();
  await fits(page);

  begin("history");
  await page.goto(`${BASE}/history`);
  const found = page.locator("tbody tr", { hasText: "my-plan" }).first();
  await found.waitFor();
  await page.goto(address);
  await page.locator(".document").waitFor();

  begin("a plan that is cancelled");
  await start(page, "repeats=9\ntest.duration=60");
  await page.locator(".figures .big.running").first().waitFor();
  await page.locator("summary", { hasText: "The emulated network" }).click();
  await page.locator("svg.lab .host").first().waitFor();
  await page.locator("table.ports td", { hasText: "%" }).first().waitFor();
  await fits(page);
  const kiosk = watched(await page.context().newPage());
  await kiosk.goto(`${BASE}/kiosk`);
  await kiosk.locator(".statement", { hasText: /Trial \d+ of/ }).waitFor();
  await kiosk.locator(".digits", { hasText: "b/s" }).first().waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("heading", { name: "The plan was cancelled" }).waitFor();
  await kiosk.locator(".statement.bad", { hasText: "cancelled" }).waitFor();

  begin("message sizes");
  await page.goto(`${BASE}/sizes`);
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.locator("#to-trouble").waitFor();
  await page.getByLabel("Other host").fill("this host");
  await page.locator("summary", { hasText: "More" }).click();
  await page.getByLabel("Largest message").fill("900M");
  await page.getByLabel("Time for all sizes").fill("20");
  await fits(page);
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.locator("#largest-trouble", { hasText: "64M" }).waitFor();
  await page.getByLabel("Largest message").fill("64K");
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.waitForURL("**/runs/*");
  await page.getByText(/\d+ sizes? up to/).waitFor();
  await page.locator("figure.live canvas").first().waitFor();
  await fits(page);
  await page.locator(".document").waitFor();
  const again = await page.getByRole("link", { name: "Run again" }).getAttribute("href");
  holds(again.startsWith("/sizes?to=this+host"), `it is run again at ${again}`);
  await page.context().close();
}
