// The page of a fleet in Chromium: who sees whom how well, the history of a cell, why a schedule does not measure, and
// what those who may start tests can do. The fleet is one of `linerate fleet up --simple`, with a schedule `often`, and
// an agent of the host `three` that is never there.
//
//   node e2e/fleet.mjs BASE VIEW_TOKEN RUN_TOKEN ADMIN_TOKEN        CHROMIUM names another browser than the system's

import { begin, fits, fromCommandLine, holds, signIn, tell, visitor } from "./story.mjs";

const [BASE, VIEW_TOKEN, RUN_TOKEN, ADMIN_TOKEN] = fromCommandLine();

// The mesh is measured every two minutes.
await tell(
  async () => {
    await look({ viewport: { width: 1280, height: 720 } });
    await look({
      viewport: { width: 400, height: 800 },
      hasTouch: true,
      isMobile: true,
      colorScheme: "dark",
    });
    await change();
    await administer();
  },
  { timeout: 180_000 },
);

/** Somebody with this token, on the page of the fleet. */
async function member(token, options = {}) {
  const page = await visitor(options, [409, 422]);
  await signIn(page, BASE, token);
  await page.locator("summary", { hasText: "Tools" }).click();
  await page.getByRole("link", { name: "Fleet" }).click();
  await page.getByRole("heading", { name: "Fleet try-out" }).waitFor();
  return page;
}

/** A viewer sees everything and changes nothing. */
async function look(options) {
  begin(`look at ${options.viewport.width} px`);
  const page = await member(VIEW_TOKEN, options);
  await page.getByText("A coordinator carries out the calendar").waitFor();
  const cells = page.locator("table.mesh tbody td a");
  holds((await cells.count()) === 6, `the grid has ${await cells.count()} cells of 6`);
  const agents = page.locator("section", { has: page.locator("#agents") });
  const three = agents.locator("tr", { has: page.getByRole("rowheader", { name: "three" }) });
  holds(
    (await three.textContent()).includes("never heard"),
    `the agent of three is ${await three.textContent()}`,
  );
  const measured = page.locator("table.mesh td.good a").first();
  await measured.waitFor();
  holds(/\d/.test(await measured.textContent()), "a cell with a result has no figure");
  const said = await measured.getAttribute("aria-label");
  holds(/to .*b\/s, measured/.test(said), `a screen reader says ${said}`);
  await measured.click();
  await page.waitForURL("**/fleet?mesh=all&**");
  const history = page.locator("section", { has: page.locator("#cell") });
  await history.locator("tbody tr", { hasText: "finished" }).first().waitFor();
  await page.reload();
  await history.locator("tbody tr", { hasText: "finished" }).first().waitFor();
  holds((await page.getByRole("button", { name: "Pause" }).count()) === 0, "a viewer may pause");
  holds((await page.getByRole("button", { name: "Cancel" }).count()) === 0, "a viewer may cancel");
  holds((await page.getByText("Add a schedule").count()) === 0, "a viewer may add schedules");
  await fits(page);
  begin(`look at ${options.viewport.width} px: a run`);
  await history.locator("tbody a").first().click();
  await page.waitForURL("**/runs/**");
  await page.locator(".document").waitFor();
  await page.context().close();
}

/** Somebody who may start tests asks why, pauses and resumes. */
async function change() {
  begin("why");
  const page = await member(RUN_TOKEN, { viewport: { width: 1280, height: 720 } });
  const row = page.locator("tr", { has: page.getByRole("rowheader", { name: "often", exact: true }) });
  const why = row.getByRole("button", { name: "Why?" });
  await why.click();
  await page.waitForURL("**/fleet?schedule=often");
  await page.getByRole("heading", { name: "Why does often not measure now?" }).waitFor();
  await page.getByText(/free at/).waitFor();
  holds((await why.getAttribute("aria-expanded")) === "true", "the button does not say that it is open");

  begin("why, of an agent");
  const away = page.locator("tr", { has: page.getByRole("rowheader", { name: "all.three.one" }) });
  await away.getByRole("button", { name: "Why?" }).click();
  await page.getByRole("heading", { name: "Why does all.three.one not measure now?" }).waitFor();
  await page.locator("li", { hasText: "the agent of three was never there" }).waitFor();
  await why.click();
  await page.getByRole("heading", { name: "Why does often not measure now?" }).waitFor();

  begin("pause");
  await row.getByRole("button", { name: "Pause" }).click();
  await row.getByText("paused", { exact: true }).waitFor();
  await page.getByText("it is paused").waitFor();
  await page.reload();
  await page.getByText("it is paused").waitFor();
  await page.getByText("(1 paused)").waitFor();
  await row.getByRole("button", { name: "Resume" }).click();
  await row.getByRole("button", { name: "Pause" }).waitFor();
  holds((await page.getByText("Add a schedule").count()) === 0, "who may start tests may add schedules");
  await page.context().close();
}

/** An administrator adds a schedule, with a mistake first, and removes it. */
async function administer() {
  begin("add");
  const page = await member(ADMIN_TOKEN, { viewport: { width: 400, height: 800 } });
  await page.locator("summary", { hasText: "Add a schedule" }).click();
  const form = page.getByRole("form", { name: "New schedule" });
  await form.getByLabel("Name").fill("often");
  await form.getByLabel("From").selectOption("two");
  await form.getByLabel("To", { exact: true }).selectOption("one");
  await form.getByLabel("Every").fill("1s");
  await form.getByLabel("Duration").fill("soon");
  await form.getByRole("button", { name: "Add schedule" }).click();
  await form.getByText("Give a time").waitFor();
  await form.getByLabel("Duration").fill("1");
  await form.getByRole("button", { name: "Add schedule" }).click();
  await form.getByText("a period of 1 s is not possible").waitFor();
  holds(
    (await form.getByLabel("Every").getAttribute("aria-invalid")) === "true",
    "the field to blame is not marked",
  );
  await form.getByLabel("Every").fill("1h");
  await form.getByRole("button", { name: "Add schedule" }).click();
  await form.getByText("there is a schedule 'often' already").waitFor();
  await form.getByLabel("Name").fill("hourly");
  await form.getByLabel("Name").press("Enter");
  await page.getByRole("heading", { name: "Why does hourly not measure now?" }).waitFor();
  await fits(page);

  begin("remove");
  const row = page.locator("tr", { has: page.getByRole("rowheader", { name: "hourly", exact: true }) });
  await row.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("button", { name: "Keep it" }).click();
  await row.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await row.waitFor({ state: "detached" });
  const mesh = page.locator("tr", { has: page.getByRole("rowheader", { name: "all.one.two" }) });
  await mesh.waitFor();
  holds((await mesh.getByRole("button", { name: "Remove" }).count()) === 0, "one of a mesh may be removed");
  await page.context().close();
}
