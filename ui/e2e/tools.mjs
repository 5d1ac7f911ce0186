// The pages that calculate, and tags, in Chromium: a path is described and a result judged while one types, and the
// address brings both back; a viewer does the same, and sets no tags.
//
//   node e2e/tools.mjs BASE VIEW_TOKEN RUN_TOKEN        CHROMIUM names another browser than the system's

import { begin, fits, fromCommandLine, holds, signIn, tell, visitor } from "./story.mjs";

const [BASE, VIEW_TOKEN, RUN_TOKEN] = fromCommandLine();
/** A gigabit as iperf3 prints it: with a name that would be a script in the page. */
const RESULT = `Connecting to host <img src=x onerror=alert(1)>, port 5201
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-10.00  sec  1.10 GBytes   942 Mbits/sec    0             sender
[  5]   0.00-10.04  sec  1.10 GBytes   941 Mbits/sec                  receiver
`;

await tell(async () => {
  for (const options of [
    { viewport: { width: 1280, height: 720 } },
    { viewport: { width: 400, height: 800 }, hasTouch: true, isMobile: true, colorScheme: "dark" },
  ]) {
    const page = await member(VIEW_TOKEN, options);
    await envelope(page);
    await check(page);
    await plans(page);
    await page.context().close();
  }
  await tags();
});

/** Somebody with this token. */
async function member(token, options = {}) {
  const page = await visitor(options, [422]);
  await signIn(page, BASE, token);
  return page;
}

/** Whether the page fits, and whether the answer is on its first screen. */
async function answerFits(page) {
  await fits(page);
  const { bottom, height } = await page.evaluate(() => ({
    bottom: document.querySelector(".answer .lead")?.getBoundingClientRect().bottom ?? 0,
    height: innerHeight,
  }));
  holds(bottom <= height, `the answer is at ${Math.round(bottom)} px of ${height}`);
}

async function plans(page) {
  begin("plans");
  await page.goto(`${BASE}/plans?plan=bufferbloat`);
  const described = page.locator(".described");
  await described.filter({ hasText: "bufferbloat" }).waitFor();
  await page.getByText("linerate run bufferbloat", { exact: true }).waitFor();
  await answerFits(page);

  begin("plans: a mistake");
  const editor = page.getByLabel("File (TOML)");
  const file = await editor.inputValue();
  await editor.fill(`repeatz = 3\n${file}`);
  const mistake = page.locator("#mistakes li", { hasText: "repeats" });
  await mistake.waitFor();
  await mistake.getByRole("button", { name: "Line 1:" }).click();
  const selected = await editor.evaluate((field) =>
    field.value.slice(field.selectionStart, field.selectionEnd),
  );
  holds(selected === "r", `the mistake is at ${JSON.stringify(selected)}`);
  await page.reload();
  await mistake.waitFor();
  await page.getByRole("button", { name: "Undo all changes" }).click();
  await described.waitFor();
  holds((await editor.inputValue()) === file, "the plan is not the one that comes along");

  begin("plans: settings");
  await page.getByLabel("Settings instead of").fill("repeatz=7");
  await page.locator("#settings-trouble", { hasText: "repeats" }).waitFor();
  await page.getByLabel("Settings instead of").fill("repeats=7\naxis.streams=1");
  await described.filter({ hasText: "7 times each" }).waitFor();
  holds(page.url().includes("set=repeats%3D7&set=axis.streams%3D1"), `the address is ${page.url()}`);
  await page.reload();
  await described.filter({ hasText: "7 times each" }).waitFor();
  await page.getByLabel("Plan", { exact: true }).selectOption("One of your own");
  await described.filter({ hasText: "my-plan" }).waitFor();
  const download = page.waitForEvent("download");
  await page.getByText("Save my-plan.toml").click();
  holds((await download).suggestedFilename() === "my-plan.toml", "the file has another name");
}

async function envelope(page) {
  begin("envelope");
  await page.goto(BASE);
  // By keyboard alone: the menu, the page, the first field.
  await page.locator("summary", { hasText: "Tools" }).focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/envelope");
  await page.getByRole("heading", { name: "What can this path carry?" }).waitFor();
  // A new page takes the focus.
  await page.waitForFunction(() => document.activeElement?.id === "main");
  await page.getByLabel("Slowest link").focus();
  await page.keyboard.type("1G");
  const lead = page.locator(".answer:not(.stale) .lead");
  await lead.filter({ hasText: "941.5 Mb/s" }).waitFor();
  holds((await page.locator(".ceiling-bars li").count()) === 1, "a link alone has another ceiling");

  begin("envelope: a window");
  await page.getByLabel("Window", { exact: true }).fill("64K");
  const rtt = page.getByLabel("Round-trip time");
  await page.locator("#rtt-trouble").waitFor();
  holds((await rtt.getAttribute("aria-invalid")) === "true", "the missing round trip is not marked");
  await rtt.fill("20ms");
  await lead.filter({ hasText: "26.21 Mb/s" }).waitFor();
  holds((await page.locator("#rtt-trouble").count()) === 0, "the problem stays after its cure");
  const binding = page.locator(".ceiling-bars .binds");
  holds((await binding.count()) === 1, "there is not one limit");
  holds((await binding.textContent()).includes("receiver window"), "the limit is not the window");
  const widths = await page
    .locator(".ceiling-bars .solid")
    .evaluateAll((bars) => bars.map((bar) => bar.getBoundingClientRect().width));
  holds(widths.length === 2 && widths[0] > 0 && widths[0] < widths[1], `the bars are ${widths} px long`);
  await answerFits(page);

  begin("envelope: the address");
  const { search } = new URL(page.url());
  holds(search === "?link=1G&rtt=20ms&window=64K", `the address is ${search}`);
  await page.reload();
  await lead.filter({ hasText: "26.21 Mb/s" }).waitFor();
  holds((await rtt.inputValue()) === "20ms", "the round trip is lost");

  begin("envelope: folded fields");
  await page.locator("summary", { hasText: "More" }).click();
  await page.getByLabel("UDP instead of TCP").check();
  await page.locator("#window-trouble").waitFor();
  await page.getByLabel("UDP instead of TCP").uncheck();
  await lead.filter({ hasText: "26.21 Mb/s" }).waitFor();
  await page.getByLabel("Needed transfer").fill("8h:2TB");
  await page.getByText("does not fit").waitFor();
}

