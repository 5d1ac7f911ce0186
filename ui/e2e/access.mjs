// Who may do what on the pages, in Chromium: a viewer starts and deletes nothing, a shared link shows one run without
// a token, and a page over HTTPS measures from its browser as any other.
//
//   node e2e/access.mjs BASE VIEW_TOKEN RUN_TOKEN        CHROMIUM names another browser than the system's

import { fromCommandLine, holds, signIn, tell, visitor } from "./story.mjs";

const [BASE, VIEW_TOKEN, RUN_TOKEN] = fromCommandLine();

await tell(async () => {
  const link = await tester();
  await viewer();
  await stranger(link);
});

/** Somebody with this token, or without one. */
async function somebody(token) {
  const page = await visitor({ ignoreHTTPSErrors: true }, [401, 403, 404]);
  if (token) await signIn(page, BASE, token);
  return page;
}

/** Somebody who may start tests: the link to the run of one. */
async function tester() {
  const page = await somebody(RUN_TOKEN);
  holds((await page.getByText("this browser to").count()) === 1, "no test of this browser is offered");
  await page.getByLabel("this browser to").check();
  await page.getByLabel("Seconds per direction").fill("1");
  await page.getByRole("button", { name: "Start test" }).click();
  await page.locator("summary", { hasText: "Export" }).waitFor();
  // The actions are there before the result.
  await page.locator(".document").waitFor();
  const encrypted = page.getByText("the connections were encrypted (TLS)");
  holds(
    (await encrypted.count()) > 0 === BASE.startsWith("https:"),
    `the result is wrong about its encryption: ${(await page.locator("main").textContent()).slice(0, 1000)}`,
  );
  await page.goto(`${BASE}/?from=host`);
  await page.getByLabel("Other host", { exact: true }).fill("this host");
  await page.locator("summary", { hasText: "More" }).click();
  await page.getByLabel("Time per direction").fill("1");
  await page.getByRole("button", { name: "Start test" }).click();
  await page.locator("summary", { hasText: "Export" }).waitFor();
  await page.locator("summary[aria-label='More actions']").click();
  holds((await page.getByText("Delete…").count()) === 0, "somebody who may not delete is offered it");
  await page.getByRole("button", { name: "Share…" }).click();
  await page.getByRole("dialog").waitFor();
  const field = page.getByLabel("Link", { exact: true });
  await page.getByText(/Valid until .* UTC/).waitFor();
  const ending = await field.inputValue();
  await page.getByLabel("Valid for").selectOption("Until all links are revoked");
  await page.getByText("Valid until all links of").waitFor();
  const link = await field.inputValue();
  holds(link !== ending, "a link that ends is one that does not");
  holds(link.startsWith(`${BASE}/shared/`), `the link is ${link}`);
  await Promise.all([
    page.getByText("Link copied").waitFor(),
    page.getByRole("button", { name: "Copy", exact: true }).click(),
  ]);
  await page.context().close();
  return link;
}

/** Somebody who may see results. */
async function viewer() {
  const page = await somebody(VIEW_TOKEN);
  await page.getByLabel("host to host").check();
  await page.getByText("Your token shows results.").waitFor();
  holds(
    (await page.getByLabel("Other host", { exact: true }).count()) === 0,
    "a viewer has the form for tests",
  );
  await page.goto(`${BASE}/runs/latest`);
  await page.locator("summary", { hasText: "Export" }).waitFor();
  await page.locator("summary[aria-label='More actions']").click();
  for (const action of ["Delete…", "Share…", "Run again"])
    holds((await page.getByText(action).count()) === 0, `a viewer is offered ${action}`);
  await page.context().close();
}

/** Somebody without a token, who has the link. */
async function stranger(link) {
  const page = await somebody();
  await page.goto(link);
  await page.locator(".document").waitFor();
  holds((await page.getByLabel("Token").count()) === 0, "a shared run asks for a token");
  const download = page.waitForEvent("download");
  await page.locator("summary", { hasText: "Export" }).click();
  await page.getByText("Result (JSON)").click();
  holds((await download).suggestedFilename().endsWith(".json"), "the export of a shared run is no file");
  await page.goto(`${link.slice(0, -1)}${link.endsWith("A") ? "B" : "A"}`);
  await page.getByText("no longer valid").waitFor();
  await page.goto(`${BASE}/history`);
  await page.getByLabel("Token").waitFor();
}
