import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  clockResolution,
  EmptyTimes,
  type FromWorker,
  Measurement,
  sharedEmptyShare,
  wallClock,
} from "./measuring";

/** A connection that the test empties. */
class FakeSocket {
  static readonly OPEN = 1;
  static last: FakeSocket;
  readyState = 1;
  bufferedAmount = 0;
  sent = 0;
  onerror: (() => void) | undefined;
  readonly url: string;
  readonly protocol: string;

  constructor(url: string, protocol: string) {
    this.url = url;
    this.protocol = protocol;
    FakeSocket.last = this;
  }

  send(block: Uint8Array) {
    this.bufferedAmount += block.length;
    this.sent += block.length;
  }
}

/** A channel to oneself whose messages take a turn, by the clock of the test. */
class FakeChannel {
  port1 = { onmessage: () => {} };
  port2 = { postMessage: () => void setTimeout(() => this.port1.onmessage(), 1) };
}

let said: FromWorker[] = [];
let worker: Measurement;

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("WebSocket", FakeSocket);
  vi.stubGlobal("MessageChannel", FakeChannel);
  said = [];
  worker = new Measurement((message) => said.push(message));
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const open = (limit = 4 * 65_536) =>
  worker.receive({ kind: "open", phase: "upload", url: "ws://h/up?stream=0", limit, clock: false });
const go = () => worker.receive({ kind: "go", at: wallClock() });
const report = () => {
  worker.receive({ kind: "stop" });
  const last = said.at(-1);
  if (last?.kind !== "report") throw new Error("no report");
  return last;
};

test("an upload sends nothing before it is told to, and then fills its buffer to the limit and no further", () => {
  open();
  expect(FakeSocket.last).toMatchObject({
    url: "ws://h/up?stream=0",
    protocol: "linerate.browser.1",
    sent: 0,
  });
  go();
  expect(FakeSocket.last.bufferedAmount).toBe(4 * 65_536);
  FakeSocket.last.bufferedAmount -= 65_536 + 1;
  vi.advanceTimersByTime(5);
  expect([FakeSocket.last.bufferedAmount, FakeSocket.last.sent]).toEqual([4 * 65_536 - 1, 5 * 65_536]);
});

test("an upload ends when the host closes the connection, or the page asks for the report", () => {
  open();
  go();
  FakeSocket.last.readyState = 3;
  FakeSocket.last.bufferedAmount = 0;
  vi.advanceTimersByTime(10);
  expect(FakeSocket.last.sent).toBe(4 * 65_536);
  FakeSocket.last.readyState = 1;
  report();
  go();
  vi.advanceTimersByTime(10);
  expect(FakeSocket.last.sent).toBe(4 * 65_536);
});

test("a buffer that is found empty counts as empty since the look before", () => {
  open();
  const began = wallClock();
  worker.receive({ kind: "go", at: began - 2 });
  vi.advanceTimersByTime(3);
  FakeSocket.last.bufferedAmount = 0;
  vi.advanceTimersByTime(1);
  const { empty } = report();
  // From the start to the first look, and until the buffer was found empty.
  expect(empty.slice(0, 2).map((at) => Math.round(at - began))).toEqual([-2, 0]);
  expect(empty.length).toBe(4);
  expect(empty[3]).toBeGreaterThan(empty[2] ?? 0);
});

test("empty times that touch are one", () => {
  const times = new EmptyTimes();
  times.begin(10);
  for (const [at, empty] of [
    [11, true],
    [12, true],
    [13, false],
    [13, true],
    [14, true],
  ] as const)
    times.look(at, empty);
  expect(times.times).toEqual([10, 12, 13, 14]);
});

test("buffers starve together only while all of them are empty", () => {
  expect(sharedEmptyShare([[0, 50]], 0, 100)).toBe(0.5);
  expect(
    sharedEmptyShare(
      [
        [0, 20, 40, 80],
        [10, 50, 70, 90],
      ],
      0,
      100,
    ),
  ).toBe(0.3);
  expect(sharedEmptyShare([[0, 50], []], 0, 100)).toBe(0);
  // What was before and after the phase does not count.
  expect(sharedEmptyShare([[0, 1000]], 100, 200)).toBe(1);
  expect(sharedEmptyShare([], 0, 100)).toBe(0);
});

test("the longest delay of the timer is reported, also one that has not come to an end", () => {
  open();
  go();
  vi.advanceTimersByTime(500);
  expect(report().longestLagMs).toBe(0);
  go();
  const clock = vi.spyOn(performance, "now");
  const now = performance.now();
  clock.mockReturnValue(now + 90);
  expect(report().longestLagMs).toBeCloseTo(40);
});

test("the clock's resolution is its smallest step, and a clock that stands still has none", () => {
  const steps = [0, 0, 3, 3, 5, 9, 12, 15, 18, 21, 24, 27, 30, 33];
  let at = 0;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => steps[at++] ?? 0);
  expect(clockResolution()).toBe(2);
  clock.mockReturnValue(7);
  let ms = 0;
  vi.spyOn(Date, "now").mockImplementation(() => ms++);
  expect(clockResolution()).toBeUndefined();
});

const downloading = async (body: ReadableStream<Uint8Array> | null, status = 200) => {
  const asked: unknown[] = [];
  vi.stubGlobal("fetch", async (...request: unknown[]) => {
    asked.push(request);
    return { ok: status === 200, status, body };
  });
  worker.receive({ kind: "open", phase: "download", url: "http://h/down?stream=3", limit: 0, clock: false });
  await vi.advanceTimersByTimeAsync(100);
  return asked;
};

for (const type of ["bytes", undefined] as const)
  test(`a download is read to its end, ${type ? "into one buffer" : "also by a browser that has no such reader"}`, async () => {
    let left = 5;
    let closed = false;
    const source = {
      pull: (controller: { enqueue(piece: Uint8Array): void; close(): void }) => {
        if (left-- > 0) return controller.enqueue(new Uint8Array(1000));
        controller.close();
        closed = true;
        (controller as { byobRequest?: { respond(bytes: number): void } }).byobRequest?.respond(0);
      },
    };
    const body = type
      ? new ReadableStream({ type, ...source } as UnderlyingByteSource)
      : new ReadableStream<Uint8Array>(source);
    const asked = await downloading(body as ReadableStream<Uint8Array>);
    expect(asked).toEqual([["http://h/down?stream=3", { cache: "no-store" }]]);
    expect([closed, said]).toEqual([true, []]);
  });

test("a connection that cannot be opened is said", async () => {
  await downloading(null, 404);
  expect(said).toEqual([{ kind: "failed", why: expect.stringContaining("404") }]);
  open();
  FakeSocket.last.onerror?.();
  expect(said.length).toBe(2);
});