async function check(page) {
  begin("check");
  await page.goto(`${BASE}/check`);
  await page.getByLabel("Rate", { exact: true }).fill("966.5M");
  const lead = page.locator(".answer:not(.stale) .lead");
  await lead.filter({ hasText: "This is possible." }).waitFor();
  await page.getByLabel("Link", { exact: true }).fill("1G");
  await page.getByLabel("Duration", { exact: true }).fill("ten");
  await page.locator("#duration-trouble").waitFor();
  await page.getByLabel("Duration", { exact: true }).fill("10s");
  await page.locator("summary", { hasText: "More" }).click();
  await page.getByLabel("MTU", { exact: true }).fill("1500");
  await lead.filter({ hasText: "This is impossible." }).waitFor();
  holds((await page.locator(".reason ol li").count()) > 1, "no causes are named");

  begin("check: acceptance");
  const rule = page.getByLabel("Acceptance of a gigabit link");
  await page.goto(`${BASE}/check`);
  await rule.check();
  await page.getByLabel("Rate", { exact: true }).fill("941M");
  const accepted = page.locator(".acceptance h2");
  await accepted.filter({ hasText: "Not shown yet" }).waitFor();
  holds((await page.locator(".acceptance li.missing").count()) === 3, "what is missing is not said");
  await page.getByLabel("Duration", { exact: true }).fill("10s");
  await page.getByLabel("Retransmits", { exact: true }).fill("0");
  await page.getByLabel("Connections", { exact: true }).fill("1");
  await accepted.filter({ hasText: /^Accepted/ }).waitFor();
  await page.getByLabel("Retransmits", { exact: true }).fill("3");
  await accepted.filter({ hasText: "Not accepted" }).waitFor();

  begin("check: a pasted result");
  await page.goto(`${BASE}/check?link=1G&acceptance=gigabit`);
  await page.getByLabel("Result of a program").fill(RESULT);
  await accepted.filter({ hasText: /^Accepted/ }).waitFor();
  await page.getByText("with <img src=x").waitFor();
  await page.reload();
  await accepted.filter({ hasText: /^Accepted/ }).waitFor();
  holds((await page.getByLabel("Result of a program").inputValue()) === RESULT, "the text is lost");
  await page.getByLabel("Result of a program").fill("the network is slow today");
  await lead.filter({ hasText: "Nothing could be read." }).waitFor();
  await answerFits(page);
}

/** Somebody who may start tests tags a run; the history finds it; a viewer sees the tag and cannot remove it. */
async function tags() {
  begin("tags");
  const page = await member(RUN_TOKEN, { viewport: { width: 1280, height: 720 } });
  await page.getByLabel("Other host", { exact: true }).fill("this host");
  await page.locator("summary", { hasText: "More" }).click();
  await page.getByLabel("Time per direction").fill("1");
  await page.getByRole("button", { name: "Start test" }).click();
  const field = page.getByLabel("New tag");
  await field.fill("two words");
  await field.press("Enter");
  await page.getByText("cannot be a tag").waitFor();
  await field.fill("rack-4");
  await field.press("Enter");
  await page.getByRole("button", { name: "Remove the tag rack-4" }).waitFor();
  await field.fill("spare");
  await page.getByRole("button", { name: "Add tag" }).click();
  await page.getByRole("button", { name: "Remove the tag spare" }).click();
  await page.getByRole("link", { name: "spare" }).waitFor({ state: "detached" });
  await page.reload();
  await page.getByRole("link", { name: "rack-4" }).click();
  await page.waitForURL("**/history?tag=rack-4");
  await page.locator("tbody tr", { hasText: "rack-4" }).waitFor();
  await page.getByLabel("Tag", { exact: true }).fill("spare");
  await page.getByText("No run matches").waitFor();
  await page.waitForURL("**/history?tag=spare");
  await page.context().close();

  begin("tags of a viewer");
  const viewer = await member(VIEW_TOKEN);
  await viewer.goto(`${BASE}/runs/latest`);
  await viewer.getByRole("link", { name: "rack-4" }).waitFor();
  holds((await viewer.getByLabel("New tag").count()) === 0, "a viewer may add tags");
  holds((await viewer.getByLabel("Remove the tag rack-4").count()) === 0, "a viewer may remove tags");
  await viewer.context().close();
}
