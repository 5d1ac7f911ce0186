// Takes pictures of every page of the web service, to look at: on a phone, a laptop and the screen of a kiosk, light
// and dark. It starts tests over loopback at the server behind BASE.
//
//   node e2e/web-shots.mjs BASE OUT [FLEET]        FLEET is a server with the archive of a fleet that is up

import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { launch } from "./browser.mjs";

const BASE = process.argv[2] ?? "http://localhost:8080";
const OUT = resolve(process.argv[3] ?? "screenshots");
const FLEET = process.argv[4];
const VIEWS = [
  { name: "phone", width: 400, height: 800, hasTouch: true, isMobile: true },
  { name: "laptop", width: 1280, height: 720 },
];
const SCHEMES = ["light", "dark"];
/** Pages that are longer than their first screen. */
const WHOLE = /^(result|compare|envelope.*|check.*|plans.*|labs)$/;
/** A full gigabit as iperf3 prints it, with a retransmit. */
const PASTED = `Connecting to host ams-1, port 5201
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-10.00  sec  1.10 GBytes   942 Mbits/sec    1             sender
[  5]   0.00-10.04  sec  1.10 GBytes   941 Mbits/sec                  receiver
`;

mkdirSync(OUT, { recursive: true });
const browser = await launch();
try {
  const runs = (await (await fetch(`${BASE}/api/v1/runs?limit=20`)).json()).runs;
  const good = runs.filter((run) => run.state === "ended" && run.outcome === "completed");
  const failed = runs.find((run) => run.outcome === "failed");
  const pages = [
    ["start", "/"],
    ["start-more", "/?to=lund-2&streams=4&congestion=bbr&window=4M&traffic.length_bytes=131072"],
    ["result", `/runs/${good[0].id}`],
    ["history", "/history"],
    [
      "history-select",
      `/history?target=${encodeURIComponent(good[0].target)}&select=${good.at(-1).id}&with=${good[0].id}`,
    ],
    ["compare", `/compare?before=${good.at(-1).id}&after=${good[0].id}`],
    ["compare-empty", "/compare"],
    ["envelope", "/envelope?link=1G&rtt=20ms&loss=0.001%25&window=4M&streams=2&need=8h:2TB"],
    ["envelope-range", "/envelope?link=1G..10G&rtt=5ms..20ms&loss=0..0.01%25"],
    ["envelope-empty", "/envelope"],
    ["envelope-wrong", "/envelope?link=1G&rtt=20"],
    ["check", "/check?rate=966.5M&link=1G&duration=10s&mtu=1500"],
    ["check-pasted", `/check?link=1G&acceptance=gigabit#text=${encodeURIComponent(PASTED)}`],
    ["check-missing", "/check?rate=941M&link=1G&acceptance=gigabit"],
    ["check-empty", "/check"],
    ["sizes", "/sizes?to=lund-2&largest=1M&time=10"],
    ["plans", "/plans?plan=bufferbloat"],
    ["plans-own", "/plans"],
    ["plans-wrong", "/plans?plan=rrul&set=repeatz%3D3"],
    ["labs", "/labs"],
    ["missing", "/nothing/here"],
    ...(failed ? [["failed", `/runs/${failed.id}`]] : []),
  ];
  for (const view of VIEWS) {
    for (const colorScheme of SCHEMES) {
      for (const [name, path] of pages) {
        const page = await opened(view, colorScheme, path);
        await shoot(page, view, colorScheme, name, WHOLE.test(name));
      }
      await problems(view, colorScheme);
      await live(view, colorScheme);
      if (FLEET) await fleet(view, colorScheme);
    }
  }
  const kiosk = { name: "kiosk", width: 800, height: 480 };
  const page = await opened(kiosk, "light", "/kiosk");
  await page.locator(".digits").first().waitFor();
  await shoot(page, kiosk, "dark", "result");
  await start(4);
  const measuring = await opened(kiosk, "light", "/kiosk");
  await measuring.locator(".pair.upload.running").waitFor({ timeout: 60_000 });
  await measuring.waitForTimeout(1500);
  await shoot(measuring, kiosk, "dark", "live");
} finally {
  await browser.close();
}

