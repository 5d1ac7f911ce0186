import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { BrowserSettings } from "./browserForm";
import { type BrowserTest, REPORT_MS, RETRY_MS, startBrowserTest, WORKER_URL } from "./browserTest";
import { chartOf, latest, progress, stage } from "./live";
import { type Report, type ToWorker, wallClock } from "./measuring";
import { Problem } from "./problem";

class FakeSocket {
  static readonly OPEN = 1;
  static all: FakeSocket[] = [];
  readyState = 0;
  sent: { kind: string; [key: string]: unknown }[] = [];
  onopen = () => {};
  onmessage = (_: { data: string }) => {};
  onclose = (_: { code: number }) => {};
  readonly url: string;
  readonly protocol: string;

  constructor(url: string, protocol: string) {
    this.url = url;
    this.protocol = protocol;
    FakeSocket.all.push(this);
  }

  send(text: string) {
    this.sent.push(JSON.parse(text));
  }

  close() {
    this.readyState = 3;
  }

  // What the host does.

  open() {
    this.readyState = 1;
    this.onopen();
    return this;
  }

  say(message: object) {
    this.onmessage({ data: JSON.stringify(message) });
    return this;
  }

  drop(code: number) {
    this.readyState = 3;
    this.onclose({ code });
  }
}

class FakeWorker {
  static all: FakeWorker[] = [];
  heard: ToWorker[] = [];
  ended = false;
  onmessage = (_: { data: unknown }) => {};
  onerror = () => {};
  readonly url: string;

  constructor(url: string) {
    this.url = url;
    FakeWorker.all.push(this);
  }

  postMessage(message: ToWorker) {
    this.heard.push(message);
  }

  terminate() {
    this.ended = true;
  }

  report(more: Partial<Report> = {}) {
    this.onmessage({ data: { kind: "report", empty: [], longestLagMs: 0, ...more } });
  }
}

const page = Object.assign(new EventTarget(), { hidden: false });
const hide = (hidden: boolean) => {
  page.hidden = hidden;
  page.dispatchEvent(new Event("visibilitychange"));
};

let isEncrypted = false;
let states: BrowserTest[] = [];
let cancel = () => {};
const now = () => states.at(-1) as BrowserTest;
const host = () => FakeSocket.all.at(-1) as FakeSocket;
const SETTINGS: BrowserSettings = { connections: 2, seconds: 10, directions: ["download", "upload"] };

const TICKET = "0123456789abcdef0123456789abcdef";
const tickets = vi.fn<() => Promise<string>>();

async function start(settings: Partial<BrowserSettings> = {}): Promise<FakeSocket> {
  const to = { name: "ams-1", port: 5201, encrypted: isEncrypted, ticket: tickets };
  cancel = startBrowserTest(to, { ...SETTINGS, ...settings }, (test) => states.push(test));
  await vi.advanceTimersByTimeAsync(0);
  return host();
}

const opens = (phase: string, streams = 2) => host().say({ kind: "open", phase, streams });
const goes = (phase: string) => host().say({ kind: "go", phase, seconds: 10 });
const progresses = (phase: string, seconds: number, bps: number, more = {}) =>
  host().say({ kind: "progress", phase, elapsed_ns: seconds * 1e9, bytes: 1, bitrate_bps: bps, ...more });
const ends = (phase: string, bps: number) =>
  host().say({ kind: "ended", phase, bytes: 1, elapsed_ns: 10e9, bitrate_bps: bps });

beforeEach(() => {
  vi.useFakeTimers();
  tickets.mockReset().mockResolvedValue(TICKET);
  vi.stubGlobal("WebSocket", FakeSocket);
  vi.stubGlobal("Worker", FakeWorker);
  vi.stubGlobal("document", page);
  FakeSocket.all = [];
  FakeWorker.all = [];
  states = [];
  isEncrypted = false;
  page.hidden = false;
});

