// One connection of a test from this browser, in a worker of its own: it sends or receives as fast as the browser
// can, and watches how well the browser does so. The host counts the bytes.

import type { Direction } from "./api";

/** From the page to a worker. */
export type ToWorker =
  | {
      kind: "open";
      phase: Direction;
      url: string;
      /** How many bytes may wait in the send buffer of this connection. */
      limit: number;
      /** Whether to find out the resolution of the clock. */
      clock: boolean;
    }
  /** The load begins; the time is that of `wallClock`. */
  | { kind: "go"; at: number }
  /** The phase has ended: report. */
  | { kind: "stop" };

/** From a worker to the page. */
export type FromWorker = { kind: "failed"; why: string } | Report;

export interface Report {
  kind: "report";
  /** When the send buffer was empty, in milliseconds of `wallClock`: begin, end, begin, end, ... */
  empty: number[];
  longestLagMs: number;
  clockResolutionMs?: number;
}

export const PROTOCOL = "linerate.browser.1";

/** A message of an upload; also the most that `getRandomValues` fills at once. */
const MESSAGE_BYTES = 65_536;
const READ_BUFFER_BYTES = 262_144;
/** The timer whose delay is reported. */
const LAG_TIMER_MS = 50;
/** A download that always has data would keep the timer waiting: from time to time it lets others run. */
const MAX_TURN_MS = 10;
const CLOCK_STEPS = 10;
/** A clock that takes longer for one step has no resolution worth waiting for. */
const MAX_CLOCK_MS = 250;

/** Milliseconds since 1970 of a monotonic clock, the same one in the page and in its workers. */
export const wallClock = () => performance.timeOrigin + performance.now();

export class Measurement {
  private readonly empty = new EmptyTimes();
  private readonly lag = new LagTimer();
  private readonly post: (message: FromWorker) => void;
  private readonly pings = new MessageChannel();
  private phase: Direction = "download";
  private limit = 0;
  private clockResolutionMs: number | undefined;
  private socket: WebSocket | undefined;
  private block: Uint8Array<ArrayBuffer> | undefined;
  private wake = () => {};

  constructor(post: (message: FromWorker) => void) {
    this.post = post;
    this.pings.port1.onmessage = () => this.wake();
  }

  receive(message: ToWorker): void {
    if (message.kind === "open") this.open(message);
    if (message.kind === "go") this.go(message.at);
    if (message.kind === "stop") this.stop();
  }

  private open({ phase, url, limit, clock }: ToWorker & { kind: "open" }): void {
    this.phase = phase;
    this.limit = limit;
    if (clock) this.clockResolutionMs = clockResolution();
    if (phase === "upload") this.openUpload(url);
    else this.download(url).catch((error) => this.post({ kind: "failed", why: String(error) }));
  }

  private openUpload(url: string): void {
    this.block = crypto.getRandomValues(new Uint8Array(MESSAGE_BYTES));
    this.socket = new WebSocket(url, PROTOCOL);
    this.socket.onerror = () => this.post({ kind: "failed", why: "the connection was refused or broke" });
  }

  private go(at: number): void {
    this.lag.start();
    if (this.phase !== "upload") return;
    this.empty.begin(at);
    this.wake = () => this.fill();
    this.fill();
  }

  /** Fills the send buffer, and comes back in the next turn of the event loop. */
  private fill(): void {
    const { socket, block } = this;
    if (!socket || !block || socket.readyState !== WebSocket.OPEN) return;
    this.empty.look(wallClock(), socket.bufferedAmount === 0);
    let sent = false;
    while (socket.bufferedAmount + MESSAGE_BYTES <= this.limit) {
      socket.send(block);
      sent = true;
    }
    if (sent) this.pings.port2.postMessage(null);
    else setTimeout(() => this.fill(), 0);
  }

