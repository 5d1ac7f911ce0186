// A test from a browser to the host of the pages, as a visitor makes it. Prints the run's id.
//
//   node e2e/measure.mjs BASE [CONNECTIONS [SECONDS]]        CHROMIUM names another browser than the system's

import { launch } from "./browser.mjs";

const [BASE = "http://localhost:8080", CONNECTIONS = "4", SECONDS = "10"] = process.argv.slice(2);
/** Longest wait for the result, milliseconds, besides the test itself. */
const TIMEOUT = 60_000;

const browser = await launch();
try {
  // A test host has a certificate that nobody has signed.
  const page = await browser.newPage({ ignoreHTTPSErrors: true });
  await page.goto(`${BASE}/?from=browser&connections=${CONNECTIONS}&seconds=${SECONDS}`);
  await page.getByRole("button", { name: "Start test" }).click();
  await page.waitForURL("**/runs/*", { timeout: TIMEOUT + Number(SECONDS) * 2000 });
  console.log(new URL(page.url()).pathname.split("/").at(-1));
} finally {
  await browser.close();
}
