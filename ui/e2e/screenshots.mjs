// Takes pictures of every page of a folder, to look at: on a laptop and on a telephone, light and dark, the first
// screen and the whole page, and on A4.
//
//   node e2e/screenshots.mjs FOLDER OUT

import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { launch } from "./browser.mjs";

const [folder, out] = [resolve(process.argv[2] ?? "."), resolve(process.argv[3] ?? "screenshots")];
const VIEWS = [
  { name: "1280", width: 1280, height: 720 },
  { name: "400", width: 400, height: 800 },
];
mkdirSync(out, { recursive: true });
const browser = await launch();
try {
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".html"))) {
    const name = basename(file, ".html");
    for (const view of VIEWS) {
      for (const colorScheme of ["light", "dark"]) {
        const page = await opened(file, view, colorScheme);
        const path = (part) => join(out, `${name}-${view.name}-${colorScheme}${part}.png`);
        await page.screenshot({ path: path("-first") });
        await everything(page);
        await page.screenshot({ path: path(""), fullPage: true });
        await page.context().close();
      }
    }
    await onPaper(file, name);
    console.log(name);
  }
} finally {
  await browser.close();
}

async function opened(file, { width, height }, colorScheme) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme });
  const page = await context.newPage();
  await page.goto(pathToFileURL(join(folder, file)).href);
  await settled(page);
  return page;
}

/** Draws every chart that is in sight somewhere on the page. */
async function everything(page) {
  for (const figure of await page.locator("figure[data-chart]").all()) {
    if (await figure.isVisible()) await figure.scrollIntoViewIfNeeded();
  }
  await page.evaluate(() => scrollTo(0, 0));
  await settled(page);
}

function settled(page) {
  return page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

/** As PDF, and if poppler is installed as a picture of each sheet. */
async function onPaper(file, name) {
  const page = await opened(file, { width: 720, height: 1000 }, "light");
  await page.emulateMedia({ media: "print" });
  await everything(page);
  const path = join(out, `${name}-a4.pdf`);
  await page.pdf({ path, format: "A4" });
  await page.context().close();
  try {
    execFileSync("pdftoppm", ["-r", "70", "-png", path, join(out, `${name}-a4`)]);
  } catch {
    console.log(`${name}: no pictures of its sheets; install poppler-utils`);
  }
}