afterEach(() => {
  cancel();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

test("the host is asked for what the form says, with a ticket of its own", async () => {
  const address =
    /^ws:\/\/ams-1:5201\/linerate\/browser\/([0-9a-f]{32})\/control\?streams=2&seconds=10&directions=download,upload$/;
  const { url, protocol } = await start();
  const [, name] = address.exec(url) ?? [];
  expect([protocol, name]).toEqual(["linerate.browser.1", TICKET]);
  expect((await start({ directions: ["upload"] })).url).toMatch(/&directions=upload$/);
});

test("a busy host is asked again with another ticket, until it is free", async () => {
  const first = (await start()).open();
  first.say({ kind: "busy", why: "another run is in progress" }).drop(1013);
  expect(now()).toMatchObject({ state: "busy", why: "another run is in progress" });
  vi.advanceTimersByTime(RETRY_MS - 1);
  expect(FakeSocket.all.length).toBe(1);
  tickets.mockResolvedValue(TICKET.replaceAll("a", "b"));
  await vi.advanceTimersByTimeAsync(1);
  expect(host().url).toBe(first.url.replaceAll(TICKET, TICKET.replaceAll("a", "b")));
  host().open().drop(1013);
  expect(now().state).toBe("busy");
  await vi.advanceTimersByTimeAsync(RETRY_MS);
  expect(FakeSocket.all.length).toBe(3);
  host().open();
  opens("download");
  expect(now()).toMatchObject({ state: "measuring" });
  expect(now().why).toBeUndefined();
});

test("without a ticket there is no test, and a service that has none is asked again when it says", async () => {
  tickets.mockRejectedValueOnce(new Problem(429, { detail: "too many tickets", retry_after: 5 }));
  await start();
  expect(now()).toMatchObject({ state: "busy", why: "too many tickets", retryMs: 5000 });
  await vi.advanceTimersByTimeAsync(4999);
  expect(FakeSocket.all.length).toBe(0);
  await vi.advanceTimersByTimeAsync(1);
  expect(FakeSocket.all.length).toBe(1);
  cancel();
  tickets.mockRejectedValueOnce(new Problem(401, { detail: "sign in" }));
  await start();
  expect(now()).toMatchObject({ state: "failed", why: "sign in" });
  await vi.advanceTimersByTimeAsync(10 * RETRY_MS);
  expect(FakeSocket.all.length).toBe(1);
});

test("a test that is cancelled before it has its ticket never starts", async () => {
  let give = (_: string) => {};
  tickets.mockReturnValueOnce(new Promise((done) => (give = done)));
  await start();
  cancel();
  give(TICKET);
  await vi.advanceTimersByTimeAsync(RETRY_MS);
  expect(FakeSocket.all).toEqual([]);
});

test("a cancelled test does not ask again", async () => {
  (await start()).open().say({ kind: "busy", why: "x" });
  cancel();
  vi.advanceTimersByTime(10 * RETRY_MS);
  expect(FakeSocket.all.length).toBe(1);
});

test("each phase opens as many connections as the host says, each in a worker of its own", async () => {
  (await start()).open();
  opens("download", 3);
  const prefix = host().url.replace(/^ws:|\/control.*$/g, "");
  expect(FakeWorker.all.map(({ url }) => url)).toEqual([WORKER_URL, WORKER_URL, WORKER_URL]);
  expect(FakeWorker.all.map(({ heard }) => heard[0])).toMatchObject(
    [0, 1, 2].map((stream) => ({
      kind: "open",
      phase: "download",
      url: `http:${prefix}/down?stream=${stream}`,
      clock: stream === 0,
    })),
  );
  goes("download");
  expect(FakeWorker.all.map(({ heard }) => heard[1]?.kind)).toEqual(["go", "go", "go"]);
  ends("download", 1e9);
  for (const worker of FakeWorker.all) worker.report();
  expect(FakeWorker.all.every(({ ended }) => ended)).toBe(true);
  opens("upload", 1);
  expect(FakeWorker.all.at(-1)?.heard).toMatchObject([{ phase: "upload", url: `ws:${prefix}/up?stream=0` }]);
});

test("the connections of a page over https are encrypted, and a refused certificate is thought of", async () => {
  isEncrypted = true;
  (await start()).open();
  expect(host().url).toMatch(/^wss:\/\/ams-1:5201\//);
  const prefix = host().url.replace(/^wss:|\/control.*$/g, "");
  for (const [phase, url] of [
    ["download", `https:${prefix}/down?stream=0`],
    ["upload", `wss:${prefix}/up?stream=0`],
  ] as const) {
    opens(phase, 1);
    expect(FakeWorker.all.at(-1)?.heard).toMatchObject([{ phase, url }]);
    goes(phase);
    ends(phase, 1e9);
    FakeWorker.all.at(-1)?.report();
  }
  (await start()).drop(1006);
  expect(now().why).toContain("Open https://ams-1:5201/ in another tab");
});

test("unsent bytes are bounded for a connection and for all of them", async () => {
  for (const streams of [1, 2, 4, 16]) {
    (await start()).open();
    FakeWorker.all = [];
    opens("upload", streams);
    const limits = FakeWorker.all.map(({ heard }) => (heard[0] as ToWorker & { kind: "open" }).limit);
    expect(Math.max(...limits)).toBeLessThanOrEqual(4 * 2 ** 20);
    expect(limits.reduce((a, b) => a + b, 0)).toBe(Math.min(4 * streams, 8) * 2 ** 20);
    cancel();
  }
});

test("the page shows the host's figures: rates, means, round-trip times, and what is left", async () => {
  (await start()).open();
  expect([stage(now().live.frame), now().live.reach]).toEqual(["Connecting", 20]);
  opens("download");
  goes("download");
  expect(stage(now().live.frame)).toBe("Measuring download");
  progresses("download", 0.25, 9e8);
  progresses("download", 5, 8e8, { rtt_ns: 400_000 });
  expect(now().live.frame).toMatchObject({ at_seconds: 5, left_seconds: 15 });
  expect(progress(now().live.frame)).toBe("5 of 10 s");
  ends("download", 8.5e8);
  opens("upload");
  goes("upload");
  progresses("upload", 1, 7e8, { rtt_ns: 500_000 });
  const { live } = now();
  const [download, upload] = live.frame.flows;
  expect([download?.state, download?.mean_bps]).toEqual(["ended", 8.5e8]);
  expect(upload && latest(live, upload)).toEqual({ bitrate: 7e8, srtt: 500_000 });
  expect(chartOf(live).panels.map(({ lines }) => lines.map(({ x, y }) => [x, y]))).toEqual([
    [
      [
        [0.25, 5],
        [9e8, 8e8],
      ],
      [[11], [7e8]],
    ],
    [
      [
        [0.25, 5],
        [null, 400_000],
      ],
      [[11], [500_000]],
    ],
  ]);
  expect(live.reach).toBe(20);
});

test("the note says how well the browser kept up", async () => {
  (await start({ directions: ["upload"] })).open();
  opens("upload");
  goes("upload");
  const began = wallClock();
  vi.advanceTimersByTime(10_000);
  ends("upload", 1e9);
  const [one, other] = FakeWorker.all;
  expect(one?.heard.at(-1)).toEqual({ kind: "stop" });
  one?.report({ empty: [began, began + 1000], longestLagMs: 12, clockResolutionMs: 0.005 });
  expect(host().sent).toEqual([]);
  other?.report({ empty: [began + 500, began + 5000], longestLagMs: 3 });
  expect(host().sent).toEqual([
    {
      kind: "note",
      phase: "upload",
      starved_share: expect.closeTo(0.05, 4),
      longest_lag_ns: 12_000_000,
      hidden: false,
      clock_resolution_ns: 5000,
    },
  ]);
  expect(FakeWorker.all.every(({ ended }) => ended)).toBe(true);
});

test("the note does not wait for a worker that hangs, and says how late it is", async () => {
  (await start({ directions: ["upload"] })).open();
  opens("upload");
  goes("upload");
  ends("upload", 1e9);
  FakeWorker.all[0]?.report({ longestLagMs: 12 });
  vi.advanceTimersByTime(REPORT_MS);
  expect(host().sent).toEqual([
    { kind: "note", phase: "upload", longest_lag_ns: expect.any(Number), hidden: false },
  ]);
  expect(host().sent[0]?.longest_lag_ns).toBeGreaterThanOrEqual(REPORT_MS * 1e6);
  FakeWorker.all[1]?.report();
  expect(host().sent.length).toBe(1);
});

test("a download has no send buffers that could starve", async () => {
  (await start()).open();
  opens("download");
  goes("download");
  ends("download", 1e9);
  for (const worker of FakeWorker.all) worker.report();
  expect(host().sent.map((note) => [note.phase, "starved_share" in note])).toEqual([["download", false]]);
});

test("a page that was hidden at any moment of a phase says so, in the note of that phase only", async () => {
  (await start()).open();
  hide(true);
  hide(false);
  opens("download");
  goes("download");
  expect(now().wasHidden).toBe(false);
  hide(true);
  hide(false);
  ends("download", 1e9);
  for (const worker of FakeWorker.all) worker.report();
  opens("upload");
  goes("upload");
  ends("upload", 1e9);
  for (const worker of FakeWorker.all) worker.report();
  expect(host().sent.map(({ phase, hidden }) => [phase, hidden])).toEqual([
    ["download", true],
    ["upload", false],
  ]);
  expect(now().wasHidden).toBe(true);
});

test("a phase that begins in the background was hidden", async () => {
  page.hidden = true;
  (await start()).open();
  opens("download");
  goes("download");
  page.hidden = false;
  ends("download", 1e9);
  for (const worker of FakeWorker.all) worker.report();
  expect(host().sent[0]?.hidden).toBe(true);
});

test("a finished test has its run, or none", async () => {
  (await start()).open();
  host().say({ kind: "finished", run: "54ca" }).drop(1000);
  expect(now()).toMatchObject({ state: "finished", run: "54ca" });
  (await start()).open();
  opens("download");
  goes("download");
  ends("download", 1e9);
  host().say({ kind: "finished" }).drop(1000);
  expect(now().state).toBe("finished");
  expect(now().run).toBeUndefined();
  expect(now().live.frame).toMatchObject({ state: "ended", left_seconds: 0 });
  expect(now().live.frame.flows[0]?.mean_bps).toBe(1e9);
});

test("a failure has the host's words, and ends the workers", async () => {
  (await start()).open();
  opens("download");
  goes("download");
  progresses("download", 1, 1e9);
  host().say({ kind: "failed", why: "a connection broke" }).drop(1000);
  expect(now()).toMatchObject({ state: "failed", why: "a connection broke" });
  expect(FakeWorker.all.every(({ ended }) => ended)).toBe(true);
  expect(now().live.frame.flows.some(({ state }) => state === "running")).toBe(false);
});

test("a connection that closes without a word is lost; one that never was is told apart", async () => {
  (await start()).open();
  opens("download");
  host().drop(1006);
  expect(now()).toMatchObject({ state: "failed", why: "The connection to the host is lost." });
  expect(FakeWorker.all.every(({ ended }) => ended)).toBe(true);
  (await start()).drop(1006);
  expect(now().why).toContain("port 5201");
});

test("silence is said, forgotten when the host speaks again, and in the end a lost connection", async () => {
  (await start()).open();
  opens("download");
  goes("download");
  vi.advanceTimersByTime(2000);
  expect(now().silentSince).toBeUndefined();
  vi.advanceTimersByTime(2000);
  expect(now().silentSince).toBeInstanceOf(Date);
  progresses("download", 4, 1e9);
  expect(now().silentSince).toBeUndefined();
  vi.advanceTimersByTime(30_000);
  expect(now().state).toBe("failed");
  expect(vi.getTimerCount()).toBe(0);
});

test("a busy host may be silent", async () => {
  (await start()).open().say({ kind: "busy", why: "x" });
  // Only the timer of the next attempt is left.
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(RETRY_MS - 1);
  expect(now()).toMatchObject({ state: "busy" });
  expect(now().silentSince).toBeUndefined();
});

test("a connection that cannot be opened fails the test; one that breaks later is the host's to judge", async () => {
  (await start()).open();
  opens("download");
  FakeWorker.all[1]?.onmessage({ data: { kind: "failed", why: "refused" } });
  expect(now()).toMatchObject({ state: "failed", why: expect.stringContaining("refused") });
  (await start()).open();
  FakeWorker.all = [];
  opens("download");
  goes("download");
  FakeWorker.all[1]?.onmessage({ data: { kind: "failed", why: "network error" } });
  expect(now().state).toBe("measuring");
});

test("a browser without the worker says so", async () => {
  (await start()).open();
  opens("download");
  FakeWorker.all[0]?.onerror();
  expect(now()).toMatchObject({ state: "failed", why: expect.stringContaining("worker") });
});

test("a cancelled test tells the host, ends its workers and shows nothing more", async () => {
  const socket = (await start()).open();
  opens("download");
  goes("download");
  const shown = states.length;
  cancel();
  expect(socket.sent).toEqual([{ kind: "cancel" }]);
  expect(socket.readyState).toBe(3);
  expect(FakeWorker.all.every(({ ended }) => ended)).toBe(true);
  socket.say({ kind: "finished", run: "1" }).drop(1000);
  vi.advanceTimersByTime(60_000);
  expect([states.length, socket.sent.length, vi.getTimerCount()]).toEqual([shown, 1, 0]);
});

test("a message that is not understood fails the test, one of a later version does not", async () => {
  (await start()).open();
  host().say({ kind: "weather" });
  expect(now().state).toBe("connecting");
  host().onmessage({ data: "{" });
  expect(now().state).toBe("failed");
});
