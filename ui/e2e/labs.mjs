// An emulated network in Chromium: drawn, watched while a flow overloads one of its links, changed, and removed.
//
//   node e2e/labs.mjs BASE PROGRAM RUN_DIR NAME
//
// The network is "pair" with a link of 20 Mb/s to host b; PROGRAM is linerate, and RUN_DIR the folder of its labs.

import { execFileSync, spawn } from "node:child_process";
import { begin, fits, fromCommandLine, holds, tell, visitor } from "./story.mjs";

const [BASE, PROGRAM, RUN_DIR, NAME] = fromCommandLine();
const env = { ...process.env, LINERATE_RUN: RUN_DIR };
const lab = (...args) => execFileSync(PROGRAM, ["lab", ...args], { env, encoding: "utf8" });
/** Starts a command on a host of it, in a group of processes that can be ended together. */
const inside = (host, command) =>
  spawn(PROGRAM, ["lab", "exec", "--lab", NAME, host, "--", "sh", "-c", command], {
    env,
    stdio: "ignore",
    detached: true,
  });
const end = (flow) => {
  try {
    process.kill(-flow.pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
};

/** The cells of the port whose queue is overloaded. */
const cells = (page) => page.locator("table.ports tbody tr", { hasText: "s → b" }).locator("td");
/** Waits until a cell of it has such a text. */
const until = (page, column, pattern) => cells(page).nth(column).filter({ hasText: pattern }).waitFor();

const flows = [];
await tell(story, { timeout: 90_000, after: () => flows.forEach(end) });

async function open(options, path) {
  // The network of the last step is gone.
  const page = await visitor(options, [404]);
  await page.goto(BASE + path);
  await page.locator("svg.lab").waitFor();
  return page;
}

async function story() {
  begin("the only network");
  const page = await open({ viewport: { width: 1280, height: 900 } }, "/labs");
  holds(
    (await page.getByRole("heading", { level: 1 }).textContent()) === `Network ${NAME}`,
    "another heading",
  );
  const names = (await page.locator("svg.lab .host text, svg.lab .switch text").allTextContents()).sort();
  holds(names.join() === "a,b,s", `it has ${names}`);
  holds((await page.locator("table.ports tbody tr").count()) === 4, "not four ports");
  holds(/20\.00 Mb\/s/.test(await cells(page).nth(0).textContent()), "another rate");
  await page.getByText("Nothing has waited at any port").waitFor();
  await fits(page);

  begin("an overloaded link");
  const phone = await open(
    { viewport: { width: 400, height: 800 }, hasTouch: true, isMobile: true, colorScheme: "dark" },
    `/labs/${NAME}`,
  );
  flows.push(inside("b", `exec ${PROGRAM} serve -p 5201`));
  // The server may take a moment to listen.
  const upload = `${PROGRAM} test b -p 5201 -u -b 40M -t 280 --upload`;
  flows.push(inside("a", `until ${upload}; do sleep 0.2; done`));
  for (const shown of [page, phone]) {
    // All of the last second, and its queue is full.
    await until(shown, 2, /^(9\d|100) %$/);
    await until(shown, 4, /KiB, \d/);
    // Packets are dropped now.
    await until(shown, 6, /^[1-9]\d* ▲$/);
    await shown.locator(".gauge text", { hasText: "ms" }).first().waitFor();
    await shown.locator("figure.live canvas").first().waitFor();
    await fits(shown);
  }

  begin("the counts after it");
  for (const flow of flows.splice(0)) end(flow);
  await until(page, 2, /^0 %$/);
  await page.locator("table.ports td.bad").first().waitFor({ state: "detached" });
  const ports = JSON.parse(lab("status", NAME, "--json")).ports;
  const dropped = ports.find((port) => port.name === "s>b").dropped;
  holds(dropped > 0, "the switch has dropped nothing");
  for (const shown of [page, phone]) await until(shown, 6, new RegExp(`^${dropped}$`));

  begin("a changed link");
  lab("set", "--lab", NAME, "link.b", "rate=5M");
  for (const shown of [page, phone]) await until(shown, 0, /^5\.000 Mb\/s$/);

  begin("the end");
  lab("down", NAME);
  // The page asks again after some seconds, and then there is no such network.
  for (const shown of [page, phone])
    await shown.getByText(/Over: (the network is down|no emulated network with this name)/).waitFor();
  await page.goto(`${BASE}/labs/${NAME}`);
  await page.getByRole("alert").filter({ hasText: "no emulated network with this name" }).waitFor();
  await page.goto(`${BASE}/labs`);
  await page.getByText("None is up.").waitFor();
}