async function opened({ name, ...view }, colorScheme, path, base = BASE) {
  const { width, height, ...device } = view;
  const context = await browser.newContext({ viewport: { width, height }, colorScheme, ...device });
  const page = await context.newPage();
  await page.goto(base + path);
  await page.locator("h1").first().waitFor();
  await page.waitForTimeout(600);
  return page;
}

async function shoot(page, view, colorScheme, name, whole = false) {
  const path = (part) => join(OUT, `${view.name}-${name}-${colorScheme}${part}.png`);
  await page.screenshot({ path: path("") });
  if (whole) {
    for (const figure of await page.locator("figure[data-chart]").all())
      await figure.scrollIntoViewIfNeeded();
    await page.evaluate(() => scrollTo(0, 0));
    await page.waitForTimeout(300);
    await page.screenshot({ path: path("-whole"), fullPage: true });
  }
  await page.context().close();
}

/** The page of a fleet, with what it says of a cell and of a schedule. */
async function fleet(view, colorScheme) {
  const pages = [
    ["fleet", "/fleet"],
    ["fleet-cell", "/fleet?mesh=all&from=one&to=two"],
    ["fleet-why", "/fleet?schedule=all.one.two"],
  ];
  for (const [name, path] of pages) {
    const page = await opened(view, colorScheme, path, FLEET);
    // Each pair is measured every two minutes.
    await page.locator("table.mesh td.good a").first().waitFor({ timeout: 180_000 });
    await shoot(page, view, colorScheme, name, true);
  }
}

/** The form with mistakes in it. */
async function problems(view, colorScheme) {
  const page = await opened(view, colorScheme, "/?to=lund-2&streams=20000&rate=fast");
  await page.getByRole("button", { name: "Start test" }).click();
  await page.waitForTimeout(500);
  await shoot(page, view, colorScheme, "problems");
}

async function start(seconds, traffic = {}) {
  const answer = await fetch(`${BASE}/api/v1/runs`, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      "X-Linerate": "1",
      "Idempotency-Key": crypto.randomUUID(),
    },
    body: JSON.stringify({
      to: "this host",
      test: { traffic: { duration_ns: seconds * 1e9, ...traffic } },
    }),
  });
  return (await answer.json()).id;
}

/** A run in the middle, and one that waits behind it. */
async function live(view, colorScheme) {
  // Long enough for two pages to open meanwhile on a busy machine.
  const id = await start(12);
  const waiting = await start(1);
  const page = await opened(view, colorScheme, `/runs/${id}`);
  const behind = await opened(view, colorScheme, `/runs/${waiting}`);
  await shoot(behind, view, colorScheme, "waiting");
  await page.locator(".big.upload.running").waitFor({ timeout: 60_000 });
  await page.waitForTimeout(2000);
  await shoot(page, view, colorScheme, "live");
  const last = await opened(view, colorScheme, `/runs/${waiting}`);
  await last.locator(".document").waitFor({ timeout: 60_000 });
  await last.context().close();
  await streams(view, colorScheme);
}

/** Many streams while they are measured: the heat map. */
async function streams(view, colorScheme) {
  const id = await start(6, { streams: 128, download: false, upload: true });
  const page = await opened(view, colorScheme, `/runs/${id}`);
  await page.locator(".big.upload.running").waitFor({ timeout: 60_000 });
  await page.getByText("Each stream", { exact: true }).click();
  await page.waitForTimeout(2500);
  await page.locator("figure.live").last().scrollIntoViewIfNeeded();
  await page.waitForTimeout(300);
  await page.screenshot({ path: join(OUT, `${view.name}-streams-${colorScheme}.png`), fullPage: true });
  await page.locator(".document").waitFor({ timeout: 60_000 });
  await page.context().close();
}
