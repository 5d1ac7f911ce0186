// How long Chromium takes to open a page from the disk: until the verdict can be read, until everything is there and
// the charts near the top are drawn. Prints one JSON object; times are milliseconds from the start of the navigation.
//
//   node e2e/open.mjs FILE

import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { launch } from "./browser.mjs";

const browser = await launch();
try {
  const page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
  await page.addInitScript(() => {
    const seen = new MutationObserver(() => {
      if (!document.querySelector("canvas")) return;
      window.drawnAt = performance.now();
      seen.disconnect();
    });
    seen.observe(document, { childList: true, subtree: true });
  });
  await page.goto(pathToFileURL(resolve(process.argv[2] ?? "")).href, { waitUntil: "load", timeout: 60_000 });
  await page.locator("canvas").first().waitFor({ timeout: 60_000 });
  const times = await page.evaluate(() => {
    const [navigation] = performance.getEntriesByType("navigation");
    const paint = performance.getEntriesByName("first-contentful-paint")[0];
    return { paint_ms: paint?.startTime, load_ms: navigation.loadEventEnd, drawn_ms: window.drawnAt };
  });
  console.log(JSON.stringify(times));
} finally {
  await browser.close();
}