  private async download(url: string): Promise<void> {
    const answer = await fetch(url, { cache: "no-store" });
    if (!answer.ok || !answer.body) throw new Error(`the host answered with status ${answer.status}`);
    const next = readerOf(answer.body);
    let turned = performance.now();
    while (await next()) {
      if (performance.now() - turned < MAX_TURN_MS) continue;
      await new Promise<void>((done) => {
        this.wake = done;
        this.pings.port2.postMessage(null);
      });
      turned = performance.now();
    }
  }

  private stop(): void {
    this.wake = () => {};
    this.block = undefined;
    this.lag.stop();
    this.post({
      kind: "report",
      empty: this.empty.times,
      longestLagMs: this.lag.longest,
      ...(this.clockResolutionMs === undefined ? {} : { clockResolutionMs: this.clockResolutionMs }),
    });
  }
}

/** Reads a piece of a body and discards it, into one buffer if the browser can; false at the end. */
function readerOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): () => Promise<boolean> {
  let reader: ReadableStreamBYOBReader;
  try {
    reader = body.getReader({ mode: "byob" });
  } catch {
    const plain = body.getReader();
    return async () => !(await plain.read()).done;
  }
  let buffer = new ArrayBuffer(READ_BUFFER_BYTES);
  return async () => {
    const { value, done } = await reader.read(new Uint8Array(buffer));
    if (value) buffer = value.buffer;
    return !done;
  };
}

/**
 * When a send buffer was empty. The browser does not say when it became empty: one that is found empty counts as
 * such since the previous look.
 */
export class EmptyTimes {
  readonly times: number[] = [];
  private last = 0;

  begin(at: number): void {
    this.last = at;
  }

  look(at: number, empty: boolean): void {
    if (at <= this.last) return;
    if (empty) {
      if (this.times.length > 0 && this.times.at(-1) === this.last) this.times.pop();
      else this.times.push(this.last);
      this.times.push(at);
    }
    this.last = at;
  }
}

/** How late a timer of this worker is at most: the worker, or the computer, had other things to do. */
class LagTimer {
  longest = 0;
  private started = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  start(): void {
    this.started = performance.now();
    this.timer = setTimeout(() => {
      this.see();
      this.start();
    }, LAG_TIMER_MS);
  }

  stop(): void {
    if (this.timer === undefined) return;
    clearTimeout(this.timer);
    this.timer = undefined;
    this.see();
  }

  private see(): void {
    this.longest = Math.max(this.longest, performance.now() - this.started - LAG_TIMER_MS);
  }
}

/** The smallest step of the clock, in milliseconds; undefined if it does not move for a long time. */
export function clockResolution(): number | undefined {
  // A clock with coarse steps may stand still for as long as this: another one ends the wait.
  const since = Date.now();
  let last = performance.now();
  let smallest: number | undefined;
  for (let steps = 0; steps < CLOCK_STEPS && Date.now() - since <= MAX_CLOCK_MS; ) {
    const now = performance.now();
    if (now <= last) continue;
    smallest = Math.min(smallest ?? Number.POSITIVE_INFINITY, now - last);
    last = now;
    steps += 1;
  }
  return smallest;
}

/** The share of the time from `from` to `to` in which every one of these was empty. */
export function sharedEmptyShare(times: number[][], from: number, to: number): number {
  if (times.length === 0 || to <= from) return 0;
  const common = times.reduce(intersection, [from, to]);
  let sum = 0;
  for (let at = 0; at + 1 < common.length; at += 2) sum += (common[at + 1] ?? 0) - (common[at] ?? 0);
  return Math.min(1, sum / (to - from));
}

function intersection(one: number[], other: number[]): number[] {
  const common: number[] = [];
  for (let [i, j] = [0, 0]; i + 1 < one.length && j + 1 < other.length; ) {
    const begin = Math.max(one[i] ?? 0, other[j] ?? 0);
    const [oneEnd, otherEnd] = [one[i + 1] ?? 0, other[j + 1] ?? 0];
    if (begin < Math.min(oneEnd, otherEnd)) common.push(begin, Math.min(oneEnd, otherEnd));
    if (oneEnd < otherEnd) i += 2;
    else j += 2;
  }
  return common;
}
