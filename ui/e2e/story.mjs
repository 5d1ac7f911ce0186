// What the stories through the pages share: a browser, steps, visitors whose errors are troubles, and the answer of the
// script, which is "ok" or the list of troubles.

import { launch } from "./browser.mjs";

const troubles = [];
let browser;
let step = "";
/** How long a busy machine may take for a step, milliseconds. */
let timeout;

/** Tells a story in a browser, and then the process ends with 0 or with the troubles; `after` is done in any case. */
export async function tell(story, { timeout: longest = 60_000, after = () => {} } = {}) {
  timeout = longest;
  browser = await launch();
  try {
    await story();
  } catch (error) {
    trouble(error.message);
  } finally {
    await browser.close();
    await after();
  }
  for (const words of troubles) console.log(words);
  console.log(troubles.length > 0 ? `${troubles.length} troubles` : "ok");
  process.exitCode = troubles.length > 0 ? 1 : 0;
}

/** Begins a step: troubles from now on happened in it. */
export function begin(words) {
  step = words;
}

/** The story is not as it should be. */
export function trouble(words) {
  troubles.push(step ? `${step}: ${words}` : words);
}

/** What has to be true. */
export function holds(isTrue, words) {
  if (!isTrue) trouble(words);
}

/** A browser window of its own; `refused` are the status codes with which the server answers mistakes of the story. */
export async function visitor(options = {}, refused = []) {
  const context = await browser.newContext(options);
  return watched(await context.newPage(), refused);
}

/** The page, whose errors and whose scripts from other places are troubles. */
export function watched(page, refused = []) {
  page.setDefaultTimeout(timeout);
  page.on("pageerror", (error) => trouble(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    trouble(`a script ran: ${dialog.message()}`);
    return dialog.dismiss();
  });
  page.on("console", (message) => {
    const isRefusal = refused.some((status) => message.text().includes(`status of ${status}`));
    if (["error", "warning"].includes(message.type()) && !isRefusal) trouble(`console: ${message.text()}`);
  });
  return page;
}

/** Signs in with a token. */
export async function signIn(page, base, token) {
  await page.goto(base);
  await page.getByLabel("Token").fill(token);
  await page.getByLabel("Token").press("Enter");
  await page.getByRole("button", { name: "Sign out" }).waitFor();
}

/** The page does not scroll sideways. */
export async function fits(page) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  holds(wide <= 0, `the page is ${wide} px too wide`);
}

/** The address of the pages and the other words of the command line. */
export function fromCommandLine() {
  const [base = "http://localhost:8080", ...others] = process.argv.slice(2);
  return [base.replace(/\/$/, ""), ...others];
}
